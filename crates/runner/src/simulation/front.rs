//! The API process before the scheduler, and the requests that it has not handed on yet.

use std::collections::VecDeque;

use inferometer_engine::ApiProcess;
use inferometer_engine::physics::Front as Costs;
use inferometer_model::RequestId;

#[derive(Debug)]
pub struct Front {
    process: ApiProcess,
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
        Self { process: ApiProcess::new(costs), queue: VecDeque::new() }
    }

    /// Takes a request in; it will be with the scheduler when all before it are done.
    pub(super) fn take_in(&mut self, now_ns: u64, place: usize, id: RequestId, tokens: u32) {
        let at_ns = self.process.take_in(now_ns, tokens);
        self.queue.push_back(Waiting { at_ns, place, id });
    }

    /// Hands a token out; says when it is with the client.
    pub(super) fn hand_out(&mut self, now_ns: u64) -> u64 {
        self.process.hand_out(now_ns)
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
}
