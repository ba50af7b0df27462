//! What each request came to, in the order of time. Of few requests it is kept; of many it is computed
//! again from their records in each pass, and only a few bytes of each are kept.

use std::collections::VecDeque;
use std::ops::Range;

use inferometer_model::record::RequestedLengths;
use inferometer_model::records::TimeOrder;
use inferometer_model::{Moment, Observations, Outcome, RequestRecord, Spec};

use crate::judge::{Threshold, per_request_slos};
use crate::metric::{ByMetric, Distribution, Metric, PER_REQUEST};
use crate::record::{
    Basis, Clustered, Extremes, Flight, InputTokens, Output, OutputTokens, RequestLatencies, Ruler,
    Series,
};
use crate::steady::SteadyState;

/// What one request came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    pub(crate) asked: RequestedLengths,
    /// Which of the servers that requests are balanced over.
    pub(crate) server: u16,
    pub(crate) sent: Option<Moment>,
    pub(crate) left: Moment,
    pub(crate) ended: Moment,
    pub(crate) outcome: Outcome,
    /// Input tokens from the prefix cache, where the server says so.
    pub(crate) cached: Option<u64>,
    pub(crate) input: InputTokens,
    pub(crate) output: OutputTokens,
    /// Without those of a stream where none was asked for.
    pub(crate) latencies: RequestLatencies,
    /// Whether it is an answer that met every SLO about each request.
    pub(crate) meets_slos: bool,
}

impl Attempt {
    pub(crate) fn is_ok(&self) -> bool {
        self.outcome == Outcome::Ok
    }

    /// `None` when it was never sent, or ends before it begins.
    pub(crate) fn flight(&self) -> Option<Flight> {
        Flight::new(self.sent?, self.ended)
    }
}

/// Computes attempts from records.
#[derive(Clone, Debug)]
pub(crate) struct AttemptReader {
    pub(crate) streaming: bool,
    pub(crate) generates: bool,
    /// Servers that requests are balanced over.
    pub(crate) servers: usize,
    pub(crate) slos: Vec<(String, Threshold)>,
    pub(crate) ruler: Ruler,
    /// Output of the record that was read last.
    pub(crate) output: Output,
}

impl AttemptReader {
    pub(crate) fn new(observations: &Observations) -> Self {
        Self {
            streaming: observations.manifest.spec.workload.streaming,
            generates: observations.manifest.spec.api.generates(),
            servers: 1 + observations.manifest.spec.replicas.len(),
            slos: per_request_slos(observations),
            ruler: Ruler::from_observations(observations),
            output: Output::default(),
        }
    }

    pub(crate) fn read(&mut self, record: &RequestRecord) -> Attempt {
        let (ruler, output) = (&mut self.ruler, &mut self.output);
        output.read(record, ruler);
        let tokens = OutputTokens::count(record, output, self.generates);
        let latencies = RequestLatencies::measure(record, output, tokens, ruler);
        let latencies = if self.streaming { latencies } else { latencies.without_stream() };
        let is_ok = record.ending.outcome == Outcome::Ok;
        Attempt {
            asked: record.asked,
            server: u16::try_from(Spec::replica_of(self.servers, record.id, &record.asked))
                .unwrap_or(0),
            sent: record.sent,
            left: record.left(),
            ended: record.ending.at,
            outcome: record.ending.outcome,
            cached: record.usage.and_then(|usage| usage.cached_tokens),
            input: InputTokens::from_record(record),
            output: tokens,
            latencies,
            meets_slos: is_ok && self.slos.iter().all(|(_, slo)| latencies.meet(slo)),
        }
    }
}

/// All attempts of a run.
#[derive(Debug)]
pub(crate) struct Attempts<'run> {
    pub(crate) records: &'run TimeOrder<'run>,
    pub(crate) reader: AttemptReader,
    pub(crate) columns: Columns,
    /// `None` where there are too many.
    pub(crate) held: Option<Vec<Attempt>>,
    /// Whether the server reported anything of single requests.
    pub(crate) has_reports: bool,
}

impl Attempts<'_> {
    /// With more requests than these, attempts are computed anew in each pass.
    pub(crate) const HELD_MAX: usize = 100_000;

    /// As many as could be read in the first pass.
    pub(crate) fn len(&self) -> usize {
        self.columns.left_ns.len()
    }

    pub(crate) fn iter(&self) -> Box<dyn Iterator<Item = Attempt> + '_> {
        self.range(0..self.len())
    }

    /// Those at these positions.
    pub(crate) fn range(&self, positions: Range<usize>) -> Box<dyn Iterator<Item = Attempt> + '_> {
        if let Some(held) = &self.held {
            return Box::new(held[positions].iter().copied());
        }
        let mut reader = self.reader.clone();
        Box::new(self.records.range(positions).map(move |record| reader.read(&record)))
    }

    /// Whether any request can have a latency.
    fn shows(&self, metric: &Metric) -> bool {
        let is_hidden = metric.is_within_stream() && !self.reader.streaming;
        !is_hidden && (!metric.is_telemetry || self.has_reports)
    }

    /// Latencies of each request, in one pass; NaN where it has none.
    fn latencies(&self, metrics: &[&Metric]) -> VecDeque<Vec<f64>> {
        let mut columns: VecDeque<_> =
            metrics.iter().map(|_| Vec::with_capacity(self.len())).collect();
        for attempt in self.iter() {
            for (metric, values) in metrics.iter().zip(&mut columns) {
                values.push(attempt.latencies.get(metric).unwrap_or(f64::NAN));
            }
        }
        // A file that cannot be read any more ends early; whoever asked for the summary learns it.
        for values in &mut columns {
            values.resize(self.len(), f64::NAN);
        }
        columns
    }
}

/// Latencies that are gathered in one pass may take so much memory.
const GATHERED_BYTES_MAX: usize = 24 << 20;

/// What is kept of every request.
#[derive(Debug)]
pub(crate) struct Columns {
    /// In nanoseconds on the run's clock, rising.
    left_ns: Vec<u64>,
    ended_ns: Vec<u64>,
    flags: Vec<u8>,
}

/// What is kept of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief {
    pub(crate) left_ns: u64,
    pub(crate) ended_ns: u64,
    flags: u8,
}

const SENT: u8 = 1;
const OK: u8 = 1 << 1;
const FIRST_TURN: u8 = 1 << 2;
const MEETS_SLOS: u8 = 1 << 3;
const ABANDONED: u8 = 1 << 4;

impl Brief {
    pub(crate) fn is_ok(&self) -> bool {
        self.flags & OK != 0
    }

    /// Whether it is an `ok` answer to a request that was sent.
    pub(crate) fn is_answer(&self) -> bool {
        self.is_ok() && self.flags & SENT != 0
    }

    /// Whether it waited for no answer of its own conversation.
    pub(crate) fn is_first_turn(&self) -> bool {
        self.flags & FIRST_TURN != 0
    }

    pub(crate) fn sent(&self) -> Option<Moment> {
        (self.flags & SENT != 0).then(|| Moment::from_nanos(self.left_ns))
    }

    /// Whether the client ended it on purpose, so that no share counts it.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.flags & ABANDONED != 0
    }

    pub(crate) fn meets_slos(&self) -> bool {
        self.flags & MEETS_SLOS != 0
    }

    pub(crate) fn flight(&self) -> Option<Flight> {
        let is_flight = self.flags & SENT != 0 && self.left_ns <= self.ended_ns;
        is_flight.then_some(Flight { from_ns: self.left_ns, to_ns: self.ended_ns })
    }
}

impl Columns {
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self {
            left_ns: Vec::with_capacity(count),
            ended_ns: Vec::with_capacity(count),
            flags: Vec::with_capacity(count),
        }
    }

    pub(crate) fn push(&mut self, attempt: &Attempt) {
        self.left_ns.push(attempt.left.as_nanos());
        self.ended_ns.push(attempt.ended.as_nanos());
        let flag = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        self.flags.push(
            flag(SENT, attempt.sent.is_some())
                | flag(OK, attempt.is_ok())
                | flag(FIRST_TURN, attempt.asked.turn == 0)
                | flag(MEETS_SLOS, attempt.meets_slos)
                | flag(ABANDONED, attempt.outcome == Outcome::Abandoned),
        );
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Brief> + Clone {
        let times = self.left_ns.iter().zip(&self.ended_ns).zip(&self.flags);
        times.map(|((left_ns, ended_ns), flags)| Brief {
            left_ns: *left_ns,
            ended_ns: *ended_ns,
            flags: *flags,
        })
    }

    pub(crate) fn flights(&self) -> impl Iterator<Item = Flight> + Clone {
        self.iter().filter_map(|brief| brief.flight())
    }

    /// When the last request left that waited for no answer of its own conversation.
    pub(crate) fn last_first_turn_ns(&self) -> Option<u64> {
        let first_turns = self.iter().filter(Brief::is_first_turn);
        first_turns.filter_map(|request| request.sent()).map(Moment::as_nanos).max()
    }

    /// The requests that left in a stretch of time.
    pub(crate) fn left_within(&self, part: Flight) -> Range<usize> {
        let position = |ns: u64| self.left_ns.partition_point(|left_ns| *left_ns < ns);
        position(part.from_ns)..position(part.to_ns.saturating_add(1))
    }

    /// Requests that were sent and end before they begin.
    pub(crate) fn reversed(&self) -> u64 {
        let sent = self.iter().filter(|brief| brief.sent().is_some());
        sent.filter(|brief| brief.flight().is_none()).count() as u64
    }

    /// First sent to last ending, of requests that were sent.
    pub(crate) fn extremes(&self) -> Extremes {
        let mut extremes = Extremes::default();
        for brief in self.iter().filter(|brief| brief.flags & SENT != 0) {
            extremes.add(Moment::from_nanos(brief.left_ns), Moment::from_nanos(brief.ended_ns));
        }
        extremes
    }
}

/// The distributions of the latencies that have one value per request.
#[derive(Debug)]
pub(crate) struct LatencySeries(Vec<(&'static Metric, Option<Series>)>);

impl LatencySeries {
    /// Gathers the latencies, a few in each pass: over the run, over its steady window and over the part that
    /// its confidence intervals come from, which are then those of all three.
    pub(crate) fn gather(
        attempts: &Attempts<'_>,
        (steady, window): (&mut SteadyState, Option<Flight>),
        basis: Option<&mut Basis>,
    ) -> Self {
        let part = basis.as_ref().map(|basis| (basis.inside.clone(), basis.batches));
        let (mut whole, mut inside, mut settled) = (Vec::new(), Vec::new(), Vec::new());
        let mut shown = PER_REQUEST.into_iter().filter(|metric| attempts.shows(metric));
        let at_once = GATHERED_BYTES_MAX / (size_of::<f64>() * attempts.len().max(1));
        let mut gathered = VecDeque::new();
        for metric in PER_REQUEST {
            let mut values = if attempts.shows(metric) {
                if gathered.is_empty() {
                    let next: Vec<_> = shown.by_ref().take(at_once.max(1)).collect();
                    gathered = attempts.latencies(&next);
                }
                gathered.pop_front().unwrap_or_default()
            } else {
                vec![f64::NAN; attempts.len()]
            };
            if let Some((positions, batches)) = &part {
                let own = known(values[positions.clone()].iter().copied());
                let own = Clustered::one_each(own).distribution(Some(*batches));
                inside.extend(own.map(|own| (metric, own)));
            }
            let is_steady = metric.per_request().is_some_and(|it| it.in_steady_window);
            let mut curve = None;
            if let Some(window) = window.filter(|_| is_steady) {
                let is_inside = |at_ns: u64| (window.from_ns..window.to_ns).contains(&at_ns);
                let own = values.iter().zip(attempts.columns.iter());
                let own = own.filter(|(_, brief)| brief.is_answer() && is_inside(brief.left_ns));
                let own = known(own.map(|(value, _)| *value));
                let nothing = "no ok answer to a request sent in the window has it";
                let own = Clustered::one_each(own).series(None);
                let own = own.map_or((Err(nothing), None), |own| (own.found, Some(own.curve)));
                let found = own.0.unwrap_or_else(Distribution::nothing);
                settled.push((metric, found));
                curve = own.1;
            }
            values.retain(|value| !value.is_nan());
            let series = Clustered::one_each(values).series(None);
            // The chart shows what the headline is of.
            whole
                .push((metric, series.map(|it| Series { curve: curve.unwrap_or(it.curve), ..it })));
        }
        if let Some(figures) = &mut steady.figures {
            figures.latencies = settled.into_iter().collect();
        }
        if let Some(basis) = basis {
            basis.set_latencies(inside.into_iter().collect::<ByMetric<Distribution>>());
            for (metric, series) in &mut whole {
                let found = series.as_mut().map(|series| series.found.as_mut());
                if let (Some(Ok(found)), Some(inside)) = (found, basis.latencies.get(metric)) {
                    found.adopt(&inside.intervals);
                }
            }
        }
        Self(whole)
    }

    pub(crate) fn take(&mut self, metric: &Metric) -> Option<Series> {
        self.0.iter_mut().find(|(known, _)| *known == metric)?.1.take()
    }
}

/// Those that are not NaN. The list does not grow: while it is copied, there would be two of it.
fn known(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut known = Vec::with_capacity(values.size_hint().1.unwrap_or(0));
    known.extend(values.filter(|value| !value.is_nan()));
    known
}
