//! How long a step takes: the work that the model makes, over what the hardware can do.
//!
//! A step costs at least its work at the hardware's peak ([`PhysicsStep::bound_ns`]);
//! [`Coefficients`] say how far a real server stays from it, and none may promise more than the
//! hardware has. Figures that seem too good are refused, not explained.

mod coefficients;
mod front;
mod graphs;
mod machine;
mod step;
#[cfg(test)]
mod tests;

pub use coefficients::{CoefficientError, Coefficients, HostCost};
pub use front::Front;
pub use graphs::GRAPHS_MAX;
pub use machine::Machine;
pub use step::{PhysicsStep, StepParts};
