//! What a metric is, and the one table of them.
//!
//! Each metric is a static: `metric::TTFT`. Code names a metric by its static; its name as text is
//! for JSON, files and users. The summary, the pages and the documents walk [`METRICS`].
//!
//! To add a metric:
//! 1. write its static in `latency.rs` or `rate.rs`, and add it to [`METRICS`] where pages
//!    should show it; its definition, its formula and those of other tools are in `metrics.md`;
//! 2. give it a test with a hand-made record, its null case included;
//! 3. look at the snapshot of the summary, and generate the documents.

mod latency;
mod quantity;
mod rate;
mod value;

pub use self::latency::*;
pub use self::quantity::*;
pub use self::rate::*;
pub use self::value::*;

use crate::record::{Measured, Request, Ruler};
use crate::statistics::{Interval, Percentile};

/// Every metric, in the order of the pages.
pub static METRICS: &[&Metric] = &[
    &TTFT,
    &TTFT_SCHEDULE,
    &TTFC,
    &TTST,
    &ICL,
    &ITL,
    &TPOT,
    &E2E,
    &E2E_SCHEDULE,
    &CLIENT_QUEUE,
    &SEND_LAG,
    &SERVER_QUEUE,
    &SERVER_PREFILL,
    &SERVER_DECODE,
    &TTFT_OVERHEAD,
    &CLIENT_LAG,
    &ARRIVAL_WIDTH,
    &REQUEST_THROUGHPUT,
    &INPUT_THROUGHPUT,
    &OUTPUT_THROUGHPUT,
    &TOTAL_THROUGHPUT,
    &PER_USER_THROUGHPUT,
    &PEAK_OUTPUT_THROUGHPUT,
    &CONCURRENCY_MEAN,
    &CONCURRENCY_PEAK,
    &ERROR_RATE,
    &GOODPUT,
    &ATTAINMENT,
    &FLUIDITY,
    &PP,
    &TG,
    &SERVER_PROMPT_THROUGHPUT,
    &SERVER_GENERATION_THROUGHPUT,
    &REASONING_TOKENS,
    &REASONING_SHARE,
    &ACCEPTANCE_LENGTH,
    &ACCEPTANCE_RATE,
    &VALID_ANSWERS,
    &ACCURACY,
    &GPU_POWER,
    &ENERGY_PER_OUTPUT_TOKEN,
    &OUTPUT_TOKENS_PER_JOULE,
    &COST_PER_MILLION_OUTPUT_TOKENS,
    &COST_PER_MILLION_TOKENS,
];

/// The latencies that have one value per request, in the order of the columns of tables of requests:
/// those of the client first.
pub static PER_REQUEST: [&Metric; PER_REQUEST_COUNT] = {
    let (metrics, _) = per_request_metrics();
    *metrics.first_chunk().expect("there are no more of them than metrics")
};
pub(crate) const PER_REQUEST_COUNT: usize = per_request_metrics().1;

/// Such metrics, and how many there are; the rest of the list says nothing.
const fn per_request_metrics() -> ([&'static Metric; METRICS.len()], usize) {
    let (mut found, mut count) = ([METRICS[0]; METRICS.len()], 0);
    let mut looked_at = 0;
    while looked_at < 2 * METRICS.len() {
        let metric = METRICS[looked_at % METRICS.len()];
        let is_first_pass = looked_at < METRICS.len();
        if let Some(Latency { visible, value: Some(_), .. }) = metric.latency()
            && matches!(visible, Visible::OnRequests) == is_first_pass
        {
            found[count] = metric;
            count += 1;
        }
        looked_at += 1;
    }
    (found, count)
}

/// A quantity that a run is described by.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Without the unit: `ttft`.
    pub name: &'static str,
    /// The key in JSON where it is not the name.
    key: &'static str,
    /// What a page calls it.
    pub title: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub headline: Headline,
    /// Reported by the server or its GPUs, made of a price, or judged where it was asked for: a run without
    /// them lacks nothing, and pages leave it out.
    pub is_telemetry: bool,
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Milliseconds,
    RequestsPerSecond,
    TokensPerSecond,
    Requests,
    /// From 0 to 1.
    Share,
    TokensPerRequest,
    TokensPerStep,
    Watts,
    JoulesPerToken,
    TokensPerJoule,
    /// In the currency of the price.
    PerMillionTokens,
}

/// Which direction is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Better {
    Lower,
    Higher,
    Neither,
}

/// On which loads a metric belongs to the first screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headline {
    Never,
    ClosedLoop,
    OpenLoop,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Distribution,
    Scalar,
}

/// Why a number is not there.
pub(crate) type Missing = &'static str;

/// How a latency is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    /// Its value on one request in milliseconds, `None` where it cannot be measured there. A latency
    /// with several values per request has no such function; a separate pass gathers it.
    pub(crate) value: Option<fn(&Request<'_>, &mut Ruler) -> Option<f64>>,
    pub(crate) visible: Visible,
    /// Why there is no value when there is none.
    pub(crate) absent: Missing,
    /// Whether the figures of the steady window have it.
    pub(crate) in_steady_window: bool,
    /// Whether the figures of turns and of a mix's parts have it.
    pub(crate) in_groups: bool,
}

/// The requests on which a latency is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visible {
    /// Every request that was sent.
    OnRequests,
    /// Requests that ended `ok`: a failure that came fast is not a fast answer.
    OnAnswers,
    /// Answers that were requested as a stream.
    InStreams,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Latency(Latency),
    /// A single number, and its confidence interval within the run.
    Scalar(fn(&Measured) -> Result<f64, Missing>, fn(&Measured) -> Option<Interval>),
}

impl Metric {
    /// The key in JSON: distributions carry their unit in it, scalars beside their value.
    pub const fn key(&self) -> &'static str {
        if self.key.is_empty() { self.name } else { self.key }
    }

    pub const fn shape(&self) -> Shape {
        if self.latency().is_some() { Shape::Distribution } else { Shape::Scalar }
    }

    /// One sentence fragment that says what is measured.
    pub fn definition(&self) -> &'static str {
        self.described().find_map(|line| line.strip_prefix("Definition: ")).unwrap_or_default()
    }

    /// The definition in full; the short one where `metrics.md` has none.
    pub fn formula(&self) -> &'static str {
        let definition = self.definition();
        self.described().find_map(|line| line.strip_prefix("Formula: ")).unwrap_or(definition)
    }

    pub fn null_when(&self) -> &'static str {
        let absent = self.latency().map_or(NOTHING_OK, |latency| latency.absent);
        self.described().find_map(|line| line.strip_prefix("Null when: ")).unwrap_or(absent)
    }

    /// How its confidence interval is computed.
    pub fn interval(&self) -> &'static str {
        self.described().find_map(|line| line.strip_prefix("Interval: ")).unwrap_or_default()
    }

    /// The figure whose error a prediction of it has; `None` where its error is not known.
    pub(crate) fn predicted_as(&self) -> Option<&'static str> {
        self.described().find_map(|line| line.strip_prefix("Predicted as: "))
    }

    /// Other tools, and how their definitions differ.
    pub fn elsewhere(&self) -> Vec<(&'static str, &'static str)> {
        self.described().filter_map(|line| line.strip_prefix("- ")?.split_once(": ")).collect()
    }

    /// The lines of `metrics.md` about it.
    fn described(&self) -> impl Iterator<Item = &'static str> {
        let mut metrics = include_str!("metrics.md").split("\n## ");
        let own = metrics.find_map(|it| it.strip_prefix(self.name)?.strip_prefix('\n'));
        own.into_iter().flat_map(str::lines)
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        METRICS.iter().copied().find(|metric| metric.name == name)
    }

    /// The 99th percentile of a distribution.
    pub const fn p99(&'static self) -> Quantity {
        self.at(Statistic::Percentile(Percentile::P99))
    }

    /// The median of a distribution.
    pub const fn p50(&'static self) -> Quantity {
        self.at(Statistic::Percentile(Percentile::P50))
    }

    /// The mean of a distribution.
    pub const fn mean(&'static self) -> Quantity {
        self.at(Statistic::Mean)
    }

    /// A single number as a quantity.
    pub const fn quantity(&'static self) -> Quantity {
        Quantity::new(self, None)
    }

    /// One statistic of a distribution.
    pub const fn at(&'static self, statistic: Statistic) -> Quantity {
        Quantity::new(self, Some(statistic))
    }

    /// These statistics of a distribution; a single number has none and is itself.
    pub fn quantities(&'static self, statistics: &[Statistic]) -> Vec<Quantity> {
        match self.shape() {
            Shape::Distribution => statistics.iter().map(|statistic| self.at(*statistic)).collect(),
            Shape::Scalar => vec![self.quantity()],
        }
    }

    /// How a latency is measured; `None` for a single number.
    pub(crate) const fn latency(&self) -> Option<&Latency> {
        if let Source::Latency(latency) = &self.source { Some(latency) } else { None }
    }

    /// How it is measured on one request; `None` unless it has one value per request.
    pub(crate) fn per_request(&self) -> Option<&Latency> {
        self.latency().filter(|latency| latency.value.is_some())
    }

    /// Whether only a streamed answer shows it.
    pub(crate) fn is_within_stream(&self) -> bool {
        self.latency().is_some_and(|latency| latency.visible == Visible::InStreams)
    }

    pub(crate) fn value(&'static self, measured: &Measured) -> MetricValue {
        match self.source {
            Source::Latency(_) => MetricValue::Distribution(match &measured.series(self).found {
                Ok(found) => found.clone(),
                Err(reason) => Distribution::nothing(reason),
            }),
            Source::Scalar(formula, interval) => {
                MetricValue::Scalar(self.scalar(formula(measured), interval(measured)))
            }
        }
    }

    /// A single number; a latency has none.
    fn number(&self, measured: &Measured) -> Result<f64, Missing> {
        match self.source {
            Source::Scalar(formula, _) => formula(measured),
            Source::Latency(_) => Err("it is no single number"),
        }
    }

    fn scalar(&self, found: Result<f64, Missing>, interval: Option<Interval>) -> Scalar {
        let finite = found.and_then(|value| {
            if value.is_finite() { Ok(value) } else { Err("it is not a finite number") }
        });
        Scalar {
            value: finite.ok(),
            interval: finite.ok().and_then(|value| Some(interval?.including(value))),
            unit: self.unit.name().to_owned(),
            reason: finite.err().map(str::to_owned),
        }
    }
}

impl PartialEq for Metric {
    /// Names are unique in the table.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Unit {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::RequestsPerSecond => "req/s",
            Self::TokensPerSecond => "tok/s",
            Self::Requests => "requests",
            Self::Share => "share",
            Self::TokensPerRequest => "tok/req",
            Self::TokensPerStep => "tok/step",
            Self::Watts => "W",
            Self::JoulesPerToken => "J/tok",
            Self::TokensPerJoule => "tok/J",
            Self::PerMillionTokens => "per M tok",
        }
    }
}

impl Headline {
    /// Whether it belongs to the first screen of an open loop, or of a closed one.
    pub const fn is_on(self, is_open: bool) -> bool {
        match self {
            Self::Never => false,
            Self::ClosedLoop => !is_open,
            Self::OpenLoop => is_open,
            Self::Always => true,
        }
    }
}

/// Why a metric of answers has no value when there is no answer.
pub(crate) const NOTHING_OK: Missing = "no request ended ok";
pub(crate) const NOTHING_SENT: Missing = "no request was sent";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_number_that_is_not_finite_is_nothing() {
        let scalar = TG.scalar(Ok(f64::INFINITY), None);
        assert_eq!(scalar.value, None);
        assert!(scalar.reason.is_some());
    }

    #[test]
    fn the_table_is_in_the_documented_order_with_the_documented_keys() {
        let keys: Vec<&str> = METRICS.iter().map(|metric| metric.key()).collect();
        assert_eq!(
            keys,
            [
                "ttft_ms",
                "ttft_schedule_ms",
                "ttfc_ms",
                "ttst_ms",
                "icl_ms",
                "itl_ms",
                "tpot_ms",
                "e2e_ms",
                "e2e_schedule_ms",
                "client_queue_ms",
                "send_lag_ms",
                "server_queue_ms",
                "server_prefill_ms",
                "server_decode_ms",
                "ttft_overhead_ms",
                "client_lag_ms",
                "arrival_width_ms",
                "request_throughput",
                "input_throughput",
                "output_throughput",
                "total_throughput",
                "per_user_throughput",
                "peak_output_throughput",
                "concurrency_mean",
                "concurrency_peak",
                "error_rate",
                "goodput",
                "attainment",
                "fluidity",
                "pp",
                "tg",
                "server_prompt_throughput",
                "server_generation_throughput",
                "reasoning_tokens",
                "reasoning_share",
                "acceptance_length",
                "acceptance_rate",
                "valid_answers",
                "accuracy",
                "gpu_power",
                "energy_per_output_token",
                "output_tokens_per_joule",
                "cost_per_million_output_tokens",
                "cost_per_million_tokens",
            ]
        );
    }

    #[test]
    fn names_titles_and_helps_are_there_and_names_are_unique() {
        let names: BTreeSet<&str> = METRICS.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), METRICS.len());
        for metric in METRICS {
            assert!(!metric.title.is_empty() && !metric.definition().is_empty(), "{}", metric.name);
            assert!(!metric.definition().ends_with('.'), "{}: a fragment", metric.name);
            assert_eq!(Metric::named(metric.name), Some(*metric));
        }
        assert_eq!(Metric::named("none"), None);
    }

    #[test]
    fn distributions_are_latencies_and_latencies_are_distributions() {
        for metric in METRICS {
            let is_distribution = metric.shape() == Shape::Distribution;
            assert_eq!(is_distribution, metric.unit == Unit::Milliseconds, "{}", metric.name);
            assert!(!is_distribution || metric.better == Better::Lower, "{}", metric.name);
        }
    }

    #[test]
    fn an_open_loop_headlines_latency_from_schedule() {
        let open: Vec<&str> = METRICS
            .iter()
            .filter(|metric| metric.headline.is_on(true))
            .map(|metric| metric.name)
            .collect();
        assert!(open.contains(&"ttft_schedule") && !open.contains(&"ttft"));
        assert!(!TTFT_SCHEDULE.headline.is_on(false));
    }

    #[test]
    fn tables_of_requests_have_the_client_first() {
        let names = PER_REQUEST.map(|metric| metric.name);
        let client = ["client_queue", "send_lag"];
        assert_eq!(names[..2], client);
        let answers = ["ttft", "ttft_schedule", "ttfc", "ttst", "tpot", "e2e", "e2e_schedule"];
        assert_eq!(names[2..9], answers);
        let server = ["server_queue", "server_prefill", "server_decode", "ttft_overhead"];
        assert_eq!(names[9..], server);
    }

    #[test]
    fn other_tools_are_compared_by_metrics_that_exist() {
        let sections = include_str!("metrics.md").split("\n## ").skip(1);
        for section in sections {
            let name = section.lines().next().unwrap();
            let compared = Metric::named(name).map(|it| it.elsewhere().is_empty());
            assert_eq!(compared, Some(!section.contains("\n- ")), "{name}");
        }
    }

    #[test]
    fn explanations_are_fragments_that_stand_on_one_line() {
        for metric in METRICS {
            let texts = [metric.formula(), metric.null_when(), metric.interval()];
            let elsewhere = metric.elsewhere().into_iter().map(|(_, text)| text);
            for text in texts.into_iter().chain(elsewhere) {
                assert!(!text.is_empty() && !text.contains("  "), "{}: {text}", metric.name);
                assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
            }
        }
    }
}
