//! The answer of a search in a sentence.

use super::{Confirmation, LimitSearch, Standing};
use crate::ladder;

impl LimitSearch<'_> {
    pub(super) fn words(
        &self,
        confirmation: &Confirmation,
        level: Option<f64>,
        lowest_missed: Option<f64>,
    ) -> String {
        let goals = self.goals_typed();
        let Some(level) = level else {
            return match (confirmation.refuted.first(), self.known.first()) {
                (Some(&first), _) => format!(
                    "no level that meets {goals} could be confirmed, from {} down; ask for longer \
                     runs or a coarser resolution",
                    self.read(first)
                ),
                (None, Some(lowest)) => self.none_met(&goals, lowest.place),
                (None, None) => format!("no level was measured for {goals}"),
            };
        };
        let met = if confirmation.confirmed.is_some() {
            format!("{} meets {goals}", self.read(level))
        } else {
            format!("{} met {goals} at first and is not confirmed on fresh seeds", self.read(level))
        };
        match lowest_missed {
            Some(missed) => {
                let why = self.why_missed(confirmation, missed);
                format!("{met}; {} {why}", self.read(missed))
            }
            None => format!("{met}, and more may not be asked: the limit lies above"),
        }
    }

    fn why_missed(&self, confirmation: &Confirmation, missed: f64) -> &'static str {
        if confirmation.refuted.contains(&missed) {
            return "did not on fresh seeds";
        }
        let known = self.known.iter().find(|level| level.place.total_cmp(&missed).is_eq());
        match known.map(|level| level.standing) {
            Some(Standing::Undecided) => {
                "stayed undecided and counts as missed: the limit lies inside the doubt of its runs"
            }
            Some(Standing::TooFewRequests) => {
                "stayed undecided and counts as missed: n too small, run longer (--requests)"
            }
            Some(Standing::PilesUp) => "does not: requests pile up",
            Some(Standing::NoNumbers) => "gave no numbers that can be trusted and counts as missed",
            Some(Standing::Met | Standing::Missed | Standing::Open) | None => "does not",
        }
    }

    /// That nothing was met is not that all was missed.
    fn none_met(&self, goals: &str, lowest: f64) -> String {
        let down_to = self.read(lowest);
        let is = |standing| self.known.iter().any(|level| level.standing == standing);
        if is(Standing::TooFewRequests) {
            format!(
                "no level was seen to meet {goals}, down to {down_to}: n too small, run longer \
                 (--requests)"
            )
        } else if is(Standing::Undecided) {
            format!("no level was seen to meet {goals}, down to {down_to}: some stayed undecided")
        } else {
            format!("no level meets {goals}, down to {down_to}")
        }
    }

    fn goals_typed(&self) -> String {
        let goals: Vec<String> = self.find.goals.iter().map(ToString::to_string).collect();
        match goals.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} and {last}", others.join(", ")),
            None => String::new(),
        }
    }

    fn read(&self, place: f64) -> String {
        ladder::level(self.ladder.dimension, place).map_or(place.to_string(), |it| it.to_string())
    }
}
