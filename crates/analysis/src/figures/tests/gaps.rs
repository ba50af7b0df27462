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
    let edges = row_edges(&[20.0, 20.0]).unwrap();
    assert_eq!((edges.len(), row_of(&edges, 20.0)), (2, 0));
    assert!(edges[0] < 20.0 && 20.0 < edges[1]);
    assert!(row_edges(&[]).is_none());
}

#[test]
fn a_gap_without_a_logarithm_lies_in_the_first_row() {
    let edges = row_edges(&[-0.05, 0.0, 30.0]).unwrap();
    assert_eq!([-0.05, 0.0, 30.0].map(|value| row_of(&edges, value)), [0, 0, 23]);
    let none = row_edges(&[-0.05]).unwrap();
    assert_eq!((none.len(), row_of(&none, -0.05)), (2, 0));
}

proptest! {
    #[test]
    fn the_row_that_is_looked_up_is_the_row_between_its_edges(
        values in prop::collection::vec(
            prop_oneof![1e-4_f64..1e-2, 1.0_f64..1.1, 5.0_f64..80.0, 1e3_f64..1e13], 1..200,
        ),
    ) {
        let edges = row_edges(&values).unwrap();
        let rows = edges.len() - 1;
        prop_assert!(edges.is_sorted_by(|one, other| one < other));
        prop_assert!(rows <= 24);
        for value in values.iter().chain(&edges) {
            let row = row_of(&edges, *value);
            prop_assert!(row == 0 || edges[row] <= *value, "{} in {:?}", value, &edges);
            prop_assert!(row + 1 == rows || *value < edges[row + 1], "{} in {:?}", value, &edges);
        }
    }
}
