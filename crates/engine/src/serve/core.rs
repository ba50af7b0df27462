//! The scheduler on the wall's clock: who arrives when, which step is due, and who is to be told.
//!
//! The scheduler is told of everything in engine time, and of nothing earlier than what it has
//! already done; the log has those very moments, so a replay makes the same steps.

use std::collections::{BTreeMap, HashMap};

use super::flights::{Flight, FlightKey, Flights};
use super::front::ApiProcess;
use super::pace::Pace;
use super::step_log::StepLog;
use super::step_time::StepModel;
use crate::clock::Moment;
use crate::lateness::Lateness;
use crate::metrics::Metrics;
use crate::scheduler::{
    Listener, RequestFacts, Scheduler, SchedulerConfig, SchedulerRequest, Step,
};

/// The scheduler, what waits in front of it, and what it has said.
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
    heard: Heard,
}

/// When a request reaches the scheduler, and how many came before it.
type Turn = (u64, u64);

/// What became of everything that the scheduler said.
#[derive(Debug)]
struct Heard {
    front: ApiProcess,
    pace: Pace,
    /// The wall's time, by which a step may be late.
    now: Moment,
    flights: Flights,
    metrics: Metrics,
    log: Option<StepLog>,
    steps: Lateness,
    /// Slots of clients that can be told something.
    ready: Vec<usize>,
}

impl Core {
    pub(crate) fn new(
        scheduler: Scheduler<StepModel>,
        front: ApiProcess,
        pace: Pace,
        metrics: Metrics,
        log_steps: bool,
    ) -> Self {
        let heard = Heard {
            front,
            pace,
            now: Moment::default(),
            flights: Flights::default(),
            metrics,
            log: log_steps.then(StepLog::default),
            steps: Lateness::new(),
            ready: Vec::new(),
        };
        Self {
            scheduler,
            arrivals: BTreeMap::new(),
            turns: HashMap::new(),
            arrivals_seen: 0,
            passed_ns: 0,
            due: None,
            next_id: 0,
            heard,
        }
    }

    pub(crate) fn config(&self) -> &SchedulerConfig {
        self.scheduler.config()
    }

    /// Appends what `GET /metrics` says.
    pub(crate) fn render_metrics(&self, text: &mut String) {
        self.heard.metrics.render(self.scheduler.gauges(), self.scheduler.counters(), text);
    }

    pub(crate) fn metrics_mut(&mut self) -> &mut Metrics {
        &mut self.heard.metrics
    }

    pub(crate) fn log(&self) -> Option<&StepLog> {
        self.heard.log.as_ref()
    }

    pub(crate) fn step_lateness(&self) -> &Lateness {
        &self.heard.steps
    }

    pub(crate) fn forget_lateness(&mut self) {
        self.heard.steps = Lateness::new();
    }

    pub(crate) fn flights(&mut self) -> &mut Flights {
        &mut self.heard.flights
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

    pub(crate) fn engine_ns(&self, at: Moment) -> u64 {
        self.heard.pace.engine_ns(at)
    }

    /// The API process gets a request; says when that will have reached the scheduler.
    pub(crate) fn take_in(&mut self, came_ns: u64, prompt_tokens: u32) -> u64 {
        self.heard.front.take_in(came_ns, prompt_tokens)
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
        self.heard.now = now;
        let flight = self.heard.flights.close(key)?;
        for id in flight.running_ids() {
            if let Some(turn) = self.turns.remove(&id) {
                self.arrivals.remove(&turn);
                self.heard.metrics.left(id);
            } else {
                self.abort(id, now);
            }
        }
        self.find_due();
        Some(flight)
    }

    pub(crate) fn next_due(&self) -> Option<Moment> {
        // Who can be told something already is not kept waiting.
        if self.heard.ready.is_empty() { self.due } else { Some(Moment::default()) }
    }

    /// Does what is due, and adds the slots of those who can be told something. Of an engine that
    /// is far behind it does a part: the rest stays due, and clients are looked after in between.
    pub(crate) fn wake(&mut self, now: Moment, ready: &mut Vec<usize>) {
        self.heard.now = now;
        let now_ns = self.heard.pace.engine_ns(now);
        for _ in 0..EVENTS_PER_WAKE {
            if !self.do_next(now_ns) {
                break;
            }
        }
        ready.append(&mut self.heard.ready);
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
        // who came in it may still be told of.
        self.scheduler.advance(at_ns, &mut self.heard);
        self.passed_ns = at_ns.saturating_add(1);
        true
    }

    fn submit(&mut self, at_ns: u64, request: SchedulerRequest) {
        let id = request.id;
        self.turns.remove(&id);
        let at_ns = at_ns.max(self.passed_ns);
        if let Some(log) = &mut self.heard.log {
            log.arrival(at_ns, &request);
        }
        if self.scheduler.submit(at_ns, request, &mut self.heard).is_err() {
            self.heard.metrics.refused(id);
            let at = self.heard.pace.moment(at_ns);
            let slot = self.heard.flights.refused(id, at);
            self.heard.ready.extend(slot);
        }
    }

    fn abort(&mut self, id: u64, now: Moment) {
        // What is overdue by then comes later: catching up is for `wake`, in parts.
        let now_ns = self.heard.pace.engine_ns(now);
        let at_ns = self.next_ns().map_or(now_ns, |next_ns| now_ns.min(next_ns));
        let at_ns = at_ns.max(self.passed_ns);
        if self.scheduler.abort(at_ns, id, &mut self.heard)
            && let Some(log) = &mut self.heard.log
        {
            log.abort(at_ns, id);
        }
    }

    /// When something happens next.
    fn next_ns(&self) -> Option<u64> {
        let arrival = self.arrivals.first_key_value().map(|((at_ns, _), _)| *at_ns);
        arrival.into_iter().chain(self.scheduler.next_event()).min()
    }

    fn find_due(&mut self) {
        self.due = self.next_ns().map(|at_ns| self.heard.pace.moment(at_ns));
    }
}

impl Listener for Heard {
    fn step_began(&mut self, step: &Step) {
        self.metrics.step_began(step);
        if let Some(log) = &mut self.log {
            log.step(step);
        }
    }

    fn step_ended(&mut self, step: &Step) {
        self.metrics.step_ended(step);
        let due = self.pace.moment(step.ends_ns);
        self.steps.add(self.now.ns().saturating_sub(due.ns()));
    }

    fn token(&mut self, id: u64, index: u32, at_ns: u64) {
        self.metrics.token(id, index, at_ns);
        let at = self.pace.moment(self.front.hand_out(at_ns));
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

#[cfg(test)]
mod tests;
