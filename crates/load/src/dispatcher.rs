//! The dispatcher: a value that is told the time and the replies, and says what to do next.
//!
//! It knows nothing of sockets or runtimes, so a simulation drives it as well as the wire does.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use inferometer_model::outcome::Cause;
use inferometer_model::plan::Bounds;
use inferometer_model::{Moment, NotSent, Plan, PlannedRequest, Release, RequestId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send it now. Its latency counts from `intended`, however late this command comes.
    Send {
        request: PlannedRequest,
        intended: Moment,
    },
    /// It was scheduled, but this machine cannot hold another request in flight.
    Refuse {
        id: RequestId,
    },
    WaitUntil(Moment),
    WaitForReply,
    Done,
}

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
    /// Follow-ups whose thinking ends at a known moment.
    timed: BinaryHeap<Reverse<(Moment, RequestId)>>,
    /// Follow-ups that wait for the reply to their key.
    waiting: HashMap<RequestId, PlannedRequest>,
    /// Follow-ups that are not waiting any more, by id.
    released: HashMap<RequestId, PlannedRequest>,
    /// Follow-ups of refused requests: nothing will ever answer their predecessor.
    orphans: VecDeque<RequestId>,
    /// When each free slot became free, the earliest first.
    free_slots: BinaryHeap<Reverse<Moment>>,
    slot_holders: HashSet<RequestId>,
    in_flight: usize,
    stopped: bool,
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher")
            .field("bounds", &self.bounds)
            .field("cursor", &self.cursor)
            .field("in_flight", &self.in_flight)
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

impl Dispatcher {
    pub fn new(plan: Arc<dyn Plan>, ceiling: usize, begin: Moment) -> Self {
        let bounds = plan.bounds();
        let peeked = plan.request(RequestId(0));
        let slots = bounds.slots.map_or(0, |slots| slots.get() as usize);
        Self {
            plan,
            bounds,
            ceiling,
            begin,
            cursor: RequestId(0),
            peeked,
            timed: BinaryHeap::new(),
            waiting: HashMap::new(),
            released: HashMap::new(),
            orphans: VecDeque::new(),
            free_slots: std::iter::repeat_n(Reverse(begin), slots).collect(),
            slot_holders: HashSet::new(),
            in_flight: 0,
            stopped: false,
        }
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub fn next(&mut self, now: Moment) -> Command {
        if self.stopped {
            return self.wait_or_done(None);
        }
        if let Some(id) = self.orphans.pop_front() {
            return Command::Refuse { id };
        }
        let follow_up = self.timed.peek().map(|Reverse(entry)| *entry);
        let planned = self.next_planned(now);
        if let Some((intended, id)) = follow_up.filter(|(moment, _)| *moment <= now)
            && planned.is_none_or(|(_, at)| intended <= at)
        {
            self.timed.pop();
            if let Some(request) = self.released.remove(&id) {
                return self.send(request, intended);
            }
        }
        match planned {
            Some((request, at)) if at <= now => {
                self.advance();
                self.set_aside_follow_ups();
                if request.release == Release::WhenSlotFree {
                    self.free_slots.pop();
                    self.slot_holders.insert(request.id);
                }
                self.send(request, at)
            }
            _ => {
                let due = planned.map(|(_, at)| at).into_iter().chain(follow_up.map(|(at, _)| at));
                self.wait_or_done(due.min())
            }
        }
    }

    fn wait_or_done(&self, due: Option<Moment>) -> Command {
        match due {
            Some(moment) => Command::WaitUntil(moment),
            None if 0 < self.in_flight => Command::WaitForReply,
            None => Command::Done,
        }
    }

    /// Follow-ups stand right behind their predecessor and leave when it is answered, not in plan
    /// order.
    fn set_aside_follow_ups(&mut self) {
        while let Some(request) = self.peeked
            && let Release::After { previous, .. } = request.release
        {
            self.waiting.insert(previous, request);
            self.advance();
        }
    }

    fn advance(&mut self) {
        self.cursor = RequestId(self.cursor.0 + 1);
        self.peeked = self.plan.request(self.cursor);
    }

    /// A moment of the plan on the run's clock.
    fn on_clock(&self, planned: Moment) -> Moment {
        self.begin + Duration::from_nanos(planned.as_nanos())
    }

    /// The next request of the plan, and when it may leave; `None` when the plan has no more, or
    /// a slot must become free first.
    fn next_planned(&self, now: Moment) -> Option<(PlannedRequest, Moment)> {
        let request = self.peeked?;
        let at = match request.release {
            Release::At(moment) => self.on_clock(moment),
            // A closed loop that this machine cannot hold whole waits; only a schedule is refused.
            Release::WhenSlotFree if self.ceiling <= self.in_flight => return None,
            Release::WhenSlotFree => self.free_slots.peek().map(|Reverse(moment)| *moment)?,
            Release::After { .. } => return None,
        };
        let over = self.bounds.release_before.is_some_and(|end| self.on_clock(end) <= at.max(now));
        let by_time_alone = matches!(request.release, Release::WhenSlotFree)
            && self.bounds.requests_min <= request.id.0;
        (!(over && by_time_alone)).then_some((request, at))
    }

    fn send(&mut self, request: PlannedRequest, intended: Moment) -> Command {
        if self.ceiling <= self.in_flight {
            self.free_slot_of(request.id, intended);
            let mut refused = request.id;
            while let Some(follow_up) = self.waiting.remove(&refused) {
                refused = follow_up.id;
                self.orphans.push_back(refused);
            }
            return Command::Refuse { id: request.id };
        }
        self.in_flight += 1;
        Command::Send { request, intended }
    }

    /// The reply to `id` ended at `at`. A conversation keeps its slot from its first request to
    /// the end of its last.
    pub fn replied(&mut self, id: RequestId, at: Moment) {
        self.in_flight -= 1;
        let follow_up = self.waiting.remove(&id).filter(|_| !self.stopped);
        let Some(request) = follow_up else {
            self.free_slot_of(id, at);
            return;
        };
        if let Release::After { think, .. } = request.release {
            self.timed.push(Reverse((at + think, request.id)));
            self.released.insert(request.id, request);
            if self.slot_holders.remove(&id) {
                self.slot_holders.insert(request.id);
            }
        }
    }

    fn free_slot_of(&mut self, id: RequestId, at: Moment) {
        if self.slot_holders.remove(&id) {
            self.free_slots.push(Reverse(at));
        }
    }

    /// Releases nothing more. Says which scheduled requests will now never be sent.
    pub fn stop(&mut self, now: Moment) -> Vec<NotSent> {
        self.stopped = true;
        let set_aside = self.waiting.drain().map(|(_, request)| request);
        let released = self.released.drain().map(|(_, request)| request);
        let mut ids: Vec<u64> = set_aside.chain(released).map(|request| request.id.0).collect();
        ids.extend(self.orphans.drain(..).map(|id| id.0));
        self.timed.clear();
        ids.sort_unstable();
        let mut parts: Vec<NotSent> = Vec::new();
        let mut add = |first: u64, count: u64| match parts.last_mut() {
            Some(part) if part.first.0 + part.count == first => part.count += count,
            _ if count == 0 => {}
            _ => parts.push(NotSent {
                first: RequestId(first),
                count,
                cause: Cause::RunStopped,
                at: now,
            }),
        };
        for id in ids {
            add(id, 1);
        }
        add(self.cursor.0, self.bounds.scheduled_min().saturating_sub(self.cursor.0));
        parts
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    /// A plan that is a list.
    struct Listed {
        releases: Vec<Release>,
        slots: Option<u32>,
        release_before: Option<Moment>,
        requests_min: u64,
        endless: bool,
    }

    impl Plan for Listed {
        fn bounds(&self) -> Bounds {
            Bounds {
                requests: (!self.endless).then_some(self.releases.len() as u64),
                release_before: self.release_before,
                requests_min: self.requests_min,
                slots: self.slots.and_then(NonZeroU32::new),
            }
        }

        fn request(&self, id: RequestId) -> Option<PlannedRequest> {
            let position = usize::try_from(id.0).ok()?;
            let release = if self.endless {
                Some(&self.releases[position % self.releases.len()])
            } else {
                self.releases.get(position)
            };
            release.map(|release| PlannedRequest {
                id,
                release: *release,
                think: Duration::ZERO,
                prompt_seed: 0,
                input_tokens: 1,
                output_tokens: 1,
            })
        }

        fn prompt(&self, _: &PlannedRequest) -> String {
            String::new()
        }
    }

    fn ms(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn open(moments: &[u64]) -> Listed {
        let releases = moments.iter().map(|at| Release::At(ms(*at))).collect();
        Listed { releases, slots: None, release_before: None, requests_min: 0, endless: false }
    }

    fn closed(requests: usize, slots: u32) -> Listed {
        let releases = vec![Release::WhenSlotFree; requests];
        Listed {
            releases,
            slots: Some(slots),
            release_before: None,
            requests_min: 0,
            endless: false,
        }
    }

    fn dispatcher(plan: Listed) -> Dispatcher {
        Dispatcher::new(Arc::new(plan), usize::MAX, Moment::ZERO)
    }

    fn sent(command: Command) -> Option<(u64, Moment)> {
        match command {
            Command::Send { request, intended } => Some((request.id.0, intended)),
            Command::Refuse { .. }
            | Command::WaitUntil(_)
            | Command::WaitForReply
            | Command::Done => None,
        }
    }

    #[test]
    fn open_loop_does_not_wait_for_replies_and_keeps_the_planned_moment() {
        let mut dispatcher = dispatcher(open(&[10, 20]));
        assert_eq!(dispatcher.next(ms(0)), Command::WaitUntil(ms(10)));
        // The driver woke late, at 25 ms: both leave, and both keep their planned moments.
        assert_eq!(sent(dispatcher.next(ms(25))), Some((0, ms(10))));
        assert_eq!(sent(dispatcher.next(ms(25))), Some((1, ms(20))));
        assert_eq!(dispatcher.next(ms(25)), Command::WaitForReply);
        dispatcher.replied(RequestId(1), ms(30));
        dispatcher.replied(RequestId(0), ms(31));
        assert_eq!(dispatcher.next(ms(31)), Command::Done);
    }

    #[test]
    fn the_plans_moments_count_from_the_beginning_of_the_drive() {
        let mut dispatcher = Dispatcher::new(Arc::new(open(&[10])), usize::MAX, ms(500));
        assert_eq!(dispatcher.next(ms(501)), Command::WaitUntil(ms(510)));
        assert_eq!(sent(dispatcher.next(ms(510))), Some((0, ms(510))));
    }

    #[test]
    fn closed_loop_intends_the_next_request_when_its_slot_became_free() {
        let mut dispatcher = dispatcher(closed(3, 2));
        assert_eq!(sent(dispatcher.next(ms(1))), Some((0, ms(0))));
        assert_eq!(sent(dispatcher.next(ms(1))), Some((1, ms(0))));
        assert_eq!(dispatcher.next(ms(1)), Command::WaitForReply);
        dispatcher.replied(RequestId(1), ms(7));
        assert_eq!(sent(dispatcher.next(ms(9))), Some((2, ms(7))), "2 ms of client queue show");
    }

    #[test]
    fn a_closed_loop_by_time_releases_nothing_at_or_after_its_end() {
        let mut plan = closed(1, 1);
        plan.endless = true;
        plan.release_before = Some(ms(10));
        let mut dispatcher = dispatcher(plan);
        assert_eq!(sent(dispatcher.next(ms(0))), Some((0, ms(0))));
        dispatcher.replied(RequestId(0), ms(9));
        assert_eq!(sent(dispatcher.next(ms(9))), Some((1, ms(9))));
        dispatcher.replied(RequestId(1), ms(9));
        assert_eq!(dispatcher.next(ms(10)), Command::Done, "free at 9 ms, but the time is over");
    }

    #[test]
    fn a_least_number_is_released_whatever_the_time() {
        let endless = || Listed {
            endless: true,
            release_before: Some(ms(10)),
            requests_min: 3,
            ..closed(1, 1)
        };
        let mut dispatcher = dispatcher(endless());
        for (id, at) in [(0, 0), (1, 20), (2, 30)] {
            assert_eq!(sent(dispatcher.next(ms(at))), Some((id, ms(at))));
            dispatcher.replied(RequestId(id), ms(at + 10).max(ms(20)));
        }
        assert_eq!(dispatcher.next(ms(40)), Command::Done);
        let mut stopped = self::dispatcher(endless());
        assert_eq!(sent(stopped.next(ms(0))), Some((0, ms(0))));
        let not_sent = stopped.stop(ms(1));
        assert_eq!((not_sent[0].first, not_sent[0].count), (RequestId(1), 2));
    }

    #[test]
    fn a_conversation_keeps_its_slot_while_it_thinks() {
        let think = Duration::from_millis(50);
        let after = |previous| Release::After { previous: RequestId(previous), think };
        let releases = vec![Release::WhenSlotFree, after(0), Release::WhenSlotFree];
        let plan = Listed { releases, ..closed(0, 1) };
        let mut dispatcher = dispatcher(plan);
        assert_eq!(sent(dispatcher.next(ms(0))), Some((0, ms(0))));
        assert_eq!(dispatcher.next(ms(0)), Command::WaitForReply);
        dispatcher.replied(RequestId(0), ms(10));
        assert_eq!(dispatcher.next(ms(10)), Command::WaitUntil(ms(60)));
        assert_eq!(sent(dispatcher.next(ms(61))), Some((1, ms(60))));
        dispatcher.replied(RequestId(1), ms(70));
        assert_eq!(sent(dispatcher.next(ms(70))), Some((2, ms(70))));
    }

    #[test]
    fn what_this_machine_cannot_hold_is_refused_and_not_queued() {
        let plan = open(&[0, 0, 0]);
        let mut dispatcher = Dispatcher::new(Arc::new(plan), 1, Moment::ZERO);
        assert_eq!(sent(dispatcher.next(ms(0))), Some((0, ms(0))));
        assert_eq!(dispatcher.next(ms(0)), Command::Refuse { id: RequestId(1) });
        dispatcher.replied(RequestId(0), ms(1));
        assert_eq!(sent(dispatcher.next(ms(1))), Some((2, ms(0))));
    }

    #[test]
    fn stopping_names_every_request_that_was_scheduled_and_not_sent() {
        let mut dispatcher = dispatcher(closed(10, 2));
        dispatcher.next(ms(0));
        dispatcher.next(ms(0));
        let not_sent = dispatcher.stop(ms(3));
        assert_eq!(not_sent.len(), 1);
        assert_eq!((not_sent[0].first, not_sent[0].count), (RequestId(2), 8));
        assert_eq!(dispatcher.next(ms(3)), Command::WaitForReply);
        dispatcher.replied(RequestId(0), ms(4));
        dispatcher.replied(RequestId(1), ms(4));
        assert_eq!(dispatcher.next(ms(4)), Command::Done);
    }
}
