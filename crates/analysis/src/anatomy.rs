//! Where the time of a run went, from the server's steps: what the time between two tokens and the time
//! to the first one consist of.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use inferometer_model::whole::to_u64;
use inferometer_model::{Moment, Observations, RequestId, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::record::{Output, Ruler, ns_to_ms};
use crate::statistics::{Percentile, Probability, Sample, median};
use crate::steps::{Confidence, NoStructure, Step, Steps, reconstruct};

/// Where the time went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Anatomy {
    /// Why no steps are visible; everything else is empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<NoStructure>,
    pub confidence: Option<Confidence>,
    /// What the confidence follows from.
    pub reason: String,
    pub steps: u64,
    /// Whether the run has more steps, which were not looked at.
    #[serde(default)]
    pub cut: bool,
    /// Share of the time between the first and the last step in which the server had no request.
    pub idle_share: Option<f64>,
    /// Null where no request got two tokens.
    pub between_tokens: Option<BetweenTokens>,
    /// Null where no request got a token.
    pub first_token: Option<FirstToken>,
    /// Time from the arrival of a step's first token to its last, for steps of several requests: median,
    /// and as a share of the step.
    pub spread_ms: Option<f64>,
    pub spread_share: Option<f64>,
    /// By batch size, rising.
    pub batches: Vec<BatchFigure>,
    /// Some seconds of the run.
    pub strip: StripFigure,
}

/// The mean time between two tokens of a request and its parts, in milliseconds; they add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BetweenTokens {
    pub mean_ms: f64,
    /// As long as steps without prefill usually take at this batch size.
    pub decode_ms: f64,
    /// What steps with prompts of other requests took beyond that.
    pub prefill_ms: f64,
    /// What other steps took beyond that: the server was idle, or did other work.
    pub stall_ms: f64,
    /// Steps between two of its tokens that the request was not in: it waited in the queue.
    #[serde(default)]
    pub queue_ms: f64,
    /// How much later the last token arrived after its step than the first one after its own, for each
    /// token: network and client. Below zero where the first one was the later.
    #[serde(default)]
    pub delivery_ms: f64,
}

/// The mean time to the first token and its parts, in milliseconds; they add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FirstToken {
    pub mean_ms: f64,
    /// Steps before the one of the first token in which first tokens of other requests left.
    pub other_prefill_ms: f64,
    /// Other steps before it: the queue, steps without prefill, and earlier parts of its own prompt.
    pub other_steps_ms: f64,
    /// The step of the first token, with the network and the client.
    pub own_step_ms: f64,
    /// Null where the server sends no timings of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<ReportedParts>,
}

/// The mean time to the first token of the requests with timings of the server, and its parts by these
/// timings, in milliseconds. What is null is not known, and part of the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportedParts {
    pub requests: u64,
    pub mean_ms: f64,
    pub queue_ms: Option<f64>,
    pub prefill_ms: Option<f64>,
    /// One way there and back, as the opening of connections took it.
    pub network_ms: Option<f64>,
    /// From the arrival at this machine until the program had read it. Zero where the kernel stamps
    /// arrivals, which are then not late.
    pub client_ms: Option<f64>,
    pub rest_ms: f64,
}

/// Steps of about one batch size, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchFigure {
    /// The median batch size.
    pub batch: f64,
    pub decode: Option<StepTimes>,
    /// Steps in which first tokens left.
    pub prefill: Option<StepTimes>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepTimes {
    pub n: u64,
    pub p10_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
}

/// Some seconds of a run in columns of equal length, with the steps that end in each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StripFigure {
    /// Since the run's zero.
    pub from_ms: f64,
    pub column_ms: f64,
    /// The largest batch; null where no step ended.
    pub batch: Vec<Option<f64>>,
    /// The longest step.
    pub step_ms: Vec<Option<f64>>,
    /// Prompt tokens whose first tokens left.
    pub prefill_tokens: Vec<u64>,
}

/// Fewer steps say nothing about a batch size.
const BATCH_STEPS_MIN: usize = 5;
/// A step without a first token took so many times as long as usual: it computed part of a prompt, where
/// one waits.
const CHUNK: f64 = 1.3;
const STRIP_S: f64 = 4.0;
const STRIP_COLUMNS: u32 = 100;

impl Anatomy {
    /// `None` where too few tokens arrived for any step.
    pub fn from_observations(observations: &Observations) -> Option<Self> {
        Self::with_steps(observations).0
    }

    /// With the steps themselves, of which there may be none.
    pub fn with_steps(observations: &Observations) -> (Option<Self>, Vec<Step>) {
        let mut members = Members::new();
        let mut on_member = |step, id| {
            let ends = members.entry(id).or_insert((step, step));
            *ends = (ends.0.min(step), ends.1.max(step));
        };
        match reconstruct(observations, &mut on_member) {
            Ok(steps) => (Some(Self::from_steps(&steps, &members, observations)), steps.steps),
            Err(NoStructure::TooFewArrivals) => (None, Vec::new()),
            Err(missing) => (Some(Self { missing: Some(missing), ..Self::default() }), Vec::new()),
        }
    }

    fn from_steps(found: &Steps, members: &Members, observations: &Observations) -> Self {
        let steps = &found.steps;
        let usual = UsualTimes::new(steps);
        let spreads = steps.iter().filter(|step| 1 < step.batch && step.seen);
        let spread = |step: &Step| ns(step.first, step.last) / 1e6;
        let shares = spreads.clone().filter_map(|step| Some(spread(step) / 1e3 / step.duration?));
        Self {
            missing: None,
            confidence: Some(found.confidence),
            reason: found.reason.clone(),
            steps: steps.len() as u64,
            cut: found.cut,
            idle_share: idle_share(steps, observations),
            between_tokens: BetweenTokens::new(steps, &usual, members, observations),
            first_token: FirstToken::new(steps, observations),
            spread_share: median(shares.collect()),
            spread_ms: median(spreads.map(spread).collect()),
            batches: usual.figures(),
            strip: StripFigure::new(steps, steps.get(steps.len() / 2).map(|step| step.first)),
        }
    }
}

/// The first and the last step of each request.
type Members = HashMap<RequestId, (usize, usize)>;

fn ns(from: Moment, to: Moment) -> f64 {
    to.as_nanos().saturating_sub(from.as_nanos()) as f64
}

/// From the last token of a step until the next request was sent, where no other was there.
fn idle_share(steps: &[Step], observations: &Observations) -> Option<f64> {
    let span = ns(steps.first()?.first, steps.last()?.last);
    let mut ends: BTreeMap<usize, Moment> = BTreeMap::new();
    let (records, end) = (observations.records.in_time_order(), steps.last()?.last);
    let near = records.iter().take_while(|record| record.left() <= end);
    for sent in near.filter_map(|record| record.sent) {
        let next = steps.partition_point(|step| step.first <= sent);
        if 0 < next && steps.get(next).is_some_and(|step| step.duration.is_none()) {
            let end = ends.entry(next).or_insert(sent);
            *end = sent.min(*end);
        }
    }
    let idle = ends.iter().fold(0.0, |sum, (next, sent)| sum + ns(steps[next - 1].last, *sent));
    (0.0 < span).then(|| idle / span)
}

/// Step times by batch size, in milliseconds.
struct UsualTimes {
    /// The key is a class of batch sizes.
    classes: BTreeMap<u32, Class>,
}

#[derive(Default)]
struct Class {
    batches: Vec<f64>,
    decode: Vec<f64>,
    prefill: Vec<f64>,
    usual_ms: Option<f64>,
}

impl UsualTimes {
    fn new(steps: &[Step]) -> Self {
        let mut classes: BTreeMap<u32, Class> = BTreeMap::new();
        for step in steps {
            let Some(seconds) = step.duration else { continue };
            let class = classes.entry(class(step.batch)).or_default();
            class.batches.push(f64::from(step.batch));
            let times = if step.prefills == 0 { &mut class.decode } else { &mut class.prefill };
            times.push(seconds * 1e3);
        }
        for class in classes.values_mut() {
            if BATCH_STEPS_MIN <= class.decode.len() {
                class.usual_ms = median(class.decode.clone());
            }
        }
        Self { classes }
    }

    /// The usual time of a step without prefill, of the nearest batch size that has one.
    fn decode_ms(&self, batch: u32) -> Option<f64> {
        let own = class(batch);
        let known = self.classes.iter().filter_map(|(class, it)| Some((*class, it.usual_ms?)));
        known.min_by_key(|(class, _)| class.abs_diff(own)).map(|(_, ms)| ms)
    }

    fn figures(self) -> Vec<BatchFigure> {
        let figure = |class: Class| {
            let decode = StepTimes::new(class.decode);
            let prefill = StepTimes::new(class.prefill);
            let batch = median(class.batches)?;
            let is_known = decode.is_some() || prefill.is_some();
            is_known.then_some(BatchFigure { batch, decode, prefill })
        };
        self.classes.into_values().filter_map(figure).collect()
    }
}

/// Each size up to 4 is a class of its own, and beyond each doubling has two.
fn class(batch: u32) -> u32 {
    if batch <= 4 {
        return batch;
    }
    let doublings = batch.ilog2();
    let upper = (batch >> (doublings - 1)) & 1;
    2 * doublings + upper + 1
}

impl StepTimes {
    fn new(times: Vec<f64>) -> Option<Self> {
        let n = times.len() as u64;
        let sample = Sample::new(times).filter(|_| BATCH_STEPS_MIN as u64 <= n)?;
        Some(Self {
            n,
            p10_ms: sample.quantile(Probability::TENTH),
            p50_ms: sample.percentile(Percentile::P50),
            p90_ms: sample.percentile(Percentile::P90),
        })
    }
}

impl BetweenTokens {
    /// A request waits for the whole step between two of its tokens, so each step counts once for every
    /// request in it that had a token before.
    fn new(
        steps: &[Step],
        usual: &UsualTimes,
        members: &Members,
        observations: &Observations,
    ) -> Option<Self> {
        let mut sums = Self::default();
        let mut tokens = 0.0;
        for step in steps {
            let waiting = f64::from(step.batch.saturating_sub(step.prefills));
            let Some(ms) = step.duration.map(|seconds| seconds * 1e3) else { continue };
            let decode = usual.decode_ms(step.batch).unwrap_or(ms).min(ms);
            let has_prompt = 0 < step.prefills || (0 < step.waiting && CHUNK * decode < ms);
            let beyond = if has_prompt { &mut sums.prefill_ms } else { &mut sums.stall_ms };
            *beyond += waiting * (ms - decode);
            sums.decode_ms += waiting * decode;
            sums.queue_ms -= waiting * ms;
            tokens += step.tokens.saturating_sub(step.prefills.into()) as f64;
        }
        let end = steps.last()?.last;
        let (mut output, mut ruler) = (Output::default(), Ruler::new(0));
        for record in &observations.records.in_time_order() {
            let Some((first, last)) = members.get(&record.id) else { continue };
            output.read(&record, &mut ruler);
            let mut arrivals = output.arrivals.iter().map(|arrival| arrival.at);
            let Some(begin) = arrivals.next() else { continue };
            let until = arrivals.take_while(|at| *at <= end).last().unwrap_or(begin);
            let span = ns(steps[*first].first, steps[*last].first) / 1e6;
            sums.mean_ms += ns(begin, until) / 1e6;
            sums.queue_ms += span;
            sums.delivery_ms += ns(begin, until) / 1e6 - span;
        }
        let mean = |sum: f64| sum / tokens;
        (0.0 < tokens).then(|| Self {
            mean_ms: mean(sums.mean_ms),
            decode_ms: mean(sums.decode_ms),
            prefill_ms: mean(sums.prefill_ms),
            stall_ms: mean(sums.stall_ms),
            queue_ms: mean(sums.queue_ms),
            delivery_ms: mean(sums.delivery_ms),
        })
    }
}

impl FirstToken {
    fn new(steps: &[Step], observations: &Observations) -> Option<Self> {
        let end = steps.last()?.last;
        // The time of steps with first tokens, summed through each step.
        let mut sum = 0.0;
        let through = steps.iter().map(|step| {
            sum += step.duration.filter(|_| 0 < step.prefills).unwrap_or(0.0) * 1e9;
            sum
        });
        let through: Vec<f64> = through.collect();
        let (mut output, mut ruler) = (Output::default(), Ruler::new(0));
        let (mut sums, mut count) = (Self::default(), 0.0);
        let mut reported = ReportedParts::default();
        let records = observations.records.in_time_order();
        for record in records.iter().take_while(|record| record.left() <= end) {
            let Some(sent) = record.sent.filter(|_| record.head.is_some_and(|head| head.streamed))
            else {
                continue;
            };
            output.read(&record, &mut ruler);
            let Some(first) = output.arrivals.first().map(|it| it.at).filter(|at| *at <= end)
            else {
                continue;
            };
            let before = |at: Moment| steps.partition_point(|step| step.first <= at);
            let Some(own) = before(first).checked_sub(1) else { continue };
            let whole = ns(sent, first);
            let took = steps[own]
                .duration
                .map_or(whole, |seconds| seconds * 1e9 + ns(steps[own].first, first));
            let own_step = took.min(whole);
            // The steps that began after it was sent and ended before its own.
            let sent_in = before(sent).min(own);
            let passed = |end: usize| end.checked_sub(1).map_or(0.0, |last| through[last]);
            let others = (passed(own) - passed(sent_in)).clamp(0.0, whole - own_step);
            reported.add(&record, whole / 1e6);
            sums.mean_ms += whole / 1e6;
            sums.own_step_ms += own_step / 1e6;
            sums.other_prefill_ms += others / 1e6;
            sums.other_steps_ms += (whole - own_step - others) / 1e6;
            count += 1.0;
        }
        (0.0 < count).then(|| Self {
            mean_ms: sums.mean_ms / count,
            other_prefill_ms: sums.other_prefill_ms / count,
            other_steps_ms: sums.other_steps_ms / count,
            own_step_ms: sums.own_step_ms / count,
            reported: reported.mean(observations),
        })
    }
}

impl ReportedParts {
    /// Adds a request whose first token took so long, if the server timed it.
    fn add(&mut self, record: &RequestRecord, ttft_ms: f64) {
        let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        let Some((queue, prefill)) =
            record.server.as_ref().map(|it| (ms(it.queue), ms(it.prefill)))
        else {
            return;
        };
        if queue.is_none() && prefill.is_none() {
            return;
        }
        // A part that some requests lack has no mean.
        let add = |sum: &mut Option<f64>, part: Option<f64>, is_first: bool| {
            *sum = if is_first { part } else { sum.zip(part).map(|(sum, part)| sum + part) };
        };
        let is_first = self.requests == 0;
        add(&mut self.queue_ms, queue, is_first);
        add(&mut self.prefill_ms, prefill, is_first);
        let is_stamped = record.reads.iter().all(|read| read.kernel.is_some());
        add(&mut self.client_ms, is_stamped.then_some(0.0), is_first);
        self.mean_ms += ttft_ms;
        self.requests += 1;
    }

    fn mean(self, observations: &Observations) -> Option<Self> {
        let count = self.requests as f64;
        let mean = |sum: Option<f64>| sum.map(|sum| sum / count);
        let records = observations.records.in_time_order();
        let dials = records.iter().filter_map(|record| record.connection?.dial);
        let network_ms = median(dials.map(|dial| ns(dial.started, dial.connected) / 1e6).collect());
        let found = Self {
            mean_ms: self.mean_ms / count,
            queue_ms: mean(self.queue_ms),
            prefill_ms: mean(self.prefill_ms),
            client_ms: mean(self.client_ms),
            network_ms,
            ..self
        };
        let known = [found.queue_ms, found.prefill_ms, network_ms, found.client_ms];
        let rest_ms = found.mean_ms - known.into_iter().flatten().sum::<f64>();
        (0 < self.requests).then_some(Self { rest_ms, ..found })
    }
}

impl StripFigure {
    /// Seconds that begin at a moment, where there are as many.
    pub fn new(steps: &[Step], begin: Option<Moment>) -> Self {
        let ends = steps.first().zip(steps.last());
        let Some(((first, last), begin)) = ends.zip(begin) else { return Self::default() };
        let span_ns = ns(first.first, last.last).min(STRIP_S * 1e9);
        let latest = last.last.as_nanos().saturating_sub(to_u64(span_ns));
        let from_ns = begin.as_nanos().min(latest).max(first.first.as_nanos());
        let column_ns = (to_u64(span_ns) / u64::from(STRIP_COLUMNS)).max(1);
        let columns = STRIP_COLUMNS as usize;
        let mut figure = Self {
            from_ms: ns_to_ms(from_ns),
            column_ms: ns_to_ms(column_ns),
            batch: vec![None; columns],
            step_ms: vec![None; columns],
            prefill_tokens: vec![0; columns],
        };
        for step in steps {
            let since = step.first.as_nanos().checked_sub(from_ns).map(|ns| ns / column_ns);
            let column = since.and_then(|column| usize::try_from(column).ok());
            let Some(column) = column.filter(|column| *column < columns) else { continue };
            let highest = |of: &mut Option<f64>, value: f64| {
                *of = Some(of.map_or(value, |known| known.max(value)));
            };
            highest(&mut figure.batch[column], f64::from(step.batch));
            if let Some(seconds) = step.duration {
                highest(&mut figure.step_ms[column], seconds * 1e3);
            }
            let prefilled = &mut figure.prefill_tokens[column];
            *prefilled = prefilled.saturating_add(step.prefill_tokens);
        }
        figure
    }
}

#[cfg(test)]
mod tests;
