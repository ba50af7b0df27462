//! The server's steps, reconstructed from the moments at which tokens arrived.
//!
//! An inference server works in steps: each gives every running request its next token. The tokens of a
//! step leave together, so their arrivals show when the step ended, which requests were in it, and how
//! long it took, without asking the server.

mod alignment;

use inferometer_model::fmt as words;
use inferometer_model::records::{Records, TimeOrder};
use inferometer_model::{Moment, Observations, RequestId};
use serde::{Deserialize, Serialize};

use self::alignment::{Alignment, Evidence};
use crate::record::{Arrival, Output, Ruler, ns_to_ms};
use crate::statistics::{Percentile, Sample, median};

/// One step of the server, as far as its tokens show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Arrival of its first token.
    pub first: Moment,
    /// Arrival of its last token.
    pub last: Moment,
    /// Seconds since the first token of the step before. `None` of the first step and after an idle gap,
    /// during which the server had no request of ours.
    pub duration: Option<f64>,
    /// Requests that got a token.
    pub batch: u32,
    /// Tokens that the step gave out: more than `batch` with speculative decoding.
    pub tokens: u64,
    /// Prompt and output tokens that the requests in it had before it, summed.
    pub context_tokens: u64,
    /// Requests whose first token left in it.
    pub prefills: u32,
    /// Prompt tokens of those requests that the server did not report as cached.
    pub prefill_tokens: u64,
    /// Requests that were sent before it began and had no token when it ended, up to 1,000: parts of their
    /// prompts may have been computed in it.
    pub waiting: u32,
    /// Whether a token of its own shows when it ended. Otherwise it lies evenly between two arrivals of
    /// requests whose events carry several tokens.
    pub seen: bool,
}

impl Step {
    /// Whether nothing but output tokens can have been computed in it.
    pub const fn is_decode_only(&self) -> bool {
        self.prefills == 0 && self.waiting == 0
    }
}

/// How far the reconstruction can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// The order within streams and the arrival times do not exclude other steps.
    Low,
    /// They agree, and steps that took long were long for all requests in them.
    High,
}

/// The steps of a run, or of its first part where it is long.
#[derive(Clone, Debug, PartialEq)]
pub struct Steps {
    /// In the order of time.
    pub steps: Vec<Step>,
    pub confidence: Confidence,
    /// What the confidence follows from, as a sentence.
    pub reason: String,
    /// Whether the run has more steps than were reconstructed.
    pub cut: bool,
}

/// Why the arrivals of a run show no steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum NoStructure {
    /// No answer was streamed, or the streams have too few arrivals.
    #[error("too few streamed tokens arrived")]
    TooFewArrivals,
    /// Something on the way gathers events.
    #[error(
        "many tokens arrive at once: a proxy, or the server itself, gathers them before they are sent"
    )]
    Gathered,
    /// Requests that run at the same time advance independently of each other.
    #[error(
        "requests that run at the same time do not advance together, as with several servers \
         behind the address or with a server that does not batch"
    )]
    Independent,
}

/// More steps than these are not kept.
const STEPS_MAX: usize = 100_000;

/// Reconstructs the steps of a run, and tells the position of each step and each request that was in it.
pub fn reconstruct(
    observations: &Observations,
    on_member: &mut dyn FnMut(usize, RequestId),
) -> Result<Steps, NoStructure> {
    if !observations.manifest.spec.workload.streaming {
        return Err(NoStructure::TooFewArrivals);
    }
    reconstruct_with(&observations.records, on_member)
}

/// As [`reconstruct`], from a run's records alone.
pub fn reconstruct_with(
    records: &Records,
    on_member: &mut dyn FnMut(usize, RequestId),
) -> Result<Steps, NoStructure> {
    let records = records.in_time_order();
    let (rule, gap_ns, together) = TokenRule::find(&records)?;
    let mut alignment = Alignment::new(&records, (rule, gap_ns), on_member);
    let cut = alignment.run();
    let Alignment { steps, evidence, .. } = alignment;
    let (confidence, reason) = evidence.judge(&steps, together)?;
    Ok(Steps { steps, confidence, reason, cut })
}

/// What several tokens in one event mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenRule {
    /// Each token is a step: the server sends an event after several of them.
    StepPerToken,
    /// They left in one step, by speculative decoding.
    StepPerEvent,
}

/// Requests that the rule is found from.
const SURVEYED: usize = 500;
/// A stream whose tokens arrive together to this share shows no steps.
const GATHERED_SHARE: f64 = 0.25;
/// Fewer gaps between arrivals of a stream show nothing.
const GAPS_MIN: usize = 50;

impl TokenRule {
    /// With the usual gap between two tokens of a stream, in nanoseconds, and the share of the events that
    /// came together with others.
    fn find(records: &TimeOrder<'_>) -> Result<(Self, f64, f64), NoStructure> {
        let ruler = &mut Ruler::new(0);
        let mut output = Output::default();
        let (mut events, mut together) = (0, 0);
        let (mut single, mut several) = (Vec::new(), Vec::new());
        let streamed = records
            .iter()
            .filter(|record| record.head.is_some_and(|head| head.streamed))
            .take(SURVEYED);
        for record in streamed {
            output.read(&record, ruler);
            for pair in output.arrivals.windows(2) {
                let [before, arrival] = pair else { continue };
                events += u64::from(arrival.events);
                together += u64::from(if 1 < arrival.events { arrival.events } else { 0 });
                let gap = ns_to_ms(arrival.at.as_nanos().saturating_sub(before.at.as_nanos()));
                match arrival.tokens {
                    Some(tokens) if arrival.events == 1 && 1 < tokens => {
                        several.push((gap, tokens as f64));
                    }
                    _ if arrival.events == 1 => single.push(gap),
                    _ => {}
                }
            }
            // An answer that comes whole is one arrival with all of its events.
            if let [whole] = &*output.arrivals {
                events += u64::from(whole.events);
                together += u64::from(if 1 < whole.events { whole.events } else { 0 });
            }
        }
        if GATHERED_SHARE * (events as f64) < together as f64 {
            return Err(NoStructure::Gathered);
        }
        if single.len() + several.len() < GAPS_MIN {
            return Err(NoStructure::TooFewArrivals);
        }
        let rule = Self::from_gaps(&single, &several);
        let each = |(gap, tokens): &(f64, f64)| {
            if rule == Self::StepPerToken { gap / tokens } else { *gap }
        };
        let gaps = single.iter().copied().chain(several.iter().map(each)).collect();
        let gap_ns = median(gaps).unwrap_or(0.0) * 1e6;
        Ok((rule, gap_ns, together as f64 / events.max(1) as f64))
    }

    /// Where each token is a step, an event of several tokens takes as much longer; where there are
    /// nearly none of one token, an equal number in nearly all events is a setting of the server.
    fn from_gaps(single: &[f64], several: &[(f64, f64)]) -> Self {
        if several.len() * 20 < single.len() {
            return Self::StepPerToken;
        }
        let Some(usual) = median(several.iter().map(|(_, tokens)| *tokens).collect()) else {
            return Self::StepPerToken;
        };
        let equal = several.iter().filter(|(_, tokens)| (tokens - usual).abs() < 0.5).count();
        if single.len() * 10 < several.len() {
            return if several.len() * 8 < equal * 10 {
                Self::StepPerToken
            } else {
                Self::StepPerEvent
            };
        }
        let each = several.iter().map(|(gap, tokens)| gap / tokens).collect();
        let both = median(each).zip(median(single.to_vec()));
        let longer = both.is_some_and(|(each, single)| 0.75 * single < each);
        if longer { Self::StepPerToken } else { Self::StepPerEvent }
    }

    /// The steps that an arrival ends, and the tokens of the last of them; `None` without tokens.
    fn advance(self, arrival: &Arrival) -> Option<(u32, u64)> {
        let events = arrival.events.max(1);
        match (self, arrival.tokens) {
            (_, Some(0)) => None,
            (_, None) => Some((events, 1)),
            (Self::StepPerToken, Some(tokens)) => {
                Some((u32::try_from(tokens).unwrap_or(u32::MAX), 1))
            }
            (Self::StepPerEvent, Some(tokens)) => {
                Some((events, tokens.saturating_sub(u64::from(events) - 1).max(1)))
            }
        }
    }
}

/// Fewer steps of their own arrivals prove nothing.
const SEEN_MIN: usize = 50;
/// Tokens that contradict the steps, as a share: up to here the steps are certain, and from there on they
/// are refused.
const CERTAIN_BELOW: f64 = 0.004;
/// Streams that mark no tokens may skip some, and not all that are skipped are known.
const CERTAIN_UNMARKED_BELOW: f64 = 0.01;
const MIXED_FROM: f64 = 0.01;
/// A share of the events that come together with others, from which steps may lie between them.
const TOGETHER_FROM: f64 = 0.01;
const REFUSED_FROM: f64 = 0.03;
/// The 90th percentile of the widest gap inside a step, as a share of the gap that ends it.
const CLEAR_BELOW: f64 = 0.35;
/// Fewer steps that take long for all requests in them do not show that these share a server.
const SHARED_MIN: u64 = 3;

impl Evidence {
    fn judge(self, steps: &[Step], together: f64) -> Result<(Confidence, String), NoStructure> {
        let seen = steps.iter().filter(|step| step.seen).count();
        if seen < 2 {
            return Err(NoStructure::TooFewArrivals);
        }
        let unexplained = self.irregular + self.silent.saturating_sub(self.silent_expected);
        let contradicted = unexplained as f64 / self.placed.max(1) as f64;
        let overlap = Sample::new(self.overlaps);
        let overlap = overlap.map_or(0.0, |sample| sample.percentile(Percentile::P90));
        let several = steps.iter().filter(|step| 1 < step.batch).count();
        let is_mixed = MIXED_FROM <= contradicted && CLEAR_BELOW <= overlap;
        if REFUSED_FROM <= contradicted || (is_mixed && 1 < several) {
            return Err(NoStructure::Independent);
        }
        let mut reasons = Vec::new();
        if seen < SEEN_MIN {
            reasons.push(format!("only {} are seen", words::counted(seen as u64, "step")));
        }
        if seen < steps.len() / 2 {
            reasons.push("most of them have no arrival of their own".to_owned());
        }
        if CERTAIN_BELOW <= self.swallowed as f64 / steps.len().max(1) as f64 {
            reasons.push("answers began with the tokens of several steps at once".to_owned());
        }
        if TOGETHER_FROM <= together {
            let share = words::percent(together);
            reasons.push(format!("{share} of the events of a stream came together with others"));
        }
        let certain = if 0 < self.silent_expected { CERTAIN_UNMARKED_BELOW } else { CERTAIN_BELOW };
        if certain <= contradicted {
            reasons.push(format!("{} of the tokens do not fit", words::percent(contradicted)));
        }
        if CLEAR_BELOW <= overlap {
            reasons.push(
                "the tokens of a step are not clearly apart from those of the next".to_owned(),
            );
        }
        if steps.len() / 10 < several && self.shared_stalls < SHARED_MIN {
            reasons.push(
                "nothing delayed all requests at once, so they may be on several servers"
                    .to_owned(),
            );
        }
        if reasons.is_empty() {
            let fit = words::percent(1.0 - contradicted);
            let together = if several == 0 {
                "and no two requests ran at the same time"
            } else {
                "and requests that run at the same time advance and wait together"
            };
            let reason = format!("{fit} of the tokens fit them, {together}");
            return Ok((Confidence::High, reason));
        }
        Ok((Confidence::Low, reasons.join("; ")))
    }
}
