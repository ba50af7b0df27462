//! A plan's lengths and load curve as bars of text.

use inferometer_analysis::outline::{Bar, LengthOutline, LoadCurve, Outline};

use crate::fmt::{count, number};

const BAR_WIDTH: u64 = 48;

/// The sections below the facts of a plan.
pub fn render(outline: &Outline) -> String {
    // A plan without an end has no totals.
    let all = |total: u64| {
        if outline.more {
            format!(" (of the first {})", count(outline.requests))
        } else {
            format!(", {} in all", count(total))
        }
    };
    let sections = [
        outline.input_tokens.as_ref().map(|lengths| section("INPUT TOKENS", lengths, &all)),
        outline.output_tokens.as_ref().map(|lengths| section("OUTPUT TOKENS", lengths, &all)),
        outline.load_curve.as_ref().map(curve),
    ];
    let sections: Vec<String> = sections.into_iter().flatten().collect();
    sections.join("\n")
}

fn section(title: &str, lengths: &LengthOutline, all: &dyn Fn(u64) -> String) -> String {
    let all = all(lengths.total);
    let facts = if lengths.min == lengths.max {
        format!("{} each{all}", count(lengths.min.into()))
    } else {
        format!(
            "mean {}, p50 {}, p90 {}, p99 {}, max {}{all}",
            number(lengths.mean),
            count(lengths.p50.into()),
            count(lengths.p90.into()),
            count(lengths.p99.into()),
            count(lengths.max.into()),
        )
    };
    let most = lengths.histogram.iter().map(|bar| bar.requests).max().unwrap_or(1);
    let bars: String = match &lengths.histogram[..] {
        [_] => String::new(),
        bars => bars.iter().map(|bar| line(bar, most)).collect(),
    };
    format!("{title}  {facts}\n{bars}")
}

fn line(bar: &Bar, most: u64) -> String {
    let range = format!("{}–{}", count(bar.low.into()), count(bar.high.into()));
    format!("  {range:>17}  {} {}\n", blocks(bar.requests, most), count(bar.requests))
}

fn curve(curve: &LoadCurve) -> String {
    let mean = curve
        .mean_per_s
        .map_or_else(String::new, |mean| format!("  {} requests/s on average", number(mean)));
    let most = curve.requests.iter().copied().max().unwrap_or(1);
    let step = curve.step_s;
    let line = |(place, requests): (u32, &u64)| {
        let from = format!("{} s", f64::from(place) * step);
        format!("  {from:>17}  {} {}\n", blocks(*requests, most), count(*requests))
    };
    let lines: Vec<String> = (0_u32..).zip(&curve.requests).map(line).collect();
    format!("LOAD CURVE{mean}, in steps of {step} s\n{}", lines.concat())
}

/// A bar in proportion; what is there at all has at least a sliver.
fn blocks(value: u64, most: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (value * BAR_WIDTH * 8).div_ceil(most.max(1));
    let full = usize::try_from(eighths / 8).unwrap_or(0);
    let rest = usize::try_from(eighths % 8).unwrap_or(0);
    "█".repeat(full) + EIGHTHS[rest]
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
