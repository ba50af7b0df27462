//! Counters of a server that may have been started anew in the middle.

use inferometer_model::telemetry::{Counters, TelemetrySample};

use super::CounterFigures;

/// Stretches of scrapes between which the server began anew. There are none where several
/// processes answer by turns: no counter goes on from one to the next.
pub(super) struct Segments<'a> {
    stretches: Vec<&'a [TelemetrySample]>,
    replicas: Option<u64>,
}

impl<'a> Segments<'a> {
    pub(super) fn of(samples: &'a [TelemetrySample]) -> Self {
        let replicas = replicas(samples);
        if replicas.is_some() {
            return Self { stretches: Vec::new(), replicas };
        }
        // Each sample is compared with the last that had the value: a gap hides no restart.
        let mut known = Known::default();
        let mut starts = vec![0];
        for (place, sample) in samples.iter().enumerate() {
            if known.contradicts(sample) {
                starts.push(place);
                known = Known::default();
            }
            known.learn(sample);
        }
        let ends = starts.iter().skip(1).copied().chain([samples.len()]);
        let spans = starts.iter().copied().zip(ends);
        let stretches = spans.map(|(start, end)| &samples[start..end]).collect();
        Self { stretches, replicas }
    }

    /// How many processes answered by turns, if not one after the other.
    pub(super) fn replicas(&self) -> Option<u64> {
        self.replicas
    }

    pub(super) fn restarts(&self) -> u64 {
        self.stretches.len().saturating_sub(1) as u64
    }

    /// Neighbours between which the server went on.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&'a TelemetrySample, &'a TelemetrySample)> {
        let pairs = self.stretches.iter().flat_map(|segment| segment.windows(2));
        pairs.filter_map(|pair| Some((pair.first()?, pair.last()?)))
    }

    /// What a counter grew by from the first to the last scrape of each segment, and the rate over
    /// the same times. What it grew by around a restart is not known, and not guessed.
    pub(super) fn growth(
        &self,
        of: impl Fn(&TelemetrySample) -> Option<f64>,
    ) -> Option<CounterFigures> {
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

/// What is known of the server's life so far.
#[derive(Default)]
struct Known {
    counters: [Option<f64>; 5],
    process_start_s: Option<f64>,
}

impl Known {
    fn contradicts(&self, sample: &TelemetrySample) -> bool {
        let fell = |(known, found): (&Option<f64>, Option<f64>)| {
            known.zip(found).is_some_and(|(known, found)| found < known)
        };
        let other = self.process_start_s.zip(sample.process_start_s);
        other.is_some_and(|(known, found)| START_ERROR_S < (known - found).abs())
            || self.counters.iter().zip(values(&sample.counters)).any(fell)
    }

    fn learn(&mut self, sample: &TelemetrySample) {
        for (known, found) in self.counters.iter_mut().zip(values(&sample.counters)) {
            *known = found.or(*known);
        }
        self.process_start_s = sample.process_start_s.or(self.process_start_s);
    }
}

/// A process that computes its start anew from its age may be off by ticks.
const START_ERROR_S: f64 = 1.0;

fn values(counters: &Counters) -> [Option<f64>; 5] {
    let Counters { prefix_queries, prefix_hits, preemptions, prompt_tokens, generation_tokens } =
        *counters;
    [prefix_queries, prefix_hits, preemptions, prompt_tokens, generation_tokens]
}
