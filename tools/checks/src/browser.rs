//! Reports in a real browser: Chromium opens them, and scripts of ours look at what a reader sees.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Checks the pages, or the samples where there are none.
pub(crate) fn browser(
    files: &[&str],
    target: &Path,
    make_samples: impl FnOnce(&str) -> bool,
) -> Result<(), String> {
    let folder = prepare(target)?;
    let pages = if files.is_empty() {
        samples(&folder.join("samples"), make_samples)?
    } else {
        files.iter().map(PathBuf::from).collect()
    };
    check(&folder, "check.mjs", &pages)
}

/// Checks the pages of `inferometer ui`.
pub(crate) fn ui(program: PathBuf, target: &Path) -> Result<(), String> {
    check(&prepare(target)?, "ui.mjs", &[program])
}

fn check(folder: &Path, script: &str, arguments: &[PathBuf]) -> Result<(), String> {
    let status = Command::new("node")
        .arg(folder.join(script))
        .args(arguments)
        .env("CHROMIUM", chromium())
        .env("PICTURES", folder.join("pictures"))
        .status()
        .map_err(|error| format!("`node` does not start: {error}"))?;
    if status.success() { Ok(()) } else { Err("see above".to_owned()) }
}

fn chromium() -> OsString {
    env::var_os("CHROMIUM").unwrap_or_else(|| "/usr/bin/chromium".into())
}

/// Looks for what is needed, and returns the folder with the scripts and their packages.
fn prepare(target: &Path) -> Result<PathBuf, String> {
    let chromium = chromium();
    if !Path::new(&chromium).is_file() {
        let path = chromium.display();
        return Err(format!("there is no Chromium at {path}; install it, or set CHROMIUM=PATH"));
    }
    for (program, remedy) in [("node", "install Node.js 20 or newer"), ("npm", "install npm")] {
        let found = Command::new(program).arg("--version").output();
        found.map_err(|error| format!("`{program}` does not start ({error}); {remedy}"))?;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = target.join("browser");
    install(&root.join("browser"), &folder)?;
    Ok(folder)
}

/// Copies our scripts to where their packages are, which are downloaded when the list has changed.
fn install(scripts: &Path, folder: &Path) -> Result<(), String> {
    let lock = "package-lock.json";
    let read = |path: &Path| fs::read(path).ok();
    let is_installed = folder.join("node_modules").is_dir()
        && read(&folder.join(lock)) == read(&scripts.join(lock));
    let copied = fs::create_dir_all(folder).and_then(|()| {
        for entry in fs::read_dir(scripts)? {
            let entry = entry?;
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
        Ok(())
    });
    copied.map_err(|error| format!("{} is not filled: {error}", folder.display()))?;
    if is_installed {
        return Ok(());
    }
    let npm = Command::new("npm")
        .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
        .current_dir(folder)
        .status();
    match npm {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            // Half of a folder would look like the whole next time.
            let _ = fs::remove_dir_all(folder.join("node_modules"));
            Err(format!("`npm ci` in {} ended with {status}", folder.display()))
        }
        Err(error) => Err(format!("`npm` does not start: {error}")),
    }
}

fn samples(folder: &Path, make_samples: impl FnOnce(&str) -> bool) -> Result<Vec<PathBuf>, String> {
    if !make_samples(&folder.display().to_string()) {
        return Err("the samples were not made".to_owned());
    }
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("the samples in {} are not read: {error}", folder.display()))?;
    let mut pages: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path().join("report.html")).collect();
    pages.retain(|page| page.is_file());
    pages.sort();
    Ok(pages)
}
