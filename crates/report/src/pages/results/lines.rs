//! Results as lines of a chart: one for each configuration, with a level for each load.

use std::collections::{BTreeMap, BTreeSet};

use inferometer_analysis::sheet::{Sheet, SheetRate, Tool};

use super::words::unsaid;
use crate::fmt::setting;

/// What an axis below counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadKind {
    Rate,
    Concurrency,
}

#[derive(Clone, Debug)]
pub(super) struct Line<'a> {
    /// No other line has it.
    pub(super) name: String,
    /// `None` where its results do not say what was asked of the server.
    pub(super) kind: Option<LoadKind>,
    /// By rising load.
    pub(super) levels: Vec<Level<'a>>,
    key: Key<'a>,
}

/// One load; several results of it are repeats.
#[derive(Clone, Debug)]
pub(super) struct Level<'a> {
    /// Infinite where there was no limit; `None` where it is not said.
    pub(super) load: Option<f64>,
    pub(super) sheets: Vec<&'a Sheet>,
}

/// What tells configurations apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    configuration: &'a str,
    model: Option<&'a str>,
    tool: Tool,
    tensor_parallel: Option<u32>,
    simulated: bool,
    /// Where rates were asked, and not the same limit with all of them.
    max_concurrency: Option<u32>,
}

/// In the order in which they appear.
pub(super) fn lines(sheets: &[Sheet]) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for (key, sheets) in grouped(sheets.iter(), Key::of) {
        let kind = kind(&sheets);
        let limits = grouped(sheets.iter().copied(), |sheet| sheet.max_concurrency);
        if kind == Some(LoadKind::Rate) && 1 < limits.len() {
            lines.extend(limits.into_iter().map(|(limit, sheets)| {
                Line::new(Key { max_concurrency: limit, ..key.clone() }, kind, &sheets)
            }));
        } else {
            lines.push(Line::new(key, kind, &sheets));
        }
    }
    name(&mut lines);
    lines
}

/// Neighbours or not, what has the same key is together; keys in the order of their first.
fn grouped<'a, K: Clone + Ord>(
    sheets: impl Iterator<Item = &'a Sheet>,
    key: impl Fn(&'a Sheet) -> K,
) -> Vec<(K, Vec<&'a Sheet>)> {
    let mut groups: Vec<(K, Vec<&Sheet>)> = Vec::new();
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    for sheet in sheets {
        let own = key(sheet);
        if let Some(place) = places.get(&own) {
            groups[*place].1.push(sheet);
        } else {
            places.insert(own.clone(), groups.len());
            groups.push((own, vec![sheet]));
        }
    }
    groups
}

/// Who asked for rates is told by rates, its unlimited one too; who only limited what is in flight
/// at once, by that.
fn kind(sheets: &[&Sheet]) -> Option<LoadKind> {
    let has_rate = |sheet: &&Sheet| matches!(sheet.request_rate, Some(SheetRate::PerSecond(_)));
    if sheets.iter().any(has_rate) {
        Some(LoadKind::Rate)
    } else if sheets.iter().any(|sheet| sheet.max_concurrency.is_some()) {
        Some(LoadKind::Concurrency)
    } else if sheets.iter().any(|sheet| sheet.request_rate.is_some()) {
        Some(LoadKind::Rate)
    } else {
        None
    }
}

impl<'a> Line<'a> {
    fn new(key: Key<'a>, kind: Option<LoadKind>, sheets: &[&'a Sheet]) -> Self {
        let loads = grouped(sheets.iter().copied(), |sheet| load(sheet, kind).map(f64::to_bits));
        let mut levels: Vec<Level<'a>> = loads
            .into_iter()
            .map(|(load, sheets)| Level { load: load.map(f64::from_bits), sheets })
            .collect();
        levels.sort_by(|one, other| {
            let place = |level: &Level<'_>| level.load.unwrap_or(f64::NAN);
            place(one).total_cmp(&place(other))
        });
        Self { name: String::new(), kind, levels, key }
    }

    /// How many of its levels have a place on an axis.
    pub(super) fn placed(&self) -> usize {
        self.levels.iter().filter(|level| level.load.is_some()).count()
    }

    pub(super) fn sheets(&self) -> impl Iterator<Item = &'a Sheet> {
        self.results().map(|(_, sheet)| sheet)
    }

    /// Each with its load.
    pub(super) fn results(&self) -> impl Iterator<Item = (Option<f64>, &'a Sheet)> {
        let of_level = |level: &Level<'a>| (level.load, level.sheets.clone());
        let levels = self.levels.iter().map(of_level);
        levels.flat_map(|(load, sheets)| sheets.into_iter().map(move |sheet| (load, sheet)))
    }
}

fn load(sheet: &Sheet, kind: Option<LoadKind>) -> Option<f64> {
    match (kind?, sheet.request_rate) {
        (LoadKind::Rate, Some(SheetRate::PerSecond(rate))) => Some(rate),
        (LoadKind::Rate, Some(SheetRate::Unlimited)) => Some(f64::INFINITY),
        (LoadKind::Rate, None) => None,
        (LoadKind::Concurrency, rate) => {
            // As many as there are requests, where that was asked; what is not said is no load.
            let unlimited = (rate == Some(SheetRate::Unlimited)).then_some(f64::INFINITY);
            sheet.max_concurrency.map(f64::from).or(unlimited)
        }
    }
}

impl LoadKind {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Rate => "Request rate",
            Self::Concurrency => "Concurrency",
        }
    }

    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Rate => "req/s",
            Self::Concurrency => "",
        }
    }

    /// In a sentence, after `at`.
    pub(super) fn words(self, load: f64) -> String {
        match self {
            Self::Rate if load.is_infinite() => "unlimited rate".to_owned(),
            Self::Rate => format!("{} req/s", setting(load)),
            Self::Concurrency if load.is_infinite() => "unlimited concurrency".to_owned(),
            Self::Concurrency => format!("concurrency {}", setting(load)),
        }
    }
}

/// A load in words, where it is known.
pub(super) fn load_words(kind: Option<LoadKind>, load: Option<f64>) -> String {
    kind.zip(load).map_or_else(|| unsaid("load"), |(kind, load)| kind.words(load))
}

impl<'a> Key<'a> {
    fn of(sheet: &'a Sheet) -> Self {
        Self {
            configuration: &sheet.configuration,
            model: sheet.model.as_deref(),
            tool: sheet.source.tool,
            tensor_parallel: sheet.tensor_parallel,
            simulated: sheet.source.simulated,
            max_concurrency: None,
        }
    }

    /// What may be said of it, the most telling first.
    fn parts(&self) -> [String; 6] {
        [
            self.configuration.to_owned(),
            self.model.map_or_else(|| unsaid("model"), str::to_owned),
            self.tool.told().to_owned(),
            self.tensor_parallel.map_or_else(|| unsaid("TP"), |gpus| format!("TP {gpus}")),
            if self.simulated { "simulated" } else { "measured" }.to_owned(),
            self.max_concurrency.map_or_else(
                || "any number in flight".to_owned(),
                |requests| format!("at most {requests} in flight"),
            ),
        ]
    }
}

/// By the first part, and by as many others that differ as it takes to tell all lines apart.
fn name(lines: &mut [Line<'_>]) {
    let parts: Vec<[String; 6]> = lines.iter().map(|line| line.key.parts()).collect();
    let mut names: Vec<String> = parts.iter().map(|parts| parts[0].clone()).collect();
    for part in 1..6 {
        let distinct: BTreeSet<&String> = names.iter().collect();
        let is_unique = distinct.len() == names.len() && !names.iter().any(String::is_empty);
        let differs = parts.iter().any(|one| one[part] != parts[0][part]);
        if is_unique || (!differs && names.iter().all(|name| !name.is_empty())) {
            continue;
        }
        for (name, parts) in names.iter_mut().zip(&parts) {
            if name.is_empty() {
                name.clone_from(&parts[part]);
            } else if differs {
                *name = format!("{name}, {}", parts[part]);
            }
        }
    }
    for (line, name) in lines.iter_mut().zip(names) {
        line.name = name;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(configuration: &str, rate: Option<SheetRate>, limit: Option<u32>) -> Sheet {
        Sheet {
            configuration: configuration.to_owned(),
            model: Some("m".to_owned()),
            request_rate: rate,
            max_concurrency: limit,
            ..Sheet::default()
        }
    }

    fn told(sheets: &[Sheet]) -> Vec<(String, Vec<String>)> {
        let loads = |line: &Line<'_>| {
            line.levels
                .iter()
                .map(|level| {
                    let load = load_words(line.kind, level.load);
                    format!("{load} x{}", level.sheets.len())
                })
                .collect()
        };
        lines(sheets).iter().map(|line| (line.name.clone(), loads(line))).collect()
    }

    #[test]
    fn repeats_are_one_level_and_no_limit_is_the_last() {
        let rate = |rate| Some(SheetRate::PerSecond(rate));
        let sheets = [
            sheet("v1", Some(SheetRate::Unlimited), None),
            sheet("v1", rate(3.0), None),
            sheet("v0", rate(1.0), None),
            sheet("v1", rate(1.0), None),
            sheet("v1", rate(3.0), None),
        ];
        let expected = [
            ("v1", vec!["1 req/s x1", "3 req/s x2", "unlimited rate x1"]),
            ("v0", vec!["1 req/s x1"]),
        ];
        let found = told(&sheets);
        for ((name, loads), (expected_name, expected_loads)) in found.iter().zip(expected) {
            assert_eq!(name, expected_name);
            assert_eq!(*loads, expected_loads);
        }
    }

    #[test]
    fn rates_under_different_limits_are_no_repeats() {
        let rate = Some(SheetRate::PerSecond(2.0));
        let found = told(&[sheet("a", rate, Some(8)), sheet("a", rate, None)]);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a, at most 8 in flight", "a, any number in flight"]);
    }

    #[test]
    fn who_limits_only_what_is_in_flight_is_told_by_that() {
        let unlimited = Some(SheetRate::Unlimited);
        let found = told(&[sheet("", unlimited, Some(256)), sheet("", unlimited, Some(128))]);
        assert_eq!(
            found,
            [(
                "m".to_owned(),
                vec!["concurrency 128 x1".to_owned(), "concurrency 256 x1".to_owned()]
            )]
        );
        assert_eq!(told(&[sheet("", None, None)])[0].1, ["load not said x1"]);
    }

    #[test]
    fn a_load_that_is_not_said_is_not_an_unlimited_one() {
        let found = told(&[
            sheet("", None, None),
            sheet("", Some(SheetRate::Unlimited), None),
            sheet("", None, Some(8)),
        ]);
        assert_eq!(
            found[0].1,
            ["concurrency 8 x1", "unlimited concurrency x1", "load not said x1"]
        );
    }

    #[test]
    fn two_tools_are_two_lines() {
        let mut sheets = [sheet("", None, Some(8)), sheet("", None, Some(8))];
        sheets[1].source.tool = Tool::Vllm;
        let names: Vec<String> = told(&sheets).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["m, Inferometer", "m, vLLM"]);
    }
}
