//! Names, as people type them.

use super::*;
use crate::statistics::Percentile;

fn metric(asked: &str) -> (&'static str, Option<Statistic>) {
    match Topic::look_up(asked) {
        Ok(Topic::Metric { metric, statistic }) => (metric.name, statistic),
        other => panic!("{asked}: {other:?}"),
    }
}

fn tools(asked: &str) -> Vec<(&'static str, Option<&'static str>)> {
    match Topic::look_up(asked) {
        Ok(Topic::Foreign(found)) => {
            found.iter().map(|it| (it.tool, it.metric.map(|metric| metric.name))).collect()
        }
        other => panic!("{asked}: {other:?}"),
    }
}

#[test]
fn our_own_names_go_first() {
    for name in ["ttft", "TTFT", "ttft_ms", " ttft "] {
        assert_eq!(metric(name), ("ttft", None), "{name}");
    }
    assert_eq!(metric("TTFT from schedule"), ("ttft_schedule", None));
    assert_eq!(metric("ttft.schedule"), ("ttft_schedule", None));
    assert_eq!(metric("Output throughput"), ("output_throughput", None));
    let p99 = Some(Statistic::Percentile(Percentile::P99));
    assert_eq!(metric("ttft.p99"), ("ttft", p99));
    assert_eq!(metric("e2e.schedule.mean"), ("e2e_schedule", Some(Statistic::Mean)));
    assert_eq!(metric("TTFT p99"), ("ttft", p99));
    assert_eq!(metric("TTFT from schedule p99"), ("ttft_schedule", p99));
    assert_eq!(metric("e2e_latency"), ("e2e", None));
}

#[test]
fn words_of_the_pages_are_known_by_their_aliases_too() {
    for (asked, name) in [
        ("knee", "knee"),
        ("sweet spot", "sweet spot"),
        ("sweet_spot", "sweet spot"),
        ("Little's law", "Little's law"),
        ("littles law", "Little's law"),
        ("n_eff", "effective n"),
        ("capped-open", "capped-open"),
        ("CI", "interval"),
        ("p99", "statistic"),
        ("p99.9", "statistic"),
        ("tokens_per_second", "tokens per second"),
        ("tok/s", "tokens per second"),
    ] {
        match Topic::look_up(asked) {
            Ok(Topic::Term(word)) => assert_eq!(word.name, name, "{asked}"),
            other => panic!("{asked}: {other:?}"),
        }
    }
}

#[test]
fn other_tools_names_are_what_they_mean_there() {
    for name in ["mean_ttft_ms", "Mean TTFT (ms)", "p99_ttft_ms", "Median TTFT", "P99.9 TTFT"] {
        assert_eq!(tools(name), [("vllm bench serve", Some("ttft"))], "{name}");
    }
    assert_eq!(tools("Mean TPOT"), [("vllm bench serve", Some("tpot"))]);
    assert_eq!(tools("mean_itl_ms"), [("vllm bench serve", Some("icl"))]);
    assert_eq!(tools("request_goodput"), [("vllm bench serve", Some("goodput"))]);
    let found = tools("inter_token_latency");
    assert!(found.contains(&("AIPerf", Some("tpot"))), "{found:?}");
    assert!(found.contains(&("inference-perf", Some("itl"))), "{found:?}");
    assert_eq!(tools("Output token throughput (tok/s):")[0].1, Some("output_throughput"));
}

#[test]
fn a_tool_is_all_that_it_calls_otherwise() {
    for (asked, tool) in [
        ("vllm", "vllm bench serve"),
        ("vLLM bench serve", "vllm bench serve"),
        ("AIPerf", "AIPerf"),
    ] {
        let Ok(Topic::Tool(names)) = Topic::look_up(asked) else { panic!("{asked}") };
        assert!(3 < names.len() && names.iter().all(|name| name.tool == tool), "{names:?}");
    }
}

#[test]
fn an_unknown_word_is_answered_with_the_nearest() {
    let parts = [("qps", "request_throughput"), ("sweet", "sweet spot"), ("gpu", "gpu_power")];
    let misspelt = [("tftf", "ttft"), ("nee", "knee"), ("mean_tttf_ms", "mean_ttft_ms")];
    for (asked, nearest) in parts.into_iter().chain(misspelt) {
        let problem = Topic::look_up(asked).unwrap_err();
        assert_eq!((problem.name.as_str(), problem.nearest), (asked, Some(nearest)));
    }
    for far in ["bananas", "kubernetes"] {
        let problem = Topic::look_up(far).unwrap_err();
        assert_eq!(problem.to_string(), format!("unknown metric or term `{far}`"));
    }
    assert!(Topic::look_up("").is_err());
}

#[test]
fn every_name_leads_to_its_own_explanation() {
    for word in TERMS.iter() {
        for name in [word.name].iter().chain(&word.aliases) {
            let found = Topic::look_up(name).unwrap();
            let is_own = matches!(found, Topic::Term(found) if found.name == word.name);
            let is_metric = matches!(found, Topic::Metric { .. });
            assert!(is_own || is_metric, "{name}: {found:?}");
        }
        for other in &word.see {
            assert!(Topic::look_up(other).is_ok(), "{}: see {other}", word.name);
        }
        assert!(word.meaning.ends_with('.') && !word.meaning.contains("  "), "{}", word.name);
    }
    for name in FOREIGN_NAMES.iter().map(|it| it.written) {
        assert!(
            matches!(Topic::look_up(name), Ok(Topic::Foreign(_))),
            "{name} is hidden by our own"
        );
    }
}

#[test]
fn what_other_tools_measure_is_measured_here_or_said_not_to_be() {
    for name in FOREIGN_NAMES.iter().map(|it| it.written) {
        for found in find_foreign(&plain(name)) {
            let known = found.metric.is_none_or(|metric| METRICS.contains(&metric));
            assert!(known, "{name}: {:?}", found.metric);
            assert!(!found.meaning.is_empty() && !found.meaning.ends_with('.'), "{name}");
        }
    }
}

#[test]
fn a_word_of_several_names_lists_them() {
    for (word, wanted) in [
        ("throughput", "output_throughput"),
        ("latency", "ttft"),
        ("concurrency", "concurrency_mean"),
    ] {
        let Ok(Topic::Several { metrics, .. }) = Topic::look_up(word) else { panic!("{word}") };
        assert!(1 < metrics.len() && metrics.iter().any(|it| it.name == wanted), "{word}");
    }
    assert!(Topic::look_up("thoughput").is_err());
}
