//! Suites as they are stored, made without a suite file, for tests of what plays them; and a suite
//! file, for tests of what reads them.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use inferometer_model::SpecDraft;
use inferometer_model::endpoint::Api;
use inferometer_model::spec::{
    EngineTable, Lengths, LoadTable, SourceName, SourceTable, TargetTable, WarmUp, WorkloadTable,
};
use inferometer_model::study::{
    Condition, Level, Prompts, Question, Repetition, RunOrder, Scenario, StudySpec, Suite,
};
use inferometer_store::RunStore;
use serde_json::Value;

use super::{output, text};

/// A scenario of a test.
pub(crate) struct Asks {
    pub(crate) name: &'static str,
    /// Tokens in and out, as they are typed.
    pub(crate) input: &'static str,
    pub(crate) output: &'static str,
    pub(crate) requests: u64,
    /// One is no level of its own.
    pub(crate) concurrency: &'static [u32],
}

/// What all scenarios of a test have in common.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) engine: EngineTable,
    pub(crate) url: Option<String>,
    pub(crate) vllm_random: bool,
    pub(crate) prompts: Prompts,
    pub(crate) runs: u32,
}

impl Common {
    fn condition(&self, asks: &Asks) -> Condition {
        let lengths = |text: &str| text.parse::<Lengths>().unwrap();
        let source = SourceTable {
            input_tokens: Some(lengths(asks.input)),
            output_tokens: Some(lengths(asks.output)),
            source: self.vllm_random.then_some(SourceName::VllmRandom),
            ..SourceTable::default()
        };
        let tokenizer = self.vllm_random.then(|| "vocabulary:131072,1000".to_owned());
        let load = LoadTable {
            concurrency: Some(asks.concurrency[0]),
            requests: Some(asks.requests),
            warm_up: Some(WarmUp::Requests(1)),
            ..LoadTable::default()
        };
        let draft = SpecDraft {
            url: self.url.as_ref().map(|url| url.parse().unwrap()),
            engine: self.engine.clone(),
            target: TargetTable { api: Some(Api::Completions), ..TargetTable::default() },
            workload: WorkloadTable {
                source,
                tokenizer,
                seed: Some(0),
                ..WorkloadTable::default()
            },
            load,
            ..SpecDraft::default()
        };
        Condition { name: asks.name.to_owned(), spec: draft.resolve().unwrap() }
    }

    pub(crate) fn study(&self, asked: &[Asks]) -> StudySpec {
        let levels = |asks: &Asks| match asks.concurrency {
            [_] => vec![Level::AsAsked],
            several => several
                .iter()
                .map(|users| Level::Concurrency(NonZeroU32::new(*users).unwrap()))
                .collect(),
        };
        let scenario = |asks: &Asks| Scenario {
            category: "Latency".to_owned(),
            purpose: "shows something".to_owned(),
            levels: levels(asks),
            waves: None,
        };
        StudySpec {
            question: Question::Suite(Suite {
                name: "own".to_owned(),
                title: "Own".to_owned(),
                hash: "0123456789abcdef".to_owned(),
                changes: Vec::new(),
                prompts: self.prompts,
                scenarios: asked.iter().map(scenario).collect(),
            }),
            conditions: asked.iter().map(|asks| self.condition(asks)).collect(),
            repetition: Repetition {
                runs: NonZeroU32::new(self.runs).unwrap(),
                cool_down: Duration::ZERO,
                restart: None,
                stop_at: None,
            },
            order: RunOrder::Listed,
            seed: 0,
        }
    }
}

/// Stores a suite of which nothing is played yet, in the folder's `runs`.
pub(crate) fn stored(folder: &Path, study: StudySpec, simulated: bool) -> PathBuf {
    let store = RunStore::open(folder.join("runs")).unwrap();
    let set = store.create_set(study, simulated, Vec::new(), None, 1_767_225_600_000_000_000);
    set.unwrap().path().to_owned()
}

/// The summary of a set that was played.
pub(crate) fn summary(set: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(set.join("summary.json")).unwrap()).unwrap()
}

/// Two scenarios that are quickly simulated.
pub(crate) const SMALL: &str = "\
[defaults.load]
requests = 4
[[scenario]]
name = \"First\"
category = \"Latency\"
purpose = \"One by one.\"
[scenario.workload]
input_tokens = 100
output_tokens = 10
[scenario.load]
concurrency = 1
[[scenario]]
name = \"Second\"
category = \"Throughput\"
purpose = \"More at once.\"
[scenario.workload]
input_tokens = 200
output_tokens = 20
[scenario.sweep]
concurrencies = [2, 4]
";

pub(crate) fn dry_run(arguments: &[&str], folder: &Path) -> Value {
    let ran = output(&[&["suite"], arguments, &["--dry-run", "--json"]].concat(), folder);
    assert!(ran.status.success(), "{arguments:?}: {}", text(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

pub(crate) fn asked(document: &Value) -> &Value {
    &document["campaign"]["question"]
}

pub(crate) fn folder_with(name: &str, content: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), content).unwrap();
    folder
}

/// The folder of the one set that was made here.
pub(crate) fn only_set(folder: &Path) -> PathBuf {
    let mut sets =
        std::fs::read_dir(folder.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let set = sets.next().unwrap();
    assert_eq!(sets.next(), None, "there is one set");
    set
}
