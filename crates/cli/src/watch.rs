//! Progress for whoever watches: a bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use inferometer_load::SystemClock;
use inferometer_load::progress::{Progress, ProgressView};
use inferometer_model::plan::Bounds;
use inferometer_model::{Clock, Moment};

use crate::output;

/// Watches until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Often enough to be alive, seldom enough to cost nothing.
const REDRAW: Duration = Duration::from_millis(250);
const LINE_EVERY: u32 = 40;

impl Watch {
    pub(crate) fn start(progress: Arc<Progress>, bounds: Bounds, clock: SystemClock) -> Self {
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let bar = bar(bounds);
            let mut ticks = 0_u32;
            while stopped.recv_timeout(REDRAW) == Err(RecvTimeoutError::Timeout) {
                ticks += 1;
                let view = progress.view();
                match &bar {
                    Some(bar) => draw(bar, view, bounds, clock.now()),
                    None if ticks.is_multiple_of(LINE_EVERY) => output::talk(&line(view)),
                    None => {}
                }
            }
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A watcher that panicked has nothing left to clear.
            let _ = thread.join();
        }
    }
}

fn bar(bounds: Bounds) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let length = match (bounds.requests, bounds.release_before) {
        (Some(requests), _) => requests,
        (None, Some(end)) => end.as_nanos() / 1_000_000,
        (None, None) => 0,
    };
    let style = ProgressStyle::with_template("{bar:24} {percent:>3}%  {elapsed}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─");
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(4));
    bar.set_style(style);
    Some(bar)
}

fn draw(bar: &ProgressBar, view: ProgressView, bounds: Bounds, now: Moment) {
    let length = bar.length().unwrap_or(u64::MAX);
    let position = if bounds.requests.is_some() {
        view.ended()
    } else {
        // Where a least number must be reached too, the slower of the two is the progress.
        let by_number = match bounds.requests_min {
            0 => length,
            least => length.saturating_mul(view.ended().min(least)) / least,
        };
        by_number.min(now.as_nanos() / 1_000_000)
    };
    bar.set_position(position.min(length));
    bar.set_message(line(view));
}

fn line(view: ProgressView) -> String {
    let failed = if view.failed == 0 { String::new() } else { format!(", {} failed", view.failed) };
    format!("{} ok{failed}, {} in flight", view.ok, view.in_flight())
}
