//! Warnings about the workload: whether the server met what it was meant to meet.

use std::fmt;

use inferometer_model::Observations;
use inferometer_model::observations::InputLength;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::Source;

use super::Percent;
use crate::audit::Audit;
use crate::measured::Measured;
use crate::verdict::Severity;

#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadWarning {
    /// Every prompt was to be new to the server, and some were not.
    CacheContamination {
        /// Of the input tokens.
        share: f64,
        prompts: NewPrompts,
    },
    /// An earlier run may have sent the same prompts, and the server does not say what it cached.
    SeenBefore { run: String },
    /// More requests than the data has prompts.
    RepeatedPrompts { requests: u64, items: u64 },
    /// Turns that had no answer to go on from.
    ConversationsBroken { turns: u64 },
}

/// Where prompts that nobody has sent before come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewPrompts {
    /// From the seed: another seed gives others.
    Seeded,
    /// The same in every run.
    SameInEveryRun,
}

/// A prefix cache works in blocks, and some servers put a few words of their own first.
pub(crate) const CACHED_SHARE: f64 = 0.05;
/// From here on the figures are those of the cache.
pub(crate) const CACHED_SHARE_GRAVE: f64 = 0.20;

impl WorkloadWarning {
    pub(super) fn found(observations: &Observations, measured: &Measured) -> Vec<Self> {
        let cached = cached_share(measured);
        let contamination = contamination(observations, &measured.audit, cached);
        let seen = seen_before(observations, cached);
        let repeated = repeated(observations);
        let broken = observations.not_sent_because(Cause::ConversationBroken);
        let broken = (0 < broken).then_some(Self::ConversationsBroken { turns: broken });
        contamination.into_iter().chain(seen).chain(repeated).chain(broken).collect()
    }

    pub const fn key(&self) -> &'static str {
        match self {
            Self::CacheContamination { .. } => "cache-contamination",
            Self::SeenBefore { .. } => "seen-before",
            Self::RepeatedPrompts { .. } => "repeated-prompts",
            Self::ConversationsBroken { .. } => "conversations-broken",
        }
    }

    pub fn severity(&self) -> Severity {
        match self {
            Self::CacheContamination { share, .. } if CACHED_SHARE_GRAVE < *share => {
                Severity::Degraded
            }
            Self::CacheContamination { .. }
            | Self::SeenBefore { .. }
            | Self::RepeatedPrompts { .. }
            | Self::ConversationsBroken { .. } => Severity::Note,
        }
    }

    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::CacheContamination { prompts: NewPrompts::Seeded, .. } => {
                "the server has seen these prompts before: use another --seed, restart the server, \
                 or switch its prefix cache off"
            }
            Self::CacheContamination { prompts: NewPrompts::SameInEveryRun, .. } => {
                "vllm-random sends the same prompts in every run: restart the server between runs, \
                 or switch its prefix cache off"
            }
            Self::SeenBefore { .. } => {
                "a prefix cache may have answered them: use another --seed, restart the server, or let \
                 it say what it cached (vLLM: --enable-prompt-tokens-details)"
            }
            Self::RepeatedPrompts { .. } => {
                "a prefix cache answers a repeated prompt faster: send fewer requests, give more \
                 data, or switch the cache off"
            }
            Self::ConversationsBroken { .. } => {
                "look at the failures; figures of later turns are of the conversations that held"
            }
        }
    }
}

/// What the server took from its cache: by each answer's usage, else by its counters over the run.
pub(crate) fn cached_share(measured: &Measured) -> Option<f64> {
    let by_counters = || measured.server.as_ref().ok()?.own_hit_share();
    measured.audit.cache.share.or_else(by_counters)
}

fn contamination(
    observations: &Observations,
    audit: &Audit,
    cached: Option<f64>,
) -> Option<WorkloadWarning> {
    let prompts = new_prompts(&observations.manifest.spec.workload.source)?;
    let share = cached?;
    let foreign = share - template_share(observations.manifest.materials.input_length, audit);
    (CACHED_SHARE < foreign).then_some(WorkloadWarning::CacheContamination { share, prompts })
}

/// Where the server's own word about its cache is there, it speaks instead.
fn seen_before(observations: &Observations, cached: Option<f64>) -> Option<WorkloadWarning> {
    let run = observations.manifest.seen_before.clone()?;
    cached.is_none().then_some(WorkloadWarning::SeenBefore { run })
}

/// How the prompts are new, where each is to be.
pub(crate) fn new_prompts(source: &Source) -> Option<NewPrompts> {
    match source {
        Source::Synthetic(synthetic) if synthetic.prefix.is_none() => Some(NewPrompts::Seeded),
        Source::VllmRandom(random) if random.prefix_tokens == 0 => Some(NewPrompts::SameInEveryRun),
        Source::Mix(parts) => {
            let of_parts: Option<Vec<NewPrompts>> =
                parts.iter().map(|part| new_prompts(&part.source)).collect();
            let same = of_parts?.contains(&NewPrompts::SameInEveryRun);
            Some(if same { NewPrompts::SameInEveryRun } else { NewPrompts::Seeded })
        }
        Source::Synthetic(_)
        | Source::VllmRandom(_)
        | Source::Dataset(_)
        | Source::Fixed(_)
        | Source::Trace(_)
        | Source::Conversations(_)
        | Source::Saved { .. } => None,
    }
}

/// The share of the input that the server's chat template may be: it begins every prompt alike, so
/// finding it in the cache tells nothing about ours.
fn template_share(input_length: InputLength, audit: &Audit) -> f64 {
    let constant = audit.input.difference.and_then(|difference| difference.constant());
    let template = match input_length {
        InputLength::Corrected(correction) => correction.overhead_tokens,
        InputLength::Exact | InputLength::Estimated => constant.unwrap_or(0) as f64,
    };
    let (Some(actual), requests) = (audit.input.actual_tokens, audit.input.requests) else {
        return 0.0;
    };
    let input_mean = actual as f64 / requests as f64;
    (template / input_mean.max(1.0)).max(0.0)
}

fn repeated(observations: &Observations) -> Option<WorkloadWarning> {
    let Source::Dataset(_) = observations.manifest.spec.workload.source else { return None };
    let items = observations.manifest.materials.files.first()?.items;
    let is_first = |record: &&inferometer_model::RequestRecord| record.asked.turn == 0;
    let requests = observations.records.iter().filter(is_first).count() as u64;
    (items < requests).then_some(WorkloadWarning::RepeatedPrompts { requests, items })
}

impl fmt::Display for WorkloadWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CacheContamination { share, .. } => write!(
                f,
                "every prompt was to be new, but {} of the input came from the prefix cache",
                Percent(*share)
            ),
            Self::SeenBefore { run } => {
                write!(f, "run {run} may have sent the same prompts to this server")
            }
            Self::RepeatedPrompts { requests, items } => {
                write!(f, "{requests} requests were made from {items} prompts, so some came again")
            }
            Self::ConversationsBroken { turns } => write!(
                f,
                "{turns} turns were not sent because an earlier turn of their conversation failed"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
