//! The paced mode as the event loop sees it.

use super::answer::PacedAnswer;
use super::request::{self, Generation};
use crate::clock::Clock;
use crate::draws::{Draws, Purpose};
use crate::faults::Fault;
use crate::generation::{
    AnswerJson, Identity, Schedule, StreamShape, TokenStream, Words, whole_answer,
};
use crate::http::{self, Request, Route};
use crate::ledger::{Entry, Ledger};
use crate::models::models_reply;
use crate::options::EngineOptions;
use crate::service::{NextWrite, Reply, Service, Written};
use crate::socket::Received;
use crate::truth::{Api, Ended, RequestTruth, WriteTruth};

/// Answers on a schedule and keeps the truth.
#[derive(Debug)]
pub(crate) struct Paced {
    options: EngineOptions,
    ledger: Ledger,
    next_ordinal: u64,
}

impl Paced {
    pub(crate) fn new(options: EngineOptions) -> Self {
        let ledger = Ledger::new(options.mode, &options.limits);
        Self { options, ledger, next_ordinal: 0 }
    }

    fn generate(
        &mut self,
        api: Api,
        request: &Request<'_>,
        received: &Received,
        clock: &Clock,
    ) -> Reply<PacedAnswer> {
        let generation = match request::parse(request.body, api, &self.options) {
            Ok(generation) => generation,
            Err(error) => return Reply::Plain(error.error_body().reply()),
        };
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        let entry = self.open_entry(ordinal, api, request, &generation, received);
        let seed = self.options.seed;
        let identity = Identity {
            id: Draws::new(seed, ordinal, Purpose::AnswerId).next(),
            created_s: clock.wall_seconds(),
            model: self.options.model_id(),
        };
        let plan = Plan {
            api,
            json: AnswerJson::new(api, &identity, generation.prompt_tokens, generation.detail),
            schedule: Schedule::new(received.at(), &generation.pacing, seed, ordinal),
            words: Words::new(seed, ordinal),
        };
        Reply::Generated(plan.answer(entry, &generation))
    }

    fn open_entry(
        &mut self,
        ordinal: u64,
        api: Api,
        request: &Request<'_>,
        generation: &Generation,
        received: &Received,
    ) -> Entry {
        let id = request.id.filter(|id| id.len() <= REQUEST_ID_BYTES);
        self.ledger.open(RequestTruth {
            ordinal,
            request_id: id.map(|id| String::from_utf8_lossy(id).into_owned()),
            api,
            streamed: generation.streamed,
            received_kernel_ns: received.kernel.map(|stamp| stamp.at.ns()),
            received_mapping_error_ns: received.kernel.map(|stamp| stamp.error_ns),
            received_user_ns: received.user.ns(),
            prompt_tokens: generation.prompt_tokens,
            tokens: generation.pacing.tokens,
            writes: Vec::new(),
            ended: Ended::Running,
        })
    }
}

impl Service for Paced {
    type Answer = PacedAnswer;

    const KEEPS_TRUTH: bool = true;

    fn answer(
        &mut self,
        request: &Request<'_>,
        received: &Received,
        clock: &Clock,
    ) -> Reply<PacedAnswer> {
        let plain = match http::route(request) {
            Ok(Route::Generate(api)) => return self.generate(api, request, received, clock),
            Ok(Route::Health) => http::empty(),
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

    fn next_write<'a>(&mut self, answer: &'a mut PacedAnswer) -> Option<NextWrite<'a>> {
        answer.next_write()
    }

    fn wrote(&mut self, answer: &mut PacedAnswer, written: &Written) {
        let due_ns = answer.due_ns();
        let entry = answer.entry();
        let passed = answer.pass(written.bytes);
        let (before_ns, after_ns) = (written.before.ns(), written.after.ns());
        if let Some(due_ns) = due_ns.filter(|_| passed.is_start) {
            let held_up = written.room_since.is_some_and(|room| due_ns < room.ns());
            self.ledger.late(entry, before_ns.saturating_sub(due_ns), held_up);
        }
        let write = WriteTruth {
            due_ns,
            before_ns,
            after_ns,
            bytes: u32::try_from(written.bytes).unwrap_or(u32::MAX),
            events: passed.events,
            tokens: passed.tokens,
        };
        self.ledger.wrote(entry, write);
    }

    fn completed(&mut self, answer: PacedAnswer) {
        self.ledger.close(answer.entry(), Ended::Complete);
    }

    fn abandoned(&mut self, answer: PacedAnswer) {
        self.ledger.close(answer.entry(), Ended::Aborted);
    }

    fn refused_connection(&mut self) {
        self.ledger.refused_connection();
    }
}

/// All that will be said, and when.
#[derive(Debug)]
struct Plan {
    api: Api,
    json: AnswerJson,
    schedule: Schedule,
    words: Words,
}

impl Plan {
    fn answer(self, entry: Entry, generation: &Generation) -> PacedAnswer {
        let (pacing, faults) = (&generation.pacing, generation.faults);
        let byte_wise = faults.contains(Fault::ByteWise);
        if !generation.streamed {
            let due = self.schedule.nth(pacing.tokens);
            let write = whole_answer(&self.json, self.words, pacing.tokens, Some(due));
            return PacedAnswer::in_one_piece(entry, write, byte_wise);
        }
        let shape = StreamShape::new(self.api, pacing, generation.include_usage, faults);
        let stream = TokenStream::new(shape, self.json, self.schedule, self.words);
        PacedAnswer::streamed(entry, stream, byte_wise)
    }
}

/// Longer ids than any client makes are not kept: the truth is bounded.
const REQUEST_ID_BYTES: usize = 256;
