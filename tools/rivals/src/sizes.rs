//! How much is asked of everybody, in two sizes: one to measure with, one to try the chore itself.

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// How often the quick tools take turns.
    pub(crate) rounds: usize,
    /// Duration of a run that stops by time.
    pub(crate) seconds: u32,
    pub(crate) one_shot_requests: Counts,
    pub(crate) stream_requests: Counts,
    /// Paced streams at once, one table for each.
    pub(crate) paced_streams: &'static [u32],
    pub(crate) paced_waves: u32,
    /// The same over TLS and HTTP/2.
    pub(crate) secured_streams: u32,
    pub(crate) waiting_streams: u32,
    pub(crate) open_loop_rate_per_s: u32,
}

/// Requests of a run, for tools that stop by count only: about as many as fit into the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) quick: u32,
    pub(crate) slow: u32,
}

impl Sizes {
    pub(crate) const FULL: Self = Self {
        rounds: 3,
        seconds: 5,
        one_shot_requests: Counts { quick: 20_000, slow: 2000 },
        stream_requests: Counts { quick: 2000, slow: 384 },
        paced_streams: &[1024, 4096, 8000],
        paced_waves: 3,
        secured_streams: 1024,
        waiting_streams: 4096,
        open_loop_rate_per_s: 10_000,
    };

    pub(crate) const SMALL: Self = Self {
        rounds: 1,
        seconds: 1,
        one_shot_requests: Counts { quick: 2000, slow: 200 },
        stream_requests: Counts { quick: 200, slow: 64 },
        paced_streams: &[8],
        paced_waves: 2,
        secured_streams: 8,
        waiting_streams: 64,
        open_loop_rate_per_s: 100,
    };
}
