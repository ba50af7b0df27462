//! What `GET /metrics` returns: the engine's own metrics, in Prometheus text.
//!
//! Pure: it receives the scheduler's events as a [`Listener`] and the front end's by its own
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
//! here they are counted, because this server reports what it does.

mod text;

mod pages;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use strum::VariantArray;

use crate::scheduler::{Counters, Gauges, Generation, Listener, RequestEnd, RequestFacts, Step};
use text::{Histogram, one_two_five};

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
    pub const fn for_generation(generation: Generation) -> Self {
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
    /// Tokens of a draft; zero without speculative decoding.
    pub draft_tokens: u32,
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
    /// Freed when they end, so it is as large as what is under way.
    requests: HashMap<u64, Tracked>,
    /// Requests for several answers, by the first answer's id.
    groups: HashMap<u64, Group>,
    /// Tokens of answers per second, over the last full window, and the window under way.
    tokens_per_s: f64,
    window: Window,
    /// Share of the prompt tokens of the last step with prompts that the cache held.
    hit_rate: f64,
    /// Tokens of the step that ended last, prompts and answers: its tokens come one by one.
    step_tokens: u64,
    /// Cached tokens of the prompts that have a first token.
    cached_prompt_tokens: u64,
    /// Requests that ended by a stop, at their length, and aborted.
    ended: [u64; 3],
    /// HTTP answers by handler, method and status (`2xx`, `4xx`, …), in the order of their coming.
    answers: Vec<((&'static str, &'static str, &'static str), u64)>,
}

impl Metrics {
    pub fn new(names: MetricNames, labels: Labels) -> Self {
        Self {
            names,
            observed: Observed::new(names, labels.max_model_len),
            labels,
            requests: HashMap::new(),
            groups: HashMap::new(),
            tokens_per_s: 0.0,
            window: Window::default(),
            hit_rate: 0.0,
            step_tokens: 0,
            cached_prompt_tokens: 0,
            ended: [0; 3],
            answers: Vec::new(),
        }
    }

    /// The front end got one request for as many answers (`n`) as there are `ids`, by which the
    /// scheduler will know them. To vLLM each of several prompts is a request of its own.
    ///
    /// Without this a request counts as arrived when the scheduler got it, and its time to first
    /// token is known when it ends.
    pub fn arrived(&mut self, ids: &[u64], front_ns: u64) {
        let group = ids.first().copied().filter(|_| ids.len() > 1);
        for id in ids {
            let request = self.requests.entry(*id).or_default();
            (request.front_ns, request.group) = (Some(front_ns), group);
        }
        if let Some(group) = group {
            let asked = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            self.groups.insert(group, Group { asked, to_come: asked, longest: 0, broken: false });
        }
    }

    /// The scheduler refused the request, so nothing more will be reported about it. Like vLLM's, its
    /// only trace is the HTTP answer.
    pub fn refused(&mut self, id: u64) {
        self.leave(id, None);
    }

    /// The client left while its request was still with the front end.
    pub fn left(&mut self, id: u64) {
        self.leave(id, None);
        self.ended[RequestEnd::Abort as usize] += 1;
    }

    /// An HTTP request was answered; `handler` is the route, or `none`.
    pub fn answered(&mut self, handler: &'static str, method: &'static str, status: u16) {
        let classes = ["1xx", "2xx", "3xx", "4xx"];
        let class = usize::from(status / 100).checked_sub(1).and_then(|at| classes.get(at));
        let kind = (handler, method, *class.unwrap_or(&"5xx"));
        match self.answers.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.answers.push((kind, 1)),
        }
    }

    /// Appends the whole text; what the scheduler counts itself is taken from it.
    pub fn render(&self, gauges: Gauges, counters: Counters, out: &mut String) {
        pages::render(self, gauges, counters, out);
    }

    /// All of a prompt is computed.
    fn prompt(&mut self, request: &Tracked) {
        let cached = u64::from(request.cached_tokens);
        self.cached_prompt_tokens += cached;
        self.step_tokens += u64::from(request.computed_tokens).saturating_sub(cached);
    }

    /// A request that has no token yet.
    fn without_token(&mut self, id: u64) -> Option<&mut Tracked> {
        self.requests.get_mut(&id).filter(|request| request.last_token_ns.is_none())
    }

    /// Forgets a request, and returns when the front end got it; `output_tokens` when its answer is
    /// complete. All answers of a request that are complete are counted with the last of them.
    fn leave(&mut self, id: u64, output_tokens: Option<u32>) -> Option<u64> {
        let request = self.requests.remove(&id).unwrap_or_default();
        let key = request.group.unwrap_or(id);
        let alone = Group { asked: 1, to_come: 1, longest: 0, broken: false };
        let mut group = self.groups.remove(&key).unwrap_or(alone);
        group.to_come -= 1;
        group.longest = group.longest.max(output_tokens.unwrap_or(0));
        group.broken |= output_tokens.is_none();
        if group.to_come > 0 {
            self.groups.insert(key, group);
        } else if !group.broken {
            self.observed.of(Seen::Choices).observe(f64::from(group.asked));
            self.observed.of(Seen::LongestAnswer).observe(f64::from(group.longest));
        }
        request.front_ns
    }
}

impl Listener for Metrics {
    fn step_began(&mut self, step: &Step) {
        if step.shape.prefills > 0 {
            let hits: u64 = step.admitted.iter().map(|(_, cached)| u64::from(*cached)).sum();
            let all = (hits + step.shape.prefill_tokens).max(1);
            self.hit_rate = hits as f64 / all as f64;
        }
        for (id, cached) in &step.admitted {
            let request = self.requests.entry(*id).or_default();
            if !request.admitted {
                (request.admitted, request.cached_tokens) = (true, *cached);
            }
        }
    }

    fn step_ended(&mut self, step: &Step) {
        // A step is counted when its last token is known, which is when the next one ends. One
        // without output (chunks of prompts alone) reaches no counter of vLLM's: its tokens are
        // counted with the first token that they lead to.
        if self.step_tokens > 0 {
            self.observed.of(Seen::StepTokens).observe(self.step_tokens as f64);
            self.step_tokens = 0;
        }
        self.window.steps += 1;
        if self.window.steps == STEPS {
            let window_ns = step.ends_ns.saturating_sub(self.window.began_ns).max(1);
            self.tokens_per_s = self.window.tokens as f64 / (window_ns as f64 / 1e9);
            self.window = Window { began_ns: step.ends_ns, steps: 0, tokens: 0 };
        }
        if step.shape.prefills == 0 {
            return;
        }
        // With overlapping steps the next one has begun before this one's tokens are there, so
        // what a prompt has behind it is counted here.
        for (id, cached) in &step.admitted {
            if let Some(request) = self.without_token(*id) {
                // A preempted request begins again, with what the cache still has.
                request.computed_tokens = *cached;
            }
        }
        for (id, tokens) in &step.scheduled {
            if let Some(request) = self.without_token(*id) {
                request.computed_tokens += tokens;
            }
        }
    }

    fn token(&mut self, id: u64, _index: u32, at_ns: u64) {
        self.window.tokens += 1;
        self.step_tokens += 1;
        let Some(request) = self.requests.get_mut(&id) else { return };
        match request.last_token_ns.replace(at_ns) {
            // Tokens of one moment are one output.
            Some(before) if before == at_ns => {}
            Some(before) => {
                self.observed.of(Seen::InterToken).observe_ns(at_ns.saturating_sub(before));
            }
            None => {
                let request = *request;
                self.prompt(&request);
                if let Some(front_ns) = request.front_ns {
                    self.observed.of(Seen::FirstToken).observe_ns(at_ns.saturating_sub(front_ns));
                }
            }
        }
    }

    fn ended(&mut self, facts: &RequestFacts) {
        let complete = facts.end != RequestEnd::Abort;
        if complete && facts.output_tokens == 0 {
            // No token has counted its prompt.
            let request = self.requests.get(&facts.id).copied();
            self.prompt(&request.unwrap_or_default());
        }
        let front_ns = self.leave(facts.id, complete.then_some(facts.output_tokens));
        if let (None, Some(first_ns)) = (front_ns, facts.first_token_ns) {
            self.observed
                .of(Seen::FirstToken)
                .observe_ns(first_ns.saturating_sub(facts.arrived_ns));
        }
        self.ended[facts.end as usize] += 1;
        if complete {
            self.observed.request(facts, front_ns.unwrap_or(facts.arrived_ns));
        }
    }
}

/// What is distributed: times in seconds, and counts of tokens and answers.
#[derive(Clone, Copy, Debug, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
enum Seen {
    FirstToken,
    InterToken,
    PerOutputToken,
    Request,
    Queue,
    Inference,
    Prefill,
    Decode,
    PromptTokens,
    OutputTokens,
    MaxTokens,
    ComputedPromptTokens,
    /// The longest answer of each request.
    LongestAnswer,
    /// Answers asked of each request.
    Choices,
    StepTokens,
}

/// A histogram of each, in their order.
#[derive(Debug)]
struct Observed(Vec<Histogram>);

impl Observed {
    fn new(names: MetricNames, max_model_len: u32) -> Self {
        let server = if names == MetricNames::Sglang { "sglang" } else { "vllm" };
        let histogram = |seen: &Seen| {
            let bounds = pages::bounds(server, seen.into());
            Histogram::new(bounds.unwrap_or(&one_two_five(max_model_len)))
        };
        Self(Seen::VARIANTS.iter().map(histogram).collect())
    }

    fn of(&mut self, seen: Seen) -> &mut Histogram {
        &mut self.0[seen as usize]
    }

    fn named(&self, name: &str) -> Option<&Histogram> {
        let seen: Seen = name.parse().ok()?;
        self.0.get(seen as usize)
    }

    /// A request whose answer is complete.
    fn request(&mut self, facts: &RequestFacts, front_ns: u64) {
        self.of(Seen::Request).observe_ns(facts.ended_ns.saturating_sub(front_ns));
        for (seen, tokens) in [
            (Seen::PromptTokens, facts.prompt_tokens),
            (Seen::OutputTokens, facts.output_tokens),
            (Seen::MaxTokens, facts.max_tokens),
            (Seen::ComputedPromptTokens, facts.prompt_tokens.saturating_sub(facts.cached_tokens)),
        ] {
            self.of(seen).observe(f64::from(tokens));
        }
        if let (Some(scheduled), Some(first), Some(last)) =
            (facts.scheduled_ns, facts.first_token_ns, facts.last_token_ns)
        {
            self.of(Seen::Queue).observe_ns(scheduled.saturating_sub(facts.arrived_ns));
            self.of(Seen::Prefill).observe_ns(first.saturating_sub(scheduled));
            self.of(Seen::Inference).observe_ns(last.saturating_sub(scheduled));
            let decode_ns = last.saturating_sub(first);
            self.of(Seen::Decode).observe_ns(decode_ns);
            let gaps = f64::from(facts.output_tokens.saturating_sub(1).max(1));
            self.of(Seen::PerOutputToken).observe(decode_ns as f64 / 1e9 / gaps);
        }
    }
}

/// Steps that a rate of tokens is taken over, as SGLang does.
const STEPS: u32 = 40;

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    began_ns: u64,
    steps: u32,
    tokens: u64,
}

/// What is known of a request that is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Tracked {
    /// When the front end got it.
    front_ns: Option<u64>,
    last_token_ns: Option<u64>,
    /// Prompt tokens that the cache held when it was first admitted.
    cached_tokens: u32,
    /// Prompt tokens that it has behind it, cached ones as well.
    computed_tokens: u32,
    admitted: bool,
    group: Option<u64>,
}

/// Answers to one request, of which some are still to come.
#[derive(Clone, Copy, Debug)]
struct Group {
    asked: u32,
    to_come: u32,
    /// Tokens of the longest answer.
    longest: u32,
    /// One of them was taken back.
    broken: bool,
}
