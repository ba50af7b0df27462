//! Many runs as one question: plays a campaign over a set's folder.
//!
//! Whatever is stored and whole is told to the campaign, and the rest is measured, so going on with
//! a set that was stopped is the same as playing it for the first time.

mod bench;
mod deployed;
mod live;
pub(crate) mod page;
mod play;
mod points;
mod progress;
mod report;
mod restart;
mod virtual_time;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::Spec;
use inferometer_model::campaign::{
    CampaignSpec, Condition, Level, Order, Point, Question, Repetition, Stage,
};
use inferometer_model::spec::TargetSpec;
use inferometer_store::{NewSet, RunStore, SetDirectory};
use inferometer_study::{Study, StudyError};

use self::bench::Bench;
use self::live::{LiveBench, Side, ask_all};
use self::play::{Begun, Play};
pub(crate) use self::points::{Found, check_fits, find, found_nobody, of_stored, replay, was_cut};
pub(crate) use self::progress::figures;
use self::virtual_time::VirtualBench;
use crate::arguments::{NarratorArguments, PageFormat, ResultArguments};
use crate::commands;
use crate::draft::Repeat;
use crate::embedded;
use crate::failure::Failure;
use crate::live::{Session, ceiling, check_ceiling};
use crate::narrator::Writer;
use crate::requirements::Requirements;
use crate::secrets::Secrets;
use crate::signals::begin_session;
use crate::simulation::VirtualEngine;

/// How the points of a set are measured.
#[derive(Debug)]
pub(crate) enum How {
    /// Over the wire.
    Live {
        /// One for each condition.
        secrets: Vec<Secrets>,
        restart_timeout: Duration,
    },
    /// In virtual time.
    Virtual,
}

impl How {
    fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual)
    }

    fn secrets(&self) -> Option<&[Secrets]> {
        match self {
            Self::Live { secrets, .. } => Some(secrets),
            Self::Virtual => None,
        }
    }

    /// Where each key is read again when the set is gone on with.
    fn key_files(&self) -> Vec<Option<PathBuf>> {
        let secrets = self.secrets().unwrap_or_default();
        let files: Vec<Option<PathBuf>> = secrets.iter().map(Secrets::key_file).collect();
        if files.iter().all(Option::is_none) { Vec::new() } else { files }
    }
}

/// What is behind a bench: servers, asked or not yet.
enum Servers {
    Live { sides: Vec<Side>, restart_timeout: Duration },
    Virtual,
}

impl Servers {
    /// Asks them all what they serve.
    fn ask(how: How, campaign: &CampaignSpec, quiet: bool) -> Result<Self, Failure> {
        Ok(match how {
            How::Virtual => Self::Virtual,
            How::Live { secrets, restart_timeout } => {
                Self::Live { sides: ask_all(secrets, campaign, quiet)?, restart_timeout }
            }
        })
    }

    fn unasked(how: How) -> Self {
        match how {
            How::Virtual => Self::Virtual,
            How::Live { secrets, restart_timeout } => {
                let sides = secrets.into_iter().map(Side::unasked).collect();
                Self::Live { sides, restart_timeout }
            }
        }
    }

    fn bench<'session>(
        self,
        campaign: &CampaignSpec,
        session: &'session Session,
    ) -> Box<dyn Bench + 'session> {
        match self {
            Self::Virtual => Box::new(VirtualBench::new(session)),
            Self::Live { sides, restart_timeout } => {
                Box::new(LiveBench::new(sides, restart_timeout, campaign, session))
            }
        }
    }
}

/// The same experiment several times.
pub(crate) fn repeated(spec: Spec, repeat: &Repeat) -> Result<CampaignSpec, Failure> {
    let seed = spec.seed;
    Ok(CampaignSpec {
        question: Question::Repeat,
        conditions: vec![Condition { name: name_of(&spec), spec }],
        repetition: repetition(repeat)?,
        order: Order::Listed,
        seed,
    })
}

pub(crate) fn repetition(repeat: &Repeat) -> Result<Repetition, Failure> {
    Ok(Repetition {
        runs: NonZeroU32::new(repeat.runs).ok_or_else(|| Failure::usage("--repeat is zero"))?,
        cool_down: repeat.cool_down,
        restart: repeat.restart.clone(),
        stop_at: repeat.stop_at.clone(),
    })
}

/// What a server is called that nobody named.
pub(crate) fn name_of(spec: &Spec) -> String {
    match &spec.target {
        TargetSpec::Url(base) => base.to_string(),
        TargetSpec::Deployed(deployment) => deployment.how.kind().to_owned(),
        TargetSpec::Embedded => {
            spec.engine.profile.clone().unwrap_or_else(|| "embedded".to_owned())
        }
    }
}

/// All that can be wrong with a set before anything is sent.
pub(crate) fn check(
    campaign: &CampaignSpec,
    how: &How,
    results: &ResultArguments,
) -> Result<(), Failure> {
    check_format(results)?;
    Study::new(campaign.clone()).map_err(|error| refused(&error))?;
    check_restart(campaign, how)?;
    Requirements::of_set(&results.require, campaign)?;
    for Condition { spec, .. } in &campaign.conditions {
        match (how, &spec.target) {
            (How::Virtual, _) => drop(VirtualEngine::new(&spec.engine)?),
            (How::Live { .. }, TargetSpec::Embedded) => drop(embedded::profile(&spec.engine)?),
            (How::Live { .. }, TargetSpec::Url(_) | TargetSpec::Deployed(_)) => {}
        }
    }
    Ok(())
}

/// Makes a set and plays it.
pub(crate) fn begin(
    campaign: CampaignSpec,
    how: How,
    results: &ResultArguments,
) -> Result<ExitCode, Failure> {
    check(&campaign, &how, results)?;
    start(campaign, how, results, &Writer::Rules)
}

/// The same for a suite, which has a report and somebody to write it.
pub(crate) fn begin_suite(
    campaign: CampaignSpec,
    how: How,
    results: &ResultArguments,
    narrator: &NarratorArguments,
) -> Result<ExitCode, Failure> {
    check(&campaign, &how, results)?;
    let writer = Writer::of_suite(narrator, how.secrets())?;
    start(campaign, how, results, &writer)
}

fn start(
    campaign: CampaignSpec,
    how: How,
    results: &ResultArguments,
    writer: &Writer,
) -> Result<ExitCode, Failure> {
    let store = commands::store(&results.store)?;
    store.check_writable().map_err(|error| Failure::usage(error.to_string()))?;
    let ceiling = checked_ceiling(&campaign, &how)?;
    let (simulated, key_files) = (how.is_virtual(), how.key_files());
    // A server that cannot be used leaves no set behind. Until all have answered a signal ends
    // the program at once: there is nothing to save.
    let servers = Servers::ask(how, &campaign, results.quiet)?;
    let session = begin_session(ceiling, results.quiet)?;
    let mut bench = servers.bench(&campaign, &session);
    session.interruption.check()?;
    let set = store.create_set(NewSet {
        campaign,
        simulated,
        key_files,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        realtime_ns: SystemClock::new().anchor().realtime_ns,
    })?;
    let errand = Errand { store: &store, set: &set, session: &session, results, writer };
    errand.carry_out(bench.as_mut(), Begun::Now)
}

/// Goes on with a set. Only of a suite a narrator is known.
pub(crate) fn resume(
    store: &RunStore,
    set: &SetDirectory,
    how: How,
    results: &ResultArguments,
    narrator: Option<&NarratorArguments>,
) -> Result<ExitCode, Failure> {
    check_format(results)?;
    let campaign = set.manifest().map_err(|error| Failure::usage(error.to_string()))?.campaign;
    let writer = &match narrator {
        Some(asked) if asked.narrator.is_some() => {
            check_has_report(set, &campaign)?;
            Writer::of_suite(asked, how.secrets())?
        }
        Some(_) | None => Writer::Rules,
    };
    let session = begin_session(checked_ceiling(&campaign, &how)?, results.quiet)?;
    let mut bench = Servers::unasked(how).bench(&campaign, &session);
    let errand = Errand { store, set, session: &session, results, writer };
    errand.carry_out(bench.as_mut(), Begun::Before)
}

/// A set to be played, and all that is wanted of it.
#[derive(Clone, Copy)]
struct Errand<'a> {
    store: &'a RunStore,
    set: &'a SetDirectory,
    session: &'a Session,
    results: &'a ResultArguments,
    /// Who writes the report of a suite.
    writer: &'a Writer,
}

impl Errand<'_> {
    fn carry_out(self, bench: &mut dyn Bench, begun: Begun) -> Result<ExitCode, Failure> {
        let _lock = self.set.lock().map_err(|error| Failure::usage(error.to_string()))?;
        let manifest = self.set.manifest()?;
        let campaign = Study::new(manifest.campaign.clone()).map_err(|error| refused(&error))?;
        self.session.interruption.remember(way_on(self.set));
        let exit = Play::new(self, &manifest, campaign, begun)?.finish(bench)?;
        Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
    }
}

fn refused(error: &StudyError) -> Failure {
    Failure::usage(error.to_string())
}

/// The command that goes on with a set.
pub(crate) fn way_on(set: &SetDirectory) -> String {
    let command = match set.manifest().map(|manifest| manifest.campaign.question) {
        Ok(Question::Suite(_)) => "suite",
        Ok(Question::Matrix(_)) => "matrix",
        Ok(Question::Repeat | Question::Sweep(_)) | Err(_) => "sweep",
    };
    format!("inferometer {command} --resume {}", set.path().display())
}

/// `1 run is stored`.
pub(crate) fn stored_runs(runs: usize) -> String {
    if runs == 1 { "1 run is stored".to_owned() } else { format!("{runs} runs are stored") }
}

/// Every level that is known beforehand must find its descriptors.
fn checked_ceiling(campaign: &CampaignSpec, how: &How) -> Result<usize, Failure> {
    let ceiling = match how {
        How::Live { .. } => live_ceiling(campaign),
        How::Virtual => usize::MAX,
    };
    for spec in known_specs(campaign) {
        check_ceiling(&spec, ceiling)?;
    }
    Ok(ceiling)
}

/// Requests that may be in flight over the wire.
pub(crate) fn live_ceiling(campaign: &CampaignSpec) -> usize {
    campaign.conditions.first().map_or(usize::MAX, |condition| ceiling(&condition.spec))
}

/// One spec for each level of each condition.
pub(crate) fn known_specs(campaign: &CampaignSpec) -> Vec<Spec> {
    let of_level = |(condition, level): (u32, Level)| {
        let (seed, stage) = (campaign.seed, Stage::Planned);
        campaign.spec_of(&Point { number: 0, condition, level, repetition: 0, seed, stage })
    };
    known_levels(campaign).into_iter().filter_map(of_level).collect()
}

/// The levels that are known beforehand, each with its condition.
fn known_levels(campaign: &CampaignSpec) -> Vec<(u32, Level)> {
    let conditions = 0..u32::try_from(campaign.conditions.len()).unwrap_or(u32::MAX);
    let of_all = |level: &Level| {
        let level = *level;
        conditions.clone().map(move |condition| (condition, level))
    };
    match &campaign.question {
        Question::Repeat => of_all(&Level::AsAsked).collect(),
        Question::Sweep(sweep) => sweep.levels.iter().flat_map(of_all).collect(),
        Question::Matrix(matrix) => matrix.levels.iter().flat_map(of_all).collect(),
        Question::Suite(suite) => conditions
            .clone()
            .zip(&suite.scenarios)
            .flat_map(|(condition, scenario)| {
                scenario.levels.iter().map(move |level| (condition, *level))
            })
            .collect(),
    }
}

fn check_has_report(set: &SetDirectory, campaign: &CampaignSpec) -> Result<(), Failure> {
    if let Question::Suite(_) = campaign.question {
        return Ok(());
    }
    let path = set.path().display();
    Err(Failure::usage("--narrator: this set is no suite, and no report is written for it")
        .hint(format!("make one when it is finished: inferometer report {path} --narrator …")))
}

pub(crate) fn check_format(results: &ResultArguments) -> Result<(), Failure> {
    if results.page.format() != PageFormat::Vllm {
        return Ok(());
    }
    Err(Failure::usage("--format vllm is the block of one run, and this is a set of runs")
        .hint("leave it out; a run of the set can be printed so with: inferometer verify SET/N"))
}

fn check_restart(campaign: &CampaignSpec, how: &How) -> Result<(), Failure> {
    if campaign.repetition.restart.is_none() {
        return Ok(());
    }
    let is_put_up = |it: &Condition| matches!(it.spec.target, TargetSpec::Deployed(_));
    if campaign.conditions.iter().any(is_put_up) {
        return Err(Failure::usage("--restart is for servers of others: this one is put up by us")
            .hint("leave it out, and say with --renew when the server must be a new one"));
    }
    let is_ours = |condition: &Condition| condition.spec.target == TargetSpec::Embedded;
    if matches!(how, How::Live { .. }) && !campaign.conditions.iter().any(is_ours) {
        return Ok(());
    }
    let when = match campaign.question {
        Question::Suite(_) => "whenever the suite is played",
        Question::Repeat | Question::Sweep(_) | Question::Matrix(_) => "in every run",
    };
    Err(Failure::usage(format!(
        "--restart is for servers of others: the embedded engine is a new one {when}"
    ))
    .hint("leave it out"))
}
