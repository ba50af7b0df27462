//! Numbers that others have published, without a run behind them.

use inferometer_analysis::Percentile;

use super::{Added, Facts, Row, table_of_scenario};

/// One row of a published table; what it does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedFacts {
    /// With its level, such as `Concurrency Scaling (c=4)`.
    pub scenario: String,
    pub concurrency: Option<u32>,
    pub input_tokens: Option<f64>,
    pub output_tokens: Option<f64>,
    pub requests: Option<u64>,
    pub output_throughput: Option<f64>,
    pub peak_output_throughput: Option<f64>,
    pub ttft_ms_mean: Option<f64>,
    pub ttft_ms_p50: Option<f64>,
    pub ttft_ms_p99: Option<f64>,
    pub tpot_ms_mean: Option<f64>,
    pub tpot_ms_p50: Option<f64>,
    pub tpot_ms_p99: Option<f64>,
    /// Taken from the lengths and latencies where it is not given.
    pub pp: Option<f64>,
    pub tg: Option<f64>,
}

impl PublishedFacts {
    fn prefill_speed(&self) -> Option<f64> {
        let derived = || Some(self.input_tokens? / (self.ttft_ms_mean? / 1e3));
        self.pp.or_else(derived)
    }

    fn decode_speed(&self) -> Option<f64> {
        self.tg.or_else(|| self.tpot_ms_mean.map(|mean| 1e3 / mean))
    }

    fn per_user(&self) -> Option<f64> {
        Some(self.output_throughput? / f64::from(self.concurrency?))
    }
}

pub(super) fn add(facts: &mut Facts, rows: &[PublishedFacts]) {
    let page = Row { scenario: None, concurrency: None };
    page.add(facts, Added::new("levels", Some(rows.len() as f64), "performance-summary"));
    let floor = Some(Percentile::P99.certified_from() as f64);
    page.add(facts, Added::new("certified_from", floor, "performance-summary"));
    for published in rows {
        add_row(facts, published);
    }
    for published in rows {
        add_prefill_times(facts, published);
    }
}

/// Prefill against the one of a single user.
fn add_prefill_times(facts: &mut Facts, published: &PublishedFacts) {
    let Some(alone) = alone(facts, &published.scenario) else { return };
    let own = published.prefill_speed();
    let times = own.map(|own| own / facts.facts[alone].value);
    let row =
        Row { scenario: Some(published.scenario.clone()), concurrency: published.concurrency };
    row.add(facts, Added::new("pp_times", times, "prefill-decode"));
}

/// The prefill speed of one request at a time, whose prompts are as long as those of this scenario
/// or somewhat longer; `None` where this one is itself alone. Short prompts fill a GPU less, and
/// very long ones cost more per token, so others say nothing about it.
pub(in crate::narrative) fn alone(facts: &Facts, scenario: &str) -> Option<usize> {
    let of = |name: &str, quantity: &str| {
        facts.find(Some(name), quantity, None).map(|place| facts.facts[place].value)
    };
    let own = of(scenario, "input_tokens")?;
    let users = of(scenario, "concurrency")?;
    let longer = facts.scenarios().into_iter().filter_map(|(name, concurrency)| {
        let (name, 1) = (name?, concurrency?) else { return None };
        let length = of(name, "input_tokens")?;
        (own..=own * LENGTHS_ALIKE).contains(&length).then_some((length, name))
    });
    let (_, name) = longer.min_by(|(a, _), (b, _)| a.total_cmp(b)).filter(|_| 1.0 < users)?;
    facts.find(Some(name), "pp", None).filter(|place| 0.0 < facts.facts[*place].value)
}

/// A prompt this many times longer costs about as much per token: attention, the part that grows
/// with the length, is still the smaller one.
const LENGTHS_ALIKE: f64 = 4.0;

fn add_row(facts: &mut Facts, published: &PublishedFacts) {
    let row =
        Row { scenario: Some(published.scenario.clone()), concurrency: published.concurrency };
    let (summary, speeds) = ("performance-summary", "prefill-decode");
    let own = table_of_scenario(&published.scenario);
    let requests = published.requests.map(|requests| requests as f64);
    for (quantity, value, table) in [
        ("concurrency", published.concurrency.map(f64::from), summary),
        ("input_tokens", published.input_tokens, summary),
        ("output_tokens", published.output_tokens, summary),
        ("requests", requests, &own),
        ("output_throughput", published.output_throughput, summary),
        ("peak_output_throughput", published.peak_output_throughput, &own),
        ("per_user_throughput", published.per_user(), "concurrency-scaling"),
        ("pp", published.prefill_speed(), speeds),
        ("tg", published.decode_speed(), speeds),
    ] {
        row.add(facts, Added::new(quantity, value, table));
    }
    for (quantity, statistic, value, table) in [
        ("ttft", "mean", published.ttft_ms_mean, summary),
        ("ttft", "p50", published.ttft_ms_p50, &own),
        ("ttft", "p99", published.ttft_ms_p99, &own),
        ("tpot", "mean", published.tpot_ms_mean, summary),
        ("tpot", "p50", published.tpot_ms_p50, &own),
        ("tpot", "p99", published.tpot_ms_p99, summary),
    ] {
        row.add(facts, Added::new(quantity, value, table).of(statistic));
    }
}
