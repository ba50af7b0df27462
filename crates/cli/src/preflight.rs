//! Before the run: is there a server, what does it serve, and does it answer as it should?

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use inferometer_load::answer::Failure as LoadFailure;
use inferometer_load::resolve::resolve;
use inferometer_load::target::{Credentials, Target};
use inferometer_load::tls::{self, CertificateCheck};
use inferometer_load::{HttpFetch, Probe, SystemClock, probe};
use inferometer_model::observations::{Connections, Endpoint, HttpVersion, PinnedOutput, UsageAsk};
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::spec::Limits;
use inferometer_model::{BaseUrl, Content, RequestRecord, Spec};
use inferometer_target::{DiscoveryError, discover_models};

use crate::failure::Failure;
use crate::secrets::Secrets;

/// The server as found, ready to be driven.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) target: Target,
    pub(crate) endpoint: Endpoint,
}

const PROBE_PROMPT: &str = "Count from one to ten.";
const PROBE_TOKENS: u32 = 4;
const IS_IT_HTTP2: &str = "does this server speak HTTP/2? Most want HTTP/1.1: leave --http2 out";

pub(crate) fn preflight(
    spec: &Spec,
    secrets: &Secrets,
    base: &BaseUrl,
    embedded: bool,
) -> Result<Found, Failure> {
    let address = resolve(base, spec.limits.connect).map_err(|error| {
        Failure::target(error.to_string())
            .hint("is the server running, and is the URL right? A run needs it from the start")
    })?;
    let mut target = bare_target(spec, secrets.credentials.clone(), base, address);
    target.model = match &spec.model {
        Some(model) => model.clone(),
        None => discovered_model(&target, secrets)?,
    };
    let (usage, connections) = answers(&target, secrets)?;
    target.usage = usage;
    target.connections = spec.connections.unwrap_or(connections);
    let endpoint = Endpoint {
        base: base.clone(),
        address,
        model: target.model.clone(),
        usage: target.usage,
        connections: target.connections,
        pinned: target.pinned,
        embedded,
    };
    Ok(Found { target, endpoint })
}

fn bare_target(
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

fn discovered_model(target: &Target, secrets: &Secrets) -> Result<String, Failure> {
    let fetch = HttpFetch::new(Arc::new(target.clone()), SystemClock::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(error.to_string()))?;
    let asking = tokio::task::LocalSet::new().block_on(&runtime, discover_models(&fetch));
    let models = asking.map_err(|error| {
        let failure = Failure::target(format!("{}: {error}", target.base));
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

/// Asks one small question, first with everything that helps to count tokens. Some servers refuse
/// fields that they do not know, so what was refused is left out and the question asked again.
fn answers(target: &Target, secrets: &Secrets) -> Result<(UsageAsk, Connections), Failure> {
    let asks: &[UsageAsk] = if target.streaming {
        &[UsageAsk::Continuous, UsageAsk::Final, UsageAsk::None]
    } else {
        &[UsageAsk::None]
    };
    let mut last = None;
    for ask in asks {
        let asking = Arc::new(Target { usage: *ask, ..target.clone() });
        let Probe { record, connections } =
            probe(&asking, SystemClock::new(), &Content::text(PROBE_PROMPT), PROBE_TOKENS)
                .map_err(|error| Failure::internal(error.to_string()))?;
        if record.ending.outcome == Outcome::Ok {
            check_answer(target, &record)?;
            let counted = record.events.iter().any(|event| event.tokens.is_some());
            let useless = *ask == UsageAsk::Continuous && !counted;
            return Ok((if useless { UsageAsk::Final } else { *ask }, connections));
        }
        let refused = record.head.is_some_and(|head| matches!(head.status, 400 | 422));
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

fn probe_failure(target: &Target, secrets: &Secrets, record: &RequestRecord) -> Failure {
    let ending = &record.ending;
    let path = target.base.path(target.api.path());
    let (outcome, cause) = (ending.outcome, ending.cause);
    let words = LoadFailure { outcome, cause, message: ending.message.clone() }.words();
    let failure = Failure::target(format!(
        "{}: a probe of {path} for model `{}` ended as {}: {words}",
        target.base, target.model, ending.outcome
    ));
    let status = record.head.map(|head| head.status);
    match (status, ending.cause) {
        (Some(401 | 403), _) if secrets.has_key => {
            failure.hint("the server refused the key that was sent; is it the right one?")
        }
        (Some(401 | 403), _) => {
            failure.hint("the server wants a key: use --api-key-file FILE or OPENAI_API_KEY")
        }
        (Some(429 | 503), _) => failure
            .hint("the server is busy or still loading; wait until it answers, then run again"),
        (Some(404), _) => failure.hint(
            "either the path is wrong (give the base URL, with its prefix if it has one) \
             or the server does not serve that model (see --model)",
        ),
        (_, Some(Cause::ContentType)) => failure.hint(
            "this does not look like an inference API: a proxy or a login page may be in the way",
        ),
        (_, Some(Cause::Handshake)) => failure
            .hint("does this port speak TLS? A plain server wants http:// instead of https://"),
        (_, Some(Cause::Certificate)) => failure.hint(
            "the certificate must be valid for this host and trusted by this system \
             (SSL_CERT_FILE may name another store); --insecure measures without the check",
        ),
        (_, Some(Cause::BadFraming)) if target.http == HttpVersion::Http2 => {
            failure.hint(IS_IT_HTTP2)
        }
        _ => match met_limit(outcome, &target.limits) {
            Some((flag, limit)) => {
                failure.hint(format!("it was given {limit:?}; allow more with {flag}"))
            }
            None if target.http == HttpVersion::Http2 => failure.hint(IS_IT_HTTP2),
            None => failure.hint("nothing was measured; does the server answer a request by hand?"),
        },
    }
}

/// The flag that sets the limit which was met, and its value.
fn met_limit(outcome: Outcome, limits: &Limits) -> Option<(&'static str, Duration)> {
    match outcome {
        Outcome::TimeoutConnect => Some(("--connect-timeout", limits.connect)),
        Outcome::TimeoutFirstToken => Some(("--first-token-timeout", limits.first_token)),
        Outcome::TimeoutIdle => Some(("--idle-timeout", limits.idle)),
        Outcome::TimeoutTotal => Some(("--total-timeout", limits.total)),
        Outcome::Ok
        | Outcome::HttpError
        | Outcome::Rejected
        | Outcome::StreamError
        | Outcome::Truncated
        | Outcome::ProtocolError
        | Outcome::TransportError
        | Outcome::TlsError
        | Outcome::DnsError
        | Outcome::Cancelled
        | Outcome::NotSent => None,
    }
}
