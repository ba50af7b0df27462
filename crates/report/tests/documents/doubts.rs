//! What pages say of numbers that are not to be relied on.

use inferometer_analysis::set::{Contaminated, PointResult, Reached, SetSummary};
use inferometer_analysis::{LoadFacts, RateFacts, Severity, Verdict, Warning};
use inferometer_model::spec::Arrivals;
use inferometer_model::system::ServerFacts;
use inferometer_report::document::{Block, Document, Mood, Section, Span, Table, Text};
use inferometer_report::document::{html, markdown};
use inferometer_report::narrative::Narrative;
use inferometer_report::pages::{self, SuiteInput};

use crate::documents::made::suite;

fn page_of(set: &SetSummary, points: &[PointResult]) -> Document {
    pages::suite(&SuiteInput { set, points, narrative: &Narrative::default() })
}

fn words(text: &Text) -> String {
    let word = |span: &Span| match span {
        Span::Plain(text) | Span::Strong(text) | Span::Code(text) | Span::Link { text, .. } => {
            text.clone()
        }
    };
    text.iter().map(word).collect()
}

fn all_blocks<'a>(sections: &'a [Section], found: &mut Vec<&'a Block>) {
    for section in sections {
        found.extend(&section.blocks);
        all_blocks(&section.sections, found);
    }
}

fn table<'a>(page: &'a Document, id: &str) -> &'a Table {
    let mut blocks = Vec::new();
    all_blocks(&page.sections, &mut blocks);
    let tables = blocks.into_iter().filter_map(|block| {
        let Block::Table(table) = block else { return None };
        Some(table)
    });
    tables.into_iter().find(|table| table.id == id).unwrap()
}

fn notices(page: &Document) -> Vec<(Mood, String, usize)> {
    let mut blocks = Vec::new();
    all_blocks(&page.sections, &mut blocks);
    let told = |block: &&Block| {
        let Block::Notice { mood, text, points, .. } = block else { return None };
        Some((*mood, words(text), points.len()))
    };
    blocks.iter().filter_map(told).collect()
}

fn met(row: u32, suspected: bool, sent_before: Vec<u32>) -> Contaminated {
    Contaminated {
        row,
        suspected,
        same_data: false,
        cached_share: (!suspected).then_some(0.98),
        pp: Some(9_000.0),
        pp_cold: None,
        cold: None,
        ttft_ms_mean: Some(115.0),
        ttft_ms_p50: Some(135.0),
        sent_before,
    }
}

/// Known at c=4, suspected at c=8 and of the row Decode.
fn warm() -> (SetSummary, Vec<PointResult>) {
    let (mut set, points) = suite();
    set.suite.as_mut().unwrap().contaminated =
        vec![met(1, true, Vec::new()), met(3, false, vec![0, 1, 2]), met(4, true, vec![0, 1, 3])];
    set.verdict = Verdict::Degraded;
    set.warnings = vec![Warning {
        key: "warm-cache".to_owned(),
        check: None,
        severity: Severity::Degraded,
        text: format!("{}; it reads at 9000 tokens/s; it was sent before", "long ".repeat(40)),
        remedy: "fresh prompts".to_owned(),
    }];
    (set, points)
}

#[test]
fn what_is_known_of_a_warm_cache_is_told_apart_from_what_is_suspected() {
    let (set, points) = warm();
    let page = page_of(&set, &points);
    let notices = notices(&page);
    let (mood, text, _) =
        notices.iter().find(|(_, text, _)| text.contains("describe a warm prefix cache")).unwrap();
    assert_eq!(*mood, Mood::Bad);
    assert!(text.contains("1 of 3 levels found their prompts there (c=4)"), "{text}");
    assert!(text.contains("1 of 3 levels had so fast a prefill"), "{text}");
    assert!(text.contains("were probably in the prefix cache") && text.contains("(c=8)"), "{text}");
    let evidence = table(&page, "cache-evidence");
    let senders = |row: usize| evidence.rows[row].last().unwrap();
    assert!(
        senders(1).detail.as_deref().unwrap().contains("only its speed is suspicious"),
        "{:?}",
        senders(1)
    );
    assert_eq!(senders(0).detail.as_deref(), Some("its prompts were not in the cache"));
    assert_eq!(senders(3).text, "all before it");
    assert_eq!(senders(4).text, "One User, Decode and 1 other");
    let scaling = table(&page, "concurrency-scaling");
    let reasons: Vec<Option<&str>> =
        scaling.rows.iter().map(|row| row[0].detail.as_deref()).collect();
    assert_eq!(reasons[0], None);
    assert_eq!(reasons[1], Some("98 % of its prompt tokens came from the prefix cache"));
    assert!(reasons[2].unwrap().contains("were probably in the prefix cache"), "{reasons:?}");
}

#[test]
fn reasons_stand_below_the_tables_of_both_pages() {
    let (set, points) = warm();
    let page = page_of(&set, &points);
    let reason = "98 % of its prompt tokens came from the prefix cache";
    let text = html::render(&page);
    assert!(text.contains(&format!("</sup> {reason}</li>")), "no note below the table");
    assert!(markdown::render(&page).text.contains(&format!("</sup> {reason}")));
    assert!(text.contains("</sup> too few independent values to certify it</li>"));
}

#[test]
fn a_verdict_with_many_reasons_is_a_list_and_its_cards_are_marked() {
    let (set, points) = warm();
    let page = page_of(&set, &points);
    let badge = page.lead.verdict.as_ref().unwrap();
    let text = words(&badge.text);
    assert!(text.contains("The prompts of 1 of 5 rows should have been new"), "{text}");
    assert_eq!(badge.points.len(), 2, "{:?}", badge.points);
    let marked: Vec<&str> = page
        .lead
        .headline
        .iter()
        .filter(|card| card.doubt.is_some())
        .map(|card| card.label.as_str())
        .collect();
    assert_eq!(marked, ["Peak of the scaling levels", "Sweet spot"]);
    let labels: Vec<&str> = page.lead.headline.iter().map(|card| card.label.as_str()).collect();
    assert_eq!(labels[..2], ["Peak of the scaling levels", "Sweet spot"]);
    assert_eq!(labels[2..4], ["One user: TTFT mean", "One user: TPOT mean"]);
    assert!(markdown::render(&page).text.contains("tok/s⚠"), "the mark is missing");
}

#[test]
fn a_level_that_was_not_reached_is_doubtful_and_in_no_sentence() {
    let (mut set, points) = suite();
    let level = &mut set.conditions[2].levels[2];
    level.reached = Some(Reached { asked: 8, most: 5 });
    let page = page_of(&set, &points);
    let cell = &table(&page, "concurrency-scaling").rows[2][0];
    assert!(cell.doubtful);
    let reason = cell.detail.as_deref().unwrap();
    assert!(reason.contains("no more than 5 of 8"), "{reason}");
    let text = markdown::render(&page).text;
    assert!(text.contains("tok/s at c=4, the highest level that was reached"), "{text}");
}

#[test]
fn throughput_is_per_gpu_where_the_gpus_are_known() {
    let (set, mut points) = suite();
    for result in &mut points {
        result.summary.system.server =
            Some(ServerFacts { gpus_used: Some(4), ..ServerFacts::default() });
    }
    let text = markdown::render(&page_of(&set, &points)).text;
    assert!(text.contains("63.98 tok/s per GPU"), "{text}");
    assert!(!text.contains("tok/s in all"));
    let (set, points) = suite();
    assert!(markdown::render(&page_of(&set, &points)).text.contains("255.9 tok/s in all"));
}

#[test]
fn a_scenario_at_a_rate_shows_it() {
    let (mut set, mut points) = suite();
    set.suite.as_mut().unwrap().rows[1].concurrency = None;
    points[1].summary.run.load = LoadFacts::Open {
        rate: RateFacts::Steady { per_s: 4.0 },
        arrivals: Arrivals::Poisson,
        max_concurrency: None,
    };
    let page = page_of(&set, &points);
    assert_eq!(table(&page, "performance-summary").rows[1][4].text, "4/s");
    assert!(markdown::render(&page).text.contains("- Rate: 4/s"));
}

#[test]
fn the_same_warning_of_several_rows_keeps_each_number() {
    let (set, mut points) = suite();
    for (result, requests) in points.iter_mut().zip([20, 10, 5]) {
        result.summary.warnings = vec![Warning {
            key: "few-requests".to_owned(),
            check: None,
            severity: Severity::Note,
            text: format!("only {requests} requests ended ok"),
            remedy: "ask more".to_owned(),
        }];
    }
    let page = page_of(&set, &points);
    let told = notices(&page);
    assert!(told.iter().any(|(_, _, points)| *points == 3), "{told:?}");
    let text = markdown::render(&page).text;
    assert!(text.contains("> - Decode: only 10 requests ended ok."), "{text}");
}

#[test]
fn links_lead_to_their_own_scenario_in_every_script() {
    let (mut set, points) = suite();
    let rows = &mut set.suite.as_mut().unwrap().rows;
    for (row, name) in rows.iter_mut().zip(["模型", "速度", "Results"]) {
        row.name = name.to_owned();
    }
    let text = html::render(&page_of(&set, &points));
    let mut ids: Vec<&str> = text
        .split("<section id=\"")
        .skip(1)
        .filter_map(|part| part.split('"').next())
        .filter(|id| id.starts_with("scenario-"))
        .collect();
    assert_eq!(ids.len(), 5);
    assert!(ids.contains(&"scenario-results"), "{ids:?}");
    ids.dedup();
    assert_eq!(ids.len(), 5, "{ids:?}");
    assert!(!ids.iter().any(|id| id.ends_with("-2")), "{ids:?}");
}
