//! The API process before the scheduler: one at a time it takes requests in and hands tokens out.

use std::collections::VecDeque;

use inferometer_engine::physics::Front as Costs;
use inferometer_model::RequestId;

#[derive(Debug)]
pub(crate) struct Front {
    costs: Costs,
    /// From when on it has time.
    free_ns: u64,
    /// Requests on their way to the scheduler, in the order of their arrival there.
    queue: VecDeque<Waiting>,
}

/// A request that is not with the scheduler yet. Its place may have changed hands meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    at_ns: u64,
    pub(super) place: usize,
    pub(super) id: RequestId,
}

impl Front {
    pub(super) fn new(costs: Costs) -> Self {
        Self { costs, free_ns: 0, queue: VecDeque::new() }
    }

    /// Takes a request in; it will be with the scheduler when all before it are done.
    pub(super) fn take_in(&mut self, now_ns: u64, place: usize, id: RequestId, tokens: u32) {
        let Costs { per_request_ns, per_prompt_token_ns, .. } = self.costs;
        let takes_ns = per_request_ns + per_prompt_token_ns * u64::from(tokens);
        let at_ns = self.work(now_ns, takes_ns);
        self.queue.push_back(Waiting { at_ns, place, id });
    }

    /// Hands a token out; says when it is with the client.
    pub(super) fn hand_out(&mut self, now_ns: u64) -> u64 {
        self.work(now_ns, self.costs.per_output_token_ns)
    }

    fn work(&mut self, now_ns: u64, takes_ns: u64) -> u64 {
        // What takes no time waits for nobody.
        if takes_ns == 0 {
            return now_ns;
        }
        self.free_ns = self.free_ns.max(now_ns) + takes_ns;
        self.free_ns
    }

    /// When the next request reaches the scheduler.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.queue.front().map(|waiting| waiting.at_ns)
    }

    /// A request that reaches the scheduler by now.
    pub(super) fn pass_on(&mut self, now_ns: u64) -> Option<Waiting> {
        let is_due = self.next_ns().is_some_and(|at_ns| at_ns <= now_ns);
        if is_due { self.queue.pop_front() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errands_are_done_one_after_the_other() {
        let costs = Costs { per_request_ns: 10, per_prompt_token_ns: 1, per_output_token_ns: 2 };
        let mut front = Front::new(costs);
        front.take_in(100, 0, RequestId(0), 5);
        front.take_in(101, 1, RequestId(1), 0);
        assert_eq!(front.next_ns(), Some(115));
        assert_eq!(front.hand_out(101), 127);
        assert_eq!(front.pass_on(114), None);
        assert_eq!(front.pass_on(115).map(|waiting| waiting.place), Some(0));
        assert_eq!(front.pass_on(200).map(|waiting| waiting.id), Some(RequestId(1)));
        assert_eq!(front.hand_out(300), 302);
    }

    #[test]
    fn what_costs_nothing_waits_for_nobody() {
        let mut front = Front::new(Costs {
            per_request_ns: 50,
            per_prompt_token_ns: 0,
            per_output_token_ns: 0,
        });
        front.take_in(0, 0, RequestId(0), 1_000);
        assert_eq!(front.next_ns(), Some(50));
        assert_eq!(front.hand_out(3), 3);
    }
}
