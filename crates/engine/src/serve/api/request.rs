//! A generation request out of its JSON body, with nothing left open but what the scheduler decides;
//! and where a stop string or stop token ends its answer.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use super::answer::Finish;
use crate::http::{ErrorBody, ID_BYTES_KEPT, Status};
use crate::scheduler::blocks::VOCABULARY;
use crate::serve::vocabulary::{Role, Turn, Vocabulary};
use crate::truth::Api;

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
    pub(crate) api: Api,
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
    pub(crate) metadata: Option<Value>,
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
        let room = max_model_len.saturating_sub(count(prompt.len()));
        self.max_tokens.map_or(room, |asked| asked.min(room))
    }

    /// Tokens of all prompts together, as usage counts them.
    pub(crate) fn prompt_tokens(&self) -> u32 {
        count(self.prompts.iter().map(Vec::len).sum())
    }
}

fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

/// An object of the body.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// From the body to here, with a point behind it.
    path: String,
}

/// Reads a whole body.
pub(super) fn read(body: &[u8]) -> Result<Map<String, Value>, ErrorBody> {
    let error = match serde_json::from_slice(body) {
        Ok(Value::Object(map)) => return Ok(map),
        Ok(_) => {
            let expected = "a valid dictionary or object to extract fields from";
            return Err(wrong_type("", "model_attributes_type", expected));
        }
        Err(error) => error,
    };
    // The position as Python counts it, and serde's message without its own.
    let lines_before = body.split_inclusive(|byte| *byte == b'\n').take(error.line() - 1);
    let at = lines_before.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
    let mut reason = error.to_string();
    reason.truncate(reason.find(" at line ").unwrap_or(reason.len()));
    let message = format!(
        "1 validation error:\n  {{'type': 'json_invalid', 'loc': 'body.{at}', 'msg': 'JSON decode \
         error', 'input': '<dict of 0 items>', 'ctx': {{'error': '{reason}'}}}}"
    );
    Err(ErrorBody::new(Status::BAD_REQUEST, message).malformed_at(format!("body.{at}")))
}

impl<'a> Fields<'a> {
    pub(super) fn of_body(map: &'a Map<String, Value>) -> Self {
        Self { map, path: String::new() }
    }

    /// The object at `place`.
    fn at(value: &'a Value, place: &str) -> Result<Self, ErrorBody> {
        let Value::Object(map) = value else {
            return Err(wrong_type(place, "dict_type", "a valid dictionary"));
        };
        Ok(Self { map, path: format!("{place}.") })
    }

    fn place(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn required(&self, name: &str) -> Result<&'a Value, ErrorBody> {
        self.value(name).ok_or_else(|| {
            let (place, fields) = (self.place(name), self.map.len());
            let message = format!(
                "1 validation error:\n  {{'type': 'missing', 'loc': 'body.{place}', 'msg': 'Field \
                 required', 'input': '<dict of {fields} items>'}}"
            );
            ErrorBody::new(Status::BAD_REQUEST, message).malformed_at(format!("body.{place}"))
        })
    }

    /// The value of a switch, which is off where nothing is said.
    pub(super) fn flag(&self, name: &str) -> Result<bool, ErrorBody> {
        Ok(self.read(name, "bool_type", "a valid boolean", Value::as_bool)?.unwrap_or(false))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, ErrorBody> {
        self.read(name, "string_type", "a valid string", Value::as_str)
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, ErrorBody> {
        self.read(name, "int_type", "a valid integer", integer)
    }

    fn number(&self, name: &str) -> Result<Option<f64>, ErrorBody> {
        self.read(name, "float_type", "a valid number", Value::as_f64)
    }

    fn list(&self, name: &str) -> Result<&'a [Value], ErrorBody> {
        let items = self.read(name, "list_type", "a valid list", Value::as_array)?;
        Ok(items.map_or(&[], Vec::as_slice))
    }

    /// A list of token ids.
    pub(super) fn ids(&self, name: &str) -> Result<Vec<u32>, ErrorBody> {
        token_ids(self.list(name)?, &self.place(name))
    }

    /// Whether a chat waits for its answer.
    pub(super) fn awaits_answer(&self) -> Result<bool, ErrorBody> {
        Ok(self.value("add_generation_prompt").is_none() || self.flag("add_generation_prompt")?)
    }

    fn read<T>(
        &self,
        name: &str,
        kind: &str,
        expected: &str,
        as_type: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ErrorBody> {
        let Some(value) = self.value(name) else { return Ok(None) };
        as_type(value).map(Some).ok_or_else(|| wrong_type(&self.place(name), kind, expected))
    }
}

fn text_at(value: &Value, place: &str) -> Result<String, ErrorBody> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| wrong_type(place, "string_type", "a valid string"))
}

/// Ids that exist.
fn token_ids(items: &[Value], place: &str) -> Result<Vec<u32>, ErrorBody> {
    let wrong = || wrong_type(place, "int_type", "a valid integer");
    let numbers: Result<Vec<i64>, _> =
        items.iter().map(|item| integer(item).ok_or_else(wrong)).collect();
    let known = |id: i64| {
        let unknown = || bad_request(None, format!("Token id {id} is out of vocabulary"));
        u32::try_from(id).ok().filter(|id| *id < VOCABULARY).ok_or_else(unknown)
    };
    numbers?.into_iter().map(known).collect()
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

/// A value of another type than those that are taken.
fn wrong_type(place: &str, kind: &str, expected: &str) -> ErrorBody {
    let loc = if place.is_empty() { "body".to_owned() } else { format!("body.{place}") };
    let message = format!(
        "1 validation error:\n  {{'type': '{kind}', 'loc': '{loc}', 'msg': 'Input should be \
         {expected}'}}"
    );
    ErrorBody::new(Status::BAD_REQUEST, message).malformed_at(loc)
}

fn bad_request(param: Option<&'static str>, message: String) -> ErrorBody {
    ErrorBody::new(Status::BAD_REQUEST, message).about(param)
}

pub(super) fn out_of_range(param: &'static str, rule: &str, value: &impl ToString) -> ErrorBody {
    let value = value.to_string();
    let message =
        format!("{param} must be {rule}, got {value}. (parameter={param}, value={value})");
    bad_request(Some(param), message)
}

fn conflict(param: &'static str, message: &str) -> ErrorBody {
    bad_request(Some(param), format!("{message} (parameter={param})"))
}

fn empty_prompt() -> ErrorBody {
    bad_request(None, "The decoder prompt cannot be empty".to_owned())
}

/// Reads the body of a generation request (chat, completions, responses, messages).
pub(crate) fn parse(
    api: Api,
    body: &[u8],
    serving: &Serving<'_>,
) -> Result<GenerationRequest, ErrorBody> {
    let parse = || {
        let map = read(body)?;
        let fields = Fields::of_body(&map);
        let prompts = generation_prompts(api, &fields, serving.vocabulary)?;
        check_model(&fields, serving)?;
        let ask = sampled(api, &fields, prompts, serving.max_model_len)?;
        ask.prompts.iter().try_for_each(|prompt| check_length(prompt, ask.max_tokens, serving))?;
        Ok(ask)
    };
    parse().map_err(|error: ErrorBody| error.for_clients_of(api))
}

/// A request that names no model is for the one there is.
pub(super) fn check_model(fields: &Fields<'_>, serving: &Serving<'_>) -> Result<(), ErrorBody> {
    let Some(model) = fields.text("model")?.filter(|model| *model != serving.model) else {
        return Ok(());
    };
    Err(ErrorBody::unknown_model(model, serving.model))
}

/// A prompt must fit, together with what was asked for or else one token.
pub(super) fn check_length(
    prompt: &[u32],
    asked: Option<u32>,
    serving: &Serving<'_>,
) -> Result<(), ErrorBody> {
    let (limit, prompt) = (serving.max_model_len, count(prompt.len()));
    let (what, remedy) = match asked {
        _ if prompt == 0 => return Err(empty_prompt()),
        Some(asked) if limit < prompt.saturating_add(asked) => {
            let total = u64::from(prompt) + u64::from(asked);
            let what = format!(
                "you requested {asked} output tokens and your prompt contains {prompt} input \
                 tokens, for a total of {total} tokens"
            );
            (what, "the input prompt or the number of requested output tokens")
        }
        None if limit <= prompt => {
            (format!("your prompt contains {prompt} input tokens"), "the input prompt")
        }
        Some(_) | None => return Ok(()),
    };
    let message = format!(
        "This model's maximum context length is {limit} tokens. However, {what}. Please reduce the \
         length of {remedy}. (parameter=input_tokens, value={prompt})"
    );
    Err(bad_request(Some("input_tokens"), message))
}

/// One or several prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prompts {
    pub(super) ids: Vec<Vec<u32>>,
    /// As they were sent, or as ids read; only where it may have to be repeated.
    texts: Vec<String>,
}

/// The prompts of a generation request.
fn generation_prompts(
    api: Api,
    fields: &Fields<'_>,
    vocabulary: &Vocabulary,
) -> Result<Prompts, ErrorBody> {
    let mut turns = Vec::new();
    match api {
        Api::Completions | Api::Embeddings => return prompts(fields, "prompt", vocabulary),
        Api::Chat => turns = chat_turns(fields)?,
        // `system` and `messages`, as Anthropic has them.
        Api::Messages => {
            if let Some(system) = fields.value("system") {
                let text = content(system, &fields.place("system"))?;
                turns.push(Turn { role: Role::System, text });
            }
            turns.extend(chat_turns(fields)?);
        }
        // `instructions` and `input`, as OpenAI's responses have them.
        Api::Responses => {
            if let Some(instructions) = fields.text("instructions")? {
                turns.push(Turn { role: Role::System, text: instructions.to_owned() });
            }
            let input = fields.required("input")?;
            if let Value::String(text) = input {
                turns.push(Turn { role: Role::User, text: text.clone() });
            } else {
                for (at, item) in list_at(input, "input")?.iter().enumerate() {
                    turns.extend(input_item(item, &format!("input.{at}"))?);
                }
            }
        }
    }
    let ids = vec![vocabulary.encode_chat(&turns, fields.awaits_answer()?)];
    Ok(Prompts { ids, texts: Vec::new() })
}

/// A text, a list of texts, a list of ids, or a list of lists of ids.
pub(super) fn prompts(
    fields: &Fields<'_>,
    name: &str,
    vocabulary: &Vocabulary,
) -> Result<Prompts, ErrorBody> {
    let place = fields.place(name);
    let of_texts = |texts: Vec<String>| Prompts {
        ids: texts.iter().map(|text| vocabulary.encode(text)).collect(),
        texts,
    };
    let of_ids = |ids: Vec<Vec<u32>>| Prompts {
        texts: ids.iter().map(|ids| vocabulary.decode(ids)).collect(),
        ids,
    };
    let prompt = fields.required(name)?;
    if let Value::String(text) = prompt {
        return Ok(of_texts(vec![text.clone()]));
    }
    let items = list_at(prompt, &place)?;
    match items.first() {
        None => Err(empty_prompt()),
        Some(Value::String(_)) => {
            items.iter().map(|item| text_at(item, &place)).collect::<Result<_, _>>().map(of_texts)
        }
        Some(Value::Array(_)) => {
            let list = |item: &Value| {
                let wrong = || wrong_type(&place, "list_type", "a valid list");
                token_ids(item.as_array().ok_or_else(wrong)?, &place)
            };
            items.iter().map(list).collect::<Result<_, _>>().map(of_ids)
        }
        Some(_) => Ok(of_ids(vec![token_ids(items, &place)?])),
    }
}

/// A list, where a text could be as well.
fn list_at<'v>(value: &'v Value, place: &str) -> Result<&'v [Value], ErrorBody> {
    let wrong = || wrong_type(place, "string_type", "a valid string or list");
    value.as_array().map(Vec::as_slice).ok_or_else(wrong)
}

/// `messages`, as OpenAI's chat has them.
pub(super) fn chat_turns(fields: &Fields<'_>) -> Result<Vec<Turn>, ErrorBody> {
    fields.required("messages")?;
    let place = fields.place("messages");
    let messages = fields.list("messages")?.iter().enumerate();
    messages.map(|(at, item)| turn(item, &format!("{place}.{at}"))).collect()
}

/// Items without words of their own, such as reasoning, are no turns.
fn input_item(item: &Value, place: &str) -> Result<Option<Turn>, ErrorBody> {
    let fields = Fields::at(item, place)?;
    let (role, name) = match fields.text("type")? {
        None | Some("message") => return turn(item, place).map(Some),
        Some("function_call") => (Role::Assistant, "arguments"),
        Some("function_call_output") => (Role::Tool, "output"),
        Some(_) => return Ok(None),
    };
    let text = fields.value(name).map(|value| content(value, &fields.place(name))).transpose()?;
    Ok(Some(Turn { role, text: text.unwrap_or_default() }))
}

fn turn(item: &Value, place: &str) -> Result<Turn, ErrorBody> {
    let fields = Fields::at(item, place)?;
    fields.required("role")?;
    let role = Role::named(fields.text("role")?.unwrap_or_default());
    let text = match fields.value("content") {
        Some(value) => content(value, &fields.place("content"))?,
        None => String::new(),
    };
    Ok(Turn { role, text })
}

/// The text of a string or of a list of parts. Parts without text (pictures) have no tokens here;
/// the results of tools have their text one storey deeper.
fn content(value: &Value, place: &str) -> Result<String, ErrorBody> {
    if let Value::String(text) = value {
        return Ok(text.clone());
    }
    let mut texts = Vec::new();
    for (at, part) in list_at(value, place)?.iter().enumerate() {
        let fields = Fields::at(part, &format!("{place}.{at}"))?;
        match (fields.text("text")?, fields.value("content")) {
            (Some(text), _) => texts.push(text.to_owned()),
            (None, Some(nested)) => texts.push(content(nested, &fields.place("content"))?),
            (None, None) => {}
        }
    }
    Ok(texts.join("\n"))
}

/// The request, when its prompts are known. Ranges are vLLM's.
fn sampled(
    api: Api,
    fields: &Fields<'_>,
    prompts: Prompts,
    max_model_len: u32,
) -> Result<GenerationRequest, ErrorBody> {
    let streamed = fields.flag("stream")?;
    let (include_usage, continuous_usage) = usage_options(fields, streamed)?;
    check_ranges(fields)?;
    let echo_fields = echoed_fields(api, fields)?;
    let n = answers(api, fields, &prompts.ids)?;
    let echo = fields.flag("echo")? && api == Api::Completions;
    let echo_alone = echo && fields.integer("max_tokens")? == Some(0);
    let max_tokens = if echo_alone { Some(1) } else { max_tokens(api, fields, max_model_len)? };
    let priority = fields.integer("priority")?.unwrap_or(0);
    Ok(GenerationRequest {
        api,
        n,
        streamed,
        max_tokens,
        min_tokens: min_tokens(fields, max_tokens)?,
        ignore_eos: fields.flag("ignore_eos")?,
        stop: stop(api, fields)?,
        include_stop: fields.flag("include_stop_str_in_output")?,
        stop_token_ids: {
            let mut ids = fields.ids("stop_token_ids")?;
            ids.sort_unstable();
            ids.dedup();
            ids
        },
        seed: fields.integer("seed")?.map(i64::cast_unsigned),
        priority: i32::try_from(priority).unwrap_or(if priority < 0 { i32::MIN } else { i32::MAX }),
        logprobs: logprobs(api, fields)?,
        include_usage,
        continuous_usage,
        token_ids: fields.flag("return_token_ids")?,
        echo: echo.then_some(prompts.texts),
        echo_alone,
        request_id: short_id("request_id", fields.text("request_id")?)?,
        echo_fields,
        prompts: prompts.ids,
    })
}

/// Whether usage comes at the end, and with every event.
fn usage_options(fields: &Fields<'_>, streamed: bool) -> Result<(bool, bool), ErrorBody> {
    let Some(options) = fields.value("stream_options") else { return Ok((false, false)) };
    let options = Fields::at(options, &fields.place("stream_options"))?;
    if !streamed {
        let message = "Stream options can only be defined when `stream=True`.";
        return Err(conflict("stream_options", message));
    }
    let (at_end, continuous) =
        (options.flag("include_usage")?, options.flag("continuous_usage_stats")?);
    Ok((at_end, at_end && continuous))
}

fn echoed_fields(api: Api, fields: &Fields<'_>) -> Result<EchoedFields, ErrorBody> {
    let is_response = api == Api::Responses;
    if let Some(id) = fields.text("previous_response_id")?.filter(|_| is_response) {
        let message = format!("Response with id '{id}' not found.");
        let error = ErrorBody::new(Status::NOT_FOUND, message);
        return Err(error.about(Some("previous_response_id")));
    }
    let instructions = if is_response { fields.text("instructions")? } else { None };
    // Users that are no strings are for servers that read them.
    let user = fields.value("user").and_then(Value::as_str).filter(|_| is_response);
    let metadata = fields.value("metadata").filter(|_| is_response);
    let length = metadata.map_or(0, |value| value.to_string().len());
    if METADATA_BYTES_MAX < length {
        let rule = format!("at most {METADATA_BYTES_MAX} bytes of JSON");
        return Err(out_of_range("metadata", &rule, &length));
    }
    Ok(EchoedFields {
        temperature: fields.number("temperature")?.unwrap_or(1.0),
        top_p: fields.number("top_p")?.unwrap_or(1.0),
        presence_penalty: fields.number("presence_penalty")?.unwrap_or(0.0),
        frequency_penalty: fields.number("frequency_penalty")?.unwrap_or(0.0),
        instructions: instructions.map(str::to_owned),
        user: short_id("user", user)?,
        metadata: metadata.cloned(),
    })
}

/// A name that every event of the answer repeats.
fn short_id(param: &'static str, id: Option<&str>) -> Result<Option<String>, ErrorBody> {
    if let Some(id) = id.filter(|id| ID_BYTES_KEPT < id.len()) {
        let rule = format!("at most {ID_BYTES_KEPT} bytes long");
        return Err(out_of_range(param, &rule, &id.len()));
    }
    Ok(id.map(str::to_owned))
}

fn check_ranges(fields: &Fields<'_>) -> Result<(), ErrorBody> {
    /// A field, what it must be, and whether a value is that.
    type Range = (&'static str, &'static str, fn(f64) -> bool);
    let ranges: [Range; 7] = [
        ("temperature", "non-negative", |x| 0.0 <= x),
        ("top_p", "in (0, 1]", |x| 0.0 < x && x <= 1.0),
        ("top_k", "0 (disable), or at least 1", |x| -1.0 <= x),
        ("min_p", "in [0, 1]", |x| (0.0..=1.0).contains(&x)),
        ("presence_penalty", "in [-2, 2]", |x| (-2.0..=2.0).contains(&x)),
        ("frequency_penalty", "in [-2, 2]", |x| (-2.0..=2.0).contains(&x)),
        ("repetition_penalty", "greater than zero", |x| 0.0 < x),
    ];
    for (param, rule, holds) in ranges {
        if let Some(value) = fields.number(param)?.filter(|value| !holds(*value)) {
            return Err(out_of_range(param, rule, &value));
        }
    }
    Ok(())
}

fn answers(api: Api, fields: &Fields<'_>, prompts: &[Vec<u32>]) -> Result<u16, ErrorBody> {
    let has_n = matches!(api, Api::Chat | Api::Completions);
    let n = if has_n { fields.integer("n")?.unwrap_or(1) } else { 1 };
    if n < 1 {
        return Err(out_of_range("n", "at least 1", &n));
    }
    let most = usize::from(CHOICES_MAX) / prompts.len().max(1);
    if most == 0 {
        let rule = format!("at most {CHOICES_MAX} prompts");
        return Err(out_of_range("prompt", &rule, &prompts.len()));
    }
    // A prompt that is too long for one answer is refused elsewhere.
    let tokens = prompts.iter().map(Vec::len).sum::<usize>().max(1);
    let most = most.min((PROMPT_COPIES_MAX / tokens).max(1));
    let fitting = u16::try_from(n).ok().filter(|n| usize::from(*n) <= most);
    fitting.ok_or_else(|| out_of_range("n", &format!("at most {most}"), &n))
}

/// `None` fills the model's length; completions do that only on an explicit `null`.
fn max_tokens(api: Api, fields: &Fields<'_>, limit: u32) -> Result<Option<u32>, ErrorBody> {
    let has_default = matches!(api, Api::Completions | Api::Embeddings);
    let name = match api {
        Api::Chat if fields.value("max_completion_tokens").is_some() => "max_completion_tokens",
        Api::Responses => "max_output_tokens",
        Api::Chat | Api::Messages | Api::Completions | Api::Embeddings => "max_tokens",
    };
    if api == Api::Messages {
        fields.required(name)?;
    }
    let default = (has_default && !fields.map.contains_key(name)).then_some(COMPLETION_TOKENS);
    let Some(asked) = fields.integer(name)?.or(default) else { return Ok(None) };
    if asked < 1 {
        return Err(out_of_range("max_tokens", "at least 1", &asked));
    }
    let fitting = u32::try_from(asked).ok().filter(|tokens| *tokens <= limit);
    fitting.map(Some).ok_or_else(|| {
        let message = format!(
            "max_tokens={asked} cannot be greater than max_model_len={limit}. Please request fewer \
             output tokens. (parameter=max_tokens, value={asked})"
        );
        bad_request(Some("max_tokens"), message)
    })
}

fn min_tokens(fields: &Fields<'_>, max_tokens: Option<u32>) -> Result<u32, ErrorBody> {
    let asked = fields.integer("min_tokens")?.unwrap_or(0);
    if asked < 0 {
        return Err(out_of_range("min_tokens", "greater than or equal to 0", &asked));
    }
    let most = max_tokens.unwrap_or(u32::MAX);
    let fitting = u32::try_from(asked).ok().filter(|tokens| *tokens <= most);
    let rule = format!("less than or equal to max_tokens={most}");
    fitting.ok_or_else(|| out_of_range("min_tokens", &rule, &asked))
}

/// A string, or a list of some.
fn stop(api: Api, fields: &Fields<'_>) -> Result<Vec<String>, ErrorBody> {
    let param = if api == Api::Messages { "stop_sequences" } else { "stop" };
    let stop: Vec<String> = match fields.value(param) {
        None => Vec::new(),
        Some(Value::Array(items)) => {
            items.iter().map(|item| text_at(item, param)).collect::<Result<_, _>>()?
        }
        Some(value) => vec![text_at(value, param)?],
    };
    if stop.iter().any(String::is_empty) {
        return Err(conflict(param, "stop cannot contain an empty string."));
    }
    if STOPS_MAX < stop.len() {
        let rule = format!("at most {STOPS_MAX} strings");
        return Err(out_of_range(param, &rule, &stop.len()));
    }
    if let Some(length) = stop.iter().map(String::len).find(|length| STOP_BYTES_MAX < *length) {
        let rule = format!("of strings of at most {STOP_BYTES_MAX} bytes");
        return Err(out_of_range(param, &rule, &length));
    }
    Ok(stop)
}

/// How many alternatives are sent; chat has a switch and a number, completions a number alone.
fn logprobs(api: Api, fields: &Fields<'_>) -> Result<Option<u32>, ErrorBody> {
    let (param, asked) = match api {
        Api::Chat => {
            let top = fields.integer("top_logprobs")?.unwrap_or(0);
            let wanted = fields.flag("logprobs")?;
            if !wanted && top != 0 {
                let message = "when using `top_logprobs`, `logprobs` must be set to true.";
                return Err(conflict("top_logprobs", message));
            }
            ("top_logprobs", wanted.then_some(top))
        }
        Api::Completions => ("logprobs", fields.integer("logprobs")?),
        Api::Responses | Api::Messages | Api::Embeddings => ("", None),
    };
    let Some(asked) = asked else { return Ok(None) };
    let rule = format!("between 0 and {LOGPROBS_MAX}");
    let number = u32::try_from(asked).ok().filter(|number| *number <= LOGPROBS_MAX);
    number.map(Some).ok_or_else(|| out_of_range(param, &rule, &asked))
}

/// vLLM's bound on `n`, for all prompts of a request together.
const CHOICES_MAX: u16 = 16_384;
/// Tokens of prompts times answers to each: every answer has its own copy of what its prompt's
/// blocks are called, and may have to repeat the prompt.
const PROMPT_COPIES_MAX: usize = 1 << 22;
/// Room for OpenAI's sixteen pairs of a name and a value of 512 characters.
const METADATA_BYTES_MAX: usize = 16 << 10;
const STOPS_MAX: usize = 64;
const STOP_BYTES_MAX: usize = 1024;
/// vLLM's bound on alternatives.
const LOGPROBS_MAX: u32 = 20;
/// What completions have where nothing is asked for.
const COMPLETION_TOKENS: i64 = 16;

/// Refuses a search through so many tokens that everyone else would have to wait for it.
pub(crate) fn check_search(ask: &GenerationRequest, tokens: u64) -> Result<(), ErrorBody> {
    let stops = ask.stop.len().max(usize::from(!ask.stop_token_ids.is_empty())) as u64;
    if tokens.saturating_mul(stops) <= SEARCH_MAX {
        return Ok(());
    }
    let most = SEARCH_MAX / stops;
    let rule = format!("at most {most}, over all answers, with {stops} stops to look for");
    Err(out_of_range("max_tokens", &rule, &tokens).for_clients_of(ask.api))
}

/// Tokens times stops that are looked at for one request: 16 stops in 131,072 tokens, which takes
/// less than a tenth of a second.
const SEARCH_MAX: u64 = 1 << 21;

/// How an answer is ended by its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StopFound {
    /// The answer has this many tokens, the one that completes the stop included.
    pub(crate) tokens: u32,
    /// For [`super::AnswerWriter::cut`]: bytes of the text that are kept.
    pub(crate) kept: usize,
    pub(crate) finish: Finish,
}

/// The first stop in the tokens of an answer, which may be cut off at its bound.
///
/// As in vLLM a stop counts when it is completed behind the first `min_tokens` tokens, wherever it
/// began, and of several that one token completes the first in the request's list counts.
pub(crate) fn stop_at(
    ids: impl IntoIterator<Item = u32>,
    ask: &GenerationRequest,
    vocabulary: &Vocabulary,
) -> Option<StopFound> {
    if ask.stop.is_empty() && ask.stop_token_ids.is_empty() {
        return None;
    }
    let longest = ask.stop.iter().map(String::len).max().unwrap_or(0);
    let mut text = Tail::default();
    for (tokens, id) in (1..).zip(ids) {
        let before = text.end();
        let is_stop_token = ask.stop_token_ids.binary_search(&id).is_ok();
        if is_stop_token && ask.min_tokens < tokens {
            let with = if ask.include_stop { text.with(id, vocabulary) } else { before };
            return Some(StopFound { tokens, kept: with, finish: Finish::StopToken(id) });
        }
        text.push(id, vocabulary);
        if ask.min_tokens < tokens
            && let Some((which, start)) = text.completed(&ask.stop, before)
        {
            let length = ask.stop.get(usize::from(which)).map_or(0, String::len);
            let kept = if ask.include_stop { start + length } else { start };
            return Some(StopFound { tokens, kept, finish: Finish::StopString(which) });
        }
        text.forget(longest);
    }
    None
}

/// The end of a growing text: as much as a stop string may reach back.
#[derive(Debug, Default)]
struct Tail {
    text: String,
    /// Bytes that were forgotten.
    ahead: usize,
}

impl Tail {
    fn end(&self) -> usize {
        self.ahead + self.text.len()
    }

    fn push(&mut self, id: u32, vocabulary: &Vocabulary) {
        if Vocabulary::is_special(id) {
            return;
        }
        if 0 < self.end() {
            self.text.push(' ');
        }
        self.text.push_str(vocabulary.text(id));
    }

    /// How long the text would be with one more token.
    fn with(&self, id: u32, vocabulary: &Vocabulary) -> usize {
        match self.end() {
            _ if Vocabulary::is_special(id) => self.end(),
            0 => vocabulary.text(id).len(),
            end => end + 1 + vocabulary.text(id).len(),
        }
    }

    /// The first stop string that ends behind byte `before`, and where it starts.
    fn completed(&self, stop: &[String], before: usize) -> Option<(u16, usize)> {
        // One that ended earlier was looked at then; its last byte must be new.
        let first_new = before - self.ahead;
        let text = self.text.as_bytes();
        (0..).zip(stop).find_map(|(which, stop)| {
            let stop = stop.as_bytes();
            let last = stop.last()?;
            // Most bytes are not the last of anything: that is found faster than by a comparison.
            let mut ends = (first_new..text.len()).filter(|at| text[*at] == *last).map(|at| at + 1);
            let end = ends.find(|end| text[..*end].ends_with(stop))?;
            Some((which, self.ahead + end - stop.len()))
        })
    }

    /// Keeps the last bytes only. Words are ASCII, so any byte is a place to cut at.
    fn forget(&mut self, longest: usize) {
        let surplus = self.text.len().saturating_sub(longest);
        self.text.drain(..surplus);
        self.ahead += surplus;
    }
}

#[cfg(test)]
mod stop_tests {
    use super::*;

    fn found(text: &str, options: &str) -> Option<StopFound> {
        let vocabulary = Vocabulary::standard();
        let serving = Serving { model: "m", max_model_len: 2048, vocabulary };
        let body = format!("{{\"prompt\":\"x\",{options}}}");
        let ask = parse(Api::Completions, body.as_bytes(), &serving).unwrap();
        stop_at(vocabulary.encode(text), &ask, vocabulary)
    }

    fn string(tokens: u32, kept: usize, which: u16) -> StopFound {
        StopFound { tokens, kept, finish: Finish::StopString(which) }
    }

    #[test]
    fn the_text_is_kept_up_to_the_stop_string() {
        let text = "bana mika zuzu mika";
        assert_eq!(found(text, r#""stop":"mika""#), Some(string(2, 5, 0)));
        assert_eq!(found(text, r#""stop":["nope","ka z","ana"]"#), Some(string(1, 1, 2)));
        assert_eq!(found(text, r#""stop":"a m""#), Some(string(2, 3, 0)));
        assert_eq!(found(text, r#""stop":"ana mika zuz""#), Some(string(3, 1, 0)));
        assert_eq!(found(text, r#""stop":"mikazuzu""#), None);
    }

    #[test]
    fn a_stop_that_is_to_be_included_is_kept_but_nothing_behind_it() {
        let options = r#""stop":"a mi","include_stop_str_in_output":true"#;
        assert_eq!(found("bana mika zuzu", options), Some(string(2, 7, 0)));
    }

    #[test]
    fn nothing_stops_within_the_least_number_of_tokens() {
        let text = "bana mika zuzu mika";
        assert_eq!(found(text, r#""stop":"mika","min_tokens":2"#), Some(string(4, 15, 0)));
        assert_eq!(found(text, r#""stop":"ana mika zuz","min_tokens":2"#), Some(string(3, 1, 0)));
    }

    #[test]
    fn a_stop_token_ends_the_answer_without_its_text() {
        let id = Vocabulary::standard().encode("zuzu")[0];
        let options = format!("\"stop_token_ids\":[{id}]");
        let stop = StopFound { tokens: 3, kept: 9, finish: Finish::StopToken(id) };
        assert_eq!(found("bana mika zuzu mika", &options), Some(stop));
    }

    #[test]
    fn a_search_that_everyone_would_wait_for_is_refused() {
        let vocabulary = Vocabulary::standard();
        let serving = Serving { model: "m", max_model_len: 2048, vocabulary };
        let ask = |body: &str| parse(Api::Completions, body.as_bytes(), &serving).unwrap();
        let two = ask(r#"{"prompt":"x","stop":["a","b"]}"#);
        assert!(check_search(&two, SEARCH_MAX / 2).is_ok());
        let refused = check_search(&two, SEARCH_MAX / 2 + 1).unwrap_err().reply();
        let text = String::from_utf8_lossy(&refused);
        assert!(text.starts_with("HTTP/1.1 400") && text.contains("at most 1048576"), "{text}");
        assert!(check_search(&ask(r#"{"prompt":"x"}"#), u64::MAX).is_ok());
    }

    /// The tail forgets what no stop string can reach; a search in the whole text must agree.
    #[test]
    fn a_long_answer_stops_where_a_search_in_all_of_it_would() {
        let vocabulary = Vocabulary::standard();
        let ids: Vec<u32> =
            (0..2_000).map(|index| crate::scheduler::blocks::token(3, index)).collect();
        let text = vocabulary.decode(&ids);
        for stop in ["ruma ", "zuz", "a b", "n mi", "s va"] {
            let options = format!("\"stop\":\"{stop}\"");
            let kept = found(&text, &options).map(|stop| stop.kept);
            assert_eq!(kept, text.find(stop), "{stop}");
        }
    }
}
