//! A generation request out of its JSON body: first as sent, then as it will be carried out.

use std::time::Duration;

use serde::Deserialize;

use super::prompt::{Length, Part, TokenId};
use crate::faults::{Fault, Faults};
use crate::generation::Detail;
use crate::generation::Dialect;
use crate::http::{ErrorBody, Status};
use crate::options::{EngineOptions, Limits, OptionsError, Pacing};

/// A generation request with nothing left open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Generation {
    pub(crate) streamed: bool,
    pub(crate) prompt_tokens: u32,
    pub(crate) pacing: Pacing,
    pub(crate) faults: Faults,
    pub(crate) include_usage: bool,
    pub(crate) detail: Detail,
}

/// Reads a body; `options` say what the request leaves open.
pub(crate) fn parse(
    body: &[u8],
    dialect: Dialect,
    options: &EngineOptions,
) -> Result<Generation, RequestError> {
    let draft: Draft = serde_json::from_slice(body)?;
    if let Some(model) = draft.model.as_deref().filter(|model| *model != options.model_id()) {
        let known = options.model_id().to_owned();
        return Err(RequestError::UnknownModel { model: model.to_owned(), known });
    }
    draft.resolve(dialect, options)
}

/// Why a generation request cannot be carried out; where vLLM has words for it, in those.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("invalid request body: {0}")]
    Body(#[from] serde_json::Error),
    #[error("The model `{model}` does not exist. Valid aliases: {known}.")]
    UnknownModel { model: String, known: String },
    #[error("field required: {0}")]
    Missing(&'static str),
    #[error("{param} must be at least 1, got {value}. (parameter={param}, value={value})")]
    TooFewTokens { param: &'static str, value: i64 },
    #[error("{param} must be at most {limit}, got {value}. (parameter={param}, value={value})")]
    TooManyTokens { param: &'static str, value: i64, limit: u32 },
    #[error("`{name}` is {value}; it must be a number of milliseconds, 0 or more")]
    BadInterval { name: &'static str, value: f64 },
    #[error("paced: {0}")]
    Pacing(#[from] OptionsError),
}

impl RequestError {
    /// The error as an answer in vLLM's shape.
    pub(crate) fn error_body(&self) -> ErrorBody {
        let (status, param) = match self {
            Self::UnknownModel { .. } => (Status::NotFound, Some("model")),
            Self::Body(_) => (Status::BadRequest, None),
            Self::Missing(param)
            | Self::TooFewTokens { param, .. }
            | Self::TooManyTokens { param, .. } => (Status::BadRequest, Some(*param)),
            Self::BadInterval { .. } | Self::Pacing(_) => (Status::BadRequest, Some("paced")),
        };
        ErrorBody::new(status, self.to_string()).about(param)
    }
}

/// The body as sent. Fields that are not listed are accepted and ignored, as vLLM does.
#[derive(Debug, Deserialize)]
struct Draft {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    prompt: Option<Length<TokenId>>,
    stream: Option<bool>,
    max_tokens: Option<i64>,
    max_completion_tokens: Option<i64>,
    stream_options: Option<StreamOptions>,
    return_token_ids: Option<bool>,
    paced: Option<PacedDraft>,
}

#[derive(Debug, Deserialize)]
struct Message {
    content: Option<Length<Part>>,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

/// Our own extension. Here a misspelt key would silently test nothing, so it is an error.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PacedDraft {
    ttft_ms: Option<f64>,
    gap_ms: Option<f64>,
    tokens: Option<u32>,
    tokens_per_write: Option<u32>,
    events_per_write: Option<u32>,
    jitter: Option<f64>,
    faults: Option<Vec<Fault>>,
}

impl Draft {
    fn resolve(
        self,
        dialect: Dialect,
        options: &EngineOptions,
    ) -> Result<Generation, RequestError> {
        let prompt_tokens = self.prompt_tokens(dialect)?;
        let tokens = self.tokens(&options.limits)?;
        let paced = self.paced.unwrap_or_default();
        let stream_options = self.stream_options.unwrap_or_default();
        let faults = match &paced.faults {
            Some(faults) => faults.iter().copied().collect(),
            None => options.faults,
        };
        Ok(Generation {
            streamed: self.stream.unwrap_or(false),
            prompt_tokens,
            pacing: paced.pacing(tokens, &options.pacing, &options.limits)?,
            faults,
            include_usage: stream_options.include_usage.unwrap_or(false),
            detail: Detail {
                continuous_usage: stream_options.continuous_usage_stats.unwrap_or(false),
                token_ids: self.return_token_ids.unwrap_or(false),
            },
        })
    }

    fn prompt_tokens(&self, dialect: Dialect) -> Result<u32, RequestError> {
        match dialect {
            Dialect::Chat => {
                let messages = self.messages.as_ref().ok_or(RequestError::Missing("messages"))?;
                let contents = messages.iter().filter_map(|message| message.content.as_ref());
                Ok(contents.fold(0, |sum, content| content.tokens.saturating_add(sum)))
            }
            Dialect::Completions => {
                let prompt = self.prompt.as_ref().ok_or(RequestError::Missing("prompt"))?;
                Ok(prompt.tokens)
            }
        }
    }

    /// The token count that the standard fields ask for; the newer name wins.
    fn tokens(&self, limits: &Limits) -> Result<Option<u32>, RequestError> {
        let asked = match (self.max_completion_tokens, self.max_tokens) {
            (Some(value), _) => ("max_completion_tokens", value),
            (None, Some(value)) => ("max_tokens", value),
            (None, None) => return Ok(None),
        };
        let (param, value) = asked;
        if value < 1 {
            return Err(RequestError::TooFewTokens { param, value });
        }
        let limit = limits.tokens;
        match u32::try_from(value) {
            Ok(tokens) if tokens <= limit => Ok(Some(tokens)),
            _ => Err(RequestError::TooManyTokens { param, value, limit }),
        }
    }
}

impl PacedDraft {
    /// `tokens` is what the standard fields ask for; the extension is more specific and wins.
    fn pacing(
        &self,
        tokens: Option<u32>,
        default: &Pacing,
        limits: &Limits,
    ) -> Result<Pacing, RequestError> {
        let pacing = Pacing {
            ttft: interval("ttft_ms", self.ttft_ms)?.unwrap_or(default.ttft),
            gap: interval("gap_ms", self.gap_ms)?.unwrap_or(default.gap),
            tokens: self.tokens.or(tokens).unwrap_or(default.tokens),
            tokens_per_write: self.tokens_per_write.unwrap_or(default.tokens_per_write),
            events_per_write: self.events_per_write.unwrap_or(default.events_per_write),
            jitter: self.jitter.unwrap_or(default.jitter),
        };
        pacing.check()?;
        if limits.tokens < pacing.tokens {
            let (tokens, limit) = (pacing.tokens, limits.tokens);
            return Err(OptionsError::TooManyTokens { tokens, limit }.into());
        }
        Ok(pacing)
    }
}

fn interval(name: &'static str, ms: Option<f64>) -> Result<Option<Duration>, RequestError> {
    let Some(value) = ms else { return Ok(None) };
    let seconds = value / 1e3;
    let duration = Duration::try_from_secs_f64(seconds);
    duration.map(Some).map_err(|_| RequestError::BadInterval { name, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Mode;

    fn chat(body: &str) -> Result<Generation, RequestError> {
        parse(body.as_bytes(), Dialect::Chat, &EngineOptions::of(Mode::Paced))
    }

    fn chat_with(fields: &str) -> Result<Generation, RequestError> {
        chat(&format!(r#"{{"messages":[{{"role":"user","content":"a b c"}}],{fields}}}"#))
    }

    fn message(result: Result<Generation, RequestError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_bare_request_gets_the_options_defaults() {
        let generation = chat(r#"{"messages":[{"role":"user","content":"a b c"}]}"#).unwrap();
        assert_eq!(generation.pacing, Pacing::default());
        assert_eq!((generation.prompt_tokens, generation.streamed), (3, false));
    }

    #[test]
    fn the_more_specific_token_count_wins() {
        let tokens = |fields: &str| chat_with(fields).unwrap().pacing.tokens;
        assert_eq!(tokens(r#""max_tokens":5"#), 5);
        assert_eq!(tokens(r#""max_tokens":5,"max_completion_tokens":6"#), 6);
        assert_eq!(tokens(r#""max_tokens":5,"paced":{"tokens":7}"#), 7);
    }

    #[test]
    fn the_extension_sets_the_pace() {
        let fields = r#""paced":{"ttft_ms":1.5,"gap_ms":0,"jitter":0.5,"faults":["cr","bom"]}"#;
        let generation = chat_with(fields).unwrap();
        assert_eq!(generation.pacing.ttft, Duration::from_micros(1_500));
        assert_eq!(generation.pacing.gap, Duration::ZERO);
        assert!(generation.faults.contains(Fault::Cr) && generation.faults.contains(Fault::Bom));
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        let cases = [
            (r#""max_tokens":0"#, "max_tokens must be at least 1, got 0"),
            (r#""max_completion_tokens":-5"#, "max_completion_tokens must be at least 1, got -5"),
            (r#""max_tokens":99999999999"#, "max_tokens must be at most 131072"),
            (r#""model":"other""#, "The model `other` does not exist. Valid aliases: paced."),
            (r#""paced":{"ttft":1}"#, "invalid request body: unknown field `ttft`"),
            (r#""paced":{"faults":["x"]}"#, "invalid request body: unknown fault `x`"),
            (r#""paced":{"gap_ms":-1}"#, "`gap_ms` is -1"),
            (r#""paced":{"jitter":2}"#, "paced: `jitter` is 2"),
            (r#""paced":{"events_per_write":0}"#, "paced: `events_per_write` is 0"),
            (r#""paced":{"tokens":9999999}"#, "paced: `tokens` is 9999999"),
        ];
        for (fields, start) in cases {
            let error = message(chat_with(fields));
            assert!(error.starts_with(start), "{fields}: {error}");
        }
        assert_eq!(message(chat("{}")), "field required: messages");
    }
}
