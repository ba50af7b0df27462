//! The numbers of a suite, a sweep or a repetition: one row for each level of each condition.

use std::collections::BTreeSet;

use inferometer_analysis::set::{LevelSummary, PointResult, SetSummary};
use inferometer_analysis::{METRICS, Percentile, Summary, Verdict};
use inferometer_model::campaign::Level;

use super::run::{self, CachedShares, STATISTICS};
use super::standing::Standing;
use super::{Added, Facts, Row, row_name, table_of_scenario};

/// A level with what pages call it.
pub(in crate::narrative) struct NamedLevel<'a> {
    pub(in crate::narrative) name: String,
    pub(in crate::narrative) condition: u32,
    pub(in crate::narrative) level: &'a LevelSummary,
    pub(in crate::narrative) concurrency: Option<u32>,
    /// Those that count.
    pub(in crate::narrative) runs: Vec<&'a Summary>,
    /// The invalid ones: they count only where failures are counted.
    pub(in crate::narrative) invalid: Vec<&'a Summary>,
    pub(in crate::narrative) standing: Standing,
    cached: (Option<f64>, Option<f64>),
}

/// The rows of a set, in the order of its pages. A level without a run has none.
pub(in crate::narrative) fn named_levels<'a>(
    set: &'a SetSummary,
    points: &'a [PointResult],
) -> Vec<NamedLevel<'a>> {
    if let Some(suite) = &set.suite {
        let rows = suite.rows.iter().filter_map(|row| {
            let level = level_of(set, row.condition, row.level)?;
            let named = NamedLevel::new(row.name.clone(), (row.condition, level), points);
            let cached = (row.cached_share.or(named.cached.0), named.cached.1);
            Some(NamedLevel { concurrency: row.concurrency, cached, ..named })
        });
        return rows.collect();
    }
    let several = 1 < set.conditions.len();
    let conditions = (0_u32..).zip(&set.conditions);
    let levels = conditions.flat_map(|(place, condition)| {
        condition.levels.iter().map(move |level| {
            let name = row_name(&condition.name, level.level, several);
            NamedLevel::new(name, (place, level), points)
        })
    });
    levels.collect()
}

impl<'a> NamedLevel<'a> {
    fn new(
        name: String,
        (condition, level): (u32, &'a LevelSummary),
        points: &'a [PointResult],
    ) -> Self {
        let runs = runs_of(points, &level.points);
        let cached = CachedShares::of(&runs);
        Self {
            name,
            condition,
            level,
            concurrency: concurrency(level.level, &runs),
            invalid: runs_of(points, &level.left_out),
            standing: Standing::of(level),
            cached: (cached.mean, cached.most),
            runs,
        }
    }
}

fn level_of(set: &SetSummary, condition: u32, level: Level) -> Option<&LevelSummary> {
    let condition = set.conditions.get(usize::try_from(condition).ok()?)?;
    condition.levels.iter().find(|known| known.level == level)
}

fn runs_of<'a>(points: &'a [PointResult], numbers: &[u32]) -> Vec<&'a Summary> {
    let is_one = |point: &&PointResult| numbers.contains(&point.point.number);
    points.iter().filter(is_one).map(|point| &point.summary).collect()
}

fn concurrency(level: Level, runs: &[&Summary]) -> Option<u32> {
    match level {
        Level::Concurrency(requests) => Some(requests.get()),
        Level::AsAsked => runs.first().and_then(|summary| run::concurrency(summary)),
        Level::Rate(_) | Level::Unlimited => None,
    }
}

/// Which table has a number: suites have several tables, other sets one.
struct Tables {
    is_suite: bool,
    is_scaling: bool,
    own: String,
}

impl Tables {
    fn of(&self, quantity: &str, statistic: Option<&str>) -> &str {
        match (quantity, statistic) {
            _ if !self.is_suite => "set-levels",
            ("pp" | "tg", _) => "prefill-decode",
            ("per_user_throughput", _) if self.is_scaling => "concurrency-scaling",
            ("input_tokens" | "output_tokens" | "concurrency" | "output_throughput", _)
            | ("ttft", Some("mean"))
            | ("tpot", Some("mean" | "p99")) => "performance-summary",
            _ => &self.own,
        }
    }

    fn page(is_suite: bool) -> &'static str {
        if is_suite { "performance-summary" } else { "set-levels" }
    }
}

/// The names of the rows that can be compared with no other.
pub(super) fn add(facts: &mut Facts, set: &SetSummary, points: &[PointResult]) -> Vec<String> {
    let levels = named_levels(set, points);
    add_page(facts, set, &levels);
    for named in &levels {
        add_level(facts, set, named);
    }
    add_contaminated(facts, set);
    add_choices(facts, set, &levels);
    let left_out = levels.into_iter().filter(|named| named.standing != Standing::Whole);
    left_out.map(|named| named.name).collect()
}

/// Which level is the sweet spot, and how often a set drawn again chooses the same, as facts of
/// that level.
fn add_choices(facts: &mut Facts, set: &SetSummary, levels: &[NamedLevel<'_>]) {
    for (place, condition) in (0_u32..).zip(&set.conditions) {
        let findings = condition.findings.as_ref();
        let Some(spot) = findings.and_then(|findings| findings.sweet_spot.found()) else {
            continue;
        };
        let is_it = |one: &&NamedLevel<'_>| one.condition == place && one.level.level == spot.level;
        let Some(named) = levels.iter().find(is_it) else { continue };
        let row = Row { scenario: Some(named.name.clone()), concurrency: named.concurrency };
        let table = if set.suite.is_some() { "concurrency-scaling" } else { "set-levels" };
        row.add(facts, Added::new("sweet_spot", named.concurrency.map(f64::from), table));
        row.add(facts, Added::new("sweet_spot_same", spot.same_share, table));
    }
}

/// How much faster prompts were read than those of a row that no cache had seen.
fn add_contaminated(facts: &mut Facts, set: &SetSummary) {
    let Some(suite) = &set.suite else { return };
    for found in suite.contaminated.iter().filter(|found| !found.same_data) {
        let place = usize::try_from(found.row).ok();
        let Some(row) = place.and_then(|place| suite.rows.get(place)) else { continue };
        let times = found.pp.zip(found.pp_cold).filter(|(_, cold)| 0.0 < *cold);
        let times = times.map(|(warm, cold)| warm / cold);
        let own = Row { scenario: Some(row.name.clone()), concurrency: row.concurrency };
        own.add(facts, Added::new("pp_times", times, "prefill-decode"));
    }
}

fn add_page(facts: &mut Facts, set: &SetSummary, levels: &[NamedLevel<'_>]) {
    let page = Row { scenario: None, concurrency: None };
    let table = Tables::page(set.suite.is_some());
    let with = |verdict| levels.iter().filter(|named| named.level.verdict == verdict).count();
    let fewest = levels.iter().map(|named| named.level.points.len()).min();
    for (quantity, value) in [
        ("levels", levels.len() as f64),
        ("degraded", with(Verdict::Degraded) as f64),
        ("invalid", with(Verdict::Invalid) as f64),
        ("requests", levels.iter().map(|one| attempted(one.level)).sum::<u64>() as f64),
        ("failed_requests", levels.iter().map(|one| one.level.requests.failed).sum::<u64>() as f64),
        ("certified_from", Percentile::P99.certified_from() as f64),
    ] {
        page.add(facts, Added::new(quantity, Some(value), table));
    }
    if set.suite.is_some() {
        let scenarios: BTreeSet<u32> = levels.iter().map(|named| named.condition).collect();
        page.add(facts, Added::new("scenarios", Some(scenarios.len() as f64), table));
    }
    page.add(facts, Added::new("runs", fewest.map(|runs| runs as f64), table));
    let first = levels.iter().find_map(|named| named.runs.first());
    if let Some(summary) = first {
        run::add_hardware(facts, &page, summary);
    }
}

/// All runs of the level added up.
fn attempted(level: &LevelSummary) -> u64 {
    level.requests.ok + level.requests.failed + level.requests.cancelled
}

fn add_level(facts: &mut Facts, set: &SetSummary, named: &NamedLevel<'_>) {
    let row = Row { scenario: Some(named.name.clone()), concurrency: named.concurrency };
    let suite = set.suite.as_ref();
    let tables = Tables {
        is_suite: suite.is_some(),
        is_scaling: suite.is_some_and(|suite| suite.scaling == Some(named.condition)),
        own: table_of_scenario(&named.name),
    };
    let (input, output) = named.runs.first().map_or((None, None), |run| run::lengths(run));
    // Of one run: a percentile is certified by the requests of a run, not by those of all.
    let requests = named.runs.iter().map(|run| run.attempted).min();
    let rate = match named.level.level {
        Level::Rate(per_s) => Some(per_s),
        Level::AsAsked => named.runs.first().and_then(|run| run::rate(run)),
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
        row.add(facts, Added::new(quantity, value, tables.of(quantity, None)));
    }
    add_quantities(facts, &row, named.level, &tables);
    run::add_cache(facts, &row, named.cached, tables.of("cached_share", None));
    run::add_server(facts, &row, &named.runs, tables.of("kv_usage", Some("max")));
}

fn add_quantities(facts: &mut Facts, row: &Row, level: &LevelSummary, tables: &Tables) {
    // Narratives are about what the client saw.
    for metric in METRICS.iter().filter(|metric| !metric.is_telemetry()) {
        for quantity in metric.quantities(&STATISTICS) {
            let Some(across) = level.quantity(quantity) else { continue };
            let statistic = quantity.statistic().map(inferometer_analysis::Statistic::name);
            let table = tables.of(metric.name, statistic);
            let added = Added::new(metric.name, across.mean, table).within(across.doubt());
            row.add(facts, Added { statistic, ..added });
        }
    }
}
