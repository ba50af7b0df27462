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
    // The first of a kind stays the first: it is the one that tables show.
    found.sort_by_key(|(kind, ..)| *kind);
    let mut text = style.paint(Ink::Bold, "what the numbers are") + "\n";
    let mut shown = None;
    for (kind, from, grain) in found {
        let elsewhere = if shown == Some(kind) { "; not in the table" } else { "" };
        shown = Some(kind);
        text +=
            &labelled(name(kind), &format!("{}, {}{elsewhere}", origin(kind, from), value(grain)));
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
        (CountsFrom::Schedule, _) => "from its place in the schedule",
        (CountsFrom::Send, _) => "from the send",
        (CountsFrom::Output, LatencyKind::Itl) => "from the output before it",
        (CountsFrom::Output, _) => "from the first output",
        (CountsFrom::Unknown, _) => "from where is not said",
    }
}

const fn value(grain: Grain) -> &'static str {
    match grain {
        Grain::Request => "one value for each request",
        Grain::Token => "one value for each token",
        Grain::Chunk => "one value for each chunk of a stream",
        Grain::Unknown => "of what is not said",
    }
}
