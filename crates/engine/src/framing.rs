//! Events into the bytes of one write: SSE lines inside an HTTP chunk, and the faults of both.
//!
//! A [`Write`] knows at which of its bytes each event becomes readable, so the truth stays exact
//! when the socket takes only a part of it.

use crate::clock::Moment;
use crate::faults::{Fault, Faults};
use crate::server::NextWrite;
use crate::truth::Passed;

/// Bytes that leave in one `write()`, what a reader has once each of them has arrived, and how far
/// they have got.
#[derive(Debug, Default)]
pub(crate) struct Write {
    /// As they go to the socket. Complete only after [`Write::close_chunk`].
    pub(crate) bytes: Vec<u8>,
    /// In order of `end`.
    pub(crate) marks: Vec<Mark>,
    /// Not to be written before; `None` is right after what came before it.
    pub(crate) due: Option<Moment>,
    /// The open chunk's payload; its length goes ahead of it, so it is gathered first.
    payload: Vec<u8>,
    /// How much of `bytes` the socket has taken.
    sent: usize,
    /// How many of `marks` lie in that.
    marks_passed: usize,
}

/// Once the first `end` bytes have arrived, this many more events and tokens are readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) end: usize,
    pub(crate) events: u32,
    pub(crate) tokens: u32,
}

impl Write {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.marks.clear();
        self.payload.clear();
        self.due = None;
        self.sent = 0;
        self.marks_passed = 0;
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.sent == self.bytes.len()
    }

    /// What the socket has not taken yet, or the first byte of it.
    pub(crate) fn rest(&self, byte_wise: bool) -> NextWrite<'_> {
        let end = if byte_wise { self.sent + 1 } else { self.bytes.len() };
        NextWrite { bytes: &self.bytes[self.sent..end], due: self.due }
    }

    /// Moves past `bytes` that the socket has taken.
    pub(crate) fn pass(&mut self, bytes: usize) -> Passed {
        let mut passed = Passed { is_start: self.sent == 0, ..Passed::default() };
        self.sent += bytes;
        while let Some(mark) = self.marks.get(self.marks_passed)
            && mark.end <= self.sent
        {
            passed.events += mark.events;
            passed.tokens += mark.tokens;
            self.marks_passed += 1;
        }
        passed
    }

    /// Marks the events of a stream whose lines end in LF. An event ends with an empty line, and
    /// nothing else in a stream has one: line ends inside JSON are escaped, and those of HTTP are
    /// longer.
    pub(crate) fn mark_events(&mut self) {
        let ends = self.bytes.windows(2).enumerate().filter(|(_, pair)| *pair == b"\n\n");
        self.marks.extend(ends.map(|(at, _)| Mark { end: at + 2, events: 1, tokens: 0 }));
        self.marks.sort_by_key(|mark| mark.end);
    }

    /// Adds bytes outside any chunk.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds bytes to the open chunk that belong to no event.
    pub(crate) fn payload(&mut self, bytes: &[u8]) {
        self.payload.extend_from_slice(bytes);
    }

    /// Marks the end of the bytes so far as the moment of `tokens` that are in no event.
    pub(crate) fn mark_tokens(&mut self, tokens: u32) {
        if !self.bytes.is_empty() {
            self.marks.push(Mark { end: self.bytes.len(), events: 0, tokens });
        }
    }

    /// Events in the open chunk.
    pub(crate) fn events(&self) -> usize {
        self.marks.len()
    }

    /// Frames the payload as one HTTP chunk.
    pub(crate) fn close_chunk(&mut self) {
        self.raw(format!("{:x}\r\n", self.payload.len()).as_bytes());
        let start = self.bytes.len();
        self.bytes.append(&mut self.payload);
        self.marks.iter_mut().for_each(|mark| mark.end += start);
        self.raw(b"\r\n");
    }
}

/// How events are written as lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Framing {
    line_end: &'static [u8],
    comments: bool,
    multi_line: bool,
}

impl Framing {
    pub(crate) fn with(faults: Faults) -> Self {
        let line_end: &[u8] = match (faults.contains(Fault::Cr), faults.contains(Fault::Crlf)) {
            (true, _) => b"\r",
            (false, true) => b"\r\n",
            (false, false) => b"\n",
        };
        let comments = faults.contains(Fault::Comments);
        Self { line_end, comments, multi_line: faults.contains(Fault::MultiLine) }
    }

    /// Adds a comment, which is no event.
    pub(crate) fn comment(self, write: &mut Write) {
        write.payload(b": keep-alive");
        write.payload(self.line_end);
        write.payload(self.line_end);
    }

    /// Adds an event whose JSON may be broken into two lines ahead of byte `seam`.
    pub(crate) fn json_event(self, write: &mut Write, json: &[u8], seam: usize, tokens: u32) {
        let broken = if self.multi_line { json.split_at_checked(seam) } else { None };
        match broken {
            Some((first, second)) => self.event(write, &[first, second], tokens),
            None => self.event(write, &[json], tokens),
        }
    }

    /// Adds the event that ends a stream.
    pub(crate) fn done_event(self, write: &mut Write) {
        self.event(write, &[b"[DONE]"], 0);
    }

    fn event(self, write: &mut Write, lines: &[&[u8]], tokens: u32) {
        if self.comments {
            self.comment(write);
        }
        for line in lines {
            write.payload(b"data: ");
            write.payload(line);
            write.payload(self.line_end);
        }
        // The first byte of this line end makes the event readable: a reader that has seen a CR
        // need not wait for the LF.
        write.marks.push(Mark { end: write.payload.len() + 1, events: 1, tokens });
        write.payload(self.line_end);
    }
}

/// Ends a chunked body.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// What the `bom` fault puts ahead of a stream.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Events that `several-events` holds back when no other number was asked for.
pub(crate) const SEVERAL: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(faults: &[Fault]) -> Write {
        let framing = Framing::with(faults.iter().copied().collect());
        let mut write = Write::default();
        framing.json_event(&mut write, br#"{"a":1,"b":2}"#, 7, 3);
        framing.done_event(&mut write);
        write.close_chunk();
        write
    }

    fn text(write: &Write) -> &str {
        str::from_utf8(&write.bytes).unwrap()
    }

    #[test]
    fn plain_events_end_in_a_blank_line_and_are_marked_there() {
        let write = framed(&[]);
        assert_eq!(text(&write), "23\r\ndata: {\"a\":1,\"b\":2}\n\ndata: [DONE]\n\n\r\n");
        let first = Mark { end: 4 + 21, events: 1, tokens: 3 };
        let second = Mark { end: 4 + 35, events: 1, tokens: 0 };
        assert_eq!(write.marks, [first, second]);
    }

    #[test]
    fn an_event_in_crlf_is_readable_at_the_cr_of_its_blank_line() {
        let write = framed(&[Fault::Crlf]);
        let start = 4 + "data: {\"a\":1,\"b\":2}\r\n".len();
        assert_eq!(write.marks[0].end, start + 1);
        assert_eq!(&write.bytes[start..start + 2], b"\r\n");
    }

    #[test]
    fn a_broken_event_is_two_lines_and_one_event() {
        let write = framed(&[Fault::MultiLine]);
        assert!(text(&write).contains("data: {\"a\":1,\ndata: \"b\":2}\n\n"));
        assert_eq!(write.events(), 2);
    }

    #[test]
    fn parts_of_a_write_count_the_events_and_tokens_that_end_in_them() {
        let mut write = Write::default();
        write.raw(b"9\r\ndata: a\n\n\r\n");
        write.mark_tokens(1);
        let token_end = write.bytes.len();
        write.raw(b"9\r\ndata: b\n\n\r\n");
        write.mark_events();
        assert_eq!(write.pass(11), Passed { events: 0, tokens: 0, is_start: true });
        assert_eq!(write.pass(1), Passed { events: 1, tokens: 0, is_start: false });
        let rest = token_end - 12;
        assert_eq!(write.pass(rest), Passed { events: 0, tokens: 1, is_start: false });
        assert_eq!(write.pass(14), Passed { events: 1, tokens: 0, is_start: false });
        assert!(write.is_sent());
    }

    #[test]
    fn comments_are_no_events() {
        let write = framed(&[Fault::Comments, Fault::Cr]);
        assert!(text(&write).contains("\r\n: keep-alive\r\rdata: {"));
        assert!(text(&write).contains("\r\r: keep-alive\r\rdata: [DONE]\r\r"));
        assert_eq!(write.events(), 2);
    }
}
