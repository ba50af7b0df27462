//! Several processes as one client: their runs are merged into one, and what one of them lost is named.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::journal::RunStop;
use inferometer_model::outcome::Cause;
use inferometer_model::spec::Extent;
use inferometer_model::{Clock, Moment, Observations, Release, Spec};
use inferometer_store::{RunDirectory, SetDirectory};
use inferometer_workload::{Inputs, make_plan};
use jiff::Timestamp;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;
use support::deployments::until_there;
use support::{Engine, inferometer, latest_run, output, text, words, write_program};

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
    let refusals: [(&[&str], &str); 12] = [
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
            &[
                "http://127.0.0.1:9",
                "--stripe",
                "1/2",
                "--start-at",
                "+3s",
                "--seed",
                "1",
                "--abort-on",
                "error_rate>5%",
            ],
            "none can judge when the run is to end",
        ),
        (
            &["http://127.0.0.1:9", "--on", "slurm", "--header", "X-Key: abc"],
            "would be in a file of the job",
        ),
        (&["http://127.0.0.1:9", "--on", "kubernetes"], "[kubernetes] has no image"),
        (
            &["http://127.0.0.1:9", "--on", "kubernetes", "--set", "kubernetes.image=\"a\""],
            "needs claim and mounted, or results",
        ),
        (&["http://127.0.0.1:9", "--results", "s3://bucket/a"], "--results is for workers"),
        (
            &[
                "http://127.0.0.1:9",
                "--stripe",
                "0/2",
                "--start-at",
                "+3s",
                "--seed",
                "1",
                "--results",
                "ftp://host/a",
            ],
            "is not the address of a folder of objects",
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
                      [slurm]\nworkers = 4\nnodes = 2\npartition = \"test\"\ntime_limit = \"00:10:00\"\n\
                      [kubernetes]\nimage = \"a\"\nresults = \"s3://bucket/a\"\n";
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
    assert!(script.contains("#SBATCH --no-requeue\n"), "{script}");
    assert!(script.contains("--kill-on-bad-exit=0"), "a worker that dies takes no other with it");
    // The file of the workers leaves nothing to be drawn or found.
    let [config, _] = documents(&shown("kubernetes"));
    let spec: Spec = serde_json::from_str(config["data"]["spec.json"].as_str().unwrap()).unwrap();
    assert_eq!(spec.load.extent, Extent::Requests(50.try_into().unwrap()));
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

/// The folder of these scripts, before everything else on the path of a program.
fn with_programs(folder: &Path, programs: &[(&str, &str)]) -> String {
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for (name, script) in programs {
        write_program(&bin.join(name), script);
    }
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_clock_that_is_too_far_off_is_refused_before_anything_is_sent() {
    let (engine, folder) = (Engine::start(&[]), tempfile::tempdir().unwrap());
    let script =
        "#!/bin/sh\necho A29FC801,192.0.2.1,4,1763496000.1,0.08,0,0,0,0,0,0,0,64.2,Normal\n";
    let path = with_programs(folder.path(), &[("chronyc", script)]);
    for (allowed, why) in [(None, "50 ms is allowed"), (Some("70ms"), "70 ms is allowed")] {
        let refused = inferometer()
            .args(["run", &engine.url(), "--stripe", "0/2", "--start-at", "+30s"])
            .args(LOAD)
            .args(allowed.into_iter().flat_map(|allowed| ["--clock-error", allowed]))
            .env("PATH", &path)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = words(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("80 ms off, as chronyc reports") && said.contains(why), "{said}");
    }
    let sent = engine.truth().requests.len();
    assert!(sent < 45, "the plan was not played: {sent}");
}

/// What a scheduler starts, in a folder of its own.
fn experiment(folder: &Path, engine: &Engine, requests: u32, tables: &str) {
    let text = format!(
        "[target]\nurl = \"{}\"\n[workload]\ninput_tokens = 16\noutput_tokens = 3\nseed = 7\n\
         [load]\nrate = 40\nrequests = {requests}\n{tables}",
        engine.url()
    );
    std::fs::write(folder.join("e.toml"), text).unwrap();
}

fn begin_on(scheduler: &str, folder: &Path, path: &str) -> std::process::Command {
    begin(&["run", "e.toml", "--on", scheduler, "--progress", "lines"], folder, path)
}

fn begin(arguments: &[&str], folder: &Path, path: &str) -> std::process::Command {
    let mut command = inferometer();
    command.args(arguments);
    command.env("PATH", path).current_dir(folder).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts its tasks as Slurm does, without Slurm.
const SRUN: &str = r#"#!/bin/bash
while [[ "$1" == --* ]]; do
    case "$1" in
        --ntasks=*) tasks=${1#*=} ;;
        --output=*) output=${1#*=} ;;
    esac
    shift
done
for ((task = 0; task < tasks; task++)); do
    SLURM_PROCID=$task "$@" >"${output//%t/$task}" 2>&1 &
done
wait
"#;

/// Within an allocation the script is a step of it. The workers leave their runs in a store besides.
#[test]
fn within_an_allocation_the_workers_are_started_at_once_and_merged() {
    let (engine, folder) = (Engine::start(&[]), tempfile::tempdir().unwrap());
    let path = with_programs(folder.path(), &[("srun", SRUN)]);
    experiment(folder.path(), &engine, 90, "[slurm]\nworkers = 2\nstart_in = \"3s\"\n");
    let store = format!("file://{}", folder.path().join("store").display());
    let mut command = begin_on("slurm", folder.path(), &path);
    let done = command.env("SLURM_JOB_ID", "7").args(["--results", &store]).output().unwrap();
    let run = latest_run(folder.path());
    let observations = run.read().unwrap().observations;
    assert_is_planned(&observations);
    // On a busy machine they may be ready after the start.
    let late = lost(&observations, Cause::WorkerLate).len();
    assert_eq!(observations.records.len() + late, 90, "{}", text(&done.stderr));
    assert!(run.path().join("workers/job.sbatch").exists());
    assert!(run.path().join("workers/fetched-0/1-of-2").exists(), "it came from the store");
    assert!(words(&done.stderr).contains("of 2 workers send"), "{}", text(&done.stderr));

    // The same once more, by hand.
    let job = std::fs::read_dir(folder.path().join("store")).unwrap().next().unwrap().unwrap();
    let url = format!("{store}/{}", job.file_name().to_string_lossy());
    let (_, _, again) = merged(&folder.path().join("again"), &[&url]);
    assert_eq!(again.records.len(), observations.records.len());
    let refused = output(&["merge", &format!("{store}/nothing")], folder.path());
    assert!(
        text(&refused.stderr).contains("holds no run of a worker"),
        "{}",
        text(&refused.stderr)
    );
}

/// Each run of a set is a job of its own, and is merged into the set.
#[test]
fn levels_and_scenarios_are_measured_by_workers_and_a_lost_one_stops_the_set() {
    let (engine, folder) = (Engine::start(&[]), tempfile::tempdir().unwrap());
    let path = with_programs(folder.path(), &[("srun", SRUN)]);
    let table = "[slurm]\nworkers = 2\nstart_in = \"2s\"\n";
    experiment(folder.path(), &engine, 40, table);
    let play = |arguments: &[&str]| {
        let mut command = begin(arguments, folder.path(), &path);
        command.env("SLURM_JOB_ID", "7").output().unwrap()
    };
    // In a closed loop nothing is lost by a worker that is ready late, on a busy machine.
    let sweep = ["sweep", "e.toml", "--on", "slurm", "--concurrencies", "2,4"];
    let done = play(&sweep);
    let said = words(&done.stderr);
    assert!(done.status.success(), "{said}");
    let set = SetDirectory::at(only_set(folder.path()));
    for (number, slots) in [(0, 2), (1, 4)] {
        let run = set.point(number);
        let observations = run.read().unwrap().observations;
        assert_eq!(observations.records.len(), 40, "{said}");
        assert_eq!(observations.manifest.merged.as_ref().unwrap().workers.len(), 2);
        assert_eq!(observations.manifest.bounds.slots.unwrap().get(), slots);
        assert!(run.path().join("workers/job.sbatch").exists());
    }
    // A worker without a run: the level does not count, and is measured again.
    std::fs::remove_dir_all(set.point(1).path()).unwrap();
    std::fs::remove_file(set.path().join("summary.json")).unwrap();
    let lossy = SRUN.replace("task < tasks", "task < tasks - 1");
    write_program(&folder.path().join("bin/srun"), &lossy);
    let resume = ["sweep", "--resume", set.path().to_str().unwrap()];
    let lost = play(&resume);
    let said = words(&lost.stderr);
    assert_eq!(lost.status.code(), Some(4), "{said}");
    assert!(said.contains("not all workers played their share"), "{said}");
    write_program(&folder.path().join("bin/srun"), SRUN);
    let done = play(&resume);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(set.point(1).read().unwrap().observations.records.len(), 40);
    std::fs::remove_dir_all(set.path()).unwrap();

    let suite = "[[scenario]]\nname = \"a\"\ncategory = \"b\"\npurpose = \"c.\"\n[scenario.load]\nrequests = 20\n\
                 [scenario.workload]\ninput_tokens = 16\noutput_tokens = 3\n\
                 [scenario.sweep]\nconcurrencies = [2, 4]\n";
    std::fs::write(folder.path().join("s.toml"), suite).unwrap();
    std::fs::write(folder.path().join("cluster.toml"), table).unwrap();
    let url = engine.url();
    let done = play(&["suite", "s.toml", &url, "-e", "cluster.toml", "--on", "slurm"]);
    let said = words(&done.stderr);
    assert!(said.contains("of 2 workers send"), "{said}");
    let set = SetDirectory::at(only_set(folder.path()));
    for (number, slots) in [(0, 2), (1, 4)] {
        let manifest = set.point(number).manifest().unwrap();
        assert_eq!(manifest.merged.unwrap().workers.len(), 2, "{said}");
        assert_eq!(manifest.bounds.slots.unwrap().get(), slots);
    }
    let refused = play(&["sweep", &url, "--rates", "1", "--results", "s3://bucket/a"]);
    assert!(words(&refused.stderr).contains("--results is for workers"));
    let refused = play(&["sweep", "--on", "slurm", "--rates", "1"]);
    assert!(words(&refused.stderr).contains("start the server first"));
}

fn only_set(folder: &Path) -> PathBuf {
    let entries = std::fs::read_dir(folder.join("runs")).unwrap().flatten();
    let mut sets = entries.map(|entry| entry.path()).filter(|it| it.join("set.json").exists());
    sets.next().unwrap()
}

/// What the tests make of a cluster: files with its answers.
const KUBECTL: &str = r#"#!/bin/sh
cluster=$(dirname "$0")/../cluster
echo "$@" >>"$cluster/asked"
case "$*" in
    apply*) [ -e "$cluster/refuses" ] && { echo "error: forbidden" >&2; exit 1; }
        cp "$3" "$cluster/job.yaml.new" && mv "$cluster/job.yaml.new" "$cluster/job.yaml" ;;
    "get jobs,pods"*) cat "$cluster/states" ;;
    "get events"*) cat "$cluster/events" ;;
    "logs --follow"*) until [ -e "$cluster/over" ]; do sleep 0.05; done; cat "$cluster/$3" ;;
    delete*) touch "$cluster/deleted" ;;
    *) exit 9 ;;
esac
"#;

/// A cluster without Kubernetes: its pods are processes.
struct Cluster {
    folder: PathBuf,
    path: String,
}

impl Cluster {
    fn new(folder: &Path) -> Self {
        let path = with_programs(folder, &[("kubectl", KUBECTL)]);
        let folder = folder.join("cluster");
        std::fs::create_dir_all(&folder).unwrap();
        let cluster = Self { folder, path };
        cluster.answer("states", "");
        cluster.answer("events", "");
        cluster
    }

    /// A file is there as a whole or not at all.
    fn answer(&self, name: &str, text: &str) {
        let unfinished = self.folder.join("unfinished");
        std::fs::write(&unfinished, text).unwrap();
        std::fs::rename(unfinished, self.folder.join(name)).unwrap();
    }

    /// Starts the pods of the job that was applied, and returns them with the name of the job.
    fn start_pods(&self) -> (String, Vec<Child>) {
        until_there(|| self.folder.join("job.yaml").exists());
        let [config, job] =
            documents(&std::fs::read_to_string(self.folder.join("job.yaml")).unwrap());
        let config: ConfigMap = serde_json::from_value(config).unwrap();
        let job: Job = serde_json::from_value(job).unwrap();
        let (name, spec) = (job.metadata.name.unwrap(), job.spec.unwrap());
        let spec_file = self.folder.join("spec.json");
        std::fs::write(&spec_file, &config.data.unwrap()["spec.json"]).unwrap();
        let words = spec.template.spec.unwrap().containers[0].args.clone().unwrap();
        let pod = |index: i32| {
            let local = |word: &String| {
                let word = word.replace("$(JOB_COMPLETION_INDEX)", &index.to_string());
                let word = word.replace("/spec/spec.json", spec_file.to_str().unwrap());
                match word.strip_prefix("/data/") {
                    Some(rest) => self.folder.join("volume").join(rest).display().to_string(),
                    None => word,
                }
            };
            let log = std::fs::File::create(self.folder.join(format!("{name}-{index}-x"))).unwrap();
            let mut command = inferometer();
            command.args(words.iter().map(local)).stdin(Stdio::null());
            command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
        };
        let pods = (0..spec.completions.unwrap()).map(pod).collect();
        (name, pods)
    }

    /// How the job and its pods are, each by phase, exit code and reason.
    fn states(&self, name: &str, job: &str, pods: &[(&str, &str, &str)]) {
        let mut text = format!("Job\t{name}\t\t\t\t\t{job}\n");
        for (index, (phase, exit, reason)) in pods.iter().enumerate() {
            let pod = format!("Pod\t{name}-{index}-x\t{index}\t{phase}\t{exit}\t{reason}\tReady\n");
            text.push_str(&pod);
        }
        self.answer("states", &text);
    }
}

/// The spec and the job of a manifest.
fn documents(manifest: &str) -> [Value; 2] {
    serde_saphyr::from_multiple::<Value>(manifest).unwrap().try_into().unwrap()
}

const KUBERNETES: &str = "[kubernetes]\nworkers = 3\nimage = \"inferometer:test\"\nclaim = \"runs\"\n\
                          mounted = \"cluster/volume\"\nstart_in = \"4s\"\nnamespace = \"n\"\n";

#[test]
fn pods_are_followed_and_merged_and_one_that_fails_is_named_with_its_events() {
    let (engine, folder) = (Engine::start(&["--ttft", "20ms"]), tempfile::tempdir().unwrap());
    let cluster = Cluster::new(folder.path());
    experiment(folder.path(), &engine, 90, &KUBERNETES.replace("namespace = \"n\"\n", ""));
    let running = begin_on("kubernetes", folder.path(), &cluster.path).spawn().unwrap();
    let (name, mut pods) = cluster.start_pods();
    cluster.states(&name, "", &[("Running", "", ""); 3]);
    let of_second = cluster.folder.join("volume").join(&name);
    let its_run = || {
        let runs = std::fs::read_dir(&of_second).ok()?.flatten();
        let mut runs = runs.map(|run| RunDirectory::at(run.path()));
        runs.find(|run| {
            let stripe = run.manifest().ok().and_then(|it| it.stripe);
            stripe.is_some_and(|it| it.stripe.index == 1)
        })
    };
    until_there(|| its_run().is_some_and(|run| 8 < started(&run)));
    pods[1].kill().unwrap();
    for pod in &mut pods {
        let _ = pod.wait().unwrap();
    }
    let event = format!("{name}-1-x: OOMKilling: out of memory\nother-1: Failed: not ours\n");
    cluster.answer("events", &event);
    let done = ("Succeeded", "0", "Completed");
    cluster.answer("over", "");
    cluster.states(&name, "Failed", &[done, ("Failed", "137", "OOMKilled"), done]);
    let ended = running.wait_with_output().unwrap();
    let said = words(&ended.stderr);
    assert_eq!(ended.status.code(), Some(4), "{said}");
    let failed = format!("worker 1 (pod {name}-1-x) ended with exit code 137 (OOMKilled)");
    assert!(said.contains(&failed) && said.contains("OOMKilling: out of memory"), "{said}");
    assert!(!said.contains("not ours"), "{said}");
    let run = latest_run(folder.path());
    let observations = run.read().unwrap().observations;
    assert_is_planned(&observations);
    assert_eq!(observations.ending.stop, RunStop::WorkersLost);
    assert_eq!(observations.scheduled_count(), 90);
    let log = std::fs::read_to_string(run.path().join("workers/worker-0.jsonl")).unwrap();
    assert!(log.contains("\"finished\""), "the log of a pod is kept: {log}");
    assert!(cluster.folder.join("deleted").exists(), "the job is removed");
}

#[test]
fn a_signal_deletes_the_job_and_what_its_pods_stored_is_merged() {
    let (engine, folder) = (Engine::start(&[]), tempfile::tempdir().unwrap());
    let cluster = Cluster::new(folder.path());
    experiment(folder.path(), &engine, 600, &KUBERNETES.replace("namespace = \"n\"\n", ""));
    let running = begin_on("kubernetes", folder.path(), &cluster.path).spawn().unwrap();
    let (name, mut pods) = cluster.start_pods();
    cluster.states(&name, "", &[("Running", "", ""); 3]);
    until_there(|| 20 < engine.truth().requests.len());
    let kill = |pid: u32, signal: &str| {
        let status = std::process::Command::new("kill").args([signal, &pid.to_string()]).status();
        assert!(status.unwrap().success());
    };
    kill(running.id(), "-INT");
    until_there(|| cluster.folder.join("deleted").exists());
    for pod in &mut pods {
        kill(pod.id(), "-TERM");
        let _ = pod.wait().unwrap();
    }
    cluster.answer("over", "");
    cluster.answer("states", "");
    let ended = running.wait_with_output().unwrap();
    let observations = latest_run(folder.path()).read().unwrap().observations;
    assert!(!ended.status.success());
    assert!(words(&ended.stdout).contains("was stopped"), "{}", text(&ended.stderr));
    assert_eq!(observations.ending.stop, RunStop::WorkersLost, "as if the scheduler had done it");
    assert_eq!(observations.scheduled_count(), 600, "each is accounted for");
    assert!(observations.records.len() < 600);
}

#[test]
fn what_the_cluster_refuses_is_told_and_nothing_waits() {
    let (engine, folder) = (Engine::start(&[]), tempfile::tempdir().unwrap());
    let cluster = Cluster::new(folder.path());
    cluster.answer("refuses", "");
    experiment(folder.path(), &engine, 90, &KUBERNETES.replace("namespace = \"n\"\n", ""));
    let refused = begin_on("kubernetes", folder.path(), &cluster.path).output().unwrap();
    let said = words(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot be applied") && said.contains("error: forbidden"), "{said}");
    // The namespace is that of every question.
    experiment(folder.path(), &engine, 90, KUBERNETES);
    let _ = begin_on("kubernetes", folder.path(), &cluster.path).output().unwrap();
    let asked = std::fs::read_to_string(cluster.folder.join("asked")).unwrap();
    assert!(asked.contains("\n--namespace=n apply --filename "), "{asked}");
}

/// Without a field that Kubernetes would not know, and the file that is published.
#[test]
fn the_manifest_has_known_fields_alone_and_is_the_one_that_is_published() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shown = output(&["run", "deploy/workers.toml", "--on", "kubernetes", "--dry-run"], &root);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let shown = text(&shown.stdout);
    let [config, job] = documents(&shown);
    let read: ConfigMap = serde_json::from_value(config.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), config);
    let read: Job = serde_json::from_value(job.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), job);
    let secrets = job.pointer("/spec/template/spec/containers/0/envFrom").unwrap();
    assert_eq!(secrets.as_array().unwrap().len(), 2, "{secrets}");
    let file = root.join("deploy/workers.yaml");
    let published = std::fs::read_to_string(&file).unwrap();
    let first = published.lines().take_while(|line| line.starts_with('#'));
    let comments: usize = first.map(|line| line.len() + 1).sum();
    let expected = format!("{}{shown}", &published[..comments]);
    if std::env::var_os("INFEROMETER_REWRITE_DOCS").is_some() {
        std::fs::write(&file, expected).unwrap();
        return;
    }
    assert!(published == expected, "run cargo xtask docs");
}
