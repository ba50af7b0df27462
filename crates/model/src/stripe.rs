//! Several workers that play one plan together: whose share is whose, and what each knew of the
//! common start.

use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::journal::{LagHistogram, RunStop};
use crate::plan::Bounds;

/// The share of one worker: conversation k of the plan, and user k of a closed loop, belong to worker
/// k modulo the number of workers. A request that stands alone is a conversation of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stripe {
    /// From zero.
    pub index: u32,
    pub count: NonZeroU32,
}

impl Stripe {
    /// More workers than this are a typing error.
    pub const COUNT_MAX: u32 = 100_000;

    /// How many of so many things are this worker's.
    pub fn share(self, things: u64) -> u64 {
        things.saturating_sub(self.index.into()).div_ceil(NonZeroU64::from(self.count).get())
    }

    /// Which of all things this worker's `number`th is.
    pub fn nth(self, number: u64) -> u64 {
        number.saturating_mul(self.count.get().into()).saturating_add(self.index.into())
    }
}

impl fmt::Display for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for Stripe {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').and_then(|(index, count)| {
            Some((index.trim().parse().ok()?, count.trim().parse::<NonZeroU32>().ok()?))
        });
        let (index, count) = parts.ok_or("write it as i/n, such as 0/4 for the first of four")?;
        if count.get() <= index {
            let last = count.get() - 1;
            return Err(format!("of {count} workers, the first is 0 and the last is {last}"));
        }
        if Self::COUNT_MAX < count.get() {
            return Err(format!("at most {} workers share a plan", Self::COUNT_MAX));
        }
        Ok(Self { index, count })
    }
}

stored_as_text!(Stripe);

/// In the manifest of a worker's run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StripeFacts {
    pub stripe: Stripe,
    /// The agreed start, in nanoseconds after 1970.
    pub start_ns: u64,
    /// Bounds of the plan that the workers share.
    pub whole: Bounds,
    pub host: HostFacts,
}

/// The machine of a worker, and its clock before the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name, as it calls itself.
    pub name: String,
    /// Equal for workers on one machine, which share a clock; `None` where the system does not say.
    pub boot: Option<String>,
    /// The program that reported the state of the clock; `None` when none could.
    pub clock_source: Option<String>,
    pub synchronized: Option<bool>,
    /// How far the clock is from the true time at most, as that program estimates it.
    pub error_ns: Option<u64>,
}

/// In the manifest of a run that was merged from those of its workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeFacts {
    /// How far the times of different workers may be apart; `None` where it is not known.
    pub clock_error_ns: Option<u64>,
    /// All of the plan's workers, in their order.
    pub workers: Vec<WorkerFacts>,
}

/// What became of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerFacts {
    pub stripe: Stripe,
    /// What it recorded; `None` when there is no run of it.
    pub run: Option<WorkerRun>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerRun {
    /// The name of its folder.
    pub run: String,
    pub host: HostFacts,
    pub stop: RunStop,
    /// How long after the agreed start it began, if that was too late.
    pub late_ns: Option<u64>,
    pub attempted: u64,
    pub not_sent: u64,
    pub loop_lag: LagHistogram,
    pub driver_cpu_us: Option<u32>,
}

impl WorkerFacts {
    /// What is wrong with it, if it did not play its whole share.
    pub fn loss(&self) -> Option<&'static str> {
        match &self.run {
            None => Some("is missing"),
            Some(run) => match run.stop {
                RunStop::PlanDone => None,
                RunStop::Recovered => Some("died"),
                RunStop::Drained
                | RunStop::Cut
                | RunStop::ErrorBudget
                | RunStop::SloMissed
                | RunStop::Saturated => Some("was stopped"),
                RunStop::Unauthorized
                | RunStop::Unreachable
                | RunStop::ClientExhausted
                | RunStop::Stalled
                | RunStop::WorkersLost => Some("gave up"),
            },
        }
    }

    /// Its stripe, and the machine that it ran on.
    pub fn name(&self) -> String {
        match &self.run {
            Some(run) if !run.host.name.is_empty() => {
                format!("{} on {}", self.stripe, run.host.name)
            }
            _ => self.stripe.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_meet_nowhere() {
        for count in 1..20 {
            let stripes = (0..count).map(|index| format!("{index}/{count}").parse().unwrap());
            let stripes: Vec<Stripe> = stripes.collect();
            for things in 0..50 {
                let of_one = |stripe: &Stripe| {
                    (0..stripe.share(things)).map(|number| stripe.nth(number)).collect::<Vec<_>>()
                };
                let mut all: Vec<u64> = stripes.iter().flat_map(of_one).collect();
                all.sort_unstable();
                assert_eq!(all, (0..things).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn what_is_no_stripe_is_refused_with_its_form() {
        for wrong in ["", "4", "4/4", "0/0", "-1/2", "1/2/3", "0/100001", "a/b"] {
            assert!(wrong.parse::<Stripe>().is_err(), "{wrong}");
        }
        assert_eq!("3/4".parse::<Stripe>().unwrap().to_string(), "3/4");
    }
}
