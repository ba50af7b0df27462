//! The steady state of a run: after it has warmed up and before it drains.
//!
//! Three series are tested: requests in flight and output tokens, over even steps of time, and TTFT in
//! the order of sending. Each is cut by MSER-5 and tested for a trend
//! ([`crate::statistics::steady`]); the window begins after the latest cut. It ends where the drain
//! begins: when an open loop sends its last request, and when a closed loop has nothing new for a slot
//! to take. Endings are ignored, because otherwise slow requests would be left out.
//!
//! A run never settled when
//!
//! - requests in flight of an open loop grow faster than chance explains: in the second half the line
//!   through them rises by more than [`CHANCE`] times the root of the arrivals there. Up to its capacity
//!   a server stays below that, whatever its queue does; or
//! - neither requests in flight nor TTFT settle on an open loop: one of them alone fails to in a few
//!   of a hundred steady runs; or
//! - TTFT, from schedule on an open loop, rises from each quarter of the run to the next, by more than
//!   [`RISE`] in all and beyond chance; or
//! - the output of a closed loop does not settle: its load follows the server.

use std::num::NonZeroU32;

use inferometer_model::spec::{LoadShape, Rate, Think};
use inferometer_model::{Moment, Observations, fmt};
use serde::{Deserialize, Serialize};

use crate::figures::Steps;
use crate::metric::{
    self, ByMetric, Distribution, LatencyOrigin, Metric, MetricValue, MetricValues, Scalar,
};
use crate::record::{
    Attempt, Attempts, Basis, Brief, Columns, Concurrency, Flight, RunIntervals, Window,
    WindowKind, ns_to_ms,
};
use crate::statistics::runs::mean;
use crate::statistics::steady::{Settling, Unsettled, settle};
use crate::statistics::trend::{mann_kendall, ols_hac};
use crate::statistics::{Interval, Percentile, Sample};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    pub state: SteadyKind,
    /// Why there is no window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Null unless it settled.
    pub window: Option<Window>,
    /// The series that were tested; empty where none could be.
    pub trends: Vec<SeriesTrend>,
    /// How requests in flight grow in the second half of an open loop; null elsewhere.
    pub growth: Option<Growth>,
    /// Over the window; null without one. Boxed: it is most of a summary's size.
    pub figures: Option<Box<SteadyFigures>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SteadyKind {
    Settled,
    NeverSettled,
    /// Too few requests.
    TooShort,
    /// The load was not meant to be steady.
    NotJudged,
}

/// The result of one series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesTrend {
    pub series: SeriesName,
    /// Null when it did not settle, or was too short.
    pub settled_from_ms: Option<f64>,
    /// Change over what is left of it, as a share of its level; null without a trend.
    pub drift: Option<f64>,
    pub p: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesName {
    InFlight,
    OutputTokens,
    /// E2E where answers are not streamed.
    Ttft,
}

/// A line through the requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    pub per_s: f64,
    /// From the half of the run to where it drains.
    pub requests: f64,
    /// What random arrivals may add.
    pub chance: f64,
    /// Whether it rises by more than that, and steadily.
    pub beyond_chance: bool,
}

/// Fewest requests before the drain. On an open loop a random queue must be distinguished from one that
/// grows: below this it is called growing too often.
const FEWEST_OPEN: usize = 100;
/// The output of slots is judged, which hardly varies.
const FEWEST_SLOTTED: usize = 60;
/// Standard deviations of the number of arrivals.
const CHANCE: f64 = 2.0;
const SIGNIFICANT: f64 = 0.05;
/// A rise of TTFT over a run, as a share of its mean, that no steady server has.
const RISE: f64 = 0.25;
const RISE_FEWEST: usize = 40;

impl Default for SteadyState {
    fn default() -> Self {
        Self::without(SteadyKind::NotJudged, "the version that wrote this summary did not check it")
    }
}

impl SteadyState {
    /// The state, and its window. The latencies in the window are still to be gathered.
    pub(crate) fn detect(shape: &LoadShape, course: &Course<'_>) -> (Self, Option<Flight>) {
        let horizon = match horizon(shape, &course.attempts.columns) {
            Ok(horizon) => horizon,
            Err(unsteady) => return (Self::without(SteadyKind::NotJudged, unsteady), None),
        };
        let before_drain = horizon.map_or(0, |horizon| course.sent_within(horizon));
        let fewest = if is_slotted(shape) { FEWEST_SLOTTED } else { FEWEST_OPEN };
        let (Some(horizon), true) = (horizon, fewest <= before_drain) else {
            let reason = format!(
                "{before_drain} requests were sent before the drain, and a steady state needs {fewest}"
            );
            return (Self::without(SteadyKind::TooShort, &reason), None);
        };
        let Some(grid) = Steps::within(horizon, STEPS) else {
            return (Self::without(SteadyKind::TooShort, "the run has no duration"), None);
        };
        Self::over(course, grid, !is_slotted(shape))
    }

    fn over(course: &Course<'_>, grid: Steps, open: bool) -> (Self, Option<Flight>) {
        let readings = course.readings(grid, LatencyOrigin::for_load(open));
        let in_flight = &readings[0];
        let growth = if open { Growth::fit(in_flight, course, grid) } else { None };
        let trends = readings.iter().map(|reading| reading.trend.clone()).collect();
        let [in_flight_trend, output_trend, ttft_trend] =
            readings.each_ref().map(|reading| reading.unsettled);
        let rise = rise(&readings[2].values);
        let never = match (growth.filter(|growth| growth.beyond_chance), output_trend) {
            (Some(Growth { per_s, .. }), _) => Some(format!(
                "requests in flight grow by {} per second: the server does not keep up",
                fmt::number(per_s)
            )),
            _ if rise.is_some() => {
                rise.map(|rise| format!("TTFT rises by {} over the run", fmt::percent(rise)))
            }
            (None, _) if open => in_flight_trend
                .and(ttft_trend)
                .map(|_| "neither requests in flight nor TTFT become steady".to_owned()),
            (None, Some(Unsettled::Truncation)) => {
                Some("the output rate still changes after half of the run".to_owned())
            }
            (None, Some(Unsettled::Trend { drift, .. })) => {
                let changes = if drift < 0.0 { "falls" } else { "rises" };
                let percent = fmt::percent(drift.abs());
                Some(format!("the output rate {changes} by {percent} over the run"))
            }
            (None, None) => None,
        };
        if let Some(reason) = never {
            let never = Self::without(SteadyKind::NeverSettled, &reason);
            return (Self { trends, growth, ..never }, None);
        }
        let cuts = readings.iter().filter_map(|reading| reading.settled_from_ns);
        let from_ns = cuts.max().unwrap_or(grid.from_ns);
        let to_ns = grid.end_ns();
        let window = Window {
            kind: WindowKind::Steady,
            from_ms: Some(ns_to_ms(from_ns)),
            to_ms: Some(ns_to_ms(to_ns)),
            duration_s: Some(ns_to_ms(to_ns.saturating_sub(from_ns)) / 1e3),
        };
        let part = Flight { from_ns, to_ns };
        let found = Self {
            state: SteadyKind::Settled,
            reason: None,
            window: Some(window),
            trends,
            growth,
            figures: Some(Box::new(SteadyFigures::over(part, course))),
        };
        (found, Some(part))
    }

    fn without(state: SteadyKind, reason: &str) -> Self {
        let reason = Some(reason.to_owned());
        Self { state, reason, window: None, trends: Vec::new(), growth: None, figures: None }
    }

    /// Takes over the intervals of the run, each widened to the value here: a window that was chosen by
    /// what happened in it does not say how far off its values may be.
    pub(crate) fn adopt(&mut self, rates: &RunIntervals, basis: Option<&Basis>) {
        let Some(figures) = &mut self.figures else { return };
        let around =
            |interval: Option<Interval>, value: Option<f64>| Some(interval?.including(value?));
        figures.intervals = ThroughputIntervals {
            request_throughput: around(rates.requests, figures.request_throughput),
            output_throughput: around(rates.output, figures.output_throughput),
            total_throughput: around(rates.total, figures.total_throughput),
        };
        for (metric, inside) in basis.iter().flat_map(|basis| basis.latencies.iter()) {
            if let Some(own) = figures.latencies.get_mut(metric) {
                own.adopt(&inside.intervals);
            }
        }
    }

    /// Growth of the requests in flight per second, where the server did not keep up with an open loop.
    pub(crate) fn piling_up(&self) -> Option<f64> {
        self.growth.filter(|growth| growth.beyond_chance).map(|growth| growth.per_s)
    }
}

/// By how much a series rises over the run, as a share of its mean, where it does so beyond chance.
fn rise(values: &[f64]) -> Option<f64> {
    let quarter = |n: usize| &values[n * values.len() / 4..(n + 1) * values.len() / 4];
    let quarters = [0, 1, 2, 3].map(|n| mean(quarter(n)));
    if values.len() < RISE_FEWEST || !quarters.is_sorted() {
        return None;
    }
    let (line, ranks) = (ols_hac(values)?, mann_kendall(values)?);
    let share = line.drift / mean(values);
    (line.p.max(ranks.p) < CERTAIN && RISE < share).then_some(share)
}

/// The conversations of a run; a request without others is one of its own.
#[derive(Debug)]
pub(crate) struct Talks {
    /// How long they took on average; `None` without one that was sent.
    pub(crate) mean_s: Option<f64>,
    /// How often the slots of a closed loop were filled, or how often the typical time of a
    /// conversation fits into the time in which an open loop sent its requests.
    pub(crate) rounds: Option<f64>,
}

impl Talks {
    pub(crate) fn from_observations(observations: &Observations, columns: &Columns) -> Self {
        let (mut first_turns, mut sending) = (0_u64, None);
        let mut talks_s = Vec::with_capacity(columns.iter().len());
        let mut begin = |sent: Moment| {
            let (first, last): (Moment, Moment) = sending.unwrap_or((sent, sent));
            sending = Some((first.min(sent), last.max(sent)));
        };
        let length_s =
            |(sent, ended): (Option<Moment>, Moment)| Some(ended.since(sent?)?.as_secs_f64());
        if columns.iter().all(|brief| brief.is_first_turn()) {
            // Without a conversation the records need not be read again.
            for brief in columns.iter() {
                first_turns += 1;
                let sent = brief.sent();
                sent.into_iter().for_each(&mut begin);
                talks_s.extend(length_s((sent, Moment::from_nanos(brief.ended_ns))));
            }
        } else {
            // The turns of a conversation are consecutive.
            let mut talk: Option<(Option<Moment>, Moment)> = None;
            for record in &observations.records {
                if record.asked.turn == 0 {
                    first_turns += 1;
                    record.sent.into_iter().for_each(&mut begin);
                    talks_s.extend(talk.take().and_then(length_s));
                }
                talk = Some(match talk {
                    None => (record.sent, record.ending.at),
                    Some((sent, ended)) => (sent, ended.max(record.ending.at)),
                });
            }
            talks_s.extend(talk.and_then(length_s));
        }
        let talks_s = Sample::new(talks_s);
        let in_slots = |slots: NonZeroU32| first_turns as f64 / f64::from(slots.get());
        let rounds = match observations.manifest.spec.load.shape {
            LoadShape::Closed { concurrency, .. } => Some(in_slots(concurrency)),
            LoadShape::Open { rate: Rate::Unlimited, cap, .. } => cap.map(in_slots),
            LoadShape::Open { .. } => {
                let typical_s = talks_s.as_ref().map(|it| it.percentile(Percentile::P50));
                let sending = sending.and_then(|(first, last)| last.since(first));
                let found = sending.zip(typical_s).filter(|(_, typical_s)| 0.0 < *typical_s);
                found.map(|(sending, typical_s)| sending.as_secs_f64() / typical_s)
            }
        };
        Self { mean_s: talks_s.map(|talks_s| talks_s.mean()), rounds }
    }
}

/// Whether answers decide when the next request is sent: then the output shows a steady state.
pub(crate) fn is_slotted(shape: &LoadShape) -> bool {
    match shape {
        LoadShape::Closed { .. } => true,
        LoadShape::Open { rate, cap, .. } => *rate == Rate::Unlimited && cap.is_some(),
    }
}

/// From the first request sent to where the drain begins, or why no steady state is expected.
pub(crate) fn horizon(
    shape: &LoadShape,
    columns: &Columns,
) -> Result<Option<Flight>, &'static str> {
    let begins = || columns.flights().map(|flight| flight.from_ns);
    let sending = begins().min().zip(begins().max());
    let sending = sending.map(|(from_ns, to_ns)| Flight { from_ns, to_ns });
    match shape {
        LoadShape::Open { rate: Rate::Unlimited, cap: None, .. } => {
            Err("all requests were sent at once, so the run drains from its beginning")
        }
        LoadShape::Open { rate: Rate::Ramp { .. }, .. } => {
            Err("the rate changes, so there is no steady state")
        }
        LoadShape::Open { rate: Rate::Recorded(_), .. } => {
            Err("the load follows a trace, which need not be steady")
        }
        // Users with think time are not in flight, so the slots need not be full.
        LoadShape::Closed { think, .. } if *think != Think::None => Ok(sending),
        LoadShape::Closed { .. } | LoadShape::Open { rate: Rate::Unlimited, .. } => {
            let last_ns = columns.last_first_turn_ns();
            let drain = last_ns.and_then(|at| Concurrency::drain_begins_ns(columns.flights(), at));
            Ok(sending.zip(drain).map(|(sending, to_ns)| Flight { to_ns, ..sending }))
        }
        // After the last conversation has begun, the load falls.
        LoadShape::Open { rate: Rate::Steady { .. }, .. } => {
            let last_ns = columns.last_first_turn_ns();
            Ok(sending.zip(last_ns).map(|(sending, to_ns)| Flight { to_ns, ..sending }))
        }
    }
}

impl Growth {
    fn fit(in_flight: &Reading, course: &Course<'_>, grid: Steps) -> Option<Self> {
        let half = STEPS / 2;
        let later = in_flight.values.get(half..)?;
        let from_ns = grid.begin_ns(half);
        let arrivals = course.sent_within(Flight { from_ns, to_ns: grid.end_ns() });
        let line = ols_hac(later)?;
        let rises = mann_kendall(later).is_some_and(|ranks| ranks.p < SIGNIFICANT);
        let chance = CHANCE * (arrivals as f64).sqrt();
        let over_s = (grid.end_ns() - from_ns) as f64 / 1e9;
        Some(Self {
            per_s: line.drift / over_s,
            requests: line.drift,
            chance,
            beyond_chance: chance < line.drift && line.p < SIGNIFICANT && rises,
        })
    }
}

/// Throughputs of the window, and latencies of the `ok` requests that were sent in it. An answer counts
/// by the share of its time that lies in the window, because whole answers at the edges of a closed loop
/// come in waves, and one wave more or less is no change of the throughput.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyFigures {
    /// Sent inside, and ended ok.
    pub requests: u64,
    /// Answers, each by the share of its time inside.
    pub request_throughput: Option<f64>,
    /// Tokens that came inside, or the share of those of answers in one piece; null where answers have
    /// none.
    pub output_throughput: Option<f64>,
    /// Input, each answer's by the share of its time inside, as `request_throughput` counts it.
    #[serde(default)]
    pub input_throughput: Option<f64>,
    /// Input and output.
    pub total_throughput: Option<f64>,
    /// As `request_throughput`, of those that met every SLO about each request; null without SLOs.
    #[serde(default)]
    pub goodput: Option<f64>,
    /// Input tokens over TTFT, of the requests that were sent inside.
    #[serde(default)]
    pub pp: Option<f64>,
    /// Where the true throughputs lie; null where the window is too short to tell.
    #[serde(default)]
    pub intervals: ThroughputIntervals,
    pub concurrency_mean: Option<f64>,
    #[serde(flatten)]
    pub latencies: ByMetric<Distribution>,
}

/// With 95 % confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThroughputIntervals {
    pub request_throughput: Option<Interval>,
    pub output_throughput: Option<Interval>,
    pub total_throughput: Option<Interval>,
}

impl SteadyFigures {
    fn over(window: Flight, course: &Course<'_>) -> Self {
        let inside = |at_ns: u64| (window.from_ns..window.to_ns).contains(&at_ns);
        let length_ns = window.to_ns.saturating_sub(window.from_ns);
        let per_s = |count: f64| (0 < length_ns).then(|| count / (length_ns as f64 / 1e9));
        let answers = || course.attempts.columns.iter().filter(Brief::is_answer);
        let share = |answer: Brief| answer.flight().map_or(0.0, |it| it.share_within(window));
        // The sum of nothing is minus zero.
        let ended: f64 = answers().map(share).sum::<f64>() + 0.0;
        let good: f64 = answers().filter(Brief::meets_slos).map(share).sum::<f64>() + 0.0;
        let (mut prefill, mut ttft_s, mut input, mut output) = (0.0, 0.0, 0.0, 0.0);
        for answer in course.attempts.iter().filter(|it| it.is_ok() && it.sent.is_some()) {
            let tokens = answer.input.count as f64;
            if let Some(ttft_ms) = answer.latencies.get(&metric::TTFT)
                && inside(answer.left.as_nanos())
            {
                prefill += tokens;
                ttft_s += ttft_ms / 1e3;
            }
            let share = answer.flight().map_or(0.0, |it| it.share_within(window));
            input += tokens * share;
            if !course.streams {
                output += answer.output.count as f64 * share;
            }
        }
        if course.streams {
            let came = course.deliveries.iter().filter(|(at_ns, _)| inside(*at_ns));
            output = came.map(|(_, tokens)| *tokens as f64).sum::<f64>() + 0.0;
        }
        let swept = Concurrency::sweep(course.flights().filter_map(|it| it.within(window)));
        let request_throughput = per_s(ended);
        let output_throughput = per_s(output).filter(|_| course.generates);
        let total_throughput = per_s(input + output).filter(|_| course.generates);
        Self {
            requests: answers().filter(|answer| inside(answer.left_ns)).count() as u64,
            request_throughput,
            output_throughput,
            input_throughput: per_s(input),
            total_throughput,
            goodput: per_s(good).filter(|_| course.has_slos),
            pp: (0.0 < ttft_s).then(|| prefill / ttft_s),
            intervals: ThroughputIntervals::default(),
            concurrency_mean: swept.and_then(|swept| per_s(swept.request_ns as f64 / 1e9)),
            latencies: ByMetric::default(),
        }
    }
}

/// The numbers that a run is shown, compared and judged by: those of its steady part where it has one,
/// because the start and the drain are not the load that was asked for, and of the whole run otherwise.
pub(crate) fn headline(whole: &MetricValues, steady: &SteadyState) -> MetricValues {
    let figures = steady.figures.as_deref();
    let scalar = |metric: &Metric| whole.scalar(metric).and_then(|scalar| scalar.value);
    let output = scalar(&metric::OUTPUT_THROUGHPUT).zip(scalar(&metric::PER_USER_THROUGHPUT));
    // The price of an hour, where there is one: a cost is that over a rate.
    let cost = scalar(&metric::COST_PER_MILLION_OUTPUT_TOKENS);
    let per_hour = cost.zip(scalar(&metric::OUTPUT_THROUGHPUT));
    let per_hour = per_hour.map(|(cost, rate)| cost * rate / 1e6 * 3_600.0);
    let users = output.map(|(all, each)| (all / each).round()).filter(|users| users.is_finite());
    let value = |(metric, whole): (&'static Metric, &MetricValue)| {
        let own = figures.and_then(|figures| figures.value(metric, whole, (users, per_hour)));
        (metric, own.unwrap_or_else(|| whole.clone()))
    };
    whole.iter().map(value).collect()
}

impl SteadyFigures {
    /// The value of a metric over the window; `None` where it is known of the whole run only.
    fn value(
        &self,
        metric: &Metric,
        whole: &MetricValue,
        (users, per_hour): (Option<f64>, Option<f64>),
    ) -> Option<MetricValue> {
        let scalar = match whole {
            MetricValue::Distribution(_) => {
                return self.latencies.get(metric).cloned().map(MetricValue::Distribution);
            }
            MetricValue::Scalar(scalar) => scalar,
        };
        let around = &self.intervals;
        let whole = |value: Option<f64>| Some(scalar.interval?.including(value?));
        let output = (self.output_throughput, around.output_throughput);
        let (value, interval) = match metric.name {
            it if it == metric::REQUEST_THROUGHPUT.name => {
                (self.request_throughput, around.request_throughput)
            }
            it if it == metric::OUTPUT_THROUGHPUT.name => output,
            it if it == metric::TOTAL_THROUGHPUT.name => {
                (self.total_throughput, around.total_throughput)
            }
            it if it == metric::INPUT_THROUGHPUT.name => {
                (self.input_throughput, whole(self.input_throughput))
            }
            it if it == metric::PER_USER_THROUGHPUT.name => {
                let users = users?;
                let each = |it: Interval| Interval::new(it.low / users, it.high / users);
                (output.0.map(|all| all / users), output.1.and_then(each))
            }
            it if it == metric::COST_PER_MILLION_OUTPUT_TOKENS.name => cost_at(per_hour?, output),
            it if it == metric::COST_PER_MILLION_TOKENS.name => {
                cost_at(per_hour?, (self.total_throughput, around.total_throughput))
            }
            it if it == metric::CONCURRENCY_MEAN.name => (self.concurrency_mean, None),
            it if it == metric::GOODPUT.name => (self.goodput, whole(self.goodput)),
            it if it == metric::PP.name => (self.pp, whole(self.pp)),
            it if it == metric::TG.name => {
                let tpot = self.latencies.get(&metric::TPOT)?;
                let speed = |ms: f64| (0.0 < ms).then(|| 1e3 / ms);
                let ends = tpot.intervals.mean.map(|it| (speed(it.high), speed(it.low)));
                let interval = ends.and_then(|(low, high)| Interval::new(low?, high?));
                (tpot.mean.and_then(speed), interval)
            }
            _ => return None,
        };
        let value = Some(value.filter(|_| scalar.value.is_some())?);
        Some(MetricValue::Scalar(Scalar { value, interval, ..scalar.clone() }))
    }
}

/// What a million tokens cost at a rate, with the interval of that rate.
fn cost_at(
    per_hour: f64,
    (rate, around): (Option<f64>, Option<Interval>),
) -> (Option<f64>, Option<Interval>) {
    let value = rate.and_then(|rate| metric::cost_of_million(per_hour, rate));
    (value, around.and_then(|around| metric::cost_interval(per_hour, around)))
}

/// Steps of time, and groups of requests, that a series has: forty batches of five.
const STEPS: usize = 200;
/// A trend counts below this p: several series are tested, and queues drift at random.
const CERTAIN: f64 = 0.01;

/// The course of a run.
pub(crate) struct Course<'a> {
    pub(crate) attempts: &'a Attempts<'a>,
    /// Output tokens, and when they came.
    pub(crate) deliveries: &'a [(u64, u64)],
    /// Whether answers are made of tokens.
    pub(crate) generates: bool,
    /// Whether tokens arrive one after another.
    pub(crate) streams: bool,
    /// Whether there are SLOs about each request.
    pub(crate) has_slos: bool,
}

/// One series and its result.
struct Reading {
    values: Vec<f64>,
    trend: SeriesTrend,
    settled_from_ns: Option<u64>,
    /// Why it did not settle, unless a trend of so many series is to be expected by chance.
    unsettled: Option<Unsettled>,
}

impl Course<'_> {
    fn flights(&self) -> impl Iterator<Item = Flight> + Clone {
        self.attempts.columns.flights()
    }

    fn sent_within(&self, stretch: Flight) -> usize {
        let inside = |flight: &Flight| (stretch.from_ns..=stretch.to_ns).contains(&flight.from_ns);
        self.flights().filter(inside).count()
    }

    /// In flight, output tokens and TTFT.
    fn readings(&self, grid: Steps, origin: LatencyOrigin) -> [Reading; 3] {
        let times_ns: Vec<u64> = (0..grid.count).map(|step| grid.begin_ns(step)).collect();
        let over_time = |series, values| Reading::new(series, values, &times_ns);
        let (ttft, sent_ns) = self.ttft(grid, origin);
        let stretch = Flight { from_ns: grid.from_ns, to_ns: grid.end_ns() };
        let flights = self.flights().filter_map(|flight| flight.within(stretch));
        // The very end lies in no step.
        let in_flight = grid.in_flight(flights, |to_ns| grid.step(to_ns).unwrap_or(grid.count));
        [
            over_time(SeriesName::InFlight, in_flight),
            over_time(SeriesName::OutputTokens, self.output(grid)),
            Reading::new(SeriesName::Ttft, ttft, &sent_ns),
        ]
    }

    /// Output per second in each step: tokens, or whole answers where they have none.
    fn output(&self, grid: Steps) -> Vec<f64> {
        let mut counts = vec![0.0; grid.count];
        let mut add = |at_ns: u64, count: f64| {
            if let Some(step) = grid.step(at_ns) {
                counts[step] += count;
            }
        };
        if self.generates {
            self.deliveries.iter().for_each(|(at_ns, tokens)| add(*at_ns, *tokens as f64));
        } else {
            let answers = self.attempts.columns.iter().filter(Brief::is_answer);
            answers.for_each(|answer| add(answer.ended_ns, 1.0));
        }
        let step_s = grid.step_ns as f64 / 1e9;
        counts.iter().map(|count| count / step_s).collect()
    }

    /// Means of neighbours in the order of sending, and when the first of each left.
    fn ttft(&self, grid: Steps, origin: LatencyOrigin) -> (Vec<f64>, Vec<u64>) {
        let shown = |answer: &Attempt| {
            answer.latencies.get(origin.ttft()).or_else(|| answer.latencies.get(origin.e2e()))
        };
        let sent = |answer: &Attempt| Some(answer.sent?.as_nanos()).filter(|_| answer.is_ok());
        let inside = |sent_ns: &u64| grid.step(*sent_ns).is_some();
        let mut values = Vec::with_capacity(self.attempts.len());
        let shown = |answer: Attempt| Some((sent(&answer).filter(inside)?, shown(&answer)?));
        values.extend(self.attempts.iter().filter_map(shown));
        values.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let groups = values.len().min(grid.count);
        let group = |place: usize| {
            &values[place * values.len() / groups..(place + 1) * values.len() / groups]
        };
        (0..groups)
            .map(group)
            .map(|group| {
                let sum: f64 = group.iter().map(|(_, value)| value).sum();
                (sum / group.len() as f64, group[0].0)
            })
            .unzip()
    }
}

impl Reading {
    /// `times_ns` are the beginnings of the values.
    fn new(series: SeriesName, values: Vec<f64>, times_ns: &[u64]) -> Self {
        let (mut settled_from_ns, mut unsettled, mut drift, mut p) = (None, None, None, None);
        match settle(&values) {
            Settling::TooShort { .. } => {}
            Settling::Settled { from } => settled_from_ns = times_ns.get(from).copied(),
            Settling::NeverSettled(Unsettled::Trend { drift: by, p: chance }) => {
                (drift, p) = (Some(by).filter(|drift| drift.is_finite()), Some(chance));
                let trend = Unsettled::Trend { drift: by, p: chance };
                unsettled = Some(trend).filter(|_| chance < CERTAIN);
            }
            Settling::NeverSettled(other) => unsettled = Some(other),
        }
        let settled_from_ms = settled_from_ns.map(ns_to_ms);
        let trend = SeriesTrend { series, settled_from_ms, drift, p };
        Self { values, trend, settled_from_ns, unsettled }
    }
}

#[cfg(test)]
mod tests;
