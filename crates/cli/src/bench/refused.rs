//! Flags, backends and data sets of vLLM's client that are not supported here, with reasons.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde::Deserialize;

use crate::failure::{Failure, Result};

/// The tables of `refused.toml`.
#[derive(Deserialize)]
pub(super) struct Refusals {
    flags: Vec<Refusal>,
    pub(super) backends: Vec<Refusal>,
    pub(super) datasets: Vec<Refusal>,
    /// Datasets on the hub.
    pub(super) hub: Vec<Refusal>,
    /// What our flags are called there.
    pub(super) renamed: BTreeMap<String, String>,
}

/// Names that are refused for one reason.
#[derive(Deserialize)]
pub(super) struct Refusal {
    names: Vec<String>,
    #[serde(default)]
    why: String,
    instead: String,
}

pub(super) static REFUSALS: LazyLock<Refusals> = LazyLock::new(|| {
    toml::from_str(include_str!("refused.toml")).expect("a test reads the embedded table")
});

impl Refusal {
    /// The failure of a value of `flag` that is none of the `known` ones.
    pub(super) fn unsupported(
        refusals: &'static [Self],
        flag: &str,
        value: &str,
        known: &str,
    ) -> Failure {
        match Self::find(refusals, value) {
            Some(Self { why, instead, .. }) => {
                let colon = if why.is_empty() { "" } else { ": " };
                Failure::usage(format!("--{flag} {value} is not supported here{colon}{why}"))
                    .hint(instead)
            }
            None => Failure::usage(format!("--{flag} {value} is not known; use {known}")),
        }
    }

    fn find(refusals: &'static [Self], name: &str) -> Option<&'static Self> {
        refusals.iter().find(|refusal| refusal.names().any(|refused| refused == name))
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }
}

/// The refused flags that were typed; clap takes them, so that they can be refused by name.
#[derive(Debug, Default)]
pub(crate) struct Refused(Vec<&'static str>);

impl Refused {
    pub(crate) fn check(&self) -> Result<()> {
        let found =
            self.0.first().and_then(|flag| Some((flag, Refusal::find(&REFUSALS.flags, flag)?)));
        let Some((flag, Refusal { why, instead, .. })) = found else { return Ok(()) };
        Err(Failure::usage(format!("--{flag} cannot be honoured: {why}")).hint(instead))
    }
}

impl Args for Refused {
    fn augment_args(command: Command) -> Command {
        flags().fold(command, |command, flag| {
            let arg = Arg::new(flag).long(flag).num_args(0..).action(ArgAction::Append);
            command.arg(arg.allow_negative_numbers(true).hide(true))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Refused {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = |flag: &&str| matches.value_source(flag) == Some(ValueSource::CommandLine);
        Ok(Self(flags().filter(typed).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn flags() -> impl Iterator<Item = &'static str> {
    REFUSALS.flags.iter().flat_map(Refusal::names)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::arguments::Arguments;

    /// All long flags of the other client, those of its older releases among them.
    const FLAGS: &str = "
        append-result asr-max-audio-len-sec asr-min-audio-len-sec backend base-url bfcl-categories
        blazedit-max-distance blazedit-min-distance burstiness chat-template-kwargs
        custom-ensure-client-side-data custom-output-len dataset-name dataset-path disable-shuffle
        disable-tqdm enable-multimodal-chat endpoint extra-body frequency-penalty goodput header
        hf-name hf-output-len hf-split hf-subset host ignore-eos input-len insecure label logprobs
        lora-assignment lora-modules max-concurrency metadata metric-percentiles min-p model
        no-oversample no-reranker no-self-timed no-stream num-prompts num-warmups output-len
        percentile-metrics plot-dataset-stats plot-timeline port prefix-repetition-num-prefixes
        prefix-repetition-output-len prefix-repetition-prefix-len prefix-repetition-suffix-len
        presence-penalty probe-request-rate profile ramp-up-end-rps ramp-up-start-rps
        ramp-up-strategy random-batch-size random-input-len random-mm-base-items-per-request
        random-mm-bucket-config random-mm-limit-mm-per-prompt random-mm-num-mm-items-range-ratio
        random-output-len random-prefix-len random-range-ratio ready-check-timeout-sec
        repetition-penalty request-id-prefix request-rate result-dir result-filename save-detailed
        save-result seed self-timed served-model-name sharegpt-output-len skip-chat-template
        skip-tokenizer-init sonnet-input-len sonnet-output-len sonnet-prefix-len
        spec-bench-category spec-bench-output-len speed-bench-category
        speed-bench-dataset-subset speed-bench-output-len temperature timed-trace-chunk-hash-size
        timed-trace-label-hash-ids timed-trace-label-input-length timed-trace-label-output-length
        timed-trace-label-timestamp timed-trace-sec-multiplier timeline-itl-thresholds tokenizer
        tokenizer-mode top-k top-p trust-remote-code use-beam-search";

    /// Ours, which the other client does not have.
    const OURS: [&str; 3] = ["definitions", "output", "help"];

    fn longs(hidden: bool) -> BTreeSet<String> {
        let mut command = Arguments::command();
        command.build();
        let bench = command.find_subcommand("bench").unwrap();
        let serve = bench.find_subcommand("serve").unwrap();
        let of_kind = serve.get_arguments().filter(|arg| arg.is_hide_set() == hidden);
        of_kind.filter_map(|arg| arg.get_long()).map(str::to_owned).collect()
    }

    #[test]
    fn every_flag_is_taken_or_refused_and_no_other() {
        let known: BTreeSet<String> = FLAGS.split_whitespace().map(str::to_owned).collect();
        assert_eq!(known.len(), 105);
        let (taken, refused) = (longs(false), longs(true));
        assert!(taken.is_disjoint(&refused));
        let mut both: BTreeSet<String> = taken.union(&refused).cloned().collect();
        for ours in OURS {
            assert!(both.remove(ours), "--{ours}");
        }
        assert_eq!(both, known);
    }

    #[test]
    fn the_documentation_has_every_flag_as_it_is() {
        let text = include_str!("../../../../docs/bench.md");
        for flag in longs(false).iter().filter(|flag| !OURS.contains(&flag.as_str())) {
            assert!(text.contains(&format!("`--{flag}`")), "--{flag} is not in docs/bench.md");
        }
        let (_, after) = text.split_once("## Refused flags").expect("a chapter on it");
        for flag in longs(true) {
            assert!(after.contains(&format!("`--{flag}`")), "--{flag} is not told to be refused");
        }
    }

    #[test]
    fn a_refusal_names_the_flag_its_reason_and_a_way_out() {
        let refused = Refused(vec!["plot-timeline"]).check().unwrap_err();
        let words = format!("{refused:?}");
        assert!(
            words.contains("--plot-timeline") && words.contains("inferometer report"),
            "{words}"
        );
        assert!(Refused::default().check().is_ok());
    }
}
