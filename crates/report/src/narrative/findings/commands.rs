//! Every command that advice may print.

use super::page::MeasuredBy;

/// What measures the same again.
fn again(by: &MeasuredBy) -> String {
    match by {
        MeasuredBy::Suite(name) => format!("inferometer suite {}", word(name)),
        MeasuredBy::Sweep => "inferometer sweep".to_owned(),
        MeasuredBy::Repeat | MeasuredBy::Run => "inferometer run".to_owned(),
        MeasuredBy::Others => "inferometer suite standard".to_owned(),
    }
}

/// The name of a suite, where a shell reads it as one word.
fn word(name: &str) -> &str {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let is_word = name.starts_with(|first: char| first.is_ascii_alphanumeric());
    if is_word && name.chars().all(is_plain) { name } else { "NAME" }
}

pub(super) fn repeat(by: &MeasuredBy) -> String {
    format!("{} --repeat 5", again(by))
}

pub(super) fn other_seed(by: &MeasuredBy) -> String {
    format!("{} --seed N", again(by))
}

/// Of a suite: nothing else shares its prompts by wish.
pub(super) fn fresh_prompts(by: &MeasuredBy) -> String {
    format!("{} --prompts fresh", again(by))
}

/// Where a seed changes nothing.
pub(super) fn restart(by: &MeasuredBy) -> String {
    format!("{} --restart COMMAND", again(by))
}

/// The scenarios of a suite say themselves how many requests they send.
pub(super) enum MoreRequests {
    Flag(String),
    /// What writes a file in which the number can be raised.
    OwnSuite(String),
}

pub(super) fn more_requests(by: &MeasuredBy, requests: &str) -> MoreRequests {
    match by {
        MeasuredBy::Suite(name) => {
            MoreRequests::OwnSuite(format!("inferometer suite --show {} > mine.toml", word(name)))
        }
        MeasuredBy::Sweep | MeasuredBy::Repeat | MeasuredBy::Run | MeasuredBy::Others => {
            MoreRequests::Flag(format!("{} --requests {requests}", again(by)))
        }
    }
}

/// Twice and four times the highest level so far.
pub(super) fn higher_levels(highest: u32) -> String {
    let (twice, four_times) = (highest.saturating_mul(2), highest.saturating_mul(4));
    format!("inferometer sweep --concurrencies {twice},{four_times}")
}

/// A promise to hold a level against.
pub(super) const PROMISE: &str = "--slo";

#[cfg(test)]
mod tests {
    use super::*;

    /// The command line is another crate, which this list is to be held against.
    #[test]
    fn these_are_all_the_commands() {
        let suite = MeasuredBy::Suite("code".to_owned());
        let mut commands = vec![fresh_prompts(&suite), higher_levels(32)];
        for by in [&suite, &MeasuredBy::Sweep, &MeasuredBy::Run] {
            commands.extend([repeat(by), other_seed(by), restart(by)]);
            let (MoreRequests::Flag(more) | MoreRequests::OwnSuite(more)) =
                more_requests(by, "662");
            commands.push(more);
        }
        let known = [
            "inferometer suite code --prompts fresh",
            "inferometer sweep --concurrencies 64,128",
            "inferometer suite code --repeat 5",
            "inferometer suite code --seed N",
            "inferometer suite code --restart COMMAND",
            "inferometer suite --show code > mine.toml",
            "inferometer sweep --repeat 5",
            "inferometer sweep --seed N",
            "inferometer sweep --restart COMMAND",
            "inferometer sweep --requests 662",
            "inferometer run --repeat 5",
            "inferometer run --seed N",
            "inferometer run --restart COMMAND",
            "inferometer run --requests 662",
        ];
        assert_eq!(commands, known);
        assert_eq!(PROMISE, "--slo");
        assert_eq!(again(&MeasuredBy::Others), "inferometer suite standard");
        assert_eq!(again(&MeasuredBy::Repeat), again(&MeasuredBy::Run));
    }

    #[test]
    fn a_name_that_a_shell_would_read_otherwise_is_not_printed() {
        for name in ["my suite", "$(id)", "-x", "a;b", ""] {
            assert_eq!(again(&MeasuredBy::Suite(name.to_owned())), "inferometer suite NAME");
        }
    }
}
