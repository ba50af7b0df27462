//! From where on a rule speaks, and why from there.

/// p99 over median of TTFT: the slowest of a hundred waits as long again as a usual request takes.
/// The rule of the interactive sweet spot has the same factor.
pub(super) const TAIL_LONG: f64 = 2.0;

/// Mean over median of TTFT: half as much again is more than one slow request in fifty can add,
/// unless that one is very slow.
pub(super) const SKEW_LARGE: f64 = 1.5;

/// p99 above median of TPOT: nearer than this, answers are read at the same speed.
pub(super) const SPREAD_STEADY: f64 = 0.05;

/// p99 above median of TPOT: a fifth is seen by a reader who has two answers side by side.
pub(super) const SPREAD_WIDE: f64 = 0.20;

/// p99 over median of ITL: one step of a batch does not take five times the usual for being larger;
/// something else ran in between.
pub(super) const PAUSES_LONG: f64 = 5.0;

/// The best second over the mean: above this there were times of much less.
pub(super) const PEAK_APART: f64 = 1.3;

/// Servers preempt when no block is free; between two scrapes the fullest moment is missed.
pub(super) const KV_FULL: f64 = 0.95;

/// Throughput gained by twice the users: below a tenth the server is saturated for all that
/// matters.
pub(super) const GAIN_SMALL: f64 = 0.10;

/// A level this near the peak is as good for throughput.
pub(super) const SHARE_OF_PEAK: f64 = 0.95;

/// Prefill of several requests at once over that of one alone: a shared server is not faster, and
/// a quarter covers what lengths and noise do.
pub(super) const PREFILL_TOO_FAST: f64 = 1.25;

/// Of the input: below one part in a hundred a prefix cache has found a chat template, not prompts.
pub(super) const CACHED: f64 = 0.01;

/// Readings of a gauge inside a run: with fewer, what lasted for a tenth of the run may stand in
/// none of them.
pub(super) const READINGS_FEWEST: f64 = 10.0;

/// The longest gap over the median of ITL: one gap of a run is always long, so more is asked of it
/// than of p99.
pub(super) const PAUSE_SINGLE: f64 = 10.0;

/// TTFT p99 in milliseconds: nobody who waits longer for an answer to begin calls it interactive.
pub(super) const INTERACTIVE_MS: f64 = 2_000.0;

/// Requests that leave at once as the run begins, as a share of all: from a tenth on they reach
/// down to p90.
pub(super) const BURST: f64 = 0.10;

/// Waiting requests as a share of those in flight: fewer are on their way in, and hold nothing up.
pub(super) const QUEUE_SHARE: f64 = 0.10;

/// How often a set drawn again must choose the same level before the choice is called certain.
pub(super) const SAME_CHOICE: f64 = 0.95;

/// A share that prints as `< 0.1 %` is not a number to speak of.
pub(super) const PRINTABLE_SHARE: f64 = 0.001;

/// Running requests below this share of those in flight, in the mean and at most: the server holds
/// some back.
pub(super) const HELD_BACK: f64 = 0.9;
