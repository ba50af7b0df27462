//! What a campaign looks at in a run, looked up by name once, before anything is measured.

use inferometer_analysis::{Estimate, Quantity, Summary, Verdict, Zero};
use inferometer_model::campaign::{CampaignSpec, Dimension, Question};

use crate::error::CampaignError;
use crate::goal::Goal;

/// The few numbers of a run that decide what is measured next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// `false` when its numbers are not about the server; then they count for nothing.
    pub is_valid: bool,
    /// Tokens per second, for the knee.
    pub output_throughput: Option<f64>,
    /// The quantity whose doubt may stop the repetition.
    pub repeated: Option<f64>,
    /// One for each goal of the search, in their order; `None` of what has no value.
    pub goals: Vec<Option<Estimate>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    throughput: Option<Quantity>,
    /// By condition: a bare latency begins where the load of the condition says.
    repeated: Vec<Option<Quantity>>,
    pub(crate) goals: Vec<Goal>,
}

impl Asked {
    pub(crate) fn by(spec: &CampaignSpec) -> Result<Self, CampaignError> {
        let repeated = |zero: Zero| match &spec.repetition.stop_at {
            Some(stop_at) => Quantity::named(&stop_at.quantity, zero).map(Some),
            None => Ok(None),
        };
        let zero = |open: bool| if open { Zero::Schedule } else { Zero::Sent };
        let of_condition = |open| repeated(zero(open)).map_err(CampaignError::StopAtQuantity);
        let (repeated, goals) = match &spec.question {
            Question::Repeat => {
                let opens = spec.conditions.iter().map(|condition| condition.spec.is_open_loop());
                (opens.map(of_condition).collect::<Result<_, _>>()?, Vec::new())
            }
            Question::Sweep(sweep) => {
                let open = sweep.dimension == Dimension::Rate;
                let goals = sweep.find.iter().flat_map(|find| &find.goals);
                let goals = goals.map(|slo| Goal::of(slo, zero(open))).collect::<Result<_, _>>()?;
                (vec![of_condition(open)?; spec.conditions.len()], goals)
            }
        };
        let throughput = Quantity::named("output_throughput", Zero::Sent).ok();
        Ok(Self { throughput, repeated, goals })
    }

    pub(crate) fn read(&self, condition: u32, summary: &Summary) -> Told {
        let value = |quantity: &Quantity| quantity.of(summary).ok().map(|found| found.value);
        let repeated = self.repeated.get(condition as usize).and_then(Option::as_ref);
        Told {
            is_valid: summary.verdict != Verdict::Invalid,
            output_throughput: self.throughput.as_ref().and_then(value),
            repeated: repeated.and_then(value),
            goals: self.goals.iter().map(|goal| goal.quantity.of(summary).ok()).collect(),
        }
    }
}
