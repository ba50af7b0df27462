//! What is wrong with a body, in vLLM's words where it has some.

use super::ask::Endpoint;
use crate::http::{ErrorBody, Status};

/// Why a request cannot be carried out.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum Problem {
    #[error(
        "1 validation error:\n  {{'type': 'json_invalid', 'loc': 'body.{at}', 'msg': 'JSON decode \
         error', 'input': '<dict of 0 items>', 'ctx': {{'error': '{reason}'}}}}"
    )]
    NotJson { at: usize, reason: String },
    #[error(
        "1 validation error:\n  {{'type': 'missing', 'loc': 'body.{place}', 'msg': 'Field \
         required', 'input': '<dict of {fields} items>'}}"
    )]
    Missing { place: String, fields: usize },
    #[error(
        "1 validation error:\n  {{'type': '{kind}', 'loc': '{}', 'msg': 'Input should be \
         {expected}'}}",
        loc(.place)
    )]
    WrongType { place: String, kind: &'static str, expected: &'static str },
    #[error("The model `{model}` does not exist. Valid aliases: {known}.")]
    UnknownModel { model: String, known: String },
    #[error("Response with id '{id}' not found.")]
    UnknownResponse { id: String },
    #[error("{param} must be {rule}, got {value}. (parameter={param}, value={value})")]
    OutOfRange { param: &'static str, rule: String, value: String },
    #[error("{message} (parameter={param})")]
    Conflict { param: &'static str, message: &'static str },
    #[error(
        "max_tokens={asked} cannot be greater than max_model_len={limit}. Please request fewer \
         output tokens. (parameter=max_tokens, value={asked})"
    )]
    AnswerTooLong { asked: i64, limit: u32 },
    #[error(
        "This model's maximum context length is {limit} tokens. However, you requested {asked} \
         output tokens and your prompt contains {prompt} input tokens, for a total of {} tokens. \
         Please reduce the length of the input prompt or the number of requested output tokens. \
         (parameter=input_tokens, value={prompt})",
        u64::from(*prompt) + u64::from(*asked)
    )]
    RequestTooLong { limit: u32, prompt: u32, asked: u32 },
    #[error(
        "This model's maximum context length is {limit} tokens. However, your prompt contains \
         {prompt} input tokens. Please reduce the length of the input prompt. \
         (parameter=input_tokens, value={prompt})"
    )]
    PromptTooLong { limit: u32, prompt: u32 },
    #[error("The decoder prompt cannot be empty")]
    EmptyPrompt,
    #[error("Token id {id} is out of vocabulary")]
    UnknownToken { id: i64 },
}

impl ErrorBody {
    /// In the shape that the endpoint's clients understand.
    pub(crate) fn for_clients_of(self, endpoint: Endpoint) -> Self {
        if endpoint == Endpoint::Messages { self.for_anthropic() } else { self }
    }
}

fn loc(place: &str) -> String {
    if place.is_empty() { "body".to_owned() } else { format!("body.{place}") }
}

impl Problem {
    /// Of a body that is no JSON: serde's words, and the place as Python counts it.
    pub(super) fn not_json(body: &[u8], error: &serde_json::Error) -> Self {
        let lines_before = body.split_inclusive(|byte| *byte == b'\n').take(error.line() - 1);
        let at = lines_before.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
        let mut reason = error.to_string();
        // Where it is stands ahead of it already.
        reason.truncate(reason.find(" at line ").unwrap_or(reason.len()));
        Self::NotJson { at, reason }
    }

    pub(super) fn error_body(&self, endpoint: Endpoint) -> ErrorBody {
        self.shaped().for_clients_of(endpoint)
    }

    fn shaped(&self) -> ErrorBody {
        let with = |status| ErrorBody::new(status, self.to_string());
        match self {
            Self::NotJson { at, .. } => with(Status::BadRequest).malformed_at(format!("body.{at}")),
            Self::Missing { place, .. } | Self::WrongType { place, .. } => {
                with(Status::BadRequest).malformed_at(loc(place))
            }
            Self::UnknownModel { .. } => with(Status::NotFound).about(Some("model")),
            Self::UnknownResponse { .. } => {
                with(Status::NotFound).about(Some("previous_response_id"))
            }
            Self::OutOfRange { param, .. } | Self::Conflict { param, .. } => {
                with(Status::BadRequest).about(Some(*param))
            }
            Self::AnswerTooLong { .. } => with(Status::BadRequest).about(Some("max_tokens")),
            Self::RequestTooLong { .. } | Self::PromptTooLong { .. } => {
                with(Status::BadRequest).about(Some("input_tokens"))
            }
            Self::EmptyPrompt | Self::UnknownToken { .. } => with(Status::BadRequest),
        }
    }
}
