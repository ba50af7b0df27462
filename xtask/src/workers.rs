//! Checks of loads that several workers send, each a script in `xtask/workers`.

use std::path::Path;
use std::process::Command;

pub(crate) const HELP: &str = "\
cargo xtask slurm [PROGRAM]     do four workers on a Slurm of two nodes, started here, measure what one
                                client does? Then one is killed, and a job cancelled. Installs slurm-wlm
                                and munge where they are missing
cargo xtask object-store [PROGRAM]   do workers leave their runs in moto's S3, and does merge find them?
cargo xtask merge [PROGRAM]     the time and the memory of merging eight workers with a million requests
";

/// Runs the script of this name; it stores in a folder of its own.
pub(crate) fn script(name: &str, program: &Path, target: &Path) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("workers/{name}.sh"));
    let folder = target.join("workers").join(name);
    let status = Command::new("bash").arg(&path).arg(program).arg(&folder).status();
    match status.map_err(|error| format!("{}: {error}", path.display()))? {
        status if status.success() => Ok(()),
        status => Err(format!("{name}: {status}; what it left is in {}", folder.display())),
    }
}
