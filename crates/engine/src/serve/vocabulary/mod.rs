//! The engine's own vocabulary: one word is one token.
//!
//! Any text has as many tokens as it has words between white space. A word that the engine does
//! not know is some token all the same, equal words the same one, so that prompts in any language
//! have exact lengths and share prefixes. The same rule is served as a `tokenizer.json`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::json;

use crate::scheduler::blocks::{SPECIAL_TOKENS, VOCABULARY, mix};

/// All words, by id and by text.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    words: Vec<String>,
    ids: HashMap<String, u32>,
}

/// Ends a sequence.
pub(crate) const END_OF_SEQUENCE: u32 = 2;
/// Stands for a word that is not known, in `tokenizer.json`.
const UNKNOWN: u32 = 3;

impl Vocabulary {
    /// The one vocabulary: it is made by a rule and never differs.
    pub(crate) fn standard() -> &'static Self {
        static STANDARD: LazyLock<Vocabulary> = LazyLock::new(|| {
            let words: Vec<String> = (0..VOCABULARY).map(word).collect();
            let ids = (0..).zip(&words).map(|(id, word)| (word.clone(), id)).collect();
            Vocabulary { words, ids }
        });
        &STANDARD
    }

    pub(crate) fn text(&self, id: u32) -> &str {
        self.words.get(id as usize).map_or("<unk>", String::as_str)
    }

    /// Whether the id stands for no word of a text.
    pub(crate) fn is_special(id: u32) -> bool {
        id < SPECIAL_TOKENS
    }

    /// One token per word that white space separates.
    pub(crate) fn encode(&self, text: &str) -> Vec<u32> {
        text.split_whitespace().map(|word| self.id(word)).collect()
    }

    pub(crate) fn decode(&self, ids: &[u32]) -> String {
        let words: Vec<&str> = ids.iter().map(|id| self.text(*id)).collect();
        words.join(" ")
    }

    fn id(&self, word: &str) -> u32 {
        if let Some(id) = self.ids.get(word) {
            return *id;
        }
        // A word that is not known stands for some token: FNV-1a, with its weak low bits scattered.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = mix(word.bytes().fold(0xcbf2_9ce4_8422_2325, step));
        #[expect(clippy::cast_possible_truncation, reason = "below the vocabulary's size")]
        let below = (hash % u64::from(VOCABULARY - SPECIAL_TOKENS)) as u32;
        SPECIAL_TOKENS + below
    }
}

/// Who speaks, by the id that marks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    System = 4,
    User = 5,
    Assistant = 6,
    Tool = 7,
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
            ids.push(turn.role as u32);
            ids.extend(turn.text.split_whitespace().map(|word| self.id(word)));
            ids.push(END_OF_TURN);
        }
        ids.extend(awaits_answer.then_some(Role::Assistant as u32));
        ids
    }
}

impl Vocabulary {
    /// The body of `GET /tokenizer.json`.
    pub(crate) fn tokenizer_json(&self) -> String {
        // The map is written by hand because it is read by people too: in the order of the ids.
        let entries: Vec<String> =
            (0..).zip(&self.words).map(|(id, word): (u32, _)| format!("\"{word}\":{id}")).collect();
        // No added tokens: those would be found inside of words too, and lengths would be off.
        format!(
            "{{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\
             \"normalizer\":null,\"pre_tokenizer\":{{\"type\":\"WhitespaceSplit\"}},\
             \"post_processor\":null,\"decoder\":null,\"model\":{{\"type\":\"WordLevel\",\
             \"vocab\":{{{}}},\"unk_token\":\"{}\"}}}}",
            entries.join(","),
            self.text(UNKNOWN),
        )
    }

    /// The body of `GET /tokenizer_config.json`.
    pub(crate) fn tokenizer_config_json(&self, max_model_len: u32) -> String {
        json!({
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": max_model_len,
            "unk_token": self.text(UNKNOWN),
            "eos_token": self.text(END_OF_SEQUENCE),
            "pad_token": self.text(0),
            "add_bos_token": false,
            "add_eos_token": false,
            "clean_up_tokenization_spaces": false,
            "chat_template": CHAT_TEMPLATE,
        })
        .to_string()
    }
}

/// Counts a chat as `Vocabulary::encode_chat` does.
const CHAT_TEMPLATE: &str = "\
{%- for message in messages -%}
{%- if message['role'] in ['system', 'developer'] -%}{{ '<|system|> ' }}
{%- elif message['role'] == 'assistant' -%}{{ '<|assistant|> ' }}
{%- elif message['role'] in ['tool', 'function'] -%}{{ '<|tool|> ' }}
{%- else -%}{{ '<|user|> ' }}
{%- endif -%}
{%- if message['content'] is string -%}{{ message['content'] }}
{%- elif message['content'] -%}
{%- for part in message['content'] -%}{% if part['text'] %}{{ part['text'] + ' ' }}{% endif %}
{%- endfor -%}
{%- endif -%}
{{ ' <|end|> ' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- endif -%}";

/// The word of an id below the size of the vocabulary.
fn word(id: u32) -> String {
    let Some(number) = id.checked_sub(SPECIAL_TOKENS) else {
        let name = SPECIAL.split(' ').nth(id as usize);
        return name.map_or_else(|| format!("<|reserved_{id}|>"), str::to_owned);
    };
    let (c1, v1) = syllable(number);
    let (c2, v2) = syllable(number / SYLLABLES);
    match number / (SYLLABLES * SYLLABLES) {
        0 => format!("{c1}{v1}{c2}{v2}"),
        1 => format!("{c1}{v1}{c2}{v2}n"),
        2 => format!("{c1}{v1}r{c2}{v2}"),
        3 => format!("{c1}{v1}n{c2}{v2}s"),
        _ => format!("{c1}{v1}{c2}{v2}la"),
    }
}

fn syllable(number: u32) -> (char, char) {
    let place = (number % SYLLABLES) as usize;
    let (consonant, vowel) = (CONSONANTS[place / VOWELS.len()], VOWELS[place % VOWELS.len()]);
    (consonant.into(), vowel.into())
}

/// Padding, begin, end, unknown, and the marks of a chat; some more are for later.
const SPECIAL: &str = "<pad> <s> </s> <unk> <|system|> <|user|> <|assistant|> <|tool|> <|end|>";

const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
const VOWELS: &[u8; 5] = b"aeiou";
const SYLLABLES: u32 = 80;

#[cfg(test)]
mod vocabulary_tests {
    use super::*;

    #[test]
    fn every_word_has_one_id_and_is_one_word() {
        let vocabulary = Vocabulary::standard();
        assert_eq!(vocabulary.words.len(), VOCABULARY as usize);
        assert_eq!(vocabulary.ids.len(), VOCABULARY as usize, "two ids have the same word");
        for id in 0..VOCABULARY {
            assert_eq!(vocabulary.encode(vocabulary.text(id)), [id]);
        }
    }

    #[test]
    fn words_that_are_drawn_need_no_escaping() {
        let vocabulary = Vocabulary::standard();
        let drawn = &vocabulary.words[SPECIAL_TOKENS as usize..];
        assert!(drawn.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
        assert!(drawn.iter().all(|word| (4..=6).contains(&word.len())));
    }

    #[test]
    fn unknown_words_are_one_token_each_and_equal_words_equal_tokens() {
        let ids = Vocabulary::standard().encode(" The\u{a0}cat,\n日本語 The\tcat. ");
        assert_eq!(ids.len(), 5);
        assert_eq!(ids[0], ids[3]);
        assert_ne!(ids[1], ids[4]);
        assert!(ids.iter().all(|id| !Vocabulary::is_special(*id) && *id < VOCABULARY));
    }

    #[test]
    fn an_id_that_does_not_exist_has_a_text_all_the_same() {
        assert_eq!(Vocabulary::standard().text(u32::MAX), "<unk>");
    }
}

#[cfg(test)]
mod chat_tests {
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

#[cfg(test)]
mod tokenizer_tests {
    use serde::Deserialize as _;
    use serde_json::Value;
    use tokenizers::Tokenizer;

    use super::*;
    use super::{Role, Turn};
    use crate::scheduler::blocks::token;

    fn loaded() -> Tokenizer {
        Vocabulary::standard().tokenizer_json().parse().unwrap()
    }

    #[test]
    fn the_tokenizers_library_reads_every_word_as_the_engine_does() {
        let (vocabulary, tokenizer) = (Vocabulary::standard(), loaded());
        let ids: Vec<u32> = (0..5_000).map(|index| token(7, index)).collect();
        let text = vocabulary.decode(&ids);
        assert_eq!(tokenizer.encode(text.as_str(), true).unwrap().get_ids(), ids);
        assert_eq!(tokenizer.decode(&ids, true).unwrap(), text);
    }

    #[test]
    fn lengths_of_any_text_agree() {
        let (vocabulary, tokenizer) = (Vocabulary::standard(), loaded());
        let texts =
            ["", "  \n", "Why, the\u{3000}cat's <s>hat</s>!", "bana 日本語\u{a0}<|end|>x mika"];
        for text in texts {
            let encoded = tokenizer.encode(text, true).unwrap();
            assert_eq!(encoded.get_ids().len(), vocabulary.encode(text).len(), "{text:?}");
        }
    }

    fn rendered(messages: &Value) -> String {
        let config = Vocabulary::standard().tokenizer_config_json(2048);
        let config: Value = serde_json::from_str(&config).unwrap();
        let mut jinja = minijinja::Environment::new();
        // As the models' own library sets Jinja up.
        let mut syntax = jinja.syntax().to_builder();
        jinja.set_syntax(syntax.trim_blocks(true).lstrip_blocks(true).build().unwrap());
        let template = config["chat_template"].as_str().unwrap();
        let messages = minijinja::Value::deserialize(messages).unwrap();
        let given = minijinja::context! { messages, add_generation_prompt => true };
        jinja.render_str(template, given).unwrap()
    }

    #[test]
    fn the_chat_template_gives_the_tokens_of_the_engine() {
        let messages = json!([
            {"role": "system", "content": "bana mika"},
            {"role": "user", "content": [{"type": "text", "text": "bado"}, {"type": "image_url"},
                {"type": "text", "text": "zuzu"}]},
            {"role": "assistant", "content": null, "tool_calls": []},
            {"role": "tool", "content": "bana"},
        ]);
        let turn = |role, text: &str| Turn { role, text: text.to_owned() };
        let turns = [
            turn(Role::System, "bana mika"),
            turn(Role::User, "bado zuzu"),
            turn(Role::Assistant, ""),
            turn(Role::Tool, "bana"),
        ];
        let encoded = loaded().encode(rendered(&messages), true).unwrap();
        assert_eq!(encoded.get_ids(), Vocabulary::standard().encode_chat(&turns, true));
    }
}
