//! A latency's statistics from its values, where a file has only those.

use inferometer_analysis::sheet::SheetLatency;

const RANKS: [(f64, &str); 6] =
    [(50.0, "50"), (75.0, "75"), (90.0, "90"), (95.0, "95"), (99.0, "99"), (99.9, "99.9")];

/// With percentiles between neighbouring values, as the tools that write such files have them.
pub(super) fn latency(mut values: Vec<f64>, empty: SheetLatency) -> Option<SheetLatency> {
    values.sort_by(f64::total_cmp);
    let (first, last) = (*values.first()?, *values.last()?);
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
    let percentiles = RANKS.map(|(rank, name)| (name.to_owned(), between(&values, rank)));
    Some(SheetLatency {
        n: Some(values.len() as u64),
        mean_ms: Some(mean),
        std_ms: Some(variance.sqrt()),
        min_ms: Some(first),
        max_ms: Some(last),
        percentiles_ms: percentiles.into_iter().collect(),
        ..empty
    })
}

fn between(sorted: &[f64], rank: f64) -> f64 {
    let place = rank / 100.0 * (sorted.len() - 1) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between zero and the length"
    )]
    let below = place as usize;
    let low = sorted[below];
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (high - low) * place.fract()
}
