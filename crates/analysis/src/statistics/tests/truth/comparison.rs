//! Servers of which we know whether they differ: how often a comparison of a few runs a side says so
//! wrongly, and how often it finds what is there. All is asked of the rule that decides itself.

use std::fmt::Write as _;

use crate::comparison::{Change, Judgement, Scale, Values, upper_among};
use crate::metric::Better;
use crate::statistics::{Estimate, draws::Draws, permutation};

const RUNS_A_SIDE: usize = 5;
const TRUE_RATIO: f64 = 1.05;
/// No more of the comparisons of identical servers may fail, whatever the number of sides.
const ALARM: f64 = 0.05;
/// Any change counts: a margin only makes alarms rarer.
const MARGIN: f64 = 0.0;
/// With a thousand comparisons; fewer leave more to chance.
const ALLOWED: f64 = 0.02;
const DEVIATIONS: f64 = 2.9;
/// A difference that is found less often than this is not found.
const FOUND: f64 = 0.80;

/// How runs of two servers scatter, as a share of their value.
#[derive(Clone, Copy, Debug)]
struct Noise {
    name: &'static str,
    /// Spread of each side from run to run.
    own: [f64; 2],
    /// Common to the runs of a pair; when there is some, the comparison is paired.
    common: f64,
    /// Whether 5 % must be found at this noise.
    must_find: bool,
    /// How many others are set against the first; the worst of them fails the comparison.
    others: usize,
}

const NOISES: &[Noise] = &[
    Noise { name: "2 % on both sides", own: [0.02, 0.02], common: 0.0, must_find: true, others: 1 },
    Noise { name: "1 % and 4 %", own: [0.01, 0.04], common: 0.0, must_find: false, others: 1 },
    Noise {
        name: "2 % own, 5 % by seed, paired",
        own: [0.02, 0.02],
        common: 0.05,
        must_find: true,
        others: 1,
    },
    Noise { name: "2 %, four others", own: [0.02, 0.02], common: 0.0, must_find: false, others: 4 },
    Noise {
        name: "2 %, four others, paired",
        own: [0.02, 0.02],
        common: 0.05,
        must_find: false,
        others: 4,
    },
];

#[derive(Clone, Copy, Debug)]
struct Comparison {
    runs: u64,
    /// The share of comparisons whose intervals contain the true ratio of 1.05, of every side.
    coverage: f64,
    /// Identical servers of which one is called worse than the first: the comparison fails.
    false_alarms: f64,
    /// Identical servers with a permutation test below 5 %.
    permutation_alarms: f64,
    /// Servers 5 % slower that are called worse, all of them.
    found: f64,
    /// Dealing values anew asks whether the sides are alike in everything, their noise included.
    alike: bool,
    must_find: bool,
    /// Sides that do not scatter together leave the rule more cautious than it promises.
    others: usize,
}

impl Comparison {
    fn simulate(noise: &Noise, runs: u64, seed: u64) -> Self {
        let [mut covered, mut alarms, mut permutation_alarms, mut found] = [0_u64; 4];
        for number in 0..runs {
            let draws = &mut Draws::new(seed, number);
            let (base, others) = sides(draws, noise, 1.0);
            alarms += u64::from(others.iter().any(|other| is_worse(noise, &base, other)));
            permutation_alarms += u64::from(permutation::two_sided(&base, &others[0]).p < ALARM);
            let (base, others) = sides(draws, noise, TRUE_RATIO);
            let covers = |other: &Vec<f64>| {
                change(noise, &base, other).is_ok_and(|change| change.interval.contains(TRUE_RATIO))
            };
            covered += u64::from(others.iter().all(covers));
            found += u64::from(others.iter().all(|other| is_worse(noise, &base, other)));
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
            others: noise.others,
        }
    }

    fn holds(&self) -> bool {
        let chance = DEVIATIONS * (ALARM * (1.0 - ALARM) / self.runs as f64).sqrt();
        let allowed = ALLOWED.max(chance);
        let apart = self.coverage - (1.0 - ALARM);
        // Several sides share the base, and the bound on all of them together is not reached.
        (-allowed <= apart && (1 < self.others || apart <= allowed))
            && self.false_alarms <= ALARM
            && (!self.alike || self.permutation_alarms <= ALARM + allowed)
            && (!self.must_find || self.found >= FOUND)
    }
}

/// What a gate says: less is better here, as of a latency.
fn is_worse(noise: &Noise, base: &[f64], other: &[f64]) -> bool {
    change(noise, base, other)
        .is_ok_and(|change| change.judged(MARGIN, Better::Lower) == Judgement::Worse)
}

fn change(noise: &Noise, base: &[f64], other: &[f64]) -> Result<Change, String> {
    let side = |values: &[f64]| values.iter().map(|value| Some(run(*value))).collect();
    let values = Values {
        base: side(base),
        other: side(other),
        in_pairs: noise.common > 0.0,
        floor: 1,
        upper: upper_among(noise.others),
    };
    values.change(Scale::Ratio)
}

fn run(value: f64) -> Estimate {
    Estimate { value, interval: None, n: 1, effective_n: None, certified: true }
}

/// Run-level values of the first server and of the others, whose means are `ratio` times as large.
fn sides(draws: &mut Draws, noise: &Noise, ratio: f64) -> (Vec<f64>, Vec<Vec<f64>>) {
    let (mut base, mut others) = (Vec::new(), vec![Vec::new(); noise.others]);
    for _ in 0..RUNS_A_SIDE {
        let common = 1.0 + noise.common * draws.normal();
        let [own, of_others] = noise.own;
        base.push(common * (1.0 + own * draws.normal()));
        for other in &mut others {
            other.push(ratio * common * (1.0 + of_others * draws.normal()));
        }
    }
    (base, others)
}

/// Had each side its own 95 %, four others would fail twice as often as one.
#[test]
fn more_sides_are_not_more_false_alarms() {
    let [one, four] = [&NOISES[0], &NOISES[3]];
    assert_eq!((one.others, four.others), (1, 4));
    let alarms = |noise| Comparison::simulate(noise, 2_000, 7).false_alarms;
    assert!(alarms(four) <= 0.035, "{}", alarms(four));
    assert!(alarms(one) <= 0.035, "{}", alarms(one));
}

#[test]
#[expect(clippy::print_stdout, reason = "cargo xtask statistics shows the table")]
fn identical_servers_raise_few_alarms_and_five_per_cent_are_found() {
    let (runs, seed) = super::asked_tables().unwrap_or((400, 2));
    let mut table = format!(
        "Five runs a side: identical servers called worse, and servers 5 % slower found to be so\n\n\
         {:<28} {:>12} {:>18} {:>9} {:>9}\n",
        "noise from run to run", "false alarms", "permutation alarms", "5 % found", "coverage"
    );
    let mut failed = Vec::new();
    for noise in NOISES {
        let compared = Comparison::simulate(noise, runs, seed);
        let _ = writeln!(
            table,
            "{:<28} {:>10.1} % {:>16.1} % {:>7.1} % {:>7.1} %  {}",
            noise.name,
            100.0 * compared.false_alarms,
            100.0 * compared.permutation_alarms,
            100.0 * compared.found,
            100.0 * compared.coverage,
            super::verdict(compared.holds())
        );
        failed.extend((!compared.holds()).then(|| format!("{} {compared:?}", noise.name)));
    }
    println!("{table}");
    assert!(failed.is_empty(), "{failed:#?}");
}
