//! Defaults of a spec, and bounds that catch typing errors before they fill memory or a disk.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::SpecError;

/// Defaults: a run that says something about any server within a minute or so.
pub(super) const CONCURRENCY: u32 = 8;
pub(super) const REQUESTS: u64 = 100;
pub const INPUT_TOKENS: u32 = 512;
pub const OUTPUT_TOKENS: u32 = 128;
pub(super) const SEED: u64 = 1;

pub(super) const CONCURRENCY_MAX: u32 = 1_000_000;
pub(super) const REQUESTS_MAX: u64 = 1_000_000_000;
pub(super) const WARM_UP_MAX: u64 = 1_000_000;
/// Of a prompt, or of an answer.
pub const TOKENS_MAX: u32 = 16_000_000;
/// Of a conversation.
pub const TURNS_MAX: u32 = 10_000;
pub(super) const RATE_MAX: f64 = 1e6;
/// One request in eleven days: a lower rate is a typing error.
pub(super) const RATE_MIN: f64 = 1e-6;
pub(super) const SEGMENTS_MAX: usize = 64;
/// From a thousandth of the recorded speed to a thousand times it.
pub(super) const SPEED: RangeInclusive<f64> = 1e-3..=1e3;
/// Gaps that vary ten times as much as Poisson's, to gaps that hardly vary.
pub(super) const BURSTINESS: RangeInclusive<f64> = 0.01..=1_000.0;
pub(super) const DURATION_MAX: Duration = Duration::from_hours(24 * 31);
pub(super) const THINK_MAX: Duration = Duration::from_hours(24);
/// Arrivals of an open loop are drawn beforehand, so their number is bounded.
pub(super) const ARRIVALS_MAX: f64 = 1e8;

pub(super) fn at_most(name: &'static str, value: u64, bound: u64) -> Result<(), SpecError> {
    if value <= bound { Ok(()) } else { Err(SpecError::TooLarge { name, value, bound }) }
}
