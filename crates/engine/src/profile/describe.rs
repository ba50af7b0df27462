//! What a server says of itself when it starts.

use super::Profile;
use super::bytes::{MIB, gib, grouped};

pub(super) fn text(profile: &Profile) -> String {
    let Profile { scheduler, memory, .. } = profile;
    let capacity = u64::from(scheduler.blocks) * u64::from(scheduler.block_size);
    let lines = [
        format!(
            "{}: {} ({:.3} billion parameters, {}) on {} x {} (tp {}, pp {})",
            profile.name,
            profile.model.title,
            profile.model.count().total() / 1e9,
            profile.numbers.words(),
            profile.gpus(),
            profile.gpu.title,
            profile.machine().tensor_parallel,
            profile.machine().pipeline_parallel,
        ),
        format!(
            "per GPU: {} GiB x {} = {} GiB; weights {}, activations {} (estimate), other {}: {} GiB left for the KV cache",
            gib(memory.total),
            memory.utilization,
            gib(memory.budget),
            gib(memory.weights),
            gib(memory.activations),
            gib(memory.other + memory.graphs),
            gib(memory.left),
        ),
        format!(
            "GPU KV cache size: {} tokens ({} blocks of {}, {:.2} MiB each)",
            grouped(capacity),
            grouped(u64::from(scheduler.blocks)),
            scheduler.block_size,
            memory.block / MIB,
        ),
        format!(
            "maximum concurrency for {} tokens per request: {:.2}x",
            grouped(u64::from(scheduler.max_model_len)),
            profile.max_concurrency(),
        ),
        format!(
            "a step holds at most {} tokens of {} requests",
            grouped(u64::from(scheduler.max_num_batched_tokens)),
            grouped(u64::from(scheduler.max_num_seqs)),
        ),
        origin(profile),
    ];
    lines.join("\n")
}

/// Where the times of steps come from.
fn origin(profile: &Profile) -> String {
    match (&profile.fitted, &profile.carried) {
        (Some(fitted), _) => {
            format!("step times fitted to {} rows: {}", fitted.rows, fitted.source)
        }
        (None, Some(fitted)) => format!(
            "step times carried over from a fit of another layout or schedule to {} rows: {}",
            fitted.rows, fitted.source
        ),
        (None, None) => {
            "step times from generic coefficients: no measurement stands behind them".to_owned()
        }
    }
}
