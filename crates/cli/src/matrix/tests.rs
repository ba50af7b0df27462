//! Matrices without the binary: what a file comes to, and what is refused.

use std::path::Path;

use inferometer_model::campaign::{Level, Matrix, Question, Strategy};
use inferometer_model::spec::{Lengths, Source};
use serde_json::Map;

use super::builtin;
use super::file::{MatrixFile, Over};
use super::plan::{MatrixPlan, planned};
use crate::failure::Failure;

fn file(text: &str) -> Result<MatrixFile, Failure> {
    MatrixFile::parse(Path::new("test.toml"), text, Over { sets: &[], flags: &Map::new() })
}

fn plan_of(text: &str, only: &[&str]) -> Result<MatrixPlan, Failure> {
    let only: Vec<String> = only.iter().map(|&filter| filter.to_owned()).collect();
    planned(&file(text)?, &only, &[], true)
}

fn matrix(plan: &MatrixPlan) -> &Matrix {
    let Question::Matrix(matrix) = &plan.campaign.question else { panic!("no matrix") };
    matrix
}

#[test]
fn r3_is_all_of_its_cells_and_some_do_not_fit() {
    let plan = plan_of(builtin::shown("r3").unwrap(), &[]).unwrap();
    let matrix = matrix(&plan);
    assert_eq!((matrix.presets.len(), matrix.models.len()), (8, 4));
    assert_eq!((matrix.cells.len(), plan.campaign.conditions.len()), (256, 256));
    assert_eq!(matrix.levels, [Level::Concurrency(10.try_into().unwrap())]);
    let first = &plan.campaign.conditions[0];
    assert_eq!(first.name, "gpu-small · Qwen-1.5B · 2048 · tensor");
    let output = |place: usize| match &plan.campaign.conditions[place].spec.workload.source {
        Source::Fixed(prompt) => prompt.output.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((output(0), output(2)), (Lengths::Fixed(512), Lengths::Fixed(2048)));
    let xlarge = plan.campaign.conditions.iter().find(|it| it.name.contains("xlarge")).unwrap();
    assert_eq!((xlarge.spec.engine.tp, xlarge.spec.engine.pp), (Some(8), Some(1)));
    assert!(!plan.foreseen.is_empty() && plan.foreseen.len() < 128, "{}", plan.foreseen.len());
    let small = plan.foreseen.iter().map(|it| &plan.campaign.conditions[it.condition].name);
    assert!(small.clone().any(|name| name == "gpu-small · Qwen-32B · 2048 · tensor"));
    assert_eq!(matrix.cells[1].strategy, Some(Strategy::Pipeline));
}
