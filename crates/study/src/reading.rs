//! What a campaign looks at in a run, looked up by name once, before anything is measured.

use inferometer_analysis::set::{is_cut, piles_up};
use inferometer_analysis::{Estimate, Quantity, Summary, Verdict, Zero};
use inferometer_model::campaign::{CampaignSpec, Dimension, Question};

use crate::error::CampaignError;
use crate::goal::Goal;

/// The few numbers of a run that decide what is measured next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
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
    /// The quantity whose doubt may stop the repetition.
    pub repeated: Option<f64>,
    /// One for each goal of the search, in their order; `None` of what has no value.
    pub goals: Vec<Option<Estimate>>,
}

/// The quantities that are looked at.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    output_throughput: Option<Quantity>,
    request_throughput: Option<Quantity>,
    /// By condition: a bare latency begins where the load of the condition says.
    repeated: Vec<Option<Quantity>>,
    pub(crate) goals: Vec<Goal>,
}

impl Reading {
    pub(crate) fn by(spec: &CampaignSpec) -> Result<Self, CampaignError> {
        let repeated = |zero: Zero| match &spec.repetition.stop_at {
            Some(stop_at) => Quantity::named(&stop_at.quantity, zero).map(Some),
            None => Ok(None),
        };
        let of_condition = |open| repeated(Zero::of(open)).map_err(CampaignError::StopAtQuantity);
        let (repeated, goals) = match &spec.question {
            Question::Repeat | Question::Suite(_) | Question::Matrix(_) => {
                let opens = spec.conditions.iter().map(|condition| condition.spec.is_open_loop());
                (opens.map(of_condition).collect::<Result<_, _>>()?, Vec::new())
            }
            Question::Sweep(sweep) => {
                let open = sweep.dimension == Dimension::Rate;
                let goals = sweep.find.iter().flat_map(|find| &find.goals);
                let goals =
                    goals.map(|slo| Goal::of(slo, Zero::of(open))).collect::<Result<_, _>>()?;
                (vec![of_condition(open)?; spec.conditions.len()], goals)
            }
        };
        let throughput = |name: &str| Quantity::named(name, Zero::Sent).ok();
        Ok(Self {
            output_throughput: throughput("output_throughput"),
            request_throughput: throughput("request_throughput"),
            repeated,
            goals,
        })
    }

    pub(crate) fn read(&self, condition: u32, summary: &Summary) -> Told {
        let value = |quantity: &Quantity| quantity.of(summary).ok().map(|found| found.value);
        let repeated = self.repeated.get(condition as usize).and_then(Option::as_ref);
        Told {
            is_valid: summary.verdict != Verdict::Invalid,
            piles_up: piles_up(summary),
            is_cut: is_cut(summary),
            output_throughput: self.output_throughput.as_ref().and_then(value),
            request_throughput: self.request_throughput.as_ref().and_then(value),
            repeated: repeated.and_then(value),
            goals: self.goals.iter().map(|goal| goal.quantity().of(summary).ok()).collect(),
        }
    }
}
