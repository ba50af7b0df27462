//! What the numbers of a file are: from where each latency counts, and what one value of it is.

use inferometer_analysis::sheet::{CountsFrom, Grain, LatencyKind, SheetLatency};

use super::ImportPage;
use crate::escape::terminal;
use crate::lines::{hanging, labelled};
use crate::terminal::{Ink, Style};

type Meaning = (LatencyKind, CountsFrom, Grain);

pub(super) fn meaning(page: &ImportPage<'_>, style: Style) -> String {
    let mut found: Vec<Meaning> = Vec::new();
    let latencies = page.sheets.iter().flat_map(|sheet| &sheet.latencies);
    for SheetLatency { kind, from, grain, .. } in latencies {
        if !found.contains(&(*kind, *from, *grain)) {
            found.push((*kind, *from, *grain));
        }
    }
    if found.is_empty() && page.notes.is_empty() {
        return String::new();
    }
    found.sort_unstable();
    let mut text = style.paint(Ink::Bold, "what the numbers are") + "\n";
    for (kind, from, grain) in found {
        let words = format!("{}; {}", origin(kind, from), value(grain));
        text += &labelled(name(kind), &words);
    }
    for note in &page.notes {
        text += &hanging("  ", 2, &terminal(note));
    }
    text
}

pub(super) const fn name(kind: LatencyKind) -> &'static str {
    match kind {
        LatencyKind::Ttft => "TTFT",
        LatencyKind::Tpot => "TPOT",
        LatencyKind::Itl => "ITL",
        LatencyKind::E2e => "E2E",
    }
}

const fn origin(kind: LatencyKind, from: CountsFrom) -> &'static str {
    match (from, kind) {
        (CountsFrom::Schedule, _) => {
            "counts from the moment that the load planned: waiting in the client is in it"
        }
        (CountsFrom::Send, _) => "counts from sending: waiting in the client is hidden",
        (CountsFrom::Output, LatencyKind::Itl) => "counts from the output before it",
        (CountsFrom::Output, _) => "counts from the first output",
        (CountsFrom::Unknown, _) => {
            "the file does not say from where it counts: set it beside nothing that does"
        }
    }
}

const fn value(grain: Grain) -> &'static str {
    match grain {
        Grain::Request => "one value for each request",
        Grain::Token => "one value for each token",
        Grain::Chunk => {
            "one value for each chunk of a stream, however many tokens it brought: no time per token \
             where chunks carry several"
        }
        Grain::Unknown => "what one value is, the file does not say",
    }
}
