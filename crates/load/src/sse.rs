//! The event-stream decoder (WHATWG "server-sent events"), on bytes.
//!
//! The answer may not depend on where the network cut the bytes: any segmentation gives the same
//! events. Lines end in LF, CRLF or CR; comments are counted; several `data` lines join with a
//! newline; a byte-order mark at the start is skipped; an event that the stream's end cuts off is
//! not an event.

use memchr::{memchr, memchr2};

/// Where the decoder gives up: an endless line or event must not become endless memory.
#[derive(Clone, Copy, Debug)]
pub struct SseBounds {
    pub line_bytes: usize,
    pub event_bytes: usize,
}

impl Default for SseBounds {
    fn default() -> Self {
        Self { line_bytes: 1 << 20, event_bytes: 8 << 20 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    #[error("a line of the event stream is longer than {0} bytes")]
    LineTooLarge(usize),
    #[error("an event is larger than {0} bytes")]
    EventTooLarge(usize),
}

/// One event with data. `name` is empty when the stream gave none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    pub name: &'a [u8],
    pub data: &'a [u8],
}

#[derive(Debug, Default)]
pub struct SseDecoder {
    bounds: SseBounds,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    past_first_line: bool,
    comments: u32,
}

/// A longer buffer is given back after its event: one huge event must not cost its stream twice its
/// length until the end.
const KEPT_BYTES: usize = 64 << 10;
const BOM: &[u8] = b"\xEF\xBB\xBF";

impl SseDecoder {
    pub fn new(bounds: SseBounds) -> Self {
        Self { bounds, ..Self::default() }
    }

    /// Comment lines so far. They show that the server lives, and nothing else.
    pub fn comments(&self) -> u32 {
        self.comments
    }

    /// Takes the next bytes and hands over each event that they complete.
    pub fn push(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(SseEvent<'_>),
    ) -> Result<(), SseError> {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        loop {
            if let Some((data, after)) = self.whole_event(rest) {
                on_event(SseEvent { name: b"", data });
                rest = after;
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else { break };
            let (line, terminator) = rest.split_at(end);
            rest = if terminator.starts_with(b"\r\n") {
                &terminator[2..]
            } else {
                // The LF of a CRLF may be the first byte of the next read.
                self.after_cr = terminator == b"\r";
                &terminator[1..]
            };
            self.end_line(line, &mut on_event)?;
        }
        self.check_line(rest.len())?;
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// The data of an event of one line that lies whole at the beginning of these bytes, as nearly all do, and what
    /// comes after it.
    fn whole_event<'a>(&self, bytes: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let is_between = self.past_first_line && !self.has_data && !self.after_cr;
        if !is_between || !self.line.is_empty() || !self.name.is_empty() {
            return None;
        }
        let value = bytes.strip_prefix(b"data:")?;
        let (value, end) = value.split_at(memchr2(b'\n', b'\r', value)?);
        let after = end.strip_prefix(b"\n\n").or_else(|| end.strip_prefix(b"\r\n\r\n"))?;
        let length = b"data:".len() + value.len();
        let is_bounded = length <= self.bounds.line_bytes.min(self.bounds.event_bytes);
        is_bounded.then_some((value.strip_prefix(b" ").unwrap_or(value), after))
    }

    fn check_line(&self, more: usize) -> Result<(), SseError> {
        if self.bounds.line_bytes < self.line.len() + more {
            return Err(SseError::LineTooLarge(self.bounds.line_bytes));
        }
        Ok(())
    }

    fn end_line(
        &mut self,
        tail: &[u8],
        on_event: &mut impl FnMut(SseEvent<'_>),
    ) -> Result<(), SseError> {
        self.check_line(tail.len())?;
        if self.line.is_empty() {
            return self.field(tail, on_event);
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(tail);
        let ended = self.field(&line, on_event);
        line.clear();
        line.shrink_to(KEPT_BYTES);
        self.line = line;
        ended
    }

    fn field(
        &mut self,
        line: &[u8],
        on_event: &mut impl FnMut(SseEvent<'_>),
    ) -> Result<(), SseError> {
        let line = if self.past_first_line { line } else { line.strip_prefix(BOM).unwrap_or(line) };
        self.past_first_line = true;
        if line.is_empty() {
            self.dispatch(on_event);
            return Ok(());
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"" => self.comments = self.comments.saturating_add(1),
            b"data" => return self.add_data(value),
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // `id` and `retry` steer reconnecting, which a benchmark must never do.
            _ => {}
        }
        Ok(())
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), SseError> {
        if self.bounds.event_bytes < self.data.len() + value.len() {
            return Err(SseError::EventTooLarge(self.bounds.event_bytes));
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn dispatch(&mut self, on_event: &mut impl FnMut(SseEvent<'_>)) {
        if self.has_data {
            on_event(SseEvent { name: &self.name, data: &self.data });
        }
        self.has_data = false;
        self.data.clear();
        self.data.shrink_to(KEPT_BYTES);
        self.name.clear();
    }
}

/// A line longer than this would become endless memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line of JSON is longer than {0} bytes")]
pub struct LineTooLarge(pub usize);

#[derive(Debug)]
pub struct JsonLines {
    line_bytes_max: usize,
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
}

impl JsonLines {
    pub fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, line: Vec::new() }
    }

    /// Takes the next bytes and hands over each line that they complete.
    pub fn push(
        &mut self,
        bytes: &[u8],
        mut on_line: impl FnMut(&[u8]),
    ) -> Result<(), LineTooLarge> {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            self.check(line.len())?;
            if self.line.is_empty() {
                hand_over(line, &mut on_line);
            } else {
                self.line.extend_from_slice(line);
                hand_over(&self.line, &mut on_line);
                self.line.clear();
            }
        }
        self.check(rest.len())?;
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// What came after the last line's end: the last line, or the beginning of one.
    pub fn take_rest(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.line);
        rest.trim_ascii().to_vec()
    }

    fn check(&self, more: usize) -> Result<(), LineTooLarge> {
        if self.line_bytes_max < self.line.len() + more {
            return Err(LineTooLarge(self.line_bytes_max));
        }
        Ok(())
    }
}

fn hand_over(line: &[u8], on_line: &mut impl FnMut(&[u8])) {
    let line = line.trim_ascii();
    if !line.is_empty() {
        on_line(line);
    }
}

#[cfg(test)]
mod sse_tests {
    use super::*;

    fn decode_all(parts: &[&[u8]]) -> (Vec<(String, String)>, u32) {
        let mut decoder = SseDecoder::new(SseBounds::default());
        let mut events = Vec::new();
        for part in parts {
            decoder
                .push(part, |event| {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    events.push((text(event.name), text(event.data)));
                })
                .unwrap();
        }
        (events, decoder.comments())
    }

    fn data_of(stream: &[u8]) -> Vec<String> {
        decode_all(&[stream]).0.into_iter().map(|(_, data)| data).collect()
    }

    /// The answer may not depend on where the network cut the bytes. We try every pair of cuts.
    /// Faults: 39, 40, 43, 44.
    #[test]
    fn events_do_not_depend_on_read_boundaries() {
        let stream = "\u{feff}: ping\n\ndata: {\"t\":\" ä\"}\r\n\r\nevent: x\rdata: one\rdata: two\r\r\
             :\n\ndata:\n\ndata\n\nid: 7\ndata:  two spaces\n\ndata: cut off";
        let stream = stream.as_bytes();
        let whole = decode_all(&[stream]);
        let event = |name: &str, data: &str| (name.to_owned(), data.to_owned());
        assert_eq!(
            whole.0,
            [
                event("", "{\"t\":\" ä\"}"),
                event("x", "one\ntwo"),
                event("", ""),
                event("", ""),
                event("", " two spaces"),
            ]
        );
        assert_eq!(whole.1, 2, "comments");
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let cut =
                    decode_all(&[&stream[..first], &stream[first..second], &stream[second..]]);
                assert_eq!(cut, whole, "cuts at {first} and {second}");
            }
        }
    }

    /// Faults: 42.
    #[test]
    fn every_kind_of_line_end_gives_the_same_events() {
        let with_lf = "data: a\n\n: c\n\nevent: e\ndata: b\ndata: c\n\n";
        let wanted = decode_all(&[with_lf.as_bytes()]);
        for end in ["\r\n", "\r"] {
            assert_eq!(decode_all(&[with_lf.replace('\n', end).as_bytes()]), wanted, "{end:?}");
        }
        assert_eq!(decode_all(&[b"data: a\r\n\n: c\n\revent: e\rdata: b\r\ndata: c\n\n"]), wanted);
    }

    /// Faults: 46.
    #[test]
    fn a_byte_order_mark_counts_only_at_the_start() {
        assert_eq!(data_of("\u{feff}data: a\n\n\u{feff}data: b\n\n".as_bytes()), ["a"]);
    }

    /// Faults: 50, 51, 52.
    #[test]
    fn bounds_end_an_endless_line_and_an_endless_event() {
        let bounds = SseBounds { line_bytes: 64, event_bytes: 100 };
        let mut decoder = SseDecoder::new(bounds);
        let endless = [b'x'; 65];
        assert_eq!(decoder.push(&endless, |_| {}), Err(SseError::LineTooLarge(64)));

        let mut decoder = SseDecoder::new(bounds);
        let line = b"data: 0123456789012345678901234567890123456789\n";
        assert_eq!(decoder.push(line, |_| {}), Ok(()));
        assert_eq!(decoder.push(line, |_| {}), Ok(()));
        assert_eq!(decoder.push(line, |_| {}), Err(SseError::EventTooLarge(100)));
    }

    /// Looked through again for each byte, this line would be half a million million bytes.
    /// Faults: 11.
    #[test]
    fn a_line_of_single_bytes_is_looked_through_once() {
        let mut decoder = SseDecoder::new(SseBounds::default());
        let line = [b"data: ".as_slice(), &vec![b'x'; 1_000_000], b"\n\n"].concat();
        let mut seen = 0;
        for byte in &line {
            decoder.push(std::slice::from_ref(byte), |event| seen += event.data.len()).unwrap();
        }
        assert_eq!(seen, 1_000_000);
    }

    #[test]
    fn many_small_events_never_reach_the_event_bound() {
        let mut decoder = SseDecoder::new(SseBounds { line_bytes: 64, event_bytes: 100 });
        let mut seen = 0;
        for _ in 0..1_000 {
            decoder.push(b"data: 0123456789\n\n", |_| seen += 1).unwrap();
        }
        assert_eq!(seen, 1_000);
    }
}

#[cfg(test)]
mod json_lines_tests {
    use super::*;

    fn decode(parts: &[&[u8]]) -> (Vec<String>, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut decoder = JsonLines::new(64);
        let mut lines = Vec::new();
        for part in parts {
            decoder.push(part, |line| lines.push(text(line))).unwrap();
        }
        let rest = text(&decoder.take_rest());
        (lines, rest)
    }

    #[test]
    fn lines_do_not_depend_on_read_boundaries() {
        let stream = "{\"a\":\"ä\"}\r\n\n{\"b\":2}\n \r\n{\"c\":3}".as_bytes();
        let whole = decode(&[stream]);
        assert_eq!(whole.0, ["{\"a\":\"ä\"}", "{\"b\":2}"]);
        assert_eq!(whole.1, "{\"c\":3}");
        for first in 0..=stream.len() {
            for second in first..=stream.len() {
                let cut = decode(&[&stream[..first], &stream[first..second], &stream[second..]]);
                assert_eq!(cut, whole, "cuts at {first} and {second}");
            }
        }
    }

    #[test]
    fn an_endless_line_ends_at_the_bound() {
        let mut decoder = JsonLines::new(64);
        for _ in 0..1_000 {
            decoder.push(&[b'x'; 64], |_| {}).unwrap();
            decoder.push(b"\n", |_| {}).unwrap();
        }
        decoder.push(&[b'x'; 64], |_| {}).unwrap();
        assert_eq!(decoder.push(b"x", |_| {}), Err(LineTooLarge(64)));
        assert_eq!(JsonLines::new(64).push(&[b'\n'; 500], |_| {}), Ok(()));
        let mut long = vec![b'x'; 65];
        long.push(b'\n');
        assert_eq!(JsonLines::new(64).push(&long, |_| {}), Err(LineTooLarge(64)));
    }
}
