//! Figures agree with the metrics of the same run, and stay small.

use inferometer_model::spec::{Arrivals, LoadShape, Rate};
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};

use crate::figures::*;
use crate::fixture::{Given, calm_of, calm_record, ms, run};
use crate::statistics::Percentile;
use crate::{Summary, summarize};

fn sum(counts: &[u64]) -> u64 {
    counts.iter().sum()
}

fn close(found: f64, expected: f64) {
    let allowed = 1e-9 * expected.abs().max(1.0);
    assert!((found - expected).abs() < allowed, "found {found}, expected {expected}");
}

/// What must hold of the figures of any run.
pub(crate) fn check(summary: &Summary, observations: &Observations) {
    let figures = &summary.figures;
    for drawn in &figures.distributions {
        let named = crate::metric::Metric::named(&drawn.metric).unwrap();
        // Where the steady part has no value of its own, the chart is of the whole run.
        let headline = summary.headline();
        let steady = headline.distribution(named).filter(|it| 0 < it.n);
        let metric = steady.or(summary.metrics.distribution(named)).unwrap();
        assert_eq!(drawn.n, metric.n, "{}", drawn.metric);
        let (first, last) = (drawn.points[0], drawn.points[drawn.points.len() - 1]);
        assert_eq!((first, last), ((0.0, metric.min.unwrap()), (1.0, metric.max.unwrap())));
        let tabled = [metric.p50, metric.p90, metric.p95, metric.p99, metric.p999];
        for (percentile, value) in Percentile::ALL.into_iter().zip(tabled) {
            let at =
                |point: &&(f64, f64)| point.0.total_cmp(&percentile.probability().share()).is_eq();
            if let Some(point) = drawn.points.iter().find(at) {
                assert_eq!(Some(point.1), value, "{} {percentile:?}", drawn.metric);
            }
        }
        assert!(drawn.points.len() <= 90);
    }
    check_course(&figures.course, summary, observations);
    check_gaps(figures.gaps.as_ref(), summary);
    assert_eq!(figures.requests.of, summary.attempted);
    assert_eq!(figures.requests.rows.len() as u64, summary.attempted.min(40));
}

fn check_course(course: &CourseFigure, summary: &Summary, observations: &Observations) {
    let steps = course.in_flight.len();
    assert!(steps <= 200);
    let others = [&course.output_tokens, &course.ended_ok, &course.ended_otherwise];
    assert!(others.iter().all(|column| column.len() == steps));
    assert_eq!(sum(&course.output_tokens), summary.tokens.output_total);
    assert_eq!(sum(&course.ended_ok), summary.count(Outcome::Ok));
    let otherwise = summary.attempted - summary.count(Outcome::Ok);
    assert_eq!(sum(&course.ended_otherwise), otherwise);
    let records = observations.records.iter();
    let durations = records.filter_map(|record| record.ending.at.since(record.sent?));
    let total_ms: f64 = durations.map(|length| length.as_secs_f64() * 1e3).sum();
    close(course.in_flight.iter().sum::<f64>() * course.step_ms, total_ms);
    assert!(course.in_flight.iter().all(|mean| 0.0 <= *mean && mean.is_finite()));
    let ttft = summary.metrics.distribution(&crate::metric::TTFT).unwrap();
    let known: Vec<f64> = course.ttft_ms.iter().copied().flatten().collect();
    assert_eq!(course.ttft_ms.len(), if ttft.n == 0 { 0 } else { steps });
    assert_eq!(known.is_empty(), ttft.n == 0);
    assert!(known.iter().all(|mean| (0.0..=ttft.max.unwrap() + 1e-9).contains(mean)));
}

fn check_gaps(gaps: Option<&GapsFigure>, summary: &Summary) {
    let n = |name: &str| {
        summary.metrics.distribution(crate::metric::Metric::named(name).unwrap()).unwrap().n
    };
    let Some(gaps) = gaps else {
        assert_eq!(n("itl"), 0);
        return;
    };
    assert_eq!(gaps.columns.iter().map(|column| sum(column)).sum::<u64>(), n(&gaps.metric));
    assert!(gaps.columns.len() <= 60 && gaps.edges_ms.len() <= 25);
    assert!(gaps.columns.iter().all(|column| column.len() + 1 == gaps.edges_ms.len()));
    assert!(gaps.edges_ms.is_sorted_by(|one, other| one < other));
}

fn checked(observations: &Observations) -> RunFigures {
    let summary = summarize(observations);
    check(&summary, observations);
    summary.figures
}

/// A stream whose lengths, gaps and load differ from request to request.
fn varied_record(id: u64) -> RequestRecord {
    let sent = 37 * id;
    let mut at = sent + 40 + (id * 7_919) % 97;
    let mut given = Given::ok(id).moments(sent - sent % 5, sent, sent);
    let arrivals = 2 + id % 9;
    for arrival in 0..arrivals {
        given = given.arrival(at, &[Some(1 + u32::try_from((id + arrival) % 3).unwrap())]);
        at += 5 + (id * arrival * 104_729) % 61;
    }
    given.no_usage().record()
}

#[test]
fn bounds_hold_whatever_the_length_of_the_run() {
    for requests in [1, 2, 41, 10_000] {
        let observations = run((0..requests).map(varied_record).collect());
        let figures = checked(&observations);
        let json = serde_json::to_vec(&figures).unwrap().len();
        assert!(json < 40_000, "{json} bytes of {requests} requests");
        let stored = summarize(&observations).to_json_bytes().len();
        assert!(stored < 80_000, "{stored} bytes of {requests} requests");
    }
}

#[test]
fn a_run_without_requests_has_empty_figures() {
    let mut observations = run(vec![]);
    observations.ending.client.loop_lag = inferometer_model::journal::LagHistogram::default();
    assert_eq!(summarize(&observations).figures, RunFigures::default());
}

#[test]
fn a_run_of_failures_is_drawn_without_answers() {
    let failed =
        |id| Given::failed(id, Outcome::Rejected).moments(id, id, id).ends(id + 9).record();
    let mut records: Vec<RequestRecord> = (0..20).map(failed).collect();
    for record in &mut records[..5] {
        record.sent = None;
    }
    let figures = checked(&run(records));
    let drawn: Vec<&str> = figures.distributions.iter().map(|d| d.metric.as_str()).collect();
    assert_eq!(drawn, ["send_lag"]);
    assert_eq!(sum(&figures.course.ended_otherwise), 20);
    assert_eq!((figures.gaps, figures.requests.rows.len()), (None, 20));
}

#[test]
fn requests_in_flight_are_a_mean_over_each_step() {
    // Ten seconds in steps of 50 ms: one request throughout, another from 2,525 ms to 2,600 ms.
    let second = Given::ok(1).moments(2_525, 2_525, 2_525).arrival(2_600, &[Some(1)]).record();
    let first = Given::ok(0).arrival(500, &[Some(1)]).arrival(10_000, &[Some(1)]).record();
    let course = checked(&run(vec![first, second])).course;
    assert_eq!((course.step_ms, course.in_flight.len()), (50.0, 200));
    assert_eq!(course.in_flight[49..53], [1.0, 1.5, 2.0, 1.0]);
    assert_eq!((course.output_tokens[10], course.output_tokens[52]), (1, 1));
    // The last moment belongs to the last step.
    assert_eq!((course.output_tokens[199], course.ended_ok[199]), (1, 1));
}

#[test]
fn tokens_that_only_usage_counts_are_spread_over_the_arrivals() {
    let record = Given::ok(0)
        .arrival(500, &[None])
        .arrival(1_000, &[None, None])
        .arrival(10_000, &[None])
        .usage(10, 8)
        .record();
    let course = checked(&run(vec![record])).course;
    assert_eq!([10, 20, 199].map(|step| course.output_tokens[step]), [2, 4, 2]);
}

#[test]
fn tokens_of_an_answer_without_output_are_where_it_ended() {
    let course =
        checked(&run(vec![Given::ok(0).asked(10, 8).ends(900).usage(10, 8).record()])).course;
    assert_eq!(course.output_tokens[17], 8);
}

#[test]
fn marks_that_contradict_usage_still_add_up_to_it() {
    let record = Given::ok(0).arrival(10, &[Some(2)]).arrival(20, &[Some(3)]).usage(10, 9).record();
    assert_eq!(sum(&checked(&run(vec![record])).course.output_tokens), 9);
}

#[test]
fn an_open_loop_is_drawn_from_the_schedule_too() {
    let mut observations = calm_of(30);
    let rate = Rate::Steady { per_s: 10.0 };
    observations.manifest.spec.load.shape =
        LoadShape::Open { rate, arrivals: Arrivals::Constant, cap: None };
    let figures = checked(&observations);
    let drawn: Vec<&str> = figures.distributions.iter().map(|d| d.metric.as_str()).collect();
    let expected = ["ttft", "ttft_schedule", "itl", "tpot", "e2e", "send_lag", "client_lag"];
    assert_eq!(drawn, expected);
}

#[test]
fn unknown_token_counts_are_drawn_as_gaps_between_chunks() {
    let record = Given::ok(0).arrival(100, &[None]).arrival(120, &[None]).usage(10, 7).record();
    let figures = checked(&run(vec![record]));
    assert_eq!(figures.distributions[1].metric, "icl");
    assert_eq!(figures.gaps.unwrap().metric, "icl");
}

/// Faults: 9.
#[test]
fn a_gap_is_counted_where_it_ends_and_once_for_each_token() {
    let record = Given::ok(0)
        .arrival(0, &[Some(1)])
        .arrival(50, &[Some(1)])
        .arrival(3_000, &[Some(59)])
        .record();
    let gaps = checked(&run(vec![record])).gaps.unwrap();
    assert_eq!((gaps.columns.len(), gaps.step_ms), (60, 50.0));
    let counts: Vec<u64> = gaps.columns.iter().map(|column| sum(column)).collect();
    assert_eq!((counts[1], counts[59], sum(&counts)), (1, 59, 60));
}

#[test]
fn answers_that_come_whole_have_no_gaps_to_draw() {
    let mut observations = calm_of(3);
    observations.manifest.spec.workload.streaming = false;
    let figures = checked(&observations);
    assert_eq!(figures.gaps, None);
    assert!(figures.distributions.iter().all(|drawn| drawn.metric != "ttft"));
}

#[test]
fn the_lags_of_the_loop_are_all_there() {
    let mut observations = calm_of(3);
    let lags = &mut observations.ending.client.loop_lag;
    for lag_ns in [900_000, 3_000_000, 3_000_000] {
        lags.add(lag_ns);
    }
    let drawn = checked(&observations).loop_lag;
    assert_eq!(drawn.iter().map(|(_, count)| count).sum::<u64>(), 4);
    assert!(drawn.is_sorted_by(|one, other| one.0 < other.0), "{drawn:?}");
    assert_eq!(drawn[drawn.len() - 1], (3.0, 2));
}

#[test]
fn a_summary_without_figures_is_still_read() {
    let bytes = summarize(&run(vec![calm_record(0)])).to_json_bytes();
    let mut document: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let fields = document.as_object_mut().unwrap();
    fields.remove("figures");
    fields.remove("checksum");
    let read = Summary::from_json_bytes(&serde_json::to_vec(&document).unwrap()).unwrap();
    assert_eq!(read.figures, RunFigures::default());
}

#[test]
fn a_record_with_moments_out_of_order_breaks_nothing() {
    let mut record = Given::ok(0).moments(5, 9, 80).arrival(20, &[Some(1)]).record();
    record.ending.at = ms(30);
    let mut other = calm_record(1);
    other.ending.at = Moment::from_nanos(u64::MAX);
    checked(&run(vec![record, other]));
}
