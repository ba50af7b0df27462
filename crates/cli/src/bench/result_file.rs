//! The file of the result: where it goes, what it is called, and how it is written.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use inferometer_analysis::sheet::{Sheet, SheetRate};
use inferometer_interchange::export::vllm::{self, FileName, Ramp, Writing, date};

use super::traffic;
use super::whole::Bench;
use crate::arguments::ServeBenchArguments;
use crate::failure::Failure;

#[derive(Debug)]
pub(crate) struct ResultFile {
    folder: PathBuf,
    /// `None` makes a name of the result.
    name: Option<String>,
    append: bool,
    writing: Writing,
}

impl ResultFile {
    /// `None` where no file is wanted. The folder is made now: a measurement whose result cannot be
    /// written would be a loss.
    pub(crate) fn of(said: &ServeBenchArguments, bench: &Bench) -> Result<Option<Self>, Failure> {
        let report = &said.report;
        if !(report.save_result || report.append_result) {
            return Ok(None);
        }
        let folder = report.result_dir.clone().unwrap_or_default();
        if !folder.as_os_str().is_empty() {
            std::fs::create_dir_all(&folder).map_err(|error| {
                Failure::usage(format!("--result-dir {}: {error}", folder.display()))
            })?;
        }
        let asked = &bench.figures.of_block;
        Ok(Some(Self {
            folder,
            name: report.result_filename.clone(),
            append: report.append_result,
            writing: Writing {
                detail: report.save_detailed,
                label: report.label.clone(),
                latencies: Some(asked.latencies.clone()),
                percentiles: Some(asked.percentiles.clone()),
                ramp: ramp(said),
                ..Writing::default()
            },
        }))
    }

    pub(crate) fn write(&self, sheet: &Sheet) -> Result<PathBuf, Failure> {
        let path = self.folder.join(self.name.clone().unwrap_or_else(|| self.name_of(sheet)));
        self.put(sheet, &path).map_err(|why| {
            Failure::usage(format!("the result cannot be written to {}: {why}", path.display()))
                .hint(format!(
                    "the run is stored; inferometer export {} --format vllm writes its figures \
                     elsewhere, with every latency and percentile there is and without --label and \
                     the keys of a ramp",
                    sheet.source.name
                ))
        })?;
        Ok(path)
    }

    fn put(&self, sheet: &Sheet, path: &Path) -> Result<(), String> {
        let said = |error: std::io::Error| error.to_string();
        let line = vllm::line(sheet, &self.writing).map_err(|error| error.to_string())?;
        let mut file = if self.append {
            OpenOptions::new().create(true).append(true).open(path).map_err(said)?
        } else {
            File::create(path).map_err(said)?
        };
        let bytes = file.metadata().map_err(said)?.len();
        file.write_all(vllm::separator(bytes).as_bytes()).map_err(said)?;
        file.write_all(line.as_bytes()).map_err(said)
    }

    fn name_of(&self, sheet: &Sheet) -> String {
        let backend = sheet.backend.as_deref().unwrap_or_default();
        FileName {
            label: self.writing.label.as_deref().unwrap_or(backend),
            rate: sheet.request_rate.unwrap_or(SheetRate::Unlimited),
            ramp: self.writing.ramp.as_ref(),
            max_concurrency: sheet.max_concurrency,
            model: sheet.model.as_deref().unwrap_or_default(),
            date: &date(sheet.started.as_deref().unwrap_or_default()),
        }
        .file_name()
    }
}

fn ramp(said: &ServeBenchArguments) -> Option<Ramp> {
    let rate = |typed: Option<i64>| typed.and_then(|rate| u64::try_from(rate).ok());
    Some(Ramp {
        strategy: traffic::name(said.load.ramp_up_strategy?).to_owned(),
        start_rps: rate(said.load.ramp_up_start_rps)?,
        end_rps: rate(said.load.ramp_up_end_rps)?,
    })
}
