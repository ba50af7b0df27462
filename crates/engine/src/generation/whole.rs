//! An answer in one piece: head and body in one write.

use super::json::AnswerJson;
use super::words::{WordId, Words};
use crate::clock::Moment;
use crate::framing::Write;
use crate::http::JSON_HEAD;

/// An answer that is not streamed, as one write.
pub(crate) fn whole_answer(
    json: &AnswerJson,
    mut words: Words,
    tokens: u32,
    due: Option<Moment>,
) -> Write {
    let said: Vec<WordId> = (0..tokens).map(|_| words.next()).collect();
    let mut body = Vec::new();
    json.whole(&mut body, &said);
    let mut write = Write::default();
    write.due = due;
    write.raw(format!("{JSON_HEAD}{}\r\n\r\n", body.len()).as_bytes());
    write.raw(&body);
    write.mark_tokens(tokens);
    write
}
