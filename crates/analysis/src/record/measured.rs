//! The pass over the records: everything that metrics and warnings are made of. What is gathered for
//! each event, and not for each request, has a pass of its own (`pooled.rs`).

use inferometer_model::observations::Manifest;
use inferometer_model::spec::LoadShape;
use inferometer_model::{Observations, Outcome, RequestRecord};

use crate::audit::{Audit, Tally};
use crate::definitions::vllm;
use crate::figures::{CourseFigure, CourseTally, GapsFigure};
use crate::judge::{RequestSlo, RequestSlos, SloCounter, latency_origin};
use crate::littles_law::LittlesLaw;
use crate::machines::MeasuredMachines;
use crate::metric::{
    self, Distribution, METRICS, Metric, Missing, NOTHING_OK, NOTHING_SENT, Note, PER_REQUEST,
    PER_REQUEST_COUNT, Visible,
};
use crate::offered_load::Delivered;
use crate::record::{
    Clustered, Concurrency, Deliveries, Doubt, Evidence, Extremes, Flight, Fluidity, Gaps, Groups,
    InputTokens, NO_TOKENS, Oddities, Output, OutputAsk, OutputTokens, PartFigures, Reading,
    RequestLatencies, RequestRates, RequestRatesTally, Ruler, Series, Tokens, TurnFigures, Widths,
    client_lag,
};
use crate::server::{ClientCounts, CounterFigures, ServerSide};
use crate::statistics::Interval;
use crate::steady::{Course, SentAnswer, SteadyState};

#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) shape: LoadShape,
    /// Whether answers are made of tokens.
    pub(crate) generates: bool,
    streaming: bool,
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
    /// Of the single numbers.
    pub(crate) doubt: Doubt,
    pub(crate) turns: Vec<TurnFigures>,
    pub(crate) parts: Vec<PartFigures>,
    pub(crate) oddities: Oddities,
    pub(crate) request_rates: RequestRates,
    pub(crate) vllm: vllm::Gathered,
    /// What the server said of itself, or why it said nothing.
    pub(crate) server: Result<ServerSide, String>,
    pub(crate) machines: MeasuredMachines,
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
        for record in &records {
            pass.add(record);
        }
        pass.finish(observations, &records)
    }

    /// The distribution of a latency, if it has values.
    pub(crate) fn latency(&self, metric: &Metric) -> Option<&Distribution> {
        self.series(metric).found.as_ref().ok()
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

const NOT_STREAMED: Missing = Missing("the answers were not streamed, so only their end is seen");
const ITL_UNKNOWN: Missing =
    Missing("the server does not say how many tokens each event carries; ICL is given instead");

/// Requests in the order in which they left: what they measured is judged as a series.
pub(crate) fn in_time_order(observations: &Observations) -> Vec<&RequestRecord> {
    let mut records: Vec<&RequestRecord> = observations.records.iter().collect();
    records.sort_unstable_by_key(|record| (record.sent.unwrap_or(record.admitted), record.id));
    records
}

/// What grows while the records are read.
struct Pass<'run> {
    manifest: &'run Manifest,
    streaming: bool,
    generates: bool,
    ruler: Ruler,
    output: Output,
    /// The values of each latency in the order of [`PER_REQUEST`].
    latencies: [Vec<f64>; PER_REQUEST_COUNT],
    widths: Widths,
    tpot_assumed: bool,
    tokens: Tokens,
    flights: Vec<Flight>,
    last_first_turn_ns: Option<u64>,
    answers: Vec<SentAnswer>,
    course: CourseTally,
    extremes: Extremes,
    audit: Tally,
    keeping: SloCounter,
    fluidity: Reading,
    evidence: Evidence,
    groups: Groups,
    oddities: Oddities,
    request_rates: RequestRatesTally,
    vllm: vllm::Pass,
    prefilled: u128,
    ok: u64,
}

impl<'run> Pass<'run> {
    fn new(observations: &'run Observations) -> Self {
        let mapping = observations.ending.client.mapping;
        let error_ns = mapping.map_or(0, |mapping| mapping.error_ns_max);
        Self {
            manifest: &observations.manifest,
            streaming: observations.manifest.spec.workload.streaming,
            generates: observations.manifest.spec.api.generates(),
            ruler: Ruler::new(error_ns),
            output: Output::default(),
            latencies: Default::default(),
            widths: Widths::default(),
            tpot_assumed: false,
            tokens: Tokens::default(),
            flights: Vec::with_capacity(observations.records.len()),
            last_first_turn_ns: None,
            answers: Vec::new(),
            course: CourseTally::new(observations),
            extremes: Extremes::default(),
            audit: Tally::default(),
            keeping: SloCounter::new(observations),
            fluidity: Reading::new(observations, latency_origin(observations)),
            evidence: Evidence::default(),
            groups: Groups::new(observations),
            oddities: Oddities::default(),
            request_rates: RequestRatesTally::default(),
            vllm: vllm::Pass::new(observations, error_ns),
            prefilled: 0,
            ok: 0,
        }
    }

    fn add(&mut self, record: &RequestRecord) {
        self.output.read(record, &mut self.ruler);
        let counted = if self.generates {
            OutputTokens::from_record(record, &self.output)
        } else {
            OutputTokens::NONE
        };
        self.tokens.add(record, &self.output, counted);
        let latencies = RequestLatencies::measure(record, &self.output, counted, &mut self.ruler);
        for (values, latency) in self.latencies.iter_mut().zip(latencies.values()) {
            values.extend(latency);
        }
        self.oddities.add_attempt(record);
        self.vllm.add_attempt(record);
        self.groups.add_attempt(record);
        self.add_flight(record);
        self.course.add(record);
        self.fluidity.add(record, &self.output, counted);
        if record.ending.outcome != Outcome::Ok {
            self.evidence.add_failed();
            return;
        }
        self.ok += 1;
        self.course.add_tokens(record, &self.output, counted);
        self.widths.add_ok(record, &self.output, &mut self.ruler);
        self.tpot_assumed |= latencies.tpot_assumed;
        let input = InputTokens::from_record(record).count;
        if latencies.get(&metric::TTFT).is_some() {
            self.prefilled += u128::from(input);
        }
        let answer = if self.streaming { latencies } else { latencies.without_stream() };
        let first = self.output.arrivals.first().map(|arrival| arrival.at);
        self.answers.extend(SentAnswer::new(record, first, answer));
        self.request_rates.add_ok(answer.get(&metric::E2E), input, counted.count);
        self.vllm.add_ok(record, counted.count);
        self.audit.add_ok(record, counted);
        let kept = self.keeping.add_ok(&answer);
        self.evidence.add_ok(record, &answer, counted, kept);
        self.groups.add_ok(record, &answer);
        let asked =
            if self.generates { OutputAsk::new(self.manifest, record) } else { OutputAsk::Nothing };
        self.oddities.add_ok(record, &self.output, counted, asked);
        if self.streaming {
            self.oddities.add_stream(record, &self.output, counted);
        }
    }

    fn add_flight(&mut self, record: &RequestRecord) {
        let Some(sent) = record.sent else { return };
        self.extremes.add(sent, record.ending.at);
        let (from_ns, to_ns) = (sent.as_nanos(), record.ending.at.as_nanos());
        if record.asked.turn == 0 {
            self.last_first_turn_ns = self.last_first_turn_ns.max(Some(from_ns));
        }
        if from_ns <= to_ns {
            self.flights.push(Flight { from_ns, to_ns });
        } else {
            self.ruler.note_missing();
        }
    }

    fn steady(&self, deliveries: &Deliveries) -> SteadyState {
        let course = Course {
            flights: &self.flights,
            last_first_turn_ns: self.last_first_turn_ns,
            answers: &self.answers,
            deliveries,
            evidence: &self.evidence,
            generates: self.generates,
        };
        SteadyState::detect(&self.manifest.spec.load.shape, &course)
    }

    /// Every latency of the table: those of single requests from their lists, and those that pool
    /// several values of each request.
    fn series(
        &mut self,
        gaps: &Gaps,
        client_lag: Option<Series>,
    ) -> Vec<(&'static Metric, Series)> {
        let mut pooled = [
            (&metric::ICL, gaps.icl.clone()),
            (&metric::ITL, gaps.itl.clone()),
            (&metric::CLIENT_LAG, client_lag),
            (&metric::ARRIVAL_WIDTH, self.widths.arrivals().series()),
        ];
        let mut found = Vec::new();
        for metric in METRICS.iter().copied() {
            let Some((visible, absent)) = metric.visible() else { continue };
            let own = PER_REQUEST.iter().position(|known| *known == metric);
            let series = match own {
                Some(own) => Clustered::one_each(std::mem::take(&mut self.latencies[own])).series(),
                None => pooled.iter_mut().find(|one| one.0 == metric).and_then(|one| one.1.take()),
            };
            let is_hidden = visible == Visible::InStreams && !self.streaming;
            let missing = match visible {
                Visible::OnAnswers | Visible::InStreams if self.ok == 0 => NOTHING_OK,
                Visible::InStreams if is_hidden => NOT_STREAMED,
                _ if *metric == metric::ITL && gaps.itl_unknown => ITL_UNKNOWN,
                Visible::OnRequests | Visible::OnAnswers | Visible::InStreams => absent,
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

    fn finish(mut self, observations: &Observations, records: &[&RequestRecord]) -> Measured {
        let ok = self.ok;
        let deliveries = Deliveries::gather(records, self.generates);
        let steady = self.steady(&deliveries);
        let busiest_second = deliveries.busiest_second();
        let gaps = Gaps::gather(records, &mut self.ruler);
        let client_lag = client_lag(records, &mut self.ruler);
        let series = self.series(&gaps, client_lag);
        let (turns, parts) = self.groups.finish();
        let attempted = observations.records.len() as u64;
        let all_ok = 0 < ok && ok == attempted;
        let unsent = self.keeping.scheduled().saturating_sub(attempted);
        let client = ClientCounts { tokens: &self.tokens, window: self.extremes, all_ok };
        let server = ServerSide::from_observations(observations, &client);
        let written = (self.generates && 0 < ok).then_some(self.tokens.output_total);
        Measured {
            steady,
            delivered: Delivered::from_observations(observations),
            littles_law: LittlesLaw::from_observations(observations, server.as_ref().ok()),
            shape: observations.manifest.spec.load.shape.clone(),
            generates: self.generates,
            streaming: self.streaming,
            attempted,
            ok,
            tokens: self.tokens,
            extremes: self.extremes,
            concurrency: Concurrency::sweep(&self.flights),
            busiest_second,
            prefilled: self.prefilled,
            series,
            event_width: self.widths.by_event(),
            audit: self.audit.finish(self.generates),
            request_slos: self.keeping.finish(),
            fluidity: self.fluidity.finish(unsent),
            doubt: self.evidence.finish(self.extremes, unsent),
            turns,
            parts,
            oddities: self.oddities,
            request_rates: self.request_rates.finish(),
            vllm: self.vllm.finish(observations),
            server,
            machines: MeasuredMachines::from_observations(observations, self.extremes, written),
            out_of_order: self.ruler.out_of_order(),
            course: self.course.finish(),
            gaps: gaps.figure.filter(|_| self.streaming),
        }
    }
}

impl Measured {
    pub(crate) fn request_throughput(&self) -> Result<f64, Missing> {
        self.per_second(self.ok as f64)
    }

    pub(crate) fn input_throughput(&self) -> Result<f64, Missing> {
        self.per_second(self.tokens.input_total as f64)
    }

    pub(crate) fn output_throughput(&self) -> Result<f64, Missing> {
        self.generated()?;
        self.per_second(self.tokens.output_total as f64)
    }

    pub(crate) fn total_throughput(&self) -> Result<f64, Missing> {
        self.generated()?;
        self.per_second(self.tokens.input_total as f64 + self.tokens.output_total as f64)
    }

    pub(crate) fn per_user_throughput(&self) -> Result<f64, Missing> {
        self.generated()?;
        match &self.shape {
            LoadShape::Closed { concurrency, .. } => {
                Ok(self.output_throughput()? / f64::from(concurrency.get()))
            }
            LoadShape::Open { .. } => {
                Err(Missing("an open loop has no fixed number of users to share among"))
            }
        }
    }

    pub(crate) fn per_user_interval(&self) -> Option<Interval> {
        let LoadShape::Closed { concurrency, .. } = &self.shape else { return None };
        let (Interval { low, high }, users) = (self.doubt.output?, f64::from(concurrency.get()));
        Interval::new(low / users, high / users)
    }

    pub(crate) fn peak_output_throughput(&self) -> Result<f64, Missing> {
        self.generated()?;
        if self.ok == 0 {
            return Err(NOTHING_OK);
        }
        let tokens = self.busiest_second.ok_or(Missing("no ok answer carried output"))?;
        if self.extremes.window().duration_s.is_none_or(|seconds| seconds < 1.0) {
            return Err(Missing("the run was shorter than the second that a peak is taken over"));
        }
        Ok(tokens as f64)
    }

    pub(crate) fn concurrency_mean(&self) -> Result<f64, Missing> {
        let concurrency = self.concurrency.ok_or(NOTHING_SENT)?;
        let duration_ns = self.extremes.duration_ns().filter(|ns| 0 < *ns).ok_or(NO_TIME)?;
        Ok(concurrency.request_ns as f64 / duration_ns as f64)
    }

    pub(crate) fn concurrency_peak(&self) -> Result<f64, Missing> {
        Ok(self.concurrency.ok_or(NOTHING_SENT)?.peak as f64)
    }

    pub(crate) fn error_rate(&self) -> Result<f64, Missing> {
        match self.attempted {
            0 => Err(Missing("no request was attempted")),
            attempted => Ok((attempted - self.ok) as f64 / attempted as f64),
        }
    }

    pub(crate) fn goodput(&self) -> Result<f64, Missing> {
        let slos = self.request_slos.as_ref().ok_or(NO_SLO)?;
        self.can_be_kept(slos)?;
        self.per_second(slos.met as f64)
    }

    pub(crate) fn attainment(&self) -> Result<f64, Missing> {
        let slos = self.request_slos.as_ref().ok_or(NO_SLO)?;
        self.can_be_kept(slos)?;
        match slos.scheduled {
            0 => Err(Missing("no request was scheduled")),
            scheduled => Ok(slos.met as f64 / scheduled as f64),
        }
    }

    pub(crate) fn fluidity(&self) -> Result<f64, Missing> {
        self.generated()?;
        if self.streaming { self.fluidity.share } else { Err(NOT_STREAMED) }
    }

    /// What no answer could show was neither kept nor broken.
    fn can_be_kept(&self, slos: &RequestSlos) -> Result<(), Missing> {
        slos.promises.iter().find_map(|slo| self.unseen(slo)).map_or(Ok(()), Err)
    }

    /// Why no `ok` answer shows what was promised of each, if that is so. A promise that was kept
    /// without a value was kept by answers that had nothing to break it with.
    pub(crate) fn unseen(&self, slo: &RequestSlo) -> Option<Missing> {
        if self.ok == 0 || 0 < slo.met {
            return None;
        }
        Metric::named(&slo.metric)?.distribution(self)?.err()
    }

    pub(crate) fn prefill_speed(&self) -> Result<f64, Missing> {
        let no_ttft = Missing("there is no TTFT to divide by");
        let ttft = self.series(&metric::TTFT).found.as_ref().map_err(|_| no_ttft)?;
        let input_mean = self.prefilled as f64 / ttft.n as f64;
        ttft.mean.and_then(|mean| per_ms(input_mean, mean)).ok_or(no_ttft)
    }

    pub(crate) fn decode_speed(&self) -> Result<f64, Missing> {
        self.generated()?;
        let no_tpot = Missing("there is no TPOT to invert");
        let mean = self.series(&metric::TPOT).found.as_ref().ok().and_then(|tpot| tpot.mean);
        mean.and_then(|mean| per_ms(1.0, mean)).ok_or(no_tpot)
    }

    pub(crate) fn server_prompt_throughput(&self) -> Result<f64, Missing> {
        self.server_rate(|server| server.prompt_tokens)
    }

    pub(crate) fn server_generation_throughput(&self) -> Result<f64, Missing> {
        self.server_rate(|server| server.generation_tokens)
    }

    pub(crate) fn gpu_power(&self) -> Result<f64, Missing> {
        Ok(self.machines.energy_j? / self.extremes.duration_s().ok_or(NO_TIME)?)
    }

    pub(crate) fn energy_per_output_token(&self) -> Result<f64, Missing> {
        Ok(self.machines.energy_j? / self.output_tokens()?)
    }

    pub(crate) fn output_tokens_per_joule(&self) -> Result<f64, Missing> {
        Ok(self.output_tokens()? / self.machines.energy_j?)
    }

    fn output_tokens(&self) -> Result<f64, Missing> {
        self.generated()?;
        match self.tokens.output_total {
            _ if self.ok == 0 => Err(NOTHING_OK),
            0 => Err(Missing("no ok answer carried output")),
            tokens => Ok(tokens as f64),
        }
    }

    fn server_rate(
        &self,
        counter: fn(&ServerSide) -> Option<CounterFigures>,
    ) -> Result<f64, Missing> {
        let server = self.server.as_ref().map_err(|_| NO_METRICS)?;
        let untold = Missing("the server's counter is not known before and after the run");
        counter(server).and_then(|found| found.per_s).ok_or(untold)
    }

    fn generated(&self) -> Result<(), Missing> {
        if self.generates { Ok(()) } else { Err(NO_TOKENS) }
    }

    fn per_second(&self, count: f64) -> Result<f64, Missing> {
        if self.ok == 0 {
            return Err(NOTHING_OK);
        }
        Ok(count / self.extremes.duration_s().ok_or(NO_TIME)?)
    }
}

/// A speed per second, or `None` without time to divide by.
fn per_ms(count: f64, ms: f64) -> Option<f64> {
    (0.0 < ms).then(|| count / (ms / 1e3))
}

const NO_SLO: Missing = Missing("no SLO was set for each request");
const NO_METRICS: Missing = Missing("nothing is known of the server's metrics");
const NO_TIME: Missing = Missing("the window has no length");
