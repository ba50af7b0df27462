//! One request at a time, by our definitions: what tables for other programs are made of.
//!
//! The summary's figures follow from these rows, so who has a table can check them. A latency stands
//! only where the summary counts it: on answers that ended `ok`.

use inferometer_model::{Moment, Observations, Outcome, RequestRecord};

use crate::arrivals::Output;
use crate::request_metrics::RequestLatencies;
use crate::ruler::Ruler;
use crate::tokens::{InputTokens, OutputTokens, TokenSource};

/// One request with its latencies in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestDetail<'run> {
    pub record: &'run RequestRecord,
    pub input_tokens: u64,
    /// Whether the server counted the input; otherwise it is the length that was asked for.
    pub input_reported: bool,
    /// `None` where there is no output to count.
    pub output_tokens: Option<(u64, TokenSource)>,
    pub latencies: RequestLatencies,
    pub arrivals: Vec<ArrivalDetail>,
}

/// All output that came at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalDetail {
    pub at: Moment,
    pub events: u32,
    /// Where the server says it for each of the events.
    pub tokens: Option<u64>,
    /// Since the arrival before it; none of the first.
    pub icl_ms: Option<f64>,
    /// For each of its tokens: the gap, and those of arrivals without a token before it, shared out.
    pub itl_ms: Option<f64>,
}

/// Reads the records of a run one by one, in the order of their ids.
pub fn requests(observations: &Observations) -> impl Iterator<Item = RequestDetail<'_>> {
    let mut reader = Reader::new(observations);
    observations.records.iter().map(move |record| reader.read(record))
}

struct Reader {
    ruler: Ruler,
    output: Output,
    streaming: bool,
    generates: bool,
}

impl Reader {
    fn new(observations: &Observations) -> Self {
        let mapping = observations.ending.client.mapping;
        Self {
            ruler: Ruler::new(mapping.map_or(0, |mapping| mapping.error_ns_max)),
            output: Output::default(),
            streaming: observations.manifest.spec.workload.streaming,
            generates: observations.manifest.spec.api.generates(),
        }
    }

    fn read<'run>(&mut self, record: &'run RequestRecord) -> RequestDetail<'run> {
        let Self { ruler, output, .. } = self;
        output.read(record, ruler);
        let counted =
            if self.generates { OutputTokens::of(record, output) } else { OutputTokens::NONE };
        let latencies = RequestLatencies::measure(record, output, counted, ruler);
        let is_answer = record.ending.outcome == Outcome::Ok;
        let input = InputTokens::of(record);
        RequestDetail {
            record,
            input_tokens: input.count,
            input_reported: input.reported,
            output_tokens: (self.generates && 0 < counted.count)
                .then_some((counted.count, counted.source)),
            latencies: if self.streaming { latencies } else { latencies.without_stream() },
            arrivals: arrivals(output, ruler, self.streaming && is_answer),
        }
    }
}

fn arrivals(output: &Output, ruler: &mut Ruler, has_gaps: bool) -> Vec<ArrivalDetail> {
    let mut before: Option<Moment> = None;
    let mut carried_over = 0.0;
    let read = output.arrivals.iter().map(|arrival| {
        let before = before.replace(arrival.at).filter(|_| has_gaps);
        let gap = before.and_then(|before| ruler.ms(before, arrival.at));
        let per_token = match (gap, arrival.tokens) {
            (Some(gap), Some(tokens)) if 0 < tokens => {
                Some((std::mem::take(&mut carried_over) + gap) / tokens as f64)
            }
            (Some(gap), _) => {
                carried_over += gap;
                None
            }
            (None, _) => None,
        };
        let (at, events, tokens) = (arrival.at, arrival.events, arrival.tokens);
        ArrivalDetail { at, events, tokens, icl_ms: gap, itl_ms: per_token }
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Given, calm, ms};
    use crate::metric;
    use crate::summary::summarize;

    fn sum(values: impl Iterator<Item = Option<f64>>) -> (u64, f64) {
        values.flatten().fold((0, 0.0), |(n, sum), value| (n + 1, sum + value))
    }

    #[test]
    fn the_summary_follows_from_the_rows() {
        let observations = calm();
        let summary = summarize(&observations);
        let rows: Vec<RequestDetail<'_>> = requests(&observations).collect();
        assert_eq!(rows.len() as u64, summary.attempted);
        let tokens = rows.iter().filter_map(|row| row.output_tokens).map(|(count, _)| count);
        assert_eq!(tokens.sum::<u64>(), summary.tokens.output_total);
        for (name, (n, sum)) in [
            ("ttft", sum(rows.iter().map(|row| row.latencies.get(&metric::TTFT)))),
            ("tpot", sum(rows.iter().map(|row| row.latencies.get(&metric::TPOT)))),
            ("e2e_schedule", sum(rows.iter().map(|row| row.latencies.get(&metric::E2E_SCHEDULE)))),
            ("send_lag", sum(rows.iter().map(|row| row.latencies.get(&metric::SEND_LAG)))),
            ("icl", sum(rows.iter().flat_map(|row| &row.arrivals).map(|found| found.icl_ms))),
        ] {
            let found =
                summary.metrics.distribution(crate::metric::Metric::named(name).unwrap()).unwrap();
            assert!(0 < n, "{name}");
            assert_eq!(found.n, n, "{name}");
            assert!((found.mean.unwrap() - sum / n as f64).abs() < 1e-9, "{name}");
        }
    }

    #[test]
    fn a_failure_has_facts_and_no_latency_of_an_answer() {
        let mut observations = calm();
        let failed = Given::failed(0, Outcome::Truncated).no_usage().arrival(50, &[Some(1)]);
        observations.records = vec![failed.arrival(60, &[Some(2)]).record()];
        let row = requests(&observations).next().unwrap();
        assert_eq!(
            (
                row.latencies.get(&metric::TTFT),
                row.latencies.get(&metric::E2E),
                row.latencies.get(&metric::TPOT)
            ),
            (None, None, None)
        );
        assert_eq!(row.output_tokens, Some((3, TokenSource::StreamMarks)));
        let last = row.arrivals[1];
        assert_eq!((last.at, last.tokens, last.icl_ms), (ms(60), Some(2), None));
    }

    #[test]
    fn text_without_tokens_passes_its_gap_on() {
        let mut observations = calm();
        let given = Given::ok(0).arrival(100, &[Some(1)]).arrival(110, &[Some(0)]);
        observations.records = vec![given.arrival(130, &[Some(2)]).record()];
        let row = requests(&observations).next().unwrap();
        let per_token: Vec<Option<f64>> = row.arrivals.iter().map(|found| found.itl_ms).collect();
        assert_eq!(per_token, [None, None, Some(15.0)]);
    }
}
