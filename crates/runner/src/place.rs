//! Where a run is kept: by itself, or as a point of a set.

use std::path::{Path, PathBuf};

use inferometer_model::{BaseUrl, Spec};
use inferometer_store::{NewRun, RunStore, RunWriter, SetDirectory, StoreError};

use crate::deployed;

#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// What was sent before is looked for here.
    store: &'a RunStore,
    point: Option<(&'a SetDirectory, u32)>,
    /// What the server of this run alone says: it goes where the run is.
    server_log: Option<&'a Path>,
}

impl<'a> Place<'a> {
    pub fn alone(store: &'a RunStore) -> Self {
        Self { store, point: None, server_log: None }
    }

    pub fn point(store: &'a RunStore, set: &'a SetDirectory, number: u32) -> Self {
        Self { store, point: Some((set, number)), server_log: None }
    }

    pub fn with_server_log(self, log: &'a Path) -> Self {
        Self { server_log: Some(log), ..self }
    }

    /// Where the words of a restart go, in a set.
    pub fn restart_log(self) -> Option<PathBuf> {
        self.point.map(|(set, _)| set.restart_log())
    }

    /// Where the words of a server go that is put up for this point.
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

    /// Moves aside what was measured of a point, if anything was.
    pub fn abandon(self) -> Result<(), StoreError> {
        match self.point {
            Some((set, number)) if set.point(number).path().exists() => {
                set.abandon(number).map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }

    pub fn create(self, new: NewRun) -> Result<RunWriter, StoreError> {
        let writer = match self.point {
            Some((set, number)) => set.create_point(number, new)?,
            None => self.store.create(new)?,
        };
        if let Some(log) = self.server_log {
            // At once: a run that is killed has its server's words, too.
            deployed::keep_log(log, writer.directory().path());
        }
        Ok(writer)
    }

    pub fn sent_before(
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
