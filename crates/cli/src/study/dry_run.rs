//! `--dry-run`: what a sweep, a suite or a matrix would measure, how long it would take and what it
//! would cost. Times come from the load, the plan, or a simulation in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::time::Duration;

use inferometer_model::deployment::DeploymentHow;
use inferometer_model::spec::{Extent, Load, LoadShape, Price, Rate, TargetSpec};
use inferometer_model::study::{
    Cell as MatrixCell, Level, Matrix, Prompts, Question, Search, StudySpec, Suite,
};
use inferometer_model::whole::to_u64;
use inferometer_model::{Plan, RequestId, Spec};
use inferometer_report::document::{
    Block, Cell, Columns, Document, Lead, Section, Table, Text, facts, terminal,
};
use inferometer_report::fmt::{self, NOTHING, count, counted};
use inferometer_report::terminal::Style;
use inferometer_runner::Session;
use inferometer_study::play::{known_points, server_name};
use inferometer_target::deploy::secret;
use inferometer_workload::{Inputs, make_plan};
use serde_json::{Map, Value, json};

use super::StudyPlan;
use super::file::HASH_PREFIX;
use super::matrix::needed_tokens;
use crate::arguments::{PageFormat, ResultArguments};
use crate::draft::seed_text;
use crate::failure::{Failure, Result};
use crate::signals::begin_session;
use crate::simulation::{Simulator, VirtualEngine};

const SECONDS_PER_HOUR: f64 = 3_600.0;

/// The page or the JSON document of what a study would do.
pub(super) fn outline(plan: &StudyPlan, results: &ResultArguments) -> Result<String> {
    // All conditions of a command have the price that was typed.
    let price = plan.study.conditions.first().and_then(|condition| condition.spec.price);
    let session = begin_session(usize::MAX, results.quiet)?;
    let outline = Outline::new(plan, price, &session, true)?;
    Ok(match results.page.format() {
        PageFormat::Json => format!("{:#}\n", outline.to_json()),
        PageFormat::Page | PageFormat::Full | PageFormat::Vllm => outline.page(),
    })
}

/// Reports what is about to be measured in a matrix.
pub(super) fn announce(plan: &StudyPlan, session: &Session, is_virtual: bool) -> Result<()> {
    if session.is_quiet {
        return Ok(());
    }
    let outline = Outline::new(plan, None, session, !is_virtual)?;
    plan.notes.iter().for_each(|note| session.talk(&format!("note: {note}")));
    plan.warnings.iter().for_each(|warning| session.talk(&format!("warning: {warning}")));
    session.talk(&format!("plan: {}", outline.total_line()));
    Ok(())
}

struct Outline<'a> {
    plan: &'a StudyPlan,
    study: &'a StudySpec,
    rows: Vec<Row<'a>>,
    /// Whether the embedded engine is simulated for the estimate. In virtual time it is not: the
    /// simulation is the measurement.
    is_simulated: bool,
    /// Planned runs; a search or a finer sweep may add others.
    runs: u64,
    /// All runs together with the rests, without the time to start servers.
    total: Estimate,
    /// `None` where nothing has a price.
    cost: Option<Cost>,
}

/// One run of a level of a sweep, of a level of a scenario of a suite, or of a cell of a matrix at all
/// of its levels.
#[derive(Default)]
struct Row<'a> {
    /// Name of the condition.
    name: &'a str,
    level: Option<Level>,
    estimate: Estimate,
    cell: Option<&'a MatrixCell>,
    cost: Option<f64>,
    /// Why the cell cannot be deployed, line by line.
    impossible: Option<&'a [String]>,
    /// Tokens that a prompt and its answer need, where the context is shorter.
    needed: Option<u32>,
}

impl<'a> Outline<'a> {
    fn new(
        plan: &'a StudyPlan,
        price: Option<Price>,
        session: &Session,
        is_simulated: bool,
    ) -> Result<Self> {
        let study = &plan.study;
        let mut each = study.repetition.runs.get();
        if study.sweep().is_some() {
            // All servers have the same levels.
            each = each.saturating_mul(u32::try_from(study.conditions.len()).unwrap_or(u32::MAX));
        }
        let rows = rows(plan, session, is_simulated)?;
        let possible = || rows.iter().filter(|row| row.impossible.is_none());
        let servers = possible().count() as u64 * u64::from(each);
        let (runs, lanes) = study.matrix().map_or((servers, 1), |matrix| {
            let presets = possible().filter_map(|row| row.cell).map(|cell| cell.preset);
            let lanes = presets.collect::<BTreeSet<_>>().len().min(matrix.lanes.get() as usize);
            (servers * matrix.levels.len() as u64, lanes as u64)
        });
        let rests = u32::try_from(servers.saturating_sub(lanes)).unwrap_or(u32::MAX);
        let rests = study.repetition.cool_down.saturating_mul(rests);
        let once = Estimate::sum(possible().map(|row| &row.estimate));
        let times = |number: Option<u64>| number.map(|it| it.saturating_mul(each.into()));
        let total = Estimate {
            requests: times(once.requests),
            input_tokens: times(once.input_tokens),
            output_tokens: times(once.output_tokens),
            time: once.time.map(|time| time.saturating_mul(each).saturating_add(rests)),
            ..once
        };
        let cost = match study.matrix() {
            Some(matrix) if matrix.presets.iter().any(|it| it.price_per_hour.is_some()) => {
                let cost = possible().try_fold(0.0, |sum, row| Some(sum + row.cost?));
                Some(Cost(vec![("time", cost.map(|cost: f64| cost * f64::from(each)))]))
            }
            _ => price.map(|price| cost(price, &total)),
        };
        Ok(Self { plan, study, rows, is_simulated, runs, total, cost })
    }

    fn page(&self) -> String {
        let title = match &self.study.question {
            Question::Suite(Suite { name, title, .. }) => {
                format!("suite {name}: {title} (dry run: nothing was sent)")
            }
            Question::Matrix(Matrix { name, title, .. }) => {
                format!("matrix {name}: {title} (dry run: nothing was deployed)")
            }
            Question::Sweep(_) | Question::Repeat => "sweep (dry run: nothing was sent)".to_owned(),
        };
        let mut blocks = Vec::new();
        if !self.rows.is_empty() {
            blocks.push(Block::Table(self.table()));
        }
        blocks.extend(self.suite_remarks().into_iter().map(Block::paragraph));
        let is_search = self.runs == 0 && self.study.sweep().is_some();
        let total = if is_search { String::new() } else { self.total_line() };
        let total = vec![Block::paragraph(total)];
        let sections = vec![Section::new("", blocks), Section::new("", total)];
        let lead = Lead { subject: self.facts(), ..Lead::default() };
        let document = Document { lead, ..Document::new(title, sections) };
        terminal::render(&document, Style::Plain)
    }

    fn table(&self) -> Table {
        let (is_suite, is_matrix) = (self.study.suite().is_some(), self.study.matrix().is_some());
        let runs = self.study.repetition.runs;
        let text = |text: Option<String>| Cell::text(text.unwrap_or_else(|| NOTHING.to_owned()));
        let number = |value: Option<u64>| text(value.map(count));
        let possible = |row: &Row<'_>, cell: Cell| {
            if row.impossible.is_some() { Cell::default() } else { cell }
        };
        let parallel = |get: fn(&MatrixCell) -> Option<u32>| {
            move |row: &&Row<'_>| number(row.cell.and_then(get).map(u64::from))
        };
        let has_parallel = self.rows.iter().any(|row| row.cell.is_some_and(|it| it.tp.is_some()));
        let has_prices = is_matrix && self.cost.is_some();
        let title = if is_suite { "scenario" } else { "cell" };
        let reasons = self.impossible();
        // The first column is repeated where the table is divided.
        let name = |row: &&Row<'_>| {
            let level = row.level.filter(|level| *level != Level::AsAsked);
            let level = level.map_or_else(String::new, |level| format!(" ({level})"));
            Cell::text(format!("{}{level}", row.name))
        };
        Columns::new(title, name)
            .only_if(is_suite || is_matrix)
            .right("level", |row| {
                Cell::text(row.level.map_or_else(String::new, |level| level.to_string()))
            })
            .only_if(!is_suite && !is_matrix)
            .right("tp", parallel(|cell| cell.tp))
            .only_if(has_parallel)
            .right("pp", parallel(|cell| cell.pp))
            .only_if(has_parallel)
            .right("runs", |_| Cell::text(runs.to_string()))
            .only_if(!is_matrix)
            .right("requests", |row| possible(row, number(row.estimate.requests)))
            .right("tokens in", |row| number(row.estimate.input_tokens))
            .only_if(is_suite)
            .right("tokens out", |row| number(row.estimate.output_tokens))
            .only_if(is_suite)
            .right("time", |row| possible(row, text(row.estimate.time.map(format_time))))
            .right("cost", |row| possible(row, text(row.cost.map(format_money))))
            .only_if(has_prices)
            .left("", |row| Cell::text(row.remark(&reasons)))
            .only_if(is_matrix)
            .table("", "", &self.rows)
            .noted(reasons.iter().zip(1..).map(|((subject, details), mark)| {
                let details: BTreeSet<&str> = details.iter().copied().collect();
                let more = match (details.first().filter(|it| !it.is_empty()), details.len()) {
                    (None, _) => String::new(),
                    (Some(only), 1) => format!(": {only}"),
                    (Some(first), _) => format!(", such as: {first}"),
                };
                format!("[{mark}] cannot be deployed: {subject}{more}")
            }))
    }

    /// Why cells cannot be deployed: what does not fit where, each with the details of its cells.
    fn impossible(&self) -> Vec<(&str, Vec<&str>)> {
        let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
        for (subject, detail) in self.rows.iter().filter_map(Row::impossible) {
            match found.iter_mut().find(|(known, _)| *known == subject) {
                Some((_, details)) => details.push(detail),
                None => found.push((subject, vec![detail])),
            }
        }
        found
    }

    /// What is the same in all runs, and what happens between them.
    fn facts(&self) -> Vec<(String, Text)> {
        let StudySpec { conditions, repetition, question, seed, .. } = self.study;
        let Spec { api, workload, load, .. } = &conditions[0].spec;
        let mut all: Vec<(&str, String)> = Vec::new();
        match question {
            Question::Suite(suite) => {
                all.push(("hash", suite.hash.clone()));
                if !suite.changes.is_empty() {
                    let changes = suite.changes.join(", ");
                    all.push(("changes", format!("{changes} (not the original suite)")));
                }
                all.push(("target", server_name(&conditions[0].spec)));
                let prompts = match suite.prompts {
                    Prompts::Fresh => "each scenario and level has its own",
                    Prompts::Same => "the same in all scenarios: the prefix cache may hold them",
                };
                all.push(("prompts", prompts.to_owned()));
            }
            Question::Matrix(matrix) => {
                let levels: Vec<String> = matrix.levels.iter().map(Level::to_string).collect();
                let times = counted(repetition.runs.get().into(), "time");
                all.push(("servers", deployed_by(&conditions[0].spec.target)));
                all.push(("loads", format!("{}, {times} each", levels.join(", "))));
                if 1 < matrix.lanes.get() {
                    all.push(("lanes", format!("{} presets are measured at once", matrix.lanes)));
                }
            }
            Question::Sweep(_) | Question::Repeat => {
                let names: Vec<&str> = conditions.iter().map(|it| it.name.as_str()).collect();
                let streamed = if workload.streaming { "streamed" } else { "not streamed" };
                let source = workload.source.kind().name();
                all.push(("servers", names.join(", ")));
                all.push(("workload", format!("{source}, {api}, {streamed}")));
                all.push(("warm-up", format_warm_up(load, "each run")));
            }
        }
        let is_matrix = self.study.matrix().is_some();
        if !repetition.cool_down.is_zero() {
            let parts = if is_matrix { "servers" } else { "runs" };
            all.push((
                "rest",
                format!("{} between two {parts}", fmt::duration(repetition.cool_down)),
            ));
        }
        if let Some(command) = &repetition.restart {
            let part = if self.study.suite().is_some() { "round" } else { "run" };
            all.push(("restart", format!("{command} (before each {part} but the first)")));
        }
        if let Some(stop_at) = &repetition.stop_at {
            let (quantity, share) = (&stop_at.quantity, stop_at.half_width * 100.0);
            all.push(("stop", format!("early, once {quantity} is known to ±{share} %")));
        }
        all.push(("seed", seed_text(*seed)));
        if let Some(Search { goals, from, at_most, resolution, runs_at_most }) =
            self.study.sweep().and_then(|sweep| sweep.find.as_ref())
        {
            let goals: Vec<String> = goals.iter().map(ToString::to_string).collect();
            let share = resolution * 100.0;
            let search = format!(
                "from {from}, to {at_most} at most, until it is known to {share} %; runs are chosen \
                 by earlier results, at most {runs_at_most} at a level"
            );
            all.extend([("goals", goals.join(", ")), ("search", search)]);
        }
        all.extend(self.plan.notes.iter().map(|note| ("note", note.clone())));
        all.extend(self.plan.warnings.iter().map(|warning| ("warning", warning.clone())));
        facts(all)
    }

    fn suite_remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.study.suite().is_some() && self.study.repetition.runs.get() != 1 {
            remarks.push("Requests, tokens and time are per run.".to_owned());
        }
        for Row { name, level, estimate, .. } in self.rows.iter().filter(|it| it.cell.is_none()) {
            let level = level.filter(|level| *level != Level::AsAsked);
            let level = level.map_or_else(String::new, |level| format!(", {level}"));
            if 0 < estimate.failing {
                remarks.push(format!(
                    "note: {} of the requests of `{name}`{level} would fail on this engine; they may \
                     be too long for it",
                    count(estimate.failing)
                ));
            }
            if estimate.known_by == KnownBy::TooLong {
                remarks.push(format!(
                    "note: `{name}`{level}: not simulated: too long; its counts are planned ones"
                ));
            }
        }
        remarks
    }

    fn has_more_runs(&self) -> bool {
        self.study.sweep().is_some_and(|sweep| sweep.fine.is_some() || sweep.find.is_some())
    }

    /// Runs, requests, tokens, time and cost in one sentence.
    fn total_line(&self) -> String {
        let Estimate { requests, input_tokens, output_tokens, time, known_by, .. } = self.total;
        let matrix = self.study.matrix();
        let cells = matrix.map_or_else(String::new, |matrix| {
            let impossible = match self.plan.foreseen.len() {
                0 => String::new(),
                some => format!(" ({some} of them cannot be deployed, which is a result too)"),
            };
            format!("{}{impossible}, ", counted(matrix.cells.len() as u64, "cell"))
        });
        let runs = counted(self.runs, "run");
        let most = if self.study.repetition.stop_at.is_some() { " at most" } else { "" };
        let tokens = self.study.suite().and(input_tokens.zip(output_tokens));
        let (input, output) = tokens.unzip();
        let amounts = [(requests, "requests"), (input, "input tokens"), (output, "output tokens")];
        let amounts: String = amounts
            .into_iter()
            .filter_map(|(number, what)| Some(format!(", {} {what}", count(number?))))
            .collect();
        let is_embedded =
            self.study.conditions.iter().all(|it| it.spec.target == TargetSpec::Embedded);
        let time = match time.map(format_time) {
            Some(time) if known_by == KnownBy::Simulation => {
                format!("{time} on the embedded engine (simulated)")
            }
            Some(time) if matrix.is_some() => {
                format!("{time} of load, plus the time to start and stop servers")
            }
            Some(time) => format!("{time} plus draining"),
            None if !self.is_simulated && is_embedded => {
                "in virtual time, without waiting".to_owned()
            }
            None if is_embedded => "its time is not known without running it".to_owned(),
            None => "its time depends on the server".to_owned(),
        };
        let more = if self.has_more_runs() { "; earlier results may add runs" } else { "" };
        let currency = matrix.and_then(|matrix| matrix.currency.as_ref());
        let currency = currency.map_or_else(String::new, |currency| format!(" {currency}"));
        let money = |amount: f64| format!("{}{currency}", format_money(amount));
        let start = if matrix.is_some() { ", without the time in which servers start" } else { "" };
        let cost = match self.cost.as_ref().map(|cost| (cost.whole(), cost.tokens())) {
            None => String::new(),
            Some((Some(whole), _)) => format!("; it would cost {}{start}", money(whole)),
            Some((None, Some(tokens))) => format!(
                "; its tokens would cost {}, and the cost of its time is not known",
                money(tokens)
            ),
            Some((None, None)) if self.is_simulated => "; its cost is not known".to_owned(),
            Some((None, None)) => "; --dry-run estimates the cost of real servers".to_owned(),
        };
        let hash = self.study.suite().map(|suite| format!(" Hash {}.", &suite.hash[..HASH_PREFIX]));
        let hash = hash.unwrap_or_default();
        format!("{cells}{runs}{most}{amounts}; {time}{more}{cost}.{hash}")
    }

    fn to_json(&self) -> Value {
        let Estimate { requests, input_tokens, output_tokens, time, known_by, .. } = self.total;
        let cost = self.cost.as_ref().and_then(Cost::whole);
        let rows: Vec<Value> = self.rows.iter().map(|row| self.row_json(row)).collect();
        let mut document = json!({
            "dry_run": true,
            "campaign": self.study,
            "runs": self.runs,
            "requests": requests,
            "time_s": time.map(|time| time.as_secs_f64()),
        });
        let more = match &self.study.question {
            Question::Sweep(_) | Question::Repeat => json!({
                "schema": "inferometer.sweep-outline/1",
                "levels": rows,
                "more_runs": self.has_more_runs(),
            }),
            Question::Suite(_) => {
                let is_simulated = known_by == KnownBy::Simulation;
                json!({
                    "schema": "inferometer.suite-outline/1",
                    "levels": rows,
                    "input_tokens": input_tokens,
                    "output_tokens": output_tokens,
                    "time_from": time.map(|_| if is_simulated { "simulation" } else { "schedule" }),
                    "cost": cost,
                    "cost_parts": self.cost.as_ref().map(|Cost(parts)| {
                        let parts = parts.iter().map(|(key, it)| ((*key).to_owned(), json!(it)));
                        parts.collect::<Map<_, _>>()
                    }),
                    "notes": self.plan.notes,
                })
            }
            Question::Matrix(matrix) => json!({
                "schema": "inferometer.matrix-outline/1",
                "cells": rows,
                "cost": cost,
                "currency": matrix.currency,
                "notes": self.plan.notes,
                "warnings": self.plan.warnings,
            }),
        };
        if let (Some(document), Value::Object(more)) = (document.as_object_mut(), more) {
            document.extend(more);
        }
        document
    }

    fn row_json(&self, row: &Row<'_>) -> Value {
        let Row { name, level, estimate, cell, cost, impossible, .. } = row;
        let Estimate { requests, input_tokens, output_tokens, time, failing, known_by } = *estimate;
        let time_s = time.map(|time| time.as_secs_f64());
        let simulated = known_by == KnownBy::Simulation;
        match &self.study.question {
            Question::Sweep(_) | Question::Repeat => {
                json!({ "level": level, "requests": requests, "time_s": time_s })
            }
            Question::Suite(_) => json!({
                "scenario": name,
                "level": level,
                "runs": self.study.repetition.runs,
                "requests": requests,
                "input_tokens": input_tokens,
                "output_tokens": output_tokens,
                "time_s": time_s,
                "failing": failing,
                "simulated": simulated,
                "too_long": known_by == KnownBy::TooLong,
            }),
            Question::Matrix(_) => json!({
                "name": name,
                "cell": cell,
                "requests": requests,
                "time_s": time_s,
                "failing": failing,
                "simulated": simulated,
                "cost": cost,
                "cannot_be": impossible,
            }),
        }
    }
}

/// How the servers of a matrix are deployed, with the first command.
fn deployed_by(first: &TargetSpec) -> String {
    let TargetSpec::Deployed(deployment) = first else { return "the embedded engine".to_owned() };
    let joined = |words: &[String]| secret::hidden(words).join(" ");
    let how = match &deployment.how {
        DeploymentHow::Process(process) => joined(&process.command),
        DeploymentHow::Container(container) => {
            format!("{} {}", container.image, joined(&container.arguments))
        }
        DeploymentHow::Commands(commands) => joined(std::slice::from_ref(&commands.up)),
    };
    format!("{}, the first by: {how}", deployment.how.kind())
}

/// The warm-up of a load; `when` is what follows it.
pub(crate) fn format_warm_up(load: &Load, when: &str) -> String {
    match (load.warm_up, load.warm_up_time) {
        (0, Duration::ZERO) => "none".to_owned(),
        (0, time) => format!("{} before {when}, not counted", fmt::duration(time)),
        (requests, _) => format!("{} before {when}, not counted", counted(requests, "request")),
    }
}

/// The planned points of the first repetition: of a sweep those of the first server, of a matrix those of
/// a cell together.
fn rows<'a>(plan: &'a StudyPlan, session: &Session, is_simulated: bool) -> Result<Vec<Row<'a>>> {
    let study = &plan.study;
    let (mut budget, mut written) = (BUDGET, if is_simulated { 0 } else { u64::MAX });
    let foreseen: BTreeMap<usize, &[String]> =
        plan.foreseen.iter().map(|(cell, reason)| (*cell, reason.as_slice())).collect();
    let mut rows: Vec<Row<'a>> = Vec::new();
    let mut cells: BTreeMap<usize, Vec<Estimate>> = BTreeMap::new();
    for point in known_points(study) {
        let index = point.condition as usize;
        let spec = study.spec_of(&point);
        let spec = spec.ok_or_else(|| Failure::internal("a condition that is not listed"))?;
        let row = |estimate| {
            let (name, level) = (study.conditions[index].name.as_str(), Some(point.level));
            Row { name, level, estimate, ..Row::default() }
        };
        match &study.question {
            Question::Matrix(_) if foreseen.contains_key(&index) => {}
            Question::Matrix(_) => {
                let estimate = Estimate::from_simulation(&spec, &mut written, session)?;
                cells.entry(index).or_default().push(estimate);
            }
            Question::Suite(_) => rows.push(row(Estimate::from_plan(&spec, &mut budget, session)?)),
            Question::Sweep(_) | Question::Repeat if index == 0 => {
                rows.push(row(Estimate::from_load(&spec)));
            }
            Question::Sweep(_) | Question::Repeat => {}
        }
    }
    let Some(matrix) = study.matrix() else { return Ok(rows) };
    for (index, (condition, cell)) in study.conditions.iter().zip(&matrix.cells).enumerate() {
        let estimate = cells.get(&index).map(|all| Estimate::sum(all.iter())).unwrap_or_default();
        let preset = matrix.presets.get(cell.preset as usize);
        let price = preset.and_then(|preset| preset.price_per_hour);
        let hours = estimate.time.map(|time| time.as_secs_f64() / SECONDS_PER_HOUR);
        let needed = needed_tokens(&condition.spec);
        rows.push(Row {
            name: &condition.name,
            level: None,
            estimate,
            cell: Some(cell),
            cost: price.zip(hours).map(|(price, hours)| price * hours),
            impossible: foreseen.get(&index).copied(),
            needed: needed.filter(|it| cell.context.is_some_and(|has| has < *it)),
        });
    }
    Ok(rows)
}

impl Row<'_> {
    /// Why it cannot be deployed: what does not fit where, and by how much.
    fn impossible(&self) -> Option<(&str, &str)> {
        let reason = self.impossible?.first().map_or("", |line| line.trim_end_matches(':'));
        Some(reason.split_once(": ").unwrap_or((reason, "")))
    }

    /// The number of its reason below the table, or what would fail.
    fn remark(&self, reasons: &[(&str, Vec<&str>)]) -> String {
        if let Some((subject, _)) = self.impossible() {
            let mark = reasons.iter().position(|(known, _)| *known == subject).unwrap_or(0);
            return format!("see [{}]", mark + 1);
        }
        let needed = self.needed.map_or_else(String::new, |needed| {
            format!(": a prompt and its answer need {} tokens", count(needed.into()))
        });
        match self.estimate.failing {
            0 => String::new(),
            failing => format!("{} of them would fail{needed}", count(failing)),
        }
    }
}

/// A time to the second.
fn format_time(time: Duration) -> String {
    fmt::duration(Duration::from_secs(time.as_secs() + u64::from(0 < time.subsec_nanos())))
}

/// An amount with at least two significant digits.
fn format_money(amount: f64) -> String {
    let (mut decimals, mut scaled) = (2, amount * 10.0);
    while 0.0 < scaled && scaled < 1.0 && decimals < 8 {
        scaled *= 10.0;
        decimals += 1;
    }
    fmt::decimals(amount, decimals)
}

/// The cost of each part that has a price; `None` where the amount is not known.
#[derive(Clone, Debug, PartialEq)]
struct Cost(Vec<(&'static str, Option<f64>)>);

/// What a total costs. GPUs are not counted before a server is measured.
fn cost(price: Price, total: &Estimate) -> Cost {
    #[expect(clippy::cast_precision_loss, reason = "an estimate for display")]
    let millions = |tokens: Option<u64>| tokens.map(|tokens| tokens as f64 / 1e6);
    let hours = total.time.map(|time| time.as_secs_f64() / SECONDS_PER_HOUR);
    let parts = [
        ("time", price.per_hour, hours),
        ("time", price.per_gpu_hour, None),
        ("input_tokens", price.per_million_input, millions(total.input_tokens)),
        ("output_tokens", price.per_million_output, millions(total.output_tokens)),
    ];
    let priced = parts.into_iter().filter_map(|(part, price, amount)| {
        price.map(|price| (part, amount.map(|amount| price * amount)))
    });
    Cost(priced.collect())
}

impl Cost {
    /// `None` where a part is not known.
    fn whole(&self) -> Option<f64> {
        self.0.iter().map(|(_, amount)| *amount).sum()
    }

    /// The cost of the tokens alone, where they have a price and are known.
    fn tokens(&self) -> Option<f64> {
        let mut parts = self.0.iter().filter(|(part, _)| *part != "time").peekable();
        parts.peek()?;
        parts.map(|(_, amount)| *amount).sum()
    }
}

/// With more requests at a level the plan is not made.
const PLANNED_REQUESTS_MAX: u64 = 1_000_000;
/// Limits of what the dry run of a matrix simulates: requests of one run, and tokens of all.
const MATRIX_REQUESTS_MAX: u64 = 100_000;
const MATRIX_TOKENS_MAX: u64 = 100_000_000;

/// What one run or several runs take. `None` where the server decides it.
#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    requests: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    time: Option<Duration>,
    /// Requests that the engine refuses or does not finish, such as those that are too long for it.
    failing: u64,
    known_by: KnownBy,
}

/// The source of an estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum KnownBy {
    #[default]
    Load,
    Plan,
    Simulation,
    /// There are too many requests to simulate it, or to count its tokens.
    TooLong,
}

/// Requests and time of a run, where the load alone decides them. Draining is not counted.
pub(super) fn expected(spec: &Spec) -> (Option<u64>, Option<Duration>) {
    let per_s = match &spec.load.shape {
        LoadShape::Open { rate: Rate::Steady { per_s }, .. } => Some(*per_s),
        LoadShape::Open { .. } | LoadShape::Closed { .. } => None,
    };
    let lasting = |requests: u64| {
        #[expect(clippy::cast_precision_loss, reason = "an estimate for display")]
        let seconds = per_s.map(|per_s| requests as f64 / per_s);
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    };
    let within = |time: Duration| per_s.map(|per_s| rounded(per_s * time.as_secs_f64()));
    match spec.load.extent {
        Extent::Whole => (None, None),
        Extent::Requests(requests) => (Some(requests.get()), lasting(requests.get())),
        Extent::Duration(time) => (within(time), Some(time)),
        Extent::UntilBoth { requests, duration } => (
            within(duration).map(|expected| expected.max(requests.get())),
            lasting(requests.get()).map(|time| time.max(duration)),
        ),
        Extent::UntilFirst { requests, duration } => (
            within(duration).map(|expected| expected.min(requests.get())),
            Some(lasting(requests.get()).map_or(duration, |time| time.min(duration))),
        ),
    }
}

impl Estimate {
    fn from_load(spec: &Spec) -> Self {
        let (requests, time) = expected(spec);
        Self { requests, time, ..Self::default() }
    }

    /// By the plan, and on the embedded engine by a simulation as far as the budget allows.
    fn from_plan(spec: &Spec, budget: &mut Work, session: &Session) -> Result<Self> {
        let load = Self { known_by: KnownBy::TooLong, ..Self::from_load(spec) };
        let foreseen = foreseen_work(spec);
        if PLANNED_REQUESTS_MAX < foreseen[0] {
            return Ok(load);
        }
        let inputs = Inputs::gather_without_words(spec)?;
        let (plan, _) = make_plan(spec, &inputs);
        let requests = plan.bounds().requests;
        // Only a file can be longer than was foreseen.
        let planned = match requests {
            None => Self { known_by: KnownBy::Plan, ..load },
            Some(many) if PLANNED_REQUESTS_MAX < many => Self { requests, ..load },
            Some(_) => {
                let (input, output) = tokens(plan.as_ref());
                let (input_tokens, output_tokens) = (Some(input), Some(output));
                Self { requests, input_tokens, output_tokens, known_by: KnownBy::Plan, ..load }
            }
        };
        let has_end = requests.is_some() || planned.time.is_some();
        if spec.target != TargetSpec::Embedded || !has_end {
            return Ok(planned);
        }
        let Self { requests, input_tokens, output_tokens, .. } = planned;
        let work = [
            requests.unwrap_or(foreseen[0]),
            input_tokens.unwrap_or(foreseen[1]),
            output_tokens.unwrap_or(foreseen[2]),
        ];
        if !spend(budget, with_warm_up(work, spec.load.warm_up)) {
            return Ok(Self { known_by: KnownBy::TooLong, ..planned });
        }
        let simulated = Self::simulate(spec, session)?;
        // A failed request reads nothing, but its tokens were sent.
        if simulated.failing == 0 {
            return Ok(simulated);
        }
        Ok(Self { input_tokens, output_tokens, ..simulated })
    }

    /// By the load, and on the embedded engine by a simulation, up to a number of `written` tokens.
    fn from_simulation(spec: &Spec, written: &mut u64, session: &Session) -> Result<Self> {
        let load = Self::from_load(spec);
        let is_short = load.requests.is_some_and(|requests| requests <= MATRIX_REQUESTS_MAX);
        if spec.target != TargetSpec::Embedded || !is_short || MATRIX_TOKENS_MAX < *written {
            return Ok(load);
        }
        let simulated = Self::simulate(spec, session)?;
        *written = written.saturating_add(simulated.output_tokens.unwrap_or(0));
        Ok(simulated)
    }

    /// By a simulation on an engine with an empty cache.
    fn simulate(spec: &Spec, session: &Session) -> Result<Self> {
        let mut simulator = Simulator { engine: VirtualEngine::new(&spec.engine)?, session };
        let ready = simulator.make_ready(spec)?;
        let warm_up = ready.warmed_up.map_or(Duration::ZERO, |facts| facts.took);
        let summary = simulator.summarize(ready)?;
        // A simulation that a signal cut has no true numbers.
        session.interruption.check()?;
        let time_s =
            (summary.duration_s + warm_up.as_secs_f64()) / spec.engine.speed.unwrap_or(1.0);
        Ok(Self {
            requests: Some(summary.requests()),
            input_tokens: Some(summary.input_tokens),
            output_tokens: Some(summary.output_tokens),
            time: Duration::try_from_secs_f64(time_s).ok(),
            failing: summary.requests() - summary.ok(),
            known_by: KnownBy::Simulation,
        })
    }

    /// All runs together.
    fn sum<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let sum = |get: fn(&Self) -> Option<u64>| {
            all.clone().try_fold(0_u64, |sum, one| Some(sum.saturating_add(get(one)?)))
        };
        let is_simulated = all.clone().all(|one| one.known_by == KnownBy::Simulation);
        let mut times = all.clone().map(|one| one.time);
        Self {
            requests: sum(|one| one.requests),
            input_tokens: sum(|one| one.input_tokens),
            output_tokens: sum(|one| one.output_tokens),
            time: times.try_fold(Duration::ZERO, |sum, time| Some(sum.saturating_add(time?))),
            failing: all.map(|one| one.failing).sum(),
            known_by: if is_simulated { KnownBy::Simulation } else { KnownBy::Load },
        }
    }
}

/// Input and output tokens of all requests of a plan that has an end.
fn tokens(plan: &dyn Plan) -> (u64, u64) {
    // What a request goes on from is input again. By turn: all that its session holds then.
    let mut before: BTreeMap<u16, u64> = BTreeMap::new();
    let (mut input, mut output) = (0_u64, 0_u64);
    let requests =
        (0..plan.bounds().requests.unwrap_or_default()).map_while(|id| plan.request(RequestId(id)));
    for request in requests {
        let (read, written) = (u64::from(request.input_tokens), u64::from(request.output_tokens));
        if request.turn == 0 {
            before.clear();
        }
        let context = request.session.context.and_then(|turn| before.get(&turn));
        let all = context.copied().unwrap_or_default().saturating_add(read);
        input = input.saturating_add(all);
        output = output.saturating_add(written);
        if request.continues {
            before.insert(request.turn, all.saturating_add(written));
        }
    }
    (input, output)
}

/// The work of a simulation: requests, input tokens, and output tokens, which take longer because each
/// has its own step.
type Work = [u64; 3];

/// What the dry run of a suite simulates at most, so that it is quick.
const BUDGET: Work = [200_000, 50_000_000, 5_000_000];
/// Requests and output tokens of each slot, where the engine decides them: more than most engines reach.
const REQUESTS_PER_S: f64 = 10.0;
const WRITTEN_PER_S: f64 = 200.0;

/// Whether the budget has enough left for the work, which is then subtracted.
fn spend(budget: &mut Work, work: Work) -> bool {
    let fits = budget.iter().zip(work).all(|(left, needed)| needed <= *left);
    if fits {
        budget.iter_mut().zip(work).for_each(|(left, needed)| *left -= needed);
    }
    fits
}

/// The work with a warm-up of the same requests.
fn with_warm_up([requests, read, written]: Work, warm_up: u64) -> Work {
    let more =
        |tokens: u64| tokens.saturating_add((tokens / requests.max(1)).saturating_mul(warm_up));
    [requests.saturating_add(warm_up), more(read), more(written)]
}

/// The work of a run before its plan is made. What a file decides is not counted.
fn foreseen_work(spec: &Spec) -> Work {
    let from_requests = |requests: u64| {
        // Tokens of a request, where nothing better is known.
        let tokens = requests.saturating_mul(1_000);
        [requests, tokens, tokens]
    };
    let exactly = |requests: NonZeroU64| from_requests(requests.get());
    let within = |time: Duration| {
        let seconds = time.as_secs_f64();
        let per_s = match &spec.load.shape {
            LoadShape::Closed { concurrency, .. } => {
                let busy_s = f64::from(concurrency.get()) * seconds;
                let [requests, read, _] = from_requests(rounded(busy_s * REQUESTS_PER_S));
                return [requests, read, rounded(busy_s * WRITTEN_PER_S)];
            }
            LoadShape::Open { rate: Rate::Steady { per_s }, .. } => *per_s,
            LoadShape::Open { rate: Rate::Ramp { segments, .. }, .. } => {
                let rates = segments.iter().flat_map(|it| [it.from_per_s, it.to_per_s]);
                rates.fold(0.0, f64::max)
            }
            LoadShape::Open { rate: Rate::Unlimited, .. } => f64::INFINITY,
            LoadShape::Open { rate: Rate::Recorded(_), .. } => 0.0,
        };
        from_requests(rounded(per_s * seconds))
    };
    match spec.load.extent {
        Extent::Whole => from_requests(0),
        Extent::Requests(requests) => exactly(requests),
        Extent::Duration(time) => within(time),
        Extent::UntilBoth { requests, duration } => within(duration).max(exactly(requests)),
        Extent::UntilFirst { requests, duration } => within(duration).min(exactly(requests)),
    }
}

fn rounded(number: f64) -> u64 {
    to_u64(number.round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_are_not_shown_as_zero() {
        let shown = [0.0, 2.5, 0.04, 0.000_42].map(format_money);
        assert_eq!(shown, ["0.00", "2.50", "0.040", "0.00042"]);
    }

    fn cost(price: &str, time: Option<Duration>, tokens: [Option<u64>; 2]) -> Cost {
        let [input_tokens, output_tokens] = tokens;
        let total = Estimate { input_tokens, output_tokens, time, ..Estimate::default() };
        super::cost(price.parse().unwrap(), &total)
    }

    #[test]
    fn time_and_tokens_are_paid_for() {
        let price = "3/h, 0.5/M-in,2/M-out";
        let half_an_hour = Some(Duration::from_mins(30));
        let whole = cost(price, half_an_hour, [Some(2_000_000), Some(250_000)]).whole().unwrap();
        assert!((whole - 3.0).abs() < 1e-12, "{whole}");
        let unknown_time = cost(price, None, [Some(1_000_000), Some(500_000)]);
        assert_eq!(unknown_time.whole(), None, "its duration is not known");
        assert_eq!(unknown_time.tokens(), Some(1.5));
        assert_eq!(cost(price, half_an_hour, [None, Some(1)]).tokens(), None);
        let input = cost("0.5/M-in", None, [Some(4_000_000), None]);
        assert_eq!((input.whole(), input.tokens()), (Some(2.0), Some(2.0)));
        let hours = cost("1/h", None, [Some(1), Some(1)]);
        assert_eq!(hours.tokens(), None, "they cost nothing");
    }

    #[test]
    fn what_is_spent_on_one_level_is_not_there_for_the_next() {
        let mut budget = BUDGET;
        let most = [150_000, 30_000_000, 3_000_000];
        assert!(spend(&mut budget, most));
        assert!(!spend(&mut budget, most));
        assert!(spend(&mut budget, [50_000, 20_000_000, 2_000_000]));
        assert!(!spend(&mut budget, [0, 0, 1]));
    }

    #[test]
    fn a_warm_up_asks_as_much_for_each_request() {
        assert_eq!(with_warm_up([10, 1_000, 100], 5), [15, 1_500, 150]);
        assert_eq!(with_warm_up([0, 0, 0], 5), [5, 0, 0]);
    }
}
