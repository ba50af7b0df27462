//! The paced mode as the event loop sees it.

use super::answer::PacedAnswer;
use super::request::{self, Generation};
use crate::clock::Clock;
use crate::draws::{Draws, Purpose};
use crate::faults::Fault;
use crate::generation::{
    AnswerJson, Dialect, Identity, Schedule, StreamShape, TokenStream, Words, whole_answer,
};
use crate::housekeeping::Housekeeping;
use crate::http::{self, Request, Route};
use crate::ledger::Entry;
use crate::options::EngineOptions;
use crate::service::{Next, Reply, Service, Visit, Written};
use crate::socket::Received;
use crate::truth::{Ended, RequestTruth};

/// Answers on a schedule and keeps the truth.
#[derive(Debug)]
pub(crate) struct Paced {
    house: Housekeeping,
    next_ordinal: u64,
}

impl Paced {
    pub(crate) fn new(options: EngineOptions) -> Self {
        Self { house: Housekeeping::new(options), next_ordinal: 0 }
    }

    fn generate(
        &mut self,
        dialect: Dialect,
        request: &Request<'_>,
        visit: Visit<'_>,
    ) -> Reply<PacedAnswer> {
        let received = visit.received;
        let generation = match request::parse(request.body, dialect, &self.house.options) {
            Ok(generation) => generation,
            Err(error) => return Reply::Plain(error.error_body().reply()),
        };
        let ordinal = self.next_ordinal;
        self.next_ordinal += 1;
        let entry = self.open_entry(ordinal, dialect, request, &generation, received);
        let options = &self.house.options;
        let seed = options.seed;
        let identity = Identity {
            id: Draws::new(seed, ordinal, Purpose::AnswerId).next(),
            created_s: visit.clock.wall_seconds(),
            model: options.model_id(),
        };
        let plan = Plan {
            dialect,
            json: AnswerJson::new(dialect, &identity, generation.prompt_tokens, generation.detail),
            schedule: Schedule::new(received.at(), &generation.pacing, seed, ordinal),
            words: Words::new(seed, ordinal),
        };
        Reply::Generated(plan.answer(entry, &generation))
    }

    fn open_entry(
        &mut self,
        ordinal: u64,
        dialect: Dialect,
        request: &Request<'_>,
        generation: &Generation,
        received: &Received,
    ) -> Entry {
        self.house.ledger.open(RequestTruth {
            ordinal,
            request_id: request.id_text(),
            api: dialect.api(),
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

    fn answer(&mut self, request: &Request<'_>, visit: Visit<'_>) -> Reply<PacedAnswer> {
        let route = match http::route(request) {
            Ok(route) => route,
            Err(error) => return Reply::Plain(error.reply()),
        };
        if let Route::Generate(api) = route
            && let Some(dialect) = Dialect::of(api)
        {
            return self.generate(dialect, request, visit);
        }
        Reply::Plain(self.house.reply(route, request.path, visit.clock))
    }

    fn next<'a>(&mut self, answer: &'a mut PacedAnswer) -> Next<'a> {
        answer.next_write().map_or(Next::End, Next::Write)
    }

    fn wrote(&mut self, answer: &mut PacedAnswer, written: &Written) {
        let due = answer.due();
        let passed = answer.pass(written.bytes);
        self.house.ledger.written(answer.entry(), due, written, passed);
    }

    fn completed(&mut self, answer: PacedAnswer) {
        self.house.ledger.close(answer.entry(), Ended::Complete);
    }

    fn abandoned(&mut self, answer: PacedAnswer, _clock: &Clock) {
        self.house.ledger.close(answer.entry(), Ended::Aborted);
    }

    fn refused_connection(&mut self) {
        self.house.ledger.refused_connection();
    }
}

/// All that will be said, and when.
#[derive(Debug)]
struct Plan {
    dialect: Dialect,
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
        let shape = StreamShape::new(self.dialect, pacing, generation.include_usage, faults);
        let stream = TokenStream::new(shape, self.json, self.schedule, self.words);
        PacedAnswer::streamed(entry, stream, byte_wise)
    }
}
