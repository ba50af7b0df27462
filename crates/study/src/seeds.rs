//! Which seed a run has. Servers side by side are paired by their seeds, so there it never depends on
//! the condition; the scenarios of a suite are not compared with each other, and share none unless
//! that is asked for.

use std::collections::BTreeSet;

use inferometer_analysis::statistics::draws::Draws;
use inferometer_model::campaign::{CampaignSpec, Level, Prompts, Stage, Suite};

use crate::grid;
use crate::history::Slot;

/// Repeated runs count on from the seed that was asked for, so that any of them can be run alone.
pub(crate) fn repeated(seed: u64, repetition: u32) -> u64 {
    seed.wrapping_add(repetition.into())
}

/// Runs of a sweep share nothing with each other, whatever their levels: a mix, cut to 32 bits so
/// that it can be read and typed.
pub(crate) fn swept(seed: u64, level: Level, stage: Stage, repetition: u32) -> u64 {
    let parts = [bits(level), class(stage), repetition.into()];
    cut(parts.into_iter().fold(seed, |state, part| Draws::new(state, part).bits()))
}

/// Of a run of a suite.
pub(crate) fn of_suite(spec: &CampaignSpec, suite: &Suite, slot: &Slot) -> u64 {
    match suite.prompts {
        Prompts::Same => repeated(spec.seed, slot.repetition),
        Prompts::Fresh => fresh(spec, suite, slot),
    }
}

/// A mix of the scenario's name and the level, so that a scenario alone sends what it sends within
/// its suite. Where two mixes meet, the later one is mixed again: no run may find its prompts in the
/// cache of another.
fn fresh(spec: &CampaignSpec, suite: &Suite, slot: &Slot) -> u64 {
    let places = grid::in_turn(suite);
    let mut taken = BTreeSet::new();
    for repetition in 0..=slot.repetition {
        for place in &places {
            for &condition in &place.conditions {
                let name = spec.conditions.get(condition as usize).map_or("", |it| &it.name);
                let mut seed = of_scenario(spec.seed, name, place.level, repetition);
                while !taken.insert(seed) {
                    seed = cut(Draws::new(seed, 0).bits());
                }
                if (condition, place.level, repetition)
                    == (slot.condition, slot.level, slot.repetition)
                {
                    return seed;
                }
            }
        }
    }
    spec.seed
}

fn of_scenario(seed: u64, name: &str, level: Level, repetition: u32) -> u64 {
    let named = name.bytes().fold(seed, |state, byte| Draws::new(state, byte.into()).bits());
    let parts = [bits(level), repetition.into()];
    cut(parts.into_iter().fold(named, |state, part| Draws::new(state, part).bits()))
}

fn cut(mixed: u64) -> u64 {
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
        assert_eq!(of_scenario(1, "Decode Stress Test", Level::AsAsked, 0), 3_637_656_606);
    }
}
