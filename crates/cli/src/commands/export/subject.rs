//! What is exported: finished runs of ours with all that is stored of them, and imported results.

use inferometer_analysis::Summary;
use inferometer_analysis::tool_result::ToolResult;
use inferometer_model::Observations;
use inferometer_report::junit::Exported;
use inferometer_store::{RunDirectory, RunStore, Stored};

use crate::commands::report::Source;
use crate::failure::Failure;
use crate::results;

/// A finished run of ours, or one result of an import.
pub(super) enum Subject {
    Run {
        /// Its id, or `SET/N`.
        name: String,
        directory: RunDirectory,
        summary: Box<Summary>,
        configuration: String,
    },
    Foreign {
        /// `IMPORT/N`, as it may be asked for.
        name: String,
        result: Box<ToolResult>,
    },
}

/// All that is named, in that order; of a set its finished runs. `NAME=RUN` names a configuration.
pub(super) fn read(
    store: &RunStore,
    names: &[String],
    talk: impl Fn(&str),
) -> Result<Vec<Subject>, Failure> {
    let mut subjects = Vec::new();
    for typed in names {
        let (configuration, name) = results::split_name(typed);
        let found = store.find(name).map_err(Failure::from_usage)?;
        let mut of_one = read_stored(&found, &talk)?;
        if let Some(configuration) = configuration {
            results::name_all(of_one.iter_mut().map(Subject::configuration), configuration);
        }
        subjects.append(&mut of_one);
    }
    Ok(subjects)
}

fn read_stored(found: &Stored, talk: impl Fn(&str)) -> Result<Vec<Subject>, Failure> {
    if let Stored::Import(import, number) = found {
        let results = results::from_import(import, *number)?.into_iter();
        let numbered = (number.unwrap_or(0)..).zip(results);
        let foreign = |(number, result): (u32, ToolResult)| {
            let name = format!("{}/{number}", import.id());
            Subject::Foreign { name, result: Box::new(result) }
        };
        return Ok(numbered.map(foreign).collect());
    }
    Ok(match Source::read(found, talk)? {
        Source::Run { directory, summary } => {
            let (name, configuration) = (directory.id().to_owned(), String::new());
            vec![Subject::Run { name, directory, summary, configuration }]
        }
        Source::Set { set, summary, points, .. } => points
            .into_iter()
            .map(|result| {
                // The only condition of a set needs no name.
                let several = Some(&summary.conditions).filter(|all| 1 < all.len());
                let condition = several.and_then(|all| all.get(result.point.condition as usize));
                Subject::Run {
                    name: format!("{}/{}", set.id(), result.point.number),
                    directory: set.point(result.point.number),
                    summary: Box::new(result.summary),
                    configuration: condition.map(|found| found.name.clone()).unwrap_or_default(),
                }
            })
            .collect(),
    })
}

impl Subject {
    const fn configuration(&mut self) -> &mut String {
        match self {
            Self::Run { configuration, .. } => configuration,
            Self::Foreign { result, .. } => &mut result.configuration,
        }
    }

    /// What it may be asked for by.
    pub(super) fn name(&self) -> &str {
        let (Self::Run { name, .. } | Self::Foreign { name, .. }) = self;
        name
    }

    /// By our own definitions, or by those of the tool that an import came from.
    pub(super) fn result(&self) -> ToolResult {
        match self {
            Self::Run { summary, configuration, .. } => ToolResult {
                configuration: configuration.clone(),
                ..ToolResult::from_summary(summary)
            },
            Self::Foreign { result, .. } => (**result).clone(),
        }
    }

    /// By vLLM's definitions where the run is ours; an import says what it says.
    pub(super) fn vllm_result(&self, detail: bool) -> Result<ToolResult, Failure> {
        let Self::Run { directory, summary, configuration, .. } = self else {
            return Ok(self.result());
        };
        let result = if detail {
            let percentiles = ["90", "95", "99"].map(str::to_owned);
            ToolResult::of_vllm_summed(summary, &observations(directory)?, &percentiles, detail)
        } else {
            ToolResult::of_vllm(summary)
        };
        Ok(ToolResult { configuration: configuration.clone(), ..result })
    }

    /// A run has a verdict and SLOs; an import only has its values.
    pub(super) fn junit(&self) -> Exported<'_> {
        match self {
            Self::Run { summary, .. } => Exported::Run(summary),
            Self::Foreign { result, .. } => Exported::ToolResult(result),
        }
    }
}

/// All records: as much memory as the run has.
fn observations(directory: &RunDirectory) -> Result<Observations, Failure> {
    Ok(directory.read().map_err(Failure::from_usage)?.observations)
}

#[cfg(feature = "parquet")]
pub(super) use tables::write_tables;

/// Parquet tables in a folder. Each is written beside its path and renamed when it is complete.
#[cfg(feature = "parquet")]
mod tables {
    use std::fs::{self, File};
    use std::io::BufWriter;
    use std::path::{Path, PathBuf};

    use inferometer_interchange::export::parquet::{FILES, ParquetError, Tables};

    use super::{Subject, observations};
    use crate::failure::Failure;

    /// The tables' files, and how many rows each has.
    pub(crate) fn write_tables(
        folder: &Path,
        subjects: &[Subject],
    ) -> Result<Vec<(PathBuf, u64)>, Failure> {
        fs::create_dir_all(folder).map_err(|error| unwritten(folder, error))?;
        let half_done = FILES.map(|table| folder.join(format!(".{table}.{}", std::process::id())));
        let put = |rows: [u64; 3]| {
            let placed = FILES.iter().zip(&half_done).zip(rows).map(|((table, from), rows)| {
                let to = folder.join(table);
                fs::rename(from, &to).map_err(|error| unwritten(&to, error))?;
                Ok((to, rows))
            });
            placed.collect::<Result<Vec<_>, Failure>>()
        };
        let written = fill(&half_done, subjects).and_then(put);
        if written.is_err() {
            for path in &half_done {
                let _ = fs::remove_file(path);
            }
        }
        written
    }

    fn fill(paths: &[PathBuf; 3], subjects: &[Subject]) -> Result<[u64; 3], Failure> {
        let open = |path: &PathBuf| {
            File::create(path).map(BufWriter::new).map_err(|error| unwritten(path, error))
        };
        let [requests, tokens, telemetry] = paths;
        let refused = |error: ParquetError| match error {
            ParquetError::NoRequests { .. } => Failure::usage(error.to_string()),
            ParquetError::Write(error) => unwritten(requests, error),
        };
        let mut tables =
            Tables::new([open(requests)?, open(tokens)?, open(telemetry)?]).map_err(refused)?;
        for subject in subjects {
            match subject {
                Subject::Run { directory, .. } => {
                    tables.add_run(directory.id(), &observations(directory)?)
                }
                Subject::Foreign { result, .. } => tables.add_result(result),
            }
            .map_err(refused)?;
        }
        tables.finish().map_err(refused)
    }

    fn unwritten(path: &Path, why: impl std::fmt::Display) -> Failure {
        Failure::usage(format!("{} cannot be written: {why}", path.display()))
            .hint("name another folder with --to")
    }
}
