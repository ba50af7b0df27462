//! Tests of `series`.

mod clustered;
mod pooled;
