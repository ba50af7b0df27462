//! Datasets on the hub whose columns are known by their names: those that other clients of this kind know
//! by name, too, with their lengths.

use inferometer_model::spec::{DatasetPart, DatasetRole};

use super::Limits;

/// What is known of a dataset.
#[derive(Debug)]
pub(super) struct Known {
    names: &'static [&'static str],
    config: Option<&'static str>,
    split: Option<&'static str>,
    columns: &'static [(DatasetRole, &'static str)],
    /// Tokens of an answer where the data says nothing.
    pub(super) output: Option<u32>,
    pub(super) limits: Limits,
}

use DatasetRole::{Answer, Prompt, System};

const UNLIMITED: Known = Known {
    names: &[],
    config: None,
    split: None,
    columns: &[],
    output: None,
    limits: Limits::NONE,
};

static KNOWN: [Known; 5] = [
    Known {
        names: &["philschmid/mt-bench"],
        columns: &[(Prompt, "turns.0")],
        output: Some(256),
        ..UNLIMITED
    },
    Known {
        names: &["openai/gsm8k"],
        config: Some("main"),
        columns: &[(Prompt, "question")],
        output: Some(256),
        ..UNLIMITED
    },
    Known {
        names: &["openai/openai_humaneval"],
        split: Some("test"),
        columns: &[(Prompt, "prompt")],
        ..UNLIMITED
    },
    Known {
        names: &["AI-MO/aimo-validation-aime", "AI-MO/NuminaMath-1.5", "AI-MO/NuminaMath-CoT"],
        columns: &[(Prompt, "problem"), (Answer, "solution")],
        limits: Limits { prompt: 4..=2_048, reference_min: 4, sum_max: 32_000 },
        ..UNLIMITED
    },
    Known {
        names: &["mgoin/mlperf-inference-llama2-data", "mgoin/mlperf-inference-llama3.1-data"],
        columns: &[(System, "system_prompt"), (Prompt, "question"), (Answer, "output")],
        limits: Limits::SHARE_GPT,
        ..UNLIMITED
    },
];

/// What is known by this name, and the part of it that is read where the user names no other.
pub(super) fn look_up(name: &str, part: &mut DatasetPart) -> Option<&'static Known> {
    let known = KNOWN.iter().find(|known| known.names.contains(&name))?;
    let owned = |text: Option<&str>| text.map(str::to_owned);
    if !part.columns.is_empty() {
        return None;
    }
    part.columns = known.columns.iter().map(|(role, name)| (*role, (*name).to_owned())).collect();
    part.config = part.config.take().or_else(|| owned(known.config));
    part.split = part.split.take().or_else(|| owned(known.split));
    Some(known)
}
