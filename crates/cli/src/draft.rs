//! From arguments to a draft of the spec.

use std::collections::BTreeMap;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::Connections;
use inferometer_model::spec::{Arrivals, Limits};
use inferometer_model::{BaseUrl, SpecDraft};

use crate::arguments::{ApiName, ArrivalsName, ConnectionsName, LimitArguments, RunArguments};
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
        streaming: Some(!arguments.workload.no_stream),
        concurrency: arguments.load.concurrency,
        rate_per_s: arguments.load.rate,
        arrivals: arguments.load.arrivals.map(arrivals),
        requests: arguments.load.requests,
        duration: arguments.load.duration,
        input_tokens: arguments.workload.input_tokens,
        output_tokens: arguments.workload.output_tokens,
        seed: arguments.workload.seed,
        connections: arguments.access.connections.map(connections),
        limits: limits(&arguments.limits),
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
    }
}

fn arrivals(name: ArrivalsName) -> Arrivals {
    match name {
        ArrivalsName::Constant => Arrivals::Constant,
        ArrivalsName::Poisson => Arrivals::Poisson,
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
