//! The published figures in `examples/published` are read whole, and are what was published.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![expect(clippy::print_stdout, reason = "a test says why it is skipped")]

use std::path::Path;

use inferometer_analysis::tool_result::{
    CountsFrom, Form, Grain, LatencyKind, ResultLatency, ResultRate, ToolResult,
};
use inferometer_interchange::{Imported, PublishedTable, read_file, read_results};
use inferometer_model::import::ImportReading;

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/published");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// What is known of a latency; nothing where it is not there.
fn latency(result: &ToolResult, kind: LatencyKind) -> ResultLatency {
    let nothing = || ResultLatency::new(kind, CountsFrom::Unknown, Grain::Unknown);
    result.latency(kind).cloned().unwrap_or_else(nothing)
}

/// All of a file's records; none may be broken.
fn results(name: &str) -> Vec<ToolResult> {
    let imported = read_results(&example(name)).unwrap();
    let broken: Vec<_> = imported.iter().filter_map(Imported::broken).collect();
    assert!(broken.is_empty(), "{broken:?}");
    imported.iter().filter_map(Imported::result).cloned().collect()
}

fn means(results: &[ToolResult], value: fn(&ToolResult) -> Option<f64>) -> Vec<f64> {
    results.iter().map(|result| value(result).unwrap()).collect()
}

fn hundredths(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| (value * 100.0).round() / 100.0).collect()
}

/// Pages that are not ours to copy, where they are at hand.
#[test]
fn the_tables_of_published_pages_become_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference");
    // Page, results, the place of one, its concurrency, and its typical time.
    let pages = [
        ("suite-report.md", 10, 5, 2, (LatencyKind::Ttft, 90.37)),
        ("matrix-report.md", 75, 0, 10, (LatencyKind::E2e, 6_950.0)),
        ("methodology.txt", 7, 0, 100, (LatencyKind::E2e, 40.66)),
    ];
    for (page, count, place, slots, (kind, typical_ms)) in pages {
        let Ok(bytes) = std::fs::read(folder.join(page)) else {
            println!("skipped: {page} is not at hand");
            return;
        };
        let import = read_file(page, &bytes, &ImportReading::default()).unwrap();
        let results: Vec<_> = import.results().collect();
        assert_eq!((results.len(), import.broken().count()), (count, 0), "{page}");
        assert_eq!(results[place].max_concurrency, Some(slots), "{page}");
        let latency = results[place].latency(kind).unwrap();
        let found = latency.median_ms().or(latency.mean_ms).unwrap();
        assert!((found - typical_ms).abs() < 1e-6, "{page}: {found}");
    }
}

#[test]
fn both_rate_sweeps_have_seven_rows_of_which_the_last_is_cut() {
    let v0 = results("mi300x-mistral-small-24b-v0.jsonl");
    let v1 = results("mi300x-mistral-small-24b-v1.jsonl");
    let rates = [1.0, 3.0, 5.0, 7.0, 9.0, 11.0].map(ResultRate::PerSecond);
    for sweep in [&v0, &v1] {
        assert_eq!(sweep.len(), 7);
        for (row, rate) in sweep.iter().zip(rates.into_iter().chain([ResultRate::Unlimited])) {
            assert_eq!(row.source.form, Form::Document);
            assert_eq!(row.request_rate, Some(rate));
            assert_eq!(row.burstiness, Some(1.0));
            assert_eq!(row.max_concurrency, None);
            assert_eq!(row.failed, None);
            assert_eq!(row.is_cut(), rate == ResultRate::Unlimited);
            assert_eq!(row.input_tokens, row.completed.map(|n| n * 1000));
            assert_eq!(row.output_tokens, row.completed.map(|n| n * 100));
        }
        assert_eq!((sweep[6].completed, sweep[6].requests_planned), (Some(1015), Some(2000)));
    }
    let ttft = hundredths(&means(&v0, |row| latency(row, LatencyKind::Ttft).mean_ms));
    assert_eq!(ttft, [1479.34, 1536.68, 979.34, 2962.03, 5301.25, 16553.83, 60121.9]);
    let tpot = hundredths(&means(&v1, |row| latency(row, LatencyKind::Tpot).mean_ms));
    assert_eq!(tpot, [16.14, 22.82, 35.57, 73.5, 194.61, 200.24, 195.83]);
    // To the last digit.
    assert_eq!(
        latency(&v1[0], LatencyKind::Ttft).percentile_ms("99"),
        Some(347.344_037_126_749_87)
    );
}

#[test]
fn six_blocks_have_their_caps_and_means() {
    let files = ["mi300x4-llama-70b.txt", "mi300x4-llama-70b-4096-seqs.txt"];
    let blocks: Vec<_> = files.into_iter().flat_map(results).collect();
    let caps: Vec<_> = blocks.iter().map(|block| block.max_concurrency.unwrap()).collect();
    assert_eq!(caps, [128, 256, 512, 128, 256, 512]);
    for block in &blocks {
        assert_eq!(block.source.form, Form::OldBlock);
        assert_eq!(block.model.as_deref(), Some("meta-llama/Llama-3.1-70B-Instruct"));
        assert_eq!((block.completed, block.requests_planned), (Some(1024), Some(1024)));
        assert!(!block.is_cut());
        assert_eq!(block.input_tokens, Some(220_902));
        assert_eq!(block.tensor_parallel, Some(4));
        assert_eq!(block.request_rate, None);
        assert_eq!(latency(block, LatencyKind::E2e).mean_ms, None);
        assert_eq!(latency(block, LatencyKind::Ttft).std_ms, None);
        assert!(block.unmapped.is_empty(), "{:?}", block.unmapped);
    }
    let ttft = means(&blocks, |block| latency(block, LatencyKind::Ttft).mean_ms);
    assert_eq!(ttft, [1156.72, 2621.59, 16126.02, 1060.39, 2472.82, 6944.99]);
    let tpot = means(&blocks, |block| latency(block, LatencyKind::Tpot).mean_ms);
    assert_eq!(tpot, [50.05, 92.84, 93.01, 55.43, 95.16, 175.03]);
    let itl = means(&blocks, |block| latency(block, LatencyKind::Itl).percentile_ms("99"));
    assert_eq!(itl, [560.38, 1180.43, 992.18, 557.99, 979.78, 1728.53]);
    let output = means(&blocks, |block| block.output_throughput);
    assert_eq!(output, [1998.36, 2269.09, 2275.44, 1992.04, 2268.0, 2560.09]);
}

#[test]
fn the_suite_has_ten_rows_in_its_order() {
    let table = PublishedTable::read(&example("mi100x4-devstral-24b.toml")).unwrap();
    let loads: Vec<_> = table
        .rows
        .iter()
        .map(|row| (row.input_tokens, row.output_tokens, row.concurrency, row.requests))
        .collect();
    let scaling = [2, 4, 8, 16, 32].map(|concurrency| (1024, 256, concurrency, 30));
    let first = [
        (2048, 512, 1, 20),
        (512, 256, 16, 50),
        (16384, 1024, 4, 10),
        (128, 2048, 1, 5),
        (2048, 512, 8, 30),
    ];
    assert_eq!(loads, [first, scaling].concat());
    let mixed: Vec<_> = table.rows.iter().map(|row| row.range_ratio).collect();
    assert_eq!(mixed, [0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let throughput: Vec<_> = table.rows.iter().filter_map(|row| row.output_throughput).collect();
    assert_eq!(
        throughput,
        [49.26, 301.77, 62.84, 56.28, 160.04, 97.72, 167.97, 255.92, 384.74, 387.10]
    );
    let tpot: Vec<_> = table.rows.iter().filter_map(|row| row.tpot_mean_ms).collect();
    assert_eq!(tpot, [18.22, 41.71, 46.29, 17.76, 43.80, 19.71, 22.13, 28.83, 38.19, 76.35]);
    let ttft: Vec<_> = table.rows.iter().filter_map(|row| row.ttft_median_ms).collect();
    assert_eq!(
        ttft,
        [1135.06, 1139.87, 11140.28, 43.29, 1539.47, 90.37, 135.27, 173.96, 246.42, 373.46]
    );
}
