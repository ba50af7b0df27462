//! One driver's share: its slots, and the requests that it has taken.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::time::Duration;

use inferometer_model::outcome::Cause;
use inferometer_model::{Moment, PlannedRequest, Release, RequestId};

use super::{Command, Departure, SlotId};

#[derive(Debug)]
pub(super) struct Lane {
    /// The next request of the plan that leaves from here.
    pub(super) claim: Option<Departure>,
    /// When each free slot became free, the earliest first; `None` where slots do not count.
    free_slots: Option<BinaryHeap<Reverse<(Moment, SlotId)>>>,
    /// Follow-ups whose thinking ends at a known moment.
    timed: BinaryHeap<Reverse<(Moment, RequestId)>>,
    /// Follow-ups that wait for the reply to their key.
    pub(super) waiting: HashMap<RequestId, PlannedRequest>,
    /// Follow-ups that are not waiting any more, by id, with the slot that they keep.
    released: HashMap<RequestId, (PlannedRequest, Option<SlotId>)>,
    /// Follow-ups that will never leave, and why.
    pub(super) orphans: VecDeque<(RequestId, Cause)>,
    pub(super) in_flight: usize,
}

impl Lane {
    pub(super) fn with_slots(slots: impl Iterator<Item = u32>, begin: Moment) -> Self {
        let free_slots = slots.map(|slot| Reverse((begin, SlotId(slot)))).collect();
        Self { free_slots: Some(free_slots), ..Self::without_slots() }
    }

    pub(super) fn without_slots() -> Self {
        Self {
            claim: None,
            free_slots: None,
            timed: BinaryHeap::new(),
            waiting: HashMap::new(),
            released: HashMap::new(),
            orphans: VecDeque::new(),
            in_flight: 0,
        }
    }

    /// Since when a slot is free, or from when on it will be: `always` where slots do not count,
    /// `None` where all are taken.
    pub(super) fn next_slot(&self, always: Moment) -> Option<(Moment, Option<SlotId>)> {
        match &self.free_slots {
            None => Some((always, None)),
            Some(slots) => slots.peek().map(|Reverse((moment, slot))| (*moment, Some(*slot))),
        }
    }

    pub(super) fn take_slot(&mut self) {
        if let Some(slots) = &mut self.free_slots {
            slots.pop();
        }
    }

    pub(super) fn free_slot(&mut self, slot: Option<SlotId>, at: Moment) {
        if let (Some(slots), Some(slot)) = (&mut self.free_slots, slot) {
            slots.push(Reverse((at, slot)));
        }
    }

    /// Whether something is still to leave. When the time is over, what waits for an answer is
    /// not, unless it belongs to the first `over` requests.
    pub(super) fn has_waiting(&self, over: Option<u64>) -> bool {
        let counts = |request: &PlannedRequest| over.is_none_or(|first| request.id.0 < first);
        self.claim.is_some()
            || self.waiting.values().any(counts)
            || !self.released.is_empty()
            || !self.orphans.is_empty()
    }

    pub(super) fn next_follow_up(&self) -> Option<Moment> {
        self.timed.peek().map(|Reverse((at, _))| *at)
    }

    pub(super) fn take_follow_up(&mut self) -> Option<Departure> {
        let Reverse((at, id)) = self.timed.pop()?;
        let (request, slot) = self.released.remove(&id)?;
        Some(Departure { request, intended: at, admitted: at, slot })
    }

    /// The follow-up that waits for a reply, and how long it thinks.
    pub(super) fn follow_up_of(&self, answered: RequestId) -> Option<(RequestId, Duration)> {
        if self.waiting.is_empty() {
            return None;
        }
        let request = self.waiting.get(&answered)?;
        match request.release {
            Release::After { think, .. } => Some((request.id, think)),
            Release::At(_) | Release::WhenSlotFree => None,
        }
    }

    /// Lets the follow-up of a request think; `false` when there is none.
    pub(super) fn release_follow_up(&mut self, answered: &Departure, at: Moment) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let Some(request) = self.waiting.remove(&answered.request.id) else { return false };
        if let Release::After { think, .. } = request.release {
            self.timed.push(Reverse((at + think, request.id)));
            self.released.insert(request.id, (request, answered.slot));
        }
        true
    }

    pub(super) fn orphan_follow_ups(&mut self, mut refused: RequestId, cause: Cause) {
        while let Some(follow_up) = self.waiting.remove(&refused) {
            refused = follow_up.id;
            self.orphans.push_back((refused, cause));
        }
    }

    /// What was taken and will not be sent any more, in no order.
    pub(super) fn give_up(&mut self) -> Vec<u64> {
        self.timed.clear();
        let claimed = self.claim.take().map(|claim| claim.request);
        let set_aside = self.waiting.drain().map(|(_, request)| request);
        let released = self.released.drain().map(|(_, (request, _))| request);
        let requests = claimed.into_iter().chain(set_aside).chain(released);
        let ids: Vec<u64> = requests.map(|request| request.id.0).collect();
        ids.into_iter().chain(self.orphans.drain(..).map(|(id, _)| id.0)).collect()
    }

    pub(super) fn wait_or_done(&self, due: Option<Moment>) -> Command {
        match due {
            Some(moment) => Command::WaitUntil(moment),
            None if 0 < self.in_flight => Command::WaitForReply,
            None => Command::Done,
        }
    }
}
