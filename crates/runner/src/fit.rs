//! `fit`: the coefficients of a profile from measured results.
//!
//! A result becomes a row: a load that can be played again in virtual time, and the figures that
//! were measured under it. A search moves the free coefficients, within what the hardware can do,
//! until playing the rows gives their figures. Few figures bear few coefficients: there is at most
//! one free coefficient for two rows.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use inferometer_analysis::{Summary, Verdict, metric};
use inferometer_engine::physics::Coefficients;
use inferometer_engine::profile::{Fitted, Profile};
use inferometer_engine::scheduler::blocks::mix;
use inferometer_model::plan::Bounds;
use inferometer_model::spec::{EngineTable, LoadShape, Think};
use inferometer_model::{
    Content, Moment, Observations, Outcome, Plan, PlannedRequest, Release, RequestId,
    RequestRecord, Segment, spec,
};
use inferometer_store::RunDirectory;

use crate::failure::{Failure, Result};
use crate::measurement::summarize_stored;
use crate::simulation::{End, Flight, Observer, Player, Rules, VirtualEngine};

/// A coefficient that may be moved.
#[derive(Debug)]
pub struct Coefficient {
    /// Its name.
    pub name: &'static str,
    range: Range,
    /// Where a search begins that knows nothing.
    neutral: f64,
    read: fn(&Coefficients) -> f64,
    write: fn(&mut Coefficients, f64),
}

/// The bounds of a number that may be moved.
type Range = std::ops::RangeInclusive<f64>;

/// A share of the hardware's peak: one is the peak.
const SHARE: (Range, f64) = (0.005..=1.0, 0.3);
const SECONDS: (Range, f64) = (1e-6..=10.0, 5e-3);
const SECONDS_EACH: (Range, f64) = (1e-9..=0.1, 1e-5);

macro_rules! coefficients {
    ($($name:literal $range:ident $($field:ident).+;)+) => {
        &[$(Coefficient {
            name: $name,
            range: $range.0,
            neutral: $range.1,
            read: |all| all.$($field).+,
            write: |all, value| all.$($field).+ = value,
        },)+
        Coefficient {
            name: "eta_small",
            range: SHARE.0,
            neutral: SHARE.1,
            read: |all| all.eta_small.unwrap_or(all.eta_compute),
            write: |all, value| all.eta_small = Some(value),
        }]
    };
}

/// In the order in which they are free by default.
static COEFFICIENTS: &[Coefficient] = coefficients! {
    "eta_compute" SHARE eta_compute;
    "eta_memory" SHARE eta_memory;
    "host.per_request_s" SECONDS_EACH host.per_request_s;
    "step_s" SECONDS step_s;
    "eta_kv" SHARE eta_kv;
    "eta_attention" SHARE eta_attention;
    "large_step_s" SECONDS large_step_s;
    "host.per_step_s" SECONDS host.per_step_s;
    "layer_s" SECONDS_EACH layer_s;
    "eta_link" SHARE eta_link;
    "launch_s" SECONDS_EACH launch_s;
    "launch_stage_s" SECONDS_EACH launch_stage_s;
};

/// Rows that one free coefficient takes.
const ROWS_PER_COEFFICIENT: usize = 2;

impl Coefficient {
    /// As many as so many rows bear, the most telling ones first.
    pub fn by_default(rows: usize) -> Vec<&'static Self> {
        COEFFICIENTS.iter().take((rows / ROWS_PER_COEFFICIENT).min(3)).collect()
    }

    /// The coefficient of this name.
    pub fn find(name: &str) -> Result<&'static Self> {
        COEFFICIENTS.iter().find(|coefficient| coefficient.name == name).ok_or_else(|| {
            let names: Vec<&str> =
                COEFFICIENTS.iter().map(|coefficient| coefficient.name).collect();
            Failure::usage(format!("`{name}` is not a coefficient that can be fitted"))
                .hint(format!("the coefficients are {}", names.join(", ")))
        })
    }

    /// Its value, or a neutral one if it is zero.
    pub fn value(&self, all: &Coefficients) -> f64 {
        let value = (self.read)(all);
        // A cost that is zero cannot be moved by a factor.
        if value < *self.range.start() { self.neutral } else { value }
    }
}

/// One row of a table of results.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the result.
    pub name: String,
    /// The requests, in their order.
    pub requests: Vec<RowRequest>,
    /// When they were sent.
    pub load: RowLoad,
    /// What was measured.
    pub figures: Figures,
    /// How its server differed from the profile's.
    pub server: EngineTable,
    /// Whether it was measured on the server of the row before, whose prefix cache was still warm.
    pub continues: bool,
}

/// One request of a row.
#[derive(Clone, Copy, Debug)]
pub struct RowRequest {
    /// The prompt.
    pub prompt: Segment,
    /// Tokens of the answer.
    pub output_tokens: u32,
}

/// When the requests of a row were sent.
#[derive(Clone, Debug)]
pub enum RowLoad {
    /// So many at a time. A client that tests the server first sends it the first prompt alone.
    Closed {
        /// Requests in flight at once.
        slots: u32,
        /// Whether the client sends the first prompt alone before it begins.
        tests_first: bool,
    },
    /// Poisson arrivals at a rate, and how long the row took.
    Poisson {
        /// Requests per second.
        rate: f64,
        /// How long the row took.
        took_s: Option<f64>,
        /// Whether the server kept up with the rate.
        kept_up: Option<bool>,
    },
    /// All at once.
    AtOnce,
    /// As they were sent.
    Recorded(Vec<Moment>),
}

impl RowLoad {
    /// How much load it is, where that is a number.
    pub fn level(&self) -> Option<f64> {
        match self {
            Self::Closed { slots, .. } => Some(f64::from(*slots)),
            Self::Poisson { rate, .. } => Some(*rate),
            Self::AtOnce | Self::Recorded(_) => None,
        }
    }

    /// The duration that arrivals are stretched to: how fast they really came, where the server
    /// kept up with them.
    pub fn stretched_to_s(&self) -> Option<f64> {
        if let Self::Poisson { took_s, kept_up: Some(true), .. } = self { *took_s } else { None }
    }

    /// Whether more came than was served, as far as is known: then latencies are those of a queue
    /// that grew.
    pub fn is_saturated(&self) -> bool {
        matches!(self, Self::AtOnce | Self::Poisson { kept_up: Some(false), .. })
    }
}

/// The figures that are compared, each where it is known, in the order of [`FIGURES`].
pub type Figures = [Option<f64>; 3];

/// The names of the figures: output tokens per second, and the mean TTFT and TPOT.
pub static FIGURES: [&str; 3] = [metric::OUTPUT_THROUGHPUT.name, "ttft_mean_ms", "tpot_mean_ms"];

impl Row {
    /// How far each figure is from what was measured, as a share of that; `None` where either is
    /// missing, and for a throughput that is given: that of arrivals stretched to the duration.
    pub fn errors(&self, played: &Figures) -> [Option<f64>; 3] {
        let measured = &self.figures;
        let [throughput, ttft, tpot] =
            std::array::from_fn(|index| Some(played[index]? / measured[index]? - 1.0));
        [throughput.filter(|_| !self.is_throughput_given()), ttft, tpot]
    }

    /// Whether arrivals are stretched to the duration of the row.
    pub fn is_throughput_given(&self) -> bool {
        self.load.stretched_to_s().is_some()
    }
}

/// The seed of a prompt that no other row has.
pub fn own_seed(row: usize, index: u64) -> u64 {
    ((row as u64 + 1) << 40) | index
}

/// The row of a stored run: its requests as they were sent, where the records show that.
pub fn row_of_run(path: &Path) -> Result<Row> {
    let directory = RunDirectory::at(path.to_owned());
    let stored = directory.read().map_err(Failure::from_usage)?;
    let observations = &stored.observations;
    let summary = summarize_stored(&stored)?;
    if let Some(why) = unfit(observations, &summary) {
        return Err(Failure::usage(format!("{}: {why}", directory.id())));
    }
    // Lengths are those that the server counted, where it did.
    let request = |(record, index): (Cow<'_, RequestRecord>, u64)| {
        let counted = |count: Option<u64>| count.and_then(|count| u32::try_from(count).ok());
        let tokens = counted(record.usage.and_then(|usage| usage.prompt_tokens));
        let output = counted(record.usage.and_then(|usage| usage.completion_tokens));
        let tokens = tokens.unwrap_or(record.asked.input_tokens);
        RowRequest {
            prompt: Segment { seed: own_seed(0, index), tokens },
            output_tokens: output.unwrap_or(record.asked.output_tokens),
        }
    };
    let began = observations.ending.began.unwrap_or(Moment::ZERO);
    let load = match &observations.manifest.spec.load.shape {
        LoadShape::Closed { concurrency, .. } => {
            RowLoad::Closed { slots: concurrency.get(), tests_first: false }
        }
        LoadShape::Open { .. } => {
            let sent = |record: Cow<'_, RequestRecord>| {
                Moment::ZERO + record.sent.and_then(|at| at.since(began)).unwrap_or_default()
            };
            RowLoad::Recorded(observations.records.iter().map(sent).collect())
        }
    };
    let simulated = observations.manifest.simulated.is_some();
    let vllm = summary.vllm;
    let row = Row {
        name: format!("{}{}", directory.id(), if simulated { " (simulated)" } else { "" }),
        requests: observations.records.iter().zip(0..).map(request).collect(),
        load,
        figures: [vllm.output_throughput, vllm.ttft_ms.mean, vllm.tpot_ms.mean],
        server: EngineTable::default(),
        continues: false,
    };
    stored.check_read()?;
    Ok(row)
}

/// Why a run cannot be a row: its requests cannot be sent again, or its figures cannot be reached.
fn unfit(observations: &Observations, summary: &Summary) -> Option<String> {
    let records = &observations.records;
    let spec = &observations.manifest.spec;
    let ok = records.iter().filter(|record| record.ending.outcome == Outcome::Ok).count();
    let is_cached = |record: Cow<'_, RequestRecord>| {
        record.usage.and_then(|usage| usage.cached_tokens).is_some_and(|tokens| 0 < tokens)
    };
    let why = if ok < records.len() || ok == 0 {
        format!("{ok} of {} requests succeeded, and a fit needs all of them", records.len())
    } else if summary.verdict == Verdict::Invalid {
        "the run is invalid, so its figures do not describe the server".to_owned()
    } else if spec.engine.speed.is_some_and(|speed| (speed - 1.0).abs() > 1e-9) {
        "its engine ran at another speed than that of its profile".to_owned()
    } else if records.iter().any(|record| 0 < record.asked.turn) {
        "it has conversations, which a fit does not support".to_owned()
    } else if records.iter().any(is_cached) {
        "some prompts were in the prefix cache, and the records do not show which parts".to_owned()
    } else {
        match &spec.load.shape {
            LoadShape::Closed { think: Think::None, .. } | LoadShape::Open { cap: None, .. } => {
                return None;
            }
            LoadShape::Closed { .. } => {
                "it has think times, which a fit does not support".to_owned()
            }
            LoadShape::Open { .. } => {
                "it has a cap on the requests in flight, which a fit does not support".to_owned()
            }
        }
    };
    Some(why)
}

/// Requests at these times, or of a closed loop with so many slots.
#[derive(Clone, Debug, Default)]
struct RowPlan {
    requests: Vec<RowRequest>,
    slots: Option<NonZeroU32>,
    moments: Vec<Moment>,
}

impl Plan for RowPlan {
    fn bounds(&self) -> Bounds {
        let requests = Some(self.requests.len() as u64);
        Bounds { requests, release_before: None, requests_min: 0, slots: self.slots }
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let index = usize::try_from(id.0).ok()?;
        let request = self.requests.get(index)?;
        let release = self.moments.get(index).map_or(Release::WhenSlotFree, |at| Release::At(*at));
        Some(PlannedRequest {
            prompt_seed: request.prompt.seed,
            input_tokens: request.prompt.tokens,
            output_tokens: request.output_tokens,
            ..PlannedRequest::alone(id, release)
        })
    }

    /// Not used: a simulation reads segments.
    fn content(&self, _: &PlannedRequest) -> Content {
        Content::text(String::new())
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        vec![Segment { seed: request.prompt_seed, tokens: request.input_tokens }]
    }
}

/// Draws for arrivals and lengths, equal on every machine.
#[derive(Clone, Debug)]
pub struct Draws {
    state: u64,
}

impl Draws {
    /// Draws for a row and a purpose.
    pub fn new(seed: u64, purpose: u64) -> Self {
        Self { state: mix(mix(seed.wrapping_add(1)) ^ purpose.wrapping_mul(GOLDEN)) }
    }

    /// Above zero and below one.
    pub fn unit(&mut self) -> f64 {
        self.state = self.state.wrapping_add(GOLDEN);
        ((mix(self.state) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A draw with mean one.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }

    /// A draw with mean zero and deviation one.
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Debug, PartialEq)]
struct Found {
    numbers: Vec<f64>,
    cost: f64,
    evaluations: u32,
}

/// The first step is by this factor.
const FACTOR: f64 = 1.25;
/// Steps below this factor are not worth their while: figures are known to a few per cent.
const FACTOR_MIN: f64 = 1.003;

/// The lowest cost that is found from `start`, with at most so many evaluations.
fn search<E>(
    start: &[f64],
    ranges: &[Range],
    evaluations_max: u32,
    mut cost: impl FnMut(&[f64]) -> Result<f64, E>,
) -> Result<Found, E> {
    let within = |number: f64, range: &Range| number.clamp(*range.start(), *range.end());
    let numbers: Vec<f64> =
        start.iter().zip(ranges).map(|(number, range)| within(*number, range)).collect();
    let mut best = Found { cost: cost(&numbers)?, numbers, evaluations: 1 };
    // Where nothing may be moved there is nothing to look for.
    let mut factor = if start.is_empty() { 1.0 } else { FACTOR };
    while FACTOR_MIN < factor && best.evaluations < evaluations_max {
        let before = best.cost;
        for index in 0..start.len() {
            for step in [factor, 1.0 / factor] {
                let mut numbers = best.numbers.clone();
                numbers[index] = within(numbers[index] * step, &ranges[index]);
                let found = cost(&numbers)?;
                best.evaluations += 1;
                if found < best.cost {
                    best = Found { numbers, cost: found, ..best };
                    break;
                }
            }
        }
        if before <= best.cost {
            factor = factor.sqrt();
        }
    }
    Ok(best)
}

/// Draws of arrivals that a row's figures are the mean of: one draw is one story.
const ARRIVAL_DRAWS: u64 = 3;
/// Times that arrivals are moved until a row takes as long as it took.
const MOVES: u32 = 3;
/// The client of a published result waits for ever.
const PATIENCE: Duration = Duration::from_hours(1000);

/// The figures of all rows, each played on the server of the same number.
pub(crate) fn play_rows(rows: &[Row], servers: &[Profile]) -> Result<Vec<Figures>> {
    let mut engine: Option<VirtualEngine> = None;
    let mut figures = Vec::with_capacity(rows.len());
    for (row, server) in rows.iter().zip(servers) {
        if !row.continues {
            engine = None;
        }
        figures.push(match &row.load {
            RowLoad::Closed { slots, tests_first } => {
                let engine = engine.get_or_insert_with(|| VirtualEngine::from_profile(server, 0));
                let mut play = |requests: &[RowRequest], slots: u32| {
                    let (requests, slots) = (requests.to_vec(), NonZeroU32::new(slots));
                    play_plan(row, RowPlan { requests, slots, ..RowPlan::default() }, engine)
                };
                if *tests_first {
                    // Its prompt is warm from then on.
                    play(&row.requests[..row.requests.len().min(1)], 1)?;
                }
                play(&row.requests, *slots)?.figures()
            }
            RowLoad::Poisson { rate, .. } => poisson(row, *rate, server)?,
            RowLoad::AtOnce => {
                play_at(row, vec![Moment::ZERO; row.requests.len()], server)?.figures()
            }
            RowLoad::Recorded(moments) => play_at(row, moments.clone(), server)?.figures(),
        });
    }
    Ok(figures)
}

/// The mean over several draws of arrivals, stretched so that they come at the rate, or so that the row
/// takes as long as it took: at four fifths of a server's capacity a few per cent of the rate double
/// its queue.
fn poisson(row: &Row, rate: f64, server: &Profile) -> Result<Figures> {
    let draw = |seed| {
        let mut draws = Draws::new(seed, row.requests.len() as u64);
        let mut sum = 0.0;
        let gaps = row.requests.iter().map(|_| {
            sum += draws.exponential();
            sum
        });
        let shape: Vec<f64> = gaps.collect();
        let mut span_s = row.requests.len() as f64 / rate;
        let mut played = Sums::default();
        for _ in 0..MOVES {
            let at = |place: &f64| Duration::try_from_secs_f64(place / sum * span_s);
            let moments = shape.iter().map(|place| Moment::ZERO + at(place).unwrap_or(PATIENCE));
            played = play_at(row, moments.collect(), server)?;
            let Some(took_s) = row.load.stretched_to_s() else { break };
            span_s = (span_s + took_s - played.duration_s()).max(f64::EPSILON);
        }
        Ok(played.figures())
    };
    let drawn = (0..ARRIVAL_DRAWS).map(draw).collect::<Result<Vec<Figures>>>()?;
    Ok(std::array::from_fn(|index| {
        let known: Option<Vec<f64>> = drawn.iter().map(|figures| figures[index]).collect();
        known.map(|known| known.iter().sum::<f64>() / known.len() as f64)
    }))
}

fn play_at(row: &Row, moments: Vec<Moment>, server: &Profile) -> Result<Sums> {
    let plan = RowPlan { requests: row.requests.clone(), slots: None, moments };
    play_plan(row, plan, &mut VirtualEngine::from_profile(server, 0))
}

/// Plays a plan; every request must be served, or its figures are those of another load.
fn play_plan(row: &Row, plan: RowPlan, engine: &mut VirtualEngine) -> Result<Sums> {
    let limits = spec::Limits {
        connect: PATIENCE,
        first_token: PATIENCE,
        idle: PATIENCE,
        total: PATIENCE,
        drain: PATIENCE,
    };
    let mut sums = Sums::default();
    let rules = Rules { limits, streaming: true, seed: 0 };
    Player::new(Arc::new(plan), rules, engine, &mut sums).play()?;
    match &sums.refused {
        None => Ok(sums),
        Some(why) => Err(Failure::usage(format!("`{}` cannot be played: {why}", row.name))
            .hint("give its server's settings, as in FILE@max_model_len=8192")),
    }
}

/// What the figures are made of, by the definitions of `vllm bench serve`.
#[derive(Debug, Default)]
struct Sums {
    ok: u64,
    output_tokens: u64,
    ttft_s: f64,
    tpot_s: f64,
    tpots: u64,
    last_end: Moment,
    /// Why a request was not served, of the first.
    refused: Option<String>,
}

impl Sums {
    /// From the beginning of the plan to the end of the last answer.
    fn duration_s(&self) -> f64 {
        self.last_end.since(Moment::ZERO).unwrap_or_default().as_secs_f64()
    }

    fn figures(&self) -> Figures {
        let mean_ms = |sum: f64, n: u64| (0 < n).then(|| 1e3 * sum / n as f64);
        let duration_s = self.duration_s();
        [
            (0.0 < duration_s).then(|| self.output_tokens as f64 / duration_s),
            mean_ms(self.ttft_s, self.ok),
            mean_ms(self.tpot_s, self.tpots),
        ]
    }
}

impl Observer for Sums {
    type Notes = ();

    fn ended(&mut self, flight: Flight<()>, end: End) -> Result<()> {
        self.last_end = self.last_end.max(end.ending.at);
        let (Outcome::Ok, Some(first), Some(last)) =
            (end.ending.outcome, flight.first, flight.last)
        else {
            let why = end.ending.message.unwrap_or_else(|| end.ending.outcome.to_string());
            self.refused.get_or_insert(why);
            return Ok(());
        };
        let since = |later: Moment, earlier| later.since(earlier).unwrap_or_default().as_secs_f64();
        self.ok += 1;
        self.output_tokens += u64::from(flight.tokens);
        self.ttft_s += since(first, flight.sent);
        if 1 < flight.tokens {
            self.tpots += 1;
            self.tpot_s += since(last, first) / f64::from(flight.tokens - 1);
        }
        Ok(())
    }
}

/// What is fitted to what.
#[derive(Debug)]
pub struct Fitting {
    /// The results that are fitted to.
    pub rows: Vec<Row>,
    /// What is fitted: the server without what differed in single rows.
    pub base: Profile,
    /// The server of each row.
    pub servers: Vec<Profile>,
    /// The coefficients that may be moved.
    pub free: Vec<&'static Coefficient>,
    /// Where the rows come from, in a sentence.
    pub source: String,
    /// Whether to fit again without each row.
    pub leave_one_out: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Fit {
    /// The coefficients that were found.
    pub coefficients: Coefficients,
    /// The figures of each row with them.
    pub played: Vec<Figures>,
    /// The figures of each row by a fit that has not seen it.
    pub left_out: Option<Vec<Figures>>,
    /// The figures of all rows by a fit on two thirds of them that began anew, to predict the rest.
    pub part: Option<Vec<Figures>>,
    /// How often all rows were played.
    pub evaluations: u32,
}

/// Whether the fit on two thirds of the rows has seen the row of this number.
pub fn is_in_part(row: usize) -> bool {
    row % 3 != 1
}

/// How close a figure should come: throughput, TTFT, TPOT.
pub const TOLERANCES: [f64; 3] = [0.10, 0.25, 0.15];
/// In a queue that grows, the mean TTFT says how long the run was, and little of the server.
const SATURATED_TTFT_TOLERANCE: f64 = 0.56;

const EVALUATIONS_MAX: u32 = 400;

impl Fitting {
    /// Fails if there are too many free coefficients for the rows.
    pub fn check(&self) -> Result<()> {
        let bears = self.rows.len() / ROWS_PER_COEFFICIENT;
        if bears < self.free.len() {
            return Err(Failure::usage(format!(
                "{} rows allow {bears} free coefficients, one for two rows, but {} are free",
                self.rows.len(),
                self.free.len()
            ))
            .hint("name fewer with --free, or give more results"));
        }
        Ok(())
    }

    /// Moves the free coefficients until the rows give their figures.
    pub fn fit(&self, report: impl Fn(&str)) -> Result<Fit> {
        let start = *self.base.coefficients();
        report(&format!("playing {} rows again and again …", self.rows.len()));
        let found = self.search(start, |_| true)?;
        let coefficients = self.apply(start, &found.numbers);
        if !self.free.is_empty() {
            report(&format!(
                "fitted {} coefficients to {} rows in {} trials",
                self.free.len(),
                self.rows.len(),
                found.evaluations
            ));
        }
        let played = self.play(coefficients)?;
        let (left_out, part) = if self.leave_one_out && !self.free.is_empty() {
            report("testing how well the fit predicts rows that it has not seen …");
            let left_out = self.leave_each_out(start, &report)?;
            // A fit of the same coefficients on two thirds of the rows.
            let seen = (0..self.rows.len()).filter(|row| is_in_part(*row)).count();
            let is_part = seen < self.rows.len() && self.free.len() < seen;
            let part = is_part.then(|| self.fit_anew(start, is_in_part)).transpose()?;
            (Some(left_out), part)
        } else {
            (None, None)
        };
        Ok(Fit { coefficients, played, left_out, part, evaluations: found.evaluations })
    }

    /// Each row as predicted by a fit without it; the fits run side by side.
    fn leave_each_out(&self, base: Coefficients, report: impl Fn(&str)) -> Result<Vec<Figures>> {
        let without = |left_out: usize| Ok(self.fit_anew(base, |row| row != left_out)?[left_out]);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut played = Vec::new();
        let numbers: Vec<usize> = (0..self.rows.len()).collect();
        for several in numbers.chunks(threads) {
            report(&format!("… {} of {} rows left out", played.len(), self.rows.len()));
            let several: Result<Vec<_>> = std::thread::scope(|scope| {
                let threads: Vec<_> =
                    several.iter().map(|row| scope.spawn(move || without(*row))).collect();
                let ended = threads.into_iter().map(|thread| {
                    thread.join().unwrap_or_else(|_| Err(Failure::internal("a fit panicked")))
                });
                ended.collect()
            });
            played.extend(several?);
        }
        Ok(played)
    }

    /// All rows as predicted by a fit on some. It begins with neutral coefficients, so that it depends on
    /// no other row.
    fn fit_anew(&self, base: Coefficients, counts: impl Fn(usize) -> bool) -> Result<Vec<Figures>> {
        let neutral: Vec<f64> = self.free.iter().map(|free| free.neutral).collect();
        let found = self.search(self.apply(base, &neutral), counts)?;
        self.play(self.apply(base, &found.numbers))
    }

    fn search(&self, from: Coefficients, counts: impl Fn(usize) -> bool) -> Result<Found> {
        let start: Vec<f64> = self.free.iter().map(|free| free.value(&from)).collect();
        let ranges: Vec<Range> = self.free.iter().map(|free| free.range.clone()).collect();
        search(&start, &ranges, EVALUATIONS_MAX, |numbers| {
            let played = self.play(self.apply(from, numbers))?;
            let cost = self.cost(&played, &counts);
            if cost.is_finite() {
                return Ok(cost);
            }
            Err(Failure::usage("a figure is too far from its measured value to be compared")
                .hint("--free none shows which one"))
        })
    }

    fn apply(&self, mut all: Coefficients, numbers: &[f64]) -> Coefficients {
        for (free, number) in self.free.iter().zip(numbers) {
            (free.write)(&mut all, *number);
        }
        all
    }

    fn play(&self, coefficients: Coefficients) -> Result<Vec<Figures>> {
        let with = |server: &Profile| {
            let server = server.clone().with_coefficients(coefficients);
            server.map_err(|error| Failure::usage(error.to_string()))
        };
        let servers: Vec<Profile> = self.servers.iter().map(with).collect::<Result<_, _>>()?;
        play_rows(&self.rows, &servers)
    }

    /// Squares of the errors, each in units of how close it should come. Ratios count by their
    /// logarithm: half and double are equally wrong.
    pub(crate) fn cost(&self, played: &[Figures], counts: &impl Fn(usize) -> bool) -> f64 {
        let mut cost = 0.0;
        for (number, (row, played)) in self.rows.iter().zip(played).enumerate() {
            if !counts(number) {
                continue;
            }
            let errors = row.errors(played);
            for ((error, tolerance), name) in errors.iter().zip(TOLERANCES).zip(FIGURES) {
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

    /// The errors of all rows by the names of the row and the figure.
    fn errors(&self, played: &[Figures]) -> BTreeMap<String, f64> {
        let errors = self.rows.iter().zip(played).flat_map(|(row, played)| {
            let errors = row.errors(played).into_iter().zip(FIGURES);
            // A tenth of a per cent is more than anyone can know.
            errors.filter_map(|(error, name)| {
                Some((format!("{}: {name}", row.name), (1e3 * error?).round() / 1e3))
            })
        });
        errors.collect()
    }

    /// The profile with the fitted coefficients and their errors.
    pub fn profile(&self, fit: &Fit, name: String) -> Result<Profile> {
        let profile = self.base.clone().with_coefficients(fit.coefficients);
        let mut profile = profile.map_err(|error| Failure::usage(error.to_string()))?;
        let mut fitted = Fitted {
            source: self.source.clone(),
            rows: u32::try_from(self.rows.len()).unwrap_or(u32::MAX),
            free: self.free.iter().map(|free| free.name.to_owned()).collect(),
            ..Fitted::default()
        };
        fitted.residuals = self.errors(&fit.played);
        fitted.leave_one_out = self.errors(fit.left_out.as_deref().unwrap_or_default());
        profile.name = name;
        profile.fitted = Some(fitted);
        Ok(profile)
    }
}

/// How far the predictions of a profile can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FitQuality {
    /// No error is above twice the target.
    Usable,
    /// An error is above that, or no row was left out of the fit.
    Poor,
    /// An error is above four times the target.
    Unusable,
}

/// The quality of a fit, and the error that decides it.
#[derive(Clone, Debug, PartialEq)]
pub struct FitVerdict {
    /// By the error that is the largest in units of its target.
    pub quality: FitQuality,
    /// That error, as a share of what was measured; the index of its figure; and the name of its row.
    pub worst: Option<(f64, usize, String)>,
    /// Whether the errors are those of rows that the fit had not seen.
    pub is_unseen: bool,
}

impl Fitting {
    /// Judges a fit by the rows as fits without them predict them, where there are such fits.
    pub fn judge(&self, fit: &Fit) -> FitVerdict {
        // Where nothing was free, nothing was fitted to the rows.
        let is_unseen = fit.left_out.is_some() || self.free.is_empty();
        let played = fit.left_out.as_ref().unwrap_or(&fit.played);
        let mut worst: Option<(f64, (f64, usize, String))> = None;
        for (row, played) in self.rows.iter().zip(played) {
            for (figure, error) in row.errors(played).into_iter().enumerate() {
                let is_queue = FIGURES[figure] == "ttft_mean_ms" && row.load.is_saturated();
                let Some(error) = error.filter(|_| !is_queue) else { continue };
                let ratio = error.abs() / TOLERANCES[figure];
                if worst.as_ref().is_none_or(|(most, _)| *most < ratio) {
                    worst = Some((ratio, (error, figure, row.name.clone())));
                }
            }
        }
        let quality = match worst.as_ref().map_or(0.0, |(ratio, _)| *ratio) {
            ratio if ratio <= 2.0 && is_unseen => FitQuality::Usable,
            ratio if ratio <= 4.0 => FitQuality::Poor,
            _ => FitQuality::Unusable,
        };
        FitVerdict { quality, worst: worst.map(|(_, worst)| worst), is_unseen }
    }
}

/// Rows in which the throughput of a series of loads lies farthest above the straight line from its
/// first to its last point, as measured and as played: of all series of at least four loads, in their
/// order.
pub fn knees(all: &[Row], played: &[Figures]) -> Vec<(usize, usize)> {
    let mut knees = Vec::new();
    let mut start = 0;
    while start < all.len() {
        let alike = |row: &&Row| is_series(&all[start], row);
        let length = all[start..].iter().take_while(alike).count().max(1);
        let rows = &all[start..start + length];
        let measured = knee(rows, |place| rows[place].figures);
        let played = knee(rows, |place| played[start + place]);
        knees.extend(
            measured.zip(played).map(|(measured, played)| (start + measured, start + played)),
        );
        start += length;
    }
    knees
}

fn is_series(first: &Row, row: &Row) -> bool {
    let lengths = |row: &Row| {
        let first = row.requests.first();
        first.map(|request| (request.prompt.tokens, request.output_tokens))
    };
    let kind = |row: &Row| std::mem::discriminant(&row.load);
    row.load.level().is_some()
        && (kind(first), lengths(first), &first.server) == (kind(row), lengths(row), &row.server)
}

fn knee(rows: &[Row], figures: impl Fn(usize) -> Figures) -> Option<usize> {
    let points = rows.iter().enumerate();
    let points = points.map(|(place, row)| Some((row.load.level()?, figures(place)[0]?)));
    let points = points.collect::<Option<Vec<(f64, f64)>>>().filter(|points| 4 <= points.len())?;
    let ((x0, y0), (x1, y1)) = (*points.first()?, *points.last()?);
    // A throughput that never rises has no knee.
    if x1 <= x0 || y1 <= y0 {
        return None;
    }
    let above = |(x, y): &(f64, f64)| (y - y0) / (y1 - y0) - (x - x0) / (x1 - x0);
    (0..points.len()).max_by(|a, b| above(&points[*a]).total_cmp(&above(&points[*b])))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn each_name_reads_what_it_writes_and_nothing_else_moves() {
        for coefficient in COEFFICIENTS {
            let free = Coefficient::find(coefficient.name).unwrap();
            let mut all = Coefficients::default();
            (free.write)(&mut all, 0.0625);
            assert_eq!(free.value(&all).to_bits(), 0.0625_f64.to_bits(), "{}", free.name);
            all.check().unwrap();
            let untouched = |other: &&Coefficient| other.name != free.name;
            for other in COEFFICIENTS.iter().filter(untouched) {
                let follows = (other.name, free.name) == ("eta_small", "eta_compute");
                let before = (other.read)(&Coefficients::default()).to_bits();
                assert!(follows || (other.read)(&all).to_bits() == before, "{}", other.name);
            }
        }
    }

    #[test]
    fn few_rows_free_few_coefficients() {
        assert_eq!(Coefficient::by_default(1).len(), 0);
        assert_eq!(Coefficient::by_default(5).len(), 2);
        assert_eq!(Coefficient::by_default(100).len(), 3);
    }

    const ANY: Range = 1e-9..=1e9;

    fn lowest(start: &[f64], ranges: &[Range], cost: impl Fn(&[f64]) -> f64) -> Found {
        let found = search(start, ranges, 10_000, |numbers| Ok::<_, Infallible>(cost(numbers)));
        found.unwrap_or_else(|never| match never {})
    }

    #[test]
    fn it_finds_the_bottom_of_a_bowl() {
        let bowl = |n: &[f64]| (n[0].ln() - 1.0).powi(2) + (n[1].ln() + 3.0 - n[0].ln()).powi(2);
        let found = lowest(&[1.0, 1.0], &[ANY, ANY], bowl);
        assert!((found.numbers[0].ln() - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.numbers[1].ln() + 2.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn it_stays_within_bounds_and_within_its_means() {
        let ranges = [0.1..=1.0];
        let found = lowest(&[0.5], &ranges, |n| 1.0 / n[0]);
        assert_eq!(found.numbers, [1.0]);
        let started_outside = lowest(&[7.0], &ranges, |n| n[0]);
        assert!((started_outside.numbers[0] - 0.1).abs() < 1e-9);
        let mut asked = 0;
        let _ = search(&[0.5], &ranges, 5, |n| {
            asked += 1;
            Ok::<_, Infallible>(n[0])
        });
        assert!(asked <= 7, "{asked}");
    }
}
