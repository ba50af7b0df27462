//! Flags and tables of a load that several workers send together.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use inferometer_model::Stripe;
use inferometer_model::spec::{Grammar, Time};
use inferometer_runner::Worker;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PageArguments, ResultArguments, StoreArguments};
use crate::draft::Drafted;
use crate::failure::{Failure, Result};

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Workers")]
pub(crate) struct WorkerArguments {
    /// Send the share of one of several workers, such as 0/4 for the first of four; all of them need
    /// the same experiment, --seed and --start-at, and `inferometer merge` joins their runs
    #[arg(long, value_name = "I/N", value_parser = Stripe::from_str, requires = "start_at")]
    #[arg(conflicts_with = "on")]
    pub(crate) stripe: Option<Stripe>,
    /// When all workers begin, such as 2026-11-18T12:00:00Z, or +30s from now
    #[arg(long, value_name = "TIME", value_parser = start, requires = "stripe")]
    pub(crate) start_at: Option<Timestamp>,
    /// The resolved spec, as --on gives it to workers
    #[arg(long, value_name = "FILE", requires = "stripe", hide = true)]
    pub(crate) spec: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) scheduler: SchedulerArguments,
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Workers")]
pub(crate) struct SchedulerArguments {
    /// Refuse to begin if the clock may be further from the true time than this [default: 50ms]
    pub(crate) clock_error: Option<Time>,
    /// Leave the run of each worker in an object store as well, for `inferometer merge`: s3://, gs://,
    /// az:// or file://, with the keys of the environment
    #[arg(long, value_name = "URL", conflicts_with = "virtual_time")]
    pub(crate) results: Option<String>,
    /// Start workers with this scheduler, follow them, and merge what they measured; its settings are
    /// the table of its name in the experiment file
    #[arg(long, value_enum, value_name = "SCHEDULER", conflicts_with = "virtual_time")]
    pub(crate) on: Option<Scheduler>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, ValueEnum)]
pub(crate) enum Scheduler {
    Kubernetes,
    Slurm,
}

/// How `--on kubernetes` asks for its workers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct KubernetesTable {
    /// Workers, each a pod of the job [default: 2]
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) workers: Option<u32>,
    /// Image of the workers, with this version of inferometer
    pub(crate) image: Option<String>,
    /// Namespace [default: that of kubectl's context]
    pub(crate) namespace: Option<String>,
    /// Service account of the pods; without one they get no token
    pub(crate) service_account: Option<String>,
    /// CPUs of each worker [default: 2]
    #[schemars(range(min = 1, max = 4096))]
    pub(crate) cpus: Option<u32>,
    /// Memory of each worker, as Kubernetes writes it [default: 2Gi]
    pub(crate) memory: Option<String>,
    /// Secrets whose keys are environment variables of the workers, such as `OPENAI_API_KEY`
    pub(crate) env_from: Option<Vec<String>>,
    /// Persistent volume claim that all pods write their runs to (`ReadWriteMany`)
    pub(crate) claim: Option<String>,
    /// Folder of this machine where that volume is mounted
    pub(crate) mounted: Option<PathBuf>,
    /// Folder of an object store where the workers leave their runs, in place of a volume
    pub(crate) results: Option<String>,
    /// How long after the job was submitted the workers begin together [default: 2m]
    pub(crate) start_in: Option<Time>,
    /// Time limit of the job [default: 1h]
    pub(crate) time_limit: Option<Time>,
}

/// How `--on slurm` asks for its workers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct SlurmTable {
    /// Workers, each a task of the job [default: 2]
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) workers: Option<u32>,
    /// Nodes to spread them over [default: one for each worker]
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) nodes: Option<u32>,
    /// CPUs of each worker [default: as Slurm does]
    #[schemars(range(min = 1, max = 4096))]
    pub(crate) cpus: Option<u32>,
    /// Partition [default: that of the user]
    pub(crate) partition: Option<String>,
    /// Account that pays [default: that of the user]
    pub(crate) account: Option<String>,
    /// Time limit of the job, as Slurm writes it, such as 01:00:00 [default: that of the partition]
    pub(crate) time_limit: Option<String>,
    /// How long after the job has begun the workers begin together [default: 20s]
    pub(crate) start_in: Option<Time>,
    /// Other options of sbatch, such as --exclusive
    pub(crate) options: Option<Vec<String>>,
}

#[derive(Args, Debug)]
pub(crate) struct MergeArguments {
    /// Folders of the workers' runs, folders that hold them, or the URL of `run --results`
    #[arg(value_name = "DIR", required = true)]
    pub(crate) from: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreArguments,
    #[command(flatten)]
    pub(crate) page: PageArguments,
    /// Exit with 4 on a degraded run too
    #[arg(long)]
    pub(crate) strict: bool,
}

/// A time of the calendar, or one from now on.
fn start(text: &str) -> Result<Timestamp, String> {
    if let Some(ahead) = text.strip_prefix('+') {
        let ahead = Duration::read(ahead)?;
        return Timestamp::now().checked_add(ahead).map_err(|error| error.to_string());
    }
    text.parse().map_err(|_| {
        "write it as 2026-11-18T12:00:00Z, with its time zone, or as +30s from now".to_owned()
    })
}

impl WorkerArguments {
    /// Which worker this is, if it is one.
    pub(crate) fn worker(&self) -> Option<Worker> {
        let (stripe, start) = self.stripe.zip(self.start_at)?;
        let start_ns = u64::try_from(start.as_nanosecond()).unwrap_or(0);
        let clock_error_max = self.scheduler.clock_error.map(|time| time.0);
        Some(Worker { stripe, start_ns, clock_error_max })
    }

    /// Fails if this worker could not have the plan of the others.
    pub(crate) fn check(&self, drafted: &Drafted, results: &ResultArguments) -> Result<()> {
        if self.stripe.is_none() {
            return Ok(());
        }
        let is_drawn = drafted.spec.workload.seed.is_none() && drafted.spec.saved.is_none();
        if is_drawn && self.spec.is_none() {
            return Err(Failure::usage(
                "each worker would draw a seed of its own, and another plan",
            )
            .hint("give all of them the same --seed"));
        }
        if 1 < drafted.repetition.runs.get() {
            return Err(Failure::usage("--repeat measures several runs, and workers share one")
                .hint("leave it out, and repeat the command"));
        }
        if !results.require.limits.is_empty() {
            return Err(Failure::usage(
                "--require judges a run, and this is the share of a worker",
            )
            .hint("judge the merged run with inferometer require"));
        }
        Ok(())
    }
}
