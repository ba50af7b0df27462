//! A generation request out of its JSON body.

#[cfg(test)]
mod tests;

use serde_json::Value;

use super::ask::{
    self, EchoedFields, Endpoint, Fields, GenerationRequest, Problem, Serving, integer_at, text_at,
    wrong,
};
use crate::http::{ErrorBody, ID_BYTES_KEPT};
use crate::scheduler::blocks::VOCABULARY;
use crate::serve::vocabulary::{Role, Turn, Vocabulary};

/// Reads the body of a generation request (chat, completions, responses, messages).
pub(crate) fn parse(
    endpoint: Endpoint,
    body: &[u8],
    serving: &Serving<'_>,
) -> Result<GenerationRequest, ErrorBody> {
    ask(endpoint, body, serving).map_err(|problem| problem.error_body(endpoint))
}

fn ask(
    endpoint: Endpoint,
    body: &[u8],
    serving: &Serving<'_>,
) -> Result<GenerationRequest, Problem> {
    let map = ask::read(body)?;
    let fields = Fields::of_body(&map);
    let prompts = generation_prompts(endpoint, &fields, serving.vocabulary)?;
    check_model(&fields, serving)?;
    let ask = sampled_ask(endpoint, &fields, prompts, serving.max_model_len)?;
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

/// One or several prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::serve::api) struct Prompts {
    pub(in crate::serve::api) ids: Vec<Vec<u32>>,
    /// As they were sent, or as ids read; only where it may have to be repeated.
    pub(in crate::serve::api) texts: Vec<String>,
}

/// The prompts of a generation request.
fn generation_prompts(
    endpoint: Endpoint,
    fields: &Fields<'_>,
    vocabulary: &Vocabulary,
) -> Result<Prompts, Problem> {
    let turns = match endpoint {
        Endpoint::Chat => chat_turns(fields)?,
        Endpoint::Responses => response_turns(fields)?,
        Endpoint::Messages => message_turns(fields)?,
        Endpoint::Completions
        | Endpoint::Embeddings
        | Endpoint::Tokenize
        | Endpoint::Detokenize => return prompts(fields, "prompt", vocabulary),
    };
    let awaits_answer = fields.flag("add_generation_prompt")?.unwrap_or(true);
    let ids = vec![vocabulary.encode_chat(&turns, awaits_answer)];
    Ok(Prompts { ids, texts: Vec::new() })
}

/// A text, a list of texts, a list of ids, or a list of lists of ids.
pub(in crate::serve::api) fn prompts(
    fields: &Fields<'_>,
    name: &str,
    vocabulary: &Vocabulary,
) -> Result<Prompts, Problem> {
    let place = fields.place(name);
    let value = fields.required(name)?;
    if let Value::String(text) = value {
        return Ok(of_texts(vec![text.clone()], vocabulary));
    }
    let Value::Array(items) = value else {
        return Err(wrong(&place, "string_type", "a valid string or list"));
    };
    match items.first() {
        None => Err(Problem::EmptyPrompt),
        Some(Value::String(_)) => {
            let texts: Result<_, _> = items.iter().map(|item| text_at(item, &place)).collect();
            Ok(of_texts(texts?, vocabulary))
        }
        Some(Value::Array(_)) => {
            let lists: Result<_, _> = items.iter().map(|item| id_list(item, &place)).collect();
            Ok(of_ids(lists?, vocabulary))
        }
        Some(_) => Ok(of_ids(vec![ids(items, &place)?], vocabulary)),
    }
}

fn of_texts(texts: Vec<String>, vocabulary: &Vocabulary) -> Prompts {
    Prompts { ids: texts.iter().map(|text| vocabulary.encode(text)).collect(), texts }
}

fn of_ids(ids: Vec<Vec<u32>>, vocabulary: &Vocabulary) -> Prompts {
    Prompts { texts: ids.iter().map(|ids| vocabulary.decode(ids)).collect(), ids }
}

fn id_list(value: &Value, place: &str) -> Result<Vec<u32>, Problem> {
    let Value::Array(items) = value else {
        return Err(wrong(place, "list_type", "a valid list"));
    };
    ids(items, place)
}

fn ids(items: &[Value], place: &str) -> Result<Vec<u32>, Problem> {
    let numbers: Result<Vec<i64>, _> = items.iter().map(|item| integer_at(item, place)).collect();
    check_ids(&numbers?)
}

/// Ids that exist.
pub(in crate::serve::api) fn check_ids(numbers: &[i64]) -> Result<Vec<u32>, Problem> {
    let known = |id: &i64| u32::try_from(*id).ok().filter(|id| *id < VOCABULARY);
    numbers.iter().map(|id| known(id).ok_or(Problem::UnknownToken { id: *id })).collect()
}

/// `messages`, as OpenAI's chat has them.
pub(in crate::serve::api) fn chat_turns(fields: &Fields<'_>) -> Result<Vec<Turn>, Problem> {
    fields.required("messages")?;
    let place = fields.place("messages");
    let messages = fields.list("messages")?.map_or([].as_slice(), Vec::as_slice);
    messages.iter().enumerate().map(|(at, item)| turn(item, &format!("{place}.{at}"))).collect()
}

/// `system` and `messages`, as Anthropic has them.
fn message_turns(fields: &Fields<'_>) -> Result<Vec<Turn>, Problem> {
    let mut turns = Vec::new();
    if let Some(system) = fields.value("system") {
        let text = content(system, &fields.place("system"))?;
        turns.push(Turn { role: Role::System, text });
    }
    turns.extend(chat_turns(fields)?);
    Ok(turns)
}

/// `instructions` and `input`, as OpenAI's responses have them.
fn response_turns(fields: &Fields<'_>) -> Result<Vec<Turn>, Problem> {
    let mut turns = Vec::new();
    if let Some(instructions) = fields.text("instructions")? {
        turns.push(Turn { role: Role::System, text: instructions.to_owned() });
    }
    let input = fields.required("input")?;
    if let Value::String(text) = input {
        turns.push(Turn { role: Role::User, text: text.clone() });
        return Ok(turns);
    }
    let Value::Array(items) = input else {
        return Err(wrong("input", "string_type", "a valid string or list"));
    };
    for (at, item) in items.iter().enumerate() {
        turns.extend(input_item(item, &format!("input.{at}"))?);
    }
    Ok(turns)
}

/// Items without words of their own, such as reasoning, are no turns.
fn input_item(item: &Value, place: &str) -> Result<Option<Turn>, Problem> {
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

fn turn(item: &Value, place: &str) -> Result<Turn, Problem> {
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
fn content(value: &Value, place: &str) -> Result<String, Problem> {
    if let Value::String(text) = value {
        return Ok(text.clone());
    }
    let Value::Array(parts) = value else {
        return Err(wrong(place, "string_type", "a valid string or list"));
    };
    let mut texts = Vec::new();
    for (at, part) in parts.iter().enumerate() {
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
fn sampled_ask(
    endpoint: Endpoint,
    fields: &Fields<'_>,
    prompts: Prompts,
    max_model_len: u32,
) -> Result<GenerationRequest, Problem> {
    let streamed = fields.flag("stream")?.unwrap_or(false);
    let usage = usage_options(fields, streamed)?;
    check_ranges(fields)?;
    let echo_fields = echoed_fields(endpoint, fields)?;
    let n = answers(endpoint, fields, &prompts.ids)?;
    let echo = fields.flag("echo")?.unwrap_or(false) && endpoint == Endpoint::Completions;
    let echo_alone = echo && fields.integer("max_tokens")? == Some(0);
    let max_tokens =
        if echo_alone { Some(1) } else { max_tokens(endpoint, fields, max_model_len)? };
    Ok(GenerationRequest {
        endpoint,
        n,
        streamed,
        max_tokens,
        min_tokens: min_tokens(fields, max_tokens)?,
        ignore_eos: fields.flag("ignore_eos")?.unwrap_or(false),
        stop: stop(endpoint, fields)?,
        include_stop: fields.flag("include_stop_str_in_output")?.unwrap_or(false),
        stop_token_ids: stop_token_ids(fields)?,
        seed: fields.integer("seed")?.map(i64::cast_unsigned),
        priority: priority(fields)?,
        logprobs: logprobs(endpoint, fields)?,
        include_usage: usage.0,
        continuous_usage: usage.1,
        token_ids: fields.flag("return_token_ids")?.unwrap_or(false),
        echo: echo.then_some(prompts.texts),
        echo_alone,
        request_id: request_id(fields)?,
        echo_fields,
        prompts: prompts.ids,
    })
}

/// Whether usage comes at the end, and with every event.
fn usage_options(fields: &Fields<'_>, streamed: bool) -> Result<(bool, bool), Problem> {
    let Some(options) = fields.object("stream_options")? else {
        return Ok((false, false));
    };
    if !streamed {
        let message = "Stream options can only be defined when `stream=True`.";
        return Err(Problem::Conflict { param: "stream_options", message });
    }
    let at_end = options.flag("include_usage")?.unwrap_or(false);
    let continuous = options.flag("continuous_usage_stats")?.unwrap_or(false);
    Ok((at_end, at_end && continuous))
}

fn echoed_fields(endpoint: Endpoint, fields: &Fields<'_>) -> Result<EchoedFields, Problem> {
    let is_response = endpoint == Endpoint::Responses;
    if let Some(id) = fields.text("previous_response_id")?.filter(|_| is_response) {
        return Err(Problem::UnknownResponse { id: id.to_owned() });
    }
    let instructions = if is_response { fields.text("instructions")? } else { None };
    Ok(EchoedFields {
        temperature: fields.number("temperature")?.unwrap_or(1.0),
        top_p: fields.number("top_p")?.unwrap_or(1.0),
        presence_penalty: fields.number("presence_penalty")?.unwrap_or(0.0),
        frequency_penalty: fields.number("frequency_penalty")?.unwrap_or(0.0),
        instructions: instructions.map(str::to_owned),
        user: if is_response { user(fields)? } else { None },
        metadata: if is_response { metadata(fields)? } else { None },
    })
}

/// Others than strings are for servers that read them.
fn user(fields: &Fields<'_>) -> Result<Option<String>, Problem> {
    let user = fields.value("user").and_then(serde_json::Value::as_str);
    if let Some(user) = user.filter(|user| ID_BYTES_KEPT < user.len()) {
        let rule = format!("at most {ID_BYTES_KEPT} bytes long");
        return Err(out_of_range("user", &rule, &user.len()));
    }
    Ok(user.map(str::to_owned))
}

fn metadata(fields: &Fields<'_>) -> Result<Option<serde_json::Value>, Problem> {
    let metadata = fields.value("metadata");
    let length = metadata.map_or(0, |value| value.to_string().len());
    if METADATA_BYTES_MAX < length {
        let rule = format!("at most {METADATA_BYTES_MAX} bytes of JSON");
        return Err(out_of_range("metadata", &rule, &length));
    }
    Ok(metadata.cloned())
}

fn check_ranges(fields: &Fields<'_>) -> Result<(), Problem> {
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

fn answers(endpoint: Endpoint, fields: &Fields<'_>, prompts: &[Vec<u32>]) -> Result<u16, Problem> {
    let has_n = matches!(endpoint, Endpoint::Chat | Endpoint::Completions);
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
    match u16::try_from(n) {
        Ok(n) if usize::from(n) <= most => Ok(n),
        _ => Err(out_of_range("n", &format!("at most {most}"), &n)),
    }
}

/// `None` fills the model's length; completions do that only on an explicit `null`.
fn max_tokens(endpoint: Endpoint, fields: &Fields<'_>, limit: u32) -> Result<Option<u32>, Problem> {
    let asked = match endpoint {
        Endpoint::Chat => match fields.integer("max_completion_tokens")? {
            Some(asked) => Some(asked),
            None => fields.integer("max_tokens")?,
        },
        Endpoint::Responses => fields.integer("max_output_tokens")?,
        Endpoint::Messages => {
            fields.required("max_tokens")?;
            fields.integer("max_tokens")?
        }
        Endpoint::Completions
        | Endpoint::Embeddings
        | Endpoint::Tokenize
        | Endpoint::Detokenize => {
            let unsaid = (!fields.says_null("max_tokens")).then_some(COMPLETION_TOKENS);
            fields.integer("max_tokens")?.or(unsaid)
        }
    };
    let Some(asked) = asked else {
        return Ok(None);
    };
    if asked < 1 {
        return Err(out_of_range("max_tokens", "at least 1", &asked));
    }
    match u32::try_from(asked) {
        Ok(tokens) if tokens <= limit => Ok(Some(tokens)),
        _ => Err(Problem::AnswerTooLong { asked, limit }),
    }
}

fn min_tokens(fields: &Fields<'_>, max_tokens: Option<u32>) -> Result<u32, Problem> {
    let asked = fields.integer("min_tokens")?.unwrap_or(0);
    if asked < 0 {
        return Err(out_of_range("min_tokens", "greater than or equal to 0", &asked));
    }
    let most = max_tokens.unwrap_or(u32::MAX);
    match u32::try_from(asked) {
        Ok(tokens) if tokens <= most => Ok(tokens),
        _ => {
            let rule = format!("less than or equal to max_tokens={most}");
            Err(out_of_range("min_tokens", &rule, &asked))
        }
    }
}

fn stop(endpoint: Endpoint, fields: &Fields<'_>) -> Result<Vec<String>, Problem> {
    let param = if endpoint == Endpoint::Messages { "stop_sequences" } else { "stop" };
    let stop = fields.texts(param)?;
    if stop.iter().any(String::is_empty) {
        return Err(Problem::Conflict { param, message: "stop cannot contain an empty string." });
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

fn stop_token_ids(fields: &Fields<'_>) -> Result<Vec<u32>, Problem> {
    let mut ids = check_ids(&fields.ids("stop_token_ids")?)?;
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Every event of the answer repeats it.
fn request_id(fields: &Fields<'_>) -> Result<Option<String>, Problem> {
    let id = fields.text("request_id")?;
    if let Some(id) = id.filter(|id| ID_BYTES_KEPT < id.len()) {
        let rule = format!("at most {ID_BYTES_KEPT} bytes long");
        return Err(out_of_range("request_id", &rule, &id.len()));
    }
    Ok(id.map(str::to_owned))
}

fn priority(fields: &Fields<'_>) -> Result<i32, Problem> {
    let asked = fields.integer("priority")?.unwrap_or(0);
    Ok(i32::try_from(asked).unwrap_or(if asked < 0 { i32::MIN } else { i32::MAX }))
}

/// How many alternatives are sent; chat has a switch and a number, completions a number alone.
fn logprobs(endpoint: Endpoint, fields: &Fields<'_>) -> Result<Option<u32>, Problem> {
    let (param, asked) = match endpoint {
        Endpoint::Chat => {
            let (on, top) = (fields.flag("logprobs")?, fields.integer("top_logprobs")?);
            match (on.unwrap_or(false), top) {
                (true, top) => ("top_logprobs", Some(top.unwrap_or(0))),
                (false, None | Some(0)) => ("top_logprobs", None),
                (false, Some(_)) => {
                    let message = "when using `top_logprobs`, `logprobs` must be set to true.";
                    return Err(Problem::Conflict { param: "top_logprobs", message });
                }
            }
        }
        Endpoint::Completions => ("logprobs", fields.integer("logprobs")?),
        Endpoint::Responses
        | Endpoint::Messages
        | Endpoint::Embeddings
        | Endpoint::Tokenize
        | Endpoint::Detokenize => return Ok(None),
    };
    let Some(asked) = asked else {
        return Ok(None);
    };
    let rule = format!("between 0 and {LOGPROBS_MAX}");
    let number = u32::try_from(asked).ok().filter(|number| *number <= LOGPROBS_MAX);
    number.map(Some).ok_or_else(|| out_of_range(param, &rule, &asked))
}

fn out_of_range(param: &'static str, rule: &str, value: &impl ToString) -> Problem {
    Problem::OutOfRange { param, rule: rule.to_owned(), value: value.to_string() }
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
