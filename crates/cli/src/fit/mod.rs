//! `fit`: the results that are read for it, and its page.

mod page;
mod source;

pub(crate) use inferometer_runner::fit::{Fitting, Free};
pub(crate) use page::{json, page};
pub(crate) use source::{Spreads, read};
