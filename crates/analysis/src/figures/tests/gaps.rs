//! Tests of `gaps`.

use proptest::prelude::*;

use crate::figures::*;

#[test]
fn rows_reach_from_the_shortest_gap_to_the_longest() {
    let edges = edges(10.0, 1_000.0);
    assert_eq!((edges.len(), edges[0], edges[24]), (25, 10.0, 1_000.0));
    assert!((edges[12] - 100.0).abs() < 1e-9, "{}", edges[12]);
    let narrow = crate::figures::edges(10.0, 10.5);
    assert_eq!((narrow.len(), narrow[0], narrow[2]), (3, 10.0, 10.5));
}

#[test]
fn gaps_that_are_all_equal_lie_in_one_row() {
    let rows = Rows::over(&[20.0, 20.0]).unwrap();
    assert_eq!((rows.count(), rows.place(20.0)), (1, 0));
    assert!(rows.edges[0] < 20.0 && 20.0 < rows.edges[1]);
    assert!(Rows::over(&[]).is_none());
}

#[test]
fn a_gap_without_a_logarithm_lies_in_the_first_row() {
    let rows = Rows::over(&[-0.05, 0.0, 30.0]).unwrap();
    assert_eq!((rows.place(-0.05), rows.place(0.0), rows.place(30.0)), (0, 0, 23));
    let none = Rows::over(&[-0.05]).unwrap();
    assert_eq!((none.count(), none.place(-0.05)), (1, 0));
}

proptest! {
    #[test]
    fn the_row_that_is_looked_up_is_the_row_between_its_edges(
        values in prop::collection::vec(
            prop_oneof![1e-4_f64..1e-2, 1.0_f64..1.1, 5.0_f64..80.0, 1e3_f64..1e13], 1..200,
        ),
    ) {
        let rows = Rows::over(&values).unwrap();
        prop_assert!(rows.edges.is_sorted_by(|one, other| one < other));
        prop_assert!(rows.count() <= 24);
        for value in values.iter().chain(&rows.edges) {
            let below = rows.edges.iter().filter(|edge| *edge <= value).count();
            let expected = below.clamp(1, rows.count()) - 1;
            prop_assert_eq!(rows.place(*value), expected, "{} in {:?}", value, &rows.edges);
        }
    }
}
