//! What the server reported about itself during the run: a second witness beside the client.
//!
//! Gauges are of the scrapes inside the run. Counters are differences between the scrape before the
//! run and the one after it. A metric that the server does not report is null, never zero.

use std::collections::BTreeMap;
use std::time::Duration;

use inferometer_model::telemetry::{
    Counters, Dialect, Gauges, MissReason, Recording, SpeculationCounters, SumCount, Telemetry,
    TelemetrySample, Timings,
};
use inferometer_model::{Moment, Observations};
use serde::{Deserialize, Serialize};

use crate::record::{Extremes, Tokens, moment_to_ms};
use crate::replicas::{Replicas, SourceFigures};
use crate::reports::SpeculationFigures;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerSide {
    /// Whose names it uses.
    pub dialect: Dialect,
    pub scrapes: ScrapeFigures,
    /// Times that the server began anew: a counter fell, or its process is another.
    pub restarts: u64,
    /// Processes that answered by turns, as behind a load balancer; null when they did not. Then
    /// nothing is known of counters, and a gauge is of whoever answered.
    pub replicas: Option<u64>,
    pub running: Option<GaugeFigures>,
    pub waiting: Option<GaugeFigures>,
    pub swapped: Option<GaugeFigures>,
    /// Usage of the part of the cache in the host's memory, from 0 to 1.
    pub cpu_kv_usage: Option<GaugeFigures>,
    /// Shares from 0 to 1.
    pub kv_usage: Option<GaugeFigures>,
    pub preemptions: Option<CounterFigures>,
    pub prompt_tokens: Option<CounterFigures>,
    pub generation_tokens: Option<CounterFigures>,
    /// Prompt tokens.
    pub prefix_queries: Option<CounterFigures>,
    pub prefix_hits: Option<CounterFigures>,
    /// Hits of queries.
    pub prefix_hit_share: Option<f64>,
    /// Means by the server's own clock, of requests that it finished during the run.
    pub ttft_ms_mean: Option<f64>,
    pub e2e_ms_mean: Option<f64>,
    pub queue_ms_mean: Option<f64>,
    /// Speculative decoding, of all requests that the server finished during the run; absent without
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speculation: Option<SpeculationFigures>,
    /// Each source of metrics, where there are several; the figures above are then totals of the
    /// replicas, and of the fullest where they are shares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceFigures>,
    pub tokens_apart: TokensApart,
    /// Why the totals are not compared; absent where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_not_compared: Option<String>,
    pub timeline: Timeline,
}

/// The server's totals less the client's, as shares of the client's: no other client than this run should
/// have made them. Null where they cannot be compared, because a request failed (what the server
/// did for it is not known), a count is not the server's own, or a scrape is missing at an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokensApart {
    pub prompt: Option<f64>,
    pub generation: Option<f64>,
}

/// Totals further apart than this are not of the same requests.
pub(crate) const TOKENS_APART: f64 = 0.01;

/// How many scrapes of the server succeeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScrapeFigures {
    pub ok: u64,
    /// Scrapes while the plan was played; gauges are read from these.
    pub inside: u64,
    pub missed: u64,
    /// The missed ones by their reason.
    pub missed_by: BTreeMap<String, u64>,
    /// Mean time of a scrape; null in a simulation, which has none.
    pub took_ms_mean: Option<f64>,
    pub took_ms_max: Option<f64>,
    /// Values that were no numbers to work with.
    pub dropped: u64,
}

/// A gauge over the scrapes inside the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GaugeFigures {
    pub mean: f64,
    pub max: f64,
    pub n: u64,
}

/// What a counter grew by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterFigures {
    /// Over the run; over the parts of it that the server lived through, if it was restarted.
    pub total: f64,
    /// Null when there is no time to divide by.
    pub per_s: Option<f64>,
    /// That time: between the scrapes, which is a little more than the run.
    pub over_s: f64,
}

impl ServerSide {
    /// What was scraped, or why nothing was. The client's tokens, its window and whether every
    /// attempted request ended `ok` are what the server's totals are compared with.
    pub(crate) fn from_observations(
        observations: &Observations,
        tokens: &Tokens,
        window: Extremes,
        all_ok: bool,
    ) -> Result<Self, String> {
        let replicas = Replicas::new(observations);
        let total = replicas.total();
        let found = Self::new(total.as_ref(), observations, (tokens, window, all_ok))?;
        Ok(Self { sources: replicas.figures(), ..found })
    }

    /// What was scraped of one source.
    pub(crate) fn new(
        telemetry: &Telemetry,
        observations: &Observations,
        (tokens, window, all_ok): (&Tokens, Extremes, bool),
    ) -> Result<Self, String> {
        let recording = match telemetry {
            Telemetry::Recorded(recording) => recording,
            Telemetry::Absent(absence) => return Err(absence.to_string()),
        };
        let samples = &recording.samples;
        let every = observations.manifest.spec.telemetry.as_ref().map(|spec| spec.every);
        let steps = EvenSteps::over(samples, |sample| sample.at, every);
        let (Some(steps), Some(first), Some(last)) = (steps, samples.first(), samples.last())
        else {
            return Err("the recording holds no sample".to_owned());
        };
        let inside = || samples.iter().filter(|sample| is_inside(observations, sample.at));
        let gauge = |of: fn(&Gauges) -> Option<f64>| {
            GaugeFigures::from_values(inside().filter_map(|sample| of(&sample.gauges)))
        };
        let segments = Segments::new(samples);
        let counter = |of: fn(&Counters) -> Option<f64>| segments.growth(|s| of(&s.counters));
        let mean = |of: fn(&Timings) -> Option<SumCount>| {
            let sum = segments.growth(|s| of(&s.timings).map(|timing| timing.sum_s))?.total;
            let count = segments.growth(|s| of(&s.timings).map(|timing| timing.count))?.total;
            (0.0 < count).then(|| sum / count * 1e3)
        };
        let (queries, hits) = (counter(|c| c.prefix_queries), counter(|c| c.prefix_hits));
        let (prompt, generation) = (counter(|c| c.prompt_tokens), counter(|c| c.generation_tokens));
        let looked_up = queries.map(|queries| queries.total).filter(|total| 0.0 < *total);
        let is_covered = window.0.is_some_and(|(from, to)| first.at <= from && to <= last.at);
        let not_compared = segments.incomparable(all_ok, is_covered);
        let apart = |server: Option<CounterFigures>, client: u64, foreign: u64| {
            let is_compared = not_compared.is_none() && foreign == 0 && 0 < client;
            let client = is_compared.then_some(client as f64)?;
            Some((server?.total - client) / client)
        };
        Ok(Self {
            dialect: last.dialect,
            scrapes: ScrapeFigures::new(recording, inside().count() as u64, observations),
            restarts: segments.restarts(),
            replicas: segments.replicas,
            running: gauge(|gauges| gauges.running),
            waiting: gauge(|gauges| gauges.waiting),
            swapped: gauge(|gauges| gauges.swapped),
            cpu_kv_usage: gauge(|gauges| gauges.cpu_kv_usage),
            kv_usage: gauge(|gauges| gauges.kv_usage),
            preemptions: counter(|counters| counters.preemptions),
            prompt_tokens: prompt,
            generation_tokens: generation,
            prefix_queries: queries,
            prefix_hits: hits,
            prefix_hit_share: hits.zip(looked_up).map(|(hits, all)| hits.total / all),
            ttft_ms_mean: mean(|timings| timings.ttft),
            e2e_ms_mean: mean(|timings| timings.e2e),
            queue_ms_mean: mean(|timings| timings.queue),
            speculation: segments.speculation(),
            sources: Vec::new(),
            tokens_apart: TokensApart {
                prompt: apart(prompt, tokens.input_total, tokens.input_source.asked),
                generation: apart(generation, tokens.output_total, tokens.output_source.events),
            },
            tokens_not_compared: not_compared.map(str::to_owned),
            timeline: segments.timeline(samples, &steps),
        })
    }

    /// What part of the prompts it found in its prefix cache, if they were ours alone.
    pub(crate) fn own_hit_share(&self) -> Option<f64> {
        let ours = self.tokens_apart.prompt.is_none_or(|share| share.abs() <= TOKENS_APART);
        self.prefix_hit_share.filter(|_| ours)
    }
}

/// Whether a timestamp lies in the time in which the plan was played: samples before and after it see
/// an idle server. A run that died does not know when it began, and all its samples count.
pub(crate) fn is_inside(observations: &Observations, at: Moment) -> bool {
    let ending = &observations.ending;
    ending.began.is_none_or(|began| (began..=ending.at).contains(&at))
}

impl GaugeFigures {
    /// `None` of nothing, and of what is no number.
    pub(crate) fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let max = values.iter().copied().reduce(f64::max)?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Self { mean, max, n: values.len() as u64 })
    }
}

impl ScrapeFigures {
    fn new(recording: &Recording, inside: u64, observations: &Observations) -> Self {
        let exchanges = match &observations.manifest.simulated {
            Some(_) => &[],
            None => recording.samples.as_slice(),
        };
        let took = exchanges.iter().map(|sample| sample.took.as_secs_f64() * 1e3);
        let took_ms_max = took.clone().reduce(f64::max);
        let singly = recording.missed.iter().map(|missed| (missed.reason, 1));
        let skipped = (0 < recording.skipped).then_some((MissReason::BackedOff, recording.skipped));
        let mut missed_by: BTreeMap<String, u64> = BTreeMap::new();
        for (reason, number) in singly.chain(skipped) {
            let sum = missed_by.entry(reason.key().to_owned()).or_default();
            *sum = sum.saturating_add(number);
        }
        Self {
            ok: recording.samples.len() as u64,
            inside,
            missed: missed_by.values().fold(0, |sum, number| sum.saturating_add(*number)),
            missed_by,
            took_ms_mean: took_ms_max.map(|_| took.sum::<f64>() / exchanges.len() as f64),
            took_ms_max,
            dropped: recording.samples.iter().map(|sample| u64::from(sample.dropped)).sum(),
        }
    }
}

/// Stretches of scrapes between which the server began anew. There are none where several
/// processes answer by turns: no counter goes on from one to the next.
struct Segments<'a> {
    stretches: Vec<&'a [TelemetrySample]>,
    /// How many processes answered by turns, if not one after the other.
    replicas: Option<u64>,
}

impl<'a> Segments<'a> {
    fn new(samples: &'a [TelemetrySample]) -> Self {
        let replicas = replicas(samples);
        if replicas.is_some() {
            return Self { stretches: Vec::new(), replicas };
        }
        // Each sample is compared with the last that had the value: a gap hides no restart.
        let (mut counters, mut process_start_s) = ([None; 5], None);
        let mut starts = vec![0];
        for (place, sample) in samples.iter().enumerate() {
            let c = &sample.counters;
            let found = [
                c.prefix_queries,
                c.prefix_hits,
                c.preemptions,
                c.prompt_tokens,
                c.generation_tokens,
            ];
            let is_less = |(known, found): (f64, f64)| found < known;
            let fell =
                counters.iter().zip(found).any(|(known, it)| known.zip(it).is_some_and(is_less));
            let is_other = |(known, found): (f64, f64)| START_ERROR_S < (known - found).abs();
            if fell || process_start_s.zip(sample.process_start_s).is_some_and(is_other) {
                starts.push(place);
                (counters, process_start_s) = ([None; 5], None);
            }
            counters.iter_mut().zip(found).for_each(|(known, found)| *known = found.or(*known));
            process_start_s = sample.process_start_s.or(process_start_s);
        }
        let ends = starts.iter().skip(1).copied().chain([samples.len()]);
        let spans = starts.iter().copied().zip(ends);
        let stretches = spans.map(|(start, end)| &samples[start..end]).collect();
        Self { stretches, replicas }
    }

    fn restarts(&self) -> u64 {
        self.stretches.len().saturating_sub(1) as u64
    }

    /// Why the server's totals may include more or less than the client's requests; `is_covered` if
    /// they were read before and after all requests.
    fn incomparable(&self, all_ok: bool, is_covered: bool) -> Option<&'static str> {
        let reasons = [
            (!all_ok, "a request failed, and what the server did for it is not known"),
            (self.replicas.is_some(), "several servers answered by turns"),
            (0 < self.restarts(), "the server was restarted meanwhile"),
            (!is_covered, "its counters were not read both before and after all requests"),
        ];
        reasons.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
    }

    fn timeline(&self, samples: &[TelemetrySample], steps: &EvenSteps) -> Timeline {
        let gauge = |of: fn(&Gauges) -> Option<f64>| {
            steps.means(samples.iter().filter_map(|it| Some((it.at, of(&it.gauges)?))))
        };
        let rate = |of: fn(&Counters) -> Option<f64>| {
            // Between neighbours of one server process.
            let pairs = self.stretches.iter().flat_map(|segment| segment.windows(2));
            steps.means(pairs.filter_map(|pair| {
                let seconds = pair[1].at.since(pair[0].at)?.as_secs_f64();
                let grown = of(&pair[1].counters)? - of(&pair[0].counters)?;
                (0.0 < seconds).then(|| (pair[1].at, grown / seconds))
            }))
        };
        Timeline {
            from_ms: steps.from_ms,
            step_ms: steps.step_ms,
            running: gauge(|gauges| gauges.running),
            waiting: gauge(|gauges| gauges.waiting),
            kv_usage: gauge(|gauges| gauges.kv_usage),
            prompt_tokens_per_s: rate(|counters| counters.prompt_tokens),
            generation_tokens_per_s: rate(|counters| counters.generation_tokens),
        }
    }

    fn speculation(&self) -> Option<SpeculationFigures> {
        let grown = |of: &dyn Fn(&SpeculationCounters) -> Option<f64>| {
            Some(self.growth(|sample| of(sample.speculation.as_deref()?))?.total)
        };
        let position = |at: usize| grown(&|totals| totals.by_position.get(at).copied());
        SpeculationFigures::from_counters(&SpeculationCounters {
            steps: grown(&|totals| totals.steps),
            drafted: grown(&|totals| totals.drafted),
            accepted: grown(&|totals| totals.accepted),
            by_position: (0..).map_while(position).collect(),
        })
    }

    /// What a counter grew by from the first to the last scrape of each segment, and the rate over
    /// the same times. What it grew by around a restart is not known, and not guessed.
    fn growth(&self, of: impl Fn(&TelemetrySample) -> Option<f64>) -> Option<CounterFigures> {
        let (mut total, mut seconds, mut known) = (0.0, 0.0, false);
        for segment in &self.stretches {
            let mut values = segment.iter().filter_map(|sample| Some((sample.at, of(sample)?)));
            let Some(first) = values.next() else { continue };
            let Some(last) = values.last() else { continue };
            known = true;
            total += last.1 - first.1;
            seconds += last.0.since(first.0).unwrap_or_default().as_secs_f64();
        }
        let per_s = (0.0 < seconds).then(|| total / seconds);
        known.then_some(CounterFigures { total, per_s, over_s: seconds })
    }
}

/// The number of processes that answered, if one came back after another: who begins anew begins
/// later, so a start before the one known is that of another replica behind the same address.
fn replicas(samples: &[TelemetrySample]) -> Option<u64> {
    let mut starts: Vec<f64> = samples.iter().filter_map(|sample| sample.process_start_s).collect();
    let is_other = |pair: &[f64]| START_ERROR_S < pair[1] - pair[0];
    let is_back = |pair: &[f64]| START_ERROR_S < pair[0] - pair[1];
    if !starts.windows(2).any(is_back) {
        return None;
    }
    starts.sort_by(f64::total_cmp);
    Some(1 + starts.windows(2).filter(|pair| is_other(pair)).count() as u64)
}

/// A process that computes its start anew from its age may be off by ticks.
const START_ERROR_S: f64 = 1.0;

/// Columns of equal length, a value for each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// When the first step begins, since the run's zero.
    pub from_ms: f64,
    pub step_ms: f64,
    /// Gauges are means of the scrapes in a step.
    pub running: Vec<Option<f64>>,
    pub waiting: Vec<Option<f64>>,
    pub kv_usage: Vec<Option<f64>>,
    /// Rates are over the time since the scrape before; the step of the later one has it.
    pub prompt_tokens_per_s: Vec<Option<f64>>,
    pub generation_tokens_per_s: Vec<Option<f64>>,
}

const STEPS_MAX: u128 = 600;
pub(crate) const EVERY_BY_DEFAULT: Duration = Duration::from_secs(1);

pub(crate) struct EvenSteps {
    pub(crate) from_ms: f64,
    pub(crate) step_ms: f64,
    first: Moment,
    every_ns: u128,
    step_ns: u128,
    steps: usize,
}

impl EvenSteps {
    /// From the first sample to the last; `every` is how often they were to come. `None` without one.
    pub(crate) fn over<S>(
        samples: &[S],
        at: fn(&S) -> Moment,
        every: Option<Duration>,
    ) -> Option<Self> {
        let (first, last) = (at(samples.first()?), at(samples.last()?));
        let every_ns = every.unwrap_or(EVERY_BY_DEFAULT).as_nanos().max(1);
        let span_ns = last.since(first).unwrap_or_default().as_nanos();
        // A whole number of periods to a step, so that no step is empty for its place alone.
        let periods = (span_ns / every_ns + 1).div_ceil(STEPS_MAX);
        let step_ns = every_ns * periods;
        let steps = usize::try_from(span_ns / step_ns + 1).unwrap_or(0);
        let width = Duration::from_nanos(u64::try_from(step_ns).unwrap_or(u64::MAX));
        let (from_ms, width_ms) = (moment_to_ms(first), width.as_secs_f64() * 1e3);
        Some(Self { from_ms, step_ms: width_ms, first, every_ns, step_ns, steps })
    }

    /// The mean of each step's values; null for a step without. The last step takes what rounding
    /// put past it.
    pub(crate) fn means(
        &self,
        values: impl IntoIterator<Item = (Moment, f64)>,
    ) -> Vec<Option<f64>> {
        let mut sums = vec![(0.0, 0_u32); self.steps];
        for (at, value) in values {
            // Samples come a little after their tick; the edges of the steps lie half a period apart
            // from the ticks, so that each finds its own.
            let since = at.since(self.first).unwrap_or_default().as_nanos();
            let step = usize::try_from((since + self.every_ns / 2) / self.step_ns).unwrap_or(0);
            let place = step.min(self.steps.saturating_sub(1));
            if let Some((sum, count)) = sums.get_mut(place) {
                *sum += value;
                *count += 1;
            }
        }
        sums.into_iter().map(|(sum, count)| (0 < count).then(|| sum / f64::from(count))).collect()
    }
}

#[cfg(test)]
mod tests;
