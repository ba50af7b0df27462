//! Fetching files from the hub into its cache. Under its name a file is whole, and what was fetched is
//! found again only when all of it is there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::{Hub, HubError, Repository, Snapshot};

/// Length of a file of a tokenizer, or of a listing.
const FILE_BYTES_MAX: u64 = 256 << 20;
const REDIRECTS_MAX: usize = 5;
const CONNECT_WITHIN: Duration = Duration::from_secs(20);
const FILE_WITHIN: Duration = Duration::from_mins(5);
/// A dataset can have gigabytes.
const DATA_WITHIN: Duration = Duration::from_hours(6);

struct Fetched {
    response: Response<Body>,
    /// The revision that the hub answered with.
    commit: Option<String>,
}

/// What the hub has under a name.
#[derive(Deserialize)]
pub(crate) struct Listing {
    #[serde(rename = "sha")]
    commit: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Listing {
    /// Names that lead elsewhere are none.
    pub(crate) fn files(&self) -> Vec<String> {
        let names = self.siblings.iter().map(|file| file.rfilename.clone());
        names.filter(|name| is_inside(name)).collect()
    }
}

impl Hub {
    /// Fetches the first file of `wanted` that there is, and those of `besides` that there are.
    pub(crate) fn download_first(
        &self,
        of: &Repository,
        wanted: &[&str],
        besides: &[&str],
    ) -> Result<Snapshot, HubError> {
        let agent = https_agent(&self.endpoint);
        let fetch = |file: &str| {
            let url = self.url(of, "main", file);
            let fetched = self.fetch(&agent, &url, FILE_WITHIN);
            fetched.map_err(|reason| self.not_downloaded(of, url, reason))
        };
        let mut first = None;
        for file in wanted {
            if let Some(fetched) = fetch(file)? {
                first = Some((*file, fetched));
                break;
            }
        }
        let Some((file, fetched)) = first else {
            let url = self.url(of, "main", wanted.first().unwrap_or(&""));
            return Err(self.not_downloaded(of, url, "is not there (404)".to_owned()));
        };
        // A folder is named after it, so it must be exactly a commit.
        let commit = fetched.commit.clone().filter(|commit| is_commit(commit));
        let snapshot = self.snapshot(of, commit.unwrap_or_else(|| "main".to_owned()));
        let keep = |file: &str, fetched: Fetched| {
            let url = self.url(of, "main", file);
            self.keep(of, &snapshot.folder.join(file), fetched.response, url, FILE_BYTES_MAX)
        };
        keep(file, fetched)?;
        for file in besides {
            if let Some(fetched) = fetch(file)? {
                keep(file, fetched)?;
            }
        }
        self.complete(of, &snapshot)?;
        Ok(snapshot)
    }

    pub(crate) fn list(&self, of: &Repository) -> Result<Listing, HubError> {
        let url = format!("{}/api/{}{}/revision/main", self.endpoint, of.prefix(), of.name());
        let failed = |reason: String| self.not_downloaded(of, url.clone(), reason);
        let fetched =
            self.fetch(&https_agent(&self.endpoint), &url, FILE_WITHIN).map_err(failed)?;
        let fetched = fetched.ok_or_else(|| failed("is not there (404)".to_owned()))?;
        let mut json = Vec::new();
        copy(fetched.response, &mut json, FILE_BYTES_MAX).map_err(failed)?;
        let listing: Listing = serde_json::from_slice(&json)
            .map_err(|error| failed(format!("is not a list of files: {error}")))?;
        if is_commit(&listing.commit) {
            Ok(listing)
        } else {
            Err(failed("names no commit".to_owned()))
        }
    }

    /// Fetches these files of a listing, as far as the cache does not have them.
    pub(crate) fn download_all(
        &self,
        of: &Repository,
        listing: &Listing,
        files: &[String],
        mut bytes_left: u64,
    ) -> Result<Snapshot, HubError> {
        let agent = https_agent(&self.endpoint);
        let snapshot = self.snapshot(of, listing.commit.clone());
        for file in files {
            let path = snapshot.folder.join(file);
            if !path.is_file() {
                let url = self.url(of, &snapshot.commit, file);
                let failed = |reason: String| self.not_downloaded(of, url.clone(), reason);
                let fetched = self.fetch(&agent, &url, DATA_WITHIN).map_err(failed)?;
                let fetched = fetched.ok_or_else(|| failed("is not there (404)".to_owned()))?;
                self.keep(of, &path, fetched.response, url, bytes_left)?;
            }
            let length = fs::metadata(&path).map_or(0, |facts| facts.len());
            bytes_left = bytes_left.saturating_sub(length);
        }
        self.complete(of, &snapshot)?;
        Ok(snapshot)
    }

    fn url(&self, of: &Repository, revision: &str, file: &str) -> String {
        // Slashes separate folders; whatever else means something in an address is written as its bytes.
        let encode = |byte: u8| match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        };
        let file: String = file.bytes().map(encode).collect();
        format!("{}/{}{}/resolve/{revision}/{file}", self.endpoint, of.prefix(), of.name())
    }

    fn not_downloaded(&self, of: &Repository, url: String, reason: String) -> HubError {
        HubError::NotDownloaded { of: of.clone(), cache: self.cache.clone(), url, reason }
    }

    fn snapshot(&self, of: &Repository, commit: String) -> Snapshot {
        Snapshot { folder: self.folder(of).join("snapshots").join(&commit), commit }
    }

    /// Makes the snapshot the one that is found from now on. This comes last, once its files are there.
    fn complete(&self, of: &Repository, snapshot: &Snapshot) -> Result<(), HubError> {
        let mut commit = snapshot.commit.as_bytes();
        let write = |file: &mut File| io::copy(&mut commit, file).map(drop).map_err(Broken::Here);
        write_whole(&self.folder(of).join("refs/main"), write).map_err(|error| match error {
            Broken::Here(source) => not_kept(&self.folder(of), source),
            Broken::There(reason) => self.not_downloaded(of, self.endpoint.clone(), reason),
        })
    }

    fn keep(
        &self,
        of: &Repository,
        path: &Path,
        response: Response<Body>,
        url: String,
        bytes_max: u64,
    ) -> Result<(), HubError> {
        let write = |file: &mut File| copy(response, file, bytes_max).map_err(Broken::There);
        write_whole(path, write).map_err(|error| match error {
            Broken::Here(source) => not_kept(path, source),
            Broken::There(reason) => self.not_downloaded(of, url, reason),
        })
    }

    /// `None` when the hub has no such file. The token goes to the endpoint alone: files are often
    /// handed out by other hosts.
    fn fetch(&self, agent: &Agent, url: &str, within: Duration) -> Result<Option<Fetched>, String> {
        let mut url = url.to_owned();
        let mut commit = None;
        for _ in 0..=REDIRECTS_MAX {
            let mut request = agent.get(&url).config().timeout_global(Some(within)).build();
            if let Some(token) = &self.token
                && url.starts_with(&format!("{}/", self.endpoint))
            {
                request = request.header("authorization", format!("Bearer {}", token.expose()));
            }
            let response = request.call().map_err(|error| format!("failed: {error}"))?;
            commit = commit.or_else(|| header(&response, "x-repo-commit"));
            match response.status().as_u16() {
                200 => return Ok(Some(Fetched { response, commit })),
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

/// Whether a name from outside stays inside of the folder that it is joined to.
fn is_inside(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['\\', '\0'])
        && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

fn is_commit(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit())
}

fn refused(status: u16, has_token: bool) -> String {
    let hint = if has_token {
        "the token in HF_TOKEN may not read it, or the model's terms are not accepted yet"
    } else {
        "the model is not public, or does not exist; HF_TOKEN can hold a token"
    };
    format!("answered {status}: {hint}")
}

/// Writes the whole body, or says why it is not whole.
fn copy(response: Response<Body>, to: &mut impl Write, bytes_max: u64) -> Result<(), String> {
    let promised: Option<u64> =
        header(&response, "content-length").and_then(|length| length.parse().ok());
    if promised.is_some_and(|length| bytes_max < length) {
        return Err(format!("is larger than {bytes_max} bytes"));
    }
    let mut body = response.into_body().into_with_config().limit(bytes_max).reader();
    let copied = io::copy(&mut body, to).map_err(|error| format!("broke off: {error}"))?;
    match promised {
        Some(length) if copied != length => {
            Err(format!("broke off after {copied} of {length} bytes"))
        }
        _ => Ok(()),
    }
}

fn header(response: &Response<Body>, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// Why a file was not written.
enum Broken {
    Here(io::Error),
    There(String),
}

fn not_kept(path: &Path, source: io::Error) -> HubError {
    HubError::NotKept { path: path.to_owned(), source }
}

/// Under its name the file is whole or not there.
fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<(), Broken>,
) -> Result<(), Broken> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Broken::Here)?;
    }
    let unfinished = path.with_added_extension(format!("{}.incomplete", std::process::id()));
    let created = File::create(&unfinished).map_err(Broken::Here);
    let written = created.and_then(|mut file| write(&mut file));
    written.and_then(|()| fs::rename(&unfinished, path).map_err(Broken::Here)).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&unfinished);
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
pub(crate) mod tests;
