//! What a server reports about itself, where it has an endpoint for it: its software, version, context and
//! layout. Asked before a run, a few small questions; what it does not answer stays unknown.

use inferometer_model::fetch::{Fetch, FetchRequest};
use inferometer_model::system::ServerFacts;
use serde_json::Value;

const BODY_BYTES_MAX: usize = 1 << 20;
/// What a server calls itself goes into every stored run.
const TEXT_CHARS_MAX: usize = 200;

/// Asks in the words of each engine, the one that it claims to be first.
pub async fn ask_server(fetch: &impl Fetch) -> ServerFacts {
    let mut facts = ServerFacts::default();
    if let Some(models) = get(fetch, "/v1/models").await {
        by_model_list(&models, &mut facts);
    }
    if let Some(version) = get(fetch, "/version").await {
        facts.version = text(&version, "/version");
    }
    if facts.version.is_some() && facts.software.is_some() {
        return facts;
    }
    for (path, read) in QUESTIONS {
        if let Some(answer) = get(fetch, path).await
            && read(&answer, &mut facts)
        {
            break;
        }
    }
    facts
}

/// Takes the facts of an answer, if it is of its engine.
type Read = fn(&Value, &mut ServerFacts) -> bool;

const QUESTIONS: [(&str, Read); 4] =
    [("/server_info", sglang), ("/get_server_info", sglang), ("/info", tgi), ("/props", llama_cpp)];

async fn get(fetch: &impl Fetch, path: &str) -> Option<Value> {
    let reply = fetch.fetch(FetchRequest { path, body_limit: BODY_BYTES_MAX }).await.ok()?;
    if !(200..300).contains(&reply.status) {
        return None;
    }
    serde_json::from_slice(&reply.body).ok()
}

fn by_model_list(list: &Value, facts: &mut ServerFacts) {
    let Some(model) = list.pointer("/data/0") else { return };
    let software = match text(model, "/owned_by").as_deref() {
        Some("vllm") => Some("vLLM"),
        Some("sglang") => Some("SGLang"),
        Some("llamacpp") => Some("llama.cpp"),
        Some("tensorrt_llm") => Some("TensorRT-LLM"),
        Some(_) | None => None,
    };
    facts.software = software.map(str::to_owned);
    facts.context_tokens = number(model, "/max_model_len");
}

fn sglang(answer: &Value, facts: &mut ServerFacts) -> bool {
    let (Some(version), Some(tp)) = (text(answer, "/version"), number(answer, "/tp_size")) else {
        return false;
    };
    facts.software = Some("SGLang".to_owned());
    facts.version = Some(version);
    let pp = number(answer, "/pp_size").unwrap_or(1);
    // With attention in parallel over data the replicas share the GPUs of the tensors.
    let shares = answer.get("enable_dp_attention").and_then(Value::as_bool) == Some(true);
    let dp = if shares { 1 } else { number(answer, "/dp_size").unwrap_or(1) };
    let gpus = tp.saturating_mul(pp).saturating_mul(dp);
    facts.gpus_used = u32::try_from(gpus).ok().filter(|gpus| 0 < *gpus);
    facts.model_revision = text(answer, "/revision");
    facts.context_tokens = facts.context_tokens.or_else(|| number(answer, "/context_length"));
    true
}

fn tgi(answer: &Value, facts: &mut ServerFacts) -> bool {
    let is_tgi = answer.get("router").and_then(Value::as_str) == Some("text-generation-router")
        || (answer.get("model_id").is_some() && answer.get("max_total_tokens").is_some());
    if !is_tgi {
        return false;
    }
    facts.software = Some("TGI".to_owned());
    facts.version = text(answer, "/version");
    facts.model_revision = text(answer, "/model_sha");
    facts.context_tokens = number(answer, "/max_total_tokens");
    true
}

fn llama_cpp(answer: &Value, facts: &mut ServerFacts) -> bool {
    let Some(build) = text(answer, "/build_info") else { return false };
    facts.software = Some("llama.cpp".to_owned());
    facts.version = Some(build);
    facts.context_tokens = number(answer, "/default_generation_settings/n_ctx");
    true
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    let text = value.pointer(pointer)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.chars().take(TEXT_CHARS_MAX).collect())
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use inferometer_model::fetch::{FetchError, FetchReply};

    use super::*;

    /// Answers at once; what it does not know it has not got.
    struct Canned(&'static [(&'static str, &'static str)]);

    impl Fetch for Canned {
        async fn fetch(&self, request: FetchRequest<'_>) -> Result<FetchReply, FetchError> {
            let known = self.0.iter().find(|(path, _)| *path == request.path);
            let (status, body) = known.map_or((404, "{}"), |(_, body)| (200, *body));
            Ok(FetchReply { status, content_type: None, body: body.as_bytes().to_vec() })
        }
    }

    fn asked(answers: &'static [(&'static str, &'static str)]) -> ServerFacts {
        let canned = Canned(answers);
        let mut asking = std::pin::pin!(ask_server(&canned));
        match asking.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(facts) => facts,
            Poll::Pending => panic!("a canned answer does not wait"),
        }
    }

    fn named(facts: &ServerFacts) -> (Option<&str>, Option<&str>, Option<u64>) {
        (facts.software.as_deref(), facts.version.as_deref(), facts.context_tokens)
    }

    #[test]
    fn each_engine_is_known_by_its_own_words() {
        let vllm = asked(&[
            ("/v1/models", r#"{"data":[{"id":"m","owned_by":"vllm","max_model_len":4096}]}"#),
            ("/version", r#"{"version":"0.11.0"}"#),
        ]);
        assert_eq!(named(&vllm), (Some("vLLM"), Some("0.11.0"), Some(4096)));
        let sglang = asked(&[(
            "/get_server_info",
            r#"{"version":"0.5.2","tp_size":4,"pp_size":2,"dp_size":1,"context_length":null,"api_key":"no"}"#,
        )]);
        assert_eq!(
            (named(&sglang), sglang.gpus_used),
            ((Some("SGLang"), Some("0.5.2"), None), Some(8))
        );
        let tgi = asked(&[(
            "/info",
            r#"{"router":"text-generation-router","version":"3.3.4","model_sha":"ab","max_total_tokens":9}"#,
        )]);
        assert_eq!(named(&tgi), (Some("TGI"), Some("3.3.4"), Some(9)));
        assert_eq!(tgi.model_revision.as_deref(), Some("ab"));
        let llama = asked(&[(
            "/props",
            r#"{"build_info":"b6900-1a2b","default_generation_settings":{"n_ctx":8192}}"#,
        )]);
        assert_eq!(named(&llama), (Some("llama.cpp"), Some("b6900-1a2b"), Some(8192)));
    }

    #[test]
    fn a_server_that_says_nothing_or_nonsense_stays_unknown() {
        assert_eq!(asked(&[]), ServerFacts::default());
        let odd = asked(&[
            ("/v1/models", "[]"),
            ("/version", r#"{"version":7}"#),
            ("/server_info", r#"{"tp_size":"four"}"#),
            ("/info", "<html>"),
        ]);
        assert_eq!(odd, ServerFacts::default());
    }
}
