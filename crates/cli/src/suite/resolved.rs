//! Every scenario with all layers on it, and found possible at each of its levels.

use inferometer_analysis::check_slos;
use inferometer_model::Spec;
use inferometer_model::campaign::{Level, Order, Prompts, Repetition};
use inferometer_model::spec::LoadShape;

use super::file::{ScenarioFile, SuiteFile};
use crate::arguments::ExperimentArguments;
use crate::draft::{Drafted, Repeat, draft_scenario};
use crate::experiment::Layer;
use crate::failure::Failure;
use crate::study;
use crate::sweep::at_level;

/// All that a suite asks.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) prompts: Prompts,
    pub(super) order: Order,
    pub(super) repetition: Repetition,
    pub(super) repeat: Repeat,
    /// At least one, in their order.
    pub(super) scenarios: Vec<ResolvedScenario>,
}

#[derive(Debug)]
pub(super) struct ResolvedScenario {
    pub(super) name: String,
    /// At the first of its levels.
    pub(super) spec: Spec,
    pub(super) levels: Vec<Level>,
    /// Whether the levels were written from the lowest to the highest.
    pub(super) rising: bool,
    pub(super) drafted: Drafted,
}

/// What the user said beside the suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    pub(super) arguments: &'a ExperimentArguments,
    pub(super) layer: &'a Layer,
    /// `None` leaves it to the suite.
    pub(super) prompts: Option<Prompts>,
    pub(super) simulated: bool,
}

impl Resolved {
    pub(super) fn of(file: &SuiteFile, said: Said<'_>) -> Result<Self, Failure> {
        let scenarios: Vec<ResolvedScenario> = file
            .scenarios
            .iter()
            .map(|scenario| ResolvedScenario::of(scenario, said))
            .collect::<Result<_, Failure>>()?;
        let first = scenarios.first();
        let repeat = first.map(|scenario| scenario.drafted.repeat.clone());
        let repeat = repeat.ok_or_else(|| Failure::usage("the suite has no scenarios"))?;
        Ok(Self {
            prompts: said.prompts.unwrap_or(file.prompts),
            order: file.order,
            repetition: study::repetition(&repeat)?,
            repeat,
            scenarios,
        })
    }
}

impl ResolvedScenario {
    fn of(scenario: &ScenarioFile, said: Said<'_>) -> Result<Self, Failure> {
        let of_scenario =
            |failure: Failure| failure.about(&format!("scenario `{}`", scenario.name));
        let mut layer = scenario.layer.clone();
        layer.lay(said.layer.clone())?;
        let drafted = draft_scenario(said.arguments, &layer).map_err(of_scenario)?;
        let (levels, rising) = match &drafted.sweep.concurrencies {
            Some(levels) => {
                let rising = levels.0.rising();
                (rising.levels, rising.as_typed)
            }
            None => (vec![Level::AsAsked], true),
        };
        let at = |level: &Level| at_level(&drafted, *level, None, 1, said.simulated);
        let specs: Vec<Spec> =
            levels.iter().map(at).collect::<Result<_, Failure>>().map_err(of_scenario)?;
        let spec = specs.into_iter().next();
        let spec = spec.ok_or_else(|| of_scenario(Failure::usage("there is no level")))?;
        check_slos(&spec.slos, spec.workload.streaming)
            .map_err(|problem| of_scenario(Failure::usage(problem.to_string())))?;
        Ok(Self { name: scenario.name.clone(), spec, levels, rising, drafted })
    }

    /// How many it has in flight at each of its levels; none on an open loop.
    pub(super) fn concurrencies(&self) -> impl Iterator<Item = u32> {
        self.levels.iter().filter_map(|level| match (level, &self.spec.load.shape) {
            (Level::Concurrency(users), _)
            | (Level::AsAsked, LoadShape::Closed { concurrency: users, .. }) => Some(users.get()),
            (Level::AsAsked, LoadShape::Open { .. }) | (Level::Rate(_) | Level::Unlimited, _) => {
                None
            }
        })
    }
}
