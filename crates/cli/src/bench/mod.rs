//! `inferometer bench`: `vllm bench` with our client.
//!
//! The flags of `vllm bench serve` become tables of an experiment, so that it is resolved and measured as
//! any `run`; what it prints and writes is in vLLM's formats. What is not supported is in one table,
//! with the reason and an alternative.

mod refused;
mod result;
mod tables;

use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use inferometer_analysis::tool_result::{ResultRate, ToolResult};
use inferometer_analysis::{Verdict, check_goals};
use inferometer_interchange::vllm::block;
use inferometer_load::{SystemClock, Target};
use inferometer_model::fetch::{Post, PostRequest};
use inferometer_model::spec::{LimitTable, TargetTable, WorkloadTable};
use inferometer_model::{BaseUrl, Clock, Observations, Outcome, SpecDraft};
use inferometer_report::escape;
use inferometer_runner::Session;
use inferometer_workload::{Inputs, WorkloadError};

use self::refused::REFUSALS;
use self::result::{Figures, ResultFile};
use self::tables::{Context, Data};
use crate::arguments::{
    BenchArguments, BenchCommand, Definitions, Experiment, ExperimentArguments, PageFormat,
    ServeBenchArguments, ServeLoadArguments, SweepBenchCommand,
};
use crate::commands::{page, print_reservations, store};
use crate::draft::{announce_seed, draft};
use crate::failure::{Exit, Failure, Result};
use crate::measurement::{self, Live, Planned, Run, RunLocation, Server};
use crate::preflight::{addressed, fetching, first_model};
use crate::secrets::Secrets;
use crate::signals::begin_session;
use crate::{bench_sweep, output};

pub(crate) use refused::Refused;
pub(crate) use tables::origin;

pub(crate) fn run(arguments: &BenchArguments) -> Result<ExitCode> {
    match &arguments.what {
        BenchCommand::Serve(arguments) => serve(arguments),
        BenchCommand::Sweep(arguments) => {
            let SweepBenchCommand::Serve(typed) = &arguments.what;
            bench_sweep::run(typed)
        }
    }
}

/// A run that is reported as `vllm bench serve` reports it.
fn serve(typed: &ServeBenchArguments) -> Result<ExitCode> {
    let bench = BenchExperiment::from_arguments(typed)?;
    for note in &bench.notes {
        output::talk(&format!("note: {note}"));
    }
    let drafted = draft(&bench.experiment).map_err(theirs)?;
    let spec = drafted.resolve().map_err(theirs)?;
    check_goals(&spec).map_err(Failure::from_usage)?;
    let file = ResultFile::from_arguments(typed, &bench.figures)?;
    let inputs = Inputs::gather(&spec).map_err(ungathered)?;
    let planned = Planned::from_ingredients(spec, inputs);
    planned.check_sends_something()?;
    let ceiling = measurement::ceiling(&planned.spec);
    measurement::check_ceiling(&planned.spec, ceiling).map_err(theirs)?;
    let store = store(&typed.report.store)?;
    store.check_writable().map_err(Failure::from_usage)?;
    let prints_block = typed.report.definitions != Some(Definitions::Inferometer);
    let waits = prints_block && !bench.patience.is_zero();
    if waits {
        output::result("Starting initial single prompt test run...\n")?;
    }
    // The server, as soon as it is there.
    let live = until_ready(bench.patience, || {
        let server = Arc::new(Server::new(&planned.spec)?);
        Live::reach(server, &drafted.secrets, &planned).map_err(theirs)
    })?;
    let live = live.naming_requests(bench.request_id_prefix.clone());
    if waits {
        output::result("Initial test run completed.\n")?;
    }
    if prints_block {
        output::result(&traffic_lines(&typed.load, bench.recorded))?;
    }
    let session = begin_session(ceiling, typed.report.disable_tqdm)?;
    announce_seed(typed.report.disable_tqdm);
    session.emit(live.opening());
    if typed.report.profile {
        // A server without a profiler is refused before anything is measured.
        post(live.target(), "/start_profile").map_err(|failure| {
            failure.hint("start the server with its profiler enabled, or leave --profile out")
        })?;
    }
    let measured = live.measure(planned, RunLocation::in_store(&store), &session);
    // The profiler is stopped even if the run failed. The run counts even if this fails.
    if typed.report.profile
        && let Err(failure) = post(live.target(), "/stop_profile")
    {
        let message = escape::terminal(failure.message());
        output::talk(&format!("the profile may be incomplete: {message}"));
    }
    let exit = show(typed, &bench, &measured?, file, &session)?;
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn show(
    typed: &ServeBenchArguments,
    bench: &BenchExperiment,
    measured: &Run,
    file: Option<ResultFile>,
    session: &Session,
) -> Result<Option<Exit>> {
    let Run { summary, directory, .. } = measured;
    let definitions = typed.report.definitions.unwrap_or_default();
    let stored = directory.read()?;
    let observations = &stored.observations;
    let (percentiles, detail) = (&bench.figures.of_block.percentiles, typed.report.save_detailed);
    let result = ToolResult::of_vllm_summed(summary, observations, percentiles, detail);
    stored.check_read()?;
    let result = bench.as_typed(result, typed);
    if definitions != Definitions::Inferometer {
        print_failures(observations);
        // The format of the block is vLLM's and has no lines for warnings.
        if definitions == Definitions::Vllm {
            print_reservations(summary, directory);
        }
        output::result(&block::from_result(&result, &bench.figures.of_block))?;
    }
    if definitions != Definitions::Vllm {
        output::result(&page(summary, directory, &[], PageFormat::Full))?;
    }
    if let Some(file) = file {
        let path = file.write(&result)?;
        session.talk(&format!("the result is in {}", path.display()));
    }
    // A signal decides first. SLOs of goodput are counted, not met or missed.
    let cut = session.interruption.exit().filter(|_| summary.run.partial);
    Ok(cut.or((summary.verdict == Verdict::Invalid).then_some(Exit::RunInvalid)))
}

/// The model's name is also used for its tokenizer, so a hint explains a missing tokenizer.
fn ungathered(error: WorkloadError) -> Failure {
    let is_tokenizer = matches!(error, WorkloadError::Tokenizer(_));
    let failure = theirs(error.into());
    if !is_tokenizer {
        return failure;
    }
    failure.hint("set --tokenizer (a folder or file works offline), or --skip-tokenizer-init")
}

/// Prints as many failed requests as vLLM's client.
fn print_failures(observations: &Observations) {
    const SHOWN_MAX: usize = 10;
    let failed = observations.records.iter().filter(|record| record.ending.outcome != Outcome::Ok);
    for (number, record) in failed.take(SHOWN_MAX).enumerate() {
        if number == 0 {
            output::talk(&format!(
                "Failed requests during benchmark run detected (capping to {SHOWN_MAX}):"
            ));
        }
        let ending = &record.ending;
        let cause = ending.cause.map_or_else(|| ending.outcome.help(), |cause| cause.text());
        let message = escape::terminal_line(ending.message.as_deref().unwrap_or(cause), 500);
        output::talk(&format!("Error {number}: {}: {message}", ending.outcome));
    }
}

/// An experiment of `vllm bench serve`.
#[derive(Debug)]
pub(crate) struct BenchExperiment {
    experiment: ExperimentArguments,
    figures: Figures,
    /// By vLLM's names, for its file.
    backend: String,
    model: String,
    tokenizer: Option<String>,
    request_id_prefix: Option<String>,
    /// Whether requests are sent at the timestamps of the data.
    recorded: bool,
    /// How long to wait for the server to become ready.
    patience: Duration,
    /// Differences from vLLM's client that its users should know.
    notes: Vec<String>,
}

/// A server that takes longer to accept a connection is not reachable.
const CONNECT: Duration = Duration::from_mins(1);

impl BenchExperiment {
    /// Asks the server for its first model where none is named; sends nothing else.
    pub(crate) fn from_arguments(typed: &ServeBenchArguments) -> Result<Self> {
        typed.refused.check()?;
        let backend = typed.target.backend.clone().unwrap_or_else(|| "openai".to_owned());
        let api = tables::api(&backend)?;
        let base = tables::base_url(&typed.target, api)?;
        let figures = Figures::from_arguments(&typed.report, api.generates())?;
        check_tokenizer(typed)?;
        let no_self_timed = typed.load.no_self_timed.then_some(false);
        let context = Context {
            api,
            has_tokenizer: !typed.target.skip_tokenizer_init,
            requests: tables::requests(&typed.load)?,
            self_timed: typed.load.self_timed.then_some(true).or(no_self_timed),
        };
        let data = Data::from_arguments(&typed.data, context)?;
        let mut load = tables::load_table(&typed.load, data.recorded)?;
        load.requests = data.requests.or(load.requests);
        let pins_output = data.pins_output || typed.body.ignore_eos;
        let mut body = tables::body_table(typed, api, pins_output)?;
        body.batch = data.batch;
        (body.images, body.image_size) = data.images.unzip();
        let headers = headers(&typed.target.header)?;
        let patience = Duration::from_secs(typed.load.ready_check_timeout_sec.unwrap_or(0));
        let (requested, model, tokenizer) = names(typed, &base, &headers, patience)?;
        let mut notes = data.notes;
        notes.extend(unused_flags(typed, &base));
        // vLLM's client waits this long for a whole answer, and has no other limit.
        let wait = Some(Duration::from_hours(6).into());
        let limits = LimitTable {
            connect: Some(CONNECT.into()),
            first_token: wait,
            idle: wait,
            total: wait,
            drain: None,
        };
        let target = TargetTable {
            api: Some(api),
            model: Some(requested),
            insecure: (typed.target.insecure && base.tls).then_some(true),
            ..TargetTable::default()
        };
        let workload = WorkloadTable {
            source: data.source,
            tokenizer: tokenizer.clone(),
            seed: typed.load.seed,
            body,
            ..WorkloadTable::default()
        };
        let experiment = ExperimentArguments {
            places: vec![base.to_string()],
            // As vLLM's client, it does what is typed.
            no_config: true,
            tables: Experiment { target, workload, load, limits, ..Experiment::default() },
            headers,
            slos: figures.slos.clone(),
            facts: typed.report.metadata.clone(),
            ..ExperimentArguments::default()
        };
        Ok(Self {
            experiment,
            figures,
            backend,
            model,
            tokenizer,
            request_id_prefix: request_id_prefix(typed)?,
            recorded: data.recorded,
            patience,
            notes,
        })
    }

    /// The result with the load and the names as they were typed: vLLM's client repeats them.
    fn as_typed(&self, mut result: ToolResult, typed: &ServeBenchArguments) -> ToolResult {
        let load = &typed.load;
        let rate = load.request_rate.filter(|rate| rate.is_finite());
        result.backend = Some(self.backend.clone());
        result.model = Some(self.model.clone());
        result.tokenizer.clone_from(&self.tokenizer);
        result.request_rate = Some(rate.map_or(ResultRate::Unlimited, ResultRate::PerSecond));
        result.burstiness = Some(load.burstiness.unwrap_or(1.0));
        result.max_concurrency = load.max_concurrency;
        // vLLM's client repeats what was typed, also where its data has fewer.
        result.requests_planned = tables::requests(load).ok();
        let position = |key: &str| {
            let is_key = |typed: &String| typed.split('=').next().map(str::trim) == Some(key);
            typed.report.metadata.iter().position(is_key)
        };
        result.metadata.sort_by_key(|(key, _)| position(key));
        result
    }
}

/// A dash separates it from the number of the request in the header.
fn request_id_prefix(typed: &ServeBenchArguments) -> Result<Option<String>> {
    let Some(prefix) = &typed.target.request_id_prefix else { return Ok(None) };
    if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::usage("--request-id-prefix must be printable ASCII without blanks"));
    }
    Ok(Some(prefix.strip_suffix('-').unwrap_or(prefix).to_owned()))
}

fn headers(typed: &[String]) -> Result<Vec<String>> {
    // The value is not repeated in the message: it may be a key.
    let header = |typed: &String| match typed.split_once('=') {
        Some((name, value)) => Ok(format!("{}: {}", name.trim(), value.trim())),
        None => Err(Failure::usage("--header must be of the form KEY=VALUE")),
    };
    typed.iter().map(header).collect()
}

fn check_tokenizer(typed: &ServeBenchArguments) -> Result<()> {
    let mode = typed.target.tokenizer_mode.as_deref().unwrap_or("auto");
    if !matches!(mode, "auto" | "hf") {
        return Err(Failure::usage(format!(
            "--tokenizer-mode {mode} cannot be honoured: tokenizers are read from tokenizer.json"
        ))
        .hint("name one that has such a file with --tokenizer, or use --skip-tokenizer-init"));
    }
    if typed.target.skip_tokenizer_init && typed.target.tokenizer.is_some() {
        return Err(Failure::usage("--tokenizer and --skip-tokenizer-init contradict each other"));
    }
    Ok(())
}

/// The model's name in requests and in the result, and its tokenizer.
fn names(
    typed: &ServeBenchArguments,
    base: &BaseUrl,
    headers: &[String],
    patience: Duration,
) -> Result<(String, String, Option<String>)> {
    let target = &typed.target;
    let (id, model) = if let Some(model) = &target.model {
        (model.clone(), model.clone())
    } else {
        let insecure = Some(target.insecure && base.tls);
        let over = TargetTable { insecure, ..TargetTable::default() };
        let draft = SpecDraft { url: Some(base.clone()), target: over, ..SpecDraft::default() };
        let (spec, secrets) = (draft.resolve()?, Secrets::read(None, headers)?);
        let first =
            until_ready(patience, || first_model(&addressed(&spec, &secrets, base)?, &secrets))?;
        (first.id.clone(), first.root.unwrap_or(first.id))
    };
    let requested = target.served_model_name.clone().unwrap_or(id);
    let tokenizer =
        (!target.skip_tokenizer_init).then(|| target.tokenizer.clone().unwrap_or(model.clone()));
    Ok((requested, model, tokenizer))
}

/// A note for each flag and variable that is set and has no effect.
fn unused_flags(typed: &ServeBenchArguments, base: &BaseUrl) -> Vec<String> {
    /// With it vLLM's client writes one more file.
    const PYTORCH_FORMAT: &str = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT";
    let ServeBenchArguments { target, load, report, .. } = typed;
    let notes = [
        (target.trust_remote_code, "--trust-remote-code", ": no code of a model is run"),
        (target.insecure && !base.tls, "--insecure", ": the URL is not https"),
        (
            target.lora_modules.is_empty() && target.lora_assignment.is_some(),
            "--lora-assignment",
            " without --lora-modules",
        ),
        (
            load.burstiness.is_some()
                && load.ramp_up_strategy.is_none()
                && load.request_rate.is_none_or(f64::is_infinite),
            "--burstiness",
            ": all requests are sent at once, with no gaps between them",
        ),
        (
            report.save_detailed && !report.save_result && !report.append_result,
            "--save-detailed",
            " without --save-result or --append-result",
        ),
        (
            std::env::var_os(PYTORCH_FORMAT).is_some_and(|set| !set.is_empty()),
            PYTORCH_FORMAT,
            ": no .pytorch.json is written; --save-result has the same metrics",
        ),
    ];
    let unused = notes.into_iter().filter(|(is_unused, ..)| *is_unused);
    unused.map(|(_, flag, why)| format!("{flag} changes nothing{why}")).collect()
}

/// Repeats a question to the server until it is answered, fails for good, or no time is left.
fn until_ready<T>(patience: Duration, mut ask: impl FnMut() -> Result<T>) -> Result<T> {
    let clock = SystemClock::new();
    loop {
        let waited = Duration::from_nanos(clock.now().as_nanos());
        match ask() {
            Err(failure) if failure.is_passing() && waited < patience => {
                std::thread::sleep(Duration::from_secs(1).min(patience.saturating_sub(waited)));
            }
            ended => return ended,
        }
    }
}

fn post(target: &Target, path: &str) -> Result<()> {
    // Writing a profile takes its time.
    let patience = Duration::from_mins(10);
    let request = PostRequest { path, json: "{}", body_limit: 1 << 20, patience };
    match fetching(target, async |fetch| fetch.post(request).await)? {
        Ok(reply) if (200..300).contains(&reply.status) => Ok(()),
        Ok(reply) => Err(Failure::target(format!("{path} answered HTTP {}", reply.status))),
        Err(error) => Err(Failure::target(format!("{path} did not answer: {error}"))),
    }
}

/// What vLLM's client prints about its load; `recorded` as in [`BenchExperiment`].
fn traffic_lines(typed: &ServeLoadArguments, recorded: bool) -> String {
    let mut text = "Starting main benchmark run...\n".to_owned();
    if recorded {
        return text + "Self timing is set, using the timestamps from the trace file.\n";
    }
    if let Some(strategy) = typed.ramp_up_strategy {
        let from = typed.ramp_up_start_rps.unwrap_or_default();
        let to = typed.ramp_up_end_rps.unwrap_or_default();
        let _ = write!(
            text,
            "Traffic ramp-up strategy: {strategy}.\n\
             Will increase RPS from {from} to {to} RPS over the duration of the benchmark.\n"
        );
    } else {
        let rate = typed.request_rate.unwrap_or(f64::INFINITY);
        let _ = writeln!(text, "Traffic request rate: {rate:?}");
    }
    let burstiness = typed.burstiness.unwrap_or(1.0);
    let is_poisson = (burstiness - 1.0).abs() < f64::EPSILON;
    let gaps = if is_poisson { "Poisson process" } else { "Gamma distribution" };
    let cap = typed.max_concurrency.map_or_else(|| "None".to_owned(), |cap| cap.to_string());
    let _ = write!(
        text,
        "Burstiness factor: {burstiness:?} ({gaps})\nMaximum request concurrency: {cap}\n"
    );
    text
}

/// The same failure with the flags of `vllm bench serve`.
fn theirs(failure: Failure) -> Failure {
    failure.reworded(reworded)
}

fn reworded(text: &str) -> String {
    let is_boundary = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let pieces = text.split_inclusive(is_boundary).flat_map(|piece| {
        let word = piece.trim_end_matches(is_boundary);
        let theirs = REFUSALS.renamed.get(word).map_or(word, String::as_str);
        [theirs, &piece[word.len()..]]
    });
    pieces.collect()
}

/// The same command line; behind `bench`, flags have dashes where they were typed with underscores.
pub(crate) fn with_dashes(typed: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut typed: Vec<OsString> = typed.collect();
    if typed.get(1).is_none_or(|command| command != "bench") {
        return typed;
    }
    for argument in &mut typed[2..] {
        let Some(flag) = argument.to_str().and_then(|text| text.strip_prefix("--")) else {
            continue;
        };
        let end = flag.find('=').unwrap_or(flag.len());
        let (name, value) = flag.split_at(end);
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            *argument = format!("--{}{value}", name.replace('_', "-")).into();
        }
    }
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_asked_again_until_there_is_no_time() {
        let mut asked = 0;
        let found = until_ready(Duration::from_mins(1), || {
            asked += 1;
            if asked < 2 { Err(Failure::target("starting").passing_if(true)) } else { Ok(asked) }
        });
        assert_eq!(found.ok(), Some(2));
        let mut asked = 0;
        let mut failing = |passing: bool| {
            until_ready::<()>(Duration::ZERO, || {
                asked += 1;
                Err(Failure::target("no").passing_if(passing))
            })
        };
        assert!(failing(true).is_err() && failing(false).is_err());
        assert_eq!(asked, 2, "once each");
    }

    #[test]
    fn whole_flags_are_replaced_and_nothing_else() {
        assert_eq!(
            reworded("--rate 5, with --requests: see --rates, --max-concurrency (--concurrency)."),
            "--request-rate 5, with --num-prompts: see --rates, --max-concurrency \
             (--max-concurrency)."
        );
        assert_eq!(reworded("kein Größe · --warm-up"), "kein Größe · --num-warmups");
    }

    fn dashed(words: &str) -> String {
        let typed = words.split(' ').map(OsString::from);
        let dashed = with_dashes(typed).into_iter().map(|word| word.into_string().unwrap());
        dashed.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_get_dashes_and_values_stay() {
        assert_eq!(
            dashed("i bench serve --num_prompts 3 --dataset_name=prefix_repetition my_model"),
            "i bench serve --num-prompts 3 --dataset-name=prefix_repetition my_model"
        );
        assert_eq!(dashed("i run --num_prompts 3"), "i run --num_prompts 3");
    }
}
