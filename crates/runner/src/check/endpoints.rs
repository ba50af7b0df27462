//! What else the server answers: its metrics, its version, other APIs.

use std::time::Duration;

use inferometer_load::target::Target;
use inferometer_model::endpoint::Api;
use inferometer_model::fetch::{FetchReply, FetchRequest};
use inferometer_model::observations::UsageAsk;
use inferometer_model::spec::Limits;
use inferometer_model::{Fetch, Outcome};

use super::Finding;
use crate::failure::Failure;
use crate::preflight::{PROBE_PROMPT, ask_once, fetching, probe_tokens};

const BODY_LIMIT: usize = 16 << 20;
const TOKENS: u32 = 4;
const OTHER_API_WAIT: Duration = Duration::from_secs(20);

pub(super) fn examine(target: &Target) -> Result<Vec<Finding>, Failure> {
    let metrics = get(target, "/metrics")?;
    let mut findings = vec![match metrics.as_ref().map(server_of) {
        Some(server) => Finding::good("/metrics", server),
        None => Finding::note("/metrics", "none: the server's own queue and cache stay unseen")
            .remedy("llama-server wants --metrics; vLLM and SGLang serve it by default or by flag"),
    }];
    if let Some(version) = get(target, "/version")? {
        let words = String::from_utf8_lossy(&version.body).trim().to_owned();
        findings.push(Finding::good("/version", words));
    }
    findings.push(other_apis(target)?);
    Ok(findings)
}

/// Which of the other APIs answer a small question.
fn other_apis(target: &Target) -> Result<Finding, Failure> {
    let mut served = Vec::new();
    for api in Api::ALL.into_iter().filter(|api| *api != target.api) {
        let limits = Limits { first_token: OTHER_API_WAIT, total: OTHER_API_WAIT, ..target.limits };
        let usage = UsageAsk::None;
        let asking = Target { api, streaming: false, usage, limits, ..target.clone() };
        let record = ask_once(asking, PROBE_PROMPT, probe_tokens(api, TOKENS))?.record;
        if record.ending.outcome == Outcome::Ok {
            served.push(api.name());
        }
    }
    Ok(if served.is_empty() {
        Finding::note("other APIs", "none of the others answered")
    } else {
        Finding::good("other APIs", format!("also answered: {}", served.join(", ")))
    })
}

/// Whose metrics these are, by their names.
fn server_of(reply: &FetchReply) -> String {
    let text = String::from_utf8_lossy(&reply.body);
    let known = [
        ("vllm:", "vLLM's"),
        ("sglang:", "SGLang's"),
        ("llamacpp:", "llama.cpp's"),
        ("tgi_", "TGI's"),
        ("nv_inference", "Triton's"),
    ];
    match known.iter().find(|(prefix, _)| text.contains(prefix)) {
        Some((_, whose)) => format!("{whose} metrics"),
        None => "served, in no vocabulary that is known here".to_owned(),
    }
}

/// A page that is there; anything else is `None`.
fn get(target: &Target, path: &str) -> Result<Option<FetchReply>, Failure> {
    let request = FetchRequest { path, body_limit: BODY_LIMIT };
    let reply = fetching(target, async |fetch| fetch.fetch(request).await)?;
    Ok(reply.ok().filter(|reply| (200..300).contains(&reply.status)))
}
