//! From the tables of files and flags to a draft of the spec.

pub(crate) mod deploy;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use inferometer_analysis::{LatencyOrigin, Quantity};
use inferometer_model::endpoint::{Api, BaseUrlError};
use inferometer_model::spec::{BodyTable, EngineTable, Slo, SourceTable, SpecError};
use inferometer_model::study::Repetition;
use inferometer_model::{BaseUrl, Spec, SpecDraft, file};
use inferometer_runner::environment;
use inferometer_workload::WorkloadError;
use inferometer_workload::saved::read_header;
use serde_json::{Map, Value};

use crate::arguments::{Experiment, ExperimentArguments, RepeatTable, SweepTable};
use crate::experiment::{self, Layer, Origins, config};
use crate::failure::{Failure, Result};
use crate::output;
use crate::secrets::Secrets;

/// All that a command needs to know before it begins.
#[derive(Debug)]
pub(crate) struct Drafted {
    /// Secrets stay out of it: it is stored.
    pub(crate) spec: SpecDraft,
    pub(crate) secrets: Secrets,
    pub(crate) repetition: Repetition,
    /// How long a restarted server has to answer again.
    pub(crate) restart_timeout: Duration,
    pub(crate) sweep: SweepTable,
    origins: Origins,
}

impl Drafted {
    /// The spec; a refusal names the line of the file.
    pub(crate) fn resolve(&self) -> Result<Spec> {
        self.resolve_as(self.spec.clone())
    }

    /// The same of a draft that was changed. Without a seed it gets a fresh one: a server that keeps
    /// a prefix cache may know the prompts of an earlier seed.
    pub(crate) fn resolve_as(&self, draft: SpecDraft) -> Result<Spec> {
        self.resolve_seeded(draft, || {
            *DRAWN_SEED.get_or_init(|| RandomState::new().hash_one(std::process::id()) >> 32)
        })
    }

    /// The same with another seed where none is given. A saved plan has its own.
    pub(crate) fn resolve_seeded(
        &self,
        mut draft: SpecDraft,
        seed: impl FnOnce() -> u64,
    ) -> Result<Spec> {
        if draft.saved.is_none() {
            draft.workload.seed.get_or_insert_with(seed);
        }
        draft.resolve().map_err(|error| self.origins.explain(&error))
    }
}

/// From the randomness of the operating system, with 32 bits: every generator takes that many, and every
/// reader of JSON keeps them. Drawn once, so that all servers and scenarios of a command get their prompts from the same seed.
static DRAWN_SEED: OnceLock<u64> = OnceLock::new();

/// Prints the seed that this command has drawn because none was given.
pub(crate) fn announce_seed(quiet: bool) {
    if let Some(seed) = DRAWN_SEED.get().filter(|_| !quiet) {
        output::talk(&format!(
            "seed {seed} was drawn: the same command with --seed {seed} repeats it"
        ));
    }
}

/// A seed as the pages of plans show it.
pub(crate) fn seed_text(seed: u64) -> String {
    let is_drawn = DRAWN_SEED.get() == Some(&seed);
    if is_drawn { format!("{seed}, drawn; --seed sets it") } else { seed.to_string() }
}

const RUNS_MAX: u32 = 1_000;
pub(crate) const RESTART_TIMEOUT: Duration = Duration::from_mins(10);

/// Merges the experiment file, `--set` and flags.
pub(crate) fn draft(arguments: &ExperimentArguments) -> Result<Drafted> {
    let said = experiment::said(arguments, None)?;
    let experiment = experiment::experiment(&said)?;
    check_repeats(&experiment.repeat, &arguments.tables.repeat)?;
    drafted(&arguments.headers, experiment, said.origins)
}

/// The same for many loads: there is something between runs however often each is measured. A
/// file may say which server is meant.
pub(crate) fn draft_sweep(
    arguments: &ExperimentArguments,
    server: Option<&Path>,
) -> Result<Drafted> {
    draft_scenario(&arguments.headers, experiment::said(arguments, server)?)
}

/// The same for an experiment that was merged elsewhere, such as a scenario of a suite.
pub(crate) fn draft_scenario(headers: &[String], said: Layer) -> Result<Drafted> {
    let experiment = experiment::experiment(&said)?;
    // Between the levels of a sweep there is time in any case; only repeated runs can end early.
    let stops = experiment.repeat.stop_at.is_some();
    refuse_alone(&experiment.repeat, &[(stops, "--stop-at ends repeated runs early")])?;
    drafted(headers, experiment, said.origins)
}

fn drafted(headers: &[String], experiment: Experiment, origins: Origins) -> Result<Drafted> {
    let Experiment { mut target, mut workload, .. } = experiment;
    let mut secrets = Secrets::read(target.api_key_file.as_deref(), headers)?;
    let repetition = repetition(&experiment.repeat)?;
    let restart_timeout = experiment.repeat.restart_timeout.map_or(RESTART_TIMEOUT, |time| time.0);
    let url: Option<BaseUrl> = target
        .url
        .as_deref()
        .map(str::parse)
        .transpose()
        .map_err(|error: BaseUrlError| origins.failure("target.url", &error.to_string()))?;
    // A whole endpoint pasted as the URL sets the API.
    target.api = target.api.or_else(|| target.url.as_deref().and_then(Api::from_path));
    let deployment = deploy::draft(&experiment.deploy, &origins)?;
    deployment.iter().try_for_each(|it| deploy::check_placeholders(it, &origins))?;
    if url.is_none() && deployment.is_none() {
        check_hardware(&experiment.engine, &experiment.metadata, &origins)?;
    }
    let parts = workload.mix.iter_mut().map(|part| &mut part.source);
    [&mut workload.source].into_iter().chain(parts).try_for_each(read_prompt_file)?;
    read_tools_file(&mut workload.body)?;
    let saved = workload.source.plan.as_ref().map(|path| read_header(path)).transpose();
    let saved = saved.map_err(WorkloadError::from)?.map(|header| header.spec());
    let facts = experiment.metadata.iter().map(|(key, value)| (key.clone(), config::text(value)));
    let spec = SpecDraft {
        url,
        deployment,
        engine: experiment.engine,
        target,
        workload,
        load: experiment.load,
        saved,
        client: experiment.client,
        cores_allowed: cores_allowed(),
        limits: experiment.limits,
        control: experiment.control,
        answers: experiment.answers,
        slos: slos(experiment.slo, &origins)?,
        header_names: secrets.header_names.clone(),
        metadata: facts.collect(),
    };
    secrets.hide_typed(&spec, repetition.restart.as_deref());
    output::hide(secrets.credentials.redactor());
    environment::set_command(output::command_line());
    let sweep = experiment.sweep;
    Ok(Drafted { spec, secrets, repetition, restart_timeout, sweep, origins })
}

/// Refuses to store the hardware of a server with a run of the embedded engine that was not chosen.
fn check_hardware(
    engine: &EngineTable,
    metadata: &BTreeMap<String, Value>,
    origins: &Origins,
) -> Result<()> {
    const HARDWARE: [&str; 5] = ["gpu", "gpus", "hardware", "accelerator", "instance"];
    let is_chosen = *engine != EngineTable::default();
    let key = metadata.keys().find(|key| HARDWARE.contains(&key.as_str()));
    let Some(key) = key.filter(|key| !is_chosen && origins.has(&format!("metadata.{key}"))) else {
        return Ok(());
    };
    let what = format!(
        "`metadata.{key}` describes a server, and none is named: the embedded engine would be \
         measured, and stored as that"
    );
    Err(origins
        .failure(&format!("metadata.{key}"), &what)
        .hint("add the URL of the server to the command, or remove the key"))
}

/// The cores that the system lets this process use.
pub(crate) fn cores_allowed() -> Vec<u32> {
    let allowed = inferometer_load::resources::allowed();
    allowed.into_iter().filter_map(|core| u32::try_from(core).ok()).collect()
}

/// Length of a file that becomes part of every body. It is stored in the manifest, too.
const BODY_FILE_BYTES_MAX: u64 = 4 << 20;

/// Puts the text of `prompt_file` into `prompt`. The line break at its end is the editor's.
fn read_prompt_file(source: &mut SourceTable) -> Result<()> {
    let Some(path) = source.prompt_file.take() else { return Ok(()) };
    if source.prompt.is_some() {
        return Err(Failure::usage("--prompt and --prompt-file both set the prompt; set one"));
    }
    let text = file::read_text(&path, BODY_FILE_BYTES_MAX)
        .map_err(|error| Failure::usage(format!("prompt file {}: {error}", path.display())))?;
    let prompt = text.trim_end_matches(['\r', '\n']);
    if prompt.is_empty() {
        return Err(Failure::usage(format!("prompt file {} is empty", path.display())));
    }
    source.prompt = Some(prompt.to_owned());
    Ok(())
}

/// Puts the tool definitions of a file into the extra fields of the body.
fn read_tools_file(body: &mut BodyTable) -> Result<()> {
    let Some(path) = body.tools.take() else { return Ok(()) };
    let unusable = |why: String| Failure::usage(format!("tools {}: {why}", path.display()));
    let text =
        file::read_text(&path, BODY_FILE_BYTES_MAX).map_err(|error| unusable(error.to_string()))?;
    let tools: Value =
        serde_json::from_str(&text).map_err(|error| unusable(format!("not JSON ({error})")))?;
    let are_tools = |tools: &Vec<Value>| !tools.is_empty() && tools.iter().all(Value::is_object);
    if !tools.as_array().is_some_and(are_tools) {
        return Err(unusable("must be a list of tool definitions, each a JSON object".to_owned()));
    }
    if body.extra.get_or_insert_with(Map::new).insert("tools".to_owned(), tools).is_some() {
        return Err(SpecError::FieldTwice("tools".to_owned()).into());
    }
    Ok(())
}

/// SLOs in both of their forms: `slos = ["ttft<500ms"]` and `ttft = "500ms"`. Older files call the
/// list `promises`.
fn slos(table: BTreeMap<String, Value>, origins: &Origins) -> Result<Vec<Slo>> {
    let mut slos = Vec::new();
    for (key, value) in table {
        let place = format!("slo.{key}");
        let texts = if let Some(list) = value.as_array() {
            if !["slos", "promises"].contains(&key.as_str()) {
                let what = format!("`{place}` must be one threshold; a list of SLOs is `slos`");
                return Err(origins.failure(&place, &what));
            }
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        } else {
            // A threshold without a sign is an upper one.
            let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().into());
            let sign = if text.starts_with(['<', '>']) { "" } else { "<" };
            vec![format!("{key}{sign}{text}")]
        };
        for text in texts {
            let refused = |error: String| origins.failure(&place, &error);
            slos.push(text.parse().map_err(refused)?);
        }
    }
    Ok(slos)
}

fn repetition(said: &RepeatTable) -> Result<Repetition> {
    let runs = said.runs.unwrap_or(1);
    let Some(runs) = NonZeroU32::new(runs).filter(|runs| runs.get() <= RUNS_MAX) else {
        return Err(Failure::usage(format!("--repeat must be from 1 to {RUNS_MAX}, not {runs}")));
    };
    let stop_at = said.stop_at.clone().map(|stop_at| stop_at.0);
    if let Some(stop_at) = &stop_at {
        Quantity::named(&stop_at.quantity, LatencyOrigin::Sent)
            .map_err(|problem| Failure::usage(format!("--stop-at: {problem}")))?;
    }
    if said.restart.as_ref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Failure::usage("--restart is empty: there is no command to run")
            .hint("leave it out, or give the command that restarts the server"));
    }
    let cool_down = said.cool_down.map_or(Duration::ZERO, |time| time.0);
    Ok(Repetition { runs, cool_down, restart: said.restart.clone(), stop_at })
}

/// Flags about the time between runs need several runs. Those of a file are kept for more runs where
/// `--repeat 1` overrides its number.
fn check_repeats(merged: &RepeatTable, typed: &RepeatTable) -> Result<()> {
    let said = if merged.runs.is_none() { merged } else { typed };
    let between = [
        (said.cool_down.is_some(), "--cool-down pauses between repeated runs"),
        (said.restart.is_some(), "--restart runs between repeated runs"),
        (said.restart_timeout.is_some(), "--restart-timeout waits between repeated runs"),
        (said.stop_at.is_some(), "--stop-at ends repeated runs early"),
    ];
    refuse_alone(merged, &between)
}

fn refuse_alone(table: &RepeatTable, flags: &[(bool, &str)]) -> Result<()> {
    let once = table.runs.is_none_or(|runs| runs == 1);
    let Some((_, why)) = flags.iter().find(|(is_set, _)| *is_set && once) else { return Ok(()) };
    Err(Failure::usage(format!("{why}; set --repeat to more than 1 too, or leave it out")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pasted_endpoint_chooses_its_api() {
        assert_eq!(Api::from_path("http://h/v1/chat/completions"), Some(Api::Chat));
        assert_eq!(Api::from_path("http://h/v1/completions/"), Some(Api::Completions));
        assert_eq!(Api::from_path("http://h/v1"), None);
    }

    #[test]
    fn repetition_is_bounded_and_rest_needs_it() {
        let said = |runs, cool_down: Option<u64>| RepeatTable {
            runs,
            cool_down: cool_down.map(|seconds| Duration::from_secs(seconds).into()),
            ..RepeatTable::default()
        };
        let found = repetition(&said(Some(5), Some(60))).unwrap();
        assert_eq!((found.runs.get(), found.cool_down), (5, Duration::from_mins(1)));
        assert!(repetition(&said(Some(0), None)).is_err());
        assert!(check_repeats(&said(Some(2), Some(60)), &said(Some(2), Some(60))).is_ok());
        assert!(check_repeats(&said(Some(1), Some(60)), &said(Some(1), Some(60))).is_err());
        assert!(check_repeats(&said(None, Some(60)), &said(None, Some(60))).is_err());
        let restart = RepeatTable { restart: Some("true".to_owned()), ..RepeatTable::default() };
        assert!(check_repeats(&restart, &restart).is_err());
        let empty = RepeatTable { restart: Some(" ".to_owned()), ..RepeatTable::default() };
        assert!(repetition(&empty).is_err());
    }

    fn written(table: Value) -> Vec<String> {
        let slos = slos(serde_json::from_value(table).unwrap(), &Origins::default()).unwrap();
        slos.iter().map(Slo::to_string).collect()
    }

    #[test]
    fn both_forms_of_an_slo_mean_the_same() {
        let keys = json!({
            "ttft": "500ms",
            "tpot.p99": "50ms",
            "e2e.p95": "<= 2s",
            "output_throughput": "> 1000",
        });
        let wanted = ["e2e.p95<=2s", "output_throughput>1000", "tpot.p99<50ms", "ttft<500ms"];
        assert_eq!(written(keys), wanted);
        for list in ["slos", "promises"] {
            assert_eq!(written(json!({ list: wanted })), wanted);
        }
    }

    #[test]
    fn an_slo_without_a_threshold_is_refused() {
        let wrong = [
            json!({ "ttft": "soon" }),
            json!({ "slos": ["ttft"] }),
            json!({ "ttft": ["ttft<1s"] }),
        ];
        for wrong in wrong {
            let table = serde_json::from_value(wrong).unwrap();
            assert!(slos(table, &Origins::default()).is_err());
        }
    }
}
