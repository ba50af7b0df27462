//! A table of published figures, written as TOML: one `[[row]]` per scenario.

use serde::Deserialize;

/// The rows in the order in which they were measured: an earlier one may have warmed a cache for a
/// later one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    #[serde(rename = "row")]
    pub rows: Vec<PublishedRow>,
}

/// What was asked of the server, which must be known, and what came of it, as far as published.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedRow {
    pub name: String,
    pub input_tokens: u32,
    pub output_tokens: u32,
    /// Lengths are uniform within ± this share of the above.
    pub range_ratio: f64,
    pub concurrency: u32,
    pub requests: u64,
    pub output_throughput: Option<f64>,
    /// Throughput of the best second.
    pub peak_output_throughput: Option<f64>,
    pub ttft_mean_ms: Option<f64>,
    pub ttft_median_ms: Option<f64>,
    pub ttft_p99_ms: Option<f64>,
    pub tpot_mean_ms: Option<f64>,
    pub tpot_median_ms: Option<f64>,
    pub tpot_p99_ms: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishedTableError {
    #[error("the table of published figures cannot be read: {0}")]
    Toml(#[from] toml::de::Error),
    #[error("the table of published figures has no `[[row]]`")]
    NoRows,
    #[error("row {row} (`{name}`) of the published figures: `{key}` {problem}")]
    Row { row: usize, name: String, key: &'static str, problem: &'static str },
}

impl PublishedTable {
    pub fn read(text: &str) -> Result<Self, PublishedTableError> {
        let table: Self = toml::from_str(text)?;
        if table.rows.is_empty() {
            return Err(PublishedTableError::NoRows);
        }
        for (index, row) in table.rows.iter().enumerate() {
            row.check().map_err(|(key, problem)| PublishedTableError::Row {
                row: index + 1,
                name: row.name.clone(),
                key,
                problem,
            })?;
        }
        Ok(table)
    }
}

impl PublishedRow {
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let counts = [
            ("input_tokens", u64::from(self.input_tokens)),
            ("output_tokens", u64::from(self.output_tokens)),
            ("concurrency", u64::from(self.concurrency)),
            ("requests", self.requests),
        ];
        if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return Err((key, "is zero; give at least one"));
        }
        if !(0.0..1.0).contains(&self.range_ratio) {
            return Err(("range_ratio", "must be at least 0 and less than 1"));
        }
        let figures = [
            ("output_throughput", self.output_throughput),
            ("peak_output_throughput", self.peak_output_throughput),
            ("ttft_mean_ms", self.ttft_mean_ms),
            ("ttft_median_ms", self.ttft_median_ms),
            ("ttft_p99_ms", self.ttft_p99_ms),
            ("tpot_mean_ms", self.tpot_mean_ms),
            ("tpot_median_ms", self.tpot_median_ms),
            ("tpot_p99_ms", self.tpot_p99_ms),
        ];
        let is_figure = |figure: f64| figure.is_finite() && figure > 0.0;
        match figures.into_iter().find(|(_, figure)| figure.is_some_and(|f| !is_figure(f))) {
            Some((key, _)) => Err((key, "is not a positive number; leave out what is not known")),
            None => Ok(()),
        }
    }
}
