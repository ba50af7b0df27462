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
    let mut table = format!("{runs} runs, read in {:.1} s\n", began.elapsed().as_secs_f64());
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
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (median, most) = (ms(times[ROUNDS / 2]), ms(times[ROUNDS - 1]));
        let _ = writeln!(table, "{path:<24} median {median:>6.1} ms, longest {most:>6.1} ms");
    }
    Ok(table)
}

/// Copies of one simulated run: their names differ, and nothing else that the list reads.
fn make_runs(program: &Path, folder: &Path, runs: u64) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let simulate = ["simulate", "--quiet", "--requests", "200", "--concurrency", "8"];
    Command::new(program).args(simulate).current_dir(folder).stdout(Stdio::null()).status()?;
    let mut made = fs::read_dir(folder.join("runs"))?;
    let original = made.next().ok_or(std::io::ErrorKind::NotFound)??.path();
    for number in 1..runs {
        let copy = folder.join(format!("runs/20260101-000000-{number:06}"));
        fs::create_dir(&copy)?;
        for file in fs::read_dir(&original)? {
            let file = file?;
            fs::hard_link(file.path(), copy.join(file.file_name()))?;
        }
    }
    Ok(())
}
