//! Several processes as one client: their runs are merged into one, and what one of them lost is named.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::journal::RunStop;
use inferometer_model::outcome::Cause;
use inferometer_model::{Clock, Moment, Observations, Release};
use inferometer_store::RunDirectory;
use inferometer_workload::{Inputs, make_plan};
use jiff::Timestamp;

use support::deployments::until_there;
use support::{Engine, inferometer, latest_run, output, text, words};

const LOAD: [&str; 10] = ["-r", "40", "-n", "90", "--isl", "16", "--osl", "3", "--seed", "7"];

fn worker(engine: &Engine, folder: &Path, stripe: &str, start: &str) -> Child {
    std::fs::create_dir_all(folder).unwrap();
    inferometer()
        .args(["run", &engine.url(), "--stripe", stripe, "--start-at", start])
        .args(LOAD)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn merged(folder: &Path, folders: &[&str]) -> (Output, RunDirectory, Observations) {
    std::fs::create_dir_all(folder).unwrap();
    let merged = output(&[&["merge"], folders].concat(), folder);
    assert!(folder.join("runs").exists(), "{}", text(&merged.stderr));
    let run = latest_run(folder);
    let observations = run.read().unwrap().observations;
    (merged, run, observations)
}

/// Every record is the request of the plan with its number, due when one client would have sent it.
fn assert_is_planned(observations: &Observations) {
    let spec = &observations.manifest.spec;
    let (plan, fingerprints) = make_plan(spec, &Inputs::gather(spec).unwrap());
    assert_eq!(observations.manifest.fingerprints, fingerprints);
    assert_eq!(observations.manifest.bounds, plan.bounds());
    let began = observations.ending.began.unwrap();
    for record in &observations.records {
        let planned = plan.request(record.id).unwrap();
        assert_eq!(record.asked, planned.asked());
        let Release::At(due) = planned.release else { panic!("it is an open loop") };
        // A worker that died leaves no start: the merge takes it from the zero of the worker's clock,
        // and the worker itself read the wall clock once more, some nanoseconds apart.
        let apart = record.intended.nanos_after(began + Duration::from_nanos(due.as_nanos()));
        assert!(apart.unsigned_abs() <= 1_000, "{}: {apart} ns", record.id);
        assert!(record.sent.is_none_or(|sent| record.intended <= sent), "{}", record.id);
    }
}

fn lost(observations: &Observations, cause: Cause) -> Vec<u64> {
    let parts = observations.not_sent.iter().filter(|part| part.cause == cause);
    parts.flat_map(|part| part.first.0..part.first.0 + part.count).collect()
}

/// One measurement after the other would take the time of the wait again: all begin together.
#[test]
fn what_workers_measure_is_one_run_and_what_one_of_them_lost_is_named() {
    let (engine, folder) = (Engine::start(&["--ttft", "20ms"]), tempfile::tempdir().unwrap());
    let at = |name: &str| folder.path().join(name);
    let now = Timestamp::now();
    let start = |ahead: i64| (now + jiff::SignedDuration::from_secs(ahead)).to_string();
    let names = ["0/3", "1/3", "2/3"];
    let begin = |name: &str, ahead| {
        let one = |stripe: &&str| worker(&engine, &at(name), stripe, &start(ahead));
        names.iter().map(one).collect::<Vec<Child>>()
    };
    let (whole, mut killed) = (begin("whole", 4), begin("killed", 4));
    let late = worker(&engine, &at("late"), "0/2", &start(-1));
    let punctual = worker(&engine, &at("late"), "1/2", &start(-1));
    // Half of the time after the start: a share of what was due is recorded.
    let killed_run = run_of(&at("killed"), "1/3");
    until_there(|| 8 < started(&killed_run));
    killed[1].kill().unwrap();
    for child in whole.into_iter().chain(killed).chain([late, punctual]) {
        let _ = child.wait_with_output().unwrap();
    }

    let (done, run, observations) = merged(&at("whole"), &["runs"]);
    assert_is_planned(&observations);
    let ids: Vec<u64> = observations.records.iter().map(|record| record.id.0).collect();
    assert_eq!(ids, (0..90).collect::<Vec<_>>(), "{}", text(&done.stderr));
    assert_eq!(observations.ending.stop, RunStop::PlanDone);
    assert_eq!(observations.ending.client.drivers, 3, "those of all workers");
    let facts = observations.manifest.merged.as_ref().unwrap();
    assert_eq!(facts.clock_error_ns, Some(0), "one machine has one clock");
    assert!(facts.workers.iter().all(|worker| worker.loss().is_none()));
    let id = run.id().to_owned();
    let verified = output(&["verify", &id], &at("whole"));
    assert!(verified.status.success(), "{}", text(&verified.stdout));
    let csv = output(&["export", &id, "--format", "csv", "--to", "-"], &at("whole"));
    assert!(csv.status.success(), "{}", text(&csv.stderr));
    let page = output(&["report", &id, "--format", "md", "--to", "-"], &at("whole"));
    assert!(
        words(&page.stdout).contains("All workers were on one machine"),
        "{}",
        text(&page.stderr)
    );

    let (done, _, observations) = merged(&at("killed"), &["runs"]);
    assert_eq!(done.status.code(), Some(4), "{}", text(&done.stderr));
    assert_eq!(observations.ending.stop, RunStop::WorkersLost);
    assert_is_planned(&observations);
    let page = words(&done.stdout);
    assert!(page.contains("the run is partial: worker 1/3"), "{page}");
    assert!(page.contains("died"), "{page}");
    let unsent = lost(&observations, Cause::RunCrashed);
    assert!(!unsent.is_empty() && unsent.iter().all(|id| id % 3 == 1), "{unsent:?}");
    assert_eq!(observations.scheduled_count(), 90, "each is accounted for");
    let others = observations.records.iter().filter(|record| record.id.0 % 3 != 1);
    assert_eq!(others.count(), 60, "the others finished");

    // A folder that is missing.
    let two = [run_of(&at("whole"), "0/3"), run_of(&at("whole"), "2/3")];
    let two = two.map(|run| run.path().display().to_string());
    let (done, _, observations) = merged(&at("two"), &[&two[0], &two[1]]);
    assert_eq!(done.status.code(), Some(4));
    let missing: Vec<u64> = (0..90).filter(|id| id % 3 == 1).collect();
    assert_eq!(lost(&observations, Cause::WorkerMissing), missing);
    assert!(words(&done.stdout).contains("worker 1/3 is missing"), "{}", text(&done.stdout));

    // Workers that began after the start: what was due before is not sent in a burst.
    let (done, _, observations) = merged(&at("late"), &["runs"]);
    assert_is_planned(&observations);
    assert!(words(&done.stdout).contains("s late; "), "{}", text(&done.stdout));
    let unsent = lost(&observations, Cause::WorkerLate);
    assert!(20 < unsent.len() && unsent.contains(&0), "a second of 40 each: {unsent:?}");
    assert_eq!(observations.scheduled_count(), 90);
    assert_eq!(observations.not_sent_count(), unsent.len() as u64);

    // Runs of different measurements are never mixed.
    let mixed = [two[0].clone(), run_of(&at("late"), "1/2").path().display().to_string()];
    let refused = output(&["merge", &mixed[0], &mixed[1]], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("not of one measurement"), "{}", text(&refused.stderr));
}

/// The run of a worker, once there is one.
fn run_of(folder: &Path, stripe: &str) -> RunDirectory {
    let find = || -> Option<PathBuf> {
        let mut runs = std::fs::read_dir(folder.join("runs")).ok()?.flatten();
        let is_its = |path: &PathBuf| {
            let manifest = RunDirectory::at(path.clone()).manifest().ok();
            manifest.and_then(|it| it.stripe).is_some_and(|it| it.stripe.to_string() == stripe)
        };
        runs.find_map(|run| Some(run.path()).filter(is_its))
    };
    until_there(|| find().is_some());
    RunDirectory::at(find().unwrap())
}

/// Requests in the journal of a run that goes on.
fn started(run: &RunDirectory) -> usize {
    std::thread::sleep(Duration::from_millis(20));
    run.open_journal().map_or(0, Iterator::count)
}

#[test]
fn what_workers_cannot_share_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let refusals: [(&[&str], &str); 7] = [
        (&["http://127.0.0.1:9", "--stripe", "4/4", "--start-at", "+3s"], "the last is 3"),
        (&["http://127.0.0.1:9", "--stripe", "1/4"], "--start-at"),
        (&["http://127.0.0.1:9", "--stripe", "1/4", "--start-at", "noon"], "with its time zone"),
        (&["http://127.0.0.1:9", "--stripe", "1/4", "--start-at", "+3s"], "the same --seed"),
        (&["--stripe", "1/4", "--start-at", "+3s", "--seed", "1"], "start the server first"),
        (
            &["http://127.0.0.1:9", "--stripe", "1/9", "--start-at", "+3s", "--seed", "1"],
            "9 workers cannot share 8 requests in flight",
        ),
        (
            &["http://127.0.0.1:9", "--on", "slurm", "--header", "X-Key: abc"],
            "would be in a file of the job",
        ),
    ];
    for (arguments, why) in refusals {
        let refused = output(&[&["run"], arguments].concat(), folder.path());
        let said = words(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(why), "{arguments:?}: {said}");
        assert!(!said.contains("abc"), "{said}");
    }
    let empty = output(&["merge", "."], folder.path());
    assert_eq!(empty.status.code(), Some(2));
    assert!(text(&empty.stderr).contains("holds no run of a worker"));
}

/// What Slurm is given.
#[test]
fn a_dry_run_shows_what_a_scheduler_would_get() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("e.toml");
    let experiment = "[target]\nurl = \"http://127.0.0.1:9\"\n[load]\nrate = 5\nrequests = 50\n\
                      [slurm]\nworkers = 4\nnodes = 2\npartition = \"test\"\ntime_limit = \"00:10:00\"\n";
    std::fs::write(&file, experiment).unwrap();
    let shown = |on: &str| {
        let shown = output(&["run", "e.toml", "--on", on, "--dry-run"], folder.path());
        assert!(shown.status.success(), "{}", text(&shown.stderr));
        text(&shown.stdout)
    };
    let script = shown("slurm");
    for line in ["#SBATCH --ntasks=4\n", "#SBATCH --nodes=2\n", "#SBATCH --partition=test\n"] {
        assert!(script.contains(line), "{script}");
    }
    assert!(script.contains("--kill-on-bad-exit=0"), "a worker that dies takes no other with it");
    // The file of the workers is an experiment, and says the same.
    let (_, inner) = script.split_once("# FOLDER/experiment.toml\n").unwrap();
    std::fs::write(&file, inner).unwrap();
    let plan = output(&["plan", "e.toml", "--json"], folder.path());
    assert!(plan.status.success(), "{inner}: {}", text(&plan.stderr));
    assert!(words(&plan.stdout).contains("\"requests\": 50"), "{}", text(&plan.stdout));
}

/// Times of the test's own; the program reads its clocks by itself.
#[test]
fn a_clock_with_another_zero_shows_the_same_wall_time() {
    let now_ns = SystemClock::realtime_ns();
    let clock = SystemClock::with_zero_at(now_ns - 5_000_000_000);
    let begin = clock.moment_at_realtime(now_ns);
    assert!(begin.nanos_after(Moment::from_nanos(5_000_000_000)).abs() < 5_000_000, "{begin:?}");
    assert!(begin <= clock.now());
}
