//! The JSON of answers, laid out field by field as vLLM lays it out.
//!
//! Built by hand, because it is built once per token. Nothing in it needs escaping but the model's
//! id, which is escaped once.

use super::words::WordId;
use crate::generation::Dialect;

/// What is the same in all JSON of one answer.
#[derive(Clone, Debug)]
pub(crate) struct AnswerJson {
    dialect: Dialect,
    /// From the first brace to the bracket that opens the choices, for a streamed event.
    event_start: String,
    /// The same for an answer in one piece.
    whole_start: String,
    /// Between two members of `event_start`, where JSON allows white space.
    seam: usize,
    prompt_tokens: u32,
    detail: Detail,
}

/// What the client asked to be told with every token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Detail {
    pub(crate) continuous_usage: bool,
    pub(crate) token_ids: bool,
}

/// The identity of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'a> {
    pub(crate) id: u64,
    pub(crate) created_s: u64,
    pub(crate) model: &'a str,
}

/// The tokens of one event, and where it stands in its answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenEvent<'a> {
    pub(crate) words: &'a [WordId],
    /// Tokens of the answer so far, these included.
    pub(crate) tokens_so_far: u32,
    pub(crate) is_last: bool,
    /// Usage is told even if it was not asked for.
    pub(crate) with_usage: bool,
}

impl AnswerJson {
    pub(crate) fn new(
        dialect: Dialect,
        identity: &Identity<'_>,
        prompt_tokens: u32,
        detail: Detail,
    ) -> Self {
        let (prefix, event_object, whole_object) = match dialect {
            Dialect::Chat => ("chatcmpl", "chat.completion.chunk", "chat.completion"),
            Dialect::Completions => ("cmpl", "text_completion", "text_completion"),
        };
        let id = format!("{{\"id\":\"{prefix}-{:016x}\",", identity.id);
        let model = serde_json::Value::from(identity.model);
        let start = |object: &str| {
            let created = identity.created_s;
            format!(
                "{id}\"object\":\"{object}\",\"created\":{created},\"model\":{model},\"choices\":["
            )
        };
        Self {
            dialect,
            event_start: start(event_object),
            whole_start: start(whole_object),
            seam: id.len(),
            prompt_tokens,
            detail,
        }
    }

    /// Where an event may be broken into two lines.
    pub(crate) fn seam(&self) -> usize {
        self.seam
    }

    /// The event that names the role, as vLLM sends it with the first token.
    pub(crate) fn role(&self, out: &mut Vec<u8>) {
        self.role_delta(out, r#"{"role":"assistant","content":""}"#);
    }

    /// The event that names the role and nothing else, as transformers sends it.
    pub(crate) fn bare_role(&self, out: &mut Vec<u8>) {
        self.role_delta(out, r#"{"role":"assistant"}"#);
    }

    fn role_delta(&self, out: &mut Vec<u8>, delta: &str) {
        push(out, &self.event_start);
        push(out, r#"{"index":0,"delta":"#);
        push(out, delta);
        push(out, r#","logprobs":null,"finish_reason":null}]"#);
        self.usage_if(out, self.detail.continuous_usage, 0);
        push(out, "}");
    }

    /// An event with tokens.
    pub(crate) fn tokens(&self, out: &mut Vec<u8>, event: &TokenEvent<'_>) {
        push(out, &self.event_start);
        push(
            out,
            match self.dialect {
                Dialect::Chat => r#"{"index":0,"delta":{"content":""#,
                Dialect::Completions => r#"{"index":0,"text":""#,
            },
        );
        push_words(out, event.words);
        push(
            out,
            match (self.dialect, event.is_last) {
                (Dialect::Chat, false) => r#""},"logprobs":null,"finish_reason":null"#,
                (Dialect::Chat, true) => {
                    r#""},"logprobs":null,"finish_reason":"length","stop_reason":null"#
                }
                (Dialect::Completions, false) => {
                    r#"","logprobs":null,"finish_reason":null,"stop_reason":null"#
                }
                (Dialect::Completions, true) => {
                    r#"","logprobs":null,"finish_reason":"length","stop_reason":null"#
                }
            },
        );
        self.token_ids(out, event.words);
        push(out, "}]");
        self.usage_if(out, self.detail.continuous_usage || event.with_usage, event.tokens_so_far);
        push(out, "}");
    }

    /// The event that tells usage and has no choices.
    pub(crate) fn usage(&self, out: &mut Vec<u8>, tokens: u32) {
        push(out, &self.event_start);
        push(out, "]");
        self.usage_if(out, true, tokens);
        push(out, "}");
    }

    /// An answer in one piece.
    pub(crate) fn whole(&self, out: &mut Vec<u8>, words: &[WordId]) {
        push(out, &self.whole_start);
        push(
            out,
            match self.dialect {
                Dialect::Chat => r#"{"index":0,"message":{"role":"assistant","content":""#,
                Dialect::Completions => r#"{"index":0,"text":""#,
            },
        );
        push_words(out, words);
        push(
            out,
            match self.dialect {
                Dialect::Chat => r#"","refusal":null},"#,
                Dialect::Completions => r#"","#,
            },
        );
        push(out, r#""logprobs":null,"finish_reason":"length","stop_reason":null"#);
        self.token_ids(out, words);
        push(out, "}]");
        self.usage_if(out, true, u32::try_from(words.len()).unwrap_or(u32::MAX));
        push(out, "}");
    }

    fn token_ids(&self, out: &mut Vec<u8>, words: &[WordId]) {
        push(out, r#","token_ids":"#);
        if !self.detail.token_ids {
            return push(out, "null");
        }
        let ids: Vec<String> = words.iter().map(|word| word.token_id().to_string()).collect();
        push(out, &format!("[{}]", ids.join(",")));
    }

    fn usage_if(&self, out: &mut Vec<u8>, wanted: bool, tokens: u32) {
        if !wanted {
            return;
        }
        let (prompt, total) = (self.prompt_tokens, self.prompt_tokens.saturating_add(tokens));
        let usage = format!(
            r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{tokens},"prompt_tokens_details":{{"cached_tokens":0}}}}"#
        );
        push(out, &usage);
    }
}

fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

fn push_words(out: &mut Vec<u8>, words: &[WordId]) {
    for word in words {
        push(out, " ");
        push(out, word.word());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::words::Words;
    use super::*;

    fn json(dialect: Dialect, detail: Detail) -> AnswerJson {
        let identity = Identity { id: 0xab, created_s: 17, model: "a \"quoted\" \\ id" };
        AnswerJson::new(dialect, &identity, 5, detail)
    }

    fn parsed(build: impl FnOnce(&mut Vec<u8>)) -> Value {
        let mut out = Vec::new();
        build(&mut out);
        serde_json::from_slice(&out).unwrap()
    }

    fn two_words() -> [WordId; 2] {
        let mut words = Words::new(1, 1);
        [words.next(), words.next()]
    }

    #[test]
    fn a_chat_event_has_the_fields_of_vllm() {
        let words = two_words();
        let event =
            TokenEvent { words: &words, tokens_so_far: 2, is_last: false, with_usage: false };
        let mut out = Vec::new();
        json(Dialect::Chat, Detail::default()).tokens(&mut out, &event);
        let text = words.map(|word| format!(" {}", word.word())).concat();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!(
                "{{\"id\":\"chatcmpl-00000000000000ab\",\"object\":\"chat.completion.chunk\",\
                 \"created\":17,\"model\":\"a \\\"quoted\\\" \\\\ id\",\"choices\":[{{\"index\":0,\
                 \"delta\":{{\"content\":\"{text}\"}},\"logprobs\":null,\"finish_reason\":null,\
                 \"token_ids\":null}}]}}"
            )
        );
    }

    #[test]
    fn details_are_told_only_when_asked_for() {
        let words = two_words();
        let event =
            TokenEvent { words: &words, tokens_so_far: 9, is_last: true, with_usage: false };
        let told = Detail { continuous_usage: true, token_ids: true };
        let value = parsed(|out| json(Dialect::Completions, told).tokens(out, &event));
        assert_eq!(value["usage"]["completion_tokens"], 9);
        assert_eq!(value["usage"]["total_tokens"], 14);
        assert_eq!(value["choices"][0]["finish_reason"], "length");
        assert_eq!(value["choices"][0]["token_ids"][1], words[1].token_id());
        let untold =
            parsed(|out| json(Dialect::Completions, Detail::default()).tokens(out, &event));
        assert_eq!(untold.get("usage"), None);
    }

    #[test]
    fn every_kind_of_json_is_json_and_may_be_broken_at_the_seam() {
        for dialect in [Dialect::Chat, Dialect::Completions] {
            let json = json(dialect, Detail::default());
            let whole = parsed(|out| json.whole(out, &two_words()));
            assert_eq!(whole["usage"]["completion_tokens"], 2);
            let mut out = Vec::new();
            json.usage(&mut out, 3);
            out.insert(json.seam(), b'\n');
            let usage: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(
                (&usage["choices"], &usage["usage"]["total_tokens"]),
                (&Value::from(Vec::<u8>::new()), &Value::from(8))
            );
            assert_eq!(parsed(|out| json.role(out))["choices"][0]["delta"]["content"], "");
            let bare = parsed(|out| json.bare_role(out));
            assert_eq!(bare["choices"][0]["delta"].get("content"), None);
        }
    }
}
