//! Where the throughput of a series of loads stops rising with them.

use super::row::{Figures, Row};

/// Rows in which the throughput of a series of loads lies farthest above the straight line from its
/// first to its last point.
#[derive(Debug)]
pub struct Knee {
    pub measured: usize,
    pub played: usize,
}

/// Of all series of at least four loads, in their order.
pub fn knees(all: &[Row], played: &[Figures]) -> Vec<Knee> {
    let mut knees = Vec::new();
    let mut start = 0;
    while start < all.len() {
        let alike = |row: &&Row| is_series(&all[start], row);
        let length = all[start..].iter().take_while(alike).count().max(1);
        let rows = &all[start..start + length];
        let measured: Vec<Figures> = rows.iter().map(|row| row.figures).collect();
        let (theirs, ours) = (knee(rows, &measured), knee(rows, &played[start..start + length]));
        if let (Some(theirs), Some(ours)) = (theirs, ours) {
            knees.push(Knee { measured: start + theirs, played: start + ours });
        }
        start += length;
    }
    knees
}

fn is_series(first: &Row, row: &Row) -> bool {
    let lengths = |row: &Row| {
        let first = row.requests.first();
        first.map(|request| (request.prompt.tokens, request.output_tokens))
    };
    let kind = |row: &Row| std::mem::discriminant(&row.load);
    row.load.level().is_some()
        && (kind(first), lengths(first), &first.server) == (kind(row), lengths(row), &row.server)
}

fn knee(rows: &[Row], figures: &[Figures]) -> Option<usize> {
    let points: Option<Vec<(f64, f64)>> = rows
        .iter()
        .zip(figures)
        .map(|(row, figures)| Some((row.load.level()?, figures.output_throughput?)))
        .collect();
    let points = points.filter(|points| 4 <= points.len())?;
    let ((x0, y0), (x1, y1)) = (*points.first()?, *points.last()?);
    // A throughput that never rises has no knee.
    if x1 <= x0 || y1 <= y0 {
        return None;
    }
    let above = |(x, y): &(f64, f64)| (y - y0) / (y1 - y0) - (x - x0) / (x1 - x0);
    (0..points.len()).max_by(|a, b| above(&points[*a]).total_cmp(&above(&points[*b])))
}
