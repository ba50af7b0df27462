//! From what was typed to what is asked: levels, servers and what is looked for, all checked
//! before the first request.

use std::num::NonZeroU32;

use inferometer_analysis::check_slos;
use inferometer_model::campaign::{
    self, CampaignSpec, Condition, Dimension, Fine, Level, Order, Question, Search,
};
use inferometer_model::spec::{Extent, LoadShape, LoadTable, PerSecond};
use inferometer_model::{Spec, SpecDraft};
use inferometer_study::play::{known_specs, server_name};

use super::levels::{Bound, Rising, whole};
use super::targets;
use crate::arguments::{ExperimentArguments, SweepArguments, SweepTable, Written};
use crate::commands::simulate::virtual_spec;
use crate::draft::{Drafted, Repeat, draft_sweep};
use crate::failure::Failure;
use crate::study::{self, StudyPlan};

const SEARCH_FROM: f64 = 1.0;
const SEARCH_AT_MOST: f64 = 1_000.0;
const RESOLUTION: f64 = 0.05;
/// Fewer runs decide too little where a goal is nearly met.
const SEARCH_RUNS_MIN: u32 = 10;
/// The length of a level, if none is given.
const WAVES: u32 = 10;
const REQUESTS_LEAST: u64 = 100;
/// The length of a run of a search, if none is given: enough to judge a p99 between runs.
const SEARCH_REQUESTS: u64 = 1_000;
/// Below these many the first and the last wave are much of a run.
const WAVES_FEW: u64 = 5;
const CONCURRENCIES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

pub(crate) fn plan(arguments: &SweepArguments) -> Result<StudyPlan, Failure> {
    let experiment = arguments.merged();
    check_load(&experiment)?;
    let base = draft_sweep(&experiment, None)?;
    let table = base.sweep.clone();
    let repeat = base.repeat.clone();
    check_shape(&base, &table)?;
    let (dimension, rising) = levels(&table)?;
    let waves = waves(&base, &table, dimension)?;
    let question = question(&table, &repeat, dimension, &rising, waves)?;
    let named = match &table.targets {
        Some(targets) => targets::drafts(&experiment, targets)?,
        None => vec![(String::new(), base)],
    };
    let mut conditions = Vec::new();
    let mut secrets = Vec::new();
    for (name, drafted) in named {
        if arguments.virtual_time && names_server(&drafted.spec) && table.targets.is_some() {
            return Err(Failure::usage(format!(
                "--target {name} is a server, and virtual time has no servers"
            ))
            .hint("name engines instead, as NAME=embedded:PROFILE"));
        }
        let spec = condition(&drafted, &question, &table, arguments.virtual_time)?;
        let name = if name.is_empty() { server_name(&spec) } else { name };
        conditions.push(Condition { name, spec });
        secrets.push(drafted.secrets);
    }
    let order = table.order.unwrap_or(Order::Interleaved);
    let seed = conditions.first().map_or(0, |condition| condition.spec.seed);
    let campaign = CampaignSpec {
        question: Question::Sweep(question),
        conditions,
        repetition: study::repetition(&repeat)?,
        order,
        seed,
    };
    let sorted = "the levels did not rise: they are put in order, each once".to_owned();
    let notes =
        (!rising.as_typed).then_some(sorted).into_iter().chain(few_waves(&campaign)).collect();
    let plan = StudyPlan::new(campaign, secrets, notes);
    Ok(StudyPlan { restart_timeout: repeat.restart_timeout, ..plan })
}

/// Whether it is another server than the embedded engine.
fn names_server(draft: &SpecDraft) -> bool {
    draft.url.is_some() || draft.deployment.is_some()
}

/// The load of one run has no place beside many; of a file it is simply replaced.
fn check_load(arguments: &ExperimentArguments) -> Result<(), Failure> {
    let load = &arguments.tables.load;
    let typed = [
        (load.rate.is_some(), "--rate", "--rates"),
        (load.ramp.is_some(), "--ramp", "--rates"),
        (load.concurrency.is_some(), "--concurrency", "--concurrencies"),
        (load.speed.is_some(), "--speed", "--rates"),
    ];
    match typed.into_iter().find(|(is_typed, ..)| *is_typed) {
        None => Ok(()),
        Some((_, flag, many)) => {
            Err(Failure::usage(format!("{flag} is the load of one run, and a sweep has many"))
                .hint(format!("say them with {many}, such as {many} 1,2,4,8")))
        }
    }
}

/// A file that asks for rates must not become a sweep of concurrencies unsaid.
fn check_shape(drafted: &Drafted, table: &SweepTable) -> Result<(), Failure> {
    let load = &drafted.spec.load;
    let is_open = load.rate.is_some() || load.ramp.is_some();
    let chosen = table.rates.is_some() || table.concurrencies.is_some() || table.find.is_some();
    if chosen || !is_open {
        return Ok(());
    }
    Err(Failure::usage("the file has a rate or a ramp, and nothing says at which loads to measure")
        .hint("say --rates or --concurrencies, such as --rates 1,2,4,8"))
}

/// Requests of each level as a multiple of its concurrency: as said, or so many that filling and
/// draining do not weigh, where nothing says how long a level is.
fn waves(
    drafted: &Drafted,
    table: &SweepTable,
    dimension: Dimension,
) -> Result<Option<NonZeroU32>, Failure> {
    let load = &drafted.spec.load;
    let is_long = load.requests.is_some() || load.duration.is_some();
    match (table.waves, dimension) {
        (Some(0), _) => Err(Failure::usage("--waves is zero; write a number from 1")),
        (Some(_), Dimension::Rate) => {
            Err(Failure::usage("--waves counts in requests in flight, and a rate has none")
                .hint("say how long each level is with --requests or --duration"))
        }
        (Some(_), Dimension::Concurrency) if is_long => Err(Failure::usage(
            "--waves says how long each level is, and so do --requests and --duration; choose one",
        )),
        (Some(waves), Dimension::Concurrency) => Ok(NonZeroU32::new(waves)),
        (None, Dimension::Concurrency) if !is_long => Ok(NonZeroU32::new(WAVES)),
        (None, Dimension::Rate | Dimension::Concurrency) => Ok(None),
    }
}

/// What is so short that it mostly fills and drains is measured all the same, and said.
fn few_waves(campaign: &CampaignSpec) -> Option<String> {
    let highest = known_specs(campaign).pop()?;
    let LoadShape::Closed { concurrency, .. } = highest.load.shape else { return None };
    let Extent::Requests(requests) = highest.load.extent else { return None };
    let slots = u64::from(concurrency.get());
    let few = if requests.get() < slots {
        "fewer than that: not all places are ever taken"
    } else if requests.get() < slots * WAVES_FEW {
        "few waves: filling and draining weigh on what is measured"
    } else {
        return None;
    };
    Some(format!(
        "at {concurrency} at once {requests} requests are {few}; --waves 10 asks for more"
    ))
}

fn levels(table: &SweepTable) -> Result<(Dimension, Rising), Failure> {
    let found = match (&table.rates, &table.concurrencies, &table.find) {
        (Some(_), Some(_), _) => {
            return Err(Failure::usage(
                "--rates and --concurrencies are two sweeps; choose one of them",
            ));
        }
        (Some(rates), None, _) => (Dimension::Rate, rates.0.rising()),
        (None, Some(concurrencies), _) => (Dimension::Concurrency, concurrencies.0.rising()),
        (None, None, Some(find)) => {
            (find.0.dimension, Rising { levels: Vec::new(), as_typed: true })
        }
        (None, None, None) => {
            let level = |number| NonZeroU32::new(number).map(Level::Concurrency);
            let levels = CONCURRENCIES.into_iter().filter_map(level).collect();
            (Dimension::Concurrency, Rising { levels, as_typed: true })
        }
    };
    if let Some(find) = table.find.as_ref().filter(|find| find.0.dimension != found.0) {
        let what = match find.0.dimension {
            Dimension::Rate => "a rate, and --concurrencies are none",
            Dimension::Concurrency => "a concurrency, and --rates are none",
        };
        return Err(Failure::usage(format!("--find looks for {what}")));
    }
    Ok(found)
}

fn question(
    table: &SweepTable,
    repeat: &Repeat,
    dimension: Dimension,
    rising: &Rising,
    waves: Option<NonZeroU32>,
) -> Result<campaign::Sweep, Failure> {
    let fine = table.fine.and_then(NonZeroU32::new);
    if table.fine_runs.is_some() && fine.is_none() {
        return Err(Failure::usage("--fine-runs are runs of --fine; set it too, or leave it out"));
    }
    let runs = table.fine_runs.unwrap_or(repeat.runs);
    let fine = fine.zip(NonZeroU32::new(runs)).map(|(steps, runs)| Fine { steps, runs });
    if fine.is_some() && rising.levels.len() < 2 {
        return Err(Failure::usage("--fine looks between levels, and there are fewer than two")
            .hint("give levels with --rates or --concurrencies"));
    }
    Ok(campaign::Sweep {
        dimension,
        levels: rising.levels.clone(),
        waves,
        fine,
        find: search(table, repeat, rising)?,
    })
}

fn search(table: &SweepTable, repeat: &Repeat, rising: &Rising) -> Result<Option<Search>, Failure> {
    let Some(find) = &table.find else {
        let stray = [
            (table.from.is_some(), "--from"),
            (table.at_most.is_some(), "--at-most"),
            (table.resolution.is_some(), "--resolution"),
        ];
        return match stray.into_iter().find(|(is_set, _)| *is_set) {
            None => Ok(None),
            Some((_, flag)) => Err(Failure::usage(format!(
                "{flag} is for a search; set --find too, or leave it out"
            ))),
        };
    };
    let lowest = rising.levels.first().and_then(|level| level.place());
    let lowest = lowest.filter(|level| level.is_finite());
    let bound = |bound: &Option<Written<Bound>>| bound.as_ref().map(|bound| bound.0.0);
    let from = bound(&table.from).or(lowest).unwrap_or(SEARCH_FROM);
    let at_most = bound(&table.at_most).unwrap_or(SEARCH_AT_MOST);
    if at_most <= from {
        return Err(Failure::usage(format!(
            "the search goes up from {from} (--from) and may not exceed {at_most} (--at-most)"
        )));
    }
    let ends = [("--from", from), ("--at-most", at_most)];
    let broken = ends.into_iter().find(|(_, level)| whole(*level).is_none());
    if let Some((flag, level)) = broken.filter(|_| find.0.dimension == Dimension::Concurrency) {
        return Err(Failure::usage(format!("{flag} {level} is no number of requests in flight")));
    }
    Ok(Some(Search {
        goals: find.0.goals.clone(),
        from,
        at_most,
        resolution: table.resolution.as_ref().map_or(RESOLUTION, |share| share.0),
        runs_at_most: NonZeroU32::new(repeat.runs.max(SEARCH_RUNS_MIN)).unwrap_or(NonZeroU32::MIN),
    }))
}

/// The spec of a server at its lowest level, after every level was found possible.
fn condition(
    drafted: &Drafted,
    question: &campaign::Sweep,
    table: &SweepTable,
    simulated: bool,
) -> Result<Spec, Failure> {
    let draft = &drafted.spec;
    let recorded = draft.saved.is_some() || draft.workload.source.trace.is_some();
    if recorded {
        return Err(Failure::usage(
            "a saved plan or a trace has its own moments: there are no levels to choose",
        )
        .hint("play it with `inferometer run`, a trace at other speeds with --speed"));
    }
    let searched = question.find.as_ref().and_then(|find| match question.dimension {
        Dimension::Rate => Some(Level::Rate(find.from)),
        Dimension::Concurrency => whole(find.from).map(Level::Concurrency),
    });
    let levels: Vec<Level> = question.levels.iter().copied().chain(searched).collect();
    // Waves that are given are counted exactly; a default must be long enough to be useful.
    let least = match (table.waves, &table.find) {
        (Some(_), _) => 1,
        (None, Some(_)) => SEARCH_REQUESTS,
        (None, None) => REQUESTS_LEAST,
    };
    let mut specs = Vec::new();
    for level in levels {
        specs.push(at_level(drafted, level, question.waves, least, simulated)?);
    }
    let Some(lowest) = specs.into_iter().next() else {
        return Err(Failure::usage("there is no level to measure at"));
    };
    check_slos(&lowest.slos, lowest.workload.streaming)
        .map_err(|problem| Failure::usage(problem.to_string()))?;
    if let Some(find) = &table.find {
        find.0.check(&lowest.slos, lowest.workload.streaming)?;
    }
    Ok(lowest)
}

/// The spec at one level. Where `waves` is not said, the draft says how many requests there are.
pub(crate) fn at_level(
    drafted: &Drafted,
    level: Level,
    waves: Option<NonZeroU32>,
    least: u64,
    simulated: bool,
) -> Result<Spec, Failure> {
    let draft = &drafted.spec;
    let bare = LoadTable {
        concurrency: None,
        rate: None,
        ramp: None,
        ramp_curve: None,
        ..draft.load.clone()
    };
    let load = match level {
        Level::AsAsked => draft.load.clone(),
        Level::Rate(per_s) => {
            let is_said = bare.requests.is_some() || bare.duration.is_some();
            let requests = if is_said { bare.requests } else { Some(least) };
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
    };
    let draft = SpecDraft { load, ..draft.clone() };
    if simulated { virtual_spec(drafted, draft) } else { drafted.resolve_as(draft) }
}
