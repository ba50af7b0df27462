//! A block that was read is printed again with the same lines.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;

use inferometer_analysis::tool_result::{Form, ToolResult};
use inferometer_interchange::vllm::block::{BlockOptions, from_result};
use inferometer_interchange::{Imported, read_results};

fn sheets(text: &str) -> Vec<ToolResult> {
    read_results(text).unwrap().iter().filter_map(Imported::result).cloned().collect()
}

/// The blocks of a text, each without the spaces that its lines end with.
fn blocks(text: &str) -> Vec<Vec<&str>> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut is_open = false;
    for line in text.lines().map(str::trim_end) {
        if line.contains("Serving Benchmark Result") {
            blocks.push(Vec::new());
            is_open = true;
        }
        if is_open {
            blocks.last_mut().unwrap().push(line);
        }
        is_open &= !line.chars().all(|c| c == '=');
    }
    blocks
}

fn assert_reprinted(text: &str) -> Vec<ToolResult> {
    let sheets = sheets(text);
    let published = blocks(text);
    assert_eq!(sheets.len(), published.len());
    for (sheet, published) in sheets.iter().zip(published) {
        let printed = from_result(sheet, &BlockOptions::all_of(sheet));
        let printed: Vec<_> = printed.lines().map(str::trim_end).collect();
        assert_eq!(printed, published);
        assert!(sheet.unmapped.is_empty(), "{:?}", sheet.unmapped);
    }
    sheets
}

#[test]
fn published_blocks_are_printed_again_line_by_line() {
    for name in ["mi300x4-llama-70b.txt", "mi300x4-llama-70b-4096-seqs.txt"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/published");
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(assert_reprinted(&text).len(), 3);
    }
}

#[test]
fn blocks_of_every_version_are_printed_again() {
    let sheets = assert_reprinted(include_str!("versions.txt"));
    let forms: Vec<_> = sheets.iter().map(|sheet| sheet.source.form).collect();
    assert_eq!(forms, [Form::OldBlock, Form::OldBlock, Form::Block, Form::Block, Form::Block]);
    assert!(sheets[2].further.contains_key("p90_client_queue_time_ms"));
    assert_eq!(sheets[3].further.len(), 1);
}

#[test]
fn a_printed_block_is_read_as_it_was() {
    for sheet in sheets(include_str!("versions.txt")) {
        let again = sheets(&from_result(&sheet, &BlockOptions::all_of(&sheet)));
        let mut again = again.into_iter().next().unwrap();
        again.source.line = sheet.source.line;
        assert_eq!(again, sheet);
    }
}

#[test]
fn a_simulated_block_stays_simulated() {
    let mut sheet = sheets(include_str!("versions.txt")).remove(0);
    sheet.source.simulated = true;
    let again = sheets(&from_result(&sheet, &BlockOptions::all_of(&sheet)));
    assert!(again[0].source.simulated);
}

/// As `--metric-percentiles 50,99` prints them.
#[test]
fn a_p50_beside_the_median_is_printed_again() {
    let text = include_str!("versions.txt").replace(
        "P99 TTFT (ms):                           109.00",
        "P50 TTFT (ms):                           9.00\nP99 TTFT (ms):                           109.00",
    );
    let first = sheets(&text).remove(0);
    assert!(first.latencies[0].has_p50);
    let printed = from_result(&first, &BlockOptions::all_of(&first));
    assert!(
        printed.contains("Median TTFT (ms):                        9.00      \nP50 TTFT (ms):  ")
    );
    let plain = sheets(include_str!("versions.txt")).remove(0);
    assert!(!from_result(&plain, &BlockOptions::all_of(&plain)).contains("P50 TTFT"));
}
