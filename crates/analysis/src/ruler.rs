//! Distances between moments, and how many of them made no sense.

use inferometer_model::Moment;

/// Measures distances on the run's clock and counts those that are out of order.
///
/// Kernel stamps reach the run's clock through a mapping with a known error. Two moments that lie
/// the wrong way round by no more than that error are not out of order: which came first is not
/// known, and the small negative distance is the honest measurement. Beyond the error the record
/// contradicts itself, and there is no distance.
#[derive(Clone, Debug)]
pub(crate) struct Ruler {
    error_ns: u64,
    out_of_order: u64,
}

impl Ruler {
    /// `error_ns` is the worst half-width of a mapped stamp; both ends of a distance may have it.
    pub(crate) fn new(error_ns: u64) -> Self {
        Self { error_ns: error_ns.saturating_mul(2).min(ERROR_NS_MAX), out_of_order: 0 }
    }

    /// From `earlier` to `later` in milliseconds; `None`, and counted, when they are out of order.
    pub(crate) fn ms(&mut self, earlier: Moment, later: Moment) -> Option<f64> {
        let (earlier, later) = (earlier.as_nanos(), later.as_nanos());
        if let Some(distance) = later.checked_sub(earlier) {
            return Some(ns_to_ms(distance));
        }
        let back = earlier - later;
        if back <= self.error_ns {
            return Some(-ns_to_ms(back));
        }
        self.out_of_order += 1;
        None
    }

    /// A moment that a record should have and does not.
    pub(crate) fn note_missing(&mut self) {
        self.out_of_order += 1;
    }

    pub(crate) fn out_of_order(&self) -> u64 {
        self.out_of_order
    }
}

/// The unit of every latency in a summary.
pub(crate) fn ns_to_ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

pub(crate) fn moment_to_ms(moment: Moment) -> f64 {
    ns_to_ms(moment.as_nanos())
}

/// However badly a mapping went, more than this is a contradiction and not an error bar.
const ERROR_NS_MAX: u64 = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_in_milliseconds() {
        let mut ruler = Ruler::new(0);
        let found = ruler.ms(Moment::from_nanos(1_000_000), Moment::from_nanos(3_500_000));
        assert_eq!(found, Some(2.5));
        assert_eq!(ruler.out_of_order(), 0);
    }

    #[test]
    fn out_of_order_is_counted_and_never_zero() {
        let mut ruler = Ruler::new(0);
        assert_eq!(ruler.ms(Moment::from_nanos(2), Moment::from_nanos(1)), None);
        assert_eq!(ruler.out_of_order(), 1);
    }

    #[test]
    fn the_error_of_the_clock_is_no_disorder() {
        let mut ruler = Ruler::new(500);
        assert_eq!(ruler.ms(Moment::from_nanos(2_000), Moment::from_nanos(1_000)), Some(-0.001));
        assert_eq!(ruler.ms(Moment::from_nanos(2_001), Moment::from_nanos(1_000)), None);
        assert_eq!(ruler.out_of_order(), 1);
    }

    #[test]
    fn a_mapping_that_went_wrong_excuses_nothing() {
        let mut ruler = Ruler::new(u64::MAX);
        assert_eq!(ruler.ms(Moment::from_nanos(1_000_000), Moment::ZERO), None);
    }
}
