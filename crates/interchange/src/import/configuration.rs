//! Which results of a file are one configuration, and so one line of a chart, and what it is called.
//!
//! What a source states about a result distinguishes configurations: its label and metadata, its model,
//! the heading above it, the flags of its server. Where nothing does, another one begins where a
//! load comes back after another load, or after a blank line, or where there is only one load.

use std::collections::{BTreeMap, BTreeSet};

use inferometer_analysis::tool_result::{Form, ResultRate, ToolResult};
use inferometer_model::import::ImportReading;

use super::{INCOMPLETE, Imported};
use crate::vllm::read::{BENCHMARK_NAME, RUN_NUMBER};

const NAME_CHARS_MAX: usize = 80;

/// Names the configuration of every result. Until then a result has there what its source calls it,
/// or the two lines that stand above it: a heading, and the server's command.
pub(crate) fn assign(text: &str, records: &mut [Imported], reading: &ImportReading) {
    let mut results: Vec<&mut ToolResult> =
        records.iter_mut().filter_map(Imported::result_mut).collect();
    let blanks: Vec<bool> = text.lines().map(|line| line.trim().is_empty()).collect();
    let traits = traits_of(&results);
    let conditions: Vec<Condition> = results.iter().map(|result| condition(result)).collect();
    let mut conditions_of: BTreeMap<&Vec<Trait>, BTreeSet<&Condition>> = BTreeMap::new();
    for (traits, condition) in traits.iter().zip(&conditions) {
        conditions_of.entry(traits).or_default().insert(condition);
    }
    let mut groups = Groups::default();
    for ((result, stated), condition) in results.iter().zip(&traits).zip(&conditions) {
        // Printed blocks have blank lines between them anyway.
        let above = result.source.line.and_then(|line| (line as usize).checked_sub(2));
        let is_below_blank = result.source.form == Form::Document
            && above.is_some_and(|above| blanks.get(above).copied().unwrap_or(false));
        // Results of one load are more likely what was tried one after the other than one thing
        // measured again, unless the source gives it one name.
        let is_named = stated.iter().any(|it| matches!(it.kind, Kind::Named | Kind::Label));
        let is_separate = is_below_blank || (conditions_of[stated].len() == 1 && !is_named);
        groups.add(stated, condition, is_separate, reading.repeats);
    }
    let names = groups.names(reading);
    for (result, group) in results.iter_mut().zip(&groups.of_results) {
        result.configuration.clone_from(&names[*group]);
    }
}

/// What a result's figures are set against, in a form that has an order: the bits of the rate, and the
/// cap.
type Load = (Option<u64>, Option<u32>);

/// `None` where the source does not say.
fn load(result: &ToolResult) -> Option<Load> {
    let bits = |rate| match rate {
        ResultRate::PerSecond(per_s) => f64::to_bits(per_s),
        ResultRate::Unlimited => f64::INFINITY.to_bits(),
    };
    let load = (result.request_rate.map(bits), result.max_concurrency);
    (load != (None, None)).then_some(load)
}

/// What a result of one configuration has alone: its load, and where the source repeats runs, the
/// number of the run.
type Condition = (Option<Load>, Option<String>);

fn condition(result: &ToolResult) -> Condition {
    let run = result.metadata.iter().find(|(key, _)| key == RUN_NUMBER);
    (load(result), run.map(|(_, number)| number.clone()))
}

#[derive(Debug, Default)]
struct Groups<'a> {
    all: Vec<Group<'a>>,
    /// The last group of those with the same traits.
    last: BTreeMap<&'a [Trait], usize>,
    of_results: Vec<usize>,
}

#[derive(Debug)]
struct Group<'a> {
    traits: &'a [Trait],
    conditions: BTreeSet<&'a Condition>,
    last: Option<&'a Condition>,
}

impl<'a> Groups<'a> {
    fn add(
        &mut self,
        traits: &'a [Trait],
        condition: &'a Condition,
        is_separate: bool,
        repeats: bool,
    ) {
        let last = self.last.get(traits).copied().filter(|last| {
            let group = &self.all[*last];
            let is_known = condition.0.is_some() || is_separate;
            let comes_again = is_known && group.conditions.contains(condition);
            repeats || !comes_again || (group.last == Some(condition) && !is_separate)
        });
        let place = last.unwrap_or_else(|| {
            self.all.push(Group { traits, conditions: BTreeSet::new(), last: None });
            self.last.insert(traits, self.all.len() - 1);
            self.all.len() - 1
        });
        self.all[place].conditions.insert(condition);
        self.all[place].last = Some(condition);
        self.of_results.push(place);
    }

    /// By what distinguishes them, and by number where nothing does: after the file where it has a name,
    /// and by number where the file has several.
    fn names(&self, reading: &ImportReading) -> Vec<String> {
        let mut names = self.stated();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for name in &names {
            *counts.entry(name.clone()).or_default() += 1;
        }
        let mut passed: BTreeMap<String, usize> = BTreeMap::new();
        for (place, name) in names.iter_mut().enumerate() {
            let nth = passed.entry(name.clone()).or_default();
            *nth += 1;
            if name.is_empty() {
                let number = format!("configuration {}", place + 1);
                let number = (1 < self.all.len()).then_some(number.as_str());
                let words: Vec<&str> =
                    reading.nameless.as_deref().into_iter().chain(number).collect();
                *name = words.join(", ");
            } else if 1 < counts[name.as_str()] {
                *name = format!("{name} ({nth})");
            }
        }
        for (name, given) in names.iter_mut().zip(&reading.names) {
            name.clone_from(given);
        }
        names
    }

    fn stated(&self) -> Vec<String> {
        let mut shared: BTreeMap<&Trait, usize> = BTreeMap::new();
        for stated in self.all.iter().flat_map(|group| group.traits) {
            *shared.entry(stated).or_default() += 1;
        }
        let distinguishes = |stated: &&Trait| {
            let is_only = self.all.len() == 1;
            matches!(stated.kind, Kind::Named | Kind::Parameter(_))
                || (is_only && stated.kind == Kind::Label)
                || (!is_only && shared[*stated] < self.all.len())
        };
        let name = |group: &Group<'_>| {
            let words: Vec<_> = group
                .traits
                .iter()
                .filter(distinguishes)
                .map(|stated| stated.words.as_str())
                .collect();
            words.join(", ").chars().take(NAME_CHARS_MAX).collect()
        };
        self.all.iter().map(name).collect()
    }
}

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
struct Trait {
    kind: Kind,
    words: String,
}

/// In the order in which they stand in a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
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

/// The traits of each result, in the order of their kinds. Where every result has another load, texts
/// that no two of them share name the results, not configurations.
fn traits_of(results: &[&mut ToolResult]) -> Vec<Vec<Trait>> {
    let mut all: Vec<Vec<Trait>> = results.iter().map(|result| traits(result)).collect();
    let loads: BTreeSet<_> = results.iter().filter_map(|result| load(result)).collect();
    if results.len() < RESULTS_NAMED_MIN || loads.len() < results.len() {
        return all;
    }
    let mut stated_by_kind: BTreeMap<&Kind, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for stated in all.iter().flatten() {
        if matches!(stated.kind, Kind::Heading | Kind::Label | Kind::Metadata(_)) {
            let (count, words) = stated_by_kind.entry(&stated.kind).or_default();
            *count += 1;
            words.insert(&stated.words);
        }
    }
    stated_by_kind.retain(|_, (count, words)| *count == all.len() && words.len() == all.len());
    let names: BTreeSet<Kind> = stated_by_kind.into_keys().cloned().collect();
    for traits in &mut all {
        traits.retain(|stated| !names.contains(&stated.kind));
    }
    all
}

fn traits(result: &ToolResult) -> Vec<Trait> {
    let mut traits = Vec::new();
    let mut say = |kind: Kind, words: &str| {
        if !words.is_empty() {
            traits.push(Trait { kind, words: words.to_owned() });
        }
    };
    match result.configuration.split_once('\n') {
        None => say(Kind::Named, &result.configuration),
        Some((heading, command)) => {
            say(Kind::Heading, heading);
            for flag in flags(command) {
                say(Kind::Server, &flag);
            }
        }
    }
    // Where the parameters of a sweep begin in the metadata of a result.
    let place = |name| result.metadata.iter().position(|(key, _)| key == name);
    let swept = place(RUN_NUMBER).or_else(|| place(BENCHMARK_NAME).map(|_| 0));
    for (place, (key, value)) in result.metadata.iter().enumerate() {
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
    say(Kind::Model, result.model.as_deref().unwrap_or_default());
    say(Kind::Backend, result.backend.as_deref().unwrap_or_default());
    if let Some(gpus) = result.tensor_parallel {
        say(Kind::TensorParallel, &format!("TP {gpus}"));
    }
    traits.sort();
    traits
}

/// Each flag with its values, and what is set in front of the command. The number of GPUs has a
/// field of its own.
fn flags(command: &str) -> Vec<String> {
    let mut flags: Vec<String> = Vec::new();
    let mut is_served = false;
    for word in command.split_whitespace().filter(|word| *word != "\\") {
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let variable = word.split_once('=').map(|(name, _)| name).filter(|name| !name.is_empty());
        let is_assignment = variable.is_some_and(|name| name.chars().all(is_name));
        if word.starts_with('-') || (!is_served && is_assignment) {
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
