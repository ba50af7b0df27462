//! Tables of requests, tokens and telemetry for data frames, as Parquet.
//!
//! Columns are in snake case with their unit at the end. What is not known is null, never zero. Rows
//! are written in groups, so a table needs the memory of one group, however long the run was.

mod requests;
mod table;
mod telemetry;
mod tokens;

use std::io::Write;

use inferometer_analysis::detail::{self, RequestDetail};
use inferometer_analysis::sheet::Sheet;
use inferometer_model::Observations;

use self::requests::RequestRow;
use self::table::Table;
use self::telemetry::TelemetryRow;
use self::tokens::TokenRow;

/// The name of each table's file.
pub const REQUESTS: &str = "requests.parquet";
pub const TOKENS: &str = "tokens.parquet";
pub const TELEMETRY: &str = "telemetry.parquet";

#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    #[error("the table cannot be written: {0}")]
    Write(#[from] ::parquet::errors::ParquetError),
    #[error(
        "{name} says nothing of single requests, and a table of them would be empty; export it as \
         csv"
    )]
    NoRequests { name: String },
}

/// How many rows each table got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    pub requests: u64,
    pub tokens: u64,
    pub telemetry: u64,
}

/// The three tables of any number of results, one result after another.
pub struct Tables<W: Write + Send> {
    requests: Table<W, RequestRow>,
    tokens: Table<W, TokenRow>,
    telemetry: Table<W, TelemetryRow>,
}

impl<W: Write + Send> std::fmt::Debug for Tables<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

impl<W: Write + Send> Tables<W> {
    pub fn new(requests: W, tokens: W, telemetry: W) -> Result<Self, ParquetError> {
        Ok(Self {
            requests: Table::new(requests, requests::columns())?,
            tokens: Table::new(tokens, tokens::columns())?,
            telemetry: Table::new(telemetry, telemetry::columns())?,
        })
    }

    /// A run of ours, called `name`.
    pub fn add_run(&mut self, name: &str, run: &Observations) -> Result<(), ParquetError> {
        for detail in detail::requests(run) {
            self.requests.push(RequestRow::of(name, run, &detail))?;
            self.add_tokens(name, &detail)?;
        }
        for part in &run.not_sent {
            for id in part.first.0..part.first.0.saturating_add(part.count) {
                self.requests.push(RequestRow::not_sent(name, id, part.cause))?;
            }
        }
        for row in telemetry::rows(name, run) {
            self.telemetry.push(row)?;
        }
        Ok(())
    }

    /// A result of another tool, as far as it speaks of requests.
    pub fn add_sheet(&mut self, sheet: &Sheet) -> Result<(), ParquetError> {
        let name = &sheet.source.name;
        let Some(requests) = &sheet.requests else {
            return Err(ParquetError::NoRequests { name: name.clone() });
        };
        for (id, request) in (0..).zip(requests) {
            self.requests.push(RequestRow::of_foreign(name, sheet.source.tool, id, request))?;
            for (arrival, gap_s) in (1..).zip(&request.gaps_s) {
                self.tokens.push(TokenRow::of_foreign(name, id, arrival, *gap_s))?;
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Result<Rows, ParquetError> {
        Ok(Rows {
            requests: self.requests.finish()?,
            tokens: self.tokens.finish()?,
            telemetry: self.telemetry.finish()?,
        })
    }

    fn add_tokens(&mut self, name: &str, detail: &RequestDetail<'_>) -> Result<(), ParquetError> {
        for (number, arrival) in (0..).zip(&detail.arrivals) {
            self.tokens.push(TokenRow::of(name, detail.record.id, number, arrival))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
