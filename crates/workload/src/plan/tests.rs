//! What each extent makes of a plan, and what its requests carry.

use inferometer_model::SpecDraft;
use inferometer_model::spec::{LoadTable, PerSecond, ThinkKind, Until};

use super::*;

fn plan(load: LoadTable) -> Arc<dyn Plan> {
    plan_of(SpecDraft { load, ..SpecDraft::default() })
}

fn plan_of(draft: SpecDraft) -> Arc<dyn Plan> {
    let spec = draft.resolve().unwrap();
    make_plan(&spec, &Inputs::gather(&spec).unwrap()).0
}

fn both(until: Until) -> LoadTable {
    LoadTable {
        requests: Some(50),
        duration: Some(Duration::from_secs(2).into()),
        until: Some(until),
        ..LoadTable::default()
    }
}

const END: Moment = Moment::from_nanos(2_000_000_000);

#[test]
fn a_closed_loop_until_both_has_a_least_number_and_no_end() {
    let plan = plan(both(Until::Both));
    let bounds = plan.bounds();
    assert_eq!((bounds.requests, bounds.requests_min), (None, 50));
    assert_eq!(bounds.release_before, Some(END));
    assert!(plan.request(RequestId(1_000_000)).is_some());
}

#[test]
fn a_closed_loop_until_the_first_ends_at_its_number_or_before() {
    let plan = plan(both(Until::First));
    let bounds = plan.bounds();
    assert_eq!((bounds.requests, bounds.requests_min), (None, 0));
    assert_eq!(bounds.release_before, Some(END));
    assert!(plan.request(RequestId(49)).is_some());
    assert_eq!(plan.request(RequestId(50)), None);
}

#[test]
fn an_open_loop_knows_its_number_whatever_ends_it() {
    // Ten per second for two seconds, or fifty.
    let open = |until| LoadTable { rate: Some(PerSecond(10.0)), ..both(until) };
    let until_both = plan(open(Until::Both));
    let bounds = until_both.bounds();
    assert_eq!((bounds.requests, bounds.requests_min), (Some(50), 50));
    let last = until_both.request(RequestId(49)).unwrap();
    let Release::At(last) = last.release else { panic!("not on a schedule") };
    assert!(END < last && Some(last) < bounds.release_before, "the number came last");
    let bounds = plan(open(Until::First)).bounds();
    assert!(bounds.requests < Some(50) && Some(5) < bounds.requests);
    assert_eq!(bounds.release_before, Some(END));
}

#[test]
fn slots_are_the_concurrency_or_the_cap() {
    let slots = |load| plan(load).bounds().slots.map(std::num::NonZeroU32::get);
    let open = LoadTable { rate: Some(PerSecond(10.0)), ..LoadTable::default() };
    assert_eq!(slots(LoadTable { concurrency: Some(5), ..LoadTable::default() }), Some(5));
    assert_eq!(slots(LoadTable { max_concurrency: Some(6), ..open.clone() }), Some(6));
    assert_eq!(slots(open), None);
}

#[test]
fn each_request_carries_the_rest_of_its_slot() {
    let time = Duration::from_millis(500);
    let resting = |think| LoadTable {
        think_time: Some(time.into()),
        think: Some(think),
        requests: Some(20_000),
        ..LoadTable::default()
    };
    let fixed = plan(resting(ThinkKind::Fixed));
    assert_eq!(fixed.request(RequestId(3)).unwrap().think, time);
    let varying = plan(resting(ThinkKind::Exponential));
    let thinks: Vec<f64> = (0..20_000)
        .map(|id| varying.request(RequestId(id)).unwrap().think.as_secs_f64() / 0.5)
        .collect();
    let mean = thinks.iter().sum::<f64>() / thinks.len() as f64;
    assert!((mean - 1.0).abs() < 0.03, "{mean}");
    let over_mean = thinks.iter().filter(|think| 1.0 < **think).count() as f64 / 20_000.0;
    assert!((over_mean - (-1.0_f64).exp()).abs() < 0.02, "{over_mean}");
    let open = plan(LoadTable { rate: Some(PerSecond(9.0)), ..LoadTable::default() });
    assert_eq!(open.request(RequestId(3)).unwrap().think, Duration::ZERO);
}
