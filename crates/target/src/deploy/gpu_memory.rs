//! How much memory of the GPUs of this machine is in use, to see that a server has given its back.

use std::sync::atomic::{AtomicUsize, Ordering};
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

/// Servers of this process, from before their start until they are gone.
static TURNS: AtomicUsize = AtomicUsize::new(0);

/// The time of one of them.
#[derive(Debug)]
pub(super) struct Turn(());

impl Turn {
    pub(super) fn begin() -> Self {
        TURNS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// In use before and after, and what to say when it did not come back. To be asked while the turn of
/// the server lasts.
pub(super) fn given_back(before: Option<u64>) -> (Option<(u64, u64)>, Option<String>) {
    let Some(before) = before else { return (None, None) };
    let is_alone = TURNS.load(Ordering::SeqCst) <= 1;
    compared(before, is_alone, &mut in_use)
}

/// The latter when it is as before or has had its time. While another server of ours is up it may be
/// that one's: it is neither waited for nor missed.
fn compared(
    before: u64,
    is_alone: bool,
    look: &mut dyn FnMut() -> Option<u64>,
) -> (Option<(u64, u64)>, Option<String>) {
    let mut after = None;
    until(if is_alone { PATIENCE } else { Duration::ZERO }, || {
        after = look();
        after.is_none_or(|after| after <= before.saturating_add(TOLERANCE))
    });
    let figures = after.map(|after| (before, after));
    (figures, figures.filter(|_| is_alone).and_then(trouble))
}

fn trouble((before, after): (u64, u64)) -> Option<String> {
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
    }

    #[test]
    fn what_another_server_of_ours_has_is_not_missed() {
        let mut looks = 0;
        let other = compared(0, false, &mut || {
            looks += 1;
            Some(1 << 30)
        });
        assert_eq!((other, looks), ((Some((0, 1 << 30)), None), 1));
        let mut looks = 0;
        let late = compared(0, true, &mut || {
            looks += 1;
            Some(if looks < 3 { 1 << 30 } else { 5 })
        });
        assert_eq!((late, looks), ((Some((0, 5)), None), 3));
        assert_eq!(compared(0, true, &mut || None), (None, None));
    }
}
