//! What `--version` says about this build: the commit, the profile, the target and the compiler.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=INFEROMETER_COMMIT");
    let target = variable("TARGET");
    let compiler = said(&variable("RUSTC"), &["--version"]).unwrap_or_default();
    // The name of the profile is known by the folder that it builds in, `…/dist/build/PACKAGE/out`.
    let folder = variable("OUT_DIR");
    let mut folders = Path::new(&folder).ancestors().skip(1);
    let found = folders.find(|folder| folder.ends_with("build")).and_then(Path::parent);
    let profile = found.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let profile = profile.unwrap_or_else(|| variable("PROFILE"));
    let commit = commit(&profile).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=INFEROMETER_COMMIT={commit}");
    println!("cargo::rustc-env=INFEROMETER_BUILD={profile}, {target}, {compiler}");
}

/// As packagers set it, or as git says. Source archives have none, and a debug build does not ask:
/// it would be built again after every commit.
fn commit(profile: &str) -> Option<String> {
    let set = variable("INFEROMETER_COMMIT");
    if !set.is_empty() {
        return Some(set);
    }
    if profile == "debug" {
        return None;
    }
    // Another repository may contain an unpacked source archive.
    said("git", &["ls-files", "--error-unmatch", "build.rs"])?;
    // HEAD names the branch, and its log grows with every commit and checkout.
    for file in ["HEAD", "logs/HEAD"] {
        let path = said("git", &["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    said("git", &["log", "-1", "--format=%h of %cs", "--abbrev=10"])
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
