//! One request to generate, with nothing left open but what the scheduler decides.

use crate::serve::vocabulary::Vocabulary;

/// What takes a JSON body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
    Tokenize,
    Detokenize,
}

/// What a request is held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Serving<'a> {
    pub(crate) model: &'a str,
    pub(crate) max_model_len: u32,
    pub(crate) vocabulary: &'static Vocabulary,
}

/// A request to generate.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the request's own")]
pub(crate) struct Ask {
    pub(crate) endpoint: Endpoint,
    /// Token ids. Completions may have several; the others have one.
    pub(crate) prompts: Vec<Vec<u32>>,
    /// Answers to each prompt; choice `c` answers prompt `c / n`.
    pub(crate) n: u16,
    pub(crate) streamed: bool,
    /// `None` fills the model's length; see [`Ask::most_tokens`].
    pub(crate) max_tokens: Option<u32>,
    pub(crate) min_tokens: u32,
    pub(crate) ignore_eos: bool,
    pub(crate) stop: Vec<String>,
    /// Whether the text keeps the stop string that ended it.
    pub(crate) include_stop: bool,
    /// In ascending order.
    pub(crate) stop_token_ids: Vec<u32>,
    pub(crate) seed: Option<u64>,
    pub(crate) priority: i32,
    /// Alternatives to be told beside each token; `None` tells no probabilities at all.
    pub(crate) logprobs: Option<u32>,
    pub(crate) include_usage: bool,
    pub(crate) continuous_usage: bool,
    pub(crate) token_ids: bool,
    /// The prompts' texts, one each, where they are to be repeated ahead of the answers.
    pub(crate) echo: Option<Vec<String>>,
    /// Nothing but the prompt is to be told. As in vLLM one token is generated all the same.
    pub(crate) echo_alone: bool,
    /// The client's name for the request, of which the answer's id is made: the body's
    /// `request_id`, or the header `x-request-id`, which goes before it.
    pub(crate) request_id: Option<String>,
    pub(crate) told: Told,
}

/// What an answer repeats from its request and the engine makes no use of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) temperature: f64,
    pub(crate) top_p: f64,
    pub(crate) presence_penalty: f64,
    pub(crate) frequency_penalty: f64,
    pub(crate) instructions: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) metadata: Option<serde_json::Value>,
}

impl Ask {
    pub(crate) fn choices(&self) -> u16 {
        let prompts = u16::try_from(self.prompts.len()).unwrap_or(u16::MAX);
        prompts.saturating_mul(self.n)
    }

    /// The prompt that a choice answers.
    pub(crate) fn prompt_of(&self, choice: u16) -> &[u32] {
        self.prompts.get(usize::from(choice / self.n)).map_or(&[], Vec::as_slice)
    }

    /// How long the answers to a prompt may become.
    pub(crate) fn most_tokens(&self, prompt: &[u32], max_model_len: u32) -> u32 {
        let prompt = u32::try_from(prompt.len()).unwrap_or(u32::MAX);
        let room = max_model_len.saturating_sub(prompt);
        self.max_tokens.map_or(room, |asked| asked.min(room))
    }

    /// Of all prompts together, as usage counts them.
    pub(crate) fn prompt_tokens(&self) -> u32 {
        let tokens = self.prompts.iter().map(Vec::len).sum::<usize>();
        u32::try_from(tokens).unwrap_or(u32::MAX)
    }
}
