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
