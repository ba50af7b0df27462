//! What a result says of its configuration, in words.

use std::collections::{BTreeMap, BTreeSet};

use inferometer_analysis::sheet::Sheet;

use super::super::INCOMPLETE;
use super::Load;
use crate::import::vllm::{BENCHMARK_NAME, RUN_NUMBER};

/// Metadata of these names are about the run and its load, not about what was run.
const OF_THE_RUN: [&str; 11] = [
    "run",
    "run_id",
    RUN_NUMBER,
    BENCHMARK_NAME,
    "repeat",
    "seed",
    "timestamp",
    "strategy",
    "description",
    "incomplete_reason",
    INCOMPLETE,
];
/// Two results may differ in everything; of three that all do, each has a name of its own.
const RESULTS_NAMED_MIN: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Trait {
    pub(super) kind: Kind,
    pub(super) words: String,
}

/// In the order in which they stand in a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The source's own name of the configuration.
    Named,
    Heading,
    Label,
    /// What a sweep set to this value.
    Parameter(String),
    Metadata(String),
    Model,
    Backend,
    TensorParallel,
    /// A flag of the server with its value.
    Server,
}

/// Of each sheet, in the order of their kinds.
pub(super) fn traits_of(sheets: &[&mut Sheet]) -> Vec<Vec<Trait>> {
    let mut all: Vec<Vec<Trait>> = sheets.iter().map(|sheet| traits(sheet)).collect();
    let loads: BTreeSet<_> = sheets.iter().filter_map(|sheet| Load::of(sheet)).collect();
    if RESULTS_NAMED_MIN <= sheets.len() && loads.len() == sheets.len() {
        forget_names_of_results(&mut all);
    }
    all
}

/// Where every result has another load, words that no two of them share name the results.
fn forget_names_of_results(all: &mut [Vec<Trait>]) {
    let mut said_of: BTreeMap<&Kind, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for said in all.iter().flatten() {
        if matches!(said.kind, Kind::Heading | Kind::Label | Kind::Metadata(_)) {
            let (count, words) = said_of.entry(&said.kind).or_default();
            *count += 1;
            words.insert(&said.words);
        }
    }
    said_of.retain(|_, (count, words)| *count == all.len() && words.len() == all.len());
    let names: BTreeSet<Kind> = said_of.into_keys().cloned().collect();
    for traits in all {
        traits.retain(|said| !names.contains(&said.kind));
    }
}

fn traits(sheet: &Sheet) -> Vec<Trait> {
    let mut traits = Vec::new();
    let mut say = |kind: Kind, words: &str| {
        if !words.is_empty() {
            traits.push(Trait { kind, words: words.to_owned() });
        }
    };
    match sheet.configuration.split_once('\n') {
        None => say(Kind::Named, &sheet.configuration),
        Some((heading, command)) => {
            say(Kind::Heading, heading);
            for flag in flags(command) {
                say(Kind::Server, &flag);
            }
        }
    }
    let swept = swept_from(sheet);
    for (place, (key, value)) in sheet.metadata.iter().enumerate() {
        // A flag has either spelling.
        let key = key.replace('-', "_");
        let words = format!("{key}={value}");
        if key == "label" {
            say(Kind::Label, value);
        } else if OF_THE_RUN.contains(&key.as_str()) {
        } else if swept.is_some_and(|from| from <= place) {
            say(Kind::Parameter(key), &words);
        } else {
            say(Kind::Metadata(key), &words);
        }
    }
    say(Kind::Model, sheet.model.as_deref().unwrap_or_default());
    say(Kind::Backend, sheet.backend.as_deref().unwrap_or_default());
    if let Some(gpus) = sheet.tensor_parallel {
        say(Kind::TensorParallel, &format!("TP {gpus}"));
    }
    traits.sort();
    traits
}

/// Where the parameters of a sweep begin in what a result says of itself.
fn swept_from(sheet: &Sheet) -> Option<usize> {
    let place = |name| sheet.metadata.iter().position(|(key, _)| key == name);
    place(RUN_NUMBER).or_else(|| place(BENCHMARK_NAME).map(|_| 0))
}

/// Each flag with its values, and what is set in front of the command. The number of GPUs has a
/// field of its own.
fn flags(command: &str) -> Vec<String> {
    let mut flags: Vec<String> = Vec::new();
    let mut is_served = false;
    for word in command.split_whitespace().filter(|word| *word != "\\") {
        if word.starts_with('-') || (!is_served && is_assignment(word)) {
            flags.push(word.to_owned());
        } else if let Some(flag) = flags.last_mut().filter(|flag| flag.starts_with('-')) {
            flag.push(' ');
            flag.push_str(word);
        } else if is_served {
            flags.push(word.to_owned());
        }
        is_served |= word == "serve";
    }
    flags.retain(|flag| {
        let name = flag.split([' ', '=']).next().unwrap_or_default().replace('_', "-");
        !["-tp", "--tp", "--tp-size", "--tensor-parallel-size"].contains(&name.as_str())
    });
    flags
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_its_flags_and_what_is_set_before_it() {
        let command = "host:~$ X_Y=0 vllm serve -tp 4 org/name --max_seqs \\ 64 -e --a=b";
        assert_eq!(flags(command), ["X_Y=0", "--max_seqs 64", "-e", "--a=b"]);
        assert_eq!(flags("vllm serve org/name --tensor_parallel_size=2"), ["org/name"]);
        assert!(flags("no command").is_empty());
    }
}
