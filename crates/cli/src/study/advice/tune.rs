//! `inferometer tune`: settings and loads ranked in virtual time, and the best of them proven by
//! measurements.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use inferometer_analysis::comparison::{Comparison, Judgement, Margins, Side, Terms};
use inferometer_analysis::set::PointResult;
use inferometer_analysis::{
    LatencyOrigin, Metric, Percentile, Quantity, Statistic, Summary, ThresholdVerdict, metric,
};
use inferometer_engine::profile::Profile;
use inferometer_model::Spec;
use inferometer_model::spec::{EngineTable, Written};
use inferometer_model::study::{Condition, Level};
use inferometer_model::whole::to_u32;
use inferometer_report::comparison as comparison_page;
use inferometer_report::document::{Block, Cell, Columns};
use inferometer_report::fmt::{self, NOTHING, number};
use inferometer_study::play::{Played, Player};
use serde_json::{Map, Value, json};

use super::{Subject, advice, compose, not_modelled};
use crate::arguments::{ExperimentArguments, TuneArguments};
use crate::commands::compare::conditions;
use crate::commands::style;
use crate::draft::deploy::DeployTable;
use crate::experiment::config;
use crate::failure::{Failure, Result};
use crate::output;
use crate::study::{Begin, StudyPlan, sweep};

/// Factors by which the settings of the scheduler are varied.
const FACTORS: [f64; 4] = [0.25, 0.5, 1.0, 2.0];
/// The settings that a command of `--serve` may contain, and that are varied together.
const SCHEDULER: [&str; 2] = ["max_num_seqs", "max_num_batched_tokens"];
/// Rows of the page; JSON has all.
const ROWS_MAX: usize = 15;
/// Measurements of each setting that is proven, unless the user says otherwise.
const PROOF_RUNS: u32 = 5;
const CANDIDATES_MAX: usize = 200;
const AS_SET: &str = "as set";
const P99: Statistic = Statistic::Percentile(Percentile::P99);

/// `inferometer tune`.
pub(crate) fn tune(arguments: &TuneArguments) -> Result<ExitCode> {
    let results = &arguments.results;
    let mut typed = arguments.experiment.clone();
    typed.tables.sweep = arguments.levels.clone();
    let Axes { modelled, others, replicas } = Axes::read(&arguments.vary)?;
    let present = others.iter().filter_map(|(key, values)| Some((key, values.first()?)));
    let present: Others = present.map(|(key, value)| (key.clone(), value.clone())).collect();
    let filled = filled(&typed, None, &present)?;
    let subject = Subject::new(&filled)?;
    if !subject.is_embedded && subject.server.profile.is_none() {
        return Err(Failure::usage("nothing is known of this server's step times").hint(
            "learn them with: inferometer profile URL --save FILE; then tune with --profile FILE",
        ));
    }
    let engine = subject.server.clone();
    let profile = compose(&engine)?;
    let settings = settings(&engine, &profile, modelled, arguments.vary.is_empty())?;
    let settings = with_others(&settings, &others, &replicas, &typed)?;
    let mut ranked = Vec::new();
    let counts: BTreeSet<u32> = settings.iter().map(|setting| setting.replicas).collect();
    for count in counts {
        let own: Vec<&Setting> = settings.iter().filter(|it| it.replicas == count).collect();
        let mut plan = sweep::plan(&without_server(&typed, &engine, count)?, true)?;
        let base = plan.study.conditions.remove(0).spec;
        for Setting { name, engine, .. } in &own {
            let spec = Spec { engine: engine.clone(), ..base.clone() };
            plan.study.conditions.push(Condition { name: name.clone(), spec });
        }
        let begin = Begin::new(true, results);
        if results.dry_run {
            begin.run(plan)?;
            continue;
        }
        ranked.extend(begin.measure(plan, |_, played| Ok(rank(&own, &played.points)))?);
    }
    if results.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    // Stable: of equal ones, the present setting comes first.
    ranked.sort_by(|a, b| b.is_met.cmp(&a.is_met).then(b.value.total_cmp(&a.value)));
    output::result(&page(&ranked, &profile, &present))?;
    match arguments.prove {
        Some(count) => prove(arguments, &typed, &subject, &ranked, count),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// The experiment on the engine of a profile instead of the server, with the load of one replica.
fn without_server(
    typed: &ExperimentArguments,
    engine: &EngineTable,
    replicas: u32,
) -> Result<ExperimentArguments> {
    let mut experiment = typed.clone();
    if 1 < replicas {
        let levels = &mut experiment.tables.sweep;
        if levels.rates.is_none() && levels.concurrencies.is_none() {
            return Err(Failure::usage("--vary replicas=… divides a load that is not given")
                .hint("give it with --rates or --concurrencies"));
        }
        let each = f64::from(replicas);
        levels.rates = levels.rates.take().map(|all| Written(all.0.divided(each)));
        levels.concurrencies = levels.concurrencies.take().map(|all| Written(all.0.divided(each)));
    }
    experiment.url = None;
    experiment.places.retain(|place| crate::experiment::is_file(place));
    experiment.tables.target.url = None;
    experiment.tables.deploy = DeployTable::default();
    experiment.tables.engine = engine.clone();
    Ok(experiment)
}

/// The command of `--serve` with the settings of an engine in the places that are named after them.
/// Without settings each place has the number that vLLM takes where none is set.
fn filled(
    typed: &ExperimentArguments,
    engine: Option<&EngineTable>,
    others: &Others,
) -> Result<ExperimentArguments> {
    let mut experiment = typed.clone();
    let own = engine.unwrap_or(&typed.tables.engine);
    let mut set = own.entries();
    set.extend(others.clone());
    let Some(command) = &mut experiment.tables.deploy.command else { return Ok(experiment) };
    for word in &mut command.0 {
        for (key, value) in &set {
            *word = word.replace(&format!("{{{key}}}"), &config::text(value));
        }
        let unset = SCHEDULER.into_iter().find(|key| word.contains(&format!("{{{key}}}")));
        if let Some(key) = unset {
            let problem = format!("{{{key}}} is in --serve, and its present value is not set");
            let hint = format!("set it with --{}", key.replace('_', "-"));
            return Err(Failure::usage(problem).hint(hint));
        }
    }
    Ok(experiment)
}

/// The values of keys that no profile models, for their places in the command of `--serve`.
type Others = Map<String, Value>;
/// The number of servers that share the load.
const REPLICAS: &str = "replicas";

/// A setting of the server, named by what differs from the present one.
#[derive(Clone)]
struct Setting {
    name: String,
    engine: EngineTable,
    others: Others,
    replicas: u32,
}

/// The keys of `--vary` with their values: those of the engine, those that nothing models, and how many
/// replicas share the load.
#[derive(Default)]
struct Axes {
    modelled: Axis,
    others: Axis,
    replicas: Vec<u32>,
}

type Axis = BTreeMap<String, Vec<Value>>;

impl Axes {
    fn read(vary: &[String]) -> Result<Self> {
        let mut axes = Self::default();
        for typed in vary {
            let refuse = || {
                Failure::usage(format!("--vary {typed} is not KEY=VALUES"))
                    .hint("such as --vary max_num_seqs=64,128")
            };
            let (key, values) = typed.split_once('=').ok_or_else(refuse)?;
            let read = |value: &str| {
                serde_json::from_str(value.trim()).unwrap_or_else(|_| value.trim().into())
            };
            let key = key.trim().replace('-', "_");
            let values: Vec<Value> = values.split(',').map(read).collect();
            if key == REPLICAS {
                axes.replicas = serde_json::from_value(values.into())
                    .map_err(|error| Failure::usage(format!("--vary {typed}: {error}")))?;
                axes.replicas.retain(|count| 0 < *count);
            } else if serde_json::from_value::<EngineTable>(json!({ &*key: null })).is_ok() {
                axes.modelled.insert(key, values);
            } else {
                axes.others.insert(key, values);
            }
        }
        Ok(axes)
    }
}

/// Every combination of the values.
fn combinations(axes: &Axis) -> Vec<Vec<(String, Value)>> {
    let mut combined: Vec<Vec<(String, Value)>> = vec![Vec::new()];
    for (key, values) in axes {
        let longer = combined.iter().flat_map(|one| {
            values.iter().map(move |value| {
                one.iter().cloned().chain([(key.clone(), value.clone())]).collect()
            })
        });
        combined = longer.collect();
    }
    combined
}

fn named<'a>(values: impl IntoIterator<Item = (&'a String, &'a Value)>) -> String {
    let name = values.into_iter().map(|(key, value)| format!("{key}={}", config::text(value)));
    name.collect::<Vec<_>>().join(", ")
}

/// Each setting with each number of replicas and each combination of the values that nothing models.
fn with_others(
    settings: &[Setting],
    others: &Axis,
    replicas: &[u32],
    typed: &ExperimentArguments,
) -> Result<Vec<Setting>> {
    let command = typed.tables.deploy.command.as_ref();
    let has_place = |key: &String| {
        command.is_some_and(|it| it.0.iter().any(|w| w.contains(&format!("{{{key}}}"))))
    };
    if let Some(key) = others.keys().find(|key| !has_place(key)) {
        return Err(Failure::usage(format!("no profile models `{key}`, so it cannot be ranked"))
            .hint(format!("to prove its values, write {{{key}}} where they belong in --serve")));
    }
    let replicas = if replicas.is_empty() { &[1] } else { replicas };
    let mut found = Vec::new();
    for (count, place) in replicas.iter().zip(0..) {
        for (values, number) in combinations(others).into_iter().zip(0..) {
            for setting in settings {
                let own = (setting.name != AS_SET).then(|| setting.name.clone());
                let other = (0 < number).then(|| named(values.iter().map(|(k, v)| (k, v))));
                let copies = (0 < place).then(|| format!("{REPLICAS}={count}"));
                let parts: Vec<String> = [own, other, copies].into_iter().flatten().collect();
                let name = if parts.is_empty() { AS_SET.to_owned() } else { parts.join(", ") };
                let others = values.iter().cloned().collect();
                found.push(Setting { name, others, replicas: *count, ..setting.clone() });
            }
        }
    }
    found.truncate(CANDIDATES_MAX);
    Ok(found)
}

/// The present setting, and others that the profile can play.
fn settings(
    engine: &EngineTable,
    profile: &Profile,
    mut axes: Axis,
    is_free: bool,
) -> Result<Vec<Setting>> {
    if is_free {
        let scheduler = &profile.scheduler;
        let most = profile.law.as_ref().map_or(u32::MAX, |law| law.seen.batch.max(1));
        let now = [scheduler.max_num_seqs.min(most), scheduler.max_num_batched_tokens];
        let limits = [(1, most), (64, 1 << 17)];
        for ((key, now), (least, most)) in SCHEDULER.into_iter().zip(now).zip(limits) {
            let scaled = FACTORS.map(|factor| f64::from(now) * factor);
            let within = scaled.map(|value| value.round().clamp(f64::from(least), f64::from(most)));
            axes.insert(key.to_owned(), within.map(|value| json!(to_u32(value))).to_vec());
        }
    }
    let mut combined = combinations(&axes);
    if is_free {
        combined.push(vec![("enable_chunked_prefill".to_owned(), json!(false))]);
        if profile.law.is_none() {
            let tp = profile.machine().tensor_parallel;
            combined.extend([tp * 2, tp / 2].map(|tp| vec![("tp".to_owned(), json!(tp))]));
            combined
                .extend(["fp8", "int4"].map(|kind| vec![("quantization".to_owned(), json!(kind))]));
        }
    }
    let (name, engine_now) = (AS_SET.to_owned(), engine.clone());
    let mut found = vec![Setting { name, engine: engine_now, others: Others::new(), replicas: 1 }];
    for values in combined.into_iter().take(CANDIDATES_MAX) {
        let table: EngineTable = serde_json::from_value(values.iter().cloned().collect())
            .map_err(|error| Failure::usage(format!("--vary: {error}")))?;
        let candidate = table.over(engine);
        // A server that refuses to start is no candidate, unless the user asks for it.
        let played = match compose(&candidate) {
            Ok(played) => played,
            Err(failure) if !is_free => return Err(failure),
            Err(_) => continue,
        };
        let is_new = |known: &Setting| {
            compose(&known.engine).is_ok_and(|known| {
                known.scheduler != played.scheduler || known.machine() != played.machine()
            })
        };
        if found.iter().all(is_new) {
            let name = named(values.iter().map(|(key, value)| (key, value)));
            found.push(Setting { name, engine: candidate, others: Others::new(), replicas: 1 });
        }
    }
    Ok(found)
}

/// A setting at a load, as simulated.
struct Ranked<'a> {
    setting: &'a Setting,
    level: Level,
    summary: Summary,
    is_met: bool,
    /// What it is ranked by: goodput where there are SLOs about each request, otherwise output tokens
    /// per second; over the price where there is one, otherwise over the GPUs.
    value: f64,
}

/// The best load of each setting, the best setting first; those that miss an SLO last.
fn rank<'a>(settings: &[&'a Setting], points: &[PointResult]) -> Vec<Ranked<'a>> {
    let mut best: BTreeMap<u32, Ranked<'a>> = BTreeMap::new();
    for PointResult { point, summary } in points {
        let Some(setting) = settings.get(point.condition as usize).copied() else { continue };
        let is_met = summary.slos.iter().all(|slo| slo.verdict == ThresholdVerdict::Met);
        let figure = if summary.request_slos.is_some() {
            &metric::GOODPUT
        } else {
            &metric::OUTPUT_THROUGHPUT
        };
        let gpus = compose(&setting.engine).map_or(1, |profile| profile.gpus());
        let cost = scalar(summary, &metric::COST_PER_MILLION_OUTPUT_TOKENS);
        let value = match (cost, summary.request_slos.is_some()) {
            (Some(cost), false) if 0.0 < cost => 1.0 / cost,
            _ => scalar(summary, figure).unwrap_or_default() / f64::from(gpus),
        };
        let (level, summary) = (point.level, summary.clone());
        let found = Ranked { setting, level, summary, is_met, value };
        let is_better = |known: &Ranked<'_>| (known.is_met, known.value) < (is_met, value);
        if best.get(&point.condition).is_none_or(is_better) {
            best.insert(point.condition, found);
        }
    }
    best.into_values().collect()
}

fn scalar(summary: &Summary, metric: &Metric) -> Option<f64> {
    summary.headline().scalar(metric)?.value
}

fn page(ranked: &[Ranked<'_>], profile: &Profile, present: &Others) -> String {
    type Which = fn(&Summary) -> Quantity;
    let figure = |which: Which, is_sum: bool| {
        move |row: &&Ranked<'_>| {
            let found = which(&row.summary).value_in(&row.summary).ok();
            let times = if is_sum { f64::from(row.setting.replicas) } else { 1.0 };
            let text = found.map(|it| match it.interval {
                Some(around) => {
                    let all = [it.value, around.low, around.high];
                    let [value, low, high] = all.map(|value| number(times * value));
                    format!("{value} ({low}–{high})")
                }
                None => number(times * it.value),
            });
            Cell::text(text.unwrap_or_else(|| NOTHING.to_owned()))
        }
    };
    let slos = |row: &&Ranked<'_>| match (row.summary.slos.is_empty(), row.is_met) {
        (true, _) => Cell::text(NOTHING),
        (false, is_met) => Cell::text(if is_met { "met" } else { "not met" }),
    };
    let columns = Columns::new("setting", |row: &&Ranked<'_>| Cell::text(row.setting.name.clone()))
        .right("best load", |row| {
            let each = if 1 < row.setting.replicas { " at each replica" } else { "" };
            Cell::text(format!("{}{each}", row.level))
        })
        .right("SLOs", slos)
        .right("output tok/s", figure(|_| metric::OUTPUT_THROUGHPUT.quantity(), true))
        .right(
            "TTFT p99 ms",
            figure(|it| Quantity::new(it.latency_origin().ttft(), Some(P99)), false),
        )
        .right(
            "TPOT mean ms",
            figure(|_| Quantity::new(&metric::TPOT, Some(Statistic::Mean)), false),
        )
        .right(
            "cost per M output",
            figure(|_| metric::COST_PER_MILLION_OUTPUT_TOKENS.quantity(), false),
        );
    let table = columns.table("", "", ranked.iter().take(ROWS_MAX));
    let mut limits = not_modelled(profile).into_iter().map(str::to_owned).collect::<Vec<_>>();
    if ranked.iter().any(|row| 1 < row.setting.replicas) {
        limits.push("the router: requests are taken to be spread evenly over replicas".to_owned());
    }
    limits.extend(present.keys().map(|key| {
        format!("`{key}`: settings that differ in it alone rank alike; --prove compares them")
    }));
    let title = format!("Settings of {} ranked in virtual time", profile.name);
    advice(title, vec![Block::Table(table)], limits.iter().map(String::as_str))
}

/// Measures the present setting and the best others at the load of the best one, in turns and with the
/// same prompts, and compares them.
fn prove(
    arguments: &TuneArguments,
    typed: &ExperimentArguments,
    subject: &Subject,
    ranked: &[Ranked<'_>],
    count: u32,
) -> Result<ExitCode> {
    let now = ranked.iter().find(|row| row.setting.name == AS_SET);
    // Replicas are ranked, and one of them is deployed.
    let is_other = |row: &&Ranked<'_>| {
        let present = now.map(|now| now.setting.replicas);
        row.setting.name != AS_SET && row.is_met && present == Some(row.setting.replicas)
    };
    let best: Vec<&Ranked<'_>> = ranked.iter().filter(is_other).take(count as usize).collect();
    let (Some(first), Some(now)) = (best.first(), now) else {
        output::talk("no other setting meets the SLOs, so there is nothing to prove");
        return Ok(ExitCode::SUCCESS);
    };
    if !subject.is_embedded && typed.tables.deploy.command.is_none() {
        return Err(Failure::usage(
            "--prove deploys the server anew with each setting, and a URL cannot",
        )
        .hint(
            "let --serve start it, with {max_num_seqs}, or the key of any --vary, in its place",
        ));
    }
    let mut whole: Option<StudyPlan> = None;
    for row in [now].into_iter().chain(best.iter().copied()) {
        let engine = completed(&row.setting.engine)?;
        let mut experiment = filled(typed, Some(&engine), &row.setting.others)?;
        experiment.tables.engine =
            if subject.is_embedded { row.setting.engine.clone() } else { EngineTable::default() };
        let levels = &mut experiment.tables.sweep;
        (levels.rates, levels.concurrencies) = (None, None);
        match first.level {
            Level::Rate(rate) => levels.rates = Some(Written(sweep::RateLevels::new(vec![rate]))),
            Level::Concurrency(slots) => {
                let slots = f64::from(slots.get());
                levels.concurrencies = Some(Written(sweep::ConcurrencyLevels::new(vec![slots])));
            }
            Level::AsAsked | Level::Unlimited => {}
        }
        experiment.tables.repeat.runs.get_or_insert(PROOF_RUNS);
        let mut plan = sweep::plan(&experiment, false)?;
        plan.study.conditions.truncate(1);
        plan.study.conditions[0].name.clone_from(&row.setting.name);
        match &mut whole {
            Some(whole) => {
                whole.study.conditions.append(&mut plan.study.conditions);
                whole.secrets.extend(plan.secrets.into_iter().take(1));
            }
            None => whole = Some(plan),
        }
    }
    let Some(plan) = whole else { return Ok(ExitCode::SUCCESS) };
    let begin = Begin::new(false, &arguments.results);
    let (comparison, costs) = begin.measure(plan, compare)?;
    output::result(&comparison_page::terminal(&comparison, style()))?;
    output::talk(&conclusion(&comparison, &costs));
    Ok(ExitCode::SUCCESS)
}

/// An engine with the numbers that its server takes where none is set.
fn completed(engine: &EngineTable) -> Result<EngineTable> {
    let scheduler = compose(engine)?.scheduler;
    let (max_num_seqs, tokens) = (scheduler.max_num_seqs, scheduler.max_num_batched_tokens);
    Ok(EngineTable {
        max_num_seqs: Some(max_num_seqs),
        max_num_batched_tokens: Some(tokens),
        ..engine.clone()
    })
}

#[expect(clippy::similar_names, reason = "a player has played")]
fn compare(player: &Player<'_>, played: &Played) -> Result<(Comparison, Costs)> {
    let (manifest, results) = (played.manifest.clone(), played.points.clone());
    let sides = conditions(player.set.id(), manifest, results, &|_: &str| {})?;
    let has_slos = played.points.iter().any(|it| it.summary.request_slos.is_some());
    let primary = if has_slos { &metric::GOODPUT } else { &metric::OUTPUT_THROUGHPUT };
    let primary = Quantity::named(primary.name, LatencyOrigin::Sent).ok();
    // What differs between the sides is what is compared.
    let terms = Terms { primary, margins: Margins::DEFAULT, force: true, layouts: None };
    let cost = |side: &Side<Summary>| {
        let costs = side.results.iter();
        let costs = costs.map(|it| scalar(it, &metric::COST_PER_MILLION_OUTPUT_TOKENS));
        let costs: Option<Vec<f64>> = costs.collect();
        let costs = costs.filter(|costs| !costs.is_empty())?;
        Some((side.name.clone(), costs.iter().sum::<f64>() / costs.len() as f64))
    };
    let costs = sides.iter().filter_map(cost).collect();
    Ok((Comparison::new(&sides, &terms).map_err(Failure::from_usage)?, costs))
}

/// The mean cost per million output tokens of each side, where there is a price.
type Costs = BTreeMap<String, f64>;

/// Whether a setting is really better, as a sentence.
fn conclusion(comparison: &Comparison, costs: &Costs) -> String {
    let better = comparison.outcomes.iter().filter(|it| it.judgement == Judgement::Better);
    let most = better
        .filter_map(|it| Some((it, it.change?)))
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    match most {
        Some((outcome, change)) => format!(
            "proven: {} changes {} by {} % against the present setting (95 %: {} to {} %){}",
            outcome.side,
            comparison.primary,
            fmt::signed_percent(change.value - 1.0),
            fmt::signed_percent(change.interval.low - 1.0),
            fmt::signed_percent(change.interval.high - 1.0),
            costs.get(&outcome.side).zip(costs.get(AS_SET)).map_or_else(
                String::new,
                |(own, now)| {
                    let [own, now] = [*own, *now].map(number);
                    format!("; a million output tokens cost {own} instead of {now}")
                }
            ),
        ),
        None => "no gain: no setting was shown to be better than the present one".to_owned(),
    }
}
