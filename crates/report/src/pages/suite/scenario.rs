//! One scenario: what it is for, its key metrics, what they mean, and its charts.

use inferometer_analysis::{Metric, Quantity, ServerSide, Summary, metric};

use crate::chart::Chart;
use crate::document::{Block, Section, Span, Text, plain};
use crate::fmt::{NOTHING, count, counted, number, percent, uncertainty, whole};
use crate::narrative::Narrative;
use crate::pages::cells::uncertified;
use crate::pages::rows::Row;
use crate::pages::{charts, frame};

pub(super) fn section(row: &Row<'_>, narrative: &Narrative) -> Section {
    let purpose = row.scenario.map_or(NOTHING, |asked| asked.purpose.as_str());
    let mut blocks = vec![
        Block::Paragraph(vec![
            Span::Strong("Purpose:".to_owned()),
            Span::Plain(format!(" {purpose}")),
        ]),
        heading("Key metrics:"),
        Block::List(key_metrics(row)),
    ];
    if let Some(reservation) = row.reservation() {
        blocks.push(Block::Notice {
            mood: crate::document::Mood::Doubt,
            text: plain(frame::sentence(&reservation)),
            points: Vec::new(),
            remedy: Some(plain("Its warnings stand under “How far to believe this”.")),
        });
    }
    if let Some(sentences) = narrative.scenarios.get(&row.name).filter(|found| !found.is_empty()) {
        blocks.push(heading("Interpretation:"));
        blocks.push(Block::List(frame::texts(sentences)));
    }
    blocks.extend(row.drawn().map(|run| figures(row, run)).unwrap_or_default());
    frame::section(&row.id(), &row.name, blocks)
}

fn heading(words: &str) -> Block {
    Block::Paragraph(vec![Span::Strong(words.to_owned())])
}

fn key_metrics(row: &Row<'_>) -> Vec<Text> {
    let asked = row.scenario;
    let told = |text: Option<&String>| text.map_or(NOTHING, String::as_str).to_owned();
    let (input, output) = (
        told(asked.and_then(|asked| asked.input_tokens.as_ref())),
        told(asked.and_then(|asked| asked.output_tokens.as_ref())),
    );
    let concurrency = asked.and_then(|asked| asked.concurrency);
    let requests = asked.and_then(|asked| asked.requests);
    let value = |quantity: Quantity| number(row.value(quantity));
    let three = |metric: &'static Metric| {
        [metric.mean(), metric.p50(), metric.p99()].map(value).join(" / ")
    };
    let output_throughput = row.quantity(metric::OUTPUT_THROUGHPUT.quantity());
    let tally = row.tally();
    let mut lines = vec![
        format!("Input/Output: {input} / {output} tokens"),
        match (concurrency, row.rate()) {
            (Some(users), None) => format!("Concurrency: {}", count(users.into())),
            (None, None) => format!("Concurrency: {NOTHING}"),
            (None, Some(rate)) => format!("Rate: {rate}"),
            (Some(cap), Some(rate)) => {
                format!("Rate: {rate}, at most {} in flight", count(cap.into()))
            }
        },
        format!("Prompts: {}{}", requests.map_or_else(|| count(tally.scheduled), count), runs(row)),
        format!(
            "Output throughput: {} tok/s (peak {}){}",
            value(metric::OUTPUT_THROUGHPUT.quantity()),
            value(metric::PEAK_OUTPUT_THROUGHPUT.quantity()),
            after(&uncertainty(&output_throughput)),
        ),
        format!(
            "TTFT mean/median/p99: {} ms{}",
            three(&metric::TTFT),
            uncertain(row, &metric::TTFT)
        ),
        format!(
            "TPOT mean/median/p99: {} ms{}",
            three(&metric::TPOT),
            uncertain(row, &metric::TPOT)
        ),
        format!("ITL mean/median/p99: {} ms{}", three(&metric::ITL), uncertain(row, &metric::ITL)),
        format!("E2E mean/median/p99: {} ms{}", three(&metric::E2E), uncertain(row, &metric::E2E)),
        format!(
            "PP/TG (derived): {} / {} tok/s",
            value(metric::PP.quantity()),
            value(metric::TG.quantity())
        ),
    ];
    lines.extend(server(row));
    if tally.ok != tally.scheduled {
        lines.push(format!(
            "Outcomes: {} of {} ok, {} failed, {} cancelled, {} not sent",
            count(tally.ok),
            count(tally.scheduled),
            count(tally.failed),
            count(tally.cancelled),
            count(tally.not_sent)
        ));
    }
    lines.into_iter().map(plain).collect()
}

fn runs(row: &Row<'_>) -> String {
    match row.level.map(|level| level.points.len() + level.left_out.len()) {
        None | Some(0 | 1) => String::new(),
        Some(runs) => format!(" in each of {}", counted(runs as u64, "run")),
    }
}

fn after(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("; {words}") }
}

/// A p99 of few requests is marked.
fn uncertain(row: &Row<'_>, metric: &'static Metric) -> String {
    let across = row.quantity(metric.p99());
    if across.certified || across.mean.is_none() {
        return String::new();
    }
    format!("; the p99: {}", uncertified(row.independent(metric)))
}

/// What the server says of itself, the worst of the runs that count.
fn server(row: &Row<'_>) -> Option<String> {
    let most = |of: fn(&ServerSide) -> Option<f64>| {
        row.runs.iter().filter_map(|run| of(run.server.as_ref()?)).max_by(f64::total_cmp)
    };
    let kv = most(|server| server.kv_usage.map(|found| found.max));
    let waiting = most(|server| server.waiting.map(|found| found.max));
    let preempted = most(|server| server.preemptions.map(|found| found.total));
    let cached = row.scenario.and_then(|asked| asked.cached_share);
    let parts: Vec<String> = [
        kv.map(|share| format!("KV use up to {}", percent(share))),
        waiting.map(|number| format!("waiting up to {}", whole(number))),
        preempted.map(|number| format!("preemptions {}", whole(number))),
        cached.map(|share| format!("from the prefix cache {} of the input", percent(share))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("Server: {}", parts.join(", ")))
}

/// A tail so many times its middle is worth a look.
const TELLING: f64 = 3.0;

/// What tells most stands open, and the others wait to be asked for.
fn figures(row: &Row<'_>, run: &Summary) -> Vec<Block> {
    let id = row.id();
    let own = [row];
    let waited = run.server.as_ref().and_then(|server| server.waiting);
    let charts = [
        (has_tail(row, charts::first_token_metric(&own)), charts::first_tokens(&own, &id)),
        (false, charts::token_gaps(&own, &id)),
        (waited.is_some_and(|waiting| 0.0 < waiting.max), charts::course(run, &id)),
        (false, charts::gpus(run, &id)),
        (false, charts::requests(run, &id)),
        (has_tail(row, &metric::ITL), charts::gaps(run, &id)),
    ];
    let drawn = charts.into_iter().filter_map(|(is_telling, chart)| Some((is_telling, chart?)));
    let (open, folded): (Vec<_>, Vec<_>) = drawn.partition(|(is_telling, _)| *is_telling);
    let figures = |charts: Vec<(bool, Chart)>| -> Vec<Block> {
        let told = |chart: Chart| Chart { n: named(&chart.n, row), ..chart };
        charts.into_iter().map(|(_, chart)| charts::figure(told(chart))).collect()
    };
    let mut blocks = figures(open);
    if !folded.is_empty() {
        let summary = format!("{} of {}", counted(folded.len() as u64, "more chart"), row.name);
        blocks.push(Block::Details { summary, blocks: figures(folded) });
    }
    blocks
}

/// With the run that is drawn, where the chart does not say it itself.
fn named(n: &str, row: &Row<'_>) -> String {
    let which = row.which_run();
    if n.ends_with(&which) { n.to_owned() } else { format!("{n}{which}") }
}

fn has_tail(row: &Row<'_>, metric: &'static Metric) -> bool {
    row.value(metric.p50())
        .zip(row.value(metric.p99()))
        .is_some_and(|(middle, tail)| TELLING * middle <= tail)
}
