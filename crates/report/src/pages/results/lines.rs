//! Results as lines of a chart: one for each configuration, with a level for each load, and the
//! quantities that pages show of them.

use inferometer_analysis::Estimate;
use inferometer_analysis::tool_result::{Grain, LatencyDefinition as Definition, ResultLatency};
use inferometer_model::variant_name;

use crate::pages::prelude::*;

/// A point of a chart lists no more reasons; the page has all.
const DOUBTS_MAX: usize = 6;

#[derive(Clone, Debug)]
pub(super) struct Line<'a> {
    /// Unique among the lines.
    pub(super) name: String,
    /// `None` where its results have no load.
    pub(super) kind: Option<Dimension>,
    /// By rising load.
    pub(super) levels: Vec<Level<'a>>,
}

/// One load; several results at it are repeats.
#[derive(Clone, Debug)]
pub(super) struct Level<'a> {
    /// Infinite where there was no limit; `None` where it is not known.
    pub(super) load: Option<f64>,
    pub(super) results: Vec<&'a ToolResult>,
}

/// The properties that distinguish configurations, in words, the most distinctive first. The last is the
/// limit of requests in flight, where results at a rate have different ones.
type Properties = [String; 6];

fn properties(result: &ToolResult) -> Properties {
    [
        result.configuration.clone(),
        result.model.clone().unwrap_or_else(|| unknown("model")),
        result.source.tool.name().to_owned(),
        result.tensor_parallel.map_or_else(|| unknown("TP"), |gpus| format!("TP {gpus}")),
        if result.source.simulated { "simulated" } else { "measured" }.to_owned(),
        "unlimited in flight".to_owned(),
    ]
}

/// The lines in the order in which they appear.
pub(super) fn lines(results: &[ToolResult]) -> Vec<Line<'_>> {
    let mut lines: Vec<(Properties, Line<'_>)> = Vec::new();
    for (properties, results) in grouped(results.iter(), |it| properties(it)) {
        let kind = kind(&results);
        let limits = grouped(results.iter().copied(), |result| result.max_concurrency);
        if kind != Some(Dimension::Rate) || limits.len() == 1 {
            lines.push((properties, Line::new(kind, &results)));
            continue;
        }
        for (limit, results) in limits {
            let mut properties = properties.clone();
            if let Some(requests) = limit {
                properties[5] = format!("at most {requests} in flight");
            }
            lines.push((properties, Line::new(kind, &results)));
        }
    }
    let parts: Vec<&Properties> = lines.iter().map(|(properties, _)| properties).collect();
    let named = unique_names(&parts).into_iter().zip(lines);
    named.map(|(name, (_, line))| Line { name, ..line }).collect()
}

/// Rates where there is one, also for its unlimited results; else the limit of requests in flight.
fn kind(results: &[&ToolResult]) -> Option<Dimension> {
    let has = |is_so: fn(&ToolResult) -> bool| results.iter().any(|it| is_so(it));
    if has(|it| matches!(it.request_rate, Some(ResultRate::PerSecond(_)))) {
        Some(Dimension::Rate)
    } else if has(|it| it.max_concurrency.is_some()) {
        Some(Dimension::Concurrency)
    } else {
        has(|it| it.request_rate.is_some()).then_some(Dimension::Rate)
    }
}

impl<'a> Line<'a> {
    fn new(kind: Option<Dimension>, results: &[&'a ToolResult]) -> Self {
        let loads = grouped(results.iter().copied(), |result| load(result, kind).map(f64::to_bits));
        let level =
            |(load, results): (Option<u64>, _)| Level { load: load.map(f64::from_bits), results };
        let mut levels: Vec<Level<'a>> = loads.into_iter().map(level).collect();
        let load = |level: &Level<'_>| level.load.unwrap_or(f64::NAN);
        levels.sort_by(|one, other| load(one).total_cmp(&load(other)));
        Self { name: String::new(), kind, levels }
    }

    pub(super) fn results(&self) -> impl Iterator<Item = &'a ToolResult> {
        self.levels.iter().flat_map(|level| level.results.iter().copied())
    }
}

fn load(result: &ToolResult, kind: Option<Dimension>) -> Option<f64> {
    match (kind?, result.request_rate) {
        (Dimension::Rate, Some(ResultRate::PerSecond(rate))) => Some(rate),
        (Dimension::Rate, Some(ResultRate::Unlimited)) => Some(f64::INFINITY),
        (Dimension::Rate, None) => None,
        (Dimension::Concurrency, rate) => {
            // Without a limit all requests are in flight; an unknown load is not unlimited.
            let unlimited = (rate == Some(ResultRate::Unlimited)).then_some(f64::INFINITY);
            result.max_concurrency.map(f64::from).or(unlimited)
        }
    }
}

/// A load in words, where it is known.
pub(super) fn load_words(kind: Option<Dimension>, load: Option<f64>) -> String {
    match kind.zip(load) {
        None => unknown("load"),
        Some((Dimension::Rate, load)) if load.is_infinite() => "unlimited rate".to_owned(),
        Some((Dimension::Rate, load)) => format!("{} req/s", setting(load)),
        Some((_, load)) if load.is_infinite() => "unlimited concurrency".to_owned(),
        Some((Dimension::Concurrency, load)) => format!("concurrency {}", setting(load)),
    }
}

/// The first part, and as many others as it takes to make the names unique.
fn unique_names(parts: &[&Properties]) -> Vec<String> {
    let mut names: Vec<String> = parts.iter().map(|parts| parts[0].clone()).collect();
    for part in 1..6 {
        let has_empty = names.iter().any(String::is_empty);
        let is_unique = names.iter().collect::<BTreeSet<_>>().len() == names.len() && !has_empty;
        let differs = parts.iter().any(|one| one[part] != parts[0][part]);
        if is_unique || (!differs && !has_empty) {
            continue;
        }
        for (name, parts) in names.iter_mut().zip(parts) {
            if name.is_empty() {
                name.clone_from(&parts[part]);
            } else if differs {
                *name = format!("{name}, {}", parts[part]);
            }
        }
    }
    names
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Latency(Definition, Statistic),
    /// The name of its field.
    Throughput(&'static str),
}

/// All definitions of a kind that these results have.
pub(super) fn definitions<'a>(
    kind: LatencyKind,
    results: impl Iterator<Item = &'a ToolResult>,
) -> Vec<Definition> {
    let of_kind = results.flat_map(|it| &it.latencies).filter(|known| known.kind == kind);
    let found: BTreeSet<Definition> = of_kind.map(ResultLatency::definition).collect();
    found.into_iter().collect()
}

/// The start of a latency or the unit of its values, in its name and in a sentence.
fn named(what: &str, value: &impl serde::Serialize) -> [&'static str; 2] {
    let name = format!("{what}-{}", variant_name(value));
    [text(&format!("{name}-name")), text(&name)]
}

/// `TTFT from send`, `ITL per chunk`.
pub(super) fn definition_name(definition: Definition) -> String {
    let Definition { kind, from, grain } = definition;
    let is_usual = grain == Grain::Request && kind != LatencyKind::Itl;
    let grain = if is_usual { "" } else { named("grain", &grain)[0] };
    let parts = [kind.name(), named("counts", &from)[0], grain];
    parts.iter().filter(|part| !part.is_empty()).join(" ")
}

/// `Mean`, `Median`, `p99`.
pub(super) fn statistic_name(statistic: Statistic) -> String {
    match statistic.name() {
        "mean" => "Mean".to_owned(),
        "p50" => "Median".to_owned(),
        other => other.to_owned(),
    }
}

impl Quantity {
    pub(super) fn get(self, result: &ToolResult) -> Option<Estimate> {
        let found = match self {
            Self::Latency(definition, statistic) => {
                let latency = result.latencies.iter().find(|it| it.definition() == definition)?;
                result.statistic_of(latency, statistic)
            }
            Self::Throughput(field) => result.throughput_estimate(field),
        };
        found.filter(|found| found.value.is_finite())
    }
}

/// Why a figure is not certified.
pub(super) const fn uncertified_words(n: u64) -> &'static str {
    if n == 0 { "its number of values is not known" } else { "too few values to certify it" }
}

impl Level<'_> {
    /// The mean over its repeats, without invalid ones as long as there is a valid one.
    pub(super) fn across(&self, quantity: Quantity) -> AcrossRuns {
        let counts_all = self.left_out() == 0;
        let values = self.results.iter().filter(|it| counts_all || !is_invalid(it));
        let values = values.map(|it| quantity.get(it).ok_or_else(|| NOT_IN_SOURCE.to_owned()));
        AcrossRuns::from_runs(&values.collect::<Vec<_>>())
    }

    pub(super) fn marks(&self) -> impl Iterator<Item = &Mark> {
        self.results.iter().flat_map(|result| &result.marks)
    }

    /// Reasons to doubt its values; empty where there are none.
    pub(super) fn reservations(&self) -> Vec<String> {
        let mut words: Vec<String> =
            self.marks().filter(|mark| mark.is_reservation()).map(mark_words).collect();
        words.dedup();
        let more = words.len().saturating_sub(DOUBTS_MAX);
        words.truncate(DOUBTS_MAX);
        words.extend((0 < more).then(|| format!("and {} more", count(more as u64))));
        words
    }

    /// The kinds of these reasons, each once.
    pub(super) fn reservation_names(&self) -> BTreeSet<&'static str> {
        self.marks().filter(|mark| mark.is_reservation()).map(Mark::key).collect()
    }

    /// Number of results that are in no value.
    pub(super) fn left_out(&self) -> usize {
        let invalid = self.results.iter().filter(|result| is_invalid(result)).count();
        if invalid == self.results.len() { 0 } else { invalid }
    }
}

fn is_invalid(result: &ToolResult) -> bool {
    result.marks.contains(&Mark::Invalid)
}

/// Reason for a missing value.
pub(super) const NOT_IN_SOURCE: &str = "not in its source";

/// A property that a source does not have.
pub(super) fn unknown(what: &str) -> String {
    format!("{what} not known")
}

/// A definition in a sentence.
pub(super) fn definition_text(definition: Definition) -> Text {
    let kind = named("latency", &definition.kind)[1];
    let (from, grain) =
        (named("counts", &definition.from)[1], named("grain", &definition.grain)[1]);
    vec![strong(definition_name(definition)), Span::Plain(format!(": {kind}{from}; {grain}."))]
}

/// The reason at a mark of a chart.
pub(crate) fn mark_words(mark: &Mark) -> String {
    match mark {
        Mark::Cut { completed, planned } => {
            format!("cut: {} of {} requests completed", count(*completed), count(*planned))
        }
        Mark::Failures { failed } => format!("{} failed", counted(*failed, "request")),
        Mark::Saturated { asked_per_s, served_per_s } => {
            fill("saturated", &[&number(*served_per_s), &setting(*asked_per_s)])
        }
        Mark::Invalid => "invalid by its own checks".to_owned(),
        Mark::Simulated => "simulated: no server was measured".to_owned(),
    }
}

/// The consequence of a kind of mark, and what to do about it.
pub(super) fn mark_advice(mark: &Mark) -> [&'static str; 2] {
    ["advice", "remedy"].map(|what| text(&format!("{what}-{}", mark.key())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(configuration: &str, rate: Option<ResultRate>, limit: Option<u32>) -> ToolResult {
        ToolResult {
            configuration: configuration.to_owned(),
            model: Some("m".to_owned()),
            request_rate: rate,
            max_concurrency: limit,
            ..ToolResult::default()
        }
    }

    fn loads_by_name(results: &[ToolResult]) -> Vec<(String, Vec<String>)> {
        let loads = |line: &Line<'_>| {
            line.levels
                .iter()
                .map(|level| {
                    let load = load_words(line.kind, level.load);
                    format!("{load} x{}", level.results.len())
                })
                .collect()
        };
        lines(results).iter().map(|line| (line.name.clone(), loads(line))).collect()
    }

    #[test]
    fn repeats_are_one_level_and_no_limit_is_the_last() {
        let rate = |rate| Some(ResultRate::PerSecond(rate));
        let results = [
            result("v1", Some(ResultRate::Unlimited), None),
            result("v1", rate(3.0), None),
            result("v0", rate(1.0), None),
            result("v1", rate(1.0), None),
            result("v1", rate(3.0), None),
        ];
        let expected = [
            ("v1", vec!["1 req/s x1", "3 req/s x2", "unlimited rate x1"]),
            ("v0", vec!["1 req/s x1"]),
        ];
        let found = loads_by_name(&results);
        for ((name, loads), (expected_name, expected_loads)) in found.iter().zip(expected) {
            assert_eq!(name, expected_name);
            assert_eq!(*loads, expected_loads);
        }
    }

    #[test]
    fn rates_under_different_limits_are_no_repeats() {
        let rate = Some(ResultRate::PerSecond(2.0));
        let found = loads_by_name(&[result("a", rate, Some(8)), result("a", rate, None)]);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a, at most 8 in flight", "a, unlimited in flight"]);
    }

    #[test]
    fn who_limits_only_what_is_in_flight_is_told_by_that() {
        let unlimited = Some(ResultRate::Unlimited);
        let found =
            loads_by_name(&[result("", unlimited, Some(256)), result("", unlimited, Some(128))]);
        assert_eq!(
            found,
            [(
                "m".to_owned(),
                vec!["concurrency 128 x1".to_owned(), "concurrency 256 x1".to_owned()]
            )]
        );
        assert_eq!(loads_by_name(&[result("", None, None)])[0].1, ["load not known x1"]);
    }

    #[test]
    fn a_load_that_is_not_said_is_not_an_unlimited_one() {
        let found = loads_by_name(&[
            result("", None, None),
            result("", Some(ResultRate::Unlimited), None),
            result("", None, Some(8)),
        ]);
        assert_eq!(
            found[0].1,
            ["concurrency 8 x1", "unlimited concurrency x1", "load not known x1"]
        );
    }

    #[test]
    fn two_tools_are_two_lines() {
        let mut results = [result("", None, Some(8)), result("", None, Some(8))];
        results[1].source.tool = inferometer_analysis::tool_result::Tool::Vllm;
        let names: Vec<String> =
            loads_by_name(&results).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["m, Inferometer", "m, vLLM"]);
    }
}
