//! `[target]`, `[client]` and `[limits]`: which server is measured, by which client, and how long the
//! client waits.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::error::{Result, SpecError, at_most, refuse_first};
use super::load::{DURATION_MAX, Extent, Load, LoadShape, Rate};
use super::price::Price;
use super::text::{CoreList, Grammar, Time};
use crate::BaseUrl;
use crate::endpoint::Api;
use crate::observations::{Connections, HttpVersion};
use crate::whole::to_u64;

/// Which server is measured. Keys and headers have no place in a file: they may be secret.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Target")]
pub struct TargetTable {
    /// Base URL of the server, such as `http://localhost:8000`; without it the embedded engine is
    /// measured
    #[arg(skip)]
    pub url: Option<String>,
    /// Base URL of another replica of the server, over which requests are balanced, and sessions stay on one
    /// of them; the flag may be repeated
    #[arg(long, value_name = "URL")]
    pub replica: Option<Vec<String>>,
    /// API to speak [default: chat]
    pub api: Option<Api>,
    /// Model to ask for [default: the first that /v1/models lists]
    #[arg(short = 'm')]
    pub model: Option<String>,
    /// File that holds the API key; else the variable `OPENAI_API_KEY` is used
    pub api_key_file: Option<PathBuf>,
    /// One connection for many requests, a new one for each, or one for each user [default: as
    /// the server does]
    pub connections: Option<Connections>,
    /// Speak HTTP/2, over TLS or not
    pub http2: Option<bool>,
    /// Do not check the server's TLS certificate: any server may answer, and every page says so
    pub insecure: Option<bool>,
    /// What the server runs on, where it is another machine: a file, a command that prints one
    /// (such as `ssh gpu1 inferometer system --json`), or `local` for this machine
    #[arg(long, value_name = "FILE|COMMAND")]
    pub server_info: Option<String>,
    /// Whether the server's own metrics are read during the run [default: on]
    pub telemetry: Option<Switch>,
    /// Path of the server's metrics, behind the base URL [default: /metrics]
    pub metrics_path: Option<String>,
    /// Another place of the server's metrics, such as a replica's own port; the flag may be repeated.
    /// URL, or ROLE=URL with replica, prefill, decode, router, or prometheus for its query API
    /// [default: --metrics-path behind the base URL]
    #[arg(long, value_name = "URL")]
    pub metrics_url: Option<Vec<String>>,
    /// How often the server's metrics are read, from 100ms to 1m [default: 1s]
    pub telemetry_every: Option<Time>,
    /// Source of GPU metrics: auto (whatever this machine has, if the server runs on it), off, nvml,
    /// nvidia-smi, amd-smi, rocm-smi, or dcgm=URL of an exporter [default: auto]
    pub gpu_telemetry: Option<DevicesAsked>,
    /// What the server costs, in any currency: 2.50/h for its time, 1.20/gpu-h for each of its GPUs; in
    /// dry runs also 0.15/M-in,0.60/M-out for a million tokens. Results then have the cost of a million
    /// tokens
    #[arg(long, value_name = "PRICE")]
    pub price: Option<Price>,
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, VariantArray)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    On,
    Off,
}

/// Source of GPU metrics during a run. Written `auto`, `off`, by the name of a tool, or `dcgm=URL`.
#[derive(Clone, Debug, Default, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum DevicesAsked {
    /// Whatever this machine has, if the server runs on it.
    #[default]
    Auto,
    Off,
    Nvml,
    NvidiaSmi,
    AmdSmi,
    RocmSmi,
    /// An exporter of DCGM, wherever it is.
    #[strum(to_string = "dcgm={0}")]
    Dcgm(BaseUrl),
}

impl DevicesAsked {
    const NAMED: [Self; 6] =
        [Self::Auto, Self::Off, Self::Nvml, Self::NvidiaSmi, Self::AmdSmi, Self::RocmSmi];

    const fn off() -> Self {
        Self::Off
    }
}

impl Grammar for DevicesAsked {
    const SCHEMA: &'static str = "devices";

    fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Some(url) = text.strip_prefix("dcgm=") {
            // Exporters are copied with the path that every one of them has.
            let base = url.trim_end_matches('/').trim_end_matches("/metrics").parse();
            return base
                .map(Self::Dcgm)
                .map_err(|error| format!("the exporter's URL cannot be used: {error}"));
        }
        let named = Self::NAMED.into_iter().find(|named| named.to_string() == text);
        named.ok_or_else(|| {
            format!(
                "`{text:.100}` is not a source of GPU metrics; write auto, off, nvml, nvidia-smi, \
                 amd-smi, rocm-smi, or dcgm=URL of an exporter, such as dcgm=http://gpu1:9400"
            )
        })
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// How the server's metrics are read during a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TelemetrySpec {
    /// Path behind the base URL.
    pub path: String,
    /// Where the metrics are, if not behind the base URL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<MetricsSource>,
    pub every: Duration,
    /// Source of GPU metrics; off in runs that were stored before there was a choice.
    #[serde(default = "DevicesAsked::off")]
    pub devices: DevicesAsked,
}

/// One place of the server's metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricsSource {
    pub role: MetricsRole,
    pub base: BaseUrl,
    pub path: String,
}

/// What a source of metrics is to the server. Totals are those of the replicas: what a router or a
/// prefill worker counts, another one counts as well.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Deserialize,
    Serialize,
    VariantArray,
    strum::Display,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum MetricsRole {
    Replica,
    Prefill,
    Decode,
    Router,
    /// The query API of a Prometheus that collects the metrics of all replicas.
    Prometheus,
}

impl MetricsSource {
    const COUNT_MAX: usize = 32;

    fn parse(text: &str) -> Result<Self> {
        let named = text.split_once('=').and_then(|(name, url)| {
            let role = MetricsRole::VARIANTS.iter().find(|role| role.to_string() == name)?;
            Some((*role, url))
        });
        let (role, url) = named.unwrap_or((MetricsRole::Replica, text));
        let host_at = url.find("://").map_or(0, |at| at + "://".len());
        let path_at = url[host_at..].find(['/', '?', '#']).map_or(url.len(), |at| host_at + at);
        let (base, path) = url.split_at(path_at);
        let wrong = |error: &dyn std::fmt::Display| SpecError::MetricsUrl(error.to_string());
        // No host has such a sign, but it would be taken for a part of one.
        if base.contains('=') {
            let roles: Vec<String> =
                MetricsRole::VARIANTS.iter().map(ToString::to_string).collect();
            let known = format!("before `=` must be one of {}", roles.join(", "));
            return Err(SpecError::MetricsUrl(known));
        }
        let base: BaseUrl = base.parse().map_err(|error| wrong(&error))?;
        let path = match (role, path) {
            (MetricsRole::Prometheus, path) => query_path(path).map_err(|error| wrong(&error))?,
            (_, "" | "/") => PATH.to_owned(),
            (_, path) => path.to_owned(),
        };
        if !is_plain_path(&path) {
            return Err(wrong(&"its path must begin with a slash and have no spaces"));
        }
        Ok(Self { role, base, path })
    }
}

/// The query for everything that a server reports, where the labels of a source are written as a query,
/// such as `http://prometheus:9090/?job=vllm`.
fn query_path(given: &str) -> std::result::Result<String, &'static str> {
    const NAMES: &str = "vllm|sglang|llamacpp|tgi|trtllm|nv_trt_llm|dynamo_frontend";
    let (prefix, labels) = given.split_once('?').unwrap_or((given, ""));
    let mut query = format!("{{__name__=~\"({NAMES})[:_].*\"");
    for label in labels.split('&').filter(|label| !label.is_empty()) {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-/".contains(&byte);
        let (name, value) = label.split_once('=').unwrap_or((label, ""));
        if name.is_empty() || !name.bytes().chain(value.bytes()).all(is_plain) {
            return Err("its query has labels and their values, such as ?job=vllm&pod=a");
        }
        query.extend([",", name, "=\"", value, "\""]);
    }
    let escaped = query.bytes().chain([b'}']).map(|byte| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    let prefix = prefix.trim_end_matches('/');
    Ok(format!("{prefix}/api/v1/query?query={}", escaped.collect::<String>()))
}

fn is_plain_path(path: &str) -> bool {
    let is_plain = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    path.starts_with('/') && is_plain && path.len() <= 1 << 10
}

const PATH: &str = "/metrics";
/// More often would load the server; less often would show nothing.
const EVERY_BOUNDS: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(1);

impl TargetTable {
    /// The base URLs of the other replicas.
    pub(super) fn replicas(&self) -> Result<Vec<BaseUrl>> {
        let typed = self.replica.as_deref().unwrap_or_default();
        at_most("--replica", typed.len() as u64, MetricsSource::COUNT_MAX as u64 - 1)?;
        let parsed = typed.iter().map(|url| {
            url.parse().map_err(|error| SpecError::Replica(url.clone(), format!("{error}")))
        });
        parsed.collect()
    }

    /// `servers` are all replicas; none where the server is deployed here or embedded.
    pub(super) fn telemetry(&self, servers: &[BaseUrl]) -> Result<Option<TelemetrySpec>> {
        let devices = self.gpu_telemetry.clone();
        if self.telemetry == Some(Switch::Off) {
            let has_devices = devices.is_some_and(|devices| devices != DevicesAsked::Off);
            let stray = [
                (self.metrics_path.is_some(), "--metrics-path"),
                (self.metrics_url.is_some(), "--metrics-url"),
                (self.telemetry_every.is_some(), "--telemetry-every"),
                (has_devices, "--gpu-telemetry"),
            ];
            let refused = stray.map(|(is_set, flag)| (is_set, SpecError::TelemetryOff(flag)));
            return refuse_first(refused).map(|()| None);
        }
        let path = self.metrics_path.clone().unwrap_or_else(|| PATH.to_owned());
        if !is_plain_path(&path) {
            return Err(SpecError::MetricsPath);
        }
        let urls = self.metrics_url.as_deref().unwrap_or_default();
        if !urls.is_empty() && self.metrics_path.is_some() {
            let both = "give the path in each --metrics-url, and leave --metrics-path out";
            return Err(SpecError::MetricsUrl(both.to_owned()));
        }
        at_most("--metrics-url", urls.len() as u64, MetricsSource::COUNT_MAX as u64)?;
        let mut sources: Vec<MetricsSource> =
            urls.iter().map(|url| MetricsSource::parse(url)).collect::<Result<_>>()?;
        if sources.is_empty() && 1 < servers.len() {
            let own = |base: &BaseUrl| {
                let (role, path) = (MetricsRole::Replica, base.path(&path));
                let base = BaseUrl { prefix: String::new(), ..base.clone() };
                MetricsSource { role, base, path }
            };
            sources = servers.iter().map(own).collect();
        }
        let every = self.telemetry_every.map_or(Duration::from_secs(1), |every| every.0);
        if !EVERY_BOUNDS.contains(&every) {
            let (least, most) = (*EVERY_BOUNDS.start(), *EVERY_BOUNDS.end());
            return Err(SpecError::TelemetryEvery { least, most });
        }
        Ok(Some(TelemetrySpec { path, sources, every, devices: devices.unwrap_or_default() }))
    }
}

/// The client that measures.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Client")]
pub struct ClientTable {
    /// Threads that drive the load, a core for each [default: one for each 512 requests in flight or
    /// 250 requests/s, at most one per four cores, at most 8]
    #[arg(long = "client-cores", value_name = "N")]
    #[schemars(range(min = 1, max = 256))]
    pub cores: Option<u32>,
    /// Cores to pin the threads of the load to, such as 2,4-6 [default: not pinned]
    #[arg(long, value_name = "LIST")]
    pub pin_cores: Option<CoreList>,
}

/// The client's threads and its protocol. Nothing here changes what is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientSpec {
    /// Threads that drive the load, or may: see [`ClientSpec::drivers_for`].
    pub drivers: NonZeroU32,
    /// Whether a load that fewer drivers can carry has fewer; not so where the number was set.
    #[serde(default)]
    pub drivers_by_load: bool,
    /// Cores that they are pinned to, in turn; empty leaves them to the scheduler.
    pub cores: Vec<u32>,
    pub http: HttpVersion,
    /// Whether the server's certificate is left unchecked.
    pub insecure: bool,
}

/// More drivers than one are for large loads on large machines: most of a machine belongs to other
/// programs on it, often the server.
const CORES_PER_DRIVER: usize = 4;
const DRIVERS_BY_DEFAULT_MAX: usize = 8;

/// What takes a quarter to a third of a driver's core, where a stream has a hundred tokens per second and
/// an answer some 250 tokens, each 4.8 µs: `docs/performance.md` has the measurement and its command.
const IN_FLIGHT_PER_DRIVER: f64 = 512.0;
const RATE_PER_DRIVER: f64 = 250.0;

impl ClientSpec {
    /// The threads that drive this load: one until it needs more.
    pub fn drivers_for(&self, load: &Load) -> NonZeroU32 {
        let needed = match &load.shape {
            LoadShape::Closed { concurrency: slots, .. }
            | LoadShape::Open { cap: Some(slots), .. } => {
                f64::from(slots.get()) / IN_FLIGHT_PER_DRIVER
            }
            LoadShape::Open { rate, .. } => match (rate, load.extent) {
                (Rate::Steady { per_s }, _) => per_s / RATE_PER_DRIVER,
                (Rate::Ramp { segments, .. }, _) => {
                    let rates = segments.iter().flat_map(|it| [it.from_per_s, it.to_per_s]);
                    rates.fold(0.0, f64::max) / RATE_PER_DRIVER
                }
                (Rate::Unlimited, Extent::Requests(requests)) => {
                    requests.get() as f64 / IN_FLIGHT_PER_DRIVER
                }
                // Not known before it is played.
                (Rate::Unlimited | Rate::Recorded(_), _) => f64::INFINITY,
            },
        };
        if !self.drivers_by_load || f64::from(self.drivers.get()) <= needed {
            return self.drivers;
        }
        let needed = u32::try_from(to_u64(needed.ceil())).unwrap_or(u32::MAX);
        NonZeroU32::new(needed).unwrap_or(NonZeroU32::MIN)
    }
}

impl ClientTable {
    /// `allowed` are the cores that the system lets this process use; empty where it does not say.
    pub(super) fn resolve(&self, target: &TargetTable, allowed: &[u32]) -> Result<ClientSpec> {
        let cores = self.pin_cores.clone().map(|list| list.0).unwrap_or_default();
        if let Some(core) = cores.iter().find(|core| !allowed.is_empty() && !allowed.contains(core))
        {
            return Err(SpecError::NoSuchCore(*core));
        }
        let by_default = (allowed.len() / CORES_PER_DRIVER).clamp(1, DRIVERS_BY_DEFAULT_MAX);
        let unless_set = if cores.is_empty() { by_default } else { cores.len() };
        let drivers = self.cores.unwrap_or(u32::try_from(unless_set).unwrap_or(u32::MAX));
        at_most("--client-cores", drivers.into(), 256)?;
        if !cores.is_empty() && cores.len() < drivers as usize {
            return Err(SpecError::FewCores { drivers, cores: cores.len() });
        }
        let is_http2 = target.http2.unwrap_or(false);
        Ok(ClientSpec {
            drivers: NonZeroU32::new(drivers).ok_or(SpecError::Zero("--client-cores"))?,
            drivers_by_load: self.cores.is_none() && cores.is_empty(),
            cores,
            http: if is_http2 { HttpVersion::Http2 } else { HttpVersion::Http1 },
            insecure: target.insecure.unwrap_or(false),
        })
    }
}

/// How long the client waits before a request has failed.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Limits")]
pub struct LimitTable {
    /// Time to connect [default: 10s]
    #[arg(long = "connect-timeout", value_name = "TIME", allow_hyphen_values = true)]
    pub connect: Option<Time>,
    /// Time from sending to the first token [default: 2m]
    #[arg(long = "first-token-timeout", value_name = "TIME", allow_hyphen_values = true)]
    pub first_token: Option<Time>,
    /// Silence inside a stream [default: 1m]
    #[arg(long = "idle-timeout", value_name = "TIME", allow_hyphen_values = true)]
    pub idle: Option<Time>,
    /// Whole answer [default: 30m]
    #[arg(long = "total-timeout", value_name = "TIME", allow_hyphen_values = true)]
    pub total: Option<Time>,
    /// Requests in flight after the run is stopped, or after its time is over [default: 30s]
    #[arg(long = "drain-timeout", value_name = "TIME", allow_hyphen_values = true)]
    pub drain: Option<Time>,
}

/// How long the client waits before a request has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub connect: Duration,
    pub first_token: Duration,
    pub idle: Duration,
    pub total: Duration,
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_token: Duration::from_mins(2),
            idle: Duration::from_mins(1),
            total: Duration::from_mins(30),
            drain: Duration::from_secs(30),
        }
    }
}

impl LimitTable {
    pub(super) fn resolve(&self) -> Result<Limits> {
        let limit = |flag, set: Option<Time>, default| match set.map_or(default, |time| time.0) {
            Duration::ZERO if flag != "--drain-timeout" => Err(SpecError::NoTime(flag)),
            limit if DURATION_MAX < limit => Err(SpecError::LimitTooLong(flag, DURATION_MAX)),
            limit => Ok(limit),
        };
        let default = Limits::default();
        Ok(Limits {
            connect: limit("--connect-timeout", self.connect, default.connect)?,
            first_token: limit("--first-token-timeout", self.first_token, default.first_token)?,
            idle: limit("--idle-timeout", self.idle, default.idle)?,
            total: limit("--total-timeout", self.total, default.total)?,
            drain: limit("--drain-timeout", self.drain, default.drain)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{LoadTable, PerSecond};

    fn client(cores: Option<u32>, pinned: &[u32], allowed: u32) -> Result<ClientSpec> {
        let pin_cores = (!pinned.is_empty()).then(|| CoreList(pinned.to_vec()));
        let allowed: Vec<u32> = (0..allowed).collect();
        ClientTable { cores, pin_cores }.resolve(&TargetTable::default(), &allowed)
    }

    fn drivers(cores: Option<u32>, pinned: &[u32], allowed: u32) -> u32 {
        client(cores, pinned, allowed).unwrap().drivers.get()
    }

    #[test]
    fn a_large_machine_gets_more_drivers_and_keeps_most_of_itself() {
        let on = |cores| drivers(None, &[], cores);
        assert_eq!([0, 1, 2, 7, 8, 16, 64].map(on), [1, 1, 1, 1, 2, 4, 8]);
    }

    #[test]
    fn a_load_has_one_driver_until_it_needs_more() {
        let machine = client(None, &[], 32).unwrap();
        let drivers = |load: LoadTable, client: &ClientSpec| {
            client.drivers_for(&load.resolve(false).unwrap()).get()
        };
        let closed = |slots| LoadTable { concurrency: Some(slots), ..LoadTable::default() };
        let found = [1, 512, 513, 2_048, 100_000].map(|slots| drivers(closed(slots), &machine));
        assert_eq!(found, [1, 1, 2, 4, 8]);
        let open = |rate| LoadTable { rate: Some(PerSecond(rate)), ..LoadTable::default() };
        let found = [1.0, 250.0, 600.0, 1e6].map(|rate| drivers(open(rate), &machine));
        assert_eq!(found, [1, 1, 3, 8]);
        assert_eq!(drivers(open(f64::INFINITY), &machine), 1, "100 requests");
        let capped = LoadTable { max_concurrency: Some(64), ..open(1e4) };
        assert_eq!(drivers(capped, &machine), 1);
        assert_eq!(drivers(closed(8), &client(Some(3), &[], 32).unwrap()), 3, "as it was set");
        assert_eq!(drivers(closed(8), &client(None, &[1, 3], 32).unwrap()), 2, "as it was pinned");
    }

    #[test]
    fn typed_drivers_win_and_pinned_cores_count() {
        assert_eq!(drivers(Some(3), &[], 4), 3);
        assert_eq!(drivers(None, &[1, 3], 4), 2);
        assert_eq!(client(None, &[1, 9], 4), Err(SpecError::NoSuchCore(9)));
        let crowded = SpecError::FewCores { drivers: 3, cores: 2 };
        assert_eq!(client(Some(3), &[1, 3], 4), Err(crowded));
        assert_eq!(client(Some(0), &[], 4), Err(SpecError::Zero("--client-cores")));
    }

    #[test]
    fn impossible_limits_are_refused_by_name() {
        let total = LimitTable { total: Some(Duration::ZERO.into()), ..<_>::default() };
        assert_eq!(total.resolve(), Err(SpecError::NoTime("--total-timeout")));
        let drain = LimitTable { drain: Some(Duration::MAX.into()), ..<_>::default() };
        let long = SpecError::LimitTooLong("--drain-timeout", DURATION_MAX);
        assert_eq!(drain.resolve(), Err(long));
        let at_once = LimitTable { drain: Some(Duration::ZERO.into()), ..<_>::default() };
        assert!(at_once.resolve().is_ok());
    }

    #[test]
    fn metrics_are_read_every_second_unless_telemetry_is_off() {
        let spec = TargetTable::default().telemetry(&[]).unwrap().unwrap();
        assert_eq!((spec.path.as_str(), spec.every), ("/metrics", Duration::from_secs(1)));
        let off = TargetTable { telemetry: Some(Switch::Off), ..TargetTable::default() };
        assert_eq!(off.telemetry(&[]), Ok(None));
        let torn = TargetTable { metrics_path: Some("/m".to_owned()), ..off };
        assert_eq!(torn.telemetry(&[]), Err(SpecError::TelemetryOff("--metrics-path")));
        assert_eq!(spec.devices, DevicesAsked::Auto);
        let older: TelemetrySpec =
            serde_json::from_str(r#"{"path":"/metrics","every":{"secs":1,"nanos":0}}"#).unwrap();
        assert_eq!(older.devices, DevicesAsked::Off, "there was no choice then");
    }

    #[test]
    fn sources_of_metrics_have_a_role_and_a_path() {
        let parsed = |text: &str| {
            let table = TargetTable { metrics_url: Some(vec![text.to_owned()]), ..<_>::default() };
            let mut sources = table.telemetry(&[])?.unwrap().sources;
            let MetricsSource { role, base, path } = sources.remove(0);
            Ok::<_, SpecError>(format!("{role} {base} {path}"))
        };
        for (text, expected) in [
            ("http://10.0.0.1:8001", "replica http://10.0.0.1:8001 /metrics"),
            ("10.0.0.1:8001/x/metrics?a=b", "replica http://10.0.0.1:8001 /x/metrics?a=b"),
            ("decode=https://d", "decode https://d /metrics"),
            ("router=http://[::1]:9/m", "router http://[::1]:9 /m"),
        ] {
            assert_eq!(parsed(text).unwrap(), expected, "{text}");
        }
        let query = parsed("prometheus=http://p:9090/prom/?job=vllm&pod=a-1").unwrap();
        assert!(
            query.starts_with("prometheus http://p:9090 /prom/api/v1/query?query=%7B"),
            "{query}"
        );
        assert!(query.ends_with("%2Cjob%3D%22vllm%22%2Cpod%3D%22a%2D1%22%7D"), "{query}");
        for wrong in [
            "http://u:p@h/metrics",
            "ftp://h",
            "http://h/a b",
            "prometheus=http://p/?a=\"}",
            "=x",
            "",
        ] {
            assert!(matches!(parsed(wrong), Err(SpecError::MetricsUrl(_))), "{wrong}");
        }
        for wrong in ["=x", "=http://h", "worker=http://h"] {
            let said = parsed(wrong).unwrap_err().to_string();
            assert!(said.contains("before `=` must be one of replica, prefill"), "{said}");
        }
        let both = TargetTable {
            metrics_url: Some(vec!["http://h".to_owned()]),
            metrics_path: Some("/m".to_owned()),
            ..<_>::default()
        };
        assert!(matches!(both.telemetry(&[]), Err(SpecError::MetricsUrl(_))));
        let many = TargetTable { metrics_url: Some(vec!["h".to_owned(); 33]), ..<_>::default() };
        assert!(many.telemetry(&[]).is_err());
    }

    #[test]
    fn a_path_is_a_path_and_a_period_is_bounded() {
        for path in ["metrics", "", "/a b", "/a\r\nHost: x", "/m#f"] {
            let table = TargetTable { metrics_path: Some(path.to_owned()), ..<_>::default() };
            assert_eq!(table.telemetry(&[]), Err(SpecError::MetricsPath), "{path}");
        }
        for ms in [0, 99, 60_001] {
            let telemetry_every = Some(Duration::from_millis(ms).into());
            let table = TargetTable { telemetry_every, ..TargetTable::default() };
            assert!(
                matches!(table.telemetry(&[]), Err(SpecError::TelemetryEvery { .. })),
                "{ms} ms"
            );
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["auto", "off", "nvml", "nvidia-smi", "amd-smi", "rocm-smi"] {
            assert_eq!(text.parse::<DevicesAsked>().unwrap().to_string(), text);
        }
        let dcgm: DevicesAsked = "dcgm=http://gpu1:9400/metrics".parse().unwrap();
        let stored = serde_json::to_string(&dcgm).unwrap();
        assert_eq!(stored, r#""dcgm=http://gpu1:9400""#);
        assert_eq!(serde_json::from_str::<DevicesAsked>(&stored).unwrap(), dcgm);
    }

    #[test]
    fn what_is_not_known_says_what_is_and_secrets_are_refused() {
        let unknown = "cuda".parse::<DevicesAsked>().unwrap_err();
        assert!(unknown.contains("`cuda`") && unknown.contains("dcgm=http"), "{unknown}");
        let secret = "dcgm=http://me:pass@gpu1:9400".parse::<DevicesAsked>().unwrap_err();
        assert!(secret.contains("URL cannot be used"), "{secret}");
        assert!(!secret.contains("pass@"), "{secret}");
    }
}
