//! NVIDIA's GPUs by an exporter of DCGM, for servers on other machines.

use std::collections::BTreeMap;

use inferometer_model::fetch::{Fetch, FetchRequest};
use inferometer_model::telemetry::DeviceReading;

use super::nvidia::throttle;
use super::reading::{LOOK_LIMIT, Look, LookError, share};
use crate::metrics::text::{Line, Series, lines};

const PATH: &str = "/metrics";
const BODY_BYTES_MAX: usize = 16 << 20;

/// A look asks once, on a runtime of its own.
pub(super) fn open<F: Fetch + 'static>(fetch: F) -> Result<Look, LookError> {
    let failed = |error: std::io::Error| LookError::Exporter(error.to_string());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let tasks = tokio::task::LocalSet::new();
    Ok(Box::new(move || {
        let request = FetchRequest { path: PATH, body_limit: BODY_BYTES_MAX };
        #[expect(
            clippy::disallowed_methods,
            reason = "nothing is measured here, and the module for time-outs is the client's own"
        )]
        let within = async { tokio::time::timeout(LOOK_LIMIT, fetch.fetch(request)).await };
        let failed = |words: String| LookError::Exporter(words);
        let reply = tasks
            .block_on(&runtime, within)
            .map_err(|_elapsed| failed(format!("no whole answer within {LOOK_LIMIT:?}")))?
            .map_err(|error| failed(error.to_string()))?;
        if !(200..300).contains(&reply.status) {
            return Err(failed(format!("HTTP {}", reply.status)));
        }
        let found = devices(&String::from_utf8_lossy(&reply.body));
        if found.is_empty() { Err(LookError::Nothing("the exporter")) } else { Ok(found) }
    }))
}

/// By number. Slices of a GPU and the containers on it repeat what the whole says; the whole comes
/// first in no order, so the largest is taken.
fn devices(text: &str) -> Vec<DeviceReading> {
    let mut values: BTreeMap<u32, BTreeMap<Word, f64>> = BTreeMap::new();
    for line in lines(text) {
        let Line::Series(series) = line else { continue };
        let Some((index, word)) = device(&series).zip(word(series.name)) else { continue };
        if !series.value.is_finite() || series.value < 0.0 {
            continue;
        }
        let value = values.entry(index).or_default().entry(word).or_insert(series.value);
        *value = value.max(series.value);
    }
    values.into_iter().map(|(index, words)| reading(index, &words)).collect()
}

/// Series of a slice are left alone: its use and memory are not the GPU's.
fn device(series: &Series<'_>) -> Option<u32> {
    if series.label("GPU_I_ID").is_some_and(|slice| !slice.is_empty()) {
        return None;
    }
    series.label("gpu")?.parse().ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Word {
    Use,
    MemoryUsed,
    MemoryFree,
    MemoryReserved,
    MemoryTotal,
    Power,
    Energy,
    CoreClock,
    MemoryClock,
    Temperature,
    Reasons,
}

fn word(name: &str) -> Option<Word> {
    Some(match name {
        "DCGM_FI_DEV_GPU_UTIL" => Word::Use,
        "DCGM_FI_DEV_FB_USED" => Word::MemoryUsed,
        "DCGM_FI_DEV_FB_FREE" => Word::MemoryFree,
        "DCGM_FI_DEV_FB_RESERVED" => Word::MemoryReserved,
        "DCGM_FI_DEV_FB_TOTAL" => Word::MemoryTotal,
        "DCGM_FI_DEV_POWER_USAGE" => Word::Power,
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" => Word::Energy,
        "DCGM_FI_DEV_SM_CLOCK" => Word::CoreClock,
        "DCGM_FI_DEV_MEM_CLOCK" => Word::MemoryClock,
        "DCGM_FI_DEV_GPU_TEMP" => Word::Temperature,
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS" | "DCGM_FI_DEV_CLOCKS_EVENT_REASONS" => Word::Reasons,
        _ => return None,
    })
}

fn reading(index: u32, words: &BTreeMap<Word, f64>) -> DeviceReading {
    let get = |word| words.get(&word).copied();
    let used = get(Word::MemoryUsed);
    let sum = || Some(used? + get(Word::MemoryFree)? + get(Word::MemoryReserved).unwrap_or(0.0));
    DeviceReading {
        index,
        use_share: get(Word::Use).and_then(share),
        memory_used_bytes: used.and_then(mebibytes),
        memory_total_bytes: get(Word::MemoryTotal).or_else(sum).and_then(mebibytes),
        power_w: get(Word::Power),
        energy_j: get(Word::Energy).map(|millijoules| millijoules / 1e3),
        core_clock_mhz: get(Word::CoreClock),
        memory_clock_mhz: get(Word::MemoryClock),
        temperature_c: get(Word::Temperature),
        throttle: get(Word::Reasons).and_then(whole).map(throttle),
        processes: None,
    }
}

fn mebibytes(number: f64) -> Option<u64> {
    whole(number)?.checked_mul(1 << 20)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded on both sides before"
)]
fn whole(number: f64) -> Option<u64> {
    const MAX: f64 = 1e15;
    (0.0..=MAX).contains(&number).then_some(number.round() as u64)
}

#[cfg(test)]
mod tests {
    use inferometer_model::fetch::{FetchError, FetchReply};
    use inferometer_model::telemetry::Throttle;

    use super::*;

    const TEXT: &str = r#"# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-aa",device="nvidia0",modelName="NVIDIA H200",Hostname="n1"} 1755
DCGM_FI_DEV_MEM_CLOCK{gpu="0",UUID="GPU-aa",device="nvidia0"} 3201
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-aa"} 64
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-aa"} 688.5
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-aa"} 123456
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aa",pod="a"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aa",pod="b"} 97
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-aa",GPU_I_PROFILE="1g.18gb",GPU_I_ID="7"} 99
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-aa"} 62000
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-aa"} 81000
DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-aa"} 771
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0",UUID="GPU-aa"} 4
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-bb"} NaN
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-bb"} 30
"#;

    #[test]
    fn an_exporters_devices_are_read() {
        let [busy, idle]: [DeviceReading; 2] = devices(TEXT).try_into().unwrap();
        assert_eq!((busy.index, busy.use_share, busy.power_w), (0, Some(0.97), Some(688.5)));
        assert_eq!(busy.memory_used_bytes, Some(81_000 << 20));
        assert_eq!(busy.memory_total_bytes, Some(143_771 << 20));
        assert_eq!((busy.energy_j, busy.temperature_c), (Some(123.456), Some(64.0)));
        assert_eq!(busy.throttle, Some(Throttle { power: true, ..Throttle::default() }));
        assert_eq!((idle.use_share, idle.temperature_c), (None, Some(30.0)));
        assert!(devices("go_goroutines 12\n").is_empty());
    }

    struct Canned(u16, &'static str);

    impl Fetch for Canned {
        async fn fetch(&self, _request: FetchRequest<'_>) -> Result<FetchReply, FetchError> {
            Ok(FetchReply { status: self.0, content_type: None, body: self.1.as_bytes().to_vec() })
        }
    }

    #[test]
    fn an_exporter_that_does_not_tell_says_why() {
        assert_eq!(open(Canned(200, TEXT)).unwrap()().unwrap().len(), 2);
        let error = |status, body| open(Canned(status, body)).unwrap()().unwrap_err().to_string();
        assert_eq!(error(404, ""), "the exporter: HTTP 404");
        assert_eq!(error(200, "<html>"), "the exporter names no GPU that can be read");
    }
}
