//! In which order the levels and conditions of a round are measured.
//!
//! A server drifts: it heats up, its caches fill, somebody else uses the machine. Measured level by
//! level, that would look like an effect of the level. So every round has an order of its own, and
//! conditions change places from run to run: A B, B A.

use inferometer_analysis::statistics::draws::Draws;

/// The numbers below `count`, shuffled.
pub(crate) fn shuffled(count: usize, mut draws: Draws) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        places.swap(last, draws.below(last + 1));
    }
    places
}

/// The conditions, each in every place equally often: at one level over the repetitions, and in
/// one repetition over the levels.
pub(crate) fn alternating(mut conditions: Vec<u32>, level: usize, repetition: u32) -> Vec<u32> {
    let turns = (level + repetition as usize) % conditions.len().max(1);
    conditions.rotate_left(turns);
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_conditions_alternate_and_more_rotate() {
        let two = || vec![0, 1];
        let orders: Vec<Vec<u32>> = (0..4).map(|round| alternating(two(), 0, round)).collect();
        assert_eq!(orders, [[0, 1], [1, 0], [0, 1], [1, 0]]);
        assert_eq!(alternating(two(), 1, 0), [1, 0]);
        assert_eq!(alternating(vec![0, 1, 2], 1, 1), [2, 0, 1]);
        assert_eq!(alternating(vec![7], 5, 3), [7]);
    }

    #[test]
    fn a_shuffle_keeps_every_level_and_rounds_differ() {
        let round = |number| shuffled(8, Draws::new(1, number));
        let mut sorted = round(0);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        assert_ne!(round(0), round(1));
        assert_eq!(round(0), round(0));
    }
}
