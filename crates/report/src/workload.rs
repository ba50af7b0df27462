//! What was asked, in plain words.

use inferometer_analysis::WorkloadFacts;
use inferometer_model::endpoint::Api;
use inferometer_model::observations::InputLength;
use inferometer_model::spec::{Lengths, OUTPUT_TOKENS, SourceKind};

use crate::escape::{terminal, terminal_line};
use crate::load;
use crate::number::count;

/// How long prompts and answers were asked to be.
pub fn lengths(workload: &WorkloadFacts, api: Api) -> String {
    let about = match workload.input_length {
        InputLength::Exact => "",
        InputLength::Estimated | InputLength::Corrected(_) => "about ",
    };
    let turns = workload.turns.as_ref().map_or_else(String::new, |turns| {
        let think = workload.turn_think.map_or_else(String::new, load::thinking);
        format!("conversations of {} turns{think}, ", words(turns))
    });
    let input = match (&workload.input_tokens, workload.source) {
        (Some(input), _) => format!("{about}{} tokens in", words(input)),
        (None, SourceKind::Prompt) => "always the same prompt".to_owned(),
        (None, SourceKind::Mix) => "a mix of prompts".to_owned(),
        (None, source) => format!("prompts of the {}", source.name()),
    };
    let output = match (&workload.output_tokens, workload.source) {
        (Some(output), _) => format!(", {} out", words(output)),
        // Vectors and scores have no length.
        (None, _) if !api.generates() => String::new(),
        (None, SourceKind::Mix) => String::new(),
        (None, SourceKind::Dataset) => {
            format!(", answers as long as the data says, else {OUTPUT_TOKENS}")
        }
        (None, _) => ", answers as long as it says".to_owned(),
    };
    format!("{turns}{input}{output}")
}

/// What bodies carried besides, or nothing.
pub fn extras(workload: &WorkloadFacts) -> Option<String> {
    let prefix = workload.prefix.map(|prefix| {
        let tokens = count(prefix.tokens.into());
        match prefix.count {
            1 => format!("the same first {tokens} tokens"),
            several => format!("one of {} prefixes of {tokens} tokens", count(several.into())),
        }
    });
    let images = workload.images.map(|images| {
        let pictures = if images.count == 1 { "picture" } else { "pictures" };
        format!("{} {pictures} of {}×{}", images.count, images.width, images.height)
    });
    let adapters = workload.adapters.as_ref().map(|adapters| {
        let names: Vec<String> = adapters.names.iter().map(|name| terminal(name)).collect();
        format!("adapters {}", names.join(", "))
    });
    let fields = workload
        .fields
        .iter()
        .map(|(name, value)| terminal_line(&format!("{name} {value}"), FIELD_CHARS_MAX));
    let all: Vec<String> = [prefix, images, adapters].into_iter().flatten().chain(fields).collect();
    (!all.is_empty()).then(|| format!("each with {}", all.join("; ")))
}

/// A field's value may be a whole schema.
const FIELD_CHARS_MAX: usize = 60;

fn words(lengths: &Lengths) -> String {
    lengths.fixed().map_or_else(|| lengths.to_string(), |length| count(length.into()))
}
