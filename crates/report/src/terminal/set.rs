//! The page of a set of runs: what was asked, the levels with their doubt, what they show, and the
//! reasons to doubt it.

mod bars;
mod energy;
pub(crate) mod findings;
mod levels;
mod matrix;
mod repeat;
mod suite;

use std::fmt::Write;

use inferometer_analysis::set::{Asked, ConditionSummary, QuestionKind, SetSummary, Subject};
use inferometer_analysis::{Verdict, Warning};
use inferometer_model::campaign::{Dimension, Order};
use inferometer_model::spec::Lengths;
use serde::Serialize;

use super::style::{Ink, Style};
use crate::escape::{terminal, terminal_line};
use crate::fmt::{count, percent};
use crate::lines::hanging;

/// Where the set is stored, so that a page can say so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SetFiles {
    pub set: String,
    /// `None` while something is left to measure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The HTML page, where one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// What else was made of a matrix: the same page as text, and its table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub markdown: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
}

/// A name may be a whole command line.
const NAME_CHARS_MAX: usize = 24;
const PROFILES_MAX: usize = 4;

/// The whole page. `style` is plain where nobody wants colour.
pub fn render(set: &SetSummary, files: &SetFiles, style: Style) -> String {
    let mut page = vec![simulated(set, style), head(set, style), verdict(set, style)];
    match (&set.suite, &set.matrix) {
        (Some(suite), _) => page.extend(suite::tables(set, suite, style)),
        (None, Some(matrix)) => page.extend(matrix::parts(set, matrix, style)),
        (None, None) => {
            page.extend(set.conditions.iter().flat_map(|one| of_condition(set, one, style)));
        }
    }
    page.push(findings::limits(set, style));
    page.push(notices(&set.warnings, style));
    page.push(self::files(files, style));
    let mut text: String =
        page.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n");
    if style == Style::Plain {
        // Padding at line ends is noise in a log.
        text = text.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    }
    text
}

fn of_condition(set: &SetSummary, condition: &ConditionSummary, style: Style) -> Vec<String> {
    let name = terminal_line(&condition.name, NAME_CHARS_MAX);
    // Who measured one server knows which.
    let name = if 1 < set.conditions.len() { Some(name.as_str()) } else { None };
    match set.asked.question {
        QuestionKind::Repeat | QuestionKind::Suite => repeat::tables(condition, name, style),
        QuestionKind::Sweep | QuestionKind::Search | QuestionKind::Matrix => vec![
            levels::throughputs(condition, name, style),
            levels::latencies(condition, name, style),
            energy::energy(condition, name, style),
            bars::bars(condition, name, style),
            findings::findings(condition, set.asked.dimension, name, style),
        ],
    }
}

/// Says first of all that no server was measured; nothing for a set that was.
fn simulated(set: &SetSummary, style: Style) -> String {
    if !set.simulated {
        return String::new();
    }
    let mut profiles: Vec<String> = Vec::new();
    let subjects = set.conditions.iter().filter_map(|condition| condition.subject.as_ref());
    for engine in subjects.filter_map(|subject| subject.simulated.as_ref()) {
        let profile = terminal_line(&engine.profile, NAME_CHARS_MAX);
        if !profiles.contains(&profile) {
            profiles.push(profile);
        }
    }
    // A matrix may have one for each cell.
    let more = profiles.len().saturating_sub(PROFILES_MAX);
    profiles.truncate(PROFILES_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let mut words = "SIMULATED in virtual time: no server was measured.".to_owned();
    // Where no run has ended, nothing is known of them.
    if !profiles.is_empty() {
        let _ = write!(words, " Profile {}{more}", profiles.join(", "));
    }
    style.paint(Ink::of_verdict(Verdict::Degraded), hanging("", 0, &words).trim_end()) + "\n"
}

fn head(set: &SetSummary, style: Style) -> String {
    let simulated = if set.simulated { "  ·  simulated" } else { "" };
    let title = format!(
        "Inferometer {}  ·  set {}{simulated}",
        terminal(&set.tool_version),
        terminal(&set.set)
    );
    let mut text = style.paint(Ink::Bold, &title) + "\n";
    if let Some(suite) = &set.suite {
        return text + &suite::head(set, suite) + &hanging("", 0, &manner(&set.asked, set.seed));
    }
    if let Some(matrix) = &set.matrix {
        return text + &matrix::head(set, matrix) + &hanging("", 0, &manner(&set.asked, set.seed));
    }
    text += &hanging("", 0, &question(set));
    text += &hanging("", 0, &manner(&set.asked, set.seed));
    for condition in &set.conditions {
        let subject = condition.subject.as_ref().map_or_else(|| "no run yet".to_owned(), subject);
        let name = terminal_line(&condition.name, NAME_CHARS_MAX);
        let head = if 1 < set.conditions.len() { format!("  {name}: ") } else { String::new() };
        text += &hanging(&head, head.chars().count(), &subject);
    }
    text
}

fn question(set: &SetSummary) -> String {
    let asked = &set.asked;
    let over = match asked.dimension {
        Some(Dimension::Rate) => "rates",
        Some(Dimension::Concurrency) => "concurrency",
        None => "",
    };
    let servers = match set.conditions.len() {
        1 => String::new(),
        several => format!(", {several} servers side by side"),
    };
    match asked.question {
        QuestionKind::Repeat => format!("the same experiment, repeated{servers}"),
        QuestionKind::Suite => "suite".to_owned(),
        QuestionKind::Matrix => format!("matrix of {} deployments", set.conditions.len()),
        QuestionKind::Sweep => format!("sweep of {over}{servers}"),
        QuestionKind::Search => {
            let goals: Vec<String> = asked.goals.iter().map(|goal| terminal(goal)).collect();
            format!(
                "search for the highest {} where {}{servers}",
                singular(asked),
                goals.join(", ")
            )
        }
    }
}

const fn singular(asked: &Asked) -> &'static str {
    match asked.dimension {
        Some(Dimension::Rate) => "rate",
        Some(Dimension::Concurrency) | None => "concurrency",
    }
}

fn manner(asked: &Asked, seed: u64) -> String {
    let runs = match (&asked.stop_at, asked.runs) {
        (Some(target), most) => format!(
            "runs until {} is known to ±{}, {most} at most",
            terminal(&target.quantity),
            percent(target.half_width),
        ),
        (None, runs) if asked.question == QuestionKind::Repeat => format!("{runs} runs"),
        (None, 1) if asked.question == QuestionKind::Suite => "played once".to_owned(),
        (None, rounds) if asked.question == QuestionKind::Suite => {
            format!("played {rounds} times from beginning to end")
        }
        (None, 1) => "one run each".to_owned(),
        (None, runs) => format!("{runs} runs each"),
    };
    let order = match (asked.question, asked.order) {
        // There is nothing to put in order.
        (QuestionKind::Repeat, _) | (QuestionKind::Suite, Order::Listed) => "",
        (QuestionKind::Suite, Order::Interleaved) => ", shuffled in every round",
        (QuestionKind::Sweep | QuestionKind::Search | QuestionKind::Matrix, Order::Interleaved) => {
            ", interleaved"
        }
        (QuestionKind::Sweep | QuestionKind::Search | QuestionKind::Matrix, Order::Listed) => {
            ", in the order of the list"
        }
    };
    let rest = if 0.0 < asked.cool_down_s {
        format!(", {} s of rest between runs", asked.cool_down_s)
    } else {
        String::new()
    };
    let restarted = if asked.restarted { ", server restarted between them" } else { "" };
    format!("{runs}{order}{rest}{restarted}, seed {seed}")
}

/// What it was asked, at which server.
fn subject(subject: &Subject) -> String {
    let input = subject.input_tokens.as_ref().map_or_else(
        || format!(", prompts of the {}", subject.source.name()),
        |input| format!(", {} tokens in", length(input)),
    );
    let output = subject
        .output_tokens
        .as_ref()
        .map_or_else(String::new, |output| format!(", {} out", length(output)));
    format!("{}{input}{output}", subject_of(subject))
}

/// The server alone.
fn subject_of(subject: &Subject) -> String {
    let (api, model) = (subject.api, terminal_line(&subject.model, 60));
    format!("{api} of `{model}` at {}", target(subject))
}

fn target(subject: &Subject) -> String {
    match (subject.embedded, &subject.simulated, subject.engine_speed) {
        (_, Some(engine), _) => format!("the simulated engine: {}", terminal(&engine.engine)),
        (true, None, None) => "the embedded engine".to_owned(),
        (true, None, Some(speed)) => {
            format!("the embedded engine, SPED UP {speed} times: all times are shorter")
        }
        (false, None, _) => terminal(&subject.target),
    }
}

fn length(lengths: &Lengths) -> String {
    lengths.fixed().map_or_else(|| lengths.to_string(), |length| count(length.into()))
}

fn verdict(set: &SetSummary, style: Style) -> String {
    let word = match set.verdict {
        Verdict::Valid => "VALID",
        Verdict::Degraded => "DEGRADED",
        Verdict::Invalid => "INVALID",
    };
    let of = |verdict| set.points.iter().filter(|point| point.verdict == verdict).count() as u64;
    let runs = match set.points.len() {
        1 => "1 run".to_owned(),
        several => format!("{} runs", count(several as u64)),
    };
    let mut text = format!("{}  {runs}", style.paint(Ink::of_verdict(set.verdict), word));
    for (verdict, words) in [
        (Verdict::Degraded, "with a reservation"),
        (Verdict::Invalid, "invalid and left out of every mean"),
    ] {
        let found = of(verdict);
        if 0 < found {
            let _ = write!(text, ", {} {words}", count(found));
        }
    }
    text + "\n"
}

fn notices(notices: &[Warning], style: Style) -> String {
    let mut text = String::new();
    for notice in notices {
        let key = style.paint(Ink::of_severity(notice.severity), notice.severity.key());
        let indent = notice.severity.key().len() + 2;
        text += &hanging(&format!("{key}: "), indent, &terminal(&notice.text));
        text += &hanging("  → ", 4, &terminal(&notice.remedy));
    }
    text
}

fn files(files: &SetFiles, style: Style) -> String {
    let mut text = format!("{}  {}\n", style.paint(Ink::Bold, "files"), terminal(&files.set));
    let SetFiles { summary, report, markdown, table, .. } = files;
    for file in [summary, report, markdown, table].into_iter().flatten() {
        let _ = writeln!(text, "       {}", terminal(file));
    }
    text
}
