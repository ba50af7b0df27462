//! Shows a page in the browser of whoever asked for it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::failure::Failure;

#[cfg(target_os = "macos")]
const OPENERS: [&[&str]; 1] = [&["open"]];
#[cfg(windows)]
const OPENERS: [&[&str]; 1] = [&["cmd", "/C", "start", ""]];
#[cfg(not(any(target_os = "macos", windows)))]
const OPENERS: [&[&str]; 2] = [&["xdg-open"], &["gio", "open"]];

/// The browser lives on by itself; whether it shows anything is not waited for.
pub(super) fn open(page: &Path) -> Result<(), Failure> {
    for opener in OPENERS {
        let Some((program, arguments)) = opener.split_first() else { continue };
        let begun = Command::new(program)
            .args(arguments)
            .arg(page)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if begun.is_ok() {
            return Ok(());
        }
    }
    let tried: Vec<&str> = OPENERS.iter().filter_map(|opener| opener.first().copied()).collect();
    Err(Failure::usage(format!("no program to open a page was found; tried {}", tried.join(", ")))
        .hint(format!("the page is there all the same: open {} yourself", page.display())))
}
