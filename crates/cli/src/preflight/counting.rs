//! How the server counts prompts: without a tokenizer, two short questions tell how many tokens a
//! word of ours has on average, and how many the server adds to each prompt.

use inferometer_load::target::Target;
use inferometer_model::Outcome;
use inferometer_model::observations::Correction;
use inferometer_workload::text::{Segment, TextMaker};

use super::ask_once;
use crate::failure::Failure;

const FEW_WORDS: u32 = 64;
const MANY_WORDS: u32 = 576;
const SEED: u64 = 0x636f_756e_7469_6e67;
/// What no tokenizer for text would need per word, either way.
const SANE: std::ops::RangeInclusive<f64> = 0.2..=20.0;

/// `None` when the server does not say how long prompts are, or refuses the long one.
pub(crate) fn correction(target: &Target) -> Result<Option<Correction>, Failure> {
    let Some(few) = counted(target, FEW_WORDS)? else { return Ok(None) };
    let Some(many) = counted(target, MANY_WORDS)? else { return Ok(None) };
    let tokens_per_word = (many - few) / f64::from(MANY_WORDS - FEW_WORDS);
    let overhead_tokens = (few - tokens_per_word * f64::from(FEW_WORDS)).round().max(0.0);
    Ok(SANE.contains(&tokens_per_word).then_some(Correction { tokens_per_word, overhead_tokens }))
}

fn counted(target: &Target, words: u32) -> Result<Option<f64>, Failure> {
    // Both begin alike, so that the difference is that of the words between.
    let text = TextMaker::estimating(None).bare(&[Segment { seed: SEED, tokens: words }]);
    let record = ask_once(target.clone(), &text, 1)?.record;
    let usage = record.usage.filter(|_| record.ending.outcome == Outcome::Ok);
    Ok(usage.and_then(|usage| usage.prompt_tokens).map(|tokens| tokens as f64))
}
