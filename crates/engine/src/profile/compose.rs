//! From a choice to a profile.

use super::catalogue::catalogue;
use super::file::ProfileFile;
use super::memory::{self, Deployment, Memory, UTILIZATION};
use super::{
    DEFAULT, EngineGeneration, EngineTable, Gpu, Model, Numbers, Profile, ProfileError,
    Quantization, Shortage,
};
use crate::physics::{Coefficients, Machine};
use crate::scheduler::Generation;

/// Most GPUs of a tensor-parallel group that a remedy proposes.
const REMEDY_TP_MAX: u32 = 16;
/// Smallest context that is worth proposing.
const REMEDY_LEN_MIN: u32 = 256;

pub(super) fn profile(choice: &EngineTable) -> Result<Profile, ProfileError> {
    over(base(choice.profile.as_deref())?, choice)
}

/// The file behind a profile's name.
fn base(name: Option<&str>) -> Result<ProfileFile, ProfileError> {
    let name = name.unwrap_or(DEFAULT);
    let known = catalogue();
    if let Some(file) = known.profile(name) {
        return Ok(file.clone());
    }
    let is_file = std::path::Path::new(name).extension().is_some_and(|end| end == "toml");
    if is_file || name.contains('/') {
        let text = std::fs::read_to_string(name)
            .map_err(|source| ProfileError::Read { path: name.to_owned(), source })?;
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
    let known = catalogue();
    let gpu = known.gpu(merged.hardware.as_deref().unwrap_or_default())?;
    let model = known.model(merged.model.as_deref().unwrap_or_default())?;
    let numbers = Numbers::resolve(&merged, gpu, model)?;
    // Efficiencies are those of kernels on one GPU for one model and type: elsewhere they say
    // nothing.
    let own_gpu = known.gpu(file.serve.hardware.as_deref().unwrap_or_default());
    let own_model = known.model(file.serve.model.as_deref().unwrap_or_default());
    let is_own = own_gpu.is_ok_and(|own| own == gpu)
        && own_model.is_ok_and(|own| own == model)
        && Numbers::resolve(&file.serve, gpu, model).is_ok_and(|own| own == numbers);
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
    let mut scheduler = memory::scheduler(&choice, gpu, model)?;
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
        Some(blocks @ 2..=memory::SETTING_MAX) => blocks,
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
    let tp = memory::positive("--tp", choice.tp, 1)?;
    let pp = memory::positive("--pp", choice.pp, 1)?;
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
        asked if asked > 0.0 && asked <= 1.0 => Ok(asked),
        asked => Err(ProfileError::setting("--gpu-memory-utilization", asked, "above 0 up to 1")),
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
    let weights = match numbers.quantization {
        own if own == published => "",
        Quantization::None => "-bf16",
        Quantization::Fp8 => "-fp8",
        Quantization::Int8 => "-int8",
        Quantization::Int4 => "-int4",
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
