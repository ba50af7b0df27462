//! Throw-away Python environments, one for each rival, because their dependencies disagree.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use super::bench::environment;
use super::tool::Tool;

/// Makes an environment for each package that `tools` come in.
pub(crate) fn install(folder: &Path, tools: &[Tool]) -> Result<(), String> {
    if tools.contains(&Tool::Wrk) {
        eprintln!("wrk comes from the system's packages, such as `apt-get install wrk`");
    }
    let packages: BTreeSet<&str> = tools.iter().filter_map(|tool| tool.package()).collect();
    for package in packages {
        let place = environment(folder, package);
        step(OsStr::new("python3"), &["-m".as_ref(), "venv".as_ref(), place.as_os_str()])?;
        let pip = place.join("bin/pip");
        step(pip.as_os_str(), &["install".as_ref(), package.as_ref()])?;
    }
    Ok(())
}

fn step(program: &OsStr, arguments: &[&OsStr]) -> Result<(), String> {
    let words = [&[program], arguments].concat().join(OsStr::new(" "));
    eprintln!("· {}", words.display());
    let status = Command::new(program).args(arguments).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` ended with {status}", words.display())),
        Err(error) => Err(format!("`{}` did not start: {error}", words.display())),
    }
}
