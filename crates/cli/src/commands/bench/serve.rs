//! `inferometer bench serve`: a run that is reported as `vllm bench serve` reports it.

use std::process::ExitCode;
use std::sync::Arc;

use inferometer_analysis::tool_result::ToolResult;
use inferometer_analysis::{Verdict, check_slos};
use inferometer_interchange::vllm::block;
use inferometer_model::{Observations, Outcome};
use inferometer_report::escape;
use inferometer_workload::{Inputs, WorkloadError};

use crate::arguments::{Definitions, PageFormat, ServeBenchArguments};
use crate::bench::{Bench, Profiler, ResultFile, theirs, traffic_lines, until_ready};
use crate::commands::{page, store, talk_of_doubts};
use crate::draft::{Drafted, draft};
use crate::failure::{Exit, Failure};
use crate::live::{self, Live, Server, Session};
use crate::measurement::RunLocation;
use crate::measurement::{Planned, Run};
use crate::output;
use crate::secrets::Secrets;
use crate::signals::begin_session;

pub(crate) fn run(arguments: &ServeBenchArguments) -> Result<ExitCode, Failure> {
    let bench = Bench::from_arguments(arguments)?;
    let exit = Serve { said: arguments, bench: &bench }.carry_out()?;
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
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

/// One bench, with all that is wanted of it.
struct Serve<'a> {
    said: &'a ServeBenchArguments,
    bench: &'a Bench,
}

impl Serve<'_> {
    fn carry_out(&self) -> Result<Option<Exit>, Failure> {
        let Self { said, bench } = *self;
        for note in &bench.notes {
            output::talk(&format!("note: {note}"));
        }
        let drafted = draft(&bench.experiment).map_err(theirs)?;
        let spec = drafted.resolve().map_err(theirs)?;
        check_slos(&spec.slos, spec.workload.streaming)
            .map_err(|problem| Failure::usage(problem.to_string()))?;
        let file = ResultFile::from_arguments(said, bench)?;
        let Drafted { secrets, .. } = drafted;
        let inputs = Inputs::gather(&spec).map_err(ungathered)?;
        let planned = Planned::from_ingredients(spec, inputs);
        planned.check_sends_something()?;
        let spec = &planned.spec;
        let ceiling = live::ceiling(spec);
        live::check_ceiling(spec, ceiling).map_err(theirs)?;
        let store = store(&said.report.store)?;
        store.check_writable().map_err(|error| Failure::usage(error.to_string()))?;
        let waits = self.prints_block() && !bench.patience.is_zero();
        if waits {
            output::result("Starting initial single prompt test run...\n")?;
        }
        let live = self.reach(&planned, &secrets)?;
        if waits {
            output::result("Initial test run completed.\n")?;
        }
        if self.prints_block() {
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
        self.show(&measured?, file, &session)
    }

    /// The server, as soon as it is there.
    fn reach(&self, planned: &Planned, secrets: &Secrets) -> Result<Live, Failure> {
        let live = until_ready(self.bench.patience, || {
            let server = Arc::new(Server::new(&planned.spec)?);
            Live::reach(server, secrets, planned).map_err(theirs)
        })?;
        Ok(live.naming_requests(self.bench.request_id_prefix.clone()))
    }

    fn show(
        &self,
        measured: &Run,
        file: Option<ResultFile>,
        session: &Session,
    ) -> Result<Option<Exit>, Failure> {
        let Run { summary, directory, .. } = measured;
        let Bench { figures, .. } = self.bench;
        let observations = directory.read()?.observations;
        let sheet = ToolResult::of_vllm_summed(summary, &observations, &figures.of_run);
        let sheet = self.bench.as_typed(sheet, self.said);
        if self.prints_block() {
            tell_failures(&observations);
            // The block has no place for warnings, and its format is fixed by the other tool.
            if self.definitions() == Definitions::Vllm {
                talk_of_doubts(summary, directory);
            }
            output::result(&block::from_result(&sheet, &figures.of_block))?;
        }
        if self.definitions() != Definitions::Vllm {
            output::result(&page(summary, directory, &[], PageFormat::Page))?;
        }
        if let Some(file) = file {
            let path = file.write(&sheet)?;
            session.talk(&format!("the result is in {}", path.display()));
        }
        // A signal says so first. Promises of goodput are counted, not kept or missed.
        let cut = session.interruption.exit().filter(|_| summary.run.partial);
        Ok(cut.or((summary.verdict == Verdict::Invalid).then_some(Exit::RunInvalid)))
    }

    fn definitions(&self) -> Definitions {
        self.said.report.definitions.unwrap_or_default()
    }

    fn prints_block(&self) -> bool {
        self.definitions() != Definitions::Inferometer
    }
}
