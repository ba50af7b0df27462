//! Whether the server can be asked to go on until an answer has its length. Some servers refuse
//! the fields for it (422), so they are never sent blindly.

use inferometer_load::target::Target;
use inferometer_model::Outcome;
use inferometer_model::observations::PinnedOutput;
use inferometer_model::spec::{PinOutput, Workload};

use super::{PROBE_PROMPT, ask_once, is_refusal};
use crate::failure::Failure;

const PROBE_TOKENS: u32 = 4;

const BOTH: PinnedOutput = PinnedOutput { ignore_eos: true, min_tokens: true };
const IGNORE_EOS: PinnedOutput = PinnedOutput { ignore_eos: true, min_tokens: false };
const MIN_TOKENS: PinnedOutput = PinnedOutput { ignore_eos: false, min_tokens: true };

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
    match accepted(target)? {
        Some(pinned) => Ok(pinned),
        None if workload.body.pin_output == PinOutput::Always => Err(Failure::target(format!(
            "{}: the server refuses ignore_eos and min_tokens, and --pin-output always wants \
                 one of them",
            target.base
        ))
        .hint("leave --pin-output out: answers may then end before their length")),
        None => Ok(PinnedOutput::default()),
    }
}

/// The most that the server accepts; `None` when it refuses every field.
pub(crate) fn accepted(target: &Target) -> Result<Option<PinnedOutput>, Failure> {
    let (ignore_eos, min_tokens) = target.api.pins();
    let has = |pinned: &PinnedOutput| {
        (ignore_eos || !pinned.ignore_eos) && (min_tokens || !pinned.min_tokens)
    };
    for pinned in [BOTH, IGNORE_EOS, MIN_TOKENS].into_iter().filter(has) {
        let asking = Target { pinned, ..target.clone() };
        let record = ask_once(asking, PROBE_PROMPT, PROBE_TOKENS)?.record;
        if record.ending.outcome == Outcome::Ok {
            return Ok(Some(pinned));
        }
        if !is_refusal(&record) {
            // It answered before without these fields, so they are the likeliest reason.
            return Ok(None);
        }
    }
    Ok(None)
}
