//! Estimates of what a run takes: by its load, its plan, or a simulation in virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use inferometer_model::spec::{Extent, LoadShape, Rate, TargetSpec};
use inferometer_model::{Plan, RequestId, Spec};
use inferometer_workload::{Inputs, make_plan};

use crate::failure::Failure;
use crate::live::Session;
use crate::simulation::VirtualEngine;
use crate::simulator::Simulator;

/// With more requests of a level not even the plan is made.
const PLANNED_REQUESTS_MAX: u64 = 1_000_000;
/// Limits of what the dry run of a matrix simulates: requests of one run, and tokens of all.
const MATRIX_REQUESTS_MAX: u64 = 100_000;
const MATRIX_TOKENS_MAX: u64 = 100_000_000;

/// What a run takes, or several together. `None` where the server decides it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) requests: Option<u64>,
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) time: Option<Duration>,
    /// Requests that the engine refuses or does not finish, such as those that are too long for it.
    pub(super) failing: u64,
    pub(super) known_by: KnownBy,
}

/// The source of an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownBy {
    Load,
    Plan,
    Simulation,
    /// There are too many requests to simulate it, or to count its tokens.
    TooLong,
}

/// Requests and time of a run, where the load alone decides them. Draining is not counted.
pub(super) fn expected(spec: &Spec) -> (Option<u64>, Option<Duration>) {
    let per_s = match &spec.load.shape {
        LoadShape::Open { rate: Rate::Steady { per_s }, .. } => Some(*per_s),
        LoadShape::Open { .. } | LoadShape::Closed { .. } => None,
    };
    let lasting = |requests: u64| {
        #[expect(clippy::cast_precision_loss, reason = "an estimate for the eye")]
        let seconds = per_s.map(|per_s| requests as f64 / per_s);
        seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    };
    let within = |time: Duration| per_s.map(|per_s| rounded(per_s * time.as_secs_f64()));
    match spec.load.extent {
        Extent::Whole => (None, None),
        Extent::Requests(requests) => (Some(requests.get()), lasting(requests.get())),
        Extent::Duration(time) => (within(time), Some(time)),
        Extent::UntilBoth { requests, duration } => (
            within(duration).map(|expected| expected.max(requests.get())),
            lasting(requests.get()).map(|time| time.max(duration)),
        ),
        Extent::UntilFirst { requests, duration } => (
            within(duration).map(|expected| expected.min(requests.get())),
            Some(lasting(requests.get()).map_or(duration, |time| time.min(duration))),
        ),
    }
}

impl Estimate {
    pub(super) const UNKNOWN: Self = Self {
        requests: None,
        input_tokens: None,
        output_tokens: None,
        time: None,
        failing: 0,
        known_by: KnownBy::Load,
    };

    /// The estimate of no runs.
    pub(super) const NONE: Self = Self {
        requests: Some(0),
        input_tokens: Some(0),
        output_tokens: Some(0),
        time: Some(Duration::ZERO),
        failing: 0,
        known_by: KnownBy::Simulation,
    };

    pub(super) fn from_load(spec: &Spec) -> Self {
        let (requests, time) = expected(spec);
        Self { requests, time, ..Self::UNKNOWN }
    }

    /// By the plan, and on the embedded engine by a simulation as far as the budget allows.
    pub(super) fn from_plan(
        spec: &Spec,
        budget: &mut Budget,
        session: &Session,
    ) -> Result<Self, Failure> {
        let load = Self { known_by: KnownBy::TooLong, ..Self::from_load(spec) };
        let foreseen = Work::foreseen(spec);
        if PLANNED_REQUESTS_MAX < foreseen.requests {
            return Ok(load);
        }
        let inputs = Inputs::gather_without_words(spec)?;
        let (plan, _) = make_plan(spec, &inputs);
        let requests = plan.bounds().requests;
        // Only a file can be longer than was foreseen.
        let planned = match requests {
            None => Self { known_by: KnownBy::Plan, ..load },
            Some(many) if PLANNED_REQUESTS_MAX < many => Self { requests, ..load },
            Some(_) => {
                let (input, output) = tokens(plan.as_ref());
                let (input_tokens, output_tokens) = (Some(input), Some(output));
                Self { requests, input_tokens, output_tokens, known_by: KnownBy::Plan, ..load }
            }
        };
        let has_end = requests.is_some() || planned.time.is_some();
        if spec.target != TargetSpec::Embedded || !has_end {
            return Ok(planned);
        }
        let work = Work {
            requests: planned.requests.unwrap_or(foreseen.requests),
            read: planned.input_tokens.unwrap_or(foreseen.read),
            written: planned.output_tokens.unwrap_or(foreseen.written),
        };
        if !budget.allows(work.with_warm_up(spec.load.warm_up)) {
            return Ok(Self { known_by: KnownBy::TooLong, ..planned });
        }
        let simulated = Self::simulate(spec, session)?;
        // A failed request reads nothing, but its tokens were sent.
        if simulated.failing == 0 {
            return Ok(simulated);
        }
        let Self { input_tokens, output_tokens, .. } = planned;
        Ok(Self { input_tokens, output_tokens, ..simulated })
    }

    /// By the load, and on the embedded engine by a simulation, up to a number of `written` tokens.
    pub(super) fn from_simulation(
        spec: &Spec,
        written: &mut u64,
        session: &Session,
    ) -> Result<Self, Failure> {
        let load = Self::from_load(spec);
        let is_short = load.requests.is_some_and(|requests| requests <= MATRIX_REQUESTS_MAX);
        if spec.target != TargetSpec::Embedded || !is_short || MATRIX_TOKENS_MAX < *written {
            return Ok(load);
        }
        let simulated = Self::simulate(spec, session)?;
        *written = written.saturating_add(simulated.output_tokens.unwrap_or(0));
        Ok(simulated)
    }

    /// By a simulation on an engine with an empty cache.
    fn simulate(spec: &Spec, session: &Session) -> Result<Self, Failure> {
        let mut simulator = Simulator { engine: VirtualEngine::new(&spec.engine)?, session };
        let ready = simulator.make_ready(spec)?;
        let warm_up = ready.warm_up_took();
        let summary = simulator.summarize(ready)?;
        let time_s =
            (summary.duration_s + warm_up.as_secs_f64()) / spec.engine.speed.unwrap_or(1.0);
        let (input, output) = (summary.input_tokens, summary.output_tokens);
        Ok(Self {
            requests: Some(summary.requests()),
            input_tokens: Some(input),
            output_tokens: Some(output),
            time: Duration::try_from_secs_f64(time_s).ok(),
            failing: summary.requests() - summary.ok(),
            known_by: KnownBy::Simulation,
        })
    }

    /// Both together.
    pub(super) fn plus(self, more: &Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| {
            one.zip(other).map(|(one, other)| one.saturating_add(other))
        };
        let same = self.known_by == more.known_by;
        Self {
            requests: sum(self.requests, more.requests),
            input_tokens: sum(self.input_tokens, more.input_tokens),
            output_tokens: sum(self.output_tokens, more.output_tokens),
            time: self.time.zip(more.time).map(|(one, other)| one.saturating_add(other)),
            failing: self.failing.saturating_add(more.failing),
            known_by: if same { self.known_by } else { KnownBy::Load },
        }
    }

    /// The same several times.
    pub(super) fn times(self, runs: u32) -> Self {
        let times = |value: Option<u64>| value.map(|value| value.saturating_mul(runs.into()));
        Self {
            requests: times(self.requests),
            input_tokens: times(self.input_tokens),
            output_tokens: times(self.output_tokens),
            time: self.time.map(|time| time.saturating_mul(runs)),
            ..self
        }
    }
}

/// Input and output tokens of all requests of a plan that has an end.
fn tokens(plan: &dyn Plan) -> (u64, u64) {
    // Earlier turns of a conversation are input again in each turn.
    let mut before: BTreeMap<RequestId, u64> = BTreeMap::new();
    let (mut input, mut output) = (0_u64, 0_u64);
    let requests =
        (0..plan.bounds().requests.unwrap_or_default()).map_while(|id| plan.request(RequestId(id)));
    for request in requests {
        let (read, written) = (u64::from(request.input_tokens), u64::from(request.output_tokens));
        let conversation = request.conversation();
        let all = before.remove(&conversation).unwrap_or_default().saturating_add(read);
        input = input.saturating_add(all);
        output = output.saturating_add(written);
        if request.continues {
            before.insert(conversation, all.saturating_add(written));
        }
    }
    (input, output)
}

/// The rest of what a dry run simulates, so that it is quick.
#[derive(Debug)]
pub(super) struct Budget(Work);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Work {
    requests: u64,
    /// Input and output tokens; an output token takes longer, because each has its own step.
    read: u64,
    written: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self(Work { requests: 200_000, read: 50_000_000, written: 5_000_000 })
    }
}

impl Budget {
    /// Whether enough is left for the work, which is then subtracted.
    fn allows(&mut self, work: Work) -> bool {
        let Self(left) = self;
        let rest = left.minus(work);
        *left = rest.unwrap_or(*left);
        rest.is_some()
    }
}

/// Requests and output tokens of each slot, where the engine decides them: more than most engines reach.
const REQUESTS_PER_S: f64 = 10.0;
const WRITTEN_PER_S: f64 = 200.0;
/// Tokens of a request, where nothing better is known.
const TOKENS_PER_REQUEST: u64 = 1_000;

impl Work {
    /// The work of a run before its plan is made. What a file decides is not counted.
    fn foreseen(spec: &Spec) -> Self {
        let within = |time: Duration| Self::within(&spec.load.shape, time);
        let exactly = |requests: u64| Self::from_requests(requests);
        match spec.load.extent {
            Extent::Whole => exactly(0),
            Extent::Requests(requests) => exactly(requests.get()),
            Extent::Duration(time) => within(time),
            Extent::UntilBoth { requests, duration } => {
                within(duration).max(exactly(requests.get()))
            }
            Extent::UntilFirst { requests, duration } => {
                within(duration).min(exactly(requests.get()))
            }
        }
    }

    /// With a warm-up of the same requests.
    fn with_warm_up(self, requests: u64) -> Self {
        let more = |tokens: u64| {
            let each = tokens / self.requests.max(1);
            tokens.saturating_add(each.saturating_mul(requests))
        };
        Self {
            requests: self.requests.saturating_add(requests),
            read: more(self.read),
            written: more(self.written),
        }
    }

    fn minus(self, other: Self) -> Option<Self> {
        Some(Self {
            requests: self.requests.checked_sub(other.requests)?,
            read: self.read.checked_sub(other.read)?,
            written: self.written.checked_sub(other.written)?,
        })
    }

    fn within(shape: &LoadShape, time: Duration) -> Self {
        let seconds = time.as_secs_f64();
        let per_s = match shape {
            LoadShape::Closed { concurrency, .. } => {
                let slots = f64::from(concurrency.get());
                let requests = rounded(slots * seconds * REQUESTS_PER_S);
                let written = rounded(slots * seconds * WRITTEN_PER_S);
                return Self { written, ..Self::from_requests(requests) };
            }
            LoadShape::Open { rate: Rate::Steady { per_s }, .. } => *per_s,
            LoadShape::Open { rate: Rate::Ramp { segments, .. }, .. } => {
                let rates = segments.iter().flat_map(|it| [it.from_per_s, it.to_per_s]);
                rates.fold(0.0, f64::max)
            }
            LoadShape::Open { rate: Rate::Unlimited, .. } => f64::INFINITY,
            LoadShape::Open { rate: Rate::Recorded(_), .. } => 0.0,
        };
        Self::from_requests(rounded(per_s * seconds))
    }

    fn from_requests(requests: u64) -> Self {
        let tokens = requests.saturating_mul(TOKENS_PER_REQUEST);
        Self { requests, read: tokens, written: tokens }
    }

    fn max(self, other: Self) -> Self {
        if self.requests < other.requests { other } else { self }
    }

    fn min(self, other: Self) -> Self {
        if self.requests < other.requests { self } else { other }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, never negative; too much is as much as fits"
)]
fn rounded(number: f64) -> u64 {
    number.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_on_one_level_is_not_there_for_the_next() {
        let mut budget = Budget::default();
        let most = Work { requests: 150_000, read: 30_000_000, written: 3_000_000 };
        assert!(budget.allows(most));
        assert!(!budget.allows(most));
        let rest = Work { requests: 50_000, read: 20_000_000, written: 2_000_000 };
        assert!(budget.allows(rest));
        assert!(!budget.allows(Work { requests: 0, read: 0, written: 1 }));
    }

    #[test]
    fn a_warm_up_asks_as_much_for_each_request() {
        let work = Work { requests: 10, read: 1_000, written: 100 };
        assert_eq!(work.with_warm_up(5), Work { requests: 15, read: 1_500, written: 150 });
        let none = Work { requests: 0, read: 0, written: 0 };
        assert_eq!(none.with_warm_up(5), Work { requests: 5, ..none });
    }
}
