//! What there is to choose from.

use super::catalogue::catalogue;
use super::{Gpu, Model};

/// All that is built in, for tables.
#[derive(Clone, Debug)]
pub struct Listing {
    pub profiles: Vec<ProfileRow>,
    pub hardware: &'static [Gpu],
    pub models: &'static [Model],
}

/// One named profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileRow {
    pub name: &'static str,
    pub description: Option<&'static str>,
    pub hardware: &'static str,
    pub model: &'static str,
    pub tp: u32,
    pub pp: u32,
    /// What it was fitted to; none where its coefficients are generic.
    pub fitted: Option<&'static str>,
}

pub fn list() -> Listing {
    let known = catalogue();
    let profiles = known
        .profiles
        .iter()
        .map(|file| ProfileRow {
            name: &file.name,
            description: file.description.as_deref(),
            hardware: file.serve.hardware.as_deref().unwrap_or_default(),
            model: file.serve.model.as_deref().unwrap_or_default(),
            tp: file.serve.tp.unwrap_or(1),
            pp: file.serve.pp.unwrap_or(1),
            fitted: file.fitted.as_ref().map(|fitted| &*fitted.source),
        })
        .collect();
    Listing { profiles, hardware: &known.gpus, models: &known.models }
}
