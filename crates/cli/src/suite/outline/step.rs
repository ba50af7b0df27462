//! One level of one scenario, as far as it is known beforehand.

use std::collections::BTreeMap;
use std::time::Duration;

use inferometer_model::campaign::{CampaignSpec, Level, Point, Suite};
use inferometer_model::spec::TargetSpec;
use inferometer_model::{Plan, RequestId, Spec};
use inferometer_study::{Reading, Study};
use inferometer_workload::{Inputs, make_plan};

use super::budget::{Budget, PLANNED_REQUESTS_MAX, Work};
use crate::failure::Failure;
use crate::live::Session;
use crate::simulation::VirtualEngine;
use crate::simulator::Simulator;
use crate::sweep::expected;

/// Of one run. `None` where the server decides it.
pub(super) struct Step {
    /// The place of its scenario.
    pub(super) scenario: usize,
    pub(super) level: Level,
    pub(super) requests: Option<u64>,
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) time: Option<Duration>,
    /// Requests that the engine refuses or does not finish, such as those that are too long for it.
    pub(super) failing: u64,
    pub(super) known_by: KnownBy,
}

/// How it was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownBy {
    Plan,
    Simulation,
    /// It would have been simulated, or its tokens counted, but there are too many requests.
    TooLong,
}

impl Step {
    /// In the order of the scenarios and their levels.
    pub(super) fn all(
        campaign: &CampaignSpec,
        suite: &Suite,
        session: &Session,
    ) -> Result<Vec<Self>, Failure> {
        let mut budget = Budget::default();
        let mut steps = Vec::new();
        for point in first_round(campaign, suite)? {
            let spec = campaign.spec_of(&point);
            let spec = spec.ok_or_else(|| Failure::internal("a scenario that is not listed"))?;
            steps.push(Self::of(&spec, &point, &mut budget, session)?);
            // A simulation that a signal cut has no true numbers.
            session.interruption.check()?;
        }
        Ok(steps)
    }

    fn of(
        spec: &Spec,
        point: &Point,
        budget: &mut Budget,
        session: &Session,
    ) -> Result<Self, Failure> {
        let (requests, time) = expected(spec);
        let step = Self {
            scenario: usize::try_from(point.condition).unwrap_or(usize::MAX),
            level: point.level,
            requests,
            input_tokens: None,
            output_tokens: None,
            time,
            failing: 0,
            known_by: KnownBy::TooLong,
        };
        let foreseen = Work::foreseen(spec);
        if PLANNED_REQUESTS_MAX < foreseen.requests {
            return Ok(step);
        }
        let (planned, has_end) = step.planned(spec)?;
        if spec.target != TargetSpec::Embedded || !(has_end || planned.time.is_some()) {
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
        planned.simulated(spec, session)
    }

    /// What the plan says, and whether it has an end of its own.
    fn planned(self, spec: &Spec) -> Result<(Self, bool), Failure> {
        let inputs = Inputs::gather_without_words(spec)?;
        let (plan, _) = make_plan(spec, &inputs);
        let Some(requests) = plan.bounds().requests else {
            return Ok((Self { known_by: KnownBy::Plan, ..self }, false));
        };
        let step = Self { requests: Some(requests), ..self };
        // Only a file can be longer than was foreseen.
        if PLANNED_REQUESTS_MAX < requests {
            return Ok((step, true));
        }
        let (input, output) = tokens(plan.as_ref());
        let (input_tokens, output_tokens) = (Some(input), Some(output));
        Ok((Self { input_tokens, output_tokens, known_by: KnownBy::Plan, ..step }, true))
    }

    /// What comes of it on an engine that has seen nothing before.
    fn simulated(self, spec: &Spec, session: &Session) -> Result<Self, Failure> {
        let mut simulator = Simulator { engine: VirtualEngine::new(&spec.engine)?, session };
        let ready = simulator.make_ready(spec)?;
        let warm_up = ready.warm_up_took();
        let told = simulator.summarize(ready)?;
        let time_s = (told.duration_s() + warm_up.as_secs_f64()) / spec.engine.speed.unwrap_or(1.0);
        let (failing, (input, output)) = (told.requests() - told.ok(), told.tokens());
        // Who fails has read nothing, but was asked to.
        let as_planned = 0 < failing;
        Ok(Self {
            requests: Some(told.requests()),
            input_tokens: if as_planned { self.input_tokens } else { Some(input) },
            output_tokens: if as_planned { self.output_tokens } else { Some(output) },
            time: Duration::try_from_secs_f64(time_s).ok(),
            failing,
            known_by: KnownBy::Simulation,
            ..self
        })
    }
}

/// The runs of the first round with the seeds that they will have, in the order in which scenarios
/// and levels are written.
fn first_round(campaign: &CampaignSpec, suite: &Suite) -> Result<Vec<Point>, Failure> {
    let asked = Study::new(campaign.clone());
    let mut asked = asked.map_err(|error| Failure::usage(error.to_string()))?;
    let mut points = Vec::new();
    while let Some(point) = asked.next().filter(|point| point.repetition == 0) {
        points.push(point);
        asked.record(Reading { is_valid: true, ..Reading::default() });
    }
    let place = |point: &Point| {
        let scenario = usize::try_from(point.condition).unwrap_or(usize::MAX);
        let levels = suite.scenarios.get(scenario).map(|scenario| &scenario.levels);
        (scenario, levels.and_then(|levels| levels.iter().position(|it| *it == point.level)))
    };
    points.sort_by_key(place);
    Ok(points)
}

/// Read and written by all requests of a plan that has an end.
fn tokens(plan: &dyn Plan) -> (u64, u64) {
    // What was said in a conversation before is read again in each of its turns.
    let mut before: BTreeMap<RequestId, u64> = BTreeMap::new();
    let (mut input, mut output) = (0_u64, 0_u64);
    let requests =
        (0..plan.bounds().requests.unwrap_or_default()).map_while(|id| plan.request(RequestId(id)));
    for request in requests {
        let (read, written) = (u64::from(request.input_tokens), u64::from(request.output_tokens));
        let talk = request.conversation();
        let said = before.remove(&talk).unwrap_or_default().saturating_add(read);
        input = input.saturating_add(said);
        output = output.saturating_add(written);
        if request.continues {
            before.insert(talk, said.saturating_add(written));
        }
    }
    (input, output)
}
