//! `inferometer fit`: a profile whose engine gives the figures that were measured.

use std::path::Path;
use std::process::ExitCode;

use inferometer_engine::profile::Profile;
use inferometer_model::spec::EngineTable;
use inferometer_report::escape;
use inferometer_store::write_atomically;

use crate::arguments::FitArguments;
use crate::embedded;
use crate::failure::Failure;
use crate::fit::{self, Fitting, Free, Spreads};
use crate::output;

pub(crate) fn run(arguments: &FitArguments) -> Result<ExitCode, Failure> {
    let talk = |line: &str| {
        if !arguments.quiet {
            output::talk(line);
        }
    };
    let spreads = Spreads {
        input: spread("--input-spread", arguments.input_spread)?,
        output: spread("--output-spread", arguments.output_spread)?,
    };
    let store = super::store(&arguments.store)?;
    let mut rows = Vec::new();
    for result in &arguments.results {
        rows.extend(fit::read(result, &store, spreads)?);
    }
    let base = arguments.engine.clone();
    if [&base.profile, &base.hardware, &base.model].iter().all(|name| name.is_none()) {
        return Err(Failure::usage("it is not said what server was measured")
            .hint("name it with --profile, or with --hardware and --engine-model"));
    }
    check_save(arguments)?;
    let fitting = Fitting {
        base: server(&base)?,
        servers: rows
            .iter()
            .map(|row| server(&row.server.over(&base)))
            .collect::<Result<_, _>>()?,
        free: free(&arguments.free, rows.len())?,
        source: arguments.source.clone().unwrap_or_else(|| names(&arguments.results)),
        leave_one_out: !arguments.no_leave_one_out,
        rows,
    };
    fitting.check()?;
    let found = fitting.fit(talk)?;
    let name = arguments.name.clone();
    let name = name.unwrap_or_else(|| format!("{}-fitted", fitting.base.name));
    let profile = fitting.profile(&found, name)?;
    if let Some(path) = &arguments.save {
        write_atomically(path, profile.to_toml().as_bytes())?;
        talk(&format!("the profile is in {}", escape::terminal(&path.display().to_string())));
    }
    if arguments.json {
        let document = fit::json(&fitting, &found, &profile);
        output::result(&format!("{document:#}\n"))?;
    } else {
        output::result(&fit::page(&fitting, &found, &profile))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn spread(flag: &str, typed: Option<f64>) -> Result<f64, Failure> {
    let spread = typed.unwrap_or_default();
    if (0.0..=10.0).contains(&spread) {
        return Ok(spread);
    }
    Err(Failure::usage(format!("{flag} is {spread}; it lies between 0 and 10")))
}

fn server(choice: &EngineTable) -> Result<Profile, Failure> {
    Profile::compose(choice).map_err(|error| embedded::refusal(&error))
}

/// The place for the profile is looked at before the work begins.
fn check_save(arguments: &FitArguments) -> Result<(), Failure> {
    let Some(path) = &arguments.save else { return Ok(()) };
    let place = path.display();
    if arguments.free == ["none"] {
        return Err(Failure::usage("--free none fits nothing that --save could keep"));
    }
    if path.exists() {
        return Err(Failure::usage(format!("--save {place} exists already"))
            .hint("name another file, or remove it"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(Failure::usage(format!("--save {place}: there is no such folder")));
    }
    Ok(())
}

fn free(names: &[String], rows: usize) -> Result<Vec<Free>, Failure> {
    if names.is_empty() {
        let free = Free::by_default(rows);
        return if free.is_empty() {
            Err(Failure::usage("one row cannot tell one coefficient")
                .hint("give results of at least two loads, or --free none to try the profile"))
        } else {
            Ok(free)
        };
    }
    if names == ["none"] {
        return Ok(Vec::new());
    }
    names.iter().map(|name| name.parse()).collect()
}

/// File names without their folders: a profile's file is passed on. The name of what is stored,
/// such as `ID/3`, has none.
fn names(results: &[String]) -> String {
    let name = |result: &String| {
        let path = Path::new(result.split('@').next().unwrap_or_default());
        let name = if path.exists() { path.file_name()? } else { path.as_os_str() };
        Some(name.to_string_lossy().into_owned())
    };
    results.iter().filter_map(name).collect::<Vec<_>>().join(", ")
}
