//! What each combination of flags comes to, and which are refused.

use super::*;

fn draft() -> LoadTable {
    LoadTable::default()
}

fn open_draft() -> LoadTable {
    LoadTable { rate: Some(PerSecond(20.0)), ..draft() }
}

fn ramp_draft(segments: &[(f64, f64, u64)]) -> LoadTable {
    let segment = |&(from_per_s, to_per_s, seconds): &(f64, f64, u64)| RampSegment {
        from_per_s,
        to_per_s,
        over: Duration::from_secs(seconds),
    };
    LoadTable { ramp: Some(Ramp(segments.iter().map(segment).collect())), ..draft() }
}

#[track_caller]
fn shape(draft: &LoadTable) -> LoadShape {
    draft.resolve(false).unwrap().shape
}

#[track_caller]
fn extent(draft: &LoadTable) -> Extent {
    draft.resolve(false).unwrap().extent
}

#[track_caller]
fn refused(draft: &LoadTable) -> SpecError {
    draft.resolve(false).unwrap_err()
}

fn slots(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

fn closed(concurrency: u32, think: Think) -> LoadShape {
    LoadShape::Closed { concurrency: slots(concurrency), think }
}

fn arrivals(kind: Option<ArrivalsKind>, burstiness: Option<f64>) -> LoadTable {
    LoadTable { arrivals: kind, burstiness, ..open_draft() }
}

#[test]
fn a_rate_and_a_cap_are_capped_open() {
    let rate = Rate::Steady { per_s: 20.0 };
    let arrivals = Arrivals::Poisson;
    assert_eq!(shape(&open_draft()), LoadShape::Open { rate: rate.clone(), arrivals, cap: None });
    let capped = LoadTable { max_concurrency: Some(64), ..open_draft() };
    assert_eq!(shape(&capped), LoadShape::Open { rate, arrivals, cap: Some(slots(64)) });
}

#[test]
fn everything_at_once_is_an_open_loop_and_with_a_cap_a_closed_one() {
    let at_once = LoadTable { rate: Some(PerSecond(f64::INFINITY)), ..draft() };
    let unlimited =
        LoadShape::Open { rate: Rate::Unlimited, arrivals: Arrivals::Constant, cap: None };
    assert_eq!(shape(&at_once), unlimited);
    let capped = LoadTable { max_concurrency: Some(5), ..at_once.clone() };
    assert_eq!(shape(&capped), closed(5, Think::None));
    let second = Some(Duration::from_secs(1).into());
    assert_eq!(
        refused(&LoadTable { duration: second, ..at_once.clone() }),
        SpecError::UnlimitedByTime
    );
    let both = LoadTable { duration: second, requests: Some(9), ..at_once.clone() };
    assert_eq!(refused(&both), SpecError::UnlimitedByTime);
    assert_eq!(shape(&LoadTable { until: Some(Until::First), ..both }), unlimited);
    let spaced = LoadTable { arrivals: Some(ArrivalsKind::Poisson), ..at_once };
    assert_eq!(refused(&spaced), SpecError::ArrivalsAtOnce("--arrivals"));
    let capped = LoadTable { max_concurrency: Some(5), ..spaced };
    assert_eq!(refused(&capped), SpecError::ArrivalsAtOnce("--arrivals"));
}

#[test]
fn two_shapes_are_one_too_many() {
    let both = LoadTable { concurrency: Some(1), ..open_draft() };
    assert_eq!(refused(&both), SpecError::TwoShapes);
    let both = LoadTable { concurrency: Some(1), ..ramp_draft(&[(1.0, 2.0, 3)]) };
    assert_eq!(refused(&both), SpecError::TwoShapes);
    let both = LoadTable { rate: Some(PerSecond(1.0)), ..ramp_draft(&[(1.0, 2.0, 3)]) };
    assert_eq!(refused(&both), SpecError::TwoRates);
    let cap = LoadTable { max_concurrency: Some(4), ..draft() };
    assert_eq!(refused(&cap), SpecError::CapWithoutRate);
}

#[test]
fn numbers_out_of_bounds_are_refused() {
    for rate in [0.0, -1.0, f64::NEG_INFINITY, f64::NAN, 1e9, 1e-300] {
        let wrong = LoadTable { rate: Some(PerSecond(rate)), ..draft() };
        assert_eq!(refused(&wrong), SpecError::BadRate, "{rate}");
    }
    let none = LoadTable { concurrency: Some(0), ..draft() };
    assert_eq!(refused(&none), SpecError::Zero("--concurrency"));
    let none = LoadTable { max_concurrency: Some(0), ..open_draft() };
    assert_eq!(refused(&none), SpecError::Zero("--max-concurrency"));
    let none = LoadTable { requests: Some(0), ..draft() };
    assert_eq!(refused(&none), SpecError::Zero("--requests"));
    let none = LoadTable { duration: Some(Duration::ZERO.into()), ..draft() };
    assert_eq!(refused(&none), SpecError::BadDuration(DURATION_MAX));
    let many = LoadTable { warm_up: Some(WarmUp::Requests(u64::MAX)), ..draft() };
    assert!(matches!(refused(&many), SpecError::TooLarge { name: "--warm-up", .. }));
    let many = LoadTable { max_concurrency: Some(u32::MAX), ..open_draft() };
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
    let alone = LoadTable { arrivals: Some(Constant), ..draft() };
    assert_eq!(refused(&alone), SpecError::ArrivalsWithoutRate("--arrivals"));
    let alone = LoadTable { burstiness: Some(0.5), ..draft() };
    assert_eq!(refused(&alone), SpecError::ArrivalsWithoutRate("--burstiness"));
}

#[test]
fn stretched_arrivals_need_a_number_of_requests_at_one_rate() {
    let kind = Some(ArrivalsKind::Stretched);
    let found = |draft: &LoadTable| match shape(draft) {
        LoadShape::Open { arrivals, .. } => arrivals,
        LoadShape::Closed { .. } => panic!("not an open loop"),
    };
    assert_eq!(found(&arrivals(kind, None)), Arrivals::Stretched { burstiness: 1.0 });
    assert_eq!(found(&arrivals(kind, Some(0.5))), Arrivals::Stretched { burstiness: 0.5 });
    assert_eq!(refused(&arrivals(kind, Some(0.0))), SpecError::BadBurstiness);
    let second = Some(Duration::from_secs(1).into());
    let timed = LoadTable { duration: second, ..arrivals(kind, None) };
    assert_eq!(refused(&timed), SpecError::NothingToStretchTo);
    let both = LoadTable { requests: Some(9), ..timed };
    assert_eq!(refused(&both), SpecError::NothingToStretchTo);
    let ramp = LoadTable { arrivals: kind, requests: Some(9), ..ramp_draft(&[(1.0, 2.0, 3)]) };
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
    let counted = LoadTable { requests: Some(7), ..ramp };
    assert_eq!(extent(&counted), Extent::Requests(NonZeroU64::new(7).unwrap()));
}

#[test]
fn a_ramp_that_makes_no_sense_is_refused_by_its_segment() {
    let curve = Some(RampCurve::Exponential);
    let no_ramp = LoadTable { ramp_curve: curve, ..open_draft() };
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
    let bent = LoadTable { ramp_curve: curve, ..from_zero };
    assert_eq!(refused(&bent), SpecError::RampZero(1));
    let to_zero = ramp_draft(&[(2.0, 0.0, 9)]);
    assert!(to_zero.resolve(false).is_ok());
    let counted = LoadTable { requests: Some(9), ..to_zero };
    assert_eq!(refused(&counted), SpecError::RampEndsAtZero);
}

#[test]
fn a_schedule_fits_into_memory() {
    let hour = Some(Duration::from_hours(1).into());
    let too_large = |draft: &LoadTable| matches!(refused(draft), SpecError::TooLarge { .. });
    assert!(too_large(&LoadTable { rate: Some(PerSecond(1e6)), duration: hour, ..draft() }));
    assert!(too_large(&LoadTable { requests: Some(200_000_000), ..open_draft() }));
    let steep = LoadTable { duration: hour, ..ramp_draft(&[(0.0, 1e6, 60)]) };
    assert!(too_large(&steep));
    assert!(too_large(&LoadTable { requests: Some(9), ..steep.clone() }), "until both");
    let first = LoadTable { requests: Some(9), until: Some(Until::First), ..steep };
    assert!(first.resolve(false).is_ok());
    assert!(
        ramp_draft(&[(0.0, 1e6, 60)]).resolve(false).is_ok(),
        "thirty million are not too many"
    );
}

#[test]
fn slots_of_a_closed_loop_may_rest() {
    let time = Duration::from_secs(2);
    let resting = LoadTable { think_time: Some(time.into()), ..draft() };
    assert_eq!(shape(&resting), closed(8, Think::Fixed(time)));
    let varying = LoadTable { think: Some(ThinkKind::Exponential), ..resting.clone() };
    assert_eq!(shape(&varying), closed(8, Think::Exponential { mean: time }));
    let at_once =
        LoadTable { rate: Some(PerSecond(f64::INFINITY)), max_concurrency: Some(3), ..varying };
    assert_eq!(shape(&at_once), closed(3, Think::Exponential { mean: time }));
    let not_at_all = LoadTable { think_time: Some(Duration::ZERO.into()), ..draft() };
    assert_eq!(shape(&not_at_all), closed(8, Think::None));
    let open = LoadTable { rate: Some(PerSecond(1.0)), ..resting };
    assert_eq!(refused(&open), SpecError::ThinkOnOpenLoop);
    let no_time = LoadTable { think: Some(ThinkKind::Fixed), ..draft() };
    assert_eq!(refused(&no_time), SpecError::ThinkWithoutTime);
    let long = LoadTable { think_time: Some(Duration::from_hours(25).into()), ..draft() };
    assert_eq!(refused(&long), SpecError::ThinkTooLong(THINK_MAX));
}

#[test]
fn a_number_and_a_time_end_a_run_together() {
    let duration = Duration::from_secs(5);
    let requests = NonZeroU64::new(9).unwrap();
    let both = LoadTable { requests: Some(9), duration: Some(duration.into()), ..draft() };
    assert_eq!(extent(&both), Extent::UntilBoth { requests, duration });
    let until = |until| LoadTable { until: Some(until), ..both.clone() };
    assert_eq!(extent(&until(Until::Both)), Extent::UntilBoth { requests, duration });
    assert_eq!(extent(&until(Until::First)), Extent::UntilFirst { requests, duration });
    let one = LoadTable { duration: None, ..until(Until::First) };
    assert_eq!(refused(&one), SpecError::UntilWithoutBoth);
    let none = LoadTable { until: Some(Until::Both), ..draft() };
    assert_eq!(refused(&none), SpecError::UntilWithoutBoth);
}

#[test]
fn a_replay_is_neither_endless_nor_over_at_once() {
    let at = |speed| LoadTable { speed: Some(speed), ..draft() }.resolve(true);
    for speed in [0.0, 0.000_9, 1_001.0, f64::NAN] {
        assert_eq!(at(speed), Err(SpecError::BadSpeed), "{speed}");
    }
    assert!(SpecError::BadSpeed.to_string().contains("from 0.001 to 1000"));
    assert!(at(0.001).is_ok() && at(1_000.0).is_ok());
}

fn typed() -> Vec<(LoadTable, bool)> {
    let draft = LoadTable::default;
    let minute = Some(Duration::from_mins(1).into());
    let open = LoadTable { rate: Some(PerSecond(7.5)), ..draft() };
    let ramp = vec![RampSegment { from_per_s: 1.0, to_per_s: 5.0, over: Duration::from_mins(2) }];
    let drafts = [
        draft(),
        LoadTable { think_time: minute, warm_up: Some(WarmUp::Requests(3)), ..draft() },
        LoadTable { warm_up: Some(WarmUp::Time(Duration::from_secs(10))), ..draft() },
        LoadTable { cancel: Some(Share(0.1)), cancel_after: Some(20), ..draft() },
        LoadTable { think_time: minute, think: Some(ThinkKind::Exponential), ..draft() },
        LoadTable { duration: minute, requests: Some(9), ..draft() },
        LoadTable { rate: Some(PerSecond(f64::INFINITY)), max_concurrency: Some(4), ..draft() },
        LoadTable { rate: Some(PerSecond(f64::INFINITY)), ..draft() },
        LoadTable { arrivals: Some(ArrivalsKind::Constant), duration: minute, ..open.clone() },
        LoadTable { burstiness: Some(0.3), max_concurrency: Some(4), ..open.clone() },
        LoadTable { arrivals: Some(ArrivalsKind::Stretched), ..open.clone() },
        LoadTable { requests: Some(9), duration: minute, until: Some(Until::First), ..open },
        LoadTable { ramp_curve: Some(RampCurve::Exponential), ramp: Some(Ramp(ramp)), ..draft() },
    ];
    let recorded = [draft(), LoadTable { speed: Some(2.0), duration: minute, ..draft() }];
    let drafts = drafts.into_iter().map(|draft| (draft, false));
    drafts.chain(recorded.map(|draft| (draft, true))).collect()
}

#[test]
fn what_was_typed_passes() {
    for (draft, recorded) in typed() {
        let load = draft.resolve(recorded).unwrap();
        assert_eq!(load.check(), Ok(()), "{load:?}");
    }
}

#[test]
fn what_could_not_be_typed_is_refused() {
    let load = LoadTable::default().resolve(false).unwrap();
    let closed = |concurrency, think| Load {
        shape: LoadShape::Closed { concurrency, think },
        ..load.clone()
    };
    let eight = NonZeroU32::new(8).unwrap();
    let refused = |load: Load| load.check().unwrap_err();
    let many = refused(closed(NonZeroU32::MAX, Think::None));
    assert!(matches!(many, SpecError::TooLarge { name: "--concurrency", .. }), "{many}");
    let long = refused(closed(eight, Think::Fixed(Duration::MAX)));
    assert!(matches!(long, SpecError::ThinkTooLong(_)), "{long}");
    let long = refused(Load { extent: Extent::Duration(Duration::MAX), ..load.clone() });
    assert!(matches!(long, SpecError::BadDuration(_)), "{long}");
    let warm = refused(Load { warm_up: u64::MAX, ..load.clone() });
    assert!(matches!(warm, SpecError::TooLarge { name: "--warm-up", .. }), "{warm}");
    assert_eq!(refused(Load { extent: Extent::Whole, ..load.clone() }), SpecError::OddLoad);
    assert_eq!(refused(closed(eight, Think::Fixed(Duration::ZERO))), SpecError::OddLoad);
}

#[test]
fn the_area_under_a_rate_is_what_to_expect() {
    let ramp = |segments: &[(f64, f64, u64)], curve| {
        let Some(Ramp(segments)) = ramp_draft(segments).ramp else { panic!("not a ramp") };
        Rate::Ramp { segments, curve }
    };
    let assert_expected = |rate: &Rate, seconds, area: f64| {
        let found = rate.expected_within(Duration::from_secs(seconds));
        assert!((found - area).abs() < 1e-12 * area, "{found} instead of {area}");
    };
    assert_expected(&Rate::Steady { per_s: 3.0 }, 20, 60.0);
    let up_and_down = ramp(&[(2.0, 20.0, 60), (20.0, 5.0, 30)], RampCurve::Linear);
    assert_expected(&up_and_down, 30, 30.0 * (2.0 + 11.0) / 2.0);
    assert_expected(&up_and_down, 60, 660.0);
    assert_expected(&up_and_down, 90, 660.0 + 375.0);
    // After its end it stays as it ended.
    assert_expected(&up_and_down, 100, 660.0 + 375.0 + 50.0);
    let doubling = ramp(&[(1.0, 4.0, 10), (4.0, 4.0, 10)], RampCurve::Exponential);
    let area = 3.0 * 10.0 / 4.0_f64.ln();
    assert_expected(&doubling, 5, 5.0 / 2.0_f64.ln());
    assert_expected(&doubling, 10, area);
    assert_expected(&doubling, 25, area + 60.0);
}

#[test]
fn a_warm_up_is_a_number_or_a_time() {
    let read = |text| WarmUp::read(text);
    assert_eq!(read("2k"), Ok(WarmUp::Requests(2_000)));
    assert_eq!(read("10s"), Ok(WarmUp::Time(Duration::from_secs(10))));
    assert_eq!(read("1m"), Ok(WarmUp::Time(Duration::from_mins(1))), "and not a million");
    assert!(read("soon").unwrap_err().contains("such as 10s"));
    let by_time = LoadTable { warm_up: read("10s").ok(), ..LoadTable::default() };
    let load = by_time.resolve(false).unwrap();
    assert_eq!((load.warm_up, load.warm_up_time), (0, Duration::from_secs(10)));
    let by_number = load.warmed_up(Some(WarmUp::Requests(3)));
    assert_eq!((by_number.warm_up, by_number.warm_up_time), (3, Duration::ZERO));
}

#[test]
fn the_share_of_cancelled_requests_is_that_which_was_asked_for() {
    let cancel = Cancel { share: 0.1, after: 20 };
    let asked = |id, prompt_seed| {
        let alone = PlannedRequest::alone(crate::RequestId(id), crate::Release::WhenSlotFree);
        cancel.after(&PlannedRequest { prompt_seed, ..alone })
    };
    // Also where all prompts are alike.
    for seed_of in [|_| 0, |id: u64| id, |id: u64| id << 32] {
        let ended = (0..20_000).filter(|id| asked(*id, seed_of(*id)) == Some(20)).count();
        assert!((1_800..2_200).contains(&ended), "{ended} of 20,000");
    }
}
