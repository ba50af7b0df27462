//! Matrices of deployments.

mod play;

pub(crate) use play::{Way, Wish, begin, check, resume};
