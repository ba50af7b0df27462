//! How long `inferometer ui` takes to list many runs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::nightly::Served;

/// What a reader may ask for.
const PATHS: [&str; 4] = ["/", "/?q=c%3D8&sort=-first_token", "/?page=100", "/api/list?q=nothing"];
const ROUNDS: usize = 20;
/// The longest that the middle one of the rounds may take.
const LIMIT: Duration = Duration::from_millis(200);

pub(crate) fn ui_list(program: &Path, runs: u64) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("inferometer-ui-list-{}", std::process::id()));
    let table = measure(program, &folder, runs);
    // What cannot be removed is in the folder for such things.
    let _ = fs::remove_dir_all(&folder);
    table
}

#[expect(clippy::disallowed_methods, reason = "a chore takes the time of another program")]
fn measure(program: &Path, folder: &Path, runs: u64) -> Result<String, String> {
    make_runs(program, folder, runs).map_err(|error| format!("the runs are not made: {error}"))?;
    let began = Instant::now();
    let mut command = Command::new(program);
    let server = Served::start(command.args(["ui", "runs", "--port", "0"]).current_dir(folder))?;
    while server.ask("GET /api/list")?.contains("\"is_partial\":true") {
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut slowest = Duration::ZERO;
    let mut table = format!("{runs} results, read in {:.1} s\n", began.elapsed().as_secs_f64());
    for path in PATHS {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let asked = Instant::now();
            server.ask(&format!("GET {path}"))?;
            times.push(asked.elapsed());
            // So that the folder is looked at again by some of them.
            std::thread::sleep(Duration::from_millis(100));
        }
        times.sort_unstable();
        slowest = slowest.max(times[ROUNDS / 2]);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (median, most) = (ms(times[ROUNDS / 2]), ms(times[ROUNDS - 1]));
        let _ = writeln!(table, "{path:<24} median {median:>6.1} ms, longest {most:>6.1} ms");
    }
    if LIMIT < slowest {
        return Err(format!("{table}a page takes {slowest:.0?}, and {LIMIT:?} are allowed"));
    }
    Ok(table)
}

/// Copies of a simulated run, a set and an import: their names differ, and nothing else that the list reads.
fn make_runs(program: &Path, folder: &Path, runs: u64) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    for words in [
        "simulate --quiet --requests 200 --concurrency 8",
        "export latest --format vllm --to exported",
        "import exported",
        "sweep --virtual --quiet --concurrencies 1,2 --requests 20",
    ] {
        let mut command = Command::new(program);
        command.args(words.split(' ')).current_dir(folder).stdout(Stdio::null());
        // What a short simulated run measured may be doubtful.
        if !command
            .stderr(Stdio::null())
            .status()?
            .code()
            .is_some_and(|code| [0, 4].contains(&code))
        {
            return Err(std::io::Error::other(format!("`{words}` failed")));
        }
    }
    let found: Result<Vec<_>, _> = fs::read_dir(folder.join("runs"))?.collect();
    let originals: Vec<_> = found?.into_iter().map(|entry| entry.path()).collect();
    let kinds = 3;
    if originals.len() != kinds {
        return Err(std::io::Error::other(format!(
            "{} results instead of {kinds}",
            originals.len()
        )));
    }
    for number in kinds..usize::try_from(runs).unwrap_or(usize::MAX) {
        // Most are runs, as in a folder of somebody who measures.
        let of = if number % 10 == 0 { number / 10 % kinds } else { 0 };
        link_all(&originals[of], &folder.join(format!("runs/20260101-000000-{number:06}")))?;
    }
    Ok(())
}

fn link_all(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return fs::hard_link(from, to);
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        link_all(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
