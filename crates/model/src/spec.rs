//! The tables that a user writes, together a `SpecDraft`, and the `Spec` that they resolve to. After
//! `resolve` nothing is checked again.

mod answers;
mod control;
mod engine;
mod error;
mod lengths;
mod load;
mod price;
mod slo;
mod target;
mod text;
mod workload;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::deployment::DeploymentSpec;
use crate::endpoint::Api;
use crate::observations::{Connections, HttpVersion};
use crate::record::RequestedLengths;
use crate::whole::spread;
use crate::{BaseUrl, RequestId};
pub use answers::{AnswersTable, Expect, KeptShare};
pub use control::*;
pub use engine::*;
pub use error::SpecError;
use error::{Result, refuse_first};
pub use lengths::Lengths;
pub use load::*;
pub use price::Price;
pub use slo::{Limit, Relation, Slo};
pub use target::*;
pub use text::{
    CoreList, Grammar, ImageSize, ImageSizes, Named, PerSecond, Ramp, Share, Time, Written, count,
    number,
};
pub use workload::*;

/// Everything the user may leave out. Files that the tables name have been read: `prompt_file` into
/// `prompt`, `tools` into the extra fields of the body, and the header of a saved plan into `saved`.
#[derive(Clone, Debug, Default)]
pub struct SpecDraft {
    /// URL of the target; `None` is the embedded engine.
    pub url: Option<BaseUrl>,
    /// How the server is deployed, instead of a URL.
    pub deployment: Option<DeploymentSpec>,
    pub engine: EngineTable,
    pub target: TargetTable,
    pub workload: WorkloadTable,
    pub load: LoadTable,
    /// Spec of a saved plan, which is played as it is.
    pub saved: Option<SavedSpec>,
    pub client: ClientTable,
    /// Cores that the system lets this process use; empty where it does not say.
    pub cores_allowed: Vec<u32>,
    pub limits: LimitTable,
    pub control: ControlTable,
    pub answers: AnswersTable,
    pub slos: Vec<Slo>,
    pub header_names: Vec<String>,
    pub metadata: BTreeMap<String, String>,
}

/// What was asked when a plan was saved.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedSpec {
    pub api: Api,
    pub workload: Workload,
    pub load: Load,
    pub seed: u64,
}

/// What will run: nothing optional changes a number. Stored with the results; holds no secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub target: TargetSpec,
    /// Other replicas of the server, over which requests are balanced with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<BaseUrl>,
    /// Which embedded engine; says nothing where the target is another server.
    #[serde(default, skip_serializing_if = "EngineTable::is_default")]
    pub engine: EngineTable,
    pub api: Api,
    /// The model to ask for; `None` takes the first that the server lists (see the endpoint).
    pub model: Option<String>,
    pub workload: Workload,
    /// When requests are sent.
    pub load: Load,
    pub seed: u64,
    /// `None` does as the server does (see the endpoint).
    pub connections: Option<Connections>,
    pub client: ClientSpec,
    pub limits: Limits,
    #[serde(default, skip_serializing_if = "Control::is_default")]
    pub control: Control,
    /// How the server's metrics are read meanwhile; `None` leaves them alone.
    #[serde(default)]
    pub telemetry: Option<TelemetrySpec>,
    /// SLOs that the run is judged by.
    pub slos: Vec<Slo>,
    /// Names only: values may be secret.
    pub header_names: Vec<String>,
    pub metadata: BTreeMap<String, String>,
    /// Who describes the server; `None` takes what it reports itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<String>,
    /// What the server costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// How answers are judged, and which are stored.
    #[serde(default, skip_serializing_if = "AnswersTable::is_default")]
    pub answers: AnswersTable,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetSpec {
    Embedded,
    Url(BaseUrl),
    /// A server that is deployed for the measurement.
    Deployed(Box<DeploymentSpec>),
}

impl SpecDraft {
    pub fn resolve(self) -> Result<Spec> {
        let (api, workload, load, seed) = self.stimulus()?;
        workload.check_carried(api)?;
        let client = self.client.resolve(&self.target, &self.cores_allowed)?;
        self.engine.check()?;
        let (is_url, is_deployed) = (self.url.is_some(), self.deployment.is_some());
        let (is_embedded, has_engine) = (!is_url && !is_deployed, !self.engine.is_default());
        let has_tls = self.url.as_ref().is_some_and(|url| url.tls);
        let is_http2 = client.http == HttpVersion::Http2;
        let connections = self.target.connections;
        let is_per_user = connections == Some(Connections::PerUser);
        let has_users = !matches!(load.shape, LoadShape::Open { cap: None, .. });
        let model = self.target.model.as_deref();
        refuse_first([
            (is_url && has_engine, SpecError::EngineOfUrl),
            (is_deployed && is_url, SpecError::DeploymentOfUrl),
            (is_deployed && has_engine, SpecError::DeploymentOfEngine),
            (is_embedded && self.target.server_info.is_some(), SpecError::InfoOfEngine),
            (!is_url && self.target.replica.is_some(), SpecError::ReplicaWithoutUrl),
            (client.insecure && !has_tls, SpecError::InsecureWithoutTls),
            (is_http2 && is_embedded, SpecError::EmbeddedHttp2),
            (is_per_user && is_http2, SpecError::PerUserHttp2),
            (is_per_user && !has_users, SpecError::PerUserWithoutUsers),
            (model.is_some_and(|model| model.trim().is_empty()), SpecError::EmptyModel),
            (load.cancel.is_some() && !workload.streaming, SpecError::CancelWithoutStream),
            (load.cancel.is_some() && workload.source.has_sessions(), SpecError::CancelSessions),
        ])?;
        let limits = self.limits.resolve()?;
        let replicas = self.target.replicas()?;
        let servers: Vec<BaseUrl> = self.url.iter().chain(&replicas).cloned().collect();
        let telemetry = self.target.telemetry(&servers)?;
        Ok(Spec {
            target: match (self.url, self.deployment) {
                (Some(url), _) => TargetSpec::Url(url),
                (None, Some(deployment)) => TargetSpec::Deployed(Box::new(deployment)),
                (None, None) => TargetSpec::Embedded,
            },
            replicas,
            engine: self.engine,
            api,
            model: self.target.model,
            workload,
            load,
            seed,
            connections,
            client,
            limits,
            control: self.control.resolve()?,
            telemetry,
            slos: self.slos,
            header_names: self.header_names,
            metadata: self.metadata,
            server_info: self.target.server_info,
            price: self.target.price,
            answers: self.answers,
        })
    }

    /// What is sent, and when.
    fn stimulus(&self) -> Result<(Api, Workload, Load, u64)> {
        let Some(saved) = &self.saved else {
            let api = self.target.api.unwrap_or(Api::Chat);
            // The seed of a run that names none.
            let seed = self.workload.seed.unwrap_or(1);
            let mut workload = self.workload.clone().resolve()?;
            workload.streaming &= api.generates();
            let load = self.load.resolve(workload.source.may_be_timed())?;
            return Ok((api, workload, load, seed));
        };
        let path = self.workload.source.plan.clone();
        let alone = WorkloadTable {
            source: SourceTable { plan: None, ..self.workload.source.clone() },
            seed: None,
            ..self.workload.clone()
        };
        let warm_up = self.load.warm_up;
        let is_alone = alone.is_default()
            && self.load == LoadTable { warm_up, ..LoadTable::default() }
            && self.workload.seed.is_none_or(|seed| seed == saved.seed)
            && self.target.api.is_none_or(|api| api == saved.api);
        if !is_alone {
            return Err(SpecError::SavedPlanAlone(saved.api));
        }
        let source = Source::Saved {
            path: path.unwrap_or_default(),
            chooses_output: saved.workload.source.chooses_output(),
        };
        let streaming = saved.workload.streaming && saved.api.generates();
        let workload = Workload { streaming, source, ..saved.workload.clone() };
        let load = saved.load.clone().warmed_up(warm_up);
        load.check()?;
        Ok((saved.api, workload, load, saved.seed))
    }
}

impl Spec {
    /// Which of the replicas answers a request. Sessions stay on one: where they begin in the plan says
    /// nothing about that, so they are spread by chance.
    pub fn replica_of(replicas: usize, id: RequestId, asked: &RequestedLengths) -> usize {
        let count = replicas.max(1) as u64;
        let first = id.0.saturating_sub(asked.turn.into());
        let number = if 1 < asked.session.requests { spread(first) } else { first };
        usize::try_from(number % count).unwrap_or(0)
    }

    /// All base URLs that requests are balanced over; empty where there is one server.
    pub fn balanced_urls(&self) -> Vec<&BaseUrl> {
        match &self.target {
            TargetSpec::Url(base) if !self.replicas.is_empty() => {
                std::iter::once(base).chain(&self.replicas).collect()
            }
            TargetSpec::Url(_) | TargetSpec::Embedded | TargetSpec::Deployed(_) => Vec::new(),
        }
    }

    /// Whether requests are sent on a schedule, capped or not, and can thus be late.
    pub fn is_open_loop(&self) -> bool {
        matches!(self.load.shape, LoadShape::Open { .. })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use super::*;

    #[test]
    fn zero_arguments_give_a_whole_spec() {
        let spec = SpecDraft::default().resolve().unwrap();
        assert_eq!(spec.target, TargetSpec::Embedded);
        let concurrency = NonZeroU32::new(8).unwrap();
        assert_eq!(spec.load.shape, LoadShape::Closed { concurrency, think: Think::None });
        assert_eq!(spec.load.warm_up, 0);
        assert!(spec.workload.streaming);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let refused = |draft: SpecDraft| draft.resolve().unwrap_err();
        let draft = SpecDraft::default;
        let limits = LimitTable { total: Some(Duration::ZERO.into()), ..LimitTable::default() };
        assert_eq!(refused(SpecDraft { limits, ..draft() }), SpecError::NoTime("--total-timeout"));
        let target = TargetTable { model: Some(" ".into()), ..TargetTable::default() };
        assert_eq!(refused(SpecDraft { target, ..draft() }), SpecError::EmptyModel);
    }

    fn saved(api: Api) -> SavedSpec {
        let Spec { workload, load, seed, .. } = SpecDraft::default().resolve().unwrap();
        SavedSpec { api, workload, load, seed }
    }

    fn replay(saved: SavedSpec) -> SpecDraft {
        let source = SourceTable { plan: Some("p.jsonl".into()), ..SourceTable::default() };
        let workload = WorkloadTable { source, ..WorkloadTable::default() };
        SpecDraft { workload, saved: Some(saved), ..SpecDraft::default() }
    }

    #[test]
    fn a_saved_plan_keeps_who_chose_the_lengths_of_its_answers() {
        let spec = replay(saved(Api::Chat)).resolve().unwrap();
        assert!(spec.workload.source.chooses_output());
        let mut of_one_prompt = saved(Api::Chat);
        let output = Lengths::Fixed(9);
        of_one_prompt.workload.source =
            Source::Fixed(FixedPrompt { prompt: "Hi.".to_owned(), output });
        let spec = replay(of_one_prompt).resolve().unwrap();
        assert!(!spec.workload.source.chooses_output());
    }

    #[test]
    fn a_saved_plan_is_played_on_its_own_api() {
        let on = |api| TargetTable { api: Some(api), ..TargetTable::default() };
        let other = SpecDraft { target: on(Api::Completions), ..replay(saved(Api::Chat)) };
        assert_eq!(other.resolve(), Err(SpecError::SavedPlanAlone(Api::Chat)));
        let same = SpecDraft { target: on(Api::Chat), ..replay(saved(Api::Chat)) };
        assert!(same.resolve().unwrap().workload.streaming);
        let whole = replay(saved(Api::Embeddings)).resolve().unwrap();
        assert!(!whole.workload.streaming, "vectors come whole");
    }

    #[test]
    fn a_saved_plan_takes_another_warm_up_within_bounds() {
        let warmed = |warm_up| {
            let load =
                LoadTable { warm_up: Some(WarmUp::Requests(warm_up)), ..LoadTable::default() };
            SpecDraft { load, ..replay(saved(Api::Chat)) }.resolve()
        };
        assert_eq!(warmed(7).unwrap().load.warm_up, 7);
        assert!(matches!(warmed(u64::MAX), Err(SpecError::TooLarge { name: "--warm-up", .. })));
    }
}
