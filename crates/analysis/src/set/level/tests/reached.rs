//! Whether as many requests were ever in flight as a level asks for.

use super::*;
use crate::set::fixture::with_users;

#[test]
fn a_level_is_reached_by_nine_tenths_of_its_users() {
    // As a published suite has it: 30 requests at 32 users.
    for (asked, most, is_reached, is_grave) in [
        (32, 30.0, true, false),
        (100, 90.0, true, false),
        (100, 89.0, false, false),
        (200, 100.0, false, false),
        (400, 100.0, false, true),
    ] {
        let run = with_users(asked, Some(most));
        let found = Reached::from_runs([&run].into_iter()).unwrap();
        assert_eq!((found.is_reached(), found.is_grave()), (is_reached, is_grave), "{asked}");
    }
}

#[test]
fn what_is_not_known_is_no_reason_to_doubt() {
    assert_eq!(Reached::from_runs([].into_iter()), None);
    assert_eq!(Reached::from_runs([&with_users(8, None)].into_iter()), None);
    let mut thinking = with_users(8, Some(2.0));
    let think = ThinkFacts::Fixed { time_s: 2.0 };
    thinking.run.load = LoadFacts::Closed { concurrency: 8, think, ramp_up_s: None };
    assert_eq!(Reached::from_runs([&thinking].into_iter()), None, "they think most of the time");
}
