//! Reports progress while requests are being sent.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_load::{Progress, SystemClock};
use inferometer_model::Clock;
use inferometer_model::plan::Bounds;

use crate::event::{Event, Observer, ProgressTick};

/// Often enough to look alive, seldom enough to cost nothing.
const TICK_EVERY: Duration = Duration::from_millis(250);

/// Sends [`Event::Progress`] until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(crate) fn start(
        progress: Arc<Progress>,
        bounds: Bounds,
        clock: SystemClock,
        observer: Observer,
    ) -> Self {
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(TICK_EVERY) == Err(RecvTimeoutError::Timeout) {
                let elapsed = Duration::from_nanos(clock.now().as_nanos());
                let tick = ProgressTick { counts: progress.view(), bounds, elapsed };
                observer(Event::Progress(tick));
            }
            observer(Event::ProgressEnded);
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // An observer that panicked must not end the measurement.
            let _ = thread.join();
        }
    }
}
