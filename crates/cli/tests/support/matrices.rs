//! Small matrices, as sets that are made and wait to be gone on with.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::Duration;

use inferometer_model::deployment::{DeploymentHow, DeploymentSpec, ProcessSpec};
use inferometer_model::spec::{Dtype, EngineTable, Extent, WorkloadTable};
use inferometer_model::study::{
    Cell, Condition, Level, Matrix, MatrixModel, Preset, Question, Repetition, RunOrder, StudySpec,
};
use inferometer_model::{Spec, SpecDraft};
use inferometer_store::RunStore;

pub(crate) const SMALL: &str = "v100-pcie-16gb";
pub(crate) const LARGE: &str = "h100-pcie";
pub(crate) const LIGHT: &str = "llama-3.2-3b";
/// Does not fit the small one.
pub(crate) const HEAVY: &str = "deepseek-r1-distill-qwen-32b";

/// Cells by hardware and model, measured with two requests in flight and then with four.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) cells: &'a [(&'a str, &'a str)],
    pub(crate) requests: u64,
    pub(crate) runs: u32,
    pub(crate) lanes: u32,
    pub(crate) simulated: bool,
    /// How much faster than its profile a live engine is.
    pub(crate) speed: Option<f64>,
    /// Instead of the embedded engine, programs that are put up: one for each cell.
    pub(crate) commands: &'a [&'a [&'a str]],
}

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap()
}

impl Asked<'_> {
    pub(crate) fn study(&self) -> StudySpec {
        let presets = distinct(self.cells.iter().map(|(hardware, _)| *hardware));
        let models = distinct(self.cells.iter().map(|(_, model)| *model));
        let place = |list: &[&str], name: &str| {
            u32::try_from(list.iter().position(|it| *it == name).unwrap()).unwrap()
        };
        let cell = |(hardware, model): &(&str, &str)| Cell {
            preset: place(&presets, hardware),
            model: place(&models, model),
            context: Some(2048),
            strategy: None,
            tp: Some(1),
            pp: Some(1),
            flags: BTreeMap::new(),
        };
        let preset = |name: &&str| Preset { name: (*name).to_owned(), ..Preset::default() };
        let model = |name: &&str| {
            let name = (*name).to_owned();
            MatrixModel { label: name.clone(), name }
        };
        let question = Question::Matrix(Matrix {
            name: "small".to_owned(),
            title: "A small matrix".to_owned(),
            description: None,
            presets: presets.iter().map(preset).collect(),
            models: models.iter().map(model).collect(),
            cells: self.cells.iter().map(cell).collect(),
            levels: [2, 4].map(|requests| Level::Concurrency(number(requests))).to_vec(),
            lanes: number(self.lanes),
            currency: None,
        });
        let repetition = Repetition {
            runs: number(self.runs),
            cool_down: Duration::ZERO,
            restart: None,
            stop_at: None,
        };
        let condition = |(place, (hardware, model)): (usize, &(&str, &str))| Condition {
            name: format!("{place} · {hardware} · {model}"),
            spec: self.spec(place, hardware, model),
        };
        let conditions = self.cells.iter().enumerate().map(condition).collect();
        StudySpec { question, conditions, repetition, order: RunOrder::Listed, seed: 7 }
    }

    fn spec(&self, place: usize, hardware: &str, model: &str) -> Spec {
        let engine = EngineTable {
            hardware: Some(hardware.to_owned()),
            model: Some(model.to_owned()),
            dtype: Some(Dtype::Half.into()),
            max_model_len: Some(2048),
            speed: self.speed,
            ..EngineTable::default()
        };
        let deployment = self.commands.get(place).map(|words| {
            let command = words.iter().map(|word| (*word).to_owned()).collect();
            DeploymentSpec::new(DeploymentHow::Process(ProcessSpec { command, folder: None }))
        });
        let engine = if deployment.is_some() { EngineTable::default() } else { engine };
        let workload = WorkloadTable { seed: Some(7), ..WorkloadTable::default() };
        let draft = SpecDraft { engine, deployment, workload, ..SpecDraft::default() };
        let mut spec = draft.resolve().unwrap();
        spec.load.extent = Extent::Requests(NonZeroU64::new(self.requests).unwrap());
        spec
    }

    /// Makes the set; nothing of it is measured yet.
    pub(crate) fn make(&self, folder: &Path) -> PathBuf {
        let store = RunStore::open(folder.join("runs")).unwrap();
        let realtime_ns = 1_800_000_000_000_000_000;
        let set = store.create_set(self.study(), self.simulated, Vec::new(), None, realtime_ns);
        set.unwrap().path().to_owned()
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}
