//! What all measurements of one process share: limits, the stop control, signals, and the observer
//! that receives what happens as one stream of events.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use inferometer_load::resources::Memory;
use inferometer_load::{Control, ProgressView};
use inferometer_model::BaseUrl;
use inferometer_model::deployment::{Departure, DepartureEnding};
use inferometer_model::endpoint::Api;
use inferometer_model::fmt::{count, duration, number, seconds};
use inferometer_model::plan::Bounds;
use inferometer_model::spec::WarmUp;
use serde_json::{Value, json};
use strum::IntoStaticStr;

use crate::interruption::Interruption;
use crate::live::LiveFigures;

/// The shared state of all measurements of one process.
#[derive(Clone)]
#[must_use]
pub struct Session {
    /// Requests that may be in flight before the system runs out of file descriptors.
    pub ceiling: usize,
    /// Stops what is being sent.
    pub control: Control,
    /// Signals received so far.
    pub interruption: Interruption,
    pub(crate) observer: Observer,
    /// Reads what memory is left.
    pub(crate) memory: fn() -> Option<Memory>,
    /// Whether only warnings are reported.
    pub is_quiet: bool,
}

inferometer_model::debug_fields!(Session, ceiling);

impl Session {
    /// A session that reports to `observer` and that nothing interrupts yet.
    pub fn new(ceiling: usize, observer: Observer) -> Self {
        let (control, interruption) = (Control::default(), Interruption::default());
        Self { ceiling, control, interruption, observer, memory: Memory::find, is_quiet: false }
    }

    /// The same session, reporting only warnings.
    pub fn only_warnings(&self) -> Self {
        let observer = Arc::clone(&self.observer);
        let warnings = move |event: Event| {
            if event.is_warning() {
                observer(event);
            }
        };
        Self { observer: Arc::new(warnings), is_quiet: true, ..self.clone() }
    }

    /// Reports an event.
    pub fn emit(&self, event: Event) {
        (self.observer)(event);
    }

    /// Reports a line for people who follow the benchmark.
    pub fn talk(&self, line: &str) {
        self.emit(Event::Notice(line.to_owned()));
    }

    /// Reports a line that should be read even in quiet mode.
    pub fn warn(&self, line: impl Into<String>) {
        self.emit(Event::Warning(line.into()));
    }
}

/// Receives every event. Events come from several threads, so it must be safe to share.
pub type Observer = Arc<dyn Fn(Event) + Send + Sync>;

/// One thing that happened. Its `Display` is a line of plain English without a line break at its
/// end. Texts may quote a server: escape control characters before printing them to a terminal.
#[derive(Clone, Debug, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A server is being deployed.
    Deploying {
        /// The command or image that starts it.
        what: String,
    },
    /// The deployed server has not generated a token yet.
    Waiting {
        /// Time since the deployment began.
        waited: Duration,
        /// What the server answered last, if it answered.
        answer: Option<String>,
    },
    /// The deployed server generated its first token.
    Ready {
        /// Time since the deployment began.
        after: Duration,
    },
    /// The server is asked which model it serves and which options it accepts.
    Probing {
        /// The server's base URL.
        base: BaseUrl,
    },
    /// The probes succeeded, and the benchmark begins.
    Measuring {
        /// The API that requests use.
        api: Api,
        /// The model that is measured.
        model: String,
        /// The server's base URL.
        base: BaseUrl,
    },
    /// Requests that are not measured are being sent.
    WarmingUp {
        /// How many requests the warm-up has, or how long it is.
        length: WarmUp,
    },
    /// Connections are being opened for the first requests of the warm-up or the run.
    Dialling {
        /// How many; with HTTP/2, for how many requests.
        connections: usize,
    },
    /// How far the warm-up or the run is; sent four times per second.
    Progress(Box<ProgressTick>),
    /// The warm-up or the run that sent [`Event::Progress`] has ended.
    ProgressEnded,
    /// The run is complete and stored.
    Finished {
        /// The directory of the stored run.
        directory: PathBuf,
    },
    /// The deployed server is being stopped.
    StoppingServer,
    /// The deployed server has stopped.
    ServerStopped(Departure),
    /// A signal stopped the work before anything was measured. It should be read even in quiet mode.
    Interrupted {
        /// What was going on.
        when: &'static str,
    },
    /// A set of runs stopped before its end and can be resumed.
    Unfinished {
        /// What is stored, and where.
        what: String,
        /// The command that resumes it.
        command: String,
    },
    /// A line for people who follow the benchmark.
    Notice(String),
    /// Something that should be read even in quiet mode. The benchmark continues.
    Warning(String),
}

/// The counters of a warm-up or a run at one time.
#[derive(Clone, Debug)]
pub struct ProgressTick {
    /// Requests that were started, succeeded and failed.
    pub counts: ProgressView,
    /// What the plan will send at most.
    pub bounds: Bounds,
    /// Time since the clock of the warm-up or the run was started.
    pub elapsed: Duration,
    /// Rates, latencies and what the server reports.
    pub live: LiveFigures,
}

impl ProgressTick {
    /// The share of the plan that is done, from 0 to 1. Where a number of requests and a time must both
    /// be reached, the slower of the two counts.
    pub fn share(&self) -> f64 {
        let ended = self.counts.ended() as f64;
        let by_number = match self.bounds.scheduled_min() {
            0 => f64::INFINITY,
            requests => ended / requests as f64,
        };
        let by_time = match (self.bounds.requests, self.bounds.release_before) {
            (None, Some(end)) => self.elapsed.as_nanos() as f64 / end.as_nanos().max(1) as f64,
            _ => f64::INFINITY,
        };
        by_number.min(by_time).min(1.0)
    }

    /// How long it will still take at the pace so far; `None` at its beginning.
    pub fn time_left(&self) -> Option<Duration> {
        let share = self.share();
        let left_s = self.elapsed.as_secs_f64() * (1.0 - share) / share;
        (0.01 <= share).then(|| Duration::try_from_secs_f64(left_s).ok())?
    }
}

impl fmt::Display for ProgressTick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProgressView { ok, failed, .. } = self.counts;
        write!(f, "{} ok", count(ok))?;
        if 0 < failed {
            write!(f, ", {} failed", count(failed))?;
        }
        if 0 < self.counts.abandoned {
            write!(f, ", {} ended by --cancel", count(self.counts.abandoned))?;
        }
        write!(f, ", {} in flight", count(self.counts.in_flight()))?;
        let LiveFigures { requests_per_s, output_tokens_per_s, ttft_ms, .. } = &self.live;
        let rates = [(*requests_per_s, "req/s"), (*output_tokens_per_s, "tok/s")];
        for (rate, unit) in rates.into_iter().filter(|(rate, _)| 0.0 < *rate) {
            write!(f, ", {} {unit}", number(rate))?;
        }
        if let Some(ttft) = ttft_ms {
            write!(f, ", TTFT {} ms", number(ttft.p50))?;
        }
        match self.time_left() {
            Some(left) => {
                write!(f, ", {} left", duration(Duration::from_secs(left.as_secs())))
            }
            None => Ok(()),
        }
    }
}

impl Event {
    /// Whether a quiet consumer should still show it.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Warning(_) | Self::Interrupted { .. } | Self::Unfinished { .. })
    }

    /// The event for programs: its kind, its line of plain English, and the figures of progress.
    pub fn to_json(&self) -> Value {
        let kind: &'static str = self.into();
        let mut object = json!({ "event": kind, "text": self.to_string() });
        if let Self::Progress(tick) = self {
            let ProgressView { ok, failed, .. } = tick.counts;
            object["progress"] = json!({
                "elapsed_s": tick.elapsed.as_secs_f64(),
                "share": tick.share(),
                "left_s": tick.time_left().map(|left| left.as_secs_f64()),
                "ok": ok,
                "failed": failed,
                "in_flight": tick.counts.in_flight(),
                "live": tick.live,
            });
        }
        object
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deploying { what } => write!(f, "deploying {what} …"),
            Self::Waiting { waited, answer } => {
                let answer = answer.as_deref().unwrap_or("no answer yet");
                write!(f, "waiting for the server, {} s: {answer}", waited.as_secs())
            }
            Self::Ready { after } => {
                let after = seconds(after.as_secs_f64());
                write!(f, "the server generated a token {after} after its start")
            }
            Self::Probing { base } => write!(f, "asking {base} what it serves …"),
            Self::Measuring { api, model, base } => {
                write!(f, "measuring {api} of `{model}` at {base} …")
            }
            Self::WarmingUp { length: WarmUp::Requests(requests) } => {
                write!(f, "warming up with {requests} requests …")
            }
            Self::WarmingUp { length: WarmUp::Time(time) } => {
                write!(f, "warming up for {} …", duration(*time))
            }
            Self::Dialling { connections } => {
                write!(f, "opening connections for {} requests …", count(*connections as u64))
            }
            Self::Progress(tick) => tick.fmt(f),
            Self::ProgressEnded => f.write_str("all requests have ended"),
            Self::Finished { directory } => write!(f, "stored in {}", directory.display()),
            Self::StoppingServer => f.write_str("stopping the server …"),
            Self::ServerStopped(departure) => {
                let how = match departure.ending {
                    DepartureEnding::Before => "the server had already ended",
                    DepartureEnding::OnRequest => "the server stopped when asked",
                    DepartureEnding::Killed => "the server had to be killed",
                };
                write!(f, "{how}, {}", seconds(departure.took.as_secs_f64()))
            }
            Self::Interrupted { when } => {
                write!(f, "stopped {when}: nothing was measured, and nothing is stored")
            }
            Self::Unfinished { what, command } => write!(f, "{what}; resume with: {command}"),
            Self::Notice(line) => f.write_str(line),
            Self::Warning(line) => write!(f, "warning: {line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_server_is_one_line() {
        let departure = Departure {
            ending: DepartureEnding::OnRequest,
            took: Duration::from_millis(1200),
            port_closed: true,
            left: Vec::new(),
            gpu_memory: None,
            troubles: Vec::new(),
        };
        let line = Event::ServerStopped(departure).to_string();
        assert_eq!(line, "the server stopped when asked, 1.20 s");
    }
}
