//! Whatever the server does and whenever the run is stopped, every scheduled request ends once.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use inferometer_load::dispatcher::{Command, Departure, Dispatcher, Reply};
use inferometer_load::{Control, Drive, Drivers, Progress, Stop, SystemClock, drive};
use inferometer_model::endpoint::Api;
use inferometer_model::journal::RunStop;
use inferometer_model::outcome::Outcome;
use inferometer_model::plan::Bounds;
use inferometer_model::spec::Limits;
use inferometer_model::{
    Content, JournalEntry, Moment, NotSent, Plan, PlannedRequest, Release, RequestId,
};
use proptest::prelude::*;

use support::{Scripted, Step, target_with};

/// A plan given as a list of releases; endless ones repeat the last.
#[derive(Clone, Debug)]
struct Listed {
    releases: Vec<Release>,
    slots: Option<NonZeroU32>,
    release_before: Option<Moment>,
    think: Duration,
}

impl Plan for Listed {
    fn bounds(&self) -> Bounds {
        let requests = self.release_before.is_none().then_some(self.releases.len() as u64);
        Bounds { requests, release_before: self.release_before, requests_min: 0, slots: self.slots }
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let position = usize::try_from(id.0).unwrap();
        let endless = self.release_before.is_some();
        let release = self.releases.get(position).or(self.releases.last().filter(|_| endless))?;
        let follows = |release: &&Release| matches!(release, Release::After { .. });
        let upto = self.releases.iter().take(position + 1).rev();
        let turn = u16::try_from(upto.take_while(follows).count()).unwrap();
        Some(PlannedRequest { think: self.think, turn, ..PlannedRequest::alone(id, *release) })
    }

    fn content(&self, _: &PlannedRequest) -> Content {
        Content::text("hello")
    }
}

fn millis(count: u64) -> Moment {
    Moment::from_nanos(count * 1_000_000)
}

/// With a cap or without.
fn open_plan() -> impl Strategy<Value = Listed> {
    let moments = proptest::collection::vec(0_u64..200, 0..40);
    (moments, 0_u32..8).prop_map(|(mut moments, cap)| {
        moments.sort_unstable();
        let releases = moments.into_iter().map(|at| Release::At(millis(at))).collect();
        let slots = NonZeroU32::new(cap);
        Listed { releases, slots, release_before: None, think: Duration::ZERO }
    })
}

fn closed_plan() -> impl Strategy<Value = Listed> {
    let think = (0_u64..20).prop_map(Duration::from_millis);
    let end = proptest::option::of(1_u64..200);
    (1_usize..40, 1_u32..8, end, think).prop_map(|(count, slots, end, think)| Listed {
        releases: vec![Release::WhenSlotFree; count],
        slots: NonZeroU32::new(slots),
        release_before: end.map(millis),
        think,
    })
}

/// Conversations of up to four turns: each follow-up waits for its predecessor.
fn conversation_plan() -> impl Strategy<Value = Listed> {
    (proptest::collection::vec(1_u64..5, 1..8), 1_u32..4).prop_map(|(turns, slots)| {
        let mut releases = Vec::new();
        for turns in turns {
            releases.push(Release::WhenSlotFree);
            for _ in 1..turns {
                let previous = RequestId(releases.len() as u64 - 1);
                releases.push(Release::After { previous, think: Duration::from_millis(7) });
            }
        }
        Listed {
            releases,
            slots: NonZeroU32::new(slots),
            release_before: None,
            think: Duration::ZERO,
        }
    })
}

struct Played {
    released: Vec<u64>,
    refused: u64,
    not_sent: Vec<NotSent>,
    in_flight_max: usize,
}

enum Turn {
    WaitsUntil(Moment),
    WaitsForReply,
    Done,
}

/// A plan played in simulated time.
struct Stage<'a> {
    dispatcher: Dispatcher,
    flying: HashMap<RequestId, Departure>,
    service_ms: &'a [u64],
    replies: BinaryHeap<Reverse<(Moment, usize, RequestId)>>,
    now: Moment,
    played: Played,
}

impl Stage<'_> {
    /// What a lane does until it must wait, or is done.
    fn turn(&mut self, lane: usize) -> Turn {
        loop {
            match self.dispatcher.next(lane, self.now) {
                Command::Send(departure) => {
                    let Departure { request, intended, admitted, .. } = departure;
                    assert!(intended <= admitted && admitted <= self.now, "sent before its time");
                    let length =
                        self.service_ms[self.played.released.len() % self.service_ms.len()];
                    self.played.released.push(request.id.0);
                    let ends = self.now + Duration::from_millis(length);
                    self.replies.push(Reverse((ends, lane, request.id)));
                    self.flying.insert(request.id, departure);
                    let in_flight = self.dispatcher.in_flight();
                    self.played.in_flight_max = self.played.in_flight_max.max(in_flight);
                }
                Command::Refuse { .. } => self.played.refused += 1,
                Command::WaitUntil(moment) => return Turn::WaitsUntil(moment),
                Command::WaitForReply => return Turn::WaitsForReply,
                Command::Done => return Turn::Done,
            }
        }
    }

    fn take_replies(&mut self) {
        while let Some(Reverse((at, lane, id))) = self.replies.peek().copied()
            && at <= self.now
        {
            self.replies.pop();
            self.dispatcher.replied(
                lane,
                &self.flying.remove(&id).unwrap(),
                Reply { at, ok: true },
            );
        }
    }
}

/// Plays a plan with the given service times and drivers, stopping at `stop_at`.
fn play(
    plan: &Listed,
    service_ms: &[u64],
    stop_at: Option<u64>,
    ceiling: usize,
    drivers: usize,
) -> Played {
    let dispatcher = Dispatcher::new(Arc::new(plan.clone()), ceiling, Moment::ZERO, drivers);
    let mut lanes: Vec<usize> = (0..dispatcher.lane_count()).collect();
    let played =
        Played { released: Vec::new(), refused: 0, not_sent: Vec::new(), in_flight_max: 0 };
    let (replies, now) = (BinaryHeap::new(), Moment::ZERO);
    let mut stage = Stage { dispatcher, flying: HashMap::new(), service_ms, replies, now, played };
    let mut stop_at = stop_at.map(millis);
    for _ in 0..100_000 {
        if stop_at.is_some_and(|at| at <= stage.now) {
            stage.played.not_sent = stage.dispatcher.stop(stage.now);
            stop_at = None;
        }
        let mut wake = None;
        lanes.retain(|lane| match stage.turn(*lane) {
            Turn::WaitsUntil(moment) => {
                wake = wake.into_iter().chain([moment]).min();
                true
            }
            Turn::WaitsForReply => true,
            Turn::Done => false,
        });
        if lanes.is_empty() {
            return stage.played;
        }
        let reply = stage.replies.peek().map(|reply| reply.0.0);
        stage.now = [wake, reply, stop_at].into_iter().flatten().min().unwrap().max(stage.now);
        stage.take_replies();
    }
    panic!("the dispatcher never came to an end");
}

proptest! {
    #[test]
    fn scheduled_is_attempted_plus_not_sent_in_every_order_of_replies(
        plan in prop_oneof![open_plan(), closed_plan(), conversation_plan()],
        service_ms in proptest::collection::vec(1_u64..50, 1..20),
        stop_at in proptest::option::of(0_u64..250),
        ceiling in 1_usize..30,
        drivers in 1_usize..5,
    ) {
        let played = play(&plan, &service_ms, stop_at, ceiling, drivers);
        let mut ids = played.released.clone();
        ids.extend(played.not_sent.iter().flat_map(|part| part.first.0..part.first.0 + part.count));
        ids.sort_unstable();
        let before = ids.len();
        ids.dedup();
        prop_assert_eq!(ids.len(), before, "a request ended twice");
        if let Some(requests) = plan.bounds().requests {
            prop_assert_eq!(before as u64 + played.refused, requests);
        }
        prop_assert!(played.in_flight_max <= ceiling);
        if let Some(slots) = plan.slots {
            prop_assert!(played.in_flight_max <= slots.get() as usize, "a slot was held twice");
        }
    }
}

/// Each connection meets another fault.
fn faulty_scripts(choice: &[u8]) -> Vec<Vec<Step>> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\
                 \"finish_reason\":\"stop\"}]}\n\n";
    let whole = format!("{head}{:x}\r\n{event}\r\n0\r\n\r\n", event.len());
    let write = |text: &str| Step::Write(text.as_bytes().to_vec());
    let busy = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
    choice
        .iter()
        .map(|kind| match kind % 7 {
            0 => vec![write(&whole)],
            1 => vec![write(&whole), Step::NextRequest, write(&whole)],
            2 => vec![Step::Reset],
            3 => vec![write(head), Step::Reset],
            4 => vec![write(busy)],
            5 => vec![write("garbage\r\n\r\n")],
            _ => vec![Step::Stall],
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn every_scheduled_request_ends_once_on_the_wire_too(
        faults in proptest::collection::vec(any::<u8>(), 1..12),
        requests in 1_usize..20,
        slots in 1_u32..5,
        stop_after in proptest::option::of(0_u64..10),
        drivers in 1_usize..4,
    ) {
        let server = Scripted::serve(faulty_scripts(&faults));
        let brief = Duration::from_millis(40);
        let limits = Limits { first_token: brief, idle: brief, drain: brief, ..Limits::default() };
        let plan = Listed {
            releases: vec![Release::WhenSlotFree; requests],
            slots: NonZeroU32::new(slots),
            release_before: None,
            think: Duration::ZERO,
        };
        let (journal, entries) = sync_channel(4);
        let control = Control::default();
        let run = Drive {
            start_at: None,
            plan: Arc::new(plan),
            target: target_with(server.address, Api::Chat, true, limits),
            clock: SystemClock::new(),
            control: control.clone(),
            progress: Arc::new(Progress::default()),
            ceiling: 100,
            drivers: Drivers { count: NonZeroUsize::new(drivers).unwrap(), cores: Vec::new() },
            stall_grace: Drive::STALL_GRACE,
            journal,
        };
        let ended = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&ended);
        let reader = std::thread::spawn(move || {
            for entry in entries.into_iter().flatten() {
                let mut ended = sink.lock().unwrap();
                ended.push(entry);
                if stop_after == Some(ended.len() as u64) {
                    control.stop_harder();
                }
            }
        });
        let ending = drive(run).unwrap();
        reader.join().unwrap();
        let entries = ended.lock().unwrap();
        let mut attempted = 0;
        let mut not_sent = 0;
        for entry in entries.iter() {
            match entry {
                JournalEntry::Ended(record) => {
                    attempted += 1;
                    prop_assert_ne!(record.ending.outcome, Outcome::NotSent);
                }
                JournalEntry::NotSent(part) => not_sent += part.count,
                JournalEntry::Started(_) | JournalEntry::RunEnded(_) => {}
            }
        }
        prop_assert_eq!(attempted + not_sent, requests as u64);
        prop_assert!(matches!(entries.last(), Some(JournalEntry::RunEnded(_))));
        if not_sent == 0 && stop_after.is_none() {
            prop_assert_eq!(ending.stop, RunStop::PlanDone);
        }
    }
}

#[test]
fn a_stop_before_the_drive_began_is_not_forgotten() {
    stopped_before_it_began(
        |control| assert_eq!(control.stop_harder(), Stop::Run),
        RunStop::Drained,
    );
    // As where there is no memory left.
    stopped_before_it_began(|control| assert!(control.run_out()), RunStop::ClientExhausted);
}

fn stopped_before_it_began(stop: fn(&Control), expected: RunStop) {
    let server = Scripted::serve(faulty_scripts(&[1]));
    let plan = Listed {
        releases: vec![Release::WhenSlotFree; 50],
        slots: NonZeroU32::new(1),
        release_before: None,
        think: Duration::ZERO,
    };
    let (journal, entries) = sync_channel(1_000);
    let control = Control::default();
    stop(&control);
    let run = Drive {
        start_at: None,
        plan: Arc::new(plan),
        target: target_with(server.address, Api::Chat, true, Limits::default()),
        clock: SystemClock::new(),
        control,
        progress: Arc::new(Progress::default()),
        ceiling: 100,
        drivers: Drivers::ONE,
        stall_grace: Drive::STALL_GRACE,
        journal,
    };
    assert_eq!(drive(run).unwrap().stop, expected);
    let not_sent: u64 = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| match entry {
            JournalEntry::NotSent(part) => Some(part.count),
            JournalEntry::Started(_) | JournalEntry::Ended(_) | JournalEntry::RunEnded(_) => None,
        })
        .sum();
    assert_eq!(not_sent, 50);
}
