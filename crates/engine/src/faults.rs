//! Framing faults: legal or half-legal ways to cut and dress a stream that clients get wrong.
//!
//! To add a fault: a variant and its place in [`Fault::ALL`], its name, then what it does in
//! `framing.rs` (bytes) or `generation` (order), and a test of its bytes in `tests/faults.rs`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// One way in which a stream is made hard to read. Faults can be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Every byte of the answer, HTTP framing included, is a write of its own.
    ByteWise,
    /// Several events are held back and written together, when the last of them is due.
    SeveralEvents,
    /// Lines of the stream end in CR LF.
    Crlf,
    /// Lines of the stream end in a lone CR.
    Cr,
    /// A comment goes ahead of every event, and one leaves as soon as the request is there.
    Comments,
    /// The role leaves alone as soon as the request is there, long before the first token.
    RoleFirst,
    /// Usage rides on the last choice, asked for or not, and has no event of its own.
    UsageOnLastChoice,
    /// The stream ends without `[DONE]`.
    NoDone,
    /// Each JSON object is spread over two `data:` lines.
    MultiLine,
    /// The stream starts with a UTF-8 byte order mark.
    Bom,
}

impl Fault {
    pub const ALL: [Self; 10] = [
        Self::ByteWise,
        Self::SeveralEvents,
        Self::Crlf,
        Self::Cr,
        Self::Comments,
        Self::RoleFirst,
        Self::UsageOnLastChoice,
        Self::NoDone,
        Self::MultiLine,
        Self::Bom,
    ];

    /// The name by which it is asked for, on the command line and in a request.
    pub fn name(self) -> &'static str {
        match self {
            Self::ByteWise => "byte-wise",
            Self::SeveralEvents => "several-events",
            Self::Crlf => "crlf",
            Self::Cr => "cr",
            Self::Comments => "comments",
            Self::RoleFirst => "role-first",
            Self::UsageOnLastChoice => "usage-on-last-choice",
            Self::NoDone => "no-done",
            Self::MultiLine => "multi-line",
            Self::Bom => "bom",
        }
    }

    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|fault| fault.name() == name)
            .ok_or_else(|| UnknownFault { name: name.to_owned() })
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

/// A fault was asked for that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault `{name}`; known are {}", known_names())]
pub struct UnknownFault {
    pub name: String,
}

fn known_names() -> String {
    Fault::ALL.map(Fault::name).join(", ")
}

/// A set of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults(u16);

impl Faults {
    pub const NONE: Self = Self(0);

    pub fn contains(self, fault: Fault) -> bool {
        self.0 & fault.bit() != 0
    }

    pub fn insert(&mut self, fault: Fault) {
        self.0 |= fault.bit();
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        let mut set = Self::NONE;
        faults.into_iter().for_each(|fault| set.insert(fault));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_found_by_its_own_name() {
        for fault in Fault::ALL {
            assert_eq!(fault.name().parse(), Ok(fault));
        }
    }

    #[test]
    fn an_unknown_fault_is_answered_with_the_known_names() {
        let error = "bytewise".parse::<Fault>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown fault `bytewise`; known are byte-wise, several-events, crlf, cr, comments, \
             role-first, usage-on-last-choice, no-done, multi-line, bom"
        );
    }

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        let set: Faults = [Fault::Cr, Fault::Bom].into_iter().collect();
        let held: Vec<Fault> = Fault::ALL.into_iter().filter(|f| set.contains(*f)).collect();
        assert_eq!(held, [Fault::Cr, Fault::Bom]);
    }
}
