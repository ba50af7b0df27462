//! The APIs that the echo and the paced mode speak.

use crate::truth::Api;

/// An API of answers that are laid out ahead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Dialect {
    Chat,
    Completions,
}

impl Dialect {
    /// None for an API that only the mode `serve` speaks.
    pub(crate) fn of(api: Api) -> Option<Self> {
        match api {
            Api::Chat => Some(Self::Chat),
            Api::Completions => Some(Self::Completions),
            Api::Responses | Api::Messages | Api::Embeddings => None,
        }
    }

    pub(crate) fn api(self) -> Api {
        match self {
            Self::Chat => Api::Chat,
            Self::Completions => Api::Completions,
        }
    }
}
