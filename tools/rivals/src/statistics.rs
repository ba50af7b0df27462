//! The few numbers that the tables need.

use super::tool::Percentiles;

pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

pub(crate) fn median(values: Vec<f64>) -> Option<f64> {
    percentiles(values).map(|found| found.p50)
}

/// By linear interpolation between order statistics, which is the default of `NumPy`.
pub(crate) fn percentiles(mut values: Vec<f64>) -> Option<Percentiles> {
    values.sort_by(f64::total_cmp);
    Some(Percentiles { p50: quantile(&values, 0.5)?, p99: quantile(&values, 0.99)? })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place inside the sorted values is neither negative nor large"
)]
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share * (sorted.len().checked_sub(1)? as f64);
    let below = place.floor();
    let (low, high) = (sorted[below as usize], sorted[place.ceil() as usize]);
    Some(low + (high - low) * (place - below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_neighbours() {
        // numpy.percentile([1, 2, 3, 4], [50, 99]) is [2.5, 3.97].
        let found = percentiles(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        assert!((found.p50 - 2.5).abs() < 1e-9);
        assert!((found.p99 - 3.97).abs() < 1e-9);
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(percentiles(Vec::new()), None);
        assert_eq!(mean(&[]), None);
    }
}
