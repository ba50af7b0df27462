//! What is said while a set is measured: which run it is, and what it came to.

use inferometer_analysis::set::SetSummary;
use inferometer_analysis::{Summary, metric};
use inferometer_model::campaign::{CampaignSpec, Level, Point, Question};
use inferometer_report::escape::terminal;
use inferometer_report::fmt::number;
use inferometer_study::{Progress, Study};

/// `[7/21]`; without an end where it is not known yet.
fn place(campaign: &Study) -> String {
    let Progress { done, expected } = campaign.progress();
    match expected {
        Some(expected) => format!("[{}/{expected}]", done + 1),
        None => format!("[{}]", done + 1),
    }
}

fn named(spec: &CampaignSpec, condition: u32) -> Option<String> {
    let place = usize::try_from(condition).ok()?;
    let condition = spec.conditions.get(place).filter(|_| 1 < spec.conditions.len())?;
    Some(terminal(&condition.name))
}

/// The line before a run. A suite says which scenario it is by why it is played.
pub(super) fn opening(spec: &CampaignSpec, campaign: &Study, point: &Point) -> String {
    let is_suite = matches!(spec.question, Question::Suite(_));
    let server = named(spec, point.condition)
        .filter(|_| !is_suite)
        .map_or_else(String::new, |name| format!("{name}, "));
    let why = campaign.why().map(|why| terminal(&why)).unwrap_or_default();
    format!("{} {server}{why}: …", place(campaign))
}

/// The line after it, before the campaign is told of it.
pub(super) fn headline(campaign: &Study, summary: &Summary) -> String {
    format!("{} {}", place(campaign), figures(summary))
}

/// What a run came to, in a few words.
pub(crate) fn figures(summary: &Summary) -> String {
    let output = summary.metrics.scalar(&metric::OUTPUT_THROUGHPUT).and_then(|scalar| scalar.value);
    // On an open loop a wait before sending is the server's doing too.
    let ttft = summary.latency_origin().ttft().p99().value_in(summary).ok();
    format!(
        "{}, {} output tok/s, TTFT p99 {} ms",
        summary.verdict.key(),
        number(output),
        number(ttft.map(|estimate| estimate.value))
    )
}

/// Whether the half-width that was to end the runs was reached, level by level.
pub(super) fn precision(summary: &SetSummary) -> Vec<String> {
    let several = 1 < summary.conditions.len();
    let percent = |share: f64| format!("{} %", number(share * 100.0));
    let mut lines = Vec::new();
    for condition in &summary.conditions {
        for level in &condition.levels {
            let Some(enough) = &level.enough else { continue };
            let server = several.then(|| terminal(&condition.name));
            let load = (level.level != Level::AsAsked).then(|| level.level.to_string());
            let place = server
                .into_iter()
                .chain(load)
                .fold(String::new(), |place, part| format!("{place} of {part}"));
            let width = enough.half_width.map_or_else(
                || "not known of so few runs that can be trusted".to_owned(),
                |share| format!("±{} after {} runs", percent(share), level.points.len()),
            );
            let reached = if enough.reached { "reached" } else { "not reached" };
            let (quantity, wanted) = (&enough.quantity, percent(enough.target));
            lines.push(format!(
                "--stop-at {reached}: {quantity}{place} is {width} (wanted: {wanted})"
            ));
        }
    }
    lines
}
