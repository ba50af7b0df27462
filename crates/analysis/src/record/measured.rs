//! The passes over the records: everything that metrics and warnings are made of. The first one gathers
//! what is small. Every list with a value for each request, or for each event (`series.rs`), has a pass
//! of its own and is dropped after its use, so that a run of millions of requests needs little memory.

use std::collections::BTreeMap;

use inferometer_model::observations::Manifest;
use inferometer_model::records::TimeOrder;
use inferometer_model::spec::LoadShape;
use inferometer_model::{Moment, Observations, Outcome, RequestRecord};

use crate::answers::{AnswerFigures, AnswerTally};
use crate::audit::{Audit, AuditTally};
use crate::definitions::vllm;
use crate::figures::{CourseFigure, CourseTally, Curve, GapsFigure, Steps};
use crate::judge::{RequestSlo, RequestSlos, due_requests};
use crate::littles_law::LittlesLaw;
use crate::machines::MachineFigures;
use crate::metric::{
    self, Distribution, Latency, METRICS, Metric, Missing, NOTHING_OK, Note, Visible,
};
use crate::offered_load::Delivered;
use crate::record::{
    Anomalies, Attempt, AttemptReader, Attempts, Basis, Columns, Concurrency, Extremes,
    FailureGroup, FailureTally, Fluidity, FluidityTally, Gaps, GroupTallies, LatencySeries,
    NO_TOKENS, PartFigures, RequestRates, RunIntervals, Series, Tokens, TurnFigures, Widths,
    Withheld, busiest_second, client_lag, count_finish_reasons, deliveries, most_frequent,
};
use crate::reports::{ReportFigures, ReportTally};
use crate::server::{CounterFigures, ServerSide};
use crate::steady::{Course, SteadyState, Talks};

#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) shape: LoadShape,
    /// Whether answers are made of tokens.
    pub(crate) generates: bool,
    pub(crate) streaming: bool,
    pub(crate) attempted: u64,
    pub(crate) ok: u64,
    /// How many requests ended in each outcome, zeroes included.
    pub(crate) outcomes: BTreeMap<Outcome, u64>,
    /// The groups with the most requests, and how many requests are in the groups left out.
    pub(crate) failures: (Vec<FailureGroup>, u64),
    /// How often each finish reason came, one per choice.
    pub(crate) finish_reasons: BTreeMap<String, u64>,
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
    pub(crate) urls: Vec<PartFigures>,
    pub(crate) anomalies: Anomalies,
    pub(crate) request_rates: RequestRates,
    pub(crate) vllm: vllm::VllmResult,
    /// What the server said of itself, or why it said nothing.
    pub(crate) server: Result<ServerSide, String>,
    /// What the server said of single requests; `None` where it said nothing.
    pub(crate) reports: Option<ReportFigures>,
    /// How answers were judged; `None` where nothing was demanded of them.
    pub(crate) answers: Option<AnswerFigures>,
    pub(crate) machines: MachineFigures,
    /// Energy of the server's GPUs over the window.
    pub(crate) energy_j: Result<f64, Missing>,
    /// Price of the whole server.
    pub(crate) price_per_hour: Result<f64, Missing>,
    /// Distances between moments that made no sense.
    pub(crate) out_of_order: u64,
    pub(crate) steady: SteadyState,
    pub(crate) delivered: Delivered,
    pub(crate) littles_law: LittlesLaw,
    pub(crate) course: CourseFigure,
    pub(crate) gaps: Option<GapsFigure>,
    pub(crate) talks: Talks,
}

impl Measured {
    /// Reads the records of a run in the order of time.
    pub(crate) fn from_observations(observations: &Observations) -> Self {
        Self::gather(observations, Attempts::HELD_MAX)
    }

    /// With the attempts held in memory if there are no more than this.
    pub(crate) fn gather(observations: &Observations, held_max: usize) -> Self {
        // It has lists of its own: nothing else is held yet.
        let delivered = Delivered::from_observations(observations);
        let records = observations.records.in_time_order();
        let mut pass = Pass::new(observations, &records);
        let mut columns = Columns::with_capacity(records.len());
        let mut held = (records.len() <= held_max).then(|| Vec::with_capacity(records.len()));
        for record in &records {
            let attempt = pass.add(&record);
            columns.push(&attempt);
            if let Some(held) = &mut held {
                held.push(attempt);
            }
        }
        let reader = AttemptReader::new(observations);
        let has_reports = pass.reports.has_reports();
        let attempts = Attempts { records: &records, reader, columns, held, has_reports };
        let talks = Talks::from_observations(observations, &attempts.columns);
        pass.finish(observations, &attempts, (delivered, talks))
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

pub(crate) const NOT_STREAMED: Missing = "the answers were not streamed, so only their end is seen";
const ITL_UNKNOWN: Missing =
    "the server does not say how many tokens each event carries; ICL is given instead";

/// What grows while the records are read: all that needs the events of a request, and sums.
struct Pass<'run> {
    manifest: &'run Manifest,
    reader: AttemptReader,
    /// The steps of charts of gaps.
    gap_steps: Option<Steps>,
    widths: Widths,
    tpot_assumed: bool,
    tokens: Tokens,
    course: CourseTally,
    fluidity: FluidityTally,
    anomalies: Anomalies,
    audit: AuditTally,
    reports: ReportTally,
    answers: AnswerTally,
    groups: GroupTallies,
    outcomes: BTreeMap<Outcome, u64>,
    failures: FailureTally,
    finish_reasons: BTreeMap<String, u64>,
    ok: u64,
    prefilled: u128,
    /// Requests that were started and have no recorded end.
    lost: u64,
    /// When the first answered request started, as vLLM's client counts it.
    first_start: Option<Moment>,
    /// How many answers met each SLO about single requests, and all of them.
    met_each: Vec<u64>,
    met: u64,
}

impl<'run> Pass<'run> {
    fn new(observations: &'run Observations, records: &TimeOrder<'_>) -> Self {
        let [course, gap_steps] = Steps::of_charts(records);
        let reader = AttemptReader::new(observations);
        Self {
            manifest: &observations.manifest,
            gap_steps,
            widths: Widths::default(),
            tpot_assumed: false,
            tokens: Tokens::default(),
            course: CourseTally::new(course),
            fluidity: FluidityTally::new(observations),
            anomalies: Anomalies::default(),
            audit: AuditTally::default(),
            reports: ReportTally::default(),
            answers: AnswerTally::default(),
            groups: GroupTallies::default(),
            outcomes: Outcome::all().map(|outcome| (outcome, 0)).collect(),
            failures: FailureTally::default(),
            finish_reasons: BTreeMap::new(),
            ok: 0,
            prefilled: 0,
            lost: 0,
            first_start: None,
            met_each: vec![0; reader.slos.len()],
            met: 0,
            reader,
        }
    }

    fn add(&mut self, record: &RequestRecord) -> Attempt {
        let attempt = self.reader.read(record);
        let tokens = attempt.output;
        let AttemptReader { output, ruler, slos, .. } = &mut self.reader;
        self.tokens.add(record, output, tokens);
        self.anomalies.add_attempt(record);
        self.course.add(record);
        self.fluidity.add(record, output, tokens);
        self.groups.add(&attempt);
        *self.outcomes.entry(attempt.outcome).or_default() += 1;
        self.failures.add(record);
        count_finish_reasons(record, &mut self.finish_reasons);
        self.lost += u64::from(LittlesLaw::is_lost(record));
        if attempt.is_ok() {
            self.ok += 1;
            let start = vllm::start(record);
            self.first_start = self.first_start.into_iter().chain(start).min();
            if attempt.sent.is_some() {
                // The gaps are gathered later, and those out of order are counted here.
                output.gaps(ruler).for_each(drop);
            }
            self.course.add_tokens(record, output, tokens.count);
            self.widths.add_ok(record, output, ruler);
            self.tpot_assumed |= attempt.latencies.tpot_assumed;
            self.anomalies.add_ok(self.manifest, record, output, tokens);
            self.audit.add_ok(&attempt);
            self.reports.add_ok(record, tokens);
            self.answers.add_ok(record);
            if let Some(ttft) = attempt.latencies.get(&metric::TTFT) {
                self.prefilled += u128::from(attempt.input.count);
                self.course.add_ttft(record, ttft);
            }
            for (met, (_, slo)) in self.met_each.iter_mut().zip(slos) {
                *met += u64::from(attempt.latencies.meet(slo));
            }
            self.met += u64::from(attempt.meets_slos);
        }
        attempt
    }

    /// Every latency of the table: those of single requests, and those that pool several values of each
    /// request; and the chart of gaps.
    fn series(
        &mut self,
        records: &TimeOrder<'_>,
        mut single: LatencySeries,
        batches: Option<usize>,
    ) -> (Vec<(&'static Metric, Series)>, Option<GapsFigure>) {
        let (streaming, ruler) = (self.reader.streaming, &mut self.reader.ruler);
        let chart = (self.gap_steps, self.anomalies.events);
        let gaps = streaming.then(|| Gaps::gather(records, chart, ruler, batches));
        let mut gaps = gaps.unwrap_or_default();
        let client_lag = client_lag(records, self.anomalies.reads, ruler, batches);
        let mut pooled = [
            (&metric::ICL, gaps.icl.take()),
            (&metric::ITL, gaps.itl.take()),
            (&metric::CLIENT_LAG, client_lag),
            (&metric::ARRIVAL_WIDTH, self.widths.arrivals.series(batches)),
        ];
        let mut found = Vec::new();
        for metric in METRICS.iter().copied() {
            let Some(Latency { visible, absent, value, .. }) = metric.latency() else { continue };
            let series = if value.is_some() {
                single.take(metric)
            } else {
                pooled.iter_mut().find(|one| one.0 == metric).and_then(|one| one.1.take())
            };
            let is_hidden = *visible == Visible::InStreams && !streaming;
            let missing = match visible {
                Visible::OnAnswers | Visible::InStreams if self.ok == 0 => NOTHING_OK,
                Visible::InStreams if is_hidden => NOT_STREAMED,
                _ if *metric == metric::ITL && gaps.itl_unknown => ITL_UNKNOWN,
                Visible::OnRequests | Visible::OnAnswers | Visible::InStreams => *absent,
            };
            let absent = Series { found: Err(missing), curve: Curve::default() };
            let mut series = series.filter(|_| !is_hidden).unwrap_or(absent);
            if let Ok(distribution) = &mut series.found
                && *metric == metric::TPOT
                && self.tpot_assumed
            {
                distribution.note = Some(Note::FirstArrivalAssumed);
            }
            found.push((metric, series));
        }
        (found, gaps.figure)
    }

    #[expect(clippy::too_many_lines, reason = "one line for each field")]
    fn finish(
        mut self,
        observations: &Observations,
        attempts: &Attempts<'_>,
        (delivered, talks): (Delivered, Talks),
    ) -> Measured {
        let (attempted, ok) = (attempts.len() as u64, self.ok);
        let abandoned = self.outcomes.get(&Outcome::Abandoned).copied().unwrap_or(0);
        let unsent = due_requests(observations).saturating_sub(attempted - abandoned);
        self.outcomes.insert(Outcome::NotSent, observations.not_sent_count());
        let (generates, streaming) = (self.reader.generates, self.reader.streaming);
        let fluidity = std::mem::take(&mut self.fluidity).finish(unsent);
        let columns = &attempts.columns;
        self.reader.ruler.out_of_order += columns.reversed();
        let extremes = columns.extremes();
        let concurrency = Concurrency::sweep(columns.flights());
        let deliveries = deliveries(attempts.records, generates);
        let has_slos = !self.reader.slos.is_empty();
        let streams = streaming;
        let course = Course { attempts, deliveries: &deliveries, generates, streams, has_slos };
        let (mut steady, window) = SteadyState::detect(&self.manifest.spec.load.shape, &course);
        let busiest_second = busiest_second(deliveries);
        let mut basis = Basis::find(observations, &steady, attempts, &talks);
        let single = LatencySeries::gather(attempts, (&mut steady, window), basis.as_mut().ok());
        let known = basis.as_ref().ok();
        let batches = known.map(|basis| basis.batches);
        let (intervals, request_rates) = RunIntervals::from_attempts(attempts, known, unsent);
        steady.adopt(&intervals, known);
        let (series, gaps) = self.series(attempts.records, single, batches);
        let mut groups = std::mem::take(&mut self.groups);
        let urls = groups.by_url(&self.manifest.spec, attempts);
        let (turns, parts) = groups.finish(&self.manifest.spec.workload.source, attempts);
        let all_ok = 0 < ok && ok == attempted;
        let server = ServerSide::from_observations(observations, &self.tokens, extremes, all_ok);
        let written = (generates && 0 < ok).then_some(self.tokens.output_total);
        let (machines, energy_j) =
            MachineFigures::from_observations(observations, extremes, written);
        let vllm = vllm::Pass::gather(attempts.records, observations, self.first_start);
        let vllm = vllm.finish(observations, &self.tokens, (attempted, ok));
        Measured {
            steady,
            delivered,
            littles_law: LittlesLaw::new(observations, columns, self.lost, server.as_ref().ok()),
            shape: self.manifest.spec.load.shape.clone(),
            generates,
            streaming,
            attempted,
            ok,
            outcomes: self.outcomes,
            failures: self.failures.finish(&observations.not_sent),
            finish_reasons: most_frequent(self.finish_reasons),
            extremes,
            concurrency,
            busiest_second,
            prefilled: self.prefilled,
            series,
            event_width: self.widths.by_event(),
            audit: self.audit.finish(ok, generates),
            request_slos: RequestSlos::new(
                observations,
                self.reader.slos.iter().zip(self.met_each),
                self.met,
            ),
            fluidity,
            intervals,
            turns,
            parts,
            urls,
            anomalies: self.anomalies,
            request_rates,
            vllm,
            server,
            machines,
            energy_j,
            reports: self.reports.finish(),
            answers: self.answers.finish(),
            price_per_hour: price_per_hour(self.manifest),
            out_of_order: self.reader.ruler.out_of_order,
            course: self.course.finish(columns.flights()),
            gaps,
            intervals_withheld: basis.err(),
            tokens: self.tokens,
            talks,
        }
    }
}

/// The price of an hour of the server, or why it is not known.
fn price_per_hour(manifest: &Manifest) -> Result<f64, Missing> {
    let price = manifest.spec.price.ok_or("the server has no price (--price)")?;
    let gpus = manifest.server.as_ref().and_then(|server| server.gpus_used);
    let unknown = "the number of the server's GPUs is not known, or its time has no price";
    price.per_server_hour(gpus).ok_or(unknown)
}

/// What the formulas of several metrics share.
impl Measured {
    /// Requests that the client ended itself, as `--cancel` asks.
    pub(crate) fn abandoned(&self) -> u64 {
        self.outcomes.get(&Outcome::Abandoned).copied().unwrap_or(0)
    }

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
            0 => Err("no ok answer carried output"),
            tokens => Ok(tokens as f64),
        }
    }

    /// The SLOs about each request. What no answer could show was neither met nor missed.
    pub(crate) fn kept_slos(&self) -> Result<&RequestSlos, Missing> {
        let no_slo = "no SLO was set for each request";
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
        let no_metrics = "nothing is known of the server's metrics";
        let server = self.server.as_ref().map_err(|_| no_metrics)?;
        let unknown = "the server's counter is not known before and after the run";
        counter(server).and_then(|found| found.per_s).ok_or(unknown)
    }
}

pub(crate) const NO_TIME: Missing = "the window has no length";
