//! Sessions of any shape, played in virtual time: no request leaves before all that it waits for are
//! answered, and what waits for a failed one is never sent.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use inferometer_load::dispatcher::{Command, Departure, Dispatcher, Reply};
use inferometer_model::outcome::Cause;
use inferometer_model::plan::Bounds;
use inferometer_model::record::SessionPlace;
use inferometer_model::{Content, Moment, Plan, PlannedRequest, Release, RequestId};
use proptest::collection::vec;
use proptest::prelude::*;

/// A request of a session: the earlier turns that it waits for, and how long it thinks.
type Node = (BTreeSet<u16>, u64);

#[derive(Clone, Debug)]
struct Graphs {
    sessions: Vec<Vec<Node>>,
    slots: Option<u32>,
    release_before: Option<u64>,
}

fn millis(count: u64) -> Moment {
    Moment::from_nanos(count * 1_000_000)
}

impl Graphs {
    /// The session of a request, and its turn.
    fn place(&self, id: RequestId) -> Option<(usize, u16)> {
        let mut left = usize::try_from(id.0).unwrap();
        for (number, session) in self.sessions.iter().enumerate() {
            if left < session.len() {
                return Some((number, u16::try_from(left).unwrap()));
            }
            left -= session.len();
        }
        None
    }

    fn waits_for(&self, id: RequestId) -> Vec<RequestId> {
        let (session, turn) = self.place(id).unwrap();
        let first = id.0 - u64::from(turn);
        let node = &self.sessions[session][usize::from(turn)];
        node.0.iter().map(|turn| RequestId(first + u64::from(*turn))).collect()
    }
}

impl Plan for Graphs {
    fn bounds(&self) -> Bounds {
        Bounds {
            requests: Some(self.sessions.iter().map(|session| session.len() as u64).sum()),
            release_before: self.release_before.map(millis),
            requests_min: 0,
            slots: self.slots.and_then(NonZeroU32::new),
        }
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let (session, turn) = self.place(id)?;
        let think = Duration::from_millis(self.sessions[session][usize::from(turn)].1);
        let release = match (turn, self.waits_for(id).last()) {
            (0, _) if self.slots.is_some() => Release::WhenSlotFree,
            (0, _) => Release::At(millis(5 * session as u64)),
            (_, None) => Release::Beside { delay: think },
            (_, Some(last)) => Release::After { previous: *last, think },
        };
        let requests = u16::try_from(self.sessions[session].len()).unwrap();
        let place = SessionPlace { requests, ..SessionPlace::default() };
        Some(PlannedRequest { turn, session: place, ..PlannedRequest::alone(id, release) })
    }

    fn joins(&self, request: &PlannedRequest) -> Vec<RequestId> {
        let mut all = self.waits_for(request.id);
        all.pop();
        all
    }

    fn content(&self, _: &PlannedRequest) -> Content {
        Content::text("")
    }
}

fn graphs() -> impl Strategy<Value = Graphs> {
    let node = |turn: usize| (vec(0..turn.max(1), 0..4), 0_u64..30);
    let session = (1_usize..12).prop_flat_map(move |count| {
        (0..count).map(node).collect::<Vec<_>>().prop_map(|nodes| {
            let nodes = nodes.into_iter().enumerate().map(|(turn, (earlier, think))| {
                let earlier = earlier.into_iter().filter(|it| *it < turn);
                (earlier.map(|it| u16::try_from(it).unwrap()).collect(), think)
            });
            nodes.collect::<Vec<Node>>()
        })
    });
    let slots = proptest::option::of(1_u32..4);
    let end = proptest::option::weighted(0.3, 1_u64..200);
    (vec(session, 1..8), slots, end).prop_map(|(sessions, slots, release_before)| Graphs {
        sessions,
        slots,
        release_before,
    })
}

/// What happened to each request.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Answered { sent: Moment, at: Moment, ok: bool },
    Refused(Cause),
}

struct Stage {
    plan: Arc<Graphs>,
    dispatcher: Dispatcher,
    flying: BTreeMap<RequestId, (Departure, Moment)>,
    replies: BinaryHeap<Reverse<(Moment, usize, RequestId, bool)>>,
    fates: BTreeMap<RequestId, Fate>,
    now: Moment,
}

impl Stage {
    fn send(&mut self, lane: usize, departure: Departure, (service_ms, ok): (u64, bool)) {
        let id = departure.request.id;
        let answers: Vec<Fate> = self
            .plan
            .waits_for(id)
            .iter()
            .map(|earlier| *self.fates.get(earlier).expect("it is answered"))
            .collect();
        let mut latest = None;
        for answer in &answers {
            let Fate::Answered { at, ok, .. } = answer else {
                panic!("{id} waits for a refused one")
            };
            assert!(*ok, "{id} waits for one that failed");
            latest = latest.max(Some(*at));
        }
        if let (Some(latest), Release::After { previous, think }) =
            (latest, departure.request.release)
        {
            assert_eq!(departure.intended, latest + think, "it thinks from the last answer on");
            let Some(Fate::Answered { at, .. }) = self.fates.get(&previous) else { panic!("{id}") };
            assert_eq!(*at, latest, "the one that released it is named");
        }
        assert!(departure.intended <= self.now, "not before its time");
        let ends = self.now + Duration::from_millis(service_ms);
        self.replies.push(Reverse((ends, lane, id, ok)));
        self.flying.insert(id, (departure, self.now));
    }

    fn take_replies(&mut self) {
        while let Some(Reverse((at, lane, id, ok))) = self.replies.peek().copied()
            && at <= self.now
        {
            self.replies.pop();
            let (departure, sent) = self.flying.remove(&id).unwrap();
            self.fates.insert(id, Fate::Answered { sent, at, ok });
            self.dispatcher.replied(lane, &departure, Reply { at, ok });
        }
    }
}

/// Plays a plan to its end.
fn play(plan: &Graphs, services: &[(u64, bool)], drivers: usize) -> BTreeMap<RequestId, Fate> {
    let plan = Arc::new(plan.clone());
    let dispatcher =
        Dispatcher::new(Arc::clone(&plan) as Arc<dyn Plan>, usize::MAX, Moment::ZERO, drivers);
    let mut lanes: Vec<usize> = (0..dispatcher.lane_count()).collect();
    let (flying, replies, fates) = (BTreeMap::new(), BinaryHeap::new(), BTreeMap::new());
    let mut stage = Stage { plan, dispatcher, flying, replies, fates, now: Moment::ZERO };
    let mut sent = 0;
    for _ in 0..100_000 {
        let mut wake = None;
        if let Some(part) = stage.dispatcher.expire(stage.now) {
            for id in part.first.0..part.first.0 + part.count {
                stage.fates.insert(RequestId(id), Fate::Refused(part.cause));
            }
        }
        lanes.retain(|lane| {
            loop {
                match stage.dispatcher.next(*lane, stage.now) {
                    Command::Send(departure) => {
                        stage.send(*lane, departure, services[sent % services.len()]);
                        sent += 1;
                    }
                    Command::Refuse { id, cause } => {
                        let twice = stage.fates.insert(id, Fate::Refused(cause));
                        assert_eq!(twice, None, "{id} is refused once");
                    }
                    Command::WaitUntil(moment) => {
                        wake = wake.into_iter().chain([moment]).min();
                        break true;
                    }
                    Command::WaitForReply => break true,
                    Command::Done => break false,
                }
            }
        });
        if lanes.is_empty() {
            return stage.fates;
        }
        let reply = stage.replies.peek().map(|reply| reply.0.0);
        stage.now = [wake, reply].into_iter().flatten().min().unwrap().max(stage.now);
        stage.take_replies();
    }
    panic!("the dispatcher never came to an end");
}

proptest! {
    #[test]
    fn no_graph_is_played_out_of_order(
        plan in graphs(),
        services in vec((1_u64..50, prop::bool::weighted(0.9)), 1..20),
        drivers in 1_usize..4,
    ) {
        let fates = play(&plan, &services, drivers);
        let all = plan.bounds().requests.unwrap();
        // Without an end everything that was planned has a fate.
        if plan.release_before.is_none() {
            prop_assert_eq!(fates.len() as u64, all);
        }
        for (id, fate) in &fates {
            let failed = |earlier: &RequestId| match fates.get(earlier) {
                Some(Fate::Answered { ok, .. }) => !ok,
                Some(Fate::Refused(_)) => true,
                None => false,
            };
            let earlier = plan.waits_for(*id);
            if let Fate::Refused(cause) = fate
                && plan.release_before.is_none()
            {
                prop_assert_eq!(*cause, Cause::ConversationBroken);
                prop_assert!(earlier.iter().any(failed), "{} was refused without a reason", id);
            }
        }
        // A session keeps its slot until its last request has ended.
        let Some(slots) = plan.slots else { return Ok(()) };
        let mut spans: BTreeMap<usize, (Moment, Moment)> = BTreeMap::new();
        for (id, fate) in &fates {
            let Fate::Answered { sent, at, .. } = fate else { continue };
            let span = spans.entry(plan.place(*id).unwrap().0).or_insert((*sent, *at));
            *span = (span.0.min(*sent), span.1.max(*at));
        }
        for (begun, _) in spans.values() {
            let open = spans.values().filter(|(from, to)| from <= begun && begun < to).count();
            prop_assert!(open <= slots as usize, "{} sessions in {} slots", open, slots);
        }
    }
}
