//! `--on kubernetes`: an Indexed Job whose pods are the workers, with the user's kubectl. What a pod
//! stores is in a volume that this machine has too, or in an object store.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use inferometer_runner::Session;
use inferometer_target::system::output;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Job, Task};
use crate::arguments::KubernetesTable;
use crate::failure::{Failure, Result};

pub(super) struct Kubernetes<'a> {
    task: &'a Task,
    table: &'a KubernetesTable,
    /// The agreed start, once the job is submitted.
    start: String,
    /// One for each pod that has begun, by its name.
    logs: BTreeMap<String, Child>,
    /// Warnings of the cluster, each once.
    reported: BTreeSet<String>,
    /// Queries in turn that the cluster did not answer, or in which it did not know the job yet.
    unanswered: u32,
    /// Whether the job was seen: from then on it is over when it is gone.
    is_known: bool,
}

/// Longer than an answer of a cluster that is well takes.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// A cluster that is away for longer is not waited for.
const UNANSWERED_MAX: u32 = 8;
/// From submission to the common start: pods are placed, and images fetched.
const START_IN: Duration = Duration::from_mins(2);
const TIME_LIMIT: Duration = Duration::from_hours(1);
/// What pods print last, after they have ended.
const LOGS_WITHIN: Duration = Duration::from_secs(10);

/// A line for the job and each of its pods: kind, name, number of the worker, phase, exit code with its
/// reason, and the conditions that hold.
const STATES: &str = "jsonpath={range .items[*]}{.kind}{'\\t'}{.metadata.name}{'\\t'}\
    {.metadata.labels.batch\\.kubernetes\\.io/job-completion-index}{'\\t'}{.status.phase}{'\\t'}\
    {.status.containerStatuses[0].state.terminated.exitCode}{'\\t'}\
    {.status.containerStatuses[0].state.terminated.reason}{'\\t'}\
    {.status.conditions[?(@.status=='True')].type}{'\\n'}{end}";
const EVENTS: &str =
    "jsonpath={range .items[*]}{.involvedObject.name}: {.reason}: {.message}{'\\n'}{end}";

impl<'a> Kubernetes<'a> {
    pub(super) fn new(task: &'a Task, table: &'a KubernetesTable) -> Self {
        let start = "START_AT".to_owned();
        let (logs, reported) = (BTreeMap::new(), BTreeSet::new());
        Self { task, table, start, logs, reported, unanswered: 0, is_known: false }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(self.table.namespace.iter().map(|name| format!("--namespace={name}")));
        command.args(words);
        command
    }

    fn ask(&self, words: &[&str]) -> Result<String, String> {
        output(self.command(words), ANSWER_WITHIN).map_err(|error| error.to_string())
    }

    /// Its spec, and the job that runs it. The texts of the user are values, never names of keys.
    fn manifest(&self) -> [Value; 2] {
        let name = self.task.name();
        let spec = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": name, "labels": { "app": name } },
            "data": { "spec.json": self.task.spec },
        });
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": { "name": name, "labels": { "app": name } },
            "spec": {
                "completionMode": "Indexed",
                "completions": self.task.workers,
                "parallelism": self.task.workers,
                // A worker that fails is a result: it takes no other with it, and would be late again.
                "backoffLimitPerIndex": 0,
                "activeDeadlineSeconds":
                    self.table.time_limit.map_or(TIME_LIMIT, |time| time.0).as_secs().max(1),
                "ttlSecondsAfterFinished": 86_400,
                "template": { "metadata": { "labels": { "app": name } }, "spec": self.pod() },
            },
        });
        [spec, job]
    }

    fn pod(&self) -> Value {
        let (name, table) = (self.task.name(), self.table);
        let volume = |name: &str, what: &str, source: Value| json!({ "name": name, what: source });
        let mut words = self.task.words("/spec/spec.json", &format!("/data/{name}"));
        words.push(format!("--stripe=$(JOB_COMPLETION_INDEX)/{}", self.task.workers));
        // A time that stands alone is no text in YAML.
        words.push(format!("--start-at={}", self.start));
        let (cpus, memory) = (table.cpus.unwrap_or(2).to_string(), table.memory.as_deref());
        let resources = json!({ "cpu": cpus, "memory": memory.unwrap_or("2Gi") });
        let secrets =
            table.env_from.iter().flatten().map(|name| json!({ "secretRef": { "name": name } }));
        let runs = match &table.claim {
            Some(claim) => volume("runs", "persistentVolumeClaim", json!({ "claimName": claim })),
            None => volume("runs", "emptyDir", json!({})),
        };
        let mut pod = json!({
            "restartPolicy": "Never",
            // After a signal a worker drains, seals its run and uploads it.
            "terminationGracePeriodSeconds": self.task.apart_max.as_secs(),
            "automountServiceAccountToken": table.service_account.is_some(),
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            // Workers on one node share its network and its processors.
            "topologySpreadConstraints": [{
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": { "matchLabels": { "app": name } },
            }],
            "containers": [{
                "name": "worker",
                "image": table.image,
                "args": words,
                "envFrom": secrets.collect::<Vec<_>>(),
                "resources": { "requests": resources, "limits": resources },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"] },
                },
                "volumeMounts": [
                    { "name": "runs", "mountPath": "/data" },
                    { "name": "spec", "mountPath": "/spec" },
                    { "name": "tmp", "mountPath": "/tmp" },
                ],
            }],
            "volumes": [
                runs,
                volume("spec", "configMap", json!({ "name": name })),
                volume("tmp", "emptyDir", json!({})),
            ],
        });
        if let Some(account) = &table.service_account {
            pod["serviceAccountName"] = account.as_str().into();
        }
        pod
    }

    /// Follows the log of a pod in a file of its worker.
    fn follow_log(&mut self, pod: &str, index: &str) {
        let Ok(file) = fs::File::create(self.task.folder.join(format!("worker-{index}.jsonl")))
        else {
            return;
        };
        let mut command = self.command(&["logs", "--follow", pod]);
        // Ctrl-C is for us: the log goes on until its pod has ended.
        command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null()).process_group(0);
        if let Ok(child) = command.spawn() {
            self.logs.insert(pod.to_owned(), child);
        }
    }

    /// Shows the cluster's warnings about pods that do not begin or fail.
    fn warn_of_events(&mut self, session: &Session) {
        let words = ["get", "events", "--field-selector=type=Warning", "--output", EVENTS];
        let events = self.ask(&words).unwrap_or_default();
        let name = self.task.name();
        for event in events.lines().filter(|event| event.starts_with(&name)) {
            if self.reported.insert(event.to_owned()) {
                session.warn(event);
            }
        }
    }

    /// Waits for the rest of the logs, and removes the job.
    fn clean_up(&mut self) {
        let mut left: Vec<Child> = std::mem::take(&mut self.logs).into_values().collect();
        for _ in 0..LOGS_WITHIN.as_millis() / 50 {
            left.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
            if left.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.logs.extend(left.into_iter().map(|child| (child.id().to_string(), child)));
        self.cancel();
    }
}

/// Logs that are still followed end with the job.
impl Drop for Kubernetes<'_> {
    fn drop(&mut self) {
        for child in self.logs.values_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Job for Kubernetes<'_> {
    fn text(&self) -> Result<String> {
        if self.table.image.is_none() {
            return Err(Failure::usage("[kubernetes] has no image")
                .hint("name one that the cluster can pull, with this version of inferometer"));
        }
        if self.task.results.is_none()
            && self.table.claim.as_ref().zip(self.table.mounted.as_ref()).is_none()
        {
            return Err(Failure::usage("[kubernetes] needs claim and mounted, or results").hint(
                "claim is a volume that all pods write to, mounted its folder on this machine, and results \
                 the URL of an object store",
            ));
        }
        if self.task.results.as_ref().is_some_and(|url| url.starts_with("file:")) {
            return Err(Failure::usage("results: a folder of a pod is gone when it ends")
                .hint("use an object store, or claim and mounted"));
        }
        serde_saphyr::to_string_multiple(&self.manifest()).map_err(Failure::from_error)
    }

    fn submit(&mut self) -> Result<()> {
        let start_in = self.table.start_in.map_or(START_IN, |time| time.0);
        let start = Timestamp::now().checked_add(start_in).map_err(Failure::from_usage)?;
        self.start = start.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let path = self.task.write("job.yaml", &self.text()?)?;
        let file = path.display().to_string();
        let applied = self.ask(&["apply", "--filename", &file]).map_err(|why| {
            Failure::usage(format!("{file} cannot be applied: {why}"))
                .hint("check that kubectl is on this machine and reaches the cluster")
        });
        applied.inspect_err(|_| self.cancel()).map(drop)
    }

    fn ended(&mut self, session: &Session) -> Result<Option<String>> {
        let selector = format!("--selector=app={}", self.task.name());
        let states = self.ask(&["get", "jobs,pods", &selector, "--output", STATES]);
        let states = match states {
            Ok(states) if self.is_known || !states.is_empty() => states,
            _ if self.unanswered < UNANSWERED_MAX => {
                self.unanswered += 1;
                if self.is_known && self.unanswered == 1 {
                    session.warn("the cluster does not answer; it is asked again");
                }
                return Ok(None);
            }
            silent => {
                let why = silent.err().unwrap_or_else(|| "the job was not found".to_owned());
                let what = format!("the cluster does not answer: {why}");
                return Err(Failure::usage(what).hint(format!(
                    "the job {} may go on; merge the runs of its workers when it has ended",
                    self.task.name()
                )));
            }
        };
        (self.unanswered, self.is_known) = (0, true);
        let (mut how, mut open) = ("it was deleted".to_owned(), false);
        for line in states.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["Job", _, _, _, _, _, conditions] => {
                    let is_end = |it: &&str| ["Complete", "Failed"].contains(it);
                    let end = conditions.split(' ').find(is_end);
                    open |= end.is_none();
                    how = end.unwrap_or_default().to_lowercase();
                }
                ["Pod", name, index, phase, exit, reason, _] => {
                    open |= ["Pending", "Running"].contains(&phase);
                    if phase != "Pending" && !self.logs.contains_key(name) {
                        self.follow_log(name, index);
                    }
                    // A stored run explains these itself.
                    let is_expected = ["", "0", "1", "4"].contains(&exit);
                    if !is_expected && self.reported.insert(name.to_owned()) {
                        session.warn(format!(
                            "worker {index} (pod {name}) ended with exit code {exit} ({reason})"
                        ));
                    }
                }
                _ => {}
            }
        }
        self.warn_of_events(session);
        if open {
            return Ok(None);
        }
        self.clean_up();
        Ok(Some(how))
    }

    fn cancel(&mut self) {
        let file = self.task.folder.join("job.yaml").display().to_string();
        let gone = ["--cascade=foreground", "--wait=false", "--ignore-not-found"];
        let _ = self.ask(&[&["delete", "--filename", &file], &gone[..]].concat());
    }

    fn runs(&self) -> PathBuf {
        self.table.mounted.clone().unwrap_or_default().join(self.task.name())
    }
}
