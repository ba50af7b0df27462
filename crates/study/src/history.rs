//! What was measured so far, which is all that a study remembers, and the few numbers of a run that
//! it looks at.

use inferometer_analysis::set::{is_cut, piles_up};
use inferometer_analysis::{
    Estimate, LatencyOrigin, Quantity, Summary, Threshold, Verdict, metric,
};
use inferometer_model::study::{Dimension, Level, Point, Question, Stage, StudySpec};

use crate::error::StudyError;
use crate::judgement::goal;

#[derive(Clone, Debug, Default)]
pub(crate) struct History(Vec<(Point, Reading)>);

impl History {
    pub(crate) fn add(&mut self, point: Point, reading: Reading) {
        self.0.push((point, reading));
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = (&Point, &Reading)> {
        self.0.iter().map(|(point, reading)| (point, reading))
    }

    pub(crate) fn count(&self) -> u32 {
        count(&self.0)
    }

    pub(crate) fn count_stage(&self, stage: Stage) -> u32 {
        count(self.0.iter().filter(|(point, _)| point.stage == stage))
    }

    /// The repetition that a further run at this level would be. Each stage counts for itself, so that
    /// conditions that came to a level by different ways still share their seeds there.
    pub(crate) fn repetition(&self, condition: u32, level: Level, stage: Stage) -> u32 {
        let same = |point: &Point| {
            point.condition == condition && point.level == level && point.stage == stage
        };
        count(self.0.iter().filter(|(point, _)| same(point)))
    }
}

/// A set has far fewer runs than there are numbers for them.
pub(crate) fn count(runs: impl IntoIterator) -> u32 {
    u32::try_from(runs.into_iter().count()).unwrap_or(u32::MAX)
}

/// The few numbers of a run that decide what is measured next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// `false` when its numbers are not about the server; then they count for nothing.
    pub is_valid: bool,
    /// Whether requests in flight grew for as long as they came: a rate that cannot be kept up, however
    /// good the first answers are.
    pub piles_up: bool,
    /// Whether a limit of time ended it before its requests had ended; then it has no part in the knee.
    pub is_cut: bool,
    /// Tokens per second, for the knee.
    pub output_throughput: Option<f64>,
    /// The same of requests, for servers that generate nothing.
    pub request_throughput: Option<f64>,
    /// The quantity whose confidence interval may end the repetitions.
    pub repeated: Option<f64>,
    /// One for each goal of the search, in their order; `None` of what has no value.
    pub goals: Vec<Option<Estimate>>,
}

/// The quantities that a study looks at, resolved by name once.
#[derive(Clone, Debug)]
pub(crate) struct Quantities {
    /// By condition: a bare latency begins where the load of the condition says.
    repeated: Vec<Option<Quantity>>,
    pub(crate) goals: Vec<Threshold>,
}

impl Quantities {
    pub(crate) fn new(spec: &StudySpec) -> Result<Self, StudyError> {
        let repeated = |origin: LatencyOrigin| match &spec.repetition.stop_at {
            Some(stop_at) => Quantity::named(&stop_at.quantity, origin).map(Some),
            None => Ok(None),
        };
        let of_condition =
            |open| repeated(LatencyOrigin::for_load(open)).map_err(StudyError::StopAtQuantity);
        let (repeated, goals) = match &spec.question {
            Question::Repeat | Question::Suite(_) | Question::Matrix(_) => {
                let opens = spec.conditions.iter().map(|condition| condition.spec.is_open_loop());
                (opens.map(of_condition).collect::<Result<_, _>>()?, Vec::new())
            }
            Question::Sweep(sweep) => {
                let open = sweep.dimension == Dimension::Rate;
                let goals = sweep.find.iter().flat_map(|find| &find.goals);
                let goals = goals
                    .map(|slo| goal(slo, LatencyOrigin::for_load(open)))
                    .collect::<Result<_, _>>()?;
                (vec![of_condition(open)?; spec.conditions.len()], goals)
            }
        };
        Ok(Self { repeated, goals })
    }

    pub(crate) fn read(&self, condition: u32, summary: &Summary) -> Reading {
        let value = |quantity: &Quantity| quantity.value_in(summary).ok().map(|found| found.value);
        let repeated = self.repeated.get(condition as usize).and_then(Option::as_ref);
        Reading {
            is_valid: summary.verdict != Verdict::Invalid,
            piles_up: piles_up(summary),
            is_cut: is_cut(summary),
            output_throughput: value(&metric::OUTPUT_THROUGHPUT.quantity()),
            request_throughput: value(&metric::REQUEST_THROUGHPUT.quantity()),
            repeated: repeated.and_then(value),
            goals: self.goals.iter().map(|goal| goal.quantity.value_in(summary).ok()).collect(),
        }
    }
}
