//! Sweeps: levels, servers side by side and searches, from flags and files to a study. Everything is
//! checked before the first request.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;

use inferometer_analysis::check_goals;
use inferometer_model::endpoint::BaseUrlError;
use inferometer_model::spec::{Extent, LoadShape, LoadTable, PerSecond, Rate, Slo};
use inferometer_model::study::{
    Condition, Dimension, Fine, Level, Question, RunOrder, Search, StudySpec, Sweep,
    requests_at_once,
};
use inferometer_model::whole::to_u32;
use inferometer_model::{BaseUrl, Spec, SpecDraft};
use inferometer_study::play::{known_specs, server_name};
use schemars::Schema;

use super::StudyPlan;
use crate::arguments::{ExperimentArguments, Grammar, SweepTable, Written};
use crate::commands::simulate::virtual_spec;
use crate::draft::{Drafted, draft_sweep};
use crate::experiment::is_file;
use crate::experiment::schema::embedded;
use crate::failure::{Failure, Result};

const RESOLUTION: f64 = 0.05;
/// Fewer runs decide too little where a goal is nearly met.
const SEARCH_RUNS_MIN: u32 = 10;
/// With fewer waves the first and the last are a large part of a run.
const WAVES_FEW: u64 = 5;
pub(super) const CONCURRENCIES: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
/// Limits against mistakes.
const LEVELS_MAX: usize = 200;

pub(crate) fn plan(experiment: &ExperimentArguments, is_virtual: bool) -> Result<StudyPlan> {
    check_load(experiment)?;
    let base = draft_sweep(experiment, None)?;
    let (table, repetition) = (base.sweep.clone(), base.repetition.clone());
    let restart_timeout = base.restart_timeout;
    let (dimension, sorted) = levels(&base)?;
    let waves = waves(&base, dimension)?;
    let steps = table.fine.and_then(NonZeroU32::new);
    if table.fine_runs.is_some() && steps.is_none() {
        return Err(Failure::usage("--fine-runs are runs of --fine; set it too, or leave it out"));
    }
    if steps.is_some() && sorted.levels.len() < 2 {
        return Err(Failure::usage("--fine looks between levels, and there are fewer than two")
            .hint("give levels with --rates or --concurrencies"));
    }
    let runs = table.fine_runs.map_or(Some(repetition.runs), NonZeroU32::new);
    let fine = steps.zip(runs).map(|(steps, runs)| Fine { steps, runs });
    let searched = search(&table, repetition.runs.get(), &sorted)?;
    let sweep = Sweep { dimension, levels: sorted.levels, waves, fine, find: searched };
    let named = match &table.targets {
        Some(targets) => drafts(experiment, targets)?,
        None => vec![(String::new(), base)],
    };
    let mut conditions = Vec::new();
    for (name, drafted) in named {
        let is_server = drafted.spec.url.is_some() || drafted.spec.deployment.is_some();
        if is_virtual && is_server && table.targets.is_some() {
            let message = format!("--target {name} is a server, which cannot run in virtual time");
            let hint = "name engines instead, as NAME=embedded:PROFILE";
            return Err(Failure::usage(message).hint(hint));
        }
        let spec = condition(&drafted, &sweep, &table, is_virtual)?;
        let name = if name.is_empty() { server_name(&spec) } else { name };
        conditions.push((Condition { name, spec }, drafted.secrets));
    }
    let order = table.order.unwrap_or(RunOrder::Interleaved);
    let plan = StudyPlan::new(Question::Sweep(sweep), conditions, repetition, order);
    let note = "the levels are sorted, each once".to_owned();
    let note = (!sorted.was_sorted).then_some(note);
    let notes =
        note.into_iter().chain(few_waves(&plan.study)).chain(at_once(&plan.study)).collect();
    Ok(StudyPlan { restart_timeout, notes, ..plan })
}

/// The load of one run has no place beside many; that of a file is replaced.
fn check_load(arguments: &ExperimentArguments) -> Result<()> {
    let load = &arguments.tables.load;
    let typed = [
        (load.rate.is_some(), "--rate", "--rates"),
        (load.ramp.is_some(), "--ramp", "--rates"),
        (load.concurrency.is_some(), "--concurrency", "--concurrencies"),
        (load.speed.is_some(), "--speed", "--rates"),
    ];
    let Some((_, flag, many)) = typed.into_iter().find(|(is_typed, ..)| *is_typed) else {
        return Ok(());
    };
    Err(Failure::usage(format!("{flag} is the load of one run, and a sweep has many"))
        .hint(format!("set them with {many}, such as {many} 1,2,4,8")))
}

fn levels(drafted: &Drafted) -> Result<(Dimension, SortedLevels)> {
    let (table, load) = (&drafted.sweep, &drafted.spec.load);
    let (dimension, sorted) = match (&table.rates, &table.concurrencies, &table.find) {
        (Some(_), Some(_), _) => {
            return Err(Failure::usage(
                "--rates and --concurrencies cannot be combined: choose one of them",
            ));
        }
        (Some(rates), None, _) => (Dimension::Rate, rates.0.sorted()),
        (None, Some(concurrencies), _) => (Dimension::Concurrency, concurrencies.0.sorted()),
        (None, None, Some(find)) => (find.0.dimension, Levels::<true>(Vec::new()).sorted()),
        // A file with rates must not become a sweep of concurrencies unnoticed.
        (None, None, None) if load.rate.is_some() || load.ramp.is_some() => {
            return Err(Failure::usage(
                "the file has a rate or a ramp, but no levels to measure at",
            )
            .hint("set --rates or --concurrencies, such as --rates 1,2,4,8"));
        }
        (None, None, None) => {
            (Dimension::Concurrency, Levels::<false>(CONCURRENCIES.to_vec()).sorted())
        }
    };
    match &table.find {
        Some(find) if find.0.dimension != dimension => {
            Err(Failure::usage(match find.0.dimension {
                Dimension::Rate => "--find searches a rate, so it needs --rates",
                Dimension::Concurrency => {
                    "--find searches a concurrency, so it needs --concurrencies"
                }
            }))
        }
        _ => Ok((dimension, sorted)),
    }
}

/// Requests of each level as a multiple of its concurrency: as given, or, without a number of requests or a
/// duration, so many that filling and draining do not matter.
fn waves(drafted: &Drafted, dimension: Dimension) -> Result<Option<NonZeroU32>> {
    let load = &drafted.spec.load;
    let has_length = load.requests.is_some() || load.duration.is_some();
    match (drafted.sweep.waves, dimension) {
        (Some(0), _) => Err(Failure::usage("--waves must be at least 1")),
        (Some(_), Dimension::Rate) => {
            Err(Failure::usage("--waves is a multiple of the concurrency, and a rate has none")
                .hint("set the length of each level with --requests or --duration"))
        }
        (Some(_), Dimension::Concurrency) if has_length => Err(Failure::usage(
            "--waves, --requests and --duration all set the length of a level; choose one",
        )),
        (Some(waves), Dimension::Concurrency) => Ok(NonZeroU32::new(waves)),
        // The length of a level, if none is given.
        (None, Dimension::Concurrency) if !has_length => Ok(NonZeroU32::new(10)),
        (None, Dimension::Rate | Dimension::Concurrency) => Ok(None),
    }
}

/// A note on an unlimited rate among levels that have a duration.
fn at_once(study: &StudySpec) -> Option<String> {
    let Extent::Duration(duration) = study.conditions.first()?.spec.load.extent else {
        return None;
    };
    let LoadShape::Open { rate: Rate::Unlimited, cap: None, .. } =
        known_specs(study).pop()?.load.shape
    else {
        return None;
    };
    let requests = requests_at_once(&study.sweep()?.levels, duration)?;
    Some(format!(
        "at an unlimited rate {requests} requests are sent at once, as many as the highest rate sends \
         in {}",
        Written(duration).write()
    ))
}

/// A note on a level that is so short that it mostly fills and drains.
fn few_waves(study: &StudySpec) -> Option<String> {
    let highest = known_specs(study).pop()?;
    let LoadShape::Closed { concurrency, .. } = highest.load.shape else { return None };
    let Extent::Requests(requests) = highest.load.extent else { return None };
    let slots = u64::from(concurrency.get());
    let few = if requests.get() < slots {
        "fewer than that: the concurrency is never reached"
    } else if requests.get() < slots * WAVES_FEW {
        "few waves: ramp-up and drain affect the result"
    } else {
        return None;
    };
    Some(format!("at {concurrency} at once {requests} requests are {few}; --waves 10 sends more"))
}

fn search(table: &SweepTable, runs: u32, sorted: &SortedLevels) -> Result<Option<Search>> {
    let Some(find) = &table.find else {
        let stray = [
            (table.from.is_some(), "--from"),
            (table.at_most.is_some(), "--at-most"),
            (table.resolution.is_some(), "--resolution"),
        ];
        let stray = stray.into_iter().find(|(is_set, _)| *is_set);
        return stray.map_or(Ok(None), |(_, flag)| {
            Err(Failure::usage(format!("{flag} is for a search; set --find too, or leave it out")))
        });
    };
    let lowest = sorted.levels.first().and_then(|level| level.place());
    let lowest = lowest.filter(|level| level.is_finite());
    let bound = |bound: &Option<Written<Bound>>| bound.as_ref().map(|bound| bound.0.0);
    let from = bound(&table.from).or(lowest).unwrap_or(1.0);
    let at_most = bound(&table.at_most).unwrap_or(1_000.0);
    if at_most <= from {
        return Err(Failure::usage(format!(
            "the search goes up from {from} (--from) and may not exceed {at_most} (--at-most)"
        )));
    }
    let ends = [("--from", from), ("--at-most", at_most)];
    let broken = ends.into_iter().find(|(_, level)| whole(*level).is_none());
    if let Some((flag, level)) = broken.filter(|_| find.0.dimension == Dimension::Concurrency) {
        return Err(Failure::usage(format!("{flag} {level} is not a whole number of requests")));
    }
    Ok(Some(Search {
        goals: find.0.goals.clone(),
        from,
        at_most,
        resolution: table.resolution.as_ref().map_or(RESOLUTION, |share| share.0),
        runs_at_most: NonZeroU32::new(runs.max(SEARCH_RUNS_MIN)).unwrap_or(NonZeroU32::MIN),
    }))
}

/// The spec of a server at its lowest level, after every level was found possible.
fn condition(
    drafted: &Drafted,
    sweep: &Sweep,
    table: &SweepTable,
    simulated: bool,
) -> Result<Spec> {
    let draft = &drafted.spec;
    if draft.saved.is_some() || draft.workload.source.trace.is_some() {
        return Err(Failure::usage(
            "a saved plan or a trace has its own send times, so it has no levels",
        )
        .hint("send it with `inferometer run`, a trace at other speeds with --speed"));
    }
    let searched = sweep.find.as_ref().and_then(|find| match sweep.dimension {
        Dimension::Rate => Some(Level::Rate(find.from)),
        Dimension::Concurrency => whole(find.from).map(Level::Concurrency),
    });
    let levels: Vec<Level> = sweep.levels.iter().copied().chain(searched).collect();
    // Waves that are given are counted exactly; a default must be long enough to be useful.
    let least = match (table.waves, &table.find) {
        (Some(_), _) => 1,
        // The length of a run of a search, if none is given: enough to judge a p99 between runs.
        (None, Some(_)) => 1_000,
        (None, None) => 100,
    };
    spec_at_levels(drafted, &levels, sweep.waves, least, simulated)
}

/// The spec at the first of these levels, after all of them were found possible. Without `waves` the
/// draft says how many requests there are.
pub(super) fn spec_at_levels(
    drafted: &Drafted,
    levels: &[Level],
    waves: Option<NonZeroU32>,
    least: u64,
    simulated: bool,
) -> Result<Spec> {
    let mut first = None;
    for level in levels {
        let at_once = drafted.spec.load.duration.and_then(|it| requests_at_once(levels, it.0));
        let load = load_at(&drafted.spec.load, *level, waves, least);
        // All leaves at once, so that a duration means nothing.
        let is_endless =
            *level == Level::Unlimited && load.requests.is_none() && load.max_concurrency.is_none();
        let load = match at_once.filter(|_| is_endless) {
            Some(requests) => {
                LoadTable { requests: Some(requests.get()), duration: None, until: None, ..load }
            }
            None => load,
        };
        let draft = SpecDraft { load, ..drafted.spec.clone() };
        let spec =
            if simulated { virtual_spec(drafted, draft)? } else { drafted.resolve_as(draft)? };
        first.get_or_insert(spec);
    }
    let first = first.ok_or_else(|| Failure::usage("there is no level to measure at"))?;
    check_goals(&first).map_err(Failure::from_usage)?;
    Ok(first)
}

fn load_at(load: &LoadTable, level: Level, waves: Option<NonZeroU32>, least: u64) -> LoadTable {
    let bare =
        LoadTable { concurrency: None, rate: None, ramp: None, ramp_curve: None, ..load.clone() };
    match level {
        Level::AsAsked => load.clone(),
        Level::Rate(per_s) => {
            let has_length = bare.requests.is_some() || bare.duration.is_some();
            let requests = if has_length { bare.requests } else { Some(least) };
            LoadTable { rate: Some(PerSecond(per_s)), requests, ..bare }
        }
        // Nothing is spaced where everything leaves at once.
        Level::Unlimited => LoadTable {
            rate: Some(PerSecond(f64::INFINITY)),
            arrivals: None,
            burstiness: None,
            ..bare
        },
        Level::Concurrency(requests) => LoadTable {
            concurrency: Some(requests.get()),
            requests: waves
                .map(|waves| (u64::from(waves.get()) * u64::from(requests.get())).max(least))
                .or(bare.requests),
            ..bare
        },
    }
}

/// The highest level at which every goal is met.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Find {
    pub(crate) dimension: Dimension,
    pub(crate) goals: Vec<Slo>,
}

impl Grammar for Find {
    fn read(text: &str) -> Result<Self, String> {
        let wanted = || {
            format!(
                "`{text}` is not a search; write `max rate where ttft.p99<500ms` or `max \
                 concurrency where ttft.p99<1s, tpot.p99<50ms`"
            )
        };
        let (what, goals) = text.split_once(" where ").ok_or_else(wanted)?;
        let dimension = match what.split_whitespace().collect::<Vec<_>>()[..] {
            ["max", "rate"] => Dimension::Rate,
            ["max", "concurrency"] => Dimension::Concurrency,
            _ => return Err(wanted()),
        };
        let goals = goals.split(',').map(|goal| goal.trim().parse()).collect::<Result<_, _>>()?;
        Ok(Self { dimension, goals })
    }

    fn write(&self) -> String {
        let what = match self.dimension {
            Dimension::Rate => "rate",
            Dimension::Concurrency => "concurrency",
        };
        let goals: Vec<String> = self.goals.iter().map(Slo::to_string).collect();
        format!("max {what} where {}", goals.join(", "))
    }

    fn schema() -> Schema {
        embedded("find")
    }
}

/// Levels as they are typed, `1,3,5,inf`, `500..1000:50` or `1..256*2`: requests per second, of which
/// infinite is everything at once, or requests in flight.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Levels<const ARE_RATES: bool>(Vec<f64>);

pub(crate) type RateLevels = Levels<true>;
pub(crate) type ConcurrencyLevels = Levels<false>;

/// Levels from the lowest to the highest, each once; and whether they were typed so.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SortedLevels {
    pub(super) levels: Vec<Level>,
    pub(super) was_sorted: bool,
}

impl SortedLevels {
    /// The levels of a file, or the one that the spec of the condition has.
    pub(super) fn from_file(levels: Option<&Written<ConcurrencyLevels>>) -> Self {
        let as_asked = || Self { levels: vec![Level::AsAsked], was_sorted: true };
        levels.map_or_else(as_asked, |levels| levels.0.sorted())
    }
}

impl<const ARE_RATES: bool> Levels<ARE_RATES> {
    pub(super) fn new(levels: Vec<f64>) -> Self {
        Self(levels)
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The levels of one of so many servers that share the load.
    pub(super) fn divided(&self, servers: f64) -> Self {
        let share = |level: f64| {
            if ARE_RATES { level / servers } else { (level / servers).round().max(1.0) }
        };
        Self(self.0.iter().map(|level| share(*level)).collect())
    }

    fn sorted(&self) -> SortedLevels {
        let mut numbers = self.0.clone();
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        let was_sorted = numbers == self.0;
        let level = |number: f64| match (ARE_RATES, number.is_infinite()) {
            (true, true) => Level::Unlimited,
            (true, false) => Level::Rate(number),
            (false, _) => Level::Concurrency(whole(number).unwrap_or(NonZeroU32::MIN)),
        };
        SortedLevels { levels: numbers.into_iter().map(level).collect(), was_sorted }
    }
}

/// A level of a closed loop.
fn whole(number: f64) -> Option<NonZeroU32> {
    let is_whole = number.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&number);
    NonZeroU32::new(to_u32(number)).filter(|_| is_whole)
}

impl<const ARE_RATES: bool> Grammar for Levels<ARE_RATES> {
    fn read(text: &str) -> Result<Self, String> {
        let mut numbers = Vec::new();
        for part in text.split(',') {
            numbers.extend(read_part(part.trim())?);
            if LEVELS_MAX < numbers.len() {
                return Err(format!("more than {LEVELS_MAX} levels; use larger steps"));
            }
        }
        let is_level =
            |number: &&f64| if ARE_RATES { 0.0 < **number } else { whole(**number).is_some() };
        match numbers.iter().find(|number| !is_level(number)) {
            None => Ok(Self(numbers)),
            Some(wrong) if ARE_RATES => Err(format!("{wrong} is not a rate; rates are above 0")),
            Some(wrong) => Err(format!(
                "{wrong} is not a number of requests in flight; write whole numbers from 1"
            )),
        }
    }

    fn write(&self) -> String {
        self.0.iter().map(f64::to_string).collect::<Vec<_>>().join(",")
    }

    fn schema() -> Schema {
        embedded(if ARE_RATES { "rates" } else { "concurrencies" })
    }
}

fn read_part(text: &str) -> Result<Vec<f64>, String> {
    let wanted = || {
        format!(
            "`{text}` is not a level; write numbers such as 1,3,5, and ranges such as 500..1000:50 (in \
             steps of 50) or 1..64*2 (by a factor of 2)"
        )
    };
    let number = |part: &str| {
        let number = part.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(wanted)
    };
    let Some((from, rest)) = text.split_once("..") else {
        return match text.to_ascii_lowercase().as_str() {
            "inf" | "unlimited" => Ok(vec![f64::INFINITY]),
            _ => Ok(vec![number(text)?]),
        };
    };
    let (to, step, grows) = match (rest.split_once(':'), rest.split_once('*')) {
        (Some((to, step)), None) => (to, step, false),
        (None, Some((to, factor))) => (to, factor, true),
        (Some(_), Some(_)) | (None, None) => return Err(wanted()),
    };
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    if to < from || from <= 0.0 {
        return Err(format!("`{text}` does not rise from a level above 0"));
    }
    if step <= 0.0 || grows && step <= 1.0 {
        let least = if grows { "a factor above 1" } else { "a step above 0" };
        return Err(format!("`{text}` never ends: it needs {least}"));
    }
    let (mut levels, mut place, mut level) = (Vec::new(), 0.0, from);
    // The end belongs to it, also where rounding puts it a hair too far.
    while level <= to * (1.0 + 1e-9) && levels.len() <= LEVELS_MAX {
        // 0.1 + 2 × 0.1 is written 0.3.
        levels.push((level * 1e9).round() / 1e9);
        place += 1.0;
        level = if grows { level * step } else { from + place * step };
    }
    Ok(levels)
}

/// Where a search begins or ends: a number above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bound(pub(crate) f64);

impl Grammar for Bound {
    fn read(text: &str) -> Result<Self, String> {
        let number = text.trim().parse::<f64>().ok();
        let bound = number.filter(|number| number.is_finite() && 0.0 < *number).map(Self);
        bound.ok_or_else(|| format!("`{text}` is not a bound of a search; write a number above 0"))
    }

    fn write(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> Schema {
        embedded("bound")
    }
}

/// Where one of several servers is.
#[derive(Clone, Debug, PartialEq)]
enum TargetLocation {
    Url(BaseUrl),
    /// The engine of the experiment, or another profile.
    Embedded(Option<String>),
    File(PathBuf),
}

/// The drafts of the servers that `--target NAME=WHERE` names.
fn drafts(arguments: &ExperimentArguments, typed: &[String]) -> Result<Vec<(String, Drafted)>> {
    if let Some(url) =
        arguments.places.iter().chain(&arguments.url).find(|place| place.contains("://"))
    {
        return Err(Failure::usage(format!("{url} and --target cannot be combined"))
            .hint(format!("name it like the other servers: --target NAME={url}")));
    }
    let named = typed.iter().map(|text| read_target(text)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    if let Some((name, _)) = named.iter().find(|(name, _)| !seen.insert(name)) {
        return Err(Failure::usage(format!("--target {name}: the name is given twice")));
    }
    let draft = |(name, place): &(String, TargetLocation)| {
        let file = if let TargetLocation::File(path) = place { Some(path.as_path()) } else { None };
        let mut drafted = draft_sweep(arguments, file)?;
        let spec = &mut drafted.spec;
        match place {
            TargetLocation::Url(base) => (spec.url, spec.deployment) = (Some(base.clone()), None),
            TargetLocation::Embedded(profile) => {
                (spec.url, spec.deployment) = (None, None);
                if profile.is_some() {
                    spec.engine.profile.clone_from(profile);
                }
            }
            TargetLocation::File(_) => {}
        }
        Ok((name.clone(), drafted))
    };
    named.iter().map(draft).collect()
}

fn read_target(text: &str) -> Result<(String, TargetLocation)> {
    let wanted = |why: &str| {
        Failure::usage(format!("--target {text}: {why}")).hint(
            "write NAME=URL, NAME=embedded:PROFILE, or NAME=FILE.toml with a [target], [engine] \
             or [deploy] table",
        )
    };
    let (name, place) = text.split_once('=').ok_or_else(|| wanted("there is no `=`"))?;
    let (name, place) = (name.trim(), place.trim());
    // Names are shown in tables.
    if name.is_empty() || 40 < name.chars().count() {
        return Err(wanted("a name has from 1 to 40 characters"));
    }
    let place = match place.strip_prefix("embedded") {
        Some("") => TargetLocation::Embedded(None),
        Some(rest) if rest.starts_with(':') => TargetLocation::Embedded(Some(rest[1..].to_owned())),
        _ if is_file(place) => TargetLocation::File(PathBuf::from(place)),
        _ => {
            let url = place.parse().map_err(|error: BaseUrlError| wanted(&error.to_string()))?;
            TargetLocation::Url(url)
        }
    };
    Ok((name.to_owned(), place))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use inferometer_study::Study;

    use super::*;
    use crate::arguments::{Arguments, Command};

    #[track_caller]
    fn assert_reads(text: &str, wanted: &[f64]) {
        assert_eq!(RateLevels::read(text).unwrap().0, wanted, "{text}");
    }

    #[test]
    fn levels_are_numbers_and_ranges() {
        assert_reads("1,3, 5,inf", &[1.0, 3.0, 5.0, f64::INFINITY]);
        assert_reads("0.5", &[0.5]);
        assert_reads("500..700:50", &[500.0, 550.0, 600.0, 650.0, 700.0]);
        assert_reads("0.1..0.5:0.1", &[0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_reads("1..10:4", &[1.0, 5.0, 9.0]);
        assert_reads("1..16*2,20", &[1.0, 2.0, 4.0, 8.0, 16.0, 20.0]);
        assert_reads("2..3*1.5", &[2.0, 3.0]);
    }

    #[test]
    fn what_is_no_level_is_refused() {
        let wrong = [
            "",
            "a",
            "1,,2",
            "0",
            "-1",
            "nan",
            "1..2",
            "5..1:1",
            "1..5:0",
            "1..5*1",
            "1..5*0.5",
            "0..5:1",
            "1..5:1*2",
            "1..1000:1",
            "1..inf:1",
        ];
        for text in wrong {
            assert!(RateLevels::read(text).is_err(), "{text}");
        }
        for text in ["0", "1.5", "inf", "1..2:0.5"] {
            assert!(ConcurrencyLevels::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_search_has_finite_bounds_above_zero() {
        assert_eq!(Bound::read("0.5"), Ok(Bound(0.5)));
        for text in ["inf", "nan", "0", "-1", "", "fast"] {
            assert!(Bound::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_does_not_rise_is_put_in_order() {
        let SortedLevels { levels, was_sorted } =
            ConcurrencyLevels::read("4,1,4").unwrap().sorted();
        let level = |number| Level::Concurrency(NonZeroU32::new(number).unwrap());
        assert_eq!((levels, was_sorted), (vec![level(1), level(4)], false));
        let SortedLevels { levels, was_sorted } = RateLevels::read("1,inf").unwrap().sorted();
        assert_eq!((levels, was_sorted), (vec![Level::Rate(1.0), Level::Unlimited], true));
    }

    #[test]
    fn a_question_names_a_dimension_and_goals() {
        let find = Find::read("max  rate where ttft.p99<500ms,tpot.p99 < 50ms").unwrap();
        assert_eq!(find.dimension, Dimension::Rate);
        assert_eq!(find.write(), "max rate where ttft.p99<500ms, tpot.p99<50ms");
        let wrong = [
            "",
            "max rate",
            "max rate where",
            "max rate where ",
            "min rate where ttft.p99<1s",
            "max load where ttft.p99<1s",
            "max rate where soon",
            "max rate where ttft.p99<1s,",
        ];
        for text in wrong {
            assert!(Find::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn goals_are_numbers_of_the_run() {
        let problem = |text: &str| {
            let find = format!("max rate where {text}");
            let typed = ["inferometer", "sweep", "--find", &find];
            let typed = Arguments::try_parse_from(typed).unwrap();
            let Some(Command::Sweep(arguments)) = typed.command else { panic!("no sweep") };
            let arguments = arguments.merged();
            Study::new(plan(&arguments, false).unwrap().study).unwrap_err().to_string()
        };
        assert!(problem("ttf.p99<1s").contains("ttft"), "the nearest is named");
        assert!(problem("ttft<1s").contains("ttft.p99"), "of each request");
        assert!(problem("ttft.p42<1s").contains("p99"));
        assert!(problem("goodput>5").contains("goodput"), "nothing to count it by");
    }

    #[test]
    fn a_server_is_a_url_a_profile_or_a_file() {
        let place = |text: &str| read_target(text).unwrap().1;
        assert_eq!(place("a=http://h:1"), TargetLocation::Url("http://h:1".parse().unwrap()));
        assert_eq!(place("a=embedded"), TargetLocation::Embedded(None));
        assert_eq!(place("a=embedded:h100"), TargetLocation::Embedded(Some("h100".to_owned())));
        assert_eq!(place("a = v2.toml"), TargetLocation::File("v2.toml".into()));
        for wrong in ["a", "=http://h:1", "a=", "a=not a url"] {
            assert!(read_target(wrong).is_err(), "{wrong}");
        }
    }
}
