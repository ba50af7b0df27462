//! How much is measured: all of it, or a short version for tests and the impatient.

use std::time::Duration;

/// About how long every prompt is. The engine does not read it; the client makes and sends it.
pub const INPUT_TOKENS: u32 = 128;
/// Tokens of every answer on the ladder.
pub const LADDER_TOKENS: u32 = 64;
/// The pace of the engine that fidelity is measured against.
pub const TTFT: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub levels: &'static [u32],
    /// How long requests are let go at each level.
    pub level_time: Duration,
    /// A level with fewer requests in its steady time is measured again, by number.
    pub level_requests_min: u64,
    pub fidelity_streams: &'static [u32],
    pub fidelity_tokens_max: u32,
    pub pacing_rates_per_s: &'static [f64],
    pub pacing_time: Duration,
    pub memory_streams: u32,
    /// Long enough to open all connections and look at the memory.
    pub memory_ttft: Duration,
}

impl Scope {
    pub const FULL: Self = Self {
        levels: &[100, 250, 500, 750, 1_000, 1_500, 2_000],
        level_time: Duration::from_millis(1_250),
        level_requests_min: 1_000,
        fidelity_streams: &[64, 256, 1_024, 4_096],
        fidelity_tokens_max: 200,
        pacing_rates_per_s: &[100.0, 1_000.0, 10_000.0],
        pacing_time: Duration::from_secs(3),
        memory_streams: 10_000,
        memory_ttft: Duration::from_secs(4),
    };

    pub const QUICK: Self = Self {
        levels: &[100, 250, 500],
        level_time: Duration::from_millis(400),
        level_requests_min: 200,
        fidelity_streams: &[16, 64],
        fidelity_tokens_max: 40,
        pacing_rates_per_s: &[100.0, 1_000.0],
        pacing_time: Duration::from_secs(1),
        memory_streams: 200,
        memory_ttft: Duration::from_secs(1),
    };

    /// The gap between tokens. One engine process writes some hundred thousand tokens per second;
    /// at the pace of a few streams it would be late with thousands, and prove nothing.
    pub fn fidelity_gap(streams: u32) -> Duration {
        Duration::from_millis(if streams <= 1_024 { 10 } else { 50 })
    }

    /// Tokens of a stream: all streams of a level together stay within what both processes can
    /// keep and compare in a few seconds.
    pub fn fidelity_tokens(&self, streams: u32) -> u32 {
        const EVENTS_MAX: u32 = 500_000;
        const TOKENS_MIN: u32 = 50;
        let fitting = (EVENTS_MAX / (super::fidelity::WAVES * streams)).max(TOKENS_MIN);
        fitting.min(self.fidelity_tokens_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_streams_are_shorter() {
        let tokens = [64, 1_024, 4_096].map(|streams| Scope::FULL.fidelity_tokens(streams));
        assert_eq!(tokens, [200, 200, 61]);
        assert_eq!(Scope::QUICK.fidelity_tokens(64), 40);
    }
}
