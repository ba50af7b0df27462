//! Results of which only figures are known, such as those of other tools.
//!
//! Their figures are compared where they mean the same. One result a side says how far apart they
//! are and not how certain that is, so it is shown and not judged; several are judged as our runs are.

use inferometer_model::study::Level;

use super::{Compared, Fact, Objection, PROMISES, Side, TOKENIZER, Trouble, Weight, differing};
use crate::judge::Verdict;
use crate::metric::{self, Better, Metric, Quantity, Statistic};
use crate::statistics::{Estimate, Percentile};
use crate::summary::Summary;
use crate::tool_result::{CountsFrom, Grain, LatencyKind, Mark, ResultLatency, Tool, ToolResult};

/// Means that differ by more are of other prompts; sampling alone does less.
const OTHER_LENGTHS: f64 = 0.1;

impl Compared for ToolResult {
    const NOUN: &'static str = "result";
    const ONCE: &'static str = "name each result once: it says nothing about itself";
    const FIGURES_ONLY: bool = true;

    fn id(&self) -> &str {
        &self.source.name
    }

    fn level(&self) -> Level {
        self.level()
    }

    fn verdict(&self) -> Option<Verdict> {
        self.verdict
    }

    fn estimate(&self, quantity: &Quantity) -> Option<Estimate> {
        self.figure(quantity).ok()
    }

    fn tensor_parallel(&self) -> Option<u32> {
        self.tensor_parallel
    }

    fn seed_and_partial(&self) -> (Option<u64>, bool) {
        (None, self.is_cut())
    }

    fn subject(side: &Side<Self>) -> (String, String, Option<String>, Option<Tool>) {
        let Some(first) = side.results.first() else { return Default::default() };
        let is_one = side.results.iter().all(|result| result.source.tool == first.source.tool);
        let tool = Some(first.source.tool).filter(|it| is_one && *it != Tool::Inferometer);
        let simulated = first.source.simulated.then(|| "virtual time".to_owned());
        (first.model.clone().unwrap_or_default(), String::new(), simulated, tool)
    }

    /// Of a given rate the wait, from the schedule where all have it, else the throughput: the first
    /// that every result has.
    fn primary(sides: &[Side<Self>]) -> Quantity {
        let all = || sides.iter().flat_map(Side::compared);
        let is_rate = all().next().is_some_and(|sheet| matches!(sheet.level(), Level::Rate(_)));
        let wait = [
            metric::TTFT_SCHEDULE.p99(),
            metric::TTFT.p99(),
            metric::TTFT.p50(),
            metric::TTFT.mean(),
        ];
        let throughput =
            [&metric::OUTPUT_THROUGHPUT, &metric::REQUEST_THROUGHPUT, &metric::TOTAL_THROUGHPUT];
        let candidates =
            wait.into_iter().filter(|_| is_rate).chain(throughput.into_iter().map(Quantity::from));
        let is_known = |quantity: &Quantity| all().all(|sheet| sheet.figure(quantity).is_ok());
        candidates.into_iter().find(is_known).unwrap_or_else(|| Summary::primary(&[]))
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
        let statistics = [
            Statistic::Mean,
            Statistic::Percentile(Percentile::P50),
            Statistic::Percentile(Percentile::P99),
        ];
        let compared = metrics.into_iter().filter(|metric| metric.better != Better::Neither);
        compared.flat_map(|metric| metric.quantities(&statistics)).collect()
    }

    /// What a tool leaves open is the same in its own results alone.
    fn means_the_same(metric: &Metric, base: &[&Self], other: &[&Self]) -> bool {
        let all = || base.iter().chain(other);
        let meant: Vec<_> = all()
            .filter_map(|sheet| Some((sheet.latency_of(metric)?, sheet.source.tool)))
            .collect();
        let Some(((first, tool), rest)) = meant.split_first() else { return true };
        rest.iter().all(|(latency, other)| {
            latency.definition() == first.definition() && (first.is_defined() || other == tool)
        })
    }

    fn troubles(side: &Side<Self>) -> Vec<Trouble> {
        let marked = |is: fn(&Mark) -> bool| {
            side.compared().filter(|sheet| sheet.marks.iter().any(is)).count()
        };
        let of_verdict =
            |verdict| side.results.iter().filter(|sheet| sheet.verdict == Some(verdict)).count();
        let look = "look at their warnings with `inferometer verify RUN --format page`";
        vec![
            ("invalid_runs", of_verdict(Verdict::Invalid), "are invalid and left out", look),
            (
                "degraded_runs",
                of_verdict(Verdict::Degraded),
                "are degraded: their numbers hold with a reservation",
                look,
            ),
            (
                "cut_results",
                marked(|mark| matches!(mark, Mark::Cut { .. })),
                "completed fewer requests than were planned: their figures are of the part that was done",
                "measure again to the end, so that both sides had the same work",
            ),
            (
                "failures",
                marked(|mark| matches!(mark, Mark::Failures { .. })),
                "have failed requests, which are in none of the latencies",
                "find out why they failed; a server that drops load looks quick",
            ),
            (
                "saturated",
                marked(|mark| matches!(mark, Mark::Saturated { .. })),
                "gave less than the rate that was asked: their latencies grow with the length of the run",
                "compare below the rate that both sides keep up with",
            ),
        ]
    }

    fn differences(base: &[&Self], sheets: &[&Self], side: &str) -> Vec<Objection> {
        let Some(first) = base.first() else { return Vec::new() };
        let mut found: Vec<Objection> =
            sheets.iter().flat_map(|sheet| facts(first, sheet, side)).collect();
        found.extend(meanings(base, sheets, side));
        found.extend(only_one_has(base, sheets, side));
        found.extend(open(base, sheets, side));
        found
    }
}

const LOAD: &str = "measure both with the same load, and change only the server";
const UNLESS_ASKED: &str = "mind it, unless it is the question";

const LOAD_FACTS: [Fact<ToolResult>; 5] = [
    ("simulated", Weight::Forbids, "where the figures come from", LOAD, |it| {
        Some(if it.source.simulated { "simulated" } else { "measured" }.to_owned())
    }),
    ("load", Weight::Forbids, "the load", LOAD, |it| Some(it.level().to_string())),
    // Of a rate; a difference of concurrencies is one of the load.
    ("max_concurrency", Weight::Warning, "the limit of concurrency", LOAD, |it| {
        let limit = it.max_concurrency;
        let is_rate = matches!(it.level(), Level::Rate(_));
        is_rate.then(|| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string()))
    }),
    ("burstiness", Weight::Warning, "the burstiness", LOAD, |it| Some(it.burstiness?.to_string())),
    ("requests", Weight::Warning, "the number of requests", LOAD, |it| {
        let ended = || Some(it.completed? + it.failed.unwrap_or(0));
        Some(it.requests_planned.or_else(ended)?.to_string())
    }),
];

const SUBJECT_FACTS: [Fact<ToolResult>; 4] = [
    (
        TOKENIZER,
        Weight::Withholds,
        "the tokenizer",
        "tokens are not the same unit; measure both with one tokenizer",
        |it| it.tokenizer.clone(),
    ),
    ("model", Weight::Warning, "the model", UNLESS_ASKED, |it| it.model.clone()),
    (
        "tool",
        Weight::Warning,
        "the tool",
        "what the clients do differently passes for a difference of the servers: measure both with \
         one tool",
        |it| Some(it.source.tool.name().to_owned()),
    ),
    (
        "tensor_parallel",
        Weight::Note,
        "the tensor-parallel size",
        "mind it, unless it is the question; --gpus N sets nodes of equal size beside each other",
        |it| Some(it.tensor_parallel?.to_string()),
    ),
];

/// What was asked of the server, what answered, and who counted.
fn facts(first: &ToolResult, other: &ToolResult, side: &str) -> Vec<Objection> {
    type Tokens = fn(&ToolResult) -> Option<u64>;
    let mut found = differing(&LOAD_FACTS, first, other, side);
    // Another load has another limit.
    if first.level() != other.level() {
        found.retain(|found| found.key != "max_concurrency");
    }
    let lengths: [(&str, Weight, &str, Tokens); 2] = [
        ("input_tokens", Weight::Forbids, "prompts", |it| it.input_tokens),
        ("output_tokens", Weight::Warning, "answers", |it| it.output_tokens),
    ];
    for (key, weight, whose, tokens) in lengths {
        let mean = |it: &ToolResult| Some(tokens(it)? as f64 / it.completed? as f64);
        if let (Some(a), Some(b)) = (mean(first), mean(other))
            && OTHER_LENGTHS * a.max(b) < (a - b).abs()
        {
            let text = format!(
                "the mean length of {whose} differs: {a:.0} tokens in the base, {b:.0} in {side}"
            );
            found.push(Objection::new(key, weight, side, text, LOAD));
        }
    }
    found.extend(differing(&SUBJECT_FACTS, first, other, side));
    if first.request_goodput.is_some() && other.request_goodput.is_some() {
        let text = "goodput counts what was promised, and imported results do not say that";
        let remedy = "compare it by hand where both promised the same";
        found.push(Objection::new(PROMISES, Weight::Withholds, side, text, remedy));
    }
    found
}

/// Latencies that both have and that do not mean the same.
fn meanings(base: &[&ToolResult], sheets: &[&ToolResult], side: &str) -> Vec<Objection> {
    let of_kind = |kind: LatencyKind| {
        let meanings = |sheets: &[&ToolResult]| {
            let mut told: Vec<String> = Vec::new();
            let latencies = sheets.iter().flat_map(|sheet| &sheet.latencies);
            for words in latencies.filter(|latency| latency.kind == kind).map(meaning) {
                if !told.contains(&words) {
                    told.push(words);
                }
            }
            told
        };
        let (a, b) = (meanings(base), meanings(sheets));
        let is_shared = ToolResult::quantities(&[]).iter().any(|quantity| {
            let metric = quantity.metric();
            let has = |sheets: &[&ToolResult]| {
                let mut found = sheets.iter().filter_map(|sheet| sheet.latency_of(metric));
                found.any(|latency| latency.kind == kind)
            };
            has(base) && has(sheets) && ToolResult::means_the_same(metric, base, sheets)
        });
        if is_shared || a.is_empty() || b.is_empty() {
            return None;
        }
        let text = format!(
            "{} is {} in the base, {} in {side}",
            kind.name(),
            a.join(" and "),
            b.join(" and ")
        );
        let key = format!("meaning.{}", kind.name().to_lowercase());
        let remedy = "measure both with one tool; they are different numbers of the same name";
        Some(Objection::new(&key, Weight::Withholds, side, text, remedy))
    };
    LatencyKind::ALL.into_iter().filter_map(of_kind).collect()
}

fn meaning(latency: &ResultLatency) -> String {
    let grain = match latency.grain {
        Grain::Request => "per request",
        Grain::Token => "per token",
        Grain::Chunk => "per chunk of the stream",
        Grain::Unknown => "per something that its tool does not say",
    };
    let from = match latency.from {
        CountsFrom::Schedule => ", from the schedule",
        CountsFrom::Send => ", from sending",
        CountsFrom::Output => "",
        CountsFrom::Unknown => ", from a moment that its tool does not say",
    };
    format!("{grain}{from}")
}

/// Figures that are in no table because one side lacks them.
fn only_one_has(base: &[&ToolResult], sheets: &[&ToolResult], side: &str) -> Option<Objection> {
    let (mut of_base, mut of_side): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for quantity in ToolResult::quantities(&[]) {
        let has =
            |sheets: &[&ToolResult]| sheets.iter().any(|sheet| sheet.figure(&quantity).is_ok());
        let title = quantity.metric().title;
        match (has(base), has(sheets)) {
            (true, false) if !of_base.contains(&title) => of_base.push(title),
            (false, true) if !of_side.contains(&title) => of_side.push(title),
            _ => (),
        }
    }
    let told = [("the base", of_base), (side, of_side)]
        .into_iter()
        .filter(|(_, titles)| !titles.is_empty())
        .map(|(who, titles)| format!("only {who} has {}", titles.join(", ")))
        .collect::<Vec<_>>();
    let remedy = "they stand in the results themselves: `inferometer report`";
    (!told.is_empty())
        .then(|| Objection::new("one_side_only", Weight::Note, side, told.join("; "), remedy))
}

/// What no file says, and what would pass for a change of the server.
fn open(base: &[&ToolResult], sheets: &[&ToolResult], side: &str) -> Option<Objection> {
    let is_foreign = |sheet: &&&ToolResult| sheet.source.tool != Tool::Inferometer;
    base.iter().chain(sheets).find(is_foreign)?;
    let text = "imported results do not say all that was asked, nor of which hardware: the load and \
                the numbers of requests and tokens are all that was held against each other";
    let remedy = "see for yourself that prompts, sampling, API and hardware were the same";
    Some(Objection::new("workload_unknown", Weight::Note, side, text, remedy))
}

#[cfg(test)]
mod tests;
