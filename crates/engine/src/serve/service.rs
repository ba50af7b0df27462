//! The mode `serve` as the event loop sees it.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use inferometer_model::spec::KvCacheDtype;

use super::api::{self, Serving};
use super::core::{ApiProcess, Core, Pace};
use super::flights::Flight;
use super::generate::ServeAnswer;
use super::vocabulary::Vocabulary;
use crate::clock::{Clock, Moment};
use crate::http::{self, ErrorBody, Request, Route, Status};
use crate::metrics::{self, CacheConfig, Labels, MetricNames, Metrics};
use crate::options::{EngineOptions, Limits, OptionsError, check_interval};
use crate::physics::{Front, StepModel};
use crate::profile::{self, Profile};
use crate::scheduler::{Scheduler, SchedulerConfig};
use crate::server::Housekeeping;
use crate::service::{Context, Next, Reply, Service, Written};
use crate::truth::{Ended, Lateness};

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

    fn completed(&mut self, answer: ServeAnswer) {
        let flight = self.core.events.flights.close(answer.flight);
        self.end(&answer, flight, Ended::Complete);
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
            None => StepModel::Physics(Box::new(self.profile.step_time(seed))),
        }
    }

    pub(crate) fn labels(&self, model: &str, config: &SchedulerConfig, unix_s: u64) -> Labels {
        let dtype = self.profile.choice().kv_cache_dtype.as_ref().map(|dtype| dtype.value);
        let dtype = if dtype == Some(KvCacheDtype::Fp8) { "fp8" } else { "auto" };
        Labels {
            model: model.to_owned(),
            max_model_len: config.max_model_len,
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
