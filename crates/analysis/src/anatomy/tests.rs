//! What the time between tokens and to the first one consists of, by steps that are made by hand.

use super::*;
use crate::fixture::{Given, run};

/// Two requests that advance together every 10 ms. Each time one of four others gets its only token, the
/// step takes 30 ms.
fn interrupted() -> Observations {
    let running = |id| Given::ok(id).asked(100, 160).moments(0, 0, 0).streamed();
    let (mut one, mut two) = (running(0), running(1));
    let mut others = Vec::new();
    let mut at = 50;
    for token in 0..160_u64 {
        let joins = token % 40 == 20;
        at += if joins { 30 } else { 10 };
        one = one.arrival(at, &[Some(1)]);
        two = two.arrival(at, &[Some(1)]);
        if joins {
            let other = Given::ok(2 + token / 40).asked(500, 1).moments(at - 35, at - 35, at - 35);
            others.push(other.streamed().arrival(at, &[Some(1)]));
        }
    }
    run(others.into_iter().chain([one, two]).map(Given::record).collect())
}

#[test]
fn parts_add_up_to_the_time_between_tokens() {
    let anatomy = Anatomy::from_observations(&interrupted()).unwrap();
    assert_eq!((anatomy.steps, anatomy.confidence), (160, Some(Confidence::High)));
    assert_eq!((anatomy.missing, anatomy.idle_share), (None, Some(0.0)));
    let found = anatomy.between_tokens.unwrap();
    // 155 gaps of 10 ms and 4 of 30 ms.
    let near = |value: f64, expected: f64| (value - expected).abs() < 1e-9;
    assert!(near(found.mean_ms, (155.0 * 10.0 + 4.0 * 30.0) / 159.0), "{found:?}");
    assert!(near(found.decode_ms, 10.0) && near(found.stall_ms, 0.0), "{found:?}");
    assert!(near(found.prefill_ms, 4.0 * 20.0 / 159.0), "{found:?}");
    let first = anatomy.first_token.unwrap();
    // Two waited for 60 ms for the first step, and four for 35 ms, of which 30 ms were their step.
    assert!(near(first.mean_ms, (2.0 * 60.0 + 4.0 * 35.0) / 6.0), "{first:?}");
    assert!(near(first.own_step_ms, (2.0 * 60.0 + 4.0 * 30.0) / 6.0), "{first:?}");
    let parts = first.own_step_ms + first.other_prefill_ms + first.other_steps_ms;
    assert!(near(parts, first.mean_ms), "{first:?}");
    assert_eq!(anatomy.strip.prefill_tokens.iter().sum::<u64>() % 500, 200);
}

#[test]
fn a_step_after_an_idle_gap_has_no_duration() {
    let later = |id: u64| {
        let sent = 10_000 * id;
        let given = Given::ok(id).asked(100, 60).moments(sent, sent, sent).streamed();
        (0..60).fold(given, |given, token| given.arrival(sent + 40 + 10 * token, &[Some(1)]))
    };
    let observations = run((0..3).map(later).map(Given::record).collect());
    let anatomy = Anatomy::from_observations(&observations).unwrap();
    assert_eq!((anatomy.steps, anatomy.confidence), (180, Some(Confidence::High)));
    // From the last token at 630 ms until the next request was sent at 10,000 ms, twice.
    let share = anatomy.idle_share.unwrap();
    assert!((share - 2.0 * 9_370.0 / 20_590.0).abs() < 1e-9, "{share}");
    let found = anatomy.between_tokens.unwrap();
    assert!((found.mean_ms - 10.0).abs() < 1e-9, "{found:?}");
    assert_eq!(anatomy.batches.len(), 1);
}

#[test]
fn answers_that_come_whole_have_no_anatomy() {
    let whole = |id: u64| {
        let sent = 100 * id;
        Given::ok(id).moments(sent, sent, sent).streamed().arrival(sent + 50, &[Some(1); 40])
    };
    let observations = run((0..8).map(whole).map(Given::record).collect());
    let anatomy = Anatomy::from_observations(&observations).unwrap();
    assert_eq!((anatomy.missing, anatomy.steps), (Some(NoStructure::Gathered), 0));
    let none = run(Vec::new());
    assert_eq!(Anatomy::from_observations(&none), None);
}

#[test]
fn classes_of_batch_sizes_rise() {
    let classes: Vec<u32> = (1..=300).map(class).collect();
    assert!(classes.is_sorted(), "{classes:?}");
    assert_eq!((class(4), class(5), class(6), class(8), class(12)), (4, 5, 6, 7, 8));
}
