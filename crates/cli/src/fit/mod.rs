//! `fit`: the coefficients of a profile from measured results.
//!
//! A result becomes a row: a load that can be played again in virtual time, and the figures that
//! were measured under it. A search moves the free coefficients, within what the hardware can do,
//! until playing the rows gives their figures. Few figures bear few coefficients: there is at most
//! one free coefficient for two rows.

mod free;
mod knee;
mod outcome;
mod own_run;
mod page;
mod plan;
mod row;
mod search;
mod source;
mod trial;

pub(crate) use free::Free;
pub(crate) use outcome::Fitting;
pub(crate) use page::{json, page};
pub(crate) use source::{Spreads, read};
