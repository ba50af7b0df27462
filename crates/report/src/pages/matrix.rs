//! The page of a matrix of deployments: the winners with their certainty, every row with its confidence
//! intervals, and the failures with their reasons.

pub(super) mod brief;
mod charts;
pub(super) mod csv;
mod servers;

use inferometer_analysis::Better;
use inferometer_analysis::matrix::{
    Certainty, LoadTable, MatrixFigure, MatrixSection, MatrixSummary, RowEnding, Speedup,
    StrategyRow, StrategyTable, TpsBy, Winner,
};
use inferometer_model::deployment::DeploymentFailure;
use inferometer_model::study::Strategy;
use inferometer_model::variant_name;

use super::cells::across_cell;
use super::prelude::*;
use super::set;

/// More tables than these of a kind are folded, each with a summary.
const OPEN_MAX: usize = 4;

const SAME_DEPLOYMENT: &str = "one GPU: both are the same deployment, and the difference is chance";
const ONE_SIDE: &str = "one side has errors or no result";

/// `None` where the set is no matrix.
pub fn page(input: &SuiteInput<'_>) -> Option<Document> {
    let matrix = input.set.matrix.as_ref()?;
    let view = View::new(input.set, matrix);
    // The narrator writes about the tables of other pages.
    let narrative = Narrative::default();
    let labels = matrix.models.iter();
    let models = labels.map(|it| if it.label.is_empty() { &it.name } else { &it.label });
    let servers = input.points.first().map(|point| ("", &point.summary)).into_iter().collect();
    let named = ("Matrix", matrix.name.clone());
    let about = set::about(input.set, servers, models.cloned().collect(), Some(named));
    let (measured, troubles) = view.tally();
    let more = if troubles.is_empty() { String::new() } else { format!(" ({troubles})") };
    let runs = frame::sentence(&set::runs_by_verdict(input.set));
    let (reason, points) = frame::reason(input.set.verdict, &input.set.warnings, &[]);
    let rows = counted(matrix.rows.len() as u64, "row");
    let why = format!("{measured} of {rows} measured{more}. {runs} {reason}");
    let badge = frame::badge(input.set.verdict, input.set.simulated, plain(why), points);
    let badge = without_gaps(badge, matrix);
    let mut lead = frame::lead(&about, badge, headline(view));
    let presets: Vec<String> =
        (0_u32..).zip(&matrix.presets).map(|(index, _)| view.preset(index)).collect();
    let gpus = distinct(matrix.presets.iter().filter_map(|preset| preset.gpu_type.as_ref()));
    let gpus: Vec<String> = gpus.iter().map(|kind| terminal_line(kind, NAME_CHARS_MAX)).collect();
    let gpus = if gpus.is_empty() { String::new() } else { format!("; {}", list(&gpus)) };
    let count = counted(presets.len() as u64, "preset");
    let hardware = format!("{count}: {}{gpus}", presets.join(", "));
    for (key, text) in &mut lead.subject {
        match key.as_str() {
            "Hardware" => *text = plain(hardware.clone()),
            // Every deployment has a different profile.
            "Measured" if input.set.simulated => {
                *text = plain(self::text("simulated-matrix"));
            }
            _ => {}
        }
    }
    // Every deployment has a different command.
    lead.subject.retain(|(key, _)| key != "Startup Command");
    let mut header = frame::header(&about, &narrative);
    for (_, value) in header.iter_mut().filter(|(key, _)| key == "Hardware") {
        value.clone_from(&hardware);
    }
    let title = terminal_line(matrix.title.trim(), 120);
    let separator = if title.is_empty() { "" } else { ": " };
    let page = Document {
        header,
        title: format!("LLM Inference Benchmark Report: Deployment Matrix{separator}{title}"),
        lead,
        sections: sections(view),
        footer: frame::footer(&about, &narrative),
        ..Document::default()
    };
    Some(frame::mark_simulated(page, about.simulated.as_deref()))
}

/// The verdict on a matrix whose rows do not all have a result, which is no good news.
pub(super) fn without_gaps(badge: Badge, matrix: &MatrixSummary) -> Badge {
    let is_gap =
        |row: &MatrixRow| matches!(row.ending, RowEnding::Failed { .. } | RowEnding::Missing);
    let gaps = matrix.rows.iter().filter(|row| is_gap(row)).count();
    if gaps == 0 || matches!(badge.mood, Mood::Doubt | Mood::Bad) {
        return badge;
    }
    let word = format!("{}, {} of {} without a result", badge.word, gaps, matrix.rows.len());
    Badge { mood: Mood::Doubt, word, ..badge }
}

fn sections(view: View<'_>) -> Vec<Section> {
    let description = view.matrix.description.as_deref().map(Block::paragraph);
    let blocks = description.into_iter().chain([Block::List(summary(view))]);
    let mut sections = vec![section("summary", "Summary", blocks)];
    sections.extend(overview(view));
    sections.extend(winners(view));
    sections.push(servers::setup(view));
    let contexts = distinct(view.matrix.sections.iter().map(|section| section.context));
    sections.extend(contexts.into_iter().map(|context| results(view, context)));
    sections.extend(strategies(view));
    sections.extend(loads(view));
    sections.extend(servers::failed(view));
    sections.extend(servers::deployments(view));
    let mut notices: Vec<Block> = view.set.warnings.iter().map(frame::notice).collect();
    if notices.is_empty() {
        notices.push(Block::paragraph("All checks of the runs passed."));
    }
    sections.push(section("belief", "Validity", notices));
    sections.push(method(view));
    sections.push(set::provenance(view.set, None));
    // The main chart follows the cards.
    let chart = sections.iter_mut().find_map(take_chart);
    sections[0].blocks.splice(0..0, chart);
    sections
}

/// Takes the first chart out of a section.
fn take_chart(section: &mut Section) -> Option<Block> {
    let first = section.blocks.iter().position(|block| matches!(block, Block::Figure(_)));
    let own = first.map(|first| section.blocks.remove(first));
    own.or_else(|| section.sections.iter_mut().find_map(take_chart))
}

fn headline(view: View<'_>) -> Vec<Card> {
    let (measured, troubles) = view.tally();
    let unit = format!("of {}", count(view.matrix.rows.len() as u64));
    let troubles = Some(troubles).filter(|troubles| !troubles.is_empty());
    let detail = "cells at their loads".to_owned();
    let mut cards = vec![card("Measured", measured, &unit, detail, troubles)];
    let generation = MatrixFigure::GenerationTps;
    cards.extend(view.models().take(6).filter_map(|it| best_card(view, it, generation)));
    if view.matrix.models.len() == 1 {
        let others = [MatrixFigure::Latency, MatrixFigure::Cost, MatrixFigure::Energy];
        cards.extend(others.into_iter().filter_map(|figure| best_card(view, 0, figure)));
    }
    cards
}

fn best_card(view: View<'_>, model: u32, figure: MatrixFigure) -> Option<Card> {
    let winner = view.best_winner(figure, |winner| winner.model == model)?;
    let row = view.row(winner.row)?;
    let across = view.figure(row, figure);
    let mut detail = vec![view.deployment(row)];
    detail.extend(view.gpus(row.preset));
    detail.extend(row.context.map(context_words));
    detail.extend(view.level(row.level));
    detail.extend(across.confidence_interval().map(|_| uncertainty(across)));
    let is_open = !matches!(winner.certainty, Certainty::Certain | Certainty::Alone);
    let label = format!("{}: {}", view.model(model), best_of(figure));
    let (value, unit) = (fmt::number(winner.value), view.unit(figure));
    let doubt = is_open.then(|| certainty_words(winner.certainty).1.to_owned());
    Some(card(&label, value, &unit, detail.join("; "), doubt))
}

/// The main results in sentences.
fn summary(view: View<'_>) -> Vec<Text> {
    let mut lines = Vec::new();
    for figure in [MatrixFigure::GenerationTps, MatrixFigure::Cost] {
        let best =
            view.models().filter_map(|model| view.best_winner(figure, |it| it.model == model));
        lines.extend(best.filter_map(|winner| winner_sentence(view, winner)));
    }
    lines.truncate(8);
    if view.matrix.winners.iter().any(|winner| winner.certainty == Certainty::OneRun) {
        lines.push(plain(text("one-start")));
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
    let context = row.context.filter(|_| view.has_contexts()).map(context_words);
    let context = context.map(|tokens| format!("{tokens} of context"));
    let at = context.into_iter().chain(view.level(winner.level)).try_join(" and ");
    let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
    let certainty = match winner.certainty {
        // One sentence states it for all winners.
        Certainty::OneRun => String::new(),
        Certainty::Certain => "; repeated runs confirm it".to_owned(),
        other @ (Certainty::Undecided | Certainty::NoSpread | Certainty::Alone) => {
            format!("; {}", certainty_words(other).1)
        }
    };
    let (best, deployment) = (best_of(winner.figure), view.deployment(row));
    let (amount, lead) = (view.amount(winner.figure, winner.value), view.lead(winner));
    let words = format!("{best} with {deployment}, {amount}{at}{lead}{certainty}.");
    Some(labelled(&view.model(winner.model), &words))
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
    let mut blocks = vec![Block::paragraph(text("winners-note"))];
    // A table with more rows is divided by figure.
    if all.len() <= 24 {
        blocks.push(Block::Table(winners_table(view, "winners-all", "", &all)));
    } else {
        for figure in FIGURES {
            let own = all.iter().filter(|winner| winner.figure == figure);
            let own: Vec<&Winner> = own.copied().collect();
            if own.is_empty() {
                continue;
            }
            let question = question(view, figure);
            let id = format!("winners-{}", figure_names(figure).1);
            let table = vec![Block::Table(winners_table(view, &id, &question, &own))];
            let summary = format!("{question}: {} comparisons", count(own.len() as u64));
            blocks.extend(folded(figure != FIGURES[0], summary, table));
        }
    }
    (!all.is_empty()).then(|| section("winners", "Winners", blocks))
}

fn question(view: View<'_>, figure: MatrixFigure) -> String {
    let best = best_of(figure);
    format!("{}{} ({})", best[..1].to_uppercase(), &best[1..], view.unit(figure))
}

/// The number is next to its name: on a small screen the other columns are scrolled.
fn winners_table(view: View<'_>, id: &str, caption: &str, winners: &[&Winner]) -> Table {
    let has_context = winners.iter().any(|winner| winner.context.is_some()) && view.has_contexts();
    let named = |name: Option<String>| name.map_or_else(|| missing(NOT_COMPARED), Cell::text);
    Columns::new("Comparison", |winner: &&Winner| Cell::text(question(view, winner.figure)))
        .only_if(winners.iter().any(|winner| winner.figure != winners[0].figure))
        .left("Model", |winner| Cell::text(view.model(winner.model)))
        .only_if(1 < view.matrix.models.len())
        .right("Context", |winner| {
            number_cell(winner.context.map(f64::from), fmt::whole, "not in the matrix file")
        })
        .only_if(has_context)
        .left("Load", |winner| Cell::text(view.level(winner.level).unwrap_or_default()))
        .only_if(winners.iter().any(|winner| view.level(winner.level).is_some()))
        .right("Value", |winner| {
            let across = view.row(winner.row).map(|row| view.figure(row, winner.figure));
            let detail = across.map(uncertainty).filter(|words| !words.is_empty());
            Cell { detail, ..Cell::number(fmt::number(winner.value), winner.value) }
        })
        .left("Best", |winner| named(view.row(winner.row).map(|row| view.deployment(row))))
        .right("Ahead by", |winner| {
            let Some(ahead) = &winner.ahead else { return missing(NOT_COMPARED) };
            let reason = certainty_words(winner.certainty).1;
            let cell = share(ahead, winner.certainty != Certainty::Certain, reason);
            if is_tie(ahead) { Cell { text: "tie".to_owned(), ..cell } } else { cell }
        })
        .left("Certainty", |winner| Cell::text(certainty_words(winner.certainty).0))
        .left("Next", |winner| named(view.runner_up(winner)))
        .table(id, caption, winners.iter().copied())
}

/// A share with its interval.
fn share(found: &Speedup, doubtful: bool, reason: &str) -> Cell {
    let interval = found.interval.map(|interval| {
        format!("95 % {} to {}", signed_percent(interval.low), signed_percent(interval.high))
    });
    let reason = doubtful.then(|| reason.to_owned());
    let detail = interval.into_iter().chain(reason.clone()).try_join("; ");
    Cell::number(signed_percent(found.share), found.share).detailed(detail).doubted(reason)
}

/// Tiles of all cells; `None` where context lengths are not varied, because the result sections then
/// show the same.
fn overview(view: View<'_>) -> Option<Section> {
    let levels = distinct(view.matrix.rows.iter().map(|row| row.level));
    let blocks = |figure: MatrixFigure| {
        let mut drawn: Vec<Chart> = Vec::new();
        for model in view.models() {
            let levels = levels.iter().copied().enumerate();
            drawn.extend(levels.filter_map(|level| charts::tiles(view, figure, (model, level))));
        }
        let fold = OPEN_MAX < drawn.len();
        let block = |chart: Chart| folded(fold, chart.title.clone(), vec![chart.into()]);
        drawn.into_iter().flat_map(block).collect::<Vec<Block>>()
    };
    let title = "Generation TPS by preset and context length";
    let mut overview = section("overview", title, blocks(MatrixFigure::GenerationTps));
    if view.has(MatrixFigure::Cost) {
        let mut own = vec![Block::paragraph(text("prices-note"))];
        own.extend(blocks(MatrixFigure::Cost));
        overview.sections.push(section("cost", "Cost per million generated tokens", own));
    }
    let is_empty = overview.blocks.is_empty() && overview.sections.is_empty();
    (view.has_contexts() && !is_empty).then_some(overview)
}

/// Every row of one context length, by model.
fn results(view: View<'_>, context: Option<u32>) -> Section {
    let (id, title) = context.map_or_else(
        || ("results".to_owned(), "Results".to_owned()),
        |tokens| (format!("context-{tokens}"), format!("Context of {}", context_words(tokens))),
    );
    let mut results = section(&id, &title, Vec::<Block>::new());
    for model in view.models() {
        let own = view.matrix.sections.iter();
        let own: Vec<&MatrixSection> =
            own.filter(|it| it.context == context && it.model == model).collect();
        if !own.is_empty() {
            let id = format!("{id}-model-{model}");
            results.sections.push(section(&id, view.model(model), model_results(view, &id, &own)));
        }
    }
    results
}

fn model_results(view: View<'_>, id: &str, own: &[&MatrixSection]) -> Vec<Block> {
    let rows: Vec<&MatrixRow> = own.iter().flat_map(|one| view.rows_at(&one.rows)).collect();
    let lines = own.iter().flat_map(|one| result_lines(view, one, 1 < own.len()));
    let lines: Vec<Text> = lines.collect();
    let mut blocks = Vec::from_iter((!lines.is_empty()).then_some(Block::List(lines)));
    let mut inner = bars(view, MatrixFigure::GenerationTps, id, &rows);
    for (index, one) in own.iter().enumerate() {
        let level = Some(one.level);
        let caption = view.title((one.model, one.context), one.strategy, &one.flags, level);
        let id = format!("{id}-table-{index}");
        inner.push(Block::Table(rows_table(view, (id, caption), false, view.rows_at(&one.rows))));
    }
    inner.extend(more_figures(view, id, &rows));
    let measured = rows.iter().filter(|row| !row.points.is_empty()).count();
    let summary = format!("Tables and charts: {measured} of {} rows measured", rows.len());
    blocks.extend(folded(view.is_large(), summary, inner));
    blocks
}

/// One chart for each load.
fn bars(view: View<'_>, figure: MatrixFigure, id: &str, rows: &[&MatrixRow]) -> Vec<Block> {
    let levels = distinct(rows.iter().map(|row| row.level));
    let chart = |(index, level): (usize, &Level)| {
        let own: Vec<&MatrixRow> = rows.iter().filter(|row| row.level == *level).copied().collect();
        let first = own.first()?;
        let mut subject = vec![view.model(first.model)];
        subject.extend(first.context.map(context_words));
        subject.extend((1 < levels.len()).then(|| level_name(*level)));
        let id = format!("{id}-{}-{index}", figure_names(figure).1);
        charts::bars(view, figure, (&id, &subject.join(", ")), &own).map(Block::from)
    };
    levels.iter().enumerate().filter_map(chart).collect()
}

/// Charts of the other figures and the server's gauges, folded. Of many rows only some are drawn,
/// so that the page stays small.
fn more_figures(view: View<'_>, id: &str, rows: &[&MatrixRow]) -> Vec<Block> {
    let is_huge = 300 < view.matrix.rows.len();
    let drawn_max = match (is_huge, view.is_large()) {
        (true, _) => 1,
        (false, true) => 2,
        (false, false) => FIGURES.len(),
    };
    let figures = FIGURES.into_iter().skip(1).take(drawn_max);
    let mut blocks: Vec<Block> = figures.flat_map(|figure| bars(view, figure, id, rows)).collect();
    // The CSV file has the gauges as well.
    let gauges = gauges_table(view, format!("{id}-server"), rows).filter(|_| !is_huge);
    let gauges = Vec::from_iter(gauges.map(Block::Table));
    let summary = "Server gauges: running, waiting and cache".to_owned();
    blocks.extend(folded(view.is_large() && !gauges.is_empty(), summary, gauges));
    let summary = "Other figures as charts, and server gauges".to_owned();
    folded(!view.is_large() && !blocks.is_empty(), summary, blocks)
}

/// The best rows, and those with failures.
fn result_lines(view: View<'_>, section: &MatrixSection, several: bool) -> Vec<Text> {
    let which = view.distinction(section.strategy, &section.flags, Some(section.level)).join(", ");
    let which = if several && !which.is_empty() { format!(" ({which})") } else { String::new() };
    let best = section.highest.iter().filter_map(|found| {
        let row = view.row(found.row)?;
        let same = if view.is_as_tensor(row) { " (the same server as tensor)" } else { "" };
        let (preset, best) = (view.preset(row.preset), best_of(found.figure));
        Some(format!("{best} {preset}{same} with {}", view.amount(found.figure, found.value)))
    });
    let named = |row: &MatrixRow, why: String| format!("{} ({why})", view.preset(row.preset));
    let errors = section.errors.iter().filter_map(|(row, _)| view.row(*row));
    let errors: Vec<String> = errors.map(|row| named(row, errors_words(row))).collect();
    let failed = view.rows_at(&section.failed).into_iter();
    let failed: Vec<String> = failed.map(|row| named(row, short(row))).collect();
    let lines = [("Best", best.join("; ")), ("Errors", list(&errors)), ("Failed", list(&failed))];
    let lines = lines.into_iter().filter(|(_, words)| !words.is_empty());
    lines.map(|(label, words)| labelled(&format!("{label}{which}"), &(words + "."))).collect()
}

/// A number of a row, marked where the row has a reservation.
fn number(row: &MatrixRow, across: &AcrossRuns) -> Cell {
    if let Some(reason) = nothing(row) {
        return missing(&reason);
    }
    let mut cell = across_cell(across, None, None);
    if across.mean.is_some() {
        // Sorted by the printed digits: the others would double the size of a large page.
        cell.number = cell.text.replace(',', "").parse().ok();
        if let Some(reason) = reservation(row) {
            let detail = cell.detail.take().filter(|detail| !detail.is_empty());
            let detail = detail.into_iter().chain([reason.clone()]).try_join("; ");
            cell = cell.detailed(detail).doubted(Some(reason));
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
    let by = match view.tps_by {
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
        .right("Errors", |row| match nothing(row).filter(|_| row.points.is_empty()) {
            Some(reason) => missing(&reason),
            None => Cell {
                detail: (0 < row.errors).then(|| format!("of {} requests", count(row.requests))),
                ..Cell::count(row.errors)
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
    for (title, _, get, write) in GAUGES {
        let cell = move |row: &&MatrixRow| match (get(row), nothing(row)) {
            (None, Some(reason)) => missing(&reason),
            (None, None) => missing("not reported by this server"),
            // Three decimals keep a large page small.
            (Some(value), _) => Cell::number(write(value), (value * 1e3).round() / 1e3),
        };
        columns = columns.right(title, cell).only_if(rows.iter().any(|row| get(row).is_some()));
    }
    let table = columns.table(id, "Server gauges (mean)", rows.iter().copied());
    let note = "Means over the readings during the runs. The stored runs have the variation.";
    (1 < table.columns.len()).then(|| Table { notes: vec![plain(note)], ..table })
}

/// Tensor and pipeline parallelism side by side, and the speed-up.
fn strategies(view: View<'_>) -> Option<Section> {
    let tables = &view.matrix.strategies;
    let mut blocks = vec![Block::paragraph(text("strategies-note"))];
    for (index, one) in tables.iter().enumerate() {
        let title = view.title((one.model, one.context), None, &one.flags, Some(one.level));
        let summary = format!("{title}: generation {}", span_words(compared(one)));
        let mut inner = vec![Block::Table(strategies_table(view, one, index, &title))];
        inner.extend(charts::speedups(view, one, index, &title).map(Block::from));
        blocks.extend(folded(OPEN_MAX < tables.len(), summary, inner));
    }
    let title = "Tensor vs. pipeline parallelism";
    (!tables.is_empty()).then(|| section("strategies", title, blocks))
}

/// Speed-ups between two different deployments without errors.
fn compared(table: &StrategyTable) -> impl Iterator<Item = &Speedup> + Clone {
    let rows = table.rows.iter().filter(|row| !row.same_deployment);
    rows.filter_map(|row| row.generation_speedup.as_ref())
}

fn span_words<'a>(found: impl Iterator<Item = &'a Speedup> + Clone) -> String {
    let shares = found.map(|found| found.share);
    match (shares.clone().reduce(f64::min), shares.reduce(f64::max)) {
        (Some(low), Some(high)) if low.to_bits() == high.to_bits() => signed_percent(low),
        (Some(low), Some(high)) => format!("{} to {}", signed_percent(low), signed_percent(high)),
        _ => "not compared".to_owned(),
    }
}

/// The range of all speed-ups, for the summary.
fn strategies_sentence(view: View<'_>) -> Option<Text> {
    let all = view.matrix.strategies.iter().flat_map(compared);
    let intervals = || all.clone().filter_map(|found| found.interval);
    let certainty = if intervals().next().is_none() {
        let mut rows = view.matrix.strategies.iter().flat_map(|table| &table.rows);
        let pair = rows.find(|row| !row.same_deployment && row.generation_speedup.is_some());
        no_interval(view, pair?).to_owned()
    } else {
        let faster = intervals().filter(|interval| 0.0 < interval.low).count();
        let slower = intervals().filter(|interval| interval.high < 0.0).count();
        fill("strategies-certainty", &[&faster, &slower])
    };
    let (span, pairs) = (span_words(all.clone()), all.count());
    let words = format!("generation {span} over {pairs} pairs on several GPUs; {certainty}");
    Some(labelled("Tensor vs. pipeline parallelism", &(words + ".")))
}

fn strategies_table(view: View<'_>, table: &StrategyTable, index: usize, title: &str) -> Table {
    type Side = fn(&StrategyRow) -> Option<u32>;
    let get = |side: Side, figure| {
        move |row: &&StrategyRow| {
            let Some(found) = side(row).and_then(|side| view.row(side)) else {
                return missing("not in the matrix");
            };
            let mut cell = number(found, view.figure(found, figure));
            // Another table has its interval.
            cell.detail = cell.detail.filter(|_| cell.doubtful || cell.number.is_none());
            cell
        }
    };
    let speedup = |row: &StrategyRow, found: Option<&Speedup>| {
        let Some(found) = found else { return missing(ONE_SIDE) };
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
        let mut inner = Vec::from_iter(chart.map(Block::from));
        let id = (format!("loads-{index}-table"), title.clone());
        inner.push(Block::Table(rows_table(view, id, true, rows)));
        blocks.extend(folded(OPEN_MAX < tables.len(), title, inner));
    }
    (!blocks.is_empty()).then(|| section("loads", "Results by load", blocks))
}

/// How the numbers of the page are computed, and their limits: the lines of `method.txt` that apply.
fn method(view: View<'_>) -> Section {
    let applies = |when: &str| match when {
        "server" => view.tps_by == TpsBy::Server,
        "client" => view.tps_by == TpsBy::Client,
        "once" => view.set.asked.runs < 2,
        "repeated" => 2 <= view.set.asked.runs,
        "cost" => view.has(MatrixFigure::Cost),
        "energy" => view.has(MatrixFigure::Energy),
        _ => true,
    };
    let lines = include_str!("matrix/method.txt").lines().filter_map(|line| {
        let (when, line) = line.split_once(" | ")?;
        let (label, words) = line.split_once(" | ")?;
        applies(when).then(|| labelled(label, &format!("{words}.")))
    });
    section("method", "Method", vec![Block::List(lines.collect())])
}

/// The blocks, folded where `fold` is set.
fn folded(fold: bool, summary: String, blocks: Vec<Block>) -> Vec<Block> {
    if fold { vec![Block::Details { summary, blocks }] } else { blocks }
}

/// Limit for names of presets, models and flags.
const NAME_CHARS_MAX: usize = 60;
const REASON_CHARS_MAX: usize = 300;

/// A matrix together with the set that it belongs to.
#[derive(Clone, Copy)]
struct View<'a> {
    set: &'a SetSummary,
    matrix: &'a MatrixSummary,
    /// The source of the token counts of all rows.
    tps_by: TpsBy,
}

impl<'a> View<'a> {
    fn new(set: &'a SetSummary, matrix: &'a MatrixSummary) -> Self {
        Self { set, matrix, tps_by: matrix.tps_by() }
    }

    fn row(&self, index: u32) -> Option<&'a MatrixRow> {
        self.matrix.rows.get(index as usize)
    }

    fn rows_at(&self, indices: &[u32]) -> Vec<&'a MatrixRow> {
        indices.iter().filter_map(|index| self.row(*index)).collect()
    }

    fn preset(&self, index: u32) -> String {
        let preset = self.matrix.presets.get(index as usize);
        preset.map_or_else(|| NOTHING.to_owned(), |it| terminal_line(&it.name, NAME_CHARS_MAX))
    }

    /// The GPUs of a preset, such as `2 × NVIDIA L40S`, as far as the matrix file names them.
    fn gpus(&self, index: u32) -> Option<String> {
        let preset = self.matrix.presets.get(index as usize)?;
        let kind = terminal_line(preset.gpu_type.as_ref()?, NAME_CHARS_MAX);
        Some(preset.gpus.map_or_else(|| kind.clone(), |number| format!("{number} × {kind}")))
    }

    /// The indices of the models.
    fn models(&self) -> impl Iterator<Item = u32> + use<'a> {
        (0_u32..).zip(&self.matrix.models).map(|(index, _)| index)
    }

    fn model(&self, index: u32) -> String {
        let model = self.matrix.models.get(index as usize);
        let name =
            model.map_or(NOTHING, |it| if it.label.is_empty() { &it.name } else { &it.label });
        terminal_line(name, NAME_CHARS_MAX)
    }

    /// The deployment among those of the same model and context: `H100X2 · tensor`.
    fn deployment(&self, row: &MatrixRow) -> String {
        [self.preset(row.preset)].into_iter().chain(variant(row)).join(" · ")
    }

    /// The whole cell with its load: `H100X2 · Llama-3B · 2,048 tokens · tensor · c=10`.
    fn cell(&self, row: &MatrixRow) -> String {
        let names = [self.preset(row.preset), self.model(row.model)].into_iter();
        let context = row.context.map(context_words);
        names.chain(context).chain(variant(row)).chain(self.level(row.level)).join(" · ")
    }

    /// A heading for rows that share these properties: `Llama-3B, 2,048 tokens, tensor parallel`.
    fn title(
        &self,
        (model, context): (u32, Option<u32>),
        strategy: Option<Strategy>,
        flags: &[(String, String)],
        level: Option<Level>,
    ) -> String {
        let parts = [self.model(model)].into_iter().chain(context.map(context_words));
        parts.chain(self.distinction(strategy, flags, level)).join(", ")
    }

    /// The part of a title that differs between rows of the same model and context.
    fn distinction(
        &self,
        strategy: Option<Strategy>,
        flags: &[(String, String)],
        level: Option<Level>,
    ) -> Vec<String> {
        let strategy = strategy.map(|strategy| format!("{} parallel", variant_name(&strategy)));
        let flags = flags_words(flags.iter().map(|(name, value)| (name, value)));
        let level = level.and_then(|level| self.level(level));
        strategy.into_iter().chain(flags).chain(level).collect()
    }

    /// The name of a level; `None` where all rows have the same.
    fn level(&self, level: Level) -> Option<String> {
        let first = self.matrix.rows.first().map(|row| row.level);
        let several = self.matrix.rows.iter().any(|row| Some(row.level) != first);
        several.then(|| level_name(level))
    }

    /// Whether context lengths are varied.
    fn has_contexts(&self) -> bool {
        let first = self.matrix.rows.first().map(|row| row.context);
        self.matrix.rows.iter().any(|row| Some(row.context) != first)
    }

    /// Whether the page shows only winners and failures, and folds the other rows.
    const fn is_large(&self) -> bool {
        48 < self.matrix.rows.len()
    }

    fn figure<'r>(&self, row: &'r MatrixRow, figure: MatrixFigure) -> &'r AcrossRuns {
        figure.in_row(row, self.tps_by)
    }

    /// The mean of a figure; `None` where every request of the row failed.
    fn mean(&self, row: &MatrixRow, figure: MatrixFigure) -> Option<f64> {
        self.figure(row, figure).mean.filter(|_| nothing(row).is_none())
    }

    /// The best of some winners of a figure.
    fn best_winner(
        &self,
        figure: MatrixFigure,
        is_own: impl Fn(&Winner) -> bool,
    ) -> Option<&'a Winner> {
        let own = || self.matrix.winners.iter().filter(|it| it.figure == figure && is_own(it));
        let rows = own().filter_map(|winner| Some((winner.row, self.row(winner.row)?)));
        let (best, _) = figure.best(rows, self.tps_by)?;
        own().find(|winner| winner.row == best)
    }

    /// The lead of a winner, behind a comma: `, 4.2 % ahead of H100X2`.
    fn lead(&self, winner: &Winner) -> String {
        match winner.ahead.as_ref().zip(self.runner_up(winner)) {
            None => String::new(),
            Some((ahead, next)) if is_tie(ahead) => format!(", tied with {next}"),
            Some((ahead, next)) => {
                let share = signed_percent(ahead.share);
                format!(", {} ahead of {next}", share.trim_start_matches('+'))
            }
        }
    }

    /// The runner-up of a winner.
    fn runner_up(&self, winner: &Winner) -> Option<String> {
        Some(self.deployment(self.row(winner.runner_up?)?))
    }

    /// Whether it is a pipeline on one GPU, which is the same server as with tensor parallelism.
    fn is_as_tensor(&self, row: &MatrixRow) -> bool {
        row.has_tensor_twin(&self.matrix.rows, &self.matrix.presets)
    }

    /// Whether any row has the figure.
    fn has(&self, figure: MatrixFigure) -> bool {
        self.matrix.rows.iter().any(|row| self.mean(row, figure).is_some())
    }

    fn unit(&self, figure: MatrixFigure) -> String {
        match figure {
            MatrixFigure::PromptTps | MatrixFigure::GenerationTps => "tok/s".to_owned(),
            MatrixFigure::Latency => "s".to_owned(),
            MatrixFigure::Ttft => "ms".to_owned(),
            MatrixFigure::Cost => match self.currency() {
                Some(currency) => format!("{currency} per million generated tokens"),
                None => "per million generated tokens (in the prices' unit)".to_owned(),
            },
            MatrixFigure::Energy => "J per generated token".to_owned(),
        }
    }

    /// How many rows were measured, and how many of the others there are of each kind; empty where every
    /// row was measured without failures.
    fn tally(&self) -> (String, String) {
        let number = |is: fn(&RowEnding) -> bool| {
            self.matrix.rows.iter().filter(|row| is(&row.ending)).count() as u64
        };
        let kinds = [
            (number(|ending| matches!(ending, RowEnding::WithErrors)), "with failed requests"),
            (number(|ending| matches!(ending, RowEnding::Partly { .. })), "with failed runs"),
            (number(|ending| matches!(ending, RowEnding::Failed { .. })), "failed"),
            (number(|ending| matches!(ending, RowEnding::Missing)), "not measured yet"),
        ];
        let measured = self.matrix.rows.len() as u64 - kinds[2].0 - kinds[3].0;
        let troubles = kinds.iter().filter(|(number, _)| 0 < *number);
        let troubles = troubles.map(|(number, kind)| format!("{} {kind}", count(*number)));
        (count(measured), troubles.join(", "))
    }

    /// A value of a figure with its unit.
    fn amount(&self, figure: MatrixFigure, value: f64) -> String {
        format!("{} {}", fmt::number(value), self.unit(figure))
    }

    /// The currency of the prices, where the matrix file names it.
    fn currency(&self) -> Option<String> {
        let currency = self.matrix.currency.as_deref().filter(|currency| !currency.is_empty());
        currency.map(|currency| terminal_line(currency, 12))
    }
}

/// The name of a figure, and the same in an id.
const fn figure_names(figure: MatrixFigure) -> (&'static str, &'static str) {
    match figure {
        MatrixFigure::PromptTps => ("Prompt TPS", "prompt"),
        MatrixFigure::GenerationTps => ("Generation TPS", "generation"),
        MatrixFigure::Latency => ("Mean latency", "latency"),
        MatrixFigure::Ttft => ("Mean TTFT", metric::TTFT.name),
        MatrixFigure::Cost => ("Cost", "cost"),
        MatrixFigure::Energy => ("Energy", "energy"),
    }
}

/// The figure inside a sentence.
fn figure_words(figure: MatrixFigure) -> String {
    let (name, _) = figure_names(figure);
    name[..1].to_lowercase() + &name[1..]
}

/// The figure in one or two words.
fn short_name(figure: MatrixFigure) -> String {
    figure_words(figure).trim_start_matches("mean ").to_owned()
}

/// `Highest` or `Lowest`.
fn best_word(figure: MatrixFigure) -> &'static str {
    if figure.better() == Better::Higher { "Highest" } else { "Lowest" }
}

/// `highest generation TPS`.
fn best_of(figure: MatrixFigure) -> String {
    format!("{} {}", best_word(figure).to_lowercase(), figure_words(figure))
}

/// A share in per cent with its sign.
fn signed_percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    let size = percent(share.abs());
    if size.starts_with(['<', '>']) { format!("{sign} {size}") } else { format!("{sign}{size}") }
}

fn context_words(tokens: u32) -> String {
    format!("{} tokens", count(tokens.into()))
}

/// Strategy and flags, where they are varied: `tensor · enforce-eager=true`.
fn variant(row: &MatrixRow) -> Option<String> {
    let strategy = row.strategy.map(|strategy| variant_name(&strategy).to_owned());
    strategy.into_iter().chain(flags_words(&row.flags)).try_join(" · ")
}

fn flags_words<'a>(flags: impl IntoIterator<Item = (&'a String, &'a String)>) -> Option<String> {
    let words = flags.into_iter().map(|(name, value)| format!("{name}={value}")).try_join(" ");
    words.map(|words| terminal_line(&words, NAME_CHARS_MAX))
}

/// Why the numbers of a row are not reliable; `None` where they are.
fn reservation(row: &MatrixRow) -> Option<String> {
    match &row.ending {
        RowEnding::WithErrors => {
            Some(format!("{} failed; excluded from the ranking", errors_words(row)))
        }
        RowEnding::Partly { failure } => {
            let failed = row.failed_points.len();
            let runs = counted((row.points.len() + failed) as u64, "run");
            Some(fill("partly-failed", &[&failed, &runs, &reason(failure)]))
        }
        _ if row.verdict == Some(Verdict::Invalid) => Some("its runs are invalid".to_owned()),
        RowEnding::Clean | RowEnding::Failed { .. } | RowEnding::Missing => None,
    }
}

/// `10 of 100 requests`.
fn errors_words(row: &MatrixRow) -> String {
    format!("{} of {}", count(row.errors), counted(row.requests, "request"))
}

/// Why a row has no numbers at all; `None` where it has.
fn nothing(row: &MatrixRow) -> Option<String> {
    match &row.ending {
        RowEnding::Failed { failure } => Some(reason(failure)),
        RowEnding::Missing => Some("not measured yet".to_owned()),
        RowEnding::WithErrors if has_only_errors(row) => {
            Some(format!("all of {} failed", counted(row.requests, "request")))
        }
        RowEnding::Clean | RowEnding::WithErrors | RowEnding::Partly { .. } => None,
    }
}

const fn has_only_errors(row: &MatrixRow) -> bool {
    0 < row.requests && row.requests <= row.errors
}

/// Whether it was tried and has no numbers.
fn is_lost(row: &MatrixRow) -> bool {
    nothing(row).is_some() && row.ending != RowEnding::Missing
}

/// A failure in one line, limited in length: the text comes from a server.
fn reason(failure: &DeploymentFailure) -> String {
    let what = terminal_line(failure.what.trim(), REASON_CHARS_MAX);
    if what.is_empty() { failure.stage.to_string() } else { format!("{}: {what}", failure.stage) }
}

/// Why a row has no numbers, in two or three words.
fn short(row: &MatrixRow) -> String {
    match row.ending.failure() {
        Some(failure) => failure.in_short(),
        None if has_only_errors(row) => "every request failed".to_owned(),
        None => "not measured yet".to_owned(),
    }
}

/// Whether the lead is too small to be shown.
fn is_tie(ahead: &Speedup) -> bool {
    ahead.share.abs() < 0.001
}

const NOT_COMPARED: &str = "nothing else could be compared";
const ONE_RUN: &str = "one run per side: the variation between starts of the server is not known";
const NO_SPREAD: &str = "all runs gave the same value: the variation by chance is not known";

/// Whether a winner is certain, in two or three words, and why it is not.
const fn certainty_words(certainty: Certainty) -> (&'static str, &'static str) {
    match certainty {
        Certainty::Certain => ("certain", ""),
        Certainty::Undecided => ("undecided", "the runs vary too much to tell which is ahead"),
        Certainty::OneRun => ("one run", ONE_RUN),
        Certainty::NoSpread => ("runs without spread", NO_SPREAD),
        Certainty::Alone => ("alone", NOT_COMPARED),
    }
}
