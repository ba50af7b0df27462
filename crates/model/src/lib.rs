//! The words of Inferometer: what is asked, what is planned, what happened.
//!
//! Everything here is a value. This crate opens no file and no socket and reads no clock; the
//! traits [`Clock`], [`Fetch`] and [`Plan`] let the other crates speak of those things without
//! knowing each other.

pub mod calibration;
pub mod clock;
pub mod deployment;
pub mod endpoint;
pub mod environment;
pub mod fetch;
pub mod import;
pub mod journal;
pub mod moment;
pub mod observations;
pub mod outcome;
pub mod plan;
pub mod record;
pub mod secret;
pub mod spec;
pub mod spreadsheet;
pub mod study;
pub mod system;
pub mod telemetry;
pub mod tokens;

pub use clock::Clock;
pub use endpoint::BaseUrl;
pub use environment::Environment;
pub use fetch::{Fetch, Post};
pub use journal::{JournalEntry, NotSent, RunEnding, StartedRequest};
pub use moment::Moment;
pub use observations::{Manifest, Observations};
pub use outcome::{Ending, Outcome};
pub use plan::{Content, Message, Plan, PlannedRequest, Prompt, Release, RequestId, Segment};
pub use record::RequestRecord;
pub use secret::{Redactor, Secret};
pub use spec::{Spec, SpecDraft};
/// The old name of the module.
pub use study as campaign;
pub use study::{Point, SetManifest, StudySpec};
pub use telemetry::Telemetry;
pub use tokens::TokenCounter;
