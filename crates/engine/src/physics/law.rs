//! A step-time law that was learned from the steps of a server, instead of computed from hardware.
//!
//! The law is linear in its numbers: a time for each batch size that was seen, straight lines between
//! them, a time per token of context, and a time for the prompt tokens of the step. Being linear, the
//! times of several steps add up, so a prompt that took several steps is one observation as well.

use serde::{Deserialize, Serialize};

use crate::scheduler::StepShape;

/// Step times by what a step holds, as learned from a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepLaw {
    /// Seconds of a step by its number of decodes, without context: `[decodes, seconds]`, ascending.
    pub batches: Vec<(u32, f64)>,
    /// Seconds for each token of context that the decodes attend to.
    pub per_context_s: f64,
    /// Ends of the ranges of prompt tokens in a step, ascending, and the seconds that each token
    /// within a range adds: `[tokens, seconds]`. Beyond the last range, its value holds.
    pub prefill: Vec<(u32, f64)>,
    /// Seconds for each pair of tokens that attend to each other within prompts.
    pub per_pair_s: f64,
    /// Sigma of the log-normal factor by which steps vary.
    pub spread: f64,
    /// What the law has seen.
    pub seen: Seen,
    /// Steps that it was learned from.
    pub steps: u64,
    /// The median error of steps that the law had not seen, as a share; `None` where there are too few
    /// steps to leave any out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_out_error: Option<f64>,
}

/// The range of what was seen of a server. Beyond it a law extrapolates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Seen {
    /// Most requests in one step.
    pub batch: u32,
    /// Most tokens of context of one request.
    pub context: u32,
    /// Longest prompt.
    pub prompt: u32,
}

impl Seen {
    /// The larger of both in each respect.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            batch: self.batch.max(other.batch),
            context: self.context.max(other.context),
            prompt: self.prompt.max(other.prompt),
        }
    }
}

/// Tables of a law have few rows.
const ROWS_MAX: usize = 4096;
/// Far above the time of any step.
const STEP_MAX_S: f64 = 1_000.0;

impl StepLaw {
    /// Why it is not the law of a server, if it is none.
    pub fn check(&self) -> Result<(), String> {
        let tables = [("batches", &self.batches), ("prefill", &self.prefill)];
        for (name, table) in tables {
            if ROWS_MAX < table.len() {
                return Err(format!("law.{name} has more than {ROWS_MAX} rows"));
            }
            if table.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
                return Err(format!("law.{name} is not ascending"));
            }
        }
        if self.batches.is_empty() {
            return Err("law.batches is empty: no step was seen".to_owned());
        }
        let slopes = [self.per_context_s, self.per_pair_s];
        let times = self.batches.iter().chain(&self.prefill).map(|row| row.1).chain(slopes);
        match times.chain([self.spread]).find(|time| !(0.0..=STEP_MAX_S).contains(time)) {
            Some(time) => Err(format!("law: {time} is not from 0 to {STEP_MAX_S} seconds")),
            None => Ok(()),
        }
    }

    /// Seconds of a step, without noise.
    pub fn seconds(&self, shape: &StepShape) -> f64 {
        let batches = hats(self.batches.iter().map(|row| row.0), shape.decodes);
        let base: f64 = batches.map(|(index, share)| share * self.batches[index].1).sum();
        // Times that fall at the end of the table do not fall on beyond it.
        let last = self.batches.last().filter(|last| last.0 < shape.decodes);
        let base = base.max(last.map_or(0.0, |last| last.1));
        let prefill: f64 = segments(self.prefill.iter().map(|row| row.0), shape.prefill_tokens)
            .zip(&self.prefill)
            .map(|(tokens, row)| tokens * row.1)
            .sum();
        base + self.per_context_s * shape.decode_context as f64
            + prefill
            + self.per_pair_s * shape.prefill_pairs
    }
}

/// The knots on both sides of `at` with their shares; beyond the ends the line of the last two knots
/// goes on upwards, and the first one holds downwards.
pub fn hats(knots: impl Iterator<Item = u32>, at: u32) -> impl Iterator<Item = (usize, f64)> {
    let knots: Vec<f64> = knots.map(f64::from).collect();
    let at = f64::from(at).max(knots.first().copied().unwrap_or_default());
    let right = knots.iter().position(|knot| at <= *knot).unwrap_or(knots.len());
    let right = right.clamp(1, knots.len().saturating_sub(1).max(1));
    let pair = knots.get(right).map(|end| {
        let share = (at - knots[right - 1]) / (end - knots[right - 1]);
        [(right - 1, 1.0 - share), (right, share)]
    });
    let only = pair.is_none().then_some((0, 1.0));
    pair.into_iter().flatten().chain(only)
}

/// How many of `tokens` fall into each range; those beyond the last one belong to it.
pub fn segments(
    ends: impl ExactSizeIterator<Item = u32>,
    tokens: u64,
) -> impl Iterator<Item = f64> {
    let (tokens, last, mut begin) = (tokens as f64, ends.len().saturating_sub(1), 0.0);
    ends.enumerate().map(move |(index, end)| {
        let end = if index == last { f64::INFINITY } else { f64::from(end) };
        let within = (tokens.min(end) - begin).max(0.0);
        begin = end;
        within
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law() -> StepLaw {
        StepLaw {
            batches: vec![(1, 4e-3), (4, 7e-3), (16, 19e-3)],
            per_context_s: 1e-7,
            prefill: vec![(128, 1e-6), (1024, 2e-5)],
            per_pair_s: 1e-9,
            ..StepLaw::default()
        }
    }

    fn decodes(decodes: u32) -> StepShape {
        StepShape { decodes, ..StepShape::default() }
    }

    #[test]
    fn it_is_linear_between_the_batch_sizes_that_were_seen_and_beyond_the_last() {
        let at = |number| (law().seconds(&decodes(number)) * 1e6).round();
        let wanted = [(1, 4e3), (2, 5e3), (4, 7e3), (10, 13e3), (16, 19e3), (28, 31e3)];
        for (number, us) in wanted {
            assert!((at(number) - us).abs() < 0.5, "{number}");
        }
        // A prompt alone takes at least as long as one decode.
        assert!((at(0) - 4e3).abs() < 0.5);
        let one = StepLaw { batches: vec![(8, 1e-3)], ..StepLaw::default() };
        assert!([1, 8, 99].iter().all(|n| (one.seconds(&decodes(*n)) - 1e-3).abs() < 1e-12));
        let falls = StepLaw { batches: vec![(8, 9e-3), (16, 4e-3)], ..StepLaw::default() };
        assert!([16, 32, 99].iter().all(|n| (falls.seconds(&decodes(*n)) - 4e-3).abs() < 1e-12));
    }

    #[test]
    fn context_and_prompts_add_their_own_time() {
        let shape = StepShape {
            decodes: 4,
            decode_context: 10_000,
            prefills: 1,
            prefill_tokens: 2128,
            prefill_pairs: 1e6,
            ..StepShape::default()
        };
        let wanted = 7e-3 + 1e-3 + 128.0 * 1e-6 + 2000.0 * 2e-5 + 1e-3;
        assert!((law().seconds(&shape) - wanted).abs() < 1e-12);
    }

    #[test]
    fn tables_that_are_no_law_are_refused() {
        assert_eq!(law().check(), Ok(()));
        let refused = |law: StepLaw| law.check().unwrap_err();
        assert!(refused(StepLaw { batches: Vec::new(), ..law() }).contains("empty"));
        assert!(
            refused(StepLaw { batches: vec![(4, 1.0), (4, 1.0)], ..law() }).contains("ascending")
        );
        assert!(refused(StepLaw { per_context_s: f64::NAN, ..law() }).contains("NaN"));
        assert!(refused(StepLaw { prefill: vec![(1, -1.0)], ..law() }).contains("-1"));
    }
}
