//! The scheduler on the wall's clock: who arrives when, which step is due, and who is to be told.
//!
//! The scheduler is told of everything in engine time, and of nothing earlier than what it has
//! already done; the log has those very moments, so a replay makes the same steps.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::flights::{Flight, FlightKey, Flights};
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
    arrivals: BinaryHeap<Reverse<Arrival>>,
    arrivals_seen: u64,
    /// Right behind the last thing that the scheduler did.
    passed_ns: u64,
    /// When the scheduler or an arrival is to be looked after.
    due: Option<Moment>,
    next_id: u64,
    heard: Heard,
}

/// A request on its way through the API process.
#[derive(Debug)]
struct Arrival {
    at_ns: u64,
    ordinal: u64,
    request: SchedulerRequest,
}

/// What became of everything that the scheduler said.
#[derive(Debug)]
struct Heard {
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
        pace: Pace,
        metrics: Metrics,
        log_steps: bool,
    ) -> Self {
        let heard = Heard {
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
            arrivals: BinaryHeap::new(),
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

    /// Takes a request that will reach the scheduler at `at_ns` of engine time.
    pub(crate) fn arrive(&mut self, at_ns: u64, request: SchedulerRequest) {
        let ordinal = self.arrivals_seen;
        self.arrivals_seen += 1;
        self.arrivals.push(Reverse(Arrival { at_ns, ordinal, request }));
        self.find_due();
    }

    /// The client has left: what is under way for it is taken back, and its blocks are free.
    pub(crate) fn abandon(&mut self, key: FlightKey, now: Moment) -> Option<Flight> {
        self.heard.now = now;
        let flight = self.heard.flights.close(key)?;
        for id in flight.running_ids() {
            self.abort(id, now);
        }
        self.find_due();
        Some(flight)
    }

    pub(crate) fn next_due(&self) -> Option<Moment> {
        // Who can be told something already is not kept waiting.
        if self.heard.ready.is_empty() { self.due } else { Some(Moment::default()) }
    }

    /// Does what is due, and adds the slots of those who can be told something.
    pub(crate) fn wake(&mut self, now: Moment, ready: &mut Vec<usize>) {
        self.heard.now = now;
        let now_ns = self.heard.pace.engine_ns(now);
        while let Some(Reverse(arrival)) = self.arrivals.peek()
            && arrival.at_ns <= now_ns
        {
            if let Some(Reverse(arrival)) = self.arrivals.pop() {
                self.submit(arrival);
            }
        }
        self.advance(|at_ns| at_ns <= now_ns);
        ready.append(&mut self.heard.ready);
        self.find_due();
    }

    fn submit(&mut self, arrival: Arrival) {
        let Arrival { at_ns, request, .. } = arrival;
        let id = request.id;
        if !self.heard.flights.has(id) {
            // Its client left before it got here.
            self.heard.metrics.refused(id);
            return;
        }
        let at_ns = self.reach(at_ns);
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
        let at_ns = self.reach(self.heard.pace.engine_ns(now));
        if self.scheduler.abort(at_ns, id, &mut self.heard)
            && let Some(log) = &mut self.heard.log
        {
            log.abort(at_ns, id);
        }
    }

    /// Lets everything happen that comes before `at_ns`, and says which moment it really is.
    fn reach(&mut self, at_ns: u64) -> u64 {
        self.advance(|earlier| earlier < at_ns);
        at_ns.max(self.passed_ns)
    }

    /// From one thing that happens to the next, so that no time passes in which nothing does: who
    /// came in it may still be told of.
    fn advance(&mut self, is_due: impl Fn(u64) -> bool) {
        while let Some(at_ns) = self.scheduler.next_event().filter(|at_ns| is_due(*at_ns)) {
            self.scheduler.advance(at_ns, &mut self.heard);
            self.passed_ns = at_ns + 1;
        }
    }

    fn find_due(&mut self) {
        let arrival = self.arrivals.peek().map(|Reverse(arrival)| arrival.at_ns);
        let next = arrival.into_iter().chain(self.scheduler.next_event()).min();
        self.due = next.map(|at_ns| self.heard.pace.moment(at_ns));
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
        let at = self.pace.moment(at_ns);
        self.ready.extend(self.flights.token(id, index, at));
    }

    fn ended(&mut self, facts: &RequestFacts) {
        self.metrics.ended(facts);
        let at = self.pace.moment(facts.ended_ns);
        self.ready.extend(self.flights.ended(facts, at));
    }
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.ordinal).cmp(&(other.at_ns, other.ordinal))
    }
}

#[cfg(test)]
mod tests;
