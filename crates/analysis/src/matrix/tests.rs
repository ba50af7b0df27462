//! Matrices of made-up runs, and what they come to.
