//! How long the prompts of others are: by the model's tokenizer or by words, bare or as the model
//! sees them.

use std::fmt;

use inferometer_model::{Message, Prompt, TokenCounter};

use crate::tokenizer::Tokenizer;

pub(crate) trait Counter: Sync + fmt::Debug {
    /// The length of a text by itself.
    fn words(&self, text: &str) -> usize;

    /// The length of a whole prompt; `None` when it cannot be sent.
    fn prompt(&self, prompt: &Prompt) -> Option<usize> {
        Some(match prompt {
            Prompt::Text(text) => self.words(text),
            Prompt::Messages(messages) => {
                messages.iter().map(|message| self.words(&message.text())).sum()
            }
        })
    }
}

/// Words, as if each were a token.
#[derive(Debug)]
pub(crate) struct Words;

impl Counter for Words {
    fn words(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

impl Counter for Tokenizer {
    fn words(&self, text: &str) -> usize {
        self.count(text)
    }
}

/// With all that the model's chat template writes around a prompt.
#[derive(Debug)]
pub(crate) struct Rendered<'t>(pub(crate) &'t Tokenizer);

impl Counter for Rendered<'_> {
    fn words(&self, text: &str) -> usize {
        self.0.count(text)
    }

    fn prompt(&self, prompt: &Prompt) -> Option<usize> {
        match prompt {
            Prompt::Text(text) => rendered(self.0, &[Message::new("user", text.as_str())]),
            Prompt::Messages(messages) => rendered(self.0, messages),
        }
    }
}

fn rendered(tokenizer: &Tokenizer, messages: &[Message]) -> Option<usize> {
    let text = tokenizer.render_chat(messages, true).ok().flatten()?;
    Some(tokenizer.count(&text))
}
