//! What the server said of itself, over the run: a second witness beside the client.
//!
//! Gauges are of the scrapes inside the run. Counters are differences between the scrape before the
//! run and the one after it. A word that the server does not have is null, never zero.

mod counters;
mod timeline;

use std::collections::BTreeMap;

use inferometer_model::Observations;
use inferometer_model::telemetry::{
    Counters, Dialect, Gauges, MissReason, Recording, SumCount, Telemetry, TelemetrySample, Timings,
};
use serde::{Deserialize, Serialize};

use self::counters::Segments;
pub use self::timeline::Timeline;
use crate::throughput::Extremes;
use crate::tokens::Tokens;

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
    /// Of the part of the cache that lies in the host's memory, as a share from 0 to 1.
    #[serde(default)]
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
    pub tokens_apart: TokensApart,
    /// Why the totals are not compared; absent where they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_not_compared: Option<String>,
    pub timeline: Timeline,
}

/// The server's totals less the client's, as shares of the client's: nobody but this run should
/// have made them. Null where they cannot be compared, because a request failed (what the server
/// did for it is not known), a count is not the server's own, or a scrape is missing at an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokensApart {
    pub prompt: Option<f64>,
    pub generation: Option<f64>,
}

/// What the client counted, to compare with.
pub(crate) struct ClientCounts<'a> {
    pub(crate) tokens: &'a Tokens,
    pub(crate) window: Extremes,
    /// Every attempted request ended `ok`.
    pub(crate) all_ok: bool,
}

/// Totals further apart than this are not of the same requests.
pub(crate) const TOKENS_APART: f64 = 0.01;

/// How well the server was heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScrapeFigures {
    pub ok: u64,
    /// Of those, the ones while the plan was played: gauges are of them.
    pub inside: u64,
    pub missed: u64,
    /// The missed ones by their reason.
    pub missed_by: BTreeMap<String, u64>,
    /// Of an exchange; null in a simulation, which has none.
    pub took_ms_mean: Option<f64>,
    pub took_ms_max: Option<f64>,
    /// Values that were no numbers to work with.
    pub dropped: u64,
}

/// Of the scrapes inside the run.
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
    /// What was heard, or why nothing was.
    pub(crate) fn of(
        observations: &Observations,
        client: &ClientCounts<'_>,
    ) -> Result<Self, String> {
        match &observations.telemetry {
            Telemetry::Recorded(recording) => Self::of_recording(recording, observations, client)
                .ok_or_else(|| "the recording holds no sample".to_owned()),
            Telemetry::Absent(absence) => Err(absence.to_string()),
        }
    }

    fn of_recording(
        recording: &Recording,
        observations: &Observations,
        client: &ClientCounts<'_>,
    ) -> Option<Self> {
        let dialect = recording.samples.last()?.dialect;
        let inside = inside(recording, observations);
        let gauge = |of: fn(&Gauges) -> Option<f64>| GaugeFigures::of(&inside, of);
        let segments = Segments::of(&recording.samples);
        let counter = |of: fn(&Counters) -> Option<f64>| segments.growth(|s| of(&s.counters));
        let mean = |of: fn(&Timings) -> Option<SumCount>| {
            let sum = segments.growth(|s| of(&s.timings).map(|timing| timing.sum_s))?.total;
            let count = segments.growth(|s| of(&s.timings).map(|timing| timing.count))?.total;
            (0.0 < count).then(|| sum / count * 1e3)
        };
        let (queries, hits) = (counter(|c| c.prefix_queries), counter(|c| c.prefix_hits));
        let (prompt, generation) = (counter(|c| c.prompt_tokens), counter(|c| c.generation_tokens));
        let not_compared = client.incomparable(&segments, &recording.samples);
        let looked_up = queries.map(|queries| queries.total).filter(|total| 0.0 < *total);
        Some(Self {
            dialect,
            scrapes: ScrapeFigures::of(recording, &inside, observations),
            restarts: segments.restarts(),
            replicas: segments.replicas(),
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
            tokens_apart: match not_compared {
                None => TokensApart::of(client.tokens, prompt, generation),
                Some(_) => TokensApart::default(),
            },
            tokens_not_compared: not_compared.map(str::to_owned),
            timeline: Timeline::of(&recording.samples, &segments, observations),
        })
    }
}

impl ClientCounts<'_> {
    /// Why the server's totals cannot be those of the client's requests alone.
    fn incomparable(
        &self,
        segments: &Segments<'_>,
        samples: &[TelemetrySample],
    ) -> Option<&'static str> {
        let is_between = samples
            .first()
            .zip(samples.last())
            .is_some_and(|(first, last)| self.window.lies_between(first.at, last.at));
        if !self.all_ok {
            Some("a request failed, and what the server did for it is not known")
        } else if segments.replicas().is_some() {
            Some("several servers answered by turns")
        } else if 0 < segments.restarts() {
            Some("the server was restarted meanwhile")
        } else if !is_between {
            Some("its counters were not read both before and after all requests")
        } else {
            None
        }
    }
}

impl TokensApart {
    fn of(
        client: &Tokens,
        prompt: Option<CounterFigures>,
        generation: Option<CounterFigures>,
    ) -> Self {
        let share = |server: Option<CounterFigures>, client: u64| {
            let client = Some(client as f64).filter(|total| 0.0 < *total)?;
            Some((server?.total - client) / client)
        };
        let (asked, events) = (client.input_source.asked, client.output_source.events);
        Self {
            prompt: share(prompt, client.input_total).filter(|_| asked == 0),
            generation: share(generation, client.output_total).filter(|_| events == 0),
        }
    }
}

impl ServerSide {
    /// What part of the prompts it found in its prefix cache, if they were ours alone.
    pub(crate) fn own_hit_share(&self) -> Option<f64> {
        let ours = self.tokens_apart.prompt.is_none_or(|share| share.abs() <= TOKENS_APART);
        self.prefix_hit_share.filter(|_| ours)
    }
}

/// The scrapes while the plan was played: those before and after see a server at rest. A run that
/// died does not know when it began, and its scrapes all count.
fn inside<'a>(recording: &'a Recording, observations: &Observations) -> Vec<&'a TelemetrySample> {
    let ending = &observations.ending;
    let is_inside = |sample: &&TelemetrySample| {
        ending.began.is_none_or(|began| (began..=ending.at).contains(&sample.at))
    };
    recording.samples.iter().filter(is_inside).collect()
}

impl GaugeFigures {
    fn of(samples: &[&TelemetrySample], of: fn(&Gauges) -> Option<f64>) -> Option<Self> {
        Self::of_values(samples.iter().filter_map(|sample| of(&sample.gauges)))
    }

    /// `None` of nothing, and of what is no number.
    pub(crate) fn of_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        let max = values.iter().copied().reduce(f64::max)?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Self { mean, max, n: values.len() as u64 })
    }
}

impl ScrapeFigures {
    fn of(recording: &Recording, inside: &[&TelemetrySample], observations: &Observations) -> Self {
        let exchanges = match &observations.manifest.simulated {
            Some(_) => &[],
            None => recording.samples.as_slice(),
        };
        let took = exchanges.iter().map(|sample| sample.took.as_secs_f64() * 1e3);
        let took_ms_max = took.clone().reduce(f64::max);
        let singly = recording.missed.iter().map(|missed| (missed.reason, 1));
        let skipped = (0 < recording.skipped).then_some((MissReason::BackedOff, recording.skipped));
        let mut missed_by = BTreeMap::new();
        for (reason, number) in singly.chain(skipped) {
            let sum: &mut u64 = missed_by.entry(reason.key().to_owned()).or_default();
            *sum = sum.saturating_add(number);
        }
        Self {
            ok: recording.samples.len() as u64,
            inside: inside.len() as u64,
            missed: missed_by.values().fold(0, |sum, number| sum.saturating_add(*number)),
            missed_by,
            took_ms_mean: took_ms_max.map(|_| took.sum::<f64>() / exchanges.len() as f64),
            took_ms_max,
            dropped: recording.samples.iter().map(|sample| u64::from(sample.dropped)).sum(),
        }
    }
}

#[cfg(test)]
mod tests;
