//! What a suite would do: `suite --dry-run`.

mod budget;
mod page;
mod step;

use std::time::Duration;

use inferometer_model::campaign::{CampaignSpec, Question, Suite};
use inferometer_model::spec::TargetSpec;

use self::page::{document, page};
use self::step::{KnownBy, Step};
use super::price::{Cost, Price};
use crate::arguments::{PageFormat, ResultArguments};
use crate::failure::Failure;
use crate::signals::begin_session;

/// The page or document.
pub(crate) fn outline(
    campaign: &CampaignSpec,
    notes: &[String],
    price: Option<Price>,
    results: &ResultArguments,
) -> Result<String, Failure> {
    let Question::Suite(suite) = &campaign.question else {
        return Err(Failure::internal("the outline of a suite is asked of something else"));
    };
    let session = begin_session(usize::MAX, results.quiet)?;
    let steps = Step::all(campaign, suite, &session)?;
    let outline = Outline { campaign, suite, notes, price, steps };
    Ok(match results.page.format() {
        PageFormat::Json => document(&outline),
        PageFormat::Page | PageFormat::Vllm => page(&outline),
    })
}

struct Outline<'a> {
    campaign: &'a CampaignSpec,
    suite: &'a Suite,
    notes: &'a [String],
    price: Option<Price>,
    /// One for each level of each scenario, in their order.
    steps: Vec<Step>,
}

/// Of all runs together; `None` where a level does not know.
struct Whole {
    runs: u64,
    requests: Option<u64>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// With the rests between runs.
    time: Option<Duration>,
    cost: Option<Cost>,
}

impl Outline<'_> {
    fn whole(&self) -> Whole {
        let each = self.campaign.repetition.runs.get();
        let runs = self.steps.len() as u64 * u64::from(each);
        let sum = |amount: fn(&Step) -> Option<u64>| {
            let sum =
                self.steps.iter().try_fold(0, |sum: u64, it| Some(sum.saturating_add(amount(it)?)));
            sum.map(|sum| sum.saturating_mul(each.into()))
        };
        let rests = u32::try_from(runs.saturating_sub(1)).unwrap_or(u32::MAX);
        let rests = self.campaign.repetition.cool_down.saturating_mul(rests);
        let time = self
            .steps
            .iter()
            .try_fold(Duration::ZERO, |sum, step| Some(sum.saturating_add(step.time?)));
        let time = time.map(|time| time.saturating_mul(each).saturating_add(rests));
        let (input_tokens, output_tokens) = (sum(|it| it.input_tokens), sum(|it| it.output_tokens));
        let cost = self.price.map(|price| price.of(time, input_tokens, output_tokens));
        Whole { runs, requests: sum(|it| it.requests), input_tokens, output_tokens, time, cost }
    }

    /// Whether all times come from a simulation, and not from a schedule alone.
    fn is_simulated(&self) -> bool {
        self.steps.iter().all(|step| step.known_by == KnownBy::Simulation)
    }

    /// Whether it is ours, so that it can be known how long it takes.
    fn is_ours(&self) -> bool {
        let conditions = &self.campaign.conditions;
        conditions.iter().all(|condition| condition.spec.target == TargetSpec::Embedded)
    }
}
