//! The lists with one value for each request.

use inferometer_analysis::sheet::SheetRequest;

use super::Shape;
use super::value::{Object, Value};

/// Here that tool has zeroes for what a failed request does not have, and a list has no holes; a
/// list of which no request has anything is left out, as its zeroes would pass for figures.
pub(super) fn set<'a>(
    object: &mut Object<'a>,
    requests: &'a [SheetRequest],
    shape: Shape,
    is_pooling: bool,
) {
    let any = |has: fn(&SheetRequest) -> bool| requests.iter().any(has);
    let mut list = |key: &'static str, has: fn(&SheetRequest) -> bool, values: Value<'a>| {
        if any(has) {
            object.set(key, values);
        }
    };
    let counts = |of| Value::Counts(requests, of);
    let numbers = |of| Value::Numbers(requests, of);
    list(
        "input_lens",
        |row| row.input_tokens.is_some(),
        counts(|row| row.input_tokens.unwrap_or(0)),
    );
    if !is_pooling {
        let outputs = counts(|row| row.output_tokens.unwrap_or(0));
        list("output_lens", |row| row.output_tokens.is_some(), outputs);
        list("ttfts", |row| row.ttft_s.is_some(), numbers(|row| row.ttft_s.unwrap_or(0.0)));
        // An answer of one chunk has no gap.
        let has_gaps = |row: &SheetRequest| row.ttft_s.is_some() || !row.gaps_s.is_empty();
        list("itls", has_gaps, Value::Lists(requests, |row| &row.gaps_s));
    }
    if shape == Shape::New {
        list("latencies", |row| row.e2e_s.is_some(), numbers(|row| row.e2e_s.unwrap_or(0.0)));
        list("start_times", |row| row.start_s.is_some(), numbers(|row| row.start_s.unwrap_or(0.0)));
        list(
            "queue_times",
            |row| row.queued_s.is_some(),
            numbers(|row| row.queued_s.unwrap_or(0.0)),
        );
    }
    if !is_pooling {
        let texts = Value::Texts(requests, |row| row.text.as_deref());
        list("generated_texts", |row| row.text.is_some(), texts);
    }
    list("errors", |row| row.error.is_some(), Value::Texts(requests, |row| row.error.as_deref()));
}
