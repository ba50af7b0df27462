//! What the server said of itself: a second witness beside the client.

use inferometer_analysis::{CounterFigures, GaugeFigures, ScrapeFigures, ServerSide, Summary};

use super::style::{Ink, Style};
use crate::escape::terminal;
use crate::fmt::{NOTHING, count, number, percent, whole};
use crate::lines::{hanging, labelled};

/// From so many on, a mean of them says something of a run.
const TELLING_SCRAPES: u64 = 3;

pub(super) fn server(summary: &Summary, style: Style) -> String {
    let title = style.paint(Ink::Bold, "server") + "\n";
    match (&summary.server, &summary.server_missing) {
        (Some(server), _) => title + &figures(server, summary),
        (None, Some(reason)) => {
            let head = format!("  {NOTHING} ");
            title + &hanging(&head, 4, &terminal(reason))
        }
        (None, None) => String::new(),
    }
}

/// Nobody scrapes a simulated engine: what is known of it was looked up.
fn heard(summary: &Summary) -> &'static str {
    if summary.run.simulated.is_some() { "samples" } else { "scrapes" }
}

fn figures(server: &ServerSide, summary: &Summary) -> String {
    let heard = heard(summary);
    let line = |gauge: Option<GaugeFigures>, mean, max| match gauge? {
        gauge if gauge.n < TELLING_SCRAPES => Some(format!("{NOTHING} too few {heard} to tell")),
        gauge => Some(over_time(gauge, mean, max)),
    };
    let requests = |gauge| line(gauge, number, whole);
    let shares = |gauge| line(gauge, percent, percent);
    let lines = [
        ("running", requests(server.running)),
        ("waiting", requests(server.waiting)),
        ("swapped", requests(server.swapped)),
        ("KV use", shares(server.kv_usage)),
        ("host KV", shares(server.cpu_kv_usage)),
        ("prefix", prefix(server)),
        ("preempts", server.preemptions.map(|counter| whole(counter.total))),
        ("tokens", tokens(server, heard)),
        ("replicas", server.replicas.map(count)),
        ("restarts", (0 < server.restarts).then(|| count(server.restarts))),
        (heard, Some(scrapes(server, &speaker(summary, server)))),
    ];
    let known = lines.into_iter().filter_map(|(label, text)| Some(labelled(label, &text?)));
    known.collect()
}

fn over_time(
    gauge: GaugeFigures,
    mean: fn(Option<f64>) -> String,
    max: fn(Option<f64>) -> String,
) -> String {
    format!("{} on average, at most {}", mean(Some(gauge.mean)), max(Some(gauge.max)))
}

fn prefix(server: &ServerSide) -> Option<String> {
    let share = server.prefix_hit_share?;
    Some(format!("{} of prompt tokens found in its cache", percent(share)))
}

fn tokens(server: &ServerSide, heard: &str) -> Option<String> {
    let rate = |counter: Option<CounterFigures>, what: &str| {
        let rate = counter?.per_s?;
        Some(format!("{} {what} tok/s", number(rate)))
    };
    let rates = [rate(server.prompt_tokens, "prompt"), rate(server.generation_tokens, "generated")];
    let known: Vec<String> = rates.into_iter().flatten().collect();
    // Both stand in every scrape, so one time holds for both.
    let over_s = server.prompt_tokens.or(server.generation_tokens)?.over_s;
    let time = format!("over {} s between {heard}", number(over_s));
    (!known.is_empty()).then(|| format!("{}, by its own counters {time}", known.join(", ")))
}

/// The engine that comes with the program names its metrics as another does, and is not that one.
pub(crate) fn speaker(summary: &Summary, server: &ServerSide) -> String {
    let names = server.dialect.title();
    match (&summary.run.simulated, summary.run.embedded) {
        (Some(_), _) => format!("the simulated engine (by the names of {names})"),
        (None, true) => format!("the embedded engine (by the names of {names})"),
        (None, false) => names.to_owned(),
    }
}

fn scrapes(server: &ServerSide, speaker: &str) -> String {
    let scrapes = &server.scrapes;
    let heard = format!("{} of {speaker}", count(scrapes.ok));
    let inside = match scrapes.inside {
        0 => "none inside the run".to_owned(),
        inside => format!("{} inside the run", count(inside)),
    };
    let Some(took) = scrapes.took_ms_mean else { return format!("{heard}, {inside}") };
    format!(
        "{heard}, {inside}, {}; each took {} ms, at most {} ms",
        missed(scrapes),
        number(took),
        number(scrapes.took_ms_max),
    )
}

fn missed(scrapes: &ScrapeFigures) -> String {
    let by_reason = scrapes.missed_by.iter();
    let reasons: Vec<String> = by_reason
        .map(|(reason, number)| format!("{} {}", count(*number), reason.replace('_', " ")))
        .collect();
    match scrapes.missed {
        0 => "none missed".to_owned(),
        missed => format!("{} missed ({})", count(missed), terminal(&reasons.join(", "))),
    }
}
