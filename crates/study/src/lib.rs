//! Many runs as one question: repeat, sweep, search, suite, matrix. Pure state machines.
//!
//! A [`Campaign`] is told what each run came to and answers which is next. It is a function of its
//! spec and of what it was told, so a set is resumed by telling it again what is already stored.
//! Nothing is remembered but that history: every answer is worked out from it anew.
//!
//! - A **repeat** measures every condition `runs` times, or until the doubt is small (`precision`).
//! - A **sweep** measures every level so (`grid`, in the order of `order`), then levels around the
//!   knee (`fine`), then those that a search asks for (`search`).
//! - A **suite** measures the levels of one scenario after those of the other, round by round.
//! - A **matrix** puts up one server after the other and measures each at all its loads (`matrix`);
//!   nothing that it finds changes what is asked, so its points may come in any order.
//! - `seeds` says which seed a run has; conditions share them, so that they are paired.

mod error;
mod fine;
mod goal;
mod grid;
mod history;
mod judgement;
mod ladder;
pub mod matrix;
mod order;
mod precision;
mod reading;
mod search;
mod seeds;

use inferometer_analysis::Summary;
use inferometer_analysis::set::FoundLimit;
use inferometer_model::campaign::{CampaignSpec, Level, Point, Question, Stage};

pub use self::error::CampaignError;
use self::grid::Grid;
use self::history::{History, Slot};
use self::precision::Rule;
use self::reading::Reading;
pub use self::reading::Told;
use self::search::Searches;

/// What to measure next, and why, until there is nothing left to ask.
#[derive(Clone, Debug)]
pub struct Campaign {
    spec: CampaignSpec,
    reading: Reading,
    history: History,
}

/// Runs that are over, and all that there will be; `None` when that depends on what they show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u32,
    pub expected: Option<u32>,
}

impl Campaign {
    pub fn new(spec: CampaignSpec) -> Result<Self, CampaignError> {
        error::check(&spec)?;
        let reading = Reading::by(&spec)?;
        Ok(Self { spec, reading, history: History::default() })
    }

    /// The next run; the same until [`Self::finished`] is told of it. `None` when all is asked.
    pub fn next(&self) -> Option<Point> {
        let slot = self.slot()?;
        let Slot { condition, level, repetition, stage } = slot;
        let seed = match &self.spec.question {
            Question::Repeat => seeds::repeated(self.spec.seed, repetition),
            Question::Suite(suite) => seeds::of_suite(&self.spec, suite, &slot),
            Question::Sweep(_) | Question::Matrix(_) => {
                seeds::swept(self.spec.seed, level, stage, repetition)
            }
        };
        Some(Point { number: self.history.count(), condition, level, repetition, seed, stage })
    }

    /// What the run that [`Self::next`] named came to. Says nothing when there was none.
    pub fn finished(&mut self, summary: &Summary) {
        if let Some(point) = self.next() {
            let told = self.reading.read(point.condition, summary);
            self.history.add(point, told);
        }
    }

    /// The same as [`Self::finished`], with only the numbers that the campaign looks at.
    pub fn told(&mut self, told: Told) {
        if let Some(point) = self.next() {
            self.history.add(point, told);
        }
    }

    /// Why the next run is asked for, in a few words.
    pub fn why(&self) -> Option<String> {
        let slot = self.slot()?;
        if matches!(self.spec.question, Question::Suite(_)) {
            return self.scenario(&slot);
        }
        if let Some(why) = self.searches().and_then(|searches| searches.why(&slot)) {
            return Some(why);
        }
        let run = slot.repetition + 1;
        let known = match slot.stage {
            Stage::Fine => self.fine().map(|grid| grid.runs),
            Stage::Planned | Stage::Probe | Stage::Confirmation => Some(self.planned().runs),
        };
        let of = known.map_or(String::new(), |runs| format!(" of {runs}"));
        Some(match (slot.stage, slot.level) {
            (Stage::Fine, level) => format!("around the knee: {level}, run {run}{of}"),
            (_, Level::AsAsked) => format!("run {run}{of}"),
            (_, level) => format!("{level}, run {run}{of}"),
        })
    }

    /// Which scenario of a suite it is, and in which round.
    fn scenario(&self, slot: &Slot) -> Option<String> {
        let mut words = self.spec.conditions.get(slot.condition as usize)?.name.clone();
        if slot.level != Level::AsAsked {
            words = format!("{words}, {}", slot.level);
        }
        let (round, rounds) = (slot.repetition + 1, self.spec.repetition.runs.get());
        Some(if rounds == 1 { words } else { format!("{words}, round {round} of {rounds}") })
    }

    pub fn progress(&self) -> Progress {
        let done = self.history.count();
        if self.slot().is_none() {
            return Progress { done, expected: Some(done) };
        }
        let planned = self.planned();
        let is_laid_out = planned.next().is_none();
        let expected = match (self.searches(), self.fine()) {
            (Some(_), _) => None,
            (None, Some(_)) if !is_laid_out => None,
            (None, Some(fine)) => {
                fine.expected().map(|fine| self.history.of_stage(Stage::Planned) + fine)
            }
            (None, None) => planned.expected(),
        };
        Progress { done, expected }
    }

    /// What the search came to, of each condition whose search is over.
    pub fn limits(&self) -> Vec<FoundLimit> {
        self.searches().map(|searches| searches.found()).unwrap_or_default()
    }

    fn slot(&self) -> Option<Slot> {
        if matches!(self.spec.question, Question::Matrix(_)) {
            return self.slot_of_matrix();
        }
        self.planned().next().or_else(|| self.fine()?.next()).or_else(|| self.searches()?.next())
    }

    fn slot_of_matrix(&self) -> Option<Slot> {
        let points = matrix::deployments(&self.spec).into_iter().flat_map(|it| it.points);
        let point = points.into_iter().nth(self.history.count() as usize)?;
        let Point { condition, level, repetition, stage, .. } = point;
        Some(Slot { condition, level, repetition, stage })
    }

    /// What is laid out before anything is known.
    fn planned(&self) -> Grid<'_> {
        let repetition = &self.spec.repetition;
        let runs = repetition.runs.get();
        let rule = repetition
            .stop_at
            .as_ref()
            .map(|stop_at| Rule { half_width: stop_at.half_width, runs_at_most: runs });
        let conditions = self.spec.conditions.len();
        let places = match &self.spec.question {
            Question::Repeat => grid::crossed(&[Level::AsAsked], conditions),
            Question::Suite(suite) => grid::in_turn(suite),
            Question::Sweep(sweep) => grid::crossed(&sweep.levels, conditions),
            Question::Matrix(matrix) => grid::crossed(&matrix.levels, conditions),
        };
        let (spec, history) = (&self.spec, &self.history);
        Grid { spec, history, places, runs, rule, stage: Stage::Planned }
    }

    /// Around the knee. Which levels these are is known when the planned ones are measured.
    fn fine(&self) -> Option<Grid<'_>> {
        let Question::Sweep(sweep) = &self.spec.question else { return None };
        let fine = sweep.fine?;
        let (spec, history) = (&self.spec, &self.history);
        let levels = fine::levels(spec, sweep, fine, history);
        let places = grid::crossed(&levels, spec.conditions.len());
        Some(Grid { spec, history, places, runs: fine.runs.get(), rule: None, stage: Stage::Fine })
    }

    fn searches(&self) -> Option<Searches<'_>> {
        let Question::Sweep(sweep) = &self.spec.question else { return None };
        let find = sweep.find.as_ref()?;
        let (spec, goals, history) = (&self.spec, &self.reading.goals, &self.history);
        Some(Searches { spec, sweep, find, goals, history })
    }
}
