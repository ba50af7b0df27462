//! No text panics, takes for ever, or fills the memory.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fmt::Write;

use inferometer_interchange::{ImportError, Imported, PublishedTable, read_file, read_results};
use inferometer_model::import::ImportReading;
use proptest::prelude::*;

/// Pieces of real files, so that the random texts come near to being results.
const PIECES: [&str; 30] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\n",
    "\r\n",
    " ",
    "NaN",
    "-Infinity",
    "\\",
    "1e999",
    "-0",
    "\"completed\"",
    "\"mean_ttft_ms\": 1.5",
    "\"p99_itl_ms\"",
    "{\"mean_itl_ms\": 1, \"completed\": 1}\n",
    "== Serving Benchmark Result ==\n",
    "====================\n",
    "Mean TTFT (ms): 5\n",
    "Maximum request concurrency: 8\n",
    "100%|█| 3/4 [é",
    "\"ttfts\": [0.5, 1]",
    "\"itls\": [[",
    "\"label\": \"é\"",
    "## é\n",
    "vllm serve -tp 4 é\n",
    "```\n",
];

proptest! {
    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = read_results(&text);
        let _ = PublishedTable::read(&text);
    }

    #[test]
    fn records_stand_in_the_order_of_their_lines(
        pieces in proptest::collection::vec(0..PIECES.len(), 0..60),
    ) {
        let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        if let Ok(imported) = read_results(&text) {
            prop_assert!(imported.iter().any(|record| record.result().is_some()));
            prop_assert!(imported.is_sorted_by_key(Imported::line));
            let lines = u32::try_from(text.split('\n').count()).unwrap();
            prop_assert!(imported.iter().all(|record| (1..=lines).contains(&record.line())));
        }
    }
}

/// Each list holds the one before nine times: a few lines that stand for a thousand million.
/// Faults: 109.
#[test]
fn aliases_of_yaml_do_not_multiply() {
    let mut bomb = include_str!("foreign/llm-d.yaml").to_owned() + "l0: &l0 [lol]\n";
    for level in 1..10 {
        let before = format!("*l{}", level - 1);
        let nine = vec![before; 9].join(", ");
        writeln!(bomb, "l{level}: &l{level} [{nine}]").unwrap();
    }
    // Refused, or read without what was multiplied.
    match read_file("bomb.yaml", bomb.as_bytes(), &ImportReading::default()) {
        Ok(import) => assert!(format!("{import:?}").len() < 1 << 20),
        Err(error) => assert!(error.to_string().len() < 1 << 12, "{error}"),
    }
}

/// Faults: 109.
#[test]
fn deep_json_is_passed_over() {
    let depth = 1_000_000;
    let text = format!(
        "{{\"mean_itl_ms\": 1, \"completed\": 1, \"x\": {}{}}}",
        "[".repeat(depth),
        "]".repeat(depth)
    );
    let imported = read_results(&text).unwrap();
    assert_eq!(imported[0].result().unwrap().completed, Some(1));
    let detailed = read_results(&text.replace("\"x\"", "\"itls\"")).unwrap();
    let requests = detailed[0].result().unwrap().requests.as_ref().unwrap();
    assert!(requests.len() == 1 && requests[0].gaps_s.is_empty());
}

#[test]
fn objects_that_never_end_are_not_followed_from_every_line() {
    // From every line to the end, this would be twenty thousand million lines.
    let text = "{\"completed\":\n".repeat(200_000);
    let error = read_results(&text).unwrap_err();
    assert!(matches!(error, ImportError::AllBroken { count: 200_000, line: 1, .. }), "{error}");
}

#[test]
fn many_objects_on_one_line_do_not_make_it_be_searched_for_each() {
    let text = format!("{}{{\"mean_itl_ms\": 1, \"completed\": 1}}", "{\"a\":1}".repeat(1_000_000));
    let imported = read_results(&text).unwrap();
    assert_eq!(imported[0].result().unwrap().completed, Some(1));
    assert!(imported[1].broken().unwrap().reason.contains("1000000 JSON objects"));
}

/// How many records of a file cannot be read, where none can.
fn all_broken(text: &str) -> usize {
    let error = read_file("file", text.as_bytes(), &ImportReading::default()).unwrap_err();
    let ImportError::AllBroken { count, .. } = error else { panic!("{error}") };
    count
}

#[test]
fn many_records_on_one_line_are_read_once() {
    // Sought again for each, the line's end alone would be two hundred thousand million bytes.
    let many = 600_000;
    let sglang = "{\"mean_e2e_latency_ms\":\"output_throughput\"}";
    assert_eq!(all_broken(&format!("{sglang}{}", "{}".repeat(many))), many + 1);
    let guidellm = "{\"request_totals\": 1, \"benchmarks\": [";
    assert_eq!(all_broken(&format!("{guidellm}{}", "{},".repeat(many))), many + 1);
}

#[test]
fn results_that_share_no_key_are_not_compared_by_every_key() {
    // Ten thousand million comparisons, if every key were sought in every result.
    let row = |row: u32| {
        let keys = (0..256).map(|key| format!(", \"k{row}_{key}\": \"v\""));
        let keys = keys.collect::<String>();
        format!("{{\"mean_ttft_ms\": 1, \"request_rate\": {}{keys}}}\n", row + 1)
    };
    let imported = read_results(&(0..400).map(row).collect::<String>()).unwrap();
    assert_eq!(imported.len(), 400);
}

#[test]
fn a_latency_keeps_so_many_percentiles() {
    let ranks: Vec<_> = (0..2000).map(|rank| format!("p50p{rank}: 1, ")).collect();
    let text = include_str!("foreign/llm-d.yaml")
        .replace("mean: 1.75", &format!("{}mean: 1.75", ranks.concat()));
    let import = read_file("file", text.as_bytes(), &ImportReading::default()).unwrap();
    let result = import.results().next().unwrap();
    let most = result.latencies.iter().map(|latency| latency.percentiles_ms.len()).max();
    assert_eq!(most, Some(256));
    assert_eq!(result.unmapped.len(), 257);
    assert!(result.unmapped[0].ends_with("is beyond the 256 percentiles that are kept"));
}

/// Faults: 109.
#[test]
fn lists_have_bounds() {
    let keys: Vec<_> = (0..1000).map(|key| format!("\"k{key}\": 1")).collect();
    let imported =
        read_results(&format!("{{\"mean_itl_ms\": 1, \"completed\": 1, {}}}", keys.join(", ")))
            .unwrap();
    let unmapped = &imported[0].result().unwrap().unmapped;
    assert_eq!((unmapped.len(), unmapped[256].as_str()), (257, "and more, not listed"));
    let words: Vec<_> = (0..1000).map(|key| format!("\"k{key}\": \"v\"")).collect();
    let imported =
        read_results(&format!("{{\"mean_itl_ms\": 1, \"completed\": 1, {}}}", words.join(", ")))
            .unwrap();
    assert_eq!(imported[0].result().unwrap().metadata.len(), 256);
    let command = format!("vllm serve -tp 2 {}\n", "--flag é ".repeat(100_000));
    let imported =
        read_results(&format!("{command}{{\"mean_itl_ms\": 1, \"completed\": 1}}")).unwrap();
    let (alone, gpus) = (imported[0].result().unwrap(), Some(2));
    assert_eq!((alone.configuration.as_str(), alone.tensor_parallel), ("", gpus));
    let text =
        format!("{{\"mean_itl_ms\": 1, \"completed\": 1}}\n{}", "{\"completed\": }\n".repeat(1500));
    let imported = read_results(&text).unwrap();
    assert_eq!(imported.len(), 1002);
    let last = imported[1001].broken().unwrap();
    assert_eq!((last.line, last.reason.contains("500 more")), (1002, true));
    let many = "{\"mean_itl_ms\": 1, \"completed\": 1}\n".repeat(100_001);
    assert_eq!(read_results(&many), Err(ImportError::TooMany));
}

/// Faults: 109.
#[test]
fn a_line_beyond_the_bound_is_refused_and_the_next_one_read() {
    let long =
        format!("{{\"mean_itl_ms\": 1, \"completed\": 1, \"x\": \"{}\"}}\n", "x".repeat(128 << 20));
    let imported =
        read_results(&format!("{long}{{\"mean_itl_ms\": 1, \"completed\": 2}}")).unwrap();
    assert!(imported[0].broken().unwrap().reason.contains("--save-detailed"));
    assert_eq!(imported[1].result().unwrap().completed, Some(2));
}
