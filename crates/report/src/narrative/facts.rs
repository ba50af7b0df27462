//! The numbers of a page, as sentences may speak of them.
//!
//! A fact is printed here exactly as its table prints it: tables and sentences share [`printed`].
//! Ratios and shares that sentences need are facts as well, so that every number of a sentence can
//! be looked up.

use std::collections::BTreeSet;

use inferometer_analysis::set::{LevelSummary, PointResult, SetSummary};
use inferometer_analysis::{
    Better, Interval, LoadFacts, METRICS, Metric, Percentile, Quantity, RateFacts, ServerSide,
    Statistic, Summary, Unit, Verdict,
};
use inferometer_model::Outcome;
use inferometer_model::spec::Lengths;
use inferometer_model::study::Level;

use super::{About, Fact, FactUnit, Facts};
use crate::fmt::{decimals, number, percent, whole};
use crate::pages::rows::{self, Row};

/// Where the facts of one row belong; a page as a whole has no scenario.
#[derive(Clone, Debug, Default)]
pub struct FactRow {
    pub scenario: Option<String>,
    pub concurrency: Option<u32>,
}

/// What is said of a distribution.
const STATISTICS: [Statistic; 5] = [
    Statistic::Mean,
    Statistic::Percentile(Percentile::P50),
    Statistic::Percentile(Percentile::P95),
    Statistic::Percentile(Percentile::P99),
    Statistic::Max,
];

impl Facts {
    /// The facts of a suite, a sweep or a repetition: one row for each level of each condition.
    pub fn from_set(set: &SetSummary, points: &[PointResult]) -> Self {
        let mut facts = Self::default();
        let levels = named_levels(set, points);
        facts.add_set(set, &levels);
        for named in &levels {
            facts.add_level(set, named);
        }
        facts.add_cache_suspicions(set);
        facts.add_sweet_spots(set, &levels);
        let left_out =
            levels.into_iter().filter(|named| named.completeness != Completeness::Complete);
        facts.add_derived(&left_out.map(|named| named.row.name).collect::<Vec<_>>());
        facts
    }

    /// The facts of a single run, which have no scenario.
    pub fn from_run(summary: &Summary) -> Self {
        let mut facts = Self::default();
        let row = FactRow { scenario: None, concurrency: concurrency_of_load(summary) };
        let (input, output) = lengths(summary);
        let attempted = summary.attempted as f64;
        // Requests that ended by themselves, and not well.
        let ended = summary.count(Outcome::Ok) + summary.count(Outcome::Cancelled);
        let failed = summary.attempted.saturating_sub(ended);
        facts.add(&row, "run-metrics", "certified_from", Some(certified_from()));
        facts.add(&row, "run-metrics", "runs", Some(1.0));
        facts.add(&row, "system-configuration", "gpus", gpus(summary));
        for (quantity, value) in [
            ("concurrency", row.concurrency.map(f64::from)),
            ("input_tokens", input),
            ("output_tokens", output),
            ("requests", Some(attempted)),
            ("attempted_requests", Some(attempted)),
            ("failed_requests", Some(failed as f64)),
        ] {
            facts.add(&row, "run-metrics", quantity, value);
        }
        for quantity in client_quantities() {
            let Ok(found) = quantity.value_in(summary) else { continue };
            let table = if quantity.statistic().is_some() { "run-metrics" } else { "run-numbers" };
            facts.add_within(&row, table, &quantity.to_string(), Some(found.value), found.interval);
        }
        facts.add(&row, "run-metrics", "asked_rate", steady_rate(summary));
        facts.add_cached(&row, "run-metrics", cached_shares(&[summary]));
        facts.add_server(&row, "server-side", &[summary]);
        facts.add_derived(&[]);
        facts
    }

    /// The place of a fact.
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

    /// The same with its confidence interval. Nothing is not zero, and what is no number is
    /// nothing.
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

    /// The counts of a set as a whole.
    fn add_set(&mut self, set: &SetSummary, levels: &[NamedLevel<'_>]) {
        let page = FactRow::default();
        let table = if set.suite.is_some() { "performance-summary" } else { "set-levels" };
        let with = |verdict| levels.iter().filter(|named| named.level.verdict == verdict).count();
        let sum = |count: fn(&LevelSummary) -> u64| {
            Some(levels.iter().map(|named| count(named.level)).sum::<u64>() as f64)
        };
        let conditions: BTreeSet<u32> = levels.iter().map(|named| named.condition).collect();
        let fewest = levels.iter().map(|named| named.level.points.len()).min();
        for (quantity, value) in [
            ("levels", Some(levels.len() as f64)),
            ("degraded", Some(with(Verdict::Degraded) as f64)),
            ("invalid", Some(with(Verdict::Invalid) as f64)),
            ("requests", sum(attempted)),
            ("failed_requests", sum(|level| level.requests.failed)),
            ("certified_from", Some(certified_from())),
            ("scenarios", set.suite.is_some().then_some(conditions.len() as f64)),
            ("runs", fewest.map(|runs| runs as f64)),
        ] {
            self.add(&page, table, quantity, value);
        }
        let first = levels.iter().find_map(|named| named.row.runs.first());
        self.add(&page, "system-configuration", "gpus", first.and_then(|run| gpus(run)));
    }

    fn add_level(&mut self, set: &SetSummary, named: &NamedLevel<'_>) {
        let row = named.fact_row();
        let suite = set.suite.as_ref();
        let is_scaling = suite.is_some_and(|suite| suite.scaling == Some(named.condition));
        let own = table_of_scenario(&named.row.name);
        // Suites have several tables, other sets one.
        let table = |quantity: &str| match quantity {
            _ if suite.is_none() => "set-levels",
            "pp" | "tg" => "prefill-decode",
            "per_user_throughput" if is_scaling => "concurrency-scaling",
            "input_tokens" | "output_tokens" | "concurrency" | "output_throughput"
            | "ttft.mean" | "tpot.mean" | "tpot.p99" => "performance-summary",
            _ => own.as_str(),
        };
        let first = named.row.runs.first();
        let (input, output) = first.map_or((None, None), |run| lengths(run));
        // Of one run: a percentile is certified by the requests of a run, not by those of all.
        let requests = named.row.runs.iter().map(|run| run.attempted).min();
        let rate = match named.level.level {
            Level::Rate(per_s) => Some(per_s),
            Level::AsAsked => first.and_then(|run| steady_rate(run)),
            Level::Concurrency(_) | Level::Unlimited => None,
        };
        for (quantity, value) in [
            ("concurrency", named.concurrency.map(f64::from)),
            ("asked_rate", rate),
            ("served_share", named.level.served.map(|served| served.share)),
            ("input_tokens", input),
            ("output_tokens", output),
            ("requests", requests.map(|requests| requests as f64)),
            ("attempted_requests", Some(attempted(named.level) as f64)),
            ("failed_requests", Some(named.level.requests.failed as f64)),
        ] {
            self.add(&row, table(quantity), quantity, value);
        }
        for quantity in client_quantities() {
            let Some(across) = named.level.quantity(quantity) else { continue };
            let name = quantity.to_string();
            self.add_within(&row, table(&name), &name, across.mean, across.doubt());
        }
        self.add_cached(&row, table("cached_share"), named.cached);
        self.add_server(&row, table("kv_usage.max"), &named.row.runs);
    }

    fn add_cached(&mut self, row: &FactRow, table: &str, (mean, most): CachedShares) {
        self.add(row, table, "cached_share", mean);
        self.add(row, table, "cached_share.max", most);
    }

    /// The most that any of the runs has seen.
    fn add_server(&mut self, row: &FactRow, table: &str, runs: &[&Summary]) {
        let servers: Vec<&ServerSide> = runs.iter().filter_map(|run| run.server.as_ref()).collect();
        let most = |of: &dyn Fn(&ServerSide) -> Option<f64>| {
            servers.iter().filter_map(|server| of(server)).reduce(f64::max)
        };
        let fewest = servers.iter().map(|server| server.scrapes.inside).min();
        let readings = fewest.filter(|_| servers.len() == runs.len()).map(|fewest| fewest as f64);
        for (quantity, value) in [
            ("kv_usage.max", most(&|server| Some(server.kv_usage?.max))),
            ("running.max", most(&|server| Some(server.running?.max))),
            ("waiting.max", most(&|server| Some(server.waiting?.max))),
            // The run that ran the most by its mean: whoever says that requests were held back must
            // be right about all runs.
            ("running.mean", most(&|server| Some(server.running?.mean))),
            ("readings", readings),
            ("preemptions", most(&|server| Some(server.preemptions?.total))),
        ] {
            self.add(row, table, quantity, value);
        }
    }

    /// How much faster prompts were read than those of a row that no cache had seen.
    fn add_cache_suspicions(&mut self, set: &SetSummary) {
        let Some(suite) = &set.suite else { return };
        for found in suite.contaminated.iter().filter(|found| !found.same_data) {
            let place = usize::try_from(found.row).ok();
            let Some(row) = place.and_then(|place| suite.rows.get(place)) else { continue };
            let times = found.pp.zip(found.pp_cold).filter(|(_, cold)| 0.0 < *cold);
            let own = FactRow { scenario: Some(row.name.clone()), concurrency: row.concurrency };
            self.add(&own, "prefill-decode", "pp_times", times.map(|(warm, cold)| warm / cold));
        }
    }

    /// Which level is the sweet spot, and how often a set drawn again chooses the same, as facts of
    /// that level.
    fn add_sweet_spots(&mut self, set: &SetSummary, levels: &[NamedLevel<'_>]) {
        let table = if set.suite.is_some() { "concurrency-scaling" } else { "set-levels" };
        for (place, condition) in (0_u32..).zip(&set.conditions) {
            let spot = condition.findings.as_ref().and_then(|it| it.sweet_spot.found());
            let Some(spot) = spot else { continue };
            let is_it =
                |one: &&NamedLevel<'_>| one.condition == place && one.level.level == spot.level;
            let Some(named) = levels.iter().find(is_it) else { continue };
            let row = named.fact_row();
            self.add(&row, table, "sweet_spot", named.concurrency.map(f64::from));
            self.add(&row, table, "sweet_spot_same", spot.same_share);
        }
    }

    /// Ratios and shares that sentences speak of, with the table that their parts stand in. Rows
    /// that are left out, by their names, are compared with no other.
    fn add_derived(&mut self, left_out: &[String]) {
        let rows: Vec<FactRow> = self
            .scenarios()
            .into_iter()
            .map(|(name, concurrency)| FactRow { scenario: name.map(str::to_owned), concurrency })
            .collect();
        for row in &rows {
            self.add_spreads(row);
        }
        let is_compared =
            |row: &&FactRow| row.scenario.as_ref().is_none_or(|name| !left_out.contains(name));
        let compared: Vec<&FactRow> = rows.iter().filter(is_compared).collect();
        let keys = compared.iter().map(|row| (row.scenario.as_deref(), row.concurrency));
        let families: Vec<Vec<&FactRow>> = families(keys)
            .into_iter()
            .map(|(_, own)| own.into_iter().map(|place| compared[place]).collect())
            .collect();
        for step in families.iter().flat_map(|family| family.windows(2)) {
            self.add_step(step[0], step[1]);
        }
        for family in &families {
            self.add_ends(family);
        }
    }

    /// How far the slow requests of a row are from the usual ones, and how wide the confidence
    /// interval of throughput is, as a share of it.
    fn add_spreads(&mut self, row: &FactRow) {
        for (quantity, above, below) in [
            ("ttft_tail", "ttft.p99", "ttft.p50"),
            ("ttft_skew", "ttft.mean", "ttft.p50"),
            ("tpot_tail", "tpot.p99", "tpot.p50"),
            ("itl_tail", "itl.p99", "itl.p50"),
            ("itl_max_times", "itl.max", "itl.p50"),
            ("peak_times", "peak_output_throughput", "output_throughput"),
        ] {
            self.add_ratio(row, quantity, above, (row, below));
        }
        for (quantity, high, low) in
            [("ttft_spread", "ttft.p99", "ttft.p50"), ("tpot_spread", "tpot.p99", "tpot.p50")]
        {
            let parts = self.value(row, high).zip(self.value(row, low));
            let Some(((high, table), (low, _))) = parts else { continue };
            let spread = (0.0 < low && low <= high).then(|| high / low - 1.0);
            self.add(row, &table, quantity, spread);
        }
        let place = self.find(row.scenario.as_deref(), "output_throughput", None);
        let fact = place.map(|place| &self.facts[place]);
        if let Some((fact, (low, high))) = fact.and_then(|fact| Some((fact, fact.interval?))) {
            let (share, table) = ((high - low) / 2.0 / fact.value, fact.table.clone());
            self.add(row, &table, "half_width", Some(share));
        }
    }

    /// What a step to a higher level brings, as facts of the higher level.
    fn add_step(&mut self, low: &FactRow, high: &FactRow) {
        let change = |facts: &Self, quantity: &str| {
            let (before, _) = facts.value(low, quantity)?;
            let (after, table) = facts.value(high, quantity)?;
            (0.0 < before).then(|| (after / before - 1.0, table))
        };
        if let Some((change, table)) = change(self, "output_throughput") {
            let quantity = if change < 0.0 { "throughput_loss" } else { "throughput_gain" };
            self.add(high, &table, quantity, Some(change.abs()));
        }
        if let Some((change, table)) = change(self, "per_user_throughput") {
            self.add(high, &table, "per_user_loss", (change < 0.0).then(|| change.abs()));
        }
    }

    /// The highest level of a family against its lowest, and every level against the best.
    fn add_ends(&mut self, family: &[&FactRow]) {
        let (Some(first), Some(last)) = (family.first(), family.last()) else { return };
        self.add_ratio(last, "throughput_times", "output_throughput", (first, "output_throughput"));
        self.add_ratio(last, "tpot_times", "tpot.p99", (first, "tpot.p99"));
        let values: Vec<Option<(f64, String)>> =
            family.iter().map(|row| self.value(row, "output_throughput")).collect();
        let peak = values.iter().flatten().map(|(value, _)| *value).reduce(f64::max);
        let Some(peak) = peak.filter(|peak| 0.0 < *peak) else { return };
        for (row, found) in family.iter().zip(values) {
            let Some((value, table)) = found else { continue };
            self.add(row, &table, "share_of_peak", Some(value / peak));
        }
    }

    fn add_ratio(
        &mut self,
        row: &FactRow,
        quantity: &str,
        above: &str,
        (below_row, below): (&FactRow, &str),
    ) {
        let parts = self.value(row, above).zip(self.value(below_row, below));
        let Some(((above, table), (below, _))) = parts else { return };
        self.add(row, &table, quantity, (0.0 < below).then(|| above / below));
    }

    /// A number of a row with its table.
    fn value(&self, row: &FactRow, quantity: &str) -> Option<(f64, String)> {
        let (quantity, statistic) = split_statistic(quantity);
        let place = self.find(row.scenario.as_deref(), quantity, statistic)?;
        let fact = &self.facts[place];
        Some((fact.value, fact.table.clone()))
    }
}

/// `ttft.p99` is the p99 of `ttft`.
pub(super) fn split_statistic(quantity: &str) -> (&str, Option<&str>) {
    match quantity.split_once('.') {
        Some((quantity, statistic)) => (quantity, Some(statistic)),
        None => (quantity, None),
    }
}

fn certified_from() -> f64 {
    Percentile::P99.certified_from() as f64
}

/// What narratives are about: what the client saw.
fn client_quantities() -> impl Iterator<Item = Quantity> {
    let metrics = METRICS.iter().filter(|metric| !metric.is_telemetry);
    metrics.flat_map(|metric| metric.quantities(&STATISTICS))
}

/// In flight at most, where there is such a bound.
fn concurrency_of_load(summary: &Summary) -> Option<u32> {
    match &summary.run.load {
        LoadFacts::Closed { concurrency, .. } => Some(*concurrency),
        LoadFacts::Open { max_concurrency, .. } => *max_concurrency,
    }
}

/// Requests per second, where they come steadily and wait for no other.
fn steady_rate(summary: &Summary) -> Option<f64> {
    match &summary.run.load {
        LoadFacts::Open { rate: RateFacts::Steady { per_s }, .. } => Some(*per_s),
        LoadFacts::Open { .. } | LoadFacts::Closed { .. } => None,
    }
}

/// As the workload asked for them, where it asks for one length each, or for lengths around one.
fn lengths(summary: &Summary) -> (Option<f64>, Option<f64>) {
    let one = |lengths: &Option<Lengths>| {
        let lengths = lengths.as_ref()?;
        let around = if let Lengths::Around { mean, .. } = lengths { Some(*mean) } else { None };
        lengths.fixed().or(around).map(f64::from)
    };
    (one(&summary.workload.input_tokens), one(&summary.workload.output_tokens))
}

fn gpus(summary: &Summary) -> Option<f64> {
    let machine = summary.system.server.as_ref()?.machine.as_ref()?;
    Some(machine.gpus.len() as f64).filter(|gpus| 0.0 < *gpus)
}

/// All requests of the level's runs.
fn attempted(level: &LevelSummary) -> u64 {
    level.requests.ok + level.requests.failed + level.requests.cancelled
}

/// The mean over runs and the most of a run. The mean is over runs, not over their tokens: pages
/// print it so. Warnings rest on the worst run.
type CachedShares = (Option<f64>, Option<f64>);

/// What part of the input of each run came from the cache, by those whose server says it.
fn cached_shares(runs: &[&Summary]) -> CachedShares {
    let own = |summary: &&Summary| {
        let by_counters = || summary.server.as_ref()?.prefix_hit_share;
        summary.workload.audit.cache.share.or_else(by_counters)
    };
    let shares: Vec<f64> = runs.iter().filter_map(own).collect();
    let is_whole = shares.len() == runs.len() && !shares.is_empty();
    let mean = is_whole.then(|| shares.iter().sum::<f64>() / shares.len() as f64);
    (mean, shares.iter().copied().reduce(f64::max))
}

/// Whether the numbers of a level are of what was asked there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Completeness {
    #[default]
    Complete,
    /// A limit of time ended it: its numbers are of the quick requests.
    Cut,
    /// Far fewer were ever in flight than its name says.
    NotReached,
}

/// A level with its row on pages.
pub(super) struct NamedLevel<'a> {
    pub(super) row: Row<'a>,
    pub(super) condition: u32,
    pub(super) level: &'a LevelSummary,
    pub(super) concurrency: Option<u32>,
    pub(super) completeness: Completeness,
    cached: CachedShares,
}

/// The levels of a set, in the order of its pages. A level without a run has none.
pub(super) fn named_levels<'a>(
    set: &'a SetSummary,
    points: &'a [PointResult],
) -> Vec<NamedLevel<'a>> {
    if set.suite.is_some() {
        let rows = rows::of_suite(set, points).into_iter();
        return rows.filter_map(|row| NamedLevel::new(row.scenario?.condition, row)).collect();
    }
    let conditions = (0_u32..).zip(rows::of_conditions(set, points));
    let levels = conditions.flat_map(|(place, rows)| {
        rows.into_iter().filter_map(move |row| NamedLevel::new(place, row))
    });
    levels.collect()
}

impl<'a> NamedLevel<'a> {
    fn new(condition: u32, row: Row<'a>) -> Option<Self> {
        let level = row.level?;
        let completeness = if level.cut.as_ref().is_some_and(|cut| cut.answers_missing) {
            Completeness::Cut
        } else if level.is_reached() {
            Completeness::Complete
        } else {
            Completeness::NotReached
        };
        let concurrency = match (row.scenario, level.level) {
            (Some(scenario), _) => scenario.concurrency,
            (None, Level::Concurrency(requests)) => Some(requests.get()),
            (None, Level::AsAsked) => row.runs.first().and_then(|run| concurrency_of_load(run)),
            (None, Level::Rate(_) | Level::Unlimited) => None,
        };
        let (mean, most) = cached_shares(&row.runs);
        let cached = (row.scenario.and_then(|scenario| scenario.cached_share).or(mean), most);
        Some(Self { row, condition, level, concurrency, completeness, cached })
    }

    fn fact_row(&self) -> FactRow {
        FactRow { scenario: Some(self.row.name.clone()), concurrency: self.concurrency }
    }
}

/// What a level of a set is called: the condition with its level, or either alone. Suites bring the
/// names of their rows with them.
pub fn row_name(condition: &str, level: Level, several_conditions: bool) -> String {
    let level = match level {
        Level::AsAsked => return condition.to_owned(),
        Level::Concurrency(requests) => format!("c={requests}"),
        Level::Rate(_) | Level::Unlimited => level.to_string(),
    };
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

/// The places of the levels of each scenario that has several, from the lowest to the highest.
fn families<'n>(
    rows: impl Iterator<Item = (Option<&'n str>, Option<u32>)>,
) -> Vec<(&'n str, Vec<usize>)> {
    let mut families: Vec<(&str, Vec<_>)> = Vec::new();
    for (place, (name, concurrency)) in rows.enumerate() {
        let Some(name) = name.and_then(|name| family(name, concurrency)) else { continue };
        match families.iter_mut().find(|(known, _)| *known == name) {
            Some((_, own)) => own.push((concurrency, place)),
            None => families.push((name, vec![(concurrency, place)])),
        }
    }
    let several = families.into_iter().filter(|(_, own)| 1 < own.len());
    let sorted = several.map(|(name, mut own)| {
        own.sort_unstable();
        (name, own.into_iter().map(|(_, place)| place).collect())
    });
    sorted.collect()
}

/// The id of the table with the key metrics of a scenario.
pub fn table_of_scenario(name: &str) -> String {
    format!("scenario-{}", slug(name))
}

/// Lower-case words joined by hyphens.
pub fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.join("-")
}

/// Numbers of a page that are no metric of the table of metrics, and no plain number either.
const OTHERS: &[(FactUnit, Better, &[&str])] = &[
    (FactUnit::Tokens, Better::Neither, &["input_tokens", "output_tokens"]),
    (
        FactUnit::Requests,
        Better::Neither,
        &["requests", "attempted_requests", "certified_from", "running"],
    ),
    (FactUnit::Requests, Better::Lower, &["failed_requests", "waiting"]),
    (FactUnit::RequestsPerSecond, Better::Neither, &["asked_rate"]),
    (FactUnit::Share, Better::Neither, &["cached_share"]),
    (
        FactUnit::Share,
        Better::Higher,
        &["served_share", "throughput_gain", "share_of_peak", "sweet_spot_same"],
    ),
    (
        FactUnit::Share,
        Better::Lower,
        &[
            "kv_usage",
            "throughput_loss",
            "per_user_loss",
            "ttft_spread",
            "tpot_spread",
            "half_width",
        ],
    ),
    (FactUnit::Number, Better::Higher, &["throughput_times"]),
    (
        FactUnit::Number,
        Better::Lower,
        &[
            "degraded",
            "invalid",
            "preemptions",
            "tpot_times",
            "ttft_tail",
            "ttft_skew",
            "tpot_tail",
            "itl_tail",
            "itl_max_times",
        ],
    ),
];

/// A plain number for a name that stands nowhere.
fn unit_of(quantity: &str) -> (FactUnit, Better) {
    if let Some(metric) = Metric::named(quantity) {
        let unit = match metric.unit {
            Unit::Milliseconds => FactUnit::Milliseconds,
            Unit::RequestsPerSecond => FactUnit::RequestsPerSecond,
            Unit::TokensPerSecond => FactUnit::TokensPerSecond,
            Unit::Requests => FactUnit::Requests,
            Unit::Share => FactUnit::Share,
            Unit::Watts => FactUnit::Watts,
            Unit::JoulesPerToken => FactUnit::JoulesPerToken,
            Unit::TokensPerJoule => FactUnit::TokensPerJoule,
        };
        return (unit, metric.better);
    }
    let other = OTHERS.iter().find(|(_, _, names)| names.contains(&quantity));
    other.map_or((FactUnit::Number, Better::Neither), |(unit, better, _)| (*unit, *better))
}

/// A number as tables and sentences have it, without its unit (a share has its sign of per cent).
pub fn printed(quantity: &str, value: f64) -> String {
    let is_ratio = ["_tail", "_skew", "_times"].iter().any(|end| quantity.ends_with(end));
    let unit = unit_of(quantity).0;
    if unit == FactUnit::Share {
        percent(value)
    } else if unit == FactUnit::Number && is_ratio {
        // A second decimal of a ratio would promise too much.
        decimals(value, 1)
    } else if matches!(unit, FactUnit::Tokens | FactUnit::Requests | FactUnit::Number)
        && quantity != "concurrency_mean"
    {
        whole(value)
    } else {
        number(value)
    }
}

impl FactUnit {
    /// What stands after the number; empty where nothing does.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Milliseconds => " ms",
            Self::Seconds => " s",
            Self::TokensPerSecond => " tok/s",
            Self::RequestsPerSecond => " requests/s",
            Self::Tokens => " tokens",
            Self::Requests => " requests",
            Self::Watts => " W",
            Self::JoulesPerToken => " J/tok",
            Self::TokensPerJoule => " tok/J",
            // The sign of per cent is printed with the number.
            Self::Share | Self::Number => "",
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
        let names: Vec<&str> = OTHERS.iter().flat_map(|(_, _, names)| *names).copied().collect();
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
