//! A load that was read instead of typed must be one that could have been typed.

use std::num::NonZeroU32;
use std::time::Duration;

use super::SpecError;
use super::load::{Arrivals, Extent, Load, LoadShape, Rate, Think};
use super::load_draft::{ArrivalsKind, LoadDraft, ThinkKind, Until};

impl Load {
    /// Holds a load from a file against the bounds of one from the command line.
    pub fn check(&self) -> Result<(), SpecError> {
        let recorded = matches!(&self.shape, LoadShape::Open { rate: Rate::Recorded(_), .. });
        if self.draft().resolve(recorded)? == *self { Ok(()) } else { Err(SpecError::OddLoad) }
    }

    /// The flags that ask for it.
    fn draft(&self) -> LoadDraft {
        let mut draft = match &self.shape {
            LoadShape::Closed { concurrency, think } => closed_draft(*concurrency, *think),
            LoadShape::Open { rate, arrivals, cap } => {
                let max_concurrency = cap.map(NonZeroU32::get);
                LoadDraft { max_concurrency, ..open_draft(rate, *arrivals) }
            }
        };
        (draft.requests, draft.duration, draft.until) = match self.extent {
            Extent::Whole => (None, None, None),
            Extent::Requests(requests) => (Some(requests.get()), None, None),
            Extent::Duration(duration) => (None, Some(duration), None),
            Extent::UntilBoth { requests, duration } => {
                (Some(requests.get()), Some(duration), Some(Until::Both))
            }
            Extent::UntilFirst { requests, duration } => {
                (Some(requests.get()), Some(duration), Some(Until::First))
            }
        };
        LoadDraft { warm_up: Some(self.warm_up), ..draft }
    }
}

fn closed_draft(concurrency: NonZeroU32, think: Think) -> LoadDraft {
    let (think_time, think): (Option<Duration>, _) = match think {
        Think::None => (None, None),
        Think::Fixed(time) => (Some(time), Some(ThinkKind::Fixed)),
        Think::Exponential { mean } => (Some(mean), Some(ThinkKind::Exponential)),
    };
    LoadDraft { concurrency: Some(concurrency.get()), think_time, think, ..LoadDraft::default() }
}

fn open_draft(rate: &Rate, arrivals: Arrivals) -> LoadDraft {
    let (arrivals, burstiness) = match arrivals {
        Arrivals::Constant => (Some(ArrivalsKind::Constant), None),
        Arrivals::Poisson => (Some(ArrivalsKind::Poisson), None),
        Arrivals::Gamma { burstiness } => (Some(ArrivalsKind::Gamma), Some(burstiness)),
        Arrivals::Stretched { burstiness } => (Some(ArrivalsKind::Stretched), Some(burstiness)),
    };
    let spaced = LoadDraft { arrivals, burstiness, ..LoadDraft::default() };
    match rate {
        Rate::Steady { per_s } => LoadDraft { rate_per_s: Some(*per_s), ..spaced },
        Rate::Ramp { segments, curve } => {
            LoadDraft { ramp: Some(segments.clone()), ramp_curve: Some(*curve), ..spaced }
        }
        // These two leave no gaps to shape.
        Rate::Unlimited => LoadDraft { rate_per_s: Some(f64::INFINITY), ..LoadDraft::default() },
        Rate::Recorded(replay) => LoadDraft {
            speed: Some(replay.speed),
            ticks: Some(replay.ticks),
            ..LoadDraft::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RampCurve, RampSegment};
    use super::*;

    fn typed() -> Vec<(LoadDraft, bool)> {
        let draft = LoadDraft::default;
        let minute = Some(Duration::from_mins(1));
        let open = LoadDraft { rate_per_s: Some(7.5), ..draft() };
        let ramp =
            vec![RampSegment { from_per_s: 1.0, to_per_s: 5.0, over: Duration::from_mins(2) }];
        let drafts = [
            draft(),
            LoadDraft { think_time: minute, warm_up: Some(3), ..draft() },
            LoadDraft { think_time: minute, think: Some(ThinkKind::Exponential), ..draft() },
            LoadDraft { duration: minute, requests: Some(9), ..draft() },
            LoadDraft { rate_per_s: Some(f64::INFINITY), max_concurrency: Some(4), ..draft() },
            LoadDraft { rate_per_s: Some(f64::INFINITY), ..draft() },
            LoadDraft { arrivals: Some(ArrivalsKind::Constant), duration: minute, ..open.clone() },
            LoadDraft { burstiness: Some(0.3), max_concurrency: Some(4), ..open.clone() },
            LoadDraft { arrivals: Some(ArrivalsKind::Stretched), ..open.clone() },
            LoadDraft { requests: Some(9), duration: minute, until: Some(Until::First), ..open },
            LoadDraft { ramp_curve: Some(RampCurve::Exponential), ramp: Some(ramp), ..draft() },
        ];
        let recorded = [draft(), LoadDraft { speed: Some(2.0), duration: minute, ..draft() }];
        let drafts = drafts.into_iter().map(|draft| (draft, false));
        drafts.chain(recorded.map(|draft| (draft, true))).collect()
    }

    #[test]
    fn what_was_typed_passes() {
        for (draft, recorded) in typed() {
            let load = draft.resolve(recorded).unwrap();
            assert_eq!(load.check(), Ok(()), "{load:?}");
        }
    }

    #[test]
    fn what_could_not_be_typed_is_refused() {
        let load = LoadDraft::default().resolve(false).unwrap();
        let closed = |concurrency, think| Load {
            shape: LoadShape::Closed { concurrency, think },
            ..load.clone()
        };
        let eight = NonZeroU32::new(8).unwrap();
        let refused = |load: Load| load.check().unwrap_err();
        let many = refused(closed(NonZeroU32::MAX, Think::None));
        assert!(matches!(many, SpecError::TooLarge { name: "--concurrency", .. }), "{many}");
        let long = refused(closed(eight, Think::Fixed(Duration::MAX)));
        assert!(matches!(long, SpecError::ThinkTooLong(_)), "{long}");
        let long = refused(Load { extent: Extent::Duration(Duration::MAX), ..load.clone() });
        assert!(matches!(long, SpecError::BadDuration(_)), "{long}");
        let warm = refused(Load { warm_up: u64::MAX, ..load.clone() });
        assert!(matches!(warm, SpecError::TooLarge { name: "--warm-up", .. }), "{warm}");
        assert_eq!(refused(Load { extent: Extent::Whole, ..load.clone() }), SpecError::OddLoad);
        assert_eq!(refused(closed(eight, Think::Fixed(Duration::ZERO))), SpecError::OddLoad);
    }
}
