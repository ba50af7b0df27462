//! Where a stop string or stop token ends an answer.

use super::ask::{GenerationRequest, Problem};
use super::wording::Finish;
use crate::http::ErrorBody;
use crate::serve::vocabulary::Vocabulary;

/// Refuses a search through so many tokens that everyone else would have to wait for it.
pub(crate) fn check_search(ask: &GenerationRequest, tokens: u64) -> Result<(), ErrorBody> {
    let stops = ask.stop.len().max(usize::from(!ask.stop_token_ids.is_empty())) as u64;
    if tokens.saturating_mul(stops) <= SEARCH_MAX {
        return Ok(());
    }
    let most = SEARCH_MAX / stops;
    let rule = format!("at most {most}, over all answers, with {stops} stops to look for");
    let value = tokens.to_string();
    Err(Problem::OutOfRange { param: "max_tokens", rule, value }.error_body(ask.endpoint))
}

/// Tokens times stops that are looked at for one request: 16 stops in 131,072 tokens, which takes
/// less than a tenth of a second.
const SEARCH_MAX: u64 = 1 << 21;

/// How an answer is ended by its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StopFound {
    /// The answer has this many tokens, the one that completes the stop included.
    pub(crate) tokens: u32,
    /// For [`super::AnswerWriter::cut`]: bytes of the text that are kept.
    pub(crate) kept: usize,
    pub(crate) finish: Finish,
}

/// The first stop in the tokens of an answer, which may be cut off at its bound.
///
/// As in vLLM a stop counts when it is completed behind the first `min_tokens` tokens, wherever it
/// began, and of several that one token completes the first in the request's list counts.
pub(crate) fn stop_at(
    ids: impl IntoIterator<Item = u32>,
    ask: &GenerationRequest,
    vocabulary: &Vocabulary,
) -> Option<StopFound> {
    if ask.stop.is_empty() && ask.stop_token_ids.is_empty() {
        return None;
    }
    let longest = ask.stop.iter().map(String::len).max().unwrap_or(0);
    let mut text = Tail::default();
    for (tokens, id) in (1..).zip(ids) {
        let before = text.end();
        let is_stop_token = ask.stop_token_ids.binary_search(&id).is_ok();
        if is_stop_token && ask.min_tokens < tokens {
            let with = if ask.include_stop { text.with(id, vocabulary) } else { before };
            return Some(StopFound { tokens, kept: with, finish: Finish::StopToken(id) });
        }
        text.push(id, vocabulary);
        if ask.min_tokens < tokens
            && let Some((which, start)) = text.completed(&ask.stop, before)
        {
            let length = ask.stop.get(usize::from(which)).map_or(0, String::len);
            let kept = if ask.include_stop { start + length } else { start };
            return Some(StopFound { tokens, kept, finish: Finish::StopString(which) });
        }
        text.forget(longest);
    }
    None
}

/// The end of a growing text: as much as a stop string may reach back.
#[derive(Debug, Default)]
struct Tail {
    text: String,
    /// Bytes that were forgotten.
    ahead: usize,
}

impl Tail {
    fn end(&self) -> usize {
        self.ahead + self.text.len()
    }

    fn push(&mut self, id: u32, vocabulary: &Vocabulary) {
        if Vocabulary::is_special(id) {
            return;
        }
        if 0 < self.end() {
            self.text.push(' ');
        }
        self.text.push_str(vocabulary.text(id));
    }

    /// How long the text would be with one more token.
    fn with(&self, id: u32, vocabulary: &Vocabulary) -> usize {
        match self.end() {
            _ if Vocabulary::is_special(id) => self.end(),
            0 => vocabulary.text(id).len(),
            end => end + 1 + vocabulary.text(id).len(),
        }
    }

    /// The first stop string that ends behind byte `before`, and where it starts.
    fn completed(&self, stop: &[String], before: usize) -> Option<(u16, usize)> {
        // One that ended earlier was looked at then; its last byte must be new.
        let first_new = before - self.ahead;
        let text = self.text.as_bytes();
        (0..).zip(stop).find_map(|(which, stop)| {
            let stop = stop.as_bytes();
            let last = stop.last()?;
            // Most bytes are not the last of anything: that is found faster than by a comparison.
            let mut ends = (first_new..text.len()).filter(|at| text[*at] == *last).map(|at| at + 1);
            let end = ends.find(|end| text[..*end].ends_with(stop))?;
            Some((which, self.ahead + end - stop.len()))
        })
    }

    /// Keeps the last bytes only. Words are ASCII, so any byte is a place to cut at.
    fn forget(&mut self, longest: usize) {
        let surplus = self.text.len().saturating_sub(longest);
        self.text.drain(..surplus);
        self.ahead += surplus;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Endpoint, Serving, parse};
    use super::*;

    fn found(text: &str, options: &str) -> Option<StopFound> {
        let vocabulary = Vocabulary::standard();
        let serving = Serving { model: "m", max_model_len: 2048, vocabulary };
        let body = format!("{{\"prompt\":\"x\",{options}}}");
        let ask = parse(Endpoint::Completions, body.as_bytes(), &serving).unwrap();
        stop_at(vocabulary.encode(text), &ask, vocabulary)
    }

    fn string(tokens: u32, kept: usize, which: u16) -> StopFound {
        StopFound { tokens, kept, finish: Finish::StopString(which) }
    }

    #[test]
    fn the_text_is_kept_up_to_the_stop_string() {
        let text = "bana mika zuzu mika";
        assert_eq!(found(text, r#""stop":"mika""#), Some(string(2, 5, 0)));
        assert_eq!(found(text, r#""stop":["nope","ka z","ana"]"#), Some(string(1, 1, 2)));
        assert_eq!(found(text, r#""stop":"a m""#), Some(string(2, 3, 0)));
        assert_eq!(found(text, r#""stop":"ana mika zuz""#), Some(string(3, 1, 0)));
        assert_eq!(found(text, r#""stop":"mikazuzu""#), None);
    }

    #[test]
    fn a_stop_that_is_to_be_included_is_kept_but_nothing_behind_it() {
        let options = r#""stop":"a mi","include_stop_str_in_output":true"#;
        assert_eq!(found("bana mika zuzu", options), Some(string(2, 7, 0)));
    }

    #[test]
    fn nothing_stops_within_the_least_number_of_tokens() {
        let text = "bana mika zuzu mika";
        assert_eq!(found(text, r#""stop":"mika","min_tokens":2"#), Some(string(4, 15, 0)));
        assert_eq!(found(text, r#""stop":"ana mika zuz","min_tokens":2"#), Some(string(3, 1, 0)));
    }

    #[test]
    fn a_stop_token_ends_the_answer_without_its_text() {
        let id = Vocabulary::standard().encode("zuzu")[0];
        let options = format!("\"stop_token_ids\":[{id}]");
        let stop = StopFound { tokens: 3, kept: 9, finish: Finish::StopToken(id) };
        assert_eq!(found("bana mika zuzu mika", &options), Some(stop));
    }

    #[test]
    fn a_search_that_everyone_would_wait_for_is_refused() {
        let vocabulary = Vocabulary::standard();
        let serving = Serving { model: "m", max_model_len: 2048, vocabulary };
        let ask = |body: &str| parse(Endpoint::Completions, body.as_bytes(), &serving).unwrap();
        let two = ask(r#"{"prompt":"x","stop":["a","b"]}"#);
        assert!(check_search(&two, SEARCH_MAX / 2).is_ok());
        let refused = check_search(&two, SEARCH_MAX / 2 + 1).unwrap_err().reply();
        let text = String::from_utf8_lossy(&refused);
        assert!(text.starts_with("HTTP/1.1 400") && text.contains("at most 1048576"), "{text}");
        assert!(check_search(&ask(r#"{"prompt":"x"}"#), u64::MAX).is_ok());
    }

    /// The tail forgets what no stop string can reach; a search in the whole text must agree.
    #[test]
    fn a_long_answer_stops_where_a_search_in_all_of_it_would() {
        let vocabulary = Vocabulary::standard();
        let ids: Vec<u32> =
            (0..2_000).map(|index| crate::scheduler::blocks::token(3, index)).collect();
        let text = vocabulary.decode(&ids);
        for stop in ["ruma ", "zuz", "a b", "n mi", "s va"] {
            let options = format!("\"stop\":\"{stop}\"");
            let kept = found(&text, &options).map(|stop| stop.kept);
            assert_eq!(kept, text.find(stop), "{stop}");
        }
    }
}
