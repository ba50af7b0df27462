//! Several sources of the server's metrics: each by itself, and the totals of the replicas.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use inferometer_model::Observations;
use inferometer_model::spec::{MetricsRole, MetricsSource};
use inferometer_model::telemetry::{
    Recording, SpeculationCounters, SumCount, Telemetry, TelemetrySample,
};
use serde::{Deserialize, Serialize};

use crate::record::{Extremes, Tokens};
use crate::server::ServerSide;

/// What one source reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceFigures {
    /// Its host and port, and its path where several sources have these in common.
    pub name: String,
    pub role: MetricsRole,
    pub figures: Option<Box<ServerSide>>,
    /// Why nothing was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// The sources of a run with what each of them reported.
pub(crate) struct Replicas<'a> {
    observations: &'a Observations,
    sources: &'a [MetricsSource],
    every: Duration,
}

impl<'a> Replicas<'a> {
    pub(crate) fn new(observations: &'a Observations) -> Self {
        let spec = observations.manifest.spec.telemetry.as_ref();
        let sources = spec.map_or(&[][..], |spec| &spec.sources);
        let every = spec.map_or(Duration::from_secs(1), |spec| spec.every);
        Self { observations, sources, every }
    }

    fn telemetry(&self, number: usize) -> Option<&'a Telemetry> {
        match u16::try_from(number).ok()? {
            0 => Some(&self.observations.telemetry),
            number => self.observations.more_telemetry.get(&number),
        }
    }

    /// The sources that totals are made of: the replicas, or a Prometheus that collects them; without
    /// any the decode workers, and without these the first source.
    fn counted(&self) -> Vec<&'a Telemetry> {
        let of_role = |role: MetricsRole| {
            let numbers = (0..).zip(self.sources).filter(move |(_, source)| source.role == role);
            let found = numbers.filter_map(|(number, _)| self.telemetry(number));
            found.collect::<Vec<_>>()
        };
        let by_role = [MetricsRole::Replica, MetricsRole::Prometheus, MetricsRole::Decode];
        let found = by_role.into_iter().map(of_role).find(|found| !found.is_empty());
        found.unwrap_or_else(|| vec![&self.observations.telemetry])
    }

    /// The totals: at each scrape of one replica, with the scrapes of the others that are nearest. A
    /// replica that was never read leaves none.
    pub(crate) fn total(&self) -> Cow<'a, Telemetry> {
        let counted = self.counted();
        let [first, others @ ..] = counted.as_slice() else {
            return Cow::Borrowed(&self.observations.telemetry);
        };
        if others.is_empty() {
            return Cow::Borrowed(first);
        }
        let mut recordings = Vec::with_capacity(counted.len());
        for telemetry in &counted {
            match telemetry {
                Telemetry::Recorded(recording) => recordings.push(recording),
                Telemetry::Absent(_) => return Cow::Borrowed(telemetry),
            }
        }
        Cow::Owned(Telemetry::Recorded(sum(&recordings, self.every)))
    }

    /// Each source by itself; none where there is but one.
    pub(crate) fn figures(&self) -> Vec<SourceFigures> {
        if self.sources.len() < 2 {
            return Vec::new();
        }
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for source in self.sources {
            *names.entry(source.base.authority()).or_default() += 1;
        }
        let figures = self.sources.iter().enumerate().map(|(number, source)| {
            let own = source.base.authority();
            let path = source.path.split('?').next().unwrap_or_default();
            let name = if 1 < names[&own] { format!("{own}{path}") } else { own };
            let found = match self.telemetry(number) {
                // Its totals are compared with nothing.
                Some(telemetry) => ServerSide::new(
                    telemetry,
                    self.observations,
                    (&Tokens::default(), Extremes::default(), false),
                ),
                None => Err("nothing was recorded".to_owned()),
            };
            let missing = found.as_ref().err().cloned();
            SourceFigures { name, role: source.role, figures: found.ok().map(Box::new), missing }
        });
        figures.collect()
    }
}

/// The scrapes of the first recording, each with those of the others that are nearest in time. One
/// without a neighbour is left out, as it would be no total.
fn sum(recordings: &[&Recording], every: Duration) -> Recording {
    let [first, others @ ..] = recordings else {
        return Recording { samples: Vec::new(), missed: Vec::new(), skipped: 0 };
    };
    let samples = first.samples.iter().filter_map(|sample| {
        let mut total = sample.clone();
        for other in others {
            add(&mut total, nearest(&other.samples, sample, every)?);
        }
        Some(total)
    });
    Recording {
        samples: samples.collect(),
        missed: recordings.iter().flat_map(|it| it.missed.iter().copied()).collect(),
        skipped: recordings.iter().fold(0, |sum, it| sum.saturating_add(it.skipped)),
    }
}

/// The sample that is nearest in time, no further away than a period and a slow scrape.
fn nearest<'a>(
    samples: &'a [TelemetrySample],
    to: &TelemetrySample,
    every: Duration,
) -> Option<&'a TelemetrySample> {
    const SLOW: Duration = Duration::from_secs(2);
    let after = samples.partition_point(|sample| sample.at < to.at);
    let neighbours = samples[..after].last().into_iter().chain(samples.get(after));
    let apart = |sample: &&TelemetrySample| sample.at.nanos_after(to.at).unsigned_abs();
    let found = neighbours.min_by_key(apart)?;
    (u128::from(apart(&found)) <= (every + SLOW).as_nanos()).then_some(found)
}

/// A value that one of them does not report is not known of all.
fn add(total: &mut TelemetrySample, other: &TelemetrySample) {
    let plus = |sum: &mut Option<f64>, more: Option<f64>| {
        *sum = sum.zip(more).map(|(sum, more)| sum + more);
    };
    let fuller = |one: &mut Option<f64>, other: Option<f64>| {
        *one = one.zip(other).map(|(one, other)| one.max(other));
    };
    total.took = total.took.max(other.took);
    // Another start of any of them changes the sum.
    plus(&mut total.process_start_s, other.process_start_s);
    let (gauges, more) = (&mut total.gauges, &other.gauges);
    plus(&mut gauges.running, more.running);
    plus(&mut gauges.waiting, more.waiting);
    plus(&mut gauges.swapped, more.swapped);
    fuller(&mut gauges.kv_usage, more.kv_usage);
    fuller(&mut gauges.cpu_kv_usage, more.cpu_kv_usage);
    let (counters, more) = (&mut total.counters, &other.counters);
    plus(&mut counters.prefix_queries, more.prefix_queries);
    plus(&mut counters.prefix_hits, more.prefix_hits);
    plus(&mut counters.preemptions, more.preemptions);
    plus(&mut counters.prompt_tokens, more.prompt_tokens);
    plus(&mut counters.generation_tokens, more.generation_tokens);
    let timing = |sum: &mut Option<SumCount>, more: Option<SumCount>| {
        *sum = sum.zip(more).map(|(sum, more)| SumCount {
            sum_s: sum.sum_s + more.sum_s,
            count: sum.count + more.count,
        });
    };
    let (timings, more) = (&mut total.timings, &other.timings);
    timing(&mut timings.ttft, more.ttft);
    timing(&mut timings.e2e, more.e2e);
    timing(&mut timings.queue, more.queue);
    let speculation = total.speculation.take().zip(other.speculation.as_ref());
    total.speculation = speculation.map(|(mut sum, more)| {
        let SpeculationCounters { steps, drafted, accepted, by_position } = &mut *sum;
        plus(steps, more.steps);
        plus(drafted, more.drafted);
        plus(accepted, more.accepted);
        by_position.truncate(more.by_position.len());
        for (sum, more) in by_position.iter_mut().zip(&more.by_position) {
            *sum += more;
        }
        sum
    });
    total.dropped = total.dropped.saturating_add(other.dropped);
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums of small whole numbers are exact")]
mod tests {
    use inferometer_model::Moment;
    use inferometer_model::telemetry::{Absence, Counters, Gauges};

    use super::*;
    use crate::fixture::{calm, raised, sample};
    use crate::judge::Severity;
    use crate::summarize;

    fn source(text: &str, role: MetricsRole) -> MetricsSource {
        MetricsSource { role, base: text.parse().unwrap(), path: "/metrics".to_owned() }
    }

    /// Read before the run and after it, with as many tokens and requests at work.
    fn recorded(tokens: f64, running: f64, apart_ns: u64) -> Telemetry {
        let end = calm().ending.at.as_nanos() + 1_000_000;
        let at = |ns: u64, tokens: f64| TelemetrySample {
            gauges: Gauges {
                running: Some(running),
                kv_usage: Some(running / 10.0),
                ..Gauges::default()
            },
            counters: Counters {
                prompt_tokens: Some(100.0 + tokens),
                generation_tokens: Some(tokens),
                ..Counters::default()
            },
            ..sample(Moment::from_nanos(ns))
        };
        let samples =
            vec![at(0, 0.0), at(end / 2 + apart_ns, tokens / 2.0), at(end + apart_ns, tokens)];
        Telemetry::Recorded(Recording { samples, missed: Vec::new(), skipped: 0 })
    }

    fn run(sources: Vec<MetricsSource>, telemetry: Vec<Telemetry>) -> Observations {
        let mut observations = calm();
        observations.manifest.spec.telemetry.as_mut().unwrap().sources = sources;
        let mut numbered = (0..).zip(telemetry);
        observations.telemetry = numbered.next().unwrap().1;
        observations.more_telemetry = numbered.collect();
        observations
    }

    fn two(roles: [MetricsRole; 2], telemetry: [Telemetry; 2]) -> Observations {
        let [a, b] = roles;
        let sources = vec![source("http://10.0.0.1:8000", a), source("http://10.0.0.2:8000", b)];
        run(sources, telemetry.into())
    }

    #[test]
    fn totals_are_sums_of_the_replicas_and_each_has_a_row() {
        let both = [recorded(400.0, 3.0, 0), recorded(100.0, 1.0, 40_000)];
        let summary = summarize(&two([MetricsRole::Replica; 2], both));
        let server = summary.server.unwrap();
        assert_eq!(server.generation_tokens.unwrap().total, 500.0);
        assert_eq!(server.running.unwrap().max, 4.0);
        assert_eq!(server.kv_usage.unwrap().max, 0.3, "of the fullest");
        assert_eq!((server.restarts, server.replicas), (0, None));
        let rows: Vec<_> = server
            .sources
            .iter()
            .filter_map(|it| {
                Some((it.name.as_str(), it.figures.as_ref()?.generation_tokens?.total))
            })
            .collect();
        assert_eq!(rows, [("10.0.0.1:8000", 400.0), ("10.0.0.2:8000", 100.0)]);
    }

    #[test]
    fn a_router_is_in_no_total_and_a_replica_that_is_silent_leaves_none() {
        let both = [recorded(400.0, 3.0, 0), recorded(500.0, 4.0, 0)];
        let summary = summarize(&two([MetricsRole::Replica, MetricsRole::Router], both));
        let server = summary.server.unwrap();
        assert_eq!(server.generation_tokens.unwrap().total, 400.0);
        assert_eq!(server.sources.len(), 2);
        let silent = Telemetry::Absent(Absence::NothingRecorded);
        let half = summarize(&two([MetricsRole::Replica; 2], [recorded(4.0, 1.0, 0), silent]));
        assert!(half.server.is_none() && half.server_missing.is_some());
    }

    #[test]
    fn a_value_that_one_replica_lacks_is_not_known_of_all() {
        let mut total = sample(Moment::ZERO);
        total.counters.prompt_tokens = Some(3.0);
        add(&mut total, &sample(Moment::ZERO));
        assert_eq!(total.counters.prompt_tokens, None);
    }

    #[test]
    fn replicas_with_uneven_loads_are_a_finding_and_even_ones_are_not() {
        let key = |first: f64, second: f64, roles| {
            let both = [recorded(first, 1.0, 0), recorded(second, 1.0, 0)];
            let found = raised(&two(roles, both));
            found.contains(&("replicas-uneven", Severity::Note))
        };
        let replicas = [MetricsRole::Replica; 2];
        assert!(key(4_000.0, 10.0, replicas));
        assert!(!key(2_010.0, 2_000.0, replicas));
        assert!(!key(4_000.0, 10.0, [MetricsRole::Prefill, MetricsRole::Decode]));
    }
}
