//! What a sweep, a suite or a matrix would do: `--dry-run`.

mod estimate;
mod matrix;
mod suite;
mod sweep;

use std::time::Duration;

use inferometer_model::campaign::{CampaignSpec, Question};
use inferometer_report::document::{Block, Cell, Document, Lead, Section, Table, plain, terminal};
use inferometer_report::fmt::{NOTHING, count, counted};
use inferometer_report::terminal::Style;

use self::estimate::Estimate;
pub(crate) use self::estimate::expected;
pub(crate) use self::matrix::announce;
use crate::arguments::{PageFormat, ResultArguments};
use crate::failure::Failure;
use crate::signals::begin_session;
use crate::study::StudyPlan;
use crate::suite::Price;

/// The page or the JSON document of what a study would do.
pub(crate) fn outline(
    plan: &StudyPlan,
    price: Option<Price>,
    results: &ResultArguments,
) -> Result<String, Failure> {
    let is_json = matches!(results.page.format(), PageFormat::Json);
    let session = || begin_session(usize::MAX, results.quiet);
    Ok(match &plan.campaign.question {
        Question::Suite(suite) => {
            let outline = suite::Outline::new(plan, suite, price, &session()?)?;
            if is_json { outline.document() } else { outline.page() }
        }
        Question::Matrix(matrix) => {
            let outline = matrix::Outline::new(plan, matrix, &session()?, true)?;
            if is_json { outline.document() } else { outline.page() }
        }
        Question::Sweep(sweep) => {
            let outline = sweep::Outline::new(&plan.campaign, sweep);
            if is_json { outline.document() } else { outline.page(&plan.notes) }
        }
        Question::Repeat => return Err(Failure::internal("repeated runs have no outline")),
    })
}

/// A page of facts, notes, a table and a sentence about the whole.
struct Page {
    title: String,
    facts: Vec<(&'static str, String)>,
    table: Table,
    remarks: Vec<String>,
    total: String,
}

impl Page {
    fn into_terminal(self) -> String {
        let table = (!self.table.rows.is_empty()).then_some(Block::Table(self.table));
        let remarks = self.remarks.into_iter().map(Block::paragraph);
        let sections = vec![
            Section::new("", table.into_iter().chain(remarks).collect()),
            Section::new("", vec![Block::paragraph(self.total)]),
        ];
        let facts = self.facts.into_iter();
        let subject = facts.map(|(key, text)| (key.to_owned(), plain(text))).collect();
        let lead = Lead { subject, ..Lead::default() };
        let document = Document { lead, ..Document::new(self.title, sections) };
        terminal::render(&document, Style::Plain)
    }
}

fn noted<'a>(
    key: &'static str,
    lines: &'a [String],
) -> impl Iterator<Item = (&'static str, String)> + 'a {
    lines.iter().map(move |line| (key, line.clone()))
}

/// A count, or a dash where the server decides it.
fn count_cell(value: Option<u64>) -> Cell {
    Cell::text(value.map_or_else(|| NOTHING.to_owned(), count))
}

fn time_cell(time: Option<Duration>) -> Cell {
    Cell::text(time.map_or_else(|| NOTHING.to_owned(), time_words))
}

/// Runs and requests at the beginning of a sentence: `3 runs at most, 12 requests`.
fn runs_words(campaign: &CampaignSpec, runs: u64, requests: Option<u64>) -> String {
    let most = if campaign.repetition.stop_at.is_some() { " at most" } else { "" };
    let requests = requests.map_or_else(String::new, |it| format!(", {} requests", count(it)));
    format!("{}{most}{requests}", counted(runs, "run"))
}

/// What happens between the runs of a set, when they stop early, and the seed.
fn between_runs(campaign: &CampaignSpec) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let repetition = &campaign.repetition;
    if !repetition.cool_down.is_zero() {
        facts.push(("rest", format!("{:?} between two runs", repetition.cool_down)));
    }
    if let Some(command) = &repetition.restart {
        let when = match campaign.question {
            Question::Suite(_) => "before each round",
            Question::Repeat | Question::Sweep(_) | Question::Matrix(_) => "before each run",
        };
        facts.push(("restart", format!("{command} ({when} but the first)")));
    }
    if let Some(stop_at) = &repetition.stop_at {
        let share = stop_at.half_width * 100.0;
        facts.push(("stop", format!("early, once {} is known to ±{share} %", stop_at.quantity)));
    }
    facts.push(("seed", campaign.seed.to_string()));
    facts
}

/// A time to the second.
fn time_words(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(0 < time.subsec_nanos());
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} m {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} m"),
    }
}

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

/// All runs together with the rests between them.
fn total<'a>(
    campaign: &CampaignSpec,
    each: u32,
    rests: u64,
    estimates: impl Iterator<Item = &'a Estimate>,
) -> Estimate {
    let rests = u32::try_from(rests).unwrap_or(u32::MAX);
    let rests = campaign.repetition.cool_down.saturating_mul(rests);
    let mut total = estimates.fold(Estimate::none(), Estimate::plus).times(each);
    total.time = total.time.map(|time| time.saturating_add(rests));
    total
}
