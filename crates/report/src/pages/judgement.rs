//! The page of a client that was judged, and its badge.

use inferometer_analysis::client_judgement::{ComparedFigure, Grade, LoadJudgement, Reason};

use super::prelude::*;
use crate::texts::filled;

/// A client and the loads that it was judged on.
#[derive(Debug)]
pub struct JudgedClient<'a> {
    pub title: &'a str,
    pub command: String,
    pub loads: &'a [LoadJudgement],
    /// Whether each load is one answer of the conformance corpus.
    pub is_conformance: bool,
}

const TEXT_CHARS_MAX: usize = 300;

/// Its grade, a row for each load, and the figures of each.
pub fn page(client: &JudgedClient<'_>) -> Document {
    let grade = client.loads.iter().map(|it| it.grade).max().unwrap_or(Grade::A);
    let good = client.loads.iter().filter(|it| it.grade == Grade::A).count() as u64;
    let late = client.loads.iter().filter(|it| it.is_untimed).count() as u64;
    let all = counted(client.loads.len() as u64, "load");
    let word = format!("Grade {grade}");
    let text = plain(format!("{} of {all} without a reason against it.", count(good)));
    let lead = Lead {
        subject: facts([
            ("Client", Some(terminal_line(client.title, TEXT_CHARS_MAX))),
            ("Command", Some(terminal_line(&client.command, 4 * TEXT_CHARS_MAX))),
        ]),
        verdict: Some(Badge { mood: mood(grade), word, text, points: Vec::new() }),
        ..Lead::default()
    };
    let mut table = summary(client);
    if 0 < late {
        table = table.noted([fill("not-graded", &[&counted(late, "load")])]);
    }
    let mut sections = vec![Section::new("Loads", vec![table.into()])];
    if !client.is_conformance {
        let with_figures = client.loads.iter().filter(|it| !it.figures.is_empty());
        sections
            .push(Section::new("Reported and true figures", with_figures.map(figures).collect()));
    }
    sections.push(Section::new("How it is graded", vec![Block::List(GRADES.map(plain).to_vec())]));
    Document {
        lead,
        ..Document::new(
            format!("Judgement of {}", terminal_line(client.title, TEXT_CHARS_MAX)),
            sections,
        )
    }
}

const GRADES: [&str; 5] = [
    "A: counts are exact, and times and rates are within 10 % or 2 ms of the truth.",
    "B: a time or a rate is off by up to half, or a count is not reported.",
    "C: a time or a rate is off by more, the load was not delivered, or failures are not reported.",
    "D: requests or tokens are miscounted, or a legal stream gave no result.",
    "F: failed answers are counted as successes.",
];

fn summary(client: &JudgedClient<'_>) -> Table {
    let counted = |of: fn(&LoadJudgement) -> Option<u64>| {
        move |it: &&LoadJudgement| of(it).map_or_else(|| Cell::text(NOTHING), Cell::count)
    };
    Columns::new("Load", |it: &&LoadJudgement| {
        Cell::text(&it.load.name).detailed(it.load.about.clone())
    })
    .left("Grade", |it| Cell { mood: Some(mood(it.grade)), ..Cell::text(it.grade.to_string()) })
    .right("Sent", counted(|it| Some(it.load.truth.ok + it.load.truth.failed)))
    .right("Answered well", counted(|it| Some(it.load.truth.ok)))
    .right("Reported as success", counted(|it| it.load.reported.as_ref().ok()?.completed))
    .right("Reported as failed", counted(|it| it.load.reported.as_ref().ok()?.failed))
    .right("In flight", |it| {
        Cell::text(format!("{} of {}", fmt::compact(it.load.truth.in_flight), it.load.concurrency))
    })
    .only_if(!client.is_conformance)
    .right("Tokens sent", counted(|it| it.load.truth.result.output_tokens))
    .right("Tokens reported", counted(|it| it.load.reported.as_ref().ok()?.output_tokens))
    .left("Reasons", |it| Cell::text(reasons(&it.reasons)))
    .table("loads", "Loads", client.loads)
}

fn reasons(reasons: &[Reason]) -> String {
    reasons.iter().map(|it| terminal_line(&it.text, TEXT_CHARS_MAX)).join("; ")
}

fn figures(judged: &LoadJudgement) -> Block {
    let table = Columns::new("Figure", |it: &ComparedFigure| Cell::text(&it.figure))
        .right("Reported", |it| Cell::number(number(it.reported), it.reported))
        .right("True", |it| Cell::number(number(it.truth), it.truth))
        .right("Error", |it| {
            it.error().map_or_else(
                || Cell::text(NOTHING),
                |share| Cell::number(format!("{} %", signed_percent(share)), share),
            )
        })
        .left("Unit", |it| Cell::text(it.unit))
        .table(
            format!("figures-{}", judged.load.name),
            judged.load.name.clone(),
            judged.figures.iter().cloned(),
        );
    table.noted([judged.load.about.clone()]).into()
}

fn mood(grade: Grade) -> Mood {
    match grade {
        Grade::A => Mood::Good,
        Grade::B => Mood::Note,
        Grade::C => Mood::Doubt,
        Grade::D | Grade::F => Mood::Bad,
    }
}

/// A badge for the page of a project.
pub fn badge(grade: Grade) -> String {
    let colour = match grade {
        Grade::A => "#2e7d32",
        Grade::B => "#558b2f",
        Grade::C => "#b26a00",
        Grade::D | Grade::F => "#b3261e",
    };
    let title = escape::xml(&format!("judged by Inferometer: {grade}"));
    filled(include_str!("badge.svg"), &[&title, &colour, &grade])
}
