//! Warnings about how the run went as a whole.

use std::fmt;

use inferometer_model::journal::RunStop;
use inferometer_model::outcome::Cause;
use inferometer_model::{Observations, Outcome};

use super::{Percent, degraded_above};
use crate::cap::HeldByCap;
use crate::measured::Measured;
use crate::verdict::Severity;

#[derive(Clone, Debug, PartialEq)]
pub enum RunWarning {
    NothingOk {
        attempted: u64,
    },
    /// None of them had the time to end.
    AllCut {
        attempted: u64,
        by_user: bool,
    },
    /// Attempted requests that neither ended `ok` nor were ended by us.
    Errors {
        failed: u64,
        attempted: u64,
        /// Turns that could not follow a failed one.
        lost: u64,
    },
    Partial {
        stop: RunStop,
    },
    /// The run's time was over, and so was the time to wait for the last of them.
    CutAtLimit {
        requests: u64,
    },
    StalePool {
        requests: u64,
    },
    /// The cap held some back, so the load was not the schedule.
    HeldByCap {
        requests: u64,
        attempted: u64,
    },
    /// Scheduled requests that the cap still held when the time was over.
    Backlog {
        requests: u64,
    },
    /// Nobody checked whose answers these are.
    Insecure,
    ProxyVariables {
        names: Vec<String>,
    },
    FewRequests {
        ok: u64,
    },
}

/// The share of attempted requests above which failures colour what is left.
pub(crate) const ERRORS_SHARE: f64 = 0.01;
/// Below this many answers even a mean is a guess.
const FEW_REQUESTS: u64 = 30;

impl RunWarning {
    pub(super) fn found(observations: &Observations, measured: &Measured) -> Vec<Self> {
        let Measured { ok, attempted, .. } = *measured;
        let cancelled = observations
            .records
            .iter()
            .filter(|record| record.ending.outcome == Outcome::Cancelled)
            .count() as u64;
        let failed = attempted - ok - cancelled;
        let stop = observations.ending.stop;
        let stale = measured.oddities.stale_pool;
        let proxies = &observations.manifest.environment.proxy_variables;
        let mut found = Vec::new();
        let all_cut = 0 < attempted && cancelled == attempted;
        found.extend((ok == 0 && !all_cut).then_some(Self::NothingOk { attempted }));
        let by_user = stop == RunStop::Cut;
        found.extend(all_cut.then_some(Self::AllCut { attempted, by_user }));
        let lost = observations.not_sent_because(Cause::ConversationBroken);
        found.extend((0 < failed).then_some(Self::Errors { failed, attempted, lost }));
        found.extend(stop.is_partial().then_some(Self::Partial { stop }));
        let cut_at_limit = !stop.is_partial() && 0 < cancelled;
        found.extend(cut_at_limit.then_some(Self::CutAtLimit { requests: cancelled }));
        found.extend((0 < stale).then_some(Self::StalePool { requests: stale }));
        let held = HeldByCap::of(observations).map_or(0, |held| held.requests);
        found.extend((0 < held).then_some(Self::HeldByCap { requests: held, attempted }));
        let backlog = observations.not_sent_because(Cause::HeldByCap);
        found.extend((0 < backlog).then_some(Self::Backlog { requests: backlog }));
        found.extend(observations.manifest.spec.client.insecure.then_some(Self::Insecure));
        found
            .extend((!proxies.is_empty()).then(|| Self::ProxyVariables { names: proxies.clone() }));
        found.extend((0 < ok && ok < FEW_REQUESTS).then_some(Self::FewRequests { ok }));
        found
    }

    pub const fn key(&self) -> &'static str {
        match self {
            Self::NothingOk { .. } => "nothing-ok",
            Self::AllCut { .. } => "all-cut",
            Self::Errors { .. } => "errors",
            Self::Partial { .. } => "partial",
            Self::CutAtLimit { .. } => "cut-at-limit",
            Self::StalePool { .. } => "stale-pool",
            Self::HeldByCap { .. } => "held-by-cap",
            Self::Backlog { .. } => "backlog",
            Self::Insecure => "insecure",
            Self::ProxyVariables { .. } => "proxy-variables",
            Self::FewRequests { .. } => "few-requests",
        }
    }

    pub fn severity(&self) -> Severity {
        match self {
            Self::NothingOk { .. } | Self::AllCut { .. } => Severity::Invalid,
            Self::Errors { failed, attempted, lost } => {
                // A turn that a failure took away is as good as failed.
                let (failed, planned) = (failed + lost, attempted + lost);
                if planned < failed * 2 {
                    Severity::Invalid
                } else {
                    degraded_above(ERRORS_SHARE, failed, planned)
                }
            }
            Self::Partial { stop } => stop_severity(*stop),
            Self::CutAtLimit { .. } | Self::Backlog { .. } => Severity::Degraded,
            Self::StalePool { .. }
            | Self::HeldByCap { .. }
            | Self::Insecure
            | Self::ProxyVariables { .. }
            | Self::FewRequests { .. } => Severity::Note,
        }
    }

    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::NothingOk { .. } => {
                "look at the failures, and check that the server answers a single request"
            }
            Self::AllCut { by_user: true, .. } => "run it again, to its end",
            Self::AllCut { .. } => {
                "run longer, ask for shorter answers, or give the last requests more time \
                 (--drain-timeout)"
            }
            Self::Errors { .. } => {
                "look at the failures; latencies are of the requests that succeeded, so lower the \
                 load or mend the server before comparing"
            }
            Self::Partial { .. } => "run it again to the end before comparing it with another run",
            Self::CutAtLimit { .. } => {
                "give the last requests more time (--drain-timeout), or lower the load: slow answers \
                 are missing here"
            }
            Self::StalePool { .. } => {
                "use a fresh connection for each request (--connections new), or let the server \
                 keep idle ones longer"
            }
            Self::HeldByCap { .. } => {
                "this is a capped-open result and no open-loop one: latencies from schedule count \
                 the waiting; raise --max-concurrency, or lower the rate, to measure an open loop"
            }
            Self::Backlog { .. } => {
                "the server does not keep up with this rate: lower it, or raise --max-concurrency"
            }
            Self::Insecure => {
                "have the server's certificate trusted by this system, and leave --insecure out"
            }
            Self::ProxyVariables { .. } => "none needed; unset them to be sure",
            Self::FewRequests { .. } => "send more requests",
        }
    }
}

/// A run that the user cut short still says what it measured; one that had to give up does not.
const fn stop_severity(stop: RunStop) -> Severity {
    match stop {
        RunStop::PlanDone => Severity::Note,
        RunStop::Drained | RunStop::Cut | RunStop::Recovered => Severity::Degraded,
        RunStop::Unauthorized
        | RunStop::Unreachable
        | RunStop::ClientExhausted
        | RunStop::Stalled => Severity::Invalid,
    }
}

impl fmt::Display for RunWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingOk { attempted } => {
                write!(f, "none of {attempted} attempted requests ended ok")
            }
            Self::AllCut { attempted, .. } => {
                write!(f, "all {attempted} requests were cut before they could end")
            }
            Self::Errors { failed, attempted, lost } => {
                let share = Percent(*failed as f64 / *attempted as f64);
                write!(f, "{failed} of {attempted} attempted requests failed ({share})")?;
                match lost {
                    0 => Ok(()),
                    lost => write!(f, ", and {lost} turns were lost with them"),
                }
            }
            Self::Partial { stop } => write!(f, "the run is partial: {}", stop.text()),
            Self::CutAtLimit { requests } => {
                write!(f, "{requests} requests were still in flight when the drain limit passed")
            }
            Self::StalePool { requests } => write!(
                f,
                "{requests} requests failed because the server had closed the pooled connection"
            ),
            Self::HeldByCap { requests, attempted } => write!(
                f,
                "the concurrency cap held back {requests} of {attempted} requests ({})",
                Percent(*requests as f64 / (*attempted).max(1) as f64)
            ),
            Self::Backlog { requests } => write!(
                f,
                "{requests} scheduled requests were still held back by the cap when the time was over"
            ),
            Self::Insecure => {
                f.write_str("the server's TLS certificate was not checked (--insecure)")
            }
            Self::ProxyVariables { names } => {
                write!(f, "proxy variables are set and were not used: {}", names.join(", "))
            }
            Self::FewRequests { ok } => write!(f, "only {ok} requests ended ok"),
        }
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::outcome::Cause;

    use super::*;
    use crate::fixture::{Given, calm, calm_of, calm_record, raised, run};

    /// A calm run whose first requests ended otherwise.
    fn with_failures(outcome: Outcome, count: usize) -> Observations {
        let mut observations = calm();
        for record in observations.records.iter_mut().take(count) {
            record.ending.outcome = outcome;
        }
        observations
    }

    #[test]
    fn a_calm_run_raises_nothing() {
        assert_eq!(raised(&calm()), []);
    }

    #[test]
    fn nothing_ok_is_invalid() {
        let failed = vec![Given::failed(0, Outcome::HttpError).record()];
        assert!(raised(&run(failed)).contains(&("nothing-ok", Severity::Invalid)));
        assert!(raised(&run(vec![])).contains(&("nothing-ok", Severity::Invalid)));
    }

    #[test]
    fn errors_degrade_above_one_percent_and_are_noted_below() {
        let many = with_failures(Outcome::HttpError, 1);
        assert_eq!(raised(&many), [("errors", Severity::Degraded)]);
        let mut few = calm_of(100);
        few.records[0].ending.outcome = Outcome::TimeoutIdle;
        assert_eq!(raised(&few), [("errors", Severity::Note)]);
    }

    #[test]
    fn what_we_cancelled_is_no_error() {
        let mut cut = with_failures(Outcome::Cancelled, 3);
        assert_eq!(raised(&cut), [("cut-at-limit", Severity::Degraded)]);
        cut.ending.stop = RunStop::Cut;
        assert_eq!(raised(&cut), [("partial", Severity::Degraded)]);
    }

    #[test]
    fn every_early_end_is_partial() {
        use RunStop::{
            ClientExhausted, Cut, Drained, Recovered, Stalled, Unauthorized, Unreachable,
        };
        for (stop, severity) in [
            (Drained, Severity::Degraded),
            (Cut, Severity::Degraded),
            (Recovered, Severity::Degraded),
            (Unauthorized, Severity::Invalid),
            (Unreachable, Severity::Invalid),
            (ClientExhausted, Severity::Invalid),
            (Stalled, Severity::Invalid),
        ] {
            let mut observations = calm();
            observations.ending.stop = stop;
            assert_eq!(raised(&observations), [("partial", severity)]);
        }
    }

    #[test]
    fn a_stale_connection_is_named_beside_the_error() {
        let mut observations = with_failures(Outcome::TransportError, 1);
        observations.records[0].ending.cause = Some(Cause::StalePool);
        assert!(raised(&observations).contains(&("stale-pool", Severity::Note)));
    }

    #[test]
    fn proxy_variables_are_noted() {
        let mut observations = calm();
        observations.manifest.environment.proxy_variables = vec!["HTTPS_PROXY".to_owned()];
        assert_eq!(raised(&observations), [("proxy-variables", Severity::Note)]);
    }

    #[test]
    fn fewer_than_thirty_answers_are_few() {
        let of = |count| raised(&run((0..count).map(calm_record).collect()));
        assert_eq!(of(29), [("few-requests", Severity::Note)]);
        assert_eq!(of(30), []);
    }

    #[test]
    fn texts_name_their_numbers() {
        let warning = RunWarning::Errors { failed: 3, attempted: 40, lost: 0 };
        assert_eq!(warning.to_string(), "3 of 40 attempted requests failed (7.5 %)");
    }
}
