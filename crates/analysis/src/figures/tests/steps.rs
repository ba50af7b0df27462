//! Tests of `steps`.

use proptest::prelude::*;

use crate::figures::*;

#[test]
fn a_run_of_no_length_has_one_step() {
    let steps = Steps::between(7, 7, 200);
    assert_eq!(steps, Steps { from_ns: 7, step_ns: STEP_NS_MIN, count: 1 });
    assert_eq!((steps.place(0), steps.place(7), steps.place(u64::MAX)), (0, 0, 0));
}

proptest! {
    #[test]
    fn steps_cover_the_run_and_no_more_than_a_step_beyond(
        from in any::<u64>(), span in any::<u64>(), at_most in 1_u32..300,
    ) {
        let to = from.saturating_add(span);
        let steps = Steps::between(from, to, at_most);
        prop_assert!(1 <= steps.count && steps.count <= at_most as usize);
        let covered = u128::from(steps.step_ns) * steps.count as u128;
        let span = u128::from(to - from);
        prop_assert!(span <= covered && covered < span + u128::from(STEP_NS_MIN) + 300);
    }

    #[test]
    fn a_time_lies_between_the_beginnings_of_its_step_and_the_next(
        times in prop::collection::vec(0_u64..40_000_000_000, 1..60),
    ) {
        let steps = Steps::between(3_000_000_000, 30_000_000_000, 200);
        for at in times {
            let step = steps.place(at);
            prop_assert!(step == 0 || steps.begin_ns(step) <= at);
            prop_assert!(step + 1 == steps.count || at < steps.begin_ns(step + 1));
        }
    }
}
