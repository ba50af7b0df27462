//! The quick reader: the OpenAI form, for documents as servers ordinarily write them.
//!
//! A stream's events are alike, and serde's generality is most of their cost. This reader knows
//! the shapes that matter and steps over the rest; where a document or one of its values has
//! another shape, it leaves the answer, and every refusal, to `serde_json`. What it does say is
//! what the full reader would say: the tests compare them.

//!
//! The cursor gives no reasons: what is [`NotOrdinary`] goes to `serde_json`, which decides. So the
//! cursor may turn away valid JSON that is rare, such as names with escapes, but must never pass
//! what `serde_json` or the bounds would refuse.

use std::borrow::Cow;

use inferometer_model::record::Usage;
use serde::Deserialize;

use super::json::{DEPTH_MAX, KEYS_MAX, Loose, Parts, Sized, Text};
use super::{ChoiceDelta, Chunk};

pub(super) fn read(json: &[u8]) -> Result<Chunk<'_>, NotOrdinary> {
    let mut cursor = Cursor::new(json);
    let mut chunk = Chunk::default();
    let mut keys = Keys::default();
    cursor.members(|cursor, name| match name {
        b"choices" => {
            keys.first_time(0)?;
            if cursor.is_null() {
                return Ok(());
            }
            cursor.items(|cursor| {
                chunk.choices.push(choice(cursor)?);
                Ok(())
            })
        }
        b"usage" => {
            keys.first_time(1)?;
            chunk.usage = usage(cursor)?;
            Ok(())
        }
        b"model" => {
            keys.first_time(2)?;
            chunk.model = optional_name(cursor)?;
            Ok(())
        }
        // Errors are rare, and their words may be anywhere.
        b"error" => Err(NotOrdinary),
        _ => unknown(cursor, name),
    })?;
    if cursor.peek().is_none() { Ok(chunk) } else { Err(NotOrdinary) }
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

fn choice<'a>(cursor: &mut Cursor<'a>) -> Result<ChoiceDelta<'a>, NotOrdinary> {
    let mut delta = ChoiceDelta::default();
    let mut keys = Keys::default();
    let mut logprobs_tokens = None;
    cursor.members(|cursor, name| {
        match name {
            b"index" => {
                keys.first_time(0)?;
                let index = number(cursor)?;
                delta.index = index.and_then(|index| u16::try_from(index).ok()).unwrap_or(0);
            }
            b"delta" | b"message" => {
                keys.first_time(1)?;
                message(cursor, &mut delta)?;
            }
            b"text" => {
                keys.first_time(2)?;
                delta.content = optional_parts(cursor)?;
            }
            b"finish_reason" => {
                keys.first_time(3)?;
                delta.finish = optional_name(cursor)?;
            }
            b"logprobs" => {
                keys.first_time(4)?;
                logprobs_tokens = logprobs(cursor)?;
            }
            b"token_ids" => {
                keys.first_time(5)?;
                delta.marked_tokens = list_length(cursor)?.filter(|length| 0 < *length);
            }
            b"error" => return Err(NotOrdinary),
            _ => return unknown(cursor, name),
        }
        Ok(())
    })?;
    delta.marked_tokens = delta.marked_tokens.or(logprobs_tokens);
    Ok(delta)
}

fn message<'a>(cursor: &mut Cursor<'a>, delta: &mut ChoiceDelta<'a>) -> Result<(), NotOrdinary> {
    if cursor.is_null() {
        return Ok(());
    }
    let mut keys = Keys::default();
    // A message sets all of these; a missing one is absent.
    (delta.role, delta.content, delta.reasoning, delta.tool_call_bytes) = (false, None, None, None);
    cursor.members(|cursor, name| {
        match name {
            b"role" => {
                keys.first_time(0)?;
                delta.role = cursor.skip()? != b"null";
            }
            b"content" => {
                keys.first_time(1)?;
                delta.content = optional_parts(cursor)?;
            }
            b"reasoning_content" | b"reasoning" => {
                let reasoning = optional_parts(cursor)?;
                delta.reasoning = delta.reasoning.take().or(reasoning);
            }
            b"tool_calls" => {
                keys.first_time(2)?;
                delta.tool_call_bytes = tool_calls(cursor)?;
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

/// The document is not one for the quick reader; it may be right or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotOrdinary;

#[derive(Debug)]
struct Cursor<'a> {
    rest: &'a [u8],
    /// How many more objects and lists may be opened inside each other.
    depth_left: usize,
}

impl<'a> Cursor<'a> {
    fn new(json: &'a [u8]) -> Self {
        Self { rest: json, depth_left: DEPTH_MAX }
    }

    /// The next byte that is not white space; it stays.
    #[expect(clippy::inline_always, reason = "a call costs more than the step")]
    #[inline(always)]
    fn peek(&mut self) -> Option<u8> {
        while let [b' ' | b'\n' | b'\t' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest.first().copied()
    }

    /// Steps over this byte, if it is the next that is not white space.
    #[expect(clippy::inline_always, reason = "a call costs more than the step")]
    #[inline(always)]
    fn take(&mut self, wanted: u8) -> bool {
        let is_here = self.peek() == Some(wanted);
        if is_here {
            self.rest = &self.rest[1..];
        }
        is_here
    }

    /// Walks an object. `member` gets each name, and must step over its value.
    #[inline]
    fn members(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Result<(), NotOrdinary>,
    ) -> Result<(), NotOrdinary> {
        self.open(b'{')?;
        if self.close(b'}') {
            return Ok(());
        }
        for _ in 0..KEYS_MAX {
            let name = self.plain_text().ok_or(NotOrdinary)?;
            if !self.take(b':') {
                return Err(NotOrdinary);
            }
            member(self, name)?;
            if !self.take(b',') {
                return if self.close(b'}') { Ok(()) } else { Err(NotOrdinary) };
            }
        }
        Err(NotOrdinary)
    }

    /// Walks a list. `item` must step over each item.
    #[inline]
    fn items(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), NotOrdinary>,
    ) -> Result<(), NotOrdinary> {
        self.open(b'[')?;
        if self.close(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            if !self.take(b',') {
                return if self.close(b']') { Ok(()) } else { Err(NotOrdinary) };
            }
        }
    }

    #[inline]
    fn open(&mut self, bracket: u8) -> Result<(), NotOrdinary> {
        if !self.take(bracket) {
            return Err(NotOrdinary);
        }
        self.depth_left = self.depth_left.checked_sub(1).ok_or(NotOrdinary)?;
        Ok(())
    }

    #[inline]
    fn close(&mut self, bracket: u8) -> bool {
        let is_closed = self.take(bracket);
        self.depth_left += usize::from(is_closed);
        is_closed
    }

    /// Steps over any value and returns its JSON.
    fn skip(&mut self) -> Result<&'a [u8], NotOrdinary> {
        let first = self.peek();
        let start = self.rest;
        match first {
            Some(b'"') => self.skip_string()?,
            Some(b'{') => self.members(|cursor, _| cursor.skip().map(drop))?,
            Some(b'[') => self.items(|cursor| cursor.skip().map(drop))?,
            Some(b'n') => self.skip_word(b"null")?,
            Some(b't') => self.skip_word(b"true")?,
            Some(b'f') => self.skip_word(b"false")?,
            _ => self.rest = &start[number_length(start).ok_or(NotOrdinary)?..],
        }
        Ok(&start[..start.len() - self.rest.len()])
    }

    /// Steps over any value and lets `serde_json` read it.
    fn value<T: Deserialize<'a>>(&mut self) -> Result<T, NotOrdinary> {
        serde_json::from_slice(self.skip()?).map_err(|_| NotOrdinary)
    }

    /// Steps over `null`, if it is here; anything else stays.
    #[expect(clippy::inline_always, reason = "a call costs more than the step")]
    #[inline(always)]
    fn is_null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.skip_word(b"null").is_ok()
    }

    fn skip_word(&mut self, word: &[u8]) -> Result<(), NotOrdinary> {
        self.rest = self.rest.strip_prefix(word).ok_or(NotOrdinary)?;
        Ok(())
    }

    /// Steps over a string, of which only the escapes need a closer look.
    fn skip_string(&mut self) -> Result<(), NotOrdinary> {
        self.rest = &self.rest[string_length(self.rest).ok_or(NotOrdinary)?..];
        Ok(())
    }

    /// The inside of a string without escapes, if one is here; anything else stays.
    #[inline]
    fn plain_text(&mut self) -> Option<&'a [u8]> {
        self.peek()?;
        let body = self.rest.strip_prefix(b"\"")?;
        let (text, rest) = body.split_at(plain_length(body));
        self.rest = rest.strip_prefix(b"\"")?;
        Some(text)
    }

    /// The text of a string with the common escapes, if one is here; anything else stays.
    fn escaped_text(&mut self) -> Option<Vec<u8>> {
        self.peek()?;
        let mut body = self.rest.strip_prefix(b"\"")?;
        let mut text = Vec::new();
        loop {
            let (plain, rest) = body.split_at(plain_length(body));
            text.extend_from_slice(plain);
            if let Some(rest) = rest.strip_prefix(b"\"") {
                self.rest = rest;
                return Some(text);
            }
            let [b'\\', escape, rest @ ..] = rest else { return None };
            text.push(match escape {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'"' | b'\\' | b'/' => *escape,
                _ => return None,
            });
            body = rest;
        }
    }

    /// A whole number of at most nineteen digits, if one is here; anything else stays.
    #[inline]
    fn count(&mut self) -> Option<u64> {
        self.peek()?;
        let length = digits_length(self.rest);
        let (digits, rest) = self.rest.split_at(length);
        let is_plain = !matches!(rest.first(), Some(b'.' | b'e' | b'E'))
            && (length == 1 || digits.first() != Some(&b'0'));
        if !(1..=19).contains(&length) || !is_plain {
            return None;
        }
        self.rest = rest;
        Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    }
}

/// Bytes before the first that is a quote, a backslash or a control character.
///
/// Eight at a time: subtracting from each byte borrows into its high bit where the byte was too
/// small. A borrow can spoil bytes above a hit only, and the lowest hit is the one that counts.
#[inline]
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH_BITS: u64 = ONES << 7;
    let less = |eight: u64, limit: u8| eight.wrapping_sub(ONES * u64::from(limit));
    let equal = |eight: u64, byte: u8| less(eight ^ (ONES * u64::from(byte)), 1);
    let mut rest = bytes;
    while let Some((eight, after)) = rest.split_first_chunk() {
        let eight = u64::from_le_bytes(*eight);
        // All three limits are ASCII: a byte that had its high bit before is none of them.
        let borrows = less(eight, b' ') | equal(eight, b'"') | equal(eight, b'\\');
        let hits = borrows & !eight & HIGH_BITS;
        if hits != 0 {
            return bytes.len() - rest.len() + hits.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    let is_plain = |byte: &&u8| !matches!(**byte, 0..b' ' | b'"' | b'\\');
    bytes.len() - rest.len() + rest.iter().take_while(is_plain).count()
}

/// The length of the string at the start, with its quotes.
pub(super) fn string_length(bytes: &[u8]) -> Option<usize> {
    let mut length = usize::from(bytes.first() == Some(&b'"'));
    loop {
        length += plain_length(&bytes[length..]);
        if bytes.get(length) == Some(&b'"') {
            return Some(length + 1);
        }
        length += escape_length(&bytes[length..])?;
    }
}

/// The length of the escape at the start; a control character is none.
fn escape_length(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Some(2),
        [b'\\', b'u', digits @ ..] => {
            digits.first_chunk::<4>()?.iter().all(u8::is_ascii_hexdigit).then_some(6)
        }
        _ => None,
    }
}

/// The length of the number at the start, by the grammar of JSON.
pub(super) fn number_length(bytes: &[u8]) -> Option<usize> {
    let mut length = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits_length(&bytes[length..]);
    if whole == 0 || (1 < whole && bytes[length] == b'0') {
        return None;
    }
    length += whole;
    if bytes.get(length) == Some(&b'.') {
        let fraction = digits_length(&bytes[length + 1..]);
        length += 1 + Some(fraction).filter(|digits| 0 < *digits)?;
    }
    if let Some(b'e' | b'E') = bytes.get(length) {
        length += 1 + usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits_length(&bytes[length..]);
        length += Some(exponent).filter(|digits| 0 < *digits)?;
    }
    Some(length)
}

#[inline]
pub(super) fn digits_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_the_first_byte_that_is_not_plain() {
        let is_plain = |byte: u8| 0x20 <= byte && byte != b'"' && byte != b'\\';
        for (first, second) in (0..=u8::MAX).flat_map(|first| [(first, 0xff), (first, b' ')]) {
            for place in 0..20 {
                let mut bytes = [second; 20];
                bytes[place] = first;
                let wanted = if is_plain(first) { bytes.len() } else { place };
                assert_eq!(plain_length(&bytes), wanted, "{first} at {place} among {second}");
            }
        }
    }

    #[test]
    fn any_value_is_stepped_over_to_its_last_byte() {
        for json in [
            "null",
            "true",
            "false",
            "0",
            "-0.5e+7",
            "12E3",
            "\"\"",
            "\"\\\"\\u00e4\"",
            "[]",
            "{}",
            "[1, [\"]\"]]",
            "{\"a\" : {\"}\":[ ]}}",
        ] {
            let followed = format!(" {json} ,");
            assert_eq!(Cursor::new(followed.as_bytes()).skip(), Ok(json.as_bytes()));
        }
        for json in ["", "nul", "-", "1.", "1e", "01", "\"\\x\"", "\"\n\"", "[1,]", "{\"a\"}", "}"]
        {
            assert_eq!(Cursor::new(json.as_bytes()).skip(), Err(NotOrdinary), "{json}");
        }
    }

    #[test]
    fn what_is_not_a_plain_count_stays() {
        for json in ["1.0", "1e2", "-1", "01", "\"1\"", "12345678901234567890"] {
            let mut cursor = Cursor::new(json.as_bytes());
            assert_eq!(cursor.count(), None);
            assert_eq!(cursor.rest, json.as_bytes());
        }
        assert_eq!(Cursor::new(b" 9999999999999999999,").count(), Some(9_999_999_999_999_999_999));
        assert_eq!(Cursor::new(b"0}").count(), Some(0));
    }
}
