//! One number of a sheet, by the name that our own metrics have for it.

use std::num::NonZeroU32;

use inferometer_model::campaign::Level;

use super::own::LATENCIES;
use super::{CountsFrom, Grain, LatencyKind, Sheet, SheetLatency, SheetRate, Tool};
use crate::estimate::{Estimate, Interval};
use crate::metric::Metric;
use crate::quantity::Quantity;
use crate::statistic::Statistic;
use crate::statistics::proportion::wilson;
use crate::summary::Summary;

impl Sheet {
    /// How much was asked of the server at once. A limit of concurrency is the load where nothing
    /// else holds requests back.
    pub fn level(&self) -> Level {
        let concurrency = self.max_concurrency.and_then(NonZeroU32::new).map(Level::Concurrency);
        match self.request_rate {
            Some(SheetRate::PerSecond(rate)) if rate.is_finite() && 0.0 < rate => Level::Rate(rate),
            Some(SheetRate::Unlimited) => concurrency.unwrap_or(Level::Unlimited),
            Some(SheetRate::PerSecond(_)) | None => concurrency.unwrap_or(Level::AsAsked),
        }
    }

    /// A run of our own as it stands beside results of other tools: counted as they count, over the
    /// whole run, with the latencies that only we have and with the doubt that only we know.
    pub fn beside_others(summary: &Summary) -> Self {
        let mut sheet = Self::of_vllm(summary);
        let own = Self::of(summary);
        for (field, value) in [
            ("request_throughput", |sheet: &Self| sheet.request_throughput),
            ("request_goodput", |sheet| sheet.request_goodput),
            ("output_throughput", |sheet| sheet.output_throughput),
            ("total_token_throughput", |sheet| sheet.total_token_throughput),
        ] as [(&str, fn(&Self) -> Option<f64>); 4]
        {
            let interval = own.intervals.get(field).copied();
            let moved = interval.and_then(|found| moved(found, value(&own)?, value(&sheet)?));
            sheet.intervals.extend(moved.map(|interval| (field.to_owned(), interval)));
        }
        for own in own.latencies {
            let is_same = |known: &&mut SheetLatency| known.meaning() == own.meaning();
            match sheet.latencies.iter_mut().find(is_same) {
                Some(known) => known.take_intervals(&own),
                None => sheet.latencies.push(own),
            }
        }
        sheet
    }

    /// Its value, or why there is none. What the source leaves open is taken for the plain metric of
    /// its kind: [`Sheet::latency_of`] has what it says.
    pub fn figure(&self, quantity: &Quantity) -> Result<Estimate, String> {
        let metric = quantity.metric();
        let absent = || format!("the result has no {}", metric.title);
        let found = match quantity.statistic() {
            None => self.single(metric),
            Some(statistic) => {
                self.latency_of(metric).and_then(|latency| self.statistic_of(latency, statistic))
            }
        };
        found.filter(|found| found.value.is_finite()).ok_or_else(absent)
    }

    /// The latency that one of our metrics names: of exactly its meaning; else, of a metric without
    /// the schedule in its name, one whose source does not say what it means.
    pub fn latency_of(&self, metric: &Metric) -> Option<&SheetLatency> {
        let (_, kind, from, grain) =
            LATENCIES.iter().copied().find(|(known, ..)| *known == metric)?;
        let of_kind = || self.latencies.iter().filter(|latency| latency.kind == kind);
        let exact = of_kind().find(|latency| (latency.from, latency.grain) == (from, grain));
        exact.or_else(|| {
            of_kind().find(|latency| {
                !latency.is_defined()
                    && from != CountsFrom::Schedule
                    && (latency.from == from || latency.from == CountsFrom::Unknown)
                    && (latency.grain == grain || latency.grain == Grain::Unknown)
            })
        })
    }

    fn single(&self, metric: &Metric) -> Option<Estimate> {
        let (field, value) = match metric.name {
            "request_throughput" => ("request_throughput", self.request_throughput?),
            "output_throughput" => ("output_throughput", self.output_throughput?),
            "total_throughput" => ("total_token_throughput", self.total_token_throughput?),
            "peak_output_throughput" => ("peak_output_throughput", self.peak_output_throughput?),
            "goodput" => ("request_goodput", self.request_goodput?),
            "error_rate" => return self.error_rate(),
            _ => return None,
        };
        Some(Estimate {
            value,
            interval: self.intervals.get(field).copied(),
            n: self.completed.unwrap_or(1),
            effective_n: None,
            certified: true,
        })
    }

    /// Only where the source counts failures: what it does not mention may have happened.
    fn error_rate(&self) -> Option<Estimate> {
        let (completed, failed) = (self.completed?, self.failed?);
        let n = completed.checked_add(failed).filter(|n| 0 < *n)?;
        Some(Estimate {
            value: failed as f64 / n as f64,
            interval: wilson(failed as f64, n as f64),
            n,
            effective_n: None,
            certified: true,
        })
    }

    /// A statistic of one of its latencies. `n` is 0 where nothing tells how many values there were,
    /// and then nothing is certified.
    pub fn statistic_of(&self, latency: &SheetLatency, statistic: Statistic) -> Option<Estimate> {
        let value = match statistic {
            Statistic::Mean => latency.mean_ms,
            Statistic::Max => latency.max_ms,
            Statistic::Percentile(percentile) => {
                latency.percentile_ms(percentile.name().trim_start_matches('p'))
            }
        }?;
        let rank = statistic.name().trim_start_matches('p');
        let n = latency.n.or_else(|| self.answers_with(latency.kind)).unwrap_or(0);
        Some(Estimate {
            value,
            interval: latency.intervals_ms.get(rank).copied(),
            n,
            effective_n: None,
            certified: statistic.certified_from() <= n,
        })
    }

    /// How many answers have such a latency. Gaps are not fewer than the answers that have one, but
    /// an answer of one token has none: only tokens behind the first ones make gaps.
    fn answers_with(&self, kind: LatencyKind) -> Option<u64> {
        let completed = self.completed?;
        Some(match (kind, self.output_tokens) {
            (LatencyKind::Tpot | LatencyKind::Itl, Some(tokens)) => {
                completed.min(tokens.saturating_sub(completed))
            }
            _ => completed,
        })
    }
}

/// The interval of one figure around another that differs by its definition only: the doubt is as
/// wide in proportion.
fn moved(interval: Interval, from: f64, to: f64) -> Option<Interval> {
    let scale = Some(to / from).filter(|scale| scale.is_finite() && 0.0 < *scale)?;
    Some(Interval { low: interval.low * scale, high: interval.high * scale })
}

impl SheetLatency {
    /// Those of the same latency by our own definitions.
    fn take_intervals(&mut self, own: &Self) {
        let value = |latency: &Self, rank: &str| match rank {
            "mean" => latency.mean_ms,
            rank => latency.percentile_ms(rank),
        };
        for (rank, interval) in &own.intervals_ms {
            let (from, to) = (value(own, rank), value(self, rank));
            let moved = from.zip(to).and_then(|(from, to)| moved(*interval, from, to));
            self.intervals_ms.extend(moved.map(|interval| (rank.clone(), interval)));
        }
    }

    pub const fn meaning(&self) -> (LatencyKind, CountsFrom, Grain) {
        (self.kind, self.from, self.grain)
    }

    /// Whether its source says what one of its values is and from where it counts.
    pub fn is_defined(&self) -> bool {
        self.from != CountsFrom::Unknown && self.grain != Grain::Unknown
    }
}

impl Tool {
    pub const ALL: [Self; 7] = [
        Self::Inferometer,
        Self::Vllm,
        Self::Sglang,
        Self::GuideLlm,
        Self::AiPerf,
        Self::LlmD,
        Self::GenaiBench,
    ];

    /// In files.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Inferometer => "inferometer",
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::GuideLlm => "guidellm",
            Self::AiPerf => "aiperf",
            Self::LlmD => "llm-d",
            Self::GenaiBench => "genai-bench",
        }
    }

    /// The program that writes its results, as people call it.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Vllm => "vllm bench serve",
            Self::Sglang => "SGLang bench_serving",
            Self::LlmD => "llm-d benchmark",
            Self::Inferometer | Self::GuideLlm | Self::AiPerf | Self::GenaiBench => self.told(),
        }
    }

    /// As people write it.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Inferometer => "Inferometer",
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::GuideLlm => "GuideLLM",
            Self::AiPerf => "AIPerf",
            Self::LlmD => "llm-d",
            Self::GenaiBench => "genai-bench",
        }
    }
}

impl LatencyKind {
    pub const ALL: [Self; 4] = [Self::Ttft, Self::Tpot, Self::Itl, Self::E2e];

    pub const fn told(self) -> &'static str {
        match self {
            Self::Ttft => "TTFT",
            Self::Tpot => "TPOT",
            Self::Itl => "ITL",
            Self::E2e => "E2E",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::calm;
    use crate::quantity::LatencyOrigin;
    use crate::summary::summarize;

    fn quantity(name: &str) -> Quantity {
        Quantity::named(name, LatencyOrigin::Sent).unwrap()
    }

    #[test]
    fn a_tool_has_the_same_key_wherever_it_is_written() {
        for tool in Tool::ALL {
            assert_eq!(serde_json::to_value(tool).unwrap(), tool.key());
        }
    }

    #[test]
    fn the_load_is_the_rate_and_else_what_may_run_at_once() {
        let level = |request_rate, max_concurrency| {
            Sheet { request_rate, max_concurrency, ..Sheet::default() }.level().to_string()
        };
        let four = Level::Concurrency(NonZeroU32::new(4).unwrap()).to_string();
        assert_eq!(level(Some(SheetRate::PerSecond(2.5)), Some(4)), Level::Rate(2.5).to_string());
        assert_eq!(level(Some(SheetRate::Unlimited), Some(4)), four);
        assert_eq!(level(None, Some(4)), four);
        assert_eq!(level(Some(SheetRate::Unlimited), None), Level::Unlimited.to_string());
        assert_eq!(level(None, None), Level::AsAsked.to_string());
        assert_eq!(level(Some(SheetRate::PerSecond(f64::NAN)), None), Level::AsAsked.to_string());
    }

    #[test]
    fn a_figure_has_the_meaning_that_it_is_asked_for() {
        let mut sheet = Sheet { completed: Some(700), ..Sheet::default() };
        let itl = sheet.latency_mut(LatencyKind::Itl, CountsFrom::Output, Grain::Chunk);
        itl.mean_ms = Some(20.0);
        itl.percentiles_ms.insert("99".to_owned(), 80.0);
        assert!(sheet.figure(&quantity("itl.mean")).unwrap_err().contains("has no"));
        let found = sheet.figure(&quantity("icl.p99")).unwrap();
        assert_eq!(
            (found.value.to_bits(), found.n, found.certified),
            (80_f64.to_bits(), 700, true)
        );
        assert!(found.interval.is_none());
        sheet.completed = Some(600);
        assert!(!sheet.figure(&quantity("icl.p99")).unwrap().certified);
        assert!(sheet.figure(&quantity("icl.max")).is_err(), "the source does not say it");
    }

    #[test]
    fn answers_of_one_token_certify_no_gap() {
        let mut sheet =
            Sheet { completed: Some(700), output_tokens: Some(7_000), ..Sheet::default() };
        for (kind, from) in
            [(LatencyKind::Ttft, CountsFrom::Send), (LatencyKind::Tpot, CountsFrom::Output)]
        {
            let latency = sheet.latency_mut(kind, from, Grain::Request);
            latency.percentiles_ms.insert("99".to_owned(), 80.0);
        }
        let certified = |sheet: &Sheet, name: &str| {
            let found = sheet.figure(&quantity(name)).unwrap();
            (found.n, found.certified)
        };
        assert_eq!(certified(&sheet, "tpot.p99"), (700, true));
        sheet.output_tokens = Some(750);
        assert_eq!(certified(&sheet, "tpot.p99"), (50, false), "most answers have no gap");
        assert_eq!(certified(&sheet, "ttft.p99"), (700, true));
        sheet.completed = None;
        assert_eq!(certified(&sheet, "ttft.p99"), (0, false), "of how many, nobody says");
    }

    #[test]
    fn what_its_source_leaves_open_is_the_plain_metric() {
        let mut sheet = Sheet::default();
        let ttft = sheet.latency_mut(LatencyKind::Ttft, CountsFrom::Unknown, Grain::Request);
        ttft.mean_ms = Some(200.0);
        assert!(sheet.figure(&quantity("ttft.mean")).is_ok());
        assert!(sheet.figure(&quantity("ttft.schedule.mean")).is_err());
        assert!(!sheet.latencies[0].is_defined());
    }

    #[test]
    fn failures_that_nobody_counted_are_not_none() {
        let mut sheet = Sheet { completed: Some(100), ..Sheet::default() };
        assert!(sheet.figure(&quantity("error_rate")).is_err());
        sheet.failed = Some(0);
        let found = sheet.figure(&quantity("error_rate")).unwrap();
        assert!(found.value == 0.0 && 0.03 < found.interval.unwrap().high);
    }

    #[test]
    fn a_run_beside_others_counts_as_they_do_and_keeps_what_only_it_has() {
        let sheet = Sheet::beside_others(&summarize(&calm()));
        let meanings: Vec<_> = sheet.latencies.iter().map(SheetLatency::meaning).collect();
        let itl = |grain| (LatencyKind::Itl, CountsFrom::Output, grain);
        assert!(meanings.contains(&itl(Grain::Chunk)) && meanings.contains(&itl(Grain::Token)));
        let mut once = meanings.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), meanings.len());
    }

    #[test]
    fn a_run_beside_others_keeps_its_doubt() {
        let sheet = Sheet::beside_others(&summarize(&calm()));
        for name in ["request_throughput", "output_throughput", "ttft.mean", "tpot.p50", "e2e.mean"]
        {
            let found = sheet.figure(&quantity(name)).unwrap();
            let interval = found.interval.unwrap_or_else(|| panic!("{name} has no interval"));
            assert!(interval.low <= found.value && found.value <= interval.high, "{name}");
        }
        assert_eq!(moved(Interval { low: 8.0, high: 12.0 }, 10.0, 5.0).map(|i| i.low), Some(4.0));
        assert_eq!(moved(Interval { low: 0.0, high: 0.0 }, 0.0, 5.0), None);
    }
}
