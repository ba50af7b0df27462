//! Whole summaries of hand-made runs.

use inferometer_model::Moment;
use inferometer_model::RequestId;
use inferometer_model::journal::NotSent;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::{Arrivals, Extent, LoadShape, Rate};

use crate::fixture::{Given, calm, ms, run, scraped};
use crate::judge::Severity;
use crate::metric::{self, Note, Scalar, Shape};
use crate::summary::*;

fn scalar<'a>(summary: &'a Summary, name: &str) -> &'a Scalar {
    summary.metrics.scalar(crate::metric::Metric::named(name).unwrap()).unwrap()
}

fn close(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < 1e-9, "found {found}, expected {expected}");
}

/// Two answers, a cut stream and a refusal, over exactly two seconds.
fn mixed() -> Observations {
    run(vec![
        Given::ok(0)
            .moments(0, 0, 0)
            .arrival(100, &[Some(1)])
            .arrival(300, &[Some(2)])
            .usage(20, 3)
            .record(),
        Given::ok(1)
            .moments(0, 0, 500)
            .arrival(800, &[Some(1)])
            .arrival(1_500, &[Some(7)])
            .usage(40, 8)
            .record(),
        Given::failed(2, Outcome::Truncated).moments(0, 0, 1_000).arrival(1_100, &[None]).record(),
        Given::failed(3, Outcome::Rejected).moments(0, 0, 1_500).ends(2_000).record(),
    ])
}

#[test]
fn a_price_gives_the_cost_of_a_million_tokens() {
    let costs = |price: Option<&str>| {
        let mut run = mixed();
        run.manifest.spec.price = price.map(|price| price.parse().unwrap());
        run.manifest.server.get_or_insert_default().gpus_used = Some(2);
        let summary = summarize(&run);
        ["cost_per_million_output_tokens", "cost_per_million_tokens"].map(|name| {
            let found = scalar(&summary, name);
            assert_eq!(found.value.is_none(), found.reason.is_some(), "{name}");
            found.value
        })
    };
    // 3.60 an hour is a thousandth a second; 5.5 output tokens and 35.5 in all are made in it.
    let [output, all] = costs(Some("3.6/h"));
    close(output, 1_000.0 / 5.5);
    close(all, 1_000.0 / 35.5);
    close(costs(Some("1.8/gpu-h"))[0], 1_000.0 / 5.5);
    assert_eq!(costs(None), [None; 2]);
    assert_eq!(costs(Some("1/M-in")), [None; 2], "tokens that have a price need no throughput");
}

#[test]
fn the_cost_of_a_steady_part_is_that_of_its_throughput() {
    let mut run = calm();
    run.manifest.spec.price = Some("3.6/h".parse().unwrap());
    let summary = summarize(&run);
    let headline = summary.headline();
    let value = |metric| headline.scalar(metric).unwrap();
    let (rate, cost) =
        (value(&metric::OUTPUT_THROUGHPUT), value(&metric::COST_PER_MILLION_OUTPUT_TOKENS));
    close(cost.value, 1_000.0 / rate.value.unwrap());
    let ends = rate.interval.zip(cost.interval);
    if let Some((rate, cost)) = ends {
        close(Some(cost.low), 1_000.0 / rate.high);
        close(Some(cost.high), 1_000.0 / rate.low);
    }
}

#[test]
fn scalars_of_a_mixed_run() {
    let summary = summarize(&mixed());
    assert_eq!(summary.window.duration_s, Some(2.0));
    close(scalar(&summary, "request_throughput").value, 1.0);
    close(scalar(&summary, "input_throughput").value, 30.0);
    close(scalar(&summary, "output_throughput").value, 5.5);
    close(scalar(&summary, "total_throughput").value, 35.5);
    close(scalar(&summary, "per_user_throughput").value, 5.5 / 4.0);
    // 1 at 800 and 7 at 1500 share a second; the token of the cut stream at 1100 is wasted.
    close(scalar(&summary, "peak_output_throughput").value, 8.0);
    // 300 + 1000 + 100 + 500 ms in flight over 2 s.
    close(scalar(&summary, "concurrency_mean").value, 0.95);
    close(scalar(&summary, "concurrency_peak").value, 2.0);
    close(scalar(&summary, "error_rate").value, 0.5);
    // Mean input 30 over mean TTFT 200 ms; TPOT is 100 ms twice.
    close(scalar(&summary, "pp").value, 150.0);
    close(scalar(&summary, "tg").value, 10.0);
    assert_eq!(scalar(&summary, "pp").unit, "tok/s");
    assert_eq!((summary.tokens.wasted, summary.tokens.wasted_events), (1, 1));
    assert_eq!(summary.attempted, 4);
    assert_eq!(summary.count(Outcome::Truncated), 1);
}

#[test]
fn latencies_are_of_ok_requests_only() {
    let summary = summarize(&mixed());
    let ttft = summary.metrics.distribution(&metric::TTFT).unwrap();
    assert_eq!((ttft.n, ttft.min, ttft.max), (2, Some(100.0), Some(300.0)));
    close(ttft.mean, 200.0);
    close(ttft.std, 141.421_356_237_309_5);
    let itl = summary.metrics.distribution(&metric::ITL).unwrap();
    assert_eq!((itl.n, itl.p50), (9, Some(100.0)));
    assert_eq!(summary.metrics.distribution(&metric::SEND_LAG).unwrap().n, 4);
}

#[test]
fn unknown_token_counts_give_icl_and_a_reason_for_itl() {
    let record = Given::ok(0)
        .arrival(100, &[None])
        .arrival(200, &[None])
        .arrival(400, &[None])
        .usage(10, 3)
        .record();
    let summary = summarize(&run(vec![record]));
    let itl = summary.metrics.distribution(&metric::ITL).unwrap();
    assert_eq!((itl.n, itl.mean), (0, None));
    assert_eq!(
        itl.reason.as_deref(),
        Some("the server does not say how many tokens each event carries; ICL is given instead")
    );
    assert_eq!(summary.metrics.distribution(&metric::ICL).unwrap().n, 2);
    let tpot = summary.metrics.distribution(&metric::TPOT).unwrap();
    assert_eq!((tpot.mean, tpot.note), (Some(150.0), Some(Note::FirstArrivalAssumed)));
    let written = serde_json::to_string(tpot).unwrap();
    assert!(written.contains("\"note\":\"k1_assumed\""), "{written}");
    // 3 tokens over 3 events, but all within less than a second: there is no busiest one.
    let peak = scalar(&summary, "peak_output_throughput");
    assert_eq!(peak.value, None);
    assert!(peak.reason.as_deref().unwrap().contains("shorter than the second"));
}

/// Faults: 63.
#[test]
fn an_empty_answer_is_ok_and_has_no_first_token() {
    let summary = summarize(&run(vec![Given::ok(0).ends(80).usage(10, 0).record()]));
    assert_eq!(summary.count(Outcome::Ok), 1);
    assert_eq!(summary.tokens.without_output, 1);
    let ttft = summary.metrics.distribution(&metric::TTFT).unwrap();
    assert_eq!((ttft.mean, ttft.reason.as_deref()), (None, Some("no ok answer carried output")));
    assert_eq!(scalar(&summary, "pp").value, None);
    // A rate of zero tokens is a measurement here: the request did end ok.
    assert_eq!(scalar(&summary, "output_throughput").value, Some(0.0));
    assert_eq!(scalar(&summary, "peak_output_throughput").value, None);
}

#[test]
fn when_nothing_is_ok_everything_about_answers_is_null_and_says_so() {
    let failed = Given::failed(0, Outcome::StreamError).arrival(50, &[Some(1)]).record();
    let summary = summarize(&run(vec![failed]));
    assert_eq!(summary.verdict, Verdict::Invalid);
    let latencies = ["ttft", "ttft_schedule", "ttfc", "ttst", "icl", "itl", "tpot", "e2e"];
    for name in latencies.into_iter().chain(["arrival_width"]) {
        let found =
            summary.metrics.distribution(crate::metric::Metric::named(name).unwrap()).unwrap();
        assert_eq!((found.n, found.p50), (0, None), "{name}");
        assert_eq!(found.reason.as_deref(), Some("no request ended ok"), "{name}");
    }
    for name in ["request_throughput", "output_throughput", "peak_output_throughput", "pp", "tg"] {
        let found = scalar(&summary, name);
        assert!(found.value.is_none() && found.reason.is_some(), "{name}");
    }
    assert_eq!(scalar(&summary, "error_rate").value, Some(1.0));
    assert_eq!(summary.metrics.distribution(&metric::CLIENT_LAG).unwrap().n, 1);
}

#[test]
fn a_run_without_requests_is_all_null() {
    let summary = summarize(&run(vec![]));
    for (metric, value) in summary.metrics.iter() {
        let reason = match value {
            crate::MetricValue::Distribution(found) => {
                assert_eq!((found.n, found.mean), (0, None), "{}", metric.name);
                &found.reason
            }
            crate::MetricValue::Scalar(found) => {
                assert_eq!(found.value, None, "{}", metric.name);
                &found.reason
            }
        };
        assert!(reason.is_some(), "{}", metric.name);
    }
    assert_eq!(summary.window.duration_s, None);
    assert_eq!(summary.vllm.duration_s, None);
}

#[test]
fn an_open_loop_has_no_per_user_throughput() {
    let mut observations = calm();
    observations.manifest.spec.load.shape = LoadShape::Open {
        rate: Rate::Steady { per_s: 10.0 },
        arrivals: Arrivals::Constant,
        cap: None,
    };
    let summary = summarize(&observations);
    let per_user = scalar(&summary, "per_user_throughput");
    assert_eq!(per_user.value, None);
    assert!(per_user.reason.as_deref().unwrap().contains("open loop"));
    let written = serde_json::to_string(&summary.run.load).unwrap();
    assert_eq!(
        written,
        r#"{"kind":"open","rate":{"kind":"steady","per_s":10.0},"arrivals":"constant","max_concurrency":null}"#
    );
    assert!(summary.run.load.is_open());
}

#[test]
fn an_extent_by_time_is_written_in_seconds() {
    let mut observations = calm();
    let mut written = |extent| {
        observations.manifest.spec.load.extent = extent;
        serde_json::to_string(&summarize(&observations).run.extent).unwrap()
    };
    let duration = std::time::Duration::from_millis(1_500);
    assert_eq!(written(Extent::Duration(duration)), r#"{"duration_s":1.5}"#);
    let requests = std::num::NonZeroU64::new(9).unwrap();
    assert_eq!(
        written(Extent::UntilBoth { requests, duration }),
        r#"{"until_both":{"requests":9,"duration_s":1.5}}"#
    );
}

#[test]
fn a_warm_up_is_told_and_not_counted() {
    let mut observations = calm();
    let without = summarize(&observations);
    assert_eq!(without.run.warm_up, None);
    observations.manifest.warm_up = Some(inferometer_model::observations::WarmUpFacts {
        requests: 4,
        ok: 3,
        failed: 1,
        took: std::time::Duration::from_millis(2_500),
    });
    let with = summarize(&observations);
    let written = serde_json::to_string(&with.run.warm_up).unwrap();
    assert_eq!(written, r#"{"requests":4,"ok":3,"failed":1,"took_s":2.5}"#);
    assert_eq!((with.scheduled, &with.outcomes), (without.scheduled, &without.outcomes));
}

#[test]
fn requests_never_sent_are_scheduled_and_not_attempted() {
    let mut observations = calm();
    observations.not_sent = vec![NotSent {
        first: RequestId(40),
        count: 5,
        cause: Cause::RunStopped,
        at: Moment::ZERO,
    }];
    let summary = summarize(&observations);
    assert_eq!((summary.scheduled, summary.attempted), (45, 40));
    assert_eq!(summary.count(Outcome::NotSent), 5);
    assert_eq!(summary.outcomes.values().sum::<u64>(), summary.scheduled);
}

#[test]
fn warnings_come_gravest_first_and_decide_the_verdict() {
    let mut observations = calm();
    observations.records.held_mut()[0].other_model = Some("other".to_owned());
    observations.records.held_mut()[1].done.events_after = 1;
    observations.ending.stop = inferometer_model::journal::RunStop::Drained;
    let summary = summarize(&observations);
    let severities: Vec<Severity> = summary.warnings.iter().map(|notice| notice.severity).collect();
    assert_eq!(severities, [Severity::Invalid, Severity::Degraded, Severity::Note]);
    assert_eq!(summary.verdict, Verdict::Invalid);
    assert!(summary.run.partial);
    for notice in &summary.warnings {
        assert!(!notice.text.is_empty() && !notice.remedy.is_empty(), "{}", notice.key);
    }
}

/// Faults: 55.
#[test]
fn hostile_counts_stay_finite() {
    let mut record = Given::ok(0)
        .arrival(100, &[Some(u32::MAX), Some(u32::MAX)])
        .arrival(200, &[Some(u32::MAX)])
        .usage(u64::MAX, u64::MAX)
        .record();
    record.asked.output_tokens = 1;
    let twin = Given::ok(1).arrival(150, &[None]).usage(u64::MAX, u64::MAX).record();
    let summary = summarize(&run(vec![record, twin]));
    assert_eq!(summary.tokens.output_total, 4, "counted as events: nothing else is possible");
    assert_eq!(summary.verdict, Verdict::Invalid);
    for (metric, value) in summary.metrics.iter() {
        let (found, reason) = match value {
            crate::MetricValue::Distribution(found) => (found.mean, &found.reason),
            crate::MetricValue::Scalar(found) => (found.value, &found.reason),
        };
        assert_eq!(found.is_none(), reason.is_some(), "{}", metric.name);
        assert!(found.is_none_or(f64::is_finite), "{}", metric.name);
    }
}

#[test]
fn a_summary_survives_its_own_document() {
    for observations in [calm(), mixed(), run(vec![])] {
        let summary = summarize(&observations);
        let bytes = summary.to_json_bytes();
        let read = Summary::from_json_bytes(&bytes).unwrap();
        assert_eq!(read, summary);
        assert_eq!(read.to_json_bytes(), bytes);
    }
}

/// A client whose clocks are off by any amount measures the same durations.
/// Faults: 79, 81.
#[test]
fn no_figure_depends_on_where_the_clocks_stand() {
    let summary = summarize(&calm());
    for (monotonic_ns, realtime_ns) in [(40_000_000, 40_000_000), (0, u64::MAX), (u64::MAX, 0)] {
        let mut elsewhere = calm();
        let clock = &mut elsewhere.manifest.clock;
        clock.monotonic_ns = clock.monotonic_ns.wrapping_add(monotonic_ns);
        clock.realtime_ns = clock.realtime_ns.wrapping_add(realtime_ns);
        assert_eq!(summarize(&elsewhere).to_json_bytes(), summary.to_json_bytes());
    }
}

#[test]
fn a_document_of_another_form_says_so() {
    let other = Summary::from_json_bytes(b"{\"schema\": \"inferometer.summary/2\", \"run\": 3}");
    assert!(
        matches!(other.unwrap_err(), DocumentError::Schema { found, .. } if found.ends_with("/2"))
    );
    assert!(matches!(Summary::from_json_bytes(b"[]").unwrap_err(), DocumentError::Json(_)));
}

/// The document as it would be without its checksum.
fn without_checksum(summary: &Summary) -> String {
    let text = String::from_utf8(summary.to_json_bytes()).unwrap();
    let (document, checksum) = text.split_once(",\n  \"checksum\": \"crc32c:").unwrap();
    assert_eq!(checksum.len(), "01234567\"\n}\n".len());
    format!("{document}\n}}\n")
}

#[test]
fn a_key_of_tomorrow_does_not_stop_us() {
    let text = without_checksum(&summarize(&calm()));
    let more = text.replacen('{', "{\"files\": [\"summary.json\"],", 1);
    assert_eq!(Summary::from_json_bytes(more.as_bytes()).unwrap(), summarize(&calm()));
}

#[test]
fn a_document_that_was_changed_says_so() {
    let text = String::from_utf8(summarize(&calm()).to_json_bytes()).unwrap();
    let by_hand = text.replacen("\"attempted\": ", "\"attempted\": 1", 1);
    assert_ne!(by_hand, text);
    let by_a_program: serde_json::Value = serde_json::from_str(&by_hand).unwrap();
    for changed in [by_hand, by_a_program.to_string()] {
        let refused = Summary::from_json_bytes(changed.as_bytes()).unwrap_err();
        assert!(matches!(refused, DocumentError::Changed), "{refused}");
    }
}

#[test]
fn every_metric_of_the_table_is_in_the_document_with_its_shape() {
    let summary = summarize(&mixed());
    let found: Vec<&str> = summary.metrics.iter().map(|(metric, _)| metric.name).collect();
    let table: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    assert_eq!(found, table);
    for metric in METRICS {
        let is_there = match metric.shape() {
            Shape::Distribution => summary.metrics.distribution(metric).is_some(),
            Shape::Scalar => summary.metrics.scalar(metric).is_some(),
        };
        assert!(is_there, "{}", metric.name);
    }
}

#[test]
fn the_documented_form() {
    let mut observations = scraped(mixed(), 1_034.0, 20.0);
    observations.records.held_mut()[3].ending.message = Some("try again later".to_owned());
    observations.records.held_mut()[3].ending.at = ms(2_000);
    insta::assert_snapshot!(without_checksum(&summarize(&observations)));
}

#[test]
fn what_generates_no_tokens_reports_none() {
    use inferometer_model::endpoint::Api;

    for api in [Api::Embeddings, Api::Rerank] {
        let mut observations = run((0..40)
            .map(|id| {
                let at = 100 * id;
                let given = Given::ok(id).moments(at, at, at).arrival(at + 1_000, &[None]);
                given.asked(512, 128).usage(512, 0).record()
            })
            .collect());
        observations.manifest.spec.api = api;
        observations.manifest.spec.workload.streaming = false;
        let summary = summarize(&observations);
        for name in [
            "output_throughput",
            "total_throughput",
            "per_user_throughput",
            "peak_output_throughput",
            "fluidity",
            "tg",
        ] {
            let found =
                summary.metrics.scalar(crate::metric::Metric::named(name).unwrap()).unwrap();
            let reason = Some("this API generates no tokens");
            assert_eq!((found.value, found.reason.as_deref()), (None, reason), "{name}");
        }
        assert!(summary.metrics.scalar(&metric::INPUT_THROUGHPUT).unwrap().value.is_some());
        assert!(summary.metrics.distribution(&metric::E2E).unwrap().mean.is_some());
        assert_eq!(summary.tokens.output_total, 0);
        assert_eq!(summary.workload.output_tokens, None);
        assert_eq!(
            summary.workload.audit.output.reason.as_deref(),
            Some("this API generates no tokens")
        );
        let keys: Vec<&str> = summary.warnings.iter().map(|notice| notice.key.as_str()).collect();
        for key in ["output_length", "usage_zero", "token_source"] {
            assert!(!keys.contains(&key), "{keys:?}");
        }
    }
}
