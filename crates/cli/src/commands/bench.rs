//! `inferometer bench`: what `vllm bench` does, with our client.

use std::process::ExitCode;
use std::sync::Arc;

use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{Verdict, check_slos};
use inferometer_interchange::vllm::block;
use inferometer_model::{Observations, Outcome};
use inferometer_report::escape;
use inferometer_runner::Session;
use inferometer_workload::{Inputs, WorkloadError};

use crate::arguments::{
    BenchArguments, BenchCommand, Definitions, PageFormat, ServeBenchArguments, SweepBenchCommand,
};
use crate::bench::{Bench, Profiler, ResultFile, theirs, traffic_lines, until_ready};
use crate::commands::{page, store, talk_of_doubts};
use crate::draft::draft;
use crate::failure::{Exit, Failure};
use crate::measurement::{self, Live, Planned, Run, RunLocation, Server};
use crate::signals::begin_session;
use crate::{bench_sweep, output};

pub(crate) fn run(arguments: &BenchArguments) -> Result<ExitCode, Failure> {
    match &arguments.what {
        BenchCommand::Serve(arguments) => serve(arguments),
        BenchCommand::Sweep(arguments) => {
            let SweepBenchCommand::Serve(typed) = &arguments.what;
            bench_sweep::run(typed)
        }
    }
}

/// A run that is reported as `vllm bench serve` reports it.
fn serve(said: &ServeBenchArguments) -> Result<ExitCode, Failure> {
    let bench = Bench::from_arguments(said)?;
    for note in &bench.notes {
        output::talk(&format!("note: {note}"));
    }
    let drafted = draft(&bench.experiment).map_err(theirs)?;
    let spec = drafted.resolve().map_err(theirs)?;
    check_slos(&spec.slos, spec.workload.streaming).map_err(Failure::from_usage)?;
    let file = ResultFile::from_arguments(said, &bench)?;
    let inputs = Inputs::gather(&spec).map_err(ungathered)?;
    let planned = Planned::from_ingredients(spec, inputs);
    planned.check_sends_something()?;
    let ceiling = measurement::ceiling(&planned.spec);
    measurement::check_ceiling(&planned.spec, ceiling).map_err(theirs)?;
    let store = store(&said.report.store)?;
    store.check_writable().map_err(Failure::from_usage)?;
    let prints_block = said.report.definitions != Some(Definitions::Inferometer);
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
        output::result(&traffic_lines(&said.load, bench.recorded))?;
    }
    let session = begin_session(ceiling, said.report.disable_tqdm)?;
    session.emit(live.opening());
    let profiler = said.report.profile.then(|| Profiler::start(live.target())).transpose()?;
    let measured = live.measure(planned, RunLocation::in_store(&store), &session);
    // A server is not left profiling, whatever became of the run.
    if let Some(profiler) = profiler {
        profiler.stop();
    }
    let exit = show(said, &bench, &measured?, file, &session)?;
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn show(
    said: &ServeBenchArguments,
    bench: &Bench,
    measured: &Run,
    file: Option<ResultFile>,
    session: &Session,
) -> Result<Option<Exit>, Failure> {
    let Run { summary, directory, .. } = measured;
    let definitions = said.report.definitions.unwrap_or_default();
    let observations = directory.read()?.observations;
    let (percentiles, detail) = (&bench.figures.of_block.percentiles, said.report.save_detailed);
    let result = ToolResult::of_vllm_summed(summary, &observations, percentiles, detail);
    let result = bench.as_typed(result, said);
    if definitions != Definitions::Inferometer {
        tell_failures(&observations);
        // The block has no place for warnings, and its format is fixed by the other tool.
        if definitions == Definitions::Vllm {
            talk_of_doubts(summary, directory);
        }
        output::result(&block::from_result(&result, &bench.figures.of_block))?;
    }
    if definitions != Definitions::Vllm {
        output::result(&page(summary, directory, &[], PageFormat::Page))?;
    }
    if let Some(file) = file {
        let path = file.write(&result)?;
        session.talk(&format!("the result is in {}", path.display()));
    }
    // A signal says so first. SLOs of goodput are counted, not met or missed.
    let cut = session.interruption.exit().filter(|_| summary.run.partial);
    Ok(cut.or((summary.verdict == Verdict::Invalid).then_some(Exit::RunInvalid)))
}

/// The model's name is taken for its tokenizer's, so a hint explains a missing tokenizer.
fn ungathered(error: WorkloadError) -> Failure {
    let is_tokenizer = matches!(error, WorkloadError::Tokenizer(_));
    let failure = theirs(error.into());
    if !is_tokenizer {
        return failure;
    }
    failure.hint(
        "name the model's tokenizer with --tokenizer (a folder or file works offline), or go \
         without one: --skip-tokenizer-init",
    )
}

/// As many failures are printed as the other client prints.
const FAILURES_TOLD: usize = 10;
/// What a server says of one may be long.
const FAILURE_CHARS: usize = 500;

fn tell_failures(observations: &Observations) {
    let failed = observations.records.iter().filter(|record| record.ending.outcome != Outcome::Ok);
    for (number, record) in failed.take(FAILURES_TOLD).enumerate() {
        if number == 0 {
            output::talk(&format!(
                "Failed requests during benchmark run detected (capping to {FAILURES_TOLD}):"
            ));
        }
        let ending = &record.ending;
        let cause = ending.cause.map_or_else(|| ending.outcome.help(), |cause| cause.text());
        let words =
            escape::terminal_line(ending.message.as_deref().unwrap_or(cause), FAILURE_CHARS);
        output::talk(&format!("Error {number}: {}: {words}", ending.outcome));
    }
}
