//! The echo mode as the event loop sees it.

use std::rc::Rc;

use super::cache::{Built, Cache, Key, Script};
use super::scan::scan;
use crate::clock::Clock;
use crate::generation::Dialect;
use crate::housekeeping::Housekeeping;
use crate::http::{self, Request, Route};
use crate::options::EngineOptions;
use crate::service::{Next, NextWrite, Reply, Service, Visit, Written};

/// Answers as fast as it can.
#[derive(Debug)]
pub(crate) struct Echo {
    cache: Cache,
    /// Its ledger stays empty but for refused connections.
    house: Housekeeping,
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
        Self { cache: Cache::default(), house: Housekeeping::new(options) }
    }

    fn generate(&mut self, dialect: Dialect, body: &[u8], clock: &Clock) -> Reply<EchoAnswer> {
        let asked = scan(body);
        let options = &self.house.options;
        let tokens = asked.max_tokens.unwrap_or(options.pacing.tokens);
        let key = Key {
            dialect,
            stream: asked.stream,
            // An answer in one piece always tells usage.
            usage: asked.stream && asked.include_usage,
            tokens: tokens.clamp(1, options.limits.tokens),
        };
        match self.cache.answer(key, options, clock) {
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

    fn answer(&mut self, request: &Request<'_>, visit: Visit<'_>) -> Reply<EchoAnswer> {
        let route = match http::route(request) {
            Ok(route) => route,
            Err(error) => return Reply::Plain(error.reply()),
        };
        if let Route::Generate(api) = route
            && let Some(dialect) = Dialect::of(api)
        {
            return self.generate(dialect, request.body, visit.clock);
        }
        Reply::Plain(self.house.reply(route, request.path, visit.clock))
    }

    fn next<'a>(&mut self, answer: &'a mut EchoAnswer) -> Next<'a> {
        match answer.script.ends.get(answer.writes_made) {
            Some(&end) => {
                Next::Write(NextWrite { bytes: &answer.script.bytes[answer.sent..end], due: None })
            }
            None => Next::End,
        }
    }

    fn wrote(&mut self, answer: &mut EchoAnswer, written: &Written) {
        answer.sent += written.bytes;
        if answer.script.ends.get(answer.writes_made) == Some(&answer.sent) {
            answer.writes_made += 1;
        }
    }

    fn completed(&mut self, _answer: EchoAnswer) {}

    fn abandoned(&mut self, _answer: EchoAnswer, _clock: &Clock) {}

    fn refused_connection(&mut self) {
        self.house.ledger.refused_connection();
    }
}
