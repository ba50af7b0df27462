//! Embeddings: unit vectors that depend on nothing but the tokens.

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

use super::request::{self, Fields, Serving, check_length, check_model, out_of_range};
use crate::generation::Identity;
use crate::http::{self, ErrorBody};
use crate::json::{Json, members};
use crate::scheduler::blocks::mix;

/// A request for vectors. The engine spends a prefill on each input and generates nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EmbeddingRequest {
    pub(crate) inputs: Vec<Vec<u32>>,
    pub(crate) dimensions: u32,
    pub(crate) base64: bool,
    /// The header `x-request-id`.
    pub(crate) request_id: Option<String>,
}

pub(crate) fn parse_embeddings(
    body: &[u8],
    serving: &Serving<'_>,
) -> Result<EmbeddingRequest, ErrorBody> {
    let map = request::read(body)?;
    let fields = Fields::of_body(&map);
    let inputs = request::prompts(&fields, "input", serving.vocabulary)?.ids;
    check_model(&fields, serving)?;
    if INPUTS_MAX < inputs.len() {
        let rule = format!("at most {INPUTS_MAX} inputs");
        return Err(out_of_range("input", &rule, &inputs.len()));
    }
    // The scheduler gives every prompt room for one token.
    inputs.iter().try_for_each(|input| check_length(input, None, serving))?;
    let base64 = match fields.text("encoding_format")? {
        None | Some("float") => false,
        Some("base64") => true,
        Some(other) => return Err(out_of_range("encoding_format", "'float' or 'base64'", &other)),
    };
    let asked = fields.integer("dimensions")?.unwrap_or(DIMENSIONS.into());
    let dimensions = u32::try_from(asked).ok().filter(|asked| (1..=DIMENSIONS).contains(asked));
    let rule = format!("between 1 and {DIMENSIONS}");
    let dimensions = dimensions.ok_or_else(|| out_of_range("dimensions", &rule, &asked))?;
    Ok(EmbeddingRequest { inputs, dimensions, base64, request_id: None })
}

/// Components of a vector where no fewer are asked for.
const DIMENSIONS: u32 = 1024;
/// As many as OpenAI takes.
const INPUTS_MAX: usize = 2048;

#[derive(Serialize)]
struct List<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    data: Data<'a>,
    usage: Json<'static>,
}

/// Vectors are made as they are written, one after another: all at once would be large.
struct Data<'a>(&'a EmbeddingRequest);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(ask) = self;
        serializer.collect_seq((0..).zip(&ask.inputs).map(|(index, input)| {
            let vector = vector(input, ask.dimensions);
            let embedding = if ask.base64 {
                let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
                Json::Text(STANDARD.encode(bytes).into())
            } else {
                // With the digits of a double, as Python writes them.
                Json::List(vector.iter().map(|x| Json::Number(f64::from(*x))).collect())
            };
            Json::from(members! {
                "index": Json::Count(index),
                "object": "embedding",
                "embedding": embedding,
            })
        }))
    }
}

impl EmbeddingRequest {
    /// The whole reply.
    pub(crate) fn reply(&self, identity: &Identity<'_>) -> Rc<Vec<u8>> {
        let tokens = Json::Count(self.inputs.iter().map(Vec::len).sum::<usize>() as u64);
        let usage = members! {
            "prompt_tokens": tokens.clone(),
            "total_tokens": tokens,
            "completion_tokens": 0,
            "prompt_tokens_details": Json::Null,
        };
        http::json(&List {
            id: identity.text("embd-", self.request_id.as_deref()),
            object: "list",
            created: identity.created_s,
            model: identity.model,
            data: Data(self),
            usage: usage.into(),
        })
    }
}

/// Equal tokens give equal vectors, of length one.
fn vector(tokens: &[u32], dimensions: u32) -> Vec<f32> {
    let seed = tokens.iter().fold(1, |state, id| mix(state ^ u64::from(*id).wrapping_add(3)));
    // The upper 24 bits, as a number around zero; plus a half, so that not all can be zero.
    let raw = (0..u64::from(dimensions)).map(|at| {
        let drawn = mix(seed.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15))) >> 40;
        drawn as f64 + 0.5 - f64::from(1_u32 << 23)
    });
    let raw: Vec<f64> = raw.collect();
    // A square root is exact on every machine, unlike the functions of a mathematics library.
    let length = raw.iter().map(|x| x * x).sum::<f64>().sqrt();
    #[expect(clippy::cast_possible_truncation, reason = "embeddings are single precision")]
    let shortened = raw.iter().map(|x| (x / length) as f32).collect();
    shortened
}

/// The reply to `/tokenize`, for a text or for a chat.
pub(crate) fn tokenize(body: &[u8], serving: &Serving<'_>) -> Result<Rc<Vec<u8>>, ErrorBody> {
    let map = request::read(body)?;
    let fields = Fields::of_body(&map);
    check_model(&fields, serving)?;
    let with_texts = fields.flag("return_token_strs")?;
    let vocabulary = serving.vocabulary;
    let tokens = if fields.value("messages").is_some() {
        vocabulary.encode_chat(&request::chat_turns(&fields)?, fields.awaits_answer()?)
    } else {
        fields.required("prompt")?;
        vocabulary.encode(fields.text("prompt")?.unwrap_or_default())
    };
    let texts = || tokens.iter().map(|id| vocabulary.text(*id).into()).collect();
    Ok(http::json(&Json::from(members! {
        "count": Json::Count(tokens.len() as u64),
        "max_model_len": serving.max_model_len,
        "tokens": Json::List(tokens.iter().map(|id| (*id).into()).collect()),
        "token_strs": with_texts.then(|| Json::List(texts())),
    })))
}

/// The reply to `/detokenize`.
pub(crate) fn detokenize(body: &[u8], serving: &Serving<'_>) -> Result<Rc<Vec<u8>>, ErrorBody> {
    let map = request::read(body)?;
    let fields = Fields::of_body(&map);
    check_model(&fields, serving)?;
    fields.required("tokens")?;
    let text = serving.vocabulary.decode(&fields.ids("tokens")?);
    Ok(http::json(&Json::from(members! {"prompt": &*text})))
}

#[cfg(test)]
mod embeddings_tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::serve::vocabulary::Vocabulary;

    fn reply(body: &Value) -> Result<Value, String> {
        let vocabulary = Vocabulary::standard();
        let serving = Serving { model: "m", max_model_len: 8, vocabulary };
        let identity = Identity { id: 1, created_s: 2, model: "m" };
        let text = |reply: Rc<Vec<u8>>| String::from_utf8(reply.to_vec()).unwrap();
        let ask = parse_embeddings(body.to_string().as_bytes(), &serving);
        let whole = text(ask.map_err(|error| text(error.reply()))?.reply(&identity));
        Ok(serde_json::from_str(whole.split_once("\r\n\r\n").unwrap().1).unwrap())
    }

    #[test]
    fn vectors_have_length_one_and_depend_on_the_text() {
        let seen = reply(&json!({ "input": ["bana mika", "bana", "bana mika"] })).unwrap();
        assert_eq!(seen["usage"]["prompt_tokens"], 5);
        assert_eq!(seen["data"][0]["embedding"], seen["data"][2]["embedding"]);
        assert_ne!(seen["data"][0]["embedding"], seen["data"][1]["embedding"]);
        let vector = seen["data"][1]["embedding"].as_array().unwrap();
        assert_eq!(vector.len(), 1024);
        let square: f64 = vector.iter().map(|x| x.as_f64().unwrap().powi(2)).sum();
        assert!((square - 1.0).abs() < 1e-5, "{square}");
    }

    #[test]
    fn base64_holds_the_same_numbers() {
        let ask = |format| json!({"input": [20, 21], "dimensions": 3, "encoding_format": format});
        let floats = reply(&ask("float")).unwrap();
        let coded = reply(&ask("base64")).unwrap();
        let bytes = STANDARD.decode(coded["data"][0]["embedding"].as_str().unwrap()).unwrap();
        assert_eq!(bytes.len(), 12);
        let first = f32::from_le_bytes(bytes[..4].try_into().unwrap());
        let written = floats["data"][0]["embedding"][0].as_f64().unwrap();
        assert!((f64::from(first) - written).abs() < 1e-6);
    }

    #[test]
    fn what_is_too_long_or_empty_is_refused() {
        let long = reply(&json!({ "input": "a b c d e f g h i" })).unwrap_err();
        assert!(long.contains("maximum context length is 8 tokens"), "{long}");
        let full = reply(&json!({ "input": "a b c d e f g h" })).unwrap_err();
        assert!(full.contains("your prompt contains 8 input tokens"), "{full}");
        assert!(reply(&json!({ "input": "a b c d e f g" })).is_ok());
        let many = reply(&json!({ "input": vec!["a"; 2049] })).unwrap_err();
        assert!(many.contains("input must be at most 2048 inputs, got 2049."), "{many}");
        for input in [json!(""), json!([]), json!([[]]), json!({}), json!(7)] {
            let refused = reply(&json!({ "input": input })).unwrap_err();
            assert!(refused.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{refused}");
        }
        let dimensions = reply(&json!({ "input": "a", "dimensions": 0 })).unwrap_err();
        assert!(dimensions.contains("between 1 and 1024"), "{dimensions}");
    }
}

#[cfg(test)]
mod tokenize_tests {
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
