//! What a suite would do: `suite --dry-run`.

mod page;
mod step;

use std::time::Duration;

use inferometer_model::campaign::{CampaignSpec, Question, Suite};
use inferometer_model::spec::TargetSpec;

use self::page::{document, page};
use self::step::Step;
use super::price::Price;
use crate::arguments::{PageFormat, ResultArguments};
use crate::failure::Failure;
use crate::live::Session;

pub(crate) fn outline(
    campaign: &CampaignSpec,
    notes: &[String],
    price: Option<Price>,
    results: &ResultArguments,
) -> Result<String, Failure> {
    let Question::Suite(suite) = &campaign.question else {
        return Err(Failure::internal("the outline of a suite is asked of something else"));
    };
    let session = Session::begin(usize::MAX, results.quiet)?;
    let outline = Outline {
        campaign,
        suite,
        price,
        is_simulated: is_ours(campaign),
        steps: Step::all(campaign, suite, &session)?,
    };
    Ok(match results.page.format() {
        PageFormat::Json => document(&outline),
        PageFormat::Page | PageFormat::Vllm => page(&outline, notes),
    })
}

/// Whether it is known how long the server takes, because it can be played in virtual time.
fn is_ours(campaign: &CampaignSpec) -> bool {
    campaign.conditions.iter().all(|condition| condition.spec.target == TargetSpec::Embedded)
}

struct Outline<'a> {
    campaign: &'a CampaignSpec,
    suite: &'a Suite,
    price: Option<Price>,
    /// Whether times come from a simulation, and not from a schedule alone.
    is_simulated: bool,
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
    cost: Option<f64>,
}

impl Outline<'_> {
    fn whole(&self) -> Whole {
        let each = self.campaign.repetition.runs.get();
        let runs = self.steps.len() as u64 * u64::from(each);
        let sum = |amount: fn(&Step) -> Option<u64>| {
            self.steps.iter().map(amount).sum::<Option<u64>>().map(|sum| sum * u64::from(each))
        };
        let rests = u32::try_from(runs.saturating_sub(1)).unwrap_or(u32::MAX);
        let rests = self.campaign.repetition.cool_down.saturating_mul(rests);
        let time = self.steps.iter().map(|step| step.time).sum::<Option<Duration>>();
        let time = time.map(|time| time * each + rests);
        let (input_tokens, output_tokens) = (sum(|it| it.input_tokens), sum(|it| it.output_tokens));
        let cost = self.price.and_then(|price| price.of(time, input_tokens, output_tokens));
        Whole { runs, requests: sum(|it| it.requests), input_tokens, output_tokens, time, cost }
    }
}
