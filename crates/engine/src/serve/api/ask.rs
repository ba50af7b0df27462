//! One request to generate, with nothing left open but what the scheduler decides.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::http::{ErrorBody, Status, plain_error};
use crate::serve::vocabulary::Vocabulary;

/// What takes a JSON body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
    Tokenize,
    Detokenize,
}

/// What a request is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Serving<'a> {
    pub(crate) model: &'a str,
    pub(crate) max_model_len: u32,
    pub(crate) vocabulary: &'static Vocabulary,
}

/// A request to generate.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the request's own")]
pub(crate) struct GenerationRequest {
    pub(crate) endpoint: Endpoint,
    /// Token ids. Completions may have several; the others have one.
    pub(crate) prompts: Vec<Vec<u32>>,
    /// Answers to each prompt; choice `c` answers prompt `c / n`.
    pub(crate) n: u16,
    pub(crate) streamed: bool,
    /// `None` fills the model's length; see [`GenerationRequest::most_tokens`].
    pub(crate) max_tokens: Option<u32>,
    pub(crate) min_tokens: u32,
    pub(crate) ignore_eos: bool,
    pub(crate) stop: Vec<String>,
    /// Whether the text keeps the stop string that ended it.
    pub(crate) include_stop: bool,
    /// In ascending order.
    pub(crate) stop_token_ids: Vec<u32>,
    pub(crate) seed: Option<u64>,
    pub(crate) priority: i32,
    /// Alternatives to be sent with each token; `None` sends no probabilities at all.
    pub(crate) logprobs: Option<u32>,
    pub(crate) include_usage: bool,
    pub(crate) continuous_usage: bool,
    pub(crate) token_ids: bool,
    /// The prompts' texts, one each, where they are to be repeated ahead of the answers.
    pub(crate) echo: Option<Vec<String>>,
    /// Nothing but the prompt is to be sent. As in vLLM one token is generated all the same.
    pub(crate) echo_alone: bool,
    /// The client's name for the request, of which the answer's id is made: the body's
    /// `request_id`, or the header `x-request-id`, which goes before it.
    pub(crate) request_id: Option<String>,
    pub(crate) echo_fields: EchoedFields,
}

/// What an answer repeats from its request and the engine makes no use of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EchoedFields {
    pub(crate) temperature: f64,
    pub(crate) top_p: f64,
    pub(crate) presence_penalty: f64,
    pub(crate) frequency_penalty: f64,
    pub(crate) instructions: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) metadata: Option<serde_json::Value>,
}

impl GenerationRequest {
    pub(crate) fn choices(&self) -> u16 {
        let prompts = u16::try_from(self.prompts.len()).unwrap_or(u16::MAX);
        prompts.saturating_mul(self.n)
    }

    /// The prompt that a choice answers.
    pub(crate) fn prompt_of(&self, choice: u16) -> &[u32] {
        self.prompts.get(usize::from(choice / self.n)).map_or(&[], Vec::as_slice)
    }

    /// How long the answers to a prompt may become.
    pub(crate) fn most_tokens(&self, prompt: &[u32], max_model_len: u32) -> u32 {
        let prompt = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
        let room = max_model_len.saturating_sub(prompt);
        self.max_tokens.map_or(room, |asked| asked.min(room))
    }

    /// Tokens of all prompts together, as usage counts them.
    pub(crate) fn prompt_tokens(&self) -> u32 {
        let tokens = self.prompts.iter().map(Vec::len).sum::<usize>();
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }
}

/// An object of the body.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// From the body to here, with a point behind it.
    path: String,
}

/// Reads a whole body.
pub(super) fn read(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Problem::WrongType {
            place: String::new(),
            kind: "model_attributes_type",
            expected: "a valid dictionary or object to extract fields from",
        }),
        Err(error) => Err(Problem::not_json(body, &error)),
    }
}

impl<'a> Fields<'a> {
    pub(super) fn of_body(map: &'a Map<String, Value>) -> Self {
        Self { map, path: String::new() }
    }

    /// The object at `place`.
    pub(super) fn at(value: &'a Value, place: &str) -> Result<Self, Problem> {
        let Value::Object(map) = value else {
            return Err(wrong(place, "dict_type", "a valid dictionary"));
        };
        Ok(Self { map, path: format!("{place}.") })
    }

    pub(super) fn place(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Whether the field is there and is null.
    pub(super) fn says_null(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(Value::is_null)
    }

    pub(super) fn required(&self, name: &str) -> Result<&'a Value, Problem> {
        let missing = || Problem::Missing { place: self.place(name), fields: self.map.len() };
        self.value(name).ok_or_else(missing)
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        self.read(name, "bool_type", "a valid boolean", Value::as_bool)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Problem> {
        self.read(name, "string_type", "a valid string", Value::as_str)
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, Problem> {
        self.read(name, "int_type", "a valid integer", integer)
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, Problem> {
        self.read(name, "float_type", "a valid number", Value::as_f64)
    }

    pub(super) fn list(&self, name: &str) -> Result<Option<&'a Vec<Value>>, Problem> {
        self.read(name, "list_type", "a valid list", Value::as_array)
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<Self>, Problem> {
        self.value(name).map(|value| Self::at(value, &self.place(name))).transpose()
    }

    /// A string, or a list of some.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, Problem> {
        let place = self.place(name);
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(Value::Array(items)) => items.iter().map(|item| text_at(item, &place)).collect(),
            Some(_) => Err(wrong(&place, "string_type", "a valid string")),
        }
    }

    /// A list of token ids, of any number.
    pub(super) fn ids(&self, name: &str) -> Result<Vec<i64>, Problem> {
        let place = self.place(name);
        let items = self.list(name)?.map_or([].as_slice(), Vec::as_slice);
        items.iter().map(|item| integer_at(item, &place)).collect()
    }

    fn read<T>(
        &self,
        name: &str,
        kind: &'static str,
        expected: &'static str,
        as_type: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        as_type(value).map(Some).ok_or_else(|| wrong(&self.place(name), kind, expected))
    }
}

/// The string at `place`.
pub(super) fn text_at(value: &Value, place: &str) -> Result<String, Problem> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| wrong(place, "string_type", "a valid string"))
}

/// The integer at `place`.
pub(super) fn integer_at(value: &Value, place: &str) -> Result<i64, Problem> {
    integer(value).ok_or_else(|| wrong(place, "int_type", "a valid integer"))
}

/// A value of another type than those that are taken.
pub(super) fn wrong(place: &str, kind: &'static str, expected: &'static str) -> Problem {
    Problem::WrongType { place: place.to_owned(), kind, expected }
}

/// An integer, also one that is written as `8.0`. One beyond the range is as large as can be: it
/// is out of any bound all the same.
fn integer(value: &Value) -> Option<i64> {
    let number = value.as_number()?;
    if let Some(exact) = number.as_i64() {
        return Some(exact);
    }
    if number.is_u64() {
        return Some(i64::MAX);
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    let whole = float as i64;
    Some(whole)
}

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
    /// A body that is no JSON: serde's message, and the place as Python counts it.
    pub(super) fn not_json(body: &[u8], error: &serde_json::Error) -> Self {
        let lines_before = body.split_inclusive(|byte| *byte == b'\n').take(error.line() - 1);
        let at = lines_before.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
        let mut reason = error.to_string();
        // Its place is already written before it.
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

/// 401, for a missing or wrong key.
pub(crate) fn unauthorized() -> Rc<Vec<u8>> {
    plain_error(Status::Unauthorized, "", &json!({ "error": "Unauthorized" }))
}

/// 404, for a path that is not served.
pub(crate) fn unknown_path() -> Rc<Vec<u8>> {
    plain_error(Status::NotFound, "", &json!({ "detail": "Not Found" }))
}

/// 405, naming the method that is taken.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Rc<Vec<u8>> {
    let allow = format!("allow: {allowed}\r\n");
    plain_error(Status::MethodNotAllowed, &allow, &json!({ "detail": "Method Not Allowed" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_framework_have_its_bodies() {
        let seen = |reply: Rc<Vec<u8>>| String::from_utf8(reply.to_vec()).unwrap();
        let path = seen(unknown_path());
        assert!(path.starts_with("HTTP/1.1 404 Not Found\r\ncontent-length: 22\r\n"), "{path}");
        assert!(path.ends_with("\r\n\r\n{\"detail\":\"Not Found\"}"), "{path}");
        assert!(seen(unauthorized()).ends_with("\r\n\r\n{\"error\":\"Unauthorized\"}"));
        assert!(seen(method_not_allowed("POST")).contains("\r\nallow: POST\r\n"));
    }
}
