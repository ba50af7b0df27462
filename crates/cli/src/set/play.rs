//! One point after the other, until nothing is left to ask or a signal comes.

use std::time::Duration;

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::{Summary, Verdict};
use inferometer_campaign::Campaign;
use inferometer_model::campaign::{Point, Question, SetManifest};
use inferometer_store::{RunStore, SetDirectory};

use super::bench::{Asked, Bench};
use super::{page, points, progress};
use crate::arguments::ResultArguments;
use crate::commands::run::exit_of;
use crate::failure::{Exit, Failure};
use crate::live::Session;
use crate::output;
use crate::place::Place;
use crate::requirements::{Judged, Requirements};

pub(super) struct Play<'a> {
    store: &'a RunStore,
    set: &'a SetDirectory,
    manifest: &'a SetManifest,
    campaign: Campaign,
    session: &'a Session,
    arguments: &'a ResultArguments,
    requirements: Requirements,
    results: Vec<PointResult>,
    /// Runs that this process has measured.
    measured: u32,
}

impl<'a> Play<'a> {
    pub(super) fn new(
        store: &'a RunStore,
        set: &'a SetDirectory,
        manifest: &'a SetManifest,
        campaign: Campaign,
        session: &'a Session,
        arguments: &'a ResultArguments,
    ) -> Result<Self, Failure> {
        let requirements = Requirements::of_set(&arguments.require, &manifest.campaign)?;
        let (results, measured) = (Vec::new(), 0);
        Ok(Self {
            store,
            set,
            manifest,
            campaign,
            session,
            arguments,
            requirements,
            results,
            measured,
        })
    }

    /// The exit code is the worst of all runs.
    pub(super) fn finish(mut self, bench: &mut dyn Bench) -> Result<Option<Exit>, Failure> {
        match self.points(bench) {
            Ok(None) => {}
            Ok(Some(exit)) => {
                self.say_how_to_go_on();
                return Ok(Some(exit));
            }
            Err(failure) => {
                self.say_how_to_go_on();
                return Err(failure);
            }
        }
        let summary = points::sum_up(self.manifest, &self.results, &self.campaign);
        self.set.write_summary(&summary.to_json_bytes())?;
        self.conclude(&summary)
    }

    /// Prints the set, judges what was required of it, and says how it went.
    fn conclude(self, summary: &SetSummary) -> Result<Option<Exit>, Failure> {
        let runs: Vec<Summary> = self.results.iter().map(|it| it.summary.clone()).collect();
        let outcomes = self.requirements.judge(&runs)?;
        page::show(summary, self.set, &outcomes, self.arguments.page.format())?;
        let strict = self.arguments.strict;
        let exit = match self.manifest.campaign.question {
            Question::Repeat => runs.iter().filter_map(|run| exit_of(run, strict)).max(),
            // A level beyond what the server can do breaks promises; that is what it was asked for.
            Question::Sweep(_) => match summary.verdict {
                Verdict::Invalid => Some(Exit::RunInvalid),
                Verdict::Degraded if strict => Some(Exit::RunInvalid),
                Verdict::Degraded | Verdict::Valid => None,
            },
        };
        let exit = exit.or_else(|| self.requirements.exit(&outcomes));
        let told = self.requirements.tell(&[Judged { runs, outcomes }]);
        Ok(exit.max(told))
    }

    /// Until all are there; `Some` is the signal that came before.
    fn points(&mut self, bench: &mut dyn Bench) -> Result<Option<Exit>, Failure> {
        while let Some(point) = self.campaign.next() {
            let summary = match self.stored(&point)? {
                Some(summary) => summary,
                None => match self.measure(&point, bench)? {
                    Ok(summary) => summary,
                    Err(exit) => return Ok(Some(exit)),
                },
            };
            self.campaign.finished(&summary);
            self.results.push(PointResult { point, summary });
        }
        Ok(None)
    }

    /// What the point came to, where it is stored whole. What is not is moved aside.
    fn stored(&self, point: &Point) -> Result<Option<Summary>, Failure> {
        let directory = self.set.point(point.number);
        if !directory.path().exists() {
            return Ok(None);
        }
        if let Some(summary) = points::whole(&directory)? {
            let asked = self.asked(point)?;
            points::check_fits(&directory, &asked.spec, self.manifest.simulated)?;
            return Ok(Some(summary));
        }
        let aside = self.set.abandon(point.number)?;
        self.session.talk(&format!(
            "point {} is not whole: it is kept in {} and measured again",
            point.number,
            aside.display()
        ));
        Ok(None)
    }

    fn asked(&self, point: &Point) -> Result<Asked<'a>, Failure> {
        let campaign = &self.manifest.campaign;
        let place = usize::try_from(point.condition).unwrap_or(usize::MAX);
        let condition = campaign.conditions.get(place);
        let (Some(condition), Some(spec)) = (condition, campaign.spec_of(point)) else {
            return Err(Failure::internal("a point of a server that is not listed"));
        };
        let is_first = !self.results.iter().any(|it| it.point.condition == point.condition);
        Ok(Asked { point: *point, condition, spec, is_first })
    }

    fn measure(
        &mut self,
        point: &Point,
        bench: &mut dyn Bench,
    ) -> Result<Result<Summary, Exit>, Failure> {
        let campaign = &self.manifest.campaign;
        self.announce();
        let rest = if self.measured == 0 { Duration::ZERO } else { campaign.repetition.cool_down };
        if !rest.is_zero() && !self.manifest.simulated {
            self.session.talk(&format!("resting for {rest:?} …"));
        }
        if let Some(exit) = bench.rest(rest) {
            return Ok(Err(exit));
        }
        self.session.talk(&progress::opening(campaign, point));
        let asked = self.asked(point)?;
        let place = Place::point(self.store, self.set, point.number);
        let summary = match bench.measure(&asked, place)? {
            Ok(measured) => measured.summary,
            Err(exit) => return Ok(Err(exit)),
        };
        self.measured += 1;
        if points::was_cut(&summary) {
            let interrupted = self.session.interruption.exit();
            return Ok(Err(interrupted.unwrap_or(Exit::Interrupted)));
        }
        self.session.talk(&progress::headline(campaign, point, &summary));
        Ok(Ok(summary))
    }

    /// Before the first run of this process.
    fn announce(&self) {
        if self.measured == 0 && !self.results.is_empty() {
            let stored = self.results.len();
            self.session.talk(&format!("{stored} runs are stored already; going on"));
        }
    }

    /// Nothing is lost, and this is how to use it. It is no chat: whoever asked for quiet needs it
    /// too.
    fn say_how_to_go_on(&self) {
        output::talk(&format!(
            "{} runs are stored in {}; go on with: inferometer sweep --resume {}",
            self.results.len(),
            self.set.path().display(),
            self.set.path().display()
        ));
    }
}
