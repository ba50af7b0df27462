//! From a choice to a profile: profiles as TOML files, the types of numbers, how a GPU's memory is
//! divided, and how many KV blocks are left.

use std::collections::BTreeMap;
use std::io::Read as _;

use inferometer_model::variant_name;
use inferometer_model::whole::to_u32;
use serde::{Deserialize, Serialize};

use super::catalogue::{catalogue, unknown};
use super::{
    DEFAULT, Dtype, EngineGeneration, EngineTable, GIB, Gpu, KvCacheDtype, MIB, Model, Profile,
    ProfileError, Quantization, SchedulingPolicy, Shortage,
};
use crate::physics::law::StepLaw;
use crate::physics::{Coefficients, Front, Machine};
use crate::scheduler::{DRAFT_TOKENS_MAX, Generation, Policy, SchedulerConfig, Speculation};

/// Most GPUs of a tensor-parallel group that a remedy proposes.
const REMEDY_TP_MAX: u32 = 16;
/// Smallest context that is worth proposing.
const REMEDY_LEN_MIN: u32 = 256;

/// The file behind a profile's name.
pub(super) fn base(name: Option<&str>) -> Result<ProfileFile, ProfileError> {
    let name = name.unwrap_or(DEFAULT);
    let known = catalogue();
    if let Some(file) = known.profile(name) {
        return Ok(file.clone());
    }
    let is_file = std::path::Path::new(name).extension().is_some_and(|end| end == "toml");
    if is_file || name.contains('/') {
        let unreadable = |source| ProfileError::Read { path: name.to_owned(), source };
        let mut text = String::new();
        // A profile has a few kilobytes; a device has no end.
        let file = std::fs::File::open(name).map_err(unreadable)?;
        file.take(1 << 20).read_to_string(&mut text).map_err(unreadable)?;
        return ProfileFile::read(&text, name);
    }
    combination(name).ok_or_else(|| known.unknown_profile(name))
}

/// Reads a name back that [`composed_name`] made.
fn combination(name: &str) -> Option<ProfileFile> {
    let lower = name.to_ascii_lowercase();
    let (gpu, model, suffix) = catalogue().combination(&lower)?;
    let mut serve = EngineTable {
        hardware: Some(gpu.name.clone()),
        model: Some(model.name.clone()),
        ..EngineTable::default()
    };
    for part in suffix.split('-').filter(|part| !part.is_empty()) {
        match (part.strip_prefix("tp"), part.strip_prefix("pp"), part) {
            (Some(tp), _, _) => serve.tp = Some(tp.parse().ok()?),
            (_, Some(pp), _) => serve.pp = Some(pp.parse().ok()?),
            (_, _, "bf16") => serve.quantization = Some(Quantization::None.into()),
            (_, _, quantization) => serve.quantization = Some(quantization.parse().ok()?),
        }
    }
    Some(ProfileFile { name: lower, serve, ..ProfileFile::default() })
}

/// Lays `choice` over a profile's file and builds what comes out.
pub(super) fn over(file: ProfileFile, choice: &EngineTable) -> Result<Profile, ProfileError> {
    let merged = EngineTable { profile: None, ..choice.over(&file.serve) };
    let gpu = &file.named_gpu(merged.hardware.as_deref())?;
    let model = &file.named_model(merged.model.as_deref())?;
    let numbers = Numbers::resolve(&merged, gpu, model)?;
    // Efficiencies are those of kernels on one GPU for one model and type: elsewhere they say
    // nothing.
    let is_own = file.named_gpu(file.serve.hardware.as_deref()).is_ok_and(|own| own == *gpu)
        && file.named_model(file.serve.model.as_deref()).is_ok_and(|own| own == *model)
        && Numbers::resolve(&file.serve, gpu, model).is_ok_and(|own| own == numbers);
    // Whether prompts are chunked is the scheduler's choice, not the law's.
    let chunked = merged.enable_chunked_prefill;
    let served = EngineTable { enable_chunked_prefill: chunked, ..file.serve.clone() };
    if file.law.is_some() && !(is_own && same_settings(&served, &merged)) {
        return Err(ProfileError::Unsupported(format!(
            "the step times of {} were learned from one server: they hold for no other hardware, \
             model, data type, parallelism or generation; change those on the server and learn them \
             again",
            file.name
        )));
    }
    let file =
        if is_own { file } else { ProfileFile { serve: file.serve, ..ProfileFile::default() } };
    build(file, merged, gpu, model, numbers)
}

fn build(
    file: ProfileFile,
    choice: EngineTable,
    gpu: &Gpu,
    model: &Model,
    numbers: Numbers,
) -> Result<Profile, ProfileError> {
    let (tp, pp) = parallel(&choice, model)?;
    let mut scheduler = scheduler(&choice, gpu, model)?;
    let deployment = Deployment {
        gpu,
        model,
        numbers,
        tp,
        pp,
        utilization: utilization(&choice)?,
        eager: choice.enforce_eager.unwrap_or(false),
        scheduler: &scheduler,
    };
    let memory = Memory::divide(&deployment);
    let blocks = match choice.num_gpu_blocks_override {
        // One block is never given away, so a server needs two.
        Some(blocks @ 2..=SETTING_MAX) => blocks,
        Some(blocks) => {
            let range = "2 to 16777216";
            return Err(ProfileError::setting("--num-gpu-blocks-override", blocks, range));
        }
        None if memory.fits() => memory.blocks(),
        None => {
            return Err(ProfileError::DoesNotFit(Box::new(Shortage {
                model: model.title.clone(),
                numbers: numbers.description(),
                gpu: gpu.title.clone(),
                tp,
                pp,
                max_model_len: scheduler.max_model_len,
                remedies: remedies(&deployment, &memory),
                memory,
            })));
        }
    };
    let machine = machine(&deployment);
    scheduler.blocks = blocks;
    let keeps_fit = same_settings(&file.serve, &choice);
    let composed = composed_name(gpu, model, numbers, (tp, pp));
    let own_layout = (file.serve.tp.unwrap_or(1), file.serve.pp.unwrap_or(1)) == (tp, pp);
    let own = own_layout && !file.name.is_empty();
    let (name, description) = if own { (file.name, file.description) } else { (composed, None) };
    let noise = choice.noise.unwrap_or(file.coefficients.noise);
    let coefficients = Coefficients { noise, ..file.coefficients };
    coefficients
        .check()
        .map_err(|error| ProfileError::Invalid(format!("coefficients of {name}: {error}")))?;
    Ok(Profile {
        name,
        description,
        scheduler,
        front: file.front,
        gpu: gpu.clone(),
        model: model.clone(),
        numbers,
        memory,
        fitted: file.fitted.clone().filter(|_| keeps_fit),
        carried: file.fitted.filter(|_| !keeps_fit),
        choice,
        machine,
        coefficients,
        law: file.law,
    })
}

/// Whether a fit with one choice speaks of the other: layout and schedule have their own times.
fn same_settings(own: &EngineTable, other: &EngineTable) -> bool {
    let of = |choice: &EngineTable| {
        let generation = choice.generation.unwrap_or(EngineGeneration::V1);
        let chunked = generation == EngineGeneration::V1;
        (
            choice.tp.unwrap_or(1),
            choice.pp.unwrap_or(1),
            generation,
            choice.enforce_eager.unwrap_or(false),
            choice.enable_chunked_prefill.unwrap_or(chunked),
        )
    };
    of(own) == of(other)
}

fn parallel(choice: &EngineTable, model: &Model) -> Result<(u32, u32), ProfileError> {
    let tp = positive("--tp", choice.tp, 1)?;
    let pp = positive("--pp", choice.pp, 1)?;
    let title = &model.title;
    if let Some((kind, heads)) = indivisible(tp, model) {
        let choices: Vec<String> = (1..=model.attention_heads.min(64))
            .filter(|tp| indivisible(*tp, model).is_none())
            .map(|tp| tp.to_string())
            .collect();
        let choices = choices.join(", ");
        return Err(ProfileError::Layout(format!(
            "--tp {tp} does not divide the {heads} {kind} heads of {title}; choose one of {choices}"
        )));
    }
    if pp > model.layers {
        let layers = model.layers;
        let mistake = format!("--pp {pp} is more than the {layers} layers of {title}");
        return Err(ProfileError::Layout(mistake));
    }
    Ok((tp, pp))
}

/// The heads that `tp` GPUs cannot share. Few KV heads are copied, but evenly.
fn indivisible(tp: u32, model: &Model) -> Option<(&'static str, u32)> {
    let (heads, kv) = (model.attention_heads, model.kv_heads);
    let kv_shared = kv.is_multiple_of(tp) || tp.is_multiple_of(kv);
    if !heads.is_multiple_of(tp) {
        Some(("attention", heads))
    } else if model.mla.is_none() && !kv_shared {
        Some(("key-value", kv))
    } else {
        None
    }
}

fn utilization(choice: &EngineTable) -> Result<f64, ProfileError> {
    match choice.gpu_memory_utilization.unwrap_or(UTILIZATION) {
        share if share > 0.0 && share <= 1.0 => Ok(share),
        share => Err(ProfileError::setting("--gpu-memory-utilization", share, "above 0 up to 1")),
    }
}

fn machine(deployment: &Deployment<'_>) -> Machine {
    let Deployment { gpu, model, numbers, tp, pp, eager, scheduler, .. } = *deployment;
    let count = model.count();
    let weight_bytes = numbers.weight_bytes();
    let kv_numbers = f64::from(model.kv_numbers(tp)) * f64::from(model.layers);
    Machine {
        linear_flops: numbers.linear_flops(gpu),
        attention_flops: numbers.wide_flops(gpu),
        memory_bandwidth: gpu.bandwidth,
        link_bandwidth: gpu.link.bandwidth_within(tp),
        link_latency_s: gpu.link.latency_s,
        tensor_parallel: tp,
        pipeline_parallel: pp,
        layers: model.layers,
        hidden_size: model.hidden_size,
        activation_bytes: 2.0,
        active_parameters: count.dense + count.routed_active,
        head_parameters: count.head,
        dense_bytes: count.dense * weight_bytes + count.head * 2.0,
        routed_bytes: count.routed * weight_bytes,
        experts: model.moe.map_or(0, |moe| moe.experts),
        experts_per_token: model.moe.map_or(0, |moe| moe.experts_per_token),
        kv_bytes_per_token: kv_numbers * f64::from(numbers.kv_bytes()),
        prefill_flops_per_pair: model.prefill_flops_per_pair(),
        decode_flops_per_pair: model.decode_flops_per_pair(),
        graphs_max: if eager {
            0
        } else {
            scheduler.max_num_seqs.saturating_mul(2).min(gpu.graphs_max)
        },
        async_scheduling: scheduler.async_scheduling,
        scheduler_steps: match scheduler.generation {
            Generation::V0 { scheduler_steps } => scheduler_steps,
            Generation::V1 => 1,
        },
    }
}

/// As in `h100-llama-3.1-70b-tp4-fp8`; how the model is published goes without saying.
fn composed_name(gpu: &Gpu, model: &Model, numbers: Numbers, (tp, pp): (u32, u32)) -> String {
    let layout = |flag: &str, gpus: u32| {
        if gpus > 1 { format!("-{flag}{gpus}") } else { String::new() }
    };
    let published = model.quantization.unwrap_or(Quantization::None);
    let own = numbers.quantization;
    let weights = if own == published {
        String::new()
    } else if own == Quantization::None {
        "-bf16".to_owned()
    } else {
        format!("-{}", variant_name(&own))
    };
    format!("{}-{}{}{}{weights}", gpu.name, model.name, layout("tp", tp), layout("pp", pp))
}

/// Flags that would make it fit, each checked by the same arithmetic.
fn remedies(deployment: &Deployment<'_>, memory: &Memory) -> Vec<String> {
    let mut remedies = Vec::new();
    if let Some(longest) = longest_that_fits(deployment, memory) {
        remedies.push(format!("--max-model-len {longest}"));
    }
    let more = (deployment.tp + 1..=REMEDY_TP_MAX)
        .filter(|tp| indivisible(*tp, deployment.model).is_none())
        .find(|tp| Memory::divide(&Deployment { tp: *tp, ..*deployment }).fits());
    remedies.extend(more.map(|tp| format!("--tp {tp}")));
    remedies.extend(narrower_weights(deployment));
    if remedies.is_empty() {
        remedies.push("a GPU with more memory, or more of them with --tp and --pp".to_owned());
    }
    remedies
}

fn longest_that_fits(deployment: &Deployment<'_>, memory: &Memory) -> Option<u32> {
    let longest = memory.blocks().saturating_sub(1) * deployment.scheduler.block_size;
    (longest >= REMEDY_LEN_MIN).then_some(longest)
}

/// The widest weights that fit; where the whole context fits with none, the narrowest and what of it
/// does.
fn narrower_weights(deployment: &Deployment<'_>) -> Option<String> {
    let flags = [("fp8", Quantization::Fp8), ("int4", Quantization::Int4)];
    let with = |quantization| {
        let numbers = Numbers { quantization, ..deployment.numbers };
        Memory::divide(&Deployment { numbers, ..*deployment })
    };
    let now = Memory::divide(deployment).weights;
    let candidates: Vec<(&str, Memory)> = flags
        .into_iter()
        .filter(|(flag, _)| *flag != "fp8" || deployment.gpu.takes_fp8_weights())
        .map(|(flag, quantization)| (flag, with(quantization)))
        .filter(|(_, memory)| memory.weights < now)
        .collect();
    let whole = candidates.iter().find(|(_, memory)| memory.fits());
    let whole = whole.map(|(flag, _)| format!("--quantization {flag}"));
    whole.or_else(|| {
        candidates.iter().rev().find_map(|(flag, memory)| {
            let longest = longest_that_fits(deployment, memory)?;
            Some(format!("--quantization {flag} --max-model-len {longest}"))
        })
    })
}

/// The content of a file; what it leaves out is generic or follows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub serve: EngineTable,
    #[serde(default)]
    pub coefficients: Coefficients,
    #[serde(default)]
    pub front: Front,
    /// A GPU that the catalogue does not have, which `serve.hardware` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// A model that the catalogue does not have, which `serve.model` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// Step times as learned from a server, instead of those that coefficients give.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<StepLaw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fitted: Option<Fitted>,
}

/// Where a profile's coefficients come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fitted {
    /// What was measured, by whom, as a sentence.
    pub source: String,
    /// Rows of data behind the fit.
    pub rows: u32,
    /// Coefficients that were free.
    #[serde(default)]
    pub free: Vec<String>,
    /// Relative error by figure, as in `"rate 5 mean_tpot" = 0.03`.
    #[serde(default)]
    pub residuals: BTreeMap<String, f64>,
    /// The same with the figure's row left out of the fit.
    #[serde(default)]
    pub leave_one_out: BTreeMap<String, f64>,
}

impl Fitted {
    /// The largest error of a figure, such as `ttft_mean_ms`, in rows that were left out of the fit; of
    /// the fitted rows where none was.
    pub fn worst_error(&self, figure: &str) -> Option<f64> {
        let unseen = Some(&self.leave_one_out).filter(|errors| !errors.is_empty());
        let errors = unseen.unwrap_or(&self.residuals).iter();
        let own = errors.filter(|(name, _)| name.rsplit(": ").next() == Some(figure));
        own.map(|(_, error)| error.abs()).reduce(f64::max)
    }

    /// The errors of a figure in rows that were left out of the fit.
    pub fn unseen_errors(&self, figure: &str) -> Vec<f64> {
        let errors = self.leave_one_out.iter();
        let own = errors.filter(|(name, _)| name.rsplit(": ").next() == Some(figure));
        own.map(|(_, error)| *error).collect()
    }
}

impl ProfileFile {
    /// The GPU of this name: the file's own, or one of the catalogue. A law needs none.
    fn named_gpu(&self, name: Option<&str>) -> Result<Gpu, ProfileError> {
        let own = self.gpu.as_ref().filter(|gpu| name == Some(&gpu.name));
        match (own, name) {
            (Some(gpu), _) => Ok(gpu.clone()),
            (None, None) if self.law.is_some() => Ok(unknown().gpu),
            (None, _) => catalogue().gpu(name.unwrap_or_default()).cloned(),
        }
    }

    /// The same of the model.
    fn named_model(&self, name: Option<&str>) -> Result<Model, ProfileError> {
        let own = self.model.as_ref().filter(|model| name == Some(&model.name));
        match (own, name) {
            (Some(model), _) => Ok(model.clone()),
            (None, None) if self.law.is_some() => Ok(unknown().model),
            (None, _) => catalogue().model(name.unwrap_or_default()).cloned(),
        }
    }

    pub(super) fn read(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let no_profile = |why: &dyn std::fmt::Display| format!("{origin} is not a profile: {why}");
        let file: Self =
            toml::from_str(text).map_err(|error| ProfileError::Invalid(no_profile(&error)))?;
        let serve = &file.serve;
        let mistake = if serve.speed.is_some() || serve.step.is_some() {
            no_profile(&"`speed` and `step` are options of a run, not of a profile")
        } else if serve.profile.is_some() {
            format!(
                "a profile's file cannot name another profile; name hardware and model in {origin}"
            )
        } else if let Some(Err(why)) = file.law.as_ref().map(StepLaw::check) {
            no_profile(&why)
        } else if file.law.is_none() && (serve.hardware.is_none() || serve.model.is_none()) {
            format!("{origin} must name `hardware` and `model` in its table [serve]")
        } else {
            return Ok(file);
        };
        Err(ProfileError::Invalid(mistake))
    }
}

/// Types, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// `Half` or `Bfloat16`.
    pub dtype: Dtype,
    pub quantization: Quantization,
    pub fp8_kv_cache: bool,
}

impl Numbers {
    pub(super) fn resolve(
        choice: &EngineTable,
        gpu: &Gpu,
        model: &Model,
    ) -> Result<Self, ProfileError> {
        let asked = choice.dtype.as_ref().map_or(Dtype::Auto, |dtype| dtype.value);
        let published = model.quantization.unwrap_or(Quantization::None);
        let quantization = match (asked, choice.quantization.as_ref().map(|kind| kind.value)) {
            (Dtype::Fp8, None | Some(Quantization::Fp8)) => Quantization::Fp8,
            (Dtype::Fp8, Some(_)) => {
                let mistake = "--dtype fp8 is a quantisation itself; leave out one of --dtype and \
                               --quantization";
                return Err(ProfileError::Unsupported(mistake.to_owned()));
            }
            (_, chosen) => chosen.unwrap_or(published),
        };
        let kv_cache = choice.kv_cache_dtype.as_ref();
        let fp8_kv_cache = kv_cache.is_some_and(|it| it.value == KvCacheDtype::Fp8);
        let numbers = Self { dtype: dtype(asked, quantization, gpu)?, quantization, fp8_kv_cache };
        let what = match quantization {
            Quantization::Fp8 if !gpu.takes_fp8_weights() && model.quantization.is_some() => {
                let (model, gpu) = (&model.title, &gpu.title);
                let mistake = format!(
                    "{model} is published in fp8, which {gpu} cannot multiply in; use \
                     --quantization int4, or none"
                );
                return Err(ProfileError::Unsupported(mistake));
            }
            Quantization::Fp8 if !gpu.takes_fp8_weights() => "fp8",
            Quantization::Int8 if gpu.flops.int8.is_none() => "int8",
            _ if fp8_kv_cache && gpu.flops.fp8.is_none() => "fp8 (KV cache)",
            Quantization::None | Quantization::Fp8 | Quantization::Int8 | Quantization::Int4 => {
                return Ok(numbers);
            }
        };
        let remedy = "use --quantization int4, or none";
        let mistake = format!("{} cannot multiply in {what}; {remedy}", gpu.title);
        Err(ProfileError::Unsupported(mistake))
    }

    /// Bytes of one parameter of a layer. Four bits come with a 16-bit scale and a zero point for
    /// each group of 128.
    pub fn weight_bytes(self) -> f64 {
        match self.quantization {
            Quantization::None => 2.0,
            Quantization::Fp8 | Quantization::Int8 => 1.0,
            Quantization::Int4 => (4.0 + (16.0 + 4.0) / 128.0) / 8.0,
        }
    }

    /// Bytes of one number of the KV cache.
    pub fn kv_bytes(self) -> u32 {
        if self.fp8_kv_cache { 1 } else { 2 }
    }

    /// FLOP/s of 16-bit multiplication.
    pub(super) fn wide_flops(self, gpu: &Gpu) -> f64 {
        match self.dtype {
            Dtype::Bfloat16 => gpu.flops.bf16.unwrap_or(gpu.flops.fp16),
            Dtype::Auto | Dtype::Half | Dtype::Fp8 => gpu.flops.fp16,
        }
    }

    /// FLOP/s of the linear layers. Four-bit weights are unpacked to 16 bits before they multiply,
    /// and so are fp8 ones where the GPU has no such type.
    pub(super) fn linear_flops(self, gpu: &Gpu) -> f64 {
        let narrow = match self.quantization {
            Quantization::Fp8 => gpu.flops.fp8,
            Quantization::Int8 => gpu.flops.int8,
            Quantization::None | Quantization::Int4 => None,
        };
        narrow.unwrap_or_else(|| self.wide_flops(gpu))
    }

    /// As in `bfloat16` or `half, int4 weights, fp8 KV cache`.
    pub fn description(self) -> String {
        let dtype = if self.dtype == Dtype::Bfloat16 { "bfloat16" } else { "half" };
        let weights = if self.quantization == Quantization::None {
            String::new()
        } else {
            format!(", {} weights", variant_name(&self.quantization))
        };
        let cache = if self.fp8_kv_cache { ", fp8 KV cache" } else { "" };
        format!("{dtype}{weights}{cache}")
    }
}

/// All models here are published in bfloat16; `auto` takes half where the GPU has no such type, and
/// for four-bit weights, whose kernels know no other.
fn dtype(asked: Dtype, quantization: Quantization, gpu: &Gpu) -> Result<Dtype, ProfileError> {
    let has_bf16 = gpu.flops.bf16.is_some();
    match asked {
        Dtype::Bfloat16 if has_bf16 => Ok(Dtype::Bfloat16),
        Dtype::Bfloat16 => Err(ProfileError::Unsupported(format!(
            "bfloat16 needs a GPU with such matrix units (compute capability 8.0 or later), which \
             {} is not; use float16 instead: --dtype half",
            gpu.title
        ))),
        Dtype::Auto | Dtype::Fp8 if has_bf16 && quantization != Quantization::Int4 => {
            Ok(Dtype::Bfloat16)
        }
        Dtype::Half | Dtype::Auto | Dtype::Fp8 => Ok(Dtype::Half),
    }
}

/// The share of memory that a server takes unless set otherwise.
pub(super) const UTILIZATION: f64 = 0.92;

/// Memory of one GPU, in bytes; that of the fullest one where they differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// What the driver gives.
    pub total: f64,
    pub utilization: f64,
    /// Total times utilisation.
    pub budget: f64,
    pub weights: f64,
    /// Peak of a step of the greatest size.
    pub activations: f64,
    /// What libraries take in addition to the framework.
    pub other: f64,
    /// Captured decode steps.
    pub graphs: f64,
    /// What is left for the KV cache; below zero where nothing is.
    pub left: f64,
    /// One KV block.
    pub block: f64,
    /// The KV cache of one request of the greatest length, with the block that is never given away.
    pub needed: f64,
}

/// What memory depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deployment<'a> {
    pub gpu: &'a Gpu,
    pub model: &'a Model,
    pub numbers: Numbers,
    pub tp: u32,
    pub pp: u32,
    pub utilization: f64,
    pub eager: bool,
    pub scheduler: &'a SchedulerConfig,
}

impl Memory {
    pub(super) fn divide(deployment: &Deployment<'_>) -> Self {
        let total = deployment.gpu.memory_bytes() as f64;
        let budget = libm::ceil(total * deployment.utilization);
        let Deployment { model, numbers, tp, pp, scheduler, .. } = *deployment;
        // Layers of the longest pipeline stage.
        let layers = f64::from(model.layers.div_ceil(pp));
        let count = model.count();
        let stage = layers / f64::from(model.layers);
        let layer_weights = (count.dense + count.routed) * numbers.weight_bytes() * stage;
        // The table is on the first stage and the output layer on the last; both stay at 16 bits.
        let vocabulary = if pp > 1 { count.embedding } else { count.vocabulary() } * 2.0;
        let weights = (layer_weights + vocabulary) / f64::from(tp);
        let activations = activations(deployment);
        let other = if tp * pp > 1 { 0.6 * GIB } else { 0.15 * GIB };
        // An estimate: all captured sizes take 20 MiB per layer.
        let graphs = if deployment.eager { 0.0 } else { layers * 20.0 * MIB };
        // Bytes that one token takes in the KV cache of one GPU.
        let token = layers * f64::from(model.kv_numbers(tp)) * f64::from(numbers.kv_bytes());
        let block = f64::from(scheduler.block_size) * token;
        let blocks = scheduler.max_model_len.div_ceil(scheduler.block_size);
        Self {
            total,
            utilization: deployment.utilization,
            budget,
            weights,
            activations,
            other,
            graphs,
            left: budget - weights - activations - other - graphs,
            block,
            needed: (f64::from(blocks) + 1.0) * block,
        }
    }

    /// Whether one request of the greatest length can be served.
    pub fn fits(&self) -> bool {
        self.needed <= self.left
    }

    /// KV blocks, with the one that is never given away.
    pub fn blocks(&self) -> u32 {
        to_u32(libm::floor(self.left / self.block))
    }
}

/// An estimate, as no dummy step can be run: what an MLP holds of all tokens at once, or the
/// sampler of all requests, whichever is more.
fn activations(deployment: &Deployment<'_>) -> f64 {
    let (model, tp) = (deployment.model, f64::from(deployment.tp));
    let tokens = f64::from(deployment.scheduler.max_num_batched_tokens);
    let hidden = f64::from(model.hidden_size);
    // Gate and up projection with their product; an expert's, once for each expert of a token.
    let dense = 3.0 * f64::from(model.intermediate_size) / tp;
    let widest = model.moe.map_or(dense, |moe| {
        let expert = 3.0 * f64::from(moe.intermediate_size) / tp + hidden;
        dense.max(f64::from(moe.experts_per_token) * expert)
    });
    // Residual, normed input, queries with keys and values, output.
    let forward = tokens * (widest + 6.0 * hidden) * 2.0;
    // Logits at 16 bits, then twice at 32 for the sampler's sort.
    let requests = f64::from(deployment.scheduler.max_num_seqs);
    let sampler = tokens * hidden * 2.0 + requests * f64::from(model.vocab_size) * 10.0;
    forward.max(sampler)
}

/// Above it steps and KV blocks do not fit their types; no server is near it.
pub(super) const SETTING_MAX: u32 = 1 << 24;

/// The configuration but for its blocks, which follow from memory.
fn scheduler(
    choice: &EngineTable,
    gpu: &Gpu,
    model: &Model,
) -> Result<SchedulerConfig, ProfileError> {
    let max_model_len = max_model_len(choice, model)?;
    let generation = generation(choice)?;
    let v1 = generation == Generation::V1;
    let chunked = choice.enable_chunked_prefill.unwrap_or(v1);
    let unsupported = |mistake: String| Err(ProfileError::Unsupported(mistake));
    if chunked && !v1 {
        return unsupported(
            "--enable-chunked-prefill belongs to the newer scheduler: the older one, as it is \
             played here, takes prompts whole; leave out one of it and --generation v0"
                .to_owned(),
        );
    }
    // Tokens and requests of a step, by the GPU's memory.
    let memory = gpu.memory_bytes() as f64;
    let (tokens, seqs) = match () {
        () if !v1 => (2048, 256),
        () if memory >= 160.0 * GIB => (16_384, 1024),
        () if memory >= 70.0 * GIB && !gpu.name.starts_with("a100") => (8192, 1024),
        () => (2048, 256),
    };
    let max_num_seqs = positive("--max-num-seqs", choice.max_num_seqs, seqs)?;
    // Whole prompts need a step that can hold the longest.
    let tokens = if chunked { tokens } else { tokens.max(max_model_len) };
    let most = max_num_seqs.saturating_mul(max_model_len);
    let max_num_batched_tokens =
        positive("--max-num-batched-tokens", choice.max_num_batched_tokens, tokens.min(most))?;
    if !chunked && max_num_batched_tokens < max_model_len {
        return unsupported(format!(
            "--max-num-batched-tokens {max_num_batched_tokens} is less than the {max_model_len} \
             tokens of the longest request, and prompts are not chunked; raise it, lower \
             --max-model-len, or turn chunked prefill on"
        ));
    }
    if choice.max_num_seqs.is_some() && max_num_seqs > max_num_batched_tokens {
        return unsupported(format!(
            "--max-num-seqs {max_num_seqs} is more than --max-num-batched-tokens \
             {max_num_batched_tokens}; each request needs a token of the step"
        ));
    }
    Ok(SchedulerConfig {
        block_size: positive("--block-size", choice.block_size, 16)?,
        max_num_seqs: max_num_seqs.min(max_num_batched_tokens),
        max_num_batched_tokens,
        max_model_len,
        long_prefill_token_threshold: choice.long_prefill_token_threshold.unwrap_or(0),
        chunked_prefill: chunked,
        prefix_caching: choice.enable_prefix_caching.unwrap_or(v1),
        policy: match choice.scheduling_policy {
            Some(SchedulingPolicy::Priority) => Policy::Priority,
            Some(SchedulingPolicy::Fcfs) | None => Policy::Fcfs,
        },
        generation,
        async_scheduling: choice.async_scheduling.unwrap_or(v1),
        pipeline_stages: choice.pp.unwrap_or(1),
        speculation: speculation(choice, v1)?,
        ..SchedulerConfig::default()
    })
}

fn max_model_len(choice: &EngineTable, model: &Model) -> Result<u32, ProfileError> {
    let limit = model.max_position_embeddings;
    let asked = positive("--max-model-len", choice.max_model_len, limit)?;
    if asked <= limit {
        return Ok(asked);
    }
    Err(ProfileError::Unsupported(format!(
        "--max-model-len {asked} is more than the {limit} positions of {}; use at most {limit}",
        model.title
    )))
}

fn generation(choice: &EngineTable) -> Result<Generation, ProfileError> {
    match (choice.generation.unwrap_or(EngineGeneration::V1), choice.num_scheduler_steps) {
        (EngineGeneration::V0, steps) => {
            Ok(Generation::V0 { scheduler_steps: positive("--num-scheduler-steps", steps, 1)? })
        }
        (EngineGeneration::V1, None | Some(1)) => Ok(Generation::V1),
        (EngineGeneration::V1, Some(steps)) => Err(ProfileError::Unsupported(format!(
            "--num-scheduler-steps {steps} belongs to the older scheduler; add --generation v0"
        ))),
    }
}

fn speculation(choice: &EngineTable, v1: bool) -> Result<Option<Speculation>, ProfileError> {
    let refused = |what: &str| Err(ProfileError::Unsupported(what.to_owned()));
    match (choice.num_speculative_tokens.unwrap_or(0), choice.draft_acceptance) {
        (0, None) => Ok(None),
        (0, Some(_)) => refused("--draft-acceptance needs --num-speculative-tokens"),
        (1..=DRAFT_TOKENS_MAX, _) if !v1 => refused(
            "--num-speculative-tokens belongs to the newer scheduler; leave out --generation v0",
        ),
        (1..=DRAFT_TOKENS_MAX, Some(share)) if !(0.0..=1.0).contains(&share) => {
            Err(ProfileError::setting("--draft-acceptance", share, "0 to 1"))
        }
        (tokens @ 1..=DRAFT_TOKENS_MAX, acceptance) => {
            // About what n-gram and small draft models reach.
            Ok(Some(Speculation { tokens, acceptance: acceptance.unwrap_or(0.7) }))
        }
        (tokens, _) => Err(ProfileError::setting("--num-speculative-tokens", tokens, "0 to 16")),
    }
}

fn positive(name: &'static str, asked: Option<u32>, default: u32) -> Result<u32, ProfileError> {
    match asked.unwrap_or(default) {
        value @ 1..=SETTING_MAX => Ok(value),
        value => Err(ProfileError::setting(name, value, "1 to 16777216")),
    }
}
