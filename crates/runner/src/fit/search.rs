//! A search for the lowest cost, by steps of a factor along one number after the other.
//!
//! The cost comes from a simulation: it is not smooth, and its slope means nothing up close. A
//! search that only compares is slow and sure, and the same on every machine.

/// The numbers that may be moved, each within its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) least: f64,
    pub(super) most: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) numbers: Vec<f64>,
    pub(super) cost: f64,
    pub(super) evaluations: u32,
}

/// The first step is by this factor.
const FACTOR: f64 = 1.25;
/// Steps below this factor are not worth their while: figures are known to a few per cent.
const FACTOR_MIN: f64 = 1.003;

/// The lowest cost that is found from `start`, with at most so many evaluations.
pub(super) fn search<E>(
    start: &[f64],
    ranges: &[Range],
    evaluations_max: u32,
    mut cost: impl FnMut(&[f64]) -> Result<f64, E>,
) -> Result<Found, E> {
    let within = |number: f64, range: &Range| number.clamp(range.least, range.most);
    let numbers: Vec<f64> =
        start.iter().zip(ranges).map(|(number, range)| within(*number, range)).collect();
    let mut best = Found { cost: cost(&numbers)?, numbers, evaluations: 1 };
    // Where nothing may be moved there is nothing to look for.
    let mut factor = if start.is_empty() { 1.0 } else { FACTOR };
    while FACTOR_MIN < factor && best.evaluations < evaluations_max {
        let before = best.cost;
        for index in 0..start.len() {
            for step in [factor, 1.0 / factor] {
                let mut numbers = best.numbers.clone();
                numbers[index] = within(numbers[index] * step, &ranges[index]);
                let found = cost(&numbers)?;
                best.evaluations += 1;
                if found < best.cost {
                    best = Found { numbers, cost: found, ..best };
                    break;
                }
            }
        }
        if before <= best.cost {
            factor = factor.sqrt();
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const ANY: Range = Range { least: 1e-9, most: 1e9 };

    fn lowest(start: &[f64], ranges: &[Range], cost: impl Fn(&[f64]) -> f64) -> Found {
        let found = search(start, ranges, 10_000, |numbers| Ok::<_, Infallible>(cost(numbers)));
        found.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn it_finds_the_bottom_of_a_bowl() {
        let bowl = |n: &[f64]| (n[0].ln() - 1.0).powi(2) + (n[1].ln() + 3.0 - n[0].ln()).powi(2);
        let found = lowest(&[1.0, 1.0], &[ANY, ANY], bowl);
        assert!((found.numbers[0].ln() - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.numbers[1].ln() + 2.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn it_stays_within_bounds_and_within_its_means() {
        let ranges = [Range { least: 0.1, most: 1.0 }];
        let found = lowest(&[0.5], &ranges, |n| 1.0 / n[0]);
        assert_eq!(found.numbers, [1.0]);
        let started_outside = lowest(&[7.0], &ranges, |n| n[0]);
        assert!((started_outside.numbers[0] - 0.1).abs() < 1e-9);
        let mut asked = 0;
        let _ = search(&[0.5], &ranges, 5, |n| {
            asked += 1;
            Ok::<_, Infallible>(n[0])
        });
        assert!(asked <= 7, "{asked}");
    }
}
