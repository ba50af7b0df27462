//! Tests of `ruler`.

use crate::record::request::*;

#[test]
fn distances_are_in_milliseconds() {
    let mut ruler = Ruler::new(0);
    let found = ruler.ms(Moment::from_nanos(1_000_000), Moment::from_nanos(3_500_000));
    assert_eq!(found, Some(2.5));
    assert_eq!(ruler.out_of_order, 0);
}

#[test]
fn out_of_order_is_counted_and_never_zero() {
    let mut ruler = Ruler::new(0);
    assert_eq!(ruler.ms(Moment::from_nanos(2), Moment::from_nanos(1)), None);
    assert_eq!(ruler.out_of_order, 1);
}

#[test]
fn the_error_of_the_clock_is_no_disorder() {
    let mut ruler = Ruler::new(500);
    assert_eq!(ruler.ms(Moment::from_nanos(2_000), Moment::from_nanos(1_000)), Some(-0.001));
    assert_eq!(ruler.ms(Moment::from_nanos(2_001), Moment::from_nanos(1_000)), None);
    assert_eq!(ruler.out_of_order, 1);
}

#[test]
fn a_mapping_that_went_wrong_excuses_nothing() {
    let mut ruler = Ruler::new(u64::MAX);
    assert_eq!(ruler.ms(Moment::from_nanos(1_000_000), Moment::ZERO), None);
}
