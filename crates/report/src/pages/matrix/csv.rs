//! A matrix as CSV: one row for each cell and load, every figure with its interval, and failed cells
//! with their reason.

use inferometer_analysis::matrix::{MatrixRow, MatrixSummary};
use inferometer_analysis::set::{AcrossRuns, SetSummary};
use inferometer_model::deployment::LikelyCause;
use inferometer_model::study::Level;
use inferometer_model::variant_name;

use super::{GAUGES, certainty_words, short_name};
use crate::fmt::Join;
use crate::pages::csv::{Csv, level_field};

/// A column: its head, and where its value is in a row.
type FigureColumn = (&'static str, fn(&MatrixRow) -> &AcrossRuns);

/// Figures with an interval.
const FIGURES: [FigureColumn; 11] = [
    ("prompt TPS (tokens/s)", |row| &row.prompt_tps),
    ("generation TPS (tokens/s)", |row| &row.generation_tps),
    ("mean latency (s)", |row| &row.latency_s),
    ("request generation TPS (tokens/s)", |row| &row.request_generation_tps),
    ("request prompt TPS (tokens/s)", |row| &row.request_prompt_tps),
    ("prompt TPS by the client (tokens/s)", |row| &row.client_prompt_tps),
    ("generation TPS by the client (tokens/s)", |row| &row.client_generation_tps),
    ("mean TTFT (ms)", |row| &row.ttft_ms),
    ("mean TPOT (ms)", |row| &row.tpot_ms),
    ("energy per generated token (J)", |row| &row.energy_per_token_j),
    ("cost per million generated tokens", |row| &row.cost_per_million),
];

/// Limit for reasons, which come from servers.
const REASON_CHARS_MAX: usize = 300;

/// `None` where the set is no matrix.
pub fn of_matrix(set: &SetSummary) -> Option<String> {
    type Row<'a> = (u32, &'a MatrixRow);
    let matrix = set.matrix.as_ref()?;
    let preset = |row: &MatrixRow| matrix.presets.get(row.preset as usize);
    let mut csv = Csv(Vec::new())
        .text("source", |_: &Row<'_>| Some(set.set.clone()))
        .text("cell", |(_, row)| Some(set.conditions.get(row.cell as usize)?.name.clone()))
        .text("preset", move |(_, row)| Some(preset(row)?.name.clone()))
        .count("gpus", move |(_, row)| preset(row)?.gpus.map(u64::from))
        .text("model", |(_, row)| Some(matrix.models.get(row.model as usize)?.name.clone()))
        .count("context (tokens)", |(_, row)| row.context.map(u64::from))
        .text("strategy", |(_, row)| Some(variant_name(&row.strategy?).to_owned()))
        .count("tensor parallel", |(_, row)| row.tp.map(u64::from))
        .count("pipeline parallel", |(_, row)| row.pp.map(u64::from))
        .text("flags", |(_, row)| {
            row.flags.iter().map(|(name, value)| format!("{name}={value}")).try_join("; ")
        })
        .text("load", |(_, row)| Some(level_field(row.level)))
        .count("concurrency", |(_, row)| match row.level {
            Level::Concurrency(requests) => Some(requests.get().into()),
            Level::AsAsked | Level::Rate(_) | Level::Unlimited => None,
        })
        .text("ending", |(_, row)| Some(<&str>::from(&row.ending).to_owned()))
        .text("failed at", |(_, row)| Some(row.ending.failure()?.stage.to_string()))
        .text("reason", |(_, row)| {
            let words = row.ending.failure()?.what.split_whitespace().join(" ");
            Some(words.chars().take(REASON_CHARS_MAX).collect())
        })
        .text("remedy", |(_, row)| {
            Some(row.ending.failure()?.cause.map(LikelyCause::remedy)?.to_owned())
        })
        .text("verdict", |(_, row)| Some(row.verdict?.to_string()))
        .text("best at", |(index, _)| Some(best_at(matrix, *index)))
        .count("runs", |(_, row)| Some(row.points.len() as u64))
        .count("failed runs", |(_, row)| Some(row.failed_points.len() as u64))
        .count("requests", |(_, row)| Some(row.requests))
        .count("errors", |(_, row)| (!row.points.is_empty()).then_some(row.errors));
    for (head, get) in FIGURES {
        csv = csv.figure(head, "", move |(_, row)| (get(row).mean, get(row).confidence_interval()));
    }
    csv = csv.text("currency", |(_, row)| {
        matrix.currency.clone().filter(|_| row.cost_per_million.mean.is_some())
    });
    for (_, head, get, _) in GAUGES {
        csv = csv.number(head, move |(_, row)| get(row));
    }
    Some(csv.lines((0_u32..).zip(&matrix.rows)))
}

/// The figures that the row wins, each with its certainty.
fn best_at(matrix: &MatrixSummary, row: u32) -> String {
    let own = matrix.winners.iter().filter(|winner| winner.row == row);
    let words = own.map(|winner| {
        let certainty = certainty_words(winner.certainty).0;
        format!("{} ({certainty})", short_name(winner.figure))
    });
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;
    use std::time::Duration;

    use inferometer_analysis::set::PointResult;
    use inferometer_analysis::{Summary, Verdict};
    use inferometer_model::SpecDraft;
    use inferometer_model::deployment::{DeploymentFailure, DeploymentStage};
    use inferometer_model::study::{
        Cell, Condition, Matrix, MatrixModel, Point, PointFailure, Preset, Question, Repetition,
        RunOrder, SetManifest, Stage, Strategy, StudySpec,
    };

    use super::*;

    fn point(condition: u32) -> Point {
        let (level, stage) = (Level::AsAsked, Stage::Planned);
        Point { number: condition, condition, level, repetition: 0, seed: 1, stage }
    }

    fn manifest() -> SetManifest {
        let cell = |preset| Cell {
            preset,
            model: 0,
            context: Some(2_048),
            strategy: Some(Strategy::Tensor),
            tp: Some(1),
            pp: Some(1),
            flags: BTreeMap::from([("enforce-eager".to_owned(), "true".to_owned())]),
        };
        let preset = |name: &str| Preset {
            name: name.to_owned(),
            price_per_hour: Some(1.5),
            ..Preset::default()
        };
        let spec = SpecDraft {
            url: Some("http://127.0.0.1:8000".parse().unwrap()),
            ..SpecDraft::default()
        };
        let spec = spec.resolve().unwrap();
        let condition = |name: &str| Condition { name: name.to_owned(), spec: spec.clone() };
        SetManifest {
            key_files: Vec::new(),
            workers: None,
            format: 1,
            set: "20260101-000000-matrix".to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            tool_version: "0.1.0".to_owned(),
            simulated: false,
            study: StudySpec {
                question: Question::Matrix(Matrix {
                    name: "two".to_owned(),
                    title: "Two".to_owned(),
                    description: None,
                    presets: vec![preset("small"), preset("=HYPERLINK(1)")],
                    models: vec![MatrixModel {
                        name: "m, \"7B\"".to_owned(),
                        label: "m".to_owned(),
                    }],
                    cells: vec![cell(0), cell(1)],
                    levels: vec![Level::AsAsked],
                    lanes: NonZeroU32::MIN,
                    currency: Some("EUR".to_owned()),
                }),
                conditions: vec![condition("small · m"), condition("other · m")],
                repetition: Repetition {
                    runs: NonZeroU32::MIN,
                    cool_down: Duration::ZERO,
                    restart: None,
                    stop_at: None,
                },
                order: RunOrder::Listed,
                seed: 7,
            },
        }
    }

    fn made() -> SetSummary {
        let stored = include_bytes!("../../../tests/summary.json");
        let summary =
            Summary { verdict: Verdict::Valid, ..Summary::from_json_bytes(stored).unwrap() };
        let failure = DeploymentFailure {
            stage: DeploymentStage::Ended,
            what: format!("-rm said\nthat it {}", "ended ".repeat(100)),
            cause: Some(LikelyCause::OutOfMemory),
            log: Vec::new(),
        };
        SetSummary::summarize_matrix(
            &manifest(),
            &[PointResult { point: point(0), summary }],
            &[PointFailure { point: point(1), at: None, failure }],
            &[],
        )
    }

    /// Cells of a line; a separator inside quotes is none.
    fn split(line: &str) -> Vec<String> {
        let mut quoted = false;
        let mut cells = vec![String::new()];
        for letter in line.chars() {
            quoted ^= letter == '"';
            match (letter, cells.last_mut()) {
                (',', _) if !quoted => cells.push(String::new()),
                (_, Some(cell)) => cell.push(letter),
                (_, None) => {}
            }
        }
        cells
    }

    #[test]
    fn a_cell_that_failed_has_its_reason_and_empty_figures_and_no_cell_is_a_formula() {
        let text = of_matrix(&made()).unwrap();
        let lines: Vec<Vec<String>> = text.trim_end().split("\r\n").map(split).collect();
        let [head, measured, failed] = lines.as_slice() else { panic!("three lines: {text}") };
        assert_eq!((head.len(), head.len()), (measured.len(), failed.len()));
        let at = |line: &[String], name: &str| {
            let name = format!("\"{name}\"");
            line[head.iter().position(|cell| *cell == name).unwrap()].clone()
        };
        assert_eq!(at(measured, "preset"), "\"small\"");
        assert_eq!(at(measured, "model"), "\"m, \"\"7B\"\"\"");
        assert_eq!(at(measured, "context (tokens)"), "2048");
        assert_eq!(at(measured, "flags"), "\"enforce-eager=true\"");
        assert!(at(measured, "mean latency (s)").parse::<f64>().is_ok());
        assert!(at(measured, "generation TPS by the client (tokens/s)").parse::<f64>().is_ok());
        assert_eq!(at(failed, "preset"), "\"'=HYPERLINK(1)\"");
        assert_eq!(at(failed, "ending"), "\"failed\"");
        assert_eq!(at(failed, "failed at"), "\"ended before it was ready\"");
        let reason = at(failed, "reason");
        assert!(reason.starts_with("\"'-rm said that it ended"), "{reason}");
        assert!(reason.chars().count() <= REASON_CHARS_MAX + 3, "{reason}");
        assert!(at(failed, "remedy").contains("memory"));
        for name in ["prompt TPS (tokens/s)", "mean latency (s) low", "errors", "running requests"]
        {
            assert_eq!(at(failed, name), "", "{name}");
        }
        assert_eq!((at(failed, "runs"), at(failed, "failed runs")), ("0".into(), "1".into()));
        assert_eq!(
            (at(measured, "currency"), at(failed, "currency")),
            ("\"EUR\"".into(), "\"\"".into())
        );
    }

    #[test]
    fn a_set_that_is_no_matrix_has_no_such_table() {
        assert_eq!(of_matrix(&SetSummary { matrix: None, ..made() }), None);
    }
}
