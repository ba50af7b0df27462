//! The shares of all workers are the plan of one client, whatever its load.

use std::collections::BTreeMap;

use inferometer_model::SpecDraft;
use inferometer_model::spec::{
    AgentTable, ArrivalsKind, Grammar, Lengths, LoadTable, PerSecond, Ramp, SourceTable, ThinkKind,
    Until, WorkloadTable,
};
use proptest::prelude::*;

use super::*;
use crate::plan::make_plan;
use crate::saved::{read_header, write_plan};

fn stripe(index: u32, count: u32) -> Stripe {
    Stripe { index, count: NonZeroU32::new(count).unwrap() }
}

struct Striped {
    whole: Arc<dyn Plan>,
    /// With their numbers in the plan.
    stripes: Vec<(StripedPlan, StripeIds)>,
}

fn striped(spec: &Spec, count: u32) -> Striped {
    let inputs = Inputs::gather(spec).unwrap();
    let (whole, _) = make_plan(spec, &inputs);
    let ids = |index| StripeIds::new(stripe(index, count), conversation_starts(spec, &inputs));
    let one = |index| (StripedPlan::new(Arc::clone(&whole), ids(index)), ids(index));
    Striped { stripes: (0..count).map(one).collect(), whole }
}

/// Every load shape, by its number, of so many requests.
fn spec_of(shape: u8, requests: u64, seed: u64) -> Spec {
    let load = LoadTable { requests: Some(requests), ..LoadTable::default() };
    let rate = |per_s| LoadTable { rate: Some(PerSecond(per_s)), ..load.clone() };
    let two_s = Some(std::time::Duration::from_secs(2).into());
    let arrivals = |kind| LoadTable { arrivals: Some(kind), ..rate(40.0) };
    let closed = LoadTable { concurrency: Some(40), ..load.clone() };
    let turns = SourceTable {
        turns: Some(Lengths::read("uniform:1..5").unwrap()),
        ..SourceTable::default()
    };
    let (load, source) = match shape {
        0 => (arrivals(ArrivalsKind::Constant), SourceTable::default()),
        1 => (arrivals(ArrivalsKind::Poisson), SourceTable::default()),
        2 => {
            let load = LoadTable { burstiness: Some(0.5), ..arrivals(ArrivalsKind::Gamma) };
            (load, SourceTable::default())
        }
        3 => (arrivals(ArrivalsKind::Stretched), SourceTable::default()),
        4 => (rate(f64::INFINITY), SourceTable::default()),
        5 => {
            let ramp = Some(Ramp::read("2..40:3s").unwrap());
            let load = LoadTable { ramp, requests: None, ..LoadTable::default() };
            (load, SourceTable::default())
        }
        6 => (LoadTable { max_concurrency: Some(40), ..rate(40.0) }, SourceTable::default()),
        7 => (LoadTable { duration: two_s, ..rate(40.0) }, SourceTable::default()),
        8 => {
            let until = Some(Until::First);
            (LoadTable { duration: two_s, until, ..rate(40.0) }, SourceTable::default())
        }
        9 => (closed, SourceTable::default()),
        10 => {
            let think = Some(ThinkKind::Exponential);
            let load = LoadTable { think_time: two_s, think, ramp_up: two_s, ..closed };
            (load, SourceTable::default())
        }
        11 => (LoadTable { duration: two_s, ..closed }, SourceTable::default()),
        12 => (LoadTable { requests: None, duration: two_s, ..closed }, SourceTable::default()),
        13 => (rate(40.0), turns),
        14 => (closed, turns),
        15 => (LoadTable { requests: None, duration: two_s, ..closed }, turns),
        _ => (LoadTable { duration: two_s, ..closed }, turns),
    };
    let workload = WorkloadTable { source, seed: Some(seed), ..WorkloadTable::default() };
    SpecDraft { load, workload, ..SpecDraft::default() }.resolve().unwrap()
}

/// Compares the union of all stripes with the plan, request for request.
fn assert_union_is_whole(spec: &Spec, count: u32) {
    let Striped { whole, stripes } = striped(spec, count);
    let bounds = whole.bounds();
    // A plan that only the time ends is compared as far as this.
    let end = bounds.requests.unwrap_or(300 + bounds.requests_min);
    let mut found = BTreeMap::new();
    for (plan, ids) in &stripes {
        let share = ids.count_below(end);
        assert_eq!(plan.bounds().requests, bounds.requests.map(|_| share));
        assert_eq!(plan.bounds().requests_min, ids.count_below(bounds.requests_min));
        assert_eq!(plan.bounds().release_before, bounds.release_before);
        if bounds.requests.is_some() {
            assert_eq!(plan.request(RequestId(share)), None, "nothing follows its share");
        }
        let mut before = None;
        for id in (0..share).map(RequestId) {
            let request = plan.request(id).unwrap();
            assert_eq!(request.id, id);
            let in_plan = ids.in_plan(id).unwrap();
            assert!(before < Some(in_plan), "in the order of the plan");
            before = Some(in_plan);
            let content = plan.content(&request);
            // The requests that it waits for, under their numbers in the plan.
            let mut waits_for = plan.joins(&request);
            if let Release::After { previous, .. } = request.release {
                waits_for.insert(0, previous);
            }
            let in_own = |other: RequestId| ids.in_plan(other).unwrap();
            let waits_for: Vec<RequestId> = waits_for.into_iter().map(in_own).collect();
            let first = found.insert(in_plan, (request, content, waits_for));
            assert!(first.is_none(), "{in_plan} is sent twice");
        }
    }
    assert_eq!(found.len() as u64, end, "nothing is missing");
    for (id, (request, content, waits_for)) in found {
        let planned = whole.request(id).unwrap();
        let mut waits = whole.joins(&planned);
        if let Release::After { previous, think } = planned.release {
            waits.insert(0, previous);
            let Release::After { think: rest, .. } = request.release else {
                panic!("{id} waits for nothing")
            };
            assert_eq!(rest, think);
        } else {
            assert_eq!(request.release, planned.release);
        }
        assert_eq!(waits_for, waits, "{id} waits for the same requests, all of its own stripe");
        let same = PlannedRequest { id: planned.id, release: planned.release, ..request };
        assert_eq!(same, planned);
        assert_eq!(content, whole.content(&planned));
    }
    let users = |plan: &dyn Plan| plan.bounds().slots.map_or(0, NonZeroU32::get);
    let starts = |plan: &dyn Plan| {
        (0..users(plan)).map(|slot| plan.slot_start(slot)).collect::<Vec<Duration>>()
    };
    let mut shared: Vec<Duration> = stripes.iter().flat_map(|(plan, _)| starts(plan)).collect();
    let mut together = starts(whole.as_ref());
    shared.sort_unstable();
    together.sort_unstable();
    assert_eq!(shared, together, "as many users, who begin at the same times");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_stripes_together_are_the_plan_of_one_client(
        count in 1_u32..=40,
        requests in 40_u64..80,
        seed in any::<u32>(),
    ) {
        for shape in 0..17 {
            assert_union_is_whole(&spec_of(shape, requests, seed.into()), count);
        }
    }
}

/// Sessions whose requests wait for several others, drawn and recorded.
#[test]
fn sessions_are_shared_whole_and_wait_for_the_same_requests() {
    let agent = AgentTable {
        steps: Some(Lengths::read("uniform:2..5").unwrap()),
        fan_out: Some(0.5),
        subagents: Some(Lengths::read("uniform:2..3").unwrap()),
        ..AgentTable::default()
    };
    let drawn = SourceTable { agent, ..SourceTable::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.jsonl");
    let session = |n: u64| {
        format!(
            "{{\"session\":\"{n}\",\"id\":\"1\",\"input_tokens\":{},\"output_tokens\":4}}\n\
             {{\"session\":\"{n}\",\"id\":\"2\",\"after\":[\"1\"],\"input_tokens\":9,\"output_tokens\":5}}\n\
             {{\"session\":\"{n}\",\"id\":\"3\",\"after\":[\"1\"],\"input_tokens\":8,\"output_tokens\":5}}\n\
             {{\"session\":\"{n}\",\"id\":\"4\",\"after\":[\"2\",\"3\"],\"input_tokens\":7,\"output_tokens\":5}}\n",
            10 + n
        )
    };
    std::fs::write(&path, (0..23).map(session).collect::<String>()).unwrap();
    let recorded = SourceTable { sessions: Some(path), ..SourceTable::default() };
    for (source, requests) in [(drawn, Some(120)), (recorded, None)] {
        let load = LoadTable { concurrency: Some(9), requests, ..LoadTable::default() };
        let workload = WorkloadTable { source, seed: Some(5), ..WorkloadTable::default() };
        let spec = SpecDraft { load, workload, ..SpecDraft::default() }.resolve().unwrap();
        let (whole, _) = make_plan(&spec, &Inputs::gather(&spec).unwrap());
        let requests = (0..).map_while(|id| whole.request(RequestId(id)));
        let joins = requests.filter(|request| !whole.joins(request).is_empty()).count();
        assert!(0 < joins, "some wait for several");
        for count in [1, 2, 5, 9] {
            assert_union_is_whole(&spec, count);
        }
        let starts = stored_conversation_starts(&spec).unwrap().unwrap();
        let known = conversation_starts(&spec, &Inputs::gather(&spec).unwrap()).unwrap();
        assert!((0..12).all(|number| starts(number) == known(number)));
    }
}

#[test]
fn a_trace_and_a_saved_plan_are_shared_alike() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.jsonl");
    let line = |n: u64| {
        format!("{{\"timestamp\":{},\"input_length\":{},\"output_length\":5}}\n", n * 70, 10 + n)
    };
    std::fs::write(&trace, (0..57).map(line).collect::<String>()).unwrap();
    let source = SourceTable { trace: Some(trace), ..SourceTable::default() };
    let workload = WorkloadTable { source, ..WorkloadTable::default() };
    let recorded = SpecDraft { workload, ..SpecDraft::default() }.resolve().unwrap();
    for count in [1, 2, 5, 57] {
        assert_union_is_whole(&recorded, count);
    }
    // A saved plan of conversations, which are read from its file again when runs are merged.
    let talk = spec_of(14, 60, 3);
    let inputs = Inputs::gather(&talk).unwrap();
    let (plan, fingerprints) = make_plan(&talk, &inputs);
    let path = folder.path().join("plan.jsonl");
    let file = std::fs::File::create(&path).unwrap();
    write_plan(file, &path, &talk, &inputs, &fingerprints, plan.as_ref()).unwrap();
    let source = SourceTable { plan: Some(path.clone()), ..SourceTable::default() };
    let workload = WorkloadTable { source, ..WorkloadTable::default() };
    let saved = Some(read_header(&path).unwrap().spec());
    let saved = SpecDraft { workload, saved, ..SpecDraft::default() }.resolve().unwrap();
    for count in [1, 3, 8] {
        assert_union_is_whole(&saved, count);
    }
    let starts = stored_conversation_starts(&saved).unwrap().unwrap();
    let drawn = stored_conversation_starts(&talk).unwrap().unwrap();
    for number in 0..10 {
        assert_eq!(starts(number), drawn(number));
    }
}
