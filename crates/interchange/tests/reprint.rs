//! A block that was read is printed again with the same lines.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;

use inferometer_analysis::tool_result::{Form, ToolResult};
use inferometer_interchange::vllm::block::{BlockOptions, from_result};
use inferometer_interchange::{Imported, read_results};

fn results(text: &str) -> Vec<ToolResult> {
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
    let results = results(text);
    let published = blocks(text);
    assert_eq!(results.len(), published.len());
    for (result, published) in results.iter().zip(published) {
        let printed = from_result(result, &BlockOptions::all_of(result));
        let printed: Vec<_> = printed.lines().map(str::trim_end).collect();
        assert_eq!(printed, published);
        assert!(result.unmapped.is_empty(), "{:?}", result.unmapped);
    }
    results
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
    let results = assert_reprinted(include_str!("versions.txt"));
    let forms: Vec<_> = results.iter().map(|result| result.source.form).collect();
    assert_eq!(forms, [Form::OldBlock, Form::OldBlock, Form::Block, Form::Block, Form::Block]);
    assert!(results[2].further.contains_key("p90_client_queue_time_ms"));
    assert_eq!(results[3].further.len(), 1);
}

#[test]
fn a_printed_block_is_read_as_it_was() {
    for result in results(include_str!("versions.txt")) {
        let again = results(&from_result(&result, &BlockOptions::all_of(&result)));
        let mut again = again.into_iter().next().unwrap();
        again.source.line = result.source.line;
        assert_eq!(again, result);
    }
}

#[test]
fn a_simulated_block_stays_simulated() {
    let mut result = results(include_str!("versions.txt")).remove(0);
    result.source.simulated = true;
    let again = results(&from_result(&result, &BlockOptions::all_of(&result)));
    assert!(again[0].source.simulated);
}

/// As `--metric-percentiles 50,99` prints them.
#[test]
fn a_p50_beside_the_median_is_printed_again() {
    let text = include_str!("versions.txt").replace(
        "P99 TTFT (ms):                           109.00",
        "P50 TTFT (ms):                           9.00\nP99 TTFT (ms):                           109.00",
    );
    let first = results(&text).remove(0);
    assert!(first.latencies[0].has_p50);
    let printed = from_result(&first, &BlockOptions::all_of(&first));
    assert!(
        printed.contains("Median TTFT (ms):                        9.00      \nP50 TTFT (ms):  ")
    );
    let plain = results(include_str!("versions.txt")).remove(0);
    assert!(!from_result(&plain, &BlockOptions::all_of(&plain)).contains("P50 TTFT"));
}
