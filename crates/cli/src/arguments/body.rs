//! `[workload.body]`: what a request carries beside its prompt.

use std::path::PathBuf;

use clap::Args;
use inferometer_model::spec::{AdapterChoice, PinOutput};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::grammars::ImageSize;
use super::written::{Written, named};

/// What a request carries beside its prompt; what is not set is not sent.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[command(next_help_heading = "What a request carries")]
pub(crate) struct BodyTable {
    /// Sampling temperature
    #[arg(long, value_name = "T")]
    #[schemars(range(min = 0))]
    pub(crate) temperature: Option<f64>,
    /// Nucleus sampling: the share of probability that is drawn from
    #[arg(long, value_name = "P")]
    #[schemars(range(min = 0, max = 1))]
    pub(crate) top_p: Option<f64>,
    /// How many of the likeliest tokens are drawn from; many servers take -1 for all
    #[arg(long, value_name = "K")]
    #[schemars(range(min = -1))]
    pub(crate) top_k: Option<i64>,
    /// Tokens less likely than this share of the likeliest are not drawn
    #[arg(long, value_name = "P")]
    #[schemars(range(min = 0, max = 1))]
    pub(crate) min_p: Option<f64>,
    /// Penalty on tokens by how often they occurred; may be negative
    #[arg(long, value_name = "X")]
    pub(crate) frequency_penalty: Option<f64>,
    /// Penalty on tokens that occurred at all; may be negative
    #[arg(long, value_name = "X")]
    pub(crate) presence_penalty: Option<f64>,
    /// Factor against repetition; 1 is none
    #[arg(long, value_name = "X")]
    pub(crate) repetition_penalty: Option<f64>,
    /// Text that ends an answer; the flag may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) stop: Option<Vec<String>>,
    /// Whether the server is asked to go on until an answer has its length, with `ignore_eos` and
    /// `min_tokens`; auto does where the workload chose the length and the server accepts it
    /// [default: auto]
    #[arg(long, value_name = "WHEN", value_parser = named::<PinOutput>())]
    pub(crate) pin_output: Option<Written<PinOutput>>,
    /// JSON file with a list of tool definitions
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// Pictures of noise that every prompt carries [default: 0]
    #[arg(long, value_name = "N")]
    #[schemars(range(max = 64))]
    pub(crate) images: Option<u32>,
    /// Width and height of each picture [default: 512x512]
    #[arg(long, value_name = "WxH")]
    pub(crate) image_size: Option<Written<ImageSize>>,
    /// `LoRA` adapter to ask for instead of the model; the flag may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) lora: Option<Vec<String>>,
    /// Which adapter a request asks for: round-robin, random, or zipf:EXPONENT, which makes the
    /// first the most popular [default: round-robin]
    #[arg(long, value_name = "HOW")]
    pub(crate) lora_choice: Option<Written<AdapterChoice>>,
    /// Any other fields of the body, as they are sent; on the command line a JSON object
    #[arg(long = "extra-body", value_name = "JSON", value_parser = object)]
    pub(crate) extra: Option<Map<String, Value>>,
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("not a JSON object ({error}); write it as '{{\"field\": 1}}'"))
}
