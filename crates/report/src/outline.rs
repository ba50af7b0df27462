//! A plan's lengths and load curve as bars of text.

use inferometer_analysis::outline::{Bar, LengthOutline, LoadCurve, Outline};

use crate::number::{count, figure};

const BAR_WIDTH: u64 = 48;

/// The sections below the facts of a plan.
pub fn render(outline: &Outline) -> String {
    let sections = [
        outline.input_tokens.as_ref().map(|lengths| section("INPUT TOKENS", lengths)),
        outline.output_tokens.as_ref().map(|lengths| section("OUTPUT TOKENS", lengths)),
        outline.load_curve.as_ref().map(curve),
    ];
    let sections: Vec<String> = sections.into_iter().flatten().collect();
    sections.join("\n")
}

fn section(title: &str, lengths: &LengthOutline) -> String {
    let facts = if lengths.min == lengths.max {
        format!("{} each, {} in all", count(lengths.min.into()), count(lengths.total))
    } else {
        format!(
            "mean {}, p50 {}, p90 {}, p99 {}, max {}, {} in all",
            figure(Some(lengths.mean)),
            count(lengths.p50.into()),
            count(lengths.p90.into()),
            count(lengths.p99.into()),
            count(lengths.max.into()),
            count(lengths.total),
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
        .map_or_else(String::new, |mean| format!("  {} requests/s on average", figure(Some(mean))));
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

    #[test]
    fn bars_are_in_proportion() {
        assert_eq!(blocks(0, 10), "");
        assert_eq!(blocks(10, 10).chars().count(), 48);
        assert_eq!(blocks(5, 10).chars().count(), 24);
        assert_eq!(blocks(1, 1_000_000), "▏");
    }
}
