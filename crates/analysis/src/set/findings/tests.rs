//! Tests of each part.

mod knee;
mod kneedle;
mod replicates;
mod scalability;
mod sweet_spot;

use super::*;
