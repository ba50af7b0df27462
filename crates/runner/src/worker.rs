//! One of several workers: its share of the plan, its clock, and the wait for the common start.

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::Stripe;
use inferometer_model::fmt::duration;
use inferometer_model::plan::Bounds;
use inferometer_model::spec::{Spec, TargetSpec};
use inferometer_model::stripe::{HostFacts, StripeFacts};
use inferometer_target::system::{KERNEL, clock_host};

use crate::failure::{Failure, Result};
use crate::session::Session;

/// A client that plays its share of a plan while others play theirs.
#[derive(Clone, Debug)]
pub struct Worker {
    /// Its share.
    pub stripe: Stripe,
    /// When all workers begin, in nanoseconds after 1970.
    pub start_ns: u64,
    /// A clock that may be further from the true time than this is refused. Without it the bound that a
    /// program states is held to 50 ms, and the kernel's is not: it grows between two
    /// measurements of a good clock.
    pub clock_error_max: Option<Duration>,
}

/// Connections are opened this long before the start, and the telemetry begins.
const LEAD: Duration = Duration::from_secs(5);
/// What is allowed where the user says nothing.
const ERROR_MAX: Duration = Duration::from_millis(50);
/// A start that is further away is a typing error, or another time zone.
const AWAY_MAX: Duration = Duration::from_hours(24);
/// Beyond this nothing of the plan's beginning is left to join.
const LATE_MAX: Duration = Duration::from_hours(1);

impl Worker {
    /// Fails if the plan cannot be shared by so many.
    pub(crate) fn check_share(&self, spec: &Spec, whole: Bounds) -> Result<()> {
        let count = self.stripe.count;
        if !matches!(spec.target, TargetSpec::Url(_)) {
            let what = "workers that share a plan measure one server, and each would start its own";
            return Err(Failure::usage(what).hint("start the server first, and give its URL"));
        }
        if !spec.control.abort_on.is_empty() {
            let what = "each worker sees its own share, so none can judge when the run is to end";
            return Err(Failure::usage(what).hint("leave --abort-on out, or use one client"));
        }
        let slots = whole.slots.map(|slots| u64::from(slots.get()));
        let users = (slots, "requests in flight (--concurrency, --max-concurrency)");
        for (all, what) in [users, (whole.requests, "requests")] {
            if let Some(all) = all.filter(|all| *all < u64::from(count.get())) {
                let why = format!("{count} workers cannot share {all} {what}");
                return Err(Failure::usage(why).hint("use fewer workers, or a larger load"));
            }
        }
        Ok(())
    }

    /// The machine and its clock, if the clock is good enough and the start is near.
    pub(crate) fn check_host(&self, session: &Session) -> Result<HostFacts> {
        let now_ns = SystemClock::realtime_ns();
        let ahead = Duration::from_nanos(self.start_ns.saturating_sub(now_ns));
        let behind = Duration::from_nanos(now_ns.saturating_sub(self.start_ns));
        if AWAY_MAX < ahead || LATE_MAX < behind {
            let (time, side) = if behind.is_zero() { (ahead, "ahead") } else { (behind, "past") };
            let what = format!("--start-at is {} {side}", duration(time));
            return Err(Failure::usage(what)
                .hint("check the time, its zone (Z is UTC), and the clock of this machine"));
        }
        let host = clock_host();
        self.check_clock(&host, session)?;
        Ok(host)
    }

    fn check_clock(&self, host: &HostFacts, session: &Session) -> Result<()> {
        let clock = format!("the clock of worker {} ({})", self.stripe, host.name);
        let error = host.error_ns.map(Duration::from_nanos);
        match (&host.clock_source, host.synchronized, error) {
            (_, Some(false), _) => session.warn(format!(
                "{clock} is not synchronized: its times may be far from those of workers on other \
                 machines"
            )),
            (Some(source), _, Some(error)) if self.clock_error_max.unwrap_or(ERROR_MAX) < error => {
                let what = format!("{clock} may be {} off, as {source} reports", duration(error));
                if self.clock_error_max.is_none() && source == KERNEL {
                    session.warn(what);
                    return Ok(());
                }
                let allowed = duration(self.clock_error_max.unwrap_or(ERROR_MAX));
                return Err(Failure::usage(format!("{what}; {allowed} is allowed"))
                    .hint("wait until it is synchronized, or allow more with --clock-error"));
            }
            (None, ..) => session.warn(format!(
                "the error of {clock} is not known: neither chronyc nor the kernel reports it"
            )),
            _ => {}
        }
        Ok(())
    }

    /// The clock of a run. That of a worker is there shortly before the start.
    pub(crate) fn clock(worker: Option<&Self>, session: &Session) -> Result<SystemClock> {
        worker.map_or_else(|| Ok(SystemClock::new()), |worker| worker.wait(session))
    }

    /// Waits until shortly before the start. The zero of the run's clock is the same wall time for all
    /// workers.
    fn wait(&self, session: &Session) -> Result<SystemClock> {
        let lead_ns = u64::try_from(LEAD.as_nanos()).unwrap_or(u64::MAX);
        let zero_ns = self.start_ns.saturating_sub(lead_ns);
        let left = || Duration::from_nanos(zero_ns.saturating_sub(SystemClock::realtime_ns()));
        if !left().is_zero() {
            let until = duration(left() + LEAD);
            session.talk(&format!("worker {} begins in {until}", self.stripe));
        }
        // In steps, as the clock may be set meanwhile.
        while !left().is_zero() {
            session.interruption.rest(left().min(Duration::from_secs(1)))?;
        }
        Ok(SystemClock::with_zero_at(zero_ns))
    }

    pub(crate) fn facts(&self, whole: Bounds, host: HostFacts) -> StripeFacts {
        StripeFacts { stripe: self.stripe, start_ns: self.start_ns, whole, host }
    }

    /// How many workers share a plan; one where it is not shared.
    pub(crate) fn count(worker: Option<&Self>) -> NonZeroU32 {
        worker.map_or(NonZeroU32::MIN, |worker| worker.stripe.count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::session::Event;

    /// What is said about a clock, and why it is refused, if it is.
    fn said(
        (source, synchronized, error_ms): (Option<&str>, Option<bool>, Option<u64>),
        clock_error_max: Option<Duration>,
    ) -> (Option<String>, Option<String>) {
        let host = HostFacts {
            name: "n1".to_owned(),
            boot: None,
            clock_source: source.map(str::to_owned),
            synchronized,
            error_ns: error_ms.map(|ms| ms * 1_000_000),
        };
        let heard = Arc::new(Mutex::new(None));
        let last = Arc::clone(&heard);
        let session = Session::new(
            1,
            Arc::new(move |event: Event| *last.lock().unwrap() = Some(event.to_string())),
        );
        let stripe = Stripe { index: 1, count: NonZeroU32::new(4).unwrap() };
        let worker = Worker { stripe, start_ns: 0, clock_error_max };
        let refusal = worker.check_clock(&host, &session).err();
        let refusal = refusal.map(|failure| failure.message().to_owned());
        (heard.lock().unwrap().take(), refusal)
    }

    #[test]
    fn a_clock_is_refused_by_what_its_keeper_states_and_the_kernels_bound_only_if_asked() {
        let (chrony, kernel) = (Some("chronyc"), Some(KERNEL));
        assert_eq!(said((chrony, Some(true), Some(49)), None), (None, None));
        let (_, refusal) = said((chrony, Some(true), Some(80)), None);
        let why =
            "the clock of worker 1/4 (n1) may be 80 ms off, as chronyc reports; 50 ms is allowed";
        assert_eq!(refusal.as_deref(), Some(why));
        let second = Some(Duration::from_secs(1));
        assert_eq!(said((chrony, Some(true), Some(80)), second), (None, None));
        let (warning, refusal) = said((kernel, Some(true), Some(80)), None);
        assert!(warning.unwrap().contains("80 ms off, as the kernel reports") && refusal.is_none());
        let (_, refusal) = said((kernel, Some(true), Some(80)), Some(Duration::from_millis(60)));
        assert!(refusal.unwrap().ends_with("60 ms is allowed"));
        let (warning, refusal) = said((kernel, Some(false), None), second);
        assert!(warning.unwrap().contains("is not synchronized") && refusal.is_none());
        let (warning, refusal) = said((None, None, None), second);
        assert!(warning.unwrap().contains("is not known") && refusal.is_none());
    }
}
