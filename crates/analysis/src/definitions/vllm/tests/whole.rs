//! That tool's whole account, recomputed by hand.

use inferometer_model::Observations;
use inferometer_model::outcome::Cause;
use inferometer_model::record::{Carried, ResponseHead};

use crate::definitions::vllm::*;
use crate::fixture::{Given, calm, run};
use crate::summary::summarize;
use crate::tool_result::extra;

fn close(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < 1e-9, "found {found}, expected {expected}");
}

fn vllm_result(observations: &Observations, percentiles: &[&str]) -> ToolResult {
    let percentiles: Vec<String> = percentiles.iter().map(|&rank| rank.to_owned()).collect();
    ToolResult::of_vllm_summed(&summarize(observations), observations, &percentiles, true)
}

fn promising(mut observations: Observations, slos: &[&str]) -> Observations {
    observations.manifest.spec.slos = slos.iter().map(|slo| slo.parse().unwrap()).collect();
    observations
}

/// One that waits 10 ms for its slot and gets two chunks, one that is refused, and one that breaks
/// after its first chunk. All are over after a second.
fn mixed() -> Observations {
    let good = Given::ok(0)
        .moments(0, 10, 10)
        .arrival(110, &[Some(1)])
        .arrival(160, &[Some(2)])
        .usage(30, 3);
    let mut refused = Given::failed(1, Outcome::HttpError).ends(1_000).asked(64, 3).record();
    refused.head = Some(ResponseHead { status: 500, read: 0, streamed: false });
    refused.ending.message = Some("out of memory".to_owned());
    let mut broken = Given::failed(2, Outcome::Truncated).moments(20, 20, 20);
    broken = broken.arrival(90, &[None]).event(95, Carried::USAGE);
    let mut broken = broken.record();
    broken.ending.cause = Some(Cause::NoFinalChunk);
    run(vec![good.record(), refused, broken])
}

#[test]
fn ranks_have_the_names_of_that_tool() {
    let name = |written| Rank::parse(written).map(|rank| rank.name);
    assert_eq!(name("99").as_deref(), Some("99"));
    assert_eq!(name(" 99.0").as_deref(), Some("99"));
    assert_eq!(name("99.90").as_deref(), Some("99.9"));
    assert_eq!(name("-0").as_deref(), Some("0"));
    for refused in ["", "100.1", "-1", "nan", "inf", "p99"] {
        assert_eq!(name(refused), None, "{refused}");
    }
}

#[test]
fn any_percentile_is_given_and_the_median_always() {
    let sheet = vllm_result(&run(spread()), &["25.0", "99.9"]);
    let ttft = sheet.latency(LatencyKind::Ttft).unwrap();
    // TTFTs are 1 to 5 ms. np.percentile([1, 2, 3, 4, 5], [25, 50, 99.9])
    assert_eq!(ttft.percentiles_ms.keys().collect::<Vec<_>>(), ["25", "50", "99.9"]);
    close(ttft.percentile_ms("25"), 2.0);
    close(ttft.median_ms(), 3.0);
    close(ttft.percentile_ms("99.9"), 4.996);
    assert_eq!((ttft.n, ttft.min_ms, ttft.max_ms), (Some(5), Some(1.0), Some(5.0)));
    assert_eq!(sheet.request_goodput, None, "nothing was asked");
}

/// Requests of one token after 1 to 5 ms.
fn spread() -> Vec<RequestRecord> {
    (0..5).map(|id| Given::ok(id).arrival(id + 1, &[Some(1)]).usage(8, 1).record()).collect()
}

#[test]
fn a_request_is_good_within_every_limit_and_one_token_has_no_tpot() {
    let good = |slos: &[&str]| {
        let sheet = vllm_result(&promising(run(spread()), slos), &[]);
        sheet.request_goodput.zip(sheet.duration_s).map(|(per_s, s)| (per_s * s).round())
    };
    assert_eq!(good(&["ttft<=3ms"]), Some(3.0), "the limit itself is kept");
    assert_eq!(good(&["ttft<=3ms", "e2e<=2.5ms"]), Some(2.0));
    assert_eq!(good(&["tpot<=0.1ms"]), Some(5.0));
    assert_eq!(good(&["ttft<=3ms", "ttft<=1ms"]), Some(1.0));
    assert_eq!(good(&["ttft<=0.5ms"]), Some(0.0), "none is a number");
    assert_eq!(good(&[]), None);
}

#[test]
fn a_run_that_promised_something_has_its_goodput() {
    let good = |promises: &[&str]| {
        let observations = promising(run(spread()), promises);
        let told = ToolResult::of_vllm(&summarize(&observations)).request_goodput;
        let sheet = vllm_result(&observations, &[]);
        assert_eq!(sheet.request_goodput, told, "the detailed form says the same");
        told.zip(sheet.duration_s).map(|(per_s, s)| (per_s * s).round())
    };
    assert_eq!(good(&["ttft<=3ms"]), Some(3.0));
    assert_eq!(good(&["ttft<3ms", "e2e<2.5ms", "ttft.p99<1ms"]), Some(2.0));
    assert_eq!(good(&["tpot<1ms"]), Some(5.0));
    assert_eq!(good(&["ttft.p99<3ms"]), None, "that is of the whole run");
    assert_eq!(good(&["ttft<3ms", "ttfc<3ms"]), None, "that tool has no such limit");
}

#[test]
fn where_nothing_is_generated_inputs_are_counted() {
    let mut observations = run(spread());
    observations.manifest.spec.api = Api::Embeddings;
    let sheet = vllm_result(&observations, &[]);
    assert_eq!(sheet.further.get(extra::INPUTS.key), Some(&5.0));
    assert_eq!(sheet.further.get(extra::INPUT_THROUGHPUT.key).copied(), sheet.request_throughput);
    assert_eq!((sheet.output_tokens, sheet.output_throughput), (None, None));
    assert_eq!((sheet.peak_output_throughput, sheet.peak_concurrent_requests), (None, None));
}

#[test]
fn rows_say_what_came_and_why_the_rest_did_not() {
    let sheet = vllm_result(&mixed(), &["99"]);
    let rows = sheet.requests.unwrap();
    let good = &rows[0];
    close(good.start_s, 0.01);
    close(good.queued_s, 0.01);
    close(good.ttft_s, 0.1);
    close(good.e2e_s, 0.15);
    assert_eq!(good.gaps_s, [0.05]);
    assert_eq!((good.input_tokens, good.output_tokens), (Some(30), Some(3)));
    assert_eq!(good.error.as_deref(), Some(""));
    assert_eq!(good.text, None, "answers are not kept");

    let refused = &rows[1];
    assert_eq!(refused.error.as_deref(), Some("http_error 500: out of memory"));
    assert_eq!((refused.input_tokens, refused.output_tokens), (Some(64), None));
    assert_eq!((refused.ttft_s, refused.e2e_s), (None, None));

    let broken = &rows[2];
    close(broken.ttft_s, 0.07);
    assert_eq!((broken.e2e_s, broken.output_tokens), (None, None));
    let why = "truncated: the connection closed before the body ended";
    assert_eq!(broken.error.as_deref(), Some(why));
    assert_eq!((sheet.completed, sheet.failed), (Some(1), Some(2)));
}

#[test]
fn failures_are_in_no_latency() {
    let sheet = vllm_result(&promising(mixed(), &["ttft<=500ms"]), &["99"]);
    assert_eq!(sheet.latency(LatencyKind::Ttft).and_then(|ttft| ttft.n), Some(1));
    close(sheet.latency(LatencyKind::Tpot).unwrap().mean_ms, 25.0);
    close(sheet.request_goodput, 1.0);
    let nothing = run(vec![Given::failed(0, Outcome::HttpError).ends(50).record()]);
    let sheet = vllm_result(&promising(nothing, &["ttft<=1ms"]), &["99"]);
    assert!(sheet.latencies.is_empty());
    assert_eq!(sheet.request_goodput, Some(0.0), "none of those that were sent was good");
}

#[test]
fn the_figures_are_those_of_the_summary() {
    let observations = calm();
    let mut whole = vllm_result(&observations, &["90", "95", "99"]);
    assert_eq!(whole.requests.take().map(|rows| rows.len()), Some(40));
    assert_eq!(whole.backend.as_deref(), Some("openai"), "that tool's word");
    for latency in &mut whole.latencies {
        (latency.n, latency.min_ms, latency.max_ms) = (None, None, None);
    }
    assert_eq!(whole, ToolResult::of_vllm(&summarize(&observations)));
}
