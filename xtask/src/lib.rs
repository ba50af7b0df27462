//! How chores and checks call cargo, and where they find what it built.

#![expect(clippy::print_stderr, reason = "a chore reports its progress")]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// The folder in which cargo builds, as an absolute path.
pub fn target_folder() -> Result<PathBuf, String> {
    let folder = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    std::path::absolute(folder).map_err(|error| format!("the build folder has no place: {error}"))
}

/// The program that is named, or ours, built in release mode.
pub fn program_or_build(named: &[&str]) -> Result<PathBuf, String> {
    if let [program] = named {
        return std::path::absolute(program).map_err(|error| error.to_string());
    }
    if !cargo(["build", "--release", "--package", "inferometer-cli"]) {
        return Err("the program was not built".to_owned());
    }
    Ok(target_folder()?.join("release/inferometer"))
}

/// Whether cargo succeeded with these arguments.
pub fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> bool {
    run(&mut cargo_command(arguments))
}

/// The cargo that called this program, or the one in the path, with these arguments.
pub fn cargo_command<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Prints a command of cargo, and whether it succeeded.
pub fn run(command: &mut Command) -> bool {
    let words: Vec<&OsStr> = command.get_args().collect();
    eprintln!("· cargo {}", words.join(OsStr::new(" ")).display());
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cargo did not start: {error}");
            false
        }
    }
}
