//! Turns, parts and endings of hand-made runs.

mod groups;
mod outcomes;
