//! `--on slurm`: a script for sbatch whose tasks are the workers. Inside of an allocation the
//! script runs in it.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use inferometer_runner::Session;

use super::{Job, Task};
use crate::arguments::SlurmTable;
use crate::failure::{Failure, Result};
use crate::output::shell_word;

pub(super) struct Slurm<'a> {
    task: &'a Task,
    table: &'a SlurmTable,
    /// Ends with the job.
    process: Option<Child>,
}

impl<'a> Slurm<'a> {
    pub(super) fn new(task: &'a Task, table: &'a SlurmTable) -> Self {
        Self { task, table, process: None }
    }

    /// The lines of the script that sbatch reads.
    fn options(&self) -> Result<String> {
        let Self { task, table, .. } = self;
        let mut options = vec![
            format!("--job-name={}", task.name()),
            format!("--ntasks={}", task.workers),
            format!("--nodes={}", table.nodes.unwrap_or(task.workers.get())),
            format!("--output={}/job.log", task.folder.display()),
            // A job that is begun again would measure a part of the load twice.
            "--no-requeue".to_owned(),
        ];
        options.extend(table.cpus.map(|cpus| format!("--cpus-per-task={cpus}")));
        let texts = [
            ("partition", &table.partition),
            ("account", &table.account),
            ("time", &table.time_limit),
        ];
        options.extend(
            texts.iter().filter_map(|(name, text)| Some(format!("--{name}={}", text.as_ref()?))),
        );
        options.extend(table.options.iter().flatten().cloned());
        if let Some(odd) = options.iter().find(|option| option.contains(['\n', '\r'])) {
            return Err(Failure::usage(format!("[slurm]: {odd:?} is not an option")));
        }
        let options = options.iter().map(|option| format!("#SBATCH {option}"));
        Ok(options.collect::<Vec<_>>().join("\n"))
    }
}

fn is_in_allocation() -> bool {
    std::env::var_os("SLURM_JOB_ID").is_some()
}

impl Job for Slurm<'_> {
    fn text(&self) -> Result<String> {
        let program = std::env::current_exe().map_err(Failure::from_error)?;
        let (task, workers) = (self.task, self.task.workers);
        let folder = task.folder.display().to_string();
        let words = task.words(&format!("{folder}/spec.json"), &format!("{folder}/runs"));
        let words = std::iter::once(program.display().to_string()).chain(words);
        let quoted: Option<Vec<String>> = words.map(|word| shell_word(&word)).collect();
        let (Some(words), Some(folder)) = (quoted, shell_word(&folder)) else {
            return Err(Failure::usage("the name of the folder has a zero byte"));
        };
        Ok(format!(
            "#!/bin/bash\n\
             # Written by `inferometer run --on slurm`: {workers} workers share one load.\n\
             {options}\n\
             export WORKERS_START=$(date -u -d '+{start_in} seconds' +%Y-%m-%dT%H:%M:%SZ)\n\
             # One worker that ends takes no other with it, and none is waited for without an end.\n\
             exec srun --ntasks={workers} --kill-on-bad-exit=0 --wait={apart} \\\n  \
             --output={folder}/worker-%t.jsonl --error={folder}/worker-%t.jsonl \\\n  \
             bash -c 'exec \"$@\" --stripe \"$SLURM_PROCID/{workers}\" --start-at \"$WORKERS_START\"' \\\n  \
             worker {words}\n",
            options = self.options()?,
            start_in = self.table.start_in.map_or(20, |time| time.0.as_secs().max(1)),
            apart = task.apart_max.as_secs(),
            words = words.join(" "),
        ))
    }

    fn submit(&mut self) -> Result<()> {
        let path = self.task.write("job.sbatch", &self.text()?)?;
        let log = fs::File::create(self.task.folder.join("sbatch.log"));
        let mut command = if is_in_allocation() {
            Command::new("bash")
        } else {
            let mut sbatch = Command::new("sbatch");
            sbatch.arg("--wait");
            sbatch
        };
        command.arg(&path).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(log.map_err(Failure::from_error)?);
        self.process = Some(command.spawn().map_err(|error| {
            Failure::usage(format!("{} cannot be submitted: {error}", path.display()))
                .hint("check that Slurm's programs are on this machine")
        })?);
        Ok(())
    }

    fn ended(&mut self, _: &Session) -> Result<Option<String>> {
        let Some(process) = &mut self.process else { return Ok(None) };
        let status = process.try_wait().map_err(Failure::from_error)?;
        Ok(status.map(|status| status.to_string()))
    }

    /// Cancels the job, or the step that runs in our own allocation.
    fn cancel(&mut self) {
        let _ = Command::new("scancel").arg(format!("--name={}", self.task.name())).status();
        if let Some(process) = self.process.as_ref().filter(|_| is_in_allocation()) {
            let _ = Command::new("kill").arg(process.id().to_string()).status();
        }
    }

    fn runs(&self) -> PathBuf {
        self.task.folder.join("runs")
    }
}
