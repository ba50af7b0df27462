//! Advice from a model of the server: `profile` learns it, `tune` ranks settings with it, `capacity`
//! counts replicas. Each is made of studies that are measured or simulated like any other.

mod capacity;
mod probe;
mod tune;

use inferometer_engine::profile::Profile;
use inferometer_model::spec::EngineTable;
use inferometer_report::document::{self, Block, Document, Section, plain};

pub(crate) use capacity::capacity;
pub(crate) use probe::profile;
pub(crate) use tune::tune;

use crate::arguments::ExperimentArguments;
use crate::commands::style;
use crate::draft::draft_sweep;
use crate::embedded;
use crate::failure::Result;

/// An experiment on a server, and what is known of that server's settings. Of the embedded engine the
/// settings stay in the experiment, too.
struct Subject {
    experiment: ExperimentArguments,
    server: EngineTable,
    is_embedded: bool,
}

impl Subject {
    fn new(arguments: &ExperimentArguments) -> Result<Self> {
        let mut experiment = arguments.clone();
        let server = std::mem::take(&mut experiment.tables.engine);
        let drafted = draft_sweep(&experiment, None)?.spec;
        let is_embedded = drafted.url.is_none() && drafted.deployment.is_none();
        if is_embedded {
            experiment.tables.engine = server.clone();
        }
        Ok(Self { experiment, server, is_embedded })
    }
}

/// What no profile models, and what a learned one does not.
fn not_modelled(profile: &Profile) -> Vec<&'static str> {
    let learned = [
        "other hardware, models, data types, quantization and parallelism: its step times were learned \
         from one server; change those there and learn them again",
        "how fast the server reads prompts that its cache holds in part, unless the runs showed it",
    ];
    let physical = [
        "the quality of answers, which quantization changes",
        "kernels that a server chooses by itself, and rare stalls",
    ];
    let any = ["speculative decoding, structured output, adapters and disaggregation"];
    let own = if profile.law.is_some() { learned } else { physical };
    own.into_iter().chain(any).collect()
}

/// A page of advice, with what it does not take into account.
fn advice<'a>(title: String, blocks: Vec<Block>, limits: impl Iterator<Item = &'a str>) -> String {
    let limits = limits.map(|it| plain(it.to_owned())).collect();
    let sections =
        vec![Section::new("", blocks), Section::new("Not modelled", vec![Block::List(limits)])];
    document::terminal::render(&Document::new(title, sections), style())
}

fn compose(engine: &EngineTable) -> Result<Profile> {
    Profile::compose(engine).map_err(|error| embedded::refusal(&error))
}
