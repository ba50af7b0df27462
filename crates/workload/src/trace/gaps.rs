//! How unevenly requests come: the coefficient of variation of the gaps between them.

/// `None` where there is no gap, or no time.
pub(super) fn variation(moments: impl Iterator<Item = i64> + Clone) -> Option<f64> {
    let gaps = moments.clone().zip(moments.skip(1)).map(|(early, late)| (late - early) as f64);
    let count = gaps.clone().count() as f64;
    let mean = gaps.clone().sum::<f64>() / count;
    let squares: f64 = gaps.map(|gap| (gap - mean) * (gap - mean)).sum();
    let variation = libm::sqrt(squares / count) / mean;
    variation.is_finite().then_some(variation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_gaps_do_not_vary_and_others_do_as_the_definition_says() {
        assert_eq!(variation([0, 5, 10, 15].into_iter()), Some(0.0));
        // Gaps 0, 0, 3: mean 1, variance (1 + 1 + 4) / 3 = 2.
        let bursts = variation([7, 7, 7, 10].into_iter()).unwrap();
        assert!((bursts - std::f64::consts::SQRT_2).abs() < 1e-12);
        assert_eq!(variation([3].into_iter()), None);
        assert_eq!(variation([3, 3].into_iter()), None);
    }
}
