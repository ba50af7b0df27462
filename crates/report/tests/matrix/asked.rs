//! What the page of a matrix answers first, and that it answers the same in all its places.

use inferometer_analysis::matrix::{MatrixFigure, RowEnding};
use inferometer_model::study::Strategy;
use inferometer_report::document::Span;

use super::*;

fn words(text: &[Span]) -> String {
    let word = |span: &Span| match span {
        Span::Plain(text) | Span::Strong(text) | Span::Code(text) | Span::Link { text, .. } => {
            text.clone()
        }
    };
    text.iter().map(word).collect()
}

fn summary(page: &Document) -> String {
    let blocks = &page.sections[0].blocks;
    assert!(matches!(blocks[0], Block::Figure(_)), "the main chart follows the cards");
    let Block::List(lines) = &blocks[1] else { panic!("no list") };
    lines.iter().map(|line| words(line)).collect::<Vec<_>>().join("\n")
}

fn facts(page: &Document) -> String {
    let mut told = Vec::new();
    for block in blocks(page) {
        if let Block::Facts(facts) = block {
            told.extend(facts.iter().map(|(key, text)| format!("{key}: {}", words(text))));
        }
    }
    told.join("\n")
}

/// Far fewer tokens than the client saw, as of a server that is slow to become idle.
fn halve_the_servers_count(row: &mut MatrixRow) {
    let mean = row.generation_tps.mean.map(|mean| mean / 2.0);
    row.generation_tps.mean = mean;
}

#[test]
fn one_row_without_counters_and_all_rows_are_by_the_client() {
    let mut set = made::tiny();
    for row in rows(&mut set) {
        halve_the_servers_count(row);
    }
    let first = &mut rows(&mut set)[0];
    (first.generation_tps.mean, first.generation_tps.n) = (None, 0);
    let page = page(&set);
    let of_tensor = table(&page, "context-2048-model-0-table-0");
    assert_eq!(of_tensor.columns[2].title, "Generation TPS by the client");
    let own = &set.matrix.as_ref().unwrap().rows;
    let number = |place: usize| of_tensor.rows[place][2].number.unwrap();
    for (place, row) in
        own.iter().filter(|row| row.strategy == Some(Strategy::Tensor)).take(2).enumerate()
    {
        let client = row.client_generation_tps.mean.unwrap();
        assert!((number(place) - client).abs() < 0.1, "{} is not {client}", number(place));
    }
    let html = html::render(&page);
    assert!(html.contains("the two are not mixed"));
    assert!(terminal(&set).contains("tokens counted by the client"));
}

#[test]
fn the_summary_names_what_the_cards_show() {
    let set = made::small();
    let page = page(&set);
    let lines = summary(&page);
    let card = &page.lead.headline[1];
    let line = lines.lines().find(|line| line.starts_with("Qwen-1.5B:")).unwrap();
    assert!(card.detail.contains("c=40"), "{card:?}");
    assert!(line.contains(&card.value) && line.contains("at c=40"), "{line}\n{card:?}");
}

#[test]
fn a_lead_too_small_to_show_is_a_tie() {
    let mut set = made::small();
    for winner in &mut set.matrix.as_mut().unwrap().winners {
        if let Some(ahead) = &mut winner.ahead {
            ahead.share = 0.0004;
        }
    }
    let lines = summary(&page(&set));
    assert!(lines.contains(", tied with ") && !lines.contains(" ahead of "), "{lines}");
    assert!(terminal(&set).contains("tie"), "{}", terminal(&set));
}

#[test]
fn the_main_question_needs_no_click_however_many_rows_there_are() {
    let page = page(&made::large());
    let open = page.sections[2]
        .blocks
        .iter()
        .find_map(|block| if let Block::Table(table) = block { Some(table) } else { None });
    let open = open.unwrap();
    assert_eq!((open.id.as_str(), open.rows.len()), ("winners-generation", 24));
    let heads: Vec<&str> = open.columns.iter().map(|column| column.title.as_str()).collect();
    assert_eq!(heads[..4], ["Model", "Context", "Value", "Best"]);
    let has = |slug: &str| charts(&page).iter().any(|chart| chart.id.ends_with(slug));
    assert!(has("-prompt-0") && has("-generation-0"));
}

#[test]
fn loads_side_by_side_have_all_columns_of_a_section() {
    let page = page(&made::small());
    let loads = table(&page, "loads-0-table");
    let section = table(&page, "context-2048-model-0-table-0");
    let heads = |table: &Table| -> Vec<String> {
        table.columns.iter().map(|column| column.title.clone()).collect()
    };
    let mut wanted = heads(section);
    wanted.insert(1, "Load".to_owned());
    assert_eq!(heads(loads), wanted);
    assert_eq!((loads.rows[0][1].text.as_str(), loads.rows[1][1].text.as_str()), ("c=10", "c=40"));
    let chart = charts(&page).into_iter().find(|chart| chart.id == "loads-0").unwrap();
    let Plot::Lines(lines) = &chart.plot else { panic!("{:?}", chart.plot) };
    let panels: Vec<&str> = lines.panels.iter().map(|panel| panel.heading.as_str()).collect();
    assert!(panels.contains(&"Generation TPS of a request"), "{panels:?}");
}

#[test]
fn the_method_is_on_the_page() {
    let page = page(&made::large());
    let told = facts(&page);
    for words in [
        "Prompt: Compare a few ways to <cut> a web shop into services",
        "temperature=0.7",
        "dtype=\"half\"",
        "512 at 2,048 of context; 2,048 at 8,192, 16,384, 32,768, 65,536 and 131,072 of context",
    ] {
        assert!(told.contains(words), "no {words} in\n{told}");
    }
    assert!(summary(&page).contains("not the length of the prompts (10 words)"));
    assert_eq!(table(&page, "presets").rows[0][2].text, "gpu-small");
}

#[test]
fn long_prompts_need_no_word_about_the_context() {
    let mut set = made::tiny();
    set.matrix.as_mut().unwrap().method.prompt_tokens_max = Some(1_000);
    assert!(!summary(&page(&set)).contains("Context lengths"));
}

#[test]
fn small_numbers_keep_their_digits_and_large_ones_are_separated() {
    let mut set = made::tiny();
    let row = &mut rows(&mut set)[0];
    row.latency_s.mean = Some(0.018_31);
    row.generation_tps.mean = Some(12_345.6);
    let page = page(&set);
    let row = &table(&page, "context-2048-model-0-table-0").rows[0];
    assert_eq!((row[2].text.as_str(), row[2].number), ("12,346", Some(12_346.0)));
    assert_eq!(row[3].text, "0.018");
}

#[test]
fn a_row_of_failed_requests_alone_has_no_numbers() {
    let mut set = made::tiny();
    let row = &mut rows(&mut set)[0];
    (row.ending, row.errors) = (RowEnding::WithErrors, row.requests);
    row.generation_tps.mean = Some(0.0);
    let page = page(&set);
    let row = &table(&page, "context-2048-model-0-table-0").rows[0];
    assert_eq!((row[2].text.as_str(), row.last().unwrap().text.as_str()), ("–", "300"));
    assert_eq!(row[2].detail.as_deref(), Some("all of 300 requests failed"));
    let chart = charts(&page)[0];
    let Plot::Bars(bars) = &chart.plot else { panic!("{:?}", chart.plot) };
    assert!(bars.groups[0].bars[0].failed && bars.groups[0].bars[0].value.is_none());
    assert!(terminal(&set).contains("every request failed"));
}

#[test]
fn prices_without_a_currency_are_in_their_own_unit_and_without_prices_there_is_no_column() {
    let mut set = made::tiny();
    set.matrix.as_mut().unwrap().currency = None;
    let text = markdown::render(&page(&set)).text;
    assert!(!text.contains("money") && text.contains("in the prices' unit"));
    for preset in &mut set.matrix.as_mut().unwrap().presets {
        preset.price_per_hour = None;
    }
    let page = page(&set);
    let heads = &table(&page, "presets").columns;
    assert!(heads.iter().all(|column| !column.title.contains("Price")), "{heads:?}");
}

#[test]
fn bars_without_an_interval_do_not_speak_of_one() {
    let mut set = made::large();
    for row in rows(&mut set) {
        row.generation_tps.within = None;
    }
    let page = page(&set);
    let of = |slug: &str| {
        let found = charts(&page).into_iter().find(|chart| chart.id.ends_with(slug));
        found.unwrap().n.clone()
    };
    assert!(of("-generation-0").contains("no interval is known"), "{}", of("-generation-0"));
    assert!(of("-prompt-0").contains("95 % within it"), "{}", of("-prompt-0"));
}

#[test]
fn a_pipeline_on_one_gpu_is_told_to_be_the_server_that_tensor_is() {
    let page = page(&made::large());
    let chart = charts(&page).into_iter().find(|it| it.id == "overview-model-0-load-0").unwrap();
    let Plot::Tiles(tiles) = &chart.plot else { panic!("{:?}", chart.plot) };
    let labels: Vec<&str> = tiles.rows.iter().map(|row| row.label.as_str()).collect();
    assert!(labels.contains(&"gpu-small · pipeline (as tensor)"), "{labels:?}");
    assert!(labels.contains(&"gpu-medium · pipeline"), "{labels:?}");
}

#[test]
fn a_sped_up_engine_is_told_and_so_is_its_cost() {
    let mut set = made::tiny();
    for condition in &mut set.conditions {
        let subject = condition.subject.as_mut().unwrap();
        (subject.embedded, subject.engine_speed) = (true, Some(20.0));
    }
    let text = terminal(&set);
    assert!(text.contains("at the embedded engine, SPED UP 20 times"), "{text}");
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("no server costs so little"), "{text}");
}

#[test]
fn a_simulation_without_a_run_names_no_profile() {
    let mut set = made::tiny();
    set.simulated = true;
    for condition in &mut set.conditions {
        condition.subject = None;
    }
    let text = terminal(&set);
    assert!(text.starts_with("SIMULATED in virtual time: no server was measured.\n"), "{text}");
}

#[test]
fn answers_in_a_terminal_have_their_context_and_load() {
    let large = terminal(&made::large());
    assert!(large.contains("context") && large.contains("131,072"), "{large}");
    assert!(!large.contains("latency"), "only the first question:\n{large}");
    let mut set = made::small();
    let matrix = set.matrix.as_mut().unwrap();
    matrix.winners.retain(|winner| winner.figure == MatrixFigure::GenerationTps);
    let small = terminal(&set);
    assert!(small.contains("load") && small.contains("c=40"), "{small}");
}
