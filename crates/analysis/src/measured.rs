//! The one pass over the records: everything that metrics and warnings are made of.

use inferometer_model::observations::Manifest;
use inferometer_model::spec::LoadShape;
use inferometer_model::{Observations, Outcome, RequestRecord};

use crate::arrivals::Output;
use crate::audit::{Audit, Tally};
use crate::concurrency::{Concurrency, Flight};
use crate::definitions::vllm;
use crate::delivered::Delivered;
use crate::groups::{Groups, PartFigures, TurnFigures};
use crate::little::LittlesLaw;
use crate::metric::{Metric, Missing, NOTHING_OK, NOTHING_SENT};
use crate::oddities::{Oddities, OutputAsk};
use crate::request_metrics::Latencies;
use crate::ruler::Ruler;
use crate::sample::Sample;
use crate::server::{ClientCounts, ServerSide};
use crate::slos::{Keeping, RequestSlo, RequestSlos};
use crate::steady::{Course, SentAnswer, SteadyState};
use crate::throughput::{Deliveries, Extremes};
use crate::tokens::{InputTokens, NO_TOKENS, OutputTokens, Tokens};
use crate::value::Note;

/// The values of one distribution, sorted.
#[derive(Debug, Default)]
pub(crate) struct Series {
    pub(crate) sample: Option<Sample>,
    pub(crate) note: Option<Note>,
    /// Why there is no sample, when it is not the usual reason of the metric.
    pub(crate) missing: Option<Missing>,
}

impl Series {
    /// The values, or why there are none: for `absent` when it is the usual reason.
    pub(crate) fn sample(&self, absent: Missing) -> Result<&Sample, Missing> {
        self.sample.as_ref().ok_or(self.missing.unwrap_or(absent))
    }
}

#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) shape: LoadShape,
    /// Whether answers are made of tokens.
    pub(crate) generates: bool,
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
    pub(crate) turns: Vec<TurnFigures>,
    pub(crate) parts: Vec<PartFigures>,
    pub(crate) oddities: Oddities,
    pub(crate) vllm: vllm::Gathered,
    /// What the server said of itself, or why it said nothing.
    pub(crate) server: Result<ServerSide, String>,
    /// Distances between moments that made no sense.
    pub(crate) out_of_order: u64,
    pub(crate) steady: SteadyState,
    pub(crate) delivered: Delivered,
    pub(crate) littles_law: LittlesLaw,
}

impl Measured {
    pub(crate) fn of(observations: &Observations) -> Self {
        let mut pass = Pass::new(observations);
        for record in &observations.records {
            pass.add(record);
        }
        pass.finish(observations)
    }

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
        Metric::named(&slo.metric)?.sample(self)?.err()
    }

    pub(crate) fn prefill_speed(&self) -> Result<f64, Missing> {
        let no_ttft = Missing("there is no TTFT to divide by");
        let ttft = self.ttft.sample.as_ref().ok_or(no_ttft)?;
        let input_mean = self.prefilled as f64 / ttft.count() as f64;
        per_ms(input_mean, ttft.mean()).ok_or(no_ttft)
    }

    pub(crate) fn decode_speed(&self) -> Result<f64, Missing> {
        self.generated()?;
        let no_tpot = Missing("there is no TPOT to invert");
        let tpot = self.tpot.sample.as_ref().ok_or(no_tpot)?;
        per_ms(1.0, tpot.mean()).ok_or(no_tpot)
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
const NO_TIME: Missing = Missing("the window has no length");
const NOT_STREAMED: Missing = Missing("the answers were not streamed, so only their end is seen");
const ITL_UNKNOWN: Missing =
    Missing("the server does not say how many tokens each event carries; ICL is given instead");

/// What grows while the records are read.
struct Pass<'run> {
    manifest: &'run Manifest,
    streaming: bool,
    generates: bool,
    ruler: Ruler,
    output: Output,
    latencies: Latencies,
    tokens: Tokens,
    deliveries: Deliveries,
    flights: Vec<Flight>,
    answers: Vec<SentAnswer>,
    extremes: Extremes,
    audit: Tally,
    keeping: Keeping,
    groups: Groups,
    oddities: Oddities,
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
            deliveries: Deliveries::default(),
            flights: Vec::with_capacity(observations.records.len()),
            answers: Vec::new(),
            extremes: Extremes::default(),
            audit: Tally::default(),
            keeping: Keeping::new(observations),
            groups: Groups::new(observations),
            oddities: Oddities::default(),
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
        if record.ending.outcome != Outcome::Ok {
            return;
        }
        self.ok += 1;
        let with_ttft = self.latencies.ttft.len();
        let answer = self.latencies.add_ok(record, &self.output, counted, &mut self.ruler);
        let answer = if self.streaming { answer } else { answer.of_end() };
        if with_ttft < self.latencies.ttft.len() {
            self.prefilled += u128::from(InputTokens::of(record).count);
        }
        let first = self.output.arrivals.first().map(|arrival| arrival.at);
        self.answers.extend(SentAnswer::of(record, first, answer));
        self.deliveries.add(&self.output, counted);
        self.vllm.add_ok(record, counted.count);
        self.audit.add_ok(record, counted);
        self.keeping.add_ok(&answer);
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
        if from_ns <= to_ns {
            self.flights.push(Flight { from_ns, to_ns });
        } else {
            self.ruler.note_missing();
        }
    }

    fn steady(&self) -> SteadyState {
        let course = Course {
            flights: &self.flights,
            answers: &self.answers,
            deliveries: &self.deliveries,
            generates: self.generates,
        };
        SteadyState::of(&self.manifest.spec.load.shape, &course)
    }

    fn finish(self, observations: &Observations) -> Measured {
        let ok = self.ok;
        let steady = self.steady();
        let (turns, parts) = self.groups.finish();
        let latencies = self.latencies;
        let of_ok = |values: Vec<f64>| Series {
            sample: Sample::new(values),
            note: None,
            missing: (ok == 0).then_some(NOTHING_OK),
        };
        let of_sent =
            |values: Vec<f64>| Series { sample: Sample::new(values), ..Series::default() };
        // The first token of an answer that comes whole is not to be seen: its arrival is the end.
        let streaming = observations.manifest.spec.workload.streaming;
        let of_streamed = |values: Vec<f64>| match of_ok(values) {
            whole if streaming => whole,
            whole => {
                Series { sample: None, missing: whole.missing.or(Some(NOT_STREAMED)), ..whole }
            }
        };
        let assumed = latencies.tpot_assumed.then_some(Note::FirstArrivalAssumed);
        let itl_missing = match (streaming, latencies.itl_unknown) {
            (false, _) => Some(NOT_STREAMED),
            (true, true) => Some(ITL_UNKNOWN),
            (true, false) => None,
        };
        let attempted = observations.records.len() as u64;
        let all_ok = 0 < ok && ok == attempted;
        let client = ClientCounts { tokens: &self.tokens, window: self.extremes, all_ok };
        let server = ServerSide::of(observations, &client);
        Measured {
            steady,
            delivered: Delivered::of(observations),
            littles_law: LittlesLaw::of(observations, server.as_ref().ok()),
            shape: observations.manifest.spec.load.shape.clone(),
            generates: self.generates,
            attempted,
            ok,
            tokens: self.tokens,
            extremes: self.extremes,
            concurrency: Concurrency::sweep(&self.flights),
            busiest_second: self.deliveries.busiest_second(),
            prefilled: self.prefilled,
            ttft: of_streamed(latencies.ttft),
            ttft_schedule: of_streamed(latencies.ttft_schedule),
            ttfc: of_streamed(latencies.ttfc),
            icl: of_streamed(latencies.icl),
            itl: Series {
                sample: Sample::counted(latencies.itl),
                note: None,
                missing: (ok == 0).then_some(NOTHING_OK).or(itl_missing),
            },
            tpot: Series { note: assumed, ..of_streamed(latencies.tpot) },
            e2e: of_ok(latencies.e2e),
            e2e_schedule: of_ok(latencies.e2e_schedule),
            client_queue: of_sent(latencies.client_queue),
            send_lag: of_sent(latencies.send_lag),
            client_lag: of_sent(latencies.client_lag),
            arrival_width: of_ok(latencies.arrival_width),
            event_width: Series {
                sample: Sample::counted(latencies.event_width),
                ..Series::default()
            },
            audit: self.audit.finish(self.generates),
            request_slos: self.keeping.finish(),
            turns,
            parts,
            oddities: self.oddities,
            vllm: self.vllm.finish(),
            server,
            out_of_order: self.ruler.out_of_order(),
        }
    }
}
