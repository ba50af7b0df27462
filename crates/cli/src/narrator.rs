//! A model that writes the prose of a report: how it is reached and asked, and where its answers are
//! stored.

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
use inferometer_target::{DiscoveryError, discover_models};
use serde_json::{Value, json};

use crate::arguments::{NarratorArguments, NarratorChoice};
use crate::failure::Failure;
use crate::measurement::Server;
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
#[derive(Debug)]
pub(crate) struct Narrator {
    target: Target,
    has_key: bool,
    /// Kept while it writes, where it is ours.
    _server: Option<Server>,
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
        Ok(Self { target, has_key: secrets.has_key, _server: Some(server) })
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
    pub(crate) fn for_suite(
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
    pub(crate) fn for_stored(asked: &NarratorArguments) -> Result<Self, Failure> {
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

    /// Lets the model write about the facts, where a model is to write, and stores its words beside
    /// the results. A model that cannot be reached is a failure.
    pub(crate) fn write(
        &self,
        subject: Subject<'_>,
        facts: &Facts,
        folder: &Path,
        interruption: &Interruption,
        talk: impl Fn(&str),
    ) -> Result<(), Failure> {
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

/// Where results have just been measured, rules write the page of a model that cannot be reached.
pub(crate) fn leave_to_rules(failure: &Failure, model: &str, facts: &Facts, folder: &Path) {
    warn(failure.message());
    let why = Some("it could not be reached".to_owned());
    store(folder, &Narration::new(model, Vec::new(), why, facts));
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
    /// `detail` may be empty.
    fn new(short: impl Into<String>, detail: &str) -> Self {
        let short = short.into();
        let detail = if detail.is_empty() { short.clone() } else { format!("{short}: {detail}") };
        Self { short, detail }
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
            Err(NoAnswer::new(format!("it had not written everything after {minutes} minutes"), ""))
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
    Narration::new(&narrator.target.model, answers, failure, facts)
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
        .ok_or_else(|| NoAnswer::new("it was stopped by a signal", ""))?
        .map_err(|error| NoAnswer::new("it did not answer", &error.to_string()))?;
    match reply.status {
        200 => {
            let answer: Value = serde_json::from_slice(&reply.body)
                .map_err(|error| NoAnswer::new("its answer is not JSON", &error.to_string()))?;
            let said = answer["choices"][0]["message"]["content"].as_str().map(str::to_owned);
            said.ok_or_else(|| NoAnswer::new("its answer has no `choices[0].message.content`", ""))
        }
        401 | 403 if !narrator.has_key => {
            Err(NoAnswer::new("it refuses to answer without a key", GIVE_A_KEY))
        }
        status => Err(NoAnswer::new(format!("it answered with status {status}"), "")),
    }
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

/// Stores what was said in the folder of a run or a set. What was said before is worth more than a
/// failure to say it again.
fn store(folder: &Path, narration: &Narration) {
    let failed = narration.failure.is_some();
    match stored_narration(folder) {
        Ok(Some(earlier)) if failed && narration.answers.len() < earlier.answers.len() => {
            warn(&format!("the page keeps what `{}` wrote before", earlier.model));
        }
        // It may hold words that a newer version can read.
        Err(_) if narration.answers.is_empty() => {}
        Ok(_) | Err(_) => {
            // It has text for keys, so it always has a JSON form.
            let json = serde_json::to_string_pretty(narration).unwrap_or_default() + "\n";
            if let Err(why) = write_atomically(&folder.join(FILE), json.as_bytes()) {
                warn(&format!("what the narrator said could not be stored, so rules write: {why}"));
            }
        }
    }
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
