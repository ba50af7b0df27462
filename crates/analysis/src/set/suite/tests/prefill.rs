//! Which speeds of prefill are suspicious.

use super::*;

fn row(concurrency: u32, input_tokens: f64, speed: f64, state: CacheState) -> Prefill {
    Prefill { concurrency, input_tokens, speed, state }
}

fn compared<const N: usize>(rows: [Prefill; N]) -> Vec<Shown> {
    compare_prefills(&rows.map(Some))
}

#[test]
fn a_shorter_prompt_among_more_users_is_not_read_faster() {
    let unknown = CacheState::NotKnown;
    let shown = compared([
        row(1, 2_048.0, 1_900.0, unknown),
        // Longer: there is nothing to compare it with.
        row(4, 4_096.0, 9_000.0, unknown),
        row(4, 1_024.0, 8_900.0, unknown),
        row(8, 1_024.0, 3_000.0, unknown),
    ]);
    assert_eq!(compare_prefills(&[None]), [Shown::default()]);
    assert_eq!(shown[0], Shown::default());
    assert_eq!(shown[1], Shown::default());
    // The long one is as easy by this rule, and as fast.
    assert_eq!(shown[2], Shown { cold: Some(1), suspected: false });
    let shown = compared([
        row(8, 1_024.0, 8_000.0, unknown),
        row(4, 1_024.0, 8_900.0, unknown),
        row(1, 2_048.0, 1_900.0, unknown),
    ]);
    // The one at four users is found out first, and proves nothing for the one at eight.
    assert_eq!(shown[0], Shown { cold: Some(2), suspected: true });
    assert_eq!(shown[1], Shown { cold: Some(2), suspected: true });
}

#[test]
fn prompts_of_quite_another_length_accuse_nobody() {
    // Attention makes a long prompt dear by the token: 128K tokens at 3,000 a second, 4K at 9,000.
    let rows = [(131_072.0, 3_000.0), (4_096.0, 9_000.0)]
        .map(|(tokens, speed)| row(1, tokens, speed, CacheState::NotKnown));
    assert_eq!(compared(rows), [Shown::default(); 2]);
}

#[test]
fn where_the_server_speaks_nothing_is_suspected() {
    let shown = compared([
        row(1, 2_048.0, 1_900.0, CacheState::Cold),
        row(2, 1_024.0, 8_000.0, CacheState::Warm),
        row(4, 1_024.0, 5_000.0, CacheState::Cold),
    ]);
    assert_eq!(shown[1], Shown { cold: Some(0), suspected: false });
    assert_eq!(shown[2], Shown { cold: Some(0), suspected: false });
}
