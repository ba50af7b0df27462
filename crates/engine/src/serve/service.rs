//! The mode `serve` as the event loop sees it: from a request's body to requests of the scheduler,
//! and from their tokens to bytes.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use inferometer_model::spec::KvCacheDtype;
use inferometer_model::whole::to_u32;

use super::api::{
    self, AnswerWriter, EmbeddingRequest, Extras, Finish, GenerationRequest, ReportForm, Script,
    Serving, StopFound, Usage,
};
use super::core::{ApiProcess, Core, Pace};
use super::flights::{Choice, ClientEvent, Flight, FlightKey, Pending};
use super::vocabulary::{END_OF_SEQUENCE, Vocabulary};
use crate::clock::{Clock, Moment};
use crate::framing::Write;
use crate::generation::{Draws, Identity, Purpose};
use crate::http::{self, ErrorBody, Request, Route, Status};
use crate::metrics::{self, CacheConfig, Labels, MetricNames, Metrics};
use crate::options::{EngineOptions, Limits, OptionsError, check_interval};
use crate::physics::{Front, StepModel};
use crate::profile::{self, Profile};
use crate::scheduler::blocks::{mix, token};
use crate::scheduler::{
    HashedPrompt, RequestEnd, Scheduler, SchedulerConfig, SchedulerRequest, StopRules,
};
use crate::server::{AfterAnswer, Context, Housekeeping, Next, Reply, Service, Written};
use crate::truth::{Api, Ended, Entry, Lateness, RequestTruth};

/// Answers as a vLLM server would, on time, and keeps the truth.
#[derive(Debug)]
pub(crate) struct Serve {
    pub(super) house: Housekeeping,
    pub(super) core: Core,
    pub(super) vocabulary: &'static Vocabulary,
    pub(super) next_ordinal: u64,
    /// Made when it is first asked for.
    tokenizer: Option<Rc<Vec<u8>>>,
}

impl Serve {
    pub(crate) fn new(mut options: EngineOptions, clock: &Clock) -> Self {
        let serve = &options.serve;
        let time = serve.step_model(options.seed);
        let scheduler = Scheduler::new(serve.profile.scheduler.clone(), time);
        let labels = serve.labels(options.model_id(), scheduler.config(), clock.wall_seconds());
        let metrics = Metrics::new(serve.metric_names, labels);
        let pace = Pace::new(clock.now(), serve.speed);
        // With a constant step nothing but the steps takes time, as in a simulation of one.
        let front = if serve.step.is_some() { Front::IMMEDIATE } else { serve.profile.front };
        let (front, log_steps) = (ApiProcess::new(front), serve.log_steps);
        let (jitter, seed) = (options.pacing.jitter, options.seed);
        // The entry of the one model in the list of models.
        options.limits.tokens = scheduler.config().max_model_len;
        Self {
            core: Core::new(scheduler, front, pace, metrics, log_steps).late_by(jitter, seed),
            vocabulary: Vocabulary::standard(),
            next_ordinal: 0,
            tokenizer: None,
            house: Housekeeping::new(options),
        }
    }

    /// A body that is much longer than any prompt may be is refused before it is read.
    pub(crate) fn limits(&self) -> Limits {
        let limits = self.house.options.limits;
        let longest = (limits.tokens as usize).saturating_mul(BYTES_PER_TOKEN);
        Limits { body_bytes: limits.body_bytes.min(longest.max(BODY_BYTES_LEAST)), ..limits }
    }

    pub(super) fn serving(&self) -> Serving<'_> {
        Serving {
            model: self.house.options.model_id(),
            max_model_len: self.core.config().max_model_len,
            vocabulary: self.vocabulary,
        }
    }

    /// The reply, and the path by which the metrics know the route.
    fn reply(
        &mut self,
        request: &Request<'_>,
        context: Context<'_>,
    ) -> (&'static str, Reply<ServeAnswer>) {
        let key = self.house.options.serve.api_key.as_ref();
        let key = key.filter(|_| request.path.starts_with("/v1"));
        if key.is_some_and(|key| !request.keys.any(|given| key.is(given))) {
            let reply = http::framework_error(Status::UNAUTHORIZED, "error", None);
            return ("none", Reply::Plain(reply));
        }
        let route = match http::route(request) {
            Ok(route) => route,
            Err(ErrorBody { status, allow, .. }) => {
                return ("none", Reply::Plain(http::framework_error(status, "detail", allow)));
            }
        };
        let reply =
            match route {
                Route::Generate(api) => match self.generate(api, request, context) {
                    Ok(answer) => return (route.path(), Reply::Generated(answer)),
                    Err(error) => error.reply(),
                },
                Route::Metrics => {
                    let mut text = String::new();
                    self.core.render_metrics(&mut text);
                    http::body(metrics::CONTENT_TYPE, text.into_bytes())
                }
                Route::Steps => {
                    let unlogged = || {
                        let message = "steps are not logged; start the engine with --log-steps";
                        ErrorBody::new(Status::NOT_FOUND, message.to_owned()).reply()
                    };
                    let log = self.core.events.log.as_ref();
                    log.map_or_else(unlogged, |log| http::body("application/jsonl", log.text()))
                }
                Route::ResetCache => {
                    self.core.reset_cache();
                    http::empty()
                }
                Route::Tokenizer => {
                    let vocabulary = self.vocabulary;
                    Rc::clone(self.tokenizer.get_or_insert_with(|| {
                        http::body(http::JSON, vocabulary.tokenizer_json().into_bytes())
                    }))
                }
                Route::TokenizerConfig => {
                    let length = self.core.config().max_model_len;
                    let json = self.vocabulary.tokenizer_config_json(length);
                    http::body(http::JSON, json.into_bytes())
                }
                Route::Tokenize => api::tokenize(request.body, &self.serving())
                    .unwrap_or_else(|error| error.reply()),
                Route::Detokenize => api::detokenize(request.body, &self.serving())
                    .unwrap_or_else(|error| error.reply()),
                Route::ReadTruth
                | Route::ClearTruth
                | Route::Health
                | Route::Version
                | Route::Models => {
                    self.house.ledger.set_steps(&self.core.events.steps);
                    if route == Route::ClearTruth {
                        self.core.events.steps = Lateness::new();
                    }
                    self.house.reply(route, request.path, context.clock)
                }
            };
        (route.path(), Reply::Plain(reply))
    }

    fn end(&mut self, answer: &ServeAnswer, flight: Option<Flight>, ended: Ended) {
        let tokens = flight.map_or(0, |flight| flight.tokens());
        self.house.ledger.set_tokens(answer.entry, tokens);
        self.house.ledger.close(answer.entry, ended);
    }
}

impl Service for Serve {
    type Answer = ServeAnswer;

    const KEEPS_TRUTH: bool = true;

    fn answer(&mut self, request: &Request<'_>, context: Context<'_>) -> Reply<ServeAnswer> {
        let (handler, reply) = self.reply(request, context);
        let status = match &reply {
            Reply::Plain(bytes) => http::status_of(bytes),
            Reply::Generated(_) => Status::OK.0,
        };
        let method = ["GET", "POST", "DELETE"].into_iter().find(|known| *known == request.method);
        self.core.events.metrics.answered(handler, method.unwrap_or("other"), status);
        reply
    }

    fn next<'a>(&mut self, answer: &'a mut ServeAnswer) -> Next<'a> {
        if answer.write.is_sent() {
            if answer.is_last {
                return Next::End;
            }
            if !self.compose(answer) {
                return Next::Wait;
            }
        }
        Next::Write(answer.write.rest(false))
    }

    fn wrote(&mut self, answer: &mut ServeAnswer, written: &Written) {
        let passed = answer.write.pass(written.bytes);
        self.house.ledger.written(answer.entry, answer.write.due, written, passed);
    }

    fn completed(&mut self, answer: ServeAnswer) -> AfterAnswer {
        let flight = self.core.events.flights.close(answer.flight);
        self.end(&answer, flight, Ended::Complete);
        AfterAnswer::Keep
    }

    fn abandoned(&mut self, answer: ServeAnswer, clock: &Clock) {
        let flight = self.core.abandon(answer.flight, clock.now());
        self.end(&answer, flight, Ended::Aborted);
    }

    fn refused_connection(&mut self) {
        self.house.ledger.refused_connection();
    }

    fn next_due(&self) -> Option<Moment> {
        self.core.next_due()
    }

    fn wake(&mut self, now: Moment, ready: &mut Vec<usize>) {
        self.core.wake(now, ready);
    }
}

/// More than any word is likely to have, whatever the script and its escapes.
const BYTES_PER_TOKEN: usize = 64;
/// Several short prompts may come in one body.
const BODY_BYTES_LEAST: usize = 4 << 20;

/// What is served, and how.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub profile: Profile,
    /// Every step takes as long as this, whatever the profile gives.
    pub step: Option<Duration>,
    /// Seconds of the engine that pass in one of the wall.
    pub speed: f64,
    pub metric_names: MetricNames,
    /// Without it `/v1` is closed.
    pub api_key: Option<ApiKey>,
    /// Whether `GET /steps` has the log of all steps.
    pub log_steps: bool,
    pub extras: Extras,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            profile: Profile::named(profile::DEFAULT).expect("the profile is part of this program"),
            step: None,
            speed: 1.0,
            metric_names: MetricNames::default(),
            api_key: None,
            log_steps: false,
            extras: Extras::default(),
        }
    }
}

impl ServeOptions {
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        if !(SPEED_MIN..=SPEED_MAX).contains(&self.speed) {
            let range = format!("choose one between {SPEED_MIN} and {SPEED_MAX}");
            return Err(OptionsError(format!("`speed` is {}; {range}", self.speed)));
        }
        match self.step {
            Some(step) if step.is_zero() => Err(OptionsError::zero("step")),
            step => check_interval("step", step.unwrap_or_default()),
        }
    }

    pub(crate) fn step_model(&self, seed: u64) -> StepModel {
        match self.step {
            Some(step) => StepModel::constant(step),
            None => self.profile.step_model(seed),
        }
    }

    pub(crate) fn labels(&self, model: &str, config: &SchedulerConfig, unix_s: u64) -> Labels {
        let dtype = self.profile.choice().kv_cache_dtype.as_ref().map(|dtype| dtype.value);
        let dtype = if dtype == Some(KvCacheDtype::Fp8) { "fp8" } else { "auto" };
        Labels {
            model: model.to_owned(),
            max_model_len: config.max_model_len,
            draft_tokens: config.speculation.map_or(0, |speculation| speculation.tokens),
            cache: CacheConfig {
                block_size: config.block_size,
                blocks: config.blocks,
                prefix_caching: config.prefix_caching,
                dtype: dtype.to_owned(),
                gpu_memory_utilization: self.profile.memory.utilization,
            },
            started_unix_s: unix_s as f64,
        }
    }
}

/// A secret that clients must know. It is shown nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Vec<u8>);

impl ApiKey {
    /// Surrounding white space, such as a file's last line end, is no part of it; an empty key
    /// would let anyone in, so it is none.
    pub fn new(text: &str) -> Option<Self> {
        let key = text.trim();
        (!key.is_empty()).then(|| Self(key.as_bytes().to_vec()))
    }

    /// Takes as long for a key that is nearly right as for one that is all wrong.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        let mut difference = usize::from(self.0.len() != given.len());
        for (at, byte) in given.iter().enumerate() {
            // A longer key is compared with the own one over and over.
            difference |= usize::from(byte ^ self.0[at % self.0.len()]);
        }
        std::hint::black_box(difference) == 0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(hidden)")
    }
}

pub(crate) const SPEED_MIN: f64 = 0.001;
pub(crate) const SPEED_MAX: f64 = 100_000.0;

/// An answer that is being written.
#[derive(Debug)]
pub(crate) struct ServeAnswer {
    pub(super) flight: FlightKey,
    pub(super) entry: Entry,
    form: Form,
    pub(super) write: Write,
    /// All bytes have been made.
    pub(super) is_last: bool,
}

/// The content of the answer, and its form.
#[derive(Debug)]
enum Form {
    Generated(Box<Generated>),
    Embeddings { ask: EmbeddingRequest, id: u64, created_s: u64 },
}

/// Text, token by token or in one piece.
#[derive(Debug)]
struct Generated {
    wording: AnswerWriter,
    choices: Vec<ChoicePlan>,
    /// The form in which the engine reports its times, and its speed.
    report: Option<(ReportForm, f64)>,
}

/// What decides the tokens of one choice, and its end.
#[derive(Clone, Copy, Debug)]
struct ChoicePlan {
    seed: u64,
    eos_at: Option<u32>,
    /// Only where it ends the answer before anything else does.
    stop: Option<StopFound>,
    min_tokens: u32,
    max_tokens: u32,
}

impl ChoicePlan {
    /// Tokens with a text, if no stop string ends the answer.
    fn words_at_most(&self) -> u32 {
        self.eos_at.map_or(self.max_tokens, |end| self.max_tokens.min(end - 1))
    }

    fn id_at(&self, index: u32) -> u32 {
        if self.eos_at == Some(index + 1) { END_OF_SEQUENCE } else { token(self.seed, index) }
    }

    /// Why an answer of so many tokens is over.
    fn finish(&self, end: RequestEnd, tokens: u32) -> Finish {
        match (end, self.stop) {
            (RequestEnd::Length, _) => Finish::Length,
            (RequestEnd::Abort, _) => Finish::Abort,
            (RequestEnd::Stop, Some(stop)) if self.eos_at != Some(tokens) => stop.finish,
            (RequestEnd::Stop, _) => Finish::EndOfSequence,
        }
    }
}

impl Serve {
    pub(super) fn generate(
        &mut self,
        api: Api,
        request: &Request<'_>,
        context: Context<'_>,
    ) -> Result<ServeAnswer, ErrorBody> {
        if api == Api::Embeddings {
            return self.embed(request, context);
        }
        let mut ask = api::parse(api, request.body, &self.serving())?;
        self.check_room(usize::from(ask.choices()), api)?;
        let mut choices = self.plan_choices(&ask)?;
        let scripts = self.scripts(api, request.body, &mut choices);
        // As in vLLM, whose responses ignore the header.
        if api != Api::Responses {
            ask.request_id = request.id_text().or(ask.request_id);
        }
        let ordinal = self.new_ordinal();
        let entry = self.house.ledger.open(RequestTruth {
            streamed: ask.streamed,
            prompt_tokens: ask.prompt_tokens(),
            right: scripts.first().and_then(|script| Some(script.as_ref()?.is_right)),
            ..RequestTruth::new(ordinal, api, request, context.received)
        });
        let ask = Rc::new(ask);
        let id = self.answer_id(ordinal);
        let created_s = context.clock.wall_seconds();
        let identity = Identity { id, created_s, model: self.house.options.model_id() };
        let mut wording = AnswerWriter::new(Rc::clone(&ask), &identity, self.vocabulary)
            .reasoning(self.house.options.serve.extras.reasoning_tokens);
        for (choice, (plan, script)) in (0..).zip(choices.iter().zip(scripts)) {
            if let Some(stop) = plan.stop {
                wording.cut(choice, stop.kept);
            }
            if let Some(script) = script {
                wording.follow(choice, script);
            }
        }
        let mut write = Write::default();
        if ask.streamed {
            wording.opening(&mut write.bytes);
            write.mark_events();
        }
        let hashed = self.hash_prompts(&ask.prompts);
        let prompts = hashed.iter().flat_map(|prompt| (0..ask.n).map(move |_| prompt));
        let requests = prompts.zip(&choices).map(|(prompt, plan)| SchedulerRequest {
            id: 0,
            prompt: prompt.clone(),
            answer_seed: plan.seed,
            stop: StopRules {
                min_tokens: plan.min_tokens,
                eos_at: plan.eos_at,
                stop_at: plan.stop.map(|stop| stop.tokens),
                max_tokens: plan.max_tokens,
            },
            priority: ask.priority,
        });
        let (prompt_tokens, n) = (ask.prompt_tokens(), ask.n);
        let flight = self.send(requests.collect(), n, prompt_tokens, ask.streamed, context);
        let serve = &self.house.options.serve;
        let report = serve.extras.report.map(|form| (form, serve.speed));
        let form = Form::Generated(Box::new(Generated { wording, choices, report }));
        Ok(ServeAnswer { flight, entry, form, write, is_last: false })
    }

    fn embed(
        &mut self,
        request: &Request<'_>,
        context: Context<'_>,
    ) -> Result<ServeAnswer, ErrorBody> {
        let mut ask = api::parse_embeddings(request.body, &self.serving())?;
        self.check_room(ask.inputs.len(), Api::Embeddings)?;
        ask.request_id = request.id_text();
        let ordinal = self.new_ordinal();
        let tokens = ask.inputs.iter().map(Vec::len).sum::<usize>();
        let prompt_tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
        let entry = self.house.ledger.open(RequestTruth {
            prompt_tokens,
            ..RequestTruth::new(ordinal, Api::Embeddings, request, context.received)
        });
        let stop = StopRules::NO_ANSWER;
        let requests = self.hash_prompts(&ask.inputs).into_iter();
        let requests = requests.map(|prompt| SchedulerRequest {
            id: 0,
            prompt,
            answer_seed: 0,
            stop,
            priority: 0,
        });
        let flight = self.send(requests.collect(), 1, prompt_tokens, false, context);
        let (id, created_s) = (self.answer_id(ordinal), context.clock.wall_seconds());
        let form = Form::Embeddings { ask, id, created_s };
        Ok(ServeAnswer { flight, entry, form, write: Write::default(), is_last: false })
    }

    /// A full queue is reported before any other error.
    fn check_room(&self, choices: usize, api: Api) -> Result<(), ErrorBody> {
        let waiting_max = self.house.options.limits.waiting;
        if self.core.waiting() + choices <= waiting_max {
            return Ok(());
        }
        let message = format!("{waiting_max} requests are waiting already; try again later");
        Err(ErrorBody::new(Status::UNAVAILABLE, message).for_clients_of(api))
    }

    fn new_ordinal(&mut self) -> u64 {
        self.next_ordinal += 1;
        self.next_ordinal - 1
    }

    fn answer_id(&self, ordinal: u64) -> u64 {
        Draws::new(self.house.options.seed, ordinal, Purpose::AnswerId).next()
    }

    /// What every choice will say, and where it ends.
    fn plan_choices(&self, ask: &GenerationRequest) -> Result<Vec<ChoicePlan>, ErrorBody> {
        let mut plans = Vec::with_capacity(usize::from(ask.choices()));
        for prompt in &ask.prompts {
            let prompt_seed = prompt_seed(ask.seed, self.house.options.seed, prompt);
            let max_tokens = ask.most_tokens(prompt, self.core.config().max_model_len).max(1);
            plans.extend((0..ask.n).map(|n| {
                let seed = answer_seed(prompt_seed, n);
                // As in vLLM, the end of sequence itself is none of the least tokens.
                let least = ask.min_tokens.saturating_add(1);
                let eos_at = (!ask.ignore_eos).then(|| natural_length(seed).max(least));
                ChoicePlan { seed, eos_at, stop: None, min_tokens: ask.min_tokens, max_tokens }
            }));
        }
        api::check_search(ask, plans.iter().map(|plan| u64::from(plan.words_at_most())).sum())?;
        for plan in &mut plans {
            let ids = (0..plan.words_at_most()).map(|at| token(plan.seed, at));
            plan.stop = api::stop_at(ids, ask, self.vocabulary);
        }
        Ok(plans)
    }

    /// What choices say that can be right or wrong. Such an answer ends when it is said, whatever length was
    /// asked for, as guided decoding makes it.
    fn scripts(
        &self,
        api: Api,
        body: &[u8],
        choices: &mut [ChoicePlan],
    ) -> Vec<Option<Rc<Script>>> {
        let share = self.house.options.serve.extras.right_answers;
        let share = share.filter(|_| matches!(api, Api::Chat | Api::Completions));
        let body = share.and_then(|share| Some((serde_json::from_slice(body).ok()?, share)));
        let write = |plan: &mut ChoicePlan| {
            let (body, share) = body.as_ref()?;
            let script = Script::new(body, plan.seed, *share)?;
            plan.eos_at = Some(to_u32(script.pieces.len() as f64) + 1);
            (plan.stop, plan.min_tokens) = (None, 0);
            Some(script)
        };
        choices.iter_mut().map(write).collect()
    }

    /// Prompts are hashed once each, however many answers they get.
    fn hash_prompts(&self, prompts: &[Vec<u32>]) -> Vec<HashedPrompt> {
        let block_size = self.core.config().block_size;
        let hashed = |ids: &Vec<u32>| HashedPrompt::of_tokens(ids.iter().copied(), block_size);
        prompts.iter().map(hashed).collect()
    }

    /// Sends requests, `n` for each prompt, to the scheduler, which they reach through the API
    /// process.
    fn send(
        &mut self,
        requests: Vec<SchedulerRequest>,
        n: u16,
        prompt_tokens: u32,
        streamed: bool,
        context: Context<'_>,
    ) -> FlightKey {
        let ids = self.core.new_ids(requests.len());
        let events = &mut self.core.events;
        let flight = events.flights.open(context.slot, streamed, &ids);
        let came_ns = events.pace.engine_ns(context.received.at());
        let at_ns = events.front.take_in(came_ns, prompt_tokens);
        // To vLLM each prompt is a request of its own, with as many answers as it has ids.
        for of_prompt in ids.chunks(usize::from(n.max(1))) {
            events.metrics.arrived(of_prompt, came_ns);
        }
        for (id, request) in ids.into_iter().zip(requests) {
            self.core.arrive(at_ns, SchedulerRequest { id, ..request });
        }
        flight
    }

    /// Puts what is there of an answer into bytes; false if nothing is.
    pub(super) fn compose(&mut self, answer: &mut ServeAnswer) -> bool {
        let flights = &mut self.core.events.flights;
        let per_event = self.house.options.pacing.tokens_per_write;
        let (pending, due) = match flights.next(answer.flight, per_event) {
            ClientEvent::Nothing => return false,
            ClientEvent::One(pending) => (Some(pending), Some(pending.at)),
            ClientEvent::Over(last_at) => (None, last_at),
        };
        answer.is_last = flights.is_over(answer.flight);
        answer.write.clear();
        answer.write.due = due;
        let model = self.house.options.model_id();
        compose(answer, pending, flights.choices(answer.flight), model);
        answer.write.mark_events();
        true
    }
}

fn compose(answer: &mut ServeAnswer, pending: Option<Pending>, choices: &[Choice], model: &str) {
    let ServeAnswer { form, write, is_last, .. } = answer;
    let generated = match form {
        Form::Generated(generated) => generated,
        Form::Embeddings { .. }
            if choices.iter().any(|choice| choice.end == Some(RequestEnd::Abort)) =>
        {
            let message = "an input was aborted before its vector was computed".to_owned();
            let error = ErrorBody::new(Status::INTERNAL_ERROR, message);
            write.bytes = Rc::unwrap_or_clone(error.reply());
            return;
        }
        Form::Embeddings { ask, id, created_s } => {
            let identity = Identity { id: *id, created_s: *created_s, model };
            write.bytes = Rc::unwrap_or_clone(ask.reply(&identity));
            return;
        }
    };
    if !generated.wording.ask.streamed {
        write.bytes = Rc::unwrap_or_clone(generated.whole(choices));
        write.mark_tokens(choices.iter().map(|choice| choice.tokens).sum());
        return;
    }
    if let Some(pending) = pending {
        let plan = generated.choices[usize::from(pending.choice)];
        let tokens = pending.index.map_or(0, |index| index + 1);
        let indices = tokens.saturating_sub(pending.tokens)..tokens;
        let words: Vec<_> = indices.map(|index| (index, plan.id_at(index))).collect();
        let finish = pending.end.map(|end| plan.finish(end, tokens));
        let finish = finish.or(words.is_empty().then_some(Finish::Abort));
        generated.wording.piece(pending.choice, &words, finish, &mut write.bytes);
        write.mark_tokens(pending.tokens);
    }
    if *is_last {
        let usage = generated.usage(choices);
        generated.wording.closing(&usage, &mut write.bytes);
    }
}

impl Generated {
    fn whole(&self, choices: &[Choice]) -> Rc<Vec<u8>> {
        let answered = self.choices.iter().zip(choices).map(|(plan, choice)| {
            let end = choice.end.unwrap_or(RequestEnd::Abort);
            let ids = (0..choice.tokens).map(|index| plan.id_at(index)).collect();
            (ids, plan.finish(end, choice.tokens))
        });
        let answered: Vec<(Vec<u32>, Finish)> = answered.collect();
        self.wording.whole(&answered, &self.usage(choices))
    }

    fn usage(&self, choices: &[Choice]) -> Usage {
        // A prompt counts once, however many answers it gets; so do the tokens cached of it.
        let first_of_prompts = choices.iter().step_by(usize::from(self.wording.ask.n.max(1)));
        Usage {
            prompt_tokens: self.wording.ask.prompt_tokens(),
            completion_tokens: choices.iter().map(|choice| choice.tokens).sum(),
            cached_tokens: first_of_prompts.map(|choice| choice.cached_tokens).sum(),
            // Times are of one answer, as vLLM has it.
            report: match (self.report, choices) {
                (Some((form, speed)), [choice]) => {
                    choice.times.map(|times| (form, times.at_speed(speed)))
                }
                _ => None,
            },
        }
    }
}

/// With how many tokens the answer of a seed ends by itself, its end of sequence included.
pub(crate) fn natural_length(seed: u64) -> u32 {
    let mut draws = Draws::new(seed, 0, Purpose::Length);
    let tokens = MEDIAN_TOKENS * libm::exp(SIGMA * draws.normal());
    to_u32(libm::round(tokens)).max(1)
}

/// The seed of the answers to a prompt: the request's own seed, or else the engine's, and the
/// prompt, because a model does not say the same to everybody.
pub(crate) fn prompt_seed(asked: Option<u64>, engine_seed: u64, prompt: &[u32]) -> u64 {
    let start = asked.map_or(engine_seed ^ PROMPT_SEED, |seed| seed ^ ASKED_SEED);
    prompt.iter().fold(mix(start), |state, id| mix(state ^ u64::from(*id)))
}

/// The seed of one of the answers to a prompt.
pub(crate) fn answer_seed(prompt_seed: u64, sibling: u16) -> u64 {
    if sibling == 0 { prompt_seed } else { mix(prompt_seed ^ u64::from(sibling)) }
}

const MEDIAN_TOKENS: f64 = 256.0;
const SIGMA: f64 = 0.7;

/// Keeps the empty prompt of the seed zero from being zero again.
const PROMPT_SEED: u64 = 0x2545_f491_4f6c_dd1d;
/// Keeps a request's seed from meaning the same as the engine's.
const ASKED_SEED: u64 = 0x9fb2_1c65_1e98_df25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_itself_and_nothing_else() {
        let key = ApiKey::new(" secret\n").unwrap();
        assert!(key.is(b"secret"));
        for wrong in [&b""[..], b"secre", b"secrets", b"secretsecret", b"Secret"] {
            assert!(!key.is(wrong), "{wrong:?}");
        }
        assert_eq!(ApiKey::new(" \n"), None);
        assert_eq!(format!("{key:?}"), "ApiKey(hidden)");
    }
}

#[cfg(test)]
mod generate_tests {
    use super::*;

    #[test]
    fn lengths_are_log_normal_around_their_median() {
        let mut lengths: Vec<u32> = (0..10_001).map(natural_length).collect();
        lengths.sort_unstable();
        let median = lengths[5_000];
        assert!((248..=264).contains(&median), "{median}");
        // One sigma to each side: 256·e^±0.7.
        let (low, high) = (lengths[1_587], lengths[8_413]);
        assert!((121..=133).contains(&low) && (495..=536).contains(&high), "{low} {high}");
    }

    #[test]
    fn the_same_prompt_and_seed_say_the_same_and_choices_differ() {
        let of = |asked, engine, prompt: &[u32], sibling| {
            answer_seed(prompt_seed(asked, engine, prompt), sibling)
        };
        assert_eq!(of(None, 1, &[5, 6], 0), of(None, 1, &[5, 6], 0));
        assert_ne!(of(None, 1, &[5, 6], 0), of(None, 2, &[5, 6], 0));
        assert_ne!(of(None, 1, &[5, 6], 0), of(None, 1, &[6, 5], 0));
        assert_ne!(of(None, 1, &[5, 6], 0), of(None, 1, &[5, 6], 1));
        assert_eq!(of(Some(9), 1, &[5], 0), of(Some(9), 2, &[5], 0));
        assert_ne!(of(Some(9), 1, &[5], 0), of(Some(9), 1, &[6], 0));
        assert_ne!(of(Some(9), 1, &[5], 0), of(None, 9, &[5], 0));
    }
}
