//! The numbers of a page that sentences may state.
//!
//! A fact is printed exactly as its table prints it: tables and sentences share [`printed`]. Ratios and
//! shares that sentences need are facts too, so that every number of a sentence can be looked up.

use inferometer_analysis::{Better, LoadFacts, RateFacts};

use super::{About, Fact, FactUnit, Facts};
use crate::fmt::{decimals, unit_name};
use crate::pages::prelude::*;

/// The row that facts belong to; a page as a whole has no scenario.
#[derive(Clone, Debug, Default)]
pub struct FactRow {
    pub scenario: Option<String>,
    pub concurrency: Option<u32>,
}

/// The statistics of a distribution that are facts.
const STATISTICS: [Statistic; 5] = [MEAN, P50, P95, P99, MAX];

impl Facts {
    /// The facts of a suite, a sweep or a repetition: one row for each level of each condition.
    pub fn from_set(set: &SetSummary, points: &[PointResult]) -> Self {
        let rows = NarratedRow::from_set(set, points);
        let table = if set.suite.is_some() { "performance-summary" } else { "set-levels" };
        let levels = || rows.iter().filter_map(|row| row.found.level);
        let with = |verdict| levels().filter(|level| level.verdict == verdict).count() as f64;
        let conditions: BTreeSet<u32> = rows.iter().map(|row| row.condition).collect();
        let fewest = levels().map(|level| level.points.len()).min();
        let mut facts = Self::default();
        for (quantity, value) in [
            ("levels", Some(rows.len() as f64)),
            ("degraded", Some(with(Verdict::Degraded))),
            ("invalid", Some(with(Verdict::Invalid))),
            ("requests", Some(levels().map(|level| attempted(&level.requests)).sum())),
            ("failed_requests", Some(levels().map(|level| level.requests.failed as f64).sum())),
            ("scenarios", set.suite.is_some().then_some(conditions.len() as f64)),
            ("runs", fewest.map(|runs| runs as f64)),
        ] {
            facts.add(&FactRow::default(), table, quantity, value);
        }
        facts.add_rows(Some(set), &rows, table);
        facts
    }

    /// The facts of a single run, which have no scenario.
    pub fn from_run(summary: &Summary) -> Self {
        let row = NarratedRow::from_run(summary);
        let mut facts = Self::default();
        facts.add(&row.key, "run-metrics", "runs", Some(1.0));
        facts.add_rows(None, &[row], "run-metrics");
        facts
    }

    /// The index of a fact.
    pub fn find(
        &self,
        scenario: Option<&str>,
        quantity: &str,
        statistic: Option<&str>,
    ) -> Option<usize> {
        self.facts.iter().position(|fact| {
            fact.about.scenario.as_deref() == scenario
                && fact.about.quantity == quantity
                && fact.about.statistic.as_deref() == statistic
        })
    }

    /// The scenarios in the order of the page; `None` stands for the whole page.
    pub fn scenarios(&self) -> Vec<(Option<&str>, Option<u32>)> {
        let mut known: Vec<(Option<&str>, Option<u32>)> = Vec::new();
        for fact in &self.facts {
            let scenario = fact.about.scenario.as_deref();
            if !known.iter().any(|(name, _)| *name == scenario) {
                known.push((scenario, fact.about.concurrency));
            }
        }
        known
    }

    /// Adds a number of a row, such as `runs` or `ttft.p99`, where there is one.
    pub fn add(&mut self, row: &FactRow, table: &str, quantity: &str, value: Option<f64>) {
        self.add_within(row, table, quantity, value, None);
    }

    /// Adds a number with its confidence interval. A missing value is not zero, and a value that is not
    /// finite is missing.
    fn add_within(
        &mut self,
        row: &FactRow,
        table: &str,
        quantity: &str,
        value: Option<f64>,
        interval: Option<Interval>,
    ) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let (quantity, statistic) = split_statistic(quantity);
        let (unit, better) = unit_of(quantity);
        self.facts.push(Fact {
            about: About {
                scenario: row.scenario.clone(),
                concurrency: row.concurrency,
                quantity: quantity.to_owned(),
                statistic: statistic.map(str::to_owned),
            },
            value,
            printed: printed(quantity, value),
            unit,
            better,
            interval: interval.map(|interval| (interval.low, interval.high)),
            table: table.to_owned(),
        });
    }

    /// The facts of all rows, and what follows from them.
    fn add_rows(&mut self, set: Option<&SetSummary>, rows: &[NarratedRow<'_>], table: &str) {
        let page = if set.is_none() { rows[0].key.clone() } else { FactRow::default() };
        let certified_from = Percentile::P99.certified_from() as f64;
        self.add(&page, table, "certified_from", Some(certified_from));
        let first = rows.iter().find_map(|row| row.found.runs.first());
        let machine = first.and_then(|run| run.system.server.as_ref()?.machine.as_ref());
        let gpus = machine.map(|machine| machine.gpus.len() as f64).filter(|gpus| 0.0 < *gpus);
        self.add(&page, "system-configuration", "gpus", gpus);
        for row in rows {
            self.add_row(set, row);
        }
        for row in rows {
            self.add_spreads(&row.key);
        }
        let mut families: BTreeMap<&str, Vec<&FactRow>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.is_comparable()) {
            let family = row.name().and_then(|name| family(name, row.key.concurrency));
            if let Some(family) = family {
                families.entry(family).or_default().push(&row.key);
            }
        }
        for mut family in families.into_values() {
            family.sort_by_key(|row| row.concurrency);
            self.add_scaling(&family);
        }
    }

    fn add_row(&mut self, set: Option<&SetSummary>, row: &NarratedRow<'_>) {
        let table = |quantity: &str| table_of(quantity, set, row);
        let runs = &row.found.runs;
        let first = runs.first().copied();
        let level = row.found.level;
        let workload = first.map(|run| &run.workload);
        // Of one run: a percentile is certified by the requests of a run, not by those of all.
        let requests = runs.iter().map(|run| run.attempted).min();
        let rate = match (level.map(|level| level.level), first.map(|run| &run.run.load)) {
            (Some(Level::Rate(per_s)), _) => Some(per_s),
            (
                Some(Level::AsAsked) | None,
                Some(LoadFacts::Open { rate: RateFacts::Steady { per_s }, .. }),
            ) => Some(*per_s),
            _ => None,
        };
        let (cached, cached_most) = row.cached_shares();
        let warm = row.found.contaminated.and_then(|found| found.pp.zip(found.pp_cold));
        let findings = set.and_then(|set| {
            set.conditions.get(usize::try_from(row.condition).ok()?)?.findings.as_ref()
        });
        let spot = findings.and_then(|found| found.sweet_spot.found());
        let spot = spot.filter(|spot| Some(spot.level) == row.level());
        let per_user = findings.and_then(|found| found.per_user_spot.found());
        let per_user = per_user.filter(|spot| Some(spot.level) == row.level());
        let servers: Vec<&ServerSide> = runs.iter().filter_map(|run| run.server.as_ref()).collect();
        // The most of any run: a sentence about requests that are held back must hold for all runs.
        let most = |of: &dyn Fn(&ServerSide) -> Option<f64>| {
            servers.iter().filter_map(|server| of(server)).reduce(f64::max)
        };
        let readings = servers.iter().map(|server| server.scrapes.inside).min();
        let readings = readings.filter(|_| servers.len() == runs.len());
        let tally = row.found.tally();
        let concurrency = row.key.concurrency.map(f64::from);
        for (quantity, value) in [
            ("concurrency", concurrency),
            ("asked_rate", rate),
            ("served_share", level.and_then(|level| Some(level.served?.share))),
            ("input_tokens", workload.and_then(|it| length(it.input_tokens.as_ref()))),
            ("output_tokens", workload.and_then(|it| length(it.output_tokens.as_ref()))),
            ("requests", requests.map(|requests| requests as f64)),
            ("attempted_requests", Some(attempted(&tally))),
            ("failed_requests", Some(tally.failed as f64)),
            ("cached_share", cached),
            ("cached_share.max", cached_most),
            ("kv_usage.max", most(&|server| Some(server.kv_usage?.max))),
            ("running.max", most(&|server| Some(server.running?.max))),
            ("waiting.max", most(&|server| Some(server.waiting?.max))),
            ("running.mean", most(&|server| Some(server.running?.mean))),
            ("readings", readings.map(|readings| readings as f64)),
            ("preemptions", most(&|server| Some(server.preemptions?.total))),
            ("pp_times", warm.filter(|(_, cold)| 0.0 < *cold).map(|(warm, cold)| warm / cold)),
            ("sweet_spot", spot.and(concurrency)),
            ("sweet_spot_same", spot.and_then(|spot| spot.same_share)),
            ("per_user_spot", per_user.and(concurrency)),
        ] {
            self.add(&row.key, &table(quantity), quantity, value);
        }
        let metrics = METRICS.iter().filter(|metric| !metric.is_telemetry);
        for quantity in metrics.flat_map(|metric| metric.quantities(&STATISTICS)) {
            let (found, name) = (row.found.quantity(quantity), quantity.to_string());
            self.add_within(
                &row.key,
                &table(&name),
                &name,
                found.mean,
                found.confidence_interval(),
            );
        }
    }

    /// How far the slow requests of a row are from the usual ones, and how wide the confidence
    /// interval of throughput is, as a share of it.
    fn add_spreads(&mut self, row: &FactRow) {
        let (ttft, tpot, itl) = (&metric::TTFT, &metric::TPOT, &metric::ITL);
        let output = metric::OUTPUT_THROUGHPUT.quantity();
        for (quantity, above, below) in [
            ("ttft_tail", ttft.p99(), ttft.p50()),
            ("ttft_skew", ttft.mean(), ttft.p50()),
            ("tpot_tail", tpot.p99(), tpot.p50()),
            ("itl_tail", itl.p99(), itl.p50()),
            ("itl_max_times", itl.at(MAX), itl.p50()),
            ("peak_times", metric::PEAK_OUTPUT_THROUGHPUT.quantity(), output),
        ] {
            self.derive(quantity, (row, above), (row, below), Some);
        }
        for (quantity, metric) in [("ttft_spread", ttft), ("tpot_spread", tpot)] {
            self.derive(quantity, (row, metric.p99()), (row, metric.p50()), |ratio| {
                Some(ratio - 1.0).filter(|spread| 0.0 <= *spread)
            });
        }
        let fact = self.get(row, output);
        if let Some((fact, (low, high))) = fact.and_then(|fact| Some((fact, fact.interval?))) {
            let (share, table) = ((high - low) / 2.0 / fact.value, fact.table.clone());
            self.add(row, &table, "half_width", Some(share));
        }
    }

    /// The gain of each step of a family as facts of the higher level, the highest level against the
    /// lowest, and every level against the best.
    fn add_scaling(&mut self, family: &[&FactRow]) {
        let [first, .., last] = family else { return };
        let output = metric::OUTPUT_THROUGHPUT.quantity();
        for step in family.windows(2) {
            let (low, high) = (step[0], step[1]);
            for (quantity, metric, sign) in [
                ("throughput_gain", output, 1.0),
                ("throughput_loss", output, -1.0),
                ("per_user_loss", metric::PER_USER_THROUGHPUT.quantity(), -1.0),
            ] {
                self.derive(quantity, (high, metric), (low, metric), |ratio| {
                    let change = sign * (ratio - 1.0);
                    Some(change).filter(|change| 0.0 < *change || (*change == 0.0 && 0.0 < sign))
                });
            }
        }
        self.derive("throughput_times", (last, output), (first, output), Some);
        let tpot = metric::TPOT.p99();
        self.derive("tpot_times", (last, tpot), (first, tpot), Some);
        let known = family.iter().filter_map(|row| Some((*row, self.get(row, output)?.value)));
        let peak = known.max_by(|(_, a), (_, b)| a.total_cmp(b));
        for row in family {
            if let Some((peak, _)) = peak {
                self.derive("share_of_peak", (row, output), (peak, output), Some);
            }
        }
    }

    /// Adds a number that is made from the ratio of two others, in the table of the first.
    fn derive(
        &mut self,
        quantity: &str,
        (row, above): (&FactRow, Quantity),
        (below_row, below): (&FactRow, Quantity),
        from_ratio: impl Fn(f64) -> Option<f64>,
    ) {
        let parts = self.get(row, above).zip(self.get(below_row, below));
        if let Some((above, below)) = parts.filter(|(_, below)| 0.0 < below.value) {
            let (value, table) = (from_ratio(above.value / below.value), above.table.clone());
            self.add(row, &table, quantity, value);
        }
    }

    fn get(&self, row: &FactRow, quantity: Quantity) -> Option<&Fact> {
        let name = quantity.to_string();
        let (quantity, statistic) = split_statistic(&name);
        Some(&self.facts[self.find(row.scenario.as_deref(), quantity, statistic)?])
    }
}

/// `ttft.p99` is the p99 of `ttft`.
pub(super) fn split_statistic(quantity: &str) -> (&str, Option<&str>) {
    quantity.split_once('.').map_or((quantity, None), |(name, statistic)| (name, Some(statistic)))
}

/// The table of a number. Suites and runs have several, other sets one.
fn table_of(quantity: &str, set: Option<&SetSummary>, row: &NarratedRow<'_>) -> String {
    let (output, per_user) = (&metric::OUTPUT_THROUGHPUT, &metric::PER_USER_THROUGHPUT);
    let summary = [metric::TTFT.mean(), metric::TPOT.mean(), metric::TPOT.p99(), output.quantity()];
    let is_one_of = |known: &[Quantity]| known.iter().any(|it| it.to_string() == quantity);
    let name = match (quantity, set.map(|set| &set.suite)) {
        (_, Some(None)) => "set-levels",
        ("pp_times", Some(_)) => "prefill-decode",
        (_, Some(_)) if is_one_of(&[metric::PP.quantity(), metric::TG.quantity()]) => {
            "prefill-decode"
        }
        ("sweet_spot" | "sweet_spot_same" | "per_user_spot", _) => "concurrency-scaling",
        (_, Some(Some(suite)))
            if quantity == per_user.name && suite.scaling == Some(row.condition) =>
        {
            "concurrency-scaling"
        }
        ("input_tokens" | "output_tokens" | "concurrency", Some(_)) => "performance-summary",
        (_, Some(_)) if is_one_of(&summary) => "performance-summary",
        (_, Some(_)) => return row.name().map(table_of_scenario).unwrap_or_default(),
        (
            "kv_usage.max" | "running.max" | "waiting.max" | "running.mean" | "readings"
            | "preemptions",
            None,
        ) => "server-side",
        (name, None) if Metric::named(name).is_some() => "run-numbers",
        _ => "run-metrics",
    };
    name.to_owned()
}

/// The one length, or the mean of lengths around one.
fn length(lengths: Option<&Lengths>) -> Option<f64> {
    let lengths = lengths?;
    let mean =
        if let Lengths::Around { mean, .. } = lengths { Some(*mean) } else { lengths.fixed() };
    mean.map(f64::from)
}

/// Requests of all runs that ended.
fn attempted(tally: &Tally) -> f64 {
    (tally.ok + tally.failed + tally.cancelled) as f64
}

/// A row of a page: one level of one scenario, or a run.
#[derive(Debug)]
pub(super) struct NarratedRow<'a> {
    /// The scenario is the name of the row; a run has none.
    pub(super) key: FactRow,
    pub(super) condition: u32,
    pub(super) found: Row<'a>,
    /// A row with a cold prefix cache, where this one's prefill is so much faster that a warm cache is
    /// suspected.
    pub(super) cold: Option<&'a str>,
}

/// The evidence that requests came faster than they were answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overload {
    PilingUp,
    /// Answers came at a lower rate than requests.
    Behind,
    /// Requests timed out before their first token.
    TimedOut,
}

impl<'a> NarratedRow<'a> {
    /// The rows of a set, in the order of its pages. A level without a run has none.
    pub(super) fn from_set(set: &'a SetSummary, points: &'a [PointResult]) -> Vec<Self> {
        let rows: Vec<(u32, Row<'_>)> = match &set.suite {
            Some(_) => {
                let rows = rows::of_suite(set, points).into_iter();
                rows.filter_map(|row| Some((row.scenario?.condition, row))).collect()
            }
            None => (0_u32..)
                .zip(rows::of_conditions(set, points))
                .flat_map(|(condition, rows)| rows.into_iter().map(move |row| (condition, row)))
                .collect(),
        };
        let suite_rows = set.suite.as_ref().map_or(&[][..], |suite| &suite.rows);
        let row = |(condition, found): (u32, Row<'a>)| {
            let concurrency = match (found.scenario, found.level?.level) {
                (Some(scenario), _) => scenario.concurrency,
                (None, Level::Concurrency(requests)) => Some(requests.get()),
                (None, Level::AsAsked) => found.runs.first().and_then(|run| in_flight_most(run)),
                (None, Level::Rate(_) | Level::Unlimited) => None,
            };
            let cold = found.contaminated.and_then(|found| usize::try_from(found.cold?).ok());
            let cold = cold.and_then(|place| Some(suite_rows.get(place)?.name.as_str()));
            let key = FactRow { scenario: Some(found.name.clone()), concurrency };
            Some(Self { key, condition, found, cold })
        };
        rows.into_iter().filter_map(row).collect()
    }

    pub(super) fn from_run(summary: &'a Summary) -> Self {
        let key = FactRow { scenario: None, concurrency: in_flight_most(summary) };
        Self { key, condition: 0, found: Row::from_run(summary), cold: None }
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.key.scenario.as_deref()
    }

    pub(super) fn level(&self) -> Option<Level> {
        self.found.level.map(|level| level.level)
    }

    /// Whether a time limit ended it before its answers had come: its numbers are of quick requests.
    pub(super) fn is_cut(&self) -> bool {
        let cut = self.found.level.and_then(|level| level.cut.as_ref());
        cut.is_some_and(|cut| cut.answers_missing)
    }

    /// Whether far fewer requests were ever in flight than its name says.
    pub(super) fn is_short(&self) -> bool {
        !self.is_cut() && !self.found.level.is_none_or(LevelSummary::is_reached)
    }

    pub(super) fn is_comparable(&self) -> bool {
        !self.is_cut() && !self.is_short()
    }

    /// Whether requests are sent when others end.
    pub(super) fn is_closed(&self) -> bool {
        self.found.all_runs().next().is_some_and(|run| !run.run.load.is_open())
    }

    fn warns(&self, key: &str) -> bool {
        self.found.all_runs().any(|run| run.warnings.iter().any(|notice| notice.key == key))
    }

    /// Whether prompts were meant to be new, and the server reports that its cache held them.
    pub(super) fn is_contaminated(&self) -> bool {
        let found = self.found.contaminated;
        found.is_some_and(|found| !found.suspected) || self.warns("cache-contamination")
    }

    pub(super) fn overload(&self) -> Option<Overload> {
        let timed_out = |run: &Summary| 0 < run.count(Outcome::TimeoutFirstToken);
        if !self.is_closed() && self.warns("piling-up") {
            Some(Overload::PilingUp)
        } else if !self.is_closed() && self.found.all_runs().any(timed_out) {
            Some(Overload::TimedOut)
        } else {
            self.found.level.filter(|level| level.is_saturated()).map(|_| Overload::Behind)
        }
    }

    /// The outcome of most of the failed requests.
    pub(super) fn failure_class(&self) -> Option<&'static str> {
        let is_failure = |outcome: &Outcome| {
            !outcome.is_by_client() && !matches!(outcome, Outcome::Ok | Outcome::NotSent)
        };
        let count = |outcome: &Outcome| -> u64 {
            self.found.all_runs().map(|run| run.count(*outcome)).sum()
        };
        let most = Outcome::all().filter(is_failure).max_by_key(count)?;
        (0 < count(&most)).then(|| most.key())
    }

    /// Whether p99 comes from enough requests; `None` where there is no such value.
    pub(super) fn is_certified(&self, quantity: Quantity) -> Option<bool> {
        let found = self.found.quantity(quantity);
        found.mean.map(|_| found.certified)
    }

    /// The share of the input that came from the prefix cache, for runs whose server reports it: the
    /// mean over runs and the most of a run. The mean is over runs, not over their tokens, as on pages.
    /// Warnings state the worst run.
    fn cached_shares(&self) -> (Option<f64>, Option<f64>) {
        let own = |summary: &&Summary| {
            let by_counters = || summary.server.as_ref()?.prefix_hit_share;
            summary.workload.audit.cache.share.or_else(by_counters)
        };
        let runs = &self.found.runs;
        let shares: Vec<f64> = runs.iter().filter_map(own).collect();
        let is_whole = shares.len() == runs.len() && !shares.is_empty();
        let mean = is_whole.then(|| shares.iter().sum::<f64>() / shares.len() as f64);
        let of_suite = self.found.scenario.and_then(|scenario| scenario.cached_share);
        (of_suite.or(mean), shares.iter().copied().reduce(f64::max))
    }
}

/// The most requests in flight, where there is such a bound.
const fn in_flight_most(summary: &Summary) -> Option<u32> {
    match &summary.run.load {
        LoadFacts::Closed { concurrency, .. } => Some(*concurrency),
        LoadFacts::Open { max_concurrency, .. } => *max_concurrency,
    }
}

/// The name of a level of a set: the condition with its level, or either alone. Suites have names for
/// their rows.
pub fn row_name(condition: &str, level: Level, several_conditions: bool) -> String {
    if level == Level::AsAsked {
        return condition.to_owned();
    }
    let level = level_name(level);
    if several_conditions { format!("{condition} ({level})") } else { level }
}

/// The name of a row without its concurrency: the same for all levels of a scenario.
pub(super) fn family(name: &str, concurrency: Option<u32>) -> Option<&str> {
    let level = format!("c={}", concurrency?);
    if name == level {
        return Some("");
    }
    name.strip_suffix(')')?.strip_suffix(&level)?.strip_suffix(" (")
}

/// The id of the table with the key metrics of a scenario.
pub fn table_of_scenario(name: &str) -> String {
    format!("scenario-{}", slug(name))
}

/// Lower-case words joined by hyphens.
pub fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase).join("-")
}

/// Numbers of a page that are not in the table of metrics, and not plain numbers without a direction.
const OTHERS: [(FactUnit, Better, &str); 9] = [
    (FactUnit::Tokens, Better::Neither, "input_tokens output_tokens"),
    (REQUESTS, Better::Neither, "requests attempted_requests certified_from running"),
    (REQUESTS, Better::Lower, "failed_requests waiting"),
    (FactUnit::Metric(Unit::RequestsPerSecond), Better::Neither, "asked_rate"),
    (SHARE, Better::Neither, "cached_share"),
    (SHARE, Better::Higher, "served_share throughput_gain share_of_peak sweet_spot_same"),
    (
        SHARE,
        Better::Lower,
        "kv_usage throughput_loss per_user_loss ttft_spread tpot_spread half_width",
    ),
    (FactUnit::Number, Better::Higher, "throughput_times"),
    (
        FactUnit::Number,
        Better::Lower,
        "degraded invalid preemptions tpot_times ttft_tail ttft_skew tpot_tail itl_tail itl_max_times",
    ),
];

const REQUESTS: FactUnit = FactUnit::Metric(Unit::Requests);
const SHARE: FactUnit = FactUnit::Metric(Unit::Share);

/// A plain number for an unknown name.
fn unit_of(quantity: &str) -> (FactUnit, Better) {
    if let Some(metric) = Metric::named(quantity) {
        return (FactUnit::Metric(metric.unit), metric.better);
    }
    let other = OTHERS.iter().find(|(_, _, names)| names.split(' ').any(|name| name == quantity));
    other.map_or((FactUnit::Number, Better::Neither), |(unit, better, _)| (*unit, *better))
}

/// A number as tables and sentences have it, without its unit (a share has its sign of per cent).
pub fn printed(quantity: &str, value: f64) -> String {
    let is_ratio = ["_tail", "_skew", "_times"].iter().any(|end| quantity.ends_with(end));
    let unit = unit_of(quantity).0;
    let is_count = matches!(unit, FactUnit::Tokens | REQUESTS | FactUnit::Number);
    if matches!(unit, SHARE) {
        percent(value)
    } else if is_ratio && matches!(unit, FactUnit::Number) {
        // A second decimal of a ratio would suggest more precision than it has.
        decimals(value, 1)
    } else if is_count && quantity != metric::CONCURRENCY_MEAN.name {
        whole(value)
    } else {
        number(value)
    }
}

impl FactUnit {
    /// The unit behind a number, with a space; empty where there is none.
    pub fn suffix(self) -> String {
        match self {
            Self::Metric(unit) => format!(" {}", unit_name(unit)).trim_end().to_owned(),
            Self::Tokens => " tokens".to_owned(),
            Self::Number => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn numbers_have_the_decimals_of_their_columns() {
        for (quantity, value, text) in [
            ("ttft", 1_082.2, "1,082"),
            ("ttft_tail", 3.456, "3.5"),
            ("tpot", 17.76, "17.76"),
            ("output_throughput", 387.1, "387.1"),
            ("per_user_throughput", 41.992_5, "41.99"),
            ("pp", 1_892.44, "1,892"),
            ("tg", 54.88, "54.88"),
            ("input_tokens", 16_384.0, "16,384"),
            ("concurrency", 4.0, "4"),
            ("kv_usage", 0.995, "99.5 %"),
            ("gpu_power", 412.345, "412.3"),
            ("energy_per_output_token", 0.123_45, "0.123"),
            ("throughput_gain", 0.006_13, "0.6 %"),
        ] {
            assert_eq!(printed(quantity, value), text, "{quantity}");
        }
    }

    #[test]
    fn a_name_is_known_once() {
        let names: Vec<&str> = OTHERS.iter().flat_map(|(_, _, names)| names.split(' ')).collect();
        for (place, name) in names.iter().enumerate() {
            assert!(Metric::named(name).is_none(), "{name} is a metric");
            assert!(!names[..place].contains(name), "{name}");
        }
    }

    #[test]
    fn levels_of_a_scenario_are_a_family() {
        assert_eq!(family("Concurrency Scaling (c=16)", Some(16)), Some("Concurrency Scaling"));
        assert_eq!(family("c=16", Some(16)), Some(""));
        assert_eq!(family("Long Context (16K)", Some(4)), None);
        assert_eq!(family("Concurrency Scaling (c=16)", Some(6)), None);
        assert_eq!(family("Mixed Traffic", None), None);
    }

    #[test]
    fn rows_are_named_by_what_tells_them_apart() {
        let level = Level::Concurrency(NonZeroU32::MIN);
        assert_eq!(row_name("stock", level, false), "c=1");
        assert_eq!(row_name("stock", level, true), "stock (c=1)");
        assert_eq!(row_name("stock", Level::AsAsked, false), "stock");
    }

    #[test]
    fn ids_are_words_joined_by_hyphens() {
        assert_eq!(table_of_scenario("Long Context (16K)"), "scenario-long-context-16k");
        assert_eq!(slug("Concurrency Scaling (c=4)"), "concurrency-scaling-c-4");
    }
}
