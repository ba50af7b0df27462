//! The answer of a search, measured again.
//!
//! Fresh runs are judged as those of any level. Where they stay undecided, their mean must lie on the
//! good side: the margin for doubt was already asked of the first runs, and asked twice it would
//! push the answer below what the server can do.

use super::{Evidence, LimitSearch, Standing};

/// So many levels may fail to be confirmed before the search gives up.
const REFUTED_MAX: usize = 6;

#[derive(Clone, Debug, Default)]
pub(super) struct Confirmation {
    /// The level that needs another fresh run.
    pub(super) pending: Option<f64>,
    pub(super) confirmed: Option<f64>,
    /// From the highest to the lowest.
    pub(super) refuted: Vec<f64>,
}

impl LimitSearch<'_> {
    /// Goes down from the best level, step by step, to one that fresh runs confirm.
    pub(super) fn confirm(&self, best: f64) -> Confirmation {
        let mut confirmation = Confirmation::default();
        let mut candidate = Some(best);
        while let Some(place) = candidate.filter(|_| confirmation.refuted.len() < REFUTED_MAX) {
            match self.fresh_standing(place) {
                Standing::Open => {
                    confirmation.pending = Some(place);
                    break;
                }
                Standing::Met => {
                    confirmation.confirmed = Some(place);
                    break;
                }
                Standing::Missed
                | Standing::PilesUp
                | Standing::Undecided
                | Standing::TooFewRequests
                | Standing::NoNumbers => confirmation.refuted.push(place),
            }
            candidate = self.ladder.step_down(place);
        }
        confirmation
    }

    fn fresh_standing(&self, place: f64) -> Standing {
        let fresh = self.fresh.iter().find(|level| level.place.total_cmp(&place).is_eq());
        let Some(fresh) = fresh else { return Standing::Open };
        let leans = fresh.standing == Standing::Undecided && fresh.leans_to_met;
        if leans { Standing::Met } else { fresh.standing }
    }

    /// The highest level that is met as far as its first runs say, below what is not.
    pub(super) fn best_below(&self, missed: Option<f64>) -> Option<f64> {
        let below = |level: &&Evidence| missed.is_none_or(|missed| level.place < missed);
        let met = self.known.iter().filter(below);
        met.filter(|level| level.standing == Standing::Met).map(|level| level.place).next_back()
    }
}
