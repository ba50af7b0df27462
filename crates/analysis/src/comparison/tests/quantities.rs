//! The values of one side.

use super::*;

#[test]
fn a_side_without_a_run_that_has_it_certifies_nothing() {
    let nobody = SideValue::new(&[None, None], Scale::Ratio);
    assert!(!nobody.certified && nobody.mean.is_none());
    assert!(!SideValue::new(&[], Scale::Ratio).certified);
    let run = Estimate { value: 1.0, interval: None, n: 9, effective_n: None, certified: true };
    assert!(SideValue::new(&[Some(run), None], Scale::Ratio).certified);
}
