//! Before the run: whether there is a server, what it serves, and whether it answers as it should.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use inferometer_load::answer::Failure as LoadFailure;
use inferometer_load::resources::resolve;
use inferometer_load::target::{CertificateCheck, Credentials, Replica, Target, connector};
use inferometer_load::{HttpFetch, Probe, SystemClock, probe};
use inferometer_model::endpoint::{Api, ApiFacts};
use inferometer_model::observations::{
    Connections, Correction, Endpoint, HttpVersion, PinnedOutput, UsageAsk,
};
use inferometer_model::outcome::Cause;
use inferometer_model::spec::{Limits, PinOutput, Workload};
use inferometer_model::{BaseUrl, Content, Outcome, Plan, RequestId, RequestRecord, Spec};
use inferometer_target::{DiscoveryError, ListedModel, list_models};
use inferometer_workload::text::{Segment, TextMaker};

use crate::failure::{Failure, Refusal, Result};
use crate::secrets::Secrets;

/// The server as found, ready to be driven.
#[derive(Clone, Debug)]
pub struct Found {
    /// Where requests are sent.
    pub target: Target,
    /// What is stored of the server.
    pub endpoint: Endpoint,
}

/// The prompt of every probe.
pub const PROBE_PROMPT: &str = "Count from one to ten.";
const PROBE_TOKENS: u32 = 4;

/// Probes a server: which model it serves, whether it answers, how it counts tokens.
pub fn preflight(spec: &Spec, secrets: &Secrets, base: &BaseUrl, embedded: bool) -> Result<Found> {
    check_pinning(spec.api, spec.workload.body.pin_output)?;
    let mut target = addressed(spec, secrets, base)?;
    target.model = model(spec, secrets, &target)?;
    let (usage, connections) = answers(&target, secrets)?;
    target.usage = usage;
    target.connections = spec.connections.unwrap_or(connections);
    target.pinned = find_pinning(&target, &spec.workload)?;
    for base in &spec.replicas {
        let found = Target { model: target.model.clone(), ..addressed(spec, secrets, base)? };
        // Each must answer; how is taken from the first.
        answers(&found, secrets).map_err(|failure| failure.about(&format!("--replica {base}")))?;
        let Target { base, address, tls, .. } = found;
        target.replicas.push(Replica { base, address, tls });
    }
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
pub fn first_token(spec: &Spec, secrets: &Secrets, base: &BaseUrl) -> Result<()> {
    let mut target = addressed(spec, secrets, base)?;
    target.model = model(spec, secrets, &target)?;
    target.usage = UsageAsk::None;
    let tokens = probe_tokens(target.api, 1);
    let Probe { record, .. } = ask_once(target.clone(), PROBE_PROMPT, tokens)?;
    let is_ok = record.ending.outcome == Outcome::Ok;
    if is_ok { Ok(()) } else { Err(probe_failure(&target, secrets, &record)) }
}

/// The requested model, or the first that is listed.
fn model(spec: &Spec, secrets: &Secrets, target: &Target) -> Result<String> {
    match &spec.model {
        Some(model) => Ok(model.clone()),
        None => first_model(target, secrets).map(|model| model.id).or_else(|failure| {
            // A server with one model need not list it.
            // The name of a model where the server neither lists models nor needs a name.
            if spec.api.facts().names_model { Err(failure) } else { Ok("unnamed".to_owned()) }
        }),
    }
}

/// The server with its address, of which nothing is known yet.
pub fn addressed(spec: &Spec, secrets: &Secrets, base: &BaseUrl) -> Result<Target> {
    let address = resolve(base, spec.limits.connect).map_err(|error| {
        Failure::target(error.to_string())
            .hint("is the server running, and is the URL right? A run needs it from the start")
            .passing_if(true)
    })?;
    Ok(bare_target(spec, secrets.credentials.clone(), base, address))
}

/// A server of which nothing is known but its address.
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
        cancel: None,
        replicas: Vec::new(),
        kernel_stamps: true,
        http: spec.client.http,
        tls: base.tls.then(|| connector(check, spec.client.http)),
    }
}

/// The first model that the server lists.
pub fn first_model(target: &Target, secrets: &Secrets) -> Result<ListedModel> {
    let asked = fetching(target, async |fetch| list_models(&fetch).await)?;
    let models = asked.map_err(|error| {
        let has_answered = !matches!(error, DiscoveryError::NoAnswer(_));
        let is_starting =
            matches!(error, DiscoveryError::Status { status } if means_starting(status));
        let is_of_key = matches!(error, DiscoveryError::Unauthorized { .. });
        let failure = Failure::target(format!("{}: {error}", target.base))
            .passing_if(!has_answered || is_starting)
            .refused(is_of_key.then_some(Refusal::Key));
        if secrets.has_key && is_of_key {
            return failure.hint("the server refused the key; is it the key of this server?");
        }
        let is_http2 = target.http == HttpVersion::Http2;
        if is_http2 && !has_answered { failure.hint(IS_IT_HTTP2) } else { failure }
    })?;
    // Discovery returns at least one.
    models.into_iter().next().ok_or_else(|| Failure::target("no model to ask for"))
}

/// Whether a server, or the proxy before it, answers so while it is starting.
fn means_starting(status: u16) -> bool {
    matches!(status, 502..=504)
}

/// Plain requests to the server, outside of any run, until `work` is done.
pub fn fetching<T>(target: &Target, work: impl AsyncFnOnce(HttpFetch) -> T) -> Result<T> {
    let fetch = HttpFetch::new(Arc::new(target.clone()), SystemClock::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::from_error)?;
    Ok(tokio::task::LocalSet::new().block_on(&runtime, work(fetch)))
}

/// Asks one small question, first with everything that helps to count tokens. Some servers refuse
/// fields that they do not know, so what was refused is left out and the question asked again.
fn answers(target: &Target, secrets: &Secrets) -> Result<(UsageAsk, Connections)> {
    let can_ask = matches!(target.api, Api::Chat | Api::Completions);
    let asks: &[UsageAsk] = if target.streaming && can_ask {
        &[UsageAsk::Continuous, UsageAsk::Final, UsageAsk::None]
    } else {
        &[UsageAsk::None]
    };
    let tokens = probe_tokens(target.api, PROBE_TOKENS);
    let mut failed = None;
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
        failed = Some(probe_failure(target, secrets, &record));
        if !is_refusal(&record) {
            break;
        }
    }
    Err(failed.unwrap_or_else(|| Failure::internal("the probe asked nothing")))
}

/// The length to ask of a probe's answer: some APIs refuse very short ones.
pub fn probe_tokens(api: Api, wanted: u32) -> u32 {
    wanted.max(api.facts().output_tokens_min)
}

/// One question, outside of any run.
pub fn ask_once(target: Target, prompt: &str, tokens: u32) -> Result<Probe> {
    probe(&Arc::new(target), SystemClock::new(), &Content::text(prompt), tokens)
        .map_err(Failure::from_error)
}

/// Whether the server refused the fields of a request, and not the request.
pub fn is_refusal(record: &RequestRecord) -> bool {
    record.head.is_some_and(|head| matches!(head.status, 400 | 422))
}

/// A valid answer may still come from another model, or without streaming.
fn check_answer(target: &Target, record: &RequestRecord) -> Result<()> {
    if let Some(other) = &record.other_model {
        return Err(Failure::target(format!(
            "{}: `{}` was requested, but `{other}` answered",
            target.base, target.model
        ))
        .hint("set --model to the name that the server gives it"));
    }
    let streamed = record.head.is_none_or(|head| head.streamed);
    if target.streaming && !streamed {
        return Err(Failure::target(format!(
            "{}: a stream was requested, but the answer was not streamed",
            target.base
        ))
        .hint("the server or a proxy does not stream: measure whole answers with --no-stream"));
    }
    Ok(())
}

/// What the server says to the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// The most that it accepts.
    Accepted(PinnedOutput),
    /// It refuses the fields.
    Refused,
    /// The API has none, so nothing was asked.
    NoSuchFields,
    /// The question failed for another reason.
    NotKnown,
}

/// Refuses what no server of this API could do, before one is asked.
fn check_pinning(api: Api, wanted: PinOutput) -> Result<()> {
    if wanted != PinOutput::Always || api.facts().ignore_eos || api.facts().min_tokens {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--pin-output always: {api} has no field that sets the length of an answer"
    ))
    .hint("leave --pin-output out: answers may then end before their length"))
}

/// What to send with every request of the run.
fn find_pinning(target: &Target, workload: &Workload) -> Result<PinnedOutput> {
    let is_wanted = match workload.body.pin_output {
        PinOutput::Never => false,
        PinOutput::Always => true,
        PinOutput::Auto => workload.source.chooses_output(),
    };
    if !is_wanted {
        return Ok(PinnedOutput::default());
    }
    let why = match ask_pinning(target)? {
        Pinning::Accepted(pinned) => return Ok(pinned),
        Pinning::Refused => "the server refuses ignore_eos and min_tokens",
        Pinning::NoSuchFields => "the API has neither ignore_eos nor min_tokens",
        // It answered before without these fields, so they are the likeliest reason.
        Pinning::NotKnown => "a probe with ignore_eos and min_tokens failed",
    };
    if workload.body.pin_output != PinOutput::Always {
        return Ok(PinnedOutput::default());
    }
    let base = &target.base;
    Err(Failure::target(format!("{base}: {why}, but --pin-output always needs one of them"))
        .hint("leave --pin-output out: answers may then end before their length"))
}

/// Asks whether the server accepts the fields that pin the length of an answer.
pub fn ask_pinning(target: &Target) -> Result<Pinning> {
    let ApiFacts { ignore_eos, min_tokens, .. } = *target.api.facts();
    if !ignore_eos && !min_tokens {
        return Ok(Pinning::NoSuchFields);
    }
    let both = (true, true);
    let has = |fields: &(bool, bool)| (ignore_eos || !fields.0) && (min_tokens || !fields.1);
    for (ignore_eos, min_tokens) in [both, (true, false), (false, true)].into_iter().filter(has) {
        let pinned = PinnedOutput { ignore_eos, min_tokens };
        let asking = Target { pinned, ..target.clone() };
        let record = ask_once(asking, PROBE_PROMPT, probe_tokens(target.api, PROBE_TOKENS))?.record;
        if record.ending.outcome == Outcome::Ok {
            return Ok(Pinning::Accepted(pinned));
        }
        if !is_refusal(&record) {
            return Ok(Pinning::NotKnown);
        }
    }
    Ok(Pinning::Refused)
}

/// Limits of the requests that are examined and of the adapters that are probed.
const CARRIED_REQUESTS_MAX: u64 = 64;
const ADAPTERS_MAX: usize = 8;

/// Asks once for each adapter of the plan's beginning, with the pictures of its request.
pub(crate) fn check_carried(target: &Target, secrets: &Secrets, plan: &dyn Plan) -> Result<()> {
    let mut asked: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
    for request in (0..CARRIED_REQUESTS_MAX).map_while(|id| plan.request(RequestId(id))) {
        let content = plan.content(&request);
        if asked.len() < ADAPTERS_MAX || asked.contains_key(&content.model) {
            asked.entry(content.model).or_insert(content.images);
        }
    }
    for (model, images) in asked {
        if model.is_none() && images.is_empty() {
            continue;
        }
        let target =
            Target { model: model.clone().unwrap_or(target.model.clone()), ..target.clone() };
        let content = Content { images, model, ..Content::text(PROBE_PROMPT) };
        let tokens = probe_tokens(target.api, PROBE_TOKENS);
        let asking = Arc::new(target.clone());
        let record = probe(&asking, SystemClock::new(), &content, tokens)
            .map_err(Failure::from_error)?
            .record;
        if record.ending.outcome != Outcome::Ok {
            return Err(probe_failure(&target, secrets, &record));
        }
    }
    Ok(())
}

/// Words of the text; fewer for servers with little room.
const COUNTED_WORDS: [u32; 2] = [256, 64];
const COUNTING_SEED: u64 = 0x636f_756e_7469_6e67;
/// What no tokenizer for text would need per word, either way.
const TOKENS_PER_WORD: std::ops::RangeInclusive<f64> = 0.2..=20.0;

/// `None` when the server does not say how long prompts are.
pub fn correction(target: &Target) -> Result<Option<Correction>> {
    for words in COUNTED_WORDS {
        let text =
            TextMaker::Estimating(None).bare(&[Segment { seed: COUNTING_SEED, tokens: words }]);
        // Twice the text is twice its words, and what the server adds is there once.
        let twice = format!("{text} {text}");
        let Some(once) = counted(target, &text)? else { continue };
        let Some(twice) = counted(target, &twice)? else { continue };
        let tokens_per_word = (twice - once) / f64::from(words);
        let overhead_tokens = (once - (twice - once)).max(0.0);
        let correction = Correction { tokens_per_word, overhead_tokens };
        return Ok(TOKENS_PER_WORD.contains(&tokens_per_word).then_some(correction));
    }
    Ok(None)
}

fn counted(target: &Target, text: &str) -> Result<Option<f64>> {
    let record = ask_once(target.clone(), text, probe_tokens(target.api, 1))?.record;
    let usage = record.usage.filter(|_| record.ending.outcome == Outcome::Ok);
    Ok(usage.and_then(|usage| usage.prompt_tokens).map(|tokens| tokens as f64))
}

const IS_IT_HTTP2: &str = "does this server support HTTP/2? Most need HTTP/1.1: leave --http2 out";

fn probe_failure(target: &Target, secrets: &Secrets, record: &RequestRecord) -> Failure {
    let ending = &record.ending;
    let path = target.base.path(&target.api.path(target.streaming, &target.model));
    let (outcome, cause) = (ending.outcome, ending.cause);
    let words = LoadFailure { outcome, cause, message: ending.message.clone() }.words();
    let failure = Failure::target(format!(
        "{}: a probe of {path} for model `{}` ended as {}: {words}",
        target.base, target.model, ending.outcome
    ));
    let status = record.head.map(|head| head.status);
    let failure = failure.refused(refusal(status, ending.message.as_deref())).passing_if(
        status
            .map_or(!matches!(outcome, Outcome::TlsError | Outcome::ProtocolError), means_starting),
    );
    let is_http2 = target.http == HttpVersion::Http2;
    let hint = match (status, ending.cause) {
        (Some(401 | 403), _) if secrets.has_key => {
            "the server refused the key; is it the key of this server?"
        }
        (Some(401 | 403), _) => "the server needs a key: use --api-key-file FILE or OPENAI_API_KEY",
        (Some(429 | 503), _) => {
            "the server is busy or still loading; wait until it answers, then run again"
        }
        (Some(404), _) => {
            "either the path is wrong (give the base URL, with its prefix if it has one) \
             or the server does not serve that model (see --model)"
        }
        (_, Some(Cause::ContentType)) => {
            "this does not look like an inference API: a proxy or a login page may have answered"
        }
        (_, Some(Cause::Handshake)) => {
            "does this port use TLS? A server without TLS needs http:// instead of https://"
        }
        (_, Some(Cause::Certificate)) => {
            "the certificate must be valid for this host and trusted by this system \
             (SSL_CERT_FILE may name another store); --insecure measures without the check"
        }
        (_, Some(Cause::BadFraming)) if is_http2 => IS_IT_HTTP2,
        _ => match met_limit(outcome, &target.limits) {
            Some((flag, limit)) => &format!("the limit is {limit:?}; raise it with {flag}"),
            None if is_http2 => IS_IT_HTTP2,
            None => "nothing was measured; does the server answer a request with curl?",
        },
    };
    failure.hint(hint)
}

/// What an answer is about, where that is plain.
fn refusal(status: Option<u16>, said: Option<&str>) -> Option<Refusal> {
    match status {
        Some(401 | 403) => Some(Refusal::Key),
        // A path that is not there is answered so, too, and speaks of no model.
        Some(404) if said.is_some_and(|said| said.to_lowercase().contains("model")) => {
            Some(Refusal::Model)
        }
        Some(_) | None => None,
    }
}

/// The flag that sets the limit which was met, and its value.
fn met_limit(outcome: Outcome, limits: &Limits) -> Option<(&'static str, Duration)> {
    let met = [
        (Outcome::TimeoutConnect, "--connect-timeout", limits.connect),
        (Outcome::TimeoutFirstToken, "--first-token-timeout", limits.first_token),
        (Outcome::TimeoutIdle, "--idle-timeout", limits.idle),
        (Outcome::TimeoutTotal, "--total-timeout", limits.total),
    ];
    let met = met.into_iter().find(|(meeting, ..)| *meeting == outcome);
    met.map(|(_, flag, limit)| (flag, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_asks_for_no_less_than_its_api_allows() {
        assert_eq!(probe_tokens(Api::Chat, 1), 1);
        assert_eq!(probe_tokens(Api::Responses, 1), 16);
        assert_eq!(probe_tokens(Api::Responses, 48), 48);
    }

    #[test]
    fn only_an_api_with_the_fields_can_always_pin() {
        for api in Api::all() {
            let refused = check_pinning(api, PinOutput::Always).is_err();
            assert_eq!(refused, !api.facts().ignore_eos && !api.facts().min_tokens, "{api}");
            assert!(check_pinning(api, PinOutput::Auto).is_ok(), "{api}");
        }
    }

    #[test]
    fn a_model_that_is_not_served_is_told_from_a_path_that_is_not_there() {
        let said = Some("The model `x` does not exist.");
        assert_eq!(refusal(Some(404), said), Some(Refusal::Model));
        assert_eq!(refusal(Some(404), Some("Not Found")), None);
        assert_eq!(refusal(Some(404), None), None);
        assert_eq!(refusal(Some(500), said), None);
        assert_eq!(refusal(Some(401), None), Some(Refusal::Key));
        assert_eq!(refusal(None, said), None);
    }
}
