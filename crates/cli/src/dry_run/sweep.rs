//! What a sweep would do.

use inferometer_model::Spec;
use inferometer_model::campaign::{CampaignSpec, Level, Search, Sweep};
use inferometer_report::document::{Cell, Columns};
use inferometer_study::play::known_specs;
use serde_json::{Value, json};

use super::estimate::Estimate;
use super::{
    Page, between_runs, count_cell, noted, runs_words, seconds, time_cell, time_words, total,
};

pub(super) struct Outline<'a> {
    campaign: &'a CampaignSpec,
    sweep: &'a Sweep,
    /// The levels of the first server; the others have the same.
    steps: Vec<(Level, Estimate)>,
    /// Planned runs; a search or a finer sweep may add others.
    runs: u64,
    more: bool,
    total: Estimate,
}

impl<'a> Outline<'a> {
    pub(super) fn new(campaign: &'a CampaignSpec, sweep: &'a Sweep) -> Self {
        let conditions = campaign.conditions.len();
        let specs = known_specs(campaign).into_iter().step_by(conditions.max(1));
        let step = |(level, spec): (&Level, Spec)| (*level, Estimate::from_load(&spec));
        let steps: Vec<(Level, Estimate)> = sweep.levels.iter().zip(specs).map(step).collect();
        let each = campaign.repetition.runs.get();
        let each = each.saturating_mul(u32::try_from(conditions).unwrap_or(u32::MAX));
        let runs = u64::from(each).saturating_mul(sweep.levels.len() as u64);
        let estimates = steps.iter().map(|(_, estimate)| estimate);
        let total = total(campaign, each, runs.saturating_sub(1), estimates);
        let more = sweep.fine.is_some() || sweep.find.is_some();
        Self { campaign, sweep, steps, runs, more, total }
    }

    pub(super) fn page(&self, notes: &[String]) -> String {
        let campaign = self.campaign;
        let table = Columns::number("level", |(level, _): &&(Level, Estimate)| {
            Cell::text(level.to_string())
        })
        .right("runs", |_| Cell::text(campaign.repetition.runs.to_string()))
        .right("requests", |(_, step)| count_cell(step.requests))
        .right("time", |(_, step)| time_cell(step.time))
        .table("", "", &self.steps);
        let time = self.total.time.map(|time| format!(", {} plus draining", time_words(time)));
        let more = if self.more { ", and more where the first ones lead" } else { "" };
        let runs = runs_words(campaign, self.runs, self.total.requests);
        let total = format!("{runs}{}{more}", time.unwrap_or_default());
        Page {
            title: "sweep (nothing was sent)".to_owned(),
            facts: self.facts().into_iter().chain(noted("note", notes)).collect(),
            table,
            remarks: Vec::new(),
            total: if self.runs == 0 { String::new() } else { total },
        }
        .into_terminal()
    }

    /// What is the same at every level.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let conditions = &self.campaign.conditions;
        let names: Vec<&str> = conditions.iter().map(|condition| condition.name.as_str()).collect();
        let mut facts = vec![("servers", names.join(", "))];
        if let Some(condition) = conditions.first() {
            let Spec { api, workload, load, .. } = &condition.spec;
            let streamed = if workload.streaming { "streamed" } else { "not streamed" };
            let source = workload.source.kind().name();
            facts.push(("workload", format!("{source}, {api}, {streamed}")));
            let warm_up = match load.warm_up {
                0 => "none".to_owned(),
                requests => format!("{requests} requests before each run, not counted"),
            };
            facts.push(("warm-up", warm_up));
        }
        facts.extend(between_runs(self.campaign));
        if let Some(Search { goals, from, at_most, resolution, runs_at_most }) = &self.sweep.find {
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

    pub(super) fn document(&self) -> String {
        let step = |(level, step): &(Level, Estimate)| {
            let Estimate { requests, time, .. } = step;
            json!({ "level": level, "requests": requests, "time_s": seconds(*time) })
        };
        let document = json!({
            "schema": "inferometer.sweep-outline/1",
            "dry_run": true,
            "campaign": self.campaign,
            "levels": self.steps.iter().map(step).collect::<Vec<Value>>(),
            "runs": self.runs,
            "more_runs": self.more,
            "requests": self.total.requests,
            "time_s": seconds(self.total.time),
        });
        format!("{document:#}\n")
    }
}
