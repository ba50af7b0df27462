//! Framing faults: legal or half-legal ways to cut and dress a stream that clients get wrong.
//!
//! To add a fault: a variant, what it does in `framing.rs` (bytes) or `generation` (order), and a
//! test of its bytes in `tests/faults.rs`.

use serde::{Deserialize, Deserializer};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::options::UnknownName;

/// One way in which a stream is made hard to read. Faults can be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
#[strum(parse_err_ty = UnknownName, parse_err_fn = unknown_fault)]
pub enum Fault {
    /// Every byte of the answer, HTTP framing included, is a write of its own.
    ByteWise,
    /// Several events are held back and written together, when the last of them is due.
    SeveralEvents,
    /// Lines of the stream end in CR LF.
    Crlf,
    /// Lines of the stream end in a lone CR.
    Cr,
    /// A comment precedes every event, and one is sent as soon as the request is received.
    Comments,
    /// The role is sent alone as soon as the request is received, long before the first token.
    RoleFirst,
    /// Usage is part of the last choice, requested or not, and has no separate event.
    UsageOnLastChoice,
    /// The stream ends without `[DONE]`.
    NoDone,
    /// Each JSON object is spread over two `data:` lines.
    MultiLine,
    /// The stream starts with a UTF-8 byte order mark.
    Bom,
}

impl Fault {
    pub const ALL: &'static [Self] = Self::VARIANTS;
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

fn unknown_fault(name: &str) -> UnknownName {
    let known = Fault::ALL.iter().map(<&str>::from).collect();
    UnknownName { what: "fault", name: name.to_owned(), known }
}

/// A set of faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults(u16);

impl Faults {
    pub const NONE: Self = Self(0);

    pub fn contains(self, fault: Fault) -> bool {
        self.0 & (1 << fault as u16) != 0
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        Self(faults.into_iter().fold(0, |set, fault| set | (1 << fault as u16)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_found_by_its_own_name() {
        for fault in Fault::ALL {
            assert_eq!(fault.to_string().parse(), Ok(*fault));
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
        let held: Vec<Fault> = Fault::ALL.iter().copied().filter(|f| set.contains(*f)).collect();
        assert_eq!(held, [Fault::Cr, Fault::Bom]);
    }
}
