//! Before the run: is there a server, what does it serve, and does it answer as it should?

pub mod carrying;
pub mod counting;
mod explain;
pub mod pinning;

use std::net::SocketAddr;
use std::sync::Arc;

use inferometer_load::resolve::resolve;
use inferometer_load::target::{Credentials, Target};
use inferometer_load::tls::{self, CertificateCheck};
use inferometer_load::{HttpFetch, Probe, SystemClock, probe};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Connections, Endpoint, HttpVersion, PinnedOutput, UsageAsk};
use inferometer_model::outcome::Outcome;
use inferometer_model::{BaseUrl, Content, RequestRecord, Spec};
use inferometer_target::{DiscoveryError, ListedModel, list_models};

use self::explain::{IS_IT_HTTP2, probe_failure};
use crate::failure::{Failure, Refusal};
use crate::secrets::Secrets;

/// The server as found, ready to be driven.
#[derive(Clone, Debug)]
pub struct Found {
    pub target: Target,
    pub endpoint: Endpoint,
}

pub const PROBE_PROMPT: &str = "Count from one to ten.";
const PROBE_TOKENS: u32 = 4;
/// What a model is called whose server neither lists nor asks for a name.
const UNNAMED: &str = "unnamed";

pub fn preflight(
    spec: &Spec,
    secrets: &Secrets,
    base: &BaseUrl,
    embedded: bool,
) -> Result<Found, Failure> {
    pinning::check(spec.api, spec.workload.body.pin_output)?;
    let mut target = addressed(spec, secrets, base)?;
    target.model = model(spec, secrets, &target)?;
    let (usage, connections) = answers(&target, secrets)?;
    target.usage = usage;
    target.connections = spec.connections.unwrap_or(connections);
    target.pinned = pinning::find(&target, &spec.workload)?;
    let endpoint = Endpoint {
        base: base.clone(),
        address: target.address,
        model: target.model.clone(),
        usage: target.usage,
        connections: target.connections,
        pinned: target.pinned,
        embedded,
    };
    Ok(Found { target, endpoint })
}

/// Whether it generates. A failure that may pass says that it is still starting.
pub fn first_token(spec: &Spec, secrets: &Secrets, base: &BaseUrl) -> Result<(), Failure> {
    let mut target = addressed(spec, secrets, base)?;
    target.model = model(spec, secrets, &target)?;
    target.usage = UsageAsk::None;
    let tokens = probe_tokens(target.api, 1);
    let Probe { record, .. } = ask_once(target.clone(), PROBE_PROMPT, tokens)?;
    if record.ending.outcome == Outcome::Ok {
        return Ok(());
    }
    Err(probe_failure(&target, secrets, &record))
}

/// The model that was asked for, or the first that is listed.
fn model(spec: &Spec, secrets: &Secrets, target: &Target) -> Result<String, Failure> {
    match &spec.model {
        Some(model) => Ok(model.clone()),
        None => first_model(target, secrets).map(|model| model.id).or_else(|failure| {
            // A server with one model need not list it.
            if spec.api.facts().names_model { Err(failure) } else { Ok(UNNAMED.to_owned()) }
        }),
    }
}

/// The server with its address, of which nothing is known yet.
pub fn addressed(spec: &Spec, secrets: &Secrets, base: &BaseUrl) -> Result<Target, Failure> {
    let address = resolve(base, spec.limits.connect).map_err(|error| {
        Failure::target(error.to_string())
            .hint("is the server running, and is the URL right? A run needs it from the start")
            .passing_if(true)
    })?;
    Ok(bare_target(spec, secrets.credentials.clone(), base, address))
}

pub fn bare_target(
    spec: &Spec,
    credentials: Credentials,
    base: &BaseUrl,
    address: SocketAddr,
) -> Target {
    let check =
        if spec.client.insecure { CertificateCheck::None } else { CertificateCheck::System };
    Target {
        base: base.clone(),
        address,
        api: spec.api,
        model: String::new(),
        streaming: spec.workload.streaming,
        usage: UsageAsk::Final,
        fields: spec.workload.body.fields.clone(),
        pinned: PinnedOutput::default(),
        connections: Connections::Reuse,
        limits: spec.limits,
        credentials,
        request_id_prefix: "inferometer-probe".to_owned(),
        kernel_stamps: true,
        http: spec.client.http,
        tls: base.tls.then(|| tls::connector(check, spec.client.http)),
    }
}

/// The first model that the server lists.
pub fn first_model(target: &Target, secrets: &Secrets) -> Result<ListedModel, Failure> {
    let asked = fetching(target, async |fetch| list_models(&fetch).await)?;
    let models = asked.map_err(|error| {
        let passing = match &error {
            DiscoveryError::NoAnswer(_) => true,
            DiscoveryError::Status { status } => is_of_starting(*status),
            DiscoveryError::Unauthorized { .. }
            | DiscoveryError::NotAList { .. }
            | DiscoveryError::Empty => false,
        };
        let failure = Failure::target(format!("{}: {error}", target.base)).passing_if(passing);
        let is_of_key = matches!(error, DiscoveryError::Unauthorized { .. });
        let failure = failure.refused(is_of_key.then_some(Refusal::Key));
        if secrets.has_key && matches!(error, DiscoveryError::Unauthorized { .. }) {
            return failure
                .hint("a key was sent and refused; is it the right one for this server?");
        }
        if target.http == HttpVersion::Http2 && matches!(error, DiscoveryError::NoAnswer(_)) {
            return failure.hint(IS_IT_HTTP2);
        }
        failure
    })?;
    // Discovery promises at least one.
    models.into_iter().next().ok_or_else(|| Failure::target("no model to ask for"))
}

/// What a server, or the proxy before it, says while it is not there yet.
fn is_of_starting(status: u16) -> bool {
    matches!(status, 502..=504)
}

/// Plain requests to the server, outside of any run, until the errand is done.
pub fn fetching<T>(
    target: &Target,
    errand: impl AsyncFnOnce(HttpFetch) -> T,
) -> Result<T, Failure> {
    let fetch = HttpFetch::new(Arc::new(target.clone()), SystemClock::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(error.to_string()))?;
    Ok(tokio::task::LocalSet::new().block_on(&runtime, errand(fetch)))
}

/// Asks one small question, first with everything that helps to count tokens. Some servers refuse
/// fields that they do not know, so what was refused is left out and the question asked again.
fn answers(target: &Target, secrets: &Secrets) -> Result<(UsageAsk, Connections), Failure> {
    let can_ask = matches!(target.api, Api::Chat | Api::Completions);
    let asks: &[UsageAsk] = if target.streaming && can_ask {
        &[UsageAsk::Continuous, UsageAsk::Final, UsageAsk::None]
    } else {
        &[UsageAsk::None]
    };
    let tokens = probe_tokens(target.api, PROBE_TOKENS);
    let mut last = None;
    for ask in asks {
        let asking = Target { usage: *ask, ..target.clone() };
        let Probe { record, connections } = ask_once(asking, PROBE_PROMPT, tokens)?;
        if record.ending.outcome == Outcome::Ok {
            check_answer(target, &record)?;
            let counted = record.events.iter().any(|event| event.tokens.is_some());
            let useless = *ask == UsageAsk::Continuous && !counted;
            // Other APIs report usage unasked.
            let unasked = !can_ask && record.usage.is_some();
            let usage = if useless || unasked { UsageAsk::Final } else { *ask };
            return Ok((usage, connections));
        }
        let refused = is_refusal(&record);
        last = Some(record);
        if !refused {
            break;
        }
    }
    match last {
        Some(record) => Err(probe_failure(target, secrets, &record)),
        None => Err(Failure::internal("the probe asked nothing")),
    }
}

/// The length to ask of a probe's answer: some APIs refuse very short ones.
pub fn probe_tokens(api: Api, wanted: u32) -> u32 {
    wanted.max(api.facts().output_tokens_min)
}

/// One question, outside of any run.
pub fn ask_once(target: Target, prompt: &str, tokens: u32) -> Result<Probe, Failure> {
    probe(&Arc::new(target), SystemClock::new(), &Content::text(prompt), tokens)
        .map_err(|error| Failure::internal(error.to_string()))
}

/// Whether the server refused the fields of a request, and not the request.
pub fn is_refusal(record: &RequestRecord) -> bool {
    record.head.is_some_and(|head| matches!(head.status, 400 | 422))
}

/// An answer that is fine by itself may still not be the one to measure.
fn check_answer(target: &Target, record: &RequestRecord) -> Result<(), Failure> {
    if let Some(other) = &record.other_model {
        return Err(Failure::target(format!(
            "{}: `{}` was asked for, and `{other}` answered",
            target.base, target.model
        ))
        .hint("ask for the model by the name that the server gives it (--model)"));
    }
    let streamed = record.head.is_none_or(|head| head.streamed);
    if target.streaming && !streamed {
        return Err(Failure::target(format!(
            "{}: a stream was asked for, and the answer came whole",
            target.base
        ))
        .hint("the server or a proxy does not stream: measure whole answers with --no-stream"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use inferometer_model::spec::PinOutput;

    use super::*;

    #[test]
    fn a_probe_asks_for_no_less_than_its_api_allows() {
        assert_eq!(probe_tokens(Api::Chat, 1), 1);
        assert_eq!(probe_tokens(Api::Responses, 1), 16);
        assert_eq!(probe_tokens(Api::Responses, 48), 48);
    }

    #[test]
    fn only_an_api_with_the_fields_can_always_pin() {
        for api in Api::ALL {
            let refused = pinning::check(api, PinOutput::Always).is_err();
            assert_eq!(refused, !api.facts().ignore_eos && !api.facts().min_tokens, "{api}");
            assert!(pinning::check(api, PinOutput::Auto).is_ok(), "{api}");
        }
    }
}
