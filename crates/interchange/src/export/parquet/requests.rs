//! One row for each scheduled request: its facts as moments, its figures by our definitions.

use inferometer_analysis::TokenSource;
use inferometer_analysis::detail::RequestDetail;
use inferometer_analysis::sheet::{SheetRequest, Tool};
use inferometer_model::outcome::Cause;
use inferometer_model::{Moment, Observations, Outcome};

use super::table::{Cell, Column};

#[derive(Default)]
pub(super) struct RequestRow {
    result: String,
    tool: &'static str,
    request: u64,
    turn: Option<u64>,
    part: Option<u64>,
    outcome: Option<&'static str>,
    cause: Option<&'static str>,
    error: Option<String>,
    http_status: Option<u64>,
    finish_reason: Option<String>,
    connection_reused: Option<bool>,
    sent_time_ns: Option<i64>,
    intended_ns: Option<u64>,
    admitted_ns: Option<u64>,
    sent_ns: Option<u64>,
    first_output_ns: Option<u64>,
    last_output_ns: Option<u64>,
    ended_ns: Option<u64>,
    asked_input_tokens: Option<u64>,
    asked_output_tokens: Option<u64>,
    input_tokens: Option<u64>,
    input_tokens_source: Option<&'static str>,
    cached_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_source: Option<&'static str>,
    client_queue_ms: Option<f64>,
    send_lag_ms: Option<f64>,
    ttft_ms: Option<f64>,
    ttft_schedule_ms: Option<f64>,
    ttfc_ms: Option<f64>,
    tpot_ms: Option<f64>,
    e2e_ms: Option<f64>,
    e2e_schedule_ms: Option<f64>,
}

pub(super) fn columns() -> Vec<Column<RequestRow>> {
    vec![
        ("result", Cell::Text(|row| Some(&row.result))),
        ("tool", Cell::Text(|row| Some(row.tool))),
        ("request", Cell::Whole(|row| Some(row.request))),
        ("turn", Cell::Whole(|row| row.turn)),
        ("part", Cell::Whole(|row| row.part)),
        ("outcome", Cell::Text(|row| row.outcome)),
        ("cause", Cell::Text(|row| row.cause)),
        ("error", Cell::Text(|row| row.error.as_deref())),
        ("http_status", Cell::Whole(|row| row.http_status)),
        ("finish_reason", Cell::Text(|row| row.finish_reason.as_deref())),
        ("connection_reused", Cell::Flag(|row| row.connection_reused)),
        ("sent_time", Cell::Time(|row| row.sent_time_ns)),
        ("intended_ns", Cell::Whole(|row| row.intended_ns)),
        ("admitted_ns", Cell::Whole(|row| row.admitted_ns)),
        ("sent_ns", Cell::Whole(|row| row.sent_ns)),
        ("first_output_ns", Cell::Whole(|row| row.first_output_ns)),
        ("last_output_ns", Cell::Whole(|row| row.last_output_ns)),
        ("ended_ns", Cell::Whole(|row| row.ended_ns)),
        ("asked_input_tokens", Cell::Whole(|row| row.asked_input_tokens)),
        ("asked_output_tokens", Cell::Whole(|row| row.asked_output_tokens)),
        ("input_tokens", Cell::Whole(|row| row.input_tokens)),
        ("input_tokens_source", Cell::Text(|row| row.input_tokens_source)),
        ("cached_tokens", Cell::Whole(|row| row.cached_tokens)),
        ("output_tokens", Cell::Whole(|row| row.output_tokens)),
        ("output_tokens_source", Cell::Text(|row| row.output_tokens_source)),
        ("client_queue_ms", Cell::Real(|row| row.client_queue_ms)),
        ("send_lag_ms", Cell::Real(|row| row.send_lag_ms)),
        ("ttft_ms", Cell::Real(|row| row.ttft_ms)),
        ("ttft_schedule_ms", Cell::Real(|row| row.ttft_schedule_ms)),
        ("ttfc_ms", Cell::Real(|row| row.ttfc_ms)),
        ("tpot_ms", Cell::Real(|row| row.tpot_ms)),
        ("e2e_ms", Cell::Real(|row| row.e2e_ms)),
        ("e2e_schedule_ms", Cell::Real(|row| row.e2e_schedule_ms)),
    ]
}

impl RequestRow {
    pub(super) fn of(name: &str, run: &Observations, detail: &RequestDetail<'_>) -> Self {
        let record = detail.record;
        let finish = record.finishes.first();
        Self {
            request: record.id.0,
            turn: Some(record.asked.turn.into()),
            part: Some(record.asked.part.into()),
            cause: record.ending.cause.map(Cause::text),
            error: record.ending.message.clone(),
            http_status: record.head.map(|head| head.status.into()),
            finish_reason: finish.map(|finish| finish.reason.name().to_owned()),
            connection_reused: record.connection.map(|connection| connection.reused),
            sent_time_ns: record.sent.and_then(|sent| wall_ns(run, sent)),
            intended_ns: Some(record.intended.as_nanos()),
            admitted_ns: Some(record.admitted.as_nanos()),
            sent_ns: record.sent.map(Moment::as_nanos),
            first_output_ns: detail.arrivals.first().map(|arrival| arrival.at.as_nanos()),
            last_output_ns: detail.arrivals.last().map(|arrival| arrival.at.as_nanos()),
            ended_ns: Some(record.ending.at.as_nanos()),
            asked_input_tokens: Some(record.asked.input_tokens.into()),
            asked_output_tokens: Some(record.asked.output_tokens.into()),
            input_tokens: Some(detail.input_tokens),
            input_tokens_source: Some(if detail.input_reported { "usage" } else { "asked" }),
            cached_tokens: record.usage.and_then(|usage| usage.cached_tokens),
            output_tokens: detail.output_tokens.map(|(count, _)| count),
            output_tokens_source: detail.output_tokens.map(|(_, source)| source_key(source)),
            client_queue_ms: detail.client_queue_ms,
            send_lag_ms: detail.send_lag_ms,
            ttft_ms: detail.ttft_ms,
            ttft_schedule_ms: detail.ttft_schedule_ms,
            ttfc_ms: detail.ttfc_ms,
            tpot_ms: detail.tpot_ms,
            e2e_ms: detail.e2e_ms,
            e2e_schedule_ms: detail.e2e_schedule_ms,
            ..Self::ended(name, record.ending.outcome)
        }
    }

    pub(super) fn not_sent(name: &str, request: u64, cause: Cause) -> Self {
        Self { request, cause: Some(cause.text()), ..Self::ended(name, Outcome::NotSent) }
    }

    fn ended(name: &str, outcome: Outcome) -> Self {
        Self {
            result: name.to_owned(),
            tool: Tool::Inferometer.key(),
            outcome: Some(outcome.key()),
            ..Self::default()
        }
    }

    /// Latencies of other tools count from the sending; where they fail, a zero is no latency.
    pub(super) fn of_foreign(name: &str, tool: Tool, request: u64, found: &SheetRequest) -> Self {
        let error = found.error.as_deref();
        let failed = error.is_some_and(|error| !error.is_empty());
        let ms = |seconds: Option<f64>| seconds.filter(|_| !failed).map(|seconds| seconds * 1e3);
        Self {
            result: name.to_owned(),
            tool: tool.key(),
            request,
            outcome: error.map(|error| if error.is_empty() { "ok" } else { "failed" }),
            error: error.filter(|error| !error.is_empty()).map(str::to_owned),
            sent_ns: found.start_s.and_then(nanos),
            input_tokens: found.input_tokens,
            output_tokens: found.output_tokens,
            // A request waited whatever became of it.
            client_queue_ms: found.queued_s.map(|seconds| seconds * 1e3),
            ttft_ms: ms(found.ttft_s),
            e2e_ms: ms(found.e2e_s),
            ..Self::default()
        }
    }
}

/// Of another tool's own clock, which may have begun anywhere.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what does not fit is taken out first"
)]
fn nanos(seconds: f64) -> Option<u64> {
    let nanos = seconds * 1e9;
    (0.0..u64::MAX as f64).contains(&nanos).then_some(nanos as u64)
}

pub(super) fn wall_ns(run: &Observations, at: Moment) -> Option<i64> {
    let wall = run.manifest.clock.realtime_ns.checked_add(at.as_nanos())?;
    i64::try_from(wall).ok()
}

const fn source_key(source: TokenSource) -> &'static str {
    match source {
        TokenSource::Usage => "usage",
        TokenSource::StreamMarks => "stream_marks",
        TokenSource::Events => "events",
    }
}
