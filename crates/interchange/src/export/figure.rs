//! The figures of a sheet as one list, each with the name, unit and doubt that every format gives it.

use std::collections::BTreeMap;

use inferometer_analysis::tool_result::{
    CountsFrom, Grain, LatencyKind, ResultLatency, ResultRate, ToolResult,
};
use inferometer_analysis::{Better, Interval};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    /// Our word for the quantity: `ttft_schedule`, `request_throughput`.
    pub(super) name: String,
    pub(super) unit: Unit,
    /// `mean`, `p99` and so on, of a distribution.
    pub(super) statistic: Option<String>,
    pub(super) value: f64,
    pub(super) interval: Option<Interval>,
    pub(super) better: Better,
}

/// A unit as each format writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    /// After a number.
    pub(super) written: &'static str,
    /// As the last part of a column's name; empty where the name itself includes it.
    pub(super) suffix: &'static str,
    pub(super) openmetrics: Option<&'static str>,
    pub(super) otlp: &'static str,
    /// What a value is multiplied by for `OpenMetrics` and OTLP, which have seconds alone.
    pub(super) scale: f64,
}

const fn unit(
    written: &'static str,
    suffix: &'static str,
    openmetrics: Option<&'static str>,
    otlp: &'static str,
) -> Unit {
    Unit { written, suffix, openmetrics, otlp, scale: 1.0 }
}

const MILLISECONDS: Unit = Unit { scale: 1e-3, ..unit("ms", "_ms", Some("seconds"), "s") };
const SECONDS: Unit = unit("s", "_s", Some("seconds"), "s");
const REQUESTS: Unit = unit("requests", "", None, "{request}");
const TOKENS: Unit = unit("tokens", "", None, "{token}");
const REQUESTS_PER_S: Unit = unit("req/s", "_per_s", Some("requests_per_second"), "{request}/s");
const TOKENS_PER_S: Unit = unit("tok/s", "_per_s", Some("tokens_per_second"), "{token}/s");

impl Figure {
    /// Whether it is one of the few that a chart over many commits is drawn of.
    pub(super) fn is_headline(&self) -> bool {
        let is_drawn = |statistic: &String| matches!(statistic.as_str(), "mean" | "p50" | "p99");
        self.better != Better::Neither && self.statistic.as_ref().is_none_or(is_drawn)
    }

    /// The quantity and the statistic: `ttft_schedule.p99`.
    pub(super) fn title(&self) -> String {
        match &self.statistic {
            Some(statistic) => format!("{}.{statistic}", self.name),
            None => self.name.clone(),
        }
    }
}

/// All figures that the sheet has, in one order for all sheets. Values that are no numbers are left
/// out: a format without an infinity would have to lie.
pub(super) fn figures(sheet: &ToolResult) -> Vec<Figure> {
    let mut figures = scalars(sheet);
    let mut latencies: Vec<&ResultLatency> = sheet.latencies.iter().collect();
    latencies.sort_by_key(|latency| (latency.kind, latency.from, latency.grain));
    figures.extend(latencies.into_iter().flat_map(latency_figures));
    figures.retain(|figure| figure.value.is_finite());
    figures
}

/// Counts and rates, in their order.
fn scalars(sheet: &ToolResult) -> Vec<Figure> {
    let count = |count: Option<u64>| count.map(|count| count as f64);
    let listed = [
        ("requests_planned", REQUESTS, count(sheet.requests_planned), Better::Neither),
        ("completed", REQUESTS, count(sheet.completed), Better::Neither),
        ("failed", REQUESTS, count(sheet.failed), Better::Lower),
        ("input_tokens", TOKENS, count(sheet.input_tokens), Better::Neither),
        ("output_tokens", TOKENS, count(sheet.output_tokens), Better::Neither),
        (
            "peak_concurrent_requests",
            REQUESTS,
            count(sheet.peak_concurrent_requests),
            Better::Neither,
        ),
        ("duration", SECONDS, sheet.duration_s, Better::Neither),
        ("request_throughput", REQUESTS_PER_S, sheet.request_throughput, Better::Higher),
        ("request_goodput", REQUESTS_PER_S, sheet.request_goodput, Better::Higher),
        ("output_throughput", TOKENS_PER_S, sheet.output_throughput, Better::Higher),
        ("total_token_throughput", TOKENS_PER_S, sheet.total_token_throughput, Better::Higher),
        ("peak_output_throughput", TOKENS_PER_S, sheet.peak_output_throughput, Better::Neither),
    ];
    let known = listed.into_iter().filter_map(|(name, unit, value, better)| {
        let interval = sheet.intervals.get(name).copied();
        let (name, value) = (name.to_owned(), value?);
        Some(Figure { name, unit, statistic: None, value, interval, better })
    });
    known.collect()
}

fn latency_figures(latency: &ResultLatency) -> Vec<Figure> {
    let name = latency_name(latency.kind, latency.from, latency.grain);
    let figure = |statistic: String, value: f64, interval: Option<Interval>| Figure {
        name: name.clone(),
        unit: MILLISECONDS,
        statistic: Some(statistic),
        value,
        interval,
        better: Better::Lower,
    };
    let interval = |rank: &str| latency.intervals_ms.get(rank).copied();
    let plain = |statistic: &str, value: Option<f64>| {
        value.map(|value| figure(statistic.to_owned(), value, interval(statistic)))
    };
    let mut ranks: Vec<(&String, f64)> =
        latency.percentiles_ms.iter().map(|(rank, value)| (rank, *value)).collect();
    ranks.sort_by(|(one, _), (other, _)| rank_value(one).total_cmp(&rank_value(other)));
    let ranked =
        ranks.into_iter().map(|(rank, value)| figure(format!("p{rank}"), value, interval(rank)));
    [plain("mean", latency.mean_ms), plain("std", latency.std_ms), plain("min", latency.min_ms)]
        .into_iter()
        .flatten()
        .chain(ranked)
        .chain(plain("max", latency.max_ms))
        .collect()
}

/// A rank comes from a file: one that is no number goes last.
fn rank_value(rank: &str) -> f64 {
    rank.parse().unwrap_or(f64::INFINITY)
}

/// Our word for a latency with this meaning. Another meaning is another word, so that no chart joins
/// what does not belong together.
fn latency_name(kind: LatencyKind, from: CountsFrom, grain: Grain) -> String {
    if kind == LatencyKind::Itl {
        return match grain {
            Grain::Token => "itl",
            Grain::Chunk => "icl",
            Grain::Request => "itl_of_request",
            Grain::Unknown => "itl_of_unknown",
        }
        .to_owned();
    }
    let (name, usual) = match kind {
        LatencyKind::Ttft => ("ttft", CountsFrom::Send),
        LatencyKind::E2e => ("e2e", CountsFrom::Send),
        LatencyKind::Tpot | LatencyKind::Itl => ("tpot", CountsFrom::Output),
    };
    let start = match from {
        from if from == usual => "",
        CountsFrom::Schedule => "_schedule",
        CountsFrom::Send => "_send",
        CountsFrom::Output => "_output",
        CountsFrom::Unknown => "_unknown_start",
    };
    let grain = match grain {
        Grain::Request => "",
        Grain::Token => "_of_token",
        Grain::Chunk => "_of_chunk",
        Grain::Unknown => "_of_unknown",
    };
    format!("{name}{start}{grain}")
}

/// `None` where the source does not state the load.
pub(super) fn load(sheet: &ToolResult) -> Option<String> {
    match (sheet.request_rate, sheet.max_concurrency) {
        (Some(ResultRate::PerSecond(rate)), None) => Some(format!("{rate} req/s")),
        (Some(ResultRate::PerSecond(rate)), Some(most)) => {
            Some(format!("{rate} req/s, at most {most} at once"))
        }
        (_, Some(most)) => Some(format!("{most} at once")),
        (Some(ResultRate::Unlimited), None) => Some("all at once".to_owned()),
        (None, None) => None,
    }
}

/// Which of those with the same name, configuration and load a result is, from one: of an import,
/// all results without a name of their own have the file's.
pub(super) fn repeats(sheets: &[ToolResult]) -> Vec<u32> {
    let mut seen: BTreeMap<_, u32> = BTreeMap::new();
    let times = sheets.iter().map(|sheet| {
        let identity = (sheet.source.name.as_str(), sheet.configuration.as_str(), load(sheet));
        let times = seen.entry(identity).or_default();
        *times += 1;
        *times
    });
    times.collect()
}

/// Names that stay the same from one commit to the next, so never the name of a run: what was
/// measured, and the load. Those that come again are numbered.
pub(super) fn benchmark_names(sheets: &[ToolResult]) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let name = |sheet: &ToolResult| {
        let subject = if sheet.configuration.is_empty() {
            sheet.model.clone().unwrap_or_else(|| sheet.source.tool.key().to_owned())
        } else {
            sheet.configuration.clone()
        };
        [Some(subject), load(sheet)].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    };
    let mut numbered = |name: String| {
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        if *times == 1 { name } else { format!("{name} ({times})") }
    };
    sheets.iter().map(|sheet| numbered(name(sheet))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_is_known_of_the_meaning() {
        use {CountsFrom as From, Grain as Of, LatencyKind as Kind};
        for (kind, from, grain, name) in [
            (Kind::Ttft, From::Send, Of::Request, "ttft"),
            (Kind::Ttft, From::Schedule, Of::Request, "ttft_schedule"),
            (Kind::E2e, From::Unknown, Of::Request, "e2e_unknown_start"),
            (Kind::Tpot, From::Output, Of::Request, "tpot"),
            (Kind::Tpot, From::Output, Of::Unknown, "tpot_of_unknown"),
            (Kind::Itl, From::Output, Of::Token, "itl"),
            (Kind::Itl, From::Output, Of::Chunk, "icl"),
        ] {
            assert_eq!(latency_name(kind, from, grain), name);
        }
    }

    #[test]
    fn ranks_stand_in_their_order_and_what_is_no_number_is_left_out() {
        let mut latency = ResultLatency::new(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
        latency.max_ms = Some(f64::INFINITY);
        latency.mean_ms = Some(2.0);
        for (rank, value) in [("99.9", 9.0), ("5", 1.0), ("50", 2.0)] {
            latency.percentiles_ms.insert(rank.to_owned(), value);
        }
        let sheet = ToolResult { latencies: vec![latency], ..ToolResult::default() };
        let titles: Vec<String> = figures(&sheet).iter().map(Figure::title).collect();
        assert_eq!(titles, ["ttft.mean", "ttft.p5", "ttft.p50", "ttft.p99.9"]);
    }

    #[test]
    fn benchmarks_are_named_by_what_was_measured_and_repeats_are_numbered() {
        let sheet = |configuration: &str| ToolResult {
            configuration: configuration.to_owned(),
            model: Some("m".to_owned()),
            request_rate: Some(ResultRate::PerSecond(4.0)),
            ..ToolResult::default()
        };
        let names = benchmark_names(&[sheet("tp8"), sheet("tp8"), sheet("")]);
        assert_eq!(names, ["tp8 · 4 req/s", "tp8 · 4 req/s (2)", "m · 4 req/s"]);
    }
}
