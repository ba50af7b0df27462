//! What a table has a row for: one load, asked once or several times, and what came of it.

use inferometer_analysis::set::{
    AcrossRuns, ConditionSummary, Contaminated, LevelSummary, PointResult, Reached, SetSummary,
    SuiteRow, Tally,
};
use inferometer_analysis::{LoadFacts, Metric, Quantity, RateFacts, Summary, Verdict};

use crate::fmt::{percent, setting};
use crate::narrative::facts::{row_name, table_of_scenario};

#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    /// As every table and sentence of the page names it.
    pub(crate) name: String,
    /// Runs that count, in their order.
    pub(crate) runs: Vec<&'a Summary>,
    /// Runs that are in no number.
    pub(crate) left_out: Vec<&'a Summary>,
    /// `None` of a run that stands alone.
    pub(crate) level: Option<&'a LevelSummary>,
    /// The server that it is of, in a sweep or in repeats.
    pub(super) server: Option<&'a str>,
    /// Of a suite.
    pub(crate) scenario: Option<&'a SuiteRow>,
    /// Its place among the rows of the suite.
    pub(super) suite_place: Option<u32>,
    /// Where its prompts were in the server's prefix cache.
    pub(crate) contaminated: Option<&'a Contaminated>,
}

/// Rows over the same axis, such as all levels of one server.
#[derive(Clone, Debug)]
pub(super) struct Series<'a> {
    pub(super) name: String,
    pub(super) rows: Vec<&'a Row<'a>>,
}

impl<'a> Row<'a> {
    pub(crate) fn of_run(summary: &'a Summary) -> Self {
        let counts = summary.verdict != Verdict::Invalid;
        Self {
            name: summary.run.id.clone(),
            runs: vec![summary],
            left_out: if counts { Vec::new() } else { vec![summary] },
            level: None,
            server: None,
            scenario: None,
            suite_place: None,
            contaminated: None,
        }
    }

    fn of_level(name: String, level: &'a LevelSummary, points: &'a [PointResult]) -> Self {
        let own = |numbers: &[u32]| {
            points
                .iter()
                .filter(|result| numbers.contains(&result.point.number))
                .map(|result| &result.summary)
                .collect()
        };
        Self {
            name,
            runs: own(&level.points),
            left_out: own(&level.left_out),
            level: Some(level),
            server: None,
            scenario: None,
            suite_place: None,
            contaminated: None,
        }
    }

    /// Where it stands on the page.
    pub(super) fn id(&self) -> String {
        table_of_scenario(&self.name)
    }

    /// A number of it with its doubt; of a single run what the run itself says.
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

    /// Values of a distribution, all runs added up; `None` of what is one number by itself.
    pub(super) fn values_of(&self, metric: &Metric) -> Option<u64> {
        let of_run = |run: &&Summary| run.metrics.distribution(metric).map(|found| found.n);
        self.runs.iter().filter_map(of_run).reduce(|sum, n| sum + n)
    }

    /// The run that charts of requests are drawn from.
    pub(super) fn drawn(&self) -> Option<&'a Summary> {
        self.runs.first().or(self.left_out.first()).copied()
    }

    pub(crate) fn all_runs(&self) -> impl Iterator<Item = &'a Summary> + '_ {
        let alone = self.level.is_none();
        self.runs.iter().chain(self.left_out.iter().filter(move |_| !alone)).copied()
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

    /// Whether its numbers are to be taken with care, and why.
    pub(super) fn reservation(&self) -> Option<String> {
        let mut reasons: Vec<String> = self.contaminated.map(warm).into_iter().collect();
        let cut = self.level.and_then(|level| level.cut.as_ref());
        reasons.extend(
            cut.filter(|cut| cut.answers_missing)
                .map(|cut| format!("cut by a limit of time: {}", cut.limits.join(", "))),
        );
        reasons.extend(self.unreached());
        if self.level.is_some_and(LevelSummary::is_saturated) {
            reasons.push("the server did not keep up with this rate".to_owned());
        }
        if reasons.is_empty() {
            match self.verdict() {
                Verdict::Invalid => reasons.push("a run of it is invalid".to_owned()),
                Verdict::Degraded => reasons.push("a run of it has a reservation".to_owned()),
                Verdict::Valid => {}
            }
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Whether as many requests were in flight as its level says, or nearly so.
    pub(super) fn is_reached(&self) -> bool {
        self.unreached().is_none()
    }

    /// Why its level of concurrency is one in name only, where fewer requests were in flight.
    fn unreached(&self) -> Option<String> {
        let Reached { asked, most } = self.level?.reached.filter(|found| !found.is_reached())?;
        Some(format!(
            "the level was not reached: no more than {most} of {asked} requests were in flight"
        ))
    }

    /// Requests in each second, where they come at a rate.
    pub(super) fn rate(&self) -> Option<String> {
        match &self.drawn()?.run.load {
            LoadFacts::Closed { .. } => None,
            LoadFacts::Open { rate, .. } => Some(match rate {
                RateFacts::Steady { per_s } => format!("{}/s", setting(*per_s)),
                RateFacts::Unlimited => "all at once".to_owned(),
                RateFacts::Recorded { .. } => "as recorded".to_owned(),
                RateFacts::Ramp { segments, .. } => {
                    let (first, last) = (segments.first()?, segments.last()?);
                    format!("{} to {}/s", setting(first.from_per_s), setting(last.to_per_s))
                }
            }),
        }
    }

    /// Which run its charts are of, where it has several.
    pub(super) fn which_run(&self) -> String {
        match (self.runs.len(), self.drawn()) {
            (0 | 1, _) | (_, None) => String::new(),
            (runs, Some(run)) => format!("; of run {}, the first of {runs}", run.run.id),
        }
    }

    /// Independent values behind a distribution, in the run that has fewest.
    pub(super) fn independent(&self, metric: &Metric) -> Option<f64> {
        let of_run = |run: &&Summary| {
            let found = run.metrics.distribution(metric)?;
            Some(found.effective_n.unwrap_or(found.n as f64))
        };
        self.runs.iter().filter_map(of_run).min_by(f64::total_cmp)
    }

    pub(super) fn place(&self) -> Option<f64> {
        self.level?.level.place().filter(|place| place.is_finite())
    }
}

fn warm(found: &Contaminated) -> String {
    match found.cached_share {
        _ if found.suspected => {
            "its prefill is so fast that its prompts seem to have been in the prefix cache"
                .to_owned()
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
        let found = Row::of_level(row.name.clone(), row.summary(&set.conditions)?, points);
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
            Row { server: Some(&condition.name), ..Row::of_level(name, level, points) }
        };
        condition.levels.iter().map(row).collect()
    };
    set.conditions.iter().map(of_one).collect()
}
