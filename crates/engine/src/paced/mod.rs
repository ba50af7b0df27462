//! The paced mode: tokens on a schedule that is fixed when the request arrives, and the truth of
//! what became of it.

mod answer;
mod prompt;
mod request;
mod service;

pub(crate) use service::Paced;
