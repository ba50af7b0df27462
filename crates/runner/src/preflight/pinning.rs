//! Whether the server can be asked to go on until an answer has its length. Some servers refuse
//! the fields for it (422), so they are never sent blindly.

use inferometer_load::target::Target;
use inferometer_model::Outcome;
use inferometer_model::endpoint::{Api, ApiFacts};
use inferometer_model::observations::PinnedOutput;
use inferometer_model::spec::{PinOutput, Workload};

use super::{PROBE_PROMPT, ask_once, is_refusal, probe_tokens};
use crate::failure::Failure;

const PROBE_TOKENS: u32 = 4;

const BOTH: PinnedOutput = PinnedOutput { ignore_eos: true, min_tokens: true };
const IGNORE_EOS: PinnedOutput = PinnedOutput { ignore_eos: true, min_tokens: false };
const MIN_TOKENS: PinnedOutput = PinnedOutput { ignore_eos: false, min_tokens: true };

/// What the server says to the fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// The most that it accepts.
    Accepted(PinnedOutput),
    Refused,
    /// The API has none, so nothing was asked.
    NoSuchFields,
    /// The question failed for another reason.
    NotKnown,
}

/// Refuses what no server of this API could do, before one is asked.
pub(super) fn check(api: Api, wanted: PinOutput) -> Result<(), Failure> {
    if wanted != PinOutput::Always || api.facts().ignore_eos || api.facts().min_tokens {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--pin-output always: {api} has no field that makes a server go on to a length"
    ))
    .hint("leave --pin-output out: answers may then end before their length"))
}

/// What to send with every request of the run.
pub(super) fn find(target: &Target, workload: &Workload) -> Result<PinnedOutput, Failure> {
    let is_wanted = match workload.body.pin_output {
        PinOutput::Never => false,
        PinOutput::Always => true,
        PinOutput::Auto => workload.source.chooses_output(),
    };
    if !is_wanted {
        return Ok(PinnedOutput::default());
    }
    let why = match ask(target)? {
        Pinning::Accepted(pinned) => return Ok(pinned),
        Pinning::Refused => "the server refuses ignore_eos and min_tokens",
        Pinning::NoSuchFields => "the API has neither ignore_eos nor min_tokens",
        // It answered before without these fields, so they are the likeliest reason.
        Pinning::NotKnown => "a probe with ignore_eos and min_tokens failed",
    };
    if workload.body.pin_output != PinOutput::Always {
        return Ok(PinnedOutput::default());
    }
    let base = &target.base;
    Err(Failure::target(format!("{base}: {why}, and --pin-output always wants one of them"))
        .hint("leave --pin-output out: answers may then end before their length"))
}

pub fn ask(target: &Target) -> Result<Pinning, Failure> {
    let ApiFacts { ignore_eos, min_tokens, .. } = *target.api.facts();
    if !ignore_eos && !min_tokens {
        return Ok(Pinning::NoSuchFields);
    }
    let has = |pinned: &PinnedOutput| {
        (ignore_eos || !pinned.ignore_eos) && (min_tokens || !pinned.min_tokens)
    };
    for pinned in [BOTH, IGNORE_EOS, MIN_TOKENS].into_iter().filter(has) {
        let asking = Target { pinned, ..target.clone() };
        let record = ask_once(asking, PROBE_PROMPT, probe_tokens(target.api, PROBE_TOKENS))?.record;
        if record.ending.outcome == Outcome::Ok {
            return Ok(Pinning::Accepted(pinned));
        }
        if !is_refusal(&record) {
            return Ok(Pinning::NotKnown);
        }
    }
    Ok(Pinning::Refused)
}
