//! The page of another tool's file, as a person sees it.

use inferometer_analysis::Interval;
use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, Mark, ResultRate, ResultSource, Tool, ToolResult,
};
use inferometer_model::import::{ForeignFile, ImportManifest, ImportReading};
use inferometer_report::pages::results::import::{BrokenLine, ImportPage, render};
use inferometer_report::terminal::Style;

fn manifest() -> ImportManifest {
    ImportManifest {
        format: 1,
        import: "20260102-030405-imp1".to_owned(),
        imported: "2026-01-02T03:04:05Z".to_owned(),
        tool_version: "0.1.0".to_owned(),
        file: ForeignFile {
            name: "rate-sweep.jsonl".to_owned(),
            sha256: "ab12".to_owned(),
            bytes: 4_096,
        },
        reading: ImportReading::default(),
    }
}

/// A result at this rate; with more than ten requests a second the server is behind.
fn sheet(configuration: &str, line: u32, rate: Option<f64>) -> ToolResult {
    let planned = rate.map_or(2_000, |rate| if rate < 5.0 { 120 } else { 1_200 });
    let mut sheet = ToolResult {
        source: ResultSource {
            tool: Tool::Vllm,
            form: Form::Document,
            line: Some(line),
            ..ResultSource::default()
        },
        configuration: configuration.to_owned(),
        model: Some("mistralai/Mistral-Small-24B-Instruct-2501".to_owned()),
        backend: Some("vllm".to_owned()),
        started: Some(format!("20250425-0110{line:02}")),
        request_rate: Some(rate.map_or(ResultRate::Unlimited, ResultRate::PerSecond)),
        requests_planned: Some(planned),
        completed: Some(if rate.is_none() { 1_015 } else { planned }),
        duration_s: Some(122.0),
        input_tokens: Some(120_000),
        output_tokens: Some(12_000),
        request_throughput: Some(rate.unwrap_or(100.0).min(8.09)),
        output_throughput: Some(100.0 * rate.unwrap_or(100.0).min(8.09)),
        total_token_throughput: Some(1_068.5),
        unmapped: vec![format!("line {line}: `best_of` = 1")],
        ..ToolResult::default()
    };
    let slow = rate.unwrap_or(20.0);
    let ttft = sheet.latency_mut(LatencyKind::Ttft, CountsFrom::Send, Grain::Request);
    ttft.mean_ms = Some(139.5 * slow);
    ttft.percentiles_ms.insert("99".to_owned(), 347.3 * slow);
    let tpot = sheet.latency_mut(LatencyKind::Tpot, CountsFrom::Output, Grain::Request);
    (tpot.mean_ms, tpot.std_ms) = (Some(16.1), Some(1.6));
    tpot.percentiles_ms.insert("99".to_owned(), 21.8);
    let itl = sheet.latency_mut(LatencyKind::Itl, CountsFrom::Output, Grain::Chunk);
    itl.mean_ms = Some(16.2);
    sheet.marks = Mark::found(&sheet);
    sheet
}

fn sweep() -> Vec<ToolResult> {
    let of_one = |name: &'static str, first: u32| {
        let rates = [Some(1.0), Some(3.0), Some(9.0), None];
        rates.into_iter().zip(first..).map(move |(rate, line)| sheet(name, line, rate))
    };
    of_one("V0", 12).chain(of_one("V1", 40)).collect()
}

fn page(results: &[ToolResult], broken: Vec<BrokenLine<'_>>) -> String {
    let manifest = manifest();
    let page = ImportPage {
        manifest: &manifest,
        folder: "runs/20260102-030405-imp1",
        tool: Tool::Vllm,
        results: results.iter().collect(),
        broken,
        notes: vec!["the first token's time is in no throughput"],
    };
    let page = render(&page, Style::Plain);
    for line in page.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    page
}

#[test]
fn two_configurations_with_rows_that_were_cut_and_a_broken_record() {
    let broken = BrokenLine { line: 17, reason: "is not JSON: expected value (at line 17)" };
    insta::assert_snapshot!(page(&sweep(), vec![broken]));
}

#[test]
fn what_no_result_says_has_no_column_and_is_named() {
    let bare = ToolResult { output_throughput: Some(1_998.4), ..ToolResult::default() };
    let page = page(&[bare], Vec::new());
    assert!(page.contains("rate-sweep.jsonl: 1 result of vllm bench serve\n"), "{page}");
    assert!(page.contains("\n  #  output tok/s\n  0         1,998\n"), "{page}");
    let missing = page.split("not in the file\n").nth(1).unwrap();
    for what in ["request rate or concurrency", "requests completed", "TTFT, TPOT, ITL, E2E"] {
        assert!(missing.contains(what), "{what}: {missing}");
    }
    assert!(!page.contains("cannot be read") && !page.contains("not taken over"), "{page}");
}

#[test]
fn what_is_shown_of_two_clocks_is_the_first_and_intervals_are_not_denied() {
    let mut two = ToolResult::default();
    for from in [CountsFrom::Send, CountsFrom::Schedule] {
        two.latency_mut(LatencyKind::E2e, from, Grain::Request).mean_ms = Some(40.0);
    }
    let without = page(std::slice::from_ref(&two), Vec::new());
    assert!(without.contains("the file has no confidence intervals"), "{without}");
    two.intervals.insert("output_throughput".to_owned(), Interval { low: 1.0, high: 2.0 });
    let with = page(&[two], Vec::new());
    assert!(!with.contains("the file has no confidence intervals"), "{with}");
    let send = with.find("- E2E from send: time to the end of the answer").unwrap();
    let schedule = with.find("- E2E from schedule: time to the end of the answer").unwrap();
    let hidden = with.find("Not in the table.").unwrap();
    assert!(send < schedule && schedule < hidden, "{with}");
}

#[test]
fn a_long_file_is_cut_and_says_so() {
    let many: Vec<ToolResult> = (0..300)
        .map(|line| {
            let unmapped = vec![format!("line {line}: `key_{line}` = 1")];
            ToolResult { unmapped, ..sheet("", line, Some(1.0)) }
        })
        .collect();
    let broken: Vec<BrokenLine<'_>> =
        (0..40).map(|line| BrokenLine { line, reason: "is cut off" }).collect();
    let page = page(&many, broken);
    assert!(page.contains("100 more results not shown here; --json has all"), "{page}");
    assert!(page.contains("and 288 more, all in the JSON document"), "{page}");
    assert!(page.contains("and 28 more, all in the JSON document"), "{page}");
    let joined = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("measured 2025-04-25 01:10; 239"), "some moments are none: {page}");
    assert!(page.lines().count() < 280, "{} lines", page.lines().count());
}

#[test]
fn words_of_the_file_do_not_reach_the_terminal_as_commands() {
    let mut evil = sheet("\u{1b}[31mred\u{202e}", 1, Some(1.0));
    evil.model = Some("m\u{7}\n".repeat(100));
    evil.backend = Some("\u{9b}2J".to_owned());
    evil.unmapped = vec!["line 1: \u{1b}]0;title\u{7}".to_owned()];
    let broken = vec![BrokenLine { line: 2, reason: "\u{1b}[2J" }];
    let page = page(&[evil], broken);
    assert!(page.chars().all(|letter| letter == '\n' || !letter.is_control()), "{page:?}");
    assert!(page.contains("\\u{1b}[31mred\\u{202e}: results"), "{page}");
}
