//! What the server and the machines say while a run goes on. Whatever happens to that, the run goes
//! on too.

use std::sync::{Arc, Mutex, PoisonError};

use inferometer_load::resources::resolve;
use inferometer_load::target::Credentials;
use inferometer_load::{HttpFetch, SystemClock, Target};
use inferometer_model::observations::{Endpoint, HttpVersion};
use inferometer_model::spec::{ClientSpec, DevicesAsked};
use inferometer_model::system::ServerFacts;
use inferometer_model::telemetry::{DevicesAbsence, TelemetryEntry};
use inferometer_model::{BaseUrl, Spec};
use inferometer_store::{RunDirectory, StoreError, TelemetryWriter};
use inferometer_target::gpu::GpuProbe;
use inferometer_target::machines::{Devices, Sampler, Sampling};
use inferometer_target::{Poller, Polling};

use crate::environment;
use crate::preflight;
use crate::session::Session;

/// A poller and a sampler at work, or none where nobody asked for them.
#[derive(Default)]
pub(crate) struct Listening {
    journal: Option<Journal>,
    poller: Option<Poller<Journal, StoreError>>,
    sampler: Option<Sampler<Journal, StoreError>>,
}

/// One file, and two threads that write to it: each entry goes there whole.
#[derive(Clone)]
struct Journal(Arc<Mutex<TelemetryWriter>>);

impl Journal {
    fn append(&mut self, entry: &TelemetryEntry) -> Result<(), StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).append(entry)
    }

    /// Everything is on disk; the threads have ended.
    fn finish(self) -> Result<(), StoreError> {
        let writer = Arc::into_inner(self.0).map(Mutex::into_inner);
        writer.map_or(Ok(()), |writer| writer.unwrap_or_else(PoisonError::into_inner).finish())
    }
}

impl Listening {
    /// Returns when the server was asked and the machines were looked at for the first time: the run
    /// may begin.
    pub(crate) fn start(
        spec: &Spec,
        target: &Target,
        clock: SystemClock,
        devices: Devices,
        directory: &RunDirectory,
        session: &Session,
    ) -> Self {
        let warn_of = |what: &str, error: &dyn std::error::Error| {
            session.warn(format!("{what}: {error}"));
        };
        let Some(asked) = spec.telemetry.clone() else { return Self::default() };
        let journal = match directory.create_telemetry() {
            Ok(writer) => Journal(Arc::new(Mutex::new(writer))),
            Err(error) => {
                warn_of("the server's metrics and the machines are not read", &error);
                return Self::default();
            }
        };
        let polling =
            Polling { path: asked.path, every: asked.every, time_limit: Polling::TIME_LIMIT };
        let target = Arc::new(target.clone());
        let fetch = move || HttpFetch::new(target, clock);
        let poller = Poller::start(polling, clock, fetch, journal.clone(), Journal::append)
            .map_err(|error| warn_of("the server's metrics are not read", &error));
        let sampling = Sampling::new(asked.every);
        let sampler = Sampler::start(sampling, clock, devices, journal.clone(), Journal::append)
            .map_err(|error| warn_of("the machines are not looked at", &error));
        Self { journal: Some(journal), poller: poller.ok(), sampler: sampler.ok() }
    }

    /// Asks once more, and puts everything on disk.
    pub(crate) fn stop(self, session: &Session) {
        let mut failed = None;
        let polled = self.poller.map(|poller| poller.stop().map_err(|error| error.to_string()));
        let sampled = self.sampler.map(|sampler| sampler.stop().map_err(|error| error.to_string()));
        for ended in [polled, sampled].into_iter().flatten() {
            let written = ended.and_then(|written| written.map_err(|error| error.to_string()));
            failed = failed.or(written.err());
        }
        let finished = self.journal.map_or(Ok(()), Journal::finish);
        if let Some(error) = failed.or(finished.err().map(|error| error.to_string())) {
            session.warn(format!("the server's metrics are not all stored: {error}"));
        }
    }
}

/// Who will tell of the GPUs of this server.
pub(crate) fn devices(
    spec: &Spec,
    endpoint: &Endpoint,
    server: &ServerFacts,
    clock: SystemClock,
) -> Devices {
    let asked = spec.telemetry.as_ref().map_or(&DevicesAsked::Off, |telemetry| &telemetry.devices);
    let absence = match asked {
        DevicesAsked::Dcgm(base) => return exporter(spec, base, clock),
        DevicesAsked::Auto if endpoint.embedded => DevicesAbsence::Pretended,
        DevicesAsked::Auto if !environment::is_here(spec, endpoint.address, server) => {
            DevicesAbsence::Elsewhere
        }
        DevicesAsked::Auto
        | DevicesAsked::Off
        | DevicesAsked::Nvml
        | DevicesAsked::NvidiaSmi
        | DevicesAsked::AmdSmi
        | DevicesAsked::RocmSmi => DevicesAbsence::NotAsked,
    };
    match GpuProbe::local(asked).filter(|_| absence == DevicesAbsence::NotAsked) {
        Some(opening) => Devices::Asked(opening),
        None => Devices::Absent(absence),
    }
}

/// Keys are for the server, and not for whoever counts its GPUs.
fn exporter(spec: &Spec, base: &BaseUrl, clock: SystemClock) -> Devices {
    let address = match resolve(base, spec.limits.connect) {
        Ok(address) => address,
        Err(error) => return Devices::Absent(DevicesAbsence::Failed(error.to_string())),
    };
    let client = ClientSpec { http: HttpVersion::Http1, ..spec.client.clone() };
    let plain = Spec { client, ..spec.clone() };
    let target = preflight::bare_target(&plain, Credentials::default(), base, address);
    let target = Arc::new(target);
    Devices::Asked(GpuProbe::exporter(move || HttpFetch::new(target, clock)))
}
