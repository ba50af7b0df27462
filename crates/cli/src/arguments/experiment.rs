//! The flags of an experiment: an experiment file, single values, and the tables as flags.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use inferometer_model::spec::{
    ClientTable, EngineTable, LimitTable, LoadTable, Slo, TargetTable, Time, WorkloadTable, Written,
};
use inferometer_model::study::StopAt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::study::SweepTable;
use crate::draft::deploy::DeployTable;

/// Everything that says what is measured; `run`, `plan` and `check` take the same.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ExperimentArguments {
    /// Base URL of the server, such as `http://localhost:8000` (with or without a path prefix, with
    /// or without /v1), or an experiment file; without it the embedded engine is measured
    #[arg(value_name = "URL|FILE")]
    pub(crate) place: Option<String>,
    /// Experiment file, in TOML, whose values the other flags override; see `inferometer schema`. Or
    /// the name of a built-in one: r3, the load of the matrix r3
    #[arg(short, long, value_name = "FILE|NAME")]
    pub(crate) experiment: Option<PathBuf>,
    /// Value of the experiment file to override, such as workload.mix.0.weight=2; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    #[command(flatten)]
    pub(crate) tables: Experiment,
    /// Extra header of every request, as "Name: value"; values are never stored
    #[arg(long = "header", value_name = "HEADER", help_heading = "Target")]
    pub(crate) headers: Vec<String>,
    /// Ask for whole answers instead of streams
    #[arg(long, conflicts_with = "stream", help_heading = "Workload")]
    pub(crate) no_stream: bool,
    /// SLO to judge by, such as ttft<500ms of each request or ttft.p99<1s of the run; may be
    /// repeated
    #[arg(long = "slo", value_name = "SLO", help_heading = "SLOs")]
    pub(crate) promises: Vec<Slo>,
    /// Fact to store with the results, as key=value; may be repeated
    #[arg(long = "metadata", value_name = "K=V", help_heading = "Results")]
    pub(crate) facts: Vec<String>,
}

/// An Inferometer experiment: what is asked of which server, when, and what was promised.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default)]
pub(crate) struct Experiment {
    #[command(flatten)]
    pub(crate) target: TargetTable,
    #[command(flatten)]
    pub(crate) engine: EngineTable,
    #[command(flatten)]
    pub(crate) deploy: DeployTable,
    #[command(flatten)]
    pub(crate) workload: WorkloadTable,
    #[command(flatten)]
    pub(crate) load: LoadTable,
    #[arg(skip)]
    #[schemars(schema_with = "slo_schema")]
    pub(crate) slo: BTreeMap<String, Value>,
    #[command(flatten)]
    pub(crate) repeat: RepeatTable,
    /// Flags of the command `sweep` alone; `run` measures the one load of `[load]`.
    #[arg(skip)]
    pub(crate) sweep: SweepTable,
    #[command(flatten)]
    pub(crate) client: ClientTable,
    #[command(flatten)]
    pub(crate) limits: LimitTable,
    #[arg(skip)]
    #[schemars(schema_with = "metadata_schema")]
    pub(crate) metadata: BTreeMap<String, Value>,
}

/// How often the measurement is repeated.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "Repetition")]
pub(crate) struct RepeatTable {
    /// Measure this many times, one after the other, each with the next seed [default: 1]
    #[arg(long = "repeat", value_name = "N", value_parser = runs)]
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) runs: Option<u32>,
    /// Pause between those runs, such as 60s [default: none]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) cool_down: Option<Time>,
    /// Command that restarts the server, by `sh`, before each run but the first
    #[arg(long, value_name = "COMMAND")]
    pub(crate) restart: Option<String>,
    /// How long it may take until the server answers again [default: 10m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) restart_timeout: Option<Time>,
    /// End early when the runs agree this well, such as `output_throughput=2%`: half of the
    /// 95 % confidence interval of the mean, as a share of it
    #[arg(long, value_name = "QUANTITY=SHARE")]
    pub(crate) stop_at: Option<Written<StopAt>>,
}

/// A number out of range is refused later, with the same message as in a file.
fn runs(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "write a number from 1 to 1000".to_owned())
}

/// SLOs in both of their forms.
fn slo_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "SLOs of the service. A key is a metric, alone (of each request) \
            or with a statistic (of the run), and its value the threshold: `ttft = \"500ms\"`, \
            `ttft.p99 = \"1s\"`; a lower threshold is written \">1000\".",
        "properties": {
            "promises": {
                "type": "array",
                "items": { "type": "string" },
                "description": "SLOs as one text, such as \"ttft<500ms\" or \"ttft.p99<1s\"",
            },
        },
        "additionalProperties": {
            "type": ["number", "string", "object"],
            "additionalProperties": { "type": ["number", "string"] },
        },
    })
}

fn metadata_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "description": "Facts to store with the results: any keys, with text, numbers or truth \
            values",
        "additionalProperties": { "type": ["string", "number", "boolean"] },
    })
}
