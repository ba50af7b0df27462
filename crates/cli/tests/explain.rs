//! Explanations, as they are asked for.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use serde_json::Value;

use support::{output, text};

fn explain(words: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let ran = output(&[&["explain"], words].concat(), folder.path());
    (ran.status.code().unwrap(), text(&ran.stdout), text(&ran.stderr))
}

#[test]
fn metrics_words_and_other_tools_names_are_explained() {
    for (words, part) in [
        (&["ttft"][..], "first output event − sent"),
        (&["ttft.p99"], "certified from 662 values on"),
        (&["sweet", "spot"], "highest throughput among those that meet the SLOs"),
        (&["Little's law"], "Requests in flight ="),
        (&["mean_ttft_ms"], "to the first chunk with choices"),
        (&["Mean TPOT"], "(E2EL − TTFT) / (output tokens − 1)"),
        (&["inter_token_latency"], "one mean per request"),
        (&["TTFT p99"], "certified from 662 values on"),
        (&["p99"], "99 of 100 requests"),
        (&["tokens_per_second"], "the output of all requests together"),
        (&["e2e_latency"], "E2E"),
        (&["vllm"], "mean_itl_ms gaps between chunks of all requests"),
        (&["knee", "ttft"], "first output event − sent"),
        (&["sweet", "spot", "knee"], "more load brings little more throughput"),
    ] {
        let (code, page, said) = explain(words);
        assert_eq!(code, 0, "{words:?}: {said}");
        let unbroken = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unbroken.contains(part), "{words:?}: {page}");
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        assert_eq!(said, "");
    }
}

#[test]
fn without_a_word_everything_is_listed() {
    let (code, page, _) = explain(&[]);
    assert_eq!(code, 0);
    for part in ["latencies (ms)\n  ttft ", "\nterms\n", "  knee ", "mean_ttft_ms"] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
}

#[test]
fn an_unknown_word_is_a_usage_error_with_the_nearest() {
    let (code, page, said) = explain(&["tttf"]);
    assert_eq!((code, page.as_str()), (2, ""));
    assert!(said.contains("`tttf`; the nearest is `ttft`"), "{said}");
    let (_, _, said) = explain(&["kubernetes"]);
    assert!(said.contains("`kubernetes`\n") && said.contains("lists all names"), "{said}");
    let (code, page, said) = explain(&["knee", "bananas"]);
    assert_eq!((code, page.as_str()), (2, ""));
    assert!(said.contains("`bananas`"), "{said}");
    let (code, _, said) = explain(&["a\u{1b}[31mb"]);
    assert_eq!(code, 2);
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[test]
fn documents_are_for_programs() {
    let asked = |words: &[&str]| -> Value {
        serde_json::from_str(&explain(&[words, &["--json"]].concat()).1).unwrap()
    };
    assert_eq!(asked(&["ttft"])["metric"]["key"], "ttft_ms");
    assert_eq!(asked(&["knee"])["word"]["name"], "knee");
    assert_eq!(asked(&["p99_itl_ms"])["other_tools"][0]["metric"], "icl");
    assert_eq!(asked(&["knee", "ttft"])["explained"][1]["metric"]["name"], "ttft");
    let all = asked(&[]);
    assert!(all["metrics"].as_array().unwrap().len() >= 25 && all["words"].is_array());
}
