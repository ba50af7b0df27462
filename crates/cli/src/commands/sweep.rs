//! `inferometer sweep`: many loads, servers side by side, and sets that were stopped.

use std::path::Path;
use std::process::ExitCode;

use inferometer_model::campaign::{Condition, SetManifest};
use inferometer_store::Stored;

use super::{matrix, store};
use crate::arguments::{ExperimentArguments, NarratorArguments, ResultArguments, SweepArguments};
use crate::draft::RESTART_TIMEOUT;
use crate::experiment;
use crate::failure::Failure;
use crate::output;
use crate::secrets::Secrets;
use crate::set::{self, How};
use crate::sweep::{Sweep, ask, outline};

pub(crate) fn run(arguments: &SweepArguments) -> Result<ExitCode, Failure> {
    if let Some(name) = &arguments.resume {
        let (typed, results) = (arguments.merged(), &arguments.results);
        let (virtual_time, narrator) = (arguments.virtual_time, None);
        return Resume { name, typed, virtual_time, results, narrator }.go_on();
    }
    let Sweep { campaign, secrets, restart_timeout, notes } = ask(arguments)?;
    let results = &arguments.results;
    let how =
        if arguments.virtual_time { How::Virtual } else { How::Live { secrets, restart_timeout } };
    if results.dry_run {
        set::check(&campaign, &how, results)?;
        output::result(&outline(&campaign, &notes, results.page.format())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for note in notes.iter().filter(|_| !results.quiet) {
        output::talk(&format!("note: {note}"));
    }
    set::begin(campaign, how, results)
}

/// A set to go on with, and what was typed beside it.
pub(super) struct Resume<'a> {
    pub(super) name: &'a str,
    pub(super) typed: ExperimentArguments,
    pub(super) virtual_time: bool,
    pub(super) results: &'a ResultArguments,
    /// Who writes the report, of a suite.
    pub(super) narrator: Option<&'a NarratorArguments>,
}

impl Resume<'_> {
    pub(super) fn go_on(&self) -> Result<ExitCode, Failure> {
        let Self { name, typed, virtual_time, results, narrator } = self;
        let virtual_time = virtual_time.then(|| "--virtual".to_owned());
        if let Some(flag) = experiment::first_said(typed)?.or(virtual_time) {
            return Err(beside_resume(&flag));
        }
        if results.dry_run {
            return Err(Failure::usage("--dry-run is for a new set, and this one has begun"));
        }
        let store = store(&results.store)?;
        let found = store.find(name).map_err(|error| Failure::usage(error.to_string()))?;
        let set = match found {
            Stored::Set(set) => set,
            Stored::Run(_) => {
                let message = format!("{name} is one run, and --resume goes on with a set");
                return Err(Failure::usage(message)
                    .hint("finish a run that crashed with `inferometer recover`"));
            }
            Stored::Import(..) => {
                let message = format!("{name} was imported, and --resume goes on with a set");
                return Err(
                    Failure::usage(message).hint("begin a set of your own without --resume")
                );
            }
        };
        let manifest = set.manifest().map_err(|error| Failure::usage(error.to_string()))?;
        if matrix::is_matrix(&manifest) {
            return matrix::go_on(&store, &set, &manifest, &typed.headers, results);
        }
        let how = if manifest.simulated {
            How::Virtual
        } else {
            let secrets = secrets(typed, &manifest)?;
            let waits = typed.tables.repeat.restart_timeout.clone();
            let restart_timeout = waits.map_or(RESTART_TIMEOUT, |written| written.0);
            How::Live { secrets, restart_timeout }
        };
        set::resume(&store, &set, how, results, *narrator)
    }
}

pub(super) fn beside_resume(flag: &str) -> Failure {
    Failure::usage(format!("{flag} beside --resume: the set knows what it asks"))
        .hint("leave it out, or begin a new set")
}

/// Keys and the values of headers are stored nowhere, so they are read again: each key where it
/// was read first. One that is typed now is for all servers, and that only where they had one.
fn secrets(typed: &ExperimentArguments, manifest: &SetManifest) -> Result<Vec<Secrets>, Failure> {
    let typed_file = typed.tables.target.api_key_file.as_deref();
    let mut files: Vec<Option<&Path>> = manifest.key_files.iter().map(Option::as_deref).collect();
    let conditions = &manifest.campaign.conditions;
    files.resize(conditions.len(), None);
    if typed_file.is_some() && files.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(Failure::usage(
            "--api-key-file is one key, and the servers of this set have keys of their own",
        )
        .hint("leave it out: each key is read again where it was read first"));
    }
    let read = |(condition, file): (&Condition, Option<&Path>)| {
        let secrets = Secrets::read(typed_file.or(file), &typed.headers)?;
        check_headers(&secrets, &condition.spec.header_names)?;
        Ok(secrets)
    };
    conditions.iter().zip(files).map(read).collect()
}

pub(super) fn check_headers(secrets: &Secrets, names: &[String]) -> Result<(), Failure> {
    let sorted = |mut names: Vec<String>| {
        names.sort_unstable();
        names
    };
    if sorted(secrets.header_names()) == sorted(names.to_vec()) {
        return Ok(());
    }
    let wanted: Vec<String> = names.iter().map(|name| format!("--header '{name}: …'")).collect();
    Err(match &wanted[..] {
        [] => Failure::usage("the set was measured without --header; leave it out"),
        wanted => Failure::usage(format!(
            "the set was measured with {}; give the same again, as values are never stored",
            wanted.join(" ")
        )),
    })
}
