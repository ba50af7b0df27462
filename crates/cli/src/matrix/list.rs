//! `matrix --list`: the matrices that come with the program.

use std::fmt::Write;

use inferometer_model::campaign::{Matrix, Question};
use serde_json::{Map, Value, json};

use super::builtin;
use super::file::{MatrixFile, Over};
use super::plan::planned;
use crate::arguments::PageFormat;
use crate::failure::Failure;
use crate::study::StudyPlan;

struct Listed {
    file: MatrixFile,
    plan: StudyPlan,
}

pub(crate) fn listed(format: PageFormat) -> Result<String, Failure> {
    let of = |name: &str| {
        let file = MatrixFile::named(name, Over { sets: &[], flags: &Map::new() })?;
        let plan = planned(&file, &[], &[], false)?;
        Ok(Listed { file, plan })
    };
    let matrices: Vec<Listed> =
        builtin::ALL.iter().map(|(name, _)| of(name)).collect::<Result<_, Failure>>()?;
    Ok(match format {
        PageFormat::Json => document(&matrices),
        PageFormat::Page | PageFormat::Vllm => page(&matrices),
    })
}

impl Listed {
    fn matrix(&self) -> Option<&Matrix> {
        match &self.plan.campaign.question {
            Question::Matrix(matrix) => Some(matrix),
            Question::Repeat | Question::Sweep(_) | Question::Suite(_) => None,
        }
    }
}

fn page(matrices: &[Listed]) -> String {
    let mut text = format!(
        "{:<16}{:>8}{:>8}{:>7}{:>18}\n",
        "matrix", "presets", "models", "cells", "cannot be put up"
    );
    for listed in matrices {
        let Some(matrix) = listed.matrix() else { continue };
        let _ = writeln!(
            text,
            "{:<16}{:>8}{:>8}{:>7}{:>18}  {}",
            matrix.name,
            matrix.presets.len(),
            matrix.models.len(),
            matrix.cells.len(),
            listed.plan.foreseen.len(),
            matrix.title,
        );
    }
    text
}

fn document(matrices: &[Listed]) -> String {
    let matrices: Vec<Value> = matrices
        .iter()
        .filter_map(|listed| {
            let matrix = listed.matrix()?;
            let presets: Vec<&str> = matrix.presets.iter().map(|it| it.name.as_str()).collect();
            let models: Vec<&str> = matrix.models.iter().map(|it| it.label.as_str()).collect();
            Some(json!({
                "name": matrix.name,
                "title": matrix.title,
                "description": listed.file.description,
                "presets": presets,
                "models": models,
                "cells": matrix.cells.len(),
                "foreseen_failures": listed.plan.foreseen.len(),
            }))
        })
        .collect();
    format!("{:#}\n", json!({ "schema": "inferometer.matrices/1", "matrices": matrices }))
}
