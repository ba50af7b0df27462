//! From what was said, in files and flags, to a draft of the spec.

mod body;
pub(crate) mod deploy;
pub(crate) mod engine;
mod promises;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use inferometer_analysis::{Quantity, Zero};
use inferometer_model::campaign::StopAt;
use inferometer_model::endpoint::{Api, BaseUrlError};
use inferometer_model::observations::HttpVersion;
use inferometer_model::spec::{ClientDraft, Limits, LoadDraft, TelemetryDraft};
use inferometer_model::{BaseUrl, Spec, SpecDraft};
use inferometer_workload::WorkloadError;
use inferometer_workload::saved::read_header;
use serde_json::Value;

use crate::arguments::{
    ClientTable, Experiment, ExperimentArguments, LimitTable, LoadTable, MetadataTable,
    RepeatTable, SweepTable, Switch, Written,
};
use crate::experiment::{self, Layer, Origins};
use crate::failure::Failure;
use crate::secrets::Secrets;

/// All that a command needs to know before it begins.
#[derive(Debug)]
pub(crate) struct Drafted {
    /// Secrets stay out of it: it is stored.
    pub(crate) spec: SpecDraft,
    pub(crate) secrets: Secrets,
    pub(crate) repeat: Repeat,
    pub(crate) sweep: SweepTable,
    origins: Origins,
}

impl Drafted {
    /// The spec; what is refused is told with its place in the file.
    pub(crate) fn resolve(&self) -> Result<Spec, Failure> {
        self.resolve_as(self.spec.clone())
    }

    /// The same of a draft that was changed.
    pub(crate) fn resolve_as(&self, draft: SpecDraft) -> Result<Spec, Failure> {
        draft.resolve().map_err(|error| self.origins.explain(&error))
    }
}

/// How often to measure, and what happens between.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Repeat {
    pub(crate) runs: u32,
    pub(crate) cool_down: Duration,
    pub(crate) restart: Option<String>,
    pub(crate) restart_timeout: Duration,
    pub(crate) stop_at: Option<StopAt>,
}

const RUNS_MAX: u32 = 1_000;
pub(crate) const RESTART_TIMEOUT: Duration = Duration::from_mins(10);

/// Merges the experiment file, `--set` and flags.
pub(crate) fn draft(arguments: &ExperimentArguments) -> Result<Drafted, Failure> {
    let (experiment, origins) = experiment::read(arguments, None)?;
    check_repeats(&experiment.repeat, &arguments.tables.repeat)?;
    drafted(arguments, experiment, origins)
}

/// The same for many loads: there is something between runs however often each is measured. A
/// file may say which server is meant.
pub(crate) fn draft_sweep(
    arguments: &ExperimentArguments,
    server: Option<&Path>,
) -> Result<Drafted, Failure> {
    let (experiment, origins) = experiment::read(arguments, server)?;
    check_stop(&experiment.repeat)?;
    drafted(arguments, experiment, origins)
}

/// The same for an experiment that was put together elsewhere, such as a scenario of a suite.
pub(crate) fn draft_scenario(
    arguments: &ExperimentArguments,
    said: &Layer,
) -> Result<Drafted, Failure> {
    let experiment = experiment::experiment(said)?;
    check_stop(&experiment.repeat)?;
    drafted(arguments, experiment, said.origins.clone())
}

fn drafted(
    arguments: &ExperimentArguments,
    experiment: Experiment,
    origins: Origins,
) -> Result<Drafted, Failure> {
    let key_file = experiment.target.api_key_file.as_deref();
    let secrets = Secrets::read(key_file, &arguments.headers)?;
    let repeat = repeat(&experiment.repeat)?;
    let sweep = experiment.sweep.clone();
    let spec = spec(experiment, &origins, &secrets)?;
    Ok(Drafted { spec, secrets, repeat, sweep, origins })
}

fn spec(
    experiment: Experiment,
    origins: &Origins,
    secrets: &Secrets,
) -> Result<SpecDraft, Failure> {
    let Experiment {
        target, engine, deploy, workload, load, slo, client, limits, metadata, ..
    } = experiment;
    let url: Option<BaseUrl> = target
        .url
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: BaseUrlError| origins.failure("target.url", &error.to_string()))?;
    let deployment = deploy::draft(deploy, origins)?;
    if let Some(deployment) = &deployment {
        deploy::check_placeholders(deployment, origins)?;
    }
    let seed = workload.tokens.seed;
    let workload = workload::draft(workload)?;
    let saved = match &workload.source.saved_plan {
        Some(path) => Some(read_header(path).map_err(WorkloadError::from)?.spec()),
        None => None,
    };
    Ok(SpecDraft {
        deployment,
        api: plain(target.api).or_else(|| typed_api(target.url.as_deref())),
        url,
        engine: engine::draft(engine),
        model: target.model,
        seed,
        workload,
        load: load_draft(load),
        saved,
        connections: plain(target.connections),
        client: ClientDraft {
            http: target.http2.unwrap_or(false).then_some(HttpVersion::Http2),
            insecure: target.insecure.unwrap_or(false),
            ..self::client(&client)
        },
        limits: limits_of(limits),
        telemetry: TelemetryDraft {
            on: plain(target.telemetry).map(|switch| switch == Switch::On),
            path: target.metrics_path,
            every: plain(target.telemetry_every),
            devices: plain(target.gpu_telemetry),
        },
        slos: promises::read(slo, origins)?,
        header_names: secrets.header_names(),
        metadata: facts(metadata, secrets),
        server_info: target.server_info,
    })
}

/// A whole endpoint pasted as the URL says which API is meant.
pub(crate) fn typed_api(url: Option<&str>) -> Option<Api> {
    Api::from_path(url?)
}

fn load_draft(said: LoadTable) -> LoadDraft {
    LoadDraft {
        concurrency: said.concurrency,
        rate_per_s: plain(said.rate).map(|rate| rate.0),
        ramp: plain(said.ramp).map(|ramp| ramp.0),
        ramp_curve: plain(said.ramp_curve),
        max_concurrency: said.max_concurrency,
        arrivals: plain(said.arrivals),
        burstiness: said.burstiness,
        think_time: plain(said.think_time),
        think: plain(said.think),
        requests: said.requests,
        duration: plain(said.duration),
        until: plain(said.until),
        warm_up: said.warm_up,
        speed: said.speed,
        ticks: plain(said.ticks),
    }
}

/// What was said about the client's own threads.
pub(crate) fn client(said: &ClientTable) -> ClientDraft {
    let allowed = inferometer_load::cores::allowed();
    ClientDraft {
        drivers: said.cores,
        cores: said.pin_cores.as_ref().map(|list| list.0.0.clone()).unwrap_or_default(),
        cores_allowed: allowed.into_iter().filter_map(|core| u32::try_from(core).ok()).collect(),
        ..ClientDraft::default()
    }
}

fn limits_of(said: LimitTable) -> Limits {
    let default = Limits::default();
    Limits {
        connect: plain(said.connect).unwrap_or(default.connect),
        first_token: plain(said.first_token).unwrap_or(default.first_token),
        idle: plain(said.idle).unwrap_or(default.idle),
        total: plain(said.total).unwrap_or(default.total),
        drain: plain(said.drain).unwrap_or(default.drain),
    }
}

fn repeat(said: &RepeatTable) -> Result<Repeat, Failure> {
    let runs = said.runs.unwrap_or(1);
    if !(1..=RUNS_MAX).contains(&runs) {
        return Err(Failure::usage(format!("--repeat must be from 1 to {RUNS_MAX}, not {runs}")));
    }
    let stop_at = plain(said.stop_at.clone());
    if let Some(stop_at) = &stop_at {
        Quantity::named(&stop_at.quantity, Zero::Sent)
            .map_err(|problem| Failure::usage(format!("--stop-at: {problem}")))?;
    }
    if said.restart.as_ref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Failure::usage("--restart is empty: there is no command to run")
            .hint("leave it out, or say how the server is restarted"));
    }
    Ok(Repeat {
        runs,
        cool_down: plain(said.cool_down.clone()).unwrap_or_default(),
        restart: said.restart.clone(),
        restart_timeout: plain(said.restart_timeout.clone()).unwrap_or(RESTART_TIMEOUT),
        stop_at,
    })
}

/// What happens between runs needs runs to happen between.
/// What a file says of it waits for more runs where `--repeat 1` asks for one.
fn check_repeats(merged: &RepeatTable, typed: &RepeatTable) -> Result<(), Failure> {
    let said = if merged.runs.is_none() { merged } else { typed };
    let between = [
        (said.cool_down.is_some(), "--cool-down rests between repeated runs"),
        (said.restart.is_some(), "--restart is done between repeated runs"),
        (said.restart_timeout.is_some(), "--restart-timeout waits between repeated runs"),
        (said.stop_at.is_some(), "--stop-at ends repeated runs early"),
    ];
    refuse_alone(merged, &between)
}

/// Between the levels of a sweep there is time in any case; early is only what is repeated.
fn check_stop(said: &RepeatTable) -> Result<(), Failure> {
    refuse_alone(said, &[(said.stop_at.is_some(), "--stop-at ends repeated runs early")])
}

fn refuse_alone(said: &RepeatTable, asked: &[(bool, &str)]) -> Result<(), Failure> {
    let once = said.runs.is_none_or(|runs| runs == 1);
    match asked.iter().find(|(is_said, _)| *is_said && once) {
        None => Ok(()),
        Some((_, why)) => {
            Err(Failure::usage(format!("{why}; set --repeat to more than 1 too, or leave it out")))
        }
    }
}

fn facts(said: MetadataTable, secrets: &Secrets) -> BTreeMap<String, String> {
    let redactor = secrets.credentials.redactor();
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    said.0
        .into_iter()
        .map(|(key, value)| (redactor.redact(&key), redactor.redact(&text(value))))
        .collect()
}

fn plain<T>(written: Option<Written<T>>) -> Option<T> {
    written.map(|written| written.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_endpoint_chooses_its_api() {
        assert_eq!(typed_api(Some("http://h/v1/chat/completions")), Some(Api::Chat));
        assert_eq!(typed_api(Some("http://h/v1/completions/")), Some(Api::Completions));
        assert_eq!(typed_api(Some("http://h/v1")), None);
        assert_eq!(typed_api(None), None);
    }

    #[test]
    fn repetition_is_bounded_and_rest_needs_it() {
        let said = |runs, cool_down: Option<u64>| RepeatTable {
            runs,
            cool_down: cool_down.map(|seconds| Written(Duration::from_secs(seconds))),
            ..RepeatTable::default()
        };
        let found = repeat(&said(Some(5), Some(60))).unwrap();
        assert_eq!((found.runs, found.cool_down), (5, Duration::from_mins(1)));
        assert!(repeat(&said(Some(0), None)).is_err());
        assert!(check_repeats(&said(Some(2), Some(60)), &said(Some(2), Some(60))).is_ok());
        assert!(check_repeats(&said(Some(1), Some(60)), &said(Some(1), Some(60))).is_err());
        assert!(check_repeats(&said(None, Some(60)), &said(None, Some(60))).is_err());
        let restart = RepeatTable { restart: Some("true".to_owned()), ..RepeatTable::default() };
        assert!(check_repeats(&restart, &restart).is_err());
        let empty = RepeatTable { restart: Some(" ".to_owned()), ..RepeatTable::default() };
        assert!(super::repeat(&empty).is_err());
    }
}
