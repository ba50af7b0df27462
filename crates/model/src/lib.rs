//! The words of Inferometer: what is asked, what is planned, what happened.
//!
//! Everything here is a value. This crate opens no socket and reads no clock, and it reads files
//! only in [`file`](mod@file), the one bounded reader of files that users name. The traits
//! [`Clock`], [`Fetch`] and [`Plan`] let the other crates speak of those things without knowing
//! each other.

/// An enum whose variants have texts for people, both in one list; the method of this name gives the text.
macro_rules! texts {
    ($(#[$meta:meta])* pub enum $name:ident, $text:ident {
        $($(#[$note:meta])* $variant:ident: $words:literal;)+
    }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$note])* $variant),+
        }

        impl $name {
            /// In words for people.
            pub const fn $text(self) -> &'static str {
                match self {
                    $(Self::$variant => $words),+
                }
            }
        }
    };
}

/// `Debug` of a type that holds something without it: its name and these fields.
#[macro_export]
macro_rules! debug_fields {
    ($name:ident $(, $field:ident)*) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct(stringify!($name));
                $(shown.field(stringify!($field), &self.$field);)*
                shown.finish_non_exhaustive()
            }
        }
    };
}

/// Types that are stored as the text that they are written and read as.
macro_rules! stored_as_text {
    ($kind:ty) => {
        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub mod answer;
pub mod deployment;
pub mod endpoint;
pub mod fetch;
pub mod file;
pub mod fmt;
pub mod import;
pub mod journal;
pub mod moment;
pub mod observations;
pub mod outcome;
pub mod plan;
pub mod record;
pub mod records;
pub mod secret;
pub mod spec;
pub mod spreadsheet;
pub mod stripe;
pub mod study;
pub mod system;
pub mod telemetry;
pub mod whole;

pub use endpoint::BaseUrl;
pub use fetch::{Fetch, Post};
pub use journal::{JournalEntry, NotSent, RunEnding, StartedRequest};
pub use moment::{Clock, Moment};
pub use observations::{Manifest, Observations};
pub use outcome::{Ending, Outcome};
pub use plan::{
    Content, Message, Plan, PlannedRequest, Prompt, Release, RequestId, Segment, TokenCounter,
};
pub use record::RequestRecord;
pub use records::Records;
pub use secret::{REDACTED, Redactor, Secret};
pub use spec::{Spec, SpecDraft};
pub use stripe::Stripe;
pub use study::{Point, SetManifest, StudySpec};
pub use system::Environment;
pub use telemetry::Telemetry;

/// The name of an enum's variant in JSON, which is also its name in files, flags and pages.
pub fn variant_name(value: &impl serde::Serialize) -> &'static str {
    serde_variant::to_variant_name(value).unwrap_or_default()
}
