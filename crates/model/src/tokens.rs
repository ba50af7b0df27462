//! Counting tokens, without knowing whose.

use std::fmt;

/// Something that knows how many tokens a text is.
pub trait TokenCounter: Send + Sync + fmt::Debug {
    fn count(&self, text: &str) -> usize;
}
