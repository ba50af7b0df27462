//! A model that writes the prose of a report: its server, the questions to it, and the file with its
//! answers.

use std::path::Path;
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_load::resources::resolve;
use inferometer_load::target::Target;
use inferometer_model::endpoint::Api;
use inferometer_model::fetch::PostRequest;
use inferometer_model::observations::UsageAsk;
use inferometer_model::{BaseUrl, Clock, Post, Spec, SpecDraft};
use inferometer_report::escape::terminal;
use inferometer_report::narrative::narrator::{Answer, Narration, SCHEMA, prompt, questions};
use inferometer_report::narrative::{Facts, Narrative};
use inferometer_store::{read_at_most, write_atomically};
use inferometer_target::{DiscoveryError, list_models};
use serde_json::{Value, json};

use crate::arguments::{NarratorArguments, NarratorChoice};
use crate::failure::{Failure, Result};
use crate::measurement::Server;
use crate::output;
use crate::preflight::{bare_target, fetching};
use crate::secrets::Secrets;
use crate::signals::Interruption;

#[cfg(test)]
mod tests;

const CONNECT: Duration = Duration::from_secs(10);
const KEY_FLAG: &str = "--narrator-key-file";
const KEY_MISSING: &str = "it refuses to answer without a key";
const KEY_HINT: &str = "give its key with --narrator-key-file";

/// The server whose model writes.
#[derive(Debug)]
pub(crate) struct Narrator {
    target: Target,
    has_key: bool,
    /// Runs while the model writes, where we have deployed it.
    _server: Option<Server>,
}

impl Narrator {
    /// The measured model at its server.
    fn measured(spec: &Spec, secrets: &Secrets, model: &str) -> Result<Self> {
        let server = Server::new(spec)?;
        let target = Self::target(spec, secrets, server.base(), "target")?;
        let target = Target { model: model.to_owned(), ..target };
        Ok(Self { target, has_key: secrets.has_key, _server: Some(server) })
    }

    /// Another server; its first model writes.
    fn at(base: &BaseUrl, secrets: &Secrets) -> Result<Self> {
        let unusable = |why: &str| Failure::target(format!("--narrator {base}: {why}"));
        let spec = SpecDraft::default().resolve()?;
        let mut target = Target {
            usage: UsageAsk::None,
            request_id_prefix: "inferometer-narrator".to_owned(),
            kernel_stamps: false,
            ..Self::target(&spec, secrets, base, &base.to_string())?
        };
        let has_key = secrets.has_key;
        let models = fetching(&target, async |fetch| list_models(&fetch).await)?;
        let models = models.map_err(|error| {
            if matches!(error, DiscoveryError::Unauthorized { .. }) && !has_key {
                unusable(KEY_MISSING).hint(KEY_HINT)
            } else {
                unusable(&error.to_string())
            }
        })?;
        let first = models.into_iter().next().ok_or_else(|| unusable("it lists no model"))?;
        target.model = first.id;
        Ok(Self { target, has_key, _server: None })
    }

    fn target(spec: &Spec, secrets: &Secrets, base: &BaseUrl, name: &str) -> Result<Target> {
        let address = resolve(base, CONNECT).map_err(|error| {
            Failure::target(format!("--narrator {name}: {error}"))
                .hint("is it running, and is the URL right?")
        })?;
        Ok(Target {
            api: Api::Chat,
            streaming: false,
            fields: serde_json::Map::new(),
            ..bare_target(spec, secrets.credentials.clone(), base, address)
        })
    }

    /// The model and its server, which receives the facts.
    fn name(&self) -> String {
        format!("`{}` at {}", terminal(&self.target.model), self.target.base)
    }
}

/// The author of a page.
#[derive(Debug, Default)]
pub(crate) enum Writer {
    #[default]
    Rules,
    /// The measured model, with the secrets of each condition. The last ones are for all conditions
    /// that follow.
    Measured(Vec<Secrets>),
    /// A model at another server, which has answered already.
    Other(Box<Narrator>),
}

impl Writer {
    /// The author for a suite, before anything is measured for it. The secrets are those of its
    /// targets; in virtual time there are none.
    pub(crate) fn for_suite(
        asked: &NarratorArguments,
        secrets: Option<&[Secrets]>,
    ) -> Result<Self> {
        let is_target = matches!(asked.narrator, Some(NarratorChoice::Target));
        if is_target && secrets.is_some() && asked.narrator_key_file.is_some() {
            let what = format!("{KEY_FLAG} beside `--narrator target`: the target has its own key");
            return Err(Failure::usage(what)
                .hint("leave it out; the key of the target is given with --api-key-file"));
        }
        match secrets {
            Some(secrets) if is_target => Ok(Self::Measured(secrets.to_vec())),
            None if is_target => Err(no_model_measured()),
            _ => Self::for_stored(asked),
        }
    }

    /// The author for a page of a stored run or set. Stored files may come from anywhere, and they name
    /// a server and files with keys: only a key that is given now is sent there.
    pub(crate) fn for_stored(asked: &NarratorArguments) -> Result<Self> {
        let key = || Secrets::typed(KEY_FLAG, asked.narrator_key_file.as_deref());
        Ok(match &asked.narrator {
            None => Self::Rules,
            Some(NarratorChoice::Target) => Self::Measured(vec![key()?]),
            Some(NarratorChoice::Url(base)) => Self::Other(Box::new(Narrator::at(base, &key()?)?)),
        })
    }

    pub(crate) fn is_model(&self) -> bool {
        !matches!(self, Self::Rules)
    }

    /// Lets the model write about the facts, where a model is to write, and stores its answers beside
    /// the results. A model that cannot be reached is a failure.
    pub(crate) fn write(
        &self,
        subject: Subject<'_>,
        facts: &Facts,
        folder: &Path,
        interruption: &Interruption,
        talk: impl Fn(&str),
    ) -> Result<()> {
        let measured;
        let narrator = match self {
            Self::Rules => return Ok(()),
            Self::Other(narrator) => narrator,
            Self::Measured(_) if subject.simulated => return Err(no_model_measured()),
            Self::Measured(secrets) => {
                let secrets = secrets.get(subject.condition).or(secrets.last());
                let secrets =
                    secrets.ok_or_else(|| Failure::internal("a narrator without secrets"))?;
                measured = Narrator::measured(subject.spec, secrets, subject.model)?;
                &measured
            }
        };
        talk(&format!("{} writes; every sentence is checked …", narrator.name()));
        store(folder, &narrate(narrator, facts, interruption));
        Ok(())
    }
}

/// Leaves the page of new results to the rules where the model cannot be reached.
pub(crate) fn leave_to_rules(failure: &Failure, model: &str, facts: &Facts, folder: &Path) {
    warn(failure.message());
    let why = Some("it could not be reached".to_owned());
    store(folder, &Narration::new(model, Vec::new(), why, facts));
}

fn no_model_measured() -> Failure {
    Failure::usage(
        "--narrator target: no model was measured, because the run was simulated in virtual time",
    )
    .hint("give the URL of a server whose model is to write, or leave it out")
}

/// The measured server; of several conditions, the one whose model is named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) condition: usize,
    pub(crate) model: &'a str,
    pub(crate) simulated: bool,
}

/// A page is made again with the requested author, or it is left as it is.
pub(crate) fn leaving_pages_alone(failure: Failure) -> Failure {
    failure.shown(vec!["no page was changed; without --narrator it is made as before".to_owned()])
}

/// Prints a warning, also with `--quiet`: something that was requested is missing.
fn warn(what: &str) {
    output::talk(&format!("warning: {}", terminal(what)));
}

const ANSWER_PATIENCE: Duration = Duration::from_mins(3);
/// For all questions together; sections without an answer by then are left to the rules.
const WHOLE_PATIENCE: Duration = Duration::from_mins(15);
/// Between two looks for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Lets the model write about the facts, until it is done, out of time, or a signal comes.
fn narrate(narrator: &Narrator, facts: &Facts, interruption: &Interruption) -> Narration {
    let clock = SystemClock::new();
    let started = clock.now();
    let mut answers = Vec::new();
    let mut failure = None;
    for question in questions(facts) {
        let spent = clock.now().since(started).unwrap_or(WHOLE_PATIENCE);
        let patience = ANSWER_PATIENCE.min(WHOLE_PATIENCE.saturating_sub(spent));
        match ask(narrator, &prompt(facts, &question), patience, interruption) {
            Ok(said) => answers.push(Answer { question, said }),
            // The page, which others read, has no paths and no messages of systems.
            Err((short, detail)) => {
                let separator = if detail.is_empty() { "" } else { ": " };
                warn(&format!("the narrator, {}: {short}{separator}{detail}", narrator.name()));
                failure = Some(short);
                break;
            }
        }
    }
    Narration::new(&narrator.target.model, answers, failure, facts)
}

/// One question and its whole answer, or why there is none: for the page, and a detail for the user.
fn ask(
    narrator: &Narrator,
    question: &str,
    patience: Duration,
    interruption: &Interruption,
) -> Result<String, (String, String)> {
    let failed = |short: &str, detail: &str| (short.to_owned(), detail.to_owned());
    if patience.is_zero() {
        let minutes = WHOLE_PATIENCE.as_secs() / 60;
        return Err(failed(&format!("it had not written everything after {minutes} minutes"), ""));
    }
    let body = json!({
        "model": narrator.target.model,
        "messages": [{ "role": "user", "content": question }],
        // A thinking model may need thousands of tokens before its first sentence.
        "max_tokens": 8192,
        "temperature": 0,
        "stream": false,
    })
    .to_string();
    let request =
        PostRequest { path: "/v1/chat/completions", json: &body, body_limit: 1 << 20, patience };
    let reply = fetching(&narrator.target, async |fetch| {
        tokio::select! {
            reply = fetch.post(request) => Some(reply),
            () = signal(interruption) => None,
        }
    });
    let reply = reply
        .map_err(|failure| failed("no request could be made", failure.message()))?
        .ok_or_else(|| failed("it was stopped by a signal", ""))?
        .map_err(|error| failed("it did not answer", &error.to_string()))?;
    match reply.status {
        200 => {
            let answer: Value = serde_json::from_slice(&reply.body)
                .map_err(|error| failed("its answer is not JSON", &error.to_string()))?;
            let said = answer["choices"][0]["message"]["content"].as_str().map(str::to_owned);
            said.ok_or_else(|| failed("its answer has no `choices[0].message.content`", ""))
        }
        401 | 403 if !narrator.has_key => Err(failed(KEY_MISSING, KEY_HINT)),
        status => Err(failed(&format!("it answered with status {status}"), "")),
    }
}

/// Returns when a signal has come.
#[expect(clippy::disallowed_methods, reason = "a look at a flag now and then is no pacing")]
async fn signal(interruption: &Interruption) {
    while interruption.exit().is_none() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The file beside a run or a set.
const FILE: &str = "narration.json";
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Stores the answers in the folder of a run or a set. Earlier answers are kept where the model fails
/// to answer again.
fn store(folder: &Path, narration: &Narration) {
    match stored_narration(folder) {
        Ok(Some(earlier))
            if narration.failure.is_some() && narration.answers.len() < earlier.answers.len() =>
        {
            warn(&format!("the page keeps what `{}` wrote before", earlier.model));
        }
        // It may hold answers that a newer version can read.
        Err(_) if narration.answers.is_empty() => {}
        Ok(_) | Err(_) => {
            // Its keys are text, so it always has a JSON form.
            let json = serde_json::to_string_pretty(narration).unwrap_or_default() + "\n";
            if let Err(why) = write_atomically(&folder.join(FILE), json.as_bytes()) {
                warn(&format!("the narration could not be stored, so rules write the page: {why}"));
            }
        }
    }
}

/// The stored answers; `None` where no model has written.
fn stored_narration(folder: &Path) -> Result<Option<Narration>, String> {
    let path = folder.join(FILE);
    let unreadable = |why: String| format!("{}: {why}", path.display());
    let bytes = read_at_most(&path, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    let Some(bytes) = bytes else { return Ok(None) };
    let narration: Narration =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    if narration.schema != SCHEMA {
        return Err(unreadable(format!("schema {} is not known here", narration.schema)));
    }
    Ok(Some(narration))
}

/// The sentences of a page: those of a stored narration that hold, else those of the rules.
pub(crate) fn words(folder: &Path, facts: &Facts, rules: Narrative) -> Narrative {
    match stored_narration(folder) {
        Ok(Some(narration)) => narration.narrative(facts, rules),
        Ok(None) => rules,
        Err(why) => {
            let remedy = "Remove the file, or use --narrator again";
            warn(&format!("{why}; rules write the page. {remedy}"));
            rules
        }
    }
}
