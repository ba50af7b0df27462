//! Parquet tables in a folder. Each is written beside its place and put there when it is whole.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use inferometer_interchange::export::parquet::{
    ParquetError, REQUESTS, Rows, TELEMETRY, TOKENS, Tables,
};

use super::subject::Subject;
use crate::failure::Failure;

const TABLES: [&str; 3] = [REQUESTS, TOKENS, TELEMETRY];

/// The tables' files, and how many rows each has.
pub(super) fn write(folder: &Path, subjects: &[Subject]) -> Result<Vec<(PathBuf, u64)>, Failure> {
    fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error.to_string()))?;
    let half_done = TABLES.map(|table| folder.join(format!(".{table}.{}", std::process::id())));
    let written = fill(&half_done, subjects).and_then(|rows| put(folder, &half_done, rows));
    if written.is_err() {
        for path in &half_done {
            let _ = fs::remove_file(path);
        }
    }
    written
}

fn fill(paths: &[PathBuf; 3], subjects: &[Subject]) -> Result<Rows, Failure> {
    let open = |path: &PathBuf| {
        File::create(path).map(BufWriter::new).map_err(|error| unwritten(path, &error.to_string()))
    };
    let [requests, tokens, telemetry] = paths;
    let refused = |error: ParquetError| match error {
        ParquetError::NoRequests { .. } => Failure::usage(error.to_string()),
        ParquetError::Write(error) => unwritten(requests, &error.to_string()),
    };
    let mut tables =
        Tables::new(open(requests)?, open(tokens)?, open(telemetry)?).map_err(refused)?;
    for subject in subjects {
        match subject {
            Subject::Run(run) => tables.add_run(run.id(), &run.observations()?),
            Subject::Foreign(result) => tables.add_sheet(&result.sheet),
        }
        .map_err(refused)?;
    }
    tables.finish().map_err(refused)
}

fn put(folder: &Path, from: &[PathBuf; 3], rows: Rows) -> Result<Vec<(PathBuf, u64)>, Failure> {
    let counts = [rows.requests, rows.tokens, rows.telemetry];
    let mut placed = Vec::new();
    for ((table, from), rows) in TABLES.iter().zip(from).zip(counts) {
        let to = folder.join(table);
        fs::rename(from, &to).map_err(|error| unwritten(&to, &error.to_string()))?;
        placed.push((to, rows));
    }
    Ok(placed)
}

fn unwritten(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("{} cannot be written: {why}", path.display()))
        .hint("name another folder with --to")
}
