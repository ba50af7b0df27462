//! What other tools would have said of the same run. They mean other things by the same words, so
//! each has its own module, its own types, and nothing in common with our metrics but the facts.

pub mod vllm;
