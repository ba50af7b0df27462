//! What each combination of flags comes to, and which are refused.

use super::*;

fn draft() -> LoadDraft {
    LoadDraft::default()
}

fn open_draft() -> LoadDraft {
    LoadDraft { rate_per_s: Some(20.0), ..draft() }
}

fn ramp_draft(segments: &[(f64, f64, u64)]) -> LoadDraft {
    let segment = |&(from_per_s, to_per_s, seconds): &(f64, f64, u64)| RampSegment {
        from_per_s,
        to_per_s,
        over: Duration::from_secs(seconds),
    };
    LoadDraft { ramp: Some(segments.iter().map(segment).collect()), ..draft() }
}

#[track_caller]
fn shape(draft: &LoadDraft) -> LoadShape {
    draft.resolve(false).unwrap().shape
}

#[track_caller]
fn extent(draft: &LoadDraft) -> Extent {
    draft.resolve(false).unwrap().extent
}

#[track_caller]
fn refused(draft: &LoadDraft) -> SpecError {
    draft.resolve(false).unwrap_err()
}

fn slots(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

fn closed(concurrency: u32, think: Think) -> LoadShape {
    LoadShape::Closed { concurrency: slots(concurrency), think }
}

fn arrivals(kind: Option<ArrivalsKind>, burstiness: Option<f64>) -> LoadDraft {
    LoadDraft { arrivals: kind, burstiness, ..open_draft() }
}

#[test]
fn a_rate_and_a_cap_are_capped_open() {
    let rate = Rate::Steady { per_s: 20.0 };
    let arrivals = Arrivals::Poisson;
    assert_eq!(shape(&open_draft()), LoadShape::Open { rate: rate.clone(), arrivals, cap: None });
    let capped = LoadDraft { max_concurrency: Some(64), ..open_draft() };
    assert_eq!(shape(&capped), LoadShape::Open { rate, arrivals, cap: Some(slots(64)) });
}

#[test]
fn everything_at_once_is_an_open_loop_and_with_a_cap_a_closed_one() {
    let at_once = LoadDraft { rate_per_s: Some(f64::INFINITY), ..draft() };
    let unlimited =
        LoadShape::Open { rate: Rate::Unlimited, arrivals: Arrivals::Constant, cap: None };
    assert_eq!(shape(&at_once), unlimited);
    let capped = LoadDraft { max_concurrency: Some(5), ..at_once.clone() };
    assert_eq!(shape(&capped), closed(5, Think::None));
    let second = Some(Duration::from_secs(1));
    assert_eq!(
        refused(&LoadDraft { duration: second, ..at_once.clone() }),
        SpecError::UnlimitedByTime
    );
    let both = LoadDraft { duration: second, requests: Some(9), ..at_once.clone() };
    assert_eq!(refused(&both), SpecError::UnlimitedByTime);
    assert_eq!(shape(&LoadDraft { until: Some(Until::First), ..both }), unlimited);
    let spaced = LoadDraft { arrivals: Some(ArrivalsKind::Poisson), ..at_once };
    assert_eq!(refused(&spaced), SpecError::ArrivalsAtOnce("--arrivals"));
    let capped = LoadDraft { max_concurrency: Some(5), ..spaced };
    assert_eq!(refused(&capped), SpecError::ArrivalsAtOnce("--arrivals"));
}

#[test]
fn two_shapes_are_one_too_many() {
    let both = LoadDraft { concurrency: Some(1), ..open_draft() };
    assert_eq!(refused(&both), SpecError::TwoShapes);
    let both = LoadDraft { concurrency: Some(1), ..ramp_draft(&[(1.0, 2.0, 3)]) };
    assert_eq!(refused(&both), SpecError::TwoShapes);
    let both = LoadDraft { rate_per_s: Some(1.0), ..ramp_draft(&[(1.0, 2.0, 3)]) };
    assert_eq!(refused(&both), SpecError::TwoRates);
    let cap = LoadDraft { max_concurrency: Some(4), ..draft() };
    assert_eq!(refused(&cap), SpecError::CapWithoutRate);
}

#[test]
fn numbers_out_of_bounds_are_refused() {
    for rate in [0.0, -1.0, f64::NEG_INFINITY, f64::NAN, 1e9, 1e-300] {
        let wrong = LoadDraft { rate_per_s: Some(rate), ..draft() };
        assert_eq!(refused(&wrong), SpecError::BadRate, "{rate}");
    }
    let none = LoadDraft { concurrency: Some(0), ..draft() };
    assert_eq!(refused(&none), SpecError::Zero("--concurrency"));
    let none = LoadDraft { max_concurrency: Some(0), ..open_draft() };
    assert_eq!(refused(&none), SpecError::Zero("--max-concurrency"));
    let none = LoadDraft { requests: Some(0), ..draft() };
    assert_eq!(refused(&none), SpecError::Zero("--requests"));
    let none = LoadDraft { duration: Some(Duration::ZERO), ..draft() };
    assert_eq!(refused(&none), SpecError::BadDuration(DURATION_MAX));
    let many = LoadDraft { warm_up: Some(u64::MAX), ..draft() };
    assert!(matches!(refused(&many), SpecError::TooLarge { name: "--warm-up", .. }));
    let many = LoadDraft { max_concurrency: Some(u32::MAX), ..open_draft() };
    assert!(matches!(refused(&many), SpecError::TooLarge { name: "--max-concurrency", .. }));
}

#[test]
fn burstiness_is_the_shape_of_gamma_arrivals() {
    use ArrivalsKind::{Constant, Gamma, Poisson};
    let found = |kind, burstiness| match shape(&arrivals(kind, burstiness)) {
        LoadShape::Open { arrivals, .. } => arrivals,
        LoadShape::Closed { .. } => panic!("not an open loop"),
    };
    assert_eq!(found(None, None), Arrivals::Poisson);
    assert_eq!(found(Some(Constant), None), Arrivals::Constant);
    assert_eq!(found(None, Some(0.5)), Arrivals::Gamma { burstiness: 0.5 });
    assert_eq!(found(Some(Gamma), Some(0.5)), Arrivals::Gamma { burstiness: 0.5 });
    assert_eq!(found(Some(Gamma), Some(1.0)), Arrivals::Poisson);
    assert_eq!(refused(&arrivals(Some(Gamma), None)), SpecError::GammaWithoutBurstiness);
    assert_eq!(refused(&arrivals(Some(Poisson), Some(2.0))), SpecError::BurstinessOfOthers);
    assert_eq!(refused(&arrivals(Some(Constant), Some(2.0))), SpecError::BurstinessOfOthers);
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.009, 1_000.1] {
        assert_eq!(refused(&arrivals(None, Some(wrong))), SpecError::BadBurstiness, "{wrong}");
    }
    let alone = LoadDraft { arrivals: Some(Constant), ..draft() };
    assert_eq!(refused(&alone), SpecError::ArrivalsWithoutRate("--arrivals"));
    let alone = LoadDraft { burstiness: Some(0.5), ..draft() };
    assert_eq!(refused(&alone), SpecError::ArrivalsWithoutRate("--burstiness"));
}

#[test]
fn stretched_arrivals_need_a_number_of_requests_at_one_rate() {
    let kind = Some(ArrivalsKind::Stretched);
    let found = |draft: &LoadDraft| match shape(draft) {
        LoadShape::Open { arrivals, .. } => arrivals,
        LoadShape::Closed { .. } => panic!("not an open loop"),
    };
    assert_eq!(found(&arrivals(kind, None)), Arrivals::Stretched { burstiness: 1.0 });
    assert_eq!(found(&arrivals(kind, Some(0.5))), Arrivals::Stretched { burstiness: 0.5 });
    assert_eq!(refused(&arrivals(kind, Some(0.0))), SpecError::BadBurstiness);
    let second = Some(Duration::from_secs(1));
    let timed = LoadDraft { duration: second, ..arrivals(kind, None) };
    assert_eq!(refused(&timed), SpecError::NothingToStretchTo);
    let both = LoadDraft { requests: Some(9), ..timed };
    assert_eq!(refused(&both), SpecError::NothingToStretchTo);
    let ramp = LoadDraft { arrivals: kind, requests: Some(9), ..ramp_draft(&[(1.0, 2.0, 3)]) };
    assert_eq!(refused(&ramp), SpecError::NothingToStretchTo);
}

#[test]
fn a_ramp_is_played_to_its_end_unless_told_otherwise() {
    let ramp = ramp_draft(&[(2.0, 20.0, 60), (20.0, 5.0, 30)]);
    assert_eq!(extent(&ramp), Extent::Duration(Duration::from_secs(90)));
    let LoadShape::Open { rate: Rate::Ramp { segments, curve }, .. } = shape(&ramp) else {
        panic!("not a ramp")
    };
    assert_eq!((segments.len(), curve), (2, RampCurve::Linear));
    let counted = LoadDraft { requests: Some(7), ..ramp };
    assert_eq!(extent(&counted), Extent::Requests(NonZeroU64::new(7).unwrap()));
}

#[test]
fn a_ramp_that_makes_no_sense_is_refused_by_its_segment() {
    let curve = Some(RampCurve::Exponential);
    let no_ramp = LoadDraft { ramp_curve: curve, ..open_draft() };
    assert_eq!(refused(&no_ramp), SpecError::CurveWithoutRamp);
    assert_eq!(refused(&ramp_draft(&[])), SpecError::RampSegments(0));
    assert_eq!(refused(&ramp_draft(&[(1.0, 2.0, 1); 65])), SpecError::RampSegments(65));
    for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e7, 1e-9] {
        let ramp = ramp_draft(&[(1.0, 2.0, 1), (2.0, wrong, 1)]);
        assert_eq!(refused(&ramp), SpecError::RampRate(2), "{wrong}");
    }
    assert_eq!(refused(&ramp_draft(&[(1.0, 2.0, 0)])), SpecError::RampNoTime(1));
    let long = ramp_draft(&[(1.0, 2.0, u64::MAX), (1.0, 2.0, u64::MAX)]);
    assert_eq!(refused(&long), SpecError::RampTooLong(DURATION_MAX));
    assert_eq!(refused(&ramp_draft(&[(0.0, 0.0, 9)])), SpecError::RampOfNothing);
    let from_zero = ramp_draft(&[(0.0, 2.0, 9)]);
    assert!(from_zero.resolve(false).is_ok());
    let bent = LoadDraft { ramp_curve: curve, ..from_zero };
    assert_eq!(refused(&bent), SpecError::RampZero(1));
    let to_zero = ramp_draft(&[(2.0, 0.0, 9)]);
    assert!(to_zero.resolve(false).is_ok());
    let counted = LoadDraft { requests: Some(9), ..to_zero };
    assert_eq!(refused(&counted), SpecError::RampEndsAtZero);
}

#[test]
fn a_schedule_fits_into_memory() {
    let hour = Some(Duration::from_hours(1));
    let too_large = |draft: &LoadDraft| matches!(refused(draft), SpecError::TooLarge { .. });
    assert!(too_large(&LoadDraft { rate_per_s: Some(1e6), duration: hour, ..draft() }));
    assert!(too_large(&LoadDraft { requests: Some(200_000_000), ..open_draft() }));
    let steep = LoadDraft { duration: hour, ..ramp_draft(&[(0.0, 1e6, 60)]) };
    assert!(too_large(&steep));
    assert!(too_large(&LoadDraft { requests: Some(9), ..steep.clone() }), "until both");
    let first = LoadDraft { requests: Some(9), until: Some(Until::First), ..steep };
    assert!(first.resolve(false).is_ok());
    assert!(
        ramp_draft(&[(0.0, 1e6, 60)]).resolve(false).is_ok(),
        "thirty million are not too many"
    );
}

#[test]
fn slots_of_a_closed_loop_may_rest() {
    let time = Duration::from_secs(2);
    let resting = LoadDraft { think_time: Some(time), ..draft() };
    assert_eq!(shape(&resting), closed(8, Think::Fixed(time)));
    let varying = LoadDraft { think: Some(ThinkKind::Exponential), ..resting.clone() };
    assert_eq!(shape(&varying), closed(8, Think::Exponential { mean: time }));
    let at_once =
        LoadDraft { rate_per_s: Some(f64::INFINITY), max_concurrency: Some(3), ..varying };
    assert_eq!(shape(&at_once), closed(3, Think::Exponential { mean: time }));
    let not_at_all = LoadDraft { think_time: Some(Duration::ZERO), ..draft() };
    assert_eq!(shape(&not_at_all), closed(8, Think::None));
    let open = LoadDraft { rate_per_s: Some(1.0), ..resting };
    assert_eq!(refused(&open), SpecError::ThinkOnOpenLoop);
    let no_time = LoadDraft { think: Some(ThinkKind::Fixed), ..draft() };
    assert_eq!(refused(&no_time), SpecError::ThinkWithoutTime);
    let long = LoadDraft { think_time: Some(Duration::from_hours(25)), ..draft() };
    assert_eq!(refused(&long), SpecError::ThinkTooLong(THINK_MAX));
}

#[test]
fn a_number_and_a_time_end_a_run_together() {
    let duration = Duration::from_secs(5);
    let requests = NonZeroU64::new(9).unwrap();
    let both = LoadDraft { requests: Some(9), duration: Some(duration), ..draft() };
    assert_eq!(extent(&both), Extent::UntilBoth { requests, duration });
    let until = |until| LoadDraft { until: Some(until), ..both.clone() };
    assert_eq!(extent(&until(Until::Both)), Extent::UntilBoth { requests, duration });
    assert_eq!(extent(&until(Until::First)), Extent::UntilFirst { requests, duration });
    let one = LoadDraft { duration: None, ..until(Until::First) };
    assert_eq!(refused(&one), SpecError::UntilWithoutBoth);
    let none = LoadDraft { until: Some(Until::Both), ..draft() };
    assert_eq!(refused(&none), SpecError::UntilWithoutBoth);
}

#[test]
fn a_replay_is_neither_endless_nor_over_at_once() {
    let at = |speed| LoadDraft { speed: Some(speed), ..draft() }.resolve(true);
    for speed in [0.0, 0.000_9, 1_001.0, f64::NAN] {
        assert_eq!(at(speed), Err(SpecError::BadSpeed), "{speed}");
    }
    assert!(SpecError::BadSpeed.to_string().contains("from 0.001 to 1000"));
    assert!(at(0.001).is_ok() && at(1_000.0).is_ok());
}
