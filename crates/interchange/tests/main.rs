//! All integration tests of this crate, in one binary: linking is most of their cost.

mod configurations;
mod details;
mod doubtful;
mod exports;
mod foreign;
mod hostile;
mod published;
mod reprint;
mod shapes;
