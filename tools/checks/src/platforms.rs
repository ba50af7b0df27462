//! Other operating systems and processors, as far as this machine can tell: the portable side of `load`
//! and `engine` tested here, and the whole program checked for every target that is installed.

use std::path::Path;
use std::process::Command;

use crate::exports::said;
use crate::packages::{Tools, host, show};

/// Tests that need nothing of Linux; the others compare with the kernel's own stamps.
const PORTABLE: [&str; 2] = ["inferometer-load", "inferometer-engine"];

pub(crate) fn platforms(target_folder: &Path) -> Result<String, String> {
    let tools = Tools::install(&target_folder.join("packages"))?;
    let mut tests = xtask::cargo_command(["test", "--lib", "--bins"]);
    tests.args(PORTABLE.map(|name| format!("--package={name}")));
    // A folder of its own: the flag would have everything built again.
    tests.env("CARGO_TARGET_DIR", target_folder.join("portable"));
    show(tests.env("RUSTFLAGS", "--cfg inferometer_portable"))?;
    let (installed, host) =
        (said(Command::new("rustup").args(["target", "list", "--installed"]))?, host()?);
    let mut checked = Vec::new();
    for target in installed.lines().filter(|target| *target != host) {
        let mut check = tools.command("cargo-zigbuild")?;
        show(check.args([
            "check",
            "--locked",
            "--package",
            "inferometer-cli",
            "--target",
            target,
        ]))?;
        checked.push(format!("{target}: checked\n"));
    }
    Ok(format!("portable: tested\n{}", checked.concat()))
}
