//! From a request's body to requests of the scheduler, and from their tokens to bytes.

use std::rc::Rc;

use super::answer::{ChoicePlan, Form, Generated, ServeAnswer, TokenWrite};
use super::api::{self, Answered, Ask, Endpoint, Finish, Identity, Said, Usage, Wording};
use super::flights::{Choice, FlightKey, News, Pending};
use super::length::{answer_seed, natural_length};
use super::service::Serve;
use crate::draws::{Draws, Purpose};
use crate::http::{ErrorBody, Request, Status};
use crate::ledger::Entry;
use crate::scheduler::tokens::token;
use crate::scheduler::{HashedPrompt, RequestEnd, SchedulerRequest, StopRules};
use crate::service::Visit;
use crate::truth::{Api, Ended, RequestTruth};

impl Serve {
    pub(super) fn generate(
        &mut self,
        api: Api,
        request: &Request<'_>,
        visit: Visit<'_>,
    ) -> Result<ServeAnswer, ErrorBody> {
        let endpoint = match api {
            Api::Chat => Endpoint::Chat,
            Api::Completions => Endpoint::Completions,
            Api::Responses => Endpoint::Responses,
            Api::Messages => Endpoint::Messages,
            Api::Embeddings => return self.embed(request, visit),
        };
        let ask = api::parse(endpoint, request.body, &self.serving())?;
        self.check_room(usize::from(ask.choices()))?;
        let ordinal = self.new_ordinal();
        let entry = self.open_entry(&Opening {
            ordinal,
            api,
            streamed: ask.streamed,
            prompt_tokens: ask.prompt_tokens(),
            request,
            visit,
        });
        let ask = Rc::new(ask);
        let id = self.answer_id(ordinal);
        let created_s = visit.clock.wall_seconds();
        let identity = Identity { id, created_s, model: self.house.options.model_id() };
        let mut wording = Wording::new(Rc::clone(&ask), &identity, self.vocabulary);
        let choices: Vec<ChoicePlan> = (0..ask.choices()).map(|c| self.plan(&ask, c)).collect();
        for (choice, plan) in (0..).zip(&choices) {
            if let Some(stop) = plan.stop {
                wording.cut(choice, stop.kept);
            }
        }
        let mut write = TokenWrite::default();
        if ask.streamed {
            wording.opening(&mut write.bytes);
        }
        let flight = self.take_off(&ask, &choices, visit);
        let form = Form::Generated(Box::new(Generated { ask, wording, choices }));
        Ok(ServeAnswer { flight, entry, form, write, is_last: false })
    }

    fn embed(&mut self, request: &Request<'_>, visit: Visit<'_>) -> Result<ServeAnswer, ErrorBody> {
        let ask = api::parse_embeddings(request.body, &self.serving())?;
        self.check_room(ask.inputs.len())?;
        let ordinal = self.new_ordinal();
        let prompt_tokens = length_of(&ask.inputs);
        let api = Api::Embeddings;
        let entry = self.open_entry(&Opening {
            ordinal,
            api,
            streamed: false,
            prompt_tokens,
            request,
            visit,
        });
        let requests = ask.inputs.iter().map(|input| (input.as_slice(), 0, StopRules::NO_ANSWER));
        let requests: Vec<Planned<'_>> = requests
            .map(|(prompt, answer_seed, stop)| Planned { prompt, answer_seed, stop, priority: 0 })
            .collect();
        let flight = self.send(&requests, prompt_tokens, false, visit);
        let (id, created_s) = (self.answer_id(ordinal), visit.clock.wall_seconds());
        let form = Form::Embeddings { ask, id, created_s };
        Ok(ServeAnswer { flight, entry, form, write: TokenWrite::default(), is_last: false })
    }

    /// A queue that is full is said before anything else is.
    fn check_room(&self, choices: usize) -> Result<(), ErrorBody> {
        let waiting_max = self.house.options.limits.waiting;
        if waiting_max < self.core.waiting() + choices {
            let message = format!("{waiting_max} requests are waiting already; try again later");
            return Err(ErrorBody::new(Status::Unavailable, message));
        }
        Ok(())
    }

    fn new_ordinal(&mut self) -> u64 {
        self.next_ordinal += 1;
        self.next_ordinal - 1
    }

    fn answer_id(&self, ordinal: u64) -> u64 {
        Draws::new(self.house.options.seed, ordinal, Purpose::AnswerId).next()
    }

    fn open_entry(&mut self, opening: &Opening<'_>) -> Entry {
        let Visit { received, .. } = opening.visit;
        self.house.ledger.open(RequestTruth {
            ordinal: opening.ordinal,
            request_id: opening.request.id_text(),
            api: opening.api,
            streamed: opening.streamed,
            received_kernel_ns: received.kernel.map(|stamp| stamp.at.ns()),
            received_mapping_error_ns: received.kernel.map(|stamp| stamp.error_ns),
            received_user_ns: received.user.ns(),
            prompt_tokens: opening.prompt_tokens,
            tokens: 0,
            writes: Vec::new(),
            ended: Ended::Running,
        })
    }

    /// What a choice will say, and where it ends.
    fn plan(&self, ask: &Ask, choice: u16) -> ChoicePlan {
        let prompt = ask.prompt_of(choice);
        // Without a seed of its own the same prompt gets the same answer wherever it stands.
        let sibling = if ask.seed.is_some() { choice } else { choice % ask.n.max(1) };
        let seed = answer_seed(ask.seed, self.house.options.seed, prompt, sibling);
        // As in vLLM, the end of sequence itself is none of the least tokens.
        let eos_at =
            (!ask.ignore_eos).then(|| natural_length(seed).max(ask.min_tokens.saturating_add(1)));
        let max_tokens = ask.most_tokens(prompt, self.core.config().max_model_len).max(1);
        let said = eos_at.map_or(max_tokens, |end| max_tokens.min(end - 1));
        let stop = api::stop_at((0..said).map(|at| token(seed, at)), ask, self.vocabulary);
        ChoicePlan { seed, eos_at, stop, max_tokens }
    }

    fn take_off(&mut self, ask: &Ask, choices: &[ChoicePlan], visit: Visit<'_>) -> FlightKey {
        let requests: Vec<Planned<'_>> = (0..)
            .zip(choices)
            .map(|(choice, plan)| Planned {
                prompt: ask.prompt_of(choice),
                answer_seed: plan.seed,
                stop: plan.rules(ask.min_tokens),
                priority: ask.priority,
            })
            .collect();
        self.send(&requests, ask.prompt_tokens(), ask.streamed, visit)
    }

    /// Sends requests to the scheduler, which they reach through the API process.
    fn send(
        &mut self,
        requests: &[Planned<'_>],
        prompt_tokens: u32,
        streamed: bool,
        visit: Visit<'_>,
    ) -> FlightKey {
        let ids = self.core.new_ids(requests.len());
        let flight = self.core.flights().open(visit.slot, streamed, &ids);
        let came_ns = self.core.engine_ns(visit.received.at());
        let at_ns = self.core.take_in(came_ns, prompt_tokens);
        let of_prompts = requests.chunk_by(|one, other| std::ptr::eq(one.prompt, other.prompt));
        self.core.metrics_mut().arrived_in_groups(&ids, of_prompts.map(<[_]>::len), came_ns);
        let block_size = self.core.config().block_size;
        for (id, planned) in ids.into_iter().zip(requests) {
            let request = SchedulerRequest {
                id,
                prompt: HashedPrompt::of_tokens(planned.prompt.iter().copied(), block_size),
                answer_seed: planned.answer_seed,
                stop: planned.stop,
                priority: planned.priority,
            };
            self.core.arrive(at_ns, request);
        }
        flight
    }

    /// Puts what is there of an answer into bytes; false if nothing is.
    pub(super) fn compose(&mut self, answer: &mut ServeAnswer) -> bool {
        let news = self.core.flights().next(answer.flight);
        let (pending, due) = match news {
            News::Nothing => return false,
            News::One(pending) => (Some(pending), Some(pending.at)),
            News::Over(last_at) => (None, last_at),
        };
        let flights = self.core.flights();
        answer.is_last = flights.is_over(answer.flight);
        let model = self.house.options.model_id();
        answer.write.clear();
        answer.write.due = due;
        compose(answer, pending, flights.choices(answer.flight), model);
        true
    }
}

/// What is known when a request's truth begins.
struct Opening<'a> {
    ordinal: u64,
    api: Api,
    streamed: bool,
    prompt_tokens: u32,
    request: &'a Request<'a>,
    visit: Visit<'a>,
}

/// One request of the scheduler, ahead of its id.
struct Planned<'a> {
    prompt: &'a [u32],
    answer_seed: u64,
    stop: StopRules,
    priority: i32,
}

fn compose(answer: &mut ServeAnswer, pending: Option<Pending>, choices: &[Choice], model: &str) {
    let ServeAnswer { form, write, is_last, .. } = answer;
    let generated = match form {
        Form::Generated(generated) => generated,
        Form::Embeddings { ask, id, created_s } => {
            let identity = Identity { id: *id, created_s: *created_s, model };
            write.bytes = Rc::unwrap_or_clone(ask.reply(&identity));
            return;
        }
    };
    if !generated.ask.streamed {
        write.bytes = Rc::unwrap_or_clone(generated.whole(choices));
        write.mark_tokens(choices.iter().map(|choice| choice.tokens).sum());
        return;
    }
    if let Some(pending) = pending {
        generated.say(&pending, &mut write.bytes);
        write.mark_tokens(u32::from(pending.index.is_some()));
    }
    if *is_last {
        let usage = generated.usage(choices);
        generated.wording.closing(&usage, &mut write.bytes);
    }
}

impl Generated {
    fn say(&mut self, pending: &Pending, out: &mut Vec<u8>) {
        let choice = pending.choice;
        let plan = self.choices[usize::from(choice)];
        let finish_with = |tokens| pending.end.map(|end| plan.finish(end, tokens));
        if let Some(index) = pending.index {
            let finish = finish_with(index + 1);
            self.wording.token(&Said { choice, index, id: plan.id_at(index), finish }, out);
        } else {
            let finish = finish_with(0).unwrap_or(Finish::Abort);
            self.wording.finish(choice, finish, out);
        }
    }

    fn whole(&self, choices: &[Choice]) -> Rc<Vec<u8>> {
        let answered: Vec<Answered> = self
            .choices
            .iter()
            .zip(choices)
            .map(|(plan, choice)| Answered {
                ids: (0..choice.tokens).map(|index| plan.id_at(index)).collect(),
                finish: plan.finish(choice.end.unwrap_or(RequestEnd::Abort), choice.tokens),
            })
            .collect();
        self.wording.whole(&answered, &self.usage(choices))
    }

    fn usage(&self, choices: &[Choice]) -> Usage {
        // A prompt counts once, however many answers it gets; so do the tokens cached of it.
        let first_of_prompts = choices.iter().step_by(usize::from(self.ask.n.max(1)));
        Usage {
            prompt_tokens: self.ask.prompt_tokens(),
            completion_tokens: choices.iter().map(|choice| choice.tokens).sum(),
            cached_tokens: first_of_prompts.map(|choice| choice.cached_tokens).sum(),
        }
    }
}

fn length_of(prompts: &[Vec<u32>]) -> u32 {
    u32::try_from(prompts.iter().map(Vec::len).sum::<usize>()).unwrap_or(u32::MAX)
}
