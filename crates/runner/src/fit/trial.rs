//! Plays rows on an engine, in virtual time, and takes their figures.

use std::sync::Arc;
use std::time::Duration;

use inferometer_engine::profile::Profile;
use inferometer_model::{Moment, NotSent, Outcome, StartedRequest, spec};

use super::plan::{Draws, Releases, RowPlan};
use super::row::{Figures, Row, RowLoad};
use crate::failure::Failure;
use crate::simulation::{End, Flight, Observer, Player, Rules, Sample, VirtualEngine};

/// Draws of arrivals that a row's figures are the mean of: one draw is one story.
const ARRIVAL_DRAWS: u64 = 3;
/// Times that arrivals are moved until a row takes as long as it took.
const MOVES: u32 = 3;
/// The client of a published result waits for ever.
const PATIENCE: Duration = Duration::from_hours(1000);

/// The figures of all rows, each played on the server of the same number.
pub(super) fn play(rows: &[Row], servers: &[Profile]) -> Result<Vec<Figures>, Failure> {
    let mut engine: Option<VirtualEngine> = None;
    let mut figures = Vec::with_capacity(rows.len());
    for (row, server) in rows.iter().zip(servers) {
        if !row.continues {
            engine = None;
        }
        figures.push(match &row.load {
            RowLoad::Closed { slots, tests_first } => {
                let engine = engine.get_or_insert_with(|| VirtualEngine::of_profile(server, 0));
                if *tests_first {
                    // Its prompt is warm from then on.
                    let requests = row.requests.iter().copied().take(1).collect();
                    sums(row, RowPlan { requests, releases: Releases::Slots(1) }, engine)?;
                }
                let (requests, releases) = (row.requests.clone(), Releases::Slots(*slots));
                sums(row, RowPlan { requests, releases }, engine)?.figures()
            }
            RowLoad::Poisson { rate, .. } => poisson(row, *rate, server)?,
            RowLoad::AtOnce => at(row, vec![Moment::ZERO; row.requests.len()], server)?.figures(),
            RowLoad::Recorded(moments) => at(row, moments.clone(), server)?.figures(),
        });
    }
    Ok(figures)
}

fn poisson(row: &Row, rate: f64, server: &Profile) -> Result<Figures, Failure> {
    let mut drawn = Vec::new();
    for seed in 0..ARRIVAL_DRAWS {
        drawn.push(one_poisson(row, rate, server, seed)?);
    }
    let mean = |value: fn(&Figures) -> Option<f64>| {
        let known: Option<Vec<f64>> = drawn.iter().map(value).collect();
        known.map(|known| known.iter().sum::<f64>() / known.len() as f64)
    };
    Ok(Figures {
        output_throughput: mean(|figures| figures.output_throughput),
        ttft_mean_ms: mean(|figures| figures.ttft_mean_ms),
        tpot_mean_ms: mean(|figures| figures.tpot_mean_ms),
    })
}

/// One draw of arrivals, stretched so that they come at the rate, or so that the row takes as long
/// as it took: at four fifths of a server's capacity a few per cent of the rate double its queue.
fn one_poisson(row: &Row, rate: f64, server: &Profile, seed: u64) -> Result<Figures, Failure> {
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
        let moments = shape.iter().map(|place| Moment::ZERO + seconds(place / sum * span_s));
        played = at(row, moments.collect(), server)?;
        let Some(took_s) = row.load.stretched_to_s() else { break };
        span_s = (span_s + took_s - played.duration_s()).max(f64::EPSILON);
    }
    Ok(played.figures())
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(PATIENCE)
}

fn at(row: &Row, moments: Vec<Moment>, server: &Profile) -> Result<Sums, Failure> {
    let plan = RowPlan { requests: row.requests.clone(), releases: Releases::At(moments) };
    sums(row, plan, &mut VirtualEngine::of_profile(server, 0))
}

/// Plays a plan; every request must be served, or its figures are those of another load.
fn sums(row: &Row, plan: RowPlan, engine: &mut VirtualEngine) -> Result<Sums, Failure> {
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
        Figures {
            output_throughput: (0.0 < duration_s).then(|| self.output_tokens as f64 / duration_s),
            ttft_mean_ms: mean_ms(self.ttft_s, self.ok),
            tpot_mean_ms: mean_ms(self.tpot_s, self.tpots),
        }
    }
}

impl Observer for Sums {
    type Notes = ();

    fn started(&mut self, _: &StartedRequest) -> Result<(), Failure> {
        Ok(())
    }

    fn token(&mut self, (): &mut (), _: Option<Moment>, _: Moment) {}

    fn ended(&mut self, flight: Flight<()>, end: End) -> Result<(), Failure> {
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

    fn not_sent(&mut self, _: NotSent) -> Result<(), Failure> {
        Ok(())
    }

    fn sampled(&mut self, _: &Sample) {}
}
