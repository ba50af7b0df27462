//! An answer on its way out: the write at hand, how far it has got, and where the next comes from.

use crate::clock::Moment;
use crate::framing::Write;
use crate::generation::TokenStream;
use crate::ledger::{Entry, Passed};
use crate::service::NextWrite;

/// An answer that is being written.
#[derive(Debug)]
pub(crate) struct PacedAnswer {
    entry: Entry,
    /// What further writes come from; none for an answer in one piece.
    stream: Option<TokenStream>,
    write: Write,
    /// How much of `write` the socket has taken.
    sent: usize,
    /// How many of `write`'s marks lie in that.
    marks_passed: usize,
    byte_wise: bool,
}

impl PacedAnswer {
    pub(crate) fn streamed(entry: Entry, stream: TokenStream, byte_wise: bool) -> Self {
        let write = Write::default();
        Self { entry, stream: Some(stream), write, sent: 0, marks_passed: 0, byte_wise }
    }

    pub(crate) fn in_one_piece(entry: Entry, write: Write, byte_wise: bool) -> Self {
        Self { entry, stream: None, write, sent: 0, marks_passed: 0, byte_wise }
    }

    pub(crate) fn entry(&self) -> Entry {
        self.entry
    }

    /// When the write at hand is due.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.write.due
    }

    pub(crate) fn next_write(&mut self) -> Option<NextWrite<'_>> {
        if self.sent == self.write.bytes.len() {
            let stream = self.stream.as_mut()?;
            if !stream.next_write(&mut self.write) {
                return None;
            }
            self.sent = 0;
            self.marks_passed = 0;
        }
        let end = if self.byte_wise { self.sent + 1 } else { self.write.bytes.len() };
        Some(NextWrite { bytes: &self.write.bytes[self.sent..end], due: self.write.due })
    }

    /// Moves past `bytes` that the socket has taken.
    pub(crate) fn pass(&mut self, bytes: usize) -> Passed {
        let mut passed = Passed { is_start: self.sent == 0, ..Passed::default() };
        self.sent += bytes;
        while let Some(mark) = self.write.marks.get(self.marks_passed)
            && mark.end <= self.sent
        {
            passed.events += mark.events;
            passed.tokens += mark.tokens;
            self.marks_passed += 1;
        }
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Mark;
    use crate::ledger::Ledger;
    use crate::options::{Limits, Mode};

    fn answer(byte_wise: bool) -> PacedAnswer {
        let entry = Ledger::new(Mode::Paced, &Limits::default()).unkept();
        let mut write = Write::default();
        write.raw(b"abcdef");
        write.marks = vec![
            Mark { end: 2, events: 1, tokens: 1 },
            Mark { end: 3, events: 1, tokens: 2 },
            Mark { end: 6, events: 1, tokens: 4 },
        ];
        PacedAnswer::in_one_piece(entry, write, byte_wise)
    }

    fn bytes_of(answer: &mut PacedAnswer) -> Option<Vec<u8>> {
        answer.next_write().map(|next| next.bytes.to_vec())
    }

    #[test]
    fn a_part_counts_the_events_that_end_in_it() {
        let mut answer = answer(false);
        assert_eq!(bytes_of(&mut answer).as_deref(), Some(b"abcdef".as_slice()));
        assert_eq!(answer.pass(1), Passed { events: 0, tokens: 0, is_start: true });
        assert_eq!(answer.pass(2), Passed { events: 2, tokens: 3, is_start: false });
        assert_eq!(bytes_of(&mut answer).as_deref(), Some(b"def".as_slice()));
        assert_eq!(answer.pass(3), Passed { events: 1, tokens: 4, is_start: false });
        assert_eq!(bytes_of(&mut answer), None);
    }

    #[test]
    fn byte_wise_is_one_byte_after_another() {
        let mut answer = answer(true);
        let mut seen = Vec::new();
        while let Some(bytes) = bytes_of(&mut answer) {
            assert_eq!(bytes.len(), 1);
            seen.extend(bytes);
            answer.pass(1);
        }
        assert_eq!(seen, b"abcdef");
    }
}
