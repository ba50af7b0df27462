//! `--push`: results to `MLflow` over its REST API, and to any OTLP/HTTP endpoint as metrics.
//!
//! Keys come from the environment variables that the receivers' own clients read; they reach no file.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use inferometer_analysis::tool_result::ToolResult;
use inferometer_interchange::export;
use inferometer_load::resources::resolve;
use inferometer_load::target::Credentials;
use inferometer_load::{HttpFetch, Target};
use inferometer_model::fetch::{FetchReply, Post, PostRequest};
use inferometer_model::{BaseUrl, Secret, SpecDraft};
use inferometer_report::escape::terminal;
use inferometer_runner::preflight::{bare_target, fetching};
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::secrets::key_in_environment;

/// Where results go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Destination {
    /// A tracking server. The experiment is `MLFLOW_EXPERIMENT_NAME`, or `inferometer`.
    Mlflow(BaseUrl),
    /// An endpoint for metrics.
    Otlp(BaseUrl),
}

impl std::str::FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "write mlflow=http://HOST:5000 or otlp=http://HOST:4318";
        let (kind, url) = text.split_once('=').ok_or(wanted)?;
        let base = url.parse::<BaseUrl>().map_err(|error| error.to_string())?;
        match kind {
            "mlflow" => Ok(Self::Mlflow(base)),
            "otlp" => Ok(Self::Otlp(base)),
            _ => Err(wanted.to_owned()),
        }
    }
}

const CONNECT: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_mins(1);
const REPLY_BYTES_MAX: usize = 4 << 20;

/// Sends results, and returns a line for each destination.
pub(crate) fn push(results: &[ToolResult], to: &[Destination]) -> Result<Vec<String>> {
    to.iter()
        .map(|destination| match destination {
            Destination::Mlflow(base) => to_mlflow(results, base),
            Destination::Otlp(base) => to_otlp(results, base),
        })
        .collect()
}

fn to_otlp(results: &[ToolResult], base: &BaseUrl) -> Result<String> {
    let mut headers = Vec::new();
    for name in ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"] {
        let text = key_in_environment(name)?.unwrap_or_default();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (header, value) = part.split_once('=').ok_or_else(|| {
                Failure::usage(format!("{name} must be a list such as api-key=KEY,other=VALUE"))
            })?;
            headers.push((header.trim().to_owned(), Secret::new(decoded(value.trim()))));
        }
    }
    let receiver = Receiver::new("otlp", base, &headers)?;
    let document = export::otlp(results).map_err(Failure::from_usage)?;
    let reply = receiver.post("/v1/metrics", &document)?;
    let rejected = reply["partialSuccess"]["rejectedDataPoints"].clone();
    let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0);
    if 0 < rejected {
        let why = reply["partialSuccess"]["errorMessage"].as_str().unwrap_or_default();
        return Err(receiver.failure(&format!("it refused {rejected} data points: {why}")));
    }
    Ok(format!("pushed to {base} (OTLP)"))
}

/// `%20` and the like, as the specification of these variables has it.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = (*byte == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        found.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&found).into_owned()
}

fn to_mlflow(results: &[ToolResult], base: &BaseUrl) -> Result<String> {
    let token = key_in_environment("MLFLOW_TRACKING_TOKEN")?;
    let user = key_in_environment("MLFLOW_TRACKING_USERNAME")?;
    let password = key_in_environment("MLFLOW_TRACKING_PASSWORD")?;
    let basic = user.zip(password);
    let basic =
        basic.map(|(user, it)| format!("Basic {}", STANDARD.encode(format!("{user}:{it}"))));
    let authorization = token.map(|token| format!("Bearer {token}")).or(basic);
    let headers: Vec<(String, Secret)> =
        authorization.map(|it| ("authorization".to_owned(), Secret::new(it))).into_iter().collect();
    let receiver = Receiver::new("mlflow", base, &headers)?;
    let name = key_in_environment("MLFLOW_EXPERIMENT_NAME")?;
    let name = name.unwrap_or_else(|| "inferometer".to_owned());
    let experiment = experiment(&receiver, &name)?;
    let mut address = String::new();
    for result in results {
        let run = export::mlflow(result);
        let (start, end) = (&run["start_time"], &run["end_time"]);
        let created = receiver.mlflow(
            "runs/create",
            &json!({
                "experiment_id": experiment, "run_name": run["run_name"], "start_time": start,
                "tags": run["tags"],
            }),
        )?;
        let id = &created["run"]["info"]["run_id"];
        let none = Vec::new();
        let all = |key: &str| run[key].as_array().unwrap_or(&none).clone();
        // The API takes this many at once.
        for metrics in all("metrics").chunks(1_000) {
            receiver.mlflow("runs/log-batch", &json!({ "run_id": id, "metrics": metrics }))?;
        }
        for params in all("params").chunks(100) {
            receiver.mlflow("runs/log-batch", &json!({ "run_id": id, "params": params }))?;
        }
        let over = json!({ "run_id": id, "status": "FINISHED", "end_time": end });
        receiver.mlflow("runs/update", &over)?;
        address =
            format!("{base}/#/experiments/{experiment}/runs/{}", id.as_str().unwrap_or_default());
    }
    Ok(format!("pushed to {}", terminal(&address)))
}

/// The experiment of a name, which is made where there is none.
fn experiment(receiver: &Receiver, name: &str) -> Result<String> {
    // A search, because this client asks with a body alone.
    let quoted = name.replace('\'', "''");
    let asked = json!({ "filter": format!("name = '{quoted}'"), "max_results": 1 });
    let found = receiver.mlflow("experiments/search", &asked)?;
    let id = |value: &Value| value["experiment_id"].as_str().map(str::to_owned);
    if let Some(known) = found["experiments"].get(0).and_then(id) {
        return Ok(known);
    }
    let created = receiver.mlflow("experiments/create", &json!({ "name": name }))?;
    id(&created).ok_or_else(|| receiver.failure("it created an experiment without an id"))
}

/// A server that results are sent to.
struct Receiver {
    kind: &'static str,
    target: Target,
}

impl Receiver {
    fn new(kind: &'static str, base: &BaseUrl, headers: &[(String, Secret)]) -> Result<Self> {
        let spec = SpecDraft::default().resolve()?;
        let address = resolve(base, CONNECT).map_err(|error| {
            Failure::target(format!("--push {kind}={base}: {error}"))
                .hint("is it running, and is the URL right? `inferometer export` pushes later")
        })?;
        let credentials = Credentials::new(None, headers).map_err(Failure::from_usage)?;
        crate::output::hide(credentials.redactor());
        Ok(Self { kind, target: bare_target(&spec, credentials, base, address) })
    }

    fn failure(&self, why: &str) -> Failure {
        let why = terminal(&self.target.credentials.redactor().redact(why));
        Failure::target(format!("--push {}={}: {why}", self.kind, self.target.base))
            .hint("the results are stored; `inferometer export RUN --push …` sends them again")
    }

    fn mlflow(&self, method: &str, body: &Value) -> Result<Value> {
        self.post(&format!("/api/2.0/mlflow/{method}"), &body.to_string())
    }

    /// Posts a document, and returns the one that comes back.
    fn post(&self, path: &str, json: &str) -> Result<Value> {
        let request = PostRequest { path, json, body_limit: REPLY_BYTES_MAX, patience: PATIENCE };
        let posted = fetching(&self.target, async |fetch: HttpFetch| fetch.post(request).await)?;
        let FetchReply { status, body, .. } =
            posted.map_err(|error| self.failure(&error.to_string()))?;
        if !(200..300).contains(&status) {
            let said = String::from_utf8_lossy(&body);
            let said: String = said.chars().take(300).collect();
            return Err(self.failure(&format!("status {status} to {path}: {said}")));
        }
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_a_kind_and_a_url() {
        let base: BaseUrl = "http://127.0.0.1:5000".parse().unwrap();
        assert_eq!("mlflow=http://127.0.0.1:5000".parse(), Ok(Destination::Mlflow(base.clone())));
        assert_eq!("otlp=127.0.0.1:5000".parse(), Ok(Destination::Otlp(base)));
        for wrong in ["http://x", "wandb=http://x", "mlflow=http://u:p@x"] {
            assert!(wrong.parse::<Destination>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn headers_are_percent_decoded() {
        assert_eq!(decoded("Basic%20a%3D%3D"), "Basic a==");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%é"), "%zz%é");
    }
}
