//! Warnings about what the server said: its lengths, its counts, its stream, its model.

use std::fmt;

use inferometer_model::Observations;

use super::Percent;
use crate::audit::LengthAudit;
use crate::client::share;
use crate::measured::Measured;
use crate::oddities::LENGTH_TOLERANCE;
use crate::verdict::Severity;

#[derive(Clone, Debug, PartialEq)]
pub enum AnswerWarning {
    ModelMismatch {
        asked: String,
        answered: String,
        requests: u64,
    },
    NotStreaming {
        share: f64,
    },
    /// Whole by every rule, and yet nothing came that has a moment.
    NoOutput {
        requests: u64,
    },
    OutputLength {
        share: f64,
    },
    InputLength {
        asked_mean: f64,
        reported_mean: f64,
    },
    UsageZero {
        requests: u64,
    },
    UsageMismatch {
        requests: u64,
    },
    /// Tokens of these requests were counted as events.
    TokenSource {
        requests: u64,
    },
    MissingDone {
        requests: u64,
        of: u64,
    },
    DataAfterDone {
        requests: u64,
    },
}

/// Shares of the answers.
const NOT_STREAMING_SHARE: f64 = 0.50;
const OUTPUT_OFF_SHARE: f64 = 0.10;
/// How far an estimated prompt may be from what the server counts.
const INPUT_TOLERANCE: f64 = 0.20;
/// Of a name that the server chose, as much as a line can show.
const NAME_CHARS_MAX: usize = 80;

impl AnswerWarning {
    pub(super) fn found(observations: &Observations, measured: &Measured) -> Vec<Self> {
        let odd = &measured.oddities;
        let counted_as_events = measured.tokens.output_source.events;
        let mut found = Vec::new();
        found.extend(odd.other_model_name.as_ref().map(|answered| Self::ModelMismatch {
            asked: observations.manifest.endpoint.model.clone(),
            answered: answered.chars().take(NAME_CHARS_MAX).collect(),
            requests: odd.other_model,
        }));
        found.extend(
            share(odd.streams_in_one_arrival, odd.streams)
                .filter(|share| NOT_STREAMING_SHARE < *share)
                .map(|share| Self::NotStreaming { share }),
        );
        let silent = measured.tokens.without_output;
        found.extend((0 < silent).then_some(Self::NoOutput { requests: silent }));
        found.extend(
            share(odd.output_off, measured.ok)
                .filter(|share| OUTPUT_OFF_SHARE < *share)
                .map(|share| Self::OutputLength { share }),
        );
        found.extend(Self::input_length(observations, &measured.audit.input));
        for (requests, warning) in [
            (odd.zero_usage, Self::UsageZero { requests: odd.zero_usage }),
            (odd.usage_mismatch, Self::UsageMismatch { requests: odd.usage_mismatch }),
            (counted_as_events, Self::TokenSource { requests: counted_as_events }),
            (odd.data_after_done, Self::DataAfterDone { requests: odd.data_after_done }),
        ] {
            found.extend((0 < requests).then_some(warning));
        }
        // A server that never sends `[DONE]` has its way; one that sometimes does lost some.
        found.extend((0 < odd.done_seen && 0 < odd.done_missing).then_some(Self::MissingDone {
            requests: odd.done_missing,
            of: odd.done_seen + odd.done_missing,
        }));
        found
    }

    fn input_length(observations: &Observations, input: &LengthAudit) -> Option<Self> {
        // Pictures are tokens, too, and how many is the server's affair.
        if observations.manifest.spec.workload.body.images.is_some() {
            return None;
        }
        let asked_mean = input.planned_tokens? as f64 / input.requests as f64;
        let reported_mean = input.actual_tokens? as f64 / input.requests as f64;
        let off = (reported_mean - asked_mean).abs();
        (INPUT_TOLERANCE * asked_mean < off)
            .then_some(Self::InputLength { asked_mean, reported_mean })
    }

    pub const fn key(&self) -> &'static str {
        match self {
            Self::ModelMismatch { .. } => "model-mismatch",
            Self::NotStreaming { .. } => "not-streaming",
            Self::NoOutput { .. } => "no-output",
            Self::OutputLength { .. } => "output-length",
            Self::InputLength { .. } => "input-length",
            Self::UsageZero { .. } => "usage-zero",
            Self::UsageMismatch { .. } => "usage-mismatch",
            Self::TokenSource { .. } => "token-source",
            Self::MissingDone { .. } => "missing-done",
            Self::DataAfterDone { .. } => "data-after-done",
        }
    }

    pub const fn severity(&self) -> Severity {
        match self {
            Self::ModelMismatch { .. } => Severity::Invalid,
            Self::NotStreaming { .. }
            | Self::NoOutput { .. }
            | Self::OutputLength { .. }
            | Self::InputLength { .. }
            | Self::UsageZero { .. }
            | Self::UsageMismatch { .. }
            | Self::TokenSource { .. }
            | Self::MissingDone { .. }
            | Self::DataAfterDone { .. } => Severity::Note,
        }
    }

    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::ModelMismatch { .. } => {
                "ask for the model by the name that the server gives it, or measure another server"
            }
            Self::NotStreaming { .. } => {
                "check that neither the server nor a proxy before it gathers the stream; as it is, \
                 TTFT is the whole answer's time"
            }
            Self::NoOutput { .. } => {
                "none needed while they are few: such an answer has no TTFT and no E2E, so it is \
                 missing from those"
            }
            Self::OutputLength { .. } => {
                "make the server ignore its end-of-sequence token, or ask for lengths that the \
                 model gives by itself"
            }
            Self::InputLength { .. } => {
                "go by the server's counts; without a tokenizer prompts are sized by estimate"
            }
            Self::UsageZero { .. } => {
                "mend the server's usage; until then tokens are counted from the stream"
            }
            Self::UsageMismatch { .. } => {
                "totals follow the usage and gaps follow the stream; compare with runs of the same \
                 server only"
            }
            Self::TokenSource { .. } => {
                "let the server report usage; an event may carry more or less than one token"
            }
            Self::MissingDone { .. } => "look for a proxy that cuts streams, or for two servers",
            Self::DataAfterDone { .. } => "mend the server; what came after was ignored",
        }
    }
}

impl fmt::Display for AnswerWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ModelMismatch { asked, answered, requests } => {
                write!(f, "`{asked}` was asked for, but `{answered}` answered {requests} requests")
            }
            Self::NotStreaming { share } => {
                let share = Percent(*share);
                write!(f, "{share} of the streamed answers came in one piece")
            }
            Self::NoOutput { requests } => {
                write!(f, "{requests} ok answers brought no text and no counted token")
            }
            Self::OutputLength { share } => write!(
                f,
                "{} of the answers are more than {:.0} % longer or shorter than asked",
                Percent(*share),
                LENGTH_TOLERANCE * 100.0
            ),
            Self::InputLength { asked_mean, reported_mean } => write!(
                f,
                "prompts were to have {asked_mean:.0} tokens on average, and the server counts \
                 {reported_mean:.0}"
            ),
            Self::UsageZero { requests } => {
                write!(f, "usage says 0 output tokens on {requests} answers that have output")
            }
            Self::UsageMismatch { requests } => write!(
                f,
                "on {requests} answers the tokens marked in the stream do not add up to the usage"
            ),
            Self::TokenSource { requests } => {
                write!(f, "tokens of {requests} answers are counted as events, one for each")
            }
            Self::MissingDone { requests, of } => {
                write!(f, "{requests} of {of} whole streams ended without [DONE]")
            }
            Self::DataAfterDone { requests } => {
                write!(f, "{requests} streams went on after [DONE]")
            }
        }
    }
}

#[cfg(test)]
mod tests;
