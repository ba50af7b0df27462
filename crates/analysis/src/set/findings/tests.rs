//! Tests of each part.

mod knee;
mod kneedle;
mod replicates;
mod sweet_spot;

use super::*;
