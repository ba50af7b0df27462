//! Events as terminal lines: a progress bar on a terminal, a line now and then elsewhere.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use inferometer_model::plan::Bounds;
use inferometer_report::escape;
use inferometer_runner::{Event, Observer, ProgressTick};

use crate::output;

/// The observer of every command: writes events to standard error.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other event, also of a later version, is printed as its own line"
)]
pub(crate) fn observer() -> Observer {
    let progress = Mutex::new(Shown::default());
    Arc::new(move |event| match event {
        Event::Progress(tick) => locked(&progress).update(&tick),
        Event::ProgressEnded => *locked(&progress) = Shown::default(),
        // A notice may have several lines; the others may quote a server.
        Event::Notice(text) => {
            for line in text.split('\n') {
                output::talk(&escape::terminal(line));
            }
        }
        other => output::talk(&escape::terminal(&other.to_string())),
    })
}

fn locked(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is shown of the progress of one warm-up or run.
#[derive(Default)]
struct Shown {
    bar: Option<ProgressBar>,
    ticks: u32,
}

impl Shown {
    fn update(&mut self, tick: &ProgressTick) {
        self.ticks += 1;
        let message = Event::Progress(*tick).to_string();
        if !std::io::stderr().is_terminal() {
            // Without a terminal, progress is printed once in this many ticks.
            if self.ticks.is_multiple_of(40) {
                output::talk(&message);
            }
            return;
        }
        let bar = self.bar.get_or_insert_with(|| bar(tick.bounds));
        let length = bar.length().unwrap_or(u64::MAX);
        let ended = tick.counts.ended();
        let position = if tick.bounds.requests.is_some() {
            ended
        } else {
            // Where a minimum number of requests must be reached too, the slower of the two counts.
            let by_number = match tick.bounds.requests_min {
                0 => length,
                least => length.saturating_mul(ended.min(least)) / least,
            };
            by_number.min(u64::try_from(tick.elapsed.as_millis()).unwrap_or(u64::MAX))
        };
        bar.set_position(position.min(length));
        bar.set_message(message);
    }
}

fn bar(bounds: Bounds) -> ProgressBar {
    let length = match (bounds.requests, bounds.release_before) {
        (Some(requests), _) => requests,
        (None, Some(end)) => end.as_nanos() / 1_000_000,
        (None, None) => 0,
    };
    let style = ProgressStyle::with_template("{bar:24} {percent:>3}%  {elapsed}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─");
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(4));
    bar.with_style(style).with_finish(ProgressFinish::AndClear)
}
