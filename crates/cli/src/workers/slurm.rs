//! `run --on slurm`: a script for sbatch whose tasks are the workers. Inside of an allocation the
//! script runs in it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::Task;
use crate::arguments::SlurmTable;
use crate::failure::{Failure, Result};
use crate::output::shell_word;

/// The script. It is stored with the run.
pub(super) fn script(task: &Task, table: &SlurmTable, folder: &Path) -> Result<String> {
    let program = std::env::current_exe().map_err(Failure::from_error)?;
    let (name, folder) = (job_name(folder), folder.display().to_string());
    let workers = task.workers;
    let mut options = vec![
        format!("--job-name={name}"),
        format!("--ntasks={workers}"),
        format!("--nodes={}", table.nodes.unwrap_or(workers.get())),
        format!("--output={folder}/job.log"),
    ];
    options.extend(table.cpus.map(|cpus| format!("--cpus-per-task={cpus}")));
    let texts =
        [("partition", &table.partition), ("account", &table.account), ("time", &table.time_limit)];
    options.extend(
        texts.iter().filter_map(|(name, text)| Some(format!("--{name}={}", text.as_ref()?))),
    );
    options.extend(table.options.iter().flatten().cloned());
    if let Some(odd) = options.iter().find(|option| option.contains(['\n', '\r'])) {
        return Err(Failure::usage(format!("[slurm]: {odd:?} is not an option")));
    }
    let options = options.iter().map(|option| format!("#SBATCH {option}"));
    let options = options.collect::<Vec<_>>().join("\n");
    let quoted = |word: String| {
        shell_word(&word).ok_or_else(|| Failure::usage("the name of the folder has a zero byte"))
    };
    let [program, folder] = [quoted(program.display().to_string())?, quoted(folder)?];
    let (start_in, apart) = (task.start_in.as_secs().max(1), task.apart_max.as_secs());
    Ok(format!(
        include_str!("slurm.sh"),
        workers = workers,
        options = options,
        start_in = start_in,
        apart = apart,
        folder = folder,
        program = program,
        flags = task.flags,
    ))
}

fn job_name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("inferometer-{name}")
}

/// Submits the script, and returns a process that ends with the job.
pub(super) fn submit(task: &Task, table: &SlurmTable, folder: &Path) -> Result<Child> {
    let unwritten = |error| Failure::from_error(error).about(&folder.display().to_string());
    let path = folder.join("job.sbatch");
    fs::write(&path, script(task, table, folder)?).map_err(unwritten)?;
    let log = fs::File::create(folder.join("sbatch.log")).map_err(unwritten)?;
    let mut command = if std::env::var_os("SLURM_JOB_ID").is_some() {
        Command::new("bash")
    } else {
        let mut sbatch = Command::new("sbatch");
        sbatch.arg("--wait");
        sbatch
    };
    command.arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().map_err(|error| {
        Failure::usage(format!("{} cannot be submitted: {error}", path.display()))
            .hint("check that Slurm's programs are on this machine")
    })
}

/// Cancels the job, or the step that runs in our own allocation.
pub(super) fn cancel(job: &mut Child, folder: &Path) {
    let _ = Command::new("scancel").arg(format!("--name={}", job_name(folder))).status();
    if std::env::var_os("SLURM_JOB_ID").is_some() {
        let _ = Command::new("kill").arg(job.id().to_string()).status();
    }
}
