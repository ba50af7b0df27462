//! Matrices of made-up runs, and what they come to.

mod judged;
mod published;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::LazyLock;
use std::time::Duration;

use inferometer_model::Outcome;
use inferometer_model::deployment::{DeploymentFailure, DeploymentStage, LikelyCause};
use inferometer_model::study::{
    Cell, Condition, Level, Matrix, Point, Repetition, RunOrder, Stage, StudySpec,
};

use self::published::{COMPARED, Line, MODELS, ONE_AT_ONCE, PRESETS, SECTIONS, TEN_AT_ONCE};
use super::*;
use crate::fixture::{calm, calm_of, scraped};
use crate::judge::Verdict;
use crate::metric::MetricValue;
use crate::record::RequestRates;
use crate::set::SetSummary;
use crate::set::fixture::changed_metrics;
use crate::statistics::Estimate;
use crate::steady::SteadyState;
use crate::summary::{Summary, summarize};

/// A hundred requests on a server that counts its tokens.
static CALM: LazyLock<Summary> =
    LazyLock::new(|| summarize(&scraped(calm_of(100), 51_200.0, 300.0)));

/// A run with these figures, and so many requests of a hundred failed.
fn run([prompt, generation, latency, of_request, read]: [f64; 5], errors: u64) -> Summary {
    let mut run = CALM.clone();
    run.steady = SteadyState::default();
    let estimate = |value| {
        Some(Estimate { value, interval: None, n: 100, effective_n: None, certified: true })
    };
    run.metrics = changed_metrics(&CALM, |name, found| match (name, found) {
        ("output_throughput", MetricValue::Scalar(found)) => found.value = Some(generation),
        ("input_throughput", MetricValue::Scalar(found)) => found.value = Some(prompt),
        ("e2e", MetricValue::Distribution(found)) => found.mean = Some(latency * 1e3),
        _ => {}
    });
    run.request_rates =
        RequestRates { generation_tps: estimate(of_request), prompt_tps: estimate(read) };
    let server = run.server.as_mut().unwrap();
    server.prompt_tokens.as_mut().unwrap().per_s = Some(prompt);
    server.generation_tokens.as_mut().unwrap().per_s = Some(generation);
    run.outcomes.insert(Outcome::Ok, 100 - errors);
    run.outcomes.insert(Outcome::HttpError, errors);
    run.verdict = match errors {
        0 | 1 => Verdict::Valid,
        2..=50 => Verdict::Degraded,
        _ => Verdict::Invalid,
    };
    run
}

fn at_once(requests: u32) -> Level {
    Level::Concurrency(NonZeroU32::new(requests).unwrap())
}

/// A matrix in the making: cells, runs and failures as they are added.
struct Made {
    matrix: Matrix,
    runs: u32,
    results: Vec<PointResult>,
    failures: Vec<PointFailure>,
}

impl Made {
    fn new() -> Self {
        let preset = |(name, gpus): (&str, u32)| Preset {
            name: name.to_owned(),
            gpus: Some(gpus),
            ..Preset::default()
        };
        let model = |name: &str| MatrixModel { name: name.to_owned(), label: name.to_owned() };
        Self {
            matrix: Matrix {
                description: None,
                name: "made".to_owned(),
                title: "Made".to_owned(),
                presets: PRESETS.map(preset).into(),
                models: MODELS.map(model).into(),
                cells: Vec::new(),
                levels: vec![at_once(10)],
                lanes: NonZeroU32::MIN,
                currency: None,
            },
            runs: 1,
            results: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Its place.
    fn cell(&mut self, preset: &str, model: u32, context: u32, strategy: Strategy) -> u32 {
        let place = PRESETS.iter().position(|(name, _)| *name == preset).unwrap();
        let gpus = PRESETS[place].1;
        let (tp, pp) = match strategy {
            Strategy::Tensor => (gpus, 1),
            Strategy::Pipeline => (1, gpus),
        };
        self.matrix.cells.push(Cell {
            preset: u32::try_from(place).unwrap(),
            model,
            context: Some(context),
            strategy: Some(strategy),
            tp: Some(tp),
            pp: Some(pp),
            flags: BTreeMap::new(),
        });
        u32::try_from(self.matrix.cells.len() - 1).unwrap()
    }

    fn point(&self, condition: u32, level: Level) -> Point {
        let number = u32::try_from(self.results.len() + self.failures.len()).unwrap();
        Point { number, condition, level, repetition: 0, seed: 1, stage: Stage::Planned }
    }

    fn ran(&mut self, cell: u32, level: Level, summary: Summary) {
        let point = self.point(cell, level);
        self.results.push(PointResult { point, summary });
    }

    fn failed(&mut self, cell: u32, stage: DeploymentStage, cause: Option<LikelyCause>) {
        let point = self.point(cell, at_once(10));
        let what = "it went away".to_owned();
        let failure = DeploymentFailure { stage, what, cause, log: Vec::new() };
        self.failures.push(PointFailure { point, at: None, failure });
    }

    /// A cell whose runs generate so many tokens per second each, without errors.
    fn measured(&mut self, preset: &str, strategy: Strategy, generation: &[f64]) -> u32 {
        let cell = self.cell(preset, 0, 2_048, strategy);
        for generation in generation {
            self.ran(cell, at_once(10), run([40.0, *generation, 7.0, 60.0, 5.0], 0));
        }
        cell
    }

    fn line(&mut self, model: u32, context: u32, (preset, figures, errors): &Line) {
        let cell = self.cell(preset, model, context, Strategy::Tensor);
        self.ran(cell, at_once(10), run(*figures, *errors));
    }

    fn manifest(&self) -> SetManifest {
        let spec = calm().manifest.spec;
        let name = |cell: &Cell| format!("{} {}", PRESETS[cell.preset as usize].0, cell.model);
        SetManifest {
            key_files: Vec::new(),
            workers: None,
            format: 1,
            set: "20260101-000000-matrix".to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            tool_version: "0.1.0".to_owned(),
            simulated: false,
            study: StudySpec {
                conditions: self
                    .matrix
                    .cells
                    .iter()
                    .map(|cell| Condition { name: name(cell), spec: spec.clone() })
                    .collect(),
                question: Question::Matrix(self.matrix.clone()),
                repetition: Repetition {
                    runs: NonZeroU32::new(self.runs).unwrap(),
                    cool_down: Duration::ZERO,
                    restart: None,
                    stop_at: None,
                },
                order: RunOrder::Listed,
                seed: 7,
            },
        }
    }

    fn summary(&self) -> MatrixSummary {
        MatrixSummary::summarize(&self.manifest(), &self.results, &self.failures, &[]).unwrap()
    }

    fn set(&self) -> SetSummary {
        SetSummary::summarize_matrix(&self.manifest(), &self.results, &self.failures, &[])
    }
}

fn preset_of(matrix: &MatrixSummary, row: u32) -> &str {
    &matrix.presets[matrix.rows[row as usize].preset as usize].name
}

fn winner(matrix: &MatrixSummary, figure: MatrixFigure) -> &Winner {
    matrix.winners.iter().find(|winner| winner.figure == figure).unwrap()
}

fn published() -> MatrixSummary {
    let mut made = Made::new();
    for section in &SECTIONS {
        for line in section.lines {
            made.line(section.model, section.context, line);
        }
    }
    made.summary()
}

#[test]
fn published_sections_have_their_highest_lines_and_their_errors() {
    let matrix = published();
    assert_eq!(matrix.sections.len(), SECTIONS.len());
    for (found, published) in matrix.sections.iter().zip(&SECTIONS) {
        let what = (published.context, MODELS[published.model as usize]);
        assert_eq!((found.context, found.model), (Some(published.context), published.model));
        let best = |figure| {
            let highest = found.highest.iter().find(|highest| highest.figure == figure)?;
            Some(preset_of(&matrix, highest.row))
        };
        let both = best(MatrixFigure::PromptTps).zip(best(MatrixFigure::GenerationTps));
        assert_eq!(both, published.highest, "{what:?}");
        let mut errors: Vec<(&str, u64)> =
            found.errors.iter().map(|(row, errors)| (preset_of(&matrix, *row), *errors)).collect();
        errors.sort_unstable();
        let with_errors = published.lines.iter().filter(|(_, _, errors)| 0 < *errors);
        let mut expected: Vec<(&str, u64)> =
            with_errors.map(|(preset, _, errors)| (*preset, *errors)).collect();
        expected.sort_unstable();
        assert_eq!(errors, expected, "{what:?}");
        let presets: Vec<u32> =
            found.rows.iter().map(|row| matrix.rows[*row as usize].preset).collect();
        assert!(presets.is_sorted(), "{what:?}: {presets:?}");
    }
}

#[test]
fn published_cells_with_errors_keep_their_figures_and_win_nothing() {
    let matrix = published();
    let is_it = |row: &&MatrixRow| row.errors == 20;
    let marked = matrix.rows.iter().find(is_it).unwrap();
    assert_eq!(marked.ending, RowEnding::WithErrors);
    assert_eq!((marked.prompt_tps.mean, marked.generation_tps.mean), (Some(5.08), Some(66.26)));
    assert_eq!((marked.latency_s.mean, marked.requests), (Some(11.01), 100));
    assert_eq!(marked.request_generation_tps.mean, Some(45.72));
    assert_eq!(marked.request_prompt_tps.mean, Some(3.19));
    assert_eq!(marked.verdict, Some(Verdict::Degraded));
    // Every run of it is invalid, and there is nothing else to show.
    let most = matrix.rows.iter().find(|row| row.errors == 80).unwrap();
    assert_eq!((most.verdict, most.generation_tps.mean), (Some(Verdict::Invalid), Some(360.40)));
    assert!(!matrix.winners.is_empty());
    for winner in &matrix.winners {
        let row = &matrix.rows[winner.row as usize];
        assert_eq!(row.errors, 0, "{winner:?}");
        let runner_up = winner.runner_up.map(|place| matrix.rows[place as usize].errors);
        assert!(runner_up.is_none_or(|errors| errors == 0), "{winner:?}");
        // One run each: nobody is surely ahead.
        assert!(matches!(winner.certainty, Certainty::OneRun | Certainty::Alone), "{winner:?}");
        assert!(winner.ahead.as_ref().is_none_or(|ahead| ahead.share >= 0.0), "{winner:?}");
    }
    let alone = |winner: &&Winner| winner.certainty == Certainty::Alone;
    assert!(matrix.winners.iter().filter(alone).all(|winner| winner.runner_up.is_none()));
}

#[test]
fn published_speedups_are_as_printed() {
    let mut made = Made::new();
    for line in &COMPARED {
        for (strategy, (prompt, generation)) in
            [(Strategy::Tensor, line.tensor), (Strategy::Pipeline, line.pipeline)]
        {
            let cell = made.cell(line.preset, 1, 2_048, strategy);
            made.ran(cell, at_once(10), run([prompt, generation, 7.0, 60.0, 5.0], 0));
        }
    }
    let matrix = made.summary();
    let [table] = matrix.strategies.as_slice() else { panic!("one table") };
    assert_eq!(table.rows.len(), COMPARED.len());
    for row in &table.rows {
        let (name, gpus) = PRESETS[row.preset as usize];
        let line = COMPARED.iter().find(|line| line.preset == name).unwrap();
        let per_cent = |speedup: &Option<Speedup>| {
            let speedup = speedup.as_ref().unwrap();
            assert_eq!(speedup.interval, None, "one run a side");
            (speedup.share * 1e3).round() / 10.0
        };
        let found = (per_cent(&row.prompt_speedup), per_cent(&row.generation_speedup));
        assert_eq!(found, line.speedup, "{name}");
        assert_eq!(row.same_deployment, gpus == 1, "{name}");
    }
    // A section for each strategy, with no row twice.
    assert_eq!(matrix.sections.len(), 2);
}

#[test]
fn published_loads_stand_side_by_side_from_the_lowest() {
    let mut made = Made::new();
    made.matrix.levels = vec![at_once(10), at_once(1)];
    let cell = made.cell("H100X2", 3, 128_000, Strategy::Tensor);
    made.ran(cell, at_once(10), run(TEN_AT_ONCE.0, TEN_AT_ONCE.1));
    made.ran(cell, at_once(1), run(ONE_AT_ONCE.0, ONE_AT_ONCE.1));
    let matrix = made.summary();
    let [table] = matrix.loads.as_slice() else { panic!("one table") };
    let [(preset, rows)] = table.presets.as_slice() else { panic!("one preset") };
    assert_eq!(PRESETS[*preset as usize].0, "H100X2");
    let of = |row: &u32| &matrix.rows[*row as usize];
    let figures: Vec<_> = rows.iter().map(|row| (of(row).level, of(row).errors)).collect();
    assert_eq!(figures, [(at_once(1), 0), (at_once(10), 1)]);
    assert_eq!(of(&rows[0]).generation_tps.mean, Some(29.36));
    assert!(matrix.strategies.is_empty());
    // With one load there is nothing to lay side by side.
    assert!(published().loads.is_empty());
}

#[test]
fn a_table_without_errors_on_both_sides_has_no_speedup() {
    let mut made = Made::new();
    made.measured("H100X2", Strategy::Tensor, &[500.0]);
    let bad = made.cell("H100X2", 0, 2_048, Strategy::Pipeline);
    made.ran(bad, at_once(10), run([40.0, 900.0, 7.0, 60.0, 5.0], 3));
    made.measured("mi210x2", Strategy::Tensor, &[490.0]);
    let matrix = made.summary();
    let [h100, mi210] = [7, 5]
        .map(|preset| matrix.strategies[0].rows.iter().find(|row| row.preset == preset).unwrap());
    assert_eq!((h100.prompt_speedup.clone(), h100.generation_speedup.clone()), (None, None));
    assert!(h100.tensor.is_some() && h100.pipeline.is_some() && !h100.same_deployment);
    assert_eq!((mi210.pipeline, mi210.generation_speedup.clone()), (None, None));
}

#[test]
fn a_price_is_money_per_million_tokens_and_the_cheapest_wins() {
    let mut made = Made::new();
    made.matrix.presets[0].price_per_hour = Some(36.0);
    made.matrix.presets[1].price_per_hour = Some(90.0);
    made.measured("gpu-small", Strategy::Tensor, &[100.0, 200.0]);
    made.measured("gpu-medium", Strategy::Tensor, &[300.0, 300.0]);
    made.measured("gpu-large", Strategy::Tensor, &[900.0, 900.0]);
    let matrix = made.summary();
    let costs: Vec<Option<f64>> = matrix.rows.iter().map(|row| row.cost_per_million.mean).collect();
    // 36 an hour is 0.01 a second: 100 and 50 a million; 0.025 a second over 300: 83.3.
    assert_eq!(costs[0], Some(75.0));
    assert!((costs[1].unwrap() - 83.333_333).abs() < 1e-5);
    assert_eq!(costs[2], None);
    assert!(matrix.rows[2].cost_per_million.reason.as_deref().unwrap().contains("no price"));
    assert_eq!(preset_of(&matrix, winner(&matrix, MatrixFigure::Cost).row), "gpu-small");
    let ahead = winner(&matrix, MatrixFigure::Cost).ahead.clone().unwrap();
    assert!((ahead.share - 0.1).abs() < 1e-9, "{ahead:?}");
}

#[test]
fn servers_that_do_not_count_are_compared_by_what_the_client_saw() {
    let mut made = Made::new();
    made.measured("gpu-small", Strategy::Tensor, &[500.0]);
    let silent = made.measured("gpu-medium", Strategy::Tensor, &[600.0]);
    assert_eq!(made.summary().tps_by(), TpsBy::Server);
    let run = &mut made.results[silent as usize].summary;
    (run.server, run.server_missing) = (None, Some("it has no metrics".to_owned()));
    let matrix = made.summary();
    assert_eq!(matrix.tps_by(), TpsBy::Client);
    let row = &matrix.rows[1];
    assert_eq!((row.generation_tps.mean, row.running), (None, None));
    assert_eq!(row.generation_tps.reason.as_deref(), Some("it has no metrics"));
    assert_eq!(preset_of(&matrix, winner(&matrix, MatrixFigure::GenerationTps).row), "gpu-medium");
}
