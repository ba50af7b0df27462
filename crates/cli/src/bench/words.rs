//! Failures of an experiment name our flags; here their own were typed.

use crate::failure::Failure;

/// Ours, and what was typed instead.
const FLAGS: [(&str, &str); 15] = [
    ("--concurrency", "--max-concurrency"),
    ("--rate", "--request-rate"),
    ("--ramp", "--ramp-up-strategy"),
    ("--requests", "--num-prompts"),
    ("--warm-up", "--num-warmups"),
    ("--input-tokens", "--input-len"),
    ("--output-tokens", "--output-len"),
    ("--prefix-tokens", "--random-prefix-len"),
    ("--prefixes", "--prefix-repetition-num-prefixes"),
    ("--dataset", "--dataset-path"),
    ("--trace", "--dataset-path"),
    ("--api", "--backend"),
    ("--lora", "--lora-modules"),
    ("--slo", "--goodput"),
    ("--no-stream", "inferometer run --no-stream"),
];

/// The same failure in the words of who typed.
pub(crate) fn theirs(failure: Failure) -> Failure {
    failure.reworded(reworded)
}

fn reworded(text: &str) -> String {
    text.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .map(|piece| {
            let word = piece.trim_end_matches(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
            let theirs = FLAGS.iter().find(|(ours, _)| *ours == word).map(|(_, theirs)| *theirs);
            theirs.map_or_else(
                || piece.to_owned(),
                |theirs| format!("{theirs}{}", &piece[word.len()..]),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_flags_are_replaced_and_nothing_else() {
        assert_eq!(
            reworded("--rate 5, with --requests: see --rates, --max-concurrency (--concurrency)."),
            "--request-rate 5, with --num-prompts: see --rates, --max-concurrency \
             (--max-concurrency)."
        );
        assert_eq!(reworded("kein Größe · --warm-up"), "kein Größe · --num-warmups");
    }
}
