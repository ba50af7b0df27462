//! A profile as a TOML file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Dtype, EngineTable, Gpu, KvCacheDtype, Model, Profile, ProfileError, Quantization};
use crate::physics::{Coefficients, Front};

/// The content of a file; what it leaves out is generic or follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileFile {
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
        let file: Self = toml::from_str(text).map_err(|source| ProfileError::Parse {
            origin: origin.to_owned(),
            source: Box::new(source),
        })?;
        if file.serve.speed.is_some() || file.serve.step.is_some() {
            let error = "`speed` and `step` are options of a run, not of a profile";
            let source = Box::new(serde::de::Error::custom(error));
            return Err(ProfileError::Parse { origin: origin.to_owned(), source });
        }
        if file.serve.profile.is_some() {
            return Err(ProfileError::Nested { origin: origin.to_owned() });
        }
        if file.serve.hardware.is_none() || file.serve.model.is_none() {
            return Err(ProfileError::Incomplete { origin: origin.to_owned() });
        }
        Ok(file)
    }

    pub(super) fn at_path(path: &str) -> Result<Self, ProfileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ProfileError::Read { path: path.to_owned(), source })?;
        Self::read(&text, path)
    }

    pub(super) fn of(profile: &Profile) -> Self {
        let choice = profile.choice().clone();
        Self {
            name: profile.name.clone(),
            description: profile.description.clone(),
            serve: EngineTable {
                profile: None,
                hardware: Some(profile.gpu.name.clone()),
                model: Some(profile.model.name.clone()),
                noise: None,
                speed: None,
                step: None,
                ..choice
            },
            coefficients: *profile.coefficients(),
            front: profile.front,
            fitted: profile.fitted.clone(),
        }
    }

    pub(super) fn write(&self) -> String {
        toml::to_string(self).expect("numbers, words and tables always have a TOML form")
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
            (Dtype::Fp8, Some(_)) => return Err(ProfileError::TwoQuantizations),
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
        let lacks = |what| ProfileError::NoSuchType { gpu: gpu.title.clone(), what };
        match self.quantization {
            Quantization::Fp8 if !gpu.takes_fp8_weights() && model.quantization.is_some() => {
                Err(ProfileError::PublishedInFp8 {
                    gpu: gpu.title.clone(),
                    model: model.title.clone(),
                })
            }
            Quantization::Fp8 if !gpu.takes_fp8_weights() => Err(lacks("fp8")),
            Quantization::Int8 if gpu.flops.int8.is_none() => Err(lacks("int8")),
            _ if self.fp8_kv_cache && gpu.flops.fp8.is_none() => Err(lacks("fp8 (KV cache)")),
            Quantization::None | Quantization::Fp8 | Quantization::Int8 | Quantization::Int4 => {
                Ok(())
            }
        }
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
    pub fn words(self) -> String {
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
        Dtype::Bfloat16 => Err(ProfileError::NoBfloat16 { gpu: gpu.title.clone() }),
        Dtype::Auto | Dtype::Fp8 if has_bf16 && quantization != Quantization::Int4 => {
            Ok(Dtype::Bfloat16)
        }
        Dtype::Half | Dtype::Auto | Dtype::Fp8 => Ok(Dtype::Half),
    }
}
