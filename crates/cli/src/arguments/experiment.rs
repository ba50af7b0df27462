//! The flags of an experiment: an experiment file, single values, and the tables as flags.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use inferometer_model::spec::Slo;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::deploy::DeployTable;
use super::embedded::EngineTable;
use super::load::LoadTable;
use super::sweep::SweepTable;
use super::target::{ClientTable, LimitTable, RepeatTable, TargetTable};
use super::workload::WorkloadTable;

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
    #[arg(long = "header", value_name = "HEADER", help_heading = "Who is asked")]
    pub(crate) headers: Vec<String>,
    /// Ask for whole answers instead of streams
    #[arg(long, conflicts_with = "stream", help_heading = "What is asked")]
    pub(crate) no_stream: bool,
    /// Promise to judge by, such as ttft<500ms of each request or ttft.p99<1s of the run; may be
    /// repeated
    #[arg(long = "slo", value_name = "PROMISE", help_heading = "What is promised")]
    pub(crate) promises: Vec<Slo>,
    /// Fact to store with the results, as key=value; may be repeated
    #[arg(long = "metadata", value_name = "K=V", help_heading = "Results")]
    pub(crate) facts: Vec<String>,
}

/// An Inferometer experiment: what is asked of which server, when, and what was promised.
#[derive(Args, Clone, Debug, Default, JsonSchema, Serialize)]
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
    pub(crate) slo: SloTable,
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
    pub(crate) metadata: MetadataTable,
}

/// Promises in both of their forms, in the order of their keys.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct SloTable(pub(crate) BTreeMap<String, Value>);

impl JsonSchema for SloTable {
    fn schema_name() -> Cow<'static, str> {
        "Slo".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "What the service promises. A key is a metric, alone (of each request) \
                or with a statistic (of the run), and its value the limit: `ttft = \"500ms\"`, \
                `ttft.p99 = \"1s\"`; a limit from below is written \">1000\".",
            "properties": {
                "promises": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Promises in one piece, such as \"ttft<500ms\" or \
                        \"ttft.p99<1s\"",
                },
            },
            "additionalProperties": {
                "type": ["number", "string", "object"],
                "additionalProperties": { "type": ["number", "string"] },
            },
        })
    }
}

/// Facts to store with the results.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct MetadataTable(pub(crate) BTreeMap<String, Value>);

impl JsonSchema for MetadataTable {
    fn schema_name() -> Cow<'static, str> {
        "Metadata".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Facts to store with the results: any keys, with text, numbers or truth \
                values",
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        })
    }
}
