//! The numbers of a suite, a sweep or a repetition: one row for each level of each condition.

use inferometer_analysis::set::{LevelSummary, PointResult, SetSummary};
use inferometer_analysis::{METRICS, Percentile, Quantity, Shape, Summary, Verdict};
use inferometer_model::campaign::Level;

use super::run::{self, STATISTICS};
use super::{Added, Facts, Row, row_name, table_of_scenario};

/// A level with what pages call it.
pub(in crate::narrative) struct NamedLevel<'a> {
    pub(in crate::narrative) name: String,
    pub(in crate::narrative) condition: u32,
    pub(in crate::narrative) level: &'a LevelSummary,
    pub(in crate::narrative) concurrency: Option<u32>,
    pub(in crate::narrative) runs: Vec<&'a Summary>,
    cached_share: Option<f64>,
}

/// The rows of a set, in the order of its pages. A level without a run has none.
pub(in crate::narrative) fn named_levels<'a>(
    set: &'a SetSummary,
    points: &'a [PointResult],
) -> Vec<NamedLevel<'a>> {
    if let Some(suite) = &set.suite {
        let rows = suite.rows.iter().filter_map(|row| {
            let level = level_of(set, row.condition, row.level)?;
            let runs = runs_of(points, level);
            Some(NamedLevel {
                name: row.name.clone(),
                condition: row.condition,
                level,
                concurrency: row.concurrency,
                cached_share: row.cached_share.or_else(|| run::cached_share(&runs)),
                runs,
            })
        });
        return rows.collect();
    }
    let several = 1 < set.conditions.len();
    let conditions = (0_u32..).zip(&set.conditions);
    let levels = conditions.flat_map(|(place, condition)| {
        condition.levels.iter().map(move |level| {
            let runs = runs_of(points, level);
            NamedLevel {
                name: row_name(&condition.name, level.level, several),
                condition: place,
                level,
                concurrency: concurrency(level.level, &runs),
                cached_share: run::cached_share(&runs),
                runs,
            }
        })
    });
    levels.collect()
}

fn level_of(set: &SetSummary, condition: u32, level: Level) -> Option<&LevelSummary> {
    let condition = set.conditions.get(usize::try_from(condition).ok()?)?;
    condition.levels.iter().find(|known| known.level == level)
}

/// The runs of the level that count.
fn runs_of<'a>(points: &'a [PointResult], level: &LevelSummary) -> Vec<&'a Summary> {
    let counts = |point: &&PointResult| level.points.contains(&point.point.number);
    points.iter().filter(counts).map(|point| &point.summary).collect()
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

pub(super) fn add(facts: &mut Facts, set: &SetSummary, points: &[PointResult]) {
    let levels = named_levels(set, points);
    add_page(facts, set, &levels);
    for named in &levels {
        add_level(facts, set, named);
    }
    add_contaminated(facts, set);
    add_choices(facts, set, &levels);
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
    for found in &suite.contaminated {
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
        ("scenarios", levels.len() as f64),
        ("degraded", with(Verdict::Degraded) as f64),
        ("invalid", with(Verdict::Invalid) as f64),
        ("requests", levels.iter().map(|one| attempted(one.level)).sum::<u64>() as f64),
        ("failed_requests", levels.iter().map(|one| one.level.requests.failed).sum::<u64>() as f64),
        ("certified_from", Percentile::P99.certified_from() as f64),
    ] {
        page.add(facts, Added::new(quantity, Some(value), table));
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
    let rate = if let Level::Rate(per_s) = named.level.level { Some(per_s) } else { None };
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
    run::add_cache(facts, &row, named.cached_share, tables.of("cached_share", None));
    run::add_server(facts, &row, &named.runs, tables.of("kv_usage", Some("max")));
}

fn add_quantities(facts: &mut Facts, row: &Row, level: &LevelSummary, tables: &Tables) {
    for metric in METRICS {
        let statistics = match metric.shape() {
            Shape::Distribution => STATISTICS.map(Some).to_vec(),
            Shape::Scalar => vec![None],
        };
        for statistic in statistics {
            let Some(quantity) = Quantity::new(metric, statistic) else { continue };
            let Some(across) = level.quantity(&quantity.to_string()) else { continue };
            let statistic = statistic.map(inferometer_analysis::Statistic::name);
            let table = tables.of(metric.name, statistic);
            let added = Added::new(metric.name, across.mean, table).within(across.doubt());
            row.add(facts, Added { statistic, ..added });
        }
    }
}
