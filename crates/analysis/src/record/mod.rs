//! The records of a run: what each request did, and everything that metrics and warnings are made of.
//!
//! [`Measured::from_observations`] reads the records in the order of time, several times. What has a
//! value for each request, or several (gaps, reads), has a pass of its own, so that memory holds one such
//! list at a time, and never all records.

mod attempts;
mod groups;
mod measured;
pub mod request;
mod series;
mod uncertainty;
mod window;

pub(crate) use self::attempts::*;
pub use self::groups::*;
pub(crate) use self::measured::*;
pub use self::request::*;
pub(crate) use self::series::*;
pub use self::uncertainty::*;
pub use self::window::*;
