//! The API process in front of the scheduler: one at a time it takes requests in and hands tokens
//! out. A live server and a simulation have the same one.

use crate::physics::Front;

/// When requests get through to the scheduler, and tokens to their clients.
#[derive(Clone, Copy, Debug)]
pub struct ApiProcess {
    costs: Front,
    /// From when on it has time.
    free_ns: u64,
}

impl ApiProcess {
    pub fn new(costs: Front) -> Self {
        Self { costs, free_ns: 0 }
    }

    /// Takes a request in that comes at `now_ns`; says when it is with the scheduler.
    pub fn take_in(&mut self, now_ns: u64, prompt_tokens: u32) -> u64 {
        let Front { per_request_ns, per_prompt_token_ns, .. } = self.costs;
        let tokens_ns = per_prompt_token_ns.saturating_mul(u64::from(prompt_tokens));
        self.work(now_ns, per_request_ns.saturating_add(tokens_ns))
    }

    /// Hands a token out that is there at `now_ns`; says when it is with the client.
    pub fn hand_out(&mut self, now_ns: u64) -> u64 {
        self.work(now_ns, self.costs.per_output_token_ns)
    }

    fn work(&mut self, now_ns: u64, takes_ns: u64) -> u64 {
        // What takes no time waits for nobody.
        if takes_ns == 0 {
            return now_ns;
        }
        self.free_ns = self.free_ns.max(now_ns).saturating_add(takes_ns);
        self.free_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errands_are_done_one_after_the_other() {
        let costs = Front { per_request_ns: 100, per_prompt_token_ns: 10, per_output_token_ns: 7 };
        let mut process = ApiProcess::new(costs);
        assert_eq!(process.take_in(1_000, 5), 1_150);
        assert_eq!(process.take_in(1_050, 0), 1_250);
        assert_eq!(process.hand_out(1_060), 1_257);
        assert_eq!(process.take_in(1_070, 0), 1_357);
        assert_eq!(process.take_in(2_000, 1), 2_110);
    }

    #[test]
    fn what_costs_nothing_waits_for_nobody() {
        let mut process = ApiProcess::new(Front { per_request_ns: 50, ..Front::IMMEDIATE });
        assert_eq!(process.take_in(0, 1_000), 50);
        assert_eq!(process.hand_out(3), 3);
    }
}
