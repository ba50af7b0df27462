//! The sections of the terminal page. Each is text with a line feed at its end, or empty.

use std::fmt::Write;

use inferometer_analysis::{
    Distribution, FailureGroup, Interval, Metric, MetricValue, Percentile, Summary, Unit, Verdict,
    metric,
};
use inferometer_model::Outcome;
use inferometer_model::observations::HttpVersion;
use inferometer_model::outcome::Cause;

use super::style::{Ink, Style};
use crate::Files;
use crate::escape::{terminal, terminal_line};
use crate::fmt::load;
use crate::fmt::{NOTHING, count, number, percent, whole};
use crate::lines::hanging;

const NAME_WIDTH: usize = 22;
const FIGURE_WIDTH: usize = 10;
/// Characters of a server's words: enough for the sentence that says what to do.
const WORDS_MAX: usize = 300;

pub(super) fn head(summary: &Summary, style: Style) -> String {
    let run = &summary.run;
    let target = match (run.embedded, &run.simulated, run.engine_speed) {
        (_, Some(_), _) => "the simulated engine".to_owned(),
        (true, None, None) => "the embedded engine".to_owned(),
        (true, None, Some(speed)) => {
            format!("the embedded engine, SPED UP {speed} times: all times are shorter")
        }
        (false, None, _) => terminal(&run.target),
    };
    let unit = match summary.workload.turns {
        Some(_) => load::Unit::Conversations,
        None => load::Unit::Requests,
    };
    let (shape, extent) = (load::shape(&run.load, unit), load::extent(&run.extent));
    let warm_up = run.warm_up.map_or_else(String::new, |facts| load::warm_up(&facts) + "\n");
    let streaming = if run.streaming { "streamed" } else { "not streamed" };
    let protocol = match run.http {
        HttpVersion::Http1 => "",
        HttpVersion::Http2 => ", HTTP/2",
    };
    let insecure = if run.insecure {
        let words = "TLS certificate NOT checked (--insecure): anybody may have answered";
        style.paint(Ink::of_verdict(Verdict::Invalid), words) + "\n"
    } else {
        String::new()
    };
    let cap = summary.held_by_cap.map_or_else(String::new, |held| {
        format!("the cap held back {} of the requests\n", percent(held.share))
    });
    let simulated = if run.simulated.is_some() { "  ·  simulated" } else { "" };
    let title = format!(
        "Inferometer {}  ·  run {}{simulated}",
        terminal(&run.tool_version),
        terminal(&run.id)
    );
    let lengths = load::lengths(&summary.workload, run.api);
    let extras =
        load::extras(&summary.workload).map_or_else(String::new, |extras| hanging("", 0, &extras));
    let load = hanging("", 0, &format!("{shape}, {extent}, {lengths}, seed {}", run.seed));
    format!(
        "{}\n{} of `{}` at {target}, {streaming}{protocol}\n{insecure}{load}{extras}{cap}{warm_up}",
        style.paint(Ink::Bold, &title),
        run.api,
        terminal_line(&run.model, 60),
    )
}

/// Says first of all that no server was measured; nothing for a run that was.
pub(super) fn simulated(summary: &Summary, style: Style) -> String {
    let Some(simulated) = &summary.run.simulated else { return String::new() };
    let words = format!(
        "SIMULATED in virtual time: no server was measured. Profile {}: {}",
        terminal_line(&simulated.profile, WORDS_MAX),
        terminal(&simulated.engine)
    );
    style.paint(Ink::of_verdict(Verdict::Degraded), hanging("", 0, &words).trim_end()) + "\n"
}

pub(super) fn verdict(summary: &Summary, style: Style) -> String {
    let verdict = summary.verdict;
    let word = match verdict {
        Verdict::Valid => "VALID",
        Verdict::Degraded => "DEGRADED",
        Verdict::Invalid => "INVALID",
    };
    let duration = number(summary.window.duration_s);
    let partial = if summary.run.partial { ", partial" } else { "" };
    format!(
        "{}  {} of {} requests ok in {duration} s{partial}\n",
        style.paint(Ink::of_verdict(verdict), word),
        count(summary.count(Outcome::Ok)),
        // Turns that the end of the run cut off were never due.
        count(summary.scheduled.saturating_sub(summary.time_over)),
    )
}

/// The headline latencies of this kind of load, then the others, in the order of the table.
pub(super) fn latencies(summary: &Summary, style: Style) -> String {
    let open = summary.run.load.is_open();
    let mut text =
        row("latency (ms)", ["mean", "p50", "p90", "p95", "p99", "n"].map(str::to_owned));
    text = style.paint(Ink::Dim, text.trim_end()) + "\n";
    let mut reasons = String::new();
    let (mut marked, mut bounded) = (false, false);
    for (metric, value) in summary.metrics.iter() {
        let MetricValue::Distribution(distribution) = value else { continue };
        let is_headline =
            if open { metric.headline.on_open_loop() } else { metric.headline.on_closed_loop() };
        let shown = is_headline || [&metric::TTFT, &metric::ICL, &metric::E2E].contains(&metric);
        if !shown {
            continue;
        }
        let (line, uncertain) = latency_row(metric.title, distribution);
        let line = if is_headline { style.paint(Ink::Bold, line.trim_end()) + "\n" } else { line };
        text.push_str(&line);
        marked |= uncertain;
        if let Some(doubt) = latency_doubt(distribution).filter(|_| is_headline) {
            text += &(style.paint(Ink::Dim, &doubt) + "\n");
            bounded = true;
        }
        if let Some(reason) = &distribution.reason {
            let _ = writeln!(reasons, "  {NOTHING} {}: {}", metric.title, terminal(reason));
        }
    }
    if marked {
        reasons
            .push_str("  ~ too few independent samples (effective n) to certify this percentile\n");
    }
    if bounded {
        reasons.push_str(
            "  ± where the true value lies with 95 % confidence, as far as this run can tell\n",
        );
    }
    text + &style_lines(&reasons, style)
}

fn latency_row(title: &str, distribution: &Distribution) -> (String, bool) {
    let mut uncertain = false;
    let mut at = |percentile: Percentile| {
        let value = distribution.percentile(percentile);
        let certified = distribution.is_certified(percentile);
        uncertain |= value.is_some() && !certified;
        let mark = if certified || value.is_none() { "" } else { "~" };
        format!("{mark}{}", number(value))
    };
    let percentiles =
        [Percentile::P50, Percentile::P90, Percentile::P95, Percentile::P99].map(&mut at);
    let [p50, p90, p95, p99] = percentiles;
    let figures = [number(distribution.mean), p50, p90, p95, p99, count(distribution.n)];
    (row(title, figures), uncertain)
}

/// The intervals that fit on a line; `None` where there are none.
fn latency_doubt(distribution: &Distribution) -> Option<String> {
    let intervals = &distribution.intervals;
    let known = [("mean", intervals.mean), ("p50", intervals.p50), ("p99", intervals.p99)];
    let parts: Vec<String> = known
        .into_iter()
        .filter_map(|(name, interval)| Some(format!("{name} {}", range(interval?))))
        .collect();
    let effective = whole(distribution.effective_n);
    (!parts.is_empty()).then(|| format!("  ± {} (effective n {effective})", parts.join(", ")))
}

pub(super) fn range(interval: Interval) -> String {
    format!("{}–{}", number(interval.low), number(interval.high))
}

fn row(name: &str, figures: [String; 6]) -> String {
    let mut text = format!("{name:<NAME_WIDTH$}");
    for figure in figures {
        let _ = write!(text, "{figure:>FIGURE_WIDTH$}");
    }
    text.push('\n');
    text
}

pub(super) fn throughputs(summary: &Summary, style: Style) -> String {
    let mut text = String::new();
    let mut reasons = String::new();
    for (metric, value) in summary.metrics.iter() {
        let MetricValue::Scalar(scalar) = value else { continue };
        // Who promised nothing need not read that nothing was kept.
        let is_of_promises =
            [&metric::GOODPUT, &metric::ATTAINMENT, &metric::FLUIDITY].contains(&metric);
        if is_of_promises && summary.request_slos.is_none() {
            continue;
        }
        let (number, unit) = match metric.unit {
            Unit::Share => {
                let share = percent(scalar.value);
                (share.trim_end_matches(" %").to_owned(), "%")
            }
            _ if *metric == metric::CONCURRENCY_PEAK => (whole(scalar.value), scalar.unit.as_str()),
            _ => (number(scalar.value), scalar.unit.as_str()),
        };
        if scalar.value.is_some() {
            let title = metric.title;
            let is_share = metric.unit == Unit::Share;
            let doubt = scalar.interval.map_or_else(String::new, |interval| {
                let range = if is_share { percent_range(interval) } else { range(interval) };
                format!("  ({range})")
            });
            let _ = writeln!(text, "{title:<NAME_WIDTH$}{number:>FIGURE_WIDTH$} {unit}{doubt}");
        } else if let Some(reason) = &scalar.reason {
            let _ = writeln!(reasons, "  {NOTHING} {}: {}", metric.title, terminal(reason));
        }
    }
    text + &style_lines(&reasons, style)
}

fn percent_range(interval: Interval) -> String {
    let [low, high] = [interval.low, interval.high].map(|share| percent(share));
    format!("{}–{high}", low.trim_end_matches(" %"))
}

pub(super) fn outcomes(summary: &Summary, style: Style) -> String {
    let is_failure = |group: &&FailureGroup| group.cause != Some(Cause::TimeOver);
    let failures: Vec<&FailureGroup> = summary.failures.iter().filter(is_failure).collect();
    let mut text = String::new();
    if 0 < summary.time_over {
        let turns = count(summary.time_over);
        text += &(style.paint(Ink::Bold, "not sent") + "\n");
        let _ = writeln!(text, "  {turns:>6} × turns for which the time was over: no fault");
    }
    if failures.is_empty() {
        return text;
    }
    text += &(style.paint(Ink::Bold, "failures") + "\n");
    for group in failures {
        let status = group.status.map(|status| format!(" HTTP {status}")).unwrap_or_default();
        let cause = group.cause.map(|cause| format!(": {}", cause.text())).unwrap_or_default();
        let _ = writeln!(
            text,
            "  {:>6} × {}{status}{cause} ({} to {} s)",
            count(group.count),
            group.outcome,
            number(group.first_ms / 1e3),
            number(group.last_ms / 1e3),
        );
        if let Some(example) = &group.example {
            let words = format!("{}”", terminal_line(example, WORDS_MAX));
            text += &hanging("           “", 12, &words);
        }
    }
    if 0 < summary.failures_not_listed {
        let _ = writeln!(text, "  {:>6} × others", count(summary.failures_not_listed));
    }
    text
}

pub(super) fn client(summary: &Summary, style: Style) -> String {
    if summary.run.simulated.is_some() {
        return String::new();
    }
    let client = &summary.client;
    let p99 = |metric: &Metric| {
        summary.metrics.distribution(metric).and_then(|d| d.percentile(Percentile::P99))
    };
    let milliseconds = |value: Option<f64>| match value {
        Some(value) => format!("{} ms", number(value)),
        None => NOTHING.to_owned(),
    };
    let stamps = match client.kernel_stamps {
        Some(share) => format!("{} of reads stamped by the kernel", percent(share)),
        None => "nothing was read".to_owned(),
    };
    let clock = client
        .clock_error_us_max
        .map(|error| format!(", clock error at most {} µs", number(error)))
        .unwrap_or_default();
    let line = format!(
        "  {}\n  {stamps}{clock}\n  p99: send lag {}, client lag {}, loop lag at most {}, arrival width {}\n",
        calibrated(summary),
        milliseconds(p99(&metric::SEND_LAG)),
        milliseconds(p99(&metric::CLIENT_LAG)),
        milliseconds(client.loop_lag_ms.p99_at_most),
        milliseconds(p99(&metric::ARRIVAL_WIDTH)),
    );
    style.paint(Ink::Bold, "client") + "\n" + &line
}

/// The client's error at this load, and how much of its capacity the load took.
fn calibrated(summary: &Summary) -> String {
    let run = &summary.run;
    if run.http == HttpVersion::Http2 || run.target.starts_with("https:") {
        return "a calibration speaks for plain HTTP/1.1 only; judged by its own lags".to_owned();
    }
    let Some(capacity) = &summary.client.capacity else {
        return "not calibrated on this machine (inferometer calibrate); judged by its own lags"
            .to_owned();
    };
    let used = percent(capacity.used);
    if !run.streaming {
        // One moment per answer: what a stream's error was measured on is not here.
        return format!("client capacity used: {used}");
    }
    let error = capacity.error_ms.map_or_else(
        || "not known with so many streams".to_owned(),
        |error| {
            let ms = |value| number(value);
            let (ttft, itl) = (error.ttft_p99, error.itl_p99);
            format!("TTFT {} ms, ITL {} ms (p99)", ms(ttft), ms(itl))
        },
    );
    format!("client error at this load: {error}; client capacity used: {used}")
}

pub(super) fn warnings(summary: &Summary, style: Style) -> String {
    let mut text = String::new();
    for warning in &summary.warnings {
        let key = style.paint(Ink::of_severity(warning.severity), warning.severity.key());
        let indent = warning.severity.key().len() + 2;
        text += &hanging(&format!("{key}: "), indent, &terminal(&warning.text));
        text += &hanging("  → ", 4, &terminal(&warning.remedy));
    }
    text
}

pub(super) fn files(files: &Files, style: Style) -> String {
    let run = terminal(&files.run);
    format!(
        "{}  {run}\n{}   inferometer verify {run}\n",
        style.paint(Ink::Bold, "files"),
        style.paint(Ink::Bold, "next"),
    )
}

fn style_lines(lines: &str, style: Style) -> String {
    lines.lines().map(|line| style.paint(Ink::Dim, line) + "\n").collect()
}
