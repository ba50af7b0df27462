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

/// Names the configuration of every result. Until then a sheet has there what its source calls it,
/// or the two lines that stand above it: a heading, and the server's command.
pub(crate) fn assign(text: &str, records: &mut [Imported], reading: &ImportReading) {
    let mut sheets: Vec<&mut ToolResult> =
        records.iter_mut().filter_map(Imported::result_mut).collect();
    let blanks: Vec<bool> = text.lines().map(|line| line.trim().is_empty()).collect();
    let traits = traits_of(&sheets);
    let conditions: Vec<Condition> =
        sheets.iter().map(|sheet| Condition::from_result(sheet)).collect();
    let mut groups = Groups::default();
    let alike = alike(&traits, &conditions);
    for ((sheet, traits_of_one), condition) in sheets.iter().zip(traits).zip(conditions) {
        let is_separate = is_below_blank(sheet, &blanks) || alike.contains(&traits_of_one);
        groups.add(traits_of_one, condition, is_separate, reading.repeats);
    }
    let names = groups.names(reading);
    for (sheet, group) in sheets.iter_mut().zip(&groups.of_results) {
        sheet.configuration.clone_from(&names[*group]);
    }
}

/// Traits whose results were all measured at one load: more likely what was tried one after the
/// other than one thing measured again, unless the source gives it one name.
fn alike(traits: &[Vec<Trait>], conditions: &[Condition]) -> BTreeSet<Vec<Trait>> {
    let mut conditions_of: BTreeMap<&Vec<Trait>, BTreeSet<&Condition>> = BTreeMap::new();
    for (traits, condition) in traits.iter().zip(conditions) {
        conditions_of.entry(traits).or_default().insert(condition);
    }
    let is_named = |stated: &Trait| matches!(stated.kind, Kind::Named | Kind::Label);
    let alike = conditions_of
        .into_iter()
        .filter(|(traits, found)| found.len() == 1 && !traits.iter().any(is_named));
    alike.map(|(traits, _)| traits.clone()).collect()
}

/// Printed blocks have blank lines between them anyway.
fn is_below_blank(sheet: &ToolResult, blanks: &[bool]) -> bool {
    let above = sheet.source.line.and_then(|line| (line as usize).checked_sub(2));
    sheet.source.form == Form::Document
        && above.is_some_and(|above| blanks.get(above).copied().unwrap_or(false))
}

/// What a result's figures are set against, in a form that has an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    rate_bits: Option<u64>,
    cap: Option<u32>,
}

impl Load {
    /// `None` where the source does not say.
    fn from_result(sheet: &ToolResult) -> Option<Self> {
        let bits = |rate| match rate {
            ResultRate::PerSecond(per_s) => f64::to_bits(per_s),
            ResultRate::Unlimited => f64::INFINITY.to_bits(),
        };
        let load = Self { rate_bits: sheet.request_rate.map(bits), cap: sheet.max_concurrency };
        (load.rate_bits.is_some() || load.cap.is_some()).then_some(load)
    }
}

/// What a result of one configuration has alone: its load, and where the source repeats runs, the
/// number of the run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Condition {
    load: Option<Load>,
    run: Option<String>,
}

impl Condition {
    fn from_result(sheet: &ToolResult) -> Self {
        let run = sheet.metadata.iter().find(|(key, _)| key == RUN_NUMBER);
        Self { load: Load::from_result(sheet), run: run.map(|(_, number)| number.clone()) }
    }
}

#[derive(Debug, Default)]
struct Groups {
    all: Vec<Group>,
    /// The last group of those with the same traits.
    last: BTreeMap<Vec<Trait>, usize>,
    of_results: Vec<usize>,
}

#[derive(Debug)]
struct Group {
    traits: Vec<Trait>,
    conditions: BTreeSet<Condition>,
    last: Option<Condition>,
}

impl Groups {
    fn add(&mut self, traits: Vec<Trait>, condition: Condition, is_separate: bool, repeats: bool) {
        let last = self.last.get(&traits).copied().filter(|last| {
            let group = &self.all[*last];
            let is_known = condition.load.is_some() || is_separate;
            let comes_again = is_known && group.conditions.contains(&condition);
            repeats || !comes_again || (group.last.as_ref() == Some(&condition) && !is_separate)
        });
        let place = last.unwrap_or_else(|| {
            let conditions = BTreeSet::new();
            self.all.push(Group { traits: traits.clone(), conditions, last: None });
            self.last.insert(traits, self.all.len() - 1);
            self.all.len() - 1
        });
        self.all[place].conditions.insert(condition.clone());
        self.all[place].last = Some(condition);
        self.of_results.push(place);
    }

    /// By what tells them apart, and by number where nothing does.
    fn names(&self, reading: &ImportReading) -> Vec<String> {
        let mut names = self.stated();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for name in &names {
            *counts.entry(name.clone()).or_default() += 1;
        }
        let mut passed: BTreeMap<String, usize> = BTreeMap::new();
        let of_file = reading.nameless.as_deref();
        for (place, name) in names.iter_mut().enumerate() {
            let nth = passed.entry(name.clone()).or_default();
            *nth += 1;
            if name.is_empty() {
                *name = nameless(of_file, (1 < self.all.len()).then_some(place + 1));
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
        for stated in self.all.iter().flat_map(|group| &group.traits) {
            *shared.entry(stated).or_default() += 1;
        }
        let tells = |stated: &&Trait| {
            matches!(stated.kind, Kind::Named | Kind::Parameter(_))
                || if self.all.len() == 1 {
                    matches!(stated.kind, Kind::Label)
                } else {
                    shared[*stated] < self.all.len()
                }
        };
        let name = |group: &Group| {
            let words: Vec<_> =
                group.traits.iter().filter(tells).map(|stated| stated.words.as_str()).collect();
            words.join(", ").chars().take(NAME_CHARS_MAX).collect()
        };
        self.all.iter().map(name).collect()
    }
}

/// After its file, and by number where the file has several.
fn nameless(of_file: Option<&str>, number: Option<usize>) -> String {
    let number = number.map(|number| format!("configuration {number}"));
    let words: Vec<&str> = of_file.into_iter().chain(number.as_deref()).collect();
    words.join(", ")
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

/// The traits of each sheet, in the order of their kinds.
fn traits_of(sheets: &[&mut ToolResult]) -> Vec<Vec<Trait>> {
    let mut all: Vec<Vec<Trait>> = sheets.iter().map(|sheet| traits(sheet)).collect();
    let loads: BTreeSet<_> = sheets.iter().filter_map(|sheet| Load::from_result(sheet)).collect();
    if RESULTS_NAMED_MIN <= sheets.len() && loads.len() == sheets.len() {
        forget_names_of_results(&mut all);
    }
    all
}

/// Where every result has another load, words that no two of them share name the results.
fn forget_names_of_results(all: &mut [Vec<Trait>]) {
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
    for traits in all {
        traits.retain(|stated| !names.contains(&stated.kind));
    }
}

fn traits(sheet: &ToolResult) -> Vec<Trait> {
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

/// Where the parameters of a sweep begin in the metadata of a result.
fn swept_from(sheet: &ToolResult) -> Option<usize> {
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
