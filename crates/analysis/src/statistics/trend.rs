//! Whether a series in time order rises or falls, when neighbours resemble each other.

use super::blocks::LongRun;
use super::{normal, runs, student};

/// With fewer points nothing is a trend.
const FEWEST_POINTS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// How far it goes: the line's change from the first value to the last, in the unit of the values;
    /// or Kendall's τ, from −1 to 1.
    pub drift: f64,
    /// Two-sided.
    pub p: f64,
}

/// Mann and Kendall's test, whose variance is raised by what the ranks owe to their neighbours.
/// Returns `None` for fewer than four values, for equal ones and for those that are not finite.
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    if values.len() < FEWEST_POINTS {
        return None;
    }
    let n = values.len() as f64;
    let ranks = Ranks::new(values);
    let score = ranks.concordance();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ranks.ties) / 18.0;
    let middles: Vec<f64> = ranks.groups.iter().map(|&group| ranks.middles[group]).collect();
    let owed = LongRun::estimate(&Line::through(&middles)?.residuals)?;
    if variance <= 0.0 || Line::through(values).is_none() {
        return None;
    }
    let raise = if owed.naive > 0.0 { owed.variance / owed.naive } else { 1.0 };
    // The score is a whole number: it stands for half a step to either side.
    let least = (score.abs() - 1.0).max(0.0);
    let p = 2.0 * normal::cdf(-least / (variance * raise).sqrt());
    Some(Trend { drift: score / (0.5 * n * (n - 1.0)), p: p.min(1.0) })
}

/// A straight line by least squares, with an error that allows for autocorrelation: overlapping blocks
/// weigh it as Newey and West do.
pub fn ols_hac(values: &[f64]) -> Option<Trend> {
    if values.len() < FEWEST_POINTS {
        return None;
    }
    let line = Line::through(values)?;
    let span = values.len() as f64 - 1.0;
    let times = (0..values.len()).map(|index| index as f64 - 0.5 * span);
    let pulls: Vec<f64> = times.zip(&line.residuals).map(|(time, rest)| time * rest).collect();
    let long_run = LongRun::estimate(&pulls)?;
    let error = long_run.variance.sqrt() / line.spread;
    let p = if error > 0.0 {
        2.0 * student::cdf(-(line.slope / error).abs(), long_run.degrees)
    } else {
        f64::from(u8::from(line.slope == 0.0))
    };
    Some(Trend { drift: line.slope * span, p })
}

struct Line {
    slope: f64,
    /// Σ (t − t̄)².
    spread: f64,
    residuals: Vec<f64>,
}

impl Line {
    fn through(values: &[f64]) -> Option<Self> {
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let n = values.len() as f64;
        let mean = runs::mean(values);
        let spread = n * (n * n - 1.0) / 12.0;
        let timed = values
            .iter()
            .enumerate()
            .map(|(index, value)| (index as f64 - 0.5 * (n - 1.0), value - mean));
        let slope = timed.clone().map(|(time, value)| time * value).sum::<f64>() / spread;
        let residuals = timed.map(|(time, value)| value - slope * time).collect();
        Some(Self { slope, spread, residuals })
    }
}

struct Ranks {
    /// For each value in the order of time, its group of equal values; groups rise.
    groups: Vec<usize>,
    /// The middle rank of each group.
    middles: Vec<f64>,
    /// Σ t(t − 1)(2t + 5) over the sizes of the groups.
    ties: f64,
}

impl Ranks {
    fn new(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&left, &right| values[left].total_cmp(&values[right]));
        let mut ranks = Self { groups: vec![0; values.len()], middles: Vec::new(), ties: 0.0 };
        let mut before = 0;
        let equal = |left: &usize, right: &usize| values[*left].total_cmp(&values[*right]).is_eq();
        for group in order.chunk_by(equal) {
            let size = group.len() as f64;
            ranks.ties += size * (size - 1.0) * (2.0 * size + 5.0);
            for &index in group {
                ranks.groups[index] = ranks.middles.len();
            }
            ranks.middles.push(before as f64 + 0.5 * (size - 1.0));
            before += group.len();
        }
        ranks
    }

    /// Pairs that rise minus pairs that fall, in n log n steps.
    fn concordance(&self) -> f64 {
        let mut seen = Counts::new(self.middles.len());
        let mut score = 0.0;
        for (before, &group) in self.groups.iter().enumerate() {
            let lower = seen.below(group);
            let higher = before - seen.below(group + 1);
            score += lower as f64 - higher as f64;
            seen.add(group);
        }
        score
    }
}

/// Counts by position, whose partial sums cost a logarithm: a Fenwick tree.
struct Counts(Vec<usize>);

impl Counts {
    fn new(positions: usize) -> Self {
        Self(vec![0; positions + 1])
    }

    fn add(&mut self, position: usize) {
        let mut node = position + 1;
        while node < self.0.len() {
            self.0[node] += 1;
            node += node & node.wrapping_neg();
        }
    }

    fn below(&self, position: usize) -> usize {
        let mut node = position;
        let mut sum = 0;
        while node > 0 {
            sum += self.0[node];
            node &= node - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::super::draws::Draws;
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs(), "found {found}, not {expected}");
    }

    #[test]
    fn the_score_counts_pairs_with_their_ties() {
        // By hand, of 3 1 4 1 5: rises 3-4, 3-5, 1-4, 1-5, 4-5, 1-5; falls 3-1, 3-1, 4-1; one tie.
        close(Ranks::new(&[3.0, 1.0, 4.0, 1.0, 5.0]).concordance(), 3.0);
        // scipy 1.17.1: kendalltau(range(12), w) is 0.5649019553110248 = 37 / √(66 · 65): one tie.
        let w = [3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.6, 5.0, 3.5, 8.0, 9.7, 9.3];
        let score = Ranks::new(&w).concordance();
        close(score / (66.0_f64 * 65.0).sqrt(), 0.564_901_955_311_024_8);
    }

    #[test]
    fn a_line_is_found_with_its_drift() {
        let mut draws = Draws::new(4, 0);
        let values: Vec<f64> =
            (0..200).map(|index| 10.0 + 0.02 * f64::from(index) + draws.normal()).collect();
        let line = ols_hac(&values).unwrap();
        assert!((line.drift - 199.0 * 0.02).abs() < 1.0, "{line:?}");
        assert!(line.p < 1e-6 && mann_kendall(&values).unwrap().p < 1e-6);
    }

    #[test]
    fn both_tests_keep_their_level_on_correlated_series() {
        let (mut line, mut ranks) = (0, 0);
        for number in 0..300 {
            let mut draws = Draws::new(5, number);
            let mut level = 0.0;
            let mut step = |_| {
                level = 0.6 * level + draws.normal();
                level
            };
            let values: Vec<f64> = (0..300).map(&mut step).collect();
            line += u32::from(ols_hac(&values).unwrap().p < 0.05);
            ranks += u32::from(mann_kendall(&values).unwrap().p < 0.05);
        }
        // Nominal 15 of 300; tests for independent values cry 80 times and more.
        assert!(line < 30, "{line}");
        assert!(ranks < 30, "{ranks}");
    }

    #[test]
    fn nothing_is_said_of_little_or_of_equal_values() {
        assert_eq!(ols_hac(&[1.0, 2.0, 3.0]), None);
        assert_eq!(mann_kendall(&[1.0; 20]), None);
        assert_eq!(mann_kendall(&[1.0, f64::NAN, 2.0, 3.0, 4.0]), None);
        assert_eq!(ols_hac(&[7.0; 20]).unwrap(), Trend { drift: 0.0, p: 1.0 });
    }
}
