//! Readers of recorded sessions: our own format, and those of other programs.
//!
//! To add a format: a reader beside these, its name in `SessionKind`, its sign in [`kind_of`], and a
//! small file of it in the tests.

mod otel;

use std::collections::HashMap;
use std::io::BufReader;
use std::time::Duration;

use inferometer_model::Message;
use inferometer_model::spec::{SessionKind, SessionsSpec, TOKENS_MAX};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{After, Gathering, Part, Raw, Said, SessionsError, chained};
use crate::data_file::{DataFile, DataFileError, Position, each_line, reason_of};
use crate::dataset::each_item;
use crate::trace::BAILIAN_BLOCK;

type Result<T, E = DataFileError> = std::result::Result<T, E>;

/// What fits into memory.
const BYTES_MAX: u64 = 8 << 30;
/// No tool and no user takes longer: some months.
const DELAY_MAX_S: f64 = 1e7;

/// Reads a file; returns its kind and its hash.
pub(super) fn read(
    spec: &SessionsSpec,
    gathering: &mut Gathering<'_>,
) -> Result<(SessionKind, String), SessionsError> {
    let mut file = DataFile::open(&spec.path, BYTES_MAX)?;
    let kind = match spec.kind {
        Some(kind) => kind,
        None => kind_of(&file)
            .map_err(|found| SessionsError::UnknownKind { path: spec.path.clone(), found })?,
    };
    match kind {
        SessionKind::Requests => {
            each_line(&mut file, |place, line: OwnLine| take_own(gathering, place, line))?;
        }
        SessionKind::Messages => each_line(&mut file, |place, line: MessagesLine| {
            check_messages(gathering, place, &line.messages)?;
            take_list(gathering, place, line.messages)
        })?,
        SessionKind::Turns => {
            each_line(&mut file, |place, line: TurnsLine| take_turns(gathering, place, line))?;
        }
        SessionKind::Bailian => read_chats(&mut file, gathering)?,
        SessionKind::ShareGpt => each_item(&mut file, |number, talk: Talk| {
            take_talk(gathering, Position::Item(number), talk)
        })?,
        SessionKind::AgenticTrace => read_agentic(&mut file, gathering)?,
        SessionKind::Otel => otel::read(&mut file, gathering)?,
    }
    Ok((kind, file.finish()?))
}

/// By the keys of its first object.
fn kind_of(file: &DataFile) -> std::result::Result<SessionKind, String> {
    let head = String::from_utf8_lossy(&file.head);
    let head = head.trim_start();
    let line = head.lines().next().unwrap_or_default();
    let has = |key: &str| head.contains(&format!("\"{key}\""));
    let is_otel = has("traceId") || has("trace_id") || has("resourceSpans");
    let whole = serde_json::from_str::<Map<String, Value>>(line);
    let kind = match whole {
        _ if head.starts_with('[') && is_otel => Some(SessionKind::Otel),
        _ if head.starts_with('[') && has("conversations") => Some(SessionKind::ShareGpt),
        Ok(keys) if keys.contains_key("session") => Some(SessionKind::Requests),
        Ok(keys) if keys.contains_key("turns") => Some(SessionKind::Turns),
        Ok(keys) if keys.contains_key("chat_id") => Some(SessionKind::Bailian),
        Ok(keys) if keys.contains_key("messages") => Some(SessionKind::Messages),
        _ if head.starts_with('{') && is_otel => Some(SessionKind::Otel),
        _ if head.starts_with('{') && has("conversations") => Some(SessionKind::AgenticTrace),
        _ => None,
    };
    let begins: String = line.chars().take(80).collect();
    let found = format!("it begins with `{begins}`");
    kind.ok_or(if begins.is_empty() { "it is empty".to_owned() } else { found })
}

/// A document that is one JSON value.
fn whole<T: DeserializeOwned>(file: &mut DataFile) -> Result<T> {
    let parsed = serde_json::from_reader(BufReader::new(&mut *file));
    parsed.map_err(|error: serde_json::Error| {
        if error.is_io() {
            return file.failed(error.into());
        }
        file.wrong(Position::Line(error.line() as u64), reason_of(&error))
    })
}

/// A name or a number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Number(i64),
}

impl Name {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

/// A request in our own format.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnLine {
    session: Name,
    id: Name,
    after: Option<Vec<Name>>,
    /// Absent as the graph says, null for none.
    #[serde(default, deserialize_with = "present")]
    #[expect(clippy::option_option, reason = "null is another answer than no key")]
    context: Option<Option<Name>>,
    #[serde(default)]
    delay: f64,
    at: Option<f64>,
    prefix: Option<String>,
    #[serde(default)]
    prefix_tokens: u32,
    messages: Option<Vec<Message>>,
    input_tokens: Option<u32>,
    output_tokens: Option<u32>,
    answer: Option<String>,
}

/// Tells a key that is null from one that is absent.
#[expect(clippy::option_option, reason = "null is another answer than no key")]
fn present<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Option<Name>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

fn take_own(gathering: &mut Gathering<'_>, place: Position, line: OwnLine) -> Result<()> {
    let wrong = |gathering: &Gathering<'_>, reason: &str| Err(gathering.wrong(place, reason));
    let is_delay = |seconds: f64| (0.0..=DELAY_MAX_S).contains(&seconds);
    if !is_delay(line.delay) || line.at.is_some_and(|at| !(0.0..=1e10).contains(&at)) {
        return wrong(gathering, "`delay` and `at` are seconds, from zero on");
    }
    let lengths = [line.input_tokens, line.output_tokens, Some(line.prefix_tokens)];
    if lengths.into_iter().flatten().any(|tokens| TOKENS_MAX < tokens) {
        return wrong(gathering, &format!("a length is at most {TOKENS_MAX} tokens"));
    }
    if line.output_tokens == Some(0) {
        return wrong(gathering, "`output_tokens` must be above zero");
    }
    let mut parts = Vec::new();
    match (&line.prefix, line.prefix_tokens) {
        (Some(_), 0) | (None, 1..) => {
            return wrong(gathering, "`prefix` and `prefix_tokens` belong together");
        }
        (Some(name), tokens) => parts.push(Part::Prefix { name: hash_of(name), tokens }),
        (None, 0) => {}
    }
    match (line.messages, line.input_tokens) {
        (Some(messages), None) => {
            check_messages(gathering, place, &messages)?;
            parts.extend(messages.into_iter().map(|message| gathering.message(message)));
        }
        (None, Some(tokens)) if 0 < tokens => parts.push(Part::Text { turn: 0, tokens }),
        _ => {
            return wrong(
                gathering,
                "a request has either `messages` or `input_tokens`, above zero",
            );
        }
    }
    let answer = line.answer.map(|text| gathering.message(Message::new("assistant", text)));
    #[expect(clippy::cast_possible_truncation, reason = "its bounds were checked")]
    let at_ns = line.at.map(|at| (at * 1e9) as i64);
    let names = |names: Vec<Name>| names.into_iter().map(Name::text).collect();
    let raw = Raw {
        place,
        id: line.id.text(),
        after: line.after.map_or(After::Previous, |after| After::Ids(names(after))),
        context: line.context.map(|context| context.map(Name::text)),
        delay: Duration::from_secs_f64(line.delay),
        at_ns,
        said: Said::New(parts),
        answer,
        output_tokens: line.output_tokens,
    };
    gathering.push(&line.session.text(), raw)
}

fn hash_of(name: &str) -> u64 {
    name.bytes().fold(1, |hash, byte| chained(hash, byte.into()))
}

fn check_messages(gathering: &Gathering<'_>, place: Position, messages: &[Message]) -> Result<()> {
    match messages.iter().position(|message| message.role().is_empty()) {
        _ if messages.is_empty() => Err(gathering.wrong(place, "`messages` is empty")),
        Some(index) => Err(gathering.wrong(place, format!("message {} has no `role`", index + 1))),
        None => Ok(()),
    }
}

/// A list of OpenAI messages.
#[derive(Deserialize)]
struct MessagesLine {
    messages: Vec<Message>,
}

/// Makes a request of each stretch of messages that an answer follows, or that is the last.
fn take_list(gathering: &mut Gathering<'_>, place: Position, messages: Vec<Message>) -> Result<()> {
    let session = place.to_string();
    let (mut new, mut turn) = (Vec::new(), 0_u32);
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        let is_user = message.role() != "system";
        new.push(gathering.message(message));
        // What an assistant says before anyone asked is a part of the first prompt.
        let answer = messages.next_if(|next| is_user && next.role() == "assistant");
        if answer.is_some() || messages.peek().is_none() {
            let answer = answer.map(|answer| gathering.message(answer));
            let said = Said::New(std::mem::take(&mut new));
            gathering.push(&session, in_turn(place, turn, said, answer))?;
            turn += 1;
        }
    }
    Ok(())
}

/// A request that follows the one before it.
fn in_turn(place: Position, turn: u32, said: Said, answer: Option<Part>) -> Raw {
    Raw {
        place,
        id: turn.to_string(),
        after: After::Previous,
        context: None,
        delay: Duration::ZERO,
        at_ns: None,
        said,
        answer,
        output_tokens: None,
    }
}

/// A conversation of `ShareGPT`.
#[derive(Deserialize)]
struct Talk {
    conversations: Vec<TalkTurn>,
}

#[derive(Deserialize)]
struct TalkTurn {
    from: String,
    value: String,
}

fn take_talk(gathering: &mut Gathering<'_>, place: Position, talk: Talk) -> Result<()> {
    let message = |turn: TalkTurn| {
        let role = match turn.from.as_str() {
            "gpt" | "assistant" | "chatgpt" | "model" | "bing" | "bard" => "assistant",
            "system" => "system",
            _ => "user",
        };
        Message::new(role, turn.value)
    };
    let messages: Vec<Message> = talk.conversations.into_iter().map(message).collect();
    if messages.iter().all(|message| message.role() != "user") {
        gathering.leave_out("no turn of a user");
        return Ok(());
    }
    take_list(gathering, place, messages)
}

/// A conversation in the format that `AIPerf` calls `multi_turn`.
#[derive(Deserialize)]
struct TurnsLine {
    session_id: Option<Name>,
    turns: Vec<TurnOfLine>,
}

#[derive(Deserialize)]
struct TurnOfLine {
    text: Option<String>,
    role: Option<String>,
    /// Milliseconds after the answer before it.
    #[serde(default)]
    delay: f64,
    /// Milliseconds.
    timestamp: Option<f64>,
    output_length: Option<u32>,
}

fn take_turns(gathering: &mut Gathering<'_>, place: Position, line: TurnsLine) -> Result<()> {
    let session = line.session_id.map_or_else(|| place.to_string(), Name::text);
    let last = line.turns.len();
    let mut new = Vec::new();
    for (number, turn) in (1..).zip(line.turns) {
        let Some(text) = turn.text else {
            return Err(gathering.wrong(place, format!("turn {number} has no `text`")));
        };
        let delay_s = turn.delay / 1e3;
        if !(0.0..=DELAY_MAX_S).contains(&delay_s) {
            return Err(gathering.wrong(place, format!("the `delay` of turn {number} is no time")));
        }
        let role = turn.role.as_deref().unwrap_or("user");
        new.push(gathering.message(Message::new(role, text)));
        // A system prompt is no turn.
        if role == "system" && number < last {
            continue;
        }
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        let at_ns = turn.timestamp.map(|at| (at * 1e6) as i64);
        let said = Said::New(std::mem::take(&mut new));
        let raw = Raw {
            delay: Duration::from_secs_f64(delay_s),
            at_ns,
            output_tokens: turn.output_length,
            ..in_turn(place, number.try_into().unwrap_or(u32::MAX), said, None)
        };
        gathering.push(&session, raw)?;
    }
    Ok(())
}

/// The trace of a service: each chat names the one before it.
#[derive(Deserialize)]
struct ChatLine {
    chat_id: i64,
    #[serde(default = "no_chat")]
    parent_chat_id: i64,
    /// Seconds.
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

const fn no_chat() -> i64 {
    -1
}

fn read_chats(file: &mut DataFile, gathering: &mut Gathering<'_>) -> Result<()> {
    // The session of each chat, and when it came.
    let mut chats = HashMap::new();
    let mut outside = 0_u64;
    each_line(file, |place, line: ChatLine| {
        let range = 1..=TOKENS_MAX;
        if !range.contains(&line.input_length) || !range.contains(&line.output_length) {
            gathering.leave_out("no tokens, or longer than any context");
            return Ok(());
        }
        if !(0.0..=1e10).contains(&line.timestamp) {
            return Err(gathering.wrong(place, "`timestamp` is a number of seconds, from zero on"));
        }
        let parent = chats.get(&line.parent_chat_id).copied();
        outside += u64::from(parent.is_none() && line.parent_chat_id != no_chat());
        let (session, before_s) = parent.unwrap_or((line.chat_id, line.timestamp));
        if chats.insert(line.chat_id, (session, line.timestamp)).is_some() {
            let reason = format!("there is a chat {} already", line.chat_id);
            return Err(gathering.wrong(place, reason));
        }
        let block = |name: &u64| Part::Block { name: *name, tokens: BAILIAN_BLOCK };
        let blocks = line.hash_ids.iter().map(block).collect();
        let after = parent.map(|_| line.parent_chat_id.to_string());
        #[expect(clippy::cast_possible_truncation, reason = "its bounds were checked")]
        let at_ns = (line.timestamp * 1e9) as i64;
        let delay_s = (line.timestamp - before_s).clamp(0.0, DELAY_MAX_S);
        let raw = Raw {
            id: line.chat_id.to_string(),
            after: After::Ids(after.into_iter().collect()),
            delay: Duration::from_secs_f64(delay_s),
            at_ns: Some(at_ns),
            output_tokens: Some(line.output_length),
            ..in_turn(place, 0, Said::Length(line.input_length, blocks), None)
        };
        gathering.push(&session.to_string(), raw)
    })?;
    if 0 < outside {
        gathering.notes.push(format!(
            "{outside} of the recorded chats go on from chats that the file does not have before \
             them; each of them begins a session"
        ));
    }
    Ok(())
}

/// Lists of turns with their new messages.
#[derive(Deserialize)]
struct AgenticTrace {
    conversations: Vec<Vec<AgenticTurn>>,
}

#[derive(Deserialize)]
struct AgenticTurn {
    messages: Vec<Message>,
}

/// The answers of this format: as long as those of the program that reads it.
const AGENTIC_OUTPUT: u32 = 220;

fn read_agentic(file: &mut DataFile, gathering: &mut Gathering<'_>) -> Result<()> {
    let trace: AgenticTrace = whole(file)?;
    for (number, turns) in (1..).zip(trace.conversations) {
        let place = Position::Item(number);
        for (turn, AgenticTurn { messages }) in (0..).zip(turns) {
            check_messages(gathering, place, &messages)?;
            let parts = messages.into_iter().map(|message| gathering.message(message)).collect();
            let raw = in_turn(place, turn, Said::New(parts), None);
            gathering
                .push(&number.to_string(), Raw { output_tokens: Some(AGENTIC_OUTPUT), ..raw })?;
        }
    }
    Ok(())
}
