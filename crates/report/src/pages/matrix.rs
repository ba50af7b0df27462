//! The page of a matrix of deployments: the winners with their certainty, every row with its confidence
//! intervals, and the failures with their reasons.

pub(super) mod brief;
mod charts;
pub(super) mod csv;
mod servers;
mod view;

use inferometer_analysis::matrix::{
    Certainty, LoadTable, MatrixFigure, MatrixRow, MatrixSection, Speedup, StrategyRow,
    StrategyTable, TpsBy, Winner,
};
use inferometer_analysis::set::{AcrossRuns, SetSummary};
use inferometer_model::study::Level;

use self::view::{NO_SPREAD, NOT_COMPARED, ONE_RUN, View};
use super::cells::{across_cell, missing};
use super::charts::figure as figure_block;
use super::frame::{self, section};
use super::{SuiteInput, distinct, set};
use crate::chart::Chart;
use crate::document::{Block, Card, Cell, Columns, Document, Section, Span, Table, Text, plain};
use crate::fmt::{self, count, counted, level_name, list, percent, uncertainty};
use crate::narrative::Narrative;

/// More tables than these of a kind are folded, each with a summary.
const OPEN_MAX: usize = 4;
/// A card for each model, up to this number.
const CARDS_MAX: usize = 6;
/// A table of winners with more rows is divided by figure.
const WINNERS_OPEN_MAX: usize = 24;
/// Statements about winners in the summary.
const SENTENCES_MAX: usize = 8;

const SIMULATED: &str =
    "nothing: each deployment is simulated in virtual time by its own profile, without a server";
const SAME_DEPLOYMENT: &str = "one GPU: both are the same deployment, and the difference is chance";

/// `None` where the set is no matrix.
pub fn page(input: &SuiteInput<'_>) -> Option<Document> {
    let matrix = input.set.matrix.as_ref()?;
    let view = View { set: input.set, matrix };
    // The narrator writes about the tables of other pages.
    let narrative = Narrative::default();
    let labels = matrix.models.iter();
    let models = labels.map(|it| if it.label.is_empty() { &it.name } else { &it.label });
    let first = input.points.first().map(|point| &point.summary);
    let named = ("Matrix", matrix.name.clone());
    let about = set::about(input.set, first, models.cloned().collect(), Some(named));
    let (why, points) = verdict_words(view);
    let badge = frame::badge(input.set.verdict, why, points);
    let mut lead = frame::lead(&about, badge, headline(view));
    let presets = view.presets();
    let hardware = format!("{}: {}", counted(presets.len() as u64, "preset"), presets.join(", "));
    for (key, text) in &mut lead.subject {
        match key.as_str() {
            "Hardware" => *text = plain(hardware.clone()),
            // Every deployment has a profile of its own.
            "Measured" if input.set.simulated => *text = plain(SIMULATED),
            _ => {}
        }
    }
    // Every deployment has a command of its own.
    lead.subject.retain(|(key, _)| key != "Startup Command");
    let mut header = frame::header(&about, &narrative);
    for (_, value) in header.iter_mut().filter(|(key, _)| key == "Hardware") {
        value.clone_from(&hardware);
    }
    let title = crate::escape::terminal_line(matrix.title.trim(), 120);
    let separator = if title.is_empty() { "" } else { ": " };
    Some(Document {
        header,
        title: format!("LLM Inference Benchmark Report: Deployment Matrix{separator}{title}"),
        lead,
        sections: sections(view),
        footer: frame::footer(&about, &narrative),
    })
}

fn sections(view: View<'_>) -> Vec<Section> {
    let mut sections = vec![section("summary", "Summary", vec![Block::List(summary(view))])];
    sections.extend(winners(view));
    sections.extend(overview(view));
    sections.push(servers::setup(view));
    let contexts = distinct(view.matrix.sections.iter().map(|section| section.context));
    sections.extend(contexts.into_iter().map(|context| results(view, context)));
    sections.extend(strategies(view));
    sections.extend(loads(view));
    sections.extend(servers::failed(view));
    sections.extend(servers::deployments(view));
    sections.push(validity(view.set));
    sections.push(method(view));
    sections.push(set::provenance(view.set));
    sections
}

fn verdict_words(view: View<'_>) -> (Text, Vec<Text>) {
    let rows = &view.matrix.rows;
    let (measured, troubles) = view::tally(rows);
    let more = if troubles.is_empty() { String::new() } else { format!(" ({troubles})") };
    let (measured, all) = (count(measured as u64), counted(rows.len() as u64, "row"));
    let runs = frame::sentence(&set::runs_by_verdict(view.set));
    let (reason, points) = frame::reason(view.set.verdict, &view.set.warnings, &[]);
    (plain(format!("{measured} of {all} measured{more}. {runs} {reason}")), points)
}

fn headline(view: View<'_>) -> Vec<Card> {
    let rows = &view.matrix.rows;
    let (measured, troubles) = view::tally(rows);
    let mut cards = vec![Card {
        label: "Measured".to_owned(),
        value: count(measured as u64),
        unit: format!("of {}", count(rows.len() as u64)),
        detail: "cells at their loads".to_owned(),
        doubt: Some(troubles).filter(|troubles| !troubles.is_empty()),
    }];
    for (model, _) in (0_u32..).zip(&view.matrix.models).take(CARDS_MAX) {
        cards.extend(best_card(view, model, MatrixFigure::GenerationTps));
    }
    if view.matrix.models.len() == 1 {
        let others = [MatrixFigure::Latency, MatrixFigure::Cost, MatrixFigure::Energy];
        cards.extend(others.into_iter().filter_map(|figure| best_card(view, 0, figure)));
    }
    cards
}

fn best_card(view: View<'_>, model: u32, figure: MatrixFigure) -> Option<Card> {
    let own = view.matrix.rows.iter().filter(|row| row.model == model);
    let (row, value) = view.best(own, figure)?;
    let across = view.figure(row, figure);
    let mut detail = vec![view.deployment(row)];
    detail.extend(row.context.map(view::context_words));
    detail.extend(view.level(row.level));
    detail.extend(across.doubt().map(|_| uncertainty(across)));
    let open = view.winner(row, figure).map(|winner| winner.certainty).filter(|certainty| {
        matches!(certainty, Certainty::Undecided | Certainty::OneRun | Certainty::NoSpread)
    });
    Some(Card {
        label: format!("{}: {}", view.model(model), lower_first(&view::best_of(figure))),
        value: fmt::number(value),
        unit: view.unit(figure),
        detail: detail.join("; "),
        doubt: open.map(|certainty| view::certainty_reason(certainty).to_owned()),
    })
}

fn lower_first(text: &str) -> String {
    text[..1].to_lowercase() + &text[1..]
}

/// The main results in sentences.
fn summary(view: View<'_>) -> Vec<Text> {
    let mut lines = Vec::new();
    for figure in [MatrixFigure::GenerationTps, MatrixFigure::Cost] {
        for (model, _) in (0_u32..).zip(&view.matrix.models) {
            let own = view.matrix.winners.iter();
            let own = own.filter(|winner| winner.model == model && winner.figure == figure);
            let best = view.best(own.filter_map(|winner| view.row(winner.row)), figure);
            let winner = best.and_then(|(row, _)| view.winner(row, figure));
            lines.extend(winner.and_then(|winner| winner_sentence(view, winner)));
        }
    }
    lines.truncate(SENTENCES_MAX);
    if view.matrix.winners.iter().any(|winner| winner.certainty == Certainty::OneRun) {
        lines.push(plain(
            "Each deployment was measured once, so the variation between starts of the server is not \
             known: none of these leads is certain.",
        ));
    }
    lines.extend(strategies_sentence(view));
    lines.extend(servers::failed_sentence(view));
    lines.extend(servers::short_prompts(view));
    if view.matrix.winners.is_empty() {
        lines.push(plain("No cell was measured without errors, so nothing can be compared."));
    }
    lines
}

fn winner_sentence(view: View<'_>, winner: &Winner) -> Option<Text> {
    let row = view.row(winner.row)?;
    let context = row.context.filter(|_| view.has_contexts()).map(view::context_words);
    let context = context.map(|tokens| format!("{tokens} of context"));
    let at: Vec<String> = context.into_iter().chain(view.level(winner.level)).collect();
    let at = if at.is_empty() { String::new() } else { format!(" at {}", at.join(" and ")) };
    let ahead = match (&winner.ahead, view.runner_up(winner)) {
        (Some(ahead), Some(next)) if view::is_tie(ahead) => format!(", tied with {next}"),
        (Some(ahead), Some(next)) => {
            format!(", {} ahead of {next}", signed_percent(ahead.share).trim_start_matches('+'))
        }
        _ => String::new(),
    };
    let certainty = match winner.certainty {
        // One sentence states it for all winners.
        Certainty::OneRun => String::new(),
        Certainty::Certain => "; repeated runs confirm it".to_owned(),
        other @ (Certainty::Undecided | Certainty::NoSpread | Certainty::Alone) => {
            format!("; {}", view::certainty_reason(other))
        }
    };
    Some(vec![
        Span::Strong(format!("{}:", view.model(winner.model))),
        Span::Plain(format!(
            " {} with {}, {}{at}{ahead}{certainty}.",
            lower_first(&view::best_of(winner.figure)),
            view.deployment(row),
            view.amount(winner.figure, winner.value),
        )),
    ])
}

/// Generation comes first: its tables and charts are always open.
const FIGURES: [MatrixFigure; 6] = [
    MatrixFigure::GenerationTps,
    MatrixFigure::PromptTps,
    MatrixFigure::Latency,
    MatrixFigure::Ttft,
    MatrixFigure::Cost,
    MatrixFigure::Energy,
];

/// The best deployment of each kind, and how certain its lead is.
fn winners(view: View<'_>) -> Option<Section> {
    let all: Vec<&Winner> = view.matrix.winners.iter().collect();
    let mut blocks = vec![Block::Paragraph(plain(
        "A row with failed requests, failed runs or an invalid verdict cannot win. The certainty of a \
         lead takes into account how many comparisons this page makes at once.",
    ))];
    if all.len() <= WINNERS_OPEN_MAX {
        blocks.push(Block::Table(winners_table(view, "winners-all", "", &all)));
    } else {
        for figure in FIGURES {
            let own: Vec<&Winner> =
                all.iter().filter(|winner| winner.figure == figure).copied().collect();
            let question = question(view, figure);
            let summary = format!("{question}: {} comparisons", count(own.len() as u64));
            let id = format!("winners-{}", view::slug(figure));
            let table = (!own.is_empty()).then(|| winners_table(view, &id, &question, &own));
            let table = table.into_iter().map(Block::Table).collect();
            blocks.extend(folded(figure != FIGURES[0] && !own.is_empty(), summary, table));
        }
    }
    (!all.is_empty()).then(|| section("winners", "Winners", blocks))
}

fn question(view: View<'_>, figure: MatrixFigure) -> String {
    format!("{} ({})", view::best_of(figure), view.unit(figure))
}

/// The number is next to its name: on a small screen the other columns are scrolled.
fn winners_table(view: View<'_>, id: &str, caption: &str, winners: &[&Winner]) -> Table {
    let has_context = winners.iter().any(|winner| winner.context.is_some()) && view.has_contexts();
    let named = |name: Option<String>| name.map_or_else(|| missing(NOT_COMPARED), Cell::text);
    let value = |winner: &&Winner| {
        let across = view.row(winner.row).map(|row| view.figure(row, winner.figure));
        let doubt = across.map(uncertainty).filter(|words| !words.is_empty());
        Cell { detail: doubt, ..Cell::number(fmt::number(winner.value), winner.value) }
    };
    Columns::new("Comparison", |winner: &&Winner| Cell::text(question(view, winner.figure)))
        .only_if(winners.iter().any(|winner| winner.figure != winners[0].figure))
        .left("Model", |winner| Cell::text(view.model(winner.model)))
        .only_if(1 < view.matrix.models.len())
        .right("Context", |winner| match winner.context {
            Some(tokens) => Cell::number(count(tokens.into()), tokens.into()),
            None => missing("not in the matrix file"),
        })
        .only_if(has_context)
        .left("Load", |winner| Cell::text(view.level(winner.level).unwrap_or_default()))
        .only_if(winners.iter().any(|winner| view.level(winner.level).is_some()))
        .right("Value", value)
        .left("Best", |winner| named(view.row(winner.row).map(|row| view.deployment(row))))
        .right("Ahead by", |winner| ahead(winner))
        .left("Certainty", |winner| Cell::text(view::certainty_word(winner.certainty)))
        .left("Next", |winner| named(view.runner_up(winner)))
        .table(id, caption, winners.iter().copied())
}

fn ahead(winner: &Winner) -> Cell {
    let Some(ahead) = &winner.ahead else { return missing(NOT_COMPARED) };
    let doubtful = winner.certainty != Certainty::Certain;
    let cell = share(ahead, doubtful, view::certainty_reason(winner.certainty));
    if view::is_tie(ahead) { Cell { text: "tie".to_owned(), ..cell } } else { cell }
}

/// A share with its interval.
fn share(found: &Speedup, doubtful: bool, reason: &str) -> Cell {
    let interval = found.interval.map(|interval| {
        format!("95 % {} to {}", signed_percent(interval.low), signed_percent(interval.high))
    });
    let details: Vec<&str> =
        interval.as_deref().into_iter().chain(doubtful.then_some(reason)).collect();
    Cell {
        number: Some(found.share),
        detail: (!details.is_empty()).then(|| details.join("; ")),
        doubtful,
        reason: doubtful.then(|| reason.to_owned()),
        ..Cell::text(signed_percent(found.share))
    }
}

/// Tiles of all cells; `None` where context lengths are not varied, because the result sections then
/// show the same.
fn overview(view: View<'_>) -> Option<Section> {
    if !view.has_contexts() {
        return None;
    }
    let levels = distinct(view.matrix.rows.iter().map(|row| row.level));
    let blocks = |figure: MatrixFigure| {
        let mut drawn = Vec::new();
        for (model, _) in (0_u32..).zip(&view.matrix.models) {
            let levels = levels.iter().copied().enumerate();
            drawn.extend(levels.filter_map(|level| charts::tiles(view, figure, (model, level))));
        }
        let fold = OPEN_MAX < drawn.len();
        let block = |chart: Chart| folded(fold, chart.title.clone(), vec![figure_block(chart)]);
        drawn.into_iter().flat_map(block).collect::<Vec<Block>>()
    };
    let title = "Generation TPS by preset and context length";
    let mut overview = section("overview", title, blocks(MatrixFigure::GenerationTps));
    if view.has(MatrixFigure::Cost) {
        let note = "Prices are those of the matrix file, per hour of a preset. The time that a server \
                    takes to start is not included.";
        let mut own = vec![Block::Paragraph(plain(note))];
        own.extend(blocks(MatrixFigure::Cost));
        overview.sections.push(section("cost", "Cost per million generated tokens", own));
    }
    Some(overview)
}

/// Every row of one context length, by model.
fn results(view: View<'_>, context: Option<u32>) -> Section {
    let (id, title) = context.map_or_else(
        || ("results".to_owned(), "Results".to_owned()),
        |tokens| {
            (format!("context-{tokens}"), format!("Context of {}", view::context_words(tokens)))
        },
    );
    let mut own_section = section(&id, &title, Vec::<Block>::new());
    for (model, _) in (0_u32..).zip(&view.matrix.models) {
        let own = view.matrix.sections.iter();
        let own: Vec<&MatrixSection> =
            own.filter(|it| it.context == context && it.model == model).collect();
        if !own.is_empty() {
            own_section.sections.push(model_results(view, (&id, model), &own));
        }
    }
    own_section
}

fn model_results(view: View<'_>, (context, model): (&str, u32), own: &[&MatrixSection]) -> Section {
    let id = format!("{context}-model-{model}");
    let rows: Vec<&MatrixRow> = own.iter().flat_map(|one| view.rows_at(&one.rows)).collect();
    let mut blocks = Vec::new();
    let lines: Vec<Text> =
        own.iter().flat_map(|one| result_lines(view, one, 1 < own.len())).collect();
    if !lines.is_empty() {
        blocks.push(Block::List(lines));
    }
    let mut inner = bars(view, MatrixFigure::GenerationTps, &id, &rows);
    for (index, one) in own.iter().enumerate() {
        let level = Some(one.level);
        let caption = view.title((one.model, one.context), one.strategy, &one.flags, level);
        let id = format!("{id}-table-{index}");
        inner.push(Block::Table(rows_table(view, (id, caption), false, view.rows_at(&one.rows))));
    }
    inner.extend(more_figures(view, &id, &rows));
    let measured = rows.iter().filter(|row| !row.points.is_empty()).count();
    let summary = format!("Tables and charts: {measured} of {} rows measured", rows.len());
    blocks.extend(folded(view.is_large(), summary, inner));
    section(&id, &view.model(model), blocks)
}

/// One chart for each load.
fn bars(view: View<'_>, figure: MatrixFigure, id: &str, rows: &[&MatrixRow]) -> Vec<Block> {
    let levels = distinct(rows.iter().map(|row| row.level));
    let chart = |(index, level): (usize, &Level)| {
        let own: Vec<&MatrixRow> = rows.iter().filter(|row| row.level == *level).copied().collect();
        let first = own.first()?;
        let mut subject = vec![view.model(first.model)];
        subject.extend(first.context.map(view::context_words));
        subject.extend((1 < levels.len()).then(|| level_name(*level)));
        let id = format!("{id}-{}-{index}", view::slug(figure));
        charts::bars(view, figure, (&id, &subject.join(", ")), &own).map(figure_block)
    };
    levels.iter().enumerate().filter_map(chart).collect()
}

/// Charts of the other figures and the server's gauges, folded. Of many rows only some are drawn,
/// so that the page stays small.
fn more_figures(view: View<'_>, id: &str, rows: &[&MatrixRow]) -> Vec<Block> {
    const ROWS_MAX: usize = 300;
    let is_huge = ROWS_MAX < view.matrix.rows.len();
    let drawn_max = match (is_huge, view.is_large()) {
        (true, _) => 1,
        (false, true) => 2,
        (false, false) => FIGURES.len(),
    };
    let figures = FIGURES.into_iter().skip(1).take(drawn_max);
    let mut blocks: Vec<Block> = figures.flat_map(|figure| bars(view, figure, id, rows)).collect();
    // The CSV file has the gauges as well.
    let gauges = gauges_table(view, format!("{id}-server"), rows).filter(|_| !is_huge);
    let gauges = gauges.map(Block::Table).into_iter();
    if view.is_large() {
        let summary = "Server gauges: running, waiting and cache".to_owned();
        blocks.extend(
            gauges.map(|table| Block::Details { summary: summary.clone(), blocks: vec![table] }),
        );
        return blocks;
    }
    blocks.extend(gauges);
    folded(!blocks.is_empty(), "Other figures as charts, and server gauges".to_owned(), blocks)
}

/// The best rows, and those with failures.
fn result_lines(view: View<'_>, section: &MatrixSection, several: bool) -> Vec<Text> {
    let which = view.distinction(section.strategy, &section.flags, Some(section.level)).join(", ");
    let which = if several && !which.is_empty() { format!(" ({which})") } else { String::new() };
    let best = section.highest.iter().filter_map(|found| {
        let row = view.row(found.row)?;
        let same = if view.is_as_tensor(row) { " (the same server as tensor)" } else { "" };
        let preset = view.preset(row.preset);
        let best = lower_first(&view::best_of(found.figure));
        Some(format!("{best} {preset}{same} with {}", view.amount(found.figure, found.value)))
    });
    let named = |row: &MatrixRow, why: String| format!("{} ({why})", view.preset(row.preset));
    let errors = section.errors.iter().filter_map(|(row, _)| view.row(*row));
    let errors: Vec<String> = errors.map(|row| named(row, view::errors_words(row))).collect();
    let failed = view.rows_at(&section.failed).into_iter();
    let failed: Vec<String> = failed.map(|row| named(row, view::short(row))).collect();
    let lines = [
        ("Best", best.collect::<Vec<_>>().join("; ")),
        ("Errors", list(&errors)),
        ("Failed", list(&failed)),
    ];
    let lines = lines.into_iter().filter(|(_, words)| !words.is_empty());
    lines.map(|(label, words)| labelled(&format!("{label}{which}"), &words)).collect()
}

fn labelled(label: &str, words: &str) -> Text {
    vec![Span::Strong(format!("{label}:")), Span::Plain(format!(" {words}."))]
}

/// A number of a row, marked where the row has a reservation.
fn number(row: &MatrixRow, across: &AcrossRuns) -> Cell {
    if let Some(reason) = view::nothing(row) {
        return missing(&reason);
    }
    let mut cell = across_cell(across, None, None);
    if across.mean.is_some() {
        // Sorted by the printed digits: the others would double the size of a large page.
        cell.number = cell.text.replace(',', "").parse().ok();
        if let Some(reason) = view::reservation(row) {
            let details = [cell.detail.unwrap_or_default(), reason.clone()];
            let details = details.into_iter().filter(|words| !words.is_empty());
            cell.detail = Some(details.collect::<Vec<_>>().join("; "));
            (cell.doubtful, cell.reason) = (true, Some(reason));
        }
    }
    cell
}

/// The rows of one section, or of one comparison of loads.
fn rows_table(
    view: View<'_>,
    (id, caption): (String, String),
    has_load: bool,
    rows: Vec<&MatrixRow>,
) -> Table {
    let by = match view.tps_by() {
        TpsBy::Server => "",
        TpsBy::Client => " by the client",
    };
    let cost = view.currency().map_or_else(
        || "Cost per million (in the prices' unit)".to_owned(),
        |currency| format!("Cost ({currency} per million)"),
    );
    let get = |figure| move |row: &&MatrixRow| number(row, view.figure(row, figure));
    Columns::new("Preset", |row: &&MatrixRow| Cell::text(view.preset(row.preset)))
        .left("Load", |row| Cell::text(level_name(row.level)))
        .only_if(has_load)
        .right(format!("Prompt TPS{by}"), get(MatrixFigure::PromptTps))
        .right(format!("Generation TPS{by}"), get(MatrixFigure::GenerationTps))
        .right("Mean latency (s)", get(MatrixFigure::Latency))
        .right("Mean TTFT (ms)", get(MatrixFigure::Ttft))
        .right("Generation TPS of a request", |row| number(row, &row.request_generation_tps))
        .right("Prompt TPS of a request", |row| number(row, &row.request_prompt_tps))
        .right(cost, get(MatrixFigure::Cost))
        .only_if(view.has(MatrixFigure::Cost))
        .right("Energy (J per token)", get(MatrixFigure::Energy))
        .only_if(view.has(MatrixFigure::Energy))
        .right("Errors", |row| match view::nothing(row).filter(|_| row.points.is_empty()) {
            Some(reason) => missing(&reason),
            None => Cell {
                detail: (0 < row.errors).then(|| format!("of {} requests", count(row.requests))),
                ..Cell::number(count(row.errors), row.errors as f64)
            },
        })
        .table(id, caption, rows)
}

/// A gauge of servers or GPUs, as a mean over the runs: its title on pages and in files, its value, and
/// how pages write it.
type Gauge = (&'static str, &'static str, fn(&MatrixRow) -> Option<f64>, fn(f64) -> String);

const GAUGES: [Gauge; 7] = [
    ("Running", "running requests", |row| row.running, fmt::number),
    ("Waiting", "waiting requests", |row| row.waiting, fmt::number),
    ("Swapped", "swapped requests", |row| row.swapped, fmt::number),
    ("KV cache", "KV cache usage (share)", |row| row.kv_usage, percent),
    ("CPU cache", "CPU cache usage (share)", |row| row.cpu_cache_usage, percent),
    ("GPU power (W)", "power (W)", |row| row.power_w, fmt::number),
    (
        "GPU memory (GiB)",
        "GPU memory (bytes)",
        |row| row.gpu_memory_bytes,
        |bytes| fmt::number(fmt::gibibytes(bytes)),
    ),
];

/// Gauges of the servers and GPUs; `None` where no server reported any.
fn gauges_table(view: View<'_>, id: String, rows: &[&MatrixRow]) -> Option<Table> {
    let mut columns = Columns::new("Preset", |row: &&MatrixRow| Cell::text(view.deployment(row)));
    let mut any = false;
    for (title, _, get, write) in GAUGES {
        let is_known = rows.iter().any(|row| get(row).is_some());
        any |= is_known;
        let cell = move |row: &&MatrixRow| match (get(row), view::nothing(row)) {
            (None, Some(reason)) => missing(&reason),
            (None, None) => missing("not reported by this server"),
            // Three decimals keep a large page small.
            (Some(value), _) => Cell::number(write(value), (value * 1e3).round() / 1e3),
        };
        columns = columns.right(title, cell).only_if(is_known);
    }
    let table = columns.table(id, "Server gauges (mean)", rows.iter().copied());
    let note = "Means over the readings during the runs. The stored runs have the variation.";
    any.then(|| Table { notes: vec![plain(note)], ..table })
}

/// Tensor and pipeline parallelism side by side, and the speed-up.
fn strategies(view: View<'_>) -> Option<Section> {
    let tables = &view.matrix.strategies;
    let mut blocks = vec![Block::Paragraph(plain(
        "The speed-up is tensor parallelism over pipeline parallelism, minus one: above zero, tensor \
         parallelism is faster. On one GPU both are the same deployment, and the difference shows the \
         variation by chance. Pairs with errors on either side are not compared.",
    ))];
    for (index, one) in tables.iter().enumerate() {
        let title = view.title((one.model, one.context), None, &one.flags, Some(one.level));
        let summary = format!("{title}: generation {}", span_words(one));
        let mut inner = vec![Block::Table(strategies_table(view, one, index, &title))];
        inner.extend(charts::speedups(view, one, index, &title).map(figure_block));
        blocks.extend(folded(OPEN_MAX < tables.len(), summary, inner));
    }
    let title = "Tensor vs. pipeline parallelism";
    (!tables.is_empty()).then(|| section("strategies", title, blocks))
}

/// Speed-ups between two different deployments without errors.
fn compared(table: &StrategyTable) -> impl Iterator<Item = &Speedup> {
    let rows = table.rows.iter().filter(|row| !row.same_deployment);
    rows.filter_map(|row| row.generation_speedup.as_ref())
}

fn span_words(table: &StrategyTable) -> String {
    let shares = || compared(table).map(|found| found.share);
    match (shares().reduce(f64::min), shares().reduce(f64::max)) {
        (Some(low), Some(high)) if low.to_bits() == high.to_bits() => signed_percent(low),
        (Some(low), Some(high)) => format!("{} to {}", signed_percent(low), signed_percent(high)),
        _ => "not compared".to_owned(),
    }
}

/// The range of all speed-ups, for the summary.
fn strategies_sentence(view: View<'_>) -> Option<Text> {
    let all = || view.matrix.strategies.iter().flat_map(compared);
    let low = all().map(|found| found.share).reduce(f64::min)?;
    let high = all().map(|found| found.share).reduce(f64::max)?;
    let intervals = || all().filter_map(|found| found.interval);
    let certainty = if intervals().next().is_none() {
        let mut rows = view.matrix.strategies.iter().flat_map(|table| &table.rows);
        let pair = rows.find(|row| !row.same_deployment && row.generation_speedup.is_some());
        pair.map_or(ONE_RUN, |pair| no_interval(view, pair)).to_owned()
    } else {
        let faster = intervals().filter(|interval| 0.0 < interval.low).count();
        let slower = intervals().filter(|interval| interval.high < 0.0).count();
        format!(
            "by their confidence intervals, tensor is faster in {faster}, pipeline in {slower}, and the \
             others are undecided"
        )
    };
    Some(vec![
        Span::Strong("Tensor vs. pipeline parallelism:".to_owned()),
        Span::Plain(format!(
            " generation {} to {} over {} pairs on several GPUs; {certainty}.",
            signed_percent(low),
            signed_percent(high),
            all().count(),
        )),
    ])
}

fn strategies_table(view: View<'_>, table: &StrategyTable, index: usize, title: &str) -> Table {
    type Side = fn(&StrategyRow) -> Option<u32>;
    let get = |side: Side, figure| {
        move |row: &&StrategyRow| {
            let Some(found) = side(row).and_then(|side| view.row(side)) else {
                return missing("not in the matrix");
            };
            // Another table has its interval.
            let cell = number(found, view.figure(found, figure));
            if cell.doubtful || cell.number.is_none() {
                cell
            } else {
                Cell { detail: None, ..cell }
            }
        }
    };
    let speedup = |row: &StrategyRow, found: Option<&Speedup>| {
        let Some(found) = found else { return missing("one side has errors or no result") };
        let reason = if row.same_deployment { SAME_DEPLOYMENT } else { no_interval(view, row) };
        share(found, row.same_deployment || found.interval.is_none(), reason)
    };
    let (pipeline, tensor): (Side, Side) = (|row| row.pipeline, |row| row.tensor);
    Columns::new("Preset", |row: &&StrategyRow| Cell::text(view.preset(row.preset)))
        .right("Pipeline prompt TPS", get(pipeline, MatrixFigure::PromptTps))
        .right("Tensor prompt TPS", get(tensor, MatrixFigure::PromptTps))
        .right("Pipeline generation TPS", get(pipeline, MatrixFigure::GenerationTps))
        .right("Tensor generation TPS", get(tensor, MatrixFigure::GenerationTps))
        .right("Prompt speed-up", |row| speedup(row, row.prompt_speedup.as_ref()))
        .right("Generation speed-up", |row| speedup(row, row.generation_speedup.as_ref()))
        .table(format!("strategies-{index}"), title, &table.rows)
}

/// Why a pair has no interval.
fn no_interval(view: View<'_>, row: &StrategyRow) -> &'static str {
    let sides = [row.tensor, row.pipeline].into_iter().flatten();
    let mut runs = sides.filter_map(|side| view.row(side)).map(|row| row.points.len());
    if runs.all(|runs| 1 < runs) { NO_SPREAD } else { ONE_RUN }
}

/// One deployment at several loads.
fn loads(view: View<'_>) -> Option<Section> {
    let tables = &view.matrix.loads;
    let mut blocks = Vec::new();
    for (index, one) in (0..).zip(tables) {
        let LoadTable { context, model, strategy, flags, presets } = one;
        let title = view.title((*model, *context), *strategy, flags, None);
        let rows = presets.iter().flat_map(|(_, rows)| view.rows_at(rows)).collect();
        let chart = charts::loads(view, one, index, &title);
        let mut inner: Vec<Block> = chart.map(figure_block).into_iter().collect();
        let id = (format!("loads-{index}-table"), title.clone());
        inner.push(Block::Table(rows_table(view, id, true, rows)));
        blocks.extend(folded(OPEN_MAX < tables.len(), title, inner));
    }
    (!blocks.is_empty()).then(|| section("loads", "Results by load", blocks))
}

fn validity(set: &SetSummary) -> Section {
    let mut blocks: Vec<Block> = set.warnings.iter().map(frame::notice).collect();
    if blocks.is_empty() {
        blocks.push(Block::Paragraph(plain("All checks of the runs passed.")));
    }
    section("belief", "Validity", blocks)
}

/// How the numbers of the page are computed, and their limits.
fn method(view: View<'_>) -> Section {
    let by = match view.tps_by() {
        TpsBy::Server => {
            "tokens by the server's counters, over the time from before the load until the server was \
             idle again"
        }
        TpsBy::Client => {
            "tokens counted by the client, for all rows: not every measured row has the server's \
             counters, and the two are not mixed"
        }
    };
    let certainty = if view.set.asked.runs < 2 {
        "each cell was deployed once, so the variation between starts of a server is not known, and \
         no winner is certain; use --repeat to measure it"
    } else {
        "95 % confidence intervals between runs, each on a server of its own; a winner is certain only \
         if this holds over all comparisons of the page together"
    };
    let lines = [
        (true, "Prompt and Generation TPS", by),
        (
            true,
            "TPS of a request",
            "the tokens of a request over its own time from send to end, mean over successful requests",
        ),
        (true, "Mean latency and TTFT", "from send, mean over successful requests"),
        (true, "Errors", "failed requests; such a row keeps its numbers but cannot win"),
        (
            view.has(MatrixFigure::Cost),
            "Cost",
            "the price of the preset per hour, divided by the tokens it generates in an hour at this \
             rate; time to start a server and idle time are not included",
        ),
        (
            view.has(MatrixFigure::Energy),
            "Energy",
            "energy of all GPUs during the load, divided by the generated tokens; the rest of the \
             machine is not included",
        ),
        (true, "Certainty", certainty),
        (
            true,
            "Not known",
            "the effect of other prompts, other server versions or another day; presets are described \
             by the author of the matrix file",
        ),
    ];
    let lines = lines.into_iter().filter(|(applies, ..)| *applies);
    let lines = lines.map(|(_, label, words)| labelled(label, words)).collect();
    section("method", "Method", vec![Block::List(lines)])
}

/// A share in per cent with its sign.
fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    let size = percent(share.abs());
    if size.starts_with(['<', '>']) { format!("{sign} {size}") } else { format!("{sign}{size}") }
}

/// The blocks, folded where `fold` is set.
fn folded(fold: bool, summary: String, blocks: Vec<Block>) -> Vec<Block> {
    if fold { vec![Block::Details { summary, blocks }] } else { blocks }
}
