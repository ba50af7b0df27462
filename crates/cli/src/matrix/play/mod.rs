//! A matrix at work: servers are put up one after the other, measured in the same way, taken down.
//!
//! `errand` makes a set and goes on with one, `lane` hands out what is left, `cell` sees one server
//! through, in virtual time or live, and `ledger` keeps what every point came to. A cell that fails is
//! a result: only what is wrong with this machine stops a matrix.

mod cell;
mod drain;
mod errand;
mod lane;
mod ledger;
mod live;
mod progress;
mod report;
pub(super) mod unfit;
mod virtual_time;

pub(crate) use errand::{Only, Way, Wish, begin, check, resume};
