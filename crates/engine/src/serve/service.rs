//! The mode `serve` as the event loop sees it.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use inferometer_model::spec::KvCacheDtype;

use super::answer::ServeAnswer;
use super::api::{self, Serving};
use super::core::{ApiProcess, Core, Pace, StepModel};
use super::vocabulary::Vocabulary;
use crate::clock::{Clock, Moment};
use crate::http::{self, ErrorBody, Request, Route, RouteError};
use crate::metrics::{self, CacheConfig, Labels, MetricNames, Metrics};
use crate::options::{EngineOptions, INTERVAL_MAX, Limits, OptionsError};
use crate::physics::Front;
use crate::profile::{self, Profile};
use crate::scheduler::{Scheduler, SchedulerConfig};
use crate::server::Housekeeping;
use crate::service::{Context, Next, Reply, Service, Written};
use crate::truth::Ended;

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
        let front = ApiProcess::new(serve.front());
        let log_steps = serve.log_steps;
        // The entry of the one model in the list of models.
        options.limits.tokens = scheduler.config().max_model_len;
        Self {
            core: Core::new(scheduler, front, pace, metrics, log_steps),
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

    fn reply(
        &mut self,
        request: &Request<'_>,
        visit: Context<'_>,
    ) -> (Handler, Reply<ServeAnswer>) {
        if !self.admits(request) {
            return (Handler::None, Reply::Plain(api::unauthorized()));
        }
        let route = match http::route(request) {
            Ok(route) => route,
            Err(RouteError::UnknownPath { .. }) => {
                return (Handler::None, Reply::Plain(api::unknown_path()));
            }
            Err(RouteError::WrongMethod { allowed, .. }) => {
                return (Handler::None, Reply::Plain(api::method_not_allowed(allowed)));
            }
        };
        let reply = match route {
            Route::Generate(api) => self
                .generate(api, request, visit)
                .map_or_else(|error| Reply::Plain(error.reply()), Reply::Generated),
            Route::Metrics => Reply::Plain(self.metrics()),
            Route::Steps => Reply::Plain(self.steps()),
            Route::Tokenizer => Reply::Plain(self.tokenizer()),
            Route::TokenizerConfig => {
                let length = self.core.config().max_model_len;
                let json = self.vocabulary.tokenizer_config_json(length);
                Reply::Plain(http::body("application/json", json.into_bytes()))
            }
            Route::Tokenize => plain(api::tokenize(request.body, &self.serving())),
            Route::Detokenize => plain(api::detokenize(request.body, &self.serving())),
            Route::ReadTruth => {
                self.house.ledger.set_steps(self.core.step_lateness());
                Reply::Plain(self.house.reply(route, request.path, visit.clock))
            }
            Route::ClearTruth => {
                self.core.forget_lateness();
                Reply::Plain(self.house.reply(route, request.path, visit.clock))
            }
            Route::Health | Route::Version | Route::Models => {
                Reply::Plain(self.house.reply(route, request.path, visit.clock))
            }
        };
        (Handler::Route(route), reply)
    }

    /// Whether the request has the key, where it needs one.
    fn admits(&self, request: &Request<'_>) -> bool {
        let Some(key) = &self.house.options.serve.api_key else { return true };
        if !request.path.starts_with("/v1") {
            return true;
        }
        request.keys.any(|given| key.is(given))
    }

    fn metrics(&self) -> Rc<Vec<u8>> {
        let mut text = String::new();
        self.core.render_metrics(&mut text);
        http::body(metrics::CONTENT_TYPE, text.into_bytes())
    }

    fn steps(&self) -> Rc<Vec<u8>> {
        if let Some(log) = self.core.log() {
            return http::body("application/jsonl", log.text());
        }
        let message = "steps are not logged; start the engine with --log-steps";
        ErrorBody::new(http::Status::NotFound, message.to_owned()).reply()
    }

    fn tokenizer(&mut self) -> Rc<Vec<u8>> {
        let vocabulary = self.vocabulary;
        let made = self.tokenizer.get_or_insert_with(|| {
            http::body("application/json", vocabulary.tokenizer_json().into_bytes())
        });
        Rc::clone(made)
    }

    fn end(&mut self, answer: &ServeAnswer, tokens: u32, ended: Ended) {
        self.house.ledger.set_tokens(answer.entry, tokens);
        self.house.ledger.close(answer.entry, ended);
    }
}

impl Service for Serve {
    type Answer = ServeAnswer;

    const KEEPS_TRUTH: bool = true;

    fn answer(&mut self, request: &Request<'_>, visit: Context<'_>) -> Reply<ServeAnswer> {
        let (handler, reply) = self.reply(request, visit);
        let status = match &reply {
            Reply::Plain(bytes) => http::status_of(bytes),
            Reply::Generated(_) => http::Status::Ok.code(),
        };
        self.core.metrics_mut().answered(handler.name(), method(request), status);
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
        Next::Write(answer.write.rest())
    }

    fn wrote(&mut self, answer: &mut ServeAnswer, written: &Written) {
        let due = answer.write.due;
        let passed = answer.write.pass(written.bytes);
        self.house.ledger.written(answer.entry, due, written, passed);
    }

    fn completed(&mut self, answer: ServeAnswer) {
        let flight = self.core.flights().close(answer.flight);
        self.end(&answer, flight.map_or(0, |flight| flight.tokens()), Ended::Complete);
    }

    fn abandoned(&mut self, answer: ServeAnswer, clock: &Clock) {
        let flight = self.core.abandon(answer.flight, clock.now());
        self.end(&answer, flight.map_or(0, |flight| flight.tokens()), Ended::Aborted);
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

/// What of the server a request met, for the metrics.
#[derive(Clone, Copy, Debug)]
enum Handler {
    Route(Route),
    None,
}

impl Handler {
    fn name(self) -> &'static str {
        match self {
            Self::Route(route) => route.path(),
            Self::None => "none",
        }
    }
}

fn plain(result: Result<Rc<Vec<u8>>, ErrorBody>) -> Reply<ServeAnswer> {
    Reply::Plain(result.unwrap_or_else(|error| error.reply()))
}

fn method(request: &Request<'_>) -> &'static str {
    ["GET", "POST", "DELETE"].into_iter().find(|known| *known == request.method).unwrap_or("other")
}

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
        }
    }
}

impl ServeOptions {
    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        if !(SPEED_MIN..=SPEED_MAX).contains(&self.speed) {
            return Err(OptionsError::BadSpeed(self.speed));
        }
        if self.step.is_some_and(|step| step.is_zero()) {
            return Err(OptionsError::Zero { name: "step" });
        }
        if let Some(interval) = self.step.filter(|step| INTERVAL_MAX < *step) {
            return Err(OptionsError::LongInterval { name: "step", interval });
        }
        Ok(())
    }

    pub(crate) fn step_model(&self, seed: u64) -> StepModel {
        match self.step {
            Some(step) => StepModel::constant(step),
            None => StepModel::Physics(Box::new(self.profile.step_time(seed))),
        }
    }

    /// With a constant step nothing but the steps takes time, as in a simulation of one.
    pub(crate) fn front(&self) -> Front {
        if self.step.is_some() { Front::IMMEDIATE } else { self.profile.front }
    }

    pub(crate) fn labels(&self, model: &str, config: &SchedulerConfig, unix_s: u64) -> Labels {
        let choice = self.profile.choice();
        Labels {
            model: model.to_owned(),
            max_model_len: config.max_model_len,
            cache: CacheConfig {
                block_size: config.block_size,
                blocks: config.blocks,
                prefix_caching: config.prefix_caching,
                dtype: match choice.kv_cache_dtype.as_ref().map(|dtype| dtype.value) {
                    Some(KvCacheDtype::Fp8) => "fp8".to_owned(),
                    None | Some(KvCacheDtype::Auto) => "auto".to_owned(),
                },
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
