//! The server's own metrics while a run goes on. Whatever happens to them, the run goes on too.

use std::sync::Arc;

use inferometer_load::{HttpFetch, SystemClock, Target};
use inferometer_model::Spec;
use inferometer_store::{RunDirectory, StoreError, TelemetryWriter};
use inferometer_target::{Poller, Polling};

use crate::output;

/// A poller at work, or none where nobody asked for it.
pub(crate) struct Listening(Option<Poller<TelemetryWriter, StoreError>>);

impl Listening {
    /// Returns when the server was asked for the first time: the run may begin.
    pub(crate) fn start(
        spec: &Spec,
        target: &Target,
        clock: SystemClock,
        directory: &RunDirectory,
    ) -> Self {
        let Some(asked) = spec.telemetry.clone() else { return Self(None) };
        let writer = match directory.create_telemetry() {
            Ok(writer) => writer,
            Err(error) => return Self::without(&error),
        };
        let polling =
            Polling { path: asked.path, every: asked.every, time_limit: Polling::TIME_LIMIT };
        let target = Arc::new(target.clone());
        let fetch = move || HttpFetch::new(target, clock);
        match Poller::start(polling, clock, fetch, writer, TelemetryWriter::append) {
            Ok(poller) => Self(Some(poller)),
            Err(error) => Self::without(&error),
        }
    }

    /// Asks once more, and puts everything on disk.
    pub(crate) fn stop(self) {
        let Some(poller) = self.0 else { return };
        let ended = match poller.stop() {
            Ok(written) => written.and_then(TelemetryWriter::finish).map_err(|e| e.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = ended {
            output::talk(&format!("the server's metrics are not all stored: {error}"));
        }
    }

    fn without(error: &dyn std::error::Error) -> Self {
        output::talk(&format!("the server's metrics are not read: {error}"));
        Self(None)
    }
}
