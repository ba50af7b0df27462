//! Many tests at once: p values raised to what they are worth among so many.

/// Holm's step-down values, in the order of `p`: at most `α` of all families with one below `α` are
/// false alarms.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut adjusted = vec![1.0; p.len()];
    let mut floor = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        floor = floor.max(((p.len() - rank) as f64 * p[index]).min(1.0));
        adjusted[index] = floor;
    }
    adjusted
}

/// Benjamini and Hochberg's step-up values, in the order of `p`: of those below `α`, the expected
/// share of false alarms is at most `α`.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let order = ascending(p);
    let mut adjusted = vec![1.0; p.len()];
    let mut ceiling = 1.0_f64;
    for (rank, &index) in order.iter().enumerate().rev() {
        ceiling = ceiling.min(p.len() as f64 / (rank as f64 + 1.0) * p[index]);
        adjusted[index] = ceiling;
    }
    adjusted
}

fn ascending(p: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&left, &right| p[left].total_cmp(&p[right]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: [f64; 6] = [0.01, 0.04, 0.03, 0.005, 0.2, 0.04];

    fn close(found: &[f64], expected: &[f64]) {
        for (one, other) in found.iter().zip(expected) {
            assert!((one - other).abs() < 1e-12, "found {found:?}");
        }
        assert_eq!(found.len(), expected.len());
    }

    #[test]
    fn holm_multiplies_by_what_is_left_and_never_falls() {
        // By hand: 0.005·6, 0.01·5, 0.03·4, then 0.04·3 and 0.04·2 raised to it, 0.2·1.
        close(&holm(&P), &[0.05, 0.12, 0.12, 0.03, 0.2, 0.12]);
        close(&holm(&[0.9, 0.8]), &[1.0, 1.0]);
        close(&holm(&[]), &[]);
    }

    #[test]
    fn false_discoveries_are_controlled_as_scipy_does() {
        // scipy 1.17.1: scipy.stats.false_discovery_control(P)
        close(&benjamini_hochberg(&P), &[0.03, 0.048, 0.048, 0.03, 0.2, 0.048]);
        close(&benjamini_hochberg(&[]), &[]);
    }
}
