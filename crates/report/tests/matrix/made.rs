//! Matrices of made-up servers: rows by a formula, and what a summary says of them by the plainest
//! rules.

#[path = "made/tables.rs"]
mod tables;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use inferometer_analysis::matrix::{
    Certainty, Highest, LoadTable, MatrixFigure, MatrixMethod, MatrixRow, MatrixSection,
    MatrixSummary, RowEnding, Speedup, StrategyRow, StrategyTable, Winner,
};
use inferometer_analysis::set::{
    AcrossRuns, ConditionSummary, QuestionKind, SET_SCHEMA, SetSummary, StudyFacts, Subject,
};
use inferometer_analysis::{Estimate, Interval, Severity, Verdict, Warning};
use inferometer_model::deployment::{
    Departure, DepartureEnding, DeploymentFacts, DeploymentFailure, DeploymentStage, LikelyCause,
};
use inferometer_model::spec::Lengths;
use inferometer_model::study::{DeploymentRecord, Level, MatrixModel, Preset, RunOrder, Strategy};
use inferometer_model::variant_name;
use serde_json::json;

use self::tables::{loads, sections, strategies, winners};

/// Name, GPUs, type, memory of one in GB, price for an hour, speed of one.
const PRESETS: [(&str, u32, &str, f64, f64, f64); 8] = [
    ("gpu-small", 1, "NVIDIA V100 (PCIe 16GB)", 16.0, 0.9, 1.0),
    ("gpu-medium", 2, "NVIDIA V100 (PCIe 16GB)", 16.0, 1.8, 1.0),
    ("gpu-large", 4, "NVIDIA V100 (PCIe 16GB)", 16.0, 3.6, 1.0),
    ("gpu-xlarge", 8, "NVIDIA V100 (PCIe 16GB)", 16.0, 7.2, 1.0),
    ("mi210x1", 1, "AMD MI210", 64.0, 1.4, 1.1),
    ("mi210x2", 2, "AMD MI210", 64.0, 2.8, 1.1),
    ("H100X1", 1, "NVIDIA H100 (PCIe 80GB)", 80.0, 3.9, 1.9),
    ("H100X2", 2, "NVIDIA H100 (PCIe 80GB)", 80.0, 7.8, 1.9),
];

/// Label, name, memory in GB.
const MODELS: [(&str, &str, f64); 4] = [
    ("Qwen-1.5B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", 3.5),
    ("Llama-3B", "meta-llama/Llama-3.2-3B-Instruct", 7.0),
    ("Llama-8B", "meta-llama/Llama-3.1-8B-Instruct", 17.0),
    ("Qwen-32B", "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", 66.0),
];

pub(crate) struct Plan {
    pub(crate) presets: usize,
    pub(crate) models: usize,
    pub(crate) contexts: Vec<Option<u32>>,
    pub(crate) strategies: Vec<Option<Strategy>>,
    pub(crate) levels: Vec<u32>,
    pub(crate) runs: u32,
}

/// As large as what people publish: 384 rows of one run.
pub(crate) fn large() -> SetSummary {
    set(&Plan {
        presets: 8,
        models: 4,
        contexts: [2_048, 8_192, 16_384, 32_768, 65_536, 131_072].map(Some).to_vec(),
        strategies: vec![Some(Strategy::Tensor), Some(Strategy::Pipeline)],
        levels: vec![10],
        runs: 1,
    })
}

/// One model at one context, three runs each at two loads, with everything that can go wrong.
pub(crate) fn small() -> SetSummary {
    set(&Plan {
        presets: 6,
        models: 2,
        contexts: vec![Some(2_048)],
        strategies: vec![Some(Strategy::Tensor), Some(Strategy::Pipeline)],
        levels: vec![10, 40],
        runs: 3,
    })
}

/// One model at one load: few enough for a terminal.
pub(crate) fn tiny() -> SetSummary {
    set(&Plan {
        presets: 6,
        models: 1,
        contexts: vec![Some(2_048)],
        strategies: vec![Some(Strategy::Tensor), Some(Strategy::Pipeline)],
        levels: vec![10],
        runs: 3,
    })
}

fn set(plan: &Plan) -> SetSummary {
    let matrix = matrix(plan);
    let subject = json!({
        "target": "http://127.0.0.1:8000/v1", "embedded": false, "model": "m", "api": "completions",
        "open_loop": false, "source": "prompt", "input_tokens": null, "output_tokens": 512,
    });
    let subject: Subject = serde_json::from_value(subject).unwrap();
    let failed = matrix.rows.iter().filter(|row| !row.failed_points.is_empty()).count();
    SetSummary {
        schema: SET_SCHEMA.to_owned(),
        set: "20260102-030405-set1".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        tool_version: "0.1.0".to_owned(),
        simulated: false,
        seed: 7,
        asked: StudyFacts {
            question: QuestionKind::Matrix,
            dimension: None,
            goals: Vec::new(),
            runs: plan.runs,
            order: RunOrder::Listed,
            cool_down_s: 0.0,
            restarted: false,
            stop_at: None,
        },
        verdict: Verdict::Degraded,
        warnings: vec![Warning {
            key: "matrix-failed".to_owned(),
            check: None,
            severity: Severity::Degraded,
            text: format!("{failed} rows of the matrix failed"),
            remedy: "see why on the page, and try them again with --retry-failed".to_owned(),
        }],
        conditions: conditions(&matrix, &subject),
        limits: Vec::new(),
        suite: None,
        points: Vec::new(),
        matrix: Some(matrix),
    }
}

fn conditions(matrix: &MatrixSummary, subject: &Subject) -> Vec<ConditionSummary> {
    let mut cells: BTreeMap<u32, String> = BTreeMap::new();
    for row in &matrix.rows {
        let preset = &matrix.presets[row.preset as usize].name;
        let model = &matrix.models[row.model as usize].label;
        let strategy = row.strategy.map_or("", |strategy| variant_name(&strategy));
        cells.insert(row.cell, format!("{preset} · {model} · {:?} · {strategy}", row.context));
    }
    let condition = |name: String| ConditionSummary {
        name,
        subject: Some(subject.clone()),
        levels: Vec::new(),
        findings: None,
    };
    cells.into_values().map(condition).collect()
}

fn matrix(plan: &Plan) -> MatrixSummary {
    let rows = rows(plan);
    let presets = PRESETS[..plan.presets].iter().map(|preset| Preset {
        name: preset.0.to_owned(),
        gpus: Some(preset.1),
        gpu_type: Some(preset.2.to_owned()),
        vram_gb: Some(preset.3 * f64::from(preset.1)),
        vcpus: Some(15.0 * f64::from(preset.1)),
        memory_gb: None,
        price_per_hour: Some(preset.4),
    });
    let models = MODELS[..plan.models]
        .iter()
        .map(|model| MatrixModel { name: model.1.to_owned(), label: model.0.to_owned() });
    MatrixSummary {
        name: "r3".to_owned(),
        title: "Presets and models".to_owned(),
        description: None,
        currency: Some("USD".to_owned()),
        presets: presets.collect(),
        models: models.collect(),
        sections: sections(plan, &rows),
        strategies: strategies(plan, &rows),
        loads: loads(plan, &rows),
        winners: winners(plan, &rows),
        deployments: deployments(&rows, plan.runs),
        method: method(plan),
        rows,
    }
}

fn method(plan: &Plan) -> MatrixMethod {
    let output = |context: &Option<u32>| {
        let tokens = if *context == Some(2_048) { 512 } else { 2_048 };
        (*context, Lengths::Fixed(tokens))
    };
    MatrixMethod {
        prompt: Some("Compare a few ways to <cut> a web shop into services".to_owned()),
        prompt_words: Some(10),
        prompt_tokens_max: Some(52),
        fields: json!({ "temperature": 0.7 }).as_object().unwrap().clone(),
        engine: BTreeMap::from([("dtype".to_owned(), json!("half"))]),
        output_tokens: plan.contexts.iter().map(output).collect(),
        hardware: PRESETS[..plan.presets].iter().map(|it| Some(it.0.to_owned())).collect(),
    }
}

fn rows(plan: &Plan) -> Vec<MatrixRow> {
    let mut rows = Vec::new();
    let mut cell = 0;
    for context in &plan.contexts {
        for model in 0..plan.models {
            for preset in 0..plan.presets {
                for strategy in &plan.strategies {
                    for level in &plan.levels {
                        let key = (cell, preset, model);
                        rows.push(row(plan, key, (*context, *strategy, *level)));
                    }
                    cell += 1;
                }
            }
        }
    }
    rows
}

/// A few parts in a hundred around one, the same for the same numbers.
fn noise(seed: u32) -> f64 {
    let mixed = (seed * 31 + 7).wrapping_mul(2_654_435_761) >> 16;
    1.0 + (f64::from(mixed % 1_000) / 1_000.0 - 0.5) * 0.04
}

fn across(mean: f64, runs: u32, seed: u32) -> AcrossRuns {
    let estimate = |run: u32| {
        let value = mean * noise(seed * 13 + run);
        Ok(Estimate {
            value,
            interval: Interval::new(value * 0.98, value * 1.02),
            n: 100,
            effective_n: None,
            certified: true,
        })
    };
    AcrossRuns::from_runs(&(0..runs).map(estimate).collect::<Vec<_>>())
}

fn nothing() -> AcrossRuns {
    AcrossRuns::from_runs(&[])
}

fn row(
    plan: &Plan,
    (cell, preset, model): (u32, usize, usize),
    (context, strategy, level): (Option<u32>, Option<Strategy>, u32),
) -> MatrixRow {
    let hardware = PRESETS[preset];
    let ending = ending((cell, preset, model), context);
    let gpus = f64::from(hardware.1);
    let slowed = if strategy == Some(Strategy::Pipeline) && 1 < hardware.1 { 0.84 } else { 1.0 };
    let long = 1.0 / (1.0 + f64::from(context.unwrap_or(2_048)) / 60_000.0);
    let speed = 640.0 * hardware.5 * slowed * long * (1.0 - 0.05 * (gpus - 1.0).min(3.0))
        / (1.0 + MODELS[model].2 / 20.0)
        * (f64::from(level) / 10.0).sqrt();
    let runs = match &ending {
        RowEnding::Clean | RowEnding::WithErrors => plan.runs,
        RowEnding::Partly { .. } => plan.runs - 1,
        RowEnding::Failed { .. } | RowEnding::Missing => 0,
    };
    let failed = match &ending {
        RowEnding::Failed { .. } | RowEnding::Partly { .. } => plan.runs - runs,
        RowEnding::Clean | RowEnding::WithErrors | RowEnding::Missing => 0,
    };
    let first = cell * plan.runs + 1;
    let errors = if ending == RowEnding::WithErrors { 10 } else { 0 };
    let of = |mean: f64, what: u32| match runs {
        0 => nothing(),
        runs => across(mean, runs, cell * 7 + what),
    };
    let measured = |value: f64| (0 < runs).then_some(value);
    MatrixRow {
        cell,
        preset: u32::try_from(preset).unwrap(),
        model: u32::try_from(model).unwrap(),
        context,
        strategy,
        tp: Some(if strategy == Some(Strategy::Tensor) { hardware.1 } else { 1 }),
        pp: Some(if strategy == Some(Strategy::Pipeline) { hardware.1 } else { 1 }),
        flags: BTreeMap::new(),
        level: Level::Concurrency(NonZeroU32::new(level).unwrap()),
        points: (first..first + runs).collect(),
        failed_points: (first + runs..first + runs + failed).collect(),
        verdict: (0 < runs).then_some(Verdict::Valid),
        requests: u64::from(runs) * 100,
        errors,
        prompt_tps: of(speed * 0.08, 1),
        generation_tps: of(speed, 2),
        client_prompt_tps: of(speed * 0.08, 3),
        client_generation_tps: of(speed, 4),
        latency_s: of(4_600.0 / speed * (f64::from(level) / 10.0), 5),
        ttft_ms: of(120.0, 6),
        tpot_ms: of(10_000.0 / speed, 7),
        request_generation_tps: of(speed / f64::from(level) * 1.1, 8),
        request_prompt_tps: of(speed * 0.08 / f64::from(level) * 1.1, 9),
        running: measured(9.4),
        waiting: measured(0.1),
        swapped: measured(0.0),
        kv_usage: measured(0.031),
        cpu_cache_usage: None,
        power_w: measured(210.0 * gpus),
        gpu_memory_bytes: measured(14e9 * gpus),
        energy_per_token_j: of(210.0 * gpus / speed, 10),
        cost_per_million: of(hardware.4 / 3_600.0 / speed * 1e6, 11),
        ending,
    }
}

/// What does not fit, what has errors, and what happens by chance.
fn ending((cell, preset, model): (u32, usize, usize), context: Option<u32>) -> RowEnding {
    let hardware = PRESETS[preset];
    let room = hardware.3 * f64::from(hardware.1) * 0.9;
    let needed = MODELS[model].2 * (1.0 + f64::from(context.unwrap_or(0)) / 260_000.0);
    if room < needed {
        return RowEnding::Failed { failure: out_of_memory(needed) };
    }
    match cell % 29 {
        5 => RowEnding::WithErrors,
        11 => RowEnding::Failed {
            failure: DeploymentFailure {
                stage: DeploymentStage::Ready,
                what: "no token within 600 s".to_owned(),
                cause: None,
                log: vec!["Loading weights <b>0 %</b>".to_owned()],
            },
        },
        17 if cell < 29 => RowEnding::Missing,
        _ => RowEnding::Clean,
    }
}

fn out_of_memory(needed: f64) -> DeploymentFailure {
    DeploymentFailure {
        stage: DeploymentStage::Ended,
        what: format!("exit status 1 while it loaded {needed:.1} GB of weights"),
        cause: Some(LikelyCause::OutOfMemory),
        log: vec![
            "INFO loading model weights".to_owned(),
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB".to_owned(),
        ],
    }
}

fn deployments(rows: &[MatrixRow], runs: u32) -> Vec<DeploymentRecord> {
    let mut records: Vec<DeploymentRecord> = Vec::new();
    for row in rows.iter().filter(|row| row.ending != RowEnding::Missing) {
        if records.last().is_some_and(|last| last.condition == row.cell) {
            continue;
        }
        for repetition in 0..runs {
            records.push(record(row, repetition, records.len()));
        }
    }
    records
}

fn record(row: &MatrixRow, repetition: u32, place: usize) -> DeploymentRecord {
    let stubborn = place % 50 == 7;
    let facts = DeploymentFacts {
        kind: "process".to_owned(),
        command: ["vllm", "serve", "m", "--port", "40123"].map(str::to_owned).to_vec(),
        image: None,
        environment: Vec::new(),
        ready_after: Duration::from_secs_f64(31.0 + f64::from(row.preset) * 4.5),
        restarts: u32::try_from(place).unwrap(),
    };
    let ending = if stubborn { DepartureEnding::Killed } else { DepartureEnding::OnRequest };
    DeploymentRecord {
        condition: row.cell,
        repetition,
        facts: (!row.points.is_empty()).then_some(facts),
        departure: Some(Departure {
            ending,
            took: Duration::from_millis(2_300),
            port_closed: true,
            left: if stubborn { vec![(4_711, "vllm <worker>".to_owned())] } else { Vec::new() },
            gpu_memory: Some((512 << 20, 515 << 20)),
            troubles: Vec::new(),
        }),
        drained_after_s: Some(0.4),
        log: None,
    }
}
