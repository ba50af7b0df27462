//! The scheduler on the wall's clock: who arrives when, which step is due, and which client gets something.
//!
//! The scheduler receives everything in engine time, and nothing earlier than what it has
//! already done; the log has those very moments, so a replay makes the same steps.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use inferometer_model::whole::to_u64;
use serde::Serialize;

use super::flights::{Flight, FlightKey, Flights};
use crate::clock::Moment;
use crate::generation::{Draws, Purpose};
use crate::metrics::Metrics;
use crate::physics::{Front, StepModel};
use crate::scheduler::{
    Listener, RequestFacts, Scheduler, SchedulerConfig, SchedulerRequest, Step,
};
use crate::truth::Lateness;

/// The scheduler, what waits in front of it, and its events.
#[derive(Debug)]
pub(crate) struct Core {
    scheduler: Scheduler<StepModel>,
    /// Requests on their way through the API process, in the order of their arrival.
    arrivals: BTreeMap<Turn, SchedulerRequest>,
    /// Whose turn is when.
    turns: HashMap<u64, Turn>,
    arrivals_seen: u64,
    /// Right behind the last thing that the scheduler did.
    passed_ns: u64,
    /// When the scheduler or an arrival is to be looked after.
    due: Option<Moment>,
    next_id: u64,
    pub(super) events: SchedulerEvents,
}

/// When a request reaches the scheduler, and how many came before it.
type Turn = (u64, u64);

/// What became of the scheduler's events.
#[derive(Debug)]
pub(super) struct SchedulerEvents {
    pub(super) front: ApiProcess,
    pub(super) pace: Pace,
    /// The wall's time, by which a step may be late.
    now: Moment,
    pub(super) flights: Flights,
    pub(super) metrics: Metrics,
    pub(super) log: Option<StepLog>,
    /// How late steps were.
    pub(super) steps: Lateness,
    /// Slots of clients for which there is something to send.
    ready: Vec<usize>,
    /// Each token is late by up to this share of its step.
    jitter: f64,
    seed: u64,
    step_ns: u64,
    /// The request of the last token, and when it was there.
    last_token: Option<(u64, u64)>,
}

impl Core {
    pub(crate) fn new(
        scheduler: Scheduler<StepModel>,
        front: ApiProcess,
        pace: Pace,
        metrics: Metrics,
        log_steps: bool,
    ) -> Self {
        let events = SchedulerEvents {
            front,
            pace,
            now: Moment::default(),
            flights: Flights::default(),
            metrics,
            log: log_steps.then(StepLog::default),
            steps: Lateness::new(),
            ready: Vec::new(),
            jitter: 0.0,
            seed: 0,
            step_ns: 0,
            last_token: None,
        };
        Self {
            scheduler,
            arrivals: BTreeMap::new(),
            turns: HashMap::new(),
            arrivals_seen: 0,
            passed_ns: 0,
            due: None,
            next_id: 0,
            events,
        }
    }

    /// Lets each token be late by up to a share of its step.
    pub(crate) fn late_by(mut self, jitter: f64, seed: u64) -> Self {
        (self.events.jitter, self.events.seed) = (jitter, seed);
        self
    }

    pub(crate) fn config(&self) -> &SchedulerConfig {
        self.scheduler.config()
    }

    /// Appends what `GET /metrics` returns.
    pub(crate) fn render_metrics(&self, text: &mut String) {
        self.events.metrics.render(self.scheduler.gauges(), self.scheduler.counters(), text);
    }

    /// Forgets what no running request uses.
    pub(crate) fn reset_cache(&mut self) {
        self.scheduler.reset_cache();
    }

    /// Requests that no step has had a part of.
    pub(crate) fn waiting(&self) -> usize {
        self.arrivals.len() + self.scheduler.gauges().waiting as usize
    }

    /// Ids for so many requests.
    pub(crate) fn new_ids(&mut self, count: usize) -> Vec<u64> {
        let first = self.next_id;
        self.next_id += count as u64;
        (first..self.next_id).collect()
    }

    /// Takes a request that will reach the scheduler at `at_ns` of engine time.
    pub(crate) fn arrive(&mut self, at_ns: u64, request: SchedulerRequest) {
        let turn = (at_ns, self.arrivals_seen);
        self.arrivals_seen += 1;
        self.turns.insert(request.id, turn);
        self.arrivals.insert(turn, request);
        self.find_due();
    }

    /// The client has left: what is under way for it is taken back, and its blocks are free.
    pub(crate) fn abandon(&mut self, key: FlightKey, now: Moment) -> Option<Flight> {
        self.events.now = now;
        let flight = self.events.flights.close(key)?;
        for id in flight.running_ids() {
            if let Some(turn) = self.turns.remove(&id) {
                self.arrivals.remove(&turn);
                self.events.metrics.left(id);
            } else {
                self.abort(id, now);
            }
        }
        self.find_due();
        Some(flight)
    }

    pub(crate) fn next_due(&self) -> Option<Moment> {
        // Clients for which there is something to send are not kept waiting.
        if self.events.ready.is_empty() { self.due } else { Some(Moment::default()) }
    }

    /// Does what is due, and adds the slots of clients for which there is something to send. In an engine that
    /// is far behind it does a part: the rest stays due, and clients are looked after in between.
    pub(crate) fn wake(&mut self, now: Moment, ready: &mut Vec<usize>) {
        self.events.now = now;
        let now_ns = self.events.pace.engine_ns(now);
        for _ in 0..EVENTS_PER_WAKE {
            if !self.do_next(now_ns) {
                break;
            }
        }
        ready.append(&mut self.events.ready);
        self.find_due();
    }

    /// Lets the next thing happen that is due by `now_ns`; false when nothing is. Who arrives at
    /// the moment of a step comes before it.
    fn do_next(&mut self, now_ns: u64) -> bool {
        let event = self.scheduler.next_event();
        let arrival = self.arrivals.first_entry().filter(|arrival| {
            let (at_ns, _) = *arrival.key();
            at_ns <= now_ns && event.is_none_or(|event| at_ns <= event)
        });
        if let Some(arrival) = arrival {
            let ((at_ns, _), request) = arrival.remove_entry();
            self.submit(at_ns, request);
            return true;
        }
        let Some(at_ns) = event.filter(|at_ns| *at_ns <= now_ns) else { return false };
        // From one thing that happens to the next, so that no time passes in which nothing does:
        // requests of that step may still need it.
        self.scheduler.advance(at_ns, &mut self.events);
        self.passed_ns = at_ns.saturating_add(1);
        true
    }

    fn submit(&mut self, at_ns: u64, request: SchedulerRequest) {
        let id = request.id;
        self.turns.remove(&id);
        let at_ns = at_ns.max(self.passed_ns);
        if let Some(log) = &mut self.events.log {
            log.add(&Line::Arrival { at_ns, request: &request });
        }
        if self.scheduler.submit(at_ns, request, &mut self.events).is_err() {
            self.events.metrics.refused(id);
            let at = self.events.pace.moment(at_ns);
            let slot = self.events.flights.refused(id, at);
            self.events.ready.extend(slot);
        }
    }

    fn abort(&mut self, id: u64, now: Moment) {
        // What is overdue by then comes later: catching up is for `wake`, in parts.
        let now_ns = self.events.pace.engine_ns(now);
        let at_ns = self.next_ns().map_or(now_ns, |next_ns| now_ns.min(next_ns));
        let at_ns = at_ns.max(self.passed_ns);
        if self.scheduler.abort(at_ns, id, &mut self.events)
            && let Some(log) = &mut self.events.log
        {
            log.add(&Line::Abort { at_ns, id });
        }
    }

    /// When something happens next.
    fn next_ns(&self) -> Option<u64> {
        let arrival = self.arrivals.first_key_value().map(|((at_ns, _), _)| *at_ns);
        arrival.into_iter().chain(self.scheduler.next_event()).min()
    }

    fn find_due(&mut self) {
        self.due = self.next_ns().map(|at_ns| self.events.pace.moment(at_ns));
    }
}

impl Listener for SchedulerEvents {
    fn step_began(&mut self, step: &Step) {
        self.metrics.step_began(step);
        if let Some(log) = &mut self.log {
            log.add(&Line::Step(step));
        }
    }

    fn step_ended(&mut self, step: &Step) {
        self.metrics.step_ended(step);
        self.step_ns = step.ends_ns.saturating_sub(step.began_ns);
        let due = self.pace.moment(step.ends_ns);
        self.steps.add(self.now.ns().saturating_sub(due.ns()));
    }

    fn token(&mut self, id: u64, index: u32, at_ns: u64) {
        self.metrics.token(id, index, at_ns);
        // Tokens of one request and one step are one output.
        if self.last_token.replace((id, at_ns)) == Some((id, at_ns))
            && self.flights.joins(id, index)
        {
            return;
        }
        let late_ns = if 0.0 < self.jitter {
            let mut draws = Draws::new(self.seed ^ id, index.into(), Purpose::Jitter);
            to_u64(self.jitter * draws.unit() * self.step_ns as f64)
        } else {
            0
        };
        let at = self.pace.moment(self.front.hand_out(id, at_ns).saturating_add(late_ns));
        self.ready.extend(self.flights.token(id, index, at));
    }

    fn ended(&mut self, facts: &RequestFacts) {
        self.metrics.ended(facts);
        let at = self.pace.moment(facts.ended_ns);
        self.ready.extend(self.flights.ended(facts, at));
    }
}

/// Things that happen in one wake-up at most. Milliseconds of work with a large batch, and far more
/// than are due in one of an engine that keeps up.
const EVENTS_PER_WAKE: u32 = 64;

/// Where the two clocks meet, and how much faster the engine's runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    start: Moment,
    /// Whole millionths, so that both ways are exact and a moment is never reached too early.
    speed_millionths: u64,
}

impl Pace {
    pub(crate) fn new(start: Moment, speed: f64) -> Self {
        Self { start, speed_millionths: to_u64(speed * 1e6).max(1) }
    }

    /// Engine time at a moment; what lies ahead of the start is the start.
    pub(crate) fn engine_ns(&self, at: Moment) -> u64 {
        let since_ns = at.ns().saturating_sub(self.start.ns());
        scale(since_ns, self.speed_millionths, MILLION, false)
    }

    /// The first moment at which it is that late in the engine.
    pub(crate) fn moment(&self, engine_ns: u64) -> Moment {
        self.start.plus_ns(scale(engine_ns, MILLION, self.speed_millionths, true))
    }
}

/// `value · times / over`, rounded down or up.
fn scale(value: u64, times: u64, over: u64, rounds_up: bool) -> u64 {
    if times == over {
        return value;
    }
    let (product, over) = (u128::from(value) * u128::from(times), u128::from(over));
    let scaled = if rounds_up { product.div_ceil(over) } else { product / over };
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

const MILLION: u64 = 1_000_000;

/// When requests get through to the scheduler, and tokens to their clients.
#[derive(Clone, Copy, Debug)]
pub struct ApiProcess {
    costs: Front,
    /// From when on it has time.
    free_ns: u64,
    /// The request and the time of the token that was handed out last, and when it was with its client.
    last: Option<(u64, u64, u64)>,
}

impl ApiProcess {
    pub fn new(costs: Front) -> Self {
        Self { costs, free_ns: 0, last: None }
    }

    /// Takes a request in that comes at `now_ns`; returns when it is with the scheduler.
    pub fn take_in(&mut self, now_ns: u64, prompt_tokens: u32) -> u64 {
        let Front { per_request_ns, per_prompt_token_ns, .. } = self.costs;
        let tokens_ns = per_prompt_token_ns.saturating_mul(u64::from(prompt_tokens));
        self.work(now_ns, per_request_ns.saturating_add(tokens_ns))
    }

    /// Hands a token of a request out that is there at `now_ns`; returns when it is with the client. Tokens
    /// of one step, as speculative decoding yields them, go out together.
    pub fn hand_out(&mut self, id: u64, now_ns: u64) -> u64 {
        if let Some((_, _, seen_ns)) = self.last.filter(|last| (last.0, last.1) == (id, now_ns)) {
            return seen_ns;
        }
        let seen_ns = self.work(now_ns, self.costs.per_output_token_ns);
        self.last = Some((id, now_ns, seen_ns));
        seen_ns
    }

    fn work(&mut self, now_ns: u64, takes_ns: u64) -> u64 {
        // What takes no time does not wait.
        if takes_ns == 0 {
            return now_ns;
        }
        self.free_ns = self.free_ns.max(now_ns).saturating_add(takes_ns);
        self.free_ns
    }
}

/// JSON lines, within a bound.
#[derive(Debug, Default)]
pub(crate) struct StepLog {
    lines: Vec<u8>,
    dropped: u64,
}

/// One line. All times are engine time.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Arrival {
        at_ns: u64,
        #[serde(flatten)]
        request: &'a SchedulerRequest,
    },
    Abort {
        at_ns: u64,
        id: u64,
    },
    Step(&'a Step),
    Dropped(u64),
}

impl StepLog {
    /// All lines; the last gives how many there was no room for, if any.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = self.lines.clone();
        if 0 < self.dropped {
            push(&mut text, &Line::Dropped(self.dropped));
        }
        text
    }

    /// A log with a hole cannot be replayed, so after the first line that is dropped all are.
    fn add(&mut self, line: &Line<'_>) {
        if BYTES_MAX <= self.lines.len() {
            self.dropped += 1;
        } else {
            push(&mut self.lines, line);
        }
    }
}

fn push(lines: &mut Vec<u8>, line: &Line<'_>) {
    serde_json::to_writer(&mut *lines, line).expect("plain values are always JSON");
    lines.push(b'\n');
}

const BYTES_MAX: usize = 256 << 20;

#[cfg(test)]
mod pace_tests {
    use super::*;

    #[test]
    fn a_due_moment_is_the_first_at_which_the_engine_is_there() {
        for speed in [0.3, 1.0, 7.0, 20.0] {
            let pace = Pace::new(Moment::from_ns(1_000), speed);
            for engine_ns in [0, 1, 7, 999, 25_000_000, 86_400_000_000_001] {
                let due = pace.moment(engine_ns);
                assert!(engine_ns <= pace.engine_ns(due), "{speed} {engine_ns}");
                let before = Moment::from_ns(due.ns() - 1);
                assert!(engine_ns == 0 || pace.engine_ns(before) < engine_ns, "{speed}");
            }
        }
    }

    #[test]
    fn a_second_of_the_wall_is_twenty_of_a_fast_engine() {
        let pace = Pace::new(Moment::from_ns(5), 20.0);
        assert_eq!(pace.engine_ns(Moment::from_ns(1_000_000_005)), 20_000_000_000);
        assert_eq!(pace.engine_ns(Moment::from_ns(0)), 0);
    }
}

#[cfg(test)]
mod front_tests {
    use super::*;

    #[test]
    fn errands_are_done_one_after_the_other() {
        let costs = Front { per_request_ns: 100, per_prompt_token_ns: 10, per_output_token_ns: 7 };
        let mut process = ApiProcess::new(costs);
        assert_eq!(process.take_in(1_000, 5), 1_150);
        assert_eq!(process.take_in(1_050, 0), 1_250);
        assert_eq!(process.hand_out(1, 1_060), 1_257);
        assert_eq!(process.take_in(1_070, 0), 1_357);
        assert_eq!(process.take_in(2_000, 1), 2_110);
    }

    #[test]
    fn what_costs_nothing_waits_for_nobody() {
        let mut process = ApiProcess::new(Front { per_request_ns: 50, ..Front::IMMEDIATE });
        assert_eq!(process.take_in(0, 1_000), 50);
        assert_eq!(process.hand_out(1, 3), 3);
    }
}
