//! The echo mode as the event loop sees it.

use std::rc::Rc;

use super::cache::{Built, Cache, Key, Script};
use super::scan::scan;
use crate::clock::Clock;
use crate::http::{self, Request, Route};
use crate::ledger::Ledger;
use crate::models::models_reply;
use crate::options::EngineOptions;
use crate::service::{NextWrite, Reply, Service, Written};
use crate::socket::Received;
use crate::truth::Api;

/// Answers as fast as it can.
#[derive(Debug)]
pub(crate) struct Echo {
    options: EngineOptions,
    cache: Cache,
    health: Rc<Vec<u8>>,
    /// Stays empty but for refused connections; `GET /truth` has the same shape in every mode.
    ledger: Ledger,
}

/// A streamed answer that is being written.
#[derive(Debug)]
pub(crate) struct EchoAnswer {
    script: Rc<Script>,
    sent: usize,
    writes_made: usize,
}

impl Echo {
    pub(crate) fn new(options: EngineOptions) -> Self {
        Self {
            ledger: Ledger::new(options.mode, &options.limits),
            options,
            cache: Cache::default(),
            health: http::empty(),
        }
    }

    fn generate(&mut self, api: Api, body: &[u8], clock: &Clock) -> Reply<EchoAnswer> {
        let asked = scan(body);
        let tokens = asked.max_tokens.unwrap_or(self.options.pacing.tokens);
        let key = Key {
            api,
            stream: asked.stream,
            // An answer in one piece always tells usage.
            usage: asked.stream && asked.include_usage,
            tokens: tokens.clamp(1, self.options.limits.tokens),
        };
        match self.cache.answer(key, &self.options, clock) {
            Built::Whole(bytes) => Reply::Plain(bytes),
            Built::Stream(script) => {
                Reply::Generated(EchoAnswer { script, sent: 0, writes_made: 0 })
            }
        }
    }
}

impl Service for Echo {
    type Answer = EchoAnswer;

    const KEEPS_TRUTH: bool = false;

    fn answer(
        &mut self,
        request: &Request<'_>,
        _received: &Received,
        clock: &Clock,
    ) -> Reply<EchoAnswer> {
        let plain = match http::route(request) {
            Ok(Route::Generate(api)) => return self.generate(api, request.body, clock),
            Ok(Route::Health) => Rc::clone(&self.health),
            Ok(Route::Models) => models_reply(&self.options, clock.wall_seconds()),
            Ok(Route::ReadTruth) => http::json(self.ledger.truth()),
            Ok(Route::ClearTruth) => {
                self.ledger.clear();
                http::empty()
            }
            Err(error) => error.reply(),
        };
        Reply::Plain(plain)
    }

    fn next_write<'a>(&mut self, answer: &'a mut EchoAnswer) -> Option<NextWrite<'a>> {
        let end = *answer.script.ends.get(answer.writes_made)?;
        Some(NextWrite { bytes: &answer.script.bytes[answer.sent..end], due: None })
    }

    fn wrote(&mut self, answer: &mut EchoAnswer, written: &Written) {
        answer.sent += written.bytes;
        if answer.script.ends.get(answer.writes_made) == Some(&answer.sent) {
            answer.writes_made += 1;
        }
    }

    fn completed(&mut self, _answer: EchoAnswer) {}

    fn abandoned(&mut self, _answer: EchoAnswer) {}

    fn refused_connection(&mut self) {
        self.ledger.refused_connection();
    }
}
