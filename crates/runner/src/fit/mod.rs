//! `fit`: the coefficients of a profile from measured results.
//!
//! A result becomes a row: a load that can be played again in virtual time, and the figures that
//! were measured under it. A search moves the free coefficients, within what the hardware can do,
//! until playing the rows gives their figures. Few figures bear few coefficients: there is at most
//! one free coefficient for two rows.

mod free;
mod knee;
mod outcome;
pub mod own_run;
mod plan;
mod row;
mod search;
mod trial;

pub use free::Free;
pub use knee::{Knee, knees};
pub use outcome::{Fit, Fitting, Part, TOLERANCES};
pub use plan::Draws;
pub use row::{Figures, Row, RowLoad, RowRequest, own_seed};
