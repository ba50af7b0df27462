//! What the set might have been: its levels drawn again, each within its doubt. A finding that
//! changes from one draw to the next is not one.

use crate::set::across::Across;
use crate::statistics::draws::Draws;
use crate::statistics::{UPPER, normal};

/// How often a set is drawn again. The constant seed keeps the bytes of its summary.
pub(super) const REPLICATES: u64 = 1_000;
const SEED: u64 = 0x5E75_0F12_0115;
/// From here on Student's t is the normal distribution for what is drawn from it.
const DEGREES_NORMAL: u32 = 60;

/// A mean, and how it would scatter if its runs were made again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Doubtful {
    mean: f64,
    scale: f64,
    /// Of Student's t; `None` is the normal distribution.
    degrees: Option<u32>,
}

impl Doubtful {
    /// From the spread between runs, or of a single run from the interval within it. `None` when
    /// there is neither.
    pub(super) fn of(across: &Across) -> Option<Self> {
        let mean = across.mean?;
        if let Some(std) = across.std {
            let scale = std / f64::from(across.n).sqrt();
            let degrees = Some(across.n - 1).filter(|degrees| *degrees < DEGREES_NORMAL);
            return Some(Self { mean, scale, degrees });
        }
        let half = across.within?.half_width();
        Some(Self { mean, scale: half / normal::quantile(UPPER), degrees: None })
    }

    /// Throughputs and latencies are above zero, however wide their doubt.
    fn draw(&self, draws: &mut Draws) -> f64 {
        let standard = match self.degrees {
            None => draws.normal(),
            Some(degrees) => {
                let squares: f64 = (0..degrees).map(|_| draws.normal()).map(|z| z * z).sum();
                draws.normal() / (squares / f64::from(degrees)).sqrt()
            }
        };
        (self.mean + self.scale * standard).max(self.mean * 1e-3)
    }
}

/// One draw after the other of all these values at once.
pub(super) fn replicates(values: &[Doubtful]) -> impl Iterator<Item = Vec<f64>> + '_ {
    (0..REPLICATES).map(move |number| {
        let mut draws = Draws::new(SEED, number);
        values.iter().map(|value| value.draw(&mut draws)).collect()
    })
}

/// All of them, or `None` when one has no doubt to draw from.
pub(super) fn doubtful<'a>(all: impl IntoIterator<Item = &'a Across>) -> Option<Vec<Doubtful>> {
    all.into_iter().map(Doubtful::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Percentile, Sample};
    use crate::set::fixture::across;

    #[test]
    fn draws_cover_what_the_interval_covers() {
        for values in [vec![98.0, 101.0, 103.0, 99.5, 100.2], vec![50.0, 51.0, 52.0]] {
            let found = across(&values);
            let interval = found.interval.unwrap();
            let doubtful = [Doubtful::of(&found).unwrap()];
            let drawn: Vec<f64> = replicates(&doubtful).map(|draw| draw[0]).collect();
            let inside = drawn.iter().filter(|value| interval.contains(**value)).count();
            assert!((935..=965).contains(&inside), "{inside} of 1000");
            let median = Sample::new(drawn).unwrap().percentile(Percentile::P50);
            assert!((median - found.mean.unwrap()).abs() < interval.half_width() / 5.0);
        }
    }

    #[test]
    fn one_run_without_an_interval_cannot_be_drawn() {
        assert_eq!(Doubtful::of(&across(&[5.0])), None);
        assert_eq!(doubtful([&across(&[5.0]), &across(&[5.0, 6.0])]), None);
    }
}
