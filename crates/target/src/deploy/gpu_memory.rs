//! How much memory of the GPUs of this machine is in use, to see that a server has given its back.

use std::time::Duration;

use serde_json::Value;

use super::stopwatch::until;
use crate::system::tool::said;

/// Drivers take a moment to clean up after a process.
const PATIENCE: Duration = Duration::from_secs(5);
/// Of other programs' coming and going.
const TOLERANCE: u64 = 64 << 20;

/// Bytes over all GPUs; `None` where no tool tells.
pub(super) fn in_use() -> Option<u64> {
    let query = ["--query-gpu=memory.used", "--format=csv,noheader,nounits"];
    let nvidia = said("nvidia-smi", &query).and_then(|text| nvidia_smi(&text));
    nvidia.or_else(|| {
        let query = ["--showmeminfo", "vram", "--json"];
        said("rocm-smi", &query).and_then(|text| rocm_smi(&text))
    })
}

/// Before and after, the latter when it is as before or has had its time.
pub(super) fn given_back(before: Option<u64>) -> Option<(u64, u64)> {
    let before = before?;
    let mut after = None;
    until(PATIENCE, || {
        after = in_use();
        after.is_none_or(|after| after <= before.saturating_add(TOLERANCE))
    });
    Some((before, after?))
}

/// What to say when it did not come back.
pub(super) fn trouble((before, after): (u64, u64)) -> Option<String> {
    let kept = after.checked_sub(before).filter(|kept| TOLERANCE < *kept)?;
    let mebibytes = kept >> 20;
    Some(format!(
        "{mebibytes} MiB more of GPU memory are in use than before it was started; \
         see who has them with nvidia-smi or rocm-smi"
    ))
}

/// A line for each GPU, in MiB.
fn nvidia_smi(text: &str) -> Option<u64> {
    let used: Vec<u64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    (!used.is_empty()).then(|| used.iter().sum::<u64>() << 20)
}

fn rocm_smi(text: &str) -> Option<u64> {
    let json = text.find('{').map_or("", |start| &text[start..]);
    let Ok(Value::Object(cards)) = serde_json::from_str(json) else { return None };
    let used = |card: &Value| {
        let value = card.get("VRAM Total Used Memory (B)")?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    };
    let used: Vec<u64> = cards.values().filter_map(used).collect();
    (!used.is_empty()).then(|| used.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_summed_over_gpus_and_silence_is_none() {
        assert_eq!(nvidia_smi("1024\n 2\n"), Some(1026 << 20));
        assert_eq!(nvidia_smi("[N/A]\n"), None);
        let rocm = r#"WARNING: x
            {"card0": {"VRAM Total Memory (B)": "9", "VRAM Total Used Memory (B)": "7"},
             "card1": {"VRAM Total Used Memory (B)": 5}, "system": {}}"#;
        assert_eq!(rocm_smi(rocm), Some(12));
        assert_eq!(rocm_smi("no GPU"), None);
        assert_eq!(trouble((1 << 30, (1 << 30) + 5)), None);
        assert!(trouble((0, 1 << 30)).unwrap().starts_with("1024 MiB"));
        assert_eq!(given_back(None), None);
    }
}
