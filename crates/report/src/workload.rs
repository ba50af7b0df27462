//! What was asked, in plain words.

use inferometer_analysis::WorkloadFacts;
use inferometer_model::endpoint::Api;
use inferometer_model::observations::InputLength;
use inferometer_model::spec::Lengths;

use crate::number::count;

/// How long prompts and answers were asked to be.
pub fn lengths(workload: &WorkloadFacts, api: Api) -> String {
    let about = match workload.input_length {
        InputLength::Exact => "",
        InputLength::Estimated | InputLength::Corrected(_) => "about ",
    };
    let turns = workload
        .turns
        .as_ref()
        .map_or_else(String::new, |turns| format!("conversations of {} turns, ", words(turns)));
    let input = match &workload.input_tokens {
        Some(input) => format!("{about}{} tokens in", words(input)),
        None => format!("prompts of the {}", workload.source),
    };
    let output = match &workload.output_tokens {
        Some(output) => format!(", {} out", words(output)),
        // Vectors and scores have no length.
        None if matches!(api, Api::Embeddings | Api::Rerank) => String::new(),
        None => ", answers as long as it says".to_owned(),
    };
    format!("{turns}{input}{output}")
}

fn words(lengths: &Lengths) -> String {
    lengths.fixed().map_or_else(|| lengths.to_string(), |length| count(length.into()))
}
