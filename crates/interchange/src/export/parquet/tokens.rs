//! One row for each arrival of output: all tokens that came at one moment, of every request.

use inferometer_analysis::detail::ArrivalDetail;
use inferometer_model::RequestId;

use super::table::{Cell, Column};

pub(super) struct TokenRow {
    result: String,
    request: u64,
    arrival: u64,
    at_ns: Option<u64>,
    events: Option<u64>,
    tokens: Option<u64>,
    icl_ms: Option<f64>,
    itl_ms: Option<f64>,
}

pub(super) fn columns() -> Vec<Column<TokenRow>> {
    vec![
        ("result", Cell::Text(|row| Some(&row.result))),
        ("request", Cell::Whole(|row| Some(row.request))),
        ("arrival", Cell::Whole(|row| Some(row.arrival))),
        ("at_ns", Cell::Whole(|row| row.at_ns)),
        ("events", Cell::Whole(|row| row.events)),
        ("tokens", Cell::Whole(|row| row.tokens)),
        ("icl_ms", Cell::Real(|row| row.icl_ms)),
        ("itl_ms", Cell::Real(|row| row.itl_ms)),
    ]
}

impl TokenRow {
    pub(super) fn of(name: &str, request: RequestId, arrival: u64, found: &ArrivalDetail) -> Self {
        Self {
            result: name.to_owned(),
            request: request.0,
            arrival,
            at_ns: Some(found.at.as_nanos()),
            events: Some(found.events.into()),
            tokens: found.tokens,
            icl_ms: found.icl_ms,
            itl_ms: found.itl_ms,
        }
    }

    /// A gap is all that other tools say; the first arrival has none, so it has no row.
    pub(super) fn of_foreign(name: &str, request: u64, arrival: u64, gap_s: f64) -> Self {
        Self {
            result: name.to_owned(),
            request,
            arrival,
            at_ns: None,
            events: None,
            tokens: None,
            icl_ms: Some(gap_s * 1e3),
            itl_ms: None,
        }
    }
}
