//! From what was said, in files and flags, to a draft of the spec.

mod body;
pub(crate) mod engine;
mod promises;
mod workload;

use std::collections::BTreeMap;
use std::time::Duration;

use inferometer_model::endpoint::{Api, BaseUrlError};
use inferometer_model::observations::HttpVersion;
use inferometer_model::spec::{ClientDraft, Limits, LoadDraft, TelemetryDraft};
use inferometer_model::{BaseUrl, Spec, SpecDraft};
use inferometer_workload::WorkloadError;
use inferometer_workload::saved::read_header;
use serde_json::Value;

use crate::arguments::{
    ClientTable, Experiment, ExperimentArguments, LimitTable, LoadTable, MetadataTable,
    RepeatTable, Switch, Written,
};
use crate::experiment::{self, Origins};
use crate::failure::Failure;
use crate::secrets::Secrets;

/// All that a command needs to know before it begins.
#[derive(Debug)]
pub(crate) struct Drafted {
    /// Secrets stay out of it: it is stored.
    pub(crate) spec: SpecDraft,
    pub(crate) secrets: Secrets,
    pub(crate) repeat: Repeat,
    origins: Origins,
}

impl Drafted {
    /// The spec; what is refused is told with its place in the file.
    pub(crate) fn resolve(&self) -> Result<Spec, Failure> {
        self.spec.clone().resolve().map_err(|error| self.origins.explain(&error))
    }
}

/// How often to measure, and how long to rest between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    pub(crate) runs: u32,
    pub(crate) cool_down: Duration,
}

const RUNS_MAX: u32 = 1_000;

/// Merges the experiment file, `--set` and flags.
pub(crate) fn draft(arguments: &ExperimentArguments) -> Result<Drafted, Failure> {
    let (experiment, origins) = experiment::read(arguments)?;
    let key_file = experiment.target.api_key_file.as_deref();
    let secrets = Secrets::read(key_file, &arguments.headers)?;
    let repeat = repeat(&experiment.repeat)?;
    let spec = spec(experiment, &origins, &secrets)?;
    Ok(Drafted { spec, secrets, repeat, origins })
}

fn spec(
    experiment: Experiment,
    origins: &Origins,
    secrets: &Secrets,
) -> Result<SpecDraft, Failure> {
    let Experiment { target, engine, workload, load, slo, repeat: _, client, limits, metadata } =
        experiment;
    let url: Option<BaseUrl> = target
        .url
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: BaseUrlError| origins.failure("target.url", &error.to_string()))?;
    let seed = workload.tokens.seed;
    let workload = workload::draft(workload)?;
    let saved = match &workload.source.saved_plan {
        Some(path) => Some(read_header(path).map_err(WorkloadError::from)?.spec()),
        None => None,
    };
    Ok(SpecDraft {
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
        },
        slos: promises::read(slo, origins)?,
        header_names: secrets.header_names(),
        metadata: facts(metadata, secrets),
    })
}

/// A whole endpoint pasted as the URL says which API is meant.
pub(crate) fn typed_api(url: Option<&str>) -> Option<Api> {
    Api::of_path(url?)
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
    let cool_down = plain(said.cool_down.clone());
    if said.runs.is_none() && cool_down.is_some() {
        return Err(Failure::usage(
            "--cool-down rests between repeated runs; set --repeat too, or leave it out",
        ));
    }
    Ok(Repeat { runs, cool_down: cool_down.unwrap_or_default() })
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
        };
        assert_eq!(
            repeat(&said(Some(5), Some(60))).unwrap(),
            Repeat { runs: 5, cool_down: Duration::from_mins(1) }
        );
        assert!(repeat(&said(Some(0), None)).is_err());
        assert!(repeat(&said(None, Some(60))).is_err());
    }
}
