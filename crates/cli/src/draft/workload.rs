//! What is asked, as a draft.

use std::path::Path;

use inferometer_model::spec::{MixDraft, SourceDraft, WorkloadDraft};

use super::{body, plain};
use crate::arguments::{SourceName, SourceTable, WorkloadTable};
use crate::failure::Failure;

pub(super) fn draft(said: WorkloadTable) -> Result<WorkloadDraft, Failure> {
    let mix = said.mix.into_iter().map(|part| {
        let source = source(part.source)?;
        Ok(MixDraft { name: part.label.name, weight: part.label.weight, source })
    });
    Ok(WorkloadDraft {
        streaming: said.tokens.stream,
        source: source(said.source)?,
        mix: mix.collect::<Result<_, Failure>>()?,
        tokenizer: said.tokens.tokenizer,
        counting: plain(said.tokens.count),
        body: body::draft(said.body)?,
    })
}

fn source(said: SourceTable) -> Result<SourceDraft, Failure> {
    let prompt = match (said.prompt, said.prompt_file) {
        (Some(_), Some(_)) => {
            return Err(Failure::usage("--prompt and --prompt-file both say the prompt; set one"));
        }
        (None, Some(path)) => Some(prompt_in(&path)?),
        (prompt, None) => prompt,
    };
    Ok(SourceDraft {
        input: plain(said.input_tokens),
        output: plain(said.output_tokens),
        prefix_tokens: said.prefix_tokens,
        prefixes: said.prefixes,
        prefix_zipf: said.prefix_zipf,
        vllm_random: plain(said.source) == Some(SourceName::VllmRandom),
        dataset: said.dataset,
        dataset_kind: plain(said.dataset_kind),
        keep_order: said.keep_order.unwrap_or(false),
        prompt,
        trace: said.trace,
        trace_kind: plain(said.trace_kind),
        keep: said.keep,
        turns: plain(said.turns),
        turn_think_time: plain(said.turn_think_time),
        turn_think: plain(said.turn_think),
        saved_plan: said.plan,
    })
}

/// The line break at the end is the editor's, not the prompt's.
fn prompt_in(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("prompt file {}: {error}", path.display())))?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err(Failure::usage(format!("prompt file {} is empty", path.display()))),
        prompt => Ok(prompt.to_owned()),
    }
}
