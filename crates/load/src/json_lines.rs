//! The decoder of JSON lines: one document per line, whatever reads brought the bytes.
//!
//! Lines end in LF or CRLF, blank ones are passed over, and the last may lack its end.

use memchr::memchr;

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
mod tests {
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
