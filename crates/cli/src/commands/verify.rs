//! `inferometer verify`: whether what is stored is intact. `inferometer recover`: finishes a run that
//! ended without being saved.

use std::path::Path;
use std::process::ExitCode;

use inferometer_analysis::{Summary, Verdict};
use inferometer_report::escape::terminal;
use inferometer_store::{
    ImportDirectory, RunDirectory, RunState, SetDirectory, StoreError, Stored, StoredRun,
};
use inferometer_study::play;
use serde_json::Value;

use super::{bundle, seal_summary, show, store};
use crate::arguments::{PageFormat, StoredRunArguments};
use crate::failure::{Exit, Failure, Result};
use crate::measurement::summarize_stored;
use crate::results::{Mapped, sha256, summary_of};
use crate::{output, study};

/// What was verified, and what is wrong with it.
type Finding = (String, Vec<String>);

/// Standard output holds one result: the finding, or the page that was asked for.
pub(crate) fn run(arguments: &StoredRunArguments) -> Result<ExitCode> {
    let page = arguments.page.asked();
    // Of a bundle every byte is checked.
    let path = Path::new(&arguments.run);
    let unpacked = bundle::is_bundle(path).then(|| bundle::unpack(path)).transpose()?;
    let found = match &unpacked {
        None if path.is_file() => {
            let what = format!("{}: it does not begin as a bundle does", path.display());
            return Err(Failure::invalid(what)
                .hint("it is another file, or was changed; fetch the bundle again"));
        }
        None => find(arguments)?,
        Some(bundle) => Stored::at(bundle.folder.0.clone())
            .ok_or_else(|| Failure::invalid("there is neither a run nor a set in the bundle"))?,
    };
    let (mut verified, problems) = match found {
        Stored::Run(directory) => verify_run(&directory, page)?,
        Stored::Set(set) => verify_set(&set, page)?,
        Stored::Import(import, _) => verify_import(&import, page)?,
    };
    if let Some(bundle) = &unpacked {
        verified = format!("{verified}; {}", bundle.origin);
    }
    let is_verified = problems.is_empty();
    let problems = problems.into_iter().map(|problem| format!("not verified: {problem}"));
    for line in is_verified.then_some(verified).into_iter().chain(problems) {
        // A foreign file's name may be in it.
        let line = terminal(&line);
        if page.is_some() {
            output::talk(&line);
        } else {
            output::result(&format!("{line}\n"))?;
        }
    }
    Ok(if is_verified { ExitCode::SUCCESS } else { Exit::RunInvalid.into() })
}

fn find(arguments: &StoredRunArguments) -> Result<Stored> {
    store(&arguments.store)?.find(&arguments.run).map_err(Failure::from_usage)
}

/// A run to recover: `latest` is the newest one that is not finished, or else the newest.
fn find_broken(arguments: &StoredRunArguments) -> Result<Stored> {
    let is_run = |found: &Stored| matches!(found, Stored::Run(_));
    let is_broken = |found: &Stored| match found {
        Stored::Run(run) => run.state() == RunState::Unfinished,
        Stored::Set(_) | Stored::Import(..) => false,
    };
    let store = store(&arguments.store)?;
    let found = store.find_usable(&arguments.run, is_broken);
    found.or_else(|_| store.find_usable(&arguments.run, is_run)).map_err(Failure::from_usage)
}

fn verify_run(directory: &RunDirectory, page: Option<PageFormat>) -> Result<Finding> {
    let (stored, summary, problems) = check_run(directory).map_err(unread)?;
    if let Some(format) = page {
        show(&summary, directory, format)?;
    }
    let simulated = stored.observations.manifest.simulated.is_some();
    let verified = format!(
        "verified {}{}: {} records add up, and the summary is what they give{}",
        directory.id(),
        if simulated { " (simulated)" } else { "" },
        stored.observations.records.len(),
        other_version(&summary.run.tool_version).unwrap_or_default()
    );
    Ok((verified, problems))
}

/// Each run by itself, and then the summary of all.
fn verify_set(set: &SetDirectory, page: Option<PageFormat>) -> Result<Finding> {
    let manifest = set.manifest().map_err(|error| invalid(&error))?;
    let mut problems = Vec::new();
    let replay = play::replay(set, &manifest, |point, directory| {
        if !directory.path().exists() {
            return Ok(None);
        }
        let (stored, summary, mut own) = match check_run(directory) {
            Err(StoreError::Unfinished { .. }) => return Ok(None),
            checked => checked.map_err(unread)?,
        };
        if play::was_cut(&summary) {
            return Ok(None);
        }
        if manifest.study.spec_of(point).as_ref() != Some(&stored.observations.manifest.spec) {
            own.push("it was measured with another spec than set.json asks for".to_owned());
        }
        problems.extend(own.into_iter().map(|problem| format!("{}: {problem}", directory.id())));
        Ok(Some(summary))
    })?;
    let Some(summary) = replay.summary else {
        return Err(Failure::usage(format!(
            "{} is not finished: {}; resume with: {}",
            set.id(),
            play::stored_runs(replay.results.len()),
            play::resume_command(set)
        )));
    };
    let asked: Vec<u32> = replay.results.iter().map(|result| result.point.number).collect();
    let foreign = set.points()?.into_iter().filter(|number| !asked.contains(number));
    problems.extend(foreign.map(|number| format!("the set asks for no point {number}")));
    let remark = other_version(&manifest.tool_version);
    match set.read_summary()? {
        // Versions differ in what they derive from runs, and the runs themselves are compared.
        Some(_) if remark.is_some() => {}
        Some(kept) => {
            problems.extend(difference(&kept, &summary.to_json_bytes(), &manifest.tool_version));
        }
        None => problems.push(no_summary(&play::resume_command(set))),
    }
    if let Some(format) = page {
        study::show(&summary, &study::files(set), &[], format)?;
    }
    let verified = format!(
        "verified {}{}: {} up{}, and {}",
        set.id(),
        if manifest.simulated { " (simulated)" } else { "" },
        match replay.results.len() {
            1 => "1 run adds".to_owned(),
            runs => format!("{runs} runs add"),
        },
        match set.failures().map_or(0, |failures| failures.len()) {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        },
        match remark {
            None => "the summary is what they give".to_owned(),
            Some(remark) => format!("their summary was not compared{remark}"),
        }
    );
    Ok((verified, problems))
}

/// What is stored cannot be trusted.
fn invalid(error: &StoreError) -> Failure {
    Failure::invalid(error.to_string())
}

/// Why there is nothing to verify.
fn unread(error: StoreError) -> Failure {
    let too_early = matches!(error, StoreError::Unfinished { .. } | StoreError::Busy { .. });
    if too_early { Failure::from_usage(error) } else { invalid(&error) }
}

/// A run read back, its summary computed again, and what is wrong with it.
fn check_run(directory: &RunDirectory) -> Result<(StoredRun, Summary, Vec<String>), StoreError> {
    let stored = directory.read()?;
    let summary = summarize_stored(&stored)?;
    let kept = directory.read_summary()?;
    let mut problems = Vec::new();
    if !stored.integrity.is_intact() {
        problems.push(format!("the journal is damaged: {}", stored.integrity));
    }
    match kept {
        Some(kept) => {
            problems.extend(difference(&kept, &summary.to_json_bytes(), &summary.run.tool_version));
        }
        None => problems.push(no_summary(&directory.remedy())),
    }
    Ok((stored, summary, problems))
}

fn no_summary(command: &str) -> String {
    format!("there is no stored summary to compare with; compute it with: {command}")
}

/// What is wrong with a stored summary, if anything. One that another version computed may lack later
/// keys, word its messages differently and judge by other rules; what it measured must still agree.
fn difference(kept: &[u8], computed: &[u8], made_by: &str) -> Option<String> {
    if kept == computed {
        return None;
    }
    let trees = (serde_json::from_slice(kept), serde_json::from_slice(computed));
    let (Ok(kept), Ok(computed)) = trees else {
        return Some("summary.json is not JSON".to_owned());
    };
    let remark = other_version(made_by);
    let rules = if remark.is_some() { usize::MAX } else { 3 };
    let ignored: Vec<&str> = CONCLUSIONS.split(' ').take(rules).collect();
    match first_difference(&kept, &computed, &ignored) {
        Some(path) => Some(format!(
            "summary.json is not what the records give: {path} differs{}",
            remark.unwrap_or_default()
        )),
        None if remark.is_some() => None,
        None => Some("summary.json is not, byte for byte, what the records give".to_owned()),
    }
}

/// What a summary concludes from its numbers, by rules that versions differ in. Differences in the first
/// three follow from others, so that no version names them.
const CONCLUSIONS: &str = "checksum checks warnings verdict intervals interval effective_n \
    not_certified steady slos";

/// Where two documents first differ in a number, a name or a length: `metrics.ttft_ms.mean`.
/// Sentences, ignored keys, and keys that only one of them has, do not count.
fn first_difference(kept: &Value, computed: &Value, ignored: &[&str]) -> Option<String> {
    let below = |key: &dyn std::fmt::Display, kept, computed| {
        let path = first_difference(kept, computed, ignored)?;
        Some(if path.is_empty() { key.to_string() } else { format!("{key}.{path}") })
    };
    match (kept, computed) {
        (Value::Object(kept), Value::Object(computed)) => kept
            .iter()
            .filter(|(key, _)| !ignored.contains(&key.as_str()))
            .find_map(|(key, kept)| below(key, kept, computed.get(key)?)),
        (Value::Array(kept), Value::Array(computed)) if kept.len() == computed.len() => {
            let mut pairs = kept.iter().zip(computed).enumerate();
            pairs.find_map(|(index, (kept, computed))| below(&index, kept, computed))
        }
        (Value::String(kept), Value::String(computed))
            if kept.contains(' ') && computed.contains(' ') =>
        {
            None
        }
        (kept, computed) => (kept != computed).then(String::new),
    }
}

/// A remark when another version computed the summary.
fn other_version(made_by: &str) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    (made_by != own).then(|| format!(" (computed by version {made_by}, verified by {own})"))
}

/// Maps the file again and compares.
fn verify_import(import: &ImportDirectory, page: Option<PageFormat>) -> Result<Finding> {
    let foreign = import.foreign().map_err(|error| invalid(&error))?;
    let manifest = import.manifest().map_err(|error| invalid(&error))?;
    if sha256(&foreign) != manifest.file.sha256 {
        let problem = format!(
            "{} is not the file that was imported: it has {} bytes and another SHA-256 than \
             import.json says",
            import.foreign_path().display(),
            foreign.len()
        );
        return Ok((String::new(), vec![problem]));
    }
    let mapped = Mapped::read(import).map_err(|failure| Failure::invalid(failure.message()))?;
    let mut problems = Vec::new();
    match mapped.directory.read_summary()? {
        Some(kept) if kept == summary_of(&mapped.import)? => {}
        Some(_) => {
            let why = other_version(&mapped.manifest.tool_version).unwrap_or_default();
            problems.push(format!(
                "summary.json is not, byte for byte, what the file gives{why}; import the file again"
            ));
        }
        None => problems
            .push("there is no stored summary to compare with; import the file again".to_owned()),
    }
    match page {
        None => ExitCode::SUCCESS,
        Some(PageFormat::Page | PageFormat::Full) => output::result(&mapped.page())?,
        Some(PageFormat::Json) => output::json(&mapped.json()?)?,
        Some(PageFormat::Vllm) => output::result(&mapped.blocks())?,
    };
    let verified = format!(
        "verified {}: {} is unchanged, and its {} results are read as they were stored",
        import.id(),
        manifest.file.name,
        mapped.import.results().count()
    );
    Ok((verified, problems))
}

pub(crate) fn recover(arguments: &StoredRunArguments) -> Result<ExitCode> {
    // An incomplete run of a set is measured again, so that all its runs are whole.
    let of_a_set = |what: String, set: &SetDirectory| {
        Failure::usage(format!("{what}: what is not whole is measured again, not recovered"))
            .hint(format!("resume with: {}", play::resume_command(set)))
    };
    let directory = match find_broken(arguments)? {
        Stored::Run(directory) if !directory.id().contains('/') => directory,
        Stored::Run(point) => {
            let set = point.path().parent().and_then(Path::parent).unwrap_or(point.path());
            let set = SetDirectory::at(set.to_owned());
            return Err(of_a_set(format!("{} is a run of a set", point.id()), &set));
        }
        Stored::Import(import, _) => {
            let id = import.id();
            return Err(Failure::usage(format!(
                "{id} was imported, and only runs that were measured here can be recovered"
            ))
            .hint(format!("see whether it is whole with: inferometer verify {id}")));
        }
        Stored::Set(set) => return Err(of_a_set(format!("{} is a set", set.id()), &set)),
    };
    let recovery = match directory.recover() {
        Ok(recovery) => recovery,
        // The run itself is whole; only what follows from it was lost.
        Err(StoreError::AlreadyFinished { .. }) if !has_summary(&directory) => {
            let summary = seal_summary(&directory, &directory.read()?)?;
            output::talk("the run is whole; its summary was computed again");
            return show(&summary, &directory, arguments.page.format());
        }
        Err(error) => return Err(Failure::from_usage(error)),
    };
    let cut = match recovery.cut_bytes {
        0 => String::new(),
        bytes => format!(", {bytes} torn bytes cut off the journal"),
    };
    output::talk(&format!(
        "recovered: {} requests were in flight and are cancelled; {} are not in the journal, so they \
         were not sent or left in the last moments{cut}",
        recovery.cancelled, recovery.not_sent
    ));
    let summary = seal_summary(&directory, &recovery.run)?;
    show(&summary, &directory, arguments.page.format())?;
    Ok(match summary.verdict {
        Verdict::Invalid => Exit::RunInvalid.into(),
        Verdict::Degraded | Verdict::Simulated | Verdict::Valid => ExitCode::SUCCESS,
    })
}

/// Whether there is a summary that can be read.
fn has_summary(directory: &RunDirectory) -> bool {
    let stored = directory.read_summary().ok().flatten();
    stored.is_some_and(|bytes| Summary::from_json_bytes(&bytes).is_ok())
}
