//! What speaks against the numbers, and what was asked of them.

use inferometer_analysis::{Check, CheckState, Warning};

use crate::document::{Block, Cell, Column, Table, Text, plain};
use crate::fmt::{counted, list};
use crate::pages::frame::{ended, notice, notice_of, state_word};
use crate::pages::rows::Row;

/// Reasons to doubt the whole, then those of single rows; each with what to do about it.
pub(in crate::pages) fn reasons(warnings: &[Warning], rows: &[Row<'_>], alone: bool) -> Vec<Block> {
    let mut blocks: Vec<Block> = warnings.iter().map(notice).collect();
    // A run that stands alone has told its warnings already.
    if !alone {
        blocks.extend(by_key(rows).iter().map(grouped));
    }
    if blocks.is_empty() {
        blocks.push(Block::Paragraph(plain(no_reason(rows))));
    }
    blocks
}

/// The same kind of warning at several rows.
struct Group<'a> {
    worst: &'a Warning,
    /// What it says of each row.
    said: Vec<(String, &'a str)>,
}

fn by_key<'a>(rows: &[Row<'a>]) -> Vec<Group<'a>> {
    let mut found: Vec<Group<'_>> = Vec::new();
    for row in rows {
        for notice in row.all_runs().flat_map(|run| &run.warnings) {
            let said = (row.name.clone(), notice.text.as_str());
            match found.iter_mut().find(|group| group.worst.key == notice.key) {
                Some(group) => {
                    if group.worst.severity < notice.severity {
                        group.worst = notice;
                    }
                    if !group.said.contains(&said) {
                        group.said.push(said);
                    }
                }
                None => found.push(Group { worst: notice, said: vec![said] }),
            }
        }
    }
    found.sort_by_key(|group| std::cmp::Reverse(group.worst.severity));
    found
}

/// Once where all rows say the same; else each with its own number, because the first is not the
/// worst.
fn grouped(group: &Group<'_>) -> Block {
    let texts = group.said.iter().map(|(_, text)| *text);
    let is_same = texts.clone().all(|text| text == group.worst.text);
    let places: Vec<String> = group.said.iter().map(|(row, _)| row.clone()).collect();
    if is_same {
        let text = format!("{} ({})", group.worst.text, list(&places));
        return notice(&Warning { text, ..group.worst.clone() });
    }
    let own: Vec<Text> =
        group.said.iter().map(|(row, text)| plain(ended(format!("{row}: {text}")))).collect();
    let head = format!("The same warning {} times, each with its own number:", own.len());
    notice_of(group.worst, head, own)
}

/// That nothing was found, and how far it was looked for.
pub(in crate::pages) fn no_reason(rows: &[Row<'_>]) -> String {
    let mut keys: Vec<(&str, bool)> = Vec::new();
    for check in rows.iter().flat_map(Row::all_runs).flat_map(|run| &run.checks) {
        let was_made = check.state != CheckState::NotChecked;
        match keys.iter_mut().find(|(key, _)| *key == check.key) {
            Some((_, made)) => *made &= was_made,
            None => keys.push((&check.key, was_made)),
        }
    }
    let (all, left) = (keys.len(), keys.iter().filter(|(_, made)| !made).count());
    let several = 1 < rows.iter().flat_map(Row::all_runs).count();
    let somewhere = if several { " in at least one run" } else { "" };
    match left {
        0 => "Nothing was found that speaks against the numbers.".to_owned(),
        1 => format!("No check failed; 1 of {all} was not made{somewhere}."),
        _ => format!("No check failed; {left} of {all} were not made{somewhere}."),
    }
}

/// A check with the rows where it came out worst.
struct Asked<'a> {
    worst: &'a Check,
    found: Vec<(String, &'a str)>,
}

/// Every check with the rows where it came out worst.
pub(in crate::pages) fn checks(rows: &[Row<'_>]) -> Option<Table> {
    let mut asked: Vec<Asked<'_>> = Vec::new();
    for row in rows {
        for check in row.all_runs().flat_map(|run| &run.checks) {
            let found = (row.name.clone(), check.finding.as_str());
            match asked.iter_mut().find(|known| known.worst.key == check.key) {
                Some(known) if gravity(known.worst.state) < gravity(check.state) => {
                    *known = Asked { worst: check, found: vec![found] };
                }
                Some(known) => {
                    let is_as_bad = known.worst.state == check.state;
                    if is_as_bad && !known.found.contains(&found) {
                        known.found.push(found);
                    }
                }
                None => asked.push(Asked { worst: check, found: vec![found] }),
            }
        }
    }
    let alone = rows.len() == 1;
    let mut columns = ["Check", "Came to", "Found"].map(Column::left).to_vec();
    if !alone {
        columns.push(Column::left("So at"));
    }
    (!asked.is_empty()).then(|| Table {
        id: "checks".to_owned(),
        caption: "What was asked of the numbers before they are believed".to_owned(),
        columns,
        rows: asked.iter().map(|one| line(one, rows.len())).collect(),
        notes: Vec::new(),
    })
}

fn line(asked: &Asked<'_>, rows: usize) -> Vec<Cell> {
    let check = asked.worst;
    let mut places: Vec<String> = asked.found.iter().map(|(row, _)| row.clone()).collect();
    places.dedup();
    let mut cells = vec![
        Cell::text(check.title.clone()),
        Cell {
            text: state_word(check.state).to_owned(),
            detail: check.remedy.clone(),
            doubtful: matches!(check.state, CheckState::Degraded | CheckState::Invalid),
            ..Cell::default()
        },
        Cell::text(findings(asked)),
    ];
    if 1 < rows {
        let detail = (2 < places.len()).then(|| list(&places));
        let text = match places.as_slice() {
            all if all.len() == rows => "all rows".to_owned(),
            [first, second, others @ ..] if !others.is_empty() => {
                format!("{first}, {second} and {}", counted(others.len() as u64, "other"))
            }
            few => list(few),
        };
        cells.push(Cell { detail, ..Cell::text(text) });
    }
    cells
}

/// Once where all rows found the same; else those that were found first, each with its row.
fn findings(asked: &Asked<'_>) -> String {
    let is_same = asked.found.iter().all(|(_, found)| *found == asked.worst.finding);
    if is_same {
        return asked.worst.finding.clone();
    }
    let shown = if gravity(asked.worst.state) < gravity(CheckState::Noted) { 1 } else { 3 };
    let mut parts: Vec<String> =
        asked.found.iter().take(shown).map(|(row, found)| format!("{row}: {found}")).collect();
    if shown < asked.found.len() {
        let left = asked.found.len() - shown;
        parts.push(format!("{} like it", counted(left as u64, "other")));
    }
    parts.join("; ")
}

/// What was not looked at is worse than what passed.
const fn gravity(state: CheckState) -> u8 {
    match state {
        CheckState::Passed => 0,
        CheckState::NotChecked => 1,
        CheckState::Noted => 2,
        CheckState::Degraded => 3,
        CheckState::Invalid => 4,
    }
}
