//! How the cells of a matrix were measured: the settings in common, and those by context length.

use std::collections::BTreeMap;

use inferometer_model::spec::{Lengths, Source, Spec, TargetSpec};
use inferometer_model::study::Matrix;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::run::asked_lengths;

/// From the plan, so that a matrix without a run has it, too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MatrixMethod {
    /// The beginning of the prompt that every request of every cell sends; null where they differ.
    pub prompt: Option<String>,
    /// Words of the whole prompt.
    pub prompt_words: Option<u64>,
    /// No prompt has more tokens than these; null where the lengths depend on data.
    pub prompt_tokens_max: Option<u64>,
    /// Other fields of the body of every request of every cell.
    pub fields: Map<String, Value>,
    /// Settings of the embedded engine that all cells have; empty of other servers.
    pub engine: BTreeMap<String, Value>,
    /// Requested output tokens at each context length.
    pub output_tokens: Vec<(Option<u32>, Lengths)>,
    /// The embedded engine's hardware by preset; null of another server.
    pub hardware: Vec<Option<String>>,
}

impl MatrixMethod {
    /// The method of the cells and their specs, in the same order.
    pub(super) fn from_specs(matrix: &Matrix, specs: &[&Spec]) -> Self {
        let prompt = common(specs.iter().map(|spec| fixed_prompt(spec))).flatten();
        let hardware = (0_u32..).zip(&matrix.presets).map(|(place, _)| {
            let own = matrix.cells.iter().zip(specs).filter(|(cell, _)| cell.preset == place);
            common(own.map(|(_, spec)| hardware(spec))).flatten().map(str::to_owned)
        });
        let mut output_tokens: Vec<(Option<u32>, Lengths)> = Vec::new();
        for (cell, spec) in matrix.cells.iter().zip(specs) {
            let asked = asked_lengths(&spec.workload.source).1.map(|it| (cell.context, it));
            output_tokens.extend(asked.filter(|asked| !output_tokens.contains(asked)));
        }
        Self {
            prompt: prompt.map(|prompt| prompt.chars().take(1_000).collect()),
            prompt_words: prompt.map(|prompt| prompt.split_whitespace().count() as u64),
            prompt_tokens_max: longest(specs),
            fields: common(specs.iter().map(|spec| &spec.workload.body.fields))
                .cloned()
                .unwrap_or_default(),
            engine: engine(specs),
            output_tokens,
            hardware: hardware.collect(),
        }
    }
}

/// The value of all; `None` where they differ, or there are none.
fn common<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

fn fixed_prompt(spec: &Spec) -> Option<&str> {
    if let Source::Fixed(fixed) = &spec.workload.source { Some(&fixed.prompt) } else { None }
}

fn hardware(spec: &Spec) -> Option<&str> {
    let own = spec.engine.hardware.as_deref().or(spec.engine.profile.as_deref());
    own.filter(|_| matches!(spec.target, TargetSpec::Embedded))
}

fn longest(specs: &[&Spec]) -> Option<u64> {
    let most = |spec: &&Spec| match &spec.workload.source {
        // No tokenizer makes two tokens of a byte.
        Source::Fixed(fixed) => Some(fixed.prompt.len() as u64),
        source @ (Source::Synthetic(_) | Source::VllmRandom(_)) => {
            asked_lengths(source).0.map(|lengths| lengths.most().into())
        }
        Source::Dataset(_)
        | Source::Trace(_)
        | Source::Conversations(_)
        | Source::Sessions(_)
        | Source::Agents(_)
        | Source::Mix(_)
        | Source::Saved { .. } => None,
    };
    specs.iter().map(most).collect::<Option<Vec<u64>>>()?.into_iter().max()
}

/// Common settings, without those that have columns in the tables.
fn engine(specs: &[&Spec]) -> BTreeMap<String, Value> {
    const COLUMNS: [&str; 7] =
        ["profile", "hardware", "model", "tp", "pp", "max_model_len", "speed"];
    if !specs.iter().all(|spec| matches!(spec.target, TargetSpec::Embedded)) {
        return BTreeMap::new();
    }
    let settings = |spec: &&Spec| match serde_json::to_value(&spec.engine) {
        Ok(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    let all: Vec<Map<String, Value>> = specs.iter().map(settings).collect();
    let Some((first, others)) = all.split_first() else { return BTreeMap::new() };
    let is_common = |(name, value): &(&String, &Value)| {
        !value.is_null()
            && !COLUMNS.contains(&name.as_str())
            && others.iter().all(|other| other.get(*name) == Some(*value))
    };
    let common = first.iter().filter(is_common);
    common.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use inferometer_model::spec::{Dtype, FixedPrompt};
    use inferometer_model::study::{Cell, Level, MatrixModel, Preset};
    use serde_json::json;

    use super::*;
    use crate::fixture::calm;

    fn matrix(contexts: &[u32]) -> Matrix {
        let cell = |context: &u32| Cell {
            preset: 0,
            model: 0,
            context: Some(*context),
            strategy: None,
            tp: Some(1),
            pp: Some(1),
            flags: BTreeMap::new(),
        };
        Matrix {
            description: None,
            name: "made".to_owned(),
            title: String::new(),
            presets: vec![Preset { name: "one".to_owned(), ..Preset::default() }],
            models: vec![MatrixModel::default()],
            cells: contexts.iter().map(cell).collect(),
            levels: vec![Level::AsAsked],
            lanes: NonZeroU32::MIN,
            currency: None,
        }
    }

    /// An embedded engine for this context, asked by one prompt.
    fn spec(context: u32, output: u32) -> Spec {
        let mut spec = calm().manifest.spec;
        let (prompt, output) = ("two words".to_owned(), Lengths::Fixed(output));
        spec.target = TargetSpec::Embedded;
        spec.workload.source = Source::Fixed(FixedPrompt { prompt, output });
        spec.workload.body.fields = Map::from_iter([("temperature".to_owned(), json!(0.7))]);
        spec.engine.hardware = Some("h100-pcie".to_owned());
        spec.engine.dtype = Some(Dtype::Half.into());
        spec.engine.max_model_len = Some(context);
        spec
    }

    #[test]
    fn what_all_cells_have_is_told_once_and_the_rest_by_context() {
        let specs = [spec(2_048, 512), spec(8_192, 2_048), spec(16_384, 2_048)];
        let specs: Vec<&Spec> = specs.iter().collect();
        let found = MatrixMethod::from_specs(&matrix(&[2_048, 8_192, 16_384]), &specs);
        assert_eq!(found.prompt.as_deref(), Some("two words"));
        assert_eq!((found.prompt_words, found.prompt_tokens_max), (Some(2), Some(9)));
        assert_eq!(found.fields.get("temperature"), Some(&json!(0.7)));
        assert_eq!(found.engine.get("dtype"), Some(&json!("half")));
        assert!(!found.engine.contains_key("max_model_len"), "{:?}", found.engine);
        assert_eq!(found.hardware, [Some("h100-pcie".to_owned())]);
        let output = |context, tokens| (Some(context), Lengths::Fixed(tokens));
        let outputs = [output(2_048, 512), output(8_192, 2_048), output(16_384, 2_048)];
        assert_eq!(found.output_tokens, outputs);
    }

    #[test]
    fn what_differs_is_not_told_of_all() {
        let (one, mut other) = (spec(2_048, 512), spec(8_192, 512));
        other.workload.source =
            Source::Fixed(FixedPrompt { prompt: "others".to_owned(), output: Lengths::Fixed(512) });
        other.workload.body.fields.clear();
        other.engine.dtype = None;
        other.engine.hardware = Some("mi210".to_owned());
        let found = MatrixMethod::from_specs(&matrix(&[2_048, 8_192]), &[&one, &other]);
        assert_eq!((found.prompt, found.prompt_words), (None, None));
        assert!(found.fields.is_empty() && !found.engine.contains_key("dtype"));
        assert_eq!(found.hardware, [None]);
    }

    #[test]
    fn of_other_servers_no_engine_is_told() {
        let mut deployed = spec(2_048, 512);
        deployed.target = calm().manifest.spec.target;
        let found = MatrixMethod::from_specs(&matrix(&[2_048]), &[&deployed]);
        assert!(found.engine.is_empty() && found.hardware == [None], "{found:?}");
    }
}
