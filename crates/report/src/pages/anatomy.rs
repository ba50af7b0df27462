//! Where the time of a run went: what the time between two tokens and the time to the first one consist
//! of, and how long the server's steps took.

use inferometer_analysis::steps::Confidence;
use inferometer_analysis::{Anatomy, BatchFigure, StepTimes, StripFigure};

use super::prelude::*;
use crate::chart::{Timeline, TimelineSeries};
use crate::fmt::compact;

/// A shorter time is what is left of a difference of equal ones.
const LEAST_MS: f64 = 1e-9;
/// A part of this share is worth a sentence with its remedy.
const NOTABLE: f64 = 0.10;
/// A server that has no request for this share of the time is not at its limit.
const IDLE: f64 = 0.20;
/// A server whose GPUs are in use for up to this share of the time is limited by something else.
const GPU_USED: f64 = 0.75;
/// The share of a step over which its tokens arrive, from which the writing is worth a sentence.
const SLOW_WRITES: f64 = 0.25;

/// The page of one run's anatomy alone.
pub fn anatomy(summary: &Summary) -> Document {
    let title = format!("Where the time went: run {}", summary.run.id);
    let missing = || {
        let reason = Block::paragraph(text("too-short-for-steps"));
        frame::section("anatomy", "Where the time went", [reason])
    };
    Document::new(title, vec![section(summary, Detail::Full).unwrap_or_else(missing)])
}

/// `None` where too few tokens arrived for any step.
pub(super) fn section(summary: &Summary, detail: Detail) -> Option<Section> {
    let anatomy = summary.anatomy.as_ref()?;
    let section = frame::section("anatomy", "Where the time went", Vec::<Block>::new());
    if let Some(missing) = &anatomy.missing {
        let text = format!("No step structure is visible: {missing}.");
        return Some(section.with([Block::paragraph(text)]));
    }
    let findings: Vec<Text> = findings(anatomy, gpu_use(summary)).into_iter().map(plain).collect();
    let section = section.with([Block::paragraph(opening(anatomy))]);
    let section = section.with((!findings.is_empty()).then(|| Block::from(findings)));
    let section = section.with(parts(anatomy));
    if detail != Detail::Full {
        return Some(section.with(batches(anatomy)));
    }
    let of = "of some seconds from the middle of the run";
    Some(section.with(step_charts(anatomy, &anatomy.strip, of)))
}

/// Step time against batch size, and some seconds of the run.
pub fn step_charts<'a>(
    anatomy: &'a Anatomy,
    strip: &'a StripFigure,
    of: &'a str,
) -> impl Iterator<Item = Chart> {
    batch_chart(anatomy).into_iter().chain(strip_chart(strip, of))
}

fn opening(anatomy: &Anatomy) -> String {
    let steps = counted(anatomy.steps, "step");
    let part = if anatomy.cut { " in the first part of the run" } else { "" };
    let found = format!("The arrivals of tokens show {steps} of the server{part}");
    match anatomy.confidence {
        Some(Confidence::High) => format!("{found}, with high confidence: {}.", anatomy.reason),
        Some(Confidence::Low) | None => {
            format!("{found}, with LOW confidence: {}. Take them as an estimate.", anatomy.reason)
        }
    }
}

/// Sentences about what takes long, with what can be done about it.
fn findings(anatomy: &Anatomy, gpu_use: Option<f64>) -> Vec<String> {
    let mut found = Vec::new();
    let share = |part: f64, whole: f64| Some(part / whole).filter(|share| NOTABLE <= *share);
    if let Some(parts) = &anatomy.between_tokens {
        if let Some(share) = share(parts.prefill_ms, parts.mean_ms) {
            found.push(fill("others-prefill", &[&percent(share)]));
        }
        if let Some(share) = share(parts.stall_ms, parts.mean_ms) {
            found.push(fill("long-steps", &[&percent(share)]));
        }
    }
    found.extend(anatomy.first_token.as_ref().and_then(|parts| {
        let waiting = parts.other_prefill_ms + parts.other_steps_ms;
        let of_others = parts.other_prefill_ms / waiting;
        let share = share(waiting, parts.mean_ms).filter(|share| 0.5 <= *share)?;
        Some(fill("before-own-step", &[&percent(share), &percent(of_others)]))
    }));
    let idle = anatomy.idle_share.filter(|share| IDLE <= *share);
    found.extend(idle.map(|share| fill("idle-server", &[&percent(share)])));
    let unused = gpu_use.filter(|share| idle.is_none() && *share <= GPU_USED);
    found.extend(unused.map(|share| fill("idle-gpus", &[&percent(1.0 - share)])));
    let spread = anatomy.spread_share.filter(|share| SLOW_WRITES <= *share);
    let spread = spread.zip(anatomy.spread_ms);
    let spread =
        spread.map(|(share, ms)| fill("slow-writes", &[&fmt::latency(ms), &percent(share)]));
    found.extend(spread);
    found.extend(batch_finding(&anatomy.batches));
    found
}

/// The mean share of the time in which the server's GPUs were in use.
fn gpu_use(summary: &Summary) -> Option<f64> {
    let devices = &summary.machines.gpus.as_ref()?.devices;
    let used = devices.iter().filter(|device| device.counts());
    let shares: Vec<f64> = used.filter_map(|device| Some(device.use_share?.mean)).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// How much longer a step takes with many requests than with few.
fn batch_finding(batches: &[BatchFigure]) -> Option<String> {
    let mut known = batches.iter().filter_map(|it| Some((it.batch, it.decode?.p50_ms)));
    let (few, short) = known.next()?;
    let (many, long) = known.next_back()?;
    let [short, long] = [short, long].map(fmt::latency);
    Some(fill("steps-by-size", &[&short, &requests(few), &long, &requests(many)]))
}

fn requests(batch: f64) -> String {
    let plural = if batch < 1.5 { "" } else { "s" };
    format!("{} request{plural}", whole(batch))
}

/// What both times consist of.
fn parts(anatomy: &Anatomy) -> Option<Table> {
    let mut rows = Vec::new();
    let mut add = |time: &str, mean: f64, parts: &[(&str, f64)]| {
        for (name, ms) in parts {
            let ms = if ms.abs() < LEAST_MS { &0.0 } else { ms };
            let share = Cell::number(percent(ms / mean), ms / mean);
            let ms = Cell::number(number(*ms), *ms);
            rows.push(vec![Cell::text(time), Cell::text(*name), ms, share]);
        }
    };
    if let Some(parts) = &anatomy.between_tokens {
        let named = [
            ("decode step at this batch size", parts.decode_ms),
            ("prefill of other requests", parts.prefill_ms),
            ("idle or other work: longer steps without prefill", parts.stall_ms),
            ("queue: steps without this request", parts.queue_ms),
            ("network and client", parts.delivery_ms),
        ];
        add("between tokens", parts.mean_ms, &named);
    }
    if let Some(parts) = &anatomy.first_token {
        let named = [
            ("earlier steps with others' prefill", parts.other_prefill_ms),
            ("other earlier steps", parts.other_steps_ms),
            ("its own step, network and client", parts.own_step_ms),
        ];
        add("TTFT", parts.mean_ms, &named);
        if let Some(own) = &parts.reported {
            let rest = match (own.queue_ms, own.network_ms, own.client_ms) {
                (None, ..) => "queue, and all else",
                (_, Some(_), Some(_)) => "the server's API process, and all else",
                _ => "network, client and all else",
            };
            let named = [
                ("queue", own.queue_ms),
                ("prefill", own.prefill_ms),
                ("network: one round trip", own.network_ms),
                ("client", own.client_ms),
                (rest, Some(own.rest_ms)),
            ];
            let known: Vec<(&str, f64)> =
                named.into_iter().filter_map(|(name, ms)| Some((name, ms?))).collect();
            add("TTFT by the server's timings", own.mean_ms, &known);
        }
    }
    let columns = ["Time", "Part"].map(Column::left).into_iter();
    let columns = columns.chain(["Mean (ms)", "Share"].map(Column::right)).collect();
    (!rows.is_empty()).then(|| {
        Table::new("anatomy-parts", "Parts of the mean times over the whole run", columns, rows)
            .noted([text("seen-from-outside")])
    })
}

fn batches(anatomy: &Anatomy) -> Option<Table> {
    let times = |times: Option<StepTimes>| match times {
        Some(times) => [Cell::count(times.n), Cell::number(number(times.p50_ms), times.p50_ms)],
        None => [Cell::text(NOTHING), Cell::text(NOTHING)],
    };
    let row = |figure: &BatchFigure| {
        let batch = [Cell::number(compact(figure.batch), figure.batch)];
        batch.into_iter().chain(times(figure.decode)).chain(times(figure.prefill)).collect()
    };
    let rows: Vec<Vec<Cell>> = anatomy.batches.iter().map(row).collect();
    let columns = ["Batch", "Steps", "p50 (ms)", "With prefill", "p50 (ms)"].map(Column::right);
    let title = "Step time by batch size";
    (!rows.is_empty()).then(|| Table::new("anatomy-batches", title, columns.to_vec(), rows))
}

fn batch_chart(anatomy: &Anatomy) -> Option<Chart> {
    let series = |name: &str, times: fn(&BatchFigure) -> Option<StepTimes>| {
        let point = |figure: &BatchFigure| {
            let times = times(figure)?;
            let [low, high] = [times.p10_ms, times.p90_ms].map(number);
            let note = fill("step-times", &[&counted(times.n, "step"), &low, &high]);
            let (x, y) = (figure.batch, times.p50_ms);
            Some(LinePoint { x, y, note: Some(note), ..LinePoint::default() })
        };
        let points: Vec<LinePoint> = anatomy.batches.iter().filter_map(point).collect();
        (!points.is_empty()).then(|| LineSeries::new(name, points))
    };
    let decode = series("decode only", |figure| figure.decode);
    let prefill = series("with prefill", |figure| figure.prefill);
    let series: Vec<LineSeries> = decode.into_iter().chain(prefill).collect();
    let finding = batch_finding(&anatomy.batches)
        .unwrap_or_else(|| "All steps have about the same number of requests.".to_owned());
    let y = measure("Median time of a step", "ms", ScaleKind::Log);
    let x = measure("Requests in the step", "", ScaleKind::Log);
    let n = counted(anatomy.steps, "step");
    let is_drawn = !series.is_empty();
    let panels = vec![Panel::new("", y, series)];
    let plot = Plot::Lines(Lines { x, ticks_at_points: true, panels });
    let title = "Step time against batch size";
    is_drawn.then(|| Chart::new("steps-by-batch", title, finding, n, plot))
}

/// Some seconds of the run: batch size, step time, and the prompts that were computed.
fn strip_chart(strip: &StripFigure, of: &str) -> Option<Chart> {
    let longest = strip.step_ms.iter().flatten().copied().reduce(f64::max)?;
    let panel = |heading: &str, unit: &str, points: Vec<Option<f64>>| {
        let series = TimelineSeries::new(&heading.to_lowercase(), points);
        Panel::new(heading, linear("", unit), vec![series])
    };
    let prefill = strip.prefill_tokens.iter().map(|tokens| Some(*tokens as f64)).collect();
    let panels = vec![
        panel("Batch size", "", strip.batch.clone()),
        panel("Longest step", "ms", strip.step_ms.clone()),
        panel("Prompt tokens", "", prefill),
    ];
    let seconds = strip.column_ms / 1e3 * strip.batch.len() as f64;
    let finding = format!("The longest of these steps took {}.", fmt::latency(longest));
    let n = format!("{} s in columns of {}", number(seconds), fmt::latency(strip.column_ms));
    let (from_s, step_s) = (strip.from_ms / 1e3, strip.column_ms / 1e3);
    let plot = Plot::Timeline(Timeline { from_s, step_s, panels });
    let title = format!("Steps {of}");
    (0.0 < step_s).then(|| Chart::new("steps-strip".to_owned(), title, finding, n, plot))
}
