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
    Row { row: usize, name: String, key: String, problem: &'static str },
}

impl PublishedTable {
    pub fn read(text: &str) -> Result<Self, PublishedTableError> {
        let table: Self = toml::from_str(text)?;
        let values: toml::Table = toml::from_str(text)?;
        let values = values.get("row").and_then(toml::Value::as_array).into_iter().flatten();
        if table.rows.is_empty() {
            return Err(PublishedTableError::NoRows);
        }
        for (index, (row, values)) in table.rows.iter().zip(values).enumerate() {
            for (key, value) in values.as_table().into_iter().flatten() {
                let whole = value.as_integer().map(|number| number as f64);
                let Some(number) = value.as_float().or(whole) else { continue };
                let problem = match key.as_str() {
                    "range_ratio" if (0.0..1.0).contains(&number) => continue,
                    "range_ratio" => "must be at least 0 and less than 1",
                    _ if number.is_finite() && number > 0.0 => continue,
                    _ => "is not a positive number; leave out figures that are not known",
                };
                let (row, name, key) = (index + 1, row.name.clone(), key.clone());
                return Err(PublishedTableError::Row { row, name, key, problem });
            }
        }
        Ok(table)
    }
}
