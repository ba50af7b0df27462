//! The quick reader: what [`super::chunk`] reads, for documents as servers ordinarily write them.
//!
//! A stream's events are alike, and serde's generality is most of their cost. This reader knows
//! the shapes that matter and steps over the rest; where a document or one of its values has
//! another shape, it leaves the answer, and every refusal, to `serde_json`. What it does say is
//! what the full reader would say: the tests in `agreement.rs` compare them.

use std::borrow::Cow;

use inferometer_model::record::Usage;

use super::cursor::{Cursor, NotOrdinary};
use super::wire::{Loose, Parts, Sized, Text};
use super::{ChoicePart, Saying};

pub(super) fn read(json: &[u8]) -> Result<Saying<'_>, NotOrdinary> {
    let mut cursor = Cursor::new(json);
    let mut saying = Saying::default();
    let mut keys = Keys::default();
    cursor.members(|cursor, name| match name {
        b"choices" => {
            keys.first_time(0)?;
            if cursor.is_null() {
                return Ok(());
            }
            cursor.items(|cursor| {
                saying.choices.push(choice(cursor)?);
                Ok(())
            })
        }
        b"usage" => {
            keys.first_time(1)?;
            saying.usage = usage(cursor)?;
            Ok(())
        }
        b"model" => {
            keys.first_time(2)?;
            saying.model = optional_name(cursor)?;
            Ok(())
        }
        // Errors are rare, and their words may be anywhere.
        b"error" => Err(NotOrdinary),
        _ => unknown(cursor, name),
    })?;
    if cursor.peek().is_none() { Ok(saying) } else { Err(NotOrdinary) }
}

/// A set of the known names that an object had so far.
#[derive(Default)]
struct Keys(u8);

impl Keys {
    fn first_time(&mut self, place: u8) -> Result<(), NotOrdinary> {
        let bit = 1 << place;
        if self.0 & bit != 0 {
            return Err(NotOrdinary);
        }
        self.0 |= bit;
        Ok(())
    }
}

/// Names that we do not know are passed over, if they are sure to be text.
fn unknown(cursor: &mut Cursor<'_>, name: &[u8]) -> Result<(), NotOrdinary> {
    if name.is_ascii() { cursor.skip().map(drop) } else { Err(NotOrdinary) }
}

fn choice<'a>(cursor: &mut Cursor<'a>) -> Result<ChoicePart<'a>, NotOrdinary> {
    let mut part = ChoicePart::default();
    let mut keys = Keys::default();
    let mut logprobs_tokens = None;
    cursor.members(|cursor, name| {
        match name {
            b"index" => {
                keys.first_time(0)?;
                let index = number(cursor)?;
                part.index = index.and_then(|index| u16::try_from(index).ok()).unwrap_or(0);
            }
            b"delta" | b"message" => {
                keys.first_time(1)?;
                message(cursor, &mut part)?;
            }
            b"text" => {
                keys.first_time(2)?;
                part.content = optional_parts(cursor)?;
            }
            b"finish_reason" => {
                keys.first_time(3)?;
                part.finish = optional_name(cursor)?;
            }
            b"logprobs" => {
                keys.first_time(4)?;
                logprobs_tokens = logprobs(cursor)?;
            }
            b"token_ids" => {
                keys.first_time(5)?;
                part.marked_tokens = list_length(cursor)?.filter(|length| 0 < *length);
            }
            b"error" => return Err(NotOrdinary),
            _ => return unknown(cursor, name),
        }
        Ok(())
    })?;
    part.marked_tokens = part.marked_tokens.or(logprobs_tokens);
    Ok(part)
}

fn message<'a>(cursor: &mut Cursor<'a>, part: &mut ChoicePart<'a>) -> Result<(), NotOrdinary> {
    if cursor.is_null() {
        return Ok(());
    }
    let mut keys = Keys::default();
    // A message says all of these, or that they are not there.
    (part.role, part.content, part.reasoning, part.tool_call_bytes) = (false, None, None, None);
    cursor.members(|cursor, name| {
        match name {
            b"role" => {
                keys.first_time(0)?;
                part.role = cursor.skip()? != b"null";
            }
            b"content" => {
                keys.first_time(1)?;
                part.content = optional_parts(cursor)?;
            }
            b"reasoning_content" | b"reasoning" => {
                let reasoning = optional_parts(cursor)?;
                part.reasoning = part.reasoning.take().or(reasoning);
            }
            b"tool_calls" => {
                keys.first_time(2)?;
                part.tool_call_bytes = tool_calls(cursor)?;
            }
            _ => return unknown(cursor, name),
        }
        Ok(())
    })
}

fn tool_calls(cursor: &mut Cursor<'_>) -> Result<Option<usize>, NotOrdinary> {
    if cursor.is_null() {
        return Ok(None);
    }
    let mut bytes = None;
    cursor.items(|cursor| {
        let mut keys = Keys::default();
        let mut call_bytes = 0;
        cursor.members(|cursor, name| match name {
            b"function" => {
                keys.first_time(0)?;
                call_bytes = function(cursor)?;
                Ok(())
            }
            _ => unknown(cursor, name),
        })?;
        bytes = Some(bytes.unwrap_or(0) + call_bytes);
        Ok(())
    })?;
    Ok(bytes)
}

fn function(cursor: &mut Cursor<'_>) -> Result<usize, NotOrdinary> {
    if cursor.is_null() {
        return Ok(0);
    }
    let mut keys = Keys::default();
    let mut bytes = 0;
    cursor.members(|cursor, name| {
        match name {
            b"name" => keys.first_time(0)?,
            b"arguments" => keys.first_time(1)?,
            _ => return unknown(cursor, name),
        }
        if !cursor.is_null() {
            bytes += cursor.value::<Sized>()?.0;
        }
        Ok(())
    })?;
    Ok(bytes)
}

/// Chat has `content`, completions have `tokens`.
fn logprobs(cursor: &mut Cursor<'_>) -> Result<Option<u32>, NotOrdinary> {
    if cursor.is_null() {
        return Ok(None);
    }
    let mut keys = Keys::default();
    let (mut content, mut tokens) = (None, None);
    cursor.members(|cursor, name| {
        match name {
            b"content" => {
                keys.first_time(0)?;
                content = list_length(cursor)?;
            }
            b"tokens" => {
                keys.first_time(1)?;
                tokens = list_length(cursor)?;
            }
            _ => return unknown(cursor, name),
        }
        Ok(())
    })?;
    Ok(content.or(tokens))
}

fn usage(cursor: &mut Cursor<'_>) -> Result<Option<Usage>, NotOrdinary> {
    if cursor.is_null() {
        return Ok(None);
    }
    let mut keys = Keys::default();
    let mut usage = Usage { prompt_tokens: None, completion_tokens: None, cached_tokens: None };
    cursor.members(|cursor, name| {
        match name {
            b"prompt_tokens" => {
                keys.first_time(0)?;
                usage.prompt_tokens = number(cursor)?;
            }
            b"completion_tokens" => {
                keys.first_time(1)?;
                usage.completion_tokens = number(cursor)?;
            }
            b"prompt_tokens_details" => {
                keys.first_time(2)?;
                usage.cached_tokens = cached_tokens(cursor)?;
            }
            _ => return unknown(cursor, name),
        }
        Ok(())
    })?;
    Ok(Some(usage))
}

fn cached_tokens(cursor: &mut Cursor<'_>) -> Result<Option<u64>, NotOrdinary> {
    if cursor.is_null() {
        return Ok(None);
    }
    let mut keys = Keys::default();
    let mut cached_tokens = None;
    cursor.members(|cursor, name| match name {
        b"cached_tokens" => {
            keys.first_time(0)?;
            cached_tokens = number(cursor)?;
            Ok(())
        }
        _ => unknown(cursor, name),
    })?;
    Ok(cached_tokens)
}

#[inline]
fn optional_parts<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Cow<'a, [u8]>>, NotOrdinary> {
    if cursor.is_null() {
        return Ok(None);
    }
    if let Some(text) = cursor.plain_text() {
        return Ok(Some(Cow::Borrowed(text)));
    }
    if let Some(text) = cursor.escaped_text() {
        return Ok(Some(Cow::Owned(text)));
    }
    Ok(Some(cursor.value::<Parts<'a>>()?.0))
}

#[inline]
fn optional_name<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Cow<'a, str>>, NotOrdinary> {
    if cursor.is_null() {
        return Ok(None);
    }
    let name = match cursor.plain_text() {
        Some(name) => String::from_utf8_lossy(name),
        None => cursor.value::<Text<'a>>()?.into_name(),
    };
    Ok(Some(name))
}

#[inline]
fn number(cursor: &mut Cursor<'_>) -> Result<Option<u64>, NotOrdinary> {
    match cursor.count() {
        Some(count) => Ok(Some(count)),
        None => Ok(cursor.value::<Loose>()?.number()),
    }
}

#[inline]
fn list_length(cursor: &mut Cursor<'_>) -> Result<Option<u32>, NotOrdinary> {
    if cursor.is_null() {
        return Ok(None);
    }
    if cursor.peek() != Some(b'[') {
        return Ok(cursor.value::<Loose>()?.list_length());
    }
    let mut length = 0_u32;
    cursor.items(|cursor| {
        length = length.saturating_add(1);
        cursor.skip().map(drop)
    })?;
    Ok(Some(length))
}
