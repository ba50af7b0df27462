//! One line of what was found.

use inferometer_report::escape::terminal_line;
use inferometer_report::lines::hanging;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Good,
    /// Worth knowing; nothing is wrong.
    Note,
    /// A measurement will suffer from it.
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) subject: &'static str,
    pub(crate) state: State,
    pub(crate) words: String,
    pub(crate) remedy: Option<String>,
}

impl Finding {
    pub(crate) fn good(subject: &'static str, words: impl Into<String>) -> Self {
        Self { subject, state: State::Good, words: words.into(), remedy: None }
    }

    pub(crate) fn note(subject: &'static str, words: impl Into<String>) -> Self {
        Self { state: State::Note, ..Self::good(subject, words) }
    }

    pub(crate) fn problem(
        subject: &'static str,
        words: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { state: State::Problem, remedy, ..Self::good(subject, words) }
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The finding, and below it what to do. Words may be a server's.
    pub(crate) fn lines(&self) -> String {
        let mark = match self.state {
            State::Good => "ok     ",
            State::Note => "note   ",
            State::Problem => "PROBLEM",
        };
        let head = format!("{mark}  {:<15} ", self.subject);
        let line = hanging(&head, HEAD_WIDTH, &terminal_line(&self.words, 300));
        let remedy = self.remedy.as_ref().map_or_else(String::new, |remedy| {
            let head = format!("{:<HEAD_WIDTH$}→ ", "");
            hanging(&head, HEAD_WIDTH + 2, &terminal_line(remedy, 300))
        });
        line + &remedy
    }
}

/// Columns before the words.
const HEAD_WIDTH: usize = 25;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_on_the_page() {
        let words = "words that go on ".repeat(12);
        for line in Finding::problem("prompt length", words.clone(), words).lines().lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
