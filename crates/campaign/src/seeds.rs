//! Which seed a run has. It never depends on the condition: conditions are paired by their seeds.

use inferometer_analysis::statistics::draws::Draws;
use inferometer_model::campaign::{Level, Stage};

/// Repeated runs count on from the seed that was asked for, so that any of them can be run alone.
pub(crate) fn repeated(seed: u64, repetition: u32) -> u64 {
    seed.wrapping_add(repetition.into())
}

/// Runs of a sweep share nothing with each other, whatever their levels: a mix, cut to 32 bits so
/// that it can be read and typed.
pub(crate) fn swept(seed: u64, level: Level, stage: Stage, repetition: u32) -> u64 {
    let parts = [bits(level), class(stage), repetition.into()];
    let mixed = parts.into_iter().fold(seed, |state, part| Draws::new(state, part).bits());
    mixed & u64::from(u32::MAX)
}

/// The stream that shuffles the levels of one round.
pub(crate) fn order(seed: u64, stage: Stage, round: u32) -> Draws {
    const ORDER: u64 = u64::from_be_bytes(*b"order\0\0\0");
    let named = Draws::new(seed, ORDER).bits();
    Draws::new(named ^ class(stage), round.into())
}

fn bits(level: Level) -> u64 {
    match level {
        Level::AsAsked => 0,
        Level::Rate(per_s) => per_s.to_bits(),
        Level::Unlimited => f64::INFINITY.to_bits(),
        Level::Concurrency(requests) => requests.get().into(),
    }
}

fn class(stage: Stage) -> u64 {
    match stage {
        Stage::Planned => 1,
        Stage::Fine => 2,
        Stage::Probe => 3,
        Stage::Confirmation => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_golden() {
        // Stored sets are resumed by these: a change makes them measure something else.
        assert_eq!(repeated(u64::MAX, 2), 1);
        assert_eq!(swept(1, Level::Rate(1.5), Stage::Planned, 0), 2_812_275_241);
        assert_eq!(swept(1, Level::Unlimited, Stage::Probe, 3), 1_194_033_033);
    }
}
