//! The lengths and the load curve of a plan, as sections with bars of text.

use inferometer_analysis::outline::{Bar, LengthOutline, LoadCurve, Outline};

use crate::document::terminal::bar;
use crate::document::{Block, Cell, Columns, Section, Table};
use crate::fmt::{count, number, setting};

/// The sections below the facts of a plan.
pub fn sections(outline: &Outline) -> Vec<Section> {
    let lengths =
        [("Input tokens", &outline.input_tokens), ("Output tokens", &outline.output_tokens)];
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
    lengths.chain(outline.load_curve.as_ref().map(curve)).collect()
}

fn section(title: &str, lengths: &LengthOutline, all: &str) -> Section {
    let LengthOutline { min, mean, p50, p90, p99, max, histogram, .. } = lengths;
    let [low, p50, p90, p99, high] = [min, p50, p90, p99, max].map(|it| count((*it).into()));
    let facts = if min == max {
        format!("{low} each{all}")
    } else {
        format!("mean {}, p50 {p50}, p90 {p90}, p99 {p99}, max {high}{all}", number(*mean))
    };
    let range = |bar: &Bar| format!("{}–{}", count(bar.low.into()), count(bar.high.into()));
    let bars = histogram.iter().map(|bar| (range(bar), bar.requests)).collect();
    Section::new(title, vec![Block::paragraph(facts)])
        .with((1 < histogram.len()).then(|| bar_table("tokens", bars)))
}

fn curve(curve: &LoadCurve) -> Section {
    let mean = curve.mean_per_s.map(|mean| format!("{} requests/s on average, ", number(mean)));
    let facts = format!("{}in steps of {} s", mean.unwrap_or_default(), setting(curve.step_s));
    let steps = (0_u32..).zip(&curve.requests);
    let bars = steps.map(|(index, number)| (setting(f64::from(index) * curve.step_s), *number));
    Section::new("Load curve", vec![Block::paragraph(facts)]).with([bar_table("s", bars.collect())])
}

fn bar_table(label: &str, bars: Vec<(String, u64)>) -> Table {
    let most = bars.iter().map(|(_, requests)| *requests).max().unwrap_or(1);
    Columns::number(label, |(label, _): &(String, u64)| Cell::text(label.as_str()))
        .left("", move |(_, requests)| Cell::text(blocks(*requests, most)))
        .right("requests", |(_, requests)| Cell::text(count(*requests)))
        .table("", "", bars)
}

/// A bar in proportion; a value above zero has at least an eighth of a character.
fn blocks(value: u64, most: u64) -> String {
    bar(value as f64, most as f64, 48)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::terminal;
    use crate::terminal::Style;

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
        let render = |more| terminal::sections(&sections(&outline(more)), Style::Plain);
        let whole = render(false);
        assert_eq!(whole.matches("5,120,000 in all").count(), 2, "{whole}");
        let endless = render(true);
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
