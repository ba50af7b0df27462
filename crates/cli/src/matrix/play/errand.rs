//! A matrix from its first server to its report, begun or gone on with.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::{Summary, Verdict};
use inferometer_load::SystemClock;
use inferometer_model::Outcome;
use inferometer_model::campaign::{
    CampaignSpec, Condition, Level, Point, PointFailure, Question, SetManifest,
};
use inferometer_model::spec::TargetSpec;
use inferometer_store::{NewSet, RunStore, SetDirectory};
use inferometer_study::Study;
use inferometer_study::matrix::{Deployment, Queue, Sharing, deployments};

use super::ledger::{Counts, Ledger};
use super::{lane, report, unfit};
use crate::arguments::ResultArguments;
use crate::commands;
use crate::failure::{Exit, Failure};
use crate::live::{Session, check_ceiling};
use crate::matrix::outline::{Foresight, announce};
use crate::matrix::plan::MatrixPlan;
use crate::output;
use crate::report_files::OfSet;
use crate::requirements::Requirements;
use crate::secrets::Secrets;
use crate::set::{check_format, known_specs, live_ceiling, page, way_on};
use crate::signals::begin_session;

/// How cells are measured.
#[derive(Debug)]
pub(crate) enum Way {
    /// Over the wire; all servers are asked with the same key.
    Live(Box<Secrets>),
    Virtual,
}

/// What is wanted of a matrix that is gone on with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    /// What came to nothing, and runs with failed requests, are measured again.
    pub(crate) retry_failed: bool,
    /// Only these cells and loads; `None`: all.
    pub(crate) only: Option<Only>,
    /// Presets that are measured at once; `None`: as the set says.
    pub(crate) lanes: Option<NonZeroU32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Only {
    /// By their places.
    pub(crate) cells: BTreeSet<u32>,
    pub(crate) levels: Vec<Level>,
}

impl Wish {
    pub(super) fn wants(&self, point: &Point) -> bool {
        self.only.as_ref().is_none_or(|only| {
            only.cells.contains(&point.condition) && only.levels.contains(&point.level)
        })
    }

    /// Whether a run is to be measured again.
    pub(super) fn rejects(&self, point: &Point, summary: &Summary) -> bool {
        let has_failures = summary.count(Outcome::Ok) < summary.attempted;
        self.retry_failed && has_failures && self.wants(point)
    }
}

/// A set that is being played, and what all hands share.
pub(super) struct Hall<'a> {
    pub(super) store: &'a RunStore,
    pub(super) set: &'a SetDirectory,
    pub(super) manifest: &'a SetManifest,
    /// For talk.
    pub(super) session: &'a Session,
    /// For measurements: says nothing where several hands would talk at once.
    pub(super) measuring: &'a Session,
    pub(super) way: &'a Way,
    pub(super) wish: &'a Wish,
}

/// All that can be wrong with a matrix before anything is put up.
pub(crate) fn check(
    campaign: &CampaignSpec,
    way: &Way,
    results: &ResultArguments,
) -> Result<(), Failure> {
    check_format(results)?;
    Study::new(campaign.clone()).map_err(|error| Failure::usage(error.to_string()))?;
    Requirements::of_set(&results.require, campaign)?;
    for Condition { name, spec } in &campaign.conditions {
        match (way, &spec.target) {
            (_, TargetSpec::Embedded) => {
                unfit::reason(&spec.engine).map_err(|failure| failure.of(name))?;
            }
            (Way::Live(_), TargetSpec::Url(_) | TargetSpec::Deployed(_)) => {}
            (Way::Virtual, TargetSpec::Url(_) | TargetSpec::Deployed(_)) => {
                let message =
                    format!("{name} is no embedded engine, and virtual time has no other");
                return Err(Failure::usage(message).hint("leave --virtual out"));
            }
        }
    }
    Ok(())
}

/// Makes a set and plays it.
pub(crate) fn begin(
    plan: MatrixPlan,
    way: &Way,
    results: &ResultArguments,
) -> Result<ExitCode, Failure> {
    check(&plan.campaign, way, results)?;
    let store = commands::store(&results.store)?;
    store.check_writable().map_err(|error| Failure::usage(error.to_string()))?;
    let session = begin_session(checked_ceiling(&plan.campaign, way)?, results.quiet)?;
    let foresight = match way {
        Way::Live(_) => Foresight::Simulated,
        Way::Virtual => Foresight::LoadAlone,
    };
    announce(&plan, &session, foresight)?;
    let MatrixPlan { campaign, .. } = plan;
    let key_files = match way {
        Way::Live(secrets) => {
            secrets.key_file().map(|file| vec![Some(file); campaign.conditions.len()])
        }
        Way::Virtual => None,
    };
    let set = store.create_set(NewSet {
        campaign,
        simulated: matches!(way, Way::Virtual),
        key_files: key_files.unwrap_or_default(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        realtime_ns: SystemClock::new().anchor().realtime_ns,
    })?;
    Errand { store: &store, set: &set, session: &session, results, way }.carry_out(&Wish::default())
}

/// Goes on with a set.
pub(crate) fn resume(
    store: &RunStore,
    set: &SetDirectory,
    way: &Way,
    wish: &Wish,
    results: &ResultArguments,
) -> Result<ExitCode, Failure> {
    let campaign = set.manifest().map_err(|error| Failure::usage(error.to_string()))?.campaign;
    check(&campaign, way, results)?;
    let session = begin_session(checked_ceiling(&campaign, way)?, results.quiet)?;
    Errand { store, set, session: &session, results, way }.carry_out(wish)
}

fn checked_ceiling(campaign: &CampaignSpec, way: &Way) -> Result<usize, Failure> {
    let ceiling = match way {
        Way::Live(_) => live_ceiling(campaign),
        Way::Virtual => usize::MAX,
    };
    known_specs(campaign).iter().try_for_each(|spec| check_ceiling(spec, ceiling))?;
    Ok(ceiling)
}

#[derive(Clone, Copy)]
struct Errand<'a> {
    store: &'a RunStore,
    set: &'a SetDirectory,
    session: &'a Session,
    results: &'a ResultArguments,
    way: &'a Way,
}

impl Errand<'_> {
    fn carry_out(self, wish: &Wish) -> Result<ExitCode, Failure> {
        let _lock = self.set.lock().map_err(|error| Failure::usage(error.to_string()))?;
        let manifest = self.set.manifest()?;
        self.session.interruption.remember(way_on(self.set));
        let planned = deployments(&manifest.campaign);
        let points = planned.iter().map(|it| it.points.len()).sum();
        let ledger = Ledger::new(self.failures(wish)?);
        let played = self.play(&manifest, &ledger, planned, wish);
        let counts = ledger.counts();
        played.inspect_err(|_| self.say_how_to_go_on(counts, points))?;
        if counts.known() < points {
            // It is not finished, so that nothing is sealed; what there is can be read all the same.
            let (results, summary) = self.sum_up(&manifest, ledger)?;
            self.show(&manifest, &summary, &results)?;
            self.say_how_to_go_on(counts, points);
            return Ok(ExitCode::SUCCESS);
        }
        if counts.played == 0 {
            self.session.talk("every cell has its result: nothing is left to measure");
        }
        let exit = self.conclude(&manifest, ledger)?;
        Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
    }

    /// Those that are stored. Those that are to be tried again are moved aside, and with them goes
    /// what the set came to.
    fn failures(self, wish: &Wish) -> Result<Vec<PointFailure>, Failure> {
        let stored = self.set.failures().map_err(|error| Failure::usage(error.to_string()))?;
        let is_retried = |failure: &PointFailure| wish.retry_failed && wish.wants(&failure.point);
        let (retried, kept): (Vec<_>, Vec<_>) = stored.into_iter().partition(is_retried);
        if !retried.is_empty() {
            self.set.unseal()?;
        }
        for failure in &retried {
            self.set.abandon_failure(failure.point.number)?;
        }
        Ok(kept)
    }

    fn play(
        self,
        manifest: &SetManifest,
        ledger: &Ledger,
        planned: Vec<Deployment>,
        wish: &Wish,
    ) -> Result<(), Failure> {
        let hands = hands(&manifest.campaign, self.way, wish.lanes, planned.len());
        let mut hushed =
            if 1 < hands { self.session.only_warnings() } else { self.session.clone() };
        hushed.ceiling /= hands;
        let hall = Hall {
            store: self.store,
            set: self.set,
            manifest,
            session: self.session,
            measuring: &hushed,
            way: self.way,
            wish,
        };
        let sharing = match self.way {
            Way::Live(_) => Sharing::OneAtATime,
            Way::Virtual => Sharing::Free,
        };
        lane::work(&hall, ledger, Queue::new(planned, sharing), hands)
    }

    fn sum_up(
        self,
        manifest: &SetManifest,
        ledger: Ledger,
    ) -> Result<(Vec<PointResult>, SetSummary), Failure> {
        let (results, failures) = ledger.close();
        let deployments = self.set.deployments()?;
        let summary = SetSummary::of_matrix(manifest, &results, &failures, &deployments);
        Ok((results, summary))
    }

    /// Writes the pages and prints. The page that was written; `None` where it could not be.
    fn show(
        self,
        manifest: &SetManifest,
        summary: &SetSummary,
        results: &[PointResult],
    ) -> Result<Option<PathBuf>, Failure> {
        let of_set = OfSet { set: self.set, manifest, summary, points: results };
        let written = report::write(&of_set);
        let files = page::files_with(self.set, written.clone());
        page::show(summary, &files, &[], self.results.page.format())?;
        if let Some(page) = &written {
            self.session.talk(&format!("report: {}", page.display()));
        }
        Ok(written)
    }

    /// Sums up, seals, shows, and says how it went.
    fn conclude(self, manifest: &SetManifest, ledger: Ledger) -> Result<Option<Exit>, Failure> {
        let (results, summary) = self.sum_up(manifest, ledger)?;
        self.set.write_summary(&summary.to_json_bytes())?;
        let written = self.show(manifest, &summary, &results)?;
        let strict = self.results.strict;
        let exit = match summary.verdict {
            // A cell that came to nothing is a result; a matrix without any other is none.
            _ if results.is_empty() => Some(Exit::TargetNotUsable),
            Verdict::Invalid => Some(Exit::RunInvalid),
            Verdict::Degraded if strict => Some(Exit::RunInvalid),
            Verdict::Degraded | Verdict::Valid => None,
        };
        Ok(exit.or_else(|| written.is_none().then_some(Exit::Internal)))
    }

    /// Nothing is lost, and this is how to use it. It is no chat: whoever asked for quiet needs it
    /// too.
    fn say_how_to_go_on(self, counts: Counts, points: usize) {
        let Counts { measured, failed, .. } = counts;
        output::talk(&format!(
            "{measured} of {points} runs are measured, {failed} came to nothing and {} are left, \
             in {}; go on with: {}",
            points.saturating_sub(counts.known()),
            self.set.path().display(),
            way_on(self.set)
        ));
    }
}

/// Presets that are measured at once; in virtual time as many cells as there are cores, for no cell
/// disturbs another there.
fn hands(
    campaign: &CampaignSpec,
    way: &Way,
    lanes: Option<NonZeroU32>,
    deployments: usize,
) -> usize {
    let Question::Matrix(matrix) = &campaign.question else { return 1 };
    let lanes = usize::try_from(lanes.unwrap_or(matrix.lanes).get()).unwrap_or(usize::MAX);
    let hands = match way {
        Way::Live(_) => lanes.min(matrix.presets.len()),
        Way::Virtual => thread::available_parallelism().map_or(1, usize::from).max(lanes),
    };
    hands.min(deployments).clamp(1, HANDS_MAX)
}

/// Each has a run in memory.
const HANDS_MAX: usize = 64;
