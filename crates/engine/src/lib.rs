//! A server whose truth is known, to measure a benchmark client with.
//!
//! It speaks the OpenAI-style HTTP API of an inference server on raw sockets and writes down, for
//! every request, when the kernel received it and when each of its bytes was handed back. A client
//! that claims to know when a token came can be held against that.
//!
//! Four modes: [`Mode::Serve`] answers as a vLLM server on hardware of one's choice would;
//! [`Mode::Paced`] produces tokens on a schedule that is fixed when the request arrives, with
//! hostile framing on demand; [`Mode::Corpus`] plays answers that are written down byte for byte; all
//! three keep the truth at `GET /truth`. [`Mode::Echo`] answers as fast
//! as one core can and keeps none.
//!
//! The event loop (`server`) moves bytes and moments and knows no mode; a mode is a
//! `server::Service` and does no I/O. This crate shares no wire code with the client, because
//! equal mistakes would cancel. It never prints.

mod clock;
mod connection;
pub mod corpus;
mod echo;
mod faults;
mod framing;
mod generation;
mod http;
mod json;
pub mod media;
pub mod metrics;
mod options;
mod paced;
pub mod physics;
mod platform;
pub mod profile;
pub mod scheduler;
mod serve;
mod server;
mod socket;
pub mod truth;

use std::net::SocketAddr;

use clock::Clock;
use server::Server;

pub use faults::{Fault, Faults};
pub use options::{EngineError, EngineOptions, Limits, Mode, OptionsError, Pacing, UnknownName};
pub use serve::{ApiKey, ApiProcess, Extras, ReportForm, ServeOptions};
pub use server::{Stop, StopHandle};

/// Serves until `stop` is triggered; `announce` receives the bound address before the first accept.
pub fn serve(
    options: EngineOptions,
    stop: Stop,
    announce: impl FnOnce(SocketAddr),
) -> Result<(), EngineError> {
    options.check()?;
    let listener = socket::listen(options.address)?;
    platform::make_room_for_files(&listener, options.limits.connections);
    announce(listener.address);
    let limits = options.limits;
    match options.mode {
        Mode::Echo => Server::new(echo::Echo::new(options), limits, listener, stop)?.run(),
        Mode::Paced => Server::new(paced::Paced::new(options), limits, listener, stop)?.run(),
        Mode::Corpus => Server::new(corpus::Corpus::new(options), limits, listener, stop)?.run(),
        Mode::Serve => {
            let service = serve::Serve::new(options, &Clock::start());
            let limits = service.limits();
            Server::new(service, limits, listener, stop)?.run()
        }
    }
}
