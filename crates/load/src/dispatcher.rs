//! The dispatcher: a value that receives the time and the replies, and returns what to do next.
//!
//! It knows nothing of sockets, threads or runtimes, so a simulation drives it as well as the wire
//! does. Several drivers may ask it; each has a lane: its share of the slots, and the requests
//! that it has taken. All take from one cursor, so the load is the same for any number of drivers.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use inferometer_model::outcome::Cause;
use inferometer_model::plan::Bounds;
use inferometer_model::{Moment, NotSent, Plan, PlannedRequest, Release, RequestId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send this request now.
    Send(Departure),
    /// It was scheduled and will not be sent: this machine cannot hold another request in flight,
    /// or a request that it waits for failed.
    Refuse { id: RequestId, cause: Cause },
    /// Nothing is due before this time.
    WaitUntil(Moment),
    /// Nothing is due before a reply.
    WaitForReply,
    /// This driver will get no more; others may still have work.
    Done,
}

/// A request that leaves now. However late this comes, its latency counts from `intended`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    pub request: PlannedRequest,
    pub intended: Moment,
    /// When a slot was free for it: later than intended only where a cap held it back.
    pub admitted: Moment,
    /// The slot that it holds, where slots count: a closed loop's user.
    pub slot: Option<SlotId>,
}

/// How a request ended, as far as it matters for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    pub at: Moment,
    pub ok: bool,
}

/// A slot's number, from zero, over all drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

pub struct Dispatcher {
    plan: Arc<dyn Plan>,
    bounds: Bounds,
    /// Requests that this machine can hold in flight at once.
    ceiling: usize,
    /// The plan's zero on the run's clock.
    begin: Moment,
    cursor: RequestId,
    /// The recipe at the cursor, asked for once.
    peeked: Option<PlannedRequest>,
    lanes: Vec<Lane>,
    in_flight: usize,
    stopped: bool,
}

/// How soon a closed loop that this machine cannot hold whole looks again.
const CEILING_RETRY: Duration = Duration::from_millis(1);

inferometer_model::debug_fields!(Dispatcher, bounds, cursor, in_flight, stopped);

impl Dispatcher {
    pub fn new(plan: Arc<dyn Plan>, ceiling: usize, begin: Moment, drivers: usize) -> Self {
        let bounds = plan.bounds();
        let peeked = plan.request(RequestId(0));
        let slots = bounds.slots.map(NonZeroU32::get);
        let count = Self::lanes_of(&bounds, drivers);
        let lanes: Vec<Lane> = (0..)
            .take(count)
            .map(|lane| match slots {
                None => Lane::without_slots(),
                // Slots are dealt like cards, so that no lane has two more than another.
                Some(slots) => Lane::with_slots(
                    (lane..slots)
                        .step_by(count)
                        .map(|slot| Reverse((begin + plan.slot_start(slot), SlotId(slot)))),
                ),
            })
            .collect();
        Self {
            plan,
            bounds,
            ceiling,
            begin,
            cursor: RequestId(0),
            peeked,
            lanes,
            in_flight: 0,
            stopped: false,
        }
    }

    /// The same for a client that joins after the beginning of the plan: what was due before is refused,
    /// and users begin now.
    #[must_use]
    pub fn joining(mut self, now: Moment) -> Self {
        while let Some(request) = self.peeked
            && match request.release {
                Release::At(moment) => self.on_clock(moment) < now,
                // What precedes it was refused.
                Release::After { .. } | Release::Beside { .. } => true,
                Release::WhenSlotFree => false,
            }
        {
            self.lanes[0].orphans.push_back((request.id, Cause::WorkerLate));
            self.advance();
        }
        for slots in self.lanes.iter_mut().filter_map(|lane| lane.free_slots.as_mut()) {
            let later =
                |Reverse((at, slot)): Reverse<(Moment, SlotId)>| Reverse((at.max(now), slot));
            *slots = std::mem::take(slots).into_iter().map(later).collect();
        }
        self
    }

    pub fn lane_count(&self) -> usize {
        self.lanes.len()
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// How many lanes a plan has for so many drivers: none is without a slot.
    pub fn lanes_of(bounds: &Bounds, drivers: usize) -> usize {
        let slots = bounds.slots.map_or(usize::MAX, |slots| slots.get() as usize);
        drivers.clamp(1, slots)
    }

    /// Whether the plan's time, if it has one, has passed.
    pub fn is_time_over(&self, now: Moment) -> bool {
        self.bounds.release_before.is_some_and(|end| self.on_clock(end) <= now)
    }

    /// Gives up what a cap still holds back when the time is over. What a driver has taken is as
    /// good as sent.
    pub fn expire(&mut self, now: Moment) -> Option<NotSent> {
        let is_scheduled =
            self.peeked.is_some_and(|request| matches!(request.release, Release::At(_)));
        let promised = self.bounds.requests?;
        let first = self.cursor.0.max(self.bounds.requests_min);
        if !is_scheduled || !self.is_time_over(now) || self.cursor.0 < first || promised <= first {
            return None;
        }
        self.peeked = None;
        self.cursor = RequestId(promised);
        let cause = Cause::HeldByCap;
        Some(NotSent { first: RequestId(first), count: promised - first, cause, at: now })
    }

    /// Whether the plan has nothing more to release from `now` on.
    pub fn has_released_all(&self, now: Moment) -> bool {
        // What would follow an answer that comes after the end is not waited for.
        let over = self.is_time_over(now).then_some(self.bounds.requests_min);
        let waiting = self.lanes.iter().any(|lane| lane.has_waiting(over));
        let planned = self.peeked.is_some_and(|request| !self.is_over(&request, now));
        self.stopped || !waiting && !planned
    }

    /// What the driver of `lane` does now.
    pub fn next(&mut self, lane: usize, now: Moment) -> Command {
        if self.stopped {
            return self.lanes[lane].wait_or_done(None);
        }
        if let Some((id, cause)) = self.lanes[lane].orphans.pop_front() {
            return Command::Refuse { id, cause };
        }
        let look_again = self.claim(lane, now);
        let taken = &mut self.lanes[lane];
        let claimed = taken.claim.map(|claim| claim.admitted);
        let follow_up = taken.next_follow_up();
        let departure = if follow_up.is_some_and(|at| at <= now && claimed.is_none_or(|c| at <= c))
        {
            taken.take_follow_up()
        } else {
            taken.claim.take_if(|claim| claim.admitted <= now)
        };
        if let Some(departure) = departure {
            return self.send(lane, departure);
        }
        let due = [claimed, follow_up, look_again].into_iter().flatten().min();
        self.lanes[lane].wait_or_done(due)
    }

    /// Takes the request at the cursor for this lane, if it has a slot for it. Returns when to look
    /// again, if that is known.
    ///
    /// A scheduled request is taken ahead of its moment and leaves from this lane: no driver wakes
    /// for another's request, and one that is late delays only what it has taken. Its slot is
    /// reserved with it, which is no other order than waiting for the slot in the order of the
    /// schedule: the slots before it belong to requests that leave before it.
    fn claim(&mut self, lane: usize, now: Moment) -> Option<Moment> {
        let request = self.peeked.filter(|_| self.lanes[lane].claim.is_none())?;
        let (free_at, slot) = self.lanes[lane].next_slot(self.begin)?;
        if self.is_over(&request, now.max(free_at)) {
            return None;
        }
        let intended = match request.release {
            Release::At(moment) => self.on_clock(moment),
            Release::WhenSlotFree if now < free_at => return Some(free_at),
            // Only a schedule is refused; a closed loop waits.
            Release::WhenSlotFree if self.ceiling <= self.in_flight => {
                return Some(now + CEILING_RETRY);
            }
            Release::WhenSlotFree => free_at,
            Release::After { .. } | Release::Beside { .. } => return None,
        };
        self.advance();
        let taken = &mut self.lanes[lane];
        taken.take_slot();
        let admitted = intended.max(free_at);
        let first = Departure { request, intended, admitted, slot };
        taken.claim = Some(first);
        self.set_aside_session(lane, &first);
        None
    }

    /// The other requests of a session stand right behind its first. They leave from the same lane
    /// when those that they wait for are answered, not in plan order.
    fn set_aside_session(&mut self, lane: usize, first: &Departure) {
        let mut open = OpenSession { slot: first.slot, unfinished: 1 };
        let mut beside = Vec::new();
        while let Some(request) = self.peeked {
            match request.release {
                Release::After { previous, think } => {
                    let joins = self.plan.joins(&request);
                    let waiting = Waiting { request, think, replies_left: 0, latest: Moment::ZERO };
                    self.lanes[lane].set_aside(waiting, joins.into_iter().chain([previous]));
                }
                Release::Beside { delay } => {
                    let due = first.admitted + delay;
                    let waiting = Waiting { request, think: delay, replies_left: 0, latest: due };
                    self.lanes[lane].set_aside(waiting, []);
                    beside.push((request.id, due));
                }
                Release::At(_) | Release::WhenSlotFree => break,
            }
            open.unfinished += 1;
            self.advance();
        }
        if 1 < open.unfinished {
            self.lanes[lane].open.insert(first.request.conversation(), open);
        }
        for (id, due) in beside {
            if self.comes_too_late(id, due) {
                self.lanes[lane].orphan(id, Cause::TimeOver);
            } else {
                self.lanes[lane].release(id, due, first.slot);
            }
        }
    }

    /// Whether a follow-up would leave after the time is over.
    fn comes_too_late(&self, follower: RequestId, due: Moment) -> bool {
        self.bounds.requests_min <= follower.0 && self.is_time_over(due)
    }

    fn advance(&mut self) {
        self.cursor = RequestId(self.cursor.0 + 1);
        self.peeked = self.plan.request(self.cursor);
    }

    /// A moment of the plan on the run's clock.
    fn on_clock(&self, planned: Moment) -> Moment {
        self.begin + Duration::from_nanos(planned.as_nanos())
    }

    /// Whether the time for a request is over. A schedule holds nothing that comes too late.
    fn is_over(&self, request: &PlannedRequest, now: Moment) -> bool {
        matches!(request.release, Release::WhenSlotFree)
            && self.bounds.requests_min <= request.id.0
            && self.is_time_over(now)
    }

    fn send(&mut self, lane: usize, departure: Departure) -> Command {
        let id = departure.request.id;
        if self.ceiling <= self.in_flight {
            let lane = &mut self.lanes[lane];
            let cause = Cause::ClientResource;
            for follower in lane.take_followers(id) {
                lane.orphan(follower, cause);
            }
            lane.finish_one(&departure, departure.admitted);
            return Command::Refuse { id, cause };
        }
        self.in_flight += 1;
        self.lanes[lane].in_flight += 1;
        Command::Send(departure)
    }

    /// The reply to a request of this lane ended. A session keeps its slot until the last of its
    /// requests has ended. A request that fails ends all that wait for it, as there is no answer to go
    /// on from; so does one whose followers would leave after the time is over.
    pub fn replied(&mut self, lane: usize, departure: &Departure, reply: Reply) {
        self.in_flight -= 1;
        self.lanes[lane].in_flight -= 1;
        let Reply { at, ok } = reply;
        let previous = departure.request.id;
        for follower in self.lanes[lane].take_followers(previous) {
            let Some(waiting) = self.lanes[lane].waiting.get_mut(&follower) else { continue };
            waiting.replies_left -= 1;
            if waiting.latest <= at {
                waiting.latest = at;
                waiting.request.release = Release::After { previous, think: waiting.think };
            }
            let (due, is_last) = (waiting.latest + waiting.think, waiting.replies_left == 0);
            let too_late = self.comes_too_late(follower, due);
            let lane = &mut self.lanes[lane];
            // What the end of the run cut is no failure of the session.
            if too_late {
                lane.orphan(follower, Cause::TimeOver);
            } else if !ok {
                lane.orphan(follower, Cause::ConversationBroken);
            } else if is_last {
                lane.release(follower, due, departure.slot);
            }
        }
        self.lanes[lane].finish_one(departure, at + departure.request.think);
    }

    /// Releases nothing more. Returns which scheduled requests will now never be sent.
    pub fn stop(&mut self, now: Moment) -> Vec<NotSent> {
        self.stopped = true;
        let mut ids: Vec<u64> = self.lanes.iter_mut().flat_map(Lane::give_up).collect();
        ids.sort_unstable();
        let promised = self.bounds.scheduled_min();
        let cursor = self.cursor.0;
        let spans = ids.into_iter().map(|id| (id, 1));
        let rest = (cursor < promised).then(|| (cursor, promised - cursor));
        // Reported once: what is given up here must not be given up again when the time is over.
        self.peeked = None;
        self.cursor = RequestId(cursor.max(promised));
        let mut parts: Vec<NotSent> = Vec::new();
        for (first, count) in spans.chain(rest) {
            match parts.last_mut() {
                Some(part) if part.first.0 + part.count == first => part.count += count,
                _ => {
                    let cause = Cause::RunStopped;
                    parts.push(NotSent { first: RequestId(first), count, cause, at: now });
                }
            }
        }
        parts
    }
}

#[derive(Debug)]
struct Lane {
    /// The next request of the plan that leaves from here.
    claim: Option<Departure>,
    /// When each free slot became free, the earliest first; `None` where slots do not count.
    free_slots: Option<BinaryHeap<Reverse<(Moment, SlotId)>>>,
    /// Follow-ups whose thinking ends at a known moment.
    timed: BinaryHeap<Reverse<(Moment, RequestId)>>,
    /// Follow-ups that wait for replies.
    waiting: HashMap<RequestId, Waiting>,
    /// Who waits for whom: the request that must be answered, then the one that waits.
    edges: BTreeSet<(RequestId, RequestId)>,
    /// Follow-ups that are not waiting any more, by id, with the slot that they keep.
    released: HashMap<RequestId, (PlannedRequest, Option<SlotId>)>,
    /// Sessions of several requests that have begun, by their first request.
    open: HashMap<RequestId, OpenSession>,
    /// Follow-ups that will never leave, and why.
    orphans: VecDeque<(RequestId, Cause)>,
    in_flight: usize,
}

/// A follow-up, and what it waits for.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: PlannedRequest,
    think: Duration,
    replies_left: usize,
    /// The latest reply so far.
    latest: Moment,
}

#[derive(Clone, Copy, Debug)]
struct OpenSession {
    slot: Option<SlotId>,
    /// Requests that have not ended and may still be sent, or are in flight.
    unfinished: u32,
}

impl Lane {
    fn with_slots(slots: impl Iterator<Item = Reverse<(Moment, SlotId)>>) -> Self {
        Self { free_slots: Some(slots.collect()), ..Self::without_slots() }
    }

    fn without_slots() -> Self {
        Self {
            claim: None,
            free_slots: None,
            timed: BinaryHeap::new(),
            waiting: HashMap::new(),
            edges: BTreeSet::new(),
            released: HashMap::new(),
            open: HashMap::new(),
            orphans: VecDeque::new(),
            in_flight: 0,
        }
    }

    /// Since when a slot is free, or from when on it will be: `always` where slots do not count,
    /// `None` where all are taken.
    fn next_slot(&self, always: Moment) -> Option<(Moment, Option<SlotId>)> {
        match &self.free_slots {
            None => Some((always, None)),
            Some(slots) => slots.peek().map(|Reverse((moment, slot))| (*moment, Some(*slot))),
        }
    }

    fn take_slot(&mut self) {
        if let Some(slots) = &mut self.free_slots {
            slots.pop();
        }
    }

    fn free_slot(&mut self, slot: Option<SlotId>, at: Moment) {
        if let (Some(slots), Some(slot)) = (&mut self.free_slots, slot) {
            slots.push(Reverse((at, slot)));
        }
    }

    /// Whether something is still to leave. When the time is over, what waits for an answer is
    /// not, unless it belongs to the first `over` requests.
    fn has_waiting(&self, over: Option<u64>) -> bool {
        let counts = |request: &PlannedRequest| over.is_none_or(|first| request.id.0 < first);
        self.claim.is_some()
            || self.waiting.values().any(|waiting| counts(&waiting.request))
            || !self.released.is_empty()
            || !self.orphans.is_empty()
    }

    fn next_follow_up(&self) -> Option<Moment> {
        self.timed.peek().map(|Reverse((at, _))| *at)
    }

    fn take_follow_up(&mut self) -> Option<Departure> {
        let Reverse((at, id)) = self.timed.pop()?;
        let (request, slot) = self.released.remove(&id)?;
        Some(Departure { request, intended: at, admitted: at, slot })
    }

    fn set_aside(&mut self, waiting: Waiting, earlier: impl IntoIterator<Item = RequestId>) {
        let id = waiting.request.id;
        let before = self.edges.len();
        self.edges.extend(earlier.into_iter().map(|earlier| (earlier, id)));
        let replies_left = self.edges.len() - before;
        self.waiting.insert(id, Waiting { replies_left, ..waiting });
    }

    /// Those that wait for a reply, which do not wait for it from now on.
    fn take_followers(&mut self, answered: RequestId) -> Vec<RequestId> {
        if self.edges.is_empty() {
            return Vec::new();
        }
        let all = (answered, RequestId(0))..=(answered, RequestId(u64::MAX));
        let followers: Vec<RequestId> = self.edges.range(all).map(|edge| edge.1).collect();
        for follower in &followers {
            self.edges.remove(&(answered, *follower));
        }
        followers
    }

    /// All replies are there: the follow-up thinks until it is due.
    fn release(&mut self, follower: RequestId, due: Moment, slot: Option<SlotId>) {
        if let Some(waiting) = self.waiting.remove(&follower) {
            self.timed.push(Reverse((due, follower)));
            self.released.insert(follower, (waiting.request, slot));
        }
    }

    /// This follow-up will not be sent, and neither will those that wait for it.
    fn orphan(&mut self, follower: RequestId, cause: Cause) {
        let mut refused = BTreeSet::from([follower]);
        while let Some(id) = refused.pop_first() {
            let Some(waiting) = self.waiting.remove(&id) else { continue };
            self.orphans.push_back((id, cause));
            if let Some(open) = self.open.get_mut(&waiting.request.conversation()) {
                open.unfinished -= 1;
            }
            refused.extend(self.take_followers(id));
        }
    }

    /// A request has ended, or will never leave. The last one of its session frees the slot.
    fn finish_one(&mut self, departure: &Departure, at: Moment) {
        let session = departure.request.conversation();
        let slot = match self.open.get_mut(&session) {
            None => departure.slot,
            Some(open) if 1 < open.unfinished => {
                open.unfinished -= 1;
                return;
            }
            Some(open) => open.slot,
        };
        self.open.remove(&session);
        self.free_slot(slot, at);
    }

    /// What was taken and will not be sent any more, in no order.
    fn give_up(&mut self) -> Vec<u64> {
        self.timed.clear();
        self.edges.clear();
        self.open.clear();
        let claimed = self.claim.take().map(|claim| claim.request);
        let set_aside = self.waiting.drain().map(|(_, waiting)| waiting.request);
        let released = self.released.drain().map(|(_, (request, _))| request);
        let requests = claimed.into_iter().chain(set_aside).chain(released);
        let ids: Vec<u64> = requests.map(|request| request.id.0).collect();
        ids.into_iter().chain(self.orphans.drain(..).map(|(id, _)| id.0)).collect()
    }

    fn wait_or_done(&self, due: Option<Moment>) -> Command {
        match due {
            Some(moment) => Command::WaitUntil(moment),
            None if 0 < self.in_flight => Command::WaitForReply,
            None => Command::Done,
        }
    }
}
