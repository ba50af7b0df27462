//! What a server reports about itself when it starts.

use super::catalogue::catalogue;
use super::{Gpu, Model, Profile};

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
            "step times from generic coefficients: they are not fitted to a measurement".to_owned()
        }
    }
}

/// All that is built in, for tables.
#[derive(Clone, Debug)]
pub struct Listing {
    pub profiles: Vec<ProfileRow>,
    pub hardware: &'static [Gpu],
    pub models: &'static [Model],
}

/// One named profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileRow {
    pub name: &'static str,
    pub description: Option<&'static str>,
    pub hardware: &'static str,
    pub model: &'static str,
    pub tp: u32,
    pub pp: u32,
    /// What it was fitted to; none where its coefficients are generic.
    pub fitted: Option<&'static str>,
}

pub fn list() -> Listing {
    let known = catalogue();
    let profiles = known
        .profiles
        .iter()
        .map(|file| ProfileRow {
            name: &file.name,
            description: file.description.as_deref(),
            hardware: file.serve.hardware.as_deref().unwrap_or_default(),
            model: file.serve.model.as_deref().unwrap_or_default(),
            tp: file.serve.tp.unwrap_or(1),
            pp: file.serve.pp.unwrap_or(1),
            fitted: file.fitted.as_ref().map(|fitted| &*fitted.source),
        })
        .collect();
    Listing { profiles, hardware: &known.gpus, models: &known.models }
}

pub(super) const GIB: f64 = (1_u64 << 30) as f64;
pub(super) const MIB: f64 = (1_u64 << 20) as f64;

/// Two decimals, without the unit.
pub(super) fn gib(bytes: f64) -> String {
    format!("{:.2}", bytes / GIB)
}

/// 1234567 as `1,234,567`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(gib(1.5 * GIB), "1.50");
    }
}
