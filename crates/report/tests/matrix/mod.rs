//! The page of a matrix: what it says, in what order, and that it stays small.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod asked;
mod made;

use std::collections::BTreeSet;

use inferometer_analysis::matrix::{MatrixRow, RowEnding};
use inferometer_analysis::set::SetSummary;
use inferometer_model::deployment::DepartureEnding;
use inferometer_report::chart::{Chart, Plot};
use inferometer_report::document::{Block, Document, Section, Table, html, markdown};
use inferometer_report::narrative::Narrative;
use inferometer_report::pages::{self, SuiteInput};
use inferometer_report::terminal::Style;
use inferometer_report::terminal::set::{SetFiles, render};

fn page(set: &SetSummary) -> Document {
    pages::of_set(&SuiteInput { set, points: &[], narrative: &Narrative::default() })
}

/// Every block of the page, folded away or not.
fn blocks(document: &Document) -> Vec<&Block> {
    fn of_block<'a>(block: &'a Block, found: &mut Vec<&'a Block>) {
        found.push(block);
        if let Block::Details { blocks, .. } = block {
            for block in blocks {
                of_block(block, found);
            }
        }
    }
    fn of_section<'a>(section: &'a Section, found: &mut Vec<&'a Block>) {
        for block in &section.blocks {
            of_block(block, found);
        }
        for inner in &section.sections {
            of_section(inner, found);
        }
    }
    let mut found = Vec::new();
    for section in &document.sections {
        of_section(section, &mut found);
    }
    found
}

fn table<'a>(document: &'a Document, id: &str) -> &'a Table {
    let table = blocks(document).into_iter().find_map(|block| {
        let Block::Table(table) = block else { return None };
        (table.id == id).then_some(table)
    });
    table.unwrap_or_else(|| panic!("no table {id}"))
}

fn charts(document: &Document) -> Vec<&Chart> {
    let mut charts = Vec::new();
    for block in blocks(document) {
        if let Block::Figure(figure) = block {
            charts.push(&figure.chart);
        }
    }
    charts
}

fn rows(set: &mut SetSummary) -> &mut Vec<MatrixRow> {
    &mut set.matrix.as_mut().unwrap().rows
}

#[test]
fn the_best_stands_first_and_each_context_has_its_models() {
    let page = page(&made::large());
    let titles: Vec<&str> = page.sections.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(
        titles,
        [
            "Summary",
            "Generation TPS by preset and context length",
            "Winners",
            "Setup",
            "Context of 2,048 tokens",
            "Context of 8,192 tokens",
            "Context of 16,384 tokens",
            "Context of 32,768 tokens",
            "Context of 65,536 tokens",
            "Context of 131,072 tokens",
            "Tensor vs. pipeline parallelism",
            "Failures",
            "Deployments",
            "Validity",
            "Method",
            "Provenance",
        ]
    );
    let models: Vec<&str> =
        page.sections[4].sections.iter().map(|one| one.title.as_str()).collect();
    assert_eq!(models, ["Qwen-1.5B", "Llama-3B", "Llama-8B", "Qwen-32B"]);
    let cards: Vec<&str> = page.lead.headline.iter().map(|card| card.label.as_str()).collect();
    assert_eq!(cards[..2], ["Measured", "Qwen-1.5B: highest generation TPS"]);
    let doubt = page.lead.headline[1].doubt.as_deref().unwrap();
    assert!(doubt.contains("one run"), "{doubt}");
}

#[test]
fn a_page_of_384_rows_can_be_sent_and_has_all_its_charts() {
    let page = page(&made::large());
    let html = html::render(&page);
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    assert!(!html.contains("The chart is left out"), "a chart is missing");
    assert_eq!(html, html::render(&self::page(&made::large())), "the same numbers, the same bytes");
    // What is open without a click is read in a few screens.
    let open = page.sections.iter().flat_map(|one| &one.sections).flat_map(|one| &one.blocks);
    let is_table = |block: &&Block| matches!(block, Block::Table(_));
    assert_eq!(open.filter(is_table).count(), 0, "tables of many rows are folded away");
}

#[test]
fn every_link_has_a_place_and_no_place_is_there_twice() {
    for set in [made::large(), made::small()] {
        let html = html::render(&page(&set));
        let ids: Vec<&str> =
            html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let known: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(ids.len(), known.len(), "an id is there twice");
        for rest in html.split("href=\"#").skip(1) {
            let to = rest.split('"').next().unwrap();
            assert!(known.contains(to), "{to} is no place");
        }
    }
}

#[test]
fn a_row_with_errors_is_marked_and_one_that_failed_is_a_dash_with_its_reason() {
    let set = made::tiny();
    let page = page(&set);
    let table = table(&page, "context-2048-model-0-table-1");
    let row = |preset: &str| table.rows.iter().find(|row| row[0].text == preset).unwrap();
    let marked = &row("gpu-large")[2];
    assert!(marked.doubtful, "{marked:?}");
    assert_eq!(
        marked.reason.as_deref(),
        Some("10 of 300 requests failed; excluded from the ranking")
    );
    assert_eq!(row("gpu-large").last().unwrap().text, "10");
    let failed = &row("mi210x2")[2];
    assert_eq!(failed.text, "–");
    assert_eq!(failed.detail.as_deref(), Some("not ready in time: no token within 600 s"));
    let clean = &row("gpu-small")[2];
    assert!(!clean.doubtful && clean.detail.as_deref().unwrap().contains("between 3 runs"));
}

#[test]
fn bars_of_both_strategies_stand_side_by_side() {
    let page = page(&made::tiny());
    let charts = charts(&page);
    let chart = charts.iter().find(|it| it.id == "context-2048-model-0-generation-0").unwrap();
    let Plot::Bars(bars) = &chart.plot else { panic!("{:?}", chart.plot) };
    let names: Vec<&str> = bars.groups[0].bars.iter().map(|bar| bar.series.as_str()).collect();
    assert_eq!(names, ["tensor", "pipeline"]);
    let (large, last) = (&bars.groups[2].bars[1], &bars.groups[5].bars[1]);
    assert!(large.hollow && large.value.is_some(), "{large:?}");
    assert!(last.failed && last.value.is_none(), "{last:?}");
    assert!(chart.finding.contains("Outlines: 1 row with failures"), "{}", chart.finding);
}

#[test]
fn a_row_with_errors_is_never_called_the_best() {
    let mut set = made::tiny();
    let best = rows(&mut set).iter_mut().find(|row| row.preset == 4).unwrap();
    best.ending = RowEnding::WithErrors;
    best.errors = 3;
    let page = page(&set);
    let chart = charts(&page)[0];
    assert!(!chart.finding.contains("mi210x1 · tensor"), "{}", chart.finding);
    for card in &page.lead.headline {
        assert!(!card.detail.contains("mi210x1 · tensor"), "{card:?}");
    }
}

#[test]
fn a_speed_up_has_its_sign_and_its_doubt() {
    let mut set = made::tiny();
    let table_of = |set: &SetSummary| table(&page(set), "strategies-0").clone();
    let speed_ups = table_of(&set);
    let of = |preset: &str| {
        speed_ups.rows.iter().find(|row| row[0].text == preset).unwrap().last().unwrap().clone()
    };
    let (alone, pair, failed) = (of("gpu-small"), of("gpu-medium"), of("mi210x2"));
    assert!(pair.text.starts_with('+') && !pair.doubtful, "{pair:?}");
    assert!(pair.detail.unwrap().starts_with("95 % +"));
    assert!(alone.doubtful && alone.reason.unwrap().contains("same deployment"));
    assert_eq!(failed.text, "–");
    let row = &mut set.matrix.as_mut().unwrap().strategies[0].rows[1];
    let found = row.generation_speedup.as_mut().unwrap();
    (found.share, found.interval) = (-0.031, None);
    let slower = table_of(&set).rows[1].last().unwrap().clone();
    assert_eq!(slower.text, "−3.1 %");
    assert!(
        slower.doubtful && slower.reason.unwrap().contains("same value"),
        "its runs are several"
    );
}

#[test]
fn winners_say_how_surely() {
    let page = page(&made::tiny());
    let winners = table(&page, "winners-all");
    let heads: Vec<&str> = winners.columns.iter().map(|column| column.title.as_str()).collect();
    assert_eq!(heads, ["Comparison", "Value", "Best", "Ahead by", "Certainty", "Next"]);
    for row in &winners.rows {
        assert_eq!(row[4].text, "undecided");
        assert!(row[3].doubtful && row[1].detail.is_some(), "{row:?}");
    }
}

#[test]
fn what_servers_and_files_say_stays_words() {
    let mut set = made::tiny();
    let matrix = set.matrix.as_mut().unwrap();
    let evil = "</td><script>alert(1)</script>\u{1b}[2J";
    matrix.presets[0].name = evil.to_owned();
    matrix.models[0].label = evil.to_owned();
    matrix.currency = Some(evil.to_owned());
    matrix.title = evil.to_owned();
    for row in &mut matrix.rows {
        if let RowEnding::Failed { failure } = &mut row.ending {
            failure.what = evil.repeat(1_000);
            failure.log = vec![evil.repeat(1_000); 1_000];
        }
    }
    let page = page(&set);
    let html = html::render(&page);
    assert!(!html.contains("<script>alert") && !html.contains('\u{1b}'));
    assert!(html.len() < 700_000, "{} bytes", html.len());
    let text = markdown::render(&page).text;
    assert!(!text.contains('\u{1b}'));
    // In a fence, as the log is, everything is words.
    let outside: String = text.split("\n```").step_by(2).collect();
    assert!(!outside.contains("<script>alert"), "{outside}");
    assert!(!terminal(&set).contains('\u{1b}'));
}

#[test]
fn servers_that_left_something_behind_are_told_with_a_remedy() {
    let page = page(&made::tiny());
    let notices = blocks(&page).into_iter().filter_map(|block| {
        let Block::Notice { points, remedy: Some(_), .. } = block else { return None };
        Some(format!("{points:?}"))
    });
    let notices: Vec<String> = notices.collect();
    let is_told = |notice: &String| notice.contains("vllm <worker> (4711) is still running");
    assert!(notices.iter().any(is_told), "{notices:?}");
}

#[test]
fn gpu_memory_is_said_to_be_free_where_a_tool_told_so_of_every_server() {
    let told = |set: &SetSummary| format!("{:?}", blocks(&page(set)));
    let mut set = made::tiny();
    assert!(!told(&set).contains("GPU memory free again"), "one of them is still running");
    for record in &mut set.matrix.as_mut().unwrap().deployments {
        let departure = record.departure.as_mut().unwrap();
        (departure.ending, departure.left) = (DepartureEnding::OnRequest, Vec::new());
    }
    assert!(told(&set).contains("no process left, GPU memory free again."));
    set.matrix.as_mut().unwrap().deployments[0].departure.as_mut().unwrap().gpu_memory = None;
    assert!(!told(&set).contains("GPU memory free again"), "nobody told of this one");
}

#[test]
fn a_matrix_without_a_single_measured_row_is_a_page_too() {
    let mut set = made::tiny();
    for row in rows(&mut set) {
        row.ending = RowEnding::Missing;
        row.points.clear();
        row.failed_points.clear();
    }
    let matrix = set.matrix.as_mut().unwrap();
    (matrix.winners, matrix.strategies, matrix.loads) = (Vec::new(), Vec::new(), Vec::new());
    for section in &mut matrix.sections {
        section.highest.clear();
    }
    matrix.deployments.clear();
    let page = page(&set);
    assert!(page.lead.headline[0].doubt.as_deref().unwrap().contains("12 not measured yet"));
    assert!(html::render(&page).contains("nothing can be compared"));
}

fn terminal(set: &SetSummary) -> String {
    let files = SetFiles {
        set: "runs/20260102-030405-set1".to_owned(),
        summary: Some("runs/20260102-030405-set1/summary.json".to_owned()),
        ..SetFiles::default()
    };
    let page = render(set, &files, Style::Plain);
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    page
}

#[test]
fn the_terminal_page_has_every_row_of_a_small_matrix() {
    insta::assert_snapshot!(terminal(&made::tiny()));
}

#[test]
fn the_terminal_page_of_a_large_matrix_is_no_longer() {
    let page = terminal(&made::large());
    assert!(page.lines().count() < 60, "{page}");
    assert!(page.contains("66 rows out of memory"), "{page}");
}
