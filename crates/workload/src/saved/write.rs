//! Writing a plan into a file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use inferometer_model::observations::Materials;
use inferometer_model::plan::Fingerprints;
use inferometer_model::{Plan, RequestId, Spec};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::line::{End, Last, Line};
use super::sequence::Sequence;
use super::{Header, SCHEMA, SavedPlanError};
use crate::fingerprint::half;

/// Writes a plan, request by request: its length does not matter to the memory.
pub fn save(
    path: &Path,
    spec: &Spec,
    materials: &Materials,
    fingerprints: &Fingerprints,
    plan: &dyn Plan,
) -> Result<(), SavedPlanError> {
    let Some(requests) = plan.bounds().requests else { return Err(SavedPlanError::Endless) };
    if requests == 0 {
        return Err(SavedPlanError::NothingToSave);
    }
    let header = Header {
        schema: SCHEMA.to_owned(),
        api: spec.api,
        workload: spec.workload.clone(),
        load: spec.load.clone(),
        seed: spec.seed,
        bounds: plan.bounds(),
        fingerprints: fingerprints.clone(),
        materials: materials.clone(),
    };
    // Beside its place first: a plan that is cut short must not look like a plan.
    let unfinished = path.with_added_extension(format!("{}.incomplete", std::process::id()));
    let written = write_lines(&unfinished, &header, requests, plan)
        .and_then(|()| std::fs::rename(&unfinished, path).map_err(Unwritten::Unwritable));
    written.map_err(|error| {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&unfinished);
        match error {
            Unwritten::Unwritable(error) => {
                SavedPlanError::Unwritable { path: path.to_owned(), error }
            }
            Unwritten::Unplayable(id, reason) => SavedPlanError::Unplayable { id, reason },
        }
    })
}

enum Unwritten {
    Unwritable(io::Error),
    Unplayable(RequestId, String),
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self::Unwritable(error)
    }
}

/// What would be refused when it is read is not written either.
fn write_lines(
    path: &Path,
    header: &Header,
    requests: u64,
    plan: &dyn Plan,
) -> Result<(), Unwritten> {
    let mut file = Hashed {
        file: BufWriter::with_capacity(1 << 20, File::create(path)?),
        hash: Sha256::new(),
    };
    file.write_line(header)?;
    let mut sequence = Sequence::of(header);
    let mut written = 0;
    for request in (0..requests).map_while(|id| plan.request(RequestId(id))) {
        let checked = sequence.take(&request);
        checked.map_err(|reason| Unwritten::Unplayable(request.id, reason))?;
        file.write_line(&Line::of(&request, plan.content(&request)))?;
        written += 1;
    }
    let end = End { requests: written, sha256: half(file.hash.clone()) };
    file.write_line(&Last { end })?;
    file.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

struct Hashed {
    file: BufWriter<File>,
    hash: Sha256,
}

impl Hashed {
    fn write_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.hash.update(&line);
        self.file.write_all(&line)
    }
}
