//! Has the server profile itself during the run.

use std::time::Duration;

use inferometer_load::Target;
use inferometer_model::fetch::{Post, PostRequest};

use crate::failure::Failure;
use crate::output;
use crate::preflight::fetching;

/// A profiler that runs, and is stopped after the measurement.
#[derive(Debug)]
pub(crate) struct Profiler<'a> {
    target: &'a Target,
}

/// Writing a profile takes its time.
const PATIENCE: Duration = Duration::from_mins(10);
const REPLY_BYTES_MAX: usize = 1 << 20;

impl<'a> Profiler<'a> {
    /// A server that cannot is refused before anything is measured.
    pub(crate) fn start(target: &'a Target) -> Result<Self, Failure> {
        ask(target, "/start_profile").map_err(|failure| {
            failure.hint("start the server with its profiler on, or leave --profile out")
        })?;
        Ok(Self { target })
    }

    /// The run is made and counts, whatever becomes of the profile.
    pub(crate) fn stop(self) {
        if let Err(failure) = ask(self.target, "/stop_profile") {
            let words = inferometer_report::escape::terminal(failure.message());
            output::talk(&format!("the profile may be incomplete: {words}"));
        }
    }
}

fn ask(target: &Target, path: &str) -> Result<(), Failure> {
    let request = PostRequest { path, json: "{}", body_limit: REPLY_BYTES_MAX, patience: PATIENCE };
    let asked = fetching(target, async |fetch| fetch.post(request).await)?;
    match asked {
        Ok(reply) if (200..300).contains(&reply.status) => Ok(()),
        Ok(reply) => Err(Failure::target(format!("{path} answered HTTP {}", reply.status))),
        Err(error) => Err(Failure::target(format!("{path} did not answer: {error}"))),
    }
}
