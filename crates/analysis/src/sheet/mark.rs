//! Why a result's figures are not those of a clean run. Charts show such a point hollow.

use inferometer_model::campaign::Level;
use serde::{Deserialize, Serialize};

use super::{Sheet, SheetRate};
use crate::judge::Verdict;
use crate::set::Served;
use crate::summary::Summary;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Mark {
    /// Fewer requests came to an end than were planned.
    Cut { completed: u64, planned: u64 },
    /// Some requests failed; those that did not are all that the figures describe.
    Failures { failed: u64 },
    /// The server gave less than the rate that was asked of it.
    Saturated { asked_per_s: f64, served_per_s: f64 },
    /// By our own checks.
    Invalid,
    /// No server was measured.
    Simulated,
}

/// A server that gave this share of the rate kept up with it: the last answers take their time.
const KEPT_UP: f64 = 0.95;

impl Mark {
    /// Those that follow from a sheet's figures alone.
    pub fn found(sheet: &Sheet) -> Vec<Self> {
        Self::with(sheet, behind(sheet))
    }

    /// Those of a run of our own, of which more is known than its sheet says.
    pub(super) fn found_in(sheet: &Sheet, summary: &Summary) -> Vec<Self> {
        let Some(SheetRate::PerSecond(rate)) = sheet.request_rate else {
            return Self::with(sheet, None);
        };
        let served = Served::of(Level::Rate(rate), std::iter::once(summary));
        let behind = served.filter(|served| served.saturated).map(|served| Self::Saturated {
            asked_per_s: served.asked_per_s,
            served_per_s: served.served_per_s,
        });
        Self::with(sheet, behind)
    }

    fn with(sheet: &Sheet, behind: Option<Self>) -> Vec<Self> {
        let mut marks = Vec::new();
        if let (Some(completed), Some(planned)) = (sheet.completed, sheet.requests_planned)
            && completed.saturating_add(sheet.failed.unwrap_or(0)) < planned
        {
            marks.push(Self::Cut { completed, planned });
        }
        if let Some(failed) = sheet.failed.filter(|failed| 0 < *failed) {
            marks.push(Self::Failures { failed });
        }
        marks.extend(behind);
        if sheet.verdict == Some(Verdict::Invalid) {
            marks.push(Self::Invalid);
        }
        if sheet.source.simulated {
            marks.push(Self::Simulated);
        }
        marks
    }

    /// In files and in cells.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::Failures { .. } => "failures",
            Self::Saturated { .. } => "saturated",
            Self::Invalid => "invalid",
            Self::Simulated => "simulated",
        }
    }

    /// Whether its figures must not be set beside those of clean runs.
    pub const fn is_doubt(&self) -> bool {
        !matches!(self, Self::Simulated)
    }
}

/// Whether less came than was asked for, chance set aside: the span of n random arrivals scatters
/// by about one part in √n, and of a few requests the last answer takes as much.
fn behind(sheet: &Sheet) -> Option<Mark> {
    let SheetRate::PerSecond(asked_per_s) = sheet.request_rate? else { return None };
    let served_per_s = sheet.request_throughput?;
    let n = sheet.completed.filter(|n| 0 < *n)? as f64;
    let kept_up = (KEPT_UP - 1.0 / n.sqrt()) * asked_per_s;
    (served_per_s < kept_up).then_some(Mark::Saturated { asked_per_s, served_per_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_failed_were_not_cut_off() {
        let mut sheet = Sheet {
            completed: Some(50),
            failed: Some(10),
            requests_planned: Some(60),
            ..Sheet::default()
        };
        assert_eq!(Mark::found(&sheet), [Mark::Failures { failed: 10 }]);
        sheet.requests_planned = Some(61);
        let cut = Mark::Cut { completed: 50, planned: 61 };
        assert_eq!(Mark::found(&sheet), [cut, Mark::Failures { failed: 10 }]);
    }

    #[test]
    fn a_cut_result_and_a_server_behind_its_rate_are_marked() {
        let mut sheet = Sheet {
            completed: Some(1015),
            requests_planned: Some(2000),
            request_rate: Some(SheetRate::Unlimited),
            request_throughput: Some(8.3),
            ..Sheet::default()
        };
        assert_eq!(Mark::found(&sheet), [Mark::Cut { completed: 1015, planned: 2000 }]);
        sheet.completed = Some(2000);
        assert!(Mark::found(&sheet).is_empty());
        sheet.request_rate = Some(SheetRate::PerSecond(9.0));
        assert_eq!(Mark::found(&sheet), [Mark::Saturated { asked_per_s: 9.0, served_per_s: 8.3 }]);
        sheet.request_rate = Some(SheetRate::PerSecond(8.7));
        assert!(Mark::found(&sheet).is_empty(), "the last answers take their time");
        (sheet.completed, sheet.requests_planned) = (Some(60), Some(60));
        sheet.request_rate = Some(SheetRate::PerSecond(9.0));
        assert!(Mark::found(&sheet).is_empty(), "so few requests cannot tell");
    }
}
