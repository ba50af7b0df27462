//! Matrices of deployments: played, killed and gone on with, in lanes, over sockets, and with cells
//! that come to nothing.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use support::matrices::{Asked, HEAVY, LARGE, LIGHT, SMALL};
use support::{inferometer, output, text};

const RESUME: [&str; 5] = ["matrix", "--resume", "latest", "--json", "--trust"];

/// Three cells, one of which does not fit.
const THREE: [(&str, &str); 3] = [(SMALL, LIGHT), (SMALL, HEAVY), (LARGE, HEAVY)];

fn three() -> Asked<'static> {
    Asked {
        cells: &THREE,
        requests: 12,
        runs: 1,
        lanes: 1,
        simulated: true,
        speed: None,
        commands: &[],
    }
}

#[track_caller]
fn json_of(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[track_caller]
fn done(ran: &Output) -> Value {
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    json_of(&ran.stdout)
}

/// What is in a folder of the set, by name.
fn names(set: &Path, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(set.join(folder)).map_or_else(|_| Vec::new(), Iterator::collect);
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<String> =
        entries.into_iter().map(|entry| name(entry).into_string().unwrap()).collect();
    names.sort();
    names
}

/// Journals by point: what two sets must have in common to the last bit.
fn journals(set: &Path) -> Vec<(String, Vec<u8>)> {
    let journal = |name: &String| fs::read(set.join("points").join(name).join("requests.journal"));
    names(set, "points").into_iter().map(|name| (name.clone(), journal(&name).unwrap())).collect()
}

/// What sets of the same plan must have in common.
fn timeless(mut document: Value) -> Value {
    for key in ["set", "started", "files"] {
        document.as_object_mut().unwrap().remove(key).unwrap();
    }
    document
}

#[test]
fn cells_that_do_not_fit_are_results_and_the_others_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let set = three().make(folder.path());
    let ran = output(&RESUME, folder.path());
    let document = done(&ran);
    assert_eq!(names(&set, "points"), ["0", "1", "4", "5"]);
    assert_eq!(names(&set, "failures"), ["2.json", "3.json"]);
    let failure = json_of(&fs::read(set.join("failures/2.json")).unwrap());
    assert_eq!(failure["failure"]["cause"], "out_of_memory");
    assert_eq!(failure["failure"]["stage"], "start");
    assert_eq!(failure["at"], Value::Null, "nothing has a date in virtual time");
    assert_eq!(document["points"].as_array().unwrap().len(), 4);
    let said = text(&ran.stderr);
    assert!(said.contains("cell 2 of 3: 1 · v100-pcie-16gb · "), "{said}");
    assert!(said.contains("cell 2 of 3, c=4: not started: "), "{said}");
    for file in ["report.html", "report.md", "matrix.csv", "summary.json"] {
        assert!(set.join(file).is_file(), "{file}");
    }

    let verified = output(&["verify", "latest"], folder.path());
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
    let listed = json_of(&output(&["runs", "--json"], folder.path()).stdout);
    assert_eq!(listed["sets"][0]["kind"], "matrix");
    assert_eq!(listed["sets"][0]["state"], "sealed");
    // There is nothing left to do, and saying so changes nothing.
    let before = fs::read(set.join("summary.json")).unwrap();
    let again = output(&RESUME, folder.path());
    assert_eq!(done(&again)["points"], document["points"]);
    assert!(text(&again.stderr).contains("already complete"), "{}", text(&again.stderr));
    assert_eq!(fs::read(set.join("summary.json")).unwrap(), before);
}

#[test]
fn two_matrices_are_compared_cell_by_cell() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        Asked { requests: 100, ..three() }.make(folder.path());
        done(&output(&RESUME, folder.path()));
    }
    let listed = json_of(&output(&["runs", "--json"], folder.path()).stdout);
    let id = |place: usize| listed["sets"][place]["id"].as_str().unwrap().to_owned();
    let compared = output(&["compare", &id(0), &id(1), "--json"], folder.path());
    let document = done(&compared);
    let rows: Vec<&str> = document["levels"]
        .as_array()
        .unwrap()
        .iter()
        .map(|level| level["scenario"].as_str().unwrap())
        .collect();
    assert_eq!(rows.len(), 4, "two cells of three fit, at two loads each: {rows:?}");
    assert!(rows[0].ends_with(" · c=2") && rows[1].ends_with(" · c=4"), "{rows:?}");
    assert_eq!(document["outcomes"][0]["judgement"], "same");
}

#[test]
fn a_matrix_in_which_nothing_fits_is_no_result() {
    let folder = tempfile::tempdir().unwrap();
    Asked { cells: &THREE[1..2], ..three() }.make(folder.path());
    let ran = output(&["matrix", "--resume", "latest", "-q"], folder.path());
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran.stderr));
}

#[test]
fn failed_cells_are_tried_again_when_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let set = three().make(folder.path());
    done(&output(&RESUME, folder.path()));
    let before = journals(&set);
    let summary = fs::read(set.join("summary.json")).unwrap();
    let ran = output(&[&RESUME[..], &["--retry-failed"]].concat(), folder.path());
    done(&ran);
    let said = text(&ran.stderr);
    assert!(said.contains("cell 2 of 3") && !said.contains("cell 1 of 3"), "{said}");
    assert_eq!(names(&set, "abandoned"), ["failure-2-0.json", "failure-3-0.json"]);
    assert_eq!(names(&set, "failures"), ["2.json", "3.json"], "they fail as before");
    assert!(journals(&set) == before, "what was measured is left alone");
    assert_eq!(fs::read(set.join("summary.json")).unwrap(), summary);
}

/// Waits until this many points are sealed.
fn wait_for_points(matrix: &mut Child, set: &Path, wanted: usize) {
    let is_sealed = |name: &&String| set.join("points").join(name).join("summary.json").is_file();
    while names(set, "points").iter().filter(is_sealed).count() < wanted {
        assert_eq!(matrix.try_wait().unwrap(), None, "it ended before {wanted} points");
        std::thread::yield_now();
    }
}

#[test]
fn a_matrix_that_was_killed_goes_on_to_the_same_result() {
    let [whole, killed] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let asked = Asked { requests: 300, runs: 3, ..three() };
    let sets: Vec<PathBuf> = [&whole, &killed].map(|folder| asked.make(folder.path())).to_vec();
    let document = done(&output(&RESUME, whole.path()));

    let mut matrix = inferometer()
        .args(RESUME)
        .arg("-q")
        .current_dir(killed.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_points(&mut matrix, &sets[1], 3);
    kill(Pid::from_raw(i32::try_from(matrix.id()).unwrap()), Signal::SIGKILL).unwrap();
    assert_eq!(matrix.wait().unwrap().code(), None, "it was killed in mid-work");
    let listed = json_of(&output(&["runs", "--json"], killed.path()).stdout);
    assert_eq!(listed["sets"][0]["state"], "unfinished");
    assert!(names(&sets[1], "points").len() < 12, "something is left to do");

    // The way that any set can be gone on with leads here too.
    let resumed = done(&output(&["sweep", "--resume", "latest", "-q", "--json"], killed.path()));
    assert_eq!(timeless(resumed), timeless(document));
    assert!(journals(&sets[1]) == journals(&sets[0]), "every run is the same to the last bit");
    let table = |set: &PathBuf| fs::read_to_string(set.join("matrix.csv")).unwrap();
    let without_names = |set: &PathBuf| {
        let id = set.file_name().unwrap().to_str().unwrap().to_owned();
        table(set).replace(&id, "SET")
    };
    assert_eq!(without_names(&sets[1]), without_names(&sets[0]));
    let verified = output(&["verify", "latest"], killed.path());
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified.stderr));
}

#[test]
fn lanes_change_nothing_but_the_time() {
    let [one, four] = [1, 4].map(|lanes| {
        let folder = tempfile::tempdir().unwrap();
        let set = Asked { lanes, runs: 2, ..three() }.make(folder.path());
        let document = done(&output(&RESUME, folder.path()));
        let journals = journals(&set);
        assert_eq!(journals.len(), 8);
        (journals, timeless(document))
    });
    assert!(one.0 == four.0, "every run is the same to the last bit");
    assert_eq!(one.1["conditions"], four.1["conditions"]);
    assert_eq!(one.1["matrix"]["rows"], four.1["matrix"]["rows"]);
}

#[test]
fn cells_over_sockets_are_measured_drained_and_noted() {
    let folder = tempfile::tempdir().unwrap();
    let asked = Asked { simulated: false, lanes: 2, speed: Some(20.0), ..three() };
    let set = asked.make(folder.path());
    let ran = output(&RESUME, folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    assert_eq!(names(&set, "points"), ["0", "1", "4", "5"]);
    assert_eq!(names(&set, "failures"), ["2.json", "3.json"]);
    let failure = json_of(&fs::read(set.join("failures/2.json")).unwrap());
    assert!(failure["at"].as_str().unwrap().ends_with('Z'), "{failure}");
    assert_eq!(names(&set, "deployments"), ["0-0.json", "2-0.json"]);
    let record = json_of(&fs::read(set.join("deployments/0-0.json")).unwrap());
    assert!(record["drained_after_s"].is_f64(), "the engine says when it is idle: {record}");
    let summary = json_of(&fs::read(set.join("points/0/summary.json")).unwrap());
    assert_eq!(summary["run"]["embedded"], true);
    assert_eq!(summary["outcomes"]["ok"], 12);
}

#[test]
fn a_signal_stops_between_cells_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let asked = Asked { simulated: false, requests: 100_000, speed: Some(1.0), ..three() };
    let set = asked.make(folder.path());
    let mut matrix = inferometer()
        .args(RESUME)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !set.join("points/0/requests.journal").is_file() {
        assert_eq!(matrix.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    for _ in 0..2 {
        kill(Pid::from_raw(i32::try_from(matrix.id()).unwrap()), Signal::SIGINT).unwrap();
    }
    let ended = matrix.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("resume with: inferometer matrix --resume"), "{said}");
    assert!(!set.join("summary.json").exists());
    assert_eq!(names(&set, "failures"), Vec::<String>::new());
}

/// An engine of ours as a program of somebody else; its number is in the file.
const SERVER: &str =
    "echo $$ > server.pid; exec \"$0\" engine --mode serve --step 1ms --port \"$1\"";

#[test]
fn a_server_that_is_put_up_is_measured_and_proved_gone_and_one_that_is_not_there_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_inferometer");
    let commands: [&[&str]; 2] =
        [&["no-such-server", "{port}"], &["sh", "-c", SERVER, program, "{port}"]];
    let asked = Asked { cells: &THREE[..2], simulated: false, commands: &commands, ..three() };
    let set = asked.make(folder.path());
    let ran = output(&RESUME, folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    assert_eq!(names(&set, "failures"), ["0.json", "1.json"]);
    let failure = json_of(&fs::read(set.join("failures/0.json")).unwrap());
    assert_eq!(failure["failure"]["stage"], "start");
    assert!(failure.to_string().contains("no-such-server"), "{failure}");
    assert_eq!(names(&set, "points"), ["2", "3"]);
    let record = json_of(&fs::read(set.join("deployments/1-0.json")).unwrap());
    assert_eq!(record["facts"]["kind"], "process");
    assert_eq!(record["departure"]["port_closed"], true);
    assert_eq!(record["departure"]["left"], serde_json::json!([]));
    assert!(record["drained_after_s"].is_f64(), "{record}");
    assert!(set.join("deployments/1-0.log").is_file());
    let pid: i32 =
        fs::read_to_string(folder.path().join("server.pid")).unwrap().trim().parse().unwrap();
    assert!(kill(Pid::from_raw(pid), None).is_err(), "it is gone");
}

#[test]
fn a_server_that_dies_is_a_result_and_the_matrix_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_inferometer");
    let commands: [&[&str]; 2] =
        [&["sh", "-c", SERVER, program, "{port}"], &["no-such-server", "{port}"]];
    let asked = Asked {
        cells: &THREE[..2],
        simulated: false,
        requests: 100_000,
        commands: &commands,
        ..three()
    };
    let set = asked.make(folder.path());
    let mut matrix = inferometer()
        .args(RESUME)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let journal = set.join("points/0/requests.journal");
    while !fs::metadata(&journal).is_ok_and(|journal| 4096 < journal.len()) {
        assert_eq!(matrix.try_wait().unwrap(), None);
        std::thread::yield_now();
    }
    let pid = fs::read_to_string(folder.path().join("server.pid")).unwrap();
    kill(Pid::from_raw(pid.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
    let ended = matrix.wait_with_output().unwrap();
    let said = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "nothing was measured: {said}");
    assert_eq!(names(&set, "failures"), ["0.json", "1.json", "2.json", "3.json"]);
    let stage = |point: u32| {
        let file = set.join(format!("failures/{point}.json"));
        json_of(&fs::read(file).unwrap())["failure"]["stage"].clone()
    };
    assert_eq!([0, 1, 2, 3].map(stage), ["died", "died", "start", "start"]);
    assert_eq!(names(&set, "points"), Vec::<String>::new());
    assert_eq!(names(&set, "abandoned"), ["0-0"], "what was measured until then is kept");
    assert!(said.contains("died during the measurement"), "{said}");
}

#[test]
fn some_cells_are_gone_on_with_and_the_others_later() {
    let folder = tempfile::tempdir().unwrap();
    let set = three().make(folder.path());
    let some = ["matrix", "--resume", "latest", "--only", "preset=h100-pcie"];
    let ran = output(&some, folder.path());
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{said}");
    assert_eq!(names(&set, "points"), ["4", "5"]);
    assert_eq!(names(&set, "failures"), Vec::<String>::new());
    assert!(said.contains("2 of 6 runs are measured") && said.contains("resume with"), "{said}");
    assert!(said.contains("4 are left") && said.contains(" output tok/s, TTFT p99 "), "{said}");
    assert!(!set.join("summary.json").exists(), "it is not finished");
    let page = text(&ran.stdout);
    assert!(page.contains("A small matrix") && page.contains("matrix.csv"), "{page}");
    assert!(!page.contains("summary.json"), "what is not there is not listed: {page}");
    let again = output(&[&some[..], &["--json", "-q"]].concat(), folder.path());
    let rows = done(&again)["matrix"]["rows"].as_array().unwrap().clone();
    let missing = rows.iter().filter(|row| row["ending"]["kind"] == "missing").count();
    assert_eq!((rows.len(), missing), (6, 4));
    let load = ["--only", "preset=v100-pcie-16gb,concurrency=4"];
    done(&output(&[&RESUME[..], &load].concat(), folder.path()));
    assert_eq!(names(&set, "points"), ["1", "4", "5"], "the other load is still to come");
    let files = done(&output(&RESUME, folder.path()))["files"].clone();
    assert_eq!(names(&set, "points"), ["0", "1", "4", "5"]);
    for (key, file) in [("table", "matrix.csv"), ("markdown", "report.md")] {
        assert!(files[key].as_str().unwrap().ends_with(file), "{files}");
    }
    let wrong = output(&["matrix", "--resume", "latest", "--only", "preset=h200"], folder.path());
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("h200"), "{}", text(&wrong.stderr));
}

#[test]
fn a_part_of_the_built_in_matrix_is_played_from_its_file_to_its_table() {
    let folder = tempfile::tempdir().unwrap();
    let asked = ["matrix", "r3", "--virtual", "--set", "load.requests=5", "--json"];
    let only =
        ["--only", "preset=H100X1,context=2048", "--only", "preset=gpu-small,model=Qwen-32B"];
    let document = done(&output(&[&asked[..], &only].concat(), folder.path()));
    let rows = document["matrix"]["rows"].as_array().unwrap();
    let failed = rows.iter().filter(|row| row["ending"]["kind"] == "failed").count();
    assert_eq!((rows.len(), failed), (16, 8), "a model of 32 billion does not fit 16 GB");
    let set = fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    let table = fs::read_to_string(set.join("matrix.csv")).unwrap();
    assert_eq!(table.lines().count(), 17, "a heading and a row for each cell");
    let page = fs::read_to_string(set.join("report.html")).unwrap();
    assert!(page.contains("H100X1") && page.contains("gpu-small"));
    let printed = output(&["report", "latest", "--format", "csv"], folder.path());
    assert_eq!(text(&printed.stdout), table);
}
