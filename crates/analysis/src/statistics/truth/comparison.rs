//! Two servers of which we know whether they differ: how often a comparison of a few runs a side says
//! so wrongly, and how often it finds what is there.

use crate::statistics::draws::Draws;
use crate::statistics::permutation;
use crate::statistics::ratio::{RatioEstimate, paired, unpaired};

const RUNS_A_SIDE: usize = 5;
const TRUE_RATIO: f64 = 1.05;
const ALARM: f64 = 0.05;
/// With a thousand comparisons; fewer leave more to chance.
const ALLOWED: f64 = 0.02;
const DEVIATIONS: f64 = 2.9;
/// A difference that is found less often than this is not found.
const FOUND: f64 = 0.80;

/// How runs of two servers scatter, as a share of their value.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    pub name: &'static str,
    /// Of each side, from run to run.
    pub own: [f64; 2],
    /// Common to the runs of a pair; when there is some, the comparison is paired.
    pub common: f64,
    /// Whether 5 % must be found at this noise.
    pub must_find: bool,
}

pub const NOISES: &[Noise] = &[
    Noise { name: "2 % on both sides", own: [0.02, 0.02], common: 0.0, must_find: true },
    Noise { name: "1 % and 4 %", own: [0.01, 0.04], common: 0.0, must_find: false },
    Noise {
        name: "2 % own, 5 % by seed, paired",
        own: [0.02, 0.02],
        common: 0.05,
        must_find: true,
    },
];

#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    pub runs: u64,
    /// The share of intervals that contain the true ratio of 1.05.
    pub coverage: f64,
    /// Identical servers whose interval excludes 1.
    pub false_alarms: f64,
    /// Identical servers with a permutation test below 5 %.
    pub permutation_alarms: f64,
    /// Servers 5 % apart whose interval lies above 1.
    pub found: f64,
    /// Dealing values anew asks whether the sides are alike in everything, their noise included.
    alike: bool,
    must_find: bool,
}

impl Comparison {
    pub fn of(noise: &Noise, runs: u64, seed: u64) -> Self {
        let [mut covered, mut alarms, mut permutation_alarms, mut found] = [0_u64; 4];
        for number in 0..runs {
            let draws = &mut Draws::new(seed, number);
            let (a, b) = sides(draws, noise, 1.0);
            alarms +=
                u64::from(compared(noise, &a, &b).is_none_or(|same| !same.interval.contains(1.0)));
            permutation_alarms += u64::from(permutation::two_sided(&a, &b).p < ALARM);
            let (a, b) = sides(draws, noise, TRUE_RATIO);
            if let Some(apart) = compared(noise, &a, &b) {
                covered += u64::from(apart.interval.contains(TRUE_RATIO));
                found += u64::from(apart.interval.low > 1.0);
            }
        }
        let share = |count: u64| count as f64 / runs.max(1) as f64;
        Self {
            runs,
            coverage: share(covered),
            false_alarms: share(alarms),
            permutation_alarms: share(permutation_alarms),
            found: share(found),
            alike: noise.own[0].total_cmp(&noise.own[1]).is_eq(),
            must_find: noise.must_find,
        }
    }

    pub fn holds(&self) -> bool {
        let chance = DEVIATIONS * (ALARM * (1.0 - ALARM) / self.runs as f64).sqrt();
        let allowed = ALLOWED.max(chance);
        (self.coverage - (1.0 - ALARM)).abs() <= allowed
            && self.false_alarms <= ALARM + allowed
            && (!self.alike || self.permutation_alarms <= ALARM + allowed)
            && (!self.must_find || self.found >= FOUND)
    }
}

fn compared(noise: &Noise, a: &[f64], b: &[f64]) -> Option<RatioEstimate> {
    if noise.common > 0.0 { paired(a, b) } else { unpaired(a, b) }
}

/// Run-level values of two servers whose means have this ratio.
fn sides(draws: &mut Draws, noise: &Noise, ratio: f64) -> (Vec<f64>, Vec<f64>) {
    let pair = |_| {
        let common = 1.0 + noise.common * draws.normal();
        let [a, b] = noise.own.map(|own| common * (1.0 + own * draws.normal()));
        (a, ratio * b)
    };
    (0..RUNS_A_SIDE).map(pair).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_servers_raise_few_alarms_and_five_per_cent_are_found() {
        for noise in NOISES {
            let comparison = Comparison::of(noise, 400, 2);
            assert!(comparison.holds(), "{} {comparison:?}", noise.name);
        }
    }
}
