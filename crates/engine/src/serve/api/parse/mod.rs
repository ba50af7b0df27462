//! A generation request out of its JSON body.

mod prompt;
mod sampling;
mod turns;

use super::ask::{Ask, Endpoint, Serving};
use super::fields::{self, Fields};
use super::problem::Problem;
use crate::http::ErrorBody;

pub(super) use prompt::{check_ids, prompts};
pub(super) use turns::chat_turns;

/// Reads the body of a generation request (chat, completions, responses, messages).
pub(crate) fn parse(
    endpoint: Endpoint,
    body: &[u8],
    serving: &Serving<'_>,
) -> Result<Ask, ErrorBody> {
    ask(endpoint, body, serving).map_err(|problem| problem.error_body(endpoint))
}

fn ask(endpoint: Endpoint, body: &[u8], serving: &Serving<'_>) -> Result<Ask, Problem> {
    let map = fields::read(body)?;
    let fields = Fields::of_body(&map);
    let prompts = prompt::of(endpoint, &fields, serving.vocabulary)?;
    check_model(&fields, serving)?;
    let ask = sampling::ask(endpoint, &fields, prompts, serving.max_model_len)?;
    ask.prompts.iter().try_for_each(|prompt| check_length(prompt, ask.max_tokens, serving))?;
    Ok(ask)
}

/// A request that names no model is for the one there is.
pub(super) fn check_model(fields: &Fields<'_>, serving: &Serving<'_>) -> Result<(), Problem> {
    match fields.text("model")? {
        Some(model) if model != serving.model => {
            Err(Problem::UnknownModel { model: model.to_owned(), known: serving.model.to_owned() })
        }
        _ => Ok(()),
    }
}

/// A prompt must fit, together with what was asked for or else one token.
pub(super) fn check_length(
    prompt: &[u32],
    asked: Option<u32>,
    serving: &Serving<'_>,
) -> Result<(), Problem> {
    let limit = serving.max_model_len;
    let prompt = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
    match asked {
        _ if prompt == 0 => Err(Problem::EmptyPrompt),
        Some(asked) if limit < prompt.saturating_add(asked) => {
            Err(Problem::RequestTooLong { limit, prompt, asked })
        }
        None if limit <= prompt => Err(Problem::PromptTooLong { limit, prompt }),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
