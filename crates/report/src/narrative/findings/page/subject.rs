//! Who was measured, and by what.

use inferometer_analysis::set::{PointResult, QuestionKind, SetSummary};
use inferometer_analysis::{Summary, SystemFacts, Verdict};
use inferometer_model::campaign::Prompts;
use inferometer_model::spec::SourceKind;

#[derive(Default)]
pub(in crate::narrative::findings) struct Subject {
    pub(in crate::narrative::findings) model: Option<String>,
    pub(in crate::narrative::findings) hardware: Option<Hardware>,
    pub(in crate::narrative::findings) verdict: Option<Verdict>,
    pub(in crate::narrative::findings) simulated: bool,
    pub(in crate::narrative::findings) measured_by: MeasuredBy,
    /// `None` where nobody knows how prompts were drawn.
    pub(in crate::narrative::findings) prompts: Option<Drawn>,
}

pub(in crate::narrative::findings) enum Hardware {
    /// The name that all its GPUs have.
    Gpus(String),
    /// What the embedded engine pretends to be.
    Pretended(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::narrative::findings) enum MeasuredBy {
    Suite(String),
    Sweep,
    Repeat,
    Run,
    /// Somebody else.
    #[default]
    Others,
}

/// How prompts of one run differ from those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::narrative::findings) enum Drawn {
    /// Each run has its own.
    Fresh,
    /// All scenarios of the suite draw from one seed.
    Shared,
    /// The source has no others, whatever the seed.
    SameInEveryRun,
}

impl Drawn {
    fn of(first: &Summary, suite: Option<Prompts>) -> Self {
        match (first.workload.source, suite) {
            (SourceKind::VllmRandom, _) => Self::SameInEveryRun,
            (_, Some(Prompts::Same)) => Self::Shared,
            (_, Some(Prompts::Fresh) | None) => Self::Fresh,
        }
    }
}

impl Subject {
    pub(super) fn of_set(set: &SetSummary, points: &[PointResult]) -> Self {
        let first = points.first().map(|point| &point.summary);
        let suite = set.suite.as_ref();
        let several = 1 < set.conditions.len() && suite.is_none();
        Self {
            // Several servers may have several models and machines.
            model: first.filter(|_| !several).map(|first| first.run.model.clone()),
            hardware: first.filter(|_| !several).and_then(|first| Hardware::of(&first.system)),
            verdict: Some(set.verdict),
            simulated: set.simulated,
            prompts: first.map(|first| Drawn::of(first, suite.map(|suite| suite.prompts))),
            measured_by: match (suite, set.asked.question) {
                (Some(suite), _) => MeasuredBy::Suite(suite.name.clone()),
                (None, QuestionKind::Repeat) => MeasuredBy::Repeat,
                (
                    None,
                    QuestionKind::Sweep
                    | QuestionKind::Search
                    | QuestionKind::Suite
                    | QuestionKind::Matrix,
                ) => MeasuredBy::Sweep,
            },
        }
    }

    pub(super) fn of_run(summary: &Summary) -> Self {
        Self {
            model: Some(summary.run.model.clone()),
            hardware: Hardware::of(&summary.system),
            verdict: Some(summary.verdict),
            simulated: summary.run.simulated.is_some(),
            measured_by: MeasuredBy::Run,
            prompts: Some(Drawn::of(summary, None)),
        }
    }
}

impl Hardware {
    fn of(system: &SystemFacts) -> Option<Self> {
        let server = system.server.as_ref()?;
        if let Some(pretended) = &server.pretended {
            return Some(Self::Pretended(pretended.clone()));
        }
        let gpus = &server.machine.as_ref()?.gpus;
        let first = gpus.first()?;
        gpus.iter().all(|gpu| gpu.name == first.name).then(|| Self::Gpus(first.name.clone()))
    }
}
