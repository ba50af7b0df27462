//! Counts the tokens of prompts: by the model's tokenizer or by words, alone or as the model sees
//! them.

use std::fmt;
use std::sync::Arc;

use inferometer_model::{Message, Prompt, TokenCounter as _};

use crate::tokenizer::{ServerTokenizer, Tokenizer};

pub(crate) trait Counter: Sync + fmt::Debug {
    /// The length of a text alone.
    fn words(&self, text: &str) -> usize;

    /// The tokenizer whose chat template counts as part of a prompt.
    fn template(&self) -> Option<&Tokenizer> {
        None
    }

    /// The length of a whole prompt; `None` when it cannot be sent.
    fn prompt(&self, prompt: &Prompt) -> Option<usize> {
        let rendered = match (self.template(), prompt) {
            (None, Prompt::Text(text)) => return Some(self.words(text)),
            (None, Prompt::Messages(messages)) => {
                return Some(messages.iter().map(|message| self.words(&message.text())).sum());
            }
            (Some(tokenizer), Prompt::Text(text)) => {
                tokenizer.render_chat(&[Message::new("user", text.as_str())], true)
            }
            (Some(tokenizer), Prompt::Messages(messages)) => tokenizer.render_chat(messages, true),
        };
        Some(self.words(&rendered.ok().flatten()?))
    }
}

#[derive(Debug, Default)]
pub(crate) struct PromptCounter {
    /// Without one, words count as if each were a token.
    pub(crate) tokenizer: Option<Arc<Tokenizer>>,
    pub(crate) server: Option<Arc<ServerTokenizer>>,
    pub(crate) with_template: bool,
}

impl Counter for PromptCounter {
    fn words(&self, text: &str) -> usize {
        match &self.tokenizer {
            Some(tokenizer) => tokenizer.count(text),
            None => match &self.server {
                Some(server) => server.count(text),
                None => text.split_whitespace().count(),
            },
        }
    }

    fn template(&self) -> Option<&Tokenizer> {
        self.tokenizer.as_deref().filter(|_| self.with_template)
    }
}
