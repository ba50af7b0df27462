//! What the server reported about itself, in a journal beside that of the requests. A run is whole without
//! it: whatever happens to this file, the sums hold and the run is read.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use inferometer_model::Observations;
use inferometer_model::telemetry::{Absence, Machines, Telemetry, TelemetryEntry, gather};

use crate::directory::RunDirectory;
use crate::error::StoreError;
use crate::files;
use crate::journal::JournalReader;
use crate::writer::JournalWriter;

const TELEMETRY_FILE: &str = "telemetry.journal";

/// Appends to a run's telemetry. An entry a second: each goes to the kernel at once.
#[derive(Debug)]
pub struct TelemetryWriter {
    journal: JournalWriter<File, TelemetryEntry>,
    path: PathBuf,
}

impl TelemetryWriter {
    pub fn append(&mut self, entry: &TelemetryEntry) -> Result<(), StoreError> {
        self.journal.append(entry)?;
        self.journal.flush()
    }

    /// Ends the writing: everything is on disk.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.journal.sync()?;
        let path = self.path;
        files::sync_parent(&path).map_err(|error| StoreError::NotDurable { path, error })
    }
}

impl RunDirectory {
    /// Begins the run's telemetry. The journal of its requests is locked, and this file with it.
    pub fn create_telemetry(&self) -> Result<TelemetryWriter, StoreError> {
        let path = self.path().join(TELEMETRY_FILE);
        match File::create_new(&path) {
            Ok(file) => {
                let journal = JournalWriter::of_entries(file, path.clone());
                Ok(TelemetryWriter { journal, path })
            }
            Err(error) => Err(StoreError::Write { path, error }),
        }
    }

    pub(crate) fn with_telemetry(&self, observations: Observations) -> Observations {
        let absent = |absence| (Telemetry::Absent(absence), Machines::default());
        let (telemetry, machines) = match self.telemetry() {
            Ok(entries) => gather(entries),
            Err(StoreError::Read { error, .. }) if error.kind() == ErrorKind::NotFound => {
                let asked = observations.manifest.spec.telemetry.is_some();
                let absence = if asked { Absence::NothingRecorded } else { Absence::NotAsked };
                absent(absence)
            }
            Err(_) => absent(Absence::Unreadable),
        };
        Observations { telemetry, machines, ..observations }
    }

    /// Damaged frames and a torn tail are gaps like any other.
    fn telemetry(&self) -> Result<Vec<TelemetryEntry>, StoreError> {
        let path = self.path().join(TELEMETRY_FILE);
        let file =
            File::open(&path).map_err(|error| StoreError::Read { path: path.clone(), error })?;
        let reader = JournalReader::<File, TelemetryEntry>::of_entries(file, path)?;
        reader.collect()
    }
}
