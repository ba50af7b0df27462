//! Sets of runs: repeated, swept, killed and gone on with, verified and listed.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use support::{Engine, inferometer, output, text};

/// Many small runs in virtual time.
const SIMULATED: [&str; 16] = [
    "sweep",
    "--virtual",
    "--concurrencies",
    "4,8",
    "--repeat",
    "8",
    "--requests",
    "400",
    "--input-tokens",
    "64",
    "--output-tokens",
    "32",
    "--engine-step",
    "10ms",
    "--seed",
    "11",
];

fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// The one set of a folder.
fn set_of(folder: &Path) -> PathBuf {
    let mut entries = fs::read_dir(folder.join("runs")).unwrap();
    let set = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none(), "one set, and nothing beside it");
    assert!(set.join("set.json").is_file(), "{}", set.display());
    set
}

fn points(set: &Path) -> Vec<u32> {
    let entries = fs::read_dir(set.join("points")).map_or_else(|_| Vec::new(), Iterator::collect);
    let mut numbers: Vec<u32> = entries
        .into_iter()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers
}

fn summary_of(set: &Path, point: u32) -> Value {
    json_of(&fs::read(set.join(format!("points/{point}/summary.json"))).unwrap())
}

/// A document without what differs from one time to the next.
fn timeless(mut document: Value, keys: &[&str]) -> Value {
    for key in keys {
        let (table, key) = key.split_once('.').unwrap_or(("", key));
        let table = if table.is_empty() { &mut document } else { &mut document[table] };
        // A resumed run has no command of its own.
        table.as_object_mut().unwrap().remove(key);
    }
    document
}

#[track_caller]
fn done(ran: &Output) -> Value {
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    json_of(&ran.stdout)
}

/// Waits until this many points are sealed.
fn wait_for_points(sweep: &mut Child, folder: &Path, wanted: u32) {
    loop {
        let runs = fs::read_dir(folder.join("runs")).ok();
        let set = runs.and_then(|mut entries| entries.next()).map(|entry| entry.unwrap().path());
        let last = format!("points/{}/summary.json", wanted - 1);
        if set.is_some_and(|set| set.join(last).is_file()) {
            return;
        }
        assert_eq!(sweep.try_wait().unwrap(), None, "it ended before {wanted} points");
        std::thread::yield_now();
    }
}

#[test]
fn a_sweep_that_was_killed_goes_on_to_the_same_set() {
    let [whole, killed] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let document = done(&output(&[&SIMULATED[..], &["-q", "--json"]].concat(), whole.path()));

    let mut sweep = inferometer()
        .args(SIMULATED)
        .arg("-q")
        .current_dir(killed.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_points(&mut sweep, killed.path(), 3);
    kill(Pid::from_raw(i32::try_from(sweep.id()).unwrap()), Signal::SIGKILL).unwrap();
    let ended = sweep.wait().unwrap();
    assert_eq!(ended.code(), None, "it was killed in mid-work");
    let set = set_of(killed.path());
    let kept: Vec<Vec<u8>> = (0..3).map(|point| journal(&set, point)).collect();

    // A folder of which only the beginning was written, as a kill may leave it at any point.
    let is_lost = |point: &u32| !set.join(format!("points/{point}/summary.json")).exists();
    let torn = set.join(format!("points/{}", (3..1_000).find(is_lost).unwrap()));
    fs::create_dir_all(&torn).unwrap();
    let _ = fs::remove_file(torn.join("requests.journal"));
    let resumed = output(&["sweep", "--resume", "latest", "-q", "--json"], killed.path());
    let resumed = done(&resumed);
    assert!(set.join("abandoned").is_dir(), "what was half done is kept");
    for (point, journal_before) in (0..).zip(&kept) {
        assert!(journal(&set, point) == *journal_before, "point {point} was measured again");
    }

    let times = ["set", "started", "files"];
    assert_eq!(timeless(resumed, &times), timeless(document, &times));
    let other = set_of(whole.path());
    assert_eq!(points(&set), points(&other));
    assert!(3 < points(&set).len());
    for point in points(&set) {
        assert!(journal(&set, point) == journal(&other, point), "journals of point {point}");
        let times = ["run.id", "run.started", "run.command", "run.manifest_checksum", "checksum"];
        let [here, there] = [&set, &other].map(|set| timeless(summary_of(set, point), &times));
        assert_eq!(here, there, "point {point}");
    }
    let verified = output(&["verify", "latest"], killed.path());
    assert!(verified.status.success(), "{}{}", text(&verified.stdout), text(&verified.stderr));
    assert!(text(&verified.stdout).contains("runs add up"));
    // There is nothing left to do, and saying so changes nothing.
    let before = fs::read(set.join("summary.json")).unwrap();
    done(&output(&["sweep", "--resume", "latest", "-q", "--json"], killed.path()));
    assert_eq!(fs::read(set.join("summary.json")).unwrap(), before);
}

fn journal(set: &Path, point: u32) -> Vec<u8> {
    fs::read(set.join(format!("points/{point}/requests.journal"))).unwrap()
}

#[test]
fn repeated_runs_in_virtual_time_are_independent() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "--virtual", "--repeat", "3", "--requests", "20", "--seed", "5"];
    let ran = output(&[&arguments[..], &["--json"]].concat(), folder.path());
    let document = done(&ran);
    assert_eq!(document["schema"], "inferometer.set/1");
    assert_eq!(document["simulated"], true);
    let set = set_of(folder.path());
    assert_eq!(points(&set), [0, 1, 2]);
    let plan = |point| summary_of(&set, point)["plan"]["fingerprint"].clone();
    assert!(plan(0) != plan(1) && plan(1) != plan(2), "each has a seed of its own");
    let workload = |point| summary_of(&set, point)["workload"]["fingerprint"].clone();
    assert_eq!(workload(0), workload(2), "and asks the same kind of thing");
    let said = text(&ran.stderr);
    assert!(said.contains("[2/3] run 2 of 3: …") && said.contains("output tok/s"), "{said}");

    // The same run alone meets the same engine: nothing is left over from the runs before.
    let seed = summary_of(&set, 2)["run"]["seed"].to_string();
    let alone = tempfile::tempdir().unwrap();
    let arguments = ["run", "--virtual", "--requests", "20", "--seed", &seed, "-q", "--json"];
    let by_itself = done(&output(&arguments, alone.path()));
    assert_eq!(by_itself["metrics"], summary_of(&set, 2)["metrics"]);
    assert_eq!(output(&["verify", "latest/1"], folder.path()).status.code(), Some(0));
}

#[test]
fn a_real_sweep_of_the_embedded_engine() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["sweep", "--rates", "20,40", "--repeat", "2", "--requests", "6"];
    let engine = ["--output-tokens", "4", "--engine-step", "1ms"];
    let ran = output(&[&arguments[..], &engine, &["--json"]].concat(), folder.path());
    let document = done(&ran);
    let set = set_of(folder.path());
    let count = points(&set).len();
    assert!(2 <= count, "{}", text(&ran.stderr));
    assert_eq!(document["points"].as_array().unwrap().len(), count);
    for point in points(&set) {
        let summary = summary_of(&set, point);
        assert_eq!(summary["run"]["id"], format!("{}/{point}", document["set"].as_str().unwrap()));
        assert_eq!(summary["run"]["embedded"], true);
    }
    let listed = json_of(&output(&["runs", "--json"], folder.path()).stdout);
    assert_eq!(listed["runs"], json!([]));
    assert_eq!(listed["sets"][0]["kind"], "sweep");
    assert_eq!(listed["sets"][0]["state"], "sealed");
    assert_eq!(listed["sets"][0]["runs_done"], count);
    let table = text(&output(&["runs"], folder.path()).stdout);
    assert!(table.contains("20 req/s to 40 req/s"), "{table}");
    let id = document["set"].as_str().unwrap();
    for name in [id, &format!("{id}/0")] {
        let refused = output(&["recover", name], folder.path());
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains("sweep --resume"), "{}", text(&refused.stderr));
    }
}

/// Faults: 91.
#[test]
fn a_set_that_was_changed_is_not_gone_on_with_and_not_verified() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "--virtual", "--repeat", "2", "--requests", "5", "-q", "--json"];
    done(&output(&arguments, folder.path()));
    let set = set_of(folder.path());
    let change = |file: &str, from: &str, to: &str| {
        let path = set.join(file);
        let whole = fs::read_to_string(&path).unwrap();
        let changed = whole.replacen(from, to, 1);
        assert_ne!(whole, changed, "{file} has no {from}");
        fs::write(&path, changed).unwrap();
        (path, whole)
    };
    let (path, whole) = change("summary.json", "\"simulated\": true", "\"simulated\": false");
    let verified = output(&["verify", "latest"], folder.path());
    assert_eq!(verified.status.code(), Some(4));
    assert!(text(&verified.stdout).contains("simulated differs"), "{}", text(&verified.stdout));
    fs::write(path, whole).unwrap();
    assert_eq!(output(&["verify", "latest"], folder.path()).status.code(), Some(0));

    change("points/1/manifest.json", "\"warm_up\": 0", "\"warm_up\": 1");
    let resumed = output(&["sweep", "--resume", "latest"], folder.path());
    assert_eq!(resumed.status.code(), Some(2));
    let said = text(&resumed.stderr);
    assert!(said.contains("points/1") && said.contains("folder was changed"), "{said}");
    assert!(!said.contains("sweep --resume"), "it has just failed: {said}");
    let verified = output(&["verify", "latest"], folder.path());
    assert_eq!(verified.status.code(), Some(4));
    assert!(text(&verified.stdout).contains("another spec than set.json"));
}

/// Faults: 89.
#[test]
fn two_processes_never_work_on_one_set() {
    let folder = tempfile::tempdir().unwrap();
    done(&output(
        &["run", "--virtual", "--repeat", "2", "--requests", "5", "--json"],
        folder.path(),
    ));
    let lock = fs::File::open(set_of(folder.path()).join("lock")).unwrap();
    lock.try_lock().unwrap();
    let refused = output(&["sweep", "--resume", "latest"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("in use by another process"));
}

#[test]
fn a_server_is_restarted_between_runs_and_its_command_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "2ms", "--gap", "1ms"]);
    let url = engine.url();
    let size = ["--requests", "4", "--output-tokens", "2", "--repeat", "3", "--json"];
    let restart = ["--restart", "echo again $INFEROMETER_URL"];
    let ran = output(&[&["run", &url], &size[..], &restart].concat(), folder.path());
    done(&ran);
    let log = fs::read_to_string(set_of(folder.path()).join("restart.log")).unwrap();
    assert_eq!(log.matches("again http://127.0.0.1").count(), 2, "{log}");

    let other = tempfile::tempdir().unwrap();
    let broken = ["--restart", "echo no such unit; exit 5"];
    let ran = output(&[&["run", &url], &size[..], &broken].concat(), other.path());
    assert_eq!(ran.status.code(), Some(3));
    let said = text(&ran.stderr);
    assert!(said.contains("exit status: 5") && said.contains("no such unit"), "{said}");
    assert!(said.contains("sweep --resume"), "{said}");
    assert_eq!(points(&set_of(other.path())), [0], "the first is kept");
}

#[test]
fn ctrl_c_drains_the_run_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "5ms", "--gap", "5ms"]);
    let mut run = inferometer()
        .args(["run", &engine.url(), "--requests", "1000", "--output-tokens", "20"])
        .args(["--repeat", "2"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("[1/2] run 1")), "it begins");
    while !set_of(folder.path()).join("points/0/requests.journal").exists() {
        assert_eq!(run.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    kill(Pid::from_raw(i32::try_from(run.id()).unwrap()), Signal::SIGINT).unwrap();
    assert!(lines.any(|line| line.contains("sweep --resume")), "it says how to go on");
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let set = set_of(folder.path());
    assert_eq!(summary_of(&set, 0)["run"]["partial"], true);
    assert!(!set.join("summary.json").exists(), "it is not finished");
    let verified = output(&["verify", "latest"], folder.path());
    assert_eq!(verified.status.code(), Some(2), "{}", text(&verified.stdout));
}

#[test]
fn a_run_whose_journal_is_damaged_is_measured_again() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["run", "--virtual", "--repeat", "2", "--requests", "5", "-q", "--json"];
    done(&output(&arguments, folder.path()));
    let set = set_of(folder.path());
    let whole = journal(&set, 1);
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    fs::write(set.join("points/1/requests.journal"), flipped).unwrap();
    let resumed = output(&["sweep", "--resume", "latest"], folder.path());
    let said = text(&resumed.stderr);
    assert_eq!(resumed.status.code(), Some(0), "{said}");
    assert!(said.contains("run 1 is measured again: "), "{said}");
    assert!(said.contains("1 run is stored already"), "{said}");
    assert!(journal(&set, 1) == whole, "it is the same run again");
    assert!(set.join("abandoned/1-0").is_dir());
    assert_eq!(output(&["verify", "latest"], folder.path()).status.code(), Some(0));
}

#[test]
fn each_server_gets_its_own_key_when_a_set_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let engines: Vec<Engine> = ["a", "b"]
        .into_iter()
        .map(|name| {
            let key = place(&format!("{name}.key"));
            fs::write(&key, format!("key-of-{name}")).unwrap();
            let keyed =
                ["--mode", "serve", "--step", "1ms", "--api-key-file", key.to_str().unwrap()];
            let engine = Engine::start(&keyed);
            let url = engine.url();
            let table = format!("[target]\nurl = \"{url}\"\napi_key_file = \"{name}.key\"\n");
            fs::write(place(&format!("{name}.toml")), table).unwrap();
            engine
        })
        .collect();
    let servers = ["--target", "a=a.toml", "--target", "b=b.toml", "--output-tokens", "2"];
    let size = ["--concurrencies", "1", "--requests", "4", "--repeat", "2", "-q", "--json"];
    done(&output(&[&["sweep"], &servers[..], &size].concat(), folder.path()));
    let set = set_of(folder.path());
    let file = fs::read_to_string(set.join("set.json")).unwrap();
    assert!(file.contains("b.key") && !file.contains("key-of"), "{file}");

    for point in [2, 3] {
        fs::remove_dir_all(set.join(format!("points/{point}"))).unwrap();
    }
    let one_for_all = ["sweep", "--resume", "latest", "--api-key-file", "a.key"];
    let refused = output(&one_for_all, folder.path());
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("have different keys"), "{}", text(&refused.stderr));
    done(&output(&["sweep", "--resume", "latest", "-q", "--json"], folder.path()));
    for point in points(&set) {
        assert_eq!(summary_of(&set, point)["outcomes"]["ok"], 4, "point {point}");
    }
    drop(engines);
}

/// Faults: 96.
#[test]
fn a_set_whose_server_died_stops_and_its_run_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let url = engine.url();
    let mut sweep = inferometer()
        .args(["sweep", &url, "--concurrencies", "8", "--requests", "4000", "--repeat", "2"])
        .args(["--output-tokens", "4", "--json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(sweep.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("[1/2]")), "it begins");
    while !set_of(folder.path()).join("points/0/requests.journal").exists() {
        assert_eq!(sweep.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    drop(engine);
    let said: Vec<String> = lines.collect();
    assert_eq!(sweep.wait().unwrap().code(), Some(3), "{said:?}");
    let said = said.join("\n");
    assert!(
        said.contains("cannot be reached any more") && said.contains("sweep --resume"),
        "{said}"
    );
    let listed = json_of(&output(&["runs", "--json"], folder.path()).stdout);
    assert_eq!(listed["sets"][0]["runs_done"], 0, "a run without a server does not count");
}
