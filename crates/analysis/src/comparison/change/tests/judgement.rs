//! The rule by which a change is judged.

use super::*;
use crate::metric::LatencyOrigin;

fn ratio(low: f64, high: f64) -> Change {
    let value = (low * high).sqrt();
    Change { kind: Scale::Ratio, value, interval: Interval::new(low, high).unwrap() }
}

fn difference(low: f64, high: f64) -> Change {
    let value = f64::midpoint(low, high);
    Change { kind: Scale::Difference, value, interval: Interval::new(low, high).unwrap() }
}

#[test]
fn the_rule_is_this_table() {
    use Judgement::{Better as Good, Same, Undecided, Worse};
    for (low, high, more_is_good, less_is_good) in [
        (0.990, 1.010, Same, Same),
        // Surely another, and surely not by enough to care.
        (1.002, 1.015, Same, Same),
        (1.000, 1.020, Same, Same),
        (1.002, 1.030, Good, Worse),
        (1.030, 1.060, Good, Worse),
        (0.940, 0.970, Worse, Good),
        (0.970, 0.999, Worse, Good),
        (0.970, 1.000, Undecided, Undecided),
        (0.990, 1.030, Undecided, Undecided),
        (0.500, 2.000, Undecided, Undecided),
    ] {
        let change = ratio(low, high);
        assert_eq!(change.judged(0.02, Better::Higher), more_is_good, "{low} to {high}");
        assert_eq!(change.judged(0.02, Better::Lower), less_is_good, "{low} to {high}");
    }
    for (low, high, less_is_good) in [
        (-0.004, 0.009, Same),
        (0.0, 0.0, Same),
        (0.002, 0.03, Worse),
        (-0.03, -0.002, Good),
        (-0.03, 0.002, Undecided),
    ] {
        let judged = difference(low, high).judged(0.01, Better::Lower);
        assert_eq!(judged, less_is_good, "{low} to {high}");
    }
    assert_eq!(ratio(2.0, 3.0).judged(0.02, Better::Neither), Judgement::NotCompared);
}

#[test]
fn the_answer_is_mirrored_when_the_sides_change_places() {
    let mirrored = |judgement| match judgement {
        Judgement::Better => Judgement::Worse,
        Judgement::Worse => Judgement::Better,
        Judgement::Same | Judgement::Undecided | Judgement::NotJudged | Judgement::NotCompared => {
            judgement
        }
    };
    for low in [0.9, 0.97, 0.981, 0.99, 1.001, 1.03] {
        for width in [0.005, 0.0185, 0.04, 0.2] {
            let high = low + width;
            let there = ratio(low, high).judged(0.02, Better::Higher);
            let back = ratio(1.0 / high, 1.0 / low).judged(0.02, Better::Higher);
            assert_eq!(there, mirrored(back), "{low} to {high}");
        }
    }
}

#[test]
fn tails_have_a_wider_margin_and_shares_their_own() {
    let margin = |margins: Margins, name| {
        margins.margin_for(&Quantity::named(name, LatencyOrigin::Sent).unwrap())
    };
    for (name, by_default, of_all) in [
        ("output_throughput", 0.02, 0.1),
        ("ttft.mean", 0.02, 0.1),
        ("ttft.p50", 0.02, 0.1),
        ("ttft.p90", 0.05, 0.1),
        ("itl.p99", 0.05, 0.1),
        ("itl.max", 0.05, 0.1),
        ("error_rate", 0.01, 0.01),
    ] {
        assert_eq!(margin(Margins::DEFAULT, name).to_bits(), f64::to_bits(by_default), "{name}");
        assert_eq!(margin(Margins::all(0.1), name).to_bits(), f64::to_bits(of_all), "{name}");
    }
}
