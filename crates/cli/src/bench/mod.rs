//! `vllm bench serve` in our own words.
//!
//! Its flags become those of an experiment, so that a bench is drafted, resolved and measured as
//! any `run`; only what it prints and writes is the other tool's. What cannot be done here is in
//! one table, with the reason and a way out.

mod backend;
mod body;
mod dashes;
mod data;
mod figures;
mod pace;
mod profiler;
mod ready;
mod refused;
mod result_file;
mod traffic;
mod whole;
mod words;

pub(crate) use backend::origin;
pub(crate) use dashes::with_dashes;
pub(crate) use profiler::Profiler;
pub(crate) use ready::until_ready;
pub(crate) use refused::Refused;
pub(crate) use result_file::ResultFile;
pub(crate) use traffic::lines as traffic_lines;
pub(crate) use whole::Bench;
pub(crate) use words::theirs;
