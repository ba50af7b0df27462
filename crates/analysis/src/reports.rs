//! What the server reported of single requests, beside their answers: how many reports there were, how
//! many of their values cannot be true, reasoning tokens, and speculative decoding.

use inferometer_model::RequestRecord;
use inferometer_model::record::Speculation;
use inferometer_model::telemetry::SpeculationCounters;
use serde::{Deserialize, Serialize};

use crate::record::OutputTokens;

/// What the reports of `ok` requests come to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReportFigures {
    /// `ok` requests with a report.
    pub requests: u64,
    /// Reported values that cannot be true, and are in no figure.
    pub dropped: u64,
    /// Requests that report reasoning tokens, those tokens, and all output tokens of these requests.
    pub reasoning_requests: u64,
    pub reasoning_tokens: u64,
    pub reasoning_output_tokens: u64,
    pub speculation: Option<SpeculationFigures>,
}

/// Speculative decoding over many requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpeculationFigures {
    /// Verifications of a draft; null where they are not reported.
    pub steps: Option<f64>,
    pub drafted: Option<f64>,
    pub accepted: f64,
    /// The share of all steps that accepted the token at this position of the draft; empty where it is
    /// not reported.
    pub by_position: Vec<f64>,
}

impl SpeculationFigures {
    /// Tokens that each step yields: those accepted, and one of the model itself.
    pub fn acceptance_length(&self) -> Option<f64> {
        self.steps.filter(|steps| 0.0 < *steps).map(|steps| 1.0 + self.accepted / steps)
    }

    /// The share of the drafted tokens that was accepted.
    pub fn acceptance_rate(&self) -> Option<f64> {
        self.drafted.filter(|drafted| 0.0 < *drafted).map(|drafted| self.accepted / drafted)
    }

    /// What the server's counters grew by; `None` where nothing was drafted.
    pub(crate) fn from_counters(grown: &SpeculationCounters) -> Option<Self> {
        let accepted = grown.accepted?;
        grown.steps.or(grown.drafted).filter(|count| 0.0 < *count)?;
        let steps = grown.steps.filter(|steps| 0.0 < *steps);
        let by_position =
            steps.map(|steps| grown.by_position.iter().map(|it| it / steps).collect());
        Some(Self {
            steps,
            drafted: grown.drafted,
            accepted,
            by_position: by_position.unwrap_or_default(),
        })
    }
}

/// The figures while the records are read.
#[derive(Debug, Default)]
pub(crate) struct ReportTally {
    figures: ReportFigures,
    speculation: Option<SpeculationTally>,
    /// Some requests do not report it, so that their sum says nothing.
    lacks_steps: bool,
    lacks_drafted: bool,
}

#[derive(Debug, Default)]
struct SpeculationTally {
    steps: f64,
    drafted: f64,
    accepted: f64,
    /// Steps of the requests with a histogram, and those of them that accepted each position.
    listed_steps: f64,
    accepted_at: Vec<f64>,
}

impl ReportTally {
    pub(crate) fn add_ok(&mut self, record: &RequestRecord, tokens: OutputTokens) {
        let Some(report) = &record.server else { return };
        let figures = &mut self.figures;
        figures.requests += 1;
        figures.dropped = figures.dropped.saturating_add(report.dropped.into());
        if let Some(reasoning) = report.reasoning_tokens {
            figures.reasoning_requests += 1;
            figures.reasoning_tokens = figures.reasoning_tokens.saturating_add(reasoning);
            let output = figures.reasoning_output_tokens;
            figures.reasoning_output_tokens = output.saturating_add(tokens.count);
        }
        if let Some(speculation) = &report.speculation {
            self.lacks_steps |= speculation.steps.is_none();
            self.lacks_drafted |= speculation.drafted.is_none();
            self.speculation.get_or_insert_default().add(speculation);
        }
    }

    pub(crate) fn has_reports(&self) -> bool {
        0 < self.figures.requests
    }

    /// `None` where no request has a report.
    pub(crate) fn finish(self) -> Option<ReportFigures> {
        let speculation = self.speculation.map(|sums| SpeculationFigures {
            steps: (!self.lacks_steps).then_some(sums.steps),
            drafted: (!self.lacks_drafted).then_some(sums.drafted),
            accepted: sums.accepted,
            by_position: sums.accepted_at.iter().map(|it| it / sums.listed_steps).collect(),
        });
        let figures = ReportFigures { speculation, ..self.figures };
        (0 < figures.requests).then_some(figures)
    }
}

impl SpeculationTally {
    fn add(&mut self, found: &Speculation) {
        self.steps += found.steps.unwrap_or(0) as f64;
        self.drafted += found.drafted.unwrap_or(0) as f64;
        self.accepted += found.accepted as f64;
        let positions = found.histogram.len().saturating_sub(1);
        if self.accepted_at.len() < positions {
            self.accepted_at.resize(positions, 0.0);
        }
        // A step that accepted three tokens accepted those at the first three positions.
        let mut through = 0.0;
        for (position, steps) in found.histogram.iter().enumerate().rev() {
            through += *steps as f64;
            if let Some(before) = position.checked_sub(1) {
                self.accepted_at[before] += through;
            }
        }
        self.listed_steps += through;
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums of small whole numbers are exact")]
mod tests {
    use inferometer_model::record::ServerReport;

    use super::*;
    use crate::fixture::Given;
    use crate::record::TokenSource;

    fn tally(reports: impl IntoIterator<Item = ServerReport>) -> Option<ReportFigures> {
        let mut tally = ReportTally::default();
        let tokens = OutputTokens { count: 20, source: TokenSource::Usage, zero_usage: false };
        for report in reports {
            let record = RequestRecord { server: Some(Box::new(report)), ..Given::ok(0).record() };
            tally.add_ok(&record, tokens);
        }
        tally.finish()
    }

    fn speculated(steps: Option<u64>, accepted: u64, histogram: &[u64]) -> ServerReport {
        let histogram = histogram.to_vec();
        let speculation =
            Speculation { steps, drafted: steps.map(|it| 3 * it), accepted, histogram };
        ServerReport { speculation: Some(speculation), ..ServerReport::default() }
    }

    #[test]
    fn positions_are_shares_of_all_steps() {
        let found =
            tally([speculated(Some(4), 7, &[1, 1, 0, 2]), speculated(Some(6), 3, &[4, 1, 1])]);
        let found = found.unwrap().speculation.unwrap();
        assert_eq!((found.steps, found.drafted, found.accepted), (Some(10.0), Some(30.0), 10.0));
        assert_eq!(found.by_position, [0.5, 0.3, 0.2]);
        assert_eq!(found.by_position.iter().sum::<f64>() * 10.0, found.accepted);
        assert_eq!(found.acceptance_length(), Some(2.0));
        assert_eq!(found.acceptance_rate(), Some(1.0 / 3.0));
    }

    #[test]
    fn a_sum_of_which_a_part_is_missing_is_missing() {
        let found = tally([speculated(Some(4), 2, &[]), speculated(None, 1, &[])]);
        let found = found.unwrap().speculation.unwrap();
        assert_eq!((found.steps, found.drafted, found.accepted), (None, None, 3.0));
        assert_eq!((found.acceptance_length(), found.acceptance_rate()), (None, None));
        assert!(found.by_position.is_empty());
        assert_eq!(tally([]), None);
    }

    #[test]
    fn reasoning_is_a_share_of_the_requests_that_report_it() {
        let reasoning =
            |tokens| ServerReport { reasoning_tokens: tokens, ..ServerReport::default() };
        let found = tally([reasoning(Some(5)), reasoning(Some(0)), reasoning(None)]).unwrap();
        let counts = (found.reasoning_requests, found.reasoning_tokens);
        assert_eq!((counts, found.reasoning_output_tokens, found.requests), ((2, 5), 40, 3));
    }

    #[test]
    fn counters_of_a_server_that_drafted_nothing_are_nothing() {
        let grown = |steps, accepted| SpeculationCounters {
            steps,
            drafted: Some(8.0),
            accepted,
            by_position: vec![3.0, 1.0],
        };
        let found = SpeculationFigures::from_counters(&grown(Some(4.0), Some(4.0))).unwrap();
        assert_eq!(found.by_position, [0.75, 0.25]);
        assert_eq!((found.acceptance_length(), found.acceptance_rate()), (Some(2.0), Some(0.5)));
        assert_eq!(SpeculationFigures::from_counters(&grown(Some(0.0), Some(0.0))), None);
        assert_eq!(SpeculationFigures::from_counters(&grown(Some(4.0), None)), None);
    }
}
