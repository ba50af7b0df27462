//! Charts as SVG, written by ourselves: the same numbers give the same bytes.
//!
//! A [`Figure`] has a title, one sentence that states what it shows, and panels beside each other.
//! Colours are told apart by people who see fewer of them, and marks differ in shape too, so that
//! a print without colour still reads.

mod axis;
mod figure;
mod line;
mod scale;
mod svg;

pub use axis::{Axis, Ticks};
pub use figure::Figure;
pub use line::{Callout, LinePanel, Mark, Series};
