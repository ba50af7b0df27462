//! Answers as vLLM writes them, byte for byte but for the text.

use std::fmt;

pub(crate) const EVENTS: usize = 256;

/// What the events of a chat carry.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delta {
    Text,
    EscapedText,
    Reasoning,
    ToolCall,
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::EscapedText => "escaped text",
            Self::Reasoning => "reasoning",
            Self::ToolCall => "tool call",
        })
    }
}

impl Delta {
    fn json(self) -> &'static str {
        match self {
            Self::Text => r#"{"content":" word"}"#,
            Self::EscapedText => r#"{"content":"\n\n\"word"}"#,
            Self::Reasoning => r#"{"reasoning_content":" word"}"#,
            Self::ToolCall => {
                r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\": \""}}]}"#
            }
        }
    }
}

/// The events of a chat; with usage, each says how many tokens there were so far.
pub(crate) fn chat(delta: Delta, with_usage: bool) -> Vec<String> {
    let delta = delta.json();
    let event = |token: usize| {
        let finish = finish_reason(token);
        let usage = if with_usage { usage(token) } else { String::new() };
        format!(
            "data: {{\"id\":\"chatcmpl-81ff9a45a19f148d\",\"object\":\"chat.completion.chunk\",\
             \"created\":1794709886,\"model\":\"tiny\",\"choices\":[{{\"index\":0,\"delta\":{delta},\
             \"logprobs\":null,\"finish_reason\":{finish},\"token_ids\":null}}]{usage}}}\n\n"
        )
    };
    (0..EVENTS).map(event).collect()
}

pub(crate) fn completions() -> Vec<String> {
    let event = |token: usize| {
        let finish = finish_reason(token);
        format!(
            "data: {{\"id\":\"cmpl-9442fe16a6633e34\",\"object\":\"text_completion\",\
             \"created\":1794709890,\"model\":\"tiny\",\"choices\":[{{\"index\":0,\"text\":\" word\",\
             \"logprobs\":null,\"finish_reason\":{finish},\"stop_reason\":null,\
             \"prompt_token_ids\":null,\"token_ids\":null}}]}}\n\n"
        )
    };
    (0..EVENTS).map(event).collect()
}

/// An answer that is not streamed: prose, with a new line now and then.
pub(crate) fn whole_answer(tokens: usize) -> String {
    let word = |token: usize| if token % 32 == 31 { "\\n\\n" } else { " word" };
    let text: String = (0..tokens).map(word).collect();
    format!(
        "{{\"id\":\"chatcmpl-81ff9a45a19f148d\",\"object\":\"chat.completion\",\
         \"created\":1794709886,\"model\":\"tiny\",\"choices\":[{{\"index\":0,\"message\":\
         {{\"role\":\"assistant\",\"content\":\"{text}\",\"refusal\":null,\"tool_calls\":[],\
         \"reasoning\":null}},\"logprobs\":null,\"finish_reason\":\"length\",\"stop_reason\":null,\
         \"token_ids\":null}}],\"usage\":{{\"prompt_tokens\":512,\"total_tokens\":{},\
         \"completion_tokens\":{tokens},\"prompt_tokens_details\":null}}}}",
        512 + tokens
    )
}

fn finish_reason(token: usize) -> &'static str {
    if token + 1 == EVENTS { "\"length\"" } else { "null" }
}

fn usage(token: usize) -> String {
    format!(
        r#","usage":{{"prompt_tokens":512,"total_tokens":{},"completion_tokens":{}}}"#,
        513 + token,
        1 + token
    )
}
