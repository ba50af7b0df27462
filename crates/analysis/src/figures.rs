//! What charts are drawn from: a bounded number of points, bins and rows, whatever the length of
//! the run. Pages never see records.

use std::collections::BTreeMap;

use inferometer_model::record::Read;
use inferometer_model::spec::LoadShape;
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::metric::{self, Metric};
use crate::record::{
    Arrival, Measured, Output, OutputTokens, Ruler, in_time_order, moment_to_ms, ns_to_ms, share,
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

/// Exact quantiles at shares that are denser towards the tail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DistributionFigure {
    /// The name of the metric, such as `ttft`.
    pub metric: String,
    pub n: u64,
    /// Shares and the values in milliseconds at or below which they lie, both rising.
    pub points: Vec<(f64, f64)>,
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
    let figure = |metric: &Metric| {
        let series = measured.series(metric);
        let n = series.found.as_ref().ok()?.n;
        let metric = metric.name.to_owned();
        Some(DistributionFigure { metric, n, points: series.curve.clone() })
    };
    drawn.into_iter().flatten().filter_map(figure).collect()
}

/// Columns of equal length, a value for each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CourseFigure {
    /// Of the first step's beginning, since the run's zero.
    pub from_ms: f64,
    pub step_ms: f64,
    /// Requests in flight, as a mean over the step.
    pub in_flight: Vec<f64>,
    /// Output tokens of ok answers that arrived in the step.
    pub output_tokens: Vec<u64>,
    /// Requests that ended in the step.
    pub ended_ok: Vec<u64>,
    pub ended_otherwise: Vec<u64>,
}

const STEPS_MAX: u32 = 200;

/// What grows while the records are read; `None` for a run without requests.
#[derive(Debug)]
pub(crate) struct CourseTally(Option<Tally>);

#[derive(Debug)]
struct Tally {
    steps: Steps,
    tokens_at: Cursor,
    /// Time in flight, in steps that a request does not fill.
    parts_ns: Vec<u128>,
    /// By how many more, or fewer, requests fill a step than filled the step before.
    filled: Vec<i64>,
    output_tokens: Vec<u64>,
    ended_ok: Vec<u64>,
    ended_otherwise: Vec<u64>,
}

impl CourseTally {
    pub(crate) fn new(observations: &Observations) -> Self {
        Self(Steps::over(observations.records.iter(), STEPS_MAX).map(Tally::new))
    }

    /// A request that ended in any way.
    pub(crate) fn add(&mut self, record: &RequestRecord) {
        if let Some(tally) = &mut self.0 {
            tally.add(record);
        }
    }

    /// The tokens of an answer that is ok.
    pub(crate) fn add_tokens(
        &mut self,
        record: &RequestRecord,
        output: &Output,
        tokens: OutputTokens,
    ) {
        if let Some(tally) = &mut self.0 {
            tally.add_tokens(record, output, tokens.count);
        }
    }

    pub(crate) fn finish(self) -> CourseFigure {
        self.0.map(Tally::finish).unwrap_or_default()
    }
}

impl Tally {
    fn new(steps: Steps) -> Self {
        Self {
            steps,
            tokens_at: Cursor::new(steps),
            parts_ns: vec![0; steps.count],
            filled: vec![0; steps.count],
            output_tokens: vec![0; steps.count],
            ended_ok: vec![0; steps.count],
            ended_otherwise: vec![0; steps.count],
        }
    }

    fn add(&mut self, record: &RequestRecord) {
        let ended_ns = record.ending.at.as_nanos();
        let last = self.steps.place(ended_ns);
        let ok = record.ending.outcome == Outcome::Ok;
        let ended = if ok { &mut self.ended_ok } else { &mut self.ended_otherwise };
        ended[last] += 1;
        let Some(sent_ns) = record.sent.map(Moment::as_nanos) else { return };
        // The record contradicts itself: there is no time in flight.
        let Some(in_flight_ns) = ended_ns.checked_sub(sent_ns) else { return };
        let first = self.steps.place(sent_ns);
        if first == last {
            self.parts_ns[first] += u128::from(in_flight_ns);
            return;
        }
        self.parts_ns[first] += u128::from(self.steps.begin_ns(first + 1) - sent_ns);
        self.parts_ns[last] += u128::from(ended_ns - self.steps.begin_ns(last));
        self.filled[first + 1] += 1;
        self.filled[last] -= 1;
    }

    /// In proportion to what the stream marks, or to its events where it marks nothing: all of the
    /// answer's tokens are somewhere, and so the steps add up to the run's.
    fn add_tokens(&mut self, record: &RequestRecord, output: &Output, count: u64) {
        let marked = output.marked_tokens().filter(|marked| 0 < *marked);
        let weight = |arrival: &Arrival| match (marked, arrival.tokens) {
            (Some(_), Some(tokens)) => tokens,
            _ => u64::from(arrival.events),
        };
        let whole = marked.unwrap_or_else(|| output.arrivals.iter().map(weight).sum());
        if whole == 0 {
            self.put(record.ending.at, count);
            return;
        }
        let mut through = 0;
        let mut given = 0;
        for arrival in &output.arrivals {
            through += weight(arrival);
            let due = if whole == count { through } else { share(count, through, whole) };
            self.put(arrival.at, due - given);
            given = due;
        }
    }

    fn put(&mut self, at: Moment, tokens: u64) {
        let step = &mut self.output_tokens[self.tokens_at.place(at)];
        *step = step.saturating_add(tokens);
    }

    fn finish(self) -> CourseFigure {
        let step_ns = self.steps.step_ns as f64;
        let mut whole = 0;
        let in_flight = self.parts_ns.iter().zip(&self.filled).map(|(part_ns, more)| {
            whole += more;
            whole as f64 + *part_ns as f64 / step_ns
        });
        CourseFigure {
            from_ms: self.steps.begin_ms(),
            step_ms: self.steps.step_ms(),
            in_flight: in_flight.collect(),
            output_tokens: self.output_tokens,
            ended_ok: self.ended_ok,
            ended_otherwise: self.ended_otherwise,
        }
    }
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

/// Of a sample of `n` values; rising.
fn shares(n: u64) -> Vec<f64> {
    let mut shares = vec![0.0, 1.0];
    if n <= WHOLE_UP_TO {
        shares.extend((1..n.max(1)).map(|rank| rank as f64 / (n - 1) as f64));
    } else {
        shares.extend((1..=BODY).map(|twentieth| f64::from(twentieth) / 20.0));
        shares.extend(tail(n));
    }
    shares.extend(Percentile::ALL.into_iter().filter(|at| at.fewest() <= n).map(share_of));
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

fn share_of(percentile: Percentile) -> f64 {
    percentile.probability().share()
}

impl Percentile {
    /// The fewest values of which one lies above the percentile.
    const fn fewest(self) -> u64 {
        match self {
            Self::P50 => 2,
            Self::P90 => 10,
            Self::P95 => 20,
            Self::P99 => 100,
            Self::P999 => 1_000,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GapsFigure {
    /// `itl` where tokens can be told apart, else `icl`.
    pub metric: String,
    pub from_ms: f64,
    pub step_ms: f64,
    /// Of the rows, in milliseconds, rising evenly on a logarithmic axis; one more than rows. A gap
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

/// In which step each value of a list lies, in runs of equal ones: the values of a request follow
/// each other in time, so there are few.
#[derive(Debug)]
pub(crate) struct GapSteps {
    /// `None` without requests.
    cursor: Option<Cursor>,
    runs: Vec<(usize, usize)>,
}

impl GapSteps {
    pub(crate) fn new(records: &[&RequestRecord]) -> Self {
        let steps = Steps::over(records.iter().copied(), GAP_STEPS_MAX);
        Self { cursor: steps.map(Cursor::new), runs: Vec::new() }
    }

    /// The next value of the list is of a gap that ends at `at`.
    pub(crate) fn push(&mut self, at: Moment) {
        let Some(cursor) = &mut self.cursor else { return };
        let step = cursor.place(at);
        match self.runs.last_mut() {
            Some((last, length)) if *last == step => *length += 1,
            _ => self.runs.push((step, 1)),
        }
    }

    /// Of values in the order in which they were pushed, and the measurements that each stands for;
    /// no counts where each stands for one. `None` without values.
    pub(crate) fn figure(
        self,
        metric: &Metric,
        (values, counts): (&[f64], &[u64]),
    ) -> Option<GapsFigure> {
        let steps = self.cursor?.steps;
        let rows = Rows::over(values)?;
        let mut columns = vec![vec![0_u64; rows.count()]; steps.count];
        let mut from = 0;
        for (step, length) in self.runs {
            let range = from..from + length;
            from = range.end;
            let column = &mut columns[step];
            let here = &values[range.clone()];
            if counts.is_empty() {
                for value in here {
                    column[rows.place(*value)] += 1;
                }
            } else {
                for (value, count) in here.iter().zip(&counts[range]) {
                    let row = &mut column[rows.place(*value)];
                    *row = row.saturating_add(*count);
                }
            }
        }
        Some(GapsFigure {
            metric: metric.name.to_owned(),
            from_ms: steps.begin_ms(),
            step_ms: steps.step_ms(),
            edges_ms: rows.edges,
            columns,
        })
    }
}

/// Rows of equal height on a logarithmic axis. The row of a value is looked up by the first bits of
/// the value, which cut the axis finer than the rows do.
#[derive(Debug)]
struct Rows {
    edges: Vec<f64>,
    first_key: u64,
    row_of_key: Vec<u8>,
}

/// Leaves seven bits of the fraction: slices of less than a hundredth, so at most one edge is in each.
const KEY_SHIFT: u32 = 45;

impl Rows {
    fn over(values: &[f64]) -> Option<Self> {
        let least = |one: f64, other: &f64| one.min(*other);
        let (first, others) = values.split_first()?;
        let low = others.iter().fold(*first, least).max(EDGE_MS_MIN);
        let high = others.iter().fold(*first, |one, other| one.max(*other)).max(low);
        Some(Self::with_edges(edges(low, high)))
    }

    fn with_edges(edges: Vec<f64>) -> Self {
        let first_key = key(edges[0]);
        let last_key = key(edges[edges.len() - 1]);
        let mut row = 0;
        let row_of_key = (first_key..=last_key)
            .map(|key| {
                // The last edge closes a row and opens none.
                while usize::from(row) + 2 < edges.len()
                    && edges[usize::from(row) + 1] <= f64::from_bits(key << KEY_SHIFT)
                {
                    row += 1;
                }
                row
            })
            .collect();
        Self { edges, first_key, row_of_key }
    }

    fn count(&self) -> usize {
        self.edges.len() - 1
    }

    fn place(&self, value: f64) -> usize {
        if value < self.edges[0] {
            return 0;
        }
        let slice = usize::try_from(key(value) - self.first_key).unwrap_or(usize::MAX);
        let row = usize::from(self.row_of_key[slice.min(self.row_of_key.len() - 1)]);
        (row + usize::from(self.edges[row + 1] <= value)).min(self.count() - 1)
    }
}

/// Of a value above zero. Rises with it.
fn key(value: f64) -> u64 {
    value.to_bits() >> KEY_SHIFT
}

/// As many rows as fit, from `low` to `high`; one row around them where they are too close for it.
fn edges(low: f64, high: f64) -> Vec<f64> {
    let (from, to) = (libm::log(low), libm::log(high));
    let thinnest = libm::log(ROW_RATIO_MIN);
    if to - from <= thinnest {
        let half = libm::sqrt(ROW_RATIO_MIN);
        return vec![low / half, high * half];
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
    let fitting = ((to - from) / thinnest).min(f64::from(GAP_ROWS_MAX)) as u32;
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
    /// Null where it never left, as when no connection was made.
    pub sent_ms: Option<f64>,
    /// Null where no token came, or the answer came whole.
    pub first_ms: Option<f64>,
    pub ended_ms: f64,
    /// Null where nothing says how many came.
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
        let records = in_time_order(observations);
        let spec = &observations.manifest.spec;
        let drawing =
            Drawing { streaming: spec.workload.streaming, generates: spec.api.generates() };
        let rows = drawing.choice(&records).into_iter();
        Self {
            rows: rows.map(|(place, why)| drawing.row(records[place], why)).collect(),
            of: records.len() as u64,
        }
    }
}

struct Drawing {
    streaming: bool,
    generates: bool,
}

impl Drawing {
    /// Places among the records, in their order, and why each was chosen.
    fn choice(&self, records: &[&RequestRecord]) -> BTreeMap<usize, RowReason> {
        let mut chosen = BTreeMap::new();
        chosen.extend(failed(records).into_iter().map(|place| (place, RowReason::Failed)));
        let slowest = |latency: &dyn Fn(&RequestRecord) -> Option<u64>, count| {
            slowest(records, latency, count).into_iter().map(|place| (place, RowReason::Slowest))
        };
        chosen.extend(slowest(&e2e_ns, SLOWEST_E2E));
        chosen.extend(slowest(&|record| self.ttft_ns(record), SLOWEST_TTFT));
        let others: Vec<usize> =
            (0..records.len()).filter(|place| !chosen.contains_key(place)).collect();
        let room = ROWS_MAX - chosen.len();
        chosen.extend(evenly(&others, room).map(|place| (place, RowReason::Sample)));
        chosen
    }

    /// When the first output came, where that is to be seen.
    fn first(&self, record: &RequestRecord) -> Option<Moment> {
        let streamed = self.streaming && record.head.is_none_or(|head| head.streamed);
        arrivals(record).next().filter(|_| streamed)
    }

    fn ttft_ns(&self, record: &RequestRecord) -> Option<u64> {
        self.first(record)?.as_nanos().checked_sub(record.sent?.as_nanos())
    }

    fn row(&self, record: &RequestRecord, why: RowReason) -> RequestRow {
        let mut output = Output::default();
        output.read(record, &mut Ruler::new(0));
        let said = 0 < output.events || record.usage.is_some_and(|u| u.completion_tokens.is_some());
        let counted = || OutputTokens::from_record(record, &output).count;
        RequestRow {
            id: record.id.0,
            why,
            outcome: record.ending.outcome,
            intended_ms: moment_to_ms(record.intended),
            sent_ms: record.sent.map(moment_to_ms),
            first_ms: self.first(record).map(moment_to_ms),
            ended_ms: moment_to_ms(record.ending.at),
            output_tokens: (self.generates && said).then(counted),
        }
    }
}

/// When the output events of a request came.
fn arrivals(record: &RequestRecord) -> impl DoubleEndedIterator<Item = Moment> {
    let output = record.events.iter().filter(|event| event.is_output());
    output.filter_map(|event| record.reads.get(event.read as usize).map(Read::at))
}

fn e2e_ns(record: &RequestRecord) -> Option<u64> {
    arrivals(record).next_back()?.as_nanos().checked_sub(record.sent?.as_nanos())
}

/// The slowest of the ok ones, by a latency; of equally slow ones the first.
fn slowest(
    records: &[&RequestRecord],
    latency: impl Fn(&RequestRecord) -> Option<u64>,
    count: usize,
) -> Vec<usize> {
    let ok = |record: &RequestRecord| record.ending.outcome == Outcome::Ok;
    let mut ranked: Vec<(u64, usize)> = (0..records.len())
        .filter(|place| ok(records[*place]))
        .filter_map(|place| Some((latency(records[place])?, place)))
        .collect();
    ranked.sort_unstable_by_key(|(latency, place)| (std::cmp::Reverse(*latency), *place));
    ranked.into_iter().take(count).map(|(_, place)| place).collect()
}

/// Some of each way to fail, evenly spread over the run: a rare way is not crowded out by a common
/// one.
fn failed(records: &[&RequestRecord]) -> Vec<usize> {
    let mut by_outcome: BTreeMap<Outcome, Vec<usize>> = BTreeMap::new();
    for (place, record) in records.iter().enumerate() {
        if record.ending.outcome != Outcome::Ok {
            by_outcome.entry(record.ending.outcome).or_default().push(place);
        }
    }
    let mut smallest_first: Vec<Vec<usize>> = by_outcome.into_values().collect();
    smallest_first.sort_by_key(Vec::len);
    let mut room = FAILED_MAX;
    let mut left = smallest_first.len();
    let mut chosen = Vec::new();
    for places in smallest_first {
        let share = places.len().min(room.div_ceil(left));
        chosen.extend(evenly(&places, share));
        room -= share;
        left -= 1;
    }
    chosen
}

/// At most so many of the places, each from the middle of an equal stretch of them.
fn evenly(places: &[usize], count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(places.len());
    (0..count).map(move |part| places[(2 * part + 1) * places.len() / (2 * count)])
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
    /// From the first request that was sent, or let go and never sent, to the last end; `None`
    /// without requests.
    pub(crate) fn over<'run>(
        records: impl Iterator<Item = &'run RequestRecord>,
        at_most: u32,
    ) -> Option<Self> {
        let spans =
            records.map(|record| (record.sent.unwrap_or(record.admitted), record.ending.at));
        let whole = |(from, to): (Moment, Moment), (left, ended): (Moment, Moment)| {
            (from.min(left), to.max(ended))
        };
        let (from, to) = spans.reduce(whole)?;
        Some(Self::between(from.as_nanos(), to.as_nanos(), at_most))
    }

    fn between(from_ns: u64, to_ns: u64, at_most: u32) -> Self {
        let span_ns = to_ns.saturating_sub(from_ns);
        let count = (span_ns / STEP_NS_MIN).clamp(1, u64::from(at_most.max(1)));
        let step_ns = span_ns.div_ceil(count).max(STEP_NS_MIN);
        Self { from_ns, step_ns, count: usize::try_from(count).unwrap_or(1) }
    }

    /// Moments before the first step and after the last belong to them.
    pub(crate) fn place(self, at_ns: u64) -> usize {
        let steps = at_ns.saturating_sub(self.from_ns) / self.step_ns;
        usize::try_from(steps).unwrap_or(usize::MAX).min(self.count - 1)
    }

    /// Where a step begins.
    pub(crate) fn begin_ns(self, step: usize) -> u64 {
        self.from_ns.saturating_add(self.step_ns.saturating_mul(step as u64))
    }

    pub(crate) fn begin_ms(self) -> f64 {
        ns_to_ms(self.from_ns)
    }

    pub(crate) fn step_ms(self) -> f64 {
        ns_to_ms(self.step_ns)
    }
}

/// Finds the steps of moments that mostly follow each other: tokens are many, and a division for
/// each would be felt.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    pub(crate) steps: Steps,
    step: usize,
    begin_ns: u64,
    end_ns: u64,
}

impl Cursor {
    pub(crate) fn new(steps: Steps) -> Self {
        Self { steps, step: 0, begin_ns: steps.begin_ns(0), end_ns: steps.begin_ns(1) }
    }

    pub(crate) fn place(&mut self, at: Moment) -> usize {
        let at_ns = at.as_nanos();
        if at_ns < self.begin_ns || self.end_ns <= at_ns {
            self.step = self.steps.place(at_ns);
            self.begin_ns = self.steps.begin_ns(self.step);
            self.end_ns = self.steps.begin_ns(self.step + 1);
        }
        self.step
    }
}

#[cfg(test)]
pub(crate) mod tests;
