//! The options of an engine.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::corpus::corpus;
use crate::faults::Faults;
use crate::serve::ServeOptions;

/// The options of an engine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    pub mode: Mode,
    /// Port 0 lets the system choose; the chosen one is announced.
    pub address: SocketAddr,
    /// The model's id; when absent that of the profile in the mode `serve`, else the mode's name.
    pub model: Option<String>,
    /// How tokens are paced where a request does not say otherwise.
    pub pacing: Pacing,
    /// The faults of a request that names none.
    pub faults: Faults,
    /// The cases that the mode `corpus` plays in turn; all of them where none is named.
    pub cases: Vec<String>,
    /// What the mode `serve` serves.
    pub serve: ServeOptions,
    pub seed: u64,
    pub limits: Limits,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Serve,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            model: None,
            pacing: Pacing::default(),
            faults: Faults::NONE,
            cases: Vec::new(),
            serve: ServeOptions::default(),
            seed: 0,
            limits: Limits::default(),
        }
    }
}

impl EngineOptions {
    /// The defaults of a mode.
    pub fn new(mode: Mode) -> Self {
        Self { mode, ..Self::default() }
    }

    /// The id under which the one model is served.
    pub fn model_id(&self) -> &str {
        let own = match self.mode {
            Mode::Serve => self.serve.profile.model.id.as_str(),
            Mode::Echo | Mode::Paced | Mode::Corpus => self.mode.into(),
        };
        self.model.as_deref().unwrap_or(own)
    }

    /// Nothing is checked again after this.
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        self.pacing.check()?;
        self.serve.check()?;
        let is_known = |name: &String| corpus().iter().any(|case| case.name == name);
        if let Some(unknown) = self.cases.iter().find(|name| !is_known(name)) {
            let known: Vec<&str> = corpus().iter().map(|case| case.name).collect();
            let known = known.join(", ");
            return Err(OptionsError(format!("unknown case `{unknown}`; known are {known}")));
        }
        self.pacing.check_tokens(self.limits)
    }
}

/// What an engine does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[strum(parse_err_ty = UnknownName, parse_err_fn = unknown_mode)]
pub enum Mode {
    /// Answers as fast as it can; keeps no truth.
    Echo,
    /// Answers on a schedule; keeps the truth.
    Paced,
    /// Answers as a vLLM server would; keeps the truth.
    Serve,
    /// Plays the cases of the conformance corpus; keeps the truth.
    Corpus,
}

/// A mode or a fault was asked for that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`; known are {}", known.join(", "))]
pub struct UnknownName {
    pub(crate) what: &'static str,
    pub(crate) name: String,
    pub(crate) known: Vec<&'static str>,
}

fn unknown_mode(name: &str) -> UnknownName {
    let known = Mode::VARIANTS.iter().map(<&str>::from).collect();
    UnknownName { what: "mode", name: name.to_owned(), known }
}

/// When tokens come, and how many share an event and a write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// From the receipt of the request to its first token.
    pub ttft: Duration,
    /// From one token to the next.
    pub gap: Duration,
    /// Tokens of an answer whose request does not say how many.
    pub tokens: u32,
    /// Tokens that share one event; it is due when the last of them is.
    pub tokens_per_write: u32,
    /// Events that share one write; it is due when the last of them is.
    pub events_per_write: u32,
    /// Every interval is multiplied by a factor drawn evenly from `[1 - jitter, 1 + jitter]`.
    pub jitter: f64,
}

impl Default for Pacing {
    fn default() -> Self {
        Self {
            ttft: Duration::from_millis(50),
            gap: Duration::from_millis(10),
            tokens: 64,
            tokens_per_write: 1,
            events_per_write: 1,
            jitter: 0.0,
        }
    }
}

impl Pacing {
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        if !(0.0..=1.0).contains(&self.jitter) {
            let why = "it is a share of the interval, so choose one between 0 and 1";
            return Err(OptionsError(format!("`jitter` is {}; {why}", self.jitter)));
        }
        check_interval("ttft", self.ttft)?;
        check_interval("gap", self.gap)?;
        let counts = [
            ("tokens", self.tokens),
            ("tokens_per_write", self.tokens_per_write),
            ("events_per_write", self.events_per_write),
        ];
        let zero = counts.into_iter().find(|(_, count)| *count == 0);
        zero.map_or(Ok(()), |(name, _)| Err(OptionsError::zero(name)))
    }

    pub(crate) fn check_tokens(&self, limits: Limits) -> Result<(), OptionsError> {
        if self.tokens <= limits.tokens {
            return Ok(());
        }
        Err(OptionsError(format!(
            "`tokens` is {}; this engine makes at most {} tokens per answer",
            self.tokens, limits.tokens
        )))
    }
}

pub(crate) fn check_interval(name: &str, interval: Duration) -> Result<(), OptionsError> {
    if interval <= INTERVAL_MAX {
        return Ok(());
    }
    let longest = format!("the longest interval is {INTERVAL_MAX:?}");
    Err(OptionsError(format!("`{name}` is {interval:?}; {longest}")))
}

/// What is bounded, and where. Reaching a bound is counted in the truth or answered to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at once; one more is answered 503 and closed.
    pub connections: usize,
    /// Requests whose truth is kept.
    pub requests_kept: usize,
    /// Writes whose truth is kept, over all requests.
    pub writes_kept: usize,
    /// Bytes of a request before its body.
    pub head_bytes: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Tokens of one answer; also announced as the model's length.
    pub tokens: u32,
    /// Requests that no step of the mode `serve` has had a part of; one more is answered 503.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 20_000,
            requests_kept: 20_000,
            writes_kept: 4_000_000,
            head_bytes: 64 << 10,
            body_bytes: 64 << 20,
            tokens: 131_072,
            waiting: 100_000,
        }
    }
}

/// Options that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(pub(crate) String);

impl OptionsError {
    pub(crate) fn zero(name: &str) -> Self {
        Self(format!("`{name}` is 0; it must be at least 1"))
    }
}

/// No schedule of this many tokens reaches past the range of the clock.
const INTERVAL_MAX: Duration = Duration::from_secs(10_000);

/// Why [`serve`](crate::serve()) ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error(transparent)]
    Options(#[from] OptionsError),
    #[error("cannot listen on {address}: {remedy}")]
    Address { address: SocketAddr, remedy: String },
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("the event loop cannot {action}")]
    EventLoop { action: &'static str, source: io::Error },
}

impl EngineError {
    /// Names the remedy where the reason is one that the user can do something about.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "io::ErrorKind is open; every other kind has no remedy of its own"
    )]
    pub(crate) fn listening(address: SocketAddr, source: io::Error) -> Self {
        let remedy = match source.kind() {
            io::ErrorKind::AddrInUse => format!(
                "port {} is in use; choose another with --port or use --port 0",
                address.port()
            ),
            io::ErrorKind::PermissionDenied => {
                "no permission; choose a port above 1023 with --port or use --port 0".to_owned()
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine does not have that address; choose one that it has, such as 127.0.0.1"
                    .to_owned()
            }
            _ => return Self::Listen { address, source },
        };
        Self::Address { address, remedy }
    }

    /// Wraps a failure of the event loop with what it was doing.
    pub(crate) fn doing(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::EventLoop { action, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_be_carried_out() {
        assert_eq!(EngineOptions::default().check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_carried_out_is_refused_by_name() {
        let bad = [
            (Pacing { jitter: 1.5, ..Pacing::default() }, "`jitter` is 1.5"),
            (Pacing { jitter: f64::NAN, ..Pacing::default() }, "`jitter` is NaN"),
            (Pacing { tokens_per_write: 0, ..Pacing::default() }, "`tokens_per_write` is 0"),
            (Pacing { gap: Duration::from_secs(10_001), ..Pacing::default() }, "`gap` is 10001s"),
            (Pacing { tokens: 200_000, ..Pacing::default() }, "`tokens` is 200000"),
        ];
        for (pacing, start) in bad {
            let options = EngineOptions { pacing, ..EngineOptions::default() };
            let message = options.check().unwrap_err().to_string();
            assert!(message.starts_with(start), "{message}");
        }
    }

    #[test]
    fn modes_are_found_by_name() {
        assert_eq!("echo".parse(), Ok(Mode::Echo));
        assert_eq!(
            "fast".parse::<Mode>().unwrap_err().to_string(),
            "unknown mode `fast`; known are echo, paced, serve, corpus"
        );
    }
}
