//! A server's own `/tokenize` as the tokenizer: for models whose tokenizer is in no file here. Every text is
//! counted as the server counts it, and the number of words of generated prompts follows from that.

use std::sync::{Mutex, PoisonError};

use inferometer_model::Segment;
use inferometer_model::observations::{Correction, TokenizerFacts};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::TokenizerError;
use crate::data_file::hex;
use crate::text::TextMaker;

/// Counts texts by asking a server.
#[derive(Debug)]
pub(crate) struct ServerTokenizer {
    #[cfg(feature = "hub")]
    agent: ureq::Agent,
    url: String,
    /// Whether what the server puts around a text is counted.
    with_special: bool,
    /// The first question that was not answered: what was counted since then means nothing.
    failure: Mutex<Option<TokenizerError>>,
    facts: TokenizerFacts,
}

const PATH: &str = "/tokenize";
#[cfg(feature = "hub")]
const ANSWER_WITHIN: std::time::Duration = std::time::Duration::from_mins(1);
#[cfg(feature = "hub")]
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Words whose count says how many tokens a word has, and by which the tokenizer is known again.
const SAMPLE: Segment = Segment { seed: 0x636f_756e_7469_6e67, tokens: 256 };

impl ServerTokenizer {
    /// Whether a tokenizer's name is the address of a server.
    pub(crate) fn is_named(name: &str) -> bool {
        name.starts_with("http://") || name.starts_with("https://")
    }

    /// By the server's address, with the path of `/tokenize` or without.
    pub(crate) fn open(name: &str, with_special: bool) -> Result<Self, TokenizerError> {
        let base = name.trim_end_matches('/').trim_end_matches(PATH).trim_end_matches("/v1");
        let url = format!("{base}{PATH}");
        // A password in the address would be stored with the run.
        let host = base.split("://").nth(1).and_then(|rest| rest.split('/').next());
        if host.is_some_and(|host| host.contains('@')) {
            let reason = "an address with a user or a password is not used".to_owned();
            return Err(TokenizerError::Server { url: "--tokenizer".to_owned(), reason });
        }
        let facts =
            TokenizerFacts { name: "/tokenize of the server".to_owned(), sha256: String::new() };
        let mut tokenizer = Self {
            #[cfg(feature = "hub")]
            agent: crate::hub::https_agent(base),
            url,
            with_special,
            failure: Mutex::new(None),
            facts,
        };
        let ids = tokenizer.ask(&sample(1), false)?;
        tokenizer.facts.sha256 = hex(&Sha256::digest(Value::Array(ids).to_string()));
        Ok(tokenizer)
    }

    pub(crate) fn facts(&self) -> TokenizerFacts {
        self.facts.clone()
    }

    /// The tokens of a text; none where the server does not answer, which is noted.
    pub(crate) fn count(&self, text: &str) -> usize {
        // After the first failure nothing is counted any more; `check` reports it.
        if self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return 0;
        }
        self.ask(text, self.with_special).map_or_else(
            |error| {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                0
            },
            |tokens| tokens.len(),
        )
    }

    /// Fails if a text could not be counted.
    pub(crate) fn check(&self) -> Result<(), TokenizerError> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take().map_or(Ok(()), Err)
    }

    /// How many tokens the words of generated prompts have.
    pub(crate) fn correction(&self) -> Result<Correction, TokenizerError> {
        let once = self.ask(&sample(1), self.with_special)?.len() as f64;
        let twice = self.ask(&sample(2), self.with_special)?.len() as f64;
        let of_sample = (twice - once).max(1.0);
        let overhead_tokens = (once - of_sample).max(0.0);
        Ok(Correction { tokens_per_word: of_sample / f64::from(SAMPLE.tokens), overhead_tokens })
    }

    fn ask(&self, text: &str, special: bool) -> Result<Vec<Value>, TokenizerError> {
        let failed = |reason: String| TokenizerError::Server { url: self.url.clone(), reason };
        // The text has another name on each server; what a server does not know it leaves out.
        let body = json!({
            "prompt": text, "content": text, "inputs": text,
            "add_special_tokens": special, "add_special": special,
        });
        let bytes = self.post(&body.to_string()).map_err(failed)?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Array(tokens)) => Ok(tokens),
            Ok(Value::Object(mut object)) => match object.remove("tokens") {
                Some(Value::Array(tokens)) => Ok(tokens),
                _ => Err(failed("answered without a list of `tokens`".to_owned())),
            },
            _ => Err(failed("answered with something else than tokens".to_owned())),
        }
    }

    #[cfg(feature = "hub")]
    fn post(&self, body: &str) -> Result<Vec<u8>, String> {
        let request = self.agent.post(&self.url).header("content-type", "application/json");
        let request = request.config().timeout_global(Some(ANSWER_WITHIN)).build();
        let response = request.send(body.as_bytes()).map_err(|error| format!("failed: {error}"))?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(format!("answered HTTP {status}"));
        }
        let limited = response.into_body().into_with_config().limit(ANSWER_BYTES_MAX);
        limited.read_to_vec().map_err(|error| format!("broke off: {error}"))
    }

    #[cfg(not(feature = "hub"))]
    fn post(&self, _: &str) -> Result<Vec<u8>, String> {
        Err("cannot be asked: this program was built without downloads".to_owned())
    }
}

fn sample(times: usize) -> String {
    vec![TextMaker::Estimating(None).bare(&[SAMPLE]); times].join(" ")
}
