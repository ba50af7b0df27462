//! Whether two groups of runs differ in their means, by all the ways in which the same values could
//! have been dealt to the two.

use super::draws::Draws;
use super::runs::mean;

/// Beyond so many deals they are drawn, not enumerated.
const MOST_DEALS: u64 = 200_000;
const DRAWN: u64 = 100_000;
const SEED: u64 = 6;
/// Sums of the same values in another order differ in their last digits; they are equal.
const EQUAL: f64 = 1e-9;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Permutation {
    /// Two-sided: the share of deals whose means lie at least as far apart.
    pub p: f64,
    /// Deals that were looked at.
    pub permutations: u64,
    /// No data of these sizes can give less.
    pub smallest_attainable: f64,
    /// Whether they were all; otherwise they were drawn, always the same ones.
    pub exact: bool,
}

/// Groups without values cannot differ: p is one.
pub fn two_sided(a: &[f64], b: &[f64]) -> Permutation {
    if a.is_empty() || b.is_empty() {
        return Permutation { p: 1.0, permutations: 1, smallest_attainable: 1.0, exact: true };
    }
    let both: Vec<f64> = a.iter().chain(b).copied().collect();
    match ways(both.len() as u64, a.len() as u64) {
        Some(ways) => enumerated(&both, a.len(), ways),
        None => drawn(&both, a.len()),
    }
}

/// How many subsets of `chosen` out of `n` there are, when they can be enumerated.
fn ways(n: u64, chosen: u64) -> Option<u64> {
    let mut ways = 1_u64;
    for step in 1..=chosen.min(n - chosen) {
        ways = ways * (n - chosen.min(n - chosen) + step) / step;
        if ways > MOST_DEALS {
            return None;
        }
    }
    Some(ways)
}

/// How far the mean of a deal lies from where chance would put it; both groups say the same.
struct Distance<'a> {
    values: &'a [f64],
    chosen: usize,
    middle: f64,
    threshold: f64,
}

impl<'a> Distance<'a> {
    fn new(values: &'a [f64], chosen: usize) -> Self {
        let middle = mean(values) * chosen as f64;
        let observed = (values[..chosen].iter().sum::<f64>() - middle).abs();
        let scale = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        Self { values, chosen, middle, threshold: observed - EQUAL * scale }
    }

    fn reached(&self, deal: &[usize]) -> bool {
        let sum: f64 = deal[..self.chosen].iter().map(|&index| self.values[index]).sum();
        (sum - self.middle).abs() >= self.threshold
    }
}

fn enumerated(values: &[f64], chosen: usize, ways: u64) -> Permutation {
    let distance = Distance::new(values, chosen);
    let mut deal: Vec<usize> = (0..chosen).collect();
    let mut reached = 0_u64;
    loop {
        reached += u64::from(distance.reached(&deal));
        if !next_deal(&mut deal, values.len()) {
            break;
        }
    }
    // With equal sizes every deal has a mirror image that is just as far.
    let extreme = if 2 * chosen == values.len() { 2.0 } else { 1.0 };
    Permutation {
        p: reached as f64 / ways as f64,
        permutations: ways,
        smallest_attainable: extreme / ways as f64,
        exact: true,
    }
}

/// The next subset in order of its indices.
fn next_deal(deal: &mut [usize], n: usize) -> bool {
    let chosen = deal.len();
    let Some(turn) = (0..chosen).rev().find(|&place| deal[place] < n - chosen + place) else {
        return false;
    };
    deal[turn] += 1;
    for place in turn + 1..chosen {
        deal[place] = deal[place - 1] + 1;
    }
    true
}

fn drawn(values: &[f64], chosen: usize) -> Permutation {
    let distance = Distance::new(values, chosen);
    let mut draws = Draws::new(SEED, 0);
    let mut deal: Vec<usize> = (0..values.len()).collect();
    let mut reached = 0_u64;
    for _ in 0..DRAWN {
        for place in 0..chosen {
            let other = place + draws.below(values.len() - place);
            deal.swap(place, other);
        }
        reached += u64::from(distance.reached(&deal));
    }
    // The deal that was observed is one of them, so that p is never zero.
    let p = |reached: u64| (reached + 1) as f64 / (DRAWN + 1) as f64;
    Permutation { p: p(reached), permutations: DRAWN + 1, smallest_attainable: p(0), exact: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "found {found}, not {expected}");
    }

    #[test]
    fn p_values_are_those_of_scipy() {
        // scipy 1.17.1: scipy.stats.permutation_test((a, b), difference of means, n_resamples=inf)
        let found = two_sided(&[1.0, 2.5, 3.1, 4.4], &[2.2, 3.9, 5.1, 6.0, 7.3]);
        close(found.p, 0.126_984_126_984_126_98);
        assert_eq!((found.permutations, found.exact), (126, true));
        let found = two_sided(&[12.1, 11.8, 12.4, 12.0, 11.9], &[12.6, 12.2, 12.9, 12.5, 12.3]);
        close(found.p, 0.031_746_031_746_031_744);
    }

    #[test]
    fn few_runs_cannot_say_much() {
        for (runs, smallest) in [(3_u32, 0.1), (4, 2.0 / 70.0), (5, 2.0 / 252.0)] {
            let a: Vec<f64> = (0..runs).map(f64::from).collect();
            let b: Vec<f64> = (100..100 + runs).map(f64::from).collect();
            let found = two_sided(&a, &b);
            close(found.smallest_attainable, smallest);
            close(found.p, smallest);
        }
    }

    #[test]
    fn deals_of_large_groups_are_drawn_and_that_is_said() {
        let a: Vec<f64> = (0..15).map(f64::from).collect();
        let b: Vec<f64> = (3..18).map(f64::from).collect();
        let found = two_sided(&a, &b);
        assert!(!found.exact && found.permutations == DRAWN + 1);
        // Student's test gives 0.077 for these.
        assert!((found.p - 0.077).abs() < 0.01, "{found:?}");
        assert_eq!(found, two_sided(&a, &b));
    }

    #[test]
    fn equal_and_missing_values_do_not_differ() {
        close(two_sided(&[0.1, 0.1, 0.1], &[0.1, 0.1, 0.1]).p, 1.0);
        close(two_sided(&[], &[1.0]).p, 1.0);
    }
}
