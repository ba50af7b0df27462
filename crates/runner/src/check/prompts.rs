//! How the server counts prompts, and whether it remembers them.

use inferometer_load::target::Target;
use inferometer_model::observations::{Correction, InputLength};
use inferometer_model::{Outcome, Spec};
use inferometer_workload::Ingredients;
use inferometer_workload::text::{Segment, TextMaker};

use super::Finding;
use crate::failure::Failure;
use crate::preflight::{ask_once, counting, probe_tokens};

/// Several blocks of any cache, and room for it in any context.
const CACHE_WORDS: u32 = 160;
const EXACT_TOKENS: u32 = 200;

pub(super) fn examine(
    spec: &Spec,
    ingredients: &Ingredients,
    target: &Target,
) -> Result<Vec<Finding>, Failure> {
    let counted = match ingredients.materials().input_length {
        InputLength::Exact => by_tokenizer(ingredients, target)?,
        InputLength::Estimated | InputLength::Corrected(_) => by_words(target)?,
    };
    Ok(vec![counted, cache(spec, target)?])
}

fn by_words(target: &Target) -> Result<Finding, Failure> {
    Ok(match counting::correction(target)? {
        Some(Correction { tokens_per_word, overhead_tokens }) => Finding::good(
            "prompt length",
            format!(
                "reported; a word of ours is {tokens_per_word:.2} tokens, and each prompt has \
                 {overhead_tokens} more (its template)"
            ),
        )
        .remedy("for exact lengths give the model's tokenizer: --tokenizer"),
        None => Finding::problem(
            "prompt length",
            "the server does not say how long prompts are",
            "lengths stay estimates: give the model's tokenizer with --tokenizer",
        ),
    })
}

fn by_tokenizer(ingredients: &Ingredients, target: &Target) -> Result<Finding, Failure> {
    let segment = Segment { seed: 1, tokens: EXACT_TOKENS };
    let text = ingredients.text().framed(&[segment]);
    let record = ask_once(target.clone(), &text, probe_tokens(target.api, 1))?.record;
    let counted = record.usage.and_then(|usage| usage.prompt_tokens);
    Ok(match counted {
        Some(tokens) if tokens == u64::from(EXACT_TOKENS) => {
            Finding::good("prompt length", "the server counts exactly as the tokenizer does")
        }
        Some(tokens) => Finding::note(
            "prompt length",
            format!("{EXACT_TOKENS} tokens by the tokenizer are {tokens} to the server"),
        )
        .remedy(
            "a chat template adds to each prompt: --count with-template makes it part of the \
             length; any other difference means another tokenizer",
        ),
        None => Finding::problem(
            "prompt length",
            "the server does not say how long prompts are",
            "the audit of a run cannot compare lengths",
        ),
    })
}

/// The same prompt twice: does the second cost less?
fn cache(spec: &Spec, target: &Target) -> Result<Finding, Failure> {
    let seed = spec.seed ^ 0x6361_6368_6500;
    let text = TextMaker::estimating(None).bare(&[Segment { seed, tokens: CACHE_WORDS }]);
    let tokens = probe_tokens(target.api, 1);
    let first = ask_once(target.clone(), &text, tokens)?.record;
    let second = ask_once(target.clone(), &text, tokens)?.record;
    if [&first, &second].iter().any(|record| record.ending.outcome != Outcome::Ok) {
        return Ok(Finding::note("prefix cache", "not known: the question was not answered"));
    }
    let cached = second.usage.and_then(|usage| usage.cached_tokens);
    Ok(match cached {
        Some(0) => Finding::good("prefix cache", "off, as far as its usage tells"),
        Some(tokens) => Finding::note(
            "prefix cache",
            format!("on: a prompt sent twice found {tokens} of its tokens cached"),
        )
        .remedy("prompts are unique unless asked otherwise; a run's audit shows what was cached"),
        None => Finding::note("prefix cache", "its usage does not tell what was cached")
            .remedy("vLLM tells with --enable-prompt-tokens-details; another --seed is always new"),
    })
}
