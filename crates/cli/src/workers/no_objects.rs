//! A program that was built without object stores.

use std::path::{Path, PathBuf};

use inferometer_model::Stripe;
use inferometer_store::RunDirectory;

use crate::failure::{Failure, Result};

#[derive(Debug)]
pub(crate) enum Objects {}

impl Objects {
    pub(crate) fn open(address: &str) -> Result<Self> {
        let what = format!("{address}: this program was built without object stores");
        Err(Failure::usage(what).hint("build it with the feature object-store"))
    }

    pub(crate) fn upload(&self, _: Stripe, _: &RunDirectory) -> Result<()> {
        match *self {}
    }

    pub(crate) fn download(&self, _: &Path) -> Result<Vec<PathBuf>> {
        match *self {}
    }
}
