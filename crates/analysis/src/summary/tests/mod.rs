//! Tests of `summary`.

mod number_lists;
mod summary;
