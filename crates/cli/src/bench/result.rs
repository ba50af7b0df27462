//! The figures that `vllm bench serve` prints, and the file of its result.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use inferometer_analysis::definitions::vllm::Rank;
use inferometer_analysis::tool_result::{LatencyKind, ToolResult};
use inferometer_interchange::vllm::block::{BlockOptions, Labels};
use inferometer_interchange::vllm::{self, Ramp, Writing};
use inferometer_model::spec::Slo;

use crate::arguments::{ServeBenchArguments, ServeReportArguments};
use crate::failure::{Failure, Result};

#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) of_block: BlockOptions,
    /// The limits of a good request as SLOs, one for each latency.
    pub(crate) slos: Vec<Slo>,
}

/// Latencies with the time that a request waits for `--max-concurrency`.
const OF_QUEUE: [&str; 2] = ["client_queue_time", "e2el_including_client_queue"];

impl Figures {
    /// Where nothing is generated there is one latency only.
    pub(super) fn from_arguments(typed: &ServeReportArguments, generates: bool) -> Result<Self> {
        let default = if generates { "ttft,tpot,itl" } else { "e2el" };
        let names = typed.percentile_metrics.as_deref().unwrap_or(default);
        let latency = |name: &str| match vllm::latency_kind(name.trim()) {
            Some(kind) => Ok(kind),
            None if OF_QUEUE.contains(&name.trim()) => Err(Failure::usage(format!(
                "--percentile-metrics {name} cannot be honoured: the block has no such section"
            ))
            .hint("leave it out; the page of --definitions both counts from the schedule")),
            None => Err(Failure::usage(format!(
                "--percentile-metrics {names}: `{name}` is none of ttft, tpot, itl and e2el"
            ))),
        };
        let latencies = names.split(',').map(latency).collect::<Result<Vec<_>, _>>()?;
        let ranks = typed.metric_percentiles.as_deref().unwrap_or("99");
        let percentile = |rank: &str| {
            Rank::parse(rank).map(|rank| rank.name).ok_or_else(|| {
                Failure::usage(format!(
                    "--metric-percentiles {ranks}: `{rank}` is not from 0 to 100"
                ))
            })
        };
        let percentiles = ranks.split(',').map(percentile).collect::<Result<Vec<_>, _>>()?;
        let limit = |text: &str| {
            let (name, ms) = text.split_once(':')?;
            let ms: f64 = ms.trim().parse().ok().filter(|ms: &f64| ms.is_finite() && 0.0 <= *ms)?;
            let kind = vllm::latency_kind(name.trim()).filter(|kind| *kind != LatencyKind::Itl)?;
            format!("{}<={ms}ms", kind.name().to_lowercase()).parse::<Slo>().ok()
        };
        let mut slos: Vec<Slo> = Vec::new();
        for text in &typed.goodput {
            let slo = limit(text).ok_or_else(|| {
                Failure::usage(format!(
                    "--goodput {text}: write milliseconds of ttft, tpot or e2el, such as ttft:500"
                ))
            })?;
            // The last limit of a latency counts, as in vLLM.
            slos.retain(|known| known.metric != slo.metric);
            slos.push(slo);
        }
        Ok(Self { of_block: BlockOptions { labels: Labels::New, latencies, percentiles }, slos })
    }
}

#[derive(Debug)]
pub(crate) struct ResultFile {
    folder: PathBuf,
    /// `None` makes a name of the result.
    name: Option<String>,
    append: bool,
    writing: Writing,
}

impl ResultFile {
    /// `None` where no file is requested. The folder is made before the measurement, whose result
    /// could not be written otherwise.
    pub(crate) fn from_arguments(
        typed: &ServeBenchArguments,
        figures: &Figures,
    ) -> Result<Option<Self>> {
        let report = &typed.report;
        if !(report.save_result || report.append_result) {
            return Ok(None);
        }
        let folder = report.result_dir.clone().unwrap_or_default();
        if !folder.as_os_str().is_empty() {
            fs::create_dir_all(&folder).map_err(|error| {
                Failure::usage(format!("--result-dir {}: {error}", folder.display()))
            })?;
        }
        let rate = |typed: Option<i64>| typed.and_then(|rate| u64::try_from(rate).ok());
        let ramp = || {
            Some(Ramp {
                strategy: typed.load.ramp_up_strategy?.to_string(),
                start_rps: rate(typed.load.ramp_up_start_rps)?,
                end_rps: rate(typed.load.ramp_up_end_rps)?,
            })
        };
        let writing = Writing {
            detail: report.save_detailed,
            label: report.label.clone(),
            latencies: Some(figures.of_block.latencies.clone()),
            percentiles: Some(figures.of_block.percentiles.clone()),
            ramp: ramp(),
            ..Writing::default()
        };
        let (name, append) = (report.result_filename.clone(), report.append_result);
        Ok(Some(Self { folder, name, append, writing }))
    }

    pub(crate) fn write(&self, result: &ToolResult) -> Result<PathBuf> {
        let label = self.writing.label.as_deref().or(result.backend.as_deref()).unwrap_or_default();
        let name = || vllm::file_name(result, label, self.writing.ramp.as_ref());
        let path = self.folder.join(self.name.clone().unwrap_or_else(name));
        let write = || -> Result<(), Box<dyn std::error::Error>> {
            let line = vllm::line(result, &self.writing)?;
            let mut file = if self.append {
                OpenOptions::new().create(true).append(true).open(&path)?
            } else {
                File::create(&path)?
            };
            let before = vllm::separator(file.metadata()?.len());
            Ok(file.write_all(format!("{before}{line}").as_bytes())?)
        };
        write().map_err(|why| {
            Failure::usage(format!("the result cannot be written to {}: {why}", path.display()))
                .hint(format!(
                    "the run is stored; write it with: inferometer export {} --format vllm --to FILE",
                    result.source.name
                ))
        })?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::flag;

    #[derive(Parser)]
    #[command(mut_args(flag))]
    struct Typed {
        #[command(flatten)]
        report: ServeReportArguments,
    }

    fn figures(typed: &str, generates: bool) -> Result<Figures, String> {
        let words = std::iter::once("bench").chain(typed.split_whitespace());
        let typed = Typed::try_parse_from(words).unwrap().report;
        Figures::from_arguments(&typed, generates).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn what_is_not_said_is_as_there() {
        let found = figures("", true).unwrap();
        assert_eq!(
            found.of_block.latencies,
            [LatencyKind::Ttft, LatencyKind::Tpot, LatencyKind::Itl]
        );
        assert_eq!(found.of_block.percentiles, ["99"]);
        assert!(found.slos.is_empty());
        assert_eq!(figures("", false).unwrap().of_block.latencies, [LatencyKind::E2e]);
    }

    #[test]
    fn lists_and_limits_are_read_and_nonsense_is_refused() {
        let typed = "--percentile-metrics e2el,ttft --metric-percentiles 50,99.9,99.0 \
                     --goodput ttft:9 ttft:500 e2el:1500.5";
        let found = figures(typed, true).unwrap();
        assert_eq!(found.of_block.percentiles, ["50", "99.9", "99"]);
        let slos: Vec<String> = found.slos.iter().map(ToString::to_string).collect();
        assert_eq!(slos, ["ttft<=500ms", "e2e<=1500.5ms"]);
        for queue in OF_QUEUE {
            let wrong = figures(&format!("--percentile-metrics ttft,{queue}"), true).unwrap_err();
            assert!(wrong.contains(queue) && wrong.contains("--definitions"), "{wrong}");
        }
        for wrong in [
            "--percentile-metrics latency",
            "--metric-percentiles 101",
            "--metric-percentiles x",
            "--goodput itl:5",
            "--goodput ttft=5",
            "--goodput ttft:-1",
        ] {
            assert!(figures(wrong, true).is_err(), "{wrong}");
        }
    }
}
