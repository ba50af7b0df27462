//! Results of other tools, of which only figures are known.
//!
//! Figures are compared where they have the same definition. With one result on a side the uncertainty
//! of a difference is not known, so it is shown and not judged; several are judged as our runs are.

use inferometer_model::fmt;
use inferometer_model::study::Level;

use super::{
    Compared, Fact, Objection, SLO, Side, SideFacts, SideRun, TOKENIZER, Trouble, Weight, differing,
};
use crate::metric::{self, Better, Metric, Quantity, Statistic};
use crate::statistics::{Estimate, Percentile};
use crate::summary::Summary;
use crate::tool_result::{CountsFrom, Grain, LatencyKind, Mark, ResultLatency, Tool, ToolResult};

/// Means that differ by more are of other prompts; sampling alone does less.
const OTHER_LENGTHS: f64 = 0.1;

impl Compared for ToolResult {
    const NOUN: &'static str = "result";
    const FIGURES_ONLY: bool = true;

    fn run(&self) -> SideRun {
        SideRun {
            scenario: None,
            id: self.source.name.clone(),
            seed: None,
            level: self.level(),
            verdict: self.verdict,
            partial: self.is_cut(),
        }
    }

    fn estimate(&self, quantity: &Quantity) -> Option<Estimate> {
        self.figure(quantity).ok()
    }

    fn tensor_parallel(&self) -> Option<u32> {
        self.tensor_parallel
    }

    fn subject(side: &Side<Self>) -> SideFacts {
        let Some(first) = side.results.first() else { return SideFacts::default() };
        let is_one = side.results.iter().all(|result| result.source.tool == first.source.tool);
        SideFacts {
            model: first.model.clone().unwrap_or_default(),
            simulated: first.source.simulated.then(|| "virtual time".to_owned()),
            tool: Some(first.source.tool).filter(|it| is_one && *it != Tool::Inferometer),
            ..SideFacts::default()
        }
    }

    /// At a request rate the TTFT, from the schedule where all have it, else the throughput: the first
    /// that every result has.
    fn primary(sides: &[Side<Self>]) -> Quantity {
        let all = || sides.iter().flat_map(Side::compared);
        let is_rate = all().next().is_some_and(|(at, _)| matches!(at.level, Level::Rate(_)));
        let (ttft, schedule) = (&metric::TTFT, &metric::TTFT_SCHEDULE);
        let wait = [schedule.p99(), ttft.p99(), ttft.p50(), ttft.mean()];
        let throughput =
            [&metric::OUTPUT_THROUGHPUT, &metric::REQUEST_THROUGHPUT, &metric::TOTAL_THROUGHPUT];
        let throughput = throughput.into_iter().map(Quantity::from);
        let mut candidates = wait.into_iter().filter(|_| is_rate).chain(throughput);
        let is_known = |quantity: &Quantity| all().all(|(_, it)| it.figure(quantity).is_ok());
        candidates.find(is_known).unwrap_or_else(|| Summary::primary(&[]))
    }

    /// All that a result may have, in the order of pages.
    fn quantities(_: &[&Self]) -> Vec<Quantity> {
        let metrics = [
            &metric::REQUEST_THROUGHPUT,
            &metric::OUTPUT_THROUGHPUT,
            &metric::TOTAL_THROUGHPUT,
            &metric::PEAK_OUTPUT_THROUGHPUT,
            &metric::GOODPUT,
            &metric::ERROR_RATE,
            &metric::TTFT_SCHEDULE,
            &metric::TTFT,
            &metric::TPOT,
            &metric::ITL,
            &metric::ICL,
            &metric::E2E_SCHEDULE,
            &metric::E2E,
        ];
        let [p50, p99] = [Percentile::P50, Percentile::P99].map(Statistic::Percentile);
        let statistics = [Statistic::Mean, p50, p99];
        let compared = metrics.into_iter().filter(|metric| metric.better != Better::Neither);
        compared.flat_map(|metric| metric.quantities(&statistics)).collect()
    }

    /// A definition that a tool does not state is the same only in results of that tool.
    fn means_the_same(metric: &Metric, base: &[&Self], other: &[&Self]) -> bool {
        let all = base.iter().chain(other);
        let meant = all.filter_map(|it| Some((it.latency_of(metric)?, it.source.tool)));
        let meant: Vec<_> = meant.collect();
        let Some(((first, tool), rest)) = meant.split_first() else { return true };
        rest.iter().all(|(latency, other)| {
            latency.definition() == first.definition() && (first.is_defined() || other == tool)
        })
    }

    fn troubles(side: &Side<Self>) -> Vec<Trouble> {
        let marked = |is: fn(&Mark) -> bool| {
            side.compared().filter(|(_, result)| result.marks.iter().any(is)).count()
        };
        vec![
            ("cut_results", marked(|mark| matches!(mark, Mark::Cut { .. }))),
            ("failures", marked(|mark| matches!(mark, Mark::Failures { .. }))),
            ("saturated", marked(|mark| matches!(mark, Mark::Saturated { .. }))),
        ]
    }

    fn differences(base: &[&Self], results: &[&Self], side: &str) -> Vec<Objection> {
        let Some(first) = base.first() else { return Vec::new() };
        let mut found: Vec<Objection> =
            results.iter().flat_map(|result| facts(first, result, side)).collect();
        found.extend(meanings(base, results, side));
        found.extend(only_one_has(base, results, side));
        if base.iter().chain(results).any(|it| it.source.tool != Tool::Inferometer) {
            let text = "imported results contain neither the whole workload nor the hardware: only the \
                        load and the numbers of requests and tokens were checked";
            let remedy = "check that prompts, sampling, API and hardware were the same";
            found.push(Objection::new("workload_unknown", Weight::Note, side, text, remedy));
        }
        found
    }
}

const LOAD: &str = "measure both with the same load, and change only the server";

pub(super) const LOAD_FACTS: [Fact<ToolResult>; 5] = [
    ("simulated", |it| Some(if it.source.simulated { "simulated" } else { "measured" }.to_owned())),
    ("load", |it| Some(it.level().to_string())),
    // Of a rate; a difference of concurrencies is one of the load.
    ("max_concurrency", |it| {
        let limit = it.max_concurrency;
        let is_rate = matches!(it.level(), Level::Rate(_));
        is_rate.then(|| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string()))
    }),
    ("burstiness", |it| Some(it.burstiness?.to_string())),
    ("requests", |it| {
        let ended = || Some(it.completed? + it.failed.unwrap_or(0));
        Some(it.requests_planned.or_else(ended)?.to_string())
    }),
];

pub(super) const SUBJECT_FACTS: [Fact<ToolResult>; 4] = [
    (TOKENIZER, |it| it.tokenizer.clone()),
    ("model", |it| it.model.clone()),
    ("tool", |it| Some(it.source.tool.name().to_owned())),
    ("tensor_parallel", |it| Some(it.tensor_parallel?.to_string())),
];

/// Differences in load, subject and token counts.
fn facts(first: &ToolResult, other: &ToolResult, side: &str) -> Vec<Objection> {
    type Tokens = fn(&ToolResult) -> Option<u64>;
    let mut found = differing(&LOAD_FACTS, first, other, side);
    // Another load has another limit.
    if first.level() != other.level() {
        found.retain(|found| found.key != "max_concurrency");
    }
    let lengths: [(&str, Weight, &str, Tokens); 2] = [
        ("input_tokens", Weight::Forbids, "prompts", |it| it.input_tokens),
        ("output_tokens", Weight::Warning, "outputs", |it| it.output_tokens),
    ];
    for (key, weight, whose, tokens) in lengths {
        let mean = |it: &ToolResult| Some(tokens(it)? as f64 / it.completed? as f64);
        if let (Some(a), Some(b)) = (mean(first), mean(other))
            && OTHER_LENGTHS * a.max(b) < (a - b).abs()
        {
            let [a, b] = [a, b].map(fmt::whole);
            let text = format!(
                "the mean length of {whose} differs: {a} tokens in the base, {b} in {side}"
            );
            found.push(Objection::new(key, weight, side, text, LOAD));
        }
    }
    found.extend(differing(&SUBJECT_FACTS, first, other, side));
    if first.request_goodput.is_some() && other.request_goodput.is_some() {
        let text = "goodput depends on the SLO, which imported results do not contain";
        let remedy = "compare it yourself where both had the same SLO";
        found.push(Objection::new(SLO, Weight::Withholds, side, text, remedy));
    }
    found
}

/// Latencies that both have with different definitions.
fn meanings(base: &[&ToolResult], results: &[&ToolResult], side: &str) -> Vec<Objection> {
    let of_kind = |kind: LatencyKind| {
        let meanings = |results: &[&ToolResult]| {
            let mut found: Vec<String> = Vec::new();
            let latencies = results.iter().flat_map(|result| &result.latencies);
            for words in latencies.filter(|latency| latency.kind == kind).map(meaning) {
                if !found.contains(&words) {
                    found.push(words);
                }
            }
            found.join(" and ")
        };
        let (a, b) = (meanings(base), meanings(results));
        let is_shared = ToolResult::quantities(&[]).iter().any(|quantity| {
            let metric = quantity.metric();
            let has = |results: &[&ToolResult]| {
                let mut found = results.iter().filter_map(|result| result.latency_of(metric));
                found.any(|latency| latency.kind == kind)
            };
            has(base) && has(results) && ToolResult::means_the_same(metric, base, results)
        });
        let text = format!("{} is {a} in the base, {b} in {side}", kind.name());
        let key = format!("meaning.{}", kind.name().to_lowercase());
        let remedy = "these are different quantities of the same name: measure both with one tool";
        (!is_shared && !a.is_empty() && !b.is_empty())
            .then(|| Objection::new(&key, Weight::Withholds, side, text, remedy))
    };
    LatencyKind::ALL.into_iter().filter_map(of_kind).collect()
}

fn meaning(latency: &ResultLatency) -> String {
    let grain = match latency.grain {
        Grain::Request => "per request",
        Grain::Token => "per token",
        Grain::Chunk => "per chunk of the stream",
        Grain::Unknown => "per a unit that its tool does not define",
    };
    let from = match latency.from {
        CountsFrom::Schedule => ", from the schedule",
        CountsFrom::Send => ", from sending",
        CountsFrom::Output => "",
        CountsFrom::Unknown => ", from a time that its tool does not define",
    };
    format!("{grain}{from}")
}

/// Figures that are in no table because one side lacks them.
fn only_one_has(base: &[&ToolResult], results: &[&ToolResult], side: &str) -> Option<Objection> {
    let mut only: [(&str, Vec<&str>); 2] = [("the base", Vec::new()), (side, Vec::new())];
    for quantity in ToolResult::quantities(&[]) {
        let has = |results: &[&ToolResult]| results.iter().any(|it| it.figure(&quantity).is_ok());
        let (title, in_base) = (quantity.metric().title, has(base));
        let titles = &mut only[usize::from(!in_base)].1;
        if in_base != has(results) && !titles.contains(&title) {
            titles.push(title);
        }
    }
    let only = only.into_iter().filter(|(_, titles)| !titles.is_empty());
    let only = only.map(|(owner, titles)| format!("only {owner} has {}", titles.join(", ")));
    let only = only.collect::<Vec<_>>().join("; ");
    let remedy = "see the results themselves: `inferometer report`";
    (!only.is_empty()).then(|| Objection::new("one_side_only", Weight::Note, side, only, remedy))
}

#[cfg(test)]
mod tests;
