//! A profile as a TOML file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Dtype, EngineTable, Gpu, KvCacheDtype, Model, ProfileError, Quantization};
use crate::physics::{Coefficients, Front};

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

impl ProfileFile {
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
        } else if serve.hardware.is_none() || serve.model.is_none() {
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
        let numbers = Self {
            dtype: dtype(asked, quantization, gpu)?,
            quantization,
            fp8_kv_cache: choice
                .kv_cache_dtype
                .as_ref()
                .is_some_and(|it| it.value == KvCacheDtype::Fp8),
        };
        numbers.check(gpu, model)?;
        Ok(numbers)
    }

    fn check(self, gpu: &Gpu, model: &Model) -> Result<(), ProfileError> {
        let lacks = |what| {
            let remedy = "use --quantization int4, or none";
            format!("{} cannot multiply in {what}; {remedy}", gpu.title)
        };
        let mistake = match self.quantization {
            Quantization::Fp8 if !gpu.takes_fp8_weights() && model.quantization.is_some() => {
                let (model, gpu) = (&model.title, &gpu.title);
                format!(
                    "{model} is published in fp8, which {gpu} cannot multiply in; use \
                     --quantization int4, or none"
                )
            }
            Quantization::Fp8 if !gpu.takes_fp8_weights() => lacks("fp8"),
            Quantization::Int8 if gpu.flops.int8.is_none() => lacks("int8"),
            _ if self.fp8_kv_cache && gpu.flops.fp8.is_none() => lacks("fp8 (KV cache)"),
            Quantization::None | Quantization::Fp8 | Quantization::Int8 | Quantization::Int4 => {
                return Ok(());
            }
        };
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
        let weights = match self.quantization {
            Quantization::None => "",
            Quantization::Fp8 => ", fp8 weights",
            Quantization::Int8 => ", int8 weights",
            Quantization::Int4 => ", int4 weights",
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
