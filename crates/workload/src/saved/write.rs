//! Writing a plan.

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

/// Writes a plan into a file.
pub fn save(
    path: &Path,
    spec: &Spec,
    materials: &Materials,
    fingerprints: &Fingerprints,
    plan: &dyn Plan,
) -> Result<(), SavedPlanError> {
    let header = header(spec, materials, fingerprints, plan)?;
    // Beside its place first: a plan that is cut short must not look like a plan.
    let unfinished = path.with_added_extension(format!("{}.incomplete", std::process::id()));
    let written = write_file(&unfinished, &header, plan)
        .and_then(|()| std::fs::rename(&unfinished, path).map_err(Unwritten::Unwritable));
    written.map_err(|error| {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&unfinished);
        error.told_of(path)
    })
}

/// Writes a plan, request by request, to where its lines are read at once.
pub fn print(
    out: impl Write,
    spec: &Spec,
    materials: &Materials,
    fingerprints: &Fingerprints,
    plan: &dyn Plan,
) -> Result<(), SavedPlanError> {
    let header = header(spec, materials, fingerprints, plan)?;
    let mut out = BufWriter::with_capacity(1 << 20, out);
    write_lines(&mut out, &header, plan)
        .and_then(|()| out.flush().map_err(Unwritten::Unwritable))
        .map_err(|error| error.told_of(Path::new("standard output")))
}

fn header(
    spec: &Spec,
    materials: &Materials,
    fingerprints: &Fingerprints,
    plan: &dyn Plan,
) -> Result<Header, SavedPlanError> {
    match plan.bounds().requests {
        None => return Err(SavedPlanError::Endless),
        Some(0) => return Err(SavedPlanError::NothingToSave),
        Some(_) => {}
    }
    Ok(Header {
        schema: SCHEMA.to_owned(),
        api: spec.api,
        workload: spec.workload.clone(),
        load: spec.load.clone(),
        seed: spec.seed,
        bounds: plan.bounds(),
        fingerprints: fingerprints.clone(),
        materials: materials.clone(),
    })
}

enum Unwritten {
    Unwritable(io::Error),
    Unplayable(RequestId, String),
}

impl Unwritten {
    fn told_of(self, path: &Path) -> SavedPlanError {
        match self {
            Self::Unwritable(error) => SavedPlanError::Unwritable { path: path.to_owned(), error },
            Self::Unplayable(id, reason) => SavedPlanError::Unplayable { id, reason },
        }
    }
}

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        Self::Unwritable(error)
    }
}

fn write_file(path: &Path, header: &Header, plan: &dyn Plan) -> Result<(), Unwritten> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    write_lines(&mut file, header, plan)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(())
}

/// Request by request: a plan's length does not matter to the memory. What would be refused when
/// it is read is not written either.
fn write_lines(out: impl Write, header: &Header, plan: &dyn Plan) -> Result<(), Unwritten> {
    let mut file = Hashed { out, hash: Sha256::new() };
    file.write_line(header)?;
    let mut sequence = Sequence::of(header);
    let mut written = 0;
    let requests = header.bounds.requests.unwrap_or(0);
    for request in (0..requests).map_while(|id| plan.request(RequestId(id))) {
        let checked = sequence.take(&request);
        checked.map_err(|reason| Unwritten::Unplayable(request.id, reason))?;
        file.write_line(&Line::of(&request, plan.content(&request)))?;
        written += 1;
    }
    let end = End { requests: written, sha256: half(file.hash.clone()) };
    file.write_line(&Last { end })?;
    Ok(())
}

struct Hashed<W> {
    out: W,
    hash: Sha256,
}

impl<W: Write> Hashed<W> {
    fn write_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        self.hash.update(&line);
        self.out.write_all(&line)
    }
}
