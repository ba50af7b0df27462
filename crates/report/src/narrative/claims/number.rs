//! A number of a sentence, and whether a fact is what it says.

use super::vocabulary::{Qualifier, UnitWord};
use super::words::Digits;
use crate::narrative::FactUnit;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Number {
    pub(super) digits: Digits,
    pub(super) qualifier: Option<Qualifier>,
    pub(super) unit: Option<UnitWord>,
    /// Where its unit says of what it is: `20 prompts`.
    pub(super) metric: Option<&'static str>,
    /// Says how far two others are apart, and is no value itself: `12 ms higher`, `by 25 %`.
    pub(super) is_size: bool,
}

/// No rounding moves a number by more than this share of what is said.
const ROUNDING_MAX: f64 = 0.05;
/// `about 18` may be this share away, or half a step of its last digit that is no zero.
const ABOUT: f64 = 0.025;
/// `over 12` is at most this many times it: one does not say `over 12` of 40.
const OVER: f64 = 1.25;
/// `nearly 20` is at least this share of it.
const NEARLY: f64 = 0.9;

impl Number {
    pub(super) fn plain(digits: Digits) -> Self {
        Self { digits, qualifier: None, unit: None, metric: None, is_size: false }
    }

    pub(super) fn is_relative(&self) -> bool {
        matches!(self.unit, Some(UnitWord::Percent | UnitWord::Times))
    }

    /// What the fact's value is in the number's unit; `None` where the unit is of another kind.
    pub(super) fn in_its_unit(&self, value: f64, unit: FactUnit) -> Option<f64> {
        match (self.unit, unit) {
            (Some(UnitWord::Milliseconds), FactUnit::Milliseconds)
            | (Some(UnitWord::Seconds), FactUnit::Seconds)
            | (Some(UnitWord::TokensPerSecond), FactUnit::TokensPerSecond)
            | (Some(UnitWord::RequestsPerSecond), FactUnit::RequestsPerSecond)
            | (Some(UnitWord::Tokens) | None, FactUnit::Tokens)
            | (Some(UnitWord::Requests) | None, FactUnit::Requests)
            | (Some(UnitWord::Users) | None, FactUnit::Number) => Some(value),
            (Some(UnitWord::Seconds), FactUnit::Milliseconds) => Some(value / 1e3),
            (Some(UnitWord::Milliseconds), FactUnit::Seconds) => Some(value * 1e3),
            (Some(UnitWord::Percent), FactUnit::Share) => Some(value * 100.0),
            _ => None,
        }
    }

    /// Whether a value in the number's own unit is what it says, within the rounding that its
    /// digits show.
    pub(super) fn says(&self, value: f64) -> bool {
        let Digits { value: said, step, coarse_step } = self.digits;
        // Nothing is rounded to zero: some errors are not none.
        if said == 0.0 || value == 0.0 {
            return said.max(value) <= 0.0
                && matches!(self.qualifier, None | Some(Qualifier::About));
        }
        // A change of 0.64 % is 0.6 %: the tables print a tenth of a per cent, however small.
        let is_fine = self.is_size && self.unit == Some(UnitWord::Percent) && step < 1.0;
        let most = if is_fine { step } else { said * ROUNDING_MAX };
        let half = |step: f64| (step / 2.0).min(most) + said.max(value) * 1e-9;
        let distance = (value - said).abs();
        match self.qualifier {
            None => distance <= half(step),
            Some(Qualifier::About) => distance <= half(coarse_step).max(said * ABOUT),
            Some(Qualifier::Over) => said < value && value <= said * OVER,
            Some(Qualifier::Under) => value < said && said <= value * OVER,
            Some(Qualifier::Nearly) => value < said && said * NEARLY <= value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(value: f64, step: f64, coarse_step: f64, qualifier: Option<Qualifier>) -> Number {
        let digits = Digits { value, step, coarse_step };
        Number { qualifier, ..Number::plain(digits) }
    }

    #[test]
    fn digits_set_the_tolerance() {
        assert!(said(168.0, 1.0, 1.0, None).says(167.97));
        assert!(!said(62.0, 1.0, 1.0, None).says(62.84));
        assert!(said(42.0, 0.1, 0.1, None).says(41.99));
        assert!(!said(42.1, 0.1, 0.1, None).says(41.99));
        assert!(!said(1000.0, 1000.0, 1000.0, None).says(501.0));
        assert!(!said(3.0, 1.0, 1.0, None).says(3.4));
        assert!(!said(0.0, 1.0, 1.0, None).says(0.4));
        assert!(said(0.0, 1.0, 1.0, None).says(0.0));
    }

    #[test]
    fn words_before_a_number_widen_it_or_set_its_side() {
        assert!(said(40.0, 1.0, 10.0, Some(Qualifier::About)).says(41.71));
        assert!(!said(18.0, 1.0, 1.0, Some(Qualifier::About)).says(43.29));
        assert!(!said(2000.0, 1.0, 1000.0, Some(Qualifier::About)).says(1506.74));
        assert!(!said(10.0, 1.0, 10.0, Some(Qualifier::About)).says(12.518));
        assert!(said(12.0, 1.0, 1.0, Some(Qualifier::Over)).says(12.518));
        assert!(!said(13.0, 1.0, 10.0, Some(Qualifier::Over)).says(12.518));
        assert!(!said(2.0, 1.0, 1.0, Some(Qualifier::Over)).says(12.518));
        assert!(said(390.0, 1.0, 10.0, Some(Qualifier::Nearly)).says(387.1));
        assert!(said(120.0, 1.0, 10.0, Some(Qualifier::Under)).says(115.15));
    }

    #[test]
    fn seconds_and_milliseconds_are_of_one_kind() {
        let number = Number { unit: Some(UnitWord::Seconds), ..said(1.1, 0.1, 0.1, None) };
        assert_eq!(number.in_its_unit(1082.2, FactUnit::Milliseconds), Some(1.0822));
        assert_eq!(number.in_its_unit(49.26, FactUnit::TokensPerSecond), None);
    }
}
