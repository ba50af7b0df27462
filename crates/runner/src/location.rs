//! Where a run is stored: by itself, or as a point of a set.

use std::path::{Path, PathBuf};

use inferometer_model::{BaseUrl, Spec};
use inferometer_store::{NewRun, RunStore, RunWriter, SetDirectory, StoreError};

use crate::deployed;

/// Where a run is stored.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct RunLocation<'a> {
    /// What was sent before is looked for here.
    store: &'a RunStore,
    point: Option<(&'a SetDirectory, u32)>,
    /// The log of the server of this run alone.
    server_log: Option<&'a Path>,
}

impl<'a> RunLocation<'a> {
    /// A run by itself.
    pub fn in_store(store: &'a RunStore) -> Self {
        Self { store, point: None, server_log: None }
    }

    /// A point of a set.
    pub fn in_set(store: &'a RunStore, set: &'a SetDirectory, number: u32) -> Self {
        Self { store, point: Some((set, number)), server_log: None }
    }

    /// The log of the server that was deployed for this run alone is moved beside it.
    pub fn with_server_log(self, log: &'a Path) -> Self {
        Self { server_log: Some(log), ..self }
    }

    /// The log of restarts, in a set.
    pub fn restart_log(self) -> Option<PathBuf> {
        self.point.map(|(set, _)| set.restart_log())
    }

    /// The log of a server that is deployed for this point.
    pub fn deployment_log(self, condition: u32, repetition: u32) -> PathBuf {
        match self.point {
            Some((set, _)) => set.deployment_log(condition, repetition),
            None => self.store.path().join("server.log"),
        }
    }

    /// The set that it is a point of.
    pub fn set(self) -> Option<&'a SetDirectory> {
        self.point.map(|(set, _)| set)
    }

    /// Moves what was measured of a point aside, if anything was.
    pub fn abandon(self) -> Result<(), StoreError> {
        match self.point {
            Some((set, number)) if set.point(number).path().exists() => {
                set.abandon(number).map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Creates the directory of the run.
    pub(crate) fn create(self, new: NewRun) -> Result<RunWriter, StoreError> {
        let writer = match self.point {
            Some((set, number)) => set.create_point(number, new)?,
            None => self.store.create(new)?,
        };
        if let Some(log) = self.server_log {
            // At once: a run that is killed has its server's log, too.
            deployed::keep_log(log, writer.directory().path());
        }
        Ok(writer)
    }

    /// The last stored run that sent the same requests to the same server, if there is one.
    pub(crate) fn sent_before(
        self,
        spec: &Spec,
        plan: &str,
        base: &BaseUrl,
        model: &str,
        now_ns: u64,
    ) -> Option<String> {
        self.store.sent_before(spec, plan, base, model, now_ns)
    }
}
