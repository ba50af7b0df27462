//! A sweep as it is typed: levels, servers side by side, what is looked for.

mod ask;
mod find;
mod levels;
mod targets;

pub(crate) use ask::{at_level, plan};
pub(crate) use find::Find;
pub(crate) use levels::{Bound, ConcurrencyLevels, RateLevels};
