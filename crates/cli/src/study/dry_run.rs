//! `--dry-run`: what a sweep, a suite or a matrix would do, how long it would take and what it would
//! cost. Times come from the load, the plan, or a simulation in virtual time.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use inferometer_model::deployment::DeploymentHow;
use inferometer_model::spec::{Extent, LoadShape, Rate, TargetSpec};
use inferometer_model::study::{
    Cell as MatrixCell, Level, Matrix, Point, Prompts, Question, Search, Stage, StudySpec, Suite,
};
use inferometer_model::{Plan, RequestId, Spec};
use inferometer_report::document::{
    Block, Cell, Columns, Document, Lead, Section, Table, plain, terminal,
};
use inferometer_report::fmt::{NOTHING, count, counted};
use inferometer_report::terminal::Style;
use inferometer_study::play::{known_specs, server_name};
use inferometer_study::{Reading, Study};
use inferometer_target::deploy::secret;
use inferometer_workload::{Inputs, make_plan};
use serde_json::{Map, Value, json};

use super::StudyPlan;
use super::file::HASH_PREFIX;
use super::matrix::needed_tokens;
use crate::arguments::{PageFormat, ResultArguments};
use crate::failure::Failure;
use crate::live::Session;
use crate::signals::begin_session;
use crate::simulation::VirtualEngine;
use crate::simulator::Simulator;

const SECONDS_PER_HOUR: f64 = 3_600.0;
const TOKENS_PER_PRICE: f64 = 1e6;
const MONEY_DECIMALS_MAX: usize = 8;

/// The page or the JSON document of what a study would do.
pub(super) fn outline(
    plan: &StudyPlan,
    price: Option<Price>,
    results: &ResultArguments,
) -> Result<String, Failure> {
    let session = begin_session(usize::MAX, results.quiet)?;
    let outline = Outline::new(plan, price, &session, true)?;
    Ok(match results.page.format() {
        PageFormat::Json => format!("{:#}\n", outline.document()),
        PageFormat::Page | PageFormat::Vllm => outline.page(),
    })
}

/// Reports what is about to be measured in a matrix.
pub(super) fn announce(
    plan: &StudyPlan,
    session: &Session,
    is_virtual: bool,
) -> Result<(), Failure> {
    let Some(matrix) = plan.study.matrix() else { return Ok(()) };
    if session.is_quiet {
        return Ok(());
    }
    let outline = Outline::new(plan, None, session, !is_virtual)?;
    plan.notes.iter().for_each(|note| session.talk(&format!("note: {note}")));
    plan.warnings.iter().for_each(|warning| session.talk(&format!("warning: {warning}")));
    session.talk(&format!("plan: {}", outline.matrix_total(matrix)));
    Ok(())
}

struct Outline<'a> {
    plan: &'a StudyPlan,
    study: &'a StudySpec,
    rows: Vec<Row<'a>>,
    /// Whether the embedded engine is simulated. In virtual time it is not: the simulation is the
    /// measurement.
    is_simulated: bool,
    /// Planned runs; a search or a finer sweep may add others.
    runs: u64,
    /// All runs together with the rests, without the time to start servers.
    total: Estimate,
    cost: Option<Cost>,
}

/// A level of a sweep, a level of a scenario of a suite, or a cell of a matrix at all its levels; for
/// one run.
struct Row<'a> {
    /// Of the condition.
    name: &'a str,
    level: Level,
    estimate: Estimate,
    cell: Option<&'a MatrixCell>,
    cost: Option<f64>,
    /// Why it cannot be deployed, line by line.
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
    ) -> Result<Self, Failure> {
        let study = &plan.study;
        let mut each = study.repetition.runs.get();
        let rows = match &study.question {
            Question::Sweep(sweep) => {
                // The other servers have the same levels.
                let servers = study.conditions.len();
                each = each.saturating_mul(u32::try_from(servers).unwrap_or(u32::MAX));
                let specs = known_specs(study).into_iter().step_by(servers);
                let row = |(level, spec): (&Level, Spec)| {
                    Row::new("", *level, Estimate::from_load(&spec))
                };
                sweep.levels.iter().zip(specs).map(row).collect()
            }
            Question::Suite(suite) => suite_rows(study, suite, session)?,
            Question::Matrix(matrix) => matrix_rows(plan, matrix, session, is_simulated)?,
            Question::Repeat => return Err(Failure::internal("repeated runs have no outline")),
        };
        let possible = || rows.iter().filter(|row| row.impossible.is_none());
        let servers = possible().count() as u64 * u64::from(each);
        let (runs, rests) = if let Some(matrix) = study.matrix() {
            let presets = possible().filter_map(|row| row.cell).map(|cell| cell.preset);
            let lanes = presets.collect::<BTreeSet<_>>().len().min(matrix.lanes.get() as usize);
            (servers * matrix.levels.len() as u64, servers.saturating_sub(lanes as u64))
        } else {
            (servers, servers.saturating_sub(1))
        };
        let rests = u32::try_from(rests).unwrap_or(u32::MAX);
        let rests = study.repetition.cool_down.saturating_mul(rests);
        let sum = possible().map(|row| &row.estimate).fold(Estimate::NONE, Estimate::plus);
        let mut total = sum.times(each);
        total.time = total.time.map(|time| time.saturating_add(rests));
        let cost = if study.matrix().is_some() {
            let cost = possible().try_fold(0.0, |sum, row| Some(sum + row.cost?));
            Some(Cost(vec![("time", cost.map(|cost: f64| cost * f64::from(each)))]))
        } else {
            price.map(|price| price.cost(&total))
        };
        Ok(Self { plan, study, rows, is_simulated, runs, total, cost })
    }

    fn page(&self) -> String {
        let title = match &self.study.question {
            Question::Suite(Suite { name, title, .. }) => {
                format!("suite {name}: {title} (nothing was sent)")
            }
            Question::Matrix(Matrix { name, title, .. }) => {
                format!("matrix {name}: {title} (nothing was deployed)")
            }
            Question::Sweep(_) | Question::Repeat => "sweep (nothing was sent)".to_owned(),
        };
        let (facts, remarks, total) = match &self.study.question {
            Question::Suite(suite) => {
                (self.suite_facts(suite), self.suite_remarks(), self.suite_total(suite))
            }
            Question::Matrix(matrix) => {
                (self.matrix_facts(matrix), Vec::new(), self.matrix_total(matrix))
            }
            Question::Sweep(_) | Question::Repeat => {
                (self.sweep_facts(), Vec::new(), self.sweep_total())
            }
        };
        let table = self.table();
        let table = (!table.rows.is_empty()).then_some(Block::Table(table));
        let sections = vec![
            Section::new(
                "",
                table.into_iter().chain(remarks.into_iter().map(Block::paragraph)).collect(),
            ),
            Section::new("", vec![Block::paragraph(total)]),
        ];
        let notes = self.plan.notes.iter().map(|note| ("note", note.clone()));
        let warnings = self.plan.warnings.iter().map(|warning| ("warning", warning.clone()));
        let facts = facts.into_iter().chain(notes).chain(warnings);
        let subject = facts.map(|(key, text)| (key.to_owned(), plain(text))).collect();
        let lead = Lead { subject, ..Lead::default() };
        let document = Document { lead, ..Document::new(title, sections) };
        terminal::render(&document, Style::Plain)
    }

    fn table(&self) -> Table {
        let runs = self.study.repetition.runs;
        let level = |row: &&Row<'_>| Cell::text(row.level.to_string());
        let number =
            |value: Option<u64>| Cell::text(value.map_or_else(|| NOTHING.to_owned(), count));
        let name = |row: &&Row<'_>| Cell::text(row.name);
        let parallel = |get: fn(&MatrixCell) -> Option<u32>| {
            move |row: &&Row<'_>| number(row.cell.and_then(get).map(u64::from))
        };
        let has_parallel = self.rows.iter().any(|row| row.cell.is_some_and(|it| it.tp.is_some()));
        let columns = match &self.study.question {
            Question::Suite(_) => Columns::new("scenario", name).right("level", |row| {
                if row.level == Level::AsAsked { Cell::default() } else { level(row) }
            }),
            Question::Matrix(_) => Columns::new("cell", name),
            Question::Sweep(_) | Question::Repeat => Columns::number("level", level),
        };
        let is_suite = self.study.suite().is_some();
        let is_matrix = self.study.matrix().is_some();
        let possible = |row: &Row<'_>, cell: Cell| {
            if row.impossible.is_some() { Cell::default() } else { cell }
        };
        let text = |text: Option<String>| Cell::text(text.unwrap_or_else(|| NOTHING.to_owned()));
        columns
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
            .only_if(self.has_prices())
            .left("", |row| Cell::text(row.remark()))
            .only_if(is_matrix)
            .table("", "", &self.rows)
    }

    fn has_prices(&self) -> bool {
        let presets = self.study.matrix().map(|matrix| &matrix.presets[..]).unwrap_or_default();
        presets.iter().any(|preset| preset.price_per_hour.is_some())
    }

    fn is_embedded(&self) -> bool {
        self.study.conditions.iter().all(|it| it.spec.target == TargetSpec::Embedded)
    }

    /// What happens between the runs of a set, when they stop early, and the seed.
    fn facts_between_runs(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        let StudySpec { repetition, question, seed, .. } = self.study;
        let (parts, when) = match question {
            Question::Matrix(_) => ("servers", "before each run"),
            Question::Suite(_) => ("runs", "before each round"),
            Question::Repeat | Question::Sweep(_) => ("runs", "before each run"),
        };
        if !repetition.cool_down.is_zero() {
            facts.push(("rest", format!("{:?} between two {parts}", repetition.cool_down)));
        }
        if let Some(command) = &repetition.restart {
            facts.push(("restart", format!("{command} ({when} but the first)")));
        }
        if let Some(stop_at) = &repetition.stop_at {
            let (quantity, share) = (&stop_at.quantity, stop_at.half_width * 100.0);
            facts.push(("stop", format!("early, once {quantity} is known to ±{share} %")));
        }
        facts.push(("seed", seed.to_string()));
        facts
    }

    /// Runs and requests at the beginning of a sentence: `3 runs at most, 12 requests`.
    fn runs_and_requests(&self) -> String {
        let most = if self.study.repetition.stop_at.is_some() { " at most" } else { "" };
        let requests = amount(self.total.requests, "requests");
        format!("{}{most}{requests}", counted(self.runs, "run"))
    }

    /// What is the same at every level of a sweep.
    fn sweep_facts(&self) -> Vec<(&'static str, String)> {
        let conditions = &self.study.conditions;
        let names: Vec<&str> = conditions.iter().map(|condition| condition.name.as_str()).collect();
        let Spec { api, workload, load, .. } = &conditions[0].spec;
        let streamed = if workload.streaming { "streamed" } else { "not streamed" };
        let source = workload.source.kind().name();
        let warm_up = match load.warm_up {
            0 => "none".to_owned(),
            requests => format!("{requests} requests before each run, not counted"),
        };
        let mut facts = vec![
            ("servers", names.join(", ")),
            ("workload", format!("{source}, {api}, {streamed}")),
            ("warm-up", warm_up),
        ];
        facts.extend(self.facts_between_runs());
        if let Some(sweep) = self.study.sweep()
            && let Some(Search { goals, from, at_most, resolution, runs_at_most }) = &sweep.find
        {
            let goals: Vec<String> = goals.iter().map(ToString::to_string).collect();
            let share = resolution * 100.0;
            let search = format!(
                "from {from}, to {at_most} at most, until it is known to {share} %; runs are chosen as it \
                 goes, at most {runs_at_most} at a level"
            );
            facts.extend([("goals", goals.join(", ")), ("search", search)]);
        }
        facts
    }

    fn has_more_runs(&self) -> bool {
        self.study.sweep().is_some_and(|sweep| sweep.fine.is_some() || sweep.find.is_some())
    }

    fn sweep_total(&self) -> String {
        if self.runs == 0 {
            return String::new();
        }
        let time = self.total.time.map(|time| format!(", {} plus draining", format_time(time)));
        let more = if self.has_more_runs() { ", and more where the first ones lead" } else { "" };
        format!("{}{}{more}", self.runs_and_requests(), time.unwrap_or_default())
    }

    fn suite_facts(&self, suite: &Suite) -> Vec<(&'static str, String)> {
        let mut facts = vec![("hash", suite.hash.clone())];
        if !suite.changes.is_empty() {
            let changes = suite.changes.join(", ");
            facts.push(("changes", format!("{changes} (not the original suite)")));
        }
        facts.push(("target", server_name(&self.study.conditions[0].spec)));
        let prompts = match suite.prompts {
            Prompts::Fresh => "each scenario and level has its own",
            Prompts::Same => "the same in all scenarios: they may be in the prefix cache already",
        };
        facts.push(("prompts", prompts.to_owned()));
        facts.extend(self.facts_between_runs());
        facts
    }

    fn suite_remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.study.repetition.runs.get() != 1 {
            remarks.push("Requests, tokens and time are per run.".to_owned());
        }
        for Row { name, level, estimate, .. } in &self.rows {
            let place = if *level == Level::AsAsked {
                format!("`{name}`")
            } else {
                format!("`{name}`, {level}")
            };
            if 0 < estimate.failing {
                remarks.push(format!(
                    "note: {} of the requests of {place} would fail on this engine; they may be too \
                     long for it",
                    count(estimate.failing)
                ));
            }
            if estimate.known_by == KnownBy::TooLong {
                remarks.push(format!(
                    "note: {place}: not simulated: too long; its counts are planned ones"
                ));
            }
        }
        remarks
    }

    /// Whether all times come from a simulation, and not from a schedule alone.
    fn are_simulated(&self) -> bool {
        self.rows.iter().all(|row| row.estimate.known_by == KnownBy::Simulation)
    }

    fn suite_total(&self, suite: &Suite) -> String {
        let Estimate { input_tokens, output_tokens, time, .. } = self.total;
        let time = match time.map(format_time) {
            Some(time) if self.are_simulated() => {
                format!("{time} on the embedded engine (simulated)")
            }
            Some(time) => format!("{time} plus draining"),
            None if self.is_embedded() => "its time is not known without running it".to_owned(),
            None => "its time depends on the server".to_owned(),
        };
        let cost = match self.cost.as_ref().map(|cost| (cost.whole(), cost.tokens())) {
            None => String::new(),
            Some((Some(whole), _)) => format!("; it would cost {whole:.2}"),
            Some((None, Some(tokens))) => format!(
                "; its tokens would cost {tokens:.2}, and the cost of its time is not known"
            ),
            Some((None, None)) => "; its cost is not known".to_owned(),
        };
        format!(
            "{}{}{}; {time}{cost}. Hash {}.",
            self.runs_and_requests(),
            amount(input_tokens, "input tokens"),
            amount(output_tokens, "output tokens"),
            &suite.hash[..HASH_PREFIX],
        )
    }

    fn matrix_facts(&self, matrix: &Matrix) -> Vec<(&'static str, String)> {
        // How servers are deployed, with the first command.
        let first = &self.study.conditions[0].spec.target;
        let servers = if let TargetSpec::Deployed(deployment) = first {
            let joined = |words: &[String]| secret::hidden(words).join(" ");
            let how = match &deployment.how {
                DeploymentHow::Process(process) => joined(&process.command),
                DeploymentHow::Container(container) => {
                    format!("{} {}", container.image, joined(&container.arguments))
                }
                DeploymentHow::Commands(commands) => joined(std::slice::from_ref(&commands.up)),
            };
            format!("{}, the first by: {how}", deployment.how.kind())
        } else {
            "the embedded engine".to_owned()
        };
        let levels: Vec<String> = matrix.levels.iter().map(Level::to_string).collect();
        let times = counted(self.study.repetition.runs.get().into(), "time");
        let loads = format!("{}, {times} each", levels.join(", "));
        let mut facts = vec![("servers", servers), ("loads", loads)];
        if 1 < matrix.lanes.get() {
            facts.push(("lanes", format!("{} presets are measured at once", matrix.lanes)));
        }
        facts.extend(self.facts_between_runs());
        facts
    }

    fn matrix_total(&self, matrix: &Matrix) -> String {
        let is_ours = self.is_embedded();
        let impossible = match self.plan.foreseen.len() {
            0 => String::new(),
            some => format!(" ({some} of them cannot be deployed, which is a result too)"),
        };
        let time = match self.total.time.map(format_time) {
            Some(time) if is_ours => format!("{time} of the servers' time, simulated"),
            None if !self.is_simulated && is_ours => "in virtual time, without waiting".to_owned(),
            Some(time) => format!("{time} of load, plus the time to start and stop servers"),
            None => "its time depends on the servers".to_owned(),
        };
        let currency = matrix.currency.as_ref().map_or_else(String::new, |it| format!(" {it}"));
        let cost = match self.cost.as_ref().and_then(Cost::whole) {
            _ if !self.has_prices() => String::new(),
            Some(cost) => format!(
                "; it would cost {}{currency}, without the time in which servers start",
                format_money(cost)
            ),
            None if self.is_simulated => "; its cost is not known".to_owned(),
            None => "; --dry-run estimates the cost of real servers".to_owned(),
        };
        let cells = counted(matrix.cells.len() as u64, "cell");
        format!("{cells}{impossible}, {}; {time}{cost}.", self.runs_and_requests())
    }

    fn document(&self) -> Value {
        let Estimate { requests, input_tokens, output_tokens, time, .. } = self.total;
        let runs = self.study.repetition.runs;
        let mut document = json!({
            "dry_run": true,
            "campaign": self.study,
            "runs": self.runs,
            "requests": requests,
            "time_s": time.map(|time| time.as_secs_f64()),
        });
        let cost = self.cost.as_ref().and_then(Cost::whole);
        let more = match &self.study.question {
            Question::Sweep(_) | Question::Repeat => json!({
                "schema": "inferometer.sweep-outline/1",
                "levels": self.rows.iter().map(|row| row.document(&[])).collect::<Vec<_>>(),
                "more_runs": self.has_more_runs(),
            }),
            Question::Suite(_) => json!({
                "schema": "inferometer.suite-outline/1",
                "levels": self.rows.iter().map(|row| {
                    let Estimate { input_tokens, output_tokens, known_by, .. } = row.estimate;
                    row.document(&[
                        ("scenario", json!(row.name)),
                        ("runs", json!(runs)),
                        ("input_tokens", json!(input_tokens)),
                        ("output_tokens", json!(output_tokens)),
                        ("too_long", json!(known_by == KnownBy::TooLong)),
                    ])
                }).collect::<Vec<_>>(),
                "input_tokens": input_tokens,
                "output_tokens": output_tokens,
                "time_from": time.map(|_| if self.are_simulated() { "simulation" } else { "schedule" }),
                "cost": cost,
                "cost_parts": self.cost.as_ref().map(|cost| {
                    let part = |(key, amount): &(&str, Option<f64>)| {
                        ((*key).to_owned(), json!(amount))
                    };
                    cost.0.iter().map(part).collect::<Map<_, _>>()
                }),
                "notes": self.plan.notes,
            }),
            Question::Matrix(matrix) => json!({
                "schema": "inferometer.matrix-outline/1",
                "cells": self.rows.iter().map(|row| {
                    row.document(&[
                        ("name", json!(row.name)),
                        ("cell", json!(row.cell)),
                        ("cost", json!(row.cost)),
                        ("cannot_be", json!(row.impossible)),
                    ])
                }).collect::<Vec<_>>(),
                "cost": cost.filter(|_| self.has_prices()),
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
}

/// The levels of all scenarios, in their order, with the seeds of the first round.
fn suite_rows<'a>(
    study: &'a StudySpec,
    suite: &Suite,
    session: &Session,
) -> Result<Vec<Row<'a>>, Failure> {
    let mut sequence = Study::new(study.clone()).map_err(Failure::from_usage)?;
    let mut points = Vec::new();
    while let Some(point) = sequence.next().filter(|point| point.repetition == 0) {
        points.push(point);
        sequence.record(Reading { is_valid: true, ..Reading::default() });
    }
    points.sort_by_key(|point| {
        let levels = suite.scenarios.get(point.condition as usize).map(|it| &it.levels);
        let level = levels.and_then(|levels| levels.iter().position(|it| *it == point.level));
        (point.condition, level)
    });
    let mut budget = Work::BUDGET;
    let row = |point: Point| {
        let spec = study.spec_of(&point);
        let spec = spec.ok_or_else(|| Failure::internal("a scenario that is not listed"))?;
        let estimate = Estimate::from_plan(&spec, &mut budget, session)?;
        // A simulation that a signal cut has no true numbers.
        session.interruption.check()?;
        Ok(Row::new(&study.conditions[point.condition as usize].name, point.level, estimate))
    };
    points.into_iter().map(row).collect()
}

fn matrix_rows<'a>(
    plan: &'a StudyPlan,
    matrix: &'a Matrix,
    session: &Session,
    is_simulated: bool,
) -> Result<Vec<Row<'a>>, Failure> {
    let study = &plan.study;
    let mut written = if is_simulated { 0 } else { u64::MAX };
    let mut rows = Vec::new();
    for (index, (condition, cell)) in study.conditions.iter().zip(&matrix.cells).enumerate() {
        let foreseen = plan.foreseen.iter().find(|(condition, _)| *condition == index);
        let impossible = foreseen.map(|(_, reason)| reason.as_slice());
        let mut estimate = if impossible.is_some() { Estimate::UNKNOWN } else { Estimate::NONE };
        for &level in matrix.levels.iter().filter(|_| impossible.is_none()) {
            let condition = u32::try_from(index).unwrap_or(u32::MAX);
            let (seed, stage) = (study.seed, Stage::Planned);
            let point = Point { number: 0, condition, level, repetition: 0, seed, stage };
            let spec = study.spec_of(&point);
            let spec = spec.ok_or_else(|| Failure::internal("a cell that is not listed"))?;
            estimate = estimate.plus(&Estimate::from_simulation(&spec, &mut written, session)?);
            // A simulation that a signal cut has no true numbers.
            session.interruption.check()?;
        }
        let preset = matrix.presets.get(cell.preset as usize);
        let price = preset.and_then(|preset| preset.price_per_hour);
        let hours = estimate.time.map(|time| time.as_secs_f64() / SECONDS_PER_HOUR);
        let needed = needed_tokens(&condition.spec);
        rows.push(Row {
            cell: Some(cell),
            cost: price.zip(hours).map(|(price, hours)| price * hours),
            impossible,
            needed: needed.filter(|it| cell.context.is_some_and(|has| has < *it)),
            ..Row::new(&condition.name, Level::AsAsked, estimate)
        });
    }
    Ok(rows)
}

impl<'a> Row<'a> {
    fn new(name: &'a str, level: Level, estimate: Estimate) -> Self {
        Self { name, level, estimate, cell: None, cost: None, impossible: None, needed: None }
    }

    fn remark(&self) -> String {
        if let Some(reason) = self.impossible {
            let reason = reason.first().map_or("", String::as_str);
            return format!("cannot be deployed: {}", reason.trim_end_matches(':'));
        }
        let needed = self.needed.map_or_else(String::new, |needed| {
            format!(": a prompt and its answer need {} tokens", count(needed.into()))
        });
        match self.estimate.failing {
            0 => String::new(),
            failing => format!("{} of them would fail{needed}", count(failing)),
        }
    }

    /// Requests and time; of a suite or a matrix, which name their rows, also how they are known.
    fn document(&self, more: &[(&str, Value)]) -> Value {
        let Estimate { requests, time, failing, known_by, .. } = self.estimate;
        let time_s = time.map(|time| time.as_secs_f64());
        let mut row = json!({ "requests": requests, "time_s": time_s });
        if self.cell.is_none() {
            row["level"] = json!(self.level);
        }
        if !more.is_empty() {
            row["failing"] = failing.into();
            row["simulated"] = (known_by == KnownBy::Simulation).into();
        }
        for (key, value) in more {
            row[*key] = value.clone();
        }
        row
    }
}

/// `, 12 requests`; nothing where the number is not known.
fn amount(number: Option<u64>, what: &str) -> String {
    number.map_or_else(String::new, |number| format!(", {} {what}", count(number)))
}

/// A time to the second.
fn format_time(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(0 < time.subsec_nanos());
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} m {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} m"),
    }
}

/// An amount with at least two significant digits.
fn format_money(amount: f64) -> String {
    let (mut decimals, mut scaled) = (2, amount * 10.0);
    while 0.0 < scaled && scaled < 1.0 && decimals < MONEY_DECIMALS_MAX {
        scaled *= 10.0;
        decimals += 1;
    }
    format!("{amount:.decimals$}")
}

/// `--price`: of the machine's time, of tokens, or of both, in whatever currency was meant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Price {
    hour: Option<f64>,
    million_in: Option<f64>,
    million_out: Option<f64>,
}

/// What is paid for and has a price; an amount is `None` where it depends on something that is not
/// known.
#[derive(Clone, Debug, PartialEq)]
struct Cost(Vec<(&'static str, Option<f64>)>);

impl Price {
    fn cost(&self, total: &Estimate) -> Cost {
        #[expect(clippy::cast_precision_loss, reason = "money for the eye")]
        let millions = |tokens: Option<u64>| tokens.map(|tokens| tokens as f64 / TOKENS_PER_PRICE);
        let hours = total.time.map(|time| time.as_secs_f64() / SECONDS_PER_HOUR);
        let parts = [
            ("time", self.hour, hours),
            ("input_tokens", self.million_in, millions(total.input_tokens)),
            ("output_tokens", self.million_out, millions(total.output_tokens)),
        ];
        let parts = parts.into_iter().filter_map(|(part, price, amount)| {
            price.map(|price| (part, amount.map(|amount| price * amount)))
        });
        Cost(parts.collect())
    }
}

impl Cost {
    /// `None` where a part is not known.
    fn whole(&self) -> Option<f64> {
        self.0.iter().map(|(_, amount)| *amount).sum()
    }

    /// The tokens alone, where they have a price and are known.
    fn tokens(&self) -> Option<f64> {
        let mut parts = self.0.iter().filter(|(part, _)| *part != "time").peekable();
        parts.peek()?;
        parts.map(|(_, amount)| *amount).sum()
    }
}

impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut price = Self::default();
        for part in text.split(',').map(str::trim) {
            let unreadable = || {
                format!(
                    "`{part}` is no price; write 2.50/h for the time of the machine, or \
                     0.15/M-in,0.60/M-out for a million tokens read and written"
                )
            };
            let (amount, unit) = part.split_once('/').ok_or_else(unreadable)?;
            let amount: f64 = amount.trim().parse().map_err(|_| unreadable())?;
            if !amount.is_finite() || amount < 0.0 {
                return Err(format!("`{part}`: a price is a number from 0"));
            }
            let place = match unit.trim() {
                "h" | "hour" => &mut price.hour,
                "M-in" => &mut price.million_in,
                "M-out" => &mut price.million_out,
                _ => return Err(unreadable()),
            };
            if place.replace(amount).is_some() {
                return Err(format!("`{part}`: there is a price of that already"));
            }
        }
        Ok(price)
    }
}

/// With more requests of a level not even the plan is made.
const PLANNED_REQUESTS_MAX: u64 = 1_000_000;
/// Limits of what the dry run of a matrix simulates: requests of one run, and tokens of all.
const MATRIX_REQUESTS_MAX: u64 = 100_000;
const MATRIX_TOKENS_MAX: u64 = 100_000_000;

/// What a run takes, or several together. `None` where the server decides it.
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownBy {
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
        #[expect(clippy::cast_precision_loss, reason = "an estimate for the eye")]
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
    const UNKNOWN: Self = Self {
        requests: None,
        input_tokens: None,
        output_tokens: None,
        time: None,
        failing: 0,
        known_by: KnownBy::Load,
    };

    /// The estimate of no runs.
    const NONE: Self = Self {
        requests: Some(0),
        input_tokens: Some(0),
        output_tokens: Some(0),
        time: Some(Duration::ZERO),
        failing: 0,
        known_by: KnownBy::Simulation,
    };

    fn from_load(spec: &Spec) -> Self {
        let (requests, time) = expected(spec);
        Self { requests, time, ..Self::UNKNOWN }
    }

    /// By the plan, and on the embedded engine by a simulation as far as the budget allows.
    fn from_plan(spec: &Spec, budget: &mut Work, session: &Session) -> Result<Self, Failure> {
        let load = Self { known_by: KnownBy::TooLong, ..Self::from_load(spec) };
        let foreseen = Work::foreseen(spec);
        if PLANNED_REQUESTS_MAX < foreseen.requests {
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
        let work = Work {
            requests: planned.requests.unwrap_or(foreseen.requests),
            read: planned.input_tokens.unwrap_or(foreseen.read),
            written: planned.output_tokens.unwrap_or(foreseen.written),
        };
        if !budget.spend(work.with_warm_up(spec.load.warm_up)) {
            return Ok(Self { known_by: KnownBy::TooLong, ..planned });
        }
        let simulated = Self::simulate(spec, session)?;
        // A failed request reads nothing, but its tokens were sent.
        if simulated.failing == 0 {
            return Ok(simulated);
        }
        let Self { input_tokens, output_tokens, .. } = planned;
        Ok(Self { input_tokens, output_tokens, ..simulated })
    }

    /// By the load, and on the embedded engine by a simulation, up to a number of `written` tokens.
    fn from_simulation(spec: &Spec, written: &mut u64, session: &Session) -> Result<Self, Failure> {
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
    fn simulate(spec: &Spec, session: &Session) -> Result<Self, Failure> {
        let mut simulator = Simulator { engine: VirtualEngine::new(&spec.engine)?, session };
        let ready = simulator.make_ready(spec)?;
        let warm_up = ready.warm_up_took();
        let summary = simulator.summarize(ready)?;
        let time_s =
            (summary.duration_s + warm_up.as_secs_f64()) / spec.engine.speed.unwrap_or(1.0);
        let (input, output) = (summary.input_tokens, summary.output_tokens);
        Ok(Self {
            requests: Some(summary.requests()),
            input_tokens: Some(input),
            output_tokens: Some(output),
            time: Duration::try_from_secs_f64(time_s).ok(),
            failing: summary.requests() - summary.ok(),
            known_by: KnownBy::Simulation,
        })
    }

    /// Both together.
    fn plus(self, more: &Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| {
            one.zip(other).map(|(one, other)| one.saturating_add(other))
        };
        let same = self.known_by == more.known_by;
        Self {
            requests: sum(self.requests, more.requests),
            input_tokens: sum(self.input_tokens, more.input_tokens),
            output_tokens: sum(self.output_tokens, more.output_tokens),
            time: self.time.zip(more.time).map(|(one, other)| one.saturating_add(other)),
            failing: self.failing.saturating_add(more.failing),
            known_by: if same { self.known_by } else { KnownBy::Load },
        }
    }

    /// The same several times.
    fn times(self, runs: u32) -> Self {
        let times = |value: Option<u64>| value.map(|value| value.saturating_mul(runs.into()));
        Self {
            requests: times(self.requests),
            input_tokens: times(self.input_tokens),
            output_tokens: times(self.output_tokens),
            time: self.time.map(|time| time.saturating_mul(runs)),
            ..self
        }
    }
}

/// Input and output tokens of all requests of a plan that has an end.
fn tokens(plan: &dyn Plan) -> (u64, u64) {
    // Earlier turns of a conversation are input again in each turn.
    let mut before: BTreeMap<RequestId, u64> = BTreeMap::new();
    let (mut input, mut output) = (0_u64, 0_u64);
    let requests =
        (0..plan.bounds().requests.unwrap_or_default()).map_while(|id| plan.request(RequestId(id)));
    for request in requests {
        let (read, written) = (u64::from(request.input_tokens), u64::from(request.output_tokens));
        let conversation = request.conversation();
        let all = before.remove(&conversation).unwrap_or_default().saturating_add(read);
        input = input.saturating_add(all);
        output = output.saturating_add(written);
        if request.continues {
            before.insert(conversation, all.saturating_add(written));
        }
    }
    (input, output)
}

/// The work of a simulation, or what a dry run may still simulate, so that it is quick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    requests: u64,
    /// Input and output tokens; an output token takes longer, because each has its own step.
    read: u64,
    written: u64,
}

/// Requests and output tokens of each slot, where the engine decides them: more than most engines reach.
const REQUESTS_PER_S: f64 = 10.0;
const WRITTEN_PER_S: f64 = 200.0;
/// Tokens of a request, where nothing better is known.
const TOKENS_PER_REQUEST: u64 = 1_000;

impl Work {
    /// What the dry run of a suite simulates.
    const BUDGET: Self = Self { requests: 200_000, read: 50_000_000, written: 5_000_000 };

    /// Whether enough is left for the work, which is then subtracted.
    fn spend(&mut self, work: Self) -> bool {
        let left = |has: u64, spent: u64| has.checked_sub(spent);
        let rest = left(self.requests, work.requests)
            .zip(left(self.read, work.read))
            .zip(left(self.written, work.written));
        if let Some(((requests, read), written)) = rest {
            *self = Self { requests, read, written };
        }
        rest.is_some()
    }

    /// The work of a run before its plan is made. What a file decides is not counted.
    fn foreseen(spec: &Spec) -> Self {
        let within = |time: Duration| Self::within(&spec.load.shape, time);
        let exactly = |requests: NonZeroU64| Self::from_requests(requests.get());
        match spec.load.extent {
            Extent::Whole => Self::from_requests(0),
            Extent::Requests(requests) => exactly(requests),
            Extent::Duration(time) => within(time),
            Extent::UntilBoth { requests, duration } => within(duration).max(exactly(requests)),
            Extent::UntilFirst { requests, duration } => within(duration).min(exactly(requests)),
        }
    }

    /// With a warm-up of the same requests.
    fn with_warm_up(self, requests: u64) -> Self {
        let more = |tokens: u64| {
            let each = tokens / self.requests.max(1);
            tokens.saturating_add(each.saturating_mul(requests))
        };
        Self {
            requests: self.requests.saturating_add(requests),
            read: more(self.read),
            written: more(self.written),
        }
    }

    fn within(shape: &LoadShape, time: Duration) -> Self {
        let seconds = time.as_secs_f64();
        let per_s = match shape {
            LoadShape::Closed { concurrency, .. } => {
                let slots = f64::from(concurrency.get());
                let requests = rounded(slots * seconds * REQUESTS_PER_S);
                let written = rounded(slots * seconds * WRITTEN_PER_S);
                return Self { written, ..Self::from_requests(requests) };
            }
            LoadShape::Open { rate: Rate::Steady { per_s }, .. } => *per_s,
            LoadShape::Open { rate: Rate::Ramp { segments, .. }, .. } => {
                let rates = segments.iter().flat_map(|it| [it.from_per_s, it.to_per_s]);
                rates.fold(0.0, f64::max)
            }
            LoadShape::Open { rate: Rate::Unlimited, .. } => f64::INFINITY,
            LoadShape::Open { rate: Rate::Recorded(_), .. } => 0.0,
        };
        Self::from_requests(rounded(per_s * seconds))
    }

    fn from_requests(requests: u64) -> Self {
        let tokens = requests.saturating_mul(TOKENS_PER_REQUEST);
        Self { requests, read: tokens, written: tokens }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, never negative; too much is as much as fits"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
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
        let total = Estimate { input_tokens, output_tokens, time, ..Estimate::UNKNOWN };
        price.parse::<Price>().unwrap().cost(&total)
    }

    #[test]
    fn time_and_tokens_are_paid_for() {
        let price = "3/h, 0.5/M-in,2/M-out";
        let half_an_hour = Some(Duration::from_mins(30));
        let whole = cost(price, half_an_hour, [Some(2_000_000), Some(250_000)]).whole().unwrap();
        assert!((whole - 3.0).abs() < 1e-12, "{whole}");
        let unknown_time = cost(price, None, [Some(1_000_000), Some(500_000)]);
        assert_eq!(unknown_time.whole(), None, "nobody knows how long it takes");
        assert_eq!(unknown_time.tokens(), Some(1.5));
        assert_eq!(cost(price, half_an_hour, [None, Some(1)]).tokens(), None);
        let input = cost("0.5/M-in", None, [Some(4_000_000), None]);
        assert_eq!((input.whole(), input.tokens()), (Some(2.0), Some(2.0)));
        let hours = cost("1/h", None, [Some(1), Some(1)]);
        assert_eq!(hours.tokens(), None, "they cost nothing");
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for wrong in ["", "2.50", "2.50/day", "x/h", "-1/h", "inf/h", "1/h,2/h"] {
            assert!(wrong.parse::<Price>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_spent_on_one_level_is_not_there_for_the_next() {
        let mut budget = Work::BUDGET;
        let most = Work { requests: 150_000, read: 30_000_000, written: 3_000_000 };
        assert!(budget.spend(most));
        assert!(!budget.spend(most));
        let rest = Work { requests: 50_000, read: 20_000_000, written: 2_000_000 };
        assert!(budget.spend(rest));
        assert!(!budget.spend(Work { requests: 0, read: 0, written: 1 }));
    }

    #[test]
    fn a_warm_up_asks_as_much_for_each_request() {
        let work = Work { requests: 10, read: 1_000, written: 100 };
        assert_eq!(work.with_warm_up(5), Work { requests: 15, read: 1_500, written: 150 });
        let none = Work { requests: 0, read: 0, written: 0 };
        assert_eq!(none.with_warm_up(5), Work { requests: 5, ..none });
    }
}
