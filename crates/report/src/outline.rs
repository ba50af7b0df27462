//! The lengths and the load curve of a plan as bars of text.

use inferometer_analysis::outline::{Bar, LengthOutline, LoadCurve, Outline};

use crate::document::terminal::bar;
use crate::fmt::{count, number};

/// The sections below the facts of a plan.
pub fn render(outline: &Outline) -> String {
    let lengths =
        [("INPUT TOKENS", &outline.input_tokens), ("OUTPUT TOKENS", &outline.output_tokens)];
    let lengths = lengths.into_iter().filter_map(|(title, lengths)| {
        let lengths = lengths.as_ref()?;
        // A plan without an end has no totals.
        let all = if outline.more {
            format!(" (of the first {})", count(outline.requests))
        } else {
            format!(", {} in all", count(lengths.total))
        };
        Some(section(title, lengths, &all))
    });
    lengths.chain(outline.load_curve.as_ref().map(curve)).collect::<Vec<_>>().join("\n")
}

fn section(title: &str, lengths: &LengthOutline, all: &str) -> String {
    let LengthOutline { min, mean, p50, p90, p99, max, histogram, .. } = lengths;
    let [low, p50, p90, p99, high] = [min, p50, p90, p99, max].map(|it| count((*it).into()));
    let facts = if min == max {
        format!("{low} each{all}")
    } else {
        format!("mean {}, p50 {p50}, p90 {p90}, p99 {p99}, max {high}{all}", number(*mean))
    };
    let range = |bar: &Bar| format!("{}–{}", count(bar.low.into()), count(bar.high.into()));
    let bars = histogram.iter().map(|bar| (range(bar), bar.requests));
    let bars = if histogram.len() == 1 { String::new() } else { bar_lines(bars.collect()) };
    format!("{title}  {facts}\n{bars}")
}

fn curve(curve: &LoadCurve) -> String {
    let mean = curve.mean_per_s.map(|mean| format!("  {} requests/s on average", number(mean)));
    let step = curve.step_s;
    let steps = (0_u32..).zip(&curve.requests);
    let bars = steps.map(|(index, number)| (format!("{} s", f64::from(index) * step), *number));
    let (mean, bars) = (mean.unwrap_or_default(), bar_lines(bars.collect()));
    format!("LOAD CURVE{mean}, in steps of {step} s\n{bars}")
}

fn bar_lines(bars: Vec<(String, u64)>) -> String {
    let most = bars.iter().map(|(_, requests)| *requests).max().unwrap_or(1);
    let line = |(label, requests): (String, u64)| {
        format!("  {label:>17}  {} {}\n", blocks(requests, most), count(requests))
    };
    bars.into_iter().map(line).collect()
}

/// A bar in proportion; a value above zero has at least an eighth of a character.
fn blocks(value: u64, most: u64) -> String {
    bar(value as f64, most as f64, 48)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(more: bool) -> Outline {
        let lengths = |min, max| LengthOutline {
            total: 5_120_000,
            min,
            mean: 512.0,
            p50: 512,
            p90: 512,
            p99: 512,
            max,
            histogram: vec![Bar { low: min, high: max, requests: 10_000 }],
        };
        Outline {
            requests: 10_000,
            more,
            conversations: 10_000,
            input_tokens: Some(lengths(512, 512)),
            output_tokens: Some(lengths(1, 900)),
            load_curve: None,
            parts: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn a_plan_without_an_end_has_no_totals() {
        let whole = render(&outline(false));
        assert_eq!(whole.matches("5,120,000 in all").count(), 2, "{whole}");
        let endless = render(&outline(true));
        assert!(!endless.contains("in all"), "{endless}");
        assert_eq!(endless.matches("(of the first 10,000)").count(), 2, "{endless}");
    }

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(blocks(0, 10), "");
        assert_eq!(blocks(10, 10).chars().count(), 48);
        assert_eq!(blocks(5, 10).chars().count(), 24);
        assert_eq!(blocks(1, 1_000_000), "▏");
    }
}
