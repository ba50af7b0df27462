//! Plans as lists, replies by hand: what the dispatcher says, and when.

use std::num::NonZeroU32;

use inferometer_model::Content;

use super::*;

/// A plan that is a list.
struct Listed {
    releases: Vec<Release>,
    think: Duration,
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
        let follows = |release: &&Release| matches!(release, Release::After { .. });
        let upto = self.releases.iter().take(position + 1).rev();
        let turn = u16::try_from(upto.take_while(follows).count()).ok()?;
        release.map(|release| PlannedRequest {
            think: self.think,
            turn,
            ..PlannedRequest::alone(id, *release)
        })
    }

    fn content(&self, _: &PlannedRequest) -> Content {
        Content::text("")
    }
}

fn ms(millis: u64) -> Moment {
    Moment::from_nanos(millis * 1_000_000)
}

fn open(moments: &[u64]) -> Listed {
    let releases = moments.iter().map(|at| Release::At(ms(*at))).collect();
    Listed {
        releases,
        think: Duration::ZERO,
        slots: None,
        release_before: None,
        requests_min: 0,
        endless: false,
    }
}

fn closed(requests: usize, slots: u32) -> Listed {
    let releases = vec![Release::WhenSlotFree; requests];
    Listed {
        releases,
        think: Duration::ZERO,
        slots: Some(slots),
        release_before: None,
        requests_min: 0,
        endless: false,
    }
}

fn dispatcher(plan: Listed) -> Dispatcher {
    Dispatcher::new(Arc::new(plan), usize::MAX, Moment::ZERO, 1)
}

fn sent(command: Command) -> Option<(u64, Moment)> {
    departed(command).map(|departure| (departure.request.id.0, departure.intended))
}

fn departed(command: Command) -> Option<Departure> {
    match command {
        Command::Send(departure) => Some(departure),
        Command::Refuse { .. } | Command::WaitUntil(_) | Command::WaitForReply | Command::Done => {
            None
        }
    }
}

fn reply(dispatcher: &mut Dispatcher, id: u64, at: Moment) {
    reply_on(dispatcher, 0, id, at);
}

fn reply_on(dispatcher: &mut Dispatcher, lane: usize, id: u64, at: Moment) {
    let request = dispatcher.plan.request(RequestId(id)).unwrap();
    // Which slot it was does not matter to these tests, only that it was one.
    let slot = dispatcher.bounds.slots.map(|_| SlotId(0));
    let departure = Departure { request, intended: at, admitted: at, slot };
    dispatcher.replied(lane, &departure, Reply { at, ok: true });
}

#[test]
fn open_loop_does_not_wait_for_replies_and_keeps_the_planned_moment() {
    let mut dispatcher = dispatcher(open(&[10, 20]));
    assert_eq!(dispatcher.next(0, ms(0)), Command::WaitUntil(ms(10)));
    // The driver woke late, at 25 ms: both leave, and both keep their planned moments.
    assert_eq!(sent(dispatcher.next(0, ms(25))), Some((0, ms(10))));
    assert_eq!(sent(dispatcher.next(0, ms(25))), Some((1, ms(20))));
    assert_eq!(dispatcher.next(0, ms(25)), Command::WaitForReply);
    reply(&mut dispatcher, 1, ms(30));
    reply(&mut dispatcher, 0, ms(31));
    assert_eq!(dispatcher.next(0, ms(31)), Command::Done);
}

#[test]
fn the_plans_moments_count_from_the_beginning_of_the_drive() {
    let mut dispatcher = Dispatcher::new(Arc::new(open(&[10])), usize::MAX, ms(500), 1);
    assert_eq!(dispatcher.next(0, ms(501)), Command::WaitUntil(ms(510)));
    assert_eq!(sent(dispatcher.next(0, ms(510))), Some((0, ms(510))));
}

#[test]
fn closed_loop_intends_the_next_request_when_its_slot_became_free() {
    let mut dispatcher = dispatcher(closed(3, 2));
    assert_eq!(sent(dispatcher.next(0, ms(1))), Some((0, ms(0))));
    assert_eq!(sent(dispatcher.next(0, ms(1))), Some((1, ms(0))));
    assert_eq!(dispatcher.next(0, ms(1)), Command::WaitForReply);
    reply(&mut dispatcher, 1, ms(7));
    assert_eq!(sent(dispatcher.next(0, ms(9))), Some((2, ms(7))), "2 ms of client queue show");
}

#[test]
fn a_closed_loop_by_time_releases_nothing_at_or_after_its_end() {
    let mut plan = closed(1, 1);
    plan.endless = true;
    plan.release_before = Some(ms(10));
    let mut dispatcher = dispatcher(plan);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    reply(&mut dispatcher, 0, ms(9));
    assert_eq!(sent(dispatcher.next(0, ms(9))), Some((1, ms(9))));
    reply(&mut dispatcher, 1, ms(9));
    assert_eq!(dispatcher.next(0, ms(10)), Command::Done, "free at 9 ms, but the time is over");
}

#[test]
fn a_conversation_keeps_its_slot_while_it_thinks() {
    let think = Duration::from_millis(50);
    let after = |previous| Release::After { previous: RequestId(previous), think };
    let releases = vec![Release::WhenSlotFree, after(0), Release::WhenSlotFree];
    let plan = Listed {
        releases,
        think: Duration::ZERO,
        slots: Some(1),
        release_before: None,
        requests_min: 0,
        endless: false,
    };
    let mut dispatcher = dispatcher(plan);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    assert_eq!(dispatcher.next(0, ms(0)), Command::WaitForReply);
    reply(&mut dispatcher, 0, ms(10));
    assert_eq!(dispatcher.next(0, ms(10)), Command::WaitUntil(ms(60)));
    assert_eq!(sent(dispatcher.next(0, ms(61))), Some((1, ms(60))));
    reply(&mut dispatcher, 1, ms(70));
    assert_eq!(sent(dispatcher.next(0, ms(70))), Some((2, ms(70))));
}

/// One slot; a conversation of three turns that thinks 50 ms between them, then another.
fn talk(release_before: Option<Moment>) -> Dispatcher {
    let think = Duration::from_millis(50);
    let after = |previous| Release::After { previous: RequestId(previous), think };
    let plan = Listed {
        releases: vec![Release::WhenSlotFree, after(0), after(1), Release::WhenSlotFree],
        release_before,
        ..closed(0, 1)
    };
    dispatcher(plan)
}

#[test]
fn a_failed_turn_ends_its_conversation_and_frees_the_slot() {
    let mut dispatcher = talk(None);
    let first = departed(dispatcher.next(0, ms(0))).unwrap();
    dispatcher.replied(0, &first, Reply { at: ms(10), ok: false });
    let cause = Cause::ConversationBroken;
    for id in [1, 2] {
        assert_eq!(dispatcher.next(0, ms(10)), Command::Refuse { id: RequestId(id), cause });
    }
    assert_eq!(sent(dispatcher.next(0, ms(10))), Some((3, ms(10))));
}

#[test]
fn a_turn_that_the_end_of_the_run_cut_breaks_no_conversation() {
    let mut dispatcher = talk(Some(ms(100)));
    let first = departed(dispatcher.next(0, ms(0))).unwrap();
    dispatcher.replied(0, &first, Reply { at: ms(130), ok: false });
    let cause = Cause::TimeOver;
    for id in [1, 2] {
        assert_eq!(dispatcher.next(0, ms(130)), Command::Refuse { id: RequestId(id), cause });
    }
}

#[test]
fn a_turn_that_would_leave_after_the_end_is_given_up() {
    let mut dispatcher = talk(Some(ms(100)));
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    reply(&mut dispatcher, 0, ms(10));
    assert_eq!(sent(dispatcher.next(0, ms(60))), Some((1, ms(60))));
    assert!(!dispatcher.has_released_all(ms(70)));
    assert!(dispatcher.has_released_all(ms(100)), "what follows an answer is not waited for");
    reply(&mut dispatcher, 1, ms(70));
    let cause = Cause::TimeOver;
    assert_eq!(dispatcher.next(0, ms(70)), Command::Refuse { id: RequestId(2), cause });
    assert_eq!(sent(dispatcher.next(0, ms(70))), Some((3, ms(70))), "there is time for another");
}

/// Faults: 77.
#[test]
fn what_this_machine_cannot_hold_is_refused_and_not_queued() {
    let plan = open(&[0, 0, 0]);
    let mut dispatcher = Dispatcher::new(Arc::new(plan), 1, Moment::ZERO, 1);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    assert_eq!(
        dispatcher.next(0, ms(0)),
        Command::Refuse { id: RequestId(1), cause: Cause::ClientResource }
    );
    reply(&mut dispatcher, 0, ms(1));
    assert_eq!(sent(dispatcher.next(0, ms(1))), Some((2, ms(0))));
}

#[test]
fn stopping_names_every_request_that_was_scheduled_and_not_sent() {
    let mut dispatcher = dispatcher(closed(10, 2));
    dispatcher.next(0, ms(0));
    dispatcher.next(0, ms(0));
    let not_sent = dispatcher.stop(ms(3));
    assert_eq!(not_sent.len(), 1);
    assert_eq!((not_sent[0].first, not_sent[0].count), (RequestId(2), 8));
    assert_eq!(dispatcher.next(0, ms(3)), Command::WaitForReply);
    reply(&mut dispatcher, 0, ms(4));
    reply(&mut dispatcher, 1, ms(4));
    assert_eq!(dispatcher.next(0, ms(4)), Command::Done);
}

#[test]
fn a_cap_holds_requests_back_and_says_until_when() {
    let mut plan = open(&[0, 10, 20]);
    plan.slots = Some(1);
    let mut dispatcher = dispatcher(plan);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    assert_eq!(dispatcher.next(0, ms(12)), Command::WaitForReply, "the cap is reached");
    reply(&mut dispatcher, 0, ms(15));
    let second = departed(dispatcher.next(0, ms(17))).unwrap();
    assert_eq!((second.intended, second.admitted), (ms(10), ms(15)), "2 ms are the client's");
    reply(&mut dispatcher, 1, ms(18));
    assert_eq!(dispatcher.next(0, ms(18)), Command::WaitUntil(ms(20)));
    let third = departed(dispatcher.next(0, ms(20))).unwrap();
    assert_eq!((third.intended, third.admitted), (ms(20), ms(20)), "the cap did not delay it");
}

#[test]
fn a_slot_rests_while_its_user_thinks() {
    let mut plan = closed(2, 1);
    plan.think = Duration::from_millis(50);
    let mut dispatcher = dispatcher(plan);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    reply(&mut dispatcher, 0, ms(10));
    assert_eq!(dispatcher.next(0, ms(10)), Command::WaitUntil(ms(60)));
    assert_eq!(sent(dispatcher.next(0, ms(61))), Some((1, ms(60))));
}

#[test]
fn thinking_past_the_end_of_the_time_ends_at_once() {
    let mut plan = closed(1, 1);
    plan.endless = true;
    plan.think = Duration::from_millis(50);
    plan.release_before = Some(ms(40));
    let mut dispatcher = dispatcher(plan);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    reply(&mut dispatcher, 0, ms(10));
    assert_eq!(dispatcher.next(0, ms(10)), Command::Done);
}

#[test]
fn until_both_goes_on_past_the_time_until_the_number_is_reached() {
    let mut plan = closed(1, 1);
    plan.endless = true;
    plan.release_before = Some(ms(5));
    plan.requests_min = 2;
    let mut dispatcher = dispatcher(plan);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    reply(&mut dispatcher, 0, ms(10));
    assert!(!dispatcher.has_released_all(ms(10)));
    assert_eq!(sent(dispatcher.next(0, ms(10))), Some((1, ms(10))));
    reply(&mut dispatcher, 1, ms(20));
    assert_eq!(dispatcher.next(0, ms(20)), Command::Done);
    assert!(dispatcher.has_released_all(ms(20)));
}

#[test]
fn drivers_share_the_slots_and_take_from_one_cursor() {
    let mut dispatcher = Dispatcher::new(Arc::new(closed(5, 3)), usize::MAX, Moment::ZERO, 2);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((1, ms(0))));
    assert_eq!(dispatcher.next(0, ms(0)), Command::WaitForReply, "two of the three slots");
    assert_eq!(sent(dispatcher.next(1, ms(0))), Some((2, ms(0))));
    assert_eq!(dispatcher.next(1, ms(0)), Command::WaitForReply);
    reply_on(&mut dispatcher, 1, 2, ms(4));
    assert_eq!(sent(dispatcher.next(1, ms(4))), Some((3, ms(4))));
}

#[test]
fn no_driver_is_without_a_slot() {
    let dispatcher = Dispatcher::new(Arc::new(closed(5, 2)), usize::MAX, Moment::ZERO, 8);
    assert_eq!(dispatcher.lane_count(), 2);
}

#[test]
fn a_driver_that_is_late_delays_only_the_request_that_it_took() {
    let mut dispatcher = Dispatcher::new(Arc::new(open(&[10, 20, 30])), usize::MAX, ms(0), 2);
    assert_eq!(dispatcher.next(0, ms(0)), Command::WaitUntil(ms(10)));
    assert_eq!(dispatcher.next(1, ms(0)), Command::WaitUntil(ms(20)));
    // The first does not come back; the second goes on.
    assert_eq!(sent(dispatcher.next(1, ms(20))), Some((1, ms(20))));
    assert_eq!(sent(dispatcher.next(1, ms(30))), Some((2, ms(30))));
    assert_eq!(dispatcher.next(1, ms(30)), Command::WaitForReply);
    let not_sent = dispatcher.stop(ms(31));
    assert_eq!((not_sent[0].first, not_sent[0].count), (RequestId(0), 1), "the one it took");
}

#[test]
fn a_slot_keeps_its_number_through_a_conversation() {
    let after = Release::After { previous: RequestId(0), think: Duration::ZERO };
    let releases = vec![Release::WhenSlotFree, after, Release::WhenSlotFree];
    let think = Duration::ZERO;
    let plan = Listed {
        releases,
        think,
        slots: Some(2),
        release_before: None,
        requests_min: 0,
        endless: false,
    };
    let mut dispatcher = Dispatcher::new(Arc::new(plan), usize::MAX, Moment::ZERO, 1);
    let first = departed(dispatcher.next(0, ms(0))).unwrap();
    let other = departed(dispatcher.next(0, ms(0))).unwrap();
    assert_ne!(first.slot, other.slot);
    dispatcher.replied(0, &first, Reply { at: ms(5), ok: true });
    let follow_up = departed(dispatcher.next(0, ms(5))).unwrap();
    assert_eq!(follow_up.slot, first.slot);
}

#[test]
fn what_a_cap_still_holds_when_the_time_is_over_is_given_up() {
    let mut plan = open(&[0, 10, 20, 30]);
    plan.slots = Some(1);
    plan.release_before = Some(ms(40));
    let mut dispatcher = dispatcher(plan);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    assert_eq!(dispatcher.expire(ms(39)), None, "there is time yet");
    let given_up = dispatcher.expire(ms(40)).unwrap();
    assert_eq!((given_up.first, given_up.count), (RequestId(1), 3));
    assert_eq!(given_up.cause, Cause::HeldByCap);
    assert_eq!(dispatcher.expire(ms(41)), None, "said once");
    assert!(dispatcher.has_released_all(ms(41)));
    reply(&mut dispatcher, 0, ms(50));
    assert_eq!(dispatcher.next(0, ms(50)), Command::Done);
}

#[test]
fn what_a_stop_gave_up_is_not_given_up_again_when_the_time_is_over() {
    let mut plan = open(&[0, 10, 20, 30]);
    plan.release_before = Some(ms(40));
    let mut dispatcher = dispatcher(plan);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    let given_up = dispatcher.stop(ms(5));
    assert_eq!(given_up.iter().map(|part| part.count).sum::<u64>(), 3);
    assert_eq!(dispatcher.expire(ms(40)), None);
    assert!(dispatcher.stop(ms(41)).is_empty(), "said once");
}

#[test]
fn a_number_that_must_be_reached_is_not_given_up() {
    let mut plan = open(&[0, 10]);
    plan.slots = Some(1);
    plan.release_before = Some(ms(20));
    plan.requests_min = 2;
    let mut dispatcher = dispatcher(plan);
    assert_eq!(sent(dispatcher.next(0, ms(0))), Some((0, ms(0))));
    assert_eq!(dispatcher.expire(ms(30)), None);
    reply(&mut dispatcher, 0, ms(30));
    assert_eq!(sent(dispatcher.next(0, ms(30))), Some((1, ms(10))));
}

#[test]
fn a_client_that_joins_late_refuses_what_was_due_and_sends_the_rest_on_time() {
    let mut dispatcher = dispatcher(open(&[10, 20, 30])).joining(ms(25));
    let late = |id| Command::Refuse { id: RequestId(id), cause: Cause::WorkerLate };
    assert_eq!(dispatcher.next(0, ms(25)), late(0));
    assert_eq!(dispatcher.next(0, ms(25)), late(1));
    assert_eq!(dispatcher.next(0, ms(25)), Command::WaitUntil(ms(30)));
    assert_eq!(sent(dispatcher.next(0, ms(30))), Some((2, ms(30))));
    let mut users = self::dispatcher(closed(5, 2)).joining(ms(25));
    assert_eq!(sent(users.next(0, ms(25))), Some((0, ms(25))), "users begin when they can");
}

#[test]
fn turns_of_a_conversation_that_was_due_before_are_refused_with_it() {
    let mut plan = open(&[10, 30]);
    let think = Duration::ZERO;
    plan.releases.insert(1, Release::After { previous: RequestId(0), think });
    let mut dispatcher = dispatcher(plan).joining(ms(25));
    for id in [0, 1] {
        let cause = Cause::WorkerLate;
        assert_eq!(dispatcher.next(0, ms(25)), Command::Refuse { id: RequestId(id), cause });
    }
    assert_eq!(dispatcher.next(0, ms(25)), Command::WaitUntil(ms(30)));
}
