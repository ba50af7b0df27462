//! What the dispatcher costs per request: asked, told of the reply, and asked once more.
//!
//! `cargo bench -p inferometer-load --bench dispatcher` measures; `cargo test` runs each case once.
//! There is no wire and no clock: lanes take turns, and each turn brings a few replies and then lets
//! go whatever may leave, as a driver does. An item is a request. The plan is as cheap as a plan can
//! be, so that its cost is not mistaken for the dispatcher's.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use divan::counter::ItemsCount;
use inferometer_load::dispatcher::{Command, Departure, Dispatcher, Reply};
use inferometer_model::plan::Bounds;
use inferometer_model::{Content, Moment, Plan, PlannedRequest, Release, RequestId};

/// The allocator of the binary that ships.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const REQUESTS: u64 = 100_000;
/// Replies that a driver finds when its loop wakes.
const REPLIES_PER_TURN: u32 = 8;
/// From one turn to the next, whichever lane has it.
const TURN: Duration = Duration::from_micros(80);
/// As many requests are due in a turn as replies come.
const INTERVAL: Duration = TURN.checked_div(REPLIES_PER_TURN).unwrap();

fn main() {
    divan::main();
}

#[divan::bench(args = [8, 100, 10_000], consts = [1, 4])]
fn closed<const LANES: usize>(bencher: divan::Bencher<'_, '_>, slots: u32) {
    measure(bencher, Load { slots: NonZeroU32::new(slots), ..Load::CLOSED }, LANES);
}

/// A conversation keeps its slot, and what follows is set aside until its predecessor is answered.
#[divan::bench(args = [100], consts = [1, 4])]
fn closed_conversations<const LANES: usize>(bencher: divan::Bencher<'_, '_>, slots: u32) {
    let slots = NonZeroU32::new(slots);
    measure(bencher, Load { slots, conversation: 4, ..Load::CLOSED }, LANES);
}

#[divan::bench(consts = [1, 4])]
fn open<const LANES: usize>(bencher: divan::Bencher<'_, '_>) {
    measure(bencher, Load { interval: Some(INTERVAL), ..Load::CLOSED }, LANES);
}

/// Twice as many requests as replies: the cap holds all but the first of them back.
#[divan::bench(args = [100], consts = [1, 4])]
fn capped_open<const LANES: usize>(bencher: divan::Bencher<'_, '_>, slots: u32) {
    let slots = NonZeroU32::new(slots);
    measure(bencher, Load { slots, interval: Some(INTERVAL / 2), ..Load::CLOSED }, LANES);
}

fn measure(bencher: divan::Bencher<'_, '_>, load: Load, lanes: usize) {
    bencher.counter(ItemsCount::new(REQUESTS)).bench_local(|| {
        assert_eq!(play(divan::black_box(load), lanes), REQUESTS);
    });
}

/// Plays the load to its end; returns how many requests left.
fn play(load: Load, lanes: usize) -> u64 {
    let mut dispatcher = Dispatcher::new(Arc::new(load), usize::MAX, Moment::ZERO, lanes);
    let mut in_flight: Vec<VecDeque<Departure>> = vec![VecDeque::new(); dispatcher.lane_count()];
    let mut now = Moment::ZERO;
    let mut sent = 0;
    let mut done = 0;
    while done < in_flight.len() {
        done = 0;
        for (lane, departed) in in_flight.iter_mut().enumerate() {
            now = now + TURN;
            let replies = departed.len().min(REPLIES_PER_TURN as usize);
            for departure in departed.drain(..replies) {
                dispatcher.replied(lane, &departure, Reply { at: now, ok: true });
            }
            let before = departed.len();
            done += usize::from(let_go(&mut dispatcher, lane, now, departed) == Command::Done);
            sent += (departed.len() - before) as u64;
        }
    }
    sent
}

/// Sends until there is something to wait for; returns what that is.
fn let_go(
    dispatcher: &mut Dispatcher,
    lane: usize,
    now: Moment,
    departed: &mut VecDeque<Departure>,
) -> Command {
    loop {
        match dispatcher.next(lane, now) {
            Command::Send(departure) => departed.push_back(departure),
            Command::Refuse { id, .. } => panic!("request {id} was refused without a ceiling"),
            wait @ (Command::WaitUntil(_) | Command::WaitForReply | Command::Done) => return wait,
        }
    }
}

/// A plan without draws and without prompts.
#[derive(Clone, Copy)]
struct Load {
    slots: Option<NonZeroU32>,
    /// Between scheduled requests; `None` where slots release them.
    interval: Option<Duration>,
    /// Requests of one conversation, one after the other.
    conversation: u64,
}

impl Load {
    const CLOSED: Self = Self { slots: None, interval: None, conversation: 1 };

    fn release(&self, id: RequestId) -> Release {
        if !id.0.is_multiple_of(self.conversation) {
            return Release::After { previous: RequestId(id.0 - 1), think: Duration::ZERO };
        }
        match self.interval {
            None => Release::WhenSlotFree,
            Some(interval) => {
                let interval_ns = u64::from(interval.subsec_nanos());
                Release::At(Moment::from_nanos(id.0 * interval_ns))
            }
        }
    }
}

impl Plan for Load {
    fn bounds(&self) -> Bounds {
        Bounds {
            requests: Some(REQUESTS),
            release_before: None,
            requests_min: 0,
            slots: self.slots,
        }
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        (id.0 < REQUESTS).then(|| PlannedRequest {
            input_tokens: 512,
            output_tokens: 256,
            turn: u16::try_from(id.0 % self.conversation).unwrap_or_default(),
            ..PlannedRequest::alone(id, self.release(id))
        })
    }

    fn content(&self, _: &PlannedRequest) -> Content {
        Content::text("")
    }
}
