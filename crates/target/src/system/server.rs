//! What a server reports about itself, where it has an endpoint for it: its software, version, context and
//! layout. Asked before a run, a few small questions; what it does not answer stays unknown.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use inferometer_model::fetch::{Fetch, FetchRequest};
use inferometer_model::file;
use inferometer_model::system::{Gpu, KnownBy, Machine, ServerFacts};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tool::{self, ToolError};

const BODY_BYTES_MAX: usize = 1 << 20;
/// What a server calls itself goes into every stored run.
const TEXT_CHARS_MAX: usize = 200;

/// Asks in the words of each engine, the one that it claims to be first.
pub async fn ask_server(fetch: &impl Fetch) -> ServerFacts {
    let mut facts = ServerFacts::default();
    let models = get(fetch, "/v1/models").await;
    if let Some(model) = models.as_ref().and_then(|list| list.pointer("/data/0")) {
        let owner = text(model, "/owned_by");
        let known = OWNERS.iter().find(|(name, _)| owner.as_deref() == Some(name));
        facts.software = known.map(|(_, software)| (*software).to_owned());
        facts.context_tokens = number(model, "/max_model_len");
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

/// What servers call the owner of their models.
const OWNERS: [(&str, &str); 4] = [
    ("vllm", "vLLM"),
    ("sglang", "SGLang"),
    ("llamacpp", "llama.cpp"),
    ("tensorrt_llm", "TensorRT-LLM"),
];

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

/// The word for a server that runs on the client's machine.
const LOCAL: &str = "local";
/// A machine far away may think for a while.
const WAIT_MAX: Duration = Duration::from_secs(30);
const BYTES_MAX: u64 = 1 << 20;

/// What may be stated. `inferometer system --json` prints it for its own machine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ServerInfo {
    /// The schema of a printed document; it is ignored.
    pub schema: Option<String>,
    pub software: Option<String>,
    pub version: Option<String>,
    pub start_command: Option<String>,
    pub model_revision: Option<String>,
    pub gpus_used: Option<u32>,
    pub machine: Option<Machine>,
    /// Anything else worth a line in the table, such as the image's digest.
    pub other: BTreeMap<String, String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ServerInfoError {
    #[error("--server-info {given}: {error}")]
    File { given: String, error: std::io::Error },
    #[error("--server-info `{given}` is not a file, and as a command {error}")]
    Command { given: String, error: ToolError },
    #[error("--server-info {given} is neither TOML nor JSON of the known keys: {error}")]
    Words { given: String, error: String },
}

/// Reads a file or the output of a command, or takes this machine for the server's.
pub fn read_server_info(
    given: &str,
    own: impl FnOnce() -> Machine,
) -> Result<ServerInfo, ServerInfoError> {
    if given == LOCAL {
        return Ok(ServerInfo { machine: Some(own()), ..ServerInfo::default() });
    }
    let owned = || given.to_owned();
    let is_name = |ending: &str| given.ends_with(ending) && !given.contains(char::is_whitespace);
    let text = if Path::new(given).is_file() || is_name(".toml") || is_name(".json") {
        file::read_text(Path::new(given), BYTES_MAX)
            .map_err(|error| ServerInfoError::File { given: owned(), error })?
    } else {
        let mut command = Command::new("sh");
        command.args(["-c", given]);
        tool::output(command, WAIT_MAX)
            .map_err(|error| ServerInfoError::Command { given: owned(), error })?
    };
    read(&text).map_err(|error| ServerInfoError::Words { given: owned(), error })
}

fn read(text: &str) -> Result<ServerInfo, String> {
    let tree: Value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| error.to_string())?
    } else {
        toml::from_str(text).map_err(|error| error.message().to_owned())?
    };
    let known = template();
    check_keys(&tree, &known)?;
    serde_json::from_value(tree).map_err(|error| error.to_string())
}

/// A document with every key: what is not in it is misspelt.
fn template() -> Value {
    let machine = Machine { gpus: vec![Gpu::default()], ..Machine::default() };
    json!({
        "schema": null, "software": null, "version": null, "start_command": null,
        "model_revision": null, "gpus_used": null, "machine": machine, "other": null,
    })
}

fn check_keys(stated: &Value, known: &Value) -> Result<(), String> {
    match (stated, known) {
        (Value::Object(stated), Value::Object(known)) => {
            stated.iter().try_for_each(|(key, value)| {
                let Some(known) = known.get(key) else {
                    let names: Vec<&str> = known.keys().map(String::as_str).collect();
                    return Err(format!(
                        "unknown key `{key}`; known keys are {}",
                        names.join(", ")
                    ));
                };
                check_keys(value, known)
            })
        }
        (Value::Array(stated), Value::Array(known)) => {
            let first = known.first().unwrap_or(&Value::Null);
            stated.iter().try_for_each(|item| check_keys(item, first))
        }
        _ => Ok(()),
    }
}

impl ServerInfo {
    /// Overrides what the server itself reports.
    #[must_use]
    pub fn over(self, reported: ServerFacts) -> ServerFacts {
        let by_command = self.start_command.as_deref().and_then(gpus_used);
        ServerFacts {
            software: self.software.or(reported.software),
            version: self.version.or(reported.version),
            start_command: self.start_command.or(reported.start_command),
            model_revision: self.model_revision.or(reported.model_revision),
            known_by: self.machine.as_ref().map(|_| KnownBy::ServerInfo).or(reported.known_by),
            machine: self.machine.or(reported.machine),
            gpus_used: self.gpus_used.or(by_command).or(reported.gpus_used),
            other: self.other.into_iter().collect(),
            ..reported
        }
    }
}

/// GPUs that the model is spread over, by the flags of the engines that we know.
pub fn gpus_used(command: &str) -> Option<u32> {
    let words: Vec<&str> = command.split(|c: char| c.is_whitespace() || c == '=').collect();
    let after = |flags: &[&str]| {
        let place = words.iter().position(|word| flags.contains(word))?;
        let value = words[place + 1..].iter().find(|word| !word.is_empty())?;
        value.parse::<u32>().ok().filter(|count| 0 < *count)
    };
    let factors = [
        after(&["--tensor-parallel-size", "-tp", "--tp", "--tp-size", "--tp_size", "--num-shard"]),
        after(&["--pipeline-parallel-size", "-pp", "--pp", "--pp-size", "--pp_size"]),
        after(&["--data-parallel-size", "-dp", "--dp", "--dp-size"]),
    ];
    factors
        .iter()
        .any(Option::is_some)
        .then(|| factors.into_iter().flatten().fold(1, u32::saturating_mul))
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

#[cfg(test)]
mod told_tests {
    use super::*;

    fn no_machine() -> Machine {
        Machine::default()
    }

    #[test]
    fn a_command_may_print_toml_or_json() {
        let toml = "printf 'software = \"vLLM\"\\nstart_command = \"vllm serve m -tp 4\"\\n[machine]\\ncpus = 8\\n'";
        let facts = read_server_info(toml, no_machine).unwrap().over(ServerFacts::default());
        assert_eq!((facts.software.as_deref(), facts.gpus_used), (Some("vLLM"), Some(4)));
        let machine = facts.machine.unwrap();
        assert_eq!((machine.cpus, facts.known_by), (Some(8), Some(KnownBy::ServerInfo)));
        let json = r#"echo '{"schema":"x","gpus_used":2,"other":{"image":"sha256:1"}}'"#;
        let facts = read_server_info(json, no_machine).unwrap().over(ServerFacts::default());
        assert_eq!(facts.gpus_used, Some(2));
        assert_eq!(facts.other, [("image".to_owned(), "sha256:1".to_owned())]);
    }

    #[test]
    fn what_is_told_goes_before_what_the_server_says() {
        let reported = ServerFacts {
            software: Some("vLLM".to_owned()),
            version: Some("1".to_owned()),
            ..ServerFacts::default()
        };
        let stated = ServerInfo { version: Some("1+patch".to_owned()), ..ServerInfo::default() };
        let facts = stated.over(reported);
        assert_eq!(
            (facts.software.as_deref(), facts.version.as_deref()),
            (Some("vLLM"), Some("1+patch"))
        );
        assert_eq!(facts.known_by, None);
    }

    #[test]
    fn wrong_words_say_what_is_wrong() {
        for (given, wanted) in [
            ("no-such-file-or-command", "no-such-file-or-command"),
            ("no-such-file.toml", "no such file"),
            ("echo '[machine.other]'", "unknown key `other`"),
            ("echo 'sofware = 1'", "unknown key `sofware`; known keys are"),
            ("echo '[[machine.gpus]]\nnmae = \"x\"'", "unknown key `nmae`"),
            ("echo '{\"gpus_used\": \"four\"}'", "neither TOML nor JSON"),
        ] {
            let error = read_server_info(given, no_machine).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn local_is_this_machine() {
        let own = || Machine { cpus: Some(3), ..Machine::default() };
        assert_eq!(read_server_info("local", own).unwrap().machine.unwrap().cpus, Some(3));
    }
}

#[cfg(test)]
mod start_command_tests {
    use super::*;

    #[test]
    fn the_layout_is_read_and_silence_is_none() {
        assert_eq!(gpus_used("vllm serve m --tensor-parallel-size 4 \\\n --port 1"), Some(4));
        assert_eq!(gpus_used("vllm serve m -tp=2 --pipeline-parallel-size=3"), Some(6));
        assert_eq!(gpus_used("vllm serve m"), None);
        assert_eq!(gpus_used("x --tp many"), None);
        assert_eq!(gpus_used("x --tp"), None);
    }
}
