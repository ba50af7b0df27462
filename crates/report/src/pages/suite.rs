//! The page of a suite: the report that people publish. Its sections, tables and columns, and their
//! order, are those that readers of such reports know; what follows the recommendations is ours.

use std::fmt::Write;

use inferometer_analysis::set::{
    ConditionSummary, Contaminated, Finding, LevelSummary, Peak, SetSummary, SuiteSummary,
    SweetSpot,
};
use inferometer_analysis::{Metric, Quantity, ServerSide, Summary, Verdict, metric};
use inferometer_model::study::{Dimension, Level, Prompts};

use super::cells::{
    brief_cell, known, missing, quantity_cell, quantity_columns, reserved, uncertified,
};
use super::findings::findings;
use super::frame::{self, section};
use super::rows::{self, Row, Series};
use super::{SuiteInput, card, charts, set, system, validity};
use crate::chart::Chart;
use crate::document::{
    Block, Card, Cell, Columns, Document, Mood, Section, Span, Table, Text, plain,
};
use crate::escape::terminal_line;
use crate::fmt::{NOTHING, count, counted, level_name, list, number, percent, uncertainty, whole};
use crate::narrative::Narrative;

/// Digits of a hash that people compare by eye.
const HASH_SHOWN: usize = 12;

pub fn suite(input: &SuiteInput<'_>) -> Document {
    let SuiteInput { set, points, narrative } = *input;
    let rows = rows::of_suite(set, points);
    let asked = set.suite.as_ref().map(|suite| {
        let hash: String = suite.hash.chars().take(HASH_SHOWN).collect();
        let changed = match suite.changes.len() {
            0 => String::new(),
            _ => format!(", changed by {}", suite.changes.join(" ")),
        };
        ("Suite", format!("{} (hash {hash}{changed})", suite.name))
    });
    let about = set::about(set, rows.iter().find_map(Row::drawn), set::models(set), asked);
    let (why, points) = verdict_words(set, &rows);
    let badge = frame::badge(set.verdict, why, points);
    Document {
        header: frame::header(&about, narrative),
        title: "LLM Inference Benchmark Report".to_owned(),
        lead: frame::lead(&about, badge, headline(set, &rows)),
        sections: sections(set, &rows, narrative),
        footer: frame::footer(&about, &set.set, narrative),
    }
}

fn sections(set: &SetSummary, rows: &[Row<'_>], narrative: &Narrative) -> Vec<Section> {
    let mut sections = vec![
        section(
            "executive-summary",
            "Executive Summary",
            frame::paragraph(&narrative.summary)
                .into_iter()
                .chain(frame::authorship(narrative))
                .collect(),
        ),
        system::system(rows.iter().find_map(Row::drawn)),
        section("performance", "Performance Summary", performance(rows)),
        section("prefill-and-decode", "Prefill (PP) and Decode (TG)", vec![prefill_decode(rows)]),
    ];
    sections.extend(scaling_section(set, rows, narrative));
    sections.push(Section {
        sections: rows.iter().map(|row| scenario(row, narrative)).collect(),
        // No scenario has such an id, whatever it is called: theirs begin with `scenario-`.
        ..section("results", "Scenario Results", Vec::new())
    });
    sections.push(section(
        "recommendations",
        "Recommendations",
        vec![Block::List(frame::texts(&narrative.recommendations))],
    ));
    let prompts = set.suite.as_ref().map(|suite| suite.prompts);
    sections.push(validity::section_of(rows, &set.warnings, narrative, prompts));
    sections.push(set::provenance(set));
    sections
}

/// The suite and the server for a terminal.
pub(super) fn brief_subject(set: &SetSummary, suite: &SuiteSummary) -> Vec<(String, Text)> {
    let prompts = match suite.prompts {
        Prompts::Fresh => "prompts of their own",
        Prompts::Same => "the same prompts for all",
    };
    let mut scenarios = counted(set.conditions.len() as u64, "scenario");
    if suite.rows.len() != set.conditions.len() {
        // Tables have a line for each.
        let _ = write!(scenarios, ", {} levels", count(suite.rows.len() as u64));
    }
    let name = terminal_line(&suite.name, 40);
    let hash = terminal_line(&suite.hash, HASH_SHOWN);
    let subject = set.conditions.iter().find_map(|condition| condition.subject.as_ref());
    let target = subject.map_or_else(|| "no run yet".to_owned(), set::server);
    let changes = (!suite.changes.is_empty()).then(|| suite.changes.join(", "));
    [
        ("question", Some(format!("suite `{name}` ({hash}): {scenarios}, {prompts}"))),
        ("changes", changes),
        ("target", Some(target)),
    ]
    .into_iter()
    .filter_map(|(label, text)| Some((label.to_owned(), plain(text?))))
    .collect()
}

/// The tables over all scenarios and the scaling levels, for a terminal.
pub(super) fn brief_sections(set: &SetSummary, suite: &SuiteSummary) -> Vec<Section> {
    let rows = rows::of_suite(set, &[]);
    let mut sections = vec![
        section("performance", "Performance summary (times in ms)", vec![brief_performance(&rows)]),
        section(
            "prefill-and-decode",
            "Prefill (PP) and decode (TG), tokens/s",
            vec![brief_speeds(suite, &rows)],
        ),
    ];
    let Some((condition, own)) = scaled(set, &rows) else { return sections };
    let name = terminal_line(&condition.name, NAME_MOST);
    let series = Series { name: name.clone(), rows: own.clone() };
    sections.extend(set::brief_levels(condition, &series, false, Some(&name)));
    if let Some(found) = &condition.findings {
        let mut facts = findings(found, Some(Dimension::Concurrency));
        let warm: Vec<_> = own.iter().filter_map(|row| row.contaminated).collect();
        if !warm.is_empty() {
            let suspected = "these levels may have been answered from a warm prefix cache, and their \
                             findings with them";
            let known =
                "these levels were answered from a warm prefix cache: their findings describe it";
            let words = if warm.iter().all(|found| found.suspected) { suspected } else { known };
            facts.push(("cache", words.to_owned()));
        }
        let title = set::titled(Some(&name), "Findings");
        sections.push(section("findings", &title, vec![set::finding_facts(facts, false)]));
    }
    sections
}

/// `Concurrency Scaling (c=32)` is as long.
const NAME_MOST: usize = 26;

/// A name that is too long loses its own end, and not its level.
fn brief_name(row: &Row<'_>) -> Cell {
    let scenario = row.scenario.map_or("", |asked| asked.scenario.as_str());
    let level = row.name.strip_prefix(scenario).unwrap_or_default();
    let left = NAME_MOST.saturating_sub(level.chars().count());
    Cell::text(match row.name.strip_suffix(level) {
        Some(name) if 1 < left => terminal_line(name, left) + level,
        _ => terminal_line(&row.name, NAME_MOST),
    })
}

fn brief_performance(rows: &[Row<'_>]) -> Block {
    let columns = Columns::new("scenario", |row: &&Row<'_>| brief_name(row))
        .right("c", |row| concurrency(row))
        .right("ok", |row| Cell::text(count(row.tally().ok)));
    let quantities = [
        ("tok/s", metric::OUTPUT_THROUGHPUT.quantity()),
        ("TTFT mean", metric::TTFT.mean()),
        ("TPOT mean", metric::TPOT.mean()),
        ("TPOT p99", metric::TPOT.p99()),
    ];
    let table = quantity_columns(columns, brief_cell, quantities)
        .right("", |row| Cell::text(mark(row)))
        .table("performance-summary", "", rows);
    let levels: Vec<LevelSummary> = rows.iter().filter_map(|row| row.level).cloned().collect();
    let seen: Vec<&str> = rows.iter().map(mark).collect();
    let legend = [
        ("!", "! holds with a reservation"),
        ("‡", "‡ never so many in flight: figures per user count users who were not there"),
        ("✗", "✗ invalid: its numbers are not about the server, and are left out"),
    ];
    let legend = legend.into_iter().filter(|(mark, _)| seen.contains(mark));
    let notes = [plain(set::interval_note(&levels))].into_iter();
    let notes = notes.chain(legend.map(|(_, words)| plain(words))).collect();
    Block::Table(Table { notes, ..table })
}

fn mark(row: &Row<'_>) -> &'static str {
    match row.verdict() {
        Verdict::Valid | Verdict::Degraded if !row.is_reached() => "‡",
        Verdict::Valid => "✓",
        Verdict::Degraded => "!",
        Verdict::Invalid => "✗",
    }
}

/// How fast prompts are read and answers written, and how much of the prompts was cached.
fn brief_speeds(suite: &SuiteSummary, rows: &[Row<'_>]) -> Block {
    let length = |text: Option<&String>| {
        Cell::text(text.map_or_else(|| NOTHING.to_owned(), |text| terminal_line(text, 14)))
    };
    let columns = Columns::new("scenario", |row: &&Row<'_>| brief_name(row))
        .right("in", |row| length(row.scenario.and_then(|asked| asked.input_tokens.as_ref())))
        .right("out", |row| length(row.scenario.and_then(|asked| asked.output_tokens.as_ref())));
    let speeds = [("PP", metric::PP.quantity()), ("TG", metric::TG.quantity())];
    let table = quantity_columns(columns, brief_cell, speeds)
        .right("from cache", |row| {
            let is_own = |found: &Contaminated| Some(found.row) == row.suite_place;
            match row.scenario.and_then(|asked| asked.cached_share) {
                None if suite.contaminated.iter().any(is_own) => Cell::text("suspected"),
                share => Cell::text(percent(share)),
            }
        })
        .table("prefill-decode", "", rows);
    Block::Table(table)
}

fn verdict_words(set: &SetSummary, rows: &[Row<'_>]) -> (Text, Vec<Text>) {
    let asked = set.suite.iter().flat_map(|suite| &suite.rows);
    let missing: Vec<String> =
        asked.filter(|row| row.points.is_empty()).map(|row| row.name.clone()).collect();
    let missing = if missing.is_empty() {
        String::new()
    } else {
        format!(" Not measured: {}.", list(&missing))
    };
    let (reason, points) = frame::reason(set.verdict, &set.warnings, rows);
    let runs = frame::sentence(&set::runs_by_verdict(set));
    match warm_words(rows) {
        Some(warm) if set.verdict != Verdict::Valid => {
            (vec![Span::Plain(format!("{runs} {warm}{missing} ")), evidence()], points)
        }
        _ => (plain(format!("{runs} {reason}{missing}")), points),
    }
}

fn evidence() -> Span {
    Span::Link { text: "The evidence".to_owned(), to: "cache-evidence".to_owned() }
}

/// How many rows are known to have met their prompts in the prefix cache.
fn warm_words(rows: &[Row<'_>]) -> Option<String> {
    let found = rows.iter().filter_map(|row| row.contaminated).filter(|found| !found.suspected);
    let shares: Vec<Option<f64>> = found.map(|found| found.cached_share).collect();
    let known = || shares.iter().flatten().copied();
    let range = known().min_by(f64::total_cmp).zip(known().max_by(f64::total_cmp));
    let range = match range {
        Some((low, high)) if low < high => {
            format!(" ({} to {} of their input)", percent(low), percent(high))
        }
        Some((share, _)) => format!(" ({} of their input)", percent(share)),
        None => String::new(),
    };
    (!shares.is_empty()).then(|| {
        format!(
            "{} of {} rows met prompts in the prefix cache that were to be new{range}, and their \
             numbers are those of a warm cache.",
            shares.len(),
            rows.len()
        )
    })
}

fn headline(set: &SetSummary, rows: &[Row<'_>]) -> Vec<Card> {
    let mut cards: Vec<Card> = Vec::new();
    let one_user = |row: &&Row<'_>| row.scenario.and_then(|asked| asked.concurrency) == Some(1);
    let alone = rows.iter().find(one_user).map(|row| ("One user: ", row));
    if let Some((who, row)) = alone.or_else(|| rows.first().map(|row| ("First scenario: ", row))) {
        for (name, quantity) in
            [("TTFT mean", metric::TTFT.mean()), ("TPOT mean", metric::TPOT.mean())]
        {
            cards.extend(card::latency(&format!("{who}{name}"), row, quantity, &row.name));
        }
    }
    let scaling = scaling_cards(set, rows);
    if scaling.is_empty() {
        cards.extend(card::highest_output(rows));
    }
    cards.extend(scaling);
    cards.push(card::requests(rows));
    cards
}

fn performance(rows: &[Row<'_>]) -> Vec<Block> {
    let length = |text: Option<&String>| match text {
        Some(text) => match text.parse::<u64>() {
            Ok(tokens) => Cell::number(count(tokens), tokens as f64),
            Err(_) => Cell::text(text.clone()),
        },
        None => missing("the data says it, request by request"),
    };
    let columns = Columns::new("Scenario", |row: &&Row<'_>| name(row))
        .left("Category", |row| {
            let category = row.scenario.map(|asked| asked.category.as_str());
            known(category, "it is no scenario of a suite")
        })
        .right("Input (tok)", |row| length(row.scenario.and_then(|it| it.input_tokens.as_ref())))
        .right("Output (tok)", |row| length(row.scenario.and_then(|it| it.output_tokens.as_ref())))
        .right("Concurrency", |row| concurrency(row));
    let quantities = [
        ("Output Throughput (tok/s)", metric::OUTPUT_THROUGHPUT.quantity()),
        ("TTFT mean (ms)", metric::TTFT.mean()),
        ("TPOT mean (ms)", metric::TPOT.mean()),
        ("TPOT p99 (ms)", metric::TPOT.p99()),
    ];
    let columns = quantity_columns(columns, quantity_cell, quantities);
    let table = columns.table("performance-summary", "All scenarios", rows);
    let chart = charts::by_scenario(rows, "scenario").map(charts::figure);
    [Block::Table(table)].into_iter().chain(chart).collect()
}

/// Marked where its numbers are to be taken with care.
fn name(row: &Row<'_>) -> Cell {
    reserved(row, Cell::text(row.name.clone()))
}

fn concurrency(row: &Row<'_>) -> Cell {
    match row.scenario.and_then(|asked| asked.concurrency) {
        Some(users) => Cell {
            detail: row.rate().map(|rate| format!("at most; requests come at {rate}")),
            ..Cell::number(count(users.into()), f64::from(users))
        },
        // Where requests come at a rate, it says what a concurrency would.
        None => row.rate().map_or_else(|| missing("an open loop without a cap"), Cell::text),
    }
}

fn prefill_decode(rows: &[Row<'_>]) -> Block {
    let columns = Columns::new("Scenario", |row: &&Row<'_>| name(row));
    let speeds = [
        ("Prefill (PP) tok/s", metric::PP.quantity()),
        ("Token Generation (TG) tok/s", metric::TG.quantity()),
    ];
    Block::Table(quantity_columns(columns, quantity_cell, speeds).table(
        "prefill-decode",
        "Prompt tokens over TTFT, and tokens of one stream over time",
        rows,
    ))
}

/// `None` where no scenario is asked at several levels of concurrency.
fn scaling_section(set: &SetSummary, rows: &[Row<'_>], narrative: &Narrative) -> Option<Section> {
    let (condition, own) = scaled(set, rows)?;
    let prompts = set.suite.as_ref().map(|suite| suite.prompts);
    let mut blocks: Vec<Block> = warm(&own, prompts).into_iter().collect();
    blocks.extend(scaling_findings(condition));
    blocks.push(Block::Table(scaling_table(&own)));
    let series = [Series { name: condition.name.clone(), rows: own.clone() }];
    blocks.extend(set::level_charts(&series, &own, "scaling"));
    if !narrative.scaling.is_empty() {
        blocks.push(Block::List(frame::texts(&narrative.scaling)));
    }
    Some(section("scaling", "Concurrency Scaling", blocks))
}

/// That the numbers below are those of a warm cache, where they are: what is known apart from what
/// only their speed lets one suspect.
fn warm(rows: &[&Row<'_>], prompts: Option<Prompts>) -> Option<Block> {
    let of = |suspected: bool| -> Vec<String> {
        let is_so =
            |row: &&&Row<'_>| row.contaminated.is_some_and(|found| found.suspected == suspected);
        let name =
            |row: &Row<'_>| row.level.map_or_else(|| row.name.clone(), |it| level_name(it.level));
        rows.iter().filter(is_so).map(|row| name(row)).collect()
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
        text: vec![Span::Plain(format!("{} ", statements.join(" "))), evidence()],
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

/// The scenario that is asked at several levels of concurrency, and its rows.
fn scaled<'a, 'r>(
    set: &'a SetSummary,
    rows: &'r [Row<'r>],
) -> Option<(&'a ConditionSummary, Vec<&'r Row<'r>>)> {
    let place = set.suite.as_ref()?.scaling?;
    let is_own = |row: &&Row<'_>| row.scenario.is_some_and(|asked| asked.condition == place);
    Some((set.conditions.get(place as usize)?, rows.iter().filter(is_own).collect()))
}

fn scaling_findings(condition: &ConditionSummary) -> Vec<Block> {
    let Some(found) = &condition.findings else { return Vec::new() };
    let line = |label: &str, words: String| -> Block {
        let text: Text = vec![Span::Strong(format!("{label}:")), Span::Plain(format!(" {words}"))];
        Block::Paragraph(text)
    };
    vec![
        line("Interactive sweet spot", finding_words(&found.sweet_spot, sweet_spot)),
        line("Peak throughput (scaling)", finding_words(&found.peak, peak_words)),
    ]
}

fn finding_words<T>(finding: &Finding<T>, words: fn(&T) -> String) -> String {
    match finding {
        Finding::Found(found) => words(found),
        Finding::Unknown(why) => format!("– ({why})"),
    }
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

fn peak_words(peak: &Peak) -> String {
    let sure = peak.same_share.map_or_else(String::new, |share| {
        format!("; highest in {} of resampled sets", percent(share))
    });
    let (level, value) = (level_name(peak.level), number(peak.throughput.value));
    format!("{level} ({value} {}{sure})", peak_unit(peak))
}

fn peak_unit(peak: &Peak) -> &'static str {
    if peak.quantity == metric::REQUEST_THROUGHPUT.name { "requests/s" } else { "tok/s" }
}

/// The same two as headlines.
fn scaling_cards(set: &SetSummary, rows: &[Row<'_>]) -> Vec<Card> {
    let Some((condition, own)) = scaled(set, rows) else { return Vec::new() };
    let Some(found) = condition.findings.as_ref() else { return Vec::new() };
    let spot = found.sweet_spot.found();
    let spot = spot.map(|spot| card::sweet_spot(spot, choice_reservation(&own, spot.level)));
    let peak = found.peak.found().map(|peak| Card {
        label: "Peak of the scaling levels".to_owned(),
        value: number(peak.throughput.value),
        unit: peak_unit(peak).to_owned(),
        detail: format!("at {}", level_name(peak.level)),
        doubt: choice_reservation(&own, peak.level),
    });
    spot.into_iter().chain(peak).collect()
}

/// Why a choice among levels is not to be relied on: for the chosen one, or for those it was
/// compared with.
fn choice_reservation(rows: &[&Row<'_>], chosen: Level) -> Option<String> {
    let is_chosen = |row: &&&Row<'_>| row.level.is_some_and(|level| level.level == chosen);
    let own = rows.iter().find(is_chosen).and_then(|row| row.reservation());
    let is_warm = || rows.iter().any(|row| row.contaminated.is_some_and(|it| !it.suspected));
    own.or_else(|| is_warm().then(|| "other levels met a warm prefix cache".to_owned()))
}

fn scaling_table(rows: &[&Row<'_>]) -> Table {
    let columns = Columns::number("Concurrency", |row: &&Row<'_>| reserved(row, concurrency(row)));
    let quantities = [
        ("Output Throughput (tok/s)", metric::OUTPUT_THROUGHPUT.quantity()),
        ("Per-user Throughput (tok/s)", metric::PER_USER_THROUGHPUT.quantity()),
        ("TTFT p99 (ms)", metric::TTFT.p99()),
        ("TPOT p99 (ms)", metric::TPOT.p99()),
    ];
    let table = quantity_columns(columns, quantity_cell, quantities).table(
        "concurrency-scaling",
        "The same work at rising concurrency",
        rows.iter().copied(),
    );
    let note = "Per-user throughput is output throughput over concurrency.";
    Table { notes: vec![plain(note)], ..table }
}

fn scenario(row: &Row<'_>, narrative: &Narrative) -> Section {
    let purpose = row.scenario.map_or(NOTHING, |asked| asked.purpose.as_str());
    let heading = |words: &str| Block::Paragraph(vec![Span::Strong(words.to_owned())]);
    let mut blocks = vec![
        Block::Paragraph(vec![
            Span::Strong("Purpose:".to_owned()),
            Span::Plain(format!(" {purpose}")),
        ]),
        heading("Key metrics:"),
        Block::List(key_metrics(row)),
    ];
    if let Some(reservation) = row.reservation() {
        blocks.push(Block::Notice {
            mood: Mood::Doubt,
            text: plain(frame::sentence(&reservation)),
            points: Vec::new(),
            remedy: Some(plain("See its warnings in the section “Validity”.")),
        });
    }
    if let Some(sentences) = narrative.scenarios.get(&row.name).filter(|found| !found.is_empty()) {
        blocks.push(heading("Interpretation:"));
        blocks.push(Block::List(frame::texts(sentences)));
    }
    blocks.extend(row.drawn().map(|run| figures(row, run)).unwrap_or_default());
    section(&row.id(), &row.name, blocks)
}

fn key_metrics(row: &Row<'_>) -> Vec<Text> {
    let asked = row.scenario;
    let input = asked.and_then(|asked| asked.input_tokens.as_deref()).unwrap_or(NOTHING);
    let output = asked.and_then(|asked| asked.output_tokens.as_deref()).unwrap_or(NOTHING);
    let concurrency = asked.and_then(|asked| asked.concurrency);
    let requests = asked.and_then(|asked| asked.requests);
    let value = |quantity: Quantity| number(row.value(quantity));
    let three = |name: &str, metric: &'static Metric| {
        let values = [metric.mean(), metric.p50(), metric.p99()].map(value).join(" / ");
        format!("{name} mean/median/p99: {values} ms{}", uncertain(row, metric))
    };
    let uncertainty = uncertainty(&row.quantity(&metric::OUTPUT_THROUGHPUT));
    let uncertainty = if uncertainty.is_empty() { uncertainty } else { format!("; {uncertainty}") };
    let tally = row.tally();
    let mut lines = vec![
        format!("Input/Output: {input} / {output} tokens"),
        match (concurrency, row.rate()) {
            (Some(users), None) => format!("Concurrency: {}", count(users.into())),
            (None, None) => format!("Concurrency: {NOTHING}"),
            (None, Some(rate)) => format!("Rate: {rate}"),
            (Some(cap), Some(rate)) => {
                format!("Rate: {rate}, at most {} in flight", count(cap.into()))
            }
        },
        format!("Prompts: {}{}", requests.map_or_else(|| count(tally.scheduled), count), runs(row)),
        format!(
            "Output throughput: {} tok/s (peak {}){uncertainty}",
            value(metric::OUTPUT_THROUGHPUT.quantity()),
            value(metric::PEAK_OUTPUT_THROUGHPUT.quantity()),
        ),
        three("TTFT", &metric::TTFT),
        three("TPOT", &metric::TPOT),
        three("ITL", &metric::ITL),
        three("E2E", &metric::E2E),
        format!(
            "PP/TG (derived): {} / {} tok/s",
            value(metric::PP.quantity()),
            value(metric::TG.quantity())
        ),
    ];
    lines.extend(server(row));
    if tally.ok != tally.scheduled {
        lines.push(format!(
            "Outcomes: {} of {} ok, {} failed, {} cancelled, {} not sent",
            count(tally.ok),
            count(tally.scheduled),
            count(tally.failed),
            count(tally.cancelled),
            count(tally.not_sent)
        ));
    }
    lines.into_iter().map(plain).collect()
}

fn runs(row: &Row<'_>) -> String {
    match row.level.map(|level| level.points.len() + level.left_out.len()) {
        None | Some(0 | 1) => String::new(),
        Some(runs) => format!(" in each of {}", counted(runs as u64, "run")),
    }
}

/// A p99 of few requests is marked.
fn uncertain(row: &Row<'_>, metric: &'static Metric) -> String {
    let across = row.quantity(metric.p99());
    if across.certified || across.mean.is_none() {
        return String::new();
    }
    format!("; the p99: {}", uncertified(row.independent(metric)))
}

/// What the server says of itself, the worst of the runs that count.
fn server(row: &Row<'_>) -> Option<String> {
    let most = |of: fn(&ServerSide) -> Option<f64>| {
        row.runs.iter().filter_map(|run| of(run.server.as_ref()?)).max_by(f64::total_cmp)
    };
    let kv = most(|server| server.kv_usage.map(|found| found.max));
    let waiting = most(|server| server.waiting.map(|found| found.max));
    let preempted = most(|server| server.preemptions.map(|found| found.total));
    let cached = row.scenario.and_then(|asked| asked.cached_share);
    let parts: Vec<String> = [
        kv.map(|share| format!("KV use up to {}", percent(share))),
        waiting.map(|number| format!("waiting up to {}", whole(number))),
        preempted.map(|number| format!("preemptions {}", whole(number))),
        cached.map(|share| format!("from the prefix cache {} of the input", percent(share))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| format!("Server: {}", parts.join(", ")))
}

/// A tail so many times its middle is worth a look.
const TELLING: f64 = 3.0;

/// What tells most stands open, and the others wait to be asked for.
fn figures(row: &Row<'_>, run: &Summary) -> Vec<Block> {
    let id = row.id();
    let own = [row];
    let waited = run.server.as_ref().and_then(|server| server.waiting);
    let charts = [
        (has_tail(row, charts::first_token_metric(&own)), charts::first_tokens(&own, &id)),
        (false, charts::token_gaps(&own, &id)),
        (waited.is_some_and(|waiting| 0.0 < waiting.max), charts::course(run, &id)),
        (false, charts::gpus(run, &id)),
        (false, charts::requests(run, &id)),
        (has_tail(row, &metric::ITL), charts::gaps(run, &id)),
    ];
    let drawn = charts.into_iter().filter_map(|(is_telling, chart)| Some((is_telling, chart?)));
    let (open, folded): (Vec<_>, Vec<_>) = drawn.partition(|(is_telling, _)| *is_telling);
    let figures = |charts: Vec<(bool, Chart)>| -> Vec<Block> {
        // With the run that is drawn, where the chart does not say it itself.
        let which = row.which_run();
        let named = |n: String| if n.ends_with(&which) { n } else { n + &which };
        let told = |chart: Chart| Chart { n: named(chart.n.clone()), ..chart };
        charts.into_iter().map(|(_, chart)| charts::figure(told(chart))).collect()
    };
    let mut blocks = figures(open);
    if !folded.is_empty() {
        let summary = format!("{} of {}", counted(folded.len() as u64, "more chart"), row.name);
        blocks.push(Block::Details { summary, blocks: figures(folded) });
    }
    blocks
}

fn has_tail(row: &Row<'_>, metric: &'static Metric) -> bool {
    row.value(metric.p50())
        .zip(row.value(metric.p99()))
        .is_some_and(|(middle, tail)| TELLING * middle <= tail)
}
