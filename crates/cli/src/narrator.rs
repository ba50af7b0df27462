//! A model that writes the prose of a report: how it is reached and asked, and where its answers are
//! stored.

use std::path::Path;
use std::sync::Arc;
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
use inferometer_target::{DiscoveryError, discover_models};
use serde_json::{Value, json};

use crate::arguments::{NarratorArguments, NarratorChoice};
use crate::failure::Failure;
use crate::live::Server;
use crate::output;
use crate::preflight::{bare_target, fetching};
use crate::secrets::Secrets;
use crate::signals::Interruption;

#[cfg(test)]
mod tests;

const CONNECT: Duration = Duration::from_secs(10);
const KEY_FLAG: &str = "--narrator-key-file";
const GIVE_A_KEY: &str = "give its key with --narrator-key-file";

/// The server whose model writes.
#[derive(Clone, Debug)]
pub(crate) struct Narrator {
    target: Target,
    has_key: bool,
    /// Kept while it writes, where it is ours.
    _server: Option<Arc<Server>>,
}

impl Narrator {
    /// The model that was measured, at the server where it was.
    fn measured(spec: &Spec, secrets: &Secrets, model: &str) -> Result<Self, Failure> {
        let server = Server::new(spec)?;
        let base = server.base();
        let address = resolve(base, CONNECT)
            .map_err(|error| Failure::target(format!("--narrator target: {error}")))?;
        let plain = bare_target(spec, secrets.credentials.clone(), base, address);
        let (api, model) = (Api::Chat, model.to_owned());
        let target =
            Target { api, model, streaming: false, fields: serde_json::Map::new(), ..plain };
        Ok(Self { target, has_key: secrets.has_key, _server: Some(Arc::new(server)) })
    }

    /// Another server; its first model writes.
    fn at(base: &BaseUrl, secrets: &Secrets) -> Result<Self, Failure> {
        let unusable = |why: String| Failure::target(format!("--narrator {base}: {why}"));
        let address = resolve(base, CONNECT).map_err(|error| {
            unusable(error.to_string()).hint("is it running, and is the URL right?")
        })?;
        let spec = SpecDraft::default().resolve()?;
        let mut target = Target {
            api: Api::Chat,
            streaming: false,
            usage: UsageAsk::None,
            request_id_prefix: "inferometer-narrator".to_owned(),
            kernel_stamps: false,
            ..bare_target(&spec, secrets.credentials.clone(), base, address)
        };
        let has_key = secrets.has_key;
        let models = fetching(&target, async |fetch| discover_models(&fetch).await)?;
        let models = models.map_err(|error| {
            if !has_key && matches!(error, DiscoveryError::Unauthorized { .. }) {
                return unusable("it refuses to answer without a key".to_owned()).hint(GIVE_A_KEY);
            }
            unusable(error.to_string())
        })?;
        let first = models.into_iter().next();
        target.model = first.ok_or_else(|| unusable("it lists no model".to_owned()))?;
        Ok(Self { target, has_key, _server: None })
    }

    /// Who it is, and where what it is told goes to.
    fn name(&self) -> String {
        format!("`{}` at {}", terminal(&self.target.model), self.target.base)
    }
}

/// Who is to write a page.
#[derive(Debug, Default)]
pub(crate) enum Writer {
    #[default]
    Rules,
    /// The model that was measured, with the secrets for each condition. The last ones are for all
    /// conditions that follow.
    Measured(Vec<Secrets>),
    /// Another, which has answered already.
    Other(Box<Narrator>),
}

impl Writer {
    /// For a suite, before anything is measured for it. Its secrets are those that it is measured
    /// with; in virtual time there are none.
    pub(crate) fn of_suite(
        asked: &NarratorArguments,
        secrets: Option<&[Secrets]>,
    ) -> Result<Self, Failure> {
        match (&asked.narrator, secrets) {
            (None, _) => Ok(Self::Rules),
            (Some(NarratorChoice::Target), None) => Err(no_model_measured()),
            (Some(NarratorChoice::Target), Some(_)) if asked.narrator_key_file.is_some() => {
                Err(Failure::usage(format!(
                    "{KEY_FLAG} beside `--narrator target`: the target has its own key"
                ))
                .hint("leave it out; the key of the target is given with --api-key-file"))
            }
            (Some(NarratorChoice::Target), Some(secrets)) => Ok(Self::Measured(secrets.to_vec())),
            (Some(NarratorChoice::Url(base)), _) => Self::other(base, asked),
        }
    }

    /// For a page of what is stored. Where its files come from nobody knows, and they name a server
    /// and files with keys: only a key that is typed now is sent there.
    pub(crate) fn of_stored(asked: &NarratorArguments) -> Result<Self, Failure> {
        match &asked.narrator {
            None => Ok(Self::Rules),
            Some(NarratorChoice::Target) => Ok(Self::Measured(vec![typed_key(asked)?])),
            Some(NarratorChoice::Url(base)) => Self::other(base, asked),
        }
    }

    pub(crate) fn is_model(&self) -> bool {
        !matches!(self, Self::Rules)
    }

    fn other(base: &BaseUrl, asked: &NarratorArguments) -> Result<Self, Failure> {
        Ok(Self::Other(Box::new(Narrator::at(base, &typed_key(asked)?)?)))
    }

    fn narrator(&self, subject: Subject<'_>) -> Result<Option<Narrator>, Failure> {
        match self {
            Self::Rules => Ok(None),
            Self::Other(narrator) => Ok(Some(Narrator::clone(narrator))),
            Self::Measured(_) if subject.simulated => Err(no_model_measured()),
            Self::Measured(secrets) => {
                let Some(secrets) = secrets.get(subject.condition).or(secrets.last()) else {
                    return Err(Failure::internal("a narrator without secrets"));
                };
                Narrator::measured(subject.spec, secrets, subject.model).map(Some)
            }
        }
    }
}

fn typed_key(asked: &NarratorArguments) -> Result<Secrets, Failure> {
    Secrets::typed(KEY_FLAG, asked.narrator_key_file.as_deref())
}

fn no_model_measured() -> Failure {
    Failure::usage("--narrator target: in virtual time no model was measured")
        .hint("give the URL of a server whose model is to write, or leave it out")
}

/// The server that was measured; of several conditions, the one whose model is named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) condition: usize,
    pub(crate) model: &'a str,
    pub(crate) simulated: bool,
}

/// A page to find words for, and where they are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrating<'a> {
    pub(crate) subject: Subject<'a>,
    pub(crate) facts: &'a Facts,
    pub(crate) folder: &'a Path,
}

impl Narrating<'_> {
    /// Asks the writer, where it is a model. One that cannot be reached is a failure.
    pub(crate) fn run(
        self,
        writer: &Writer,
        interruption: &Interruption,
        talk: impl Fn(&str),
    ) -> Result<(), Failure> {
        let Some(narrator) = writer.narrator(self.subject)? else { return Ok(()) };
        talk(&format!("{} writes; every sentence is checked …", narrator.name()));
        keep(self.folder, &narrate(&narrator, self.facts, interruption));
        Ok(())
    }

    /// The same, where results have just been measured: whoever cannot be reached has said nothing,
    /// and rules write the page.
    pub(crate) fn try_run(self, writer: &Writer, interruption: &Interruption, talk: impl Fn(&str)) {
        if let Err(failure) = self.run(writer, interruption, talk) {
            warn(failure.message());
            let why = Some("it could not be reached".to_owned());
            keep(self.folder, &Narration::of(self.subject.model, Vec::new(), why, self.facts));
        }
    }
}

/// A page is made again with the words that were wanted, or it is left as it is.
pub(crate) fn leaving_pages_alone(failure: Failure) -> Failure {
    failure.shown(vec!["no page was changed; without --narrator it is made as before".to_owned()])
}

/// Something that was asked for is not there: no chat, so that whoever asked for quiet is told too.
fn warn(what: &str) {
    output::talk(&format!("warning: {}", terminal(what)));
}

/// A thinking model may need thousands of tokens before its first sentence.
const TOKENS_MAX: u32 = 8192;
const ANSWER_BYTES_MAX: usize = 1 << 20;
const ANSWER_PATIENCE: Duration = Duration::from_mins(3);
/// For all questions together; what is not said by then is left to the rules.
const WHOLE_PATIENCE: Duration = Duration::from_mins(15);
/// Between two looks for a signal.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Why there is no answer.
#[derive(Debug)]
struct NoAnswer {
    /// For the page, which others read: no paths and no messages of systems.
    short: String,
    /// For the user who asked for it.
    detail: String,
}

impl NoAnswer {
    fn new(short: impl Into<String>, detail: impl std::fmt::Display) -> Self {
        let short = short.into();
        let detail = format!("{short}: {detail}");
        Self { short, detail }
    }

    fn plain(short: impl Into<String>) -> Self {
        let short = short.into();
        Self { detail: short.clone(), short }
    }
}

/// Lets the model write about the facts, until it is done, out of time, or a signal comes.
fn narrate(narrator: &Narrator, facts: &Facts, interruption: &Interruption) -> Narration {
    let clock = SystemClock::new();
    let started = clock.now();
    let left = || {
        let spent = clock.now().since(started).unwrap_or(WHOLE_PATIENCE);
        WHOLE_PATIENCE.saturating_sub(spent)
    };
    let mut answers = Vec::new();
    let mut failure = None;
    for question in questions(facts) {
        let patience = ANSWER_PATIENCE.min(left());
        let said = if patience.is_zero() {
            let minutes = WHOLE_PATIENCE.as_secs() / 60;
            Err(NoAnswer::plain(format!("it had not written everything after {minutes} minutes")))
        } else {
            ask(narrator, &prompt(facts, &question), patience, interruption)
        };
        match said {
            Ok(said) => answers.push(Answer { question, said }),
            Err(NoAnswer { short, detail }) => {
                warn(&format!("the narrator, {}: {detail}", narrator.name()));
                failure = Some(short);
                break;
            }
        }
    }
    Narration::of(&narrator.target.model, answers, failure, facts)
}

/// One question and its whole answer.
fn ask(
    narrator: &Narrator,
    question: &str,
    patience: Duration,
    interruption: &Interruption,
) -> Result<String, NoAnswer> {
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
        patience,
    };
    let reply = fetching(&narrator.target, async |fetch| {
        tokio::select! {
            reply = fetch.post(request) => Some(reply),
            () = signal(interruption) => None,
        }
    });
    let reply = reply
        .map_err(|failure| NoAnswer::new("no request could be made", failure.message()))?
        .ok_or_else(|| NoAnswer::plain("it was stopped by a signal"))?
        .map_err(|error| NoAnswer::new("it did not answer", error))?;
    match reply.status {
        200 => content_of(&reply.body),
        401 | 403 if !narrator.has_key => {
            Err(NoAnswer::new("it refuses to answer without a key", GIVE_A_KEY))
        }
        status => Err(NoAnswer::plain(format!("it answered with status {status}"))),
    }
}

fn content_of(body: &[u8]) -> Result<String, NoAnswer> {
    let answer: Value = serde_json::from_slice(body)
        .map_err(|error| NoAnswer::new("its answer is not JSON", error))?;
    let said = answer["choices"][0]["message"]["content"].as_str();
    said.map(str::to_owned)
        .ok_or_else(|| NoAnswer::plain("its answer has no `choices[0].message.content`"))
}

/// Returns when a signal has come.
#[expect(clippy::disallowed_methods, reason = "a look at a flag now and then is no pacing")]
async fn signal(interruption: &Interruption) {
    while interruption.exit().is_none() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The name of its file beside a run or a set.
const FILE: &str = "narration.json";
const FILE_BYTES_MAX: u64 = 8 << 20;

/// Keeps what was said, in the folder of a run or a set. What was said before is worth more than a
/// failure to say it again.
fn keep(folder: &Path, narration: &Narration) {
    let failed = narration.failure.is_some();
    match stored_narration(folder) {
        Ok(Some(earlier)) if failed && narration.answers.len() < earlier.answers.len() => {
            warn(&format!("the page keeps what `{}` wrote before", earlier.model));
        }
        // It may hold words that a newer version can read.
        Err(_) if narration.answers.is_empty() => {}
        Ok(_) | Err(_) => {
            if let Err(why) = store_narration(folder, narration) {
                warn(&format!("what the narrator said could not be stored, so rules write: {why}"));
            }
        }
    }
}

fn store_narration(folder: &Path, narration: &Narration) -> Result<(), String> {
    let mut json = serde_json::to_vec_pretty(narration).map_err(|error| error.to_string())?;
    json.push(b'\n');
    write_atomically(&folder.join(FILE), &json).map_err(|error| error.to_string())
}

/// What was said when the results were new; `None` where nobody was asked.
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

/// The words of a page: those of a stored narration as far as they hold, else those of the rules.
pub(crate) fn words(folder: &Path, facts: &Facts, rules: Narrative) -> Narrative {
    match stored_narration(folder) {
        Ok(Some(narration)) => narration.narrative(facts, rules),
        Ok(None) => rules,
        Err(why) => {
            warn(&format!(
                "{why}; rules write the page. Remove the file, or ask again with --narrator"
            ));
            rules
        }
    }
}
