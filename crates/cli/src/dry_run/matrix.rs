//! What a matrix would do.

use std::collections::BTreeSet;

use inferometer_model::campaign::{
    CampaignSpec, Cell as MatrixCell, Level, Matrix, Point, Question, Stage,
};
use inferometer_model::deployment::DeploymentHow;
use inferometer_model::spec::TargetSpec;
use inferometer_report::document::{Cell, Columns, Table};
use inferometer_report::fmt::{NOTHING, count, counted};
use inferometer_target::deploy::secret;
use serde_json::{Value, json};

use super::estimate::{Estimate, KnownBy};
use super::{Page, count_cell, noted, seconds, time_cell, time_words, total};
use crate::failure::Failure;
use crate::live::Session;
use crate::matrix::needed;
use crate::study::StudyPlan;

const SECONDS_PER_HOUR: f64 = 3_600.0;
const MONEY_DECIMALS_MAX: usize = 8;

/// Reports what is about to be measured.
pub(crate) fn announce(
    plan: &StudyPlan,
    session: &Session,
    is_virtual: bool,
) -> Result<(), Failure> {
    let Question::Matrix(matrix) = &plan.campaign.question else { return Ok(()) };
    if session.is_quiet() {
        return Ok(());
    }
    let outline = Outline::new(plan, matrix, session, !is_virtual)?;
    plan.notes.iter().for_each(|note| session.talk(&format!("note: {note}")));
    plan.warnings.iter().for_each(|warning| session.talk(&format!("warning: {warning}")));
    session.talk(&format!("plan: {}", outline.total_words()));
    Ok(())
}

pub(super) struct Outline<'a> {
    plan: &'a StudyPlan,
    campaign: &'a CampaignSpec,
    matrix: &'a Matrix,
    /// All levels of each cell, measured once.
    rows: Vec<Row<'a>>,
    /// Whether the embedded engine is simulated. In virtual time it is not: the simulation is the
    /// measurement.
    is_simulated: bool,
    runs: u64,
    /// All servers together with the rests, without the time to start them.
    total: Estimate,
    cost: Option<f64>,
}

struct Row<'a> {
    name: &'a str,
    cell: &'a MatrixCell,
    estimate: Estimate,
    cost: Option<f64>,
    /// Why it cannot be deployed, line by line.
    impossible: Option<&'a [String]>,
    /// Tokens that a prompt and its answer need, where the context is shorter.
    needed: Option<u32>,
}

impl<'a> Outline<'a> {
    pub(super) fn new(
        plan: &'a StudyPlan,
        matrix: &'a Matrix,
        session: &Session,
        is_simulated: bool,
    ) -> Result<Self, Failure> {
        let campaign = &plan.campaign;
        let mut written = if is_simulated { 0 } else { u64::MAX };
        let mut rows = Vec::new();
        for (index, (condition, cell)) in campaign.conditions.iter().zip(&matrix.cells).enumerate()
        {
            let foreseen = plan.foreseen.iter().find(|(condition, _)| *condition == index);
            let impossible = foreseen.map(|(_, reason)| reason.as_slice());
            let mut estimate = Estimate::none();
            for level in matrix.levels.iter().filter(|_| impossible.is_none()) {
                let spec = campaign.spec_of(&point(index, *level, campaign.seed));
                let spec = spec.ok_or_else(|| Failure::internal("a cell that is not listed"))?;
                estimate = estimate.plus(&Estimate::from_simulation(&spec, &mut written, session)?);
                // A simulation that a signal cut has no true numbers.
                session.interruption.check()?;
            }
            let preset = usize::try_from(cell.preset).ok().and_then(|at| matrix.presets.get(at));
            let price = preset.and_then(|preset| preset.price_per_hour);
            let hours = estimate.time.map(|time| time.as_secs_f64() / SECONDS_PER_HOUR);
            let cost = price.zip(hours).map(|(price, hours)| price * hours);
            let needed =
                needed(&condition.spec).filter(|it| cell.context.is_some_and(|has| has < *it));
            rows.push(Row { name: &condition.name, cell, estimate, cost, impossible, needed });
        }
        let possible = || rows.iter().filter(|row| row.impossible.is_none());
        let each = campaign.repetition.runs.get();
        let servers = possible().count() as u64 * u64::from(each);
        let presets: BTreeSet<u32> = possible().map(|row| row.cell.preset).collect();
        let lanes = (presets.len() as u64).min(matrix.lanes.get().into());
        let estimates = possible().map(|row| &row.estimate);
        let total = total(campaign, each, servers.saturating_sub(lanes), estimates);
        let cost = possible().try_fold(0.0, |sum, row| Some(sum + row.cost?));
        let cost = cost.map(|cost: f64| cost * f64::from(each));
        let runs = servers * matrix.levels.len() as u64;
        Ok(Self { plan, campaign, matrix, rows, is_simulated, runs, total, cost })
    }

    fn has_prices(&self) -> bool {
        self.matrix.presets.iter().any(|preset| preset.price_per_hour.is_some())
    }

    pub(super) fn page(&self) -> String {
        let Matrix { name, title, .. } = self.matrix;
        let notes = noted("note", &self.plan.notes).chain(noted("warning", &self.plan.warnings));
        Page {
            title: format!("matrix {name}: {title} (nothing was deployed)"),
            facts: self.facts().into_iter().chain(notes).collect(),
            table: self.table(),
            remarks: Vec::new(),
            total: self.total_words(),
        }
        .into_terminal()
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let levels: Vec<String> = self.matrix.levels.iter().map(Level::to_string).collect();
        let times = counted(self.campaign.repetition.runs.get().into(), "time");
        let mut facts = vec![
            ("servers", self.servers()),
            ("loads", format!("{}, {times} each", levels.join(", "))),
        ];
        if 1 < self.matrix.lanes.get() {
            facts.push(("lanes", format!("{} presets are measured at once", self.matrix.lanes)));
        }
        let rest = self.campaign.repetition.cool_down;
        if !rest.is_zero() {
            facts.push(("rest", format!("{rest:?} between two servers")));
        }
        facts.push(("seed", self.campaign.seed.to_string()));
        facts
    }

    /// How servers are deployed, with the first command.
    fn servers(&self) -> String {
        let spec = self.campaign.conditions.first().map(|condition| &condition.spec);
        let Some(TargetSpec::Deployed(deployment)) = spec.map(|spec| &spec.target) else {
            return "the embedded engine".to_owned();
        };
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

    fn table(&self) -> Table {
        let parallel = |get: fn(&MatrixCell) -> Option<u32>| {
            move |row: &&Row<'_>| count_cell(get(row.cell).map(u64::from))
        };
        let has_parallel = self.matrix.cells.iter().any(|cell| cell.tp.is_some());
        let possible = |row: &Row<'_>, cell: Cell| {
            if row.impossible.is_some() { Cell::default() } else { cell }
        };
        Columns::new("cell", |row: &&Row<'_>| Cell::text(row.name))
            .right("tp", parallel(|cell| cell.tp))
            .only_if(has_parallel)
            .right("pp", parallel(|cell| cell.pp))
            .only_if(has_parallel)
            .right("requests", |row| possible(row, count_cell(row.estimate.requests)))
            .right("time", |row| possible(row, time_cell(row.estimate.time)))
            .right("cost", |row| {
                possible(row, Cell::text(row.cost.map_or_else(|| NOTHING.to_owned(), money)))
            })
            .only_if(self.has_prices())
            .left("", |row| Cell::text(row.remark()))
            .table("", "", &self.rows)
    }

    fn total_words(&self) -> String {
        let conditions = &self.campaign.conditions;
        let is_ours = conditions.iter().all(|it| it.spec.target == TargetSpec::Embedded);
        let impossible = match self.plan.foreseen.len() {
            0 => String::new(),
            some => format!(" ({some} of them cannot be deployed, which is a result too)"),
        };
        let requests = self.total.requests;
        let requests = requests.map_or_else(String::new, |it| format!(", {} requests", count(it)));
        let time = match self.total.time.map(time_words) {
            Some(time) if is_ours => format!("{time} of the servers' time, simulated"),
            None if !self.is_simulated && is_ours => "in virtual time, without waiting".to_owned(),
            Some(time) => format!("{time} of load, plus the time to start and stop servers"),
            None => "its time depends on the servers".to_owned(),
        };
        let currency =
            self.matrix.currency.as_ref().map_or_else(String::new, |it| format!(" {it}"));
        let cost = match self.cost {
            _ if !self.has_prices() => String::new(),
            Some(cost) => format!(
                "; it would cost {}{currency}, without the time in which servers start",
                money(cost)
            ),
            None if self.is_simulated => "; its cost is not known".to_owned(),
            None => "; --dry-run estimates the cost of real servers".to_owned(),
        };
        let cells = counted(self.matrix.cells.len() as u64, "cell");
        format!("{cells}{impossible}, {}{requests}; {time}{cost}.", counted(self.runs, "run"))
    }

    pub(super) fn document(&self) -> String {
        let cells: Vec<Value> = self.rows.iter().map(Row::document).collect();
        let document = json!({
            "schema": "inferometer.matrix-outline/1",
            "dry_run": true,
            "campaign": self.campaign,
            "cells": cells,
            "runs": self.runs,
            "requests": self.total.requests,
            "time_s": seconds(self.total.time),
            "cost": self.cost.filter(|_| self.has_prices()),
            "currency": self.matrix.currency,
            "notes": self.plan.notes,
            "warnings": self.plan.warnings,
        });
        format!("{document:#}\n")
    }
}

impl Row<'_> {
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

    fn document(&self) -> Value {
        let Estimate { requests, time, failing, known_by, .. } = self.estimate;
        let is_possible = self.impossible.is_none();
        json!({
            "name": self.name,
            "cell": self.cell,
            "requests": requests.filter(|_| is_possible),
            "time_s": seconds(time.filter(|_| is_possible)),
            "cost": self.cost.filter(|_| is_possible),
            "failing": failing,
            "simulated": is_possible && known_by == KnownBy::Simulation,
            "cannot_be": self.impossible,
        })
    }
}

/// An amount with at least two significant digits.
fn money(amount: f64) -> String {
    let (mut decimals, mut scaled) = (2, amount * 10.0);
    while 0.0 < scaled && scaled < 1.0 && decimals < MONEY_DECIMALS_MAX {
        scaled *= 10.0;
        decimals += 1;
    }
    format!("{amount:.decimals$}")
}

fn point(condition: usize, level: Level, seed: u64) -> Point {
    let condition = u32::try_from(condition).unwrap_or(u32::MAX);
    Point { number: 0, condition, level, repetition: 0, seed, stage: Stage::Planned }
}

#[cfg(test)]
mod tests {
    use super::money;

    #[test]
    fn small_amounts_are_not_shown_as_zero() {
        assert_eq!([0.0, 2.5, 0.04, 0.000_42].map(money), ["0.00", "2.50", "0.040", "0.00042"]);
    }
}
