//! What a suite would do.

use inferometer_model::campaign::{CampaignSpec, Level, Point, Prompts, Suite};
use inferometer_model::spec::TargetSpec;
use inferometer_report::document::{Cell, Columns};
use inferometer_report::fmt::count;
use inferometer_study::play::server_name;
use inferometer_study::{Reading, Study};
use serde_json::{Map, Value, json};

use super::estimate::{Budget, Estimate, KnownBy};
use super::{
    Page, between_runs, count_cell, noted, runs_words, seconds, time_cell, time_words, total,
};
use crate::failure::Failure;
use crate::live::Session;
use crate::study::StudyPlan;
use crate::suite::{Cost, HASH_PREFIX, Part, Price};

pub(super) struct Outline<'a> {
    campaign: &'a CampaignSpec,
    suite: &'a Suite,
    notes: &'a [String],
    /// One for each level of each scenario, in their order.
    steps: Vec<Step>,
    runs: u64,
    total: Estimate,
    cost: Option<Cost>,
}

/// One level of one scenario, for one run.
struct Step {
    scenario: usize,
    level: Level,
    estimate: Estimate,
}

impl<'a> Outline<'a> {
    pub(super) fn new(
        plan: &'a StudyPlan,
        suite: &'a Suite,
        price: Option<Price>,
        session: &Session,
    ) -> Result<Self, Failure> {
        let campaign = &plan.campaign;
        let mut budget = Budget::default();
        let mut steps = Vec::new();
        for point in first_round(campaign, suite)? {
            let spec = campaign.spec_of(&point);
            let spec = spec.ok_or_else(|| Failure::internal("a scenario that is not listed"))?;
            let estimate = Estimate::from_plan(&spec, &mut budget, session)?;
            steps.push(Step { scenario: index(point.condition), level: point.level, estimate });
            // A simulation that a signal cut has no true numbers.
            session.interruption.check()?;
        }
        let each = campaign.repetition.runs.get();
        let runs = steps.len() as u64 * u64::from(each);
        let estimates = steps.iter().map(|step| &step.estimate);
        let total = total(campaign, each, runs.saturating_sub(1), estimates);
        let Estimate { time, input_tokens, output_tokens, .. } = total;
        let cost = price.map(|price| price.of(time, input_tokens, output_tokens));
        Ok(Self { campaign, suite, notes: &plan.notes, steps, runs, total, cost })
    }

    /// Whether all times come from a simulation, and not from a schedule alone.
    fn is_simulated(&self) -> bool {
        self.steps.iter().all(|step| step.estimate.known_by == KnownBy::Simulation)
    }

    fn name(&self, step: &Step) -> &'a str {
        self.campaign.conditions.get(step.scenario).map_or("", |condition| &condition.name)
    }

    pub(super) fn page(&self) -> String {
        let runs = self.campaign.repetition.runs;
        let table = Columns::new("scenario", |step: &&Step| Cell::text(self.name(step)))
            .right("level", |step| match step.level {
                Level::AsAsked => Cell::default(),
                level @ (Level::Rate(_) | Level::Unlimited | Level::Concurrency(_)) => {
                    Cell::text(level.to_string())
                }
            })
            .right("runs", |_| Cell::text(runs.to_string()))
            .right("requests", |step| count_cell(step.estimate.requests))
            .right("tokens in", |step| count_cell(step.estimate.input_tokens))
            .right("tokens out", |step| count_cell(step.estimate.output_tokens))
            .right("time", |step| time_cell(step.estimate.time))
            .table("", "", &self.steps);
        let per_run = "Requests, tokens and time are per run.".to_owned();
        let per_run = (runs.get() != 1).then_some(per_run);
        let remarks = self.steps.iter().flat_map(|step| self.remarks(step));
        let Suite { name, title, .. } = self.suite;
        Page {
            title: format!("suite {name}: {title} (nothing was sent)"),
            facts: self.facts().into_iter().chain(noted("note", self.notes)).collect(),
            table,
            remarks: per_run.into_iter().chain(remarks).collect(),
            total: self.total_words(),
        }
        .into_terminal()
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![("hash", self.suite.hash.clone())];
        if !self.suite.changes.is_empty() {
            let changes = self.suite.changes.join(", ");
            facts.push(("changes", format!("{changes} (not the original suite)")));
        }
        let target = self.campaign.conditions.first().map(|condition| server_name(&condition.spec));
        facts.push(("target", target.unwrap_or_default()));
        let prompts = match self.suite.prompts {
            Prompts::Fresh => "each scenario and level has its own",
            Prompts::Same => "the same in all scenarios: they may be in the prefix cache already",
        };
        facts.push(("prompts", prompts.to_owned()));
        facts.extend(between_runs(self.campaign));
        facts
    }

    fn remarks(&self, step: &Step) -> Vec<String> {
        let name = self.name(step);
        let place = match step.level {
            Level::AsAsked => format!("`{name}`"),
            level @ (Level::Rate(_) | Level::Unlimited | Level::Concurrency(_)) => {
                format!("`{name}`, {level}")
            }
        };
        let mut remarks = Vec::new();
        if 0 < step.estimate.failing {
            let failing = count(step.estimate.failing);
            remarks.push(format!(
                "note: {failing} of the requests of {place} would fail on this engine; they may be too \
                 long for it"
            ));
        }
        if step.estimate.known_by == KnownBy::TooLong {
            remarks.push(format!(
                "note: {place}: not simulated: too long; its counts are planned ones"
            ));
        }
        remarks
    }

    fn total_words(&self) -> String {
        let Estimate { requests, input_tokens, output_tokens, time, .. } = self.total;
        let conditions = &self.campaign.conditions;
        let is_ours = conditions.iter().all(|it| it.spec.target == TargetSpec::Embedded);
        let amount = |number: Option<u64>, what: &str| {
            number.map_or_else(String::new, |number| format!(", {} {what}", count(number)))
        };
        let time = match time {
            Some(time) if self.is_simulated() => {
                format!("{} on the embedded engine (simulated)", time_words(time))
            }
            Some(time) => format!("{} plus draining", time_words(time)),
            None if is_ours => "its time is not known without running it".to_owned(),
            None => "its time depends on the server".to_owned(),
        };
        let cost = match self.cost.as_ref().map(|cost| (cost.whole(), cost.tokens())) {
            None => String::new(),
            Some((Some(whole), _)) => format!("; it would cost {whole:.2}"),
            Some((None, Some(tokens))) => {
                format!(
                    "; its tokens would cost {tokens:.2}, and the cost of its time is not known"
                )
            }
            Some((None, None)) => "; its cost is not known".to_owned(),
        };
        format!(
            "{}{}{}; {time}{cost}. Hash {}.",
            runs_words(self.campaign, self.runs, requests),
            amount(input_tokens, "input tokens"),
            amount(output_tokens, "output tokens"),
            &self.suite.hash[..HASH_PREFIX],
        )
    }

    pub(super) fn document(&self) -> String {
        let Estimate { requests, input_tokens, output_tokens, time, .. } = self.total;
        let steps: Vec<Value> = self.steps.iter().map(|step| self.row(step)).collect();
        let source = if self.is_simulated() { "simulation" } else { "schedule" };
        let parts = self.cost.as_ref().map(|cost| {
            let part = |part: &Part| (part.of.key().to_owned(), json!(part.amount));
            cost.0.iter().map(part).collect::<Map<String, Value>>()
        });
        let document = json!({
            "schema": "inferometer.suite-outline/1",
            "dry_run": true,
            "campaign": self.campaign,
            "levels": steps,
            "runs": self.runs,
            "requests": requests,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "time_s": seconds(time),
            "time_from": time.map(|_| source),
            "cost": self.cost.as_ref().and_then(Cost::whole),
            "cost_parts": parts,
            "notes": self.notes,
        });
        format!("{document:#}\n")
    }

    fn row(&self, step: &Step) -> Value {
        let Estimate { requests, input_tokens, output_tokens, time, failing, known_by } =
            step.estimate;
        json!({
            "scenario": self.campaign.conditions.get(step.scenario).map(|it| &it.name),
            "level": step.level,
            "runs": self.campaign.repetition.runs,
            "requests": requests,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "time_s": seconds(time),
            "failing": failing,
            "simulated": known_by == KnownBy::Simulation,
            "too_long": known_by == KnownBy::TooLong,
        })
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The runs of the first round with their seeds, in the order of the scenarios and levels.
fn first_round(campaign: &CampaignSpec, suite: &Suite) -> Result<Vec<Point>, Failure> {
    let study = Study::new(campaign.clone());
    let mut study = study.map_err(|error| Failure::usage(error.to_string()))?;
    let mut points = Vec::new();
    while let Some(point) = study.next().filter(|point| point.repetition == 0) {
        points.push(point);
        study.record(Reading { is_valid: true, ..Reading::default() });
    }
    points.sort_by_key(|point| {
        let scenario = index(point.condition);
        let levels = suite.scenarios.get(scenario).map(|scenario| &scenario.levels);
        (scenario, levels.and_then(|levels| levels.iter().position(|it| *it == point.level)))
    });
    Ok(points)
}
