//! Fetching a tokenizer from the hub into its cache. Nothing is written before all of it is here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::{FILE, Hub, TokenizerError};

/// Beside the tokenizer, where a model has them.
const COMPANIONS: [&str; 4] = [
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "chat_template.json",
];
const FILE_BYTES_MAX: u64 = 256 << 20;
const REDIRECTS_MAX: usize = 5;
const CONNECT_WITHIN: Duration = Duration::from_secs(20);
const FILE_WITHIN: Duration = Duration::from_mins(5);

struct Fetched {
    bytes: Vec<u8>,
    /// The revision that the hub answered with.
    commit: Option<String>,
}

impl Hub {
    pub(super) fn download(&self, name: &str) -> Result<PathBuf, TokenizerError> {
        let agent = https_agent(&self.endpoint);
        let url = |file: &str| format!("{}/{name}/resolve/main/{file}", self.endpoint);
        let failed = |file: &str, reason: String| TokenizerError::NotDownloaded {
            name: name.to_owned(),
            cache: self.cache.clone(),
            url: url(file),
            reason,
        };
        let tokenizer = self
            .fetch_file(&agent, &url(FILE))
            .and_then(|found| found.ok_or_else(|| "is not there (404)".to_owned()))
            .map_err(|reason| failed(FILE, reason))?;
        // A folder is named after it, so it must be exactly a commit.
        let commit = tokenizer.commit.filter(|commit| {
            (1..=64).contains(&commit.len()) && commit.chars().all(|c| c.is_ascii_hexdigit())
        });
        let commit = commit.unwrap_or_else(|| "main".to_owned());
        let mut files = vec![(FILE, tokenizer.bytes)];
        for file in COMPANIONS {
            let found = self.fetch_file(&agent, &url(file));
            if let Some(found) = found.map_err(|reason| failed(file, reason))? {
                files.push((file, found.bytes));
            }
        }
        let folder = self.folder(name);
        let snapshot = folder.join("snapshots").join(&commit);
        for (file, bytes) in &files {
            write_whole(&snapshot.join(file), bytes)?;
        }
        // Last: with it the snapshot counts as complete.
        write_whole(&folder.join("refs/main"), commit.as_bytes())?;
        Ok(snapshot.join(FILE))
    }

    /// `None` when the hub has no such file. The token goes to the endpoint alone: files are often
    /// handed out by other hosts.
    fn fetch_file(&self, agent: &Agent, url: &str) -> Result<Option<Fetched>, String> {
        let mut url = url.to_owned();
        let mut commit = None;
        for _ in 0..=REDIRECTS_MAX {
            let mut request = agent.get(&url);
            if let Some(token) = &self.token
                && url.starts_with(&format!("{}/", self.endpoint))
            {
                request = request.header("authorization", format!("Bearer {}", token.expose()));
            }
            let response = request.call().map_err(|error| format!("failed: {error}"))?;
            commit = commit.or_else(|| header(&response, "x-repo-commit"));
            match response.status().as_u16() {
                200 => return read(response, commit).map(Some),
                301 | 302 | 303 | 307 | 308 => {
                    let to = header(&response, "location").ok_or("redirects to nowhere")?;
                    url = if to.starts_with('/') { format!("{}{to}", self.endpoint) } else { to };
                }
                404 => return Ok(None),
                401 | 403 => return Err(refused(response.status().as_u16(), self.token.is_some())),
                status => return Err(format!("answered {status}")),
            }
        }
        Err(format!("redirects more than {REDIRECTS_MAX} times"))
    }
}

fn refused(status: u16, has_token: bool) -> String {
    let hint = if has_token {
        "the token in HF_TOKEN may not read it, or the model's terms are not accepted yet"
    } else {
        "the model is not public, or does not exist; HF_TOKEN can hold a token"
    };
    format!("answered {status}: {hint}")
}

fn read(response: Response<Body>, commit: Option<String>) -> Result<Fetched, String> {
    let promised: Option<u64> =
        header(&response, "content-length").and_then(|length| length.parse().ok());
    let bytes = response
        .into_body()
        .into_with_config()
        .limit(FILE_BYTES_MAX)
        .read_to_vec()
        .map_err(|error| format!("broke off: {error}"))?;
    match promised {
        Some(length) if bytes.len() as u64 != length => {
            Err(format!("broke off after {} of {length} bytes", bytes.len()))
        }
        _ => Ok(Fetched { bytes, commit }),
    }
}

fn header(response: &Response<Body>, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// Under its name the file is whole or not there.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), TokenizerError> {
    let not_kept = |source| TokenizerError::NotKept { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(not_kept)?;
    }
    let unfinished = path.with_added_extension(format!("{}.incomplete", std::process::id()));
    fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path)).map_err(|error| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&unfinished);
        not_kept(error)
    })
}

/// A client that trusts this system's certificates, obeys its proxy and follows no redirect. Answers of
/// every status are answers.
pub fn https_agent(endpoint: &str) -> Agent {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<_> =
        found.certs.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .unversioned_rustls_crypto_provider(provider)
        .build();
    // A mirror on this machine is reached without the proxy that leads out of it.
    let is_here = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let is_here = is_here.iter().any(|here| endpoint.starts_with(here));
    Agent::config_builder()
        .proxy(if is_here { None } else { ureq::Proxy::try_from_env() })
        .tls_config(tls)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(CONNECT_WITHIN))
        .timeout_global(Some(FILE_WITHIN))
        .build()
        .new_agent()
}

#[cfg(test)]
mod tests;
