//! Shows a page in the browser of whoever asked for it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::failure::Failure;

#[cfg(target_os = "macos")]
const OPENERS: [&[&str]; 1] = [&["open"]];
#[cfg(windows)]
const OPENERS: [&[&str]; 1] = [&["cmd", "/C", "start", ""]];
#[cfg(not(any(target_os = "macos", windows)))]
const OPENERS: [&[&str]; 2] = [&["xdg-open"], &["gio", "open"]];

/// A program that cannot open anything says so soon; one that lives on is the browser, perhaps.
const LOOKS: u32 = 20;
const LOOK: Duration = Duration::from_millis(50);

/// The browser lives on by itself; whether it shows anything is not waited for.
pub(super) fn open(page: &Path) -> Result<(), Failure> {
    if !has_desktop() {
        return Err(unopened(
            "there is no desktop here: DISPLAY, WAYLAND_DISPLAY are not set",
            page,
        ));
    }
    let mut begun = Vec::new();
    for opener in OPENERS {
        let Some((program, arguments)) = opener.split_first() else { continue };
        let child = Command::new(program)
            .args(arguments)
            .arg(page)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else { continue };
        if !fails_at_once(child) {
            return Ok(());
        }
        begun.push(*program);
    }
    if !begun.is_empty() {
        return Err(unopened(&format!("{} failed", begun.join(" and ")), page));
    }
    let tried: Vec<&str> = OPENERS.iter().filter_map(|opener| opener.first().copied()).collect();
    let why = format!("no program to open a page was found; tried {}", tried.join(", "));
    Err(unopened(&why, page))
}

fn unopened(why: &str, page: &Path) -> Failure {
    Failure::usage(format!("nothing was opened: {why}"))
        .hint(format!("the page is there all the same: open {} yourself", page.display()))
}

/// Without a desktop an opener may try a browser for terminals, and that one nobody sees. Whoever
/// names a browser knows better.
fn has_desktop() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].iter().any(is_set)
}

fn fails_at_once(mut opener: Child) -> bool {
    for _ in 0..LOOKS {
        match opener.try_wait() {
            Ok(Some(status)) => return !status.success(),
            Ok(None) => std::thread::sleep(LOOK),
            Err(_) => return false,
        }
    }
    false
}
