//! From arguments to a draft of the spec.

use std::collections::BTreeMap;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Connections, HttpVersion};
use inferometer_model::spec::{
    ArrivalsKind, ClientDraft, Limits, LoadDraft, RampCurve, SourceDraft, ThinkKind, Until,
    WorkloadDraft,
};
use inferometer_model::{BaseUrl, SpecDraft};

use crate::arguments::{
    ApiName, ArrivalsName, ClientArguments, ConnectionsName, LimitArguments, LoadArguments,
    RampCurveName, RunArguments, ThinkName, UntilName,
};
use crate::failure::Failure;
use crate::secrets::Secrets;

/// The draft of what was typed. Secrets stay out of it: it is stored.
pub(crate) fn draft(arguments: &RunArguments, secrets: &Secrets) -> Result<SpecDraft, Failure> {
    let url: Option<BaseUrl> = arguments.url.as_deref().map(str::parse).transpose().map_err(
        |error: inferometer_model::endpoint::BaseUrlError| Failure::usage(error.to_string()),
    )?;
    Ok(SpecDraft {
        api: arguments.workload.api.map(api).or_else(|| typed_api(arguments.url.as_deref())),
        url,
        model: arguments.workload.model.clone(),
        workload: WorkloadDraft {
            streaming: Some(!arguments.workload.no_stream),
            source: SourceDraft {
                input: arguments.workload.input_tokens.clone(),
                output: arguments.workload.output_tokens.clone(),
                ..SourceDraft::default()
            },
            ..WorkloadDraft::default()
        },
        load: load(&arguments.load),
        saved_load: None,
        seed: arguments.workload.seed,
        connections: arguments.access.connections.map(connections),
        client: ClientDraft {
            http: arguments.access.http2.then_some(HttpVersion::Http2),
            insecure: arguments.access.insecure,
            ..client(&arguments.client)
        },
        limits: limits(&arguments.limits),
        slos: Vec::new(),
        header_names: secrets.header_names(),
        metadata: metadata(&arguments.results.metadata, secrets)?,
    })
}

/// A whole endpoint pasted as the URL says which API is meant.
fn typed_api(url: Option<&str>) -> Option<Api> {
    let path = url?.trim_end_matches('/');
    if path.ends_with("/chat/completions") {
        Some(Api::Chat)
    } else if path.ends_with("/completions") {
        Some(Api::Completions)
    } else {
        None
    }
}

fn api(name: ApiName) -> Api {
    match name {
        ApiName::Chat => Api::Chat,
        ApiName::Completions => Api::Completions,
    }
}

fn connections(name: ConnectionsName) -> Connections {
    match name {
        ConnectionsName::Reuse => Connections::Reuse,
        ConnectionsName::New => Connections::New,
        ConnectionsName::PerUser => Connections::PerUser,
    }
}

fn load(typed: &LoadArguments) -> LoadDraft {
    LoadDraft {
        concurrency: typed.concurrency,
        rate_per_s: typed.rate,
        ramp: typed.ramp.as_ref().map(|ramp| ramp.0.clone()),
        ramp_curve: typed.ramp_curve.map(ramp_curve),
        max_concurrency: typed.max_concurrency,
        arrivals: typed.arrivals.map(arrivals),
        burstiness: typed.burstiness,
        think_time: typed.think_time,
        think: typed.think.map(think),
        requests: typed.requests,
        duration: typed.duration,
        until: typed.until.map(until),
        warm_up: typed.warm_up,
        speed: None,
        ticks: None,
    }
}

fn arrivals(name: ArrivalsName) -> ArrivalsKind {
    match name {
        ArrivalsName::Constant => ArrivalsKind::Constant,
        ArrivalsName::Poisson => ArrivalsKind::Poisson,
        ArrivalsName::Gamma => ArrivalsKind::Gamma,
    }
}

fn ramp_curve(name: RampCurveName) -> RampCurve {
    match name {
        RampCurveName::Linear => RampCurve::Linear,
        RampCurveName::Exponential => RampCurve::Exponential,
    }
}

fn think(name: ThinkName) -> ThinkKind {
    match name {
        ThinkName::Fixed => ThinkKind::Fixed,
        ThinkName::Exponential => ThinkKind::Exponential,
    }
}

fn until(name: UntilName) -> Until {
    match name {
        UntilName::Both => Until::Both,
        UntilName::First => Until::First,
    }
}

/// What was typed about the client's own threads.
pub(crate) fn client(typed: &ClientArguments) -> ClientDraft {
    let allowed = inferometer_load::cores::allowed();
    ClientDraft {
        drivers: typed.client_cores,
        cores: typed.pin_cores.as_ref().map(|list| list.0.clone()).unwrap_or_default(),
        cores_allowed: allowed.into_iter().filter_map(|core| u32::try_from(core).ok()).collect(),
        ..ClientDraft::default()
    }
}

fn limits(typed: &LimitArguments) -> Limits {
    let default = Limits::default();
    Limits {
        connect: typed.connect_timeout.unwrap_or(default.connect),
        first_token: typed.first_token_timeout.unwrap_or(default.first_token),
        idle: typed.idle_timeout.unwrap_or(default.idle),
        total: typed.total_timeout.unwrap_or(default.total),
        drain: typed.drain_timeout.unwrap_or(default.drain),
    }
}

fn metadata(typed: &[String], secrets: &Secrets) -> Result<BTreeMap<String, String>, Failure> {
    let redactor = secrets.credentials.redactor();
    typed
        .iter()
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok((redactor.redact(key.trim()), redactor.redact(value)))
            }
            _ => Err(Failure::usage(format!("--metadata {pair} is not of the form key=value"))),
        })
        .collect()
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
}
