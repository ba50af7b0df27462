//! Fingerprints of plans, one of each kind. A change here means that published results can no longer be repeated:
//! it must be argued in the commit, and the version in `fingerprint.rs` raised.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::plan::Fingerprints;
use inferometer_model::spec::{
    AdapterChoice, ArrivalsKind, BodyDraft, LoadDraft, MixDraft, RampCurve, RampSegment,
    SourceDraft, ThinkKind, Until, WorkloadDraft,
};
use inferometer_model::{Plan, Release, RequestId, Spec, SpecDraft};
use inferometer_workload::{Ingredients, make_plan};

fn fingerprints(draft: SpecDraft) -> Fingerprints {
    made(&draft.resolve().unwrap()).1
}

fn made(spec: &Spec) -> (Arc<dyn Plan>, Fingerprints) {
    make_plan(spec, &Ingredients::gather(spec).unwrap())
}

fn drafts() -> Vec<(&'static str, SpecDraft)> {
    let draft = SpecDraft::default;
    let mut drafts = vec![
        ("defaults", draft()),
        ("another seed", SpecDraft { seed: Some(2), ..draft() }),
        ("completions", SpecDraft { api: Some(Api::Completions), ..draft() }),
        ("not streamed", SpecDraft { workload: not_streamed(), ..draft() }),
        ("lengths", SpecDraft { workload: lengths("9", "3"), ..draft() }),
    ];
    drafts.extend(sources().into_iter().map(|(name, source)| {
        let workload = WorkloadDraft { source, ..WorkloadDraft::default() };
        (name, SpecDraft { workload, ..draft() })
    }));
    drafts.extend(bodies().into_iter().map(|(name, body)| {
        let workload = WorkloadDraft { body, ..WorkloadDraft::default() };
        (name, SpecDraft { workload, ..draft() })
    }));
    drafts.push(("mix", SpecDraft { workload: mix(), ..draft() }));
    let loads = closed_loads().into_iter().chain(open_loads());
    drafts.extend(loads.map(|(name, load)| (name, SpecDraft { load, ..draft() })));
    drafts
}

fn not_streamed() -> WorkloadDraft {
    WorkloadDraft { streaming: Some(false), ..WorkloadDraft::default() }
}

fn lengths(input: &str, output: &str) -> WorkloadDraft {
    let source = SourceDraft {
        input: Some(input.parse().unwrap()),
        output: Some(output.parse().unwrap()),
        ..SourceDraft::default()
    };
    WorkloadDraft { source, ..WorkloadDraft::default() }
}

fn sources() -> Vec<(&'static str, SourceDraft)> {
    let source = SourceDraft::default;
    let lengths = |text: &str| Some(text.parse().unwrap());
    let turns = SourceDraft { turns: lengths("uniform:2..6"), ..source() };
    let mut sources = vec![
        ("fixed prompt", SourceDraft { prompt: Some("Tell me a story.".to_owned()), ..source() }),
        ("prefix", SourceDraft { prefix_tokens: Some(100), ..source() }),
        (
            "popular prefixes",
            SourceDraft {
                prefix_tokens: Some(100),
                prefixes: Some(20),
                prefix_zipf: Some(1.1),
                ..source()
            },
        ),
        (
            "conversations",
            SourceDraft {
                turn_think_time: Some(Duration::from_secs(3)),
                turn_think: Some(ThinkKind::Exponential),
                ..turns.clone()
            },
        ),
        ("conversations with a system", SourceDraft { prefix_tokens: Some(50), ..turns }),
    ];
    for written in
        ["512±20%", "uniform:9..99", "normal:512,99", "lognormal:512,0.8", "zipf:1.2,16..4096"]
    {
        sources.push((written, SourceDraft { input: lengths(written), ..source() }));
    }
    let output = lengths("histogram:128=3,512=1");
    sources.push(("histogram", SourceDraft { output, ..source() }));
    sources
}

fn bodies() -> Vec<(&'static str, BodyDraft)> {
    let body = BodyDraft::default;
    let temperature = ("temperature".to_owned(), serde_json::json!(0.7));
    let adapters = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
    vec![
        ("fields", BodyDraft { fields: [temperature].into_iter().collect(), ..body() }),
        ("pictures", BodyDraft { images: Some(1), image_size: Some((16, 8)), ..body() }),
        (
            "adapters",
            BodyDraft { adapters, adapter_choice: Some(AdapterChoice::Zipf(1.0)), ..body() },
        ),
    ]
}

fn mix() -> WorkloadDraft {
    let part = |name: &str, weight, input: &str| MixDraft {
        name: Some(name.to_owned()),
        weight: Some(weight),
        source: SourceDraft { input: Some(input.parse().unwrap()), ..SourceDraft::default() },
    };
    WorkloadDraft {
        mix: vec![part("short", 3.0, "64"), part("long", 1.0, "uniform:512..1024")],
        ..WorkloadDraft::default()
    }
}

const MINUTE: Option<Duration> = Some(Duration::from_mins(1));

fn closed_loads() -> Vec<(&'static str, LoadDraft)> {
    let load = LoadDraft::default;
    let think_time = Some(Duration::from_secs(2));
    let both = LoadDraft { requests: Some(300), duration: MINUTE, ..load() };
    vec![
        ("concurrency", LoadDraft { concurrency: Some(64), ..load() }),
        ("by time", LoadDraft { duration: MINUTE, ..load() }),
        ("until both", both.clone()),
        ("until the first", LoadDraft { until: Some(Until::First), ..both }),
        ("think time", LoadDraft { think_time, ..load() }),
        (
            "exponential think time",
            LoadDraft { think_time, think: Some(ThinkKind::Exponential), ..load() },
        ),
        ("warm-up", LoadDraft { warm_up: Some(16), ..load() }),
    ]
}

fn open_loads() -> Vec<(&'static str, LoadDraft)> {
    let load = LoadDraft::default;
    let open = LoadDraft { rate_per_s: Some(7.5), ..load() };
    let segment = |from_per_s, to_per_s, seconds| RampSegment {
        from_per_s,
        to_per_s,
        over: Duration::from_secs(seconds),
    };
    let ramp =
        LoadDraft { ramp: Some(vec![segment(2.0, 20.0, 60), segment(20.0, 5.0, 30)]), ..load() };
    vec![
        ("poisson", open.clone()),
        ("poisson by time", LoadDraft { duration: MINUTE, ..open.clone() }),
        ("constant", LoadDraft { arrivals: Some(ArrivalsKind::Constant), ..open.clone() }),
        ("gamma, bursty", LoadDraft { burstiness: Some(0.3), ..open.clone() }),
        ("gamma, even", LoadDraft { burstiness: Some(40.0), ..open.clone() }),
        ("capped", LoadDraft { max_concurrency: Some(16), ..open.clone() }),
        ("open until both", LoadDraft { requests: Some(300), duration: MINUTE, ..open.clone() }),
        ("at once", LoadDraft { rate_per_s: Some(f64::INFINITY), ..load() }),
        ("ramp", ramp.clone()),
        (
            "exponential ramp",
            LoadDraft { ramp_curve: Some(RampCurve::Exponential), ..ramp.clone() },
        ),
        ("bursty ramp", LoadDraft { burstiness: Some(0.3), ..ramp }),
    ]
}

#[test]
fn plans_are_the_same_on_every_machine_and_in_every_version() {
    let found: Vec<String> = drafts()
        .into_iter()
        .map(|(name, draft)| {
            let prints = fingerprints(draft);
            format!("{name}: {} {}", prints.workload, prints.plan)
        })
        .collect();
    let found = found.join("\n") + "\n";
    if std::env::var_os("INFEROMETER_REWRITE_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden.txt");
        std::fs::write(path, &found).unwrap();
        return;
    }
    assert_eq!(found, include_str!("golden.txt"));
}

const POISSON: [u64; 5] = [194_530_966, 303_770_114, 305_027_675, 7_323_643_712, 13_254_654_783];
const CONSTANT: [u64; 5] = [0, 133_333_333, 266_666_667, 6_666_666_667, 13_200_000_000];

/// Moments of schedules that were published before there were other shapes.
#[test]
fn arrivals_of_the_first_shapes_never_move() {
    let moments = |arrivals| {
        let load = LoadDraft { rate_per_s: Some(7.5), arrivals, ..LoadDraft::default() };
        let plan = made(&SpecDraft { load, ..SpecDraft::default() }.resolve().unwrap()).0;
        [0, 1, 2, 50, 99].map(|id| match plan.request(RequestId(id)).unwrap().release {
            Release::At(moment) => moment.as_nanos(),
            Release::WhenSlotFree | Release::After { .. } => panic!("not on a schedule"),
        })
    };
    assert_eq!(moments(None), POISSON);
    assert_eq!(moments(Some(ArrivalsKind::Constant)), CONSTANT);
}

#[test]
fn the_seed_changes_the_plan_and_not_the_workload() {
    let one = fingerprints(SpecDraft { seed: Some(1), ..SpecDraft::default() });
    let two = fingerprints(SpecDraft { seed: Some(2), ..SpecDraft::default() });
    assert_eq!(one.workload, two.workload);
    assert_ne!(one.plan, two.plan);
}

#[test]
fn every_difference_in_what_is_asked_changes_the_workload() {
    let prints: std::collections::HashSet<String> =
        drafts().into_iter().map(|(_, draft)| fingerprints(draft).workload).collect();
    assert_eq!(prints.len(), drafts().len() - 1, "only `another seed` asks the same");
}

#[test]
fn another_arrival_process_keeps_the_prompts() {
    let closed = SpecDraft::default().resolve().unwrap();
    let load = LoadDraft { rate_per_s: Some(5.0), ..LoadDraft::default() };
    let open = SpecDraft { load, ..SpecDraft::default() }.resolve().unwrap();
    let (closed, open) = (made(&closed).0, made(&open).0);
    for id in 0..100 {
        let seed = |plan: &dyn Plan| plan.request(RequestId(id)).unwrap().prompt_seed;
        assert_eq!(seed(closed.as_ref()), seed(open.as_ref()));
    }
}
