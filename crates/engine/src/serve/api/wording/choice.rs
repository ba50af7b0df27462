//! The text of one choice as it grows: words with a space between them, cut where a stop string is
//! going to end it.

use super::super::ask::Ask;
use super::{Answered, Finish};
use crate::serve::vocabulary::Vocabulary;

#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    tokens: u32,
    /// Bytes of text so far, as if nothing were cut.
    bytes: usize,
    kept: Option<usize>,
}

impl Choice {
    pub(super) fn cut(&mut self, kept: usize) {
        self.kept = Some(kept);
    }

    pub(super) fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Where the next token's text begins.
    pub(super) fn offset(&self) -> usize {
        self.kept.map_or(self.bytes, |kept| kept.min(self.bytes))
    }

    /// Takes a token; its text goes into `text`.
    pub(super) fn say(
        &mut self,
        id: u32,
        finish: Option<Finish>,
        ask: &Ask,
        vocabulary: &Vocabulary,
        text: &mut String,
    ) {
        text.clear();
        self.tokens += 1;
        let ends = matches!(finish, Some(Finish::StopToken(_))) && !ask.include_stop;
        if ends || Vocabulary::is_special(id) {
            return;
        }
        if 0 < self.bytes {
            text.push(' ');
        }
        text.push_str(vocabulary.text(id));
        let room = self.kept.map_or(usize::MAX, |kept| kept.saturating_sub(self.bytes));
        self.bytes += text.len();
        // Words are ASCII, so any byte is a place to cut at.
        text.truncate(room);
    }

    /// The whole text, from a choice that has said nothing yet.
    pub(super) fn whole(
        &self,
        answered: &Answered,
        ask: &Ask,
        vocabulary: &Vocabulary,
    ) -> WholeText {
        let mut choice = self.clone();
        let (mut whole, mut text) = (WholeText::default(), String::new());
        let last = answered.ids.len().saturating_sub(1);
        for (index, id) in answered.ids.iter().enumerate() {
            if ask.logprobs.is_some() {
                whole.offsets.push(choice.offset());
            }
            let finish = (index == last).then_some(answered.finish);
            choice.say(*id, finish, ask, vocabulary, &mut text);
            whole.text.push_str(&text);
        }
        whole
    }
}

/// What a choice has said when it is over.
#[derive(Clone, Debug, Default)]
pub(super) struct WholeText {
    pub(super) text: String,
    /// Where each token begins; only where probabilities are told.
    pub(super) offsets: Vec<usize>,
}
