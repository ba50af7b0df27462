//! Tests of each part.

mod across;
mod cut;
mod enough;
mod reached;
mod served;

use super::*;
