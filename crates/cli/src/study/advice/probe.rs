//! `inferometer profile`: a staircase of requests in flight, with fresh prompts of many lengths, from
//! which the step times of the server are learned.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use inferometer_model::spec::{EngineTable, Lengths, WarmUp};
use inferometer_model::study::Condition;
use inferometer_report::escape::terminal;
use inferometer_runner::fit::row_of_run;
use inferometer_runner::learn::{Learned, Learning};
use inferometer_study::play::{Played, Player};

use super::Subject;
use crate::arguments::{ExperimentArguments, PageFormat, ProfileArguments, ResultArguments};
use crate::commands::fit::{self, show};
use crate::failure::{Failure, Result};
use crate::output;
use crate::study::{Begin, StudyPlan, sweep};

/// How long the probe sends requests unless the user says otherwise.
const PROBE_TIME: Duration = Duration::from_mins(2);
/// Every level is measured with many lengths, which tells most of the law, and with equal ones, whose
/// requests end and begin together.
const KINDS: u32 = 2;
const EQUAL: &str = "equal lengths";
/// Requests that warm the server up before each level.
const WARM_UP: u64 = 2;

/// `inferometer profile`.
pub(crate) fn profile(arguments: &ProfileArguments) -> Result<ExitCode> {
    let ProfileArguments { experiment, results, save, name, .. } = arguments;
    if save.exists() {
        return Err(Failure::usage(format!("--save {} exists already", save.display()))
            .hint("name another file, or remove it"));
    }
    let mut subject = Subject::new(experiment)?;
    let table = &mut subject.experiment.tables.sweep;
    table.concurrencies = arguments.concurrencies.clone().or(table.concurrencies.take());
    let time = arguments.probe_time.map_or(PROBE_TIME, |time| time.0);
    let name = name.clone().unwrap_or_else(|| "learned".to_owned());
    let probe = Probe { subject: &subject, time, is_virtual: arguments.virtual_time, name };
    if results.dry_run {
        return Begin::new(probe.is_virtual, results).run(probe.plan()?);
    }
    let (learned, notes) = probe.learn(results)?;
    let Learned { fitting, fit, .. } = &learned;
    let as_json = results.page.format() == PageFormat::Json;
    let verdict = show(fitting, fit, &fitting.base, as_json)?;
    let talk = output::talk_unless(results.quiet || as_json);
    notes.iter().chain(&learned.notes).for_each(|note| talk(&format!("note: {}", terminal(note))));
    let verdict = (&verdict, fit::LAW_HINT);
    fit::save(save, &fitting.base, verdict, arguments.force, output::talk)
}

/// A probe of one server.
struct Probe<'a> {
    subject: &'a Subject,
    time: Duration,
    is_virtual: bool,
    name: String,
}

impl Probe<'_> {
    /// The experiment of the user with what a probe needs: many lengths, and a time for each level.
    fn experiment(&self) -> ExperimentArguments {
        let mut experiment = self.subject.experiment.clone();
        let tables = &mut experiment.tables;
        let source = &mut tables.workload.source;
        source.input_tokens.get_or_insert(Lengths::Uniform { low: 32, high: 2048 });
        source.output_tokens.get_or_insert(Lengths::Uniform { low: 32, high: 192 });
        let levels = tables.sweep.concurrencies.as_ref().map(|levels| levels.0.count());
        let levels = u32::try_from(levels.unwrap_or(sweep::CONCURRENCIES.len()));
        let rounds = tables.repeat.runs.unwrap_or(1).saturating_mul(KINDS);
        let runs = levels.unwrap_or(u32::MAX).saturating_mul(rounds).max(1);
        let load = &mut tables.load;
        load.warm_up.get_or_insert(WarmUp::Requests(WARM_UP));
        if load.requests.is_none() {
            load.duration.get_or_insert((self.time / runs).into());
        }
        experiment
    }

    /// The staircase with many lengths and with equal ones.
    fn plan(&self) -> Result<StudyPlan> {
        let mut experiment = self.experiment();
        let mut plan = sweep::plan(&experiment, self.is_virtual)?;
        let source = &mut experiment.tables.workload.source;
        for lengths in [&mut source.input_tokens, &mut source.output_tokens] {
            let ends = lengths.as_ref().map(|lengths| (lengths.least(), lengths.most()));
            *lengths = ends.map(|(least, most)| least.midpoint(most).into());
        }
        let equal = sweep::plan(&experiment, self.is_virtual)?;
        let conditions = equal.study.conditions.into_iter();
        let named = conditions.map(|it| Condition { name: EQUAL.to_owned(), ..it });
        plan.study.conditions.extend(named);
        plan.secrets.extend(equal.secrets);
        Ok(plan)
    }

    /// Measures the staircase and learns from it; also says what was noticed.
    fn learn(&self, results: &ResultArguments) -> Result<(Learned, Vec<String>)> {
        let plan = self.plan()?;
        let begin = Begin::new(self.is_virtual, results);
        let source = format!("probe of {}", plan.study.conditions[0].name);
        let (runs, notes) = begin.measure(plan, |player, played| Ok(usable(player, played)))?;
        if runs.is_empty() {
            let why = notes.first().cloned().unwrap_or_default();
            return Err(Failure::invalid(format!("no run of the probe can be used: {why}")));
        }
        let server = self.known();
        let learning = Learning { runs, server, name: self.name.clone(), source };
        Ok((learning.learn(output::talk_unless(results.quiet))?, notes))
    }

    /// What is known of the server: of the embedded engine no more than of another one.
    fn known(&self) -> EngineTable {
        let bare = EngineTable {
            profile: None,
            noise: None,
            seed: None,
            speed: None,
            step: None,
            ..self.subject.server.clone()
        };
        if !self.subject.is_embedded {
            return bare;
        }
        let (hardware, model, tp, pp) = (None, None, None, None);
        let (dtype, quantization, kv_cache_dtype) = (None, None, None);
        EngineTable { hardware, model, tp, pp, dtype, quantization, kv_cache_dtype, ..bare }
    }
}

/// The runs that a law can be learned from, and what was noticed: refused requests and cached
/// prompts.
#[expect(clippy::similar_names, reason = "a player has played")]
fn usable(player: &Player<'_>, played: &Played) -> (Vec<PathBuf>, Vec<String>) {
    let (mut runs, mut notes) = (Vec::new(), Vec::new());
    for result in &played.points {
        let path = player.set.point(result.point.number).path().to_owned();
        if result.summary.failures.iter().any(|group| group.status == Some(429)) {
            notes.push(format!("{}: the server limits the rate (429)", result.point.level));
        }
        match row_of_run(&path) {
            Ok(_) => runs.push(path),
            Err(why) => notes.push(format!("{} is left out: {why}", result.point.level)),
        }
    }
    (runs, notes)
}
