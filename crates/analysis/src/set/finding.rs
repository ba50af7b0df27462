//! An answer, or why there is none.

use inferometer_model::campaign::Level;
use serde::{Deserialize, Serialize};

use crate::estimate::Interval;
use crate::set::across::Across;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding<T> {
    Found(T),
    /// A fragment that says why.
    Unknown(String),
}

/// A number of a level with the doubt that it has there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub value: f64,
    pub interval: Option<Interval>,
}

/// From the one level to the other, both included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelRange {
    pub low: Level,
    pub high: Level,
}

impl<T> Finding<T> {
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown(reason.into())
    }

    pub const fn found(&self) -> Option<&T> {
        match self {
            Self::Found(found) => Some(found),
            Self::Unknown(_) => None,
        }
    }
}

impl Figure {
    pub(super) fn of(across: &Across) -> Option<Self> {
        across.mean.map(|value| Self { value, interval: across.doubt() })
    }
}
