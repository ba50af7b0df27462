//! `matrix --list`: the built-in matrices.

use inferometer_model::campaign::{Matrix, Question};
use inferometer_report::document::{Cell, Columns, terminal};
use inferometer_report::terminal::Style;
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
    let rows =
        matrices.iter().filter_map(|listed| Some((listed.matrix()?, listed.plan.foreseen.len())));
    let table = Columns::new("matrix", |(matrix, _): &(&Matrix, usize)| Cell::text(&matrix.name))
        .right("presets", |(matrix, _)| Cell::text(matrix.presets.len().to_string()))
        .right("models", |(matrix, _)| Cell::text(matrix.models.len().to_string()))
        .right("cells", |(matrix, _)| Cell::text(matrix.cells.len().to_string()))
        .right("cannot be deployed", |(_, foreseen)| Cell::text(foreseen.to_string()))
        .left("", |(matrix, _)| Cell::text(&matrix.title))
        .table("", "", rows);
    terminal::table(&table, Style::Plain)
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
