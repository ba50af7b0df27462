//! Each promise, taken or refused.

use super::*;

fn slo(text: &str) -> Slo {
    text.parse().unwrap()
}

fn refused(text: &str) -> String {
    check_slos(&[slo(text)], true).unwrap_err().to_string()
}

#[test]
fn sensible_promises_are_taken() {
    let sensible = [
        "ttft<500ms",
        "ttft_schedule<500ms",
        "ttfc<1s",
        "tpot<50ms",
        "e2e<10s",
        "e2e_schedule<10s",
        "ttft.p99<500ms",
        "ttft.sent<1s",
        "e2e.schedule.p99.9<20s",
        "itl.mean<50ms",
        "send_lag.max<5ms",
        "output_throughput>1000",
        "request_throughput>5",
        "error_rate<1%",
        "concurrency_mean<32",
        "concurrency_peak>16",
        "goodput>4",
        "attainment>99%",
    ];
    let slos: Vec<Slo> = sensible.into_iter().map(slo).collect();
    assert_eq!(check_slos(&slos, true), Ok(()));
    assert_eq!(check_slos(&[], true), Ok(()));
}

#[test]
fn an_unknown_metric_is_answered_with_the_nearest() {
    for (typed, near) in [
        ("tfft<500ms", "ttft"),
        ("output_throughputs>5", "output_throughput"),
        ("ttft_scheduled<1s", "ttft_schedule"),
        ("errorrate<1%", "error_rate"),
    ] {
        let message = refused(typed);
        assert!(message.contains(&format!("nearest is `{near}`")), "{message}");
    }
}

#[test]
fn a_statistic_must_be_known_and_have_something_to_choose_from() {
    assert!(refused("ttft.p98<1s").contains("no statistic `p98`; write p50, p90"));
    assert!(refused("itl.sent<1s").contains("no statistic `sent`"));
    assert!(refused("ttft.sent.p1<1s").contains("no statistic `sent.p1`"));
    let message = refused("output_throughput.p99>5");
    assert!(message.contains("one value for the whole run; leave out `.p99`"), "{message}");
}

#[test]
fn gaps_have_no_value_of_each_request() {
    for name in ["itl", "icl"] {
        let message = refused(&format!("{name}<50ms"));
        assert!(message.contains(&format!("write {name}.p99")), "{message}");
        assert!(message.contains("set an SLO on tpot"), "{message}");
    }
    assert!(refused("send_lag<5ms").contains("describes the client"));
}

#[test]
fn a_limit_must_have_the_unit_of_its_metric() {
    assert!(refused("output_throughput>500ms").contains("in tok/s; write it without"));
    assert!(refused("goodput>5%").contains("req/s"));
    assert!(refused("concurrency_mean<5ms").contains("in requests; write"));
    assert!(refused("ttft<500").contains("such as 500ms"));
    assert!(refused("error_rate<0.01").contains("such as 1%"));
}

#[test]
fn a_promise_of_a_worse_service_is_refused() {
    let message = refused("ttft>500ms");
    assert!(message.contains("lower is better for ttft, so write `<`"), "{message}");
    assert!(refused("output_throughput<5").contains("higher is better"));
}

#[test]
fn goodput_needs_a_promise_of_each_request() {
    assert!(refused("goodput>5").contains("add one, such as ttft<500ms"));
    assert_eq!(check_slos(&[slo("attainment>90%"), slo("e2e<5s")], true), Ok(()));
}

#[test]
fn bare_latencies_begin_where_the_load_begins() {
    for (text, zero, expected) in [
        ("ttft<1s", LatencyOrigin::Sent, "ttft"),
        ("ttft<1s", LatencyOrigin::Schedule, "ttft_schedule"),
        ("e2e.p99<1s", LatencyOrigin::Schedule, "e2e_schedule"),
        ("e2e.sent.p99<1s", LatencyOrigin::Schedule, "e2e"),
        ("ttft.schedule<1s", LatencyOrigin::Sent, "ttft_schedule"),
        ("ttft_schedule<1s", LatencyOrigin::Sent, "ttft_schedule"),
        ("tpot<1s", LatencyOrigin::Schedule, "tpot"),
    ] {
        assert_eq!(
            Threshold::from_slo(&slo(text), zero).unwrap().quantity.metric().name,
            expected,
            "{text}"
        );
    }
}

#[test]
fn the_limit_itself_keeps_the_promise() {
    let below = Threshold::from_slo(&slo("ttft<500ms"), LatencyOrigin::Sent).unwrap();
    assert!(below.is_met_by(500.0) && !below.is_met_by(500.1));
    let above = Threshold::from_slo(&slo("output_throughput>10"), LatencyOrigin::Sent).unwrap();
    assert!(above.is_met_by(10.0) && !above.is_met_by(9.9));
}

#[test]
fn what_only_a_stream_shows_is_not_promised_of_whole_answers() {
    let problem = |text: &str| check_slos(&[slo(text)], false);
    for text in ["ttft<1s", "ttft.schedule<1s", "ttfc<1s", "tpot<50ms"] {
        let message = problem(text).unwrap_err().to_string();
        assert!(message.contains("the answers are not streamed"), "{message}");
    }
    assert_eq!(problem("e2e<1s"), Ok(()));
    // A run may promise what then stays undecided.
    assert_eq!(problem("ttft.p99<1s"), Ok(()));
}
