//! Events as terminal lines: a progress bar on a terminal, a line now and then elsewhere.
//!
//! A thread of its own writes them. A terminal that is stopped with Ctrl-S, or a pipe that nobody
//! reads, thus delays neither a run nor its storing.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use inferometer_model::plan::Bounds;
use inferometer_report::escape;
use inferometer_runner::{Event, Observer, ProgressTick};

use crate::output;

/// The observer of every command: events are written to standard error, in their order.
pub(crate) fn observer() -> Observer {
    let printer = PRINTER.get_or_init(Printer::start);
    Arc::new(|event| printer.print(event))
}

/// Waits until everything that happened before is written.
pub(crate) fn flush() {
    let Some(printer) = PRINTER.get() else { return };
    let (done, is_done) = mpsc::channel();
    if printer.jobs.send(Job::Confirm(done)).is_ok() {
        let _ = is_done.recv();
    }
}

static PRINTER: OnceLock<Printer> = OnceLock::new();

struct Printer {
    jobs: Sender<Job>,
    waiting: Arc<AtomicUsize>,
}

enum Job {
    Print(Event),
    Confirm(Sender<()>),
}

impl Printer {
    fn start() -> Self {
        let (jobs, received) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&waiting);
        std::thread::spawn(move || print_all(&received, &count));
        Self { jobs, waiting }
    }

    fn print(&self, event: Event) {
        /// Beyond so many, progress is not worth keeping.
        const WAITING_MAX: usize = 16;
        let is_progress = matches!(event, Event::Progress(_));
        if is_progress && WAITING_MAX < self.waiting.load(Ordering::Relaxed) {
            return;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _ = self.jobs.send(Job::Print(event));
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other event, also of a later version, is printed as its own line"
)]
fn print_all(jobs: &Receiver<Job>, waiting: &AtomicUsize) {
    let mut progress = Shown::default();
    for job in jobs {
        let event = match job {
            Job::Print(event) => event,
            Job::Confirm(done) => {
                let _ = done.send(());
                continue;
            }
        };
        waiting.fetch_sub(1, Ordering::Relaxed);
        match event {
            Event::Progress(tick) => progress.update(&tick),
            Event::ProgressEnded => progress = Shown::default(),
            // A notice may have several lines; the others may quote a server.
            Event::Notice(text) => {
                text.split('\n').for_each(|line| output::write_line(&escape::terminal(line)));
            }
            other => output::write_line(&escape::terminal(&other.to_string())),
        }
    }
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
                output::write_line(&message);
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
