//! The numbers of a run that no table of levels has: counts, lengths, and what the server said.

use inferometer_analysis::{
    LoadFacts, METRICS, Percentile, RateFacts, ServerSide, Statistic, Summary,
};
use inferometer_model::Outcome;
use inferometer_model::spec::Lengths;

use super::{Added, Facts, Row};

/// What is said of a distribution.
pub(super) const STATISTICS: [Statistic; 5] = [
    Statistic::Mean,
    Statistic::Percentile(Percentile::P50),
    Statistic::Percentile(Percentile::P95),
    Statistic::Percentile(Percentile::P99),
    Statistic::Max,
];

/// A page about the run alone.
pub(super) fn add(facts: &mut Facts, summary: &Summary) {
    let row = Row { scenario: None, concurrency: concurrency(summary) };
    let table = "run-metrics";
    let floor = Some(Percentile::P99.certified_from() as f64);
    row.add(facts, Added::new("certified_from", floor, table));
    row.add(facts, Added::new("runs", Some(1.0), table));
    add_hardware(facts, &row, summary);
    let asked = row.concurrency.map(f64::from);
    row.add(facts, Added::new("concurrency", asked, table));
    let (input, output) = lengths(summary);
    row.add(facts, Added::new("input_tokens", input, table));
    row.add(facts, Added::new("output_tokens", output, table));
    row.add(facts, Added::new("requests", Some(summary.attempted as f64), table));
    row.add(facts, Added::new("attempted_requests", Some(summary.attempted as f64), table));
    row.add(facts, Added::new("failed_requests", Some(failed(summary) as f64), table));
    add_metrics(facts, &row, summary);
    row.add(facts, Added::new("asked_rate", rate(summary), table));
    let cached = CachedShares::of(&[summary]);
    add_cache(facts, &row, (cached.mean, cached.most), table);
    add_server(facts, &row, &[summary], "server-side");
}

/// In flight at most, where there is such a bound.
pub(super) fn concurrency(summary: &Summary) -> Option<u32> {
    match &summary.run.load {
        LoadFacts::Closed { concurrency, .. } => Some(*concurrency),
        LoadFacts::Open { max_concurrency, .. } => *max_concurrency,
    }
}

/// As the workload asked for them, where it asks for one length each, or for lengths around one.
pub(super) fn lengths(summary: &Summary) -> (Option<f64>, Option<f64>) {
    let workload = &summary.workload;
    let one = |lengths: &Option<Lengths>| {
        let lengths = lengths.as_ref()?;
        let around = if let Lengths::Around { mean, .. } = lengths { Some(*mean) } else { None };
        lengths.fixed().or(around).map(f64::from)
    };
    (one(&workload.input_tokens), one(&workload.output_tokens))
}

/// Requests that ended by themselves, and not well.
pub(super) fn failed(summary: &Summary) -> u64 {
    let ended = summary.count(Outcome::Ok) + summary.count(Outcome::Cancelled);
    summary.attempted.saturating_sub(ended)
}

pub(super) fn add_hardware(facts: &mut Facts, row: &Row, summary: &Summary) {
    let machine = summary.system.server.as_ref().and_then(|server| server.machine.as_ref());
    let gpus = machine.map(|machine| machine.gpus.len()).filter(|gpus| 0 < *gpus);
    let gpus = gpus.map(|gpus| gpus as f64);
    row.add(facts, Added::new("gpus", gpus, "system-configuration"));
}

fn add_metrics(facts: &mut Facts, row: &Row, summary: &Summary) {
    // Narratives are about what the client saw.
    for metric in METRICS.iter().filter(|metric| !metric.is_telemetry()) {
        if let Some(scalar) = summary.metrics.scalar(metric) {
            let added = Added::new(metric.name, scalar.value, "run-numbers");
            row.add(facts, added.within(scalar.interval));
        }
        let Some(found) = summary.metrics.distribution(metric) else { continue };
        for statistic in STATISTICS {
            let added = Added::new(metric.name, statistic.stored(found), "run-metrics");
            row.add(facts, added.of(statistic.name()).within(found.intervals.get(statistic)));
        }
    }
}

/// Requests per second, where they come steadily and wait for no other.
pub(super) fn rate(summary: &Summary) -> Option<f64> {
    match &summary.run.load {
        LoadFacts::Open { rate: RateFacts::Steady { per_s }, .. } => Some(*per_s),
        LoadFacts::Open { .. } | LoadFacts::Closed { .. } => None,
    }
}

pub(super) fn add_cache(
    facts: &mut Facts,
    row: &Row,
    (mean, most): (Option<f64>, Option<f64>),
    table: &str,
) {
    row.add(facts, Added::new("cached_share", mean, table));
    row.add(facts, Added::new("cached_share", most, table).of("max"));
}

/// What part of the input of each run came from the cache, by those whose server says it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedShares {
    /// Over runs, not over their tokens: pages print it so.
    pub(super) mean: Option<f64>,
    /// Warnings rest on the worst run.
    pub(super) most: Option<f64>,
}

impl CachedShares {
    pub(super) fn of(runs: &[&Summary]) -> Self {
        let own = |summary: &&Summary| {
            let by_counters = || summary.server.as_ref()?.prefix_hit_share;
            summary.workload.audit.cache.share.or_else(by_counters)
        };
        let shares: Vec<f64> = runs.iter().filter_map(own).collect();
        let is_whole = shares.len() == runs.len() && !shares.is_empty();
        Self {
            mean: is_whole.then(|| shares.iter().sum::<f64>() / shares.len() as f64),
            most: shares.iter().copied().reduce(f64::max),
        }
    }
}

/// The most that any of the runs has seen.
pub(super) fn add_server(facts: &mut Facts, row: &Row, runs: &[&Summary], table: &str) {
    let servers: Vec<&ServerSide> = runs.iter().filter_map(|run| run.server.as_ref()).collect();
    let most = |of: &dyn Fn(&ServerSide) -> Option<f64>| {
        servers.iter().filter_map(|server| of(server)).reduce(f64::max)
    };
    for (quantity, value) in [
        ("kv_usage", most(&|server| Some(server.kv_usage?.max))),
        ("running", most(&|server| Some(server.running?.max))),
        ("waiting", most(&|server| Some(server.waiting?.max))),
    ] {
        row.add(facts, Added::new(quantity, value, table).of("max"));
    }
    // The run that ran the most by its mean: whoever says that requests were held back must be
    // right about all runs.
    let running = most(&|server| Some(server.running?.mean));
    row.add(facts, Added::new("running", running, table).of("mean"));
    let fewest = servers.iter().map(|server| server.scrapes.inside).min();
    let readings = fewest.filter(|_| servers.len() == runs.len()).map(|fewest| fewest as f64);
    row.add(facts, Added::new("readings", readings, table));
    let preempted = most(&|server| Some(server.preemptions?.total));
    row.add(facts, Added::new("preemptions", preempted, table));
}
