//! How long steps take: as physics has it, or always the same.

use std::time::Duration;

use crate::physics::PhysicsStep;
use crate::scheduler::{ConstantStep, StepShape, StepTime};

/// Where the time of a step comes from.
#[derive(Clone, Debug)]
pub(crate) enum StepModel {
    Physics(Box<PhysicsStep>),
    Constant(ConstantStep),
}

impl StepModel {
    pub(crate) fn constant(step: Duration) -> Self {
        Self::Constant(ConstantStep(u64::try_from(step.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl StepTime for StepModel {
    fn step_ns(&mut self, shape: &StepShape) -> u64 {
        match self {
            Self::Physics(physics) => physics.step_ns(shape),
            Self::Constant(constant) => constant.step_ns(shape),
        }
    }
}
