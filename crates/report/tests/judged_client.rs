//! The page of a client that was judged, and its badge.

use inferometer_analysis::client_judgement::{
    Grade, JudgedLoad, LoadJudgement, TrueLoad, judge_load,
};
use inferometer_analysis::tool_result::{CountsFrom, Grain, LatencyKind, ToolResult};
use inferometer_report::document::{html, markdown, terminal};
use inferometer_report::pages::judgement::{JudgedClient, badge, page};
use inferometer_report::terminal::Style;

fn result(completed: u64, tokens: u64, ttft_ms: f64) -> ToolResult {
    let mut result = ToolResult {
        completed: Some(completed),
        output_tokens: Some(tokens),
        output_throughput: Some(256.0),
        ..ToolResult::default()
    };
    let ttft = result.latency_mut(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
    (ttft.n, ttft.mean_ms) = (Some(completed), Some(ttft_ms));
    result
}

/// A load of eight requests as it was reported; `failed` of its answers are none.
fn load(name: &str, failed: u64, reported: Result<ToolResult, String>) -> LoadJudgement {
    let ok = 8 - failed;
    let truth = TrueLoad {
        result: result(ok, 16 * ok, 100.0),
        ok,
        failed,
        extra: 1,
        in_flight: Some(1.95),
        late_ms: Some(if name == "late" { 9.0 } else { 0.1 }),
    };
    let about = format!("A load that is {name}.");
    let (name, requests, concurrency) = (name.to_owned(), 8, 2);
    judge_load(JudgedLoad { name, about, requests, concurrency, truth, reported })
}

fn client<'a>(title: &'a str, loads: &'a [LoadJudgement]) -> JudgedClient<'a> {
    let command = format!("{title} --url {{url}}");
    JudgedClient { title, command, loads, is_conformance: false }
}

#[test]
fn the_page_of_a_client() {
    let loads = [
        load("honest", 0, Ok(result(8, 128, 101.0))),
        load("late", 0, Ok(result(8, 128, 900.0))),
        load("slow", 0, Ok(result(8, 100, 160.0))),
        load("failing", 4, Ok(result(8, 128, 100.0))),
        load("silent", 0, Err("it did not end within 2 m".to_owned())),
    ];
    let grades: Vec<Grade> = loads.iter().map(|load| load.grade).collect();
    assert_eq!(grades, [Grade::A, Grade::A, Grade::D, Grade::F, Grade::D]);
    insta::assert_snapshot!(markdown::render(&page(&client("some-client", &loads))).text);
}

#[test]
fn names_and_messages_of_a_client_are_inert() {
    let hostile = "<script>alert(1)</script>\u{1b}[2J | `x` \u{202e}";
    let loads =
        [load(hostile, 0, Err(hostile.to_owned())), load(hostile, 0, Ok(result(8, 1, 1.0)))];
    let document = page(&client(hostile, &loads));
    let pages = [
        html::render(&document),
        markdown::render(&document).text,
        terminal::render(&document, Style::Plain),
        badge(Grade::F),
    ];
    for (number, text) in pages.iter().enumerate() {
        // A tag is only text in a terminal.
        assert!(number == 2 || !text.contains("<script>alert"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text}");
    }
    // A bar in a name makes no further cell.
    let row = pages[1].lines().find(|line| line.contains("no result")).unwrap_or_default();
    let bars = row.replace("\\|", "").matches('|').count();
    let head = pages[1].lines().find(|line| line.starts_with("| Load |")).unwrap_or_default();
    assert_eq!(bars, head.matches('|').count(), "{row}");
}
