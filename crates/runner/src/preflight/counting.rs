//! How the server counts prompts: without a tokenizer, a text and the same text twice tell how
//! many tokens a word of ours has on average, and how many the server adds to each prompt.

use inferometer_load::target::Target;
use inferometer_model::Outcome;
use inferometer_model::observations::Correction;
use inferometer_workload::text::{Segment, TextMaker};

use super::{ask_once, probe_tokens};
use crate::failure::Failure;

/// Words of the text; fewer for servers with little room.
const WORDS: [u32; 2] = [256, 64];
const SEED: u64 = 0x636f_756e_7469_6e67;
/// What no tokenizer for text would need per word, either way.
const SANE: std::ops::RangeInclusive<f64> = 0.2..=20.0;

/// `None` when the server does not say how long prompts are.
pub fn correction(target: &Target) -> Result<Option<Correction>, Failure> {
    for words in WORDS {
        let text = TextMaker::estimating(None).bare(&[Segment { seed: SEED, tokens: words }]);
        // Twice the text is twice its words, and what the server adds is there once.
        let twice = format!("{text} {text}");
        let Some(once) = counted(target, &text)? else { continue };
        let Some(twice) = counted(target, &twice)? else { continue };
        let tokens_per_word = (twice - once) / f64::from(words);
        let overhead_tokens = (once - (twice - once)).max(0.0);
        let correction = Correction { tokens_per_word, overhead_tokens };
        return Ok(SANE.contains(&tokens_per_word).then_some(correction));
    }
    Ok(None)
}

fn counted(target: &Target, text: &str) -> Result<Option<f64>, Failure> {
    let record = ask_once(target.clone(), text, probe_tokens(target.api, 1))?.record;
    let usage = record.usage.filter(|_| record.ending.outcome == Outcome::Ok);
    Ok(usage.and_then(|usage| usage.prompt_tokens).map(|tokens| tokens as f64))
}
