//! The vocabulary as the files that Hugging Face's libraries load.

use serde_json::json;

use super::{END_OF_SEQUENCE, UNKNOWN, Vocabulary};

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

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::Value;
    use tokenizers::Tokenizer;

    use super::super::{Role, Turn};
    use super::*;
    use crate::scheduler::tokens::token;

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
