//! Which results of a file are one configuration, and so one line of a chart, and what it is called.
//!
//! What a source says of a result tells configurations apart: its label and metadata, its model,
//! the heading above it, the flags of its server. Where nothing does, another one begins where a
//! load comes back after another load, or after a blank line, or where there is only one load.

mod traits;

use std::collections::{BTreeMap, BTreeSet};

use inferometer_analysis::sheet::{Form, Sheet, SheetRate};
use inferometer_model::import::ImportReading;

use self::traits::{Kind, Trait, traits_of};
use super::Imported;
use super::vllm::RUN_NUMBER;

const NAME_CHARS_MAX: usize = 80;

/// Names the configuration of every result. Until then a sheet has there what its source calls it,
/// or the two lines that stand above it: a heading, and the server's command.
pub(crate) fn assign(text: &str, records: &mut [Imported], reading: &ImportReading) {
    let mut sheets: Vec<&mut Sheet> = records.iter_mut().filter_map(Imported::result_mut).collect();
    let blanks: Vec<bool> = text.lines().map(|line| line.trim().is_empty()).collect();
    let traits = traits_of(&sheets);
    let conditions: Vec<Condition> = sheets.iter().map(|sheet| Condition::of(sheet)).collect();
    let mut groups = Groups::default();
    let alike = alike(&traits, &conditions);
    for ((sheet, told), condition) in sheets.iter().zip(traits).zip(conditions) {
        let stands_apart = is_below_blank(sheet, &blanks) || alike.contains(&told);
        groups.add(told, condition, stands_apart, reading.repeats);
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
    let is_named = |said: &Trait| matches!(said.kind, Kind::Named | Kind::Label);
    let alike = conditions_of
        .into_iter()
        .filter(|(traits, found)| found.len() == 1 && !traits.iter().any(is_named));
    alike.map(|(traits, _)| traits.clone()).collect()
}

/// Printed blocks have blank lines between them anyway.
fn is_below_blank(sheet: &Sheet, blanks: &[bool]) -> bool {
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
    fn of(sheet: &Sheet) -> Option<Self> {
        let bits = |rate| match rate {
            SheetRate::PerSecond(per_s) => f64::to_bits(per_s),
            SheetRate::Unlimited => f64::INFINITY.to_bits(),
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
    fn of(sheet: &Sheet) -> Self {
        let run = sheet.metadata.iter().find(|(key, _)| key == RUN_NUMBER);
        Self { load: Load::of(sheet), run: run.map(|(_, number)| number.clone()) }
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
    fn add(&mut self, traits: Vec<Trait>, condition: Condition, stands_apart: bool, repeats: bool) {
        let last = self.last.get(&traits).copied().filter(|last| {
            let group = &self.all[*last];
            let is_known = condition.load.is_some() || stands_apart;
            let comes_again = is_known && group.conditions.contains(&condition);
            repeats || !comes_again || (group.last.as_ref() == Some(&condition) && !stands_apart)
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
        let mut names = self.said();
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

    fn said(&self) -> Vec<String> {
        let mut shared: BTreeMap<&Trait, usize> = BTreeMap::new();
        for said in self.all.iter().flat_map(|group| &group.traits) {
            *shared.entry(said).or_default() += 1;
        }
        let tells = |said: &&Trait| {
            matches!(said.kind, Kind::Named | Kind::Parameter(_))
                || if self.all.len() == 1 {
                    matches!(said.kind, Kind::Label)
                } else {
                    shared[*said] < self.all.len()
                }
        };
        let name = |group: &Group| {
            let words: Vec<_> =
                group.traits.iter().filter(tells).map(|said| said.words.as_str()).collect();
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
