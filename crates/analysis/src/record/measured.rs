//! The pass over the records: everything that metrics and warnings are made of. What is gathered for
//! each event, and not for each request, has a pass of its own (`series.rs`).

use inferometer_model::observations::Manifest;
use inferometer_model::spec::LoadShape;
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};

use crate::audit::Audit;
use crate::definitions::vllm;
use crate::figures::{CourseFigure, CourseTally, GapsFigure};
use crate::judge::{RequestSlo, RequestSlos, Threshold, due_requests, per_request_slos};
use crate::littles_law::LittlesLaw;
use crate::machines::MachineFigures;
use crate::metric::{
    self, Distribution, Latency, METRICS, Metric, Missing, NOTHING_OK, Note, Visible,
};
use crate::offered_load::Delivered;
use crate::record::{
    Anomalies, Basis, Clustered, Concurrency, Extremes, Flight, Fluidity, FluidityTally, Gaps,
    InputTokens, NO_TOKENS, Output, OutputTokens, PartFigures, RequestLatencies, RequestRates,
    Ruler, RunIntervals, Series, Tokens, TurnFigures, Widths, Withheld, busiest_second, client_lag,
    deliveries, group_figures,
};
use crate::server::{CounterFigures, ServerSide};
use crate::steady::{Course, SteadyState};

#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) shape: LoadShape,
    /// Whether answers are made of tokens.
    pub(crate) generates: bool,
    pub(crate) streaming: bool,
    pub(crate) attempted: u64,
    pub(crate) ok: u64,
    pub(crate) tokens: Tokens,
    /// First sent to last ending, of requests that were sent.
    pub(crate) extremes: Extremes,
    pub(crate) concurrency: Option<Concurrency>,
    pub(crate) busiest_second: Option<u128>,
    /// Input tokens of the requests that have a TTFT.
    pub(crate) prefilled: u128,
    /// Every latency of the table.
    series: Vec<(&'static Metric, Series)>,
    /// How far back events may really lie, counted once for each event.
    pub(crate) event_width: Option<Distribution>,
    pub(crate) audit: Audit,
    /// `None` when nothing was promised of each request.
    pub(crate) request_slos: Option<RequestSlos>,
    pub(crate) fluidity: Fluidity,
    /// Confidence intervals of the single numbers.
    pub(crate) intervals: RunIntervals,
    /// Why there are no confidence intervals but those of shares.
    pub(crate) intervals_withheld: Option<Withheld>,
    pub(crate) turns: Vec<TurnFigures>,
    pub(crate) parts: Vec<PartFigures>,
    pub(crate) anomalies: Anomalies,
    pub(crate) request_rates: RequestRates,
    pub(crate) vllm: vllm::VllmResult,
    /// What the server said of itself, or why it said nothing.
    pub(crate) server: Result<ServerSide, String>,
    pub(crate) machines: MachineFigures,
    /// Energy of the server's GPUs over the window.
    pub(crate) energy_j: Result<f64, Missing>,
    /// Of the whole server.
    pub(crate) price_per_hour: Result<f64, Missing>,
    /// Distances between moments that made no sense.
    pub(crate) out_of_order: u64,
    pub(crate) steady: SteadyState,
    pub(crate) delivered: Delivered,
    pub(crate) littles_law: LittlesLaw,
    pub(crate) course: CourseFigure,
    pub(crate) gaps: Option<GapsFigure>,
}

impl Measured {
    /// Reads the records of a run once, in the order of time.
    pub(crate) fn from_observations(observations: &Observations) -> Self {
        let records = in_time_order(observations);
        let mut pass = Pass::new(observations);
        let attempts: Vec<Attempt<'_>> = records.iter().map(|record| pass.add(record)).collect();
        pass.finish(observations, &records, &attempts)
    }

    /// The values of a latency.
    ///
    /// # Panics
    ///
    /// Never: every latency of the table is measured.
    pub(crate) fn series(&self, metric: &Metric) -> &Series {
        let found = self.series.iter().find(|(known, _)| *known == metric);
        &found.expect("every latency of the table is measured").1
    }
}

pub(crate) const NOT_STREAMED: Missing =
    Missing("the answers were not streamed, so only their end is seen");
const ITL_UNKNOWN: Missing =
    Missing("the server does not say how many tokens each event carries; ICL is given instead");

/// Requests in the order in which they left: what they measured is judged as a series.
pub(crate) fn in_time_order(observations: &Observations) -> Vec<&RequestRecord> {
    let mut records: Vec<&RequestRecord> = observations.records.iter().collect();
    records.sort_unstable_by_key(|record| (record.sent.unwrap_or(record.admitted), record.id));
    records
}

/// What one request came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'run> {
    pub(crate) record: &'run RequestRecord,
    pub(crate) input: InputTokens,
    pub(crate) output: OutputTokens,
    /// When the first output came, if any did: then the input has been worked on.
    pub(crate) first: Option<Moment>,
    /// Without those of a stream where none was asked for.
    pub(crate) latencies: RequestLatencies,
    /// Whether it is an answer that met every SLO about each request.
    pub(crate) meets_slos: bool,
}

impl Attempt<'_> {
    pub(crate) fn is_ok(&self) -> bool {
        self.record.ending.outcome == Outcome::Ok
    }
}

/// What grows while the records are read: all that needs the events of a request.
struct Pass<'run> {
    manifest: &'run Manifest,
    streaming: bool,
    generates: bool,
    slos: Vec<(String, Threshold)>,
    ruler: Ruler,
    output: Output,
    widths: Widths,
    tpot_assumed: bool,
    tokens: Tokens,
    course: CourseTally,
    fluidity: FluidityTally,
    anomalies: Anomalies,
    vllm: vllm::Pass,
}

impl<'run> Pass<'run> {
    fn new(observations: &'run Observations) -> Self {
        Self {
            manifest: &observations.manifest,
            streaming: observations.manifest.spec.workload.streaming,
            generates: observations.manifest.spec.api.generates(),
            slos: per_request_slos(observations),
            ruler: Ruler::from_observations(observations),
            output: Output::default(),
            widths: Widths::default(),
            tpot_assumed: false,
            tokens: Tokens::default(),
            course: CourseTally::new(observations),
            fluidity: FluidityTally::new(observations),
            anomalies: Anomalies::default(),
            vllm: vllm::Pass::new(observations),
        }
    }

    fn add(&mut self, record: &'run RequestRecord) -> Attempt<'run> {
        let (ruler, output) = (&mut self.ruler, &mut self.output);
        output.read(record, ruler);
        let tokens = OutputTokens::count(record, output, self.generates);
        let latencies = RequestLatencies::measure(record, output, tokens, ruler);
        self.tokens.add(record, output, tokens);
        self.anomalies.add_attempt(record);
        self.vllm.add_attempt(record);
        self.course.add(record);
        self.fluidity.add(record, output, tokens);
        let is_ok = record.ending.outcome == Outcome::Ok;
        if is_ok {
            self.course.add_tokens(record, output, tokens.count);
            self.widths.add_ok(record, output, ruler);
            self.tpot_assumed |= latencies.tpot_assumed;
            self.vllm.add_ok(record, tokens.count);
            self.anomalies.add_ok(self.manifest, record, output, tokens);
        }
        let latencies = if self.streaming { latencies } else { latencies.without_stream() };
        if let Some(ttft) = latencies.get(&metric::TTFT).filter(|_| is_ok) {
            self.course.add_ttft(record, ttft);
        }
        Attempt {
            record,
            input: InputTokens::from_record(record),
            output: tokens,
            first: output.arrivals.first().map(|arrival| arrival.at),
            latencies,
            meets_slos: is_ok && self.slos.iter().all(|(_, slo)| latencies.meet(slo)),
        }
    }

    /// Every latency of the table: those of single requests from their lists, and those that pool
    /// several values of each request.
    fn series(
        &self,
        attempts: &[Attempt<'_>],
        gaps: &Gaps,
        client_lag: Option<Series>,
        basis: Option<&Basis>,
    ) -> Vec<(&'static Metric, Series)> {
        let has_answer = attempts.iter().any(Attempt::is_ok);
        let batches = basis.map(|basis| basis.batches);
        let mut pooled = [
            (&metric::ICL, gaps.icl.clone()),
            (&metric::ITL, gaps.itl.clone()),
            (&metric::CLIENT_LAG, client_lag),
            (&metric::ARRIVAL_WIDTH, self.widths.arrivals.series(batches)),
        ];
        let mut found = Vec::new();
        for metric in METRICS.iter().copied() {
            let Some(Latency { visible, absent, value, .. }) = metric.latency() else { continue };
            let series = if value.is_some() {
                let values = attempts.iter().filter_map(|attempt| attempt.latencies.get(metric));
                let mut series = Clustered::one_each(values.collect()).series(None);
                let inside = basis.and_then(|basis| basis.latencies.get(metric));
                if let (Some(Ok(found)), Some(inside)) =
                    (series.as_mut().map(|series| series.found.as_mut()), inside)
                {
                    found.adopt(&inside.intervals);
                }
                series
            } else {
                pooled.iter_mut().find(|one| one.0 == metric).and_then(|one| one.1.take())
            };
            let is_hidden = *visible == Visible::InStreams && !self.streaming;
            let missing = match visible {
                Visible::OnAnswers | Visible::InStreams if !has_answer => NOTHING_OK,
                Visible::InStreams if is_hidden => NOT_STREAMED,
                _ if *metric == metric::ITL && gaps.itl_unknown => ITL_UNKNOWN,
                Visible::OnRequests | Visible::OnAnswers | Visible::InStreams => *absent,
            };
            let absent = Series { found: Err(missing), curve: Vec::new() };
            let mut series = series.filter(|_| !is_hidden).unwrap_or(absent);
            if let Ok(distribution) = &mut series.found
                && *metric == metric::TPOT
                && self.tpot_assumed
            {
                distribution.note = Some(Note::FirstArrivalAssumed);
            }
            found.push((metric, series));
        }
        found
    }

    fn finish(
        mut self,
        observations: &Observations,
        records: &[&RequestRecord],
        attempts: &[Attempt<'_>],
    ) -> Measured {
        let sent = || attempts.iter().filter_map(|attempt| Some((attempt.record.sent?, attempt)));
        let ok_answers = attempts.iter().filter(|attempt| attempt.is_ok());
        let (attempted, ok) = (attempts.len() as u64, ok_answers.clone().count() as u64);
        let mut extremes = Extremes::default();
        sent().for_each(|(sent, attempt)| extremes.add(sent, attempt.record.ending.at));
        let flights: Vec<Flight> =
            attempts.iter().filter_map(|attempt| Flight::from_record(attempt.record)).collect();
        self.ruler.out_of_order += (sent().count() - flights.len()) as u64;
        let deliveries = deliveries(records, self.generates);
        let first_turns = sent().filter(|(_, attempt)| attempt.record.asked.turn == 0);
        let answers = sent().filter(|(_, attempt)| attempt.is_ok());
        let course = Course {
            flights: &flights,
            last_first_turn_ns: first_turns.map(|(sent, _)| sent.as_nanos()).max(),
            answers: answers.map(|(sent, attempt)| (sent.as_nanos(), attempt)).collect(),
            deliveries: &deliveries,
            generates: self.generates,
            has_slos: !self.slos.is_empty(),
        };
        let mut steady = SteadyState::detect(&self.manifest.spec.load.shape, &course);
        let basis = Basis::find(observations, &steady, &course, attempts);
        let known = basis.as_ref().ok();
        let batches = known.map(|basis| basis.batches);
        let gaps = Gaps::gather(records, &mut self.ruler, batches);
        let client_lag = client_lag(records, &mut self.ruler, batches);
        let series = self.series(attempts, &gaps, client_lag, known);
        let (turns, parts) = group_figures(&self.manifest.spec.workload.source, attempts);
        let prefilled = ok_answers.filter(|it| it.latencies.get(&metric::TTFT).is_some());
        let unsent = due_requests(observations).saturating_sub(attempted);
        let intervals = RunIntervals::from_attempts(attempts, known, unsent);
        steady.adopt(&intervals, known);
        let all_ok = 0 < ok && ok == attempted;
        let server = ServerSide::from_observations(observations, &self.tokens, extremes, all_ok);
        let written = (self.generates && 0 < ok).then_some(self.tokens.output_total);
        let (machines, energy_j) =
            MachineFigures::from_observations(observations, extremes, written);
        Measured {
            steady,
            delivered: Delivered::from_observations(observations),
            littles_law: LittlesLaw::from_observations(observations, server.as_ref().ok()),
            shape: self.manifest.spec.load.shape.clone(),
            generates: self.generates,
            streaming: self.streaming,
            attempted,
            ok,
            extremes,
            concurrency: Concurrency::sweep(&flights),
            busiest_second: busiest_second(deliveries),
            prefilled: prefilled.map(|attempt| u128::from(attempt.input.count)).sum(),
            series,
            event_width: self.widths.by_event(),
            audit: Audit::from_attempts(attempts, self.generates),
            request_slos: RequestSlos::from_attempts(observations, &self.slos, attempts),
            fluidity: self.fluidity.finish(unsent),
            intervals,
            turns,
            parts,
            anomalies: self.anomalies,
            request_rates: RequestRates::from_attempts(attempts, known),
            vllm: self.vllm.finish(observations, &self.tokens, (attempted, ok)),
            server,
            machines,
            energy_j,
            price_per_hour: price_per_hour(self.manifest),
            out_of_order: self.ruler.out_of_order,
            course: self.course.finish(&flights),
            gaps: gaps.figure.filter(|_| self.streaming),
            intervals_withheld: basis.err(),
            tokens: self.tokens,
        }
    }
}

/// The price of an hour of the server, or why it is not known.
fn price_per_hour(manifest: &Manifest) -> Result<f64, Missing> {
    let price = manifest.spec.price.ok_or(Missing("the server has no price (--price)"))?;
    let gpus = manifest.server.as_ref().and_then(|server| server.gpus_used);
    let unknown = Missing("the number of the server's GPUs is not known, or its time has no price");
    price.per_server_hour(gpus).ok_or(unknown)
}

/// What the formulas of several metrics share.
impl Measured {
    pub(crate) fn per_second(&self, count: f64) -> Result<f64, Missing> {
        if self.ok == 0 {
            return Err(NOTHING_OK);
        }
        Ok(count / self.extremes.duration_s().ok_or(NO_TIME)?)
    }

    pub(crate) fn generated(&self) -> Result<(), Missing> {
        if self.generates { Ok(()) } else { Err(NO_TOKENS) }
    }

    pub(crate) fn output_throughput(&self) -> Result<f64, Missing> {
        self.generated()?;
        self.per_second(self.tokens.output_total as f64)
    }

    pub(crate) fn output_tokens(&self) -> Result<f64, Missing> {
        self.generated()?;
        match self.tokens.output_total {
            _ if self.ok == 0 => Err(NOTHING_OK),
            0 => Err(Missing("no ok answer carried output")),
            tokens => Ok(tokens as f64),
        }
    }

    /// The SLOs about each request. What no answer could show was neither met nor missed.
    pub(crate) fn kept_slos(&self) -> Result<&RequestSlos, Missing> {
        let no_slo = Missing("no SLO was set for each request");
        let slos = self.request_slos.as_ref().ok_or(no_slo)?;
        slos.promises.iter().find_map(|slo| self.unseen(slo)).map_or(Ok(slos), Err)
    }

    /// Why no `ok` answer shows what an SLO is about, if that is so. An SLO that was met without a
    /// value was met by answers that had nothing to miss it with.
    pub(crate) fn unseen(&self, slo: &RequestSlo) -> Option<Missing> {
        if self.ok == 0 || 0 < slo.met {
            return None;
        }
        self.series(Metric::named(&slo.metric)?).found.as_ref().err().copied()
    }

    pub(crate) fn server_rate(
        &self,
        counter: fn(&ServerSide) -> Option<CounterFigures>,
    ) -> Result<f64, Missing> {
        let no_metrics = Missing("nothing is known of the server's metrics");
        let server = self.server.as_ref().map_err(|_| no_metrics)?;
        let unknown = Missing("the server's counter is not known before and after the run");
        counter(server).and_then(|found| found.per_s).ok_or(unknown)
    }
}

pub(crate) const NO_TIME: Missing = Missing("the window has no length");
