//! Suites as data: named lists of scenarios, built in or in a file, and what comes of one together
//! with flags.
//!
//! A scenario is an experiment without a server. Four layers say what it asks: the suite's
//! defaults, the scenario, the user's experiment file and `--set`, then flags; the upper one wins.
//! What would make all scenarios alike is refused.

mod ask;
mod builtin;
mod file;
mod hash;
mod list;
mod overrides;
mod price;
mod resolved;
pub(crate) mod schema;
#[cfg(test)]
mod tests;

pub(crate) use ask::plan;
pub(crate) use builtin::shown;
pub(crate) use list::{HASH_PREFIX, listed};
pub(crate) use price::{Cost, Part, Price};
