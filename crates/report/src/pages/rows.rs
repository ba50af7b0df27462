//! Rows of tables: one load, measured by one run or several, with its results.

use std::cmp::Reverse;

use inferometer_analysis::set::{Reached, SuiteRow};

use super::prelude::*;
use crate::narrative::facts::{row_name, table_of_scenario};

/// Characters of a finish reason: it is the server's.
const FINISH_REASON_MAX: usize = 40;

#[derive(Clone, Debug, Default)]
pub(crate) struct Row<'a> {
    /// As every table and sentence of the page names it.
    pub(crate) name: String,
    /// Runs that count, in their order.
    pub(crate) runs: Vec<&'a Summary>,
    /// Runs that are in no number.
    pub(crate) left_out: Vec<&'a Summary>,
    /// `None` for the page of a single run.
    pub(crate) level: Option<&'a LevelSummary>,
    /// The name of its server, in a sweep or in repeats.
    pub(super) server: Option<&'a str>,
    /// Set in suites only.
    pub(crate) scenario: Option<&'a SuiteRow>,
    /// Its position among the rows of the suite.
    pub(super) suite_place: Option<u32>,
    /// Set where its prompts were in the server's prefix cache.
    pub(crate) contaminated: Option<&'a Contaminated>,
}

/// Rows over the same axis, such as all levels of one server.
#[derive(Clone, Debug)]
pub(crate) struct Series<'a> {
    pub(super) name: String,
    pub(super) rows: Vec<&'a Row<'a>>,
}

impl<'a> Row<'a> {
    pub(crate) fn from_run(summary: &'a Summary) -> Self {
        Self { name: summary.run.id.clone(), runs: vec![summary], ..Self::default() }
    }

    fn from_level(name: String, level: &'a LevelSummary, points: &'a [PointResult]) -> Self {
        let own = |numbers: &[u32]| {
            let own = points.iter().filter(|result| numbers.contains(&result.point.number));
            own.map(|result| &result.summary).collect()
        };
        let (runs, left_out) = (own(&level.points), own(&level.left_out));
        Self { name, runs, left_out, level: Some(level), ..Self::default() }
    }

    /// The id of its section on the page.
    pub(super) fn id(&self) -> String {
        table_of_scenario(&self.name)
    }

    /// A quantity with its confidence interval; for a single run, the interval within the run.
    pub(crate) fn quantity(&self, quantity: impl Into<Quantity>) -> AcrossRuns {
        let quantity = quantity.into();
        let stored = self.level.and_then(|level| level.quantity(quantity)).cloned();
        stored.unwrap_or_else(|| {
            let found: Vec<_> = self.runs.iter().map(|run| quantity.value_in(run)).collect();
            AcrossRuns::from_runs(&found)
        })
    }

    pub(super) fn value(&self, quantity: impl Into<Quantity>) -> Option<f64> {
        self.quantity(quantity).mean
    }

    /// Values of a distribution, all runs added up; `None` for a scalar.
    pub(super) fn values_of(&self, metric: &Metric) -> Option<u64> {
        let of_run = |run: &&Summary| run.headline().distribution(metric).map(|found| found.n);
        self.runs.iter().filter_map(of_run).reduce(|sum, n| sum + n)
    }

    /// The run that charts of requests are drawn from.
    pub(super) fn drawn(&self) -> Option<&'a Summary> {
        self.runs.first().or(self.left_out.first()).copied()
    }

    pub(crate) fn all_runs(&self) -> impl Iterator<Item = &'a Summary> + '_ {
        self.runs.iter().chain(&self.left_out).copied()
    }

    /// How often the server gave each finish reason, the most frequent first.
    pub(super) fn finish_reasons(&self) -> Option<String> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (reason, answers) in self.all_runs().flat_map(|run| &run.finish_reasons) {
            *counts.entry(reason).or_default() += answers;
        }
        let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, answers)| Reverse(*answers));
        let words = |(reason, answers): (&str, u64)| {
            format!("{} {}", terminal_line(reason, FINISH_REASON_MAX), count(answers))
        };
        counts.into_iter().map(words).try_join(", ")
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let worst = || self.all_runs().map(|run| run.verdict).max().unwrap_or(Verdict::Invalid);
        self.level.map_or_else(worst, |level| level.verdict)
    }

    pub(crate) fn tally(&self) -> Tally {
        self.level.map_or_else(
            || self.all_runs().map(Tally::from_summary).fold(Tally::default(), Tally::plus),
            |level| level.requests,
        )
    }

    /// Why its numbers are not fully valid; `None` where they are.
    pub(super) fn reservation(&self) -> Option<String> {
        let cut = self.level.and_then(|level| level.cut.as_ref());
        let cut = cut.filter(|cut| cut.answers_missing);
        let saturated = self.level.filter(|level| level.is_saturated());
        let reasons = [
            self.contaminated.map(warm),
            cut.map(|cut| fill("cut-by-limit", &[&cut.limits.join(", ")])),
            self.unreached(),
            saturated.map(|_| "the server did not keep up with this rate".to_owned()),
        ];
        reasons.into_iter().flatten().try_join("; ").or_else(|| {
            let verdict = self.verdict();
            let is_so = self.all_runs().filter(|run| run.verdict == verdict).count();
            let which = match self.all_runs().count() {
                0 | 1 => "the run is".to_owned(),
                all if all == is_so => "all of its runs are".to_owned(),
                all => {
                    format!("{is_so} of its {all} runs {}", if is_so == 1 { "is" } else { "are" })
                }
            };
            (Verdict::Degraded <= verdict).then(|| format!("{which} {verdict}"))
        })
    }

    /// Whether as many requests were in flight as its level says, or nearly so.
    pub(super) fn is_reached(&self) -> bool {
        self.unreached().is_none()
    }

    /// The reason why fewer requests were in flight than the level's concurrency.
    fn unreached(&self) -> Option<String> {
        let Reached { asked, most } = self.level?.reached.filter(|found| !found.is_reached())?;
        Some(fill("not-reached-level", &[&most, &asked]))
    }

    /// The request rate of an open loop.
    pub(super) fn rate(&self) -> Option<String> {
        let load = &self.drawn()?.run.load;
        load.is_open().then(|| fmt::load::brief(load))
    }

    /// The run that its charts show, where it has several.
    pub(super) fn which_run(&self) -> String {
        match (self.runs.len(), self.drawn()) {
            (0 | 1, _) | (_, None) => String::new(),
            (runs, Some(run)) => format!("; of run {}, the first of {runs}", run.run.id),
        }
    }

    pub(super) fn place(&self) -> Option<f64> {
        self.level?.level.place().filter(|place| place.is_finite())
    }
}

fn warm(found: &Contaminated) -> String {
    match found.cached_share {
        _ if found.suspected => {
            "its prefill is so fast that its prompts were probably in the prefix cache".to_owned()
        }
        Some(share) => {
            format!("{} of its prompt tokens came from the prefix cache", percent(share))
        }
        None => "its prompts came from the prefix cache".to_owned(),
    }
}

/// The rows of a suite, in the order of its scenarios.
pub(crate) fn of_suite<'a>(set: &'a SetSummary, points: &'a [PointResult]) -> Vec<Row<'a>> {
    let Some(suite) = &set.suite else { return Vec::new() };
    let rows = (0_u32..).zip(&suite.rows);
    rows.filter_map(|(place, row)| {
        let found = Row::from_level(row.name.clone(), row.summary(&set.conditions)?, points);
        // The same data may be sent again on purpose; the set's note says that it was.
        let is_own = |found: &&Contaminated| found.row == place && !found.same_data;
        let contaminated = suite.contaminated.iter().find(is_own);
        Some(Row { scenario: Some(row), suite_place: Some(place), contaminated, ..found })
    })
    .collect()
}

/// The rows of a sweep or of repeats, by condition.
pub(crate) fn of_conditions<'a>(
    set: &'a SetSummary,
    points: &'a [PointResult],
) -> Vec<Vec<Row<'a>>> {
    let several = 1 < set.conditions.len();
    let of_one = |condition: &'a ConditionSummary| {
        let row = |level: &'a LevelSummary| {
            let name = row_name(&condition.name, level.level, several);
            Row { server: Some(&condition.name), ..Row::from_level(name, level, points) }
        };
        condition.levels.iter().map(row).collect()
    };
    set.conditions.iter().map(of_one).collect()
}
