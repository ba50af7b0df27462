//! Time as something handed in, so that tests and simulations have their own.

use crate::Moment;

/// The run's one clock. Only the clock module of a process implements it over a real clock.
pub trait Clock {
    fn now(&self) -> Moment;
}
