//! Warnings that the server's own metrics give: whether it was there all the time, and ours alone.

use std::fmt;

use super::Percent;
use crate::measured::Measured;
use crate::server::TOKENS_APART;
use crate::verdict::Severity;

#[derive(Clone, Debug, PartialEq)]
pub enum ServerWarning {
    /// It began anew during the run.
    Restarted { times: u64 },
    /// Several processes answered by turns.
    Replicas { processes: u64 },
    /// It worked for somebody else too.
    MoreTokens { tokens: ServerTokens, share: f64 },
    /// It worked less than its answers say.
    FewerTokens { tokens: ServerTokens, share: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerTokens {
    Prompt,
    Generated,
}

/// From here on the load was not the one that was asked for.
pub(crate) const FOREIGN_SHARE_GRAVE: f64 = 0.05;

impl ServerWarning {
    pub(super) fn found(measured: &Measured) -> Vec<Self> {
        let Ok(server) = &measured.server else { return Vec::new() };
        let restarted = (0 < server.restarts).then_some(Self::Restarted { times: server.restarts });
        let replicas = server.replicas.map(|processes| Self::Replicas { processes });
        let apart = server.tokens_apart;
        let shares = [
            apart.generation.map(|share| (ServerTokens::Generated, share)),
            apart.prompt.map(|share| (ServerTokens::Prompt, share)),
        ];
        let differing =
            shares.into_iter().flatten().filter(|(_, share)| TOKENS_APART < share.abs());
        let worst = differing.reduce(|a, b| if a.1.abs() < b.1.abs() { b } else { a });
        let tokens = worst.map(|(tokens, share)| match share {
            more if 0.0 < more => Self::MoreTokens { tokens, share },
            _ => Self::FewerTokens { tokens, share: -share },
        });
        restarted.into_iter().chain(replicas).chain(tokens).collect()
    }

    pub const fn key(&self) -> &'static str {
        match self {
            Self::Restarted { .. } => "server-restarted",
            Self::Replicas { .. } => "server-replicas",
            Self::MoreTokens { .. } => "server-tokens-more",
            Self::FewerTokens { .. } => "server-tokens-fewer",
        }
    }

    pub fn severity(&self) -> Severity {
        match self {
            Self::Restarted { .. } => Severity::Invalid,
            Self::MoreTokens { share, .. } if FOREIGN_SHARE_GRAVE < *share => Severity::Degraded,
            Self::Replicas { .. } | Self::MoreTokens { .. } | Self::FewerTokens { .. } => {
                Severity::Note
            }
        }
    }

    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Restarted { .. } => {
                "find out why it ended (its log, the memory of its machine), and measure again"
            }
            Self::Replicas { .. } => {
                "point --metrics-path at the metrics of one replica, or leave them alone with \
                 --telemetry off"
            }
            Self::MoreTokens { .. } => {
                "other clients may have used the server meanwhile: measure when nobody else does"
            }
            Self::FewerTokens { .. } => {
                "its metrics may be those of one of several replicas, or of another server: point \
                 --metrics-path or the URL at the one that answers"
            }
        }
    }
}

impl fmt::Display for ServerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prompt => "prompt tokens",
            Self::Generated => "generated tokens",
        })
    }
}

impl fmt::Display for ServerWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restarted { times: 1 } => {
                f.write_str("the server was restarted during the run, by its own metrics")
            }
            Self::Restarted { times } => {
                write!(
                    f,
                    "the server was restarted {times} times during the run, by its own metrics"
                )
            }
            Self::Replicas { processes } => write!(
                f,
                "{processes} servers answered for their metrics by turns: their counters are not \
                 known, and each gauge is of one of them"
            ),
            Self::MoreTokens { tokens, share } => write!(
                f,
                "the server counted {} more {tokens} than the requests of this run have",
                Percent(*share)
            ),
            Self::FewerTokens { tokens, share } => write!(
                f,
                "the server counted {} fewer {tokens} than the requests of this run have",
                Percent(*share)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{calm, raised, scraped};

    #[test]
    fn a_server_that_counts_as_we_do_raises_nothing() {
        // 40 requests of 512 and 3 tokens.
        assert_eq!(raised(&scraped(calm(), 20_480.0, 120.0)), []);
        assert_eq!(raised(&scraped(calm(), 20_684.0, 120.0)), [], "within a hundredth");
    }

    #[test]
    fn work_for_others_is_named_and_much_of_it_degrades() {
        let more = [("server-tokens-more", Severity::Note)];
        assert_eq!(raised(&scraped(calm(), 20_480.0, 122.0)), more);
        let grave = [("server-tokens-more", Severity::Degraded)];
        assert_eq!(raised(&scraped(calm(), 30_000.0, 120.0)), grave);
        let fewer = [("server-tokens-fewer", Severity::Note)];
        assert_eq!(raised(&scraped(calm(), 20_480.0, 60.0)), fewer);
    }

    #[test]
    fn what_failed_may_explain_a_difference() {
        let mut failed = scraped(calm(), 99_999.0, 999.0);
        failed.records[0].ending.outcome = inferometer_model::Outcome::HttpError;
        assert_eq!(raised(&failed), [("errors", Severity::Degraded)]);
    }

    #[test]
    fn a_restart_makes_a_run_invalid() {
        let mut observations = scraped(calm(), 20_480.0, 120.0);
        if let inferometer_model::Telemetry::Recorded(recording) = &mut observations.telemetry {
            recording.samples[1].process_start_s = Some(2_000.0);
        }
        assert_eq!(raised(&observations), [("server-restarted", Severity::Invalid)]);
    }

    #[test]
    fn replicas_behind_one_address_are_a_note() {
        let mut observations = scraped(calm(), 20_480.0, 120.0);
        if let inferometer_model::Telemetry::Recorded(recording) = &mut observations.telemetry {
            recording.samples[1].process_start_s = Some(500.0);
        }
        assert_eq!(raised(&observations), [("server-replicas", Severity::Note)]);
    }

    #[test]
    fn texts_name_their_numbers() {
        let warning = ServerWarning::MoreTokens { tokens: ServerTokens::Generated, share: 0.125 };
        assert_eq!(
            warning.to_string(),
            "the server counted 12.5 % more generated tokens than the requests of this run have"
        );
    }
}
