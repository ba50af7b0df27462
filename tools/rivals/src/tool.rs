//! The tools that are compared, what they are asked to do, and what they say of it.

use std::path::PathBuf;

use serde::Serialize;

use super::bench::Bench;
use super::program::{Run, last_words, run};
use super::tools::{aiperf, guidellm, ours, vllm, wrk};

/// To add a tool: a variant, its names here, and a module in `tools/` with `arguments` and
/// `report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tool {
    Ours,
    /// An earlier build of ours, to compare with.
    Before,
    Wrk,
    Vllm,
    /// The same command, rewritten in Rust; it comes in the same package.
    VllmRs,
    Guidellm,
    Aiperf,
}

/// Requests of one shape, sent so that a number of them is always in flight.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Names the folder that a tool runs in.
    pub(crate) label: String,
    pub(crate) url: String,
    pub(crate) model: &'static str,
    pub(crate) concurrency: u32,
    pub(crate) extent: Extent,
    pub(crate) output_tokens: u32,
    pub(crate) streamed: bool,
    /// Further words for our own client.
    pub(crate) flags: Vec<String>,
}

/// When a load is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Requests(u32),
    Seconds(u32),
}

impl Extent {
    /// Three of the tools cannot stop by time, or stop badly.
    pub(crate) fn requests(self) -> Result<u32, String> {
        match self {
            Self::Requests(requests) => Ok(requests),
            Self::Seconds(_) => Err("stops by count only".to_owned()),
        }
    }
}

/// How a tool is kept busy for a few seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Timed,
    /// It stops by count only and is quick.
    ManyRequests,
    /// It is so slow that many requests would take minutes.
    FewRequests,
}

/// What a tool says about its own run. A value that it does not give is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Report {
    pub(crate) completed: Option<f64>,
    pub(crate) failed: Option<f64>,
    pub(crate) requests_per_s: Option<f64>,
    pub(crate) tokens_per_s: Option<f64>,
    pub(crate) ttft_ms: Option<Percentiles>,
    pub(crate) itl_ms: Option<Percentiles>,
    pub(crate) send_lag_ms: Option<Percentiles>,
    /// Of all its threads, while requests were in flight.
    pub(crate) cpu_us_per_token: Option<f64>,
    /// Tokens that one read brought, on average: a client that reads sooner gets fewer.
    pub(crate) tokens_per_read: Option<f64>,
    /// What the reader of the row has to know.
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// What came of one run of one tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub(crate) enum Outcome {
    Measured(Report),
    NotInstalled { remedy: String },
    Failed { why: String },
}

/// What a tool means by the time between tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GapMeaning {
    /// Every gap of every answer is one value.
    EachGap,
    /// Every answer is one value, the mean of its gaps.
    MeanOfAnswer,
}

impl Tool {
    pub(crate) const ALL: [Self; 7] = [
        Self::Ours,
        Self::Before,
        Self::Wrk,
        Self::VllmRs,
        Self::Vllm,
        Self::Aiperf,
        Self::Guidellm,
    ];

    /// On the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Before => "before",
            Self::Wrk => "wrk",
            Self::Vllm => "vllm",
            Self::VllmRs => "vllm-rs",
            Self::Guidellm => "guidellm",
            Self::Aiperf => "aiperf",
        }
    }

    /// In the tables.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Ours => "Inferometer",
            Self::Before => "Inferometer, earlier build",
            Self::Wrk => "wrk",
            Self::Vllm => "vllm bench serve",
            Self::VllmRs => "vllm bench serve (Rust)",
            Self::Guidellm => "GuideLLM",
            Self::Aiperf => "AIPerf",
        }
    }

    /// The Python package that it comes in, if it comes in one.
    pub(crate) fn package(self) -> Option<&'static str> {
        match self {
            Self::Ours | Self::Before | Self::Wrk => None,
            Self::Vllm | Self::VllmRs => Some("vllm"),
            Self::Guidellm => Some("guidellm"),
            Self::Aiperf => Some("aiperf"),
        }
    }

    pub(crate) fn pace(self) -> Pace {
        match self {
            Self::Ours | Self::Before | Self::Wrk => Pace::Timed,
            Self::VllmRs => Pace::ManyRequests,
            Self::Vllm | Self::Guidellm | Self::Aiperf => Pace::FewRequests,
        }
    }

    pub(crate) fn program(self, bench: &Bench) -> PathBuf {
        match self {
            Self::Ours => bench.binary.clone(),
            Self::Before => bench.before.clone().unwrap_or_default(),
            Self::Wrk => "wrk".into(),
            Self::VllmRs => bench.in_package("vllm", "vllm/vllm-rs").unwrap_or_default(),
            Self::Vllm => bench.environment("vllm").join("bin/vllm"),
            Self::Guidellm => bench.environment("guidellm").join("bin/guidellm"),
            Self::Aiperf => bench.environment("aiperf").join("bin/aiperf"),
        }
    }

    /// Which release runs, or how to get one.
    pub(crate) fn version(self, bench: &Bench) -> Result<String, String> {
        match self {
            Self::Ours | Self::Before => ours::version(&self.program(bench)),
            Self::Wrk => wrk::version(),
            Self::Vllm | Self::VllmRs | Self::Guidellm | Self::Aiperf => {
                bench.package_version(self)
            }
        }
    }

    pub(crate) fn gap_meaning(self) -> GapMeaning {
        match self {
            Self::Ours | Self::Before | Self::Wrk | Self::Vllm | Self::VllmRs | Self::Aiperf => {
                GapMeaning::EachGap
            }
            Self::Guidellm => GapMeaning::MeanOfAnswer,
        }
    }

    /// Runs the tool once, to its end or to the time limit.
    pub(crate) fn measure(self, load: &Load, bench: &Bench) -> Outcome {
        if let Err(remedy) = self.version(bench) {
            return Outcome::NotInstalled { remedy };
        }
        let reported = bench.folder_for(self, load).and_then(|folder| {
            let arguments = match self {
                Self::Ours | Self::Before => Ok(ours::arguments(load)),
                Self::Wrk => wrk::arguments(load, &folder),
                Self::Vllm | Self::VllmRs => vllm::arguments(load, bench),
                Self::Guidellm => guidellm::arguments(load, bench, &folder),
                Self::Aiperf => aiperf::arguments(load),
            }?;
            let run = run(&self.program(bench), &arguments, &folder, bench)?;
            self.report(load, &run).map_err(|why| format!("{why}: {}", last_words(&run)))
        });
        reported.map_or_else(|why| Outcome::Failed { why }, Outcome::Measured)
    }

    fn report(self, load: &Load, run: &Run) -> Result<Report, String> {
        match self {
            // A run that is not valid ends with a status of its own and is a document all the same.
            Self::Ours | Self::Before => ours::report(run),
            Self::Wrk => run.succeeded().and_then(|()| wrk::report(load, run)),
            Self::Vllm | Self::VllmRs => run.succeeded().and_then(|()| vllm::report(load, run)),
            Self::Guidellm => run.succeeded().and_then(|()| guidellm::report(run)),
            Self::Aiperf => run.succeeded().and_then(|()| aiperf::report(run)),
        }
    }
}

impl Outcome {
    pub(crate) fn report(&self) -> Option<&Report> {
        match self {
            Self::Measured(report) => Some(report),
            Self::NotInstalled { .. } | Self::Failed { .. } => None,
        }
    }

    /// For the last cell of a row.
    pub(crate) fn notes(&self) -> Vec<String> {
        match self {
            Self::Measured(report) => report.notes.clone(),
            Self::NotInstalled { remedy } => vec![remedy.clone()],
            Self::Failed { why } => vec![why.clone()],
        }
    }
}

impl Report {
    /// Says so where a tool counted failures; they would flatter its throughput.
    pub(crate) fn with_failures_noted(mut self) -> Self {
        if let Some(failed) = self.failed.filter(|&failed| 0.0 < failed) {
            self.notes.push(format!("{failed} requests failed"));
        }
        self
    }
}
