//! A chat as tokens: for each turn the mark of its role, its words and an end mark; then the mark
//! of the answer. So a chat costs two tokens per turn and one more.

use super::Vocabulary;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    /// As the served chat template maps names: one that it does not know is a user's.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "system" | "developer" => Self::System,
            "assistant" => Self::Assistant,
            "tool" | "function" => Self::Tool,
            _ => Self::User,
        }
    }

    fn mark(self) -> u32 {
        match self {
            Self::System => 4,
            Self::User => 5,
            Self::Assistant => 6,
            Self::Tool => 7,
        }
    }
}

/// One message of a chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) role: Role,
    pub(crate) text: String,
}

const END_OF_TURN: u32 = 8;

impl Vocabulary {
    /// A chat that waits for an answer, or only its turns.
    pub(crate) fn encode_chat(&self, turns: &[Turn], awaits_answer: bool) -> Vec<u32> {
        let mut ids = Vec::new();
        for turn in turns {
            ids.push(turn.role.mark());
            ids.extend(turn.text.split_whitespace().map(|word| self.id(word)));
            ids.push(END_OF_TURN);
        }
        ids.extend(awaits_answer.then(|| Role::Assistant.mark()));
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_costs_two_tokens_beside_its_words_and_the_answer_one() {
        let turn = |role, text: &str| Turn { role: Role::named(role), text: text.to_owned() };
        let turns = [turn("developer", "be brief"), turn("user", "")];
        let vocabulary = Vocabulary::standard();
        let ids = vocabulary.encode_chat(&turns, true);
        assert_eq!(ids.len(), 2 + 2 * 2 + 1);
        let marks = ["<|system|>", "<|end|>", "<|user|>", "<|end|>", "<|assistant|>"];
        let seen = [ids[0], ids[3], ids[4], ids[5], ids[6]].map(|id| vocabulary.text(id));
        assert_eq!(seen, marks);
        assert_eq!(vocabulary.encode_chat(&turns, false), ids[..6]);
    }
}
