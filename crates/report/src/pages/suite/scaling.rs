//! How the server bears more users at once.

use inferometer_analysis::metric;
use inferometer_analysis::set::{ConditionSummary, Finding, Peak, SetSummary, SweetSpot};
use inferometer_model::campaign::{Level, Prompts};

use crate::document::{Block, Card, Cell, Column, Figure, Mood, Section, Span, Table, Text, plain};
use crate::fmt::{level_name, list, number, percent};
use crate::narrative::Narrative;
use crate::pages::cells::quantity_cell;
use crate::pages::rows::{Row, Series};
use crate::pages::{charts, frame};

/// `None` where no scenario is asked at several levels of concurrency.
pub(super) fn section(
    set: &SetSummary,
    rows: &[Row<'_>],
    narrative: &Narrative,
) -> Option<Section> {
    let (place, condition) = scaled(set)?;
    let own: Vec<&Row<'_>> = rows
        .iter()
        .filter(|row| row.scenario.is_some_and(|asked| asked.condition == place))
        .collect();
    let prompts = set.suite.as_ref().map(|suite| suite.prompts);
    let mut blocks: Vec<Block> = warm(&own, prompts).into_iter().collect();
    blocks.extend(findings(condition));
    blocks.push(Block::Table(table(&own)));
    blocks.extend(figures(&condition.name, &own));
    if !narrative.scaling.is_empty() {
        blocks.push(Block::List(frame::texts(&narrative.scaling)));
    }
    Some(frame::section("scaling", "Concurrency Scaling", blocks))
}

/// That the numbers below are those of a warm cache, where they are: what is known apart from what
/// only their speed lets one suspect.
fn warm(rows: &[&Row<'_>], prompts: Option<Prompts>) -> Option<Block> {
    let of = |suspected: bool| -> Vec<String> {
        let is_so =
            |row: &&&Row<'_>| row.contaminated.is_some_and(|found| found.suspected == suspected);
        rows.iter().filter(is_so).map(|row| short_name(row)).collect()
    };
    let (known, suspected) = (of(false), of(true));
    let mut statements = Vec::new();
    if !known.is_empty() {
        statements.push(format!(
            "This table, its sweet spot and its peak describe a warm prefix cache: {} of {} levels \
             met their prompts there ({}).",
            known.len(),
            rows.len(),
            list(&known)
        ));
    }
    if !suspected.is_empty() {
        statements.push(format!(
            "{} of {} levels read their prompts so fast that they seem to have met them in the \
             prefix cache; the server does not say ({}).",
            suspected.len(),
            rows.len(),
            list(&suspected)
        ));
    }
    if statements.is_empty() {
        return None;
    }
    Some(Block::Notice {
        mood: if known.is_empty() { Mood::Doubt } else { Mood::Bad },
        text: vec![
            Span::Plain(format!("{} ", statements.join(" "))),
            Span::Link { text: "The evidence".to_owned(), to: "cache-evidence".to_owned() },
        ],
        points: Vec::new(),
        remedy: Some(plain(match prompts {
            Some(Prompts::Fresh) => {
                "Restart the server before the suite, take another seed, or switch its prefix cache \
                 off."
            }
            Some(Prompts::Same) | None => {
                "Ask with fresh prompts, which is the default, or switch the prefix cache off."
            }
        })),
    })
}

fn short_name(row: &Row<'_>) -> String {
    row.level.map_or_else(|| row.name.clone(), |level| level_name(level.level))
}

fn scaled(set: &SetSummary) -> Option<(u32, &ConditionSummary)> {
    let place = set.suite.as_ref()?.scaling?;
    Some((place, set.conditions.get(usize::try_from(place).ok()?)?))
}

fn findings(condition: &ConditionSummary) -> Vec<Block> {
    let Some(found) = &condition.findings else { return Vec::new() };
    let spot = match &found.sweet_spot {
        Finding::Found(spot) => sweet_spot(spot),
        Finding::Unknown(why) => format!("– ({why})"),
    };
    let peak = match &found.peak {
        Finding::Found(peak) => self::peak(peak),
        Finding::Unknown(why) => format!("– ({why})"),
    };
    let line = |label: &str, words: String| -> Block {
        let text: Text = vec![Span::Strong(format!("{label}:")), Span::Plain(format!(" {words}"))];
        Block::Paragraph(text)
    };
    vec![line("Interactive sweet spot", spot), line("Peak throughput (scaling)", peak)]
}

fn sweet_spot(spot: &SweetSpot) -> String {
    let sure = spot.same_share.map_or_else(String::new, |share| {
        format!("; chosen in {} of resampled sets", percent(share))
    });
    let doubt = if spot.certified { "" } else { "; judged by p99s of too few requests to certify" };
    format!(
        "{} (the most for each user among the levels within twice the best TTFT p99 and TPOT p99; \
         per-user {} tok/s{sure}{doubt})",
        level_name(spot.level),
        number(spot.per_user_throughput.value),
    )
}

fn peak(peak: &Peak) -> String {
    let sure = peak.same_share.map_or_else(String::new, |share| {
        format!("; highest in {} of resampled sets", percent(share))
    });
    let unit =
        if peak.quantity == metric::REQUEST_THROUGHPUT.name { "requests/s" } else { "tok/s" };
    format!("{} ({} {unit}{sure})", level_name(peak.level), number(peak.throughput.value))
}

/// The same two as headlines.
pub(super) fn cards(set: &SetSummary, rows: &[Row<'_>]) -> Vec<Card> {
    let Some((place, condition)) = scaled(set) else { return Vec::new() };
    let Some(found) = condition.findings.as_ref() else { return Vec::new() };
    let is_own = |row: &&Row<'_>| row.scenario.is_some_and(|asked| asked.condition == place);
    let own: Vec<&Row<'_>> = rows.iter().filter(is_own).collect();
    let spot = found.sweet_spot.found().map(|spot| Card {
        label: "Interactive sweet spot".to_owned(),
        value: level_name(spot.level),
        unit: String::new(),
        detail: format!("{} tok/s for each user", number(spot.per_user_throughput.value)),
        doubt: reserved(&own, spot.level)
            .or_else(|| (!spot.certified).then(|| "its p99s are of too few requests".to_owned())),
    });
    let peak = found.peak.found().map(|peak| Card {
        label: "Peak of the scaling levels".to_owned(),
        value: number(peak.throughput.value),
        unit: if peak.quantity == metric::REQUEST_THROUGHPUT.name { "requests/s" } else { "tok/s" }
            .to_owned(),
        detail: format!("at {}", level_name(peak.level)),
        doubt: reserved(&own, peak.level),
    });
    spot.into_iter().chain(peak).collect()
}

/// Why a choice among levels is not to be relied on: for the chosen one, or for those it was
/// compared with.
fn reserved(rows: &[&Row<'_>], chosen: Level) -> Option<String> {
    let is_chosen = |row: &&&Row<'_>| row.level.is_some_and(|level| level.level == chosen);
    let own = rows.iter().find(is_chosen).and_then(|row| row.reservation());
    let is_warm = || rows.iter().any(|row| row.contaminated.is_some_and(|it| !it.suspected));
    own.or_else(|| is_warm().then(|| "other levels met a warm prefix cache".to_owned()))
}

fn table(rows: &[&Row<'_>]) -> Table {
    let line = |row: &&Row<'_>| -> Vec<Cell> {
        vec![
            level(row),
            quantity_cell(row, metric::OUTPUT_THROUGHPUT.quantity()),
            quantity_cell(row, metric::PER_USER_THROUGHPUT.quantity()),
            quantity_cell(row, metric::TTFT.p99()),
            quantity_cell(row, metric::TPOT.p99()),
        ]
    };
    Table {
        id: "concurrency-scaling".to_owned(),
        caption: "The same work at rising concurrency".to_owned(),
        columns: vec![
            Column::right("Concurrency"),
            Column::right("Output Throughput (tok/s)"),
            Column::right("Per-user Throughput (tok/s)"),
            Column::right("TTFT p99 (ms)"),
            Column::right("TPOT p99 (ms)"),
        ],
        rows: rows.iter().map(line).collect(),
        notes: vec![plain("Per-user throughput is output throughput over concurrency.")],
    }
}

/// Marked where the level is cut, was not reached, or is to be taken with care for another reason.
fn level(row: &Row<'_>) -> Cell {
    let reservation = row.reservation();
    let doubtful = reservation.is_some();
    Cell { detail: reservation, doubtful, ..super::tables::concurrency(row) }
}

fn figures(name: &str, rows: &[&Row<'_>]) -> Vec<Block> {
    let series = [Series { name: name.to_owned(), rows: rows.to_vec() }];
    let throughput = charts::throughput(&series)
        .map(|chart| Block::Figure(Figure { chart, mermaid: charts::mermaid(&series[0]) }));
    let others = [charts::latency(&series), charts::pareto(&series), charts::energy(&series)];
    let tails = [charts::first_tokens(rows, "scaling"), charts::token_gaps(rows, "scaling")];
    throughput
        .into_iter()
        .chain(others.into_iter().chain(tails).flatten().map(charts::figure))
        .collect()
}
