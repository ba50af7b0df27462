//! One line of `steps.jsonl`.

use inferometer_engine::scheduler::{Policy, SchedulerConfig};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Workload {
    pub(crate) family: String,
    pub(crate) config: Config,
    pub(crate) requests: Vec<Request>,
    steps: Vec<Steps>,
}

/// The options, in the words of [`SchedulerConfig`].
#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    block_size: u32,
    pub(crate) blocks: u32,
    max_num_seqs: u32,
    max_num_batched_tokens: u32,
    max_model_len: u32,
    long_prefill_token_threshold: u32,
    chunked_prefill: bool,
    prefix_caching: bool,
    reserve_full_prompt: bool,
    watermark: f64,
    policy: String,
}

/// In the order of its fields in the file.
#[derive(Deserialize)]
pub(crate) struct Request {
    /// The moment of its arrival, in steps.
    pub(crate) at: u64,
    pub(crate) prompt: Vec<(u64, u32)>,
    pub(crate) answer_seed: u64,
    pub(crate) max_tokens: u32,
    pub(crate) priority: i32,
    /// The moment at which its client leaves.
    pub(crate) abort: Option<u64>,
}

/// Steps at consecutive moments that are alike, but for whom the first preempts and admits.
#[derive(Deserialize)]
struct Steps {
    moment: u64,
    scheduled: Vec<u32>,
    preempted: Vec<u64>,
    admitted: Vec<u32>,
    free: u32,
    times: u64,
}

/// What there is to say of one step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) moment: u64,
    pub(crate) scheduled: Vec<(u64, u32)>,
    pub(crate) preempted: Vec<u64>,
    pub(crate) admitted: Vec<(u64, u32)>,
    /// Blocks that are free once it was put together.
    pub(crate) free: u32,
}

impl Workload {
    pub(crate) fn all() -> Vec<Self> {
        include_str!("steps.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).expect("a workload"))
            .collect()
    }

    /// What vLLM did. A step that computed nothing took no time: whom it preempted counts as
    /// preempted by the next.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut preempted = Vec::new();
        for line in &self.steps {
            preempted.extend(&line.preempted);
            if line.scheduled.is_empty() {
                continue;
            }
            steps.push(Step {
                moment: line.moment,
                scheduled: pairs(&line.scheduled),
                preempted: std::mem::take(&mut preempted),
                admitted: pairs(&line.admitted),
                free: line.free,
            });
            steps.extend((1..line.times).map(|later| Step {
                moment: line.moment + later,
                scheduled: pairs(&line.scheduled),
                free: line.free,
                ..Step::default()
            }));
        }
        steps
    }
}

impl Config {
    pub(crate) fn scheduler(&self) -> SchedulerConfig {
        SchedulerConfig {
            block_size: self.block_size,
            blocks: self.blocks,
            max_num_seqs: self.max_num_seqs,
            max_num_batched_tokens: self.max_num_batched_tokens,
            max_model_len: self.max_model_len,
            long_prefill_token_threshold: self.long_prefill_token_threshold,
            chunked_prefill: self.chunked_prefill,
            prefix_caching: self.prefix_caching,
            reserve_full_prompt: self.reserve_full_prompt,
            watermark: self.watermark,
            policy: match self.policy.as_str() {
                "fcfs" => Policy::Fcfs,
                "priority" => Policy::Priority,
                other => panic!("a policy that is not known here: {other}"),
            },
            ..SchedulerConfig::default()
        }
    }
}

fn pairs(numbers: &[u32]) -> Vec<(u64, u32)> {
    let (pairs, rest) = numbers.as_chunks::<2>();
    assert!(rest.is_empty());
    pairs.iter().map(|[request, tokens]| (u64::from(*request), *tokens)).collect()
}
