//! One level of one scenario, as far as it is known beforehand.

use std::collections::BTreeMap;
use std::time::Duration;

use inferometer_model::campaign::{CampaignSpec, Level, Point, Stage, Suite};
use inferometer_model::spec::TargetSpec;
use inferometer_model::{Plan, RequestId, Spec};
use inferometer_workload::{Ingredients, make_plan};

use crate::failure::Failure;
use crate::live::Session;
use crate::simulation::VirtualEngine;
use crate::simulator::Simulator;
use crate::sweep::expected;

/// `None` where the server decides it.
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
}

/// Beyond these many a simulation would keep people waiting.
const SIMULATED_TOKENS_MAX: u64 = 10_000_000;

impl Step {
    pub(super) fn all(
        campaign: &CampaignSpec,
        suite: &Suite,
        session: &Session,
    ) -> Result<Vec<Self>, Failure> {
        let mut steps = Vec::new();
        for (scenario, asked) in suite.scenarios.iter().enumerate() {
            for level in &asked.levels {
                let spec = spec_at(campaign, scenario, *level)?;
                steps.push(Self::of(&spec, scenario, *level, session)?);
            }
        }
        Ok(steps)
    }

    fn of(spec: &Spec, scenario: usize, level: Level, session: &Session) -> Result<Self, Failure> {
        let planned = Self::planned(spec, scenario, level)?;
        let is_short = planned.output_tokens.is_none_or(|tokens| tokens <= SIMULATED_TOKENS_MAX);
        let is_known = planned.requests.is_some() || planned.time.is_some();
        if spec.target == TargetSpec::Embedded && is_short && is_known {
            return planned.simulated(spec, session);
        }
        Ok(planned)
    }

    /// What the plan says.
    fn planned(spec: &Spec, scenario: usize, level: Level) -> Result<Self, Failure> {
        let ingredients = Ingredients::gather_without_words(spec)?;
        let (plan, _) = make_plan(spec, &ingredients);
        let tokens = plan.bounds().requests.map(|_| tokens(plan.as_ref()));
        Ok(Self {
            scenario,
            level,
            requests: plan.bounds().requests,
            input_tokens: tokens.map(|(input, _)| input),
            output_tokens: tokens.map(|(_, output)| output),
            time: expected(spec).1,
            failing: 0,
        })
    }

    /// What comes of it on an engine that has seen nothing before.
    fn simulated(self, spec: &Spec, session: &Session) -> Result<Self, Failure> {
        let mut simulator = Simulator { engine: VirtualEngine::of(&spec.engine)?, session };
        let Ok(ready) = simulator.make_ready(spec)? else { return Ok(self) };
        let warm_up = ready.warm_up_took();
        let told = simulator.tell(ready)?;
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
            ..self
        })
    }
}

fn spec_at(campaign: &CampaignSpec, scenario: usize, level: Level) -> Result<Spec, Failure> {
    let condition = u32::try_from(scenario).unwrap_or(u32::MAX);
    let (seed, stage) = (campaign.seed, Stage::Planned);
    let point = Point { number: 0, condition, level, repetition: 0, seed, stage };
    let spec = campaign.spec_of(&point);
    spec.ok_or_else(|| Failure::internal("a scenario that is not listed"))
}

/// Read and written by all requests of a plan that has an end.
fn tokens(plan: &dyn Plan) -> (u64, u64) {
    // What was said in a conversation before is read again in each of its turns.
    let mut before: BTreeMap<RequestId, u64> = BTreeMap::new();
    let (mut input, mut output) = (0, 0);
    let requests =
        (0..plan.bounds().requests.unwrap_or_default()).map_while(|id| plan.request(RequestId(id)));
    for request in requests {
        let (read, written) = (u64::from(request.input_tokens), u64::from(request.output_tokens));
        let talk = request.conversation();
        let said = before.remove(&talk).unwrap_or_default() + read;
        input += said;
        output += written;
        if request.continues {
            before.insert(talk, said + written);
        }
    }
    (input, output)
}
