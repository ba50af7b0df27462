//! What a suite comes to: the rows of its tables, in the order of its scenarios.

mod cache;
mod prefill;
mod sent;

use inferometer_model::campaign::{
    CampaignSpec, Condition, Level, Point, Prompts, Question, Scenario, Stage,
};
use inferometer_model::spec::{Extent, LoadShape};
use serde::{Deserialize, Serialize};

pub use self::cache::Contaminated;
pub(super) use self::cache::{CONTAMINATION, SEEN_BEFORE, notices};
use super::{ConditionSummary, LevelSummary, PointResult};
use crate::run::asked_lengths;
use crate::summary::Summary;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteSummary {
    pub name: String,
    pub title: String,
    /// Results are comparable when it is equal.
    pub hash: String,
    /// Flags that made it ask something else; empty for the suite as it is.
    pub changes: Vec<String>,
    pub prompts: Prompts,
    /// One for each level of each scenario. Numbers stand in the conditions of the set.
    pub rows: Vec<SuiteRow>,
    /// The condition whose levels are the scaling table: the first with several levels of
    /// concurrency.
    pub scaling: Option<u32>,
    /// Rows whose figures are those of a prefix cache, with what shows it.
    #[serde(default)]
    pub contaminated: Vec<Contaminated>,
}

/// One level of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuiteRow {
    /// As pages name it: the scenario, and its level where it has several, such as
    /// `Concurrency Scaling (c=4)`.
    pub name: String,
    pub scenario: String,
    pub category: String,
    pub purpose: String,
    /// The place of its scenario among the conditions of the set.
    pub condition: u32,
    pub level: Level,
    /// In flight at most; null for an open loop without a cap.
    pub concurrency: Option<u32>,
    /// As asked, such as `2048` or `2048±50%`; null where the data says it.
    pub input_tokens: Option<String>,
    pub output_tokens: Option<String>,
    /// Of one run; null where time ends it.
    pub requests: Option<u64>,
    /// The runs that it comes from, by their numbers.
    pub points: Vec<u32>,
    /// What was answered from the server's prefix cache, of all input tokens; null where the server
    /// does not say.
    pub cached_share: Option<f64>,
}

impl SuiteSummary {
    /// `None` where no suite was asked. The results are in the order of their numbers.
    pub(super) fn of(
        campaign: &CampaignSpec,
        conditions: &[ConditionSummary],
        results: &[&PointResult],
    ) -> Option<Self> {
        let Question::Suite(suite) = &campaign.question else { return None };
        let scenarios = (0_u32..).zip(campaign.conditions.iter().zip(&suite.scenarios));
        let rows: Vec<SuiteRow> = scenarios
            .flat_map(|(place, (condition, scenario))| {
                let of_level = move |level: &Level| {
                    SuiteRow::of(campaign, (place, condition, scenario), *level)
                };
                scenario.levels.iter().map(of_level).collect::<Vec<_>>()
            })
            .map(|row| row.measured(conditions, results))
            .collect();
        let varied = |scenario: &Scenario| 1 < scenario.levels.len();
        let scaling = suite.scenarios.iter().position(varied);
        Some(Self {
            name: suite.name.clone(),
            title: suite.title.clone(),
            hash: suite.hash.clone(),
            changes: suite.changes.clone(),
            prompts: suite.prompts,
            contaminated: cache::found(campaign, &rows, conditions, results),
            rows,
            scaling: scaling.and_then(|place| u32::try_from(place).ok()),
        })
    }
}

impl SuiteRow {
    /// What the level of a scenario asks.
    fn of(
        campaign: &CampaignSpec,
        (place, condition, scenario): (u32, &Condition, &Scenario),
        level: Level,
    ) -> Self {
        let stage = Stage::Planned;
        let point =
            Point { number: 0, condition: place, level, repetition: 0, seed: campaign.seed, stage };
        let spec = campaign.spec_of(&point).unwrap_or_else(|| condition.spec.clone());
        let concurrency = match &spec.load.shape {
            LoadShape::Closed { concurrency, .. } => Some(concurrency.get()),
            LoadShape::Open { cap, .. } => cap.map(std::num::NonZeroU32::get),
        };
        let (input, output) = asked_lengths(&spec.workload.source);
        let name = match level {
            Level::Concurrency(users) if 1 < scenario.levels.len() => {
                format!("{} (c={users})", condition.name)
            }
            Level::Concurrency(_) | Level::AsAsked | Level::Rate(_) | Level::Unlimited => {
                condition.name.clone()
            }
        };
        Self {
            name,
            scenario: condition.name.clone(),
            category: scenario.category.clone(),
            purpose: scenario.purpose.clone(),
            condition: place,
            level,
            concurrency,
            input_tokens: input.map(|lengths| lengths.to_string()),
            output_tokens: output
                .filter(|_| spec.api.generates())
                .map(|lengths| lengths.to_string()),
            requests: match spec.load.extent {
                Extent::Requests(requests) => Some(requests.get()),
                Extent::Whole
                | Extent::Duration(_)
                | Extent::UntilBoth { .. }
                | Extent::UntilFirst { .. } => None,
            },
            points: Vec::new(),
            cached_share: None,
        }
    }

    /// With the runs that count.
    fn measured(self, conditions: &[ConditionSummary], results: &[&PointResult]) -> Self {
        let points = self.summary(conditions).map_or_else(Vec::new, |it| it.points.clone());
        let shares: Vec<f64> =
            of_points(&points, results).filter_map(|it| cached_share(&it.summary)).collect();
        let cached_share =
            (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64);
        Self { points, cached_share, ..self }
    }

    /// Its numbers; `None` while it has no run.
    pub fn summary<'a>(&self, conditions: &'a [ConditionSummary]) -> Option<&'a LevelSummary> {
        let condition = conditions.get(usize::try_from(self.condition).ok()?)?;
        condition.levels.iter().find(|level| level.level == self.level)
    }
}

fn of_points<'a>(
    points: &'a [u32],
    results: &'a [&PointResult],
) -> impl Iterator<Item = &'a PointResult> {
    results.iter().copied().filter(|result| points.contains(&result.point.number))
}

/// By each answer's usage, else by the server's counters over the run.
pub(crate) fn cached_share(summary: &Summary) -> Option<f64> {
    let by_counters = || summary.server.as_ref()?.own_hit_share();
    summary.workload.audit.cache.share.or_else(by_counters)
}
