//! Tests of `vllm`.

mod vllm;
mod whole;
