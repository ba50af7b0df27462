//! Whether a learned profile predicts a real server: `predict.py`.

use std::path::Path;
use std::process::Command;

pub(crate) fn predict(program: &Path, words: &[&str], target: &Path) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("predict.py");
    let folder = target.join("predict");
    let status = Command::new("python3").arg(&path).arg(program).arg(&folder).args(words).status();
    match status.map_err(|error| format!("{}: {error}", path.display()))? {
        status if status.success() => Ok(()),
        status => Err(format!("predict: {status}; what it left is in {}", folder.display())),
    }
}
