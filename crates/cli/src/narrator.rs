//! Asks a model to write the prose of a report, and keeps what it said beside the results.

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_load::resolve::resolve;
use inferometer_load::target::{Credentials, Target};
use inferometer_load::tls::{CertificateCheck, connector};
use inferometer_model::endpoint::Api;
use inferometer_model::fetch::PostRequest;
use inferometer_model::observations::{Connections, HttpVersion, PinnedOutput, UsageAsk};
use inferometer_model::spec::Limits;
use inferometer_model::{BaseUrl, Clock, Moment, Post, Secret, Spec};
use inferometer_report::narrative::narrator::{Answer, Narration, SCHEMA, prompt, questions};
use inferometer_report::narrative::{Facts, Narrative};
use inferometer_store::{read_at_most, write_atomically};
use inferometer_target::discover_models;
use serde_json::{Value, json};

use crate::arguments::{NarratorArguments, NarratorChoice};
use crate::failure::Failure;
use crate::live::Server;
use crate::preflight::{bare_target, fetching};
use crate::secrets::{Secrets, key_by};

/// The name of its file beside a run or a set.
pub(crate) const FILE: &str = "narration.json";
const FILE_BYTES_MAX: u64 = 8 << 20;
/// A thinking model may need thousands of tokens before its first sentence.
const TOKENS_MAX: u32 = 8192;
const ANSWER_BYTES_MAX: usize = 1 << 20;
const ANSWER_PATIENCE: Duration = Duration::from_mins(3);
/// For all questions together; what is not said by then is left to the rules.
const WHOLE_PATIENCE: Duration = Duration::from_mins(15);
const CONNECT: Duration = Duration::from_secs(10);

/// The server whose model writes.
#[derive(Clone, Debug)]
pub(crate) struct Narrator {
    target: Target,
    /// Kept while it writes, where it is ours.
    _server: Option<Arc<Server>>,
}

impl Narrator {
    /// The model that was measured, reached as it was then. Keys are stored nowhere, so they are read
    /// again where they were read first.
    fn measured(spec: &Spec, key_file: Option<&Path>, model: &str) -> Result<Self, Failure> {
        let server = Server::of(spec)?;
        let base = server.base();
        let address = resolve(base, CONNECT)
            .map_err(|error| Failure::target(format!("--narrator target: {error}")))?;
        let credentials = Secrets::read(key_file, &[])?.credentials;
        let plain = bare_target(spec, credentials, base, address);
        let (api, model) = (Api::Chat, model.to_owned());
        let target =
            Target { api, model, streaming: false, fields: serde_json::Map::new(), ..plain };
        Ok(Self { target, _server: Some(Arc::new(server)) })
    }

    /// Another server; its first model writes.
    pub(crate) fn at(base: &BaseUrl, key_file: Option<&Path>) -> Result<Self, Failure> {
        let unusable = |why: String| Failure::target(format!("--narrator {base}: {why}"));
        let key = key_file.map(|path| key_by("--narrator-key-file", path)).transpose()?;
        let key = key.map(Secret::new);
        let credentials = Credentials::new(key.as_ref(), &[])
            .map_err(|error| Failure::usage(format!("--narrator-key-file: {error}")))?;
        let address = resolve(base, CONNECT).map_err(|error| unusable(error.to_string()))?;
        let http = HttpVersion::Http1;
        let mut target = Target {
            base: base.clone(),
            address,
            api: Api::Chat,
            model: String::new(),
            streaming: false,
            usage: UsageAsk::None,
            fields: serde_json::Map::new(),
            pinned: PinnedOutput::default(),
            connections: Connections::Reuse,
            limits: Limits::default(),
            credentials,
            request_id_prefix: "inferometer-narrator".to_owned(),
            kernel_stamps: false,
            http,
            tls: base.tls.then(|| connector(CertificateCheck::System, http)),
        };
        let models = fetching(&target, async |fetch| discover_models(&fetch).await)?
            .map_err(|error| unusable(error.to_string()))?;
        target.model = models.into_iter().next().unwrap_or_default();
        Ok(Self { target, _server: None })
    }
}

/// Whoever was measured, and with which key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) key_file: Option<&'a Path>,
    pub(crate) model: &'a str,
    pub(crate) simulated: bool,
}

/// Refuses a narrator that cannot be, before anything is measured for it.
pub(crate) fn check(asked: &NarratorArguments, simulated: bool) -> Result<(), Failure> {
    if asked.narrator == Some(NarratorChoice::Target) && simulated {
        return Err(Failure::usage("--narrator target: in virtual time no model was measured")
            .hint("give the URL of a server whose model is to write, or leave it out"));
    }
    Ok(())
}

/// Asks for the words of a page, where somebody is to be asked, and keeps what was said. Whoever
/// cannot be reached has said nothing, and rules write the page.
pub(crate) fn consult(
    asked: &NarratorArguments,
    measured: Measured<'_>,
    facts: &Facts,
    folder: &Path,
) -> Result<(), Failure> {
    let Some(choice) = &asked.narrator else { return Ok(()) };
    check(asked, measured.simulated)?;
    let (name, found) = match choice {
        NarratorChoice::Target => {
            let Measured { spec, key_file, model, .. } = measured;
            (model.to_owned(), Narrator::measured(spec, key_file, model))
        }
        NarratorChoice::Url(base) => {
            (base.to_string(), Narrator::at(base, asked.narrator_key_file.as_deref()))
        }
    };
    let narration = match found {
        Ok(narrator) => narrate(&narrator, facts),
        Err(failure) => Narration::of(&name, Vec::new(), Some(failure.message().to_owned()), facts),
    };
    store(folder, &narration)
}

/// Lets the model write about the facts. What goes wrong is a part of the narration: a report is
/// made in any case.
pub(crate) fn narrate(narrator: &Narrator, facts: &Facts) -> Narration {
    let clock = SystemClock::new();
    let started = clock.now();
    let over = |now: Moment| now.since(started).is_none_or(|spent| WHOLE_PATIENCE < spent);
    let mut answers = Vec::new();
    let mut failure = None;
    for question in questions(facts) {
        if over(clock.now()) {
            failure = Some(format!("it had not written everything after {WHOLE_PATIENCE:?}"));
            break;
        }
        match ask(narrator, &prompt(facts, &question)) {
            Ok(said) => answers.push(Answer { question, said }),
            Err(why) => {
                failure = Some(why);
                break;
            }
        }
    }
    Narration::of(&narrator.target.model, answers, failure, facts)
}

/// One question and its whole answer; an error is the words for why there is none.
pub(crate) fn ask(narrator: &Narrator, question: &str) -> Result<String, String> {
    let body = json!({
        "model": narrator.target.model,
        "messages": [{ "role": "user", "content": question }],
        "max_tokens": TOKENS_MAX,
        "temperature": 0,
        "stream": false,
    })
    .to_string();
    let request = PostRequest {
        path: "/v1/chat/completions",
        json: &body,
        body_limit: ANSWER_BYTES_MAX,
        patience: ANSWER_PATIENCE,
    };
    let reply = fetching(&narrator.target, async |fetch| fetch.post(request).await)
        .map_err(|_| "no request could be made".to_owned())?
        .map_err(|error| format!("it did not answer: {error}"))?;
    if reply.status != 200 {
        return Err(format!("it answered with status {}", reply.status));
    }
    let answer: Value = serde_json::from_slice(&reply.body)
        .map_err(|error| format!("its answer is not JSON: {error}"))?;
    let said = answer["choices"][0]["message"]["content"].as_str();
    said.map(str::to_owned)
        .ok_or_else(|| "its answer has no `choices[0].message.content`".to_owned())
}

/// Keeps what was said in the folder of a run or a set.
pub(crate) fn store(folder: &Path, narration: &Narration) -> Result<(), Failure> {
    let mut json = serde_json::to_vec_pretty(narration)
        .map_err(|error| Failure::internal(format!("the narration: {error}")))?;
    json.push(b'\n');
    write_atomically(&folder.join(FILE), &json)
        .map_err(|error| Failure::internal(error.to_string()))
}

/// What was said when the results were new; `None` where nobody was asked.
pub(crate) fn stored(folder: &Path) -> Result<Option<Narration>, Failure> {
    let path = folder.join(FILE);
    let unreadable = |why: String| {
        Failure::usage(format!("{}: {why}", path.display()))
            .hint("remove the file to let rules write the page, or ask again with --narrator")
    };
    let bytes = read_at_most(&path, FILE_BYTES_MAX).map_err(|e| unreadable(e.to_string()))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let narration: Narration =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    if narration.schema != SCHEMA {
        return Err(unreadable(format!("schema {} is not known here", narration.schema)));
    }
    Ok(Some(narration))
}

/// The words of a page: those of a stored narration as far as they hold, else those of the rules.
pub(crate) fn words(folder: &Path, facts: &Facts, rules: Narrative) -> Result<Narrative, Failure> {
    Ok(match stored(folder)? {
        Some(narration) => narration.narrative(facts, rules),
        None => rules,
    })
}
