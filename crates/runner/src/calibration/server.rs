//! An engine process, and how to reach it.

use std::net::SocketAddr;
use std::sync::Arc;

use inferometer_engine::truth::Truth;
use inferometer_load::resolve::resolve;
use inferometer_load::target::Credentials;
use inferometer_load::{HttpFetch, SystemClock, Target};
use inferometer_model::Fetch;
use inferometer_model::endpoint::Api;
use inferometer_model::fetch::FetchRequest;
use inferometer_model::observations::{Connections, HttpVersion, PinnedOutput, UsageAsk};
use inferometer_model::spec::Limits;
use inferometer_target::EngineProcess;

use crate::failure::Failure;

/// Begins every request's id; the number follows.
pub(super) const REQUEST_ID_PREFIX: &str = "inferometer-calibration";

/// A fresh engine of our own; it ends when this is dropped.
pub(super) struct Server {
    engine: EngineProcess,
    address: SocketAddr,
    mode: &'static str,
}

impl Server {
    /// Answers at once.
    pub(super) fn echo() -> Result<Self, Failure> {
        Self::start("echo", &[])
    }

    /// Keeps time and truth.
    pub(super) fn paced(pace: &[(&str, String)]) -> Result<Self, Failure> {
        Self::start("paced", pace)
    }

    fn start(mode: &'static str, options: &[(&str, String)]) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::internal(format!("own program: {error}")))?;
        let arguments: Vec<String> = [("--mode", mode.to_owned())]
            .iter()
            .chain(options)
            .flat_map(|(name, value)| [(*name).to_owned(), value.clone()])
            .collect();
        let engine = EngineProcess::start(&program, &arguments)
            .map_err(|error| Failure::internal(error.to_string()))?;
        let address = resolve(&engine.base, Limits::default().connect)
            .map_err(|error| Failure::internal(error.to_string()))?;
        Ok(Self { engine, address, mode })
    }

    pub(super) fn target(&self, streaming: bool, kernel_stamps: bool) -> Target {
        // What a run would find out by asking: the paced engine counts on every event.
        let usage = match (streaming, self.mode) {
            (false, _) => UsageAsk::None,
            (true, "paced") => UsageAsk::Continuous,
            (true, _) => UsageAsk::Final,
        };
        Target {
            base: self.engine.base.clone(),
            address: self.address,
            api: Api::Chat,
            model: self.mode.to_owned(),
            streaming,
            usage,
            fields: serde_json::Map::new(),
            pinned: PinnedOutput::default(),
            connections: Connections::Reuse,
            limits: Limits::default(),
            credentials: Credentials::default(),
            request_id_prefix: REQUEST_ID_PREFIX.to_owned(),
            kernel_stamps,
            http: HttpVersion::Http1,
            tls: None,
        }
    }

    /// All that the engine knows of what it did.
    pub(super) fn truth(&self) -> Result<Truth, Failure> {
        let failed = |why: String| Failure::internal(format!("the engine's truth: {why}"));
        let target = Arc::new(self.target(false, true));
        let fetch = HttpFetch::new(target, SystemClock::new());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let request = FetchRequest { path: "/truth", body_limit: TRUTH_BYTES_MAX };
        let reply =
            runtime.block_on(fetch.fetch(request)).map_err(|error| failed(error.to_string()))?;
        serde_json::from_slice(&reply.body).map_err(|error| failed(error.to_string()))
    }
}

/// Half a million writes have some seventy megabytes.
const TRUTH_BYTES_MAX: usize = 1 << 30;
