//! The figures of a sheet as one list, each with the name, unit and doubt that every format gives it.

use std::collections::BTreeMap;

use inferometer_analysis::Interval;
use inferometer_analysis::sheet::{CountsFrom, Grain, LatencyKind, Sheet, SheetLatency, SheetRate};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Milliseconds,
    Seconds,
    Requests,
    Tokens,
    RequestsPerSecond,
    TokensPerSecond,
}

/// Which way a change of it is a gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Smaller,
    Bigger,
    /// It says what was done, not how well.
    Neither,
}

impl Unit {
    /// As it is written behind a number.
    pub(super) const fn written(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::RequestsPerSecond => "req/s",
            Self::TokensPerSecond => "tok/s",
        }
    }

    /// As the last part of a column's name; nothing where the name itself says it.
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            Self::Milliseconds => "_ms",
            Self::Seconds => "_s",
            Self::Requests | Self::Tokens => "",
            Self::RequestsPerSecond | Self::TokensPerSecond => "_per_s",
        }
    }
}

impl Figure {
    fn one(name: &str, unit: Unit, value: f64, better: Better) -> Self {
        Self { name: name.to_owned(), unit, statistic: None, value, interval: None, better }
    }

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
pub(super) fn of(sheet: &Sheet) -> Vec<Figure> {
    let mut figures = counts(sheet);
    figures.extend(rates(sheet));
    let mut latencies: Vec<&SheetLatency> = sheet.latencies.iter().collect();
    latencies.sort_by_key(|latency| (latency.kind, latency.from, latency.grain));
    figures.extend(latencies.into_iter().flat_map(of_latency));
    figures.retain(|figure| figure.value.is_finite());
    figures
}

fn counts(sheet: &Sheet) -> Vec<Figure> {
    let listed = [
        ("requests_planned", Unit::Requests, sheet.requests_planned, Better::Neither),
        ("completed", Unit::Requests, sheet.completed, Better::Neither),
        ("failed", Unit::Requests, sheet.failed, Better::Smaller),
        ("input_tokens", Unit::Tokens, sheet.input_tokens, Better::Neither),
        ("output_tokens", Unit::Tokens, sheet.output_tokens, Better::Neither),
        (
            "peak_concurrent_requests",
            Unit::Requests,
            sheet.peak_concurrent_requests,
            Better::Neither,
        ),
    ];
    let known = listed.into_iter().filter_map(|(name, unit, count, better)| {
        count.map(|count| Figure::one(name, unit, count as f64, better))
    });
    known.collect()
}

fn rates(sheet: &Sheet) -> Vec<Figure> {
    use Unit::{RequestsPerSecond, Seconds, TokensPerSecond};
    let listed = [
        ("duration", Seconds, sheet.duration_s, Better::Neither),
        ("request_throughput", RequestsPerSecond, sheet.request_throughput, Better::Bigger),
        ("request_goodput", RequestsPerSecond, sheet.request_goodput, Better::Bigger),
        ("output_throughput", TokensPerSecond, sheet.output_throughput, Better::Bigger),
        ("total_token_throughput", TokensPerSecond, sheet.total_token_throughput, Better::Bigger),
        ("peak_output_throughput", TokensPerSecond, sheet.peak_output_throughput, Better::Neither),
    ];
    let known = listed.into_iter().filter_map(|(name, unit, value, better)| {
        let interval = sheet.intervals.get(name).copied();
        value.map(|value| Figure { interval, ..Figure::one(name, unit, value, better) })
    });
    known.collect()
}

fn of_latency(latency: &SheetLatency) -> Vec<Figure> {
    let name = latency_name(latency.kind, latency.from, latency.grain);
    let figure = |statistic: String, value: f64, interval: Option<Interval>| Figure {
        name: name.clone(),
        unit: Unit::Milliseconds,
        statistic: Some(statistic),
        value,
        interval,
        better: Better::Smaller,
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

/// `None` where the source says nothing of the load.
pub(super) fn load(sheet: &Sheet) -> Option<String> {
    match (sheet.request_rate, sheet.max_concurrency) {
        (Some(SheetRate::PerSecond(rate)), None) => Some(format!("{rate} req/s")),
        (Some(SheetRate::PerSecond(rate)), Some(most)) => {
            Some(format!("{rate} req/s, at most {most} at once"))
        }
        (_, Some(most)) => Some(format!("{most} at once")),
        (Some(SheetRate::Unlimited), None) => Some("all at once".to_owned()),
        (None, None) => None,
    }
}

/// Which of those with the same name, configuration and load a result is, from one: of an import,
/// all results without a name of their own have the file's.
pub(super) fn repeats(sheets: &[Sheet]) -> Vec<u32> {
    let mut seen: BTreeMap<_, u32> = BTreeMap::new();
    let times = sheets.iter().map(|sheet| {
        let told = (sheet.source.name.as_str(), sheet.configuration.as_str(), load(sheet));
        let times = seen.entry(told).or_default();
        *times += 1;
        *times
    });
    times.collect()
}

/// Names that stay the same from one commit to the next, so never the name of a run: what was
/// measured, and the load. Those that come again are numbered.
pub(super) fn benchmark_names(sheets: &[Sheet]) -> Vec<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let name = |sheet: &Sheet| {
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
        let mut latency = SheetLatency::new(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
        latency.max_ms = Some(f64::INFINITY);
        latency.mean_ms = Some(2.0);
        for (rank, value) in [("99.9", 9.0), ("5", 1.0), ("50", 2.0)] {
            latency.percentiles_ms.insert(rank.to_owned(), value);
        }
        let sheet = Sheet { latencies: vec![latency], ..Sheet::default() };
        let titles: Vec<String> = of(&sheet).iter().map(Figure::title).collect();
        assert_eq!(titles, ["ttft.mean", "ttft.p5", "ttft.p50", "ttft.p99.9"]);
    }

    #[test]
    fn benchmarks_are_named_by_what_was_measured_and_repeats_are_numbered() {
        let sheet = |configuration: &str| Sheet {
            configuration: configuration.to_owned(),
            model: Some("m".to_owned()),
            request_rate: Some(SheetRate::PerSecond(4.0)),
            ..Sheet::default()
        };
        let names = benchmark_names(&[sheet("tp8"), sheet("tp8"), sheet("")]);
        assert_eq!(names, ["tp8 · 4 req/s", "tp8 · 4 req/s (2)", "m · 4 req/s"]);
    }
}
