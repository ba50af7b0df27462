//! What the figures of each tool are, and what its files say beyond them.

use inferometer_analysis::sheet::{CountsFrom, LatencyKind, Sheet};

use super::figures::Meaning;
use super::lines::Line;
use super::words::{grain_words, kind_words};
use super::{PageWords, in_order};
use crate::document::{Block, Span, Text, plain};
use crate::escape::terminal_line;
use crate::fmt::count;
use crate::pages::frame::sentence;

/// More keys than these are counted.
const UNMAPPED_MAX: usize = 40;
const PLACE_MAX: usize = 200;

pub(super) fn blocks(lines: &[Line<'_>], words: &PageWords) -> Vec<Block> {
    let sheets: Vec<&Sheet> = lines.iter().flat_map(Line::sheets).collect();
    let mut tools: Vec<_> = sheets.iter().map(|sheet| sheet.source.tool).collect();
    tools.sort_unstable();
    tools.dedup();
    let mut blocks = Vec::new();
    for tool in tools {
        let own = || sheets.iter().copied().filter(|sheet| sheet.source.tool == tool);
        let name = tool.told();
        let kinds = [LatencyKind::Ttft, LatencyKind::Tpot, LatencyKind::Itl, LatencyKind::E2e];
        let meanings = kinds.into_iter().flat_map(|kind| Meaning::all(kind, own()));
        let mut points: Vec<Text> = meanings.map(told).collect();
        let told = words.definitions.iter().filter(|(of, _)| *of == tool);
        points.extend(told.flat_map(|(_, said)| said).map(|said| plain(sentence(said))));
        blocks.push(Block::Paragraph(vec![Span::Strong(name.to_owned())]));
        blocks.push(Block::List(points));
    }
    blocks.push(Block::Paragraph(plain(
        "Latencies are set beside each other only where they mean the same: the same clock, and the \
         same kind of value.",
    )));
    blocks.extend(unmapped(&sheets));
    blocks
}

fn told(meaning: Meaning) -> Text {
    let from = match meaning.from {
        CountsFrom::Schedule => {
            ", from the moment at which the load was to send the request: waiting in the client counts"
        }
        CountsFrom::Send => ", from the moment of sending: waiting in the client is hidden",
        CountsFrom::Output => ", from an earlier output",
        CountsFrom::Unknown => ", and the source does not say from when",
    };
    let words = format!(": {}{from}; {}.", kind_words(meaning.kind), grain_words(meaning.grain));
    vec![Span::Strong(meaning.name()), Span::Plain(words)]
}

/// What files say and no figure here shows, folded away.
fn unmapped(sheets: &[&Sheet]) -> Option<Block> {
    let places = in_order(sheets.iter().flat_map(|sheet| &sheet.unmapped).map(String::as_str));
    if places.is_empty() {
        return None;
    }
    let told = |place: &&str| vec![Span::Code(terminal_line(place, PLACE_MAX))];
    let mut items: Vec<Text> = places.iter().take(UNMAPPED_MAX).map(told).collect();
    let more = places.len().saturating_sub(UNMAPPED_MAX);
    items.extend((0 < more).then(|| plain(format!("and {} more", count(more as u64)))));
    let summary = "What the files say that is not on this page".to_owned();
    Some(Block::Details { summary, blocks: vec![Block::List(items)] })
}
