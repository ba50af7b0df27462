//! What `GET /metrics` says: the engine's own account of itself, in Prometheus text.
//!
//! Pure: it hears of the scheduler's doings as a [`Listener`] and of the front end's by its own
//! methods, and writes text when asked. All moments and durations are engine time, which is what
//! the engine believes has passed: under `--speed 20` a second of it is 50 ms on the wall, and the
//! histograms speak of the second. Only the `_created` samples are wall time.
//!
//! Intervals are vLLM's. Times to the first token and of whole requests begin when the front end
//! got the request; the queue begins when the scheduler got it. Preempted time stays inside the
//! interval that it interrupts. A request with one token has a time per output token of zero.
//!
//! Requests that their clients took back keep the tokens, the first token and the gaps that they
//! had, and are in no histogram of whole requests: so does vLLM. But vLLM forgets them altogether
//! (`finished_reason="abort"` stays at zero when a client leaves, vllm-project/vllm#31503), and
//! here they are counted, because this server says what is true of it.

mod histogram;
mod observed;
mod pace;
mod requests;
mod sglang;
#[cfg(test)]
mod tests;
mod text;
mod vllm;

use self::observed::Observed;
use self::pace::Pace;
use self::requests::{Requests, Tracked};
use crate::scheduler::{Counters, Gauges, Generation, Listener, RequestEnd, RequestFacts, Step};

/// The `content-type` of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=1.0.0; charset=utf-8";

/// Whose names the metrics have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricNames {
    #[default]
    VllmV1,
    VllmV0,
    Sglang,
}

impl MetricNames {
    /// Those of the servers that put their steps together so.
    pub const fn of(generation: Generation) -> Self {
        match generation {
            Generation::V1 => Self::VllmV1,
            Generation::V0 { .. } => Self::VllmV0,
        }
    }
}

/// What does not change while an engine runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    /// The name that the model is served under.
    pub model: String,
    pub max_model_len: u32,
    pub cache: CacheConfig,
    /// When the engine began, for the `_created` samples.
    pub started_unix_s: f64,
}

/// The KV cache, for `cache_config_info`.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheConfig {
    pub block_size: u32,
    /// With the null block, as vLLM counts them.
    pub blocks: u32,
    pub prefix_caching: bool,
    /// `auto`, `fp8`, …
    pub dtype: String,
    pub gpu_memory_utilization: f64,
}

/// Counts what happens, and writes it down on demand.
#[derive(Debug)]
pub struct Metrics {
    names: MetricNames,
    labels: Labels,
    observed: Observed,
    requests: Requests,
    pace: Pace,
    /// Tokens of the step that ended last, prompts and answers: its tokens come one by one.
    step_tokens: u64,
    /// Cached tokens of the prompts that have a first token.
    cached_prompt_tokens: u64,
    ended: Ended,
    answers: Vec<Answers>,
}

/// Requests that are over, by how they ended.
#[derive(Clone, Copy, Debug, Default)]
struct Ended {
    stop: u64,
    length: u64,
    abort: u64,
}

/// HTTP answers of one kind.
#[derive(Clone, Copy, Debug)]
struct Answers {
    handler: &'static str,
    method: &'static str,
    /// `2xx`, `4xx`, …
    status: &'static str,
    count: u64,
}

impl Metrics {
    pub fn new(names: MetricNames, labels: Labels) -> Self {
        Self {
            names,
            observed: Observed::new(names, labels.max_model_len),
            labels,
            requests: Requests::default(),
            pace: Pace::default(),
            step_tokens: 0,
            cached_prompt_tokens: 0,
            ended: Ended::default(),
            answers: Vec::new(),
        }
    }

    /// The front end got a request, which the scheduler will know as `id`.
    ///
    /// Without this the request counts as arrived when the scheduler got it, and its time to first
    /// token is known when it ends.
    pub fn arrived(&mut self, id: u64, front_ns: u64) {
        self.arrived_together(&[id], front_ns);
    }

    /// The front end got one request for several answers (`n`), each of which the scheduler will
    /// know by its own id.
    pub fn arrived_together(&mut self, ids: &[u64], front_ns: u64) {
        self.requests.arrive(ids, front_ns);
    }

    /// The front end got one request for several prompts: to vLLM each is a request of its own,
    /// with as many answers as its group has ids.
    pub fn arrived_in_groups(
        &mut self,
        mut ids: &[u64],
        sizes: impl IntoIterator<Item = usize>,
        front_ns: u64,
    ) {
        for size in sizes {
            let (group, rest) = ids.split_at(size);
            self.arrived_together(group, front_ns);
            ids = rest;
        }
    }

    /// The scheduler refused the request, so nothing more will be heard of it. Like vLLM's, its
    /// only trace is the HTTP answer.
    pub fn refused(&mut self, id: u64) {
        self.requests.leave(id, None);
    }

    /// The client left while its request was still with the front end.
    pub fn left(&mut self, id: u64) {
        self.requests.leave(id, None);
        self.ended.abort += 1;
    }

    /// An HTTP request was answered; `handler` is the route, or `none`.
    pub fn answered(&mut self, handler: &'static str, method: &'static str, status: u16) {
        let status = match status / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        let known = self.answers.iter_mut().find(|answers| {
            answers.handler == handler && answers.method == method && answers.status == status
        });
        match known {
            Some(answers) => answers.count += 1,
            None => self.answers.push(Answers { handler, method, status, count: 1 }),
        }
    }

    /// Appends the whole text; what the scheduler counts itself is taken from it.
    pub fn render(&self, gauges: Gauges, counters: Counters, out: &mut String) {
        match self.names {
            MetricNames::VllmV1 => vllm::render_v1(self, gauges, counters, out),
            MetricNames::VllmV0 => vllm::render_v0(self, gauges, counters, out),
            MetricNames::Sglang => sglang::render(self, gauges, counters, out),
        }
    }

    /// A step is counted when its last token is known, which is when the next one ends.
    fn close_step(&mut self) {
        // A step without output (chunks of prompts alone) reaches no counter of vLLM's: its
        // tokens are counted with the first token that they lead to.
        if self.step_tokens > 0 {
            self.observed.step_tokens.observe(self.step_tokens as f64);
            self.step_tokens = 0;
        }
    }

    /// With the step whose tokens came last.
    fn step_tokens(&self) -> histogram::Histogram {
        let mut complete = self.observed.step_tokens.clone();
        if self.step_tokens > 0 {
            complete.observe(self.step_tokens as f64);
        }
        complete
    }

    /// All of a prompt is computed.
    fn prompt(&mut self, request: &Tracked) {
        let cached = u64::from(request.cached_tokens);
        self.cached_prompt_tokens += cached;
        self.step_tokens += u64::from(request.computed_tokens).saturating_sub(cached);
    }

    fn first_token(&mut self, request: &Tracked, at_ns: u64) {
        self.prompt(request);
        if let Some(front_ns) = request.front_ns {
            self.observed.first_token.observe_ns(at_ns.saturating_sub(front_ns));
        }
    }
}

impl Listener for Metrics {
    fn step_began(&mut self, step: &Step) {
        self.pace.step_began(step);
        for (id, cached) in &step.admitted {
            self.requests.admit(*id, *cached);
        }
    }

    fn step_ended(&mut self, step: &Step) {
        self.close_step();
        self.pace.step_ended(step);
        // With overlapping steps the next one has begun before this one's tokens are there, so
        // what a prompt has behind it is counted here.
        self.requests.compute(step);
    }

    fn token(&mut self, id: u64, _index: u32, at_ns: u64) {
        self.pace.token();
        self.step_tokens += 1;
        let Some(request) = self.requests.get_mut(id) else { return };
        match request.last_token_ns.replace(at_ns) {
            // Tokens of one moment are one output.
            Some(before) if before == at_ns => {}
            Some(before) => self.observed.inter_token.observe_ns(at_ns.saturating_sub(before)),
            None => {
                let request = *request;
                self.first_token(&request, at_ns);
            }
        }
    }

    fn ended(&mut self, facts: &RequestFacts) {
        let complete = facts.end != RequestEnd::Abort;
        if complete && facts.output_tokens == 0 {
            // No token has told of its prompt.
            let request = self.requests.get_mut(facts.id).map(|request| *request);
            self.prompt(&request.unwrap_or_default());
        }
        let left = self.requests.leave(facts.id, complete.then_some(facts.output_tokens));
        if let (None, Some(first_ns)) = (left.front_ns, facts.first_token_ns) {
            self.observed.first_token.observe_ns(first_ns.saturating_sub(facts.arrived_ns));
        }
        match facts.end {
            RequestEnd::Stop => self.ended.stop += 1,
            RequestEnd::Length => self.ended.length += 1,
            RequestEnd::Abort => self.ended.abort += 1,
        }
        if complete {
            let front_ns = left.front_ns.unwrap_or(facts.arrived_ns);
            self.observed.request(facts, front_ns);
        }
        if let Some(choices) = left.choices {
            self.observed.choices(choices);
        }
    }
}
