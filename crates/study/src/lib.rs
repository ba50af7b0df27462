//! Many runs as one question: repeat, sweep, search, suite, matrix.
//!
//! [`play`] measures a study and resumes it; all other modules are pure state machines. A [`Study`]
//! receives the summary of each run and answers which run is next. It is a function of its spec and of
//! these summaries, so a set is resumed by passing it again what is already stored. It remembers
//! nothing but that history: every answer is computed from it anew.
//!
//! - A **repeat** measures every condition `runs` times, or until the confidence interval is narrow.
//! - A **sweep** measures every level in this way (`grid`), then levels around the knee (`fine`), then
//!   the levels that a search needs (`search`).
//! - A **suite** measures the levels of one scenario after those of the other, round by round.
//! - A **matrix** deploys one server after the other and measures each at all its loads (`matrix`); no
//!   result changes what is measured, so its points may come in any order.

mod check;
mod fine;
mod grid;
mod judgement;
pub mod matrix;
pub mod play;
mod search;

use inferometer_analysis::set::{FoundLimit, is_cut, piles_up};
use inferometer_analysis::{
    Estimate, LatencyOrigin, Quantity, Summary, Threshold, Verdict, metric,
};
use inferometer_model::journal::RunStop;
use inferometer_model::study::{Condition, Dimension, Level, Point, Stage, StudySpec};

use self::check::Result;
pub use self::check::StudyError;
use self::grid::Grid;
use self::search::Searches;

/// Decides what to measure next, and why, until the question is answered.
#[derive(Clone, Debug)]
pub struct Study {
    spec: StudySpec,
    quantities: Quantities,
    /// The points of a matrix, which do not depend on what is measured.
    matrix_points: Vec<Point>,
    history: Vec<(Point, Reading)>,
}

/// How many runs are done and how many there will be; `None` when that depends on their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u32,
    pub expected: Option<u32>,
}

impl Study {
    pub fn new(spec: StudySpec) -> Result<Self> {
        check::check(&spec)?;
        let quantities = Quantities::new(&spec)?;
        let deployments = matrix::deployments(&spec).into_iter();
        let matrix_points = deployments.flat_map(|deployment| deployment.points).collect();
        Ok(Self { spec, quantities, matrix_points, history: Vec::new() })
    }

    /// The next run; the same until [`Self::finished`] is called. `None` when all runs are done.
    pub fn next(&self) -> Option<Point> {
        let point = self.next_unnumbered()?;
        let seed = grid::seed(&self.spec, &point);
        Some(Point { number: count(&self.history), seed, ..point })
    }

    /// Adds the result of the run that [`Self::next`] returned. Does nothing when there was none.
    pub fn finished(&mut self, summary: &Summary) {
        if let Some(point) = self.next_unnumbered() {
            self.record(self.quantities.read(point.condition, summary));
        }
    }

    /// The same as [`Self::finished`], with only the numbers that the study looks at.
    pub fn record(&mut self, reading: Reading) {
        if let Some(point) = self.next() {
            self.history.push((point, reading));
        }
    }

    /// Why the next run is measured, in a few words.
    pub fn why(&self) -> Option<String> {
        let point = self.next_unnumbered()?;
        if self.spec.suite().is_some() {
            return self.scenario(&point);
        }
        if let Some(why) = self.searches().and_then(|searches| searches.why(&point)) {
            return Some(why);
        }
        let run = point.repetition + 1;
        let known = match point.stage {
            Stage::Fine => self.fine().map(|grid| grid.runs),
            Stage::Planned | Stage::Probe | Stage::Confirmation => Some(self.planned().runs),
        };
        let of = known.map_or(String::new(), |runs| format!(" of {runs}"));
        Some(match (point.stage, point.level) {
            (Stage::Fine, level) => format!("around the knee: {level}, run {run}{of}"),
            (_, Level::AsAsked) => format!("run {run}{of}"),
            (_, level) => format!("{level}, run {run}{of}"),
        })
    }

    /// The scenario of a suite and its round, in words.
    fn scenario(&self, point: &Point) -> Option<String> {
        let mut text = self.spec.conditions.get(point.condition as usize)?.name.clone();
        if point.level != Level::AsAsked {
            text = format!("{text}, {}", point.level);
        }
        let (round, rounds) = (point.repetition + 1, self.spec.repetition.runs.get());
        Some(if rounds == 1 { text } else { format!("{text}, round {round} of {rounds}") })
    }

    pub fn progress(&self) -> Progress {
        let done = count(&self.history);
        if self.next_unnumbered().is_none() {
            return Progress { done, expected: Some(done) };
        }
        let planned = self.planned();
        let is_laid_out = planned.next().is_none();
        let expected = match (self.searches(), self.fine()) {
            (Some(_), _) => None,
            (None, Some(_)) if !is_laid_out => None,
            (None, Some(fine)) => {
                fine.expected().map(|fine| count_stage(&self.history, Stage::Planned) + fine)
            }
            (None, None) => planned.expected(),
        };
        Progress { done, expected }
    }

    /// The result of the search for each condition whose search is over.
    pub fn limits(&self) -> Vec<FoundLimit> {
        self.searches().map(|searches| searches.found()).unwrap_or_default()
    }

    /// The next run without its number and, except in a matrix, without its seed.
    fn next_unnumbered(&self) -> Option<Point> {
        if self.spec.matrix().is_some() {
            return self.matrix_points.get(self.history.len()).copied();
        }
        self.planned().next().or_else(|| self.fine()?.next()).or_else(|| self.searches()?.next())
    }

    /// The runs that are known in advance.
    fn planned(&self) -> Grid<'_> {
        let (spec, history) = (&self.spec, &self.history);
        let (places, runs) = (grid::planned_levels(spec), spec.repetition.runs.get());
        let half_width = spec.repetition.stop_at.as_ref().map(|stop_at| stop_at.half_width);
        Grid { spec, history, places, runs, half_width, stage: Stage::Planned }
    }

    /// The runs around the knee, which is known once the planned levels are measured.
    fn fine(&self) -> Option<Grid<'_>> {
        let sweep = self.spec.sweep()?;
        let fine = sweep.fine?;
        let (spec, history) = (&self.spec, &self.history);
        let levels = fine::levels(spec, sweep, fine, history);
        let places = grid::crossed(&levels, spec.conditions.len());
        let (runs, stage) = (fine.runs.get(), Stage::Fine);
        Some(Grid { spec, history, places, runs, half_width: None, stage })
    }

    fn searches(&self) -> Option<Searches<'_>> {
        let sweep = self.spec.sweep()?;
        let find = sweep.find.as_ref()?;
        let (spec, goals, history) = (&self.spec, &self.quantities.goals, &self.history);
        Some(Searches { spec, sweep, find, goals, history })
    }
}

/// The runs so far, in their order.
type History = [(Point, Reading)];

/// A set has far fewer runs than there are numbers for them.
fn count(runs: impl IntoIterator) -> u32 {
    u32::try_from(runs.into_iter().count()).unwrap_or(u32::MAX)
}

fn count_stage(history: &History, stage: Stage) -> u32 {
    count(history.iter().filter(|(point, _)| point.stage == stage))
}

/// The few numbers of a run that decide what is measured next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// `false` when its numbers are not about the server; then they count for nothing.
    pub is_valid: bool,
    /// Whether requests in flight grew for as long as they came: a rate that cannot be kept up, however
    /// good the first answers are.
    pub piles_up: bool,
    /// Whether a limit of time, or `--abort-on`, ended it before its requests had ended; then it has no part in the knee.
    pub is_cut: bool,
    /// Tokens per second, for the knee.
    pub output_throughput: Option<f64>,
    /// The same of requests, for servers that generate nothing.
    pub request_throughput: Option<f64>,
    /// The quantity whose confidence interval may end the repetitions.
    pub repeated: Option<f64>,
    /// One for each goal of the search, in their order; `None` of what has no value.
    pub goals: Vec<Option<Estimate>>,
}

/// The quantities that a study looks at, resolved by name once.
#[derive(Clone, Debug)]
struct Quantities {
    /// By condition: a bare latency begins where the load of the condition says.
    repeated: Vec<Option<Quantity>>,
    goals: Vec<Threshold>,
}

impl Quantities {
    fn new(spec: &StudySpec) -> Result<Self> {
        let is_open = |condition: &Condition| match spec.sweep() {
            Some(sweep) => sweep.dimension == Dimension::Rate,
            None => condition.spec.is_open_loop(),
        };
        let mut repeated = Vec::new();
        for condition in &spec.conditions {
            let origin = LatencyOrigin::for_load(is_open(condition));
            let stop_at = spec.repetition.stop_at.as_ref();
            let quantity = stop_at.map(|stop_at| Quantity::named(&stop_at.quantity, origin));
            let refuse = |problem| StudyError(format!("--stop-at: {problem}"));
            repeated.push(quantity.transpose().map_err(refuse)?);
        }
        let goals = spec.sweep().and_then(|sweep| Some((sweep.dimension, sweep.find.as_ref()?)));
        let goals = goals.map_or(Ok(Vec::new()), |(dimension, find)| {
            let origin = LatencyOrigin::for_load(dimension == Dimension::Rate);
            find.goals.iter().map(|slo| judgement::goal(slo, origin)).collect()
        })?;
        Ok(Self { repeated, goals })
    }

    fn read(&self, condition: u32, summary: &Summary) -> Reading {
        let value = |quantity: &Quantity| quantity.value_in(summary).ok().map(|found| found.value);
        let repeated = self.repeated.get(condition as usize).and_then(Option::as_ref);
        Reading {
            is_valid: summary.verdict != Verdict::Invalid,
            piles_up: piles_up(summary) || summary.run.stop == RunStop::Saturated,
            is_cut: is_cut(summary) || summary.run.stop.is_abort(),
            output_throughput: value(&metric::OUTPUT_THROUGHPUT.quantity()),
            request_throughput: value(&metric::REQUEST_THROUGHPUT.quantity()),
            repeated: repeated.and_then(value),
            goals: self.goals.iter().map(|goal| goal.quantity.value_in(summary).ok()).collect(),
        }
    }
}
