//! How many tokens went in and came out, and who says so.

use inferometer_model::{Outcome, RequestRecord};
use serde::{Deserialize, Serialize};

use crate::arrivals::Output;
use crate::metric::Missing;

pub(crate) const NO_TOKENS: Missing = Missing("this API generates no tokens");

/// Who counted the output of a request, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenSource {
    /// The server's `usage`.
    Usage,
    /// Token ids, logprobs or growing usage on every event of the stream.
    StreamMarks,
    /// Nobody: one token is taken for each event.
    Events,
}

/// Tokens of a run. Totals are of `ok` requests, as the throughputs are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    /// Requests by the source of their input count.
    pub input_source: InputSources,
    /// Requests with output by the source of its count.
    pub output_source: OutputSources,
    pub input_total: u64,
    pub output_total: u64,
    /// Input tokens that the server took from its cache; null when it never says.
    pub cached_total: Option<u64>,
    /// `ok` requests whose answer was empty.
    pub without_output: u64,
    /// Output tokens of requests that did not end `ok`, by the same sources.
    pub wasted: u64,
    /// Output events of requests that did not end `ok`.
    pub wasted_events: u64,
    /// Empty deltas without a mark, over all requests: perhaps tokens, perhaps nothing.
    pub silent_events: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSources {
    pub usage: u64,
    /// The length that the workload asked for, since the server said nothing.
    pub asked: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSources {
    pub usage: u64,
    pub stream_marks: u64,
    pub events: u64,
}

/// The output of one request, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutputTokens {
    pub(crate) count: u64,
    pub(crate) source: TokenSource,
    /// Usage said zero although there was output, so it was not believed.
    pub(crate) zero_usage: bool,
}

/// The input of one request, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputTokens {
    pub(crate) count: u64,
    /// By the server; otherwise it is the length that was asked for.
    pub(crate) reported: bool,
}

impl OutputTokens {
    /// Of an API that generates nothing: its events are vectors or scores, and so is its usage.
    pub(crate) const NONE: Self = Self { count: 0, source: TokenSource::Events, zero_usage: false };

    pub(crate) fn of(record: &RequestRecord, output: &Output) -> Self {
        let said = record.usage.and_then(|usage| usage.completion_tokens);
        let zero_usage = said == Some(0) && 0 < output.events;
        let (count, source) = match (said, output.marked_tokens()) {
            (Some(count), _) if !zero_usage => (count, TokenSource::Usage),
            (_, Some(count)) => (count, TokenSource::StreamMarks),
            (_, None) => (output.events, TokenSource::Events),
        };
        Self { count, source, zero_usage }
    }
}

impl Tokens {
    pub(crate) fn add(&mut self, record: &RequestRecord, output: &Output, counted: OutputTokens) {
        self.silent_events += output.silent_events;
        if record.ending.outcome != Outcome::Ok {
            add(&mut self.wasted, counted.count);
            self.wasted_events += output.events;
            return;
        }
        let input = InputTokens::of(record);
        add(&mut self.input_total, input.count);
        self.input_source.usage += u64::from(input.reported);
        self.input_source.asked += u64::from(!input.reported);
        if let Some(cached) = record.usage.and_then(|usage| usage.cached_tokens) {
            add(self.cached_total.get_or_insert(0), cached);
        }
        self.without_output += u64::from(output.events == 0);
        if counted.count == 0 {
            return;
        }
        add(&mut self.output_total, counted.count);
        *match counted.source {
            TokenSource::Usage => &mut self.output_source.usage,
            TokenSource::StreamMarks => &mut self.output_source.stream_marks,
            TokenSource::Events => &mut self.output_source.events,
        } += 1;
    }
}

impl InputTokens {
    /// A prompt is never empty, so a reported zero says nothing.
    pub(crate) fn of(record: &RequestRecord) -> Self {
        match record.usage.and_then(|usage| usage.prompt_tokens) {
            Some(count) if 0 < count => Self { count, reported: true },
            _ => Self { count: record.asked.input_tokens.into(), reported: false },
        }
    }
}

/// Counts come from the server, which may say anything: a sum stops at the end of the numbers.
fn add(total: &mut u64, count: u64) {
    *total = total.saturating_add(count);
}

#[cfg(test)]
mod tests {
    use inferometer_model::record::Usage;

    use super::*;
    use crate::fixture::Given;
    use crate::ruler::Ruler;

    fn count(record: &RequestRecord, tokens: &mut Tokens) -> OutputTokens {
        let mut output = Output::default();
        output.read(record, &mut Ruler::new(0));
        let counted = OutputTokens::of(record, &output);
        tokens.add(record, &output, counted);
        counted
    }

    fn counted(record: &RequestRecord) -> OutputTokens {
        count(record, &mut Tokens::default())
    }

    #[test]
    fn usage_wins_over_marks_and_marks_over_events() {
        let marked = || Given::ok(0).arrival(50, &[Some(2)]).arrival(60, &[Some(3)]);
        let found = counted(&marked().usage(10, 9).record());
        assert_eq!((found.count, found.source), (9, TokenSource::Usage));
        let found = counted(&marked().no_usage().record());
        assert_eq!((found.count, found.source), (5, TokenSource::StreamMarks));
        let bare = Given::ok(0).arrival(50, &[None, Some(3)]).arrival(60, &[Some(1)]);
        let found = counted(&bare.no_usage().record());
        assert_eq!((found.count, found.source), (3, TokenSource::Events));
    }

    #[test]
    fn a_usage_of_zero_is_not_believed_when_there_is_output() {
        let found = counted(&Given::ok(0).arrival(50, &[None]).usage(10, 0).record());
        let expected = OutputTokens { count: 1, source: TokenSource::Events, zero_usage: true };
        assert_eq!(found, expected);
        let empty = counted(&Given::ok(0).usage(10, 0).record());
        let expected = OutputTokens { count: 0, source: TokenSource::Usage, zero_usage: false };
        assert_eq!(empty, expected);
    }

    #[test]
    fn totals_are_of_ok_requests_and_the_rest_is_wasted() {
        let mut tokens = Tokens::default();
        count(&Given::ok(0).arrival(50, &[Some(1)]).usage(10, 7).record(), &mut tokens);
        count(&Given::ok(1).arrival(50, &[None]).no_usage().record(), &mut tokens);
        count(&Given::ok(2).usage(12, 0).record(), &mut tokens);
        let failed = Given::failed(3, Outcome::Truncated).arrival(50, &[None, None]).no_usage();
        count(&failed.record(), &mut tokens);
        assert_eq!(tokens.output_total, 8);
        assert_eq!(tokens.output_source, OutputSources { usage: 1, stream_marks: 0, events: 1 });
        // The second request did not report its input: the asked 512 stand for it.
        assert_eq!(tokens.input_total, 10 + 512 + 12);
        assert_eq!(tokens.input_source, InputSources { usage: 2, asked: 1 });
        assert_eq!((tokens.wasted, tokens.wasted_events), (2, 2));
        assert_eq!(tokens.without_output, 1);
        assert_eq!(tokens.cached_total, None);
    }

    #[test]
    fn cached_tokens_are_added_where_the_server_says_them() {
        let mut tokens = Tokens::default();
        let mut record = Given::ok(0).arrival(50, &[None]).record();
        record.usage = Some(Usage {
            prompt_tokens: Some(10),
            completion_tokens: Some(1),
            cached_tokens: Some(4),
        });
        count(&record, &mut tokens);
        count(&record, &mut tokens);
        assert_eq!(tokens.cached_total, Some(8));
    }
}
