//! All integration tests of this crate, in one binary: linking is most of their cost.

mod anatomy;
mod calibration;
mod charts;
mod claims;
mod comparison;
mod docs;
mod document;
mod documents;
mod imports;
mod judged_client;
mod judgements;
mod matrix;
mod narrative;
mod pages;
mod results;
mod samples;
mod sets;
