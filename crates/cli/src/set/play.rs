//! One point after the other, until nothing is left to ask or a signal comes.

use std::time::Duration;

use inferometer_analysis::set::{PointResult, SetSummary};
use inferometer_analysis::{Summary, Verdict};
use inferometer_model::Spec;
use inferometer_model::campaign::{Point, Question, SetManifest};
use inferometer_model::journal::RunStop;
use inferometer_study::Study;

use super::bench::{Asked, Bench};
use super::points::Found;
use super::report::Report;
use super::{Errand, page, points, progress, stored_runs, way_on};
use crate::commands::run::exit_of;
use crate::failure::{Exit, Failure};
use crate::location::RunLocation;
use crate::output;
use crate::report_files::OfSet;
use crate::requirements::{Judged, Requirements};

pub(super) struct Play<'a> {
    errand: Errand<'a>,
    manifest: &'a SetManifest,
    campaign: Study,
    requirements: Requirements,
    results: Vec<PointResult>,
    /// Runs that this process has measured.
    measured: u32,
    begun: Begun,
}

/// When the set was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begun {
    Now,
    /// It is gone on with.
    Before,
}

impl<'a> Play<'a> {
    pub(super) fn new(
        errand: Errand<'a>,
        manifest: &'a SetManifest,
        campaign: Study,
        begun: Begun,
    ) -> Result<Self, Failure> {
        let requirements = Requirements::of_set(&errand.results.require, &manifest.campaign)?;
        let (results, measured) = (Vec::new(), 0);
        Ok(Self { errand, manifest, campaign, requirements, results, measured, begun })
    }

    pub(super) fn finish(mut self, bench: &mut dyn Bench) -> Result<Option<Exit>, Failure> {
        self.points(bench)?;
        bench.finish();
        if self.begun == Begun::Before && self.measured == 0 {
            let stored = stored_runs(self.results.len());
            self.errand
                .session
                .talk(&format!("{stored}, and that is all: nothing is left to measure"));
        }
        let summary = points::sum_up(self.manifest, &self.results, &self.campaign);
        for line in progress::precision(&summary) {
            self.errand.session.talk(&line);
        }
        self.errand.set.write_summary(&summary.to_json_bytes())?;
        self.conclude(&summary)
    }

    /// Judges the set and what was required of it, prints it, writes the report of a suite, and says
    /// how it went.
    fn conclude(self, summary: &SetSummary) -> Result<Option<Exit>, Failure> {
        let runs: Vec<Summary> = self.results.iter().map(|it| it.summary.clone()).collect();
        let outcomes = self.requirements.judge(&runs)?;
        let exit = self.verdict(summary, &runs).or_else(|| self.requirements.exit(&outcomes));
        let Errand { set, results, .. } = self.errand;
        let report = self.report(summary);
        let written = report.and_then(Report::write);
        let files = page::files_with(set, written.clone());
        page::show(summary, &files, &outcomes, results.page.format())?;
        let told = self.requirements.tell(&[Judged { runs, results: Vec::new(), outcomes }]);
        let exit = exit.max(told);
        Ok(report.map_or(exit, |report| report.conclude(written, exit)))
    }

    /// Of a suite.
    fn report<'own>(&'own self, summary: &'own SetSummary) -> Option<Report<'own>> {
        let Question::Suite(_) = self.manifest.campaign.question else { return None };
        let (set, manifest, points) = (self.errand.set, self.manifest, &self.results);
        Some(Report { errand: self.errand, results: OfSet { set, manifest, summary, points } })
    }

    fn verdict(&self, summary: &SetSummary, runs: &[Summary]) -> Option<Exit> {
        let strict = self.errand.results.strict;
        match self.manifest.campaign.question {
            Question::Repeat => Exit::gravest(runs.iter().filter_map(|run| exit_of(run, strict))),
            // A level beyond what the server can do breaks promises; that is what it was asked for.
            Question::Sweep(_) | Question::Suite(_) | Question::Matrix(_)
                if runs.iter().any(points::found_nobody) =>
            {
                Some(Exit::RunInvalid)
            }
            Question::Sweep(_) | Question::Suite(_) | Question::Matrix(_) => {
                match summary.verdict {
                    Verdict::Invalid => Some(Exit::RunInvalid),
                    Verdict::Degraded if strict => Some(Exit::RunInvalid),
                    Verdict::Degraded | Verdict::Valid => None,
                }
            }
        }
    }

    /// Measures every point that is not stored yet.
    fn points(&mut self, bench: &mut dyn Bench) -> Result<(), Failure> {
        while let Some(point) = self.campaign.next() {
            let summary = match self.stored(&point)? {
                Some(summary) => summary,
                None => self.measure(&point, bench).inspect_err(|failure| {
                    // A user who has just typed the command to resume knows it.
                    let is_new = self.begun == Begun::Now || 0 < self.measured;
                    if is_new || failure.is_interruption() {
                        self.say_how_to_go_on();
                    }
                })?,
            };
            self.campaign.finished(&summary);
            self.results.push(PointResult { point, summary });
        }
        Ok(())
    }

    /// What the point came to, where it is stored whole. What is not is moved aside.
    fn stored(&self, point: &Point) -> Result<Option<Summary>, Failure> {
        let directory = self.errand.set.point(point.number);
        if !directory.path().exists() {
            return Ok(None);
        }
        let why = match points::find(&directory)? {
            Found::Whole(summary) => {
                let asked = self.asked(point)?;
                points::check_fits(&directory, &asked.spec, self.manifest.simulated)?;
                return Ok(Some(*summary));
            }
            Found::Broken(why) => why,
        };
        let aside = self.errand.set.abandon(point.number)?;
        self.errand.session.talk(&format!(
            "run {} is not whole, {why}: it is kept in {} and measured again",
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
        let is_suite = matches!(campaign.question, Question::Suite(_));
        let kept_since = is_suite.then(|| self.asked_in(point.repetition));
        let of_its_server =
            |result: &PointResult| is_suite || result.point.condition == point.condition;
        // What was moved aside before this point is among the results by now.
        let abandoned = self.errand.set.abandoned()?;
        let was_asked = self.results.iter().any(of_its_server)
            || abandoned.iter().any(|(number, _)| point.number <= *number);
        // A suite keeps its server from the first scenario of a round to the last.
        let wants_restart = was_asked && kept_since.as_ref().is_none_or(Vec::is_empty);
        Ok(Asked { point: *point, condition, spec, wants_restart, kept_since })
    }

    /// What has been asked in a round of a suite, in that order.
    fn asked_in(&self, round: u32) -> Vec<Spec> {
        let points = self.results.iter().map(|result| &result.point);
        let own = points.filter(|point| point.repetition == round);
        own.filter_map(|point| self.manifest.campaign.spec_of(point)).collect()
    }

    fn measure(&mut self, point: &Point, bench: &mut dyn Bench) -> Result<Summary, Failure> {
        let campaign = &self.manifest.campaign;
        self.announce();
        let rest = if self.measured == 0 { Duration::ZERO } else { campaign.repetition.cool_down };
        if !rest.is_zero() && !self.manifest.simulated {
            self.errand.session.talk(&format!("resting for {rest:?} …"));
        }
        bench.rest(rest)?;
        self.errand.session.talk(&progress::opening(campaign, &self.campaign, point));
        let asked = self.asked(point)?;
        let place = RunLocation::in_set(self.errand.store, self.errand.set, point.number);
        let summary = bench.measure(&asked, place)?.summary;
        self.measured += 1;
        if points::was_cut(&summary) {
            self.errand.session.interruption.check()?;
            if summary.run.stop != RunStop::Unreachable {
                return Err(Failure::interrupted(Exit::Interrupted));
            }
            return Err(Failure::target(format!(
                "{} could not be reached any more: this run ended early and does not count",
                asked.condition.name
            ))
            .hint(format!(
                "start the server again, then go on with: {}",
                way_on(self.errand.set)
            )));
        }
        self.errand.session.talk(&progress::headline(&self.campaign, &summary));
        Ok(summary)
    }

    /// Before the first run of this process.
    fn announce(&self) {
        if self.measured == 0 && !self.results.is_empty() {
            let stored = stored_runs(self.results.len());
            self.errand.session.talk(&format!("{stored} already; going on"));
        }
    }

    /// Nothing is lost, and this is how to use it. It is no chat: whoever asked for quiet needs it
    /// too.
    fn say_how_to_go_on(&self) {
        output::talk(&format!(
            "{} in {}; go on with: {}",
            stored_runs(self.results.len()),
            self.errand.set.path().display(),
            way_on(self.errand.set)
        ));
    }
}
