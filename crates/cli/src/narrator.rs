//! A model that writes the prose of a report: who it is, how it is reached, and when it is asked.

mod asking;
mod kept;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use inferometer_load::resources::resolve;
use inferometer_load::target::Target;
use inferometer_load::target::{CertificateCheck, connector};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Connections, HttpVersion, PinnedOutput, UsageAsk};
use inferometer_model::spec::Limits;
use inferometer_model::{BaseUrl, Spec};
use inferometer_report::escape::terminal;
use inferometer_report::narrative::Facts;
use inferometer_report::narrative::narrator::Narration;
use inferometer_target::{DiscoveryError, discover_models};

use self::asking::narrate;
use self::kept::keep;
pub(crate) use self::kept::words;
use crate::arguments::{NarratorArguments, NarratorChoice};
use crate::failure::Failure;
use crate::live::Server;
use crate::output;
use crate::preflight::{bare_target, fetching};
use crate::secrets::Secrets;
use crate::signals::Interruption;

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
            credentials: secrets.credentials.clone(),
            request_id_prefix: "inferometer-narrator".to_owned(),
            kernel_stamps: false,
            http,
            tls: base.tls.then(|| connector(CertificateCheck::System, http)),
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
            (Some(NarratorChoice::Target), None) => Err(nobody_measured()),
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
            Self::Measured(_) if subject.simulated => Err(nobody_measured()),
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

fn nobody_measured() -> Failure {
    Failure::usage("--narrator target: in virtual time no model was measured")
        .hint("give the URL of a server whose model is to write, or leave it out")
}

/// Whoever was measured; of several conditions, the one whose model is named.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) condition: usize,
    pub(crate) model: &'a str,
    pub(crate) simulated: bool,
}

/// A page to find words for, and where they are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errand<'a> {
    pub(crate) subject: Subject<'a>,
    pub(crate) facts: &'a Facts,
    pub(crate) folder: &'a Path,
}

impl Errand<'_> {
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
