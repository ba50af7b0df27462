//! A latency's statistics from its values, where a file has only those.

use inferometer_analysis::sheet::SheetLatency;
use inferometer_analysis::{Probability, Sample};

const RANKS: [(f64, &str); 6] =
    [(0.5, "50"), (0.75, "75"), (0.9, "90"), (0.95, "95"), (0.99, "99"), (0.999, "99.9")];

/// With percentiles between neighbouring values, as the tools that write such files have them.
pub(super) fn latency(values: Vec<f64>, empty: SheetLatency) -> Option<SheetLatency> {
    let sample = Sample::new(values)?;
    let percentiles = RANKS.iter().filter_map(|(share, rank)| {
        Some(((*rank).to_owned(), sample.quantile(Probability::new(*share)?)))
    });
    Some(SheetLatency {
        n: Some(sample.count()),
        mean_ms: Some(sample.mean()),
        std_ms: Some(sample.std_population()),
        min_ms: Some(sample.min()),
        max_ms: Some(sample.max()),
        percentiles_ms: percentiles.collect(),
        ..empty
    })
}
