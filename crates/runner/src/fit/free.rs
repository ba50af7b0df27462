//! The coefficients that a fit may move, by name, within what the hardware can do.

use std::str::FromStr;

use inferometer_engine::physics::Coefficients;

use super::search::Range;
use crate::failure::Failure;

/// A coefficient that may be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free(&'static Coefficient);

#[derive(Debug)]
struct Coefficient {
    name: &'static str,
    range: Range,
    /// Where a search begins that knows nothing.
    neutral: f64,
    read: fn(&Coefficients) -> f64,
    write: fn(&mut Coefficients, f64),
}

impl PartialEq for Coefficient {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Coefficient {}

/// A share of the hardware's peak: one is the peak.
const SHARE: (Range, f64) = (Range { least: 0.005, most: 1.0 }, 0.3);
const SECONDS: (Range, f64) = (Range { least: 1e-6, most: 10.0 }, 5e-3);
const SECONDS_EACH: (Range, f64) = (Range { least: 1e-9, most: 0.1 }, 1e-5);

macro_rules! coefficients {
    ($($name:literal $range:ident $($field:ident).+;)+) => {
        &[$(Coefficient {
            name: $name,
            range: $range.0,
            neutral: $range.1,
            read: |all| all.$($field).+,
            write: |all, value| all.$($field).+ = value,
        },)+
        Coefficient {
            name: "eta_small",
            range: SHARE.0,
            neutral: SHARE.1,
            read: |all| all.eta_small.unwrap_or(all.eta_compute),
            write: |all, value| all.eta_small = Some(value),
        }]
    };
}

/// In the order in which they are set free when nobody says which.
static COEFFICIENTS: &[Coefficient] = coefficients! {
    "eta_compute" SHARE eta_compute;
    "eta_memory" SHARE eta_memory;
    "host.per_request_s" SECONDS_EACH host.per_request_s;
    "step_s" SECONDS step_s;
    "eta_kv" SHARE eta_kv;
    "eta_attention" SHARE eta_attention;
    "large_step_s" SECONDS large_step_s;
    "host.per_step_s" SECONDS host.per_step_s;
    "layer_s" SECONDS_EACH layer_s;
    "eta_link" SHARE eta_link;
    "launch_s" SECONDS_EACH launch_s;
    "launch_stage_s" SECONDS_EACH launch_stage_s;
};

/// Rows that one free coefficient takes.
pub(super) const ROWS_PER_COEFFICIENT: usize = 2;

impl Free {
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// As many as so many rows bear, the most telling ones first.
    pub fn by_default(rows: usize) -> Vec<Self> {
        COEFFICIENTS.iter().take((rows / ROWS_PER_COEFFICIENT).min(3)).map(Self).collect()
    }

    pub(super) fn range(self) -> Range {
        self.0.range
    }

    pub(super) fn neutral(self) -> f64 {
        self.0.neutral
    }

    pub fn read(self, all: &Coefficients) -> f64 {
        let value = (self.0.read)(all);
        // A cost that is zero cannot be moved by a factor.
        if value < self.0.range.least { self.0.neutral } else { value }
    }

    pub(super) fn write(self, all: &mut Coefficients, value: f64) {
        (self.0.write)(all, value);
    }
}

fn names() -> String {
    COEFFICIENTS.iter().map(|coefficient| coefficient.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Free {
    type Err = Failure;

    fn from_str(name: &str) -> Result<Self, Failure> {
        let found = COEFFICIENTS.iter().find(|coefficient| coefficient.name == name);
        found.map(Self).ok_or_else(|| {
            let message = format!("`{name}` is no coefficient that can be fitted");
            Failure::usage(message).hint(format!("those are {}", names()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_reads_what_it_writes_and_nothing_else_moves() {
        for coefficient in COEFFICIENTS {
            let free: Free = coefficient.name.parse().unwrap();
            let mut all = Coefficients::default();
            free.write(&mut all, 0.0625);
            assert_eq!(free.read(&all).to_bits(), 0.0625_f64.to_bits(), "{}", free.name());
            all.check().unwrap();
            let untouched = |other: &&Coefficient| other.name != free.name();
            for other in COEFFICIENTS.iter().filter(untouched) {
                let follows = (other.name, free.name()) == ("eta_small", "eta_compute");
                let before = (other.read)(&Coefficients::default()).to_bits();
                assert!(follows || (other.read)(&all).to_bits() == before, "{}", other.name);
            }
        }
    }

    #[test]
    fn few_rows_free_few_coefficients() {
        assert_eq!(Free::by_default(1), []);
        assert_eq!(Free::by_default(5).len(), 2);
        assert_eq!(Free::by_default(100).len(), 3);
    }
}
