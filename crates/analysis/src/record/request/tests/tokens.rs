//! Tests of `tokens`.

use inferometer_model::record::Usage;

use crate::fixture::Given;
use crate::record::request::*;

fn count(record: &RequestRecord, tokens: &mut Tokens) -> OutputTokens {
    let mut output = Output::default();
    output.read(record, &mut Ruler::new(0));
    let counted = OutputTokens::from_record(record, &output);
    tokens.add(record, &output, counted);
    counted
}

fn counted(record: &RequestRecord) -> OutputTokens {
    count(record, &mut Tokens::default())
}

/// Faults: 61.
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

/// Faults: 62.
#[test]
fn a_usage_of_zero_is_not_believed_when_there_is_output() {
    let found = counted(&Given::ok(0).arrival(50, &[None]).usage(10, 0).record());
    let expected = OutputTokens { count: 1, source: TokenSource::Events, zero_usage: true };
    assert_eq!(found, expected);
    let empty = counted(&Given::ok(0).usage(10, 0).record());
    let expected = OutputTokens { count: 0, source: TokenSource::Usage, zero_usage: false };
    assert_eq!(empty, expected);
}

/// Faults: 5, 48.
#[test]
fn a_count_beyond_what_was_asked_and_what_arrived_is_not_believed() {
    let answer = |tokens| Given::ok(0).asked(10, 16).arrival(50, &[None, None]).usage(10, tokens);
    assert_eq!(counted(&answer(16).record()).source, TokenSource::Usage);
    for tokens in [17, 1_600, 1 << 63, u64::MAX] {
        let found = counted(&answer(tokens).record());
        assert_eq!((found.count, found.source), (2, TokenSource::Events), "{tokens}");
    }
    // A server that ignores max_tokens did send as much as it counts.
    let ignoring = Given::ok(0).asked(10, 1).arrival(50, &[None, None]).usage(10, 2);
    assert_eq!(counted(&ignoring.record()).source, TokenSource::Usage);
}

#[test]
fn totals_are_of_ok_requests_and_the_rest_is_wasted() {
    let mut tokens = Tokens::default();
    count(&Given::ok(0).asked(10, 7).arrival(50, &[Some(1)]).usage(10, 7).record(), &mut tokens);
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
    record.usage =
        Some(Usage { prompt_tokens: Some(10), completion_tokens: Some(1), cached_tokens: Some(4) });
    count(&record, &mut tokens);
    count(&record, &mut tokens);
    assert_eq!(tokens.cached_total, Some(8));
}
