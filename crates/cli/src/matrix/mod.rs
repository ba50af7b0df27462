//! Matrices as data: hardware presets, models and what else is varied, built in or in a file, and
//! what comes of one together with flags.
//!
//! A file is read by its schema (`file`), multiplied out (`expand`), narrowed (`only`), and each
//! cell becomes a whole spec (`cell`, `template`). Nothing is deployed here.

mod axes;
mod builtin;
mod cell;
mod expand;
mod file;
mod list;
mod only;
mod plan;
mod rule;
mod sameness;
pub(crate) mod schema;
mod tables;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use builtin::shown;
pub(crate) use list::listed;
pub(crate) use only::Selection;
pub(crate) use plan::plan;
pub(crate) use sameness::needed;
