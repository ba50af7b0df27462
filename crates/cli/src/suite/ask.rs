//! From what was typed to what is asked: which suite, of which server, all checked before the first
//! request.

use std::path::Path;

use inferometer_model::campaign::{CampaignSpec, Condition, Question, Scenario, Suite};
use inferometer_model::spec::Extent;

use super::builtin;
use super::file::{ScenarioFile, SuiteFile};
use super::hash::{Files, hash};
use super::overrides;
use super::resolved::{Resolved, ResolvedScenario, Said};
use crate::arguments::{ExperimentArguments, SuiteArguments};
use crate::experiment;
use crate::failure::Failure;
use crate::secrets::Secrets;
use crate::study::StudyPlan;

pub(crate) fn plan(arguments: &SuiteArguments) -> Result<StudyPlan, Failure> {
    let (file, typed) = chosen(arguments)?;
    let layer = experiment::said(&typed, None)?;
    overrides::check(&file, &layer)?;
    let said = Said {
        arguments: &typed,
        layer: &layer,
        prompts: arguments.prompts,
        simulated: arguments.virtual_time,
    };
    let resolved = Resolved::of(&file, said)?;
    let mut files = Files::default();
    let hash = hash(&resolved, &mut files)?;
    let changes = overrides::changes(&file, said, &hash, &mut files)?;
    Ok(ready(file, resolved, hash, changes))
}

fn ready(file: SuiteFile, resolved: Resolved, hash: String, changes: Vec<String>) -> StudyPlan {
    let notes = resolved.scenarios.iter().flat_map(notes).collect();
    let scenario = |(written, resolved): (&ScenarioFile, &ResolvedScenario)| Scenario {
        category: written.category.clone(),
        purpose: written.purpose.clone(),
        levels: resolved.levels.clone(),
    };
    let scenarios = file.scenarios.iter().zip(&resolved.scenarios).map(scenario).collect();
    let Resolved { prompts, order, repetition, repeat, scenarios: asked } = resolved;
    let suite = Suite { name: file.name, title: file.title, hash, changes, prompts, scenarios };
    let (conditions, secrets): (Vec<Condition>, Vec<Secrets>) = asked
        .into_iter()
        .map(|it| (Condition { name: it.name, spec: it.spec }, it.drafted.secrets))
        .unzip();
    let seed = conditions.first().map_or(0, |condition| condition.spec.seed);
    let question = Question::Suite(suite);
    let campaign = CampaignSpec { question, conditions, repetition, order, seed };
    let plan = StudyPlan::new(campaign, secrets, notes);
    StudyPlan { restart_timeout: repeat.restart_timeout, ..plan }
}

fn notes(scenario: &ResolvedScenario) -> Vec<String> {
    let name = &scenario.name;
    let mut notes = Vec::new();
    if !scenario.rising {
        notes
            .push(format!("the levels of `{name}` did not rise: they are put in order, each once"));
    }
    if let Extent::Requests(requests) = scenario.spec.load.extent {
        let empty = scenario.concurrencies().filter(|users| requests.get() < u64::from(*users));
        let empty: Vec<String> = empty.map(|users| users.to_string()).collect();
        if !empty.is_empty() {
            notes.push(format!(
                "`{name}` has {requests} requests, fewer than {} at once: not all of these places \
                 are ever taken",
                empty.join(", ")
            ));
        }
    }
    notes
}

/// The suite, and the rest of what was typed. The first word may be left out: then a URL is in
/// its place.
fn chosen(arguments: &SuiteArguments) -> Result<(SuiteFile, ExperimentArguments), Failure> {
    let mut typed = arguments.experiment.clone();
    let Some(name) = arguments.suite.as_deref() else {
        return Ok((suite(builtin::DEFAULT)?, typed));
    };
    let is_place = !experiment::is_file(name) && name.contains(':');
    match &typed.place {
        None if is_place => {
            typed.place = Some(name.to_owned());
            Ok((suite(builtin::DEFAULT)?, typed))
        }
        Some(place) if is_place => Err(Failure::usage(format!(
            "{name} is no suite; write its name or file first, then the URL ({place})"
        ))),
        Some(other) if builtin::find(other).is_some() => Err(Failure::usage(format!(
            "`{name}` and `{other}` are two suites, and one is played at a time"
        ))
        .hint("play one after the other; the URL of a server follows the suite")),
        _ => Ok((suite(name)?, typed)),
    }
}

fn suite(name: &str) -> Result<SuiteFile, Failure> {
    match builtin::find(name) {
        Some(found) => found,
        None if experiment::is_file(name) => SuiteFile::read(Path::new(name)),
        None => Err(builtin::unknown(name)),
    }
}
