//! What every mode answers in the same way: health, the list of models, the truth.

use std::rc::Rc;

use crate::clock::Clock;
use crate::http::{self, ErrorBody, Route, Status};
use crate::ledger::Ledger;
use crate::models::models_reply;
use crate::options::EngineOptions;

/// The routes that are the same in every mode, and what they need.
#[derive(Debug)]
pub(crate) struct Housekeeping {
    pub(crate) options: EngineOptions,
    pub(crate) ledger: Ledger,
    health: Rc<Vec<u8>>,
    version: Rc<Vec<u8>>,
}

impl Housekeeping {
    pub(crate) fn new(options: EngineOptions) -> Self {
        let ledger = Ledger::new(options.mode, &options.limits);
        let version = http::json(&serde_json::json!({ "version": env!("CARGO_PKG_VERSION") }));
        Self { options, ledger, health: http::empty(), version }
    }

    /// The reply, also for a route that only another mode has.
    pub(crate) fn reply(&mut self, route: Route, path: &str, clock: &Clock) -> Rc<Vec<u8>> {
        match route {
            Route::Health => Rc::clone(&self.health),
            Route::Version => Rc::clone(&self.version),
            Route::Models => models_reply(&self.options, clock.wall_seconds()),
            Route::ReadTruth => http::json(self.ledger.truth()),
            Route::ClearTruth => {
                self.ledger.clear();
                http::empty()
            }
            Route::Generate(_)
            | Route::Metrics
            | Route::Steps
            | Route::Tokenizer
            | Route::TokenizerConfig
            | Route::Tokenize
            | Route::Detokenize => {
                let mode = self.options.mode;
                let message = format!("there is nothing at `{path}` in mode {mode}");
                ErrorBody::new(Status::NotFound, message).reply()
            }
        }
    }
}
