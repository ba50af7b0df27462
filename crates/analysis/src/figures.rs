//! What charts are drawn from: a bounded number of points, bins and rows, whatever the length of
//! the run. Pages never see records.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use inferometer_model::record::Read;
use inferometer_model::records::TimeOrder;
use inferometer_model::spec::LoadShape;
use inferometer_model::whole::to_u32;
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::metric::{self, Metric};
use crate::record::{
    Arrival, Flight, Measured, Output, OutputTokens, Ruler, moment_to_ms, ns_to_ms, share,
};
use crate::statistics::{Percentile, Probability, Sample};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// How latencies are distributed, by metric; none for a metric without values.
    pub distributions: Vec<DistributionFigure>,
    /// The client's side over time.
    pub course: CourseFigure,
    /// Requests chosen to be drawn one by one.
    pub requests: RequestsFigure,
    /// Gaps between tokens over time; null where there are none.
    pub gaps: Option<GapsFigure>,
    /// How late the driver's loop woke: upper limits in milliseconds, rising, and how many lags are
    /// within each and above the one before. Limits without lags are left out.
    #[serde(default)]
    pub loop_lag: Vec<(f64, u64)>,
}

/// Exact quantiles at shares that are denser towards the tail, over the steady part where the metric has
/// a value of its own there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DistributionFigure {
    /// The name of the metric, such as `ttft`.
    pub metric: String,
    pub n: u64,
    /// Shares and the values in milliseconds at or below which they lie, both rising.
    pub points: Vec<(f64, f64)>,
    /// How many values lie in each of even steps from the smallest value to the largest, on a
    /// logarithmic axis unless some value is zero. A value that equals an edge is in the step below.
    #[serde(default)]
    pub counts: Vec<u64>,
}

impl DistributionFigure {
    /// The edges of the steps that are counted, rising; one more than steps.
    pub fn edges_ms(&self) -> Vec<f64> {
        let ends = self.points.first().zip(self.points.last());
        ends.map_or_else(Vec::new, |(low, high)| bin_edges(low.1, high.1, self.counts.len()))
    }
}

impl RunFigures {
    pub(crate) fn new(observations: &Observations, measured: &Measured) -> Self {
        let lags = &observations.ending.client.loop_lag;
        Self {
            distributions: distributions(measured),
            course: measured.course.clone(),
            requests: RequestsFigure::choose(observations),
            gaps: measured.gaps.clone(),
            loop_lag: lags.steps().map(|(limit_ns, count)| (ns_to_ms(limit_ns), count)).collect(),
        }
    }
}

/// Those of the server's answers first, then those of the client.
fn distributions(measured: &Measured) -> Vec<DistributionFigure> {
    let open = matches!(measured.shape, LoadShape::Open { .. });
    let gaps =
        if measured.series(&metric::ITL).found.is_ok() { &metric::ITL } else { &metric::ICL };
    let drawn = [
        Some(&metric::TTFT),
        open.then_some(&metric::TTFT_SCHEDULE),
        Some(gaps),
        Some(&metric::TPOT),
        Some(&metric::E2E),
        Some(&metric::SEND_LAG),
        Some(&metric::CLIENT_LAG),
    ];
    let steady = measured.steady.figures.as_deref();
    let figure = |metric: &Metric| {
        let series = measured.series(metric);
        let own = steady.and_then(|figures| figures.latencies.get(metric)).filter(|it| 0 < it.n);
        let n = own.or(series.found.as_ref().ok())?.n;
        let metric = metric.name.to_owned();
        let Curve { points, counts } = series.curve.clone();
        Some(DistributionFigure { metric, n, points, counts })
    };
    drawn.into_iter().flatten().filter_map(figure).collect()
}

/// Columns of equal length, a value for each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CourseFigure {
    /// Beginning of the first step, since the run's zero.
    pub from_ms: f64,
    pub step_ms: f64,
    /// Requests in flight, as a mean over the step.
    pub in_flight: Vec<f64>,
    /// Output tokens of ok answers that arrived in the step.
    pub output_tokens: Vec<u64>,
    /// Requests that ended in the step.
    pub ended_ok: Vec<u64>,
    pub ended_otherwise: Vec<u64>,
    /// Mean TTFT of ok answers to requests that were sent in the step; empty where none has a TTFT.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ttft_ms: Vec<Option<f64>>,
}

const STEPS_MAX: u32 = 200;

/// The course of a run while its records are read.
#[derive(Debug)]
pub(crate) struct CourseTally {
    steps: Steps,
    figure: CourseFigure,
    /// The sum and the number of the TTFTs of each step.
    ttfts: Vec<(f64, u64)>,
}

impl CourseTally {
    pub(crate) fn new(steps: Option<Steps>) -> Self {
        // Without requests there is no step, and nothing is added.
        let steps = steps.unwrap_or(Steps { from_ns: 0, step_ns: 0, count: 0 });
        let zeros = || vec![0; steps.count];
        let figure = CourseFigure {
            from_ms: ns_to_ms(steps.from_ns),
            step_ms: ns_to_ms(steps.step_ns),
            in_flight: Vec::new(),
            output_tokens: zeros(),
            ended_ok: zeros(),
            ended_otherwise: zeros(),
            ttft_ms: Vec::new(),
        };
        let ttfts = vec![(0.0, 0); steps.count];
        Self { steps, figure, ttfts }
    }

    /// Adds a request, however it ended.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        let is_ok = record.ending.outcome == Outcome::Ok;
        let CourseFigure { ended_ok, ended_otherwise, .. } = &mut self.figure;
        let ended = if is_ok { ended_ok } else { ended_otherwise };
        ended[self.steps.place(record.ending.at.as_nanos())] += 1;
    }

    /// Adds the TTFT of an `ok` answer where its request was sent.
    pub(crate) fn add_ttft(&mut self, record: &RequestRecord, ttft_ms: f64) {
        let Some(sent) = record.sent else { return };
        let (sum, count) = &mut self.ttfts[self.steps.place(sent.as_nanos())];
        *sum += ttft_ms;
        *count += 1;
    }

    /// Adds the tokens of an `ok` answer in proportion to the tokens that the stream marks, or to its
    /// events where it marks none. All of them are placed, so that the steps add up to the run's total.
    pub(crate) fn add_tokens(&mut self, record: &RequestRecord, output: &Output, count: u64) {
        let marked = output.marked_tokens().filter(|marked| 0 < *marked);
        let weight = |arrival: &Arrival| match (marked, arrival.tokens) {
            (Some(_), Some(tokens)) => tokens,
            _ => u64::from(arrival.events),
        };
        let mut put = |at: Moment, tokens: u64| {
            let step = &mut self.figure.output_tokens[self.steps.place(at.as_nanos())];
            *step = step.saturating_add(tokens);
        };
        let whole = marked.unwrap_or_else(|| output.arrivals.iter().map(weight).sum());
        if whole == 0 {
            put(record.ending.at, count);
            return;
        }
        let mut through = 0;
        let mut given = 0;
        for arrival in &output.arrivals {
            through += weight(arrival);
            let due = if whole == count { through } else { share(count, through, whole) };
            put(arrival.at, due - given);
            given = due;
        }
    }

    pub(crate) fn finish(self, flights: impl Iterator<Item = Flight>) -> CourseFigure {
        let Self { steps, figure, ttfts } = self;
        let in_flight = steps.in_flight(flights, |to_ns| steps.place(to_ns));
        let mean = |(sum, count): &(f64, u64)| (0 < *count).then(|| sum / *count as f64);
        let has_any = ttfts.iter().any(|(_, count)| 0 < *count);
        let ttft_ms = if has_any { ttfts.iter().map(mean).collect() } else { Vec::new() };
        CourseFigure { in_flight, ttft_ms, ..figure }
    }
}

/// What is drawn of the values of a metric: quantiles, and how many values lie in each step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Curve {
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) counts: Vec<u64>,
}

impl Curve {
    /// Steps of a histogram.
    const STEPS: usize = 40;

    pub(crate) fn new(sample: &Sample) -> Self {
        let edges = bin_edges(sample.min(), sample.max(), Self::STEPS);
        let through = edges[1..].iter().map(|edge| sample.count_through(*edge));
        let counts =
            through.scan(0, |before, through| Some(through - std::mem::replace(before, through)));
        Self { points: curve(sample), counts: counts.collect() }
    }
}

/// Even steps on a logarithmic axis, or on a linear one where that has no place for the lowest value.
fn bin_edges(low: f64, high: f64, steps: usize) -> Vec<f64> {
    let edge = |step: usize| match step as f64 / steps as f64 {
        _ if step == steps => high,
        share if 0.0 < low => low * libm::pow(high / low, share),
        share => low + (high - low) * share,
    };
    (0..=steps).map(edge).collect()
}

/// Up to here a curve has every value.
const WHOLE_UP_TO: u64 = 64;
/// A curve stops here short of its largest value, however many values a server claims.
const DECADES_MAX: u32 = 8;
/// Thousandths, evenly apart on a logarithmic axis: shares above a point, repeated in each decade.
const ABOVE: [u64; 8] = [1_000, 750, 562, 422, 316, 237, 178, 133];
/// In twentieths, where the first decade of the shares above leaves the body bare.
const BODY: u32 = 9;

/// Shares and quantiles, from the smallest value to the largest. The quantiles are those of the
/// metrics, so the percentiles that a table shows lie on the curve.
pub(crate) fn curve(sample: &Sample) -> Vec<(f64, f64)> {
    let shares = shares(sample.count()).into_iter().filter_map(Probability::new);
    shares.map(|share| (share.share(), sample.quantile(share))).collect()
}

/// The shares of a curve through `n` values, rising.
fn shares(n: u64) -> Vec<f64> {
    let mut shares = vec![0.0, 1.0];
    if n <= WHOLE_UP_TO {
        shares.extend((1..n.max(1)).map(|rank| rank as f64 / (n - 1) as f64));
    } else {
        shares.extend((1..=BODY).map(|twentieth| f64::from(twentieth) / 20.0));
        shares.extend(tail(n));
    }
    let percentiles = Percentile::ALL.into_iter().filter(|percentile| percentile.fewest() <= n);
    shares.extend(percentiles.map(|percentile| percentile.probability().share()));
    shares.sort_unstable_by(f64::total_cmp);
    shares.dedup();
    shares
}

/// From one half to the last share that leaves a whole value above it.
fn tail(n: u64) -> impl Iterator<Item = f64> {
    let decades = (0..DECADES_MAX).map(|decade| 1_000 * 10_u64.pow(decade));
    let above = decades.flat_map(|whole| ABOVE.map(|part| (part, whole)));
    above
        .take_while(move |(part, whole)| u128::from(*whole) <= u128::from(*part) * u128::from(n))
        .map(|(part, whole)| (whole - part) as f64 / whole as f64)
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GapsFigure {
    /// `itl` where tokens can be distinguished, else `icl`.
    pub metric: String,
    pub from_ms: f64,
    pub step_ms: f64,
    /// Edges of the rows in milliseconds, rising evenly on a logarithmic axis; one more than rows. A gap
    /// that equals an edge lies above it; the last row has the longest gap, and the first has those
    /// that have no logarithm too.
    pub edges_ms: Vec<f64>,
    /// One for each step, each with a count for each row. A gap is where it ends.
    pub columns: Vec<Vec<u64>>,
}

const GAP_STEPS_MAX: u32 = 60;
const GAP_ROWS_MAX: u32 = 24;
/// Shorter gaps are in the first row: an axis down to the clock's last digit has no room for the
/// rest.
const EDGE_MS_MIN: f64 = 1e-3;
/// From edge to edge at least: thinner rows show nothing more.
const ROW_RATIO_MIN: f64 = 1.02;

/// The step of each value of a list.
#[derive(Debug)]
pub(crate) struct GapSteps {
    /// `None` without requests.
    steps: Option<Steps>,
    places: Vec<u8>,
}

impl GapSteps {
    pub(crate) fn new(steps: Option<Steps>) -> Self {
        Self { steps, places: Vec::new() }
    }

    /// The next value of the list is of a gap that ends at `at`.
    pub(crate) fn push(&mut self, at: Moment) {
        let place = self.steps.map(|steps| steps.place(at.as_nanos()));
        self.places.extend(place.and_then(|place| u8::try_from(place).ok()));
    }

    /// The chart of values in the order in which they were pushed, and the measurements that each
    /// stands for; no counts where each stands for one. `None` without values.
    pub(crate) fn figure(
        self,
        metric: &Metric,
        (values, counts): (&[f64], &[u64]),
    ) -> Option<GapsFigure> {
        let steps = self.steps?;
        let edges_ms = row_edges(values)?;
        let mut columns = vec![vec![0_u64; edges_ms.len() - 1]; steps.count];
        let counts = counts.iter().copied().chain(std::iter::repeat(1));
        for ((step, value), count) in self.places.into_iter().zip(values).zip(counts) {
            let row = &mut columns[usize::from(step)][row_of(&edges_ms, *value)];
            *row = row.saturating_add(count);
        }
        Some(GapsFigure {
            metric: metric.name.to_owned(),
            from_ms: ns_to_ms(steps.from_ns),
            step_ms: ns_to_ms(steps.step_ns),
            edges_ms,
            columns,
        })
    }
}

fn row_edges(values: &[f64]) -> Option<Vec<f64>> {
    let low = values.iter().copied().reduce(f64::min)?.max(EDGE_MS_MIN);
    let high = values.iter().copied().reduce(f64::max)?.max(low);
    Some(edges(low, high))
}

/// The row between the edges that a value lies in. The last edge closes a row and opens none.
fn row_of(edges: &[f64], value: f64) -> usize {
    edges.partition_point(|edge| *edge <= value).clamp(1, edges.len() - 1) - 1
}

/// As many rows as fit, from `low` to `high`; one row around them where they are too close for it.
fn edges(low: f64, high: f64) -> Vec<f64> {
    let (from, to) = (libm::log(low), libm::log(high));
    let thinnest = libm::log(ROW_RATIO_MIN);
    if to - from <= thinnest {
        let half = libm::sqrt(ROW_RATIO_MIN);
        return vec![low / half, high * half];
    }
    let fitting = to_u32(((to - from) / thinnest).min(f64::from(GAP_ROWS_MAX)));
    let height = (to - from) / f64::from(fitting);
    let inner = (1..fitting).map(|row| libm::exp(from + height * f64::from(row)));
    [low].into_iter().chain(inner).chain([high]).collect()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestsFigure {
    /// In the order in which they were sent.
    pub rows: Vec<RequestRow>,
    /// Requests that the rows are a choice of.
    pub of: u64,
}

/// One request. Moments are since the run's zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestRow {
    pub id: u64,
    pub why: RowReason,
    pub outcome: Outcome,
    pub intended_ms: f64,
    /// Null where it was not sent, as when no connection was made.
    pub sent_ms: Option<f64>,
    /// Null where no token arrived, or the answer was not streamed.
    pub first_ms: Option<f64>,
    pub ended_ms: f64,
    /// Null where their number is not known.
    pub output_tokens: Option<u64>,
}

/// Why a request is among the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowReason {
    Slowest,
    Failed,
    /// Evenly spread over the others.
    Sample,
}

const ROWS_MAX: usize = 40;
const FAILED_MAX: usize = 14;
const SLOWEST_E2E: usize = 7;
const SLOWEST_TTFT: usize = 5;

impl RequestsFigure {
    fn choose(observations: &Observations) -> Self {
        let records = observations.records.in_time_order();
        let spec = &observations.manifest.spec;
        // When the first output arrived, if the answer was streamed.
        let first = |record: &RequestRecord| {
            let streamed = spec.workload.streaming && record.head.is_none_or(|head| head.streamed);
            arrivals(record).next().filter(|_| streamed)
        };
        let since_sent = |record: &RequestRecord, at: Option<Moment>| {
            at?.as_nanos().checked_sub(record.sent?.as_nanos())
        };
        let (mut e2e, mut ttft) = (Slowest::new(SLOWEST_E2E), Slowest::new(SLOWEST_TTFT));
        let mut by_outcome: BTreeMap<Outcome, Vec<usize>> = BTreeMap::new();
        for (place, record) in records.iter().enumerate() {
            if record.ending.outcome == Outcome::Ok {
                e2e.add(since_sent(&record, arrivals(&record).next_back()), place);
                ttft.add(since_sent(&record, first(&record)), place);
            } else {
                by_outcome.entry(record.ending.outcome).or_default().push(place);
            }
        }
        let mut chosen: BTreeMap<usize, RowReason> =
            failed(by_outcome).into_iter().map(|place| (place, RowReason::Failed)).collect();
        chosen.extend(e2e.places().chain(ttft.places()).map(|place| (place, RowReason::Slowest)));
        let others = records.len() - chosen.len();
        let other = |index: usize| {
            chosen.keys().fold(index, |place, taken| place + usize::from(*taken <= place))
        };
        let samples: Vec<usize> = evenly(others, ROWS_MAX - chosen.len()).map(other).collect();
        chosen.extend(samples.into_iter().map(|place| (place, RowReason::Sample)));
        let row = |record: &RequestRecord, why: RowReason| {
            let mut output = Output::default();
            output.read(record, &mut Ruler::new(0));
            let reported = record.usage.is_some_and(|usage| usage.completion_tokens.is_some());
            let is_counted = spec.api.generates() && (0 < output.events || reported);
            RequestRow {
                id: record.id.0,
                why,
                outcome: record.ending.outcome,
                intended_ms: moment_to_ms(record.intended),
                sent_ms: record.sent.map(moment_to_ms),
                first_ms: first(record).map(moment_to_ms),
                ended_ms: moment_to_ms(record.ending.at),
                output_tokens: is_counted.then(|| OutputTokens::from_record(record, &output).count),
            }
        };
        let rows = chosen.into_iter().filter_map(|(place, why)| {
            records.range(place..place + 1).next().map(|record| row(&record, why))
        });
        Self { rows: rows.collect(), of: records.len() as u64 }
    }
}

/// When the output events of a request arrived.
fn arrivals(record: &RequestRecord) -> impl DoubleEndedIterator<Item = Moment> {
    let output = record.events.iter().filter(|event| event.is_output());
    output.filter_map(|event| record.reads.get(event.read as usize).map(Read::at))
}

/// The slowest of the ok ones, by a latency; of equally slow ones the first.
struct Slowest {
    count: usize,
    ranked: BTreeSet<(Reverse<u64>, usize)>,
}

impl Slowest {
    fn new(count: usize) -> Self {
        Self { count, ranked: BTreeSet::new() }
    }

    fn add(&mut self, latency: Option<u64>, place: usize) {
        self.ranked.extend(latency.map(|latency| (Reverse(latency), place)));
        if self.count < self.ranked.len() {
            self.ranked.pop_last();
        }
    }

    fn places(&self) -> impl Iterator<Item = usize> {
        self.ranked.iter().map(|(_, place)| *place)
    }
}

/// Some of each kind of failure, evenly spread over the run: a rare kind is not displaced by a common
/// one.
fn failed(by_outcome: BTreeMap<Outcome, Vec<usize>>) -> Vec<usize> {
    let mut smallest_first: Vec<Vec<usize>> = by_outcome.into_values().collect();
    smallest_first.sort_by_key(Vec::len);
    let mut room = FAILED_MAX;
    let mut left = smallest_first.len();
    let mut chosen = Vec::new();
    for places in smallest_first {
        let share = places.len().min(room.div_ceil(left));
        chosen.extend(evenly(places.len(), share).map(|index| places[index]));
        room -= share;
        left -= 1;
    }
    chosen
}

/// At most `count` of so many indices, each from the middle of an equal part of them.
fn evenly(length: usize, count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(length);
    (0..count).map(move |part| (2 * part + 1) * length / (2 * count))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) from_ns: u64,
    pub(crate) step_ns: u64,
    pub(crate) count: usize,
}

/// A server answers all its streams in steps of tens of milliseconds. Shorter steps than this would
/// show those, as spikes with nothing between them.
const STEP_NS_MIN: u64 = 50_000_000;

impl Steps {
    /// The steps of the run's course and of its gaps, from the first request that was sent, or released
    /// and never sent, to the last end; `None` without requests.
    pub(crate) fn of_charts(records: &TimeOrder<'_>) -> [Option<Self>; 2] {
        let span = records.span();
        [STEPS_MAX, GAP_STEPS_MAX].map(|at_most| {
            let (from, to) = span?;
            Some(Self::between(from.as_nanos(), to.as_nanos(), at_most))
        })
    }

    /// `count` steps; a last piece that is shorter than a step is left out. `None` if a step would be
    /// shorter than a nanosecond.
    pub(crate) fn within(stretch: Flight, count: usize) -> Option<Self> {
        let length_ns = stretch.to_ns.checked_sub(stretch.from_ns)?;
        let step_ns = length_ns / u64::try_from(count).ok()?;
        (0 < step_ns).then_some(Self { from_ns: stretch.from_ns, step_ns, count })
    }

    fn between(from_ns: u64, to_ns: u64, at_most: u32) -> Self {
        let span_ns = to_ns.saturating_sub(from_ns);
        let count = (span_ns / STEP_NS_MIN).clamp(1, u64::from(at_most.max(1)));
        let step_ns = span_ns.div_ceil(count).max(STEP_NS_MIN);
        Self { from_ns, step_ns, count: usize::try_from(count).unwrap_or(1) }
    }

    /// The step of a time. Times before the first step and after the last belong to these.
    pub(crate) fn place(self, at_ns: u64) -> usize {
        let steps = at_ns.saturating_sub(self.from_ns) / self.step_ns;
        usize::try_from(steps).unwrap_or(usize::MAX).min(self.count - 1)
    }

    /// The beginning of a step.
    pub(crate) fn begin_ns(self, step: usize) -> u64 {
        self.from_ns.saturating_add(self.step_ns.saturating_mul(step as u64))
    }

    /// The step of a time; `None` outside.
    pub(crate) fn step(self, at_ns: u64) -> Option<usize> {
        let step = usize::try_from(at_ns.checked_sub(self.from_ns)? / self.step_ns).ok()?;
        (step < self.count).then_some(step)
    }

    pub(crate) fn end_ns(self) -> u64 {
        self.begin_ns(self.count)
    }

    /// How many requests were in flight on average in each step; `last_step` is that of an end. Steps
    /// that a flight fills are counted by where they begin and end, so that a long flight costs no more
    /// than a short one.
    pub(crate) fn in_flight(
        self,
        flights: impl Iterator<Item = Flight>,
        last_step: impl Fn(u64) -> usize,
    ) -> Vec<f64> {
        let mut filling = vec![0_i64; self.count + 1];
        let mut part_ns = vec![0_u128; self.count];
        for Flight { from_ns, to_ns } in flights {
            let (first, last) = (self.place(from_ns), last_step(to_ns));
            if first == last {
                part_ns[first] += u128::from(to_ns - from_ns);
                continue;
            }
            part_ns[first] += u128::from(self.begin_ns(first + 1) - from_ns);
            if let Some(part_ns) = part_ns.get_mut(last) {
                *part_ns += u128::from(to_ns - self.begin_ns(last));
            }
            filling[first + 1] += 1;
            filling[last] -= 1;
        }
        let mut filled = 0;
        let step = |(change, part_ns): (&i64, &u128)| {
            filled += change;
            filled as f64 + *part_ns as f64 / self.step_ns as f64
        };
        filling.iter().zip(&part_ns).map(step).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;
