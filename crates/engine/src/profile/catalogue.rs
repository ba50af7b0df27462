//! The GPUs, models and profiles that are built in, and finding them by name.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use inferometer_model::whole::to_u64;
use serde::{Deserialize, Serialize};

use super::{GIB, ProfileError, ProfileFile, Quantization};
use crate::physics::GRAPHS_MAX;

/// Everything that is built in, by name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Catalogue {
    #[serde(rename = "gpu")]
    pub hardware: Vec<Gpu>,
    #[serde(rename = "model")]
    pub models: Vec<Model>,
    #[serde(skip)]
    pub profiles: Vec<ProfileFile>,
}

/// Files of named profiles; the default one first.
const NAMED: &[&str] = &[
    include_str!("../../profiles/named/h100-llama-3.1-8b.toml"),
    include_str!("../../profiles/named/mi100x4-devstral-24b.toml"),
    include_str!("../../profiles/named/mi300x-mistral-small-24b-v0.toml"),
    include_str!("../../profiles/named/mi300x-mistral-small-24b-v1.toml"),
    include_str!("../../profiles/named/mi300x4-llama-70b.toml"),
];

/// # Panics
///
/// Never: the built-in data are read by tests.
pub fn catalogue() -> &'static Catalogue {
    static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        let tables = concat!(
            include_str!("../../profiles/hardware.toml"),
            "\n",
            include_str!("../../profiles/models.toml"),
        );
        let named = NAMED.iter().map(|text| ProfileFile::read(text, "a built-in profile"));
        Catalogue {
            profiles: named.collect::<Result<_, _>>().expect("tests read the built-in profiles"),
            ..toml::from_str(tables).expect("tests read the built-in hardware and models")
        }
    })
}

/// Hardware and a model of which nothing is known: nothing bounds their steps, the memory holds any model, and any
/// layout divides its layers and heads, which have no size.
#[derive(Debug, Deserialize)]
pub(super) struct Unknown {
    pub(super) gpu: Gpu,
    pub(super) model: Model,
}

/// # Panics
///
/// Never: the built-in data are read by tests.
pub(super) fn unknown() -> Unknown {
    let unknown = toml::from_str(include_str!("../../profiles/unknown.toml"));
    unknown.expect("tests read what stands for unknown hardware")
}

impl Catalogue {
    pub(super) fn gpu(&self, name: &str) -> Result<&Gpu, ProfileError> {
        let known = |gpu: &&Gpu| is(name, &gpu.name) || gpu.aliases.iter().any(|a| is(name, a));
        let names = || self.hardware.iter().map(|gpu| &*gpu.name);
        self.hardware.iter().find(known).ok_or_else(|| not_found("hardware", name, names()))
    }

    pub(super) fn model(&self, name: &str) -> Result<&Model, ProfileError> {
        let known = |model: &&Model| {
            let own = [&model.name, &model.id];
            own.into_iter().chain(&model.aliases).any(|known| is(name, known))
        };
        let names = || self.models.iter().map(|model| &*model.name);
        self.models.iter().find(known).ok_or_else(|| not_found("model", name, names()))
    }

    pub(super) fn profile(&self, name: &str) -> Option<&ProfileFile> {
        self.profiles.iter().find(|profile| is(name, &profile.name))
    }

    pub(super) fn unknown_profile(&self, name: &str) -> ProfileError {
        let combinations = self.hardware.iter().flat_map(|gpu| {
            self.models.iter().map(move |model| format!("{}-{}", gpu.name, model.name))
        });
        let files = self.profiles.iter().map(|profile| profile.name.clone());
        // A file may have the name of the combination that it describes.
        let names: BTreeSet<String> = files.chain(combinations).collect();
        not_found("profile", name, names.iter().map(String::as_str))
    }

    /// The GPU and the model whose names, joined, begin `name`, and what follows them.
    pub(super) fn combination<'n>(&self, name: &'n str) -> Option<(&Gpu, &Model, &'n str)> {
        let split = |gpu: &'_ Gpu| name.strip_prefix(&*gpu.name)?.strip_prefix('-');
        let begins = |rest: &'n str, model: &Model| {
            let suffix = rest.strip_prefix(&*model.name)?;
            (suffix.is_empty() || suffix.starts_with('-')).then_some(suffix)
        };
        let pairs = self.hardware.iter().filter_map(|gpu| Some((gpu, split(gpu)?)));
        pairs
            .flat_map(|(gpu, rest)| {
                self.models.iter().filter_map(move |model| Some((gpu, model, begins(rest, model)?)))
            })
            // `devstral-…-int4` before a model of which that is the name with an ending.
            .min_by_key(|(_, _, suffix)| suffix.len())
    }
}

fn is(typed: &str, name: &str) -> bool {
    typed.eq_ignore_ascii_case(name)
}

fn not_found<'n>(
    kind: &'static str,
    typed: &str,
    known: impl Iterator<Item = &'n str>,
) -> ProfileError {
    let typed_lower = typed.to_ascii_lowercase();
    let likeness = |name: &str| {
        let edits = strsim::normalized_damerau_levenshtein(&typed_lower, name);
        // A part of a name is nearer than its length suggests.
        edits.max(strsim::jaro_winkler(&typed_lower, name) - 0.1)
    };
    let mut names: Vec<(f64, &str)> = known.map(|name| (likeness(name), name)).collect();
    names.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let nearest: Vec<&str> = names.iter().take(3).map(|(_, name)| *name).collect();
    ProfileError::Invalid(format!(
        "unknown {kind} `{typed}`; nearest are {}; `inferometer engine --list` shows all",
        nearest.join(", ")
    ))
}

/// One kind of GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    pub name: String,
    pub title: String,
    /// Where the figures are from; a user's own may be without.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    pub vendor: Vendor,
    #[serde(default)]
    pub aliases: Vec<String>,
    /// What the driver gives to a program.
    pub memory_gib: f64,
    /// Bytes/s.
    pub bandwidth: f64,
    pub flops: Flops,
    /// Weights in fp8 are unpacked to 16 bits where the matrix units have no such type.
    #[serde(default)]
    pub unpacks_fp8: bool,
    /// Above it no batch is captured.
    #[serde(default = "graphs_max")]
    pub graphs_max: u32,
    pub link: Link,
}

fn graphs_max() -> u32 {
    GRAPHS_MAX
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vendor {
    Amd,
    Nvidia,
}

/// Dense operations per second of the matrix units, by type.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flops {
    pub fp16: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bf16: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fp8: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub int8: Option<f64>,
}

/// How GPUs of one server reach each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    pub kind: String,
    /// Bytes/s and direction, over all links of one GPU.
    pub bandwidth: f64,
    pub latency_s: f64,
    /// Neighbours with a link of their own each; none behind a switch or a bus.
    pub mesh_peers: Option<u32>,
}

/// The name of hardware or a model that is not stated.
pub(super) const UNKNOWN: &str = "unknown";

impl Gpu {
    pub(super) fn is_unknown(&self) -> bool {
        self.name == UNKNOWN
    }

    pub fn takes_fp8_weights(&self) -> bool {
        self.unpacks_fp8 || self.flops.fp8.is_some()
    }

    pub fn memory_bytes(&self) -> u64 {
        to_u64(self.memory_gib * GIB)
    }
}

impl Link {
    /// Bytes/s and direction that one GPU of a group of `gpus` has to the others.
    pub fn bandwidth_within(&self, gpus: u32) -> f64 {
        match self.mesh_peers {
            Some(peers) if gpus.saturating_sub(1) < peers => {
                self.bandwidth * f64::from(gpus.saturating_sub(1).max(1)) / f64::from(peers)
            }
            _ => self.bandwidth,
        }
    }
}

/// One model, in the words of its `config.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    pub name: String,
    pub title: String,
    /// On the Hugging Face hub.
    pub id: String,
    /// Where the figures are from; a user's own may be without.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    #[serde(default)]
    pub aliases: Vec<String>,
    /// As published.
    pub parameters: f64,
    /// As published, where a token does not meet all of them.
    pub active_parameters: Option<f64>,
    /// How the weights are published, where that is not 16 bits.
    pub quantization: Option<Quantization>,
    pub layers: u32,
    pub hidden_size: u32,
    pub attention_heads: u32,
    pub kv_heads: u32,
    pub head_dim: u32,
    pub intermediate_size: u32,
    pub vocab_size: u32,
    pub max_position_embeddings: u32,
    #[serde(default)]
    pub tie_word_embeddings: bool,
    pub moe: Option<Moe>,
    pub mla: Option<Mla>,
}

/// A mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moe {
    pub experts: u32,
    pub experts_per_token: u32,
    #[serde(default)]
    pub shared_experts: u32,
    /// Width of one expert.
    pub intermediate_size: u32,
    /// Layers before the first with experts.
    #[serde(default)]
    pub dense_layers: u32,
}

/// Multi-head latent attention: one small latent per token instead of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mla {
    pub q_lora_rank: u32,
    pub kv_lora_rank: u32,
    pub qk_nope_head_dim: u32,
    pub qk_rope_head_dim: u32,
    pub v_head_dim: u32,
}

/// Parameters counted from the architecture, by when they are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// A table: looked up, not multiplied with.
    pub embedding: f64,
    /// The output layer.
    pub head: f64,
    /// Parameters of the layers that every token meets.
    pub dense: f64,
    /// Parameters of all routed experts.
    pub routed: f64,
    /// Parameters of the routed experts that one token meets.
    pub routed_active: f64,
    /// The output layer is the table.
    pub tied: bool,
}

impl Parameters {
    pub fn total(&self) -> f64 {
        self.dense + self.routed + self.vocabulary()
    }

    pub fn active(&self) -> f64 {
        self.dense + self.routed_active + self.vocabulary()
    }

    /// The table and the output layer, once where they are one.
    pub fn vocabulary(&self) -> f64 {
        if self.tied { self.embedding } else { self.embedding + self.head }
    }
}

impl Model {
    pub fn count(&self) -> Parameters {
        let hidden = f64::from(self.hidden_size);
        let table = f64::from(self.vocab_size) * hidden;
        let layers = f64::from(self.layers);
        let everywhere = layers * (self.attention_parameters() + 2.0 * hidden);
        let (mlp, routed, routed_active) = self.mlp_parameters();
        Parameters {
            embedding: table,
            head: table,
            dense: everywhere + mlp,
            routed,
            routed_active,
            tied: self.tie_word_embeddings,
        }
    }

    /// Parameters of the attention of one layer.
    fn attention_parameters(&self) -> f64 {
        let hidden = f64::from(self.hidden_size);
        let heads = f64::from(self.attention_heads);
        let Some(mla) = self.mla else {
            let of_heads = |count: u32| hidden * f64::from(count) * f64::from(self.head_dim);
            return 2.0 * of_heads(self.attention_heads) + 2.0 * of_heads(self.kv_heads);
        };
        let (q_rank, kv_rank) = (f64::from(mla.q_lora_rank), f64::from(mla.kv_lora_rank));
        let (nope, rope) = (f64::from(mla.qk_nope_head_dim), f64::from(mla.qk_rope_head_dim));
        let value = f64::from(mla.v_head_dim);
        hidden * q_rank
            + q_rank * heads * (nope + rope)
            + hidden * (kv_rank + rope)
            + kv_rank * heads * (nope + value)
            + heads * value * hidden
    }

    /// Over all layers: met by every token, of all routed experts, of those that one token meets.
    fn mlp_parameters(&self) -> (f64, f64, f64) {
        let hidden = f64::from(self.hidden_size);
        let dense_layer = 3.0 * hidden * f64::from(self.intermediate_size);
        let layers = f64::from(self.layers);
        let Some(moe) = self.moe else {
            return (layers * dense_layer, 0.0, 0.0);
        };
        let dense_layers = f64::from(moe.dense_layers);
        let sparse_layers = layers - dense_layers;
        let expert = 3.0 * hidden * f64::from(moe.intermediate_size);
        let router = hidden * f64::from(moe.experts);
        let everywhere = dense_layers * dense_layer
            + sparse_layers * (router + f64::from(moe.shared_experts) * expert);
        let of_experts = |count: u32| sparse_layers * f64::from(count) * expert;
        (everywhere, of_experts(moe.experts), of_experts(moe.experts_per_token))
    }

    /// Numbers that one token leaves in the KV cache of one GPU, per layer.
    pub fn kv_numbers(&self, tensor_parallel: u32) -> u32 {
        match self.mla {
            // One latent for all heads, so every GPU of the group holds it.
            Some(mla) => mla.kv_lora_rank + mla.qk_rope_head_dim,
            None => 2 * (self.kv_heads / tensor_parallel.max(1)).max(1) * self.head_dim,
        }
    }

    /// FLOPs of attention between two tokens of a prompt, over all layers and heads.
    pub fn prefill_flops_per_pair(&self) -> f64 {
        let (query, value) = match self.mla {
            Some(mla) => (mla.qk_nope_head_dim + mla.qk_rope_head_dim, mla.v_head_dim),
            None => (self.head_dim, self.head_dim),
        };
        self.pair_flops(query + value)
    }

    /// The same for a decode: latent attention multiplies with the latent itself.
    pub fn decode_flops_per_pair(&self) -> f64 {
        match self.mla {
            Some(mla) => self.pair_flops(2 * mla.kv_lora_rank + mla.qk_rope_head_dim),
            None => self.prefill_flops_per_pair(),
        }
    }

    fn pair_flops(&self, numbers_per_head: u32) -> f64 {
        let heads = f64::from(self.attention_heads) * f64::from(self.layers);
        2.0 * heads * f64::from(numbers_per_head)
    }
}
