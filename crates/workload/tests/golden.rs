//! Fingerprints of plans, one of each kind. A change here means that published results can no longer be repeated:
//! it must be argued in the commit, and the version in `fingerprint.rs` raised.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::plan::Fingerprints;
use inferometer_model::spec::{
    AdapterChoice, ArrivalsKind, BodyTable, ImageSize, LoadTable, MixTable, PerSecond, Ramp,
    RampCurve, RampSegment, SourceTable, TargetTable, ThinkKind, Time, Until, WarmUp,
    WorkloadTable, Written,
};
use inferometer_model::{Plan, Release, RequestId, Spec, SpecDraft};
use inferometer_workload::{Inputs, make_plan};

fn fingerprints(draft: SpecDraft) -> Fingerprints {
    made(&draft.resolve().unwrap()).1
}

fn made(spec: &Spec) -> (Arc<dyn Plan>, Fingerprints) {
    make_plan(spec, &Inputs::gather(spec).unwrap())
}

fn drafts() -> Vec<(&'static str, SpecDraft)> {
    let draft = SpecDraft::default;
    let mut drafts = vec![
        ("defaults", draft()),
        ("another seed", seeded(2)),
        ("completions", SpecDraft { target: completions(), ..draft() }),
        ("not streamed", SpecDraft { workload: not_streamed(), ..draft() }),
        ("lengths", SpecDraft { workload: lengths("9", "3"), ..draft() }),
    ];
    drafts.extend(sources().into_iter().map(|(name, source)| {
        let workload = WorkloadTable { source, ..WorkloadTable::default() };
        (name, SpecDraft { workload, ..draft() })
    }));
    drafts.extend(bodies().into_iter().map(|(name, body)| {
        let workload = WorkloadTable { body, ..WorkloadTable::default() };
        (name, SpecDraft { workload, ..draft() })
    }));
    drafts.push(("mix", SpecDraft { workload: mix(), ..draft() }));
    let loads = closed_loads().into_iter().chain(open_loads());
    drafts.extend(loads.map(|(name, load)| (name, SpecDraft { load, ..draft() })));
    drafts
}

fn completions() -> TargetTable {
    TargetTable { api: Some(Api::Completions), ..TargetTable::default() }
}

fn seeded(seed: u64) -> SpecDraft {
    let workload = WorkloadTable { seed: Some(seed), ..WorkloadTable::default() };
    SpecDraft { workload, ..SpecDraft::default() }
}

fn not_streamed() -> WorkloadTable {
    WorkloadTable { stream: Some(false), ..WorkloadTable::default() }
}

fn lengths(input: &str, output: &str) -> WorkloadTable {
    let source = SourceTable {
        input_tokens: Some(input.parse().unwrap()),
        output_tokens: Some(output.parse().unwrap()),
        ..SourceTable::default()
    };
    WorkloadTable { source, ..WorkloadTable::default() }
}

fn sources() -> Vec<(&'static str, SourceTable)> {
    let source = SourceTable::default;
    let lengths = |text: &str| Some(text.parse().unwrap());
    let turns = SourceTable { turns: lengths("uniform:2..6"), ..source() };
    let mut sources = vec![
        ("fixed prompt", SourceTable { prompt: Some("Tell me a story.".to_owned()), ..source() }),
        ("prefix", SourceTable { prefix_tokens: Some(100), ..source() }),
        (
            "popular prefixes",
            SourceTable {
                prefix_tokens: Some(100),
                prefixes: Some(20),
                prefix_zipf: Some(1.1),
                ..source()
            },
        ),
        (
            "conversations",
            SourceTable {
                turn_think_time: Some(Duration::from_secs(3).into()),
                turn_think: Some(ThinkKind::Exponential),
                ..turns.clone()
            },
        ),
        ("conversations with a system", SourceTable { prefix_tokens: Some(50), ..turns }),
    ];
    for written in
        ["512±20%", "uniform:9..99", "normal:512,99", "lognormal:512,0.8", "zipf:1.2,16..4096"]
    {
        sources.push((written, SourceTable { input_tokens: lengths(written), ..source() }));
    }
    let output = lengths("histogram:128=3,512=1");
    sources.push(("histogram", SourceTable { output_tokens: output, ..source() }));
    sources
}

fn bodies() -> Vec<(&'static str, BodyTable)> {
    let body = BodyTable::default;
    let temperature = ("temperature".to_owned(), serde_json::json!(0.7));
    let lora = Some(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    vec![
        ("fields", BodyTable { extra: Some([temperature].into_iter().collect()), ..body() }),
        (
            "pictures",
            BodyTable { images: Some(1), image_size: Some(ImageSize(16, 8).into()), ..body() },
        ),
        (
            "adapters",
            BodyTable { lora, lora_choice: Some(AdapterChoice::Zipf(1.0).into()), ..body() },
        ),
    ]
}

fn mix() -> WorkloadTable {
    let part = |name: &str, weight, input: &str| MixTable {
        name: Some(name.to_owned()),
        weight: Some(weight),
        source: SourceTable {
            input_tokens: Some(input.parse().unwrap()),
            ..SourceTable::default()
        },
    };
    WorkloadTable {
        mix: vec![part("short", 3.0, "64"), part("long", 1.0, "uniform:512..1024")],
        ..WorkloadTable::default()
    }
}

const MINUTE: Option<Time> = Some(Written(Duration::from_mins(1)));

fn closed_loads() -> Vec<(&'static str, LoadTable)> {
    let load = LoadTable::default;
    let think_time = Some(Duration::from_secs(2).into());
    let both = LoadTable { requests: Some(300), duration: MINUTE, ..load() };
    vec![
        ("concurrency", LoadTable { concurrency: Some(64), ..load() }),
        ("by time", LoadTable { duration: MINUTE, ..load() }),
        ("until both", both.clone()),
        ("until the first", LoadTable { until: Some(Until::First), ..both }),
        ("think time", LoadTable { think_time, ..load() }),
        (
            "exponential think time",
            LoadTable { think_time, think: Some(ThinkKind::Exponential), ..load() },
        ),
        ("warm-up", LoadTable { warm_up: Some(WarmUp::Requests(16)), ..load() }),
    ]
}

fn open_loads() -> Vec<(&'static str, LoadTable)> {
    let load = LoadTable::default;
    let open = LoadTable { rate: Some(PerSecond(7.5)), ..load() };
    let segment = |from_per_s, to_per_s, seconds| RampSegment {
        from_per_s,
        to_per_s,
        over: Duration::from_secs(seconds),
    };
    let ramp = LoadTable {
        ramp: Some(Ramp(vec![segment(2.0, 20.0, 60), segment(20.0, 5.0, 30)])),
        ..load()
    };
    vec![
        ("poisson", open.clone()),
        ("poisson by time", LoadTable { duration: MINUTE, ..open.clone() }),
        ("constant", LoadTable { arrivals: Some(ArrivalsKind::Constant), ..open.clone() }),
        ("gamma, bursty", LoadTable { burstiness: Some(0.3), ..open.clone() }),
        ("gamma, even", LoadTable { burstiness: Some(40.0), ..open.clone() }),
        ("capped", LoadTable { max_concurrency: Some(16), ..open.clone() }),
        ("open until both", LoadTable { requests: Some(300), duration: MINUTE, ..open.clone() }),
        ("at once", LoadTable { rate: Some(PerSecond(f64::INFINITY)), ..load() }),
        ("ramp", ramp.clone()),
        (
            "exponential ramp",
            LoadTable { ramp_curve: Some(RampCurve::Exponential), ..ramp.clone() },
        ),
        ("bursty ramp", LoadTable { burstiness: Some(0.3), ..ramp }),
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
        let load = LoadTable { rate: Some(PerSecond(7.5)), arrivals, ..LoadTable::default() };
        let plan = made(&SpecDraft { load, ..SpecDraft::default() }.resolve().unwrap()).0;
        [0, 1, 2, 50, 99].map(|id| match plan.request(RequestId(id)).unwrap().release {
            Release::At(moment) => moment.as_nanos(),
            Release::WhenSlotFree | Release::After { .. } | Release::Beside { .. } => {
                panic!("not on a schedule")
            }
        })
    };
    assert_eq!(moments(None), POISSON);
    assert_eq!(moments(Some(ArrivalsKind::Constant)), CONSTANT);
}

#[test]
fn the_seed_changes_the_plan_and_not_the_workload() {
    let one = fingerprints(seeded(1));
    let two = fingerprints(seeded(2));
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
    let load = LoadTable { rate: Some(PerSecond(5.0)), ..LoadTable::default() };
    let open = SpecDraft { load, ..SpecDraft::default() }.resolve().unwrap();
    let (closed, open) = (made(&closed).0, made(&open).0);
    for id in 0..100 {
        let seed = |plan: &dyn Plan| plan.request(RequestId(id)).unwrap().prompt_seed;
        assert_eq!(seed(closed.as_ref()), seed(open.as_ref()));
    }
}
