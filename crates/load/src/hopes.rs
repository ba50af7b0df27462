//! When going on is pointless: ways to fail that the next request cannot escape.

use inferometer_model::journal::RunStop;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hopeless {
    Unauthorized,
    Unreachable,
    ClientExhausted,
}

impl Hopeless {
    /// How often in a row before we believe it, and what the run is then called. A closed loop
    /// against a dead server would fail as fast as it can, for as long as it may.
    const fn limit(self) -> (u32, RunStop) {
        match self {
            Self::Unauthorized => (3, RunStop::Unauthorized),
            Self::Unreachable => (100, RunStop::Unreachable),
            Self::ClientExhausted => (100, RunStop::ClientExhausted),
        }
    }
}

/// Hopeless endings in a row, over all drivers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hopes {
    last: Option<Hopeless>,
    in_a_row: u32,
}

impl Hopes {
    pub(crate) fn after(&mut self, sign: Option<Hopeless>) -> Option<RunStop> {
        self.in_a_row = if sign.is_some() && sign == self.last { self.in_a_row + 1 } else { 1 };
        self.last = sign;
        let (limit, why) = sign?.limit();
        (self.in_a_row == limit).then_some(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_row_without_a_gap_ends_hope() {
        let mut hopes = Hopes::default();
        let refused = Some(Hopeless::Unauthorized);
        assert_eq!(hopes.after(refused), None);
        assert_eq!(hopes.after(refused), None);
        assert_eq!(hopes.after(None), None, "one answer, and we hope again");
        assert_eq!(hopes.after(refused), None);
        assert_eq!(hopes.after(refused), None);
        assert_eq!(hopes.after(refused), Some(RunStop::Unauthorized));
        assert_eq!(hopes.after(refused), None, "said once");
    }
}
