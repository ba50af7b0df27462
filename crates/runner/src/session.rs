//! What all measurements of one process share: limits, the stop control, signals and the observer.

use std::fmt;
use std::sync::Arc;

use inferometer_load::Control;

use crate::event::{Event, Observer};
use crate::interruption::Interruption;

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
    observer: Observer,
    is_quiet: bool,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("ceiling", &self.ceiling).finish_non_exhaustive()
    }
}

impl Session {
    /// A session that reports to `observer` and that nothing interrupts yet.
    pub fn new(ceiling: usize, observer: Observer) -> Self {
        let (control, interruption) = (Control::default(), Interruption::default());
        Self { ceiling, control, interruption, observer, is_quiet: false }
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

    /// Whether only warnings are reported.
    pub fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// The observer that events are reported to.
    pub fn observer(&self) -> &Observer {
        &self.observer
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
