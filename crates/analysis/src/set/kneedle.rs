//! Where a curve bends: the Kneedle algorithm (Satopää, Albrecht, Irwin and Raghavan, 2011), for a
//! rising curve that bends down.

/// The sensitivity that its authors recommend.
const SENSITIVITY: f64 = 1.0;
const POINTS_MIN: usize = 3;

/// The place of the knee among points of rising x, or `None` where the curve has none.
///
/// Both axes are brought to 0…1. The difference of the two is largest where the curve leaves the
/// diagonal behind; a local maximum of it is a knee when the difference falls below
/// `maximum − S · mean Δx` before it rises to a higher one. Of several the most pronounced is taken.
/// Nothing is smoothed: points are means of runs, and what their noise does is seen by resampling.
pub fn kneedle(points: &[(f64, f64)]) -> Option<usize> {
    let differences = differences(points)?;
    let spacing = 1.0 / (points.len() - 1) as f64;
    let is_knee = |place: &usize| {
        let threshold = differences[*place] - SENSITIVITY * spacing;
        let after = &differences[*place + 1..];
        let next = (*place + 1..points.len()).find(|later| {
            // A lower bump on the way down is noise, and takes nothing back.
            is_maximum(&differences, *later) && differences[*place] < differences[*later]
        });
        let until = next.map_or(after.len(), |next| next - place - 1);
        after[..until].iter().any(|difference| *difference < threshold)
    };
    (1..points.len() - 1)
        .filter(|place| is_maximum(&differences, *place))
        .filter(is_knee)
        // The first of equals.
        .rev()
        .max_by(|a, b| differences[*a].total_cmp(&differences[*b]))
}

fn is_maximum(differences: &[f64], place: usize) -> bool {
    place + 1 < differences.len()
        && differences[place - 1] < differences[place]
        && differences[place + 1] <= differences[place]
}

/// How far the normalised curve lies above the diagonal; `None` where it cannot be normalised.
fn differences(points: &[(f64, f64)]) -> Option<Vec<f64>> {
    let ordered = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let finite = points.iter().all(|(x, y)| x.is_finite() && y.is_finite());
    if points.len() < POINTS_MIN || !ordered || !finite {
        return None;
    }
    let (first, last) = (points.first()?.0, points.last()?.0);
    let low = points.iter().map(|point| point.1).min_by(f64::total_cmp)?;
    let high = points.iter().map(|point| point.1).max_by(f64::total_cmp)?;
    // A throughput that does not rise has no knee.
    (low < high && points.first()?.1 < high).then(|| {
        let difference =
            |(x, y): &(f64, f64)| (y - low) / (high - low) - (x - first) / (last - first);
        points.iter().map(difference).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_paper_bends_at_two_ninths() {
        let points: Vec<(f64, f64)> =
            (0..10).map(|i| f64::from(i) / 9.0).map(|x| (x, -1.0 / (x + 0.1) + 5.0)).collect();
        assert_eq!(kneedle(&points), Some(2));
    }

    #[test]
    fn a_server_that_serves_what_is_asked_up_to_a_limit_bends_there() {
        for limit in [3.0, 5.0, 8.0] {
            let points: Vec<(f64, f64)> =
                (1..=12).map(f64::from).map(|rate| (rate, 100.0 * rate.min(limit))).collect();
            let knee = kneedle(&points).unwrap();
            assert!((points[knee].0 - limit).abs() < 1e-9, "{limit}");
        }
    }

    #[test]
    fn what_rises_evenly_or_falls_has_no_knee() {
        let straight: Vec<(f64, f64)> = (1..9).map(f64::from).map(|x| (x, 3.0 * x)).collect();
        assert_eq!(kneedle(&straight), None);
        let bent_up: Vec<(f64, f64)> = (1..9).map(f64::from).map(|x| (x, x * x)).collect();
        assert_eq!(kneedle(&bent_up), None);
        let falling: Vec<(f64, f64)> = (1..9).map(f64::from).map(|x| (x, -x)).collect();
        assert_eq!(kneedle(&falling), None);
        let flat: Vec<(f64, f64)> = (1..9).map(f64::from).map(|x| (x, 5.0)).collect();
        assert_eq!(kneedle(&flat), None);
    }

    #[test]
    fn what_cannot_be_a_curve_has_no_knee() {
        assert_eq!(kneedle(&[]), None);
        assert_eq!(kneedle(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(kneedle(&[(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)]), None);
        assert_eq!(kneedle(&[(1.0, 1.0), (2.0, f64::NAN), (3.0, 3.0)]), None);
    }

    #[test]
    fn a_small_wiggle_before_the_bend_is_no_knee() {
        let points = [
            (1.0, 10.0),
            (2.0, 20.5),
            (3.0, 30.0),
            (4.0, 40.0),
            (6.0, 60.0),
            (8.0, 61.0),
            (10.0, 62.0),
        ];
        assert_eq!(kneedle(&points), Some(4));
    }
}
