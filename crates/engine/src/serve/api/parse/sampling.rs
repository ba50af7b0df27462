//! How long an answer may be, when it stops, and what is told beside it.

use super::super::ask::{Ask, Endpoint, Told};
use super::super::fields::Fields;
use super::super::problem::Problem;
use super::prompt::{Prompts, check_ids};
use crate::http::ID_BYTES_KEPT;

/// The request, when its prompts are known. Ranges are vLLM's.
pub(super) fn ask(
    endpoint: Endpoint,
    fields: &Fields<'_>,
    prompts: Prompts,
    max_model_len: u32,
) -> Result<Ask, Problem> {
    let streamed = fields.flag("stream")?.unwrap_or(false);
    let usage = usage_told(fields, streamed)?;
    check_ranges(fields)?;
    let told = told(endpoint, fields)?;
    let n = answers(endpoint, fields, &prompts.ids)?;
    let echo = fields.flag("echo")?.unwrap_or(false) && endpoint == Endpoint::Completions;
    let echo_alone = echo && fields.integer("max_tokens")? == Some(0);
    let max_tokens =
        if echo_alone { Some(1) } else { max_tokens(endpoint, fields, max_model_len)? };
    Ok(Ask {
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
        told,
        prompts: prompts.ids,
    })
}

/// Whether usage comes at the end, and with every event.
fn usage_told(fields: &Fields<'_>, streamed: bool) -> Result<(bool, bool), Problem> {
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

fn told(endpoint: Endpoint, fields: &Fields<'_>) -> Result<Told, Problem> {
    let is_response = endpoint == Endpoint::Responses;
    if let Some(id) = fields.text("previous_response_id")?.filter(|_| is_response) {
        return Err(Problem::UnknownResponse { id: id.to_owned() });
    }
    let instructions = if is_response { fields.text("instructions")? } else { None };
    Ok(Told {
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
    // A prompt that is too long for one answer is told so elsewhere.
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

/// How many alternatives are told; chat has a switch and a number, completions a number alone.
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
