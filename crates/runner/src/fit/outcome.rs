//! The fit itself: move the free coefficients until the rows give their figures, and then ask how
//! well that tells rows which it has not seen.

use std::collections::BTreeMap;

use inferometer_engine::physics::Coefficients;
use inferometer_engine::profile::{Fitted, Profile};

use super::free::{Free, ROWS_PER_COEFFICIENT};
use super::row::{Figures, Row};
use super::search::{Found, Range, search};
use super::trial;
use crate::failure::Failure;

/// What is fitted to what.
#[derive(Debug)]
pub struct Fitting {
    pub rows: Vec<Row>,
    /// What is fitted: the server without what differed in single rows.
    pub base: Profile,
    /// The server of each row.
    pub servers: Vec<Profile>,
    pub free: Vec<Free>,
    /// Where the rows come from, in a sentence.
    pub source: String,
    pub leave_one_out: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Fit {
    pub coefficients: Coefficients,
    pub rows: Vec<FittedRow>,
    pub part: Option<Part>,
    pub evaluations: u32,
}

#[derive(Debug)]
pub struct FittedRow {
    pub played: Figures,
    /// The same by a fit that has not seen this row.
    pub left_out: Option<Figures>,
}

/// A fit on two thirds of the rows that began anew, to tell the rest.
#[derive(Debug)]
pub struct Part {
    pub played: Vec<Figures>,
}

impl Part {
    /// Whether the row of this number was seen.
    pub fn has_seen(row: usize) -> bool {
        row % 3 != 1
    }
}

/// How close a figure should come: throughput, TTFT, TPOT.
pub const TOLERANCES: [f64; 3] = [0.10, 0.25, 0.15];
/// In a queue that grows, the mean TTFT says how long the run was, and little of the server.
const SATURATED_TTFT_TOLERANCE: f64 = 0.56;

const EVALUATIONS_MAX: u32 = 400;

impl Fitting {
    pub fn check(&self) -> Result<(), Failure> {
        let bears = self.rows.len() / ROWS_PER_COEFFICIENT;
        if bears < self.free.len() {
            return Err(Failure::usage(format!(
                "{} rows bear {bears} free coefficients, one for two rows, and {} are free",
                self.rows.len(),
                self.free.len()
            ))
            .hint("name fewer with --free, or give more results"));
        }
        Ok(())
    }

    pub fn fit(&self, talk: impl Fn(&str)) -> Result<Fit, Failure> {
        let start = *self.base.coefficients();
        talk(&format!("playing {} rows again and again …", self.rows.len()));
        let all = |_: usize| true;
        let found = self.search(&self.free, start, EVALUATIONS_MAX, all)?;
        let coefficients = apply(&self.free, start, &found.numbers);
        if !self.free.is_empty() {
            talk(&format!(
                "fitted {} coefficients to {} rows in {} trials",
                self.free.len(),
                self.rows.len(),
                found.evaluations
            ));
        }
        let played = self.play(coefficients)?;
        let (left_out, part) = if self.leave_one_out && !self.free.is_empty() {
            talk("asking how well it tells rows that it has not seen …");
            (self.leave_each_out(start, &talk)?, self.fit_part(start)?)
        } else {
            (vec![None; self.rows.len()], None)
        };
        let rows = played.into_iter().zip(left_out);
        let rows = rows.map(|(played, left_out)| FittedRow { played, left_out }).collect();
        Ok(Fit { coefficients, rows, part, evaluations: found.evaluations })
    }

    /// Each row as told by a fit without it; the fits run side by side.
    fn leave_each_out(
        &self,
        base: Coefficients,
        talk: impl Fn(&str),
    ) -> Result<Vec<Option<Figures>>, Failure> {
        let without = |left_out: usize| -> Result<Option<Figures>, Failure> {
            let played = self.fit_anew(base, |row| row != left_out)?;
            Ok(played.get(left_out).copied())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut told = Vec::new();
        let numbers: Vec<usize> = (0..self.rows.len()).collect();
        for several in numbers.chunks(threads) {
            talk(&format!("… {} of {} rows left out", told.len(), self.rows.len()));
            let several: Result<Vec<_>, Failure> = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    several.iter().map(|row| scope.spawn(move || without(*row))).collect();
                let ended = threads.into_iter().map(|thread| {
                    thread.join().unwrap_or_else(|_| Err(Failure::internal("a fit panicked")))
                });
                ended.collect()
            });
            told.extend(several?);
        }
        Ok(told)
    }

    /// A fit of the same coefficients on two thirds of the rows.
    fn fit_part(&self, base: Coefficients) -> Result<Option<Part>, Failure> {
        let seen = (0..self.rows.len()).filter(|row| Part::has_seen(*row)).count();
        if seen == self.rows.len() || seen <= self.free.len() {
            return Ok(None);
        }
        Ok(Some(Part { played: self.fit_anew(base, Part::has_seen)? }))
    }

    /// All rows as told by a fit on some. It begins where a fit begins that knows nothing, so that
    /// nothing of the other rows is in it.
    fn fit_anew(
        &self,
        base: Coefficients,
        counts: impl Fn(usize) -> bool,
    ) -> Result<Vec<Figures>, Failure> {
        let neutral: Vec<f64> = self.free.iter().map(|free| free.neutral()).collect();
        let start = apply(&self.free, base, &neutral);
        let found = self.search(&self.free, start, EVALUATIONS_MAX, counts)?;
        self.play(apply(&self.free, base, &found.numbers))
    }

    fn search(
        &self,
        free: &[Free],
        from: Coefficients,
        evaluations_max: u32,
        counts: impl Fn(usize) -> bool,
    ) -> Result<Found, Failure> {
        let start: Vec<f64> = free.iter().map(|free| free.read(&from)).collect();
        let ranges: Vec<Range> = free.iter().map(|free| free.range()).collect();
        search(&start, &ranges, evaluations_max, |numbers| {
            let played = self.play(apply(free, from, numbers))?;
            let cost = self.cost(&played, &counts);
            if cost.is_finite() {
                return Ok(cost);
            }
            Err(Failure::usage("a figure is so far off that it cannot be compared")
                .hint("see with --free none which one it is"))
        })
    }

    fn play(&self, coefficients: Coefficients) -> Result<Vec<Figures>, Failure> {
        let with = |server: &Profile| {
            let server = server.clone().with_coefficients(coefficients);
            server.map_err(|error| Failure::usage(error.to_string()))
        };
        let servers: Vec<Profile> = self.servers.iter().map(with).collect::<Result<_, _>>()?;
        trial::play(&self.rows, &servers)
    }

    /// Squares of the errors, each in units of how close it should come. Ratios count by their
    /// logarithm: half and double are equally wrong.
    fn cost(&self, played: &[Figures], counts: &impl Fn(usize) -> bool) -> f64 {
        let mut cost = 0.0;
        for (number, (row, played)) in self.rows.iter().zip(played).enumerate() {
            if !counts(number) {
                continue;
            }
            let errors = row.errors(played);
            for ((error, tolerance), name) in errors.iter().zip(TOLERANCES).zip(Figures::NAMES) {
                let is_queue = name == "ttft_mean_ms" && row.load.is_saturated();
                let tolerance = if is_queue { SATURATED_TTFT_TOLERANCE } else { tolerance };
                cost += error.map_or(0.0, |error| {
                    let log = libm::log(1.0 + error) / tolerance;
                    log * log
                });
            }
        }
        cost
    }

    /// The profile with what was found, and how far it is to be believed.
    pub fn profile(&self, fit: &Fit, name: String) -> Result<Profile, Failure> {
        let profile = self.base.clone().with_coefficients(fit.coefficients);
        let mut profile = profile.map_err(|error| Failure::usage(error.to_string()))?;
        let mut fitted = Fitted {
            source: self.source.clone(),
            rows: u32::try_from(self.rows.len()).unwrap_or(u32::MAX),
            free: self.free.iter().map(|free| free.name().to_owned()).collect(),
            ..Fitted::default()
        };
        for (row, found) in self.rows.iter().zip(&fit.rows) {
            note(&mut fitted.residuals, row, Some(&found.played));
            note(&mut fitted.leave_one_out, row, found.left_out.as_ref());
        }
        profile.name = name;
        profile.fitted = Some(fitted);
        Ok(profile)
    }
}

fn apply(free: &[Free], mut all: Coefficients, numbers: &[f64]) -> Coefficients {
    for (free, number) in free.iter().zip(numbers) {
        free.write(&mut all, *number);
    }
    all
}

fn note(errors: &mut BTreeMap<String, f64>, row: &Row, played: Option<&Figures>) {
    let Some(played) = played else { return };
    for (error, name) in row.errors(played).into_iter().zip(Figures::NAMES) {
        if let Some(error) = error {
            // A tenth of a per cent is more than anyone can know.
            errors.insert(format!("{}: {name}", row.name), (1e3 * error).round() / 1e3);
        }
    }
}
