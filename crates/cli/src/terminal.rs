//! Events as terminal lines, or as JSON for programs; and progress as a bar or a page of figures on a
//! terminal, a line per second elsewhere.
//!
//! A thread of its own writes them. A terminal that is stopped with Ctrl-S, or a pipe without a
//! reader, thus delays neither a run nor its storing.

mod live;

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};

use inferometer_report::escape;
use inferometer_runner::{Event, Observer, ProgressTick};

use crate::arguments::{Command, ProgressStyle, ResultArguments};
use crate::output;
use live::LiveView;

/// How progress is shown from now on; `None` leaves it to the terminal.
pub(crate) fn show_progress(command: &Command) {
    if let Some(style) = command.results().and_then(ResultArguments::progress) {
        let _ = STYLE.set(style);
    }
    let is_study = matches!(command, Command::Suite(_) | Command::Sweep(_) | Command::Matrix(_));
    IS_STUDY.store(is_study, Ordering::Relaxed);
}

static STYLE: OnceLock<ProgressStyle> = OnceLock::new();
static IS_STUDY: AtomicBool = AtomicBool::new(false);

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
    progress.view.is_study = IS_STUDY.load(Ordering::Relaxed);
    for job in jobs {
        let event = match job {
            Job::Print(event) => event,
            Job::Confirm(done) => {
                progress.clear();
                let _ = done.send(());
                continue;
            }
        };
        waiting.fetch_sub(1, Ordering::Relaxed);
        if STYLE.get() == Some(&ProgressStyle::Json) {
            output::write_line(&event.to_json().to_string());
            continue;
        }
        match event {
            Event::Progress(tick) => progress.update(&tick),
            Event::ProgressEnded => progress.end(),
            // A notice may have several lines; the others may quote a server.
            Event::Notice(text) => {
                progress.clear();
                text.split('\n').for_each(|line| output::write_line(&escape::terminal(line)));
            }
            other => {
                progress.clear();
                output::write_line(&escape::terminal(&other.to_string()));
            }
        }
    }
}

/// Ticks in a second.
const TICKS_PER_S: u32 = 4;

/// What is shown of progress.
#[derive(Default)]
struct Shown {
    view: LiveView,
    ticks: u32,
    /// Lines of the terminal that the view takes now.
    height: u16,
}

impl Shown {
    fn update(&mut self, tick: &ProgressTick) {
        self.ticks += 1;
        let is_second = self.ticks.is_multiple_of(TICKS_PER_S);
        if is_second {
            self.view.remember(tick);
        }
        let is_terminal = std::io::stderr().is_terminal();
        match STYLE.get() {
            None if is_terminal => self.draw(tick, self.view.is_long(tick)),
            Some(ProgressStyle::Live) => self.draw(tick, true),
            Some(ProgressStyle::Bar) => self.draw(tick, false),
            None | Some(ProgressStyle::Lines) if is_second => {
                output::write_line(&tick.to_string());
            }
            None | Some(ProgressStyle::Lines | ProgressStyle::Json | ProgressStyle::None) => {}
        }
    }

    /// Draws over what is shown, in one write.
    fn draw(&mut self, tick: &ProgressTick, is_live: bool) {
        let width = terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |size| size.0.0);
        let lines = if is_live { self.view.page(tick, width) } else { live::bar(tick, width) };
        let text = self.erasure() + &lines.concat();
        self.height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// Removes what is shown, so that a line can be written.
    fn clear(&mut self) {
        if 0 < self.height {
            let erasure = self.erasure();
            let _ = std::io::stderr().lock().write_all(erasure.as_bytes());
            self.height = 0;
        }
    }

    fn end(&mut self) {
        self.clear();
        self.ticks = 0;
        self.view.end_run();
    }

    /// Moves to the first of its lines, and erases all that follows.
    fn erasure(&self) -> String {
        if self.height == 0 { String::new() } else { format!("\x1b[{}A\x1b[J", self.height) }
    }
}
