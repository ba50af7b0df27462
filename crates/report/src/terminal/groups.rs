//! The tables of turns and of parts.

use inferometer_analysis::{Figures, GroupFigures, Percentile, Summary};

use super::style::Style;
use crate::escape::terminal_line;
use crate::fmt::{count, number, percent, whole};
use crate::lines::PAGE_WIDTH;
use crate::table::Table;

/// Characters of a part's name.
const NAME_MAX: usize = 16;
const INPUT: &str = "input";
const CACHED: &str = "cached";
const OK: &str = "ok";

pub(super) fn turns(summary: &Summary, style: Style) -> String {
    let rows = summary.turns.iter().map(|turn| {
        let and_later = if turn.and_later { "+" } else { "" };
        row(format!("{}{and_later}", turn.turn), &turn.figures)
    });
    table("turns (ms)", "turn", rows.collect(), style)
}

pub(super) fn parts(summary: &Summary, style: Style) -> String {
    let rows = summary.parts.iter().map(|part| {
        let name = terminal_line(&part.part, NAME_MAX);
        row(format!("{name:<NAME_MAX$}"), &part.figures)
    });
    table("parts (ms)", "part", rows.collect(), style)
}

fn table(title: &str, name: &'static str, rows: Vec<Vec<String>>, style: Style) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let marked = rows.iter().flatten().any(|cell| cell.starts_with('~'));
    let remark = "~ too few samples to certify this percentile";
    let mut table = Table {
        title: title.to_owned(),
        heads: vec![
            name, OK, "TTFT p50", "p99", "TPOT p50", "p99", "E2E p50", "p99", INPUT, CACHED,
        ],
        rows,
        remarks: marked.then(|| remark.to_owned()).into_iter().collect(),
    };
    // Latencies are what the table is for; the summary has the rest.
    for column in [INPUT, CACHED, OK] {
        if PAGE_WIDTH < widest(&table) {
            table.remove_column(column);
        }
    }
    table.to_terminal(style)
}

fn widest(table: &Table) -> usize {
    let page = table.to_terminal(Style::Plain);
    page.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

fn row(name: String, figures: &GroupFigures) -> Vec<String> {
    let ok = count(figures.ok);
    let ok = if figures.ok == figures.requests {
        ok
    } else {
        format!("{ok}/{}", count(figures.requests))
    };
    let latencies = figures.latencies.iter().flat_map(|(_, figures)| latency(figures));
    let tokens = [whole(figures.input_tokens_mean), percent(figures.cached_share)];
    [name, ok].into_iter().chain(latencies).chain(tokens).collect()
}

fn latency(figures: &Figures) -> [String; 2] {
    [(Percentile::P50, figures.p50), (Percentile::P99, figures.p99)].map(|(percentile, value)| {
        let certain = figures.is_certified(percentile) || value.is_none();
        let mark = if certain { "" } else { "~" };
        format!("{mark}{}", number(value))
    })
}

#[cfg(test)]
mod tests {
    use inferometer_analysis::metric;

    use super::*;

    fn figures(ms: f64, requests: u64) -> GroupFigures {
        let latency = Figures { mean: Some(ms), p50: Some(ms), p99: Some(ms), n: 100 };
        GroupFigures {
            requests,
            ok: 100,
            latencies: [
                (&metric::TTFT, latency),
                (&metric::TPOT, latency),
                (&metric::E2E, Figures { mean: None, p50: None, p99: None, n: 0 }),
            ]
            .into_iter()
            .collect(),
            input_tokens_mean: Some(1_234.4),
            cached_share: None,
        }
    }

    #[test]
    fn a_row_marks_what_is_not_certified_and_tells_failures() {
        let expected = ["1", "100", "12.50", "~12.50", "12.50", "~12.50", "–", "–", "1,234", "–"];
        assert_eq!(row("1".to_owned(), &figures(12.5, 100)), expected);
        assert_eq!(row("1".to_owned(), &figures(12.5, 120))[1], "100/120");
    }

    #[test]
    fn a_table_too_wide_for_the_page_gives_up_columns() {
        let of = |ms, requests| {
            let figures = figures(ms, requests);
            let all = [&metric::TTFT, &metric::TPOT, &metric::E2E];
            let latency = *figures.latencies.get(&metric::TTFT).unwrap();
            let latencies = all.into_iter().map(|metric| (metric, latency)).collect();
            let figures = GroupFigures { latencies, ..figures };
            let cells = row("n".repeat(NAME_MAX), &figures);
            table("parts", "part", vec![cells], Style::Plain)
        };
        assert!(of(12.5, 120).contains(INPUT));
        // Half an hour, the longest that a request may take.
        let wide = of(1_800_000.0, 100_000_000);
        assert!(!wide.contains(INPUT) && wide.contains("~1,800,000"));
        assert!(wide.lines().all(|line| line.chars().count() <= PAGE_WIDTH), "{wide}");
        assert_eq!(table("parts", "part", vec![], Style::Plain), "");
    }
}
