//! Text into token ids and back.

use std::rc::Rc;

use serde::Serialize;

use super::ask::{Endpoint, Serving};
use super::fields::{self, Fields};
use super::parse::{chat_turns, check_ids, check_model};
use super::problem::Problem;
use crate::http::{self, ErrorBody};

/// The reply to `/tokenize`.
pub(crate) fn tokenize(body: &[u8], serving: &Serving<'_>) -> Result<Rc<Vec<u8>>, ErrorBody> {
    #[derive(Serialize)]
    struct Tokenized<'a> {
        count: usize,
        max_model_len: u32,
        tokens: &'a [u32],
        token_strs: Option<Vec<&'a str>>,
    }
    let (tokens, with_texts) =
        tokens(body, serving).map_err(|problem| problem.error_body(Endpoint::Tokenize))?;
    let texts = || tokens.iter().map(|id| serving.vocabulary.text(*id)).collect();
    Ok(http::json(&Tokenized {
        count: tokens.len(),
        max_model_len: serving.max_model_len,
        tokens: &tokens,
        token_strs: with_texts.then(texts),
    }))
}

/// The tokens of a text or of a chat, and whether their texts are to be told.
fn tokens(body: &[u8], serving: &Serving<'_>) -> Result<(Vec<u32>, bool), Problem> {
    let map = fields::read(body)?;
    let fields = Fields::of_body(&map);
    check_model(&fields, serving)?;
    let with_texts = fields.flag("return_token_strs")?.unwrap_or(false);
    if fields.value("messages").is_some() {
        let turns = chat_turns(&fields)?;
        let awaits_answer = fields.flag("add_generation_prompt")?.unwrap_or(true);
        return Ok((serving.vocabulary.encode_chat(&turns, awaits_answer), with_texts));
    }
    fields.required("prompt")?;
    let text = fields.text("prompt")?.unwrap_or_default();
    Ok((serving.vocabulary.encode(text), with_texts))
}

/// The reply to `/detokenize`.
pub(crate) fn detokenize(body: &[u8], serving: &Serving<'_>) -> Result<Rc<Vec<u8>>, ErrorBody> {
    #[derive(Serialize)]
    struct Text {
        prompt: String,
    }
    let prompt = text(body, serving).map_err(|problem| problem.error_body(Endpoint::Detokenize))?;
    Ok(http::json(&Text { prompt }))
}

fn text(body: &[u8], serving: &Serving<'_>) -> Result<String, Problem> {
    let map = fields::read(body)?;
    let fields = Fields::of_body(&map);
    check_model(&fields, serving)?;
    fields.required("tokens")?;
    let ids = check_ids(&fields.ids("tokens")?)?;
    Ok(serving.vocabulary.decode(&ids))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::serve::vocabulary::Vocabulary;

    fn serving() -> Serving<'static> {
        Serving { model: "m", max_model_len: 2048, vocabulary: Vocabulary::standard() }
    }

    fn body_of(reply: &[u8]) -> Value {
        let text = str::from_utf8(reply).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    #[test]
    fn text_comes_back_from_its_tokens() {
        let reply = tokenize(br#"{"prompt":"bana  mika\nzuzu"}"#, &serving()).unwrap();
        let seen = body_of(&reply);
        assert_eq!(seen["count"], 3);
        assert_eq!((&seen["max_model_len"], &seen["token_strs"]), (&json!(2048), &Value::Null));
        let ask = json!({ "tokens": seen["tokens"] }).to_string();
        let text = body_of(&detokenize(ask.as_bytes(), &serving()).unwrap());
        assert_eq!(text, json!({ "prompt": "bana mika zuzu" }));
    }

    #[test]
    fn a_chat_is_counted_with_its_marks() {
        let ask = br#"{"messages":[{"role":"user","content":"a b"}],"return_token_strs":true}"#;
        let seen = body_of(&tokenize(ask, &serving()).unwrap());
        assert_eq!(seen["count"], 5);
        assert_eq!(seen["token_strs"][0], "<|user|>");
        assert_eq!(seen["token_strs"][4], "<|assistant|>");
    }

    #[test]
    fn ids_that_do_not_exist_are_refused() {
        let refused = detokenize(br#"{"tokens":[5,32000]}"#, &serving()).unwrap_err();
        let body = body_of(&refused.reply());
        assert_eq!(body["error"]["message"], "Token id 32000 is out of vocabulary");
        assert!(detokenize(br#"{"tokens":[-1]}"#, &serving()).is_err());
    }
}
