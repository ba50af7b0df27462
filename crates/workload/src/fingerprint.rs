//! Names for "the same": of what is asked, and of exactly what is sent.

use std::path::PathBuf;
use std::time::Duration;

use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Correction, InputLength, Materials};
use inferometer_model::plan::{Content, Fingerprints};
use inferometer_model::spec::{Load, Source, Workload};
use inferometer_model::{Plan, Prompt, Release, RequestId};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::data_file::hex;
use crate::saved::SavedPlan;

/// What makes two runs comparable. The server, the model and the seed are not in it.
#[derive(Serialize)]
struct Stimulus<'a> {
    version: u32,
    api: Api,
    workload: Workload,
    load: &'a Load,
    /// What the named files hold, and how it was read, stands for their names.
    files: Vec<(&'a str, &'a str)>,
    tokenizer: Option<&'a str>,
    /// Whether a server reported how it counts, and not one token for a word: the same words of ours
    /// are then of another length.
    corrected: bool,
}

const VERSION: u32 = 3;
/// Recipes that go into a plan's fingerprint; beyond these the seed speaks for the rest.
const RECIPES_MAX: u64 = 1_000_000;
/// Prompts whose very text goes into it, so that a changed word list shows.
const TEXTS_MAX: u64 = 16;

pub fn of_workload(api: Api, workload: &Workload, load: &Load, materials: &Materials) -> String {
    let mut workload = workload.clone();
    workload.tokenizer = None;
    forget_names(&mut workload.source);
    let files = materials.files.iter().map(|file| (file.kind.as_str(), file.sha256.as_str()));
    let stimulus = Stimulus {
        version: VERSION,
        api,
        workload,
        load,
        files: files.collect(),
        tokenizer: materials.tokenizer.as_ref().map(|tokenizer| tokenizer.sha256.as_str()),
        corrected: match materials.input_length {
            InputLength::Corrected(correction) => correction != Correction::NONE,
            InputLength::Exact | InputLength::Estimated => false,
        },
    };
    let json = serde_json::to_vec(&stimulus).unwrap_or_default();
    half(Sha256::new_with_prefix(json))
}

/// The same file is the same wherever it lies, and whether its kind was typed or detected; a part of a
/// mix is the same whatever it is called.
fn forget_names(source: &mut Source) {
    match source {
        Source::Dataset(dataset) => (dataset.path, dataset.kind) = (PathBuf::new(), None),
        Source::Trace(trace) => (trace.path, trace.kind) = (PathBuf::new(), None),
        Source::Sessions(recorded) => (recorded.path, recorded.kind) = (PathBuf::new(), None),
        Source::Saved { path, .. } => *path = PathBuf::new(),
        Source::Mix(parts) => {
            for part in parts {
                part.name.clear();
                forget_names(&mut part.source);
            }
        }
        Source::Synthetic(_)
        | Source::VllmRandom(_)
        | Source::Fixed(_)
        | Source::Agents(_)
        | Source::Conversations(_) => {}
    }
}

pub fn of_plan(workload: &str, seed: u64, plan: &dyn Plan) -> String {
    let mut hash = Sha256::new_with_prefix(workload.as_bytes());
    hash.update(seed.to_le_bytes());
    hash.update(plan.bounds().requests.unwrap_or(u64::MAX).to_le_bytes());
    // A plan without an end is identified by its beginning.
    let count = plan.bounds().requests.unwrap_or(1_024).min(RECIPES_MAX);
    for request in (0..count).map_while(|id| plan.request(RequestId(id))) {
        let release = match request.release {
            Release::At(moment) => [1, moment.as_nanos(), 0],
            Release::WhenSlotFree => [2, 0, 0],
            Release::After { previous, think } => [3, previous.0, nanos(think)],
            Release::Beside { delay } => [4, nanos(delay), 0],
        };
        for number in release {
            hash.update(number.to_le_bytes());
        }
        // Of a conversation nothing more is to be said.
        let goes_on_from_previous = request.session.context == request.turn.checked_sub(1);
        for number in plan.joins(&request) {
            hash.update(number.0.to_le_bytes());
        }
        if !goes_on_from_previous && 0 < request.turn {
            hash.update(request.session.context.map_or(u64::MAX, u64::from).to_le_bytes());
        }
        hash.update(nanos(request.think).to_le_bytes());
        hash.update(request.prompt_seed.to_le_bytes());
        hash.update(request.input_tokens.to_le_bytes());
        hash.update(request.output_tokens.to_le_bytes());
        hash.update(request.item.to_le_bytes());
        hash.update(request.part.to_le_bytes());
        hash.update(request.turn.to_le_bytes());
        if request.id.0 < TEXTS_MAX {
            add_content(&mut hash, &plan.content(&request));
        }
    }
    half(hash)
}

/// A plan that was saved is the same plan, unless it was changed. With another warm-up it is
/// what it would have been, had it been asked for with that one.
pub fn of_saved(saved: &SavedPlan, load: &Load) -> Fingerprints {
    let header = &saved.header;
    let mut known = header.fingerprints.clone();
    // Nothing of its load but the warm-up may have been changed.
    if *load != header.load {
        known.workload = of_workload(header.api, &header.workload, load, &header.materials);
        known.plan = of_plan(&known.workload, header.seed, saved);
    }
    if !saved.is_changed {
        return known;
    }
    let changed = |print: &str| {
        let mut hash = Sha256::new_with_prefix(print.as_bytes());
        hash.update(saved.sha256.as_bytes());
        half(hash)
    };
    Fingerprints { workload: changed(&known.workload), plan: changed(&known.plan) }
}

fn add_content(hash: &mut Sha256, content: &Content) {
    match &content.prompt {
        Prompt::Text(text) => add_piece(hash, b't', text.as_bytes()),
        Prompt::Messages(messages) => {
            add_piece(hash, b'm', &serde_json::to_vec(messages).unwrap_or_default());
        }
    }
    content.images.iter().for_each(|image| add_piece(hash, b'i', image.as_bytes()));
    add_piece(hash, b'f', &serde_json::to_vec(&content.fields).unwrap_or_default());
    if let Some(model) = &content.model {
        add_piece(hash, b'a', model.as_bytes());
    }
}

/// With what it is and how long: pieces that are cut elsewhere are others.
fn add_piece(hash: &mut Sha256, tag: u8, bytes: &[u8]) {
    hash.update([tag]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

pub(crate) fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// Half of a SHA-256: enough to never meet, short enough to read aloud.
pub(crate) fn half(hash: Sha256) -> String {
    hex(&hash.finalize()[..16])
}

#[cfg(test)]
mod tests;
