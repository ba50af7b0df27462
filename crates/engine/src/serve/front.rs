//! The API process in front of the scheduler: one, so requests queue for it.

use crate::physics::Front;

/// When requests get through to the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct ApiProcess {
    front: Front,
    /// When it has done all that came so far.
    free_ns: u64,
}

impl ApiProcess {
    pub fn new(front: Front) -> Self {
        Self { front, free_ns: 0 }
    }

    /// When a request that comes at `came_ns` reaches the scheduler. Requests come in order.
    pub fn pass(&mut self, came_ns: u64, prompt_tokens: u32) -> u64 {
        let Front { per_request_ns, per_prompt_token_ns, .. } = self.front;
        let tokens_ns = per_prompt_token_ns.saturating_mul(u64::from(prompt_tokens));
        let takes_ns = per_request_ns.saturating_add(tokens_ns);
        self.free_ns = self.free_ns.max(came_ns).saturating_add(takes_ns);
        self.free_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_while_another_is_worked_on_waits() {
        let front = Front { per_request_ns: 100, per_prompt_token_ns: 10, per_output_token_ns: 0 };
        let mut process = ApiProcess::new(front);
        assert_eq!(process.pass(1_000, 5), 1_150);
        assert_eq!(process.pass(1_050, 0), 1_250);
        assert_eq!(process.pass(2_000, 1), 2_110);
    }
}
