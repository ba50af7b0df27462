//! Why results are marked, each kind with what to do about it.

use inferometer_analysis::sheet::Mark;

use super::PageWords;
use super::lines::{Level, Line, load_words};
use super::table::NAME_MAX;
use super::words::{mark_advice, mark_words};
use crate::document::{Block, Mood, Span, Text, plain};
use crate::escape::terminal_line;
use crate::fmt::{count, counted};
use crate::pages::frame::sentence;

/// More results of a kind than these are counted.
const LISTED_MAX: usize = 24;
const REMARKS_MAX: usize = 50;

pub(super) fn notices(lines: &[Line<'_>], words: &PageWords) -> Vec<Block> {
    let found = marked(lines);
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

/// Where a mark is, and what it says.
type Told = (String, String);

/// The marks of all results as the page tells them, the gravest first; what would be told in the same
/// words is told once.
pub(super) fn marked(lines: &[Line<'_>]) -> Vec<(Text, Mark)> {
    let levels = lines.iter().flat_map(|line| line.levels.iter().map(move |level| (line, level)));
    let mut found: Vec<(Told, Mark)> =
        levels.flat_map(|(line, level)| of_level(line, level)).collect();
    found.sort_by_key(|(_, mark)| order(mark));
    let same = found.chunk_by(|(one, _), (other, _)| one == other);
    let once = same.filter_map(|same| {
        let ((place, words), mark) = same.first()?;
        let times = same.len() as u64;
        let times =
            if times == 1 { String::new() } else { format!(" ({})", counted(times, "result")) };
        let words = format!(": {words}{times}");
        Some((vec![Span::Strong(place.clone()), Span::Plain(words)], *mark))
    });
    once.collect()
}

fn of_level(line: &Line<'_>, level: &Level<'_>) -> Vec<(Told, Mark)> {
    let name = terminal_line(&line.name, NAME_MAX);
    // A configuration is simulated at every load.
    let place = |mark: &Mark| {
        if *mark == Mark::Simulated {
            name.clone()
        } else {
            format!("{name}, {}", load_words(line.kind, level.load))
        }
    };
    let marks = level.sheets.iter().flat_map(|sheet| &sheet.marks);
    marks.map(|mark| ((place(mark), mark_words(mark)), *mark)).collect()
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
