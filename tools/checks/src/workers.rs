//! Checks of loads that several workers send, each a script in `workers/`.

use std::path::Path;
use std::process::Command;

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
