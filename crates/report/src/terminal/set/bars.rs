//! Throughput and latency against the load, drawn in characters.

use inferometer_analysis::set::{ConditionSummary, LevelSummary};
use inferometer_analysis::{LatencyOrigin, Quantity, metric};

use super::levels::{is_open, titled};
use crate::fmt::{level, number};
use crate::terminal::{Ink, Style};

/// Columns of the longest bar.
const BAR_WIDTH: usize = 30;
const EIGHTHS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Empty with fewer than two levels that have a throughput.
pub(super) fn bars(condition: &ConditionSummary, name: Option<&str>, style: Style) -> String {
    let open = is_open(condition);
    let ttft = LatencyOrigin::for_load(open).ttft().p99();
    let throughput = Axis::of(&condition.levels, metric::OUTPUT_THROUGHPUT.quantity());
    let latency = Axis::of(&condition.levels, ttft);
    if throughput.drawn() < 2 {
        return String::new();
    }
    let against = if open { "asked rate" } else { "concurrency" };
    let title = titled(name, &format!("throughput and TTFT p99 against {against}"));
    let cells: Vec<String> = condition.levels.iter().map(|one| level(one.level)).collect();
    let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    let heads = format!(
        "  {:>width$}  {:<BAR_WIDTH$}  {}",
        "",
        format!("0 to {} output tok/s", number(throughput.most)),
        if latency.drawn() == 0 {
            "no TTFT".to_owned()
        } else {
            format!("0 to {} ms", number(latency.most))
        },
    );
    let mut text = style.paint(Ink::Bold, &title) + "\n" + &style.paint(Ink::Dim, &heads) + "\n";
    for (place, (level, cell)) in condition.levels.iter().zip(&cells).enumerate() {
        let found = found_here(condition, level);
        let line = format!(
            "  {cell:>width$}  {:<BAR_WIDTH$}  {:<BAR_WIDTH$}  {found}",
            throughput.bar(place),
            latency.bar(place),
        );
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The values of one quantity, and the largest of them.
struct Axis {
    values: Vec<Option<f64>>,
    most: f64,
}

impl Axis {
    fn of(levels: &[LevelSummary], quantity: Quantity) -> Self {
        let value = |level: &LevelSummary| level.quantity(quantity).and_then(|found| found.mean);
        let values: Vec<Option<f64>> = levels.iter().map(value).collect();
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        Self { values, most }
    }

    fn drawn(&self) -> usize {
        self.values.iter().flatten().count()
    }

    /// Nothing is a dash, and zero is empty.
    fn bar(&self, place: usize) -> String {
        let Some(value) = self.values[place] else { return "–".to_owned() };
        if self.most <= 0.0 {
            return String::new();
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a bar is a few hundred eighths at most"
        )]
        let eighths = (value / self.most * (BAR_WIDTH * 8) as f64).round() as usize;
        let mut bar = "█".repeat(eighths / 8);
        bar.extend(EIGHTHS.get((eighths % 8).wrapping_sub(1)));
        bar
    }
}

/// What was found at this level.
fn found_here(condition: &ConditionSummary, level: &LevelSummary) -> String {
    let Some(findings) = &condition.findings else { return String::new() };
    let level = level.level;
    [
        ("knee", findings.knee.found().is_some_and(|knee| knee.level == level)),
        ("sweet spot", findings.sweet_spot.found().is_some_and(|spot| spot.level == level)),
        ("peak", findings.peak.found().is_some_and(|peak| peak.level == level)),
    ]
    .into_iter()
    .filter_map(|(word, is_here)| is_here.then_some(word))
    .collect::<Vec<_>>()
    .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_drawn_to_an_eighth_of_a_character() {
        let axis =
            Axis { values: vec![Some(240.0), Some(12.0), Some(1.0), None, Some(0.0)], most: 240.0 };
        assert_eq!(axis.bar(0), "█".repeat(30));
        assert_eq!(axis.bar(1), "█▌");
        assert_eq!(axis.bar(2), "▏");
        assert_eq!(axis.bar(3), "–");
        assert_eq!(axis.bar(4), "");
    }
}
