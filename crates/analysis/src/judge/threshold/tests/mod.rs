//! The rule itself, SLOs, and requirements.

mod requirement;
mod rule;
mod slo;
