//! What `bundle --redact` leaves out: prompts, paths, host names, addresses, commands, labels, and what the
//! server said.
//!
//! Every field of a manifest that can hold a text is named here, so that a new one does not compile before
//! somebody has decided whether it is private. Only files that are written here enter the bundle.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use inferometer_analysis::compliance::AUDIT_KEYS;
use inferometer_model::deployment::{
    CommandsSpec, ContainerSpec, DeploymentFailure, DeploymentHow, DeploymentSpec, EnvironmentSpec,
    ProcessSpec,
};
use inferometer_model::observations::{Endpoint, FileFacts, Materials, Simulated, TokenizerFacts};
use inferometer_model::record::FinishReason;
use inferometer_model::spec::{
    Adapters, BodySpec, Control, DatasetPart, DatasetSpec, DevicesAsked, Expect, FixedPrompt,
    MetricsSource, MixPart, SessionsSpec, Source, Spec, TargetSpec, TelemetrySpec, TraceSpec,
    Workload, Written,
};
use inferometer_model::stripe::{HostFacts, MergeFacts, StripeFacts, WorkerFacts, WorkerRun};
use inferometer_model::study::{
    Condition, PointFailure, Question, Repetition, Scenario, SetManifest, StudySpec, Suite,
};
use inferometer_model::system::{Environment, ServerFacts};
use inferometer_model::telemetry::DevicesAbsence;
use inferometer_model::{BaseUrl, JournalEntry, Manifest, REDACTED, RequestRecord};
use inferometer_store::{JournalWriter, RunDirectory, SetDirectory, Stored};
use inferometer_study::play;
use serde::Serialize;

use super::super::seal_summary;
use super::Scratch;
use crate::failure::{Failure, Result};
use crate::report_files::{self, PageData};

const HOST: &str = "redacted.invalid";
/// From the block of documentation, where nobody listens.
const ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), DISCARD);
const DISCARD: u16 = 9;

/// A copy of a run or of a set. Its summaries and pages are computed again from what is left, so that it
/// is verified like any other.
pub(super) fn redact(found: &Stored) -> Result<Scratch> {
    let folder = Scratch::new(found.id())?;
    match found {
        Stored::Run(run) => copy_run(run, &folder.0)?,
        Stored::Set(set) => copy_set(set, &folder.0)?,
        Stored::Import(..) => {}
    }
    Ok(folder)
}

fn copy_run(run: &RunDirectory, to: &Path) -> Result<()> {
    let observations = run.read().map_err(Failure::from_usage)?.observations;
    let mut manifest = observations.manifest;
    redact_manifest(&mut manifest);
    write_json(&to.join("manifest.json"), &manifest)?;
    copy_journal(run, &to.join("requests.journal"))?;
    // It holds numbers, but for what the tool of the GPUs said when it failed.
    let telemetry = run.path().join("telemetry.journal");
    let has_words =
        matches!(observations.machines.devices_absence, Some(DevicesAbsence::Failed(_)));
    if telemetry.is_file() && !has_words {
        std::fs::copy(telemetry, to.join("telemetry.journal")).map_err(Failure::from_error)?;
    }
    let copy = RunDirectory::at(to.to_owned());
    seal_summary(&copy, &copy.read().map_err(Failure::from_error)?)?;
    report_files::write_run(&copy);
    Ok(())
}

fn copy_set(set: &SetDirectory, to: &Path) -> Result<()> {
    let mut manifest = set.manifest().map_err(Failure::from_usage)?;
    redact_set(&mut manifest)?;
    write_json(&to.join("set.json"), &manifest)?;
    let copy = SetDirectory::at(to.to_owned());
    for number in set.points().map_err(Failure::from_usage)? {
        let point = copy.point(number);
        std::fs::create_dir_all(point.path()).map_err(Failure::from_error)?;
        copy_run(&set.point(number), point.path())?;
    }
    for mut failed in set.failures().map_err(Failure::from_usage)? {
        let PointFailure { failure, point: _, at: _ } = &mut failed;
        let DeploymentFailure { what, log, stage: _, cause: _ } = failure;
        strike(what);
        log.clear();
        copy.write_failure(&failed).map_err(Failure::from_error)?;
    }
    let read = |run: &RunDirectory| seal_summary(run, &run.read().map_err(Failure::from_error)?);
    let replay = play::replay_finished(&copy, &manifest, read)?;
    let summary = replay.summary.ok_or_else(|| Failure::usage("the set is not finished"))?;
    copy.write_summary(&summary.to_json_bytes()).map_err(Failure::from_error)?;
    let data = PageData::from_set(&summary, &replay.results);
    let page = report_files::stored_document(&Stored::Set(copy))?;
    report_files::write_html(to, &page, &data)?;
    Ok(())
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let json = serde_json::to_string_pretty(value).map_err(Failure::from_error)?;
    report_files::write_file(path, &(json + "\n"))
}

/// The journal without what the server said.
fn copy_journal(run: &RunDirectory, to: &Path) -> Result<()> {
    let reader = run.open_journal().map_err(Failure::from_usage)?;
    let file = File::create(to).map_err(Failure::from_error)?;
    let mut writer = JournalWriter::new(file, to.to_owned());
    for entry in reader {
        let mut entry = entry.map_err(Failure::from_error)?;
        if let JournalEntry::Ended(record) = &mut entry {
            redact_record(record);
        }
        writer.append(&entry).map_err(Failure::from_error)?;
    }
    writer.flush().map_err(Failure::from_error)
}

fn redact_record(record: &mut RequestRecord) {
    record.ending.message.iter_mut().chain(&mut record.other_model).for_each(strike);
    for finish in &mut record.finishes {
        if let FinishReason::Other(text) = &mut finish.reason {
            strike(text);
        }
    }
}

fn strike(text: &mut String) {
    REDACTED.clone_into(text);
}

fn strike_all<'a>(texts: impl IntoIterator<Item = &'a mut String>) {
    texts.into_iter().for_each(strike);
}

/// A name that is public, such as one of the hub, unless it is a path.
fn strike_path(name: &mut String) {
    if name.split(' ').any(|word| word.starts_with(['/', '.', '~']) || word.contains('\\')) {
        strike(name);
    }
}

fn strike_url(url: &mut BaseUrl) {
    *url = BaseUrl { host: HOST.to_owned(), port: DISCARD, prefix: String::new(), tls: url.tls };
}

fn strike_host(host: &mut HostFacts) {
    let HostFacts { name, boot, clock_source: _, synchronized: _, error_ns: _ } = host;
    strike_all(std::iter::once(name).chain(boot));
}

#[rustfmt::skip]
fn redact_manifest(manifest: &mut Manifest) {
    let Manifest {
        spec, materials, endpoint, environment, server, simulated, stripe, merged,
        format: _, run: _, started: _, clock: _, bounds: _, fingerprints: _, warm_up: _,
        seen_before: _, calibration: _,
    } = manifest;
    redact_spec(spec);
    let Materials { tokenizer, files, notes, input_length: _ } = materials;
    notes.clear();
    strike_all(tokenizer.iter_mut().map(|TokenizerFacts { name, sha256: _ }| name));
    strike_all(files.iter_mut().map(
        |FileFacts { name, kind: _, sha256: _, items: _, dropped: _ }| name,
    ));
    let Endpoint { base, address, model, usage: _, connections: _, pinned: _, embedded: _ } = endpoint;
    strike_url(base);
    *address = ADDRESS;
    strike_path(model);
    let Environment {
        proxy_variables, command, tool_version: _, os: _, kernel: _, architecture: _, cpu_model: _,
        cpus: _, machine: _,
    } = environment;
    proxy_variables.clear();
    *command = None;
    if let Some(ServerFacts {
        start_command, processes, deployment, other, software: _, version: _, model_revision: _,
        context_tokens: _, machine: _, known_by: _, pretended: _, gpus_used: _,
    }) = server {
        (*start_command, *deployment) = (None, None);
        processes.clear();
        other.clear();
    }
    if let Some(Simulated { profile, engine, model_error: _, prediction: _ }) = simulated {
        strike_path(profile);
        strike_path(engine);
    }
    if let Some(StripeFacts { host, stripe: _, start_ns: _, whole: _ }) = stripe {
        strike_host(host);
    }
    if let Some(MergeFacts { workers, clock_error_ns: _ }) = merged {
        for WorkerRun {
            host, run: _, stop: _, late_ns: _, attempted: _, not_sent: _, loop_lag: _, driver_cpu_us: _,
        } in workers.iter_mut().filter_map(|WorkerFacts { run, stripe: _ }| run.as_mut()) {
            strike_host(host);
        }
    }
}

#[rustfmt::skip]
fn redact_spec(spec: &mut Spec) {
    let Spec {
        target, replicas, engine, model, workload, telemetry, header_names, metadata, server_info, answers,
        control, api: _, load: _, seed: _, connections: _, client: _, limits: _, slos: _, price: _,
    } = spec;
    match target {
        TargetSpec::Embedded => {}
        TargetSpec::Url(url) => strike_url(url),
        TargetSpec::Deployed(deployment) => redact_deployment(deployment),
    }
    replicas.iter_mut().for_each(strike_url);
    // The other options of the engine are numbers and kinds.
    [&mut engine.profile, &mut engine.hardware, &mut engine.model, model]
        .into_iter()
        .flatten()
        .for_each(strike_path);
    let Workload { source, tokenizer, body, streaming: _, counting: _ } = workload;
    redact_source(source);
    let BodySpec { fields, adapters, media, pin_output: _, images: _, batch: _ } = body;
    let files = media.audio.as_mut().and_then(|audio| audio.files.as_mut());
    for path in media.image_files.as_mut().into_iter().chain(files) {
        *path = PathBuf::from(REDACTED);
    }
    fields.retain(|_, value| value.is_number() || value.is_boolean());
    if let Some(Adapters { names, choice: _ }) = adapters {
        strike_all(names);
    }
    if let Some(TelemetrySpec { path, sources, devices, every: _ }) = telemetry {
        strike(path);
        for MetricsSource { base, path, role: _ } in sources {
            strike_url(base);
            strike(path);
        }
        if let DevicesAsked::Dcgm(url) = devices {
            strike_url(url);
        }
    }
    let Control { before_run, after_run, abort_on: _ } = control;
    before_run.clear();
    after_run.clear();
    if let Some(Written(Expect::Found(pattern))) = &mut answers.expect {
        strike(pattern);
    }
    strike_all(header_names.iter_mut().chain(tokenizer).chain(server_info));
    metadata.retain(|key, _| AUDIT_KEYS.contains(&key.as_str()));
}

fn redact_deployment(deployment: &mut DeploymentSpec) {
    let DeploymentSpec { how, environment, ready_timeout: _, grace: _, renewal: _ } = deployment;
    *environment = EnvironmentSpec::default();
    match how {
        DeploymentHow::Process(ProcessSpec { command, folder }) => {
            *command = vec![REDACTED.to_owned()];
            *folder = None;
        }
        DeploymentHow::Container(ContainerSpec { engine, image, options, arguments, port: _ }) => {
            strike_all([engine, image]);
            options.clear();
            arguments.clear();
        }
        DeploymentHow::Commands(CommandsSpec { up, url, logs, down }) => {
            strike_all([up, url, down].into_iter().chain(logs));
        }
    }
}

fn redact_source(source: &mut Source) {
    match source {
        Source::Synthetic(_)
        | Source::VllmRandom(_)
        | Source::Conversations(_)
        | Source::Agents(_) => {}
        Source::Dataset(DatasetSpec {
            path,
            part,
            kind: _,
            input: _,
            output: _,
            keep_order: _,
        }) => {
            *path = PathBuf::from(REDACTED);
            *part = DatasetPart::default();
        }
        Source::Trace(TraceSpec { path, kind: _, keep: _ })
        | Source::Sessions(SessionsSpec { path, kind: _, history: _ })
        | Source::Saved { path, chooses_output: _ } => *path = PathBuf::from(REDACTED),
        Source::Fixed(FixedPrompt { prompt, output: _ }) => strike(prompt),
        Source::Mix(parts) => {
            for (number, MixPart { name, source, weight: _ }) in (1..).zip(parts) {
                *name = format!("part {number}");
                redact_source(source);
            }
        }
    }
}

#[rustfmt::skip]
fn redact_set(manifest: &mut SetManifest) -> Result<()> {
    let SetManifest {
        study, key_files, workers, format: _, set: _, started: _, tool_version: _, simulated: _,
    } = manifest;
    key_files.clear();
    *workers = None;
    let StudySpec { question, conditions, repetition, order: _, seed: _ } = study;
    let Repetition { restart, runs: _, cool_down: _, stop_at: _ } = repetition;
    strike_all(restart);
    for (number, Condition { name, spec }) in (1..).zip(conditions) {
        *name = format!("condition {number}");
        redact_spec(spec);
    }
    match question {
        Question::Repeat | Question::Sweep(_) => {}
        Question::Suite(Suite { name, title, changes, scenarios, hash: _, prompts: _ }) => {
            strike_all([name, title].into_iter().chain(changes));
            for Scenario { category, purpose, levels: _, waves: _ } in scenarios {
                strike_all([category, purpose]);
            }
        }
        Question::Matrix(_) => {
            return Err(Failure::usage("--redact does not work on a matrix")
                .hint("bundle its runs one by one: NAME/0"));
        }
    }
    Ok(())
}
