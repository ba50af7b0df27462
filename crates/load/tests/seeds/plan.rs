//! A plan of any shape, drawn: open with and without a cap, closed by number or time, conversations.

use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_model::plan::Bounds;
use inferometer_model::{Content, Moment, Plan, PlannedRequest, Release, RequestId};

use super::Draw;

#[derive(Clone, Debug)]
pub(super) struct DrawnPlan {
    releases: Vec<Release>,
    think: Duration,
    bounds: Bounds,
}

fn millis(count: u64) -> Moment {
    Moment::from_nanos(count * 1_000_000)
}

impl DrawnPlan {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        let count = draw.size(60);
        let slots = NonZeroU32::new(u32::try_from(1 + draw.below(8)).unwrap());
        let think = Duration::from_millis(draw.below(20));
        let requests = Some(count as u64);
        let bounds = Bounds { requests, release_before: None, requests_min: 0, slots };
        match draw.below(4) {
            0 => {
                let mut moments: Vec<u64> = (0..count).map(|_| draw.below(500)).collect();
                moments.sort_unstable();
                let releases = moments.into_iter().map(|at| Release::At(millis(at))).collect();
                let slots = slots.filter(|_| draw.chance(50));
                let release_before = draw.chance(50).then_some(millis(500));
                let bounds = Bounds { slots, release_before, ..bounds };
                Self { releases, think: Duration::ZERO, bounds }
            }
            1 => Self { releases: vec![Release::WhenSlotFree; count], think, bounds },
            2 => {
                // Endless, but for the time; sometimes at least so many.
                let release_before = Some(millis(1 + draw.below(500)));
                let requests_min = if draw.chance(50) { draw.below(30) } else { 0 };
                let bounds = Bounds { requests: None, release_before, requests_min, ..bounds };
                Self { releases: Vec::new(), think, bounds }
            }
            _ => {
                let mut releases: Vec<Release> = Vec::new();
                while releases.len() < count {
                    let previous = releases.len().checked_sub(1).filter(|_| draw.chance(60));
                    releases.push(match previous {
                        None => Release::WhenSlotFree,
                        Some(previous) => {
                            Release::After { previous: RequestId(previous as u64), think }
                        }
                    });
                }
                Self { releases, think: Duration::ZERO, bounds }
            }
        }
    }
}

impl Plan for DrawnPlan {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let release = match self.bounds.requests {
            None => Release::WhenSlotFree,
            Some(_) => *self.releases.get(usize::try_from(id.0).unwrap())?,
        };
        let follows = |release: &&Release| matches!(release, Release::After { .. });
        let upto = self.releases.iter().take(usize::try_from(id.0).unwrap() + 1).rev();
        let turn = u16::try_from(upto.take_while(follows).count()).unwrap();
        Some(PlannedRequest { think: self.think, turn, ..PlannedRequest::alone(id, release) })
    }

    fn content(&self, _: &PlannedRequest) -> Content {
        Content::text("hello")
    }
}
