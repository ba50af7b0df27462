//! Names for "the same": of what is asked, and of exactly what is sent.

use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::spec::{Load, Workload};
use inferometer_model::{Plan, Release, RequestId, Spec};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::prompt;

/// What makes two runs comparable. The server, the model and the seed are not in it.
#[derive(Serialize)]
struct Stimulus<'a> {
    version: u32,
    prompts: &'static str,
    api: Api,
    workload: &'a Workload,
    load: &'a Load,
}

const VERSION: u32 = 2;
/// Recipes that go into a plan's fingerprint; beyond these the seed speaks for the rest.
const RECIPES_MAX: u64 = 1_000_000;
/// Prompts whose very text goes into it, so that a changed word list shows.
const TEXTS_MAX: u64 = 16;

pub fn of_workload(spec: &Spec) -> String {
    let stimulus = Stimulus {
        version: VERSION,
        prompts: prompt::SOURCE,
        api: spec.api,
        workload: &spec.workload,
        load: &spec.load,
    };
    let json = serde_json::to_vec(&stimulus).unwrap_or_default();
    hex(Sha256::new_with_prefix(json))
}

pub fn of_plan(workload: &str, seed: u64, plan: &dyn Plan) -> String {
    let mut hash = Sha256::new_with_prefix(workload.as_bytes());
    hash.update(seed.to_le_bytes());
    hash.update(plan.bounds().requests.unwrap_or(u64::MAX).to_le_bytes());
    // A plan without an end is told by its beginning.
    let count = plan.bounds().requests.unwrap_or(1_024).min(RECIPES_MAX);
    for request in (0..count).map_while(|id| plan.request(RequestId(id))) {
        let release = match request.release {
            Release::At(moment) => [1, moment.as_nanos(), 0],
            Release::WhenSlotFree => [2, 0, 0],
            Release::After { previous, think } => [3, previous.0, nanos(think)],
        };
        for number in release {
            hash.update(number.to_le_bytes());
        }
        hash.update(nanos(request.think).to_le_bytes());
        hash.update(request.prompt_seed.to_le_bytes());
        hash.update(request.input_tokens.to_le_bytes());
        hash.update(request.output_tokens.to_le_bytes());
        if request.id.0 < TEXTS_MAX {
            hash.update(plan.prompt(&request).as_bytes());
        }
    }
    hex(hash)
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// Half of a SHA-256: enough to never meet, short enough to read aloud.
fn hex(hash: Sha256) -> String {
    use std::fmt::Write;
    hash.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
