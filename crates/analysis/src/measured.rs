//! The pass over the records: everything that metrics and warnings are made of. What is gathered for
//! each event, and not for each request, has a pass of its own (`pooled.rs`).

mod figures;

use inferometer_model::observations::Manifest;
use inferometer_model::spec::LoadShape;
use inferometer_model::{Observations, Outcome, RequestRecord};

use crate::arrivals::Output;
use crate::audit::{Audit, Tally};
use crate::clustered::{Clustered, Drawn};
use crate::concurrency::{Concurrency, Flight};
use crate::definitions::vllm;
use crate::delivered::Delivered;
use crate::doubt::{Doubt, Evidence};
use crate::figures::{CourseFigure, CourseTally, GapsFigure};
use crate::fluidity::{Fluidity, Reading};
use crate::groups::{Groups, PartFigures, TurnFigures};
use crate::little::LittlesLaw;
use crate::metric::{Missing, NOTHING_OK};
use crate::oddities::{Oddities, OutputAsk};
use crate::pooled::{self, Gaps};
use crate::request_metrics::Latencies;
use crate::request_rates::{RequestRates, RequestRatesTally};
use crate::ruler::Ruler;
use crate::sample::Sample;
use crate::server::{ClientCounts, ServerSide};
use crate::slos::{self, Keeping, RequestSlos};
use crate::steady::{Course, SentAnswer, SteadyState};
use crate::throughput::{Deliveries, Extremes};
use crate::tokens::{InputTokens, OutputTokens, Tokens};
use crate::value::{Distribution, Note};

/// What the values of one metric come to.
#[derive(Debug, Default)]
pub(crate) struct Series {
    pub(crate) found: Option<Distribution>,
    pub(crate) note: Option<Note>,
    /// Why there is nothing, when it is not the usual reason of the metric.
    pub(crate) missing: Option<Missing>,
    /// What is drawn of the distribution: shares and values.
    pub(crate) curve: Vec<(f64, f64)>,
}

impl Series {
    fn of(drawn: Option<Drawn>) -> Self {
        drawn.map_or_else(Self::default, |drawn| Self {
            found: Some(drawn.distribution),
            curve: drawn.curve,
            ..Self::default()
        })
    }

    /// The distribution, or why there is none: for `absent` when it is the usual reason.
    pub(crate) fn found(&self, absent: Missing) -> Result<&Distribution, Missing> {
        self.found.as_ref().ok_or(self.missing.unwrap_or(absent))
    }
}

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
    pub(crate) ttft: Series,
    pub(crate) ttft_schedule: Series,
    pub(crate) ttfc: Series,
    pub(crate) icl: Series,
    pub(crate) itl: Series,
    pub(crate) tpot: Series,
    pub(crate) e2e: Series,
    pub(crate) e2e_schedule: Series,
    pub(crate) client_queue: Series,
    pub(crate) send_lag: Series,
    pub(crate) client_lag: Series,
    pub(crate) arrival_width: Series,
    pub(crate) event_width: Series,
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
    /// Distances between moments that made no sense.
    pub(crate) out_of_order: u64,
    pub(crate) steady: SteadyState,
    pub(crate) delivered: Delivered,
    pub(crate) littles_law: LittlesLaw,
    pub(crate) course: CourseFigure,
    pub(crate) gaps: Option<GapsFigure>,
}

impl Measured {
    pub(crate) fn of(observations: &Observations) -> Self {
        let records = in_time_order(observations);
        let mut pass = Pass::new(observations);
        for record in &records {
            pass.add(record);
        }
        pass.finish(observations, &records)
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

/// What a series of answers may lack its values for.
#[derive(Clone, Copy)]
struct Answers {
    ok: u64,
    streaming: bool,
}

impl Answers {
    fn series(self, drawn: Option<Drawn>) -> Series {
        Series { missing: (self.ok == 0).then_some(NOTHING_OK), ..Series::of(drawn) }
    }

    /// The first token of an answer that comes whole is not to be seen: its arrival is the end.
    fn within_stream(self, drawn: Option<Drawn>) -> Series {
        if self.streaming {
            return self.series(drawn);
        }
        let nothing = self.series(None);
        Series { missing: nothing.missing.or(Some(NOT_STREAMED)), ..nothing }
    }

    fn per_token(self, drawn: Option<Drawn>, unknown: bool) -> Series {
        let series = self.within_stream(drawn);
        let missing = series.missing.or(unknown.then_some(ITL_UNKNOWN));
        Series { missing, ..series }
    }
}

/// What grows while the records are read.
struct Pass<'run> {
    manifest: &'run Manifest,
    streaming: bool,
    generates: bool,
    ruler: Ruler,
    output: Output,
    latencies: Latencies,
    tokens: Tokens,
    flights: Vec<Flight>,
    last_first_turn_ns: Option<u64>,
    answers: Vec<SentAnswer>,
    course: CourseTally,
    extremes: Extremes,
    audit: Tally,
    keeping: Keeping,
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
            latencies: Latencies::default(),
            tokens: Tokens::default(),
            flights: Vec::with_capacity(observations.records.len()),
            last_first_turn_ns: None,
            answers: Vec::new(),
            course: CourseTally::new(observations),
            extremes: Extremes::default(),
            audit: Tally::default(),
            keeping: Keeping::new(observations),
            fluidity: Reading::new(observations, slos::zero(observations)),
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
            OutputTokens::of(record, &self.output)
        } else {
            OutputTokens::NONE
        };
        self.tokens.add(record, &self.output, counted);
        self.latencies.add_attempt(record, &mut self.ruler);
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
        let with_ttft = self.latencies.ttft.len();
        let answer = self.latencies.add_ok(record, &self.output, counted, &mut self.ruler);
        let answer = if self.streaming { answer } else { answer.of_end() };
        if with_ttft < self.latencies.ttft.len() {
            self.prefilled += u128::from(InputTokens::of(record).count);
        }
        let first = self.output.arrivals.first().map(|arrival| arrival.at);
        self.answers.extend(SentAnswer::of(record, first, answer));
        let input = InputTokens::of(record).count;
        self.request_rates.add_ok(answer.e2e, input, counted.count);
        self.vllm.add_ok(record, counted.count);
        self.audit.add_ok(record, counted);
        let kept = self.keeping.add_ok(&answer);
        self.evidence.add_ok(record, &answer, counted, kept);
        self.groups.add_ok(record, &answer);
        let asked =
            if self.generates { OutputAsk::of(self.manifest, record) } else { OutputAsk::Nothing };
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
        SteadyState::of(&self.manifest.spec.load.shape, &course)
    }

    fn finish(mut self, observations: &Observations, records: &[&RequestRecord]) -> Measured {
        let ok = self.ok;
        let deliveries = Deliveries::of(records, self.generates);
        let steady = self.steady(&deliveries);
        let (turns, parts) = self.groups.finish();
        let mut latencies = self.latencies;
        let busiest_second = deliveries.busiest_second();
        let gaps = Gaps::of(records, &mut self.ruler);
        let client_lag = pooled::client_lag(records, &mut self.ruler);
        let each = |values: Vec<f64>| Clustered::one_each(values).drawn();
        let answers = Answers { ok, streaming: self.streaming };
        let assumed = latencies.tpot_assumed.then_some(Note::FirstArrivalAssumed);
        let attempted = observations.records.len() as u64;
        let all_ok = 0 < ok && ok == attempted;
        let unsent = self.keeping.scheduled().saturating_sub(attempted);
        latencies.event_width.push((0.0, latencies.events_alone));
        let client = ClientCounts { tokens: &self.tokens, window: self.extremes, all_ok };
        let server = ServerSide::of(observations, &client);
        Measured {
            steady,
            delivered: Delivered::of(observations),
            littles_law: LittlesLaw::of(observations, server.as_ref().ok()),
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
            ttft: answers.within_stream(each(latencies.ttft)),
            ttft_schedule: answers.within_stream(each(latencies.ttft_schedule)),
            ttfc: answers.within_stream(each(latencies.ttfc)),
            icl: answers.within_stream(gaps.icl),
            itl: answers.per_token(gaps.itl, gaps.itl_unknown),
            tpot: Series { note: assumed, ..answers.within_stream(each(latencies.tpot)) },
            e2e: answers.series(each(latencies.e2e)),
            e2e_schedule: answers.series(each(latencies.e2e_schedule)),
            client_queue: Series::of(each(latencies.client_queue)),
            send_lag: Series::of(each(latencies.send_lag)),
            client_lag: Series::of(client_lag),
            arrival_width: answers.series(latencies.arrival_width.drawn()),
            event_width: Series {
                found: Sample::counted(latencies.event_width).as_ref().map(Distribution::of),
                ..Series::default()
            },
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
            out_of_order: self.ruler.out_of_order(),
            course: self.course.finish(),
            gaps: gaps.figure.filter(|_| self.streaming),
        }
    }
}
