//! One line of what was found.

use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Good,
    /// Worth knowing; nothing is wrong.
    Note,
    /// A measurement will suffer from it.
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub subject: &'static str,
    pub state: State,
    pub words: String,
    pub remedy: Option<String>,
}

impl Finding {
    pub fn good(subject: &'static str, words: impl Into<String>) -> Self {
        Self { subject, state: State::Good, words: words.into(), remedy: None }
    }

    pub fn note(subject: &'static str, words: impl Into<String>) -> Self {
        Self { state: State::Note, ..Self::good(subject, words) }
    }

    pub fn problem(
        subject: &'static str,
        words: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { state: State::Problem, remedy, ..Self::good(subject, words) }
    }

    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}
