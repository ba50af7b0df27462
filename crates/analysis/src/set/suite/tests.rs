//! The rules on the figures of a published suite, and on the same suite as it should have been.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use inferometer_model::Moment;
use inferometer_model::spec::{Extent, Lengths, LoadShape, Source, Think, VllmRandom};
use inferometer_model::study::{
    Condition, Level, Point, Question, Repetition, RunOrder, Scenario, SetManifest, Stage, Suite,
};

use super::*;
use crate::fixture::{Given, calm, run};
use crate::judge::{Severity, Verdict, Warning};
use crate::metric::MetricValue;
use crate::run::{LoadFacts, ThinkFacts};
use crate::set::SetSummary;
use crate::set::fixture::changed_metrics;
use crate::summary::{Summary, summarize};

mod prefill;
mod rows;
mod sent;

const SCALING: &str = "Concurrency Scaling";

#[derive(Deserialize)]
struct PublishedTable {
    #[serde(rename = "row")]
    rows: Vec<PublishedRow>,
}

/// What of a published row the rules look at.
#[derive(Deserialize)]
struct PublishedRow {
    name: String,
    input_tokens: u32,
    output_tokens: u32,
    range_ratio: f64,
    concurrency: u32,
    requests: u64,
    output_throughput: Option<f64>,
    ttft_mean_ms: Option<f64>,
    ttft_median_ms: Option<f64>,
    ttft_p99_ms: Option<f64>,
    tpot_mean_ms: Option<f64>,
    tpot_p99_ms: Option<f64>,
}

fn published() -> Vec<PublishedRow> {
    let text = include_str!("../../../../../examples/published/mi100x4-devstral-24b.toml");
    toml::from_str::<PublishedTable>(text).unwrap().rows
}

fn users(row: &PublishedRow) -> NonZeroU32 {
    NonZeroU32::new(row.concurrency).unwrap()
}

/// The scenarios of the published suite: the first five have a level each, the sixth five.
fn manifest(prompts: Prompts, rows: &[PublishedRow]) -> SetManifest {
    let scenario = |levels: Vec<Level>| Scenario {
        category: "Latency".to_owned(),
        purpose: "shows something".to_owned(),
        levels,
        waves: None,
    };
    let (alone, scaling) = rows.split_at(5);
    let levels = scaling.iter().map(|row| Level::Concurrency(users(row))).collect();
    let mut scenarios: Vec<Scenario> =
        alone.iter().map(|_| scenario(vec![Level::AsAsked])).collect();
    scenarios.push(scenario(levels));
    let mut conditions: Vec<Condition> = alone.iter().map(condition).collect();
    conditions.push(Condition { name: SCALING.to_owned(), ..condition(&scaling[0]) });
    SetManifest {
        format: 1,
        set: "20260101-000000-set".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        tool_version: "0.1.0".to_owned(),
        simulated: false,
        key_files: Vec::new(),
        workers: None,
        study: StudySpec {
            question: Question::Suite(Suite {
                name: "standard".to_owned(),
                title: "Standard".to_owned(),
                hash: "00".to_owned(),
                changes: Vec::new(),
                prompts,
                scenarios,
            }),
            conditions,
            repetition: Repetition {
                runs: NonZeroU32::MIN,
                cool_down: Duration::ZERO,
                restart: None,
                stop_at: None,
            },
            order: RunOrder::Listed,
            seed: 0,
        },
    }
}

fn condition(row: &PublishedRow) -> Condition {
    let mut spec = calm().manifest.spec;
    let input = match row.range_ratio {
        0.0 => Lengths::from(row.input_tokens),
        share => format!("{}±{}%", row.input_tokens, share * 100.0).parse().unwrap(),
    };
    let output = Lengths::from(row.output_tokens);
    spec.workload.source = Source::VllmRandom(VllmRandom { input, output, prefix_tokens: 0 });
    spec.load.shape = LoadShape::Closed { concurrency: users(row), think: Think::None };
    spec.load.extent = Extent::Requests(NonZeroU64::new(row.requests).unwrap());
    Condition { name: row.name.clone(), spec }
}

/// One request whose times are the published means, so that what follows from them is computed as
/// of any run; what does not is set.
fn summary(row: &PublishedRow) -> Summary {
    let hundredths =
        |ms: Option<f64>| format!("{:.0}", ms.unwrap() * 100.0).parse::<u64>().unwrap();
    let first = hundredths(row.ttft_mean_ms);
    let last = first + hundredths(row.tpot_mean_ms) * u64::from(row.output_tokens - 1);
    let mut record = Given::ok(0)
        .asked(row.input_tokens, row.output_tokens)
        .arrival(first, &[Some(1)])
        .arrival(last, &[Some(row.output_tokens - 1)])
        .usage(row.input_tokens.into(), row.output_tokens.into())
        .record();
    let exact = |at: Moment| Moment::from_nanos(at.as_nanos() / 100);
    for read in &mut record.reads {
        let at = exact(read.user);
        (read.kernel, read.user, read.turn) = (Some(at), at, at);
    }
    record.ending.at = exact(record.ending.at);
    let mut summary = summarize(&run(vec![record]));
    (summary.verdict, summary.warnings) = (Verdict::Valid, Vec::new());
    summary.run.load = LoadFacts::Closed {
        concurrency: row.concurrency,
        think: ThinkFacts::None,
        ramp_up_s: None,
    };
    summary.metrics = changed_metrics(&summary, |name, value| match (name, value) {
        ("output_throughput", MetricValue::Scalar(found)) => found.value = row.output_throughput,
        ("concurrency_peak", MetricValue::Scalar(found)) => {
            found.value = Some(row.requests.min(row.concurrency.into()) as f64);
        }
        ("per_user_throughput", MetricValue::Scalar(found)) => {
            found.value = row.output_throughput.map(|sum| sum / f64::from(row.concurrency));
        }
        ("ttft", MetricValue::Distribution(found)) => {
            (found.p50, found.p99) = (row.ttft_median_ms, row.ttft_p99_ms);
        }
        ("tpot", MetricValue::Distribution(found)) => found.p99 = row.tpot_p99_ms,
        (_, MetricValue::Scalar(_) | MetricValue::Distribution(_)) => {}
    });
    summary
}

/// The runs of the suite, changed by `change`.
fn played(prompts: Prompts, change: impl Fn(usize, &mut Summary)) -> SetSummary {
    let rows = published();
    let results: Vec<PointResult> = rows
        .iter()
        .enumerate()
        .map(|(place, row)| {
            let number = u32::try_from(place).unwrap();
            let level = if place < 5 { Level::AsAsked } else { Level::Concurrency(users(row)) };
            let seed = if prompts == Prompts::Same { 0 } else { number.into() };
            let (condition, stage) = (number.min(5), Stage::Planned);
            let mut summary = summary(row);
            change(place, &mut summary);
            let point = Point { number, condition, level, repetition: 0, seed, stage };
            PointResult { point, summary }
        })
        .collect();
    SetSummary::summarize(&manifest(prompts, &rows), &results)
}

fn column(set: &SetSummary, quantity: &str, decimals: usize) -> Vec<String> {
    let suite = set.suite.as_ref().unwrap();
    let figure = |row: &SuiteRow| row.summary(&set.conditions)?.quantities.get(quantity)?.mean;
    suite.rows.iter().map(|row| format!("{:.decimals$}", figure(row).unwrap())).collect()
}

fn notice<'a>(set: &'a SetSummary, key: &str) -> Option<&'a Warning> {
    set.warnings.iter().find(|notice| notice.key == key)
}

#[test]
fn the_rows_are_those_of_the_published_page() {
    let set = played(Prompts::Same, |_, _| {});
    let suite = set.suite.as_ref().unwrap();
    let names: Vec<&str> = suite.rows.iter().map(|row| row.name.as_str()).collect();
    let scaling = [2, 4, 8, 16, 32].map(|users| format!("{SCALING} (c={users})"));
    let first = [
        "Single User Latency",
        "Short Context Throughput",
        "Long Context (16K)",
        "Decode Stress Test",
        "Mixed Traffic",
    ];
    assert_eq!(names[..5], first);
    assert_eq!(names[5..], scaling);
    let concurrency: Vec<u32> = suite.rows.iter().filter_map(|row| row.concurrency).collect();
    assert_eq!(concurrency, [1, 16, 4, 1, 8, 2, 4, 8, 16, 32]);
    let lengths = |row: &SuiteRow| (row.input_tokens.clone(), row.output_tokens.clone());
    assert_eq!(lengths(&suite.rows[0]), (Some("2048".to_owned()), Some("512".to_owned())));
    assert_eq!(suite.rows[4].input_tokens.as_deref(), Some("2048±50%"));
    assert_eq!(suite.rows.iter().filter_map(|row| row.requests).sum::<u64>(), 265);
    assert_eq!(suite.rows[9].points, [9]);
    assert_eq!(suite.scaling, Some(5));
}

/// Prefill is the input over the mean TTFT, decode the inverse of the mean TPOT.
#[test]
fn prefill_decode_and_per_user_columns_are_the_published_ones_to_the_digit() {
    let set = played(Prompts::Same, |_, _| {});
    let prefill = [
        "1892.4", "339.8", "1308.8", "2956.8", "976.5", "4826.1", "8892.7", "6451.6", "4382.1",
        "2819.6",
    ];
    assert_eq!(column(&set, "pp", 1), prefill);
    let decode = ["54.9", "24.0", "21.6", "56.3", "22.8", "50.7", "45.2", "34.7", "26.2", "13.1"];
    assert_eq!(column(&set, "tg", 1), decode);
    let per_user = &column(&set, "per_user_throughput", 2)[5..];
    assert_eq!(per_user, ["48.86", "41.99", "31.99", "24.05", "12.10"]);
}

#[test]
fn the_sweet_spot_and_the_peak_are_the_published_ones() {
    let set = played(Prompts::Same, |_, _| {});
    let findings = set.conditions[5].findings.as_ref().unwrap();
    let spot = findings.per_user_spot.found().unwrap();
    assert_eq!(spot.level.to_string(), "c=4");
    assert_eq!(format!("{:.1}", spot.per_user_throughput.value), "42.0");
    let peak = findings.peak.found().unwrap();
    assert_eq!(peak.level.to_string(), "c=32");
    assert_eq!(format!("{:.1}", peak.throughput.value), "387.1");
    assert!(set.conditions[..5].iter().all(|condition| condition.findings.is_none()));
}

#[test]
fn a_silent_server_is_suspected_by_its_speed() {
    let set = played(Prompts::Same, |_, _| {});
    let suite = set.suite.as_ref().unwrap();
    let rows: Vec<u32> = suite.contaminated.iter().map(|found| found.row).collect();
    assert_eq!(rows, [5, 6, 7, 8], "prompts of 1,024 tokens read faster than those of 2,048");
    let four = &suite.contaminated[1];
    assert!(four.suspected && four.cached_share.is_none(), "{four:?}");
    assert_eq!((four.cold, four.sent_before.as_slice()), (Some(0), &[0, 1, 2, 3, 4, 5][..]));
    let notice = notice(&set, "cache-suspected").unwrap();
    assert_eq!(notice.severity, Severity::Note);
    for evidence in [
        "(c=4) has a prefill speed of 8,893 tokens/s and Single User Latency of 1,892",
        "the mean TTFT of Concurrency Scaling (c=2) is 212.2 ms and its median 90.37 ms",
        "Single User Latency and later scenarios sent prompts with the same beginning",
    ] {
        assert!(notice.text.contains(evidence), "{evidence}: {}", notice.text);
    }
    assert!(notice.remedy.contains("not proven"), "{}", notice.remedy);
}

/// What a server says that tells what it cached: the scaling prompts were warm, others were not.
fn told(place: usize, summary: &mut Summary) {
    let share = match place {
        5 => 0.66,
        6.. => 0.98,
        _ => 0.0,
    };
    summary.workload.audit.cache.share = Some(share);
    if 0.0 < share {
        summary.warnings.push(Warning {
            key: CONTAMINATION.to_owned(),
            check: None,
            severity: Severity::Degraded,
            text: "every prompt was to be new".to_owned(),
            remedy: "restart the server".to_owned(),
        });
    }
}

#[test]
fn what_the_server_says_of_its_cache_degrades_the_set_with_its_evidence() {
    let set = played(Prompts::Same, told);
    let suite = set.suite.as_ref().unwrap();
    let rows: Vec<u32> = suite.contaminated.iter().map(|found| found.row).collect();
    assert_eq!(rows, [5, 6, 7, 8, 9]);
    assert!(suite.contaminated.iter().all(|found| !found.suspected));
    assert_eq!(suite.rows[5].cached_share, Some(0.66));
    let warning = notice(&set, "warm-cache").unwrap();
    assert_eq!((warning.severity, set.verdict), (Severity::Degraded, Verdict::Degraded));
    assert!(
        warning.text.contains("(c=2) 66 %, Concurrency Scaling (c=4) 98 %"),
        "{}",
        warning.text
    );
    assert!(warning.text.contains("of 8,893 tokens/s"), "{}", warning.text);
    assert!(warning.remedy.contains("fresh"), "{}", warning.remedy);
    assert!(notice(&set, CONTAMINATION).is_none(), "it is said once");
    assert!(notice(&set, "cache-suspected").is_none());
}

#[test]
fn prompts_of_its_own_that_were_not_cached_are_no_reason_to_warn() {
    let set = played(Prompts::Fresh, |_, summary| {
        summary.workload.audit.cache.share = Some(0.0);
    });
    assert_eq!(set.suite.as_ref().unwrap().contaminated, []);
    assert!(notice(&set, "warm-cache").is_none() && notice(&set, "cache-suspected").is_none());
    assert_eq!(set.verdict, Verdict::Valid);
    // Warm all the same: another suite with this seed was here before.
    let set = played(Prompts::Fresh, told);
    let found = &set.suite.as_ref().unwrap().contaminated;
    assert!(found.iter().all(|found| found.sent_before.is_empty()));
    assert!(notice(&set, "warm-cache").unwrap().remedy.contains("another --seed"));
}

#[test]
fn a_scenario_that_failed_takes_nothing_from_the_others() {
    let set = played(Prompts::Same, |place, summary| {
        if place == 2 {
            summary.verdict = Verdict::Invalid;
        }
    });
    assert_eq!(set.verdict, Verdict::Invalid);
    let suite = set.suite.as_ref().unwrap();
    assert_eq!((suite.rows[2].points.as_slice(), suite.rows.len()), (&[][..], 10));
    let whole = played(Prompts::Same, |_, _| {});
    for (one, other) in set.conditions.iter().zip(&whole.conditions) {
        assert_eq!(one == other, one.name != "Long Context (16K)", "{}", one.name);
    }
    assert!(notice(&set, "invalid-runs").unwrap().text.contains("Long Context (16K)"));
}
