//! Why results are marked, each kind with what to do about it.

use inferometer_analysis::sheet::{Mark, Sheet};

use super::PageWords;
use super::lines::{Level, Line, load_words};
use super::table::NAME_MAX;
use super::words::{mark_advice, mark_words};
use crate::document::{Block, Mood, Span, Text, plain};
use crate::escape::terminal_line;
use crate::number::count;
use crate::pages::frame::sentence;

/// More results of a kind than these are counted.
const LISTED_MAX: usize = 24;
const REMARKS_MAX: usize = 50;

pub(super) fn notices(lines: &[Line<'_>], words: &PageWords) -> Vec<Block> {
    let mut found = marked(lines);
    found.sort_by_key(|(_, mark)| order(mark));
    let mut blocks = Vec::new();
    for same in found.chunk_by(|one, other| one.1.key() == other.1.key()) {
        let Some((_, mark)) = same.first() else { continue };
        let (text, remedy) = mark_advice(mark);
        let mut points: Vec<Text> =
            same.iter().take(LISTED_MAX).map(|(text, _)| text.clone()).collect();
        let more = same.len().saturating_sub(LISTED_MAX);
        points.extend((0 < more).then(|| plain(format!("and {} more", count(more as u64)))));
        let mood = if mark.is_doubt() { Mood::Doubt } else { Mood::Note };
        let remedy = Some(plain(sentence(remedy)));
        blocks.push(Block::Notice { mood, text: plain(text), points, remedy });
    }
    let remarks: Vec<Text> =
        words.remarks.iter().take(REMARKS_MAX).map(|remark| plain(sentence(remark))).collect();
    if !remarks.is_empty() {
        blocks.push(Block::List(remarks));
    }
    blocks
}

/// One for each mark of each result, as the page tells them.
pub(super) fn marked(lines: &[Line<'_>]) -> Vec<(Text, Mark)> {
    let of_line = |line: &Line<'_>| -> Vec<(Text, Mark)> {
        line.levels.iter().flat_map(|level| of_level(line, level)).collect()
    };
    lines.iter().flat_map(of_line).collect()
}

fn of_level(line: &Line<'_>, level: &Level<'_>) -> Vec<(Text, Mark)> {
    let name = terminal_line(&line.name, NAME_MAX);
    let place = format!("{name}, {}", load_words(line.kind, level.load));
    let told = |mark: &Mark| {
        (vec![Span::Strong(place.clone()), Span::Plain(format!(": {}", mark_words(mark)))], *mark)
    };
    let of_sheet = |sheet: &&Sheet| sheet.marks.iter().map(told).collect::<Vec<_>>();
    level.sheets.iter().flat_map(of_sheet).collect()
}

/// The gravest first.
const fn order(mark: &Mark) -> u8 {
    match mark {
        Mark::Invalid => 0,
        Mark::Cut { .. } => 1,
        Mark::Failures { .. } => 2,
        Mark::Saturated { .. } => 3,
        Mark::Simulated => 4,
    }
}
