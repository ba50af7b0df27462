//! Power and energy against the load.

use super::is_apart;
use super::levels::{axis_name, behind, lines, measured};
use crate::chart::{Chart, Plot};
use crate::fmt::number;
use crate::pages::rows::Series;
use inferometer_analysis::metric;

/// What the GPUs draw at each load, and what a token costs. `None` where they did not tell.
pub(in crate::pages) fn energy(series: &[Series<'_>]) -> Option<Chart> {
    let wanted = [
        ("GPU power", metric::GPU_POWER.quantity(), "W"),
        ("Energy per output token", metric::ENERGY_PER_OUTPUT_TOKEN.quantity(), "J/tok"),
        ("Output tokens per joule", metric::OUTPUT_TOKENS_PER_JOULE.quantity(), "tok/J"),
    ];
    let lines = lines(series, &wanted)?;
    let several = 1 < series.len();
    let sentences: Vec<String> = series.iter().filter_map(|one| sentence(one, several)).collect();
    Some(Chart {
        id: "energy-by-level".to_owned(),
        title: format!("GPU power and energy against {}", axis_name(series).to_lowercase()),
        finding: sentences.join(" "),
        n: behind(series),
        plot: Plot::Lines(lines),
    })
}

/// The first level and the last, and whether their doubt tells them apart.
fn sentence(series: &Series<'_>, named: bool) -> Option<String> {
    let points = measured(series, metric::ENERGY_PER_OUTPUT_TOKEN.quantity());
    let [first, .., last] = points.as_slice() else { return None };
    let head = if named { format!("{}: ", series.name) } else { String::new() };
    let [from, to] = [first.2, last.2].map(number);
    let times = if is_apart(&first.1, &last.1) {
        ""
    } else {
        ", about equal: they differ by no more than their doubt"
    };
    Some(format!(
        "{head}An output token takes {from} J at {} and {to} J at {}{times}.",
        first.0, last.0
    ))
}
