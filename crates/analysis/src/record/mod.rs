//! The records of a run: what each request did, and everything that metrics and warnings are made of.
//!
//! [`Measured::from_observations`] reads the records once, in the order of time. What has several
//! values per request (gaps, reads) has a pass of its own, so that memory holds one such list at a
//! time.

mod fluidity;
mod groups;
pub mod latencies;
mod measured;
mod outcomes;
mod output;
mod series;
mod uncertainty;
mod window;

pub(crate) use self::fluidity::*;
pub use self::groups::*;
pub use self::latencies::*;
pub(crate) use self::measured::*;
pub use self::outcomes::*;
pub use self::output::*;
pub(crate) use self::series::*;
pub use self::uncertainty::*;
pub use self::window::*;
