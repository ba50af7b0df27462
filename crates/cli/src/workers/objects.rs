//! Runs of workers in an object store. A worker leaves its run there when it has ended, and a merge
//! fetches those of all. Keys come from the environment, as the store's own tools read them.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File};
use std::future::Future;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use http_body_util::BodyExt;
use inferometer_model::Stripe;
use inferometer_store::RunDirectory;
use inferometer_workload::tokenizer::https_agent;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{
    ClientConfigKey, ClientOptions, ObjectMeta, ObjectStore, ObjectStoreExt, ObjectStoreScheme,
    RetryConfig, WriteMultipart,
};
use tokio::runtime::{Builder, Runtime};
use ureq::Agent;
use url::Url;

use crate::failure::{Failure, Result};
use crate::report_files::files_below;

/// What is in memory of a file, and the largest file that is sent whole.
const PART_BYTES: u64 = 8 << 20;
/// A list of objects, or a part of one.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
const RETRY_WITHIN: Duration = Duration::from_mins(1);
/// It is sent last: a run without it was not sent as a whole, and is not fetched.
const MANIFEST: &str = "manifest.json";

/// A folder of an object store.
#[derive(Debug)]
pub(crate) struct Objects {
    url: String,
    store: Box<dyn ObjectStore>,
    folder: ObjectPath,
    runtime: Runtime,
}

impl Objects {
    pub(crate) fn open(address: &str) -> Result<Self> {
        let refused = |why: &dyn Display| {
            Failure::usage(format!("{address:?} is not the address of a folder of objects: {why}"))
                .hint("write it as s3://bucket/folder, gs://…, az://container/… or file:///folder")
        };
        super::refuse_key(address)?;
        let url = Url::parse(address).map_err(|error| refused(&error))?;
        let (scheme, folder) = ObjectStoreScheme::parse(&url).map_err(|error| refused(&error))?;
        let retry = RetryConfig { retry_timeout: RETRY_WITHIN, ..RetryConfig::default() };
        let store: Result<Box<dyn ObjectStore>, object_store::Error> = match scheme {
            ObjectStoreScheme::AmazonS3 => {
                let builder = AmazonS3Builder::from_env().with_url(address).with_retry(retry);
                builder.with_http_connector(Http::default()).build().map(|it| Box::new(it) as _)
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                let builder = GoogleCloudStorageBuilder::from_env().with_url(address);
                let builder = builder.with_retry(retry).with_http_connector(Http::default());
                builder.build().map(|it| Box::new(it) as _)
            }
            ObjectStoreScheme::MicrosoftAzure => {
                let builder = MicrosoftAzureBuilder::from_env().with_url(address).with_retry(retry);
                builder.with_http_connector(Http::default()).build().map(|it| Box::new(it) as _)
            }
            ObjectStoreScheme::Local => Ok(Box::new(LocalFileSystem::new())),
            ObjectStoreScheme::Memory | ObjectStoreScheme::Http | _ => {
                return Err(refused(&"its kind is not known"));
            }
        };
        let runtime = Builder::new_current_thread().enable_time().build();
        Ok(Self {
            url: address.to_owned(),
            store: store.map_err(Failure::from_usage)?,
            folder,
            runtime: runtime.map_err(Failure::from_error)?,
        })
    }

    fn failure(&self, error: impl Display) -> Failure {
        Failure::from_usage(error).about(&self.url)
    }

    /// Sends the run of a worker, which stays here too.
    pub(crate) fn upload(&self, stripe: Stripe, run: &RunDirectory) -> Result<()> {
        let mut files = files_below(run.path()).map_err(|error| self.failure(error))?;
        files.sort_by_key(|file| file.ends_with(MANIFEST));
        let worker = format!("{}-of-{}", stripe.index, stripe.count);
        let folder = self.folder.clone().join(worker).join(run.id());
        for file in files {
            let within = file.strip_prefix(run.path()).unwrap_or(&file);
            let parts = within.iter().map(|part| part.to_string_lossy().into_owned());
            let to = parts.fold(folder.clone(), ObjectPath::join);
            self.runtime.block_on(self.send(&file, &to)).map_err(|error| {
                let hint = format!("the run is kept in {}", run.path().display());
                self.failure(error).hint(hint)
            })?;
        }
        Ok(())
    }

    async fn send(&self, file: &Path, to: &ObjectPath) -> Result<(), object_store::Error> {
        let mut file = File::open(file).map_err(local)?;
        if file.metadata().map_err(local)?.len() <= PART_BYTES {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(local)?;
            return self.store.put(to, bytes.into()).await.map(drop);
        }
        let upload = self.store.put_multipart(to).await?;
        let part_bytes = usize::try_from(PART_BYTES).unwrap_or(usize::MAX);
        let mut upload = WriteMultipart::new_with_chunk_size(upload, part_bytes);
        let mut part = vec![0; part_bytes];
        loop {
            match file.read(&mut part).map_err(local)? {
                0 => return upload.finish().await.map(drop),
                read => upload.write(part.get(..read).unwrap_or_default()),
            }
            upload.wait_for_capacity(1).await?;
        }
    }

    /// Fetches what workers have sent, and returns the folder of each worker.
    pub(crate) fn download(&self, into: &Path) -> Result<Vec<PathBuf>> {
        let objects = self.runtime.block_on(self.list()).map_err(|error| self.failure(error))?;
        let place = |object: &ObjectMeta| {
            let parts = object.location.prefix_match(&self.folder).into_iter().flatten();
            parts.map(|part| part.as_ref().to_owned()).collect::<Vec<String>>()
        };
        let manifests = objects.iter().map(place).filter(|parts| parts.len() == 3);
        let whole: BTreeSet<Vec<String>> = manifests
            .filter(|parts| parts.last().is_some_and(|name| name == MANIFEST))
            .map(|parts| parts[..2].to_vec())
            .collect();
        let mut workers = Vec::new();
        for object in objects {
            let parts = place(&object);
            if !parts.get(..2).is_some_and(|run| whole.contains(run)) {
                continue;
            }
            let worker = into.join(&parts[0]);
            let to = parts.iter().fold(into.to_owned(), |to, part| to.join(part));
            let fetched = self.runtime.block_on(self.fetch(&object, &to));
            fetched.map_err(|error| self.failure(error))?;
            if !workers.contains(&worker) {
                workers.push(worker);
            }
        }
        if workers.is_empty() {
            return Err(Failure::usage(format!("{} holds no run of a worker", self.url))
                .hint("workers leave their runs there with --results"));
        }
        Ok(workers)
    }

    async fn list(&self) -> Result<Vec<ObjectMeta>, object_store::Error> {
        let (mut folders, mut objects) = (vec![self.folder.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            let found = self.store.list_with_delimiter(Some(&folder)).await?;
            folders.extend(found.common_prefixes);
            objects.extend(found.objects);
        }
        Ok(objects)
    }

    async fn fetch(&self, object: &ObjectMeta, to: &Path) -> Result<(), object_store::Error> {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(local)?;
        }
        let mut file = File::create(to).map_err(local)?;
        let mut at = 0;
        while at < object.size {
            let end = object.size.min(at + PART_BYTES);
            let part = self.store.get_range(&object.location, at..end).await?;
            file.write_all(&part).map_err(local)?;
            at = end;
        }
        Ok(())
    }
}

fn local(error: std::io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "this machine", source: Box::new(error) }
}

/// The HTTP client that the program has already. Every call waits for its answer.
#[derive(Clone, Debug, Default)]
struct Http {
    agent: OnceLock<Agent>,
    /// Whether keys may be sent without TLS.
    allows_plain: bool,
}

impl HttpConnector for Http {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allowed = options.get_config_value(&ClientConfigKey::AllowHttp);
        let allows_plain = allowed.is_some_and(|value| value == "true");
        Ok(HttpClient::new(Self { allows_plain, ..self.clone() }))
    }
}

type Called<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for Http {
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> Called<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            if head.uri.scheme_str() != Some("https") && !self.allows_plain {
                let why = "the store has no TLS; set AWS_ALLOW_HTTP, GOOGLE_ALLOW_HTTP or \
                           AZURE_ALLOW_HTTP to true if that is intended";
                return Err(HttpError::new(HttpErrorKind::Unknown, std::io::Error::other(why)));
            }
            let body = body.collect().await?.to_bytes();
            let agent = self.agent.get_or_init(|| https_agent(&head.uri.to_string()));
            let failed = |error: ureq::Error| {
                // What was not sent may be sent again.
                let is_unsent = matches!(&error, ureq::Error::Io(io) if io.kind() == ErrorKind::ConnectionRefused)
                    || matches!(error, ureq::Error::HostNotFound | ureq::Error::ConnectionFailed);
                let kind = if matches!(error, ureq::Error::Timeout(_)) {
                    HttpErrorKind::Timeout
                } else if is_unsent {
                    HttpErrorKind::Connect
                } else if matches!(error, ureq::Error::Io(_)) {
                    HttpErrorKind::Interrupted
                } else {
                    HttpErrorKind::Unknown
                };
                HttpError::new(kind, error)
            };
            let request = http::Request::from_parts(head, &body[..]);
            let (head, mut body) = agent.run(request).map_err(failed)?.into_parts();
            let bytes = body.with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(failed)?;
            Ok(HttpResponse::from_parts(head, bytes.into()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_the_same_when_it_was_sent_and_fetched() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        fs::create_dir_all(run.join("within")).unwrap();
        // Longer than two parts, and no multiple of one.
        let long: Vec<u8> =
            (0..(PART_BYTES * 2 + 77)).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let files =
            [(MANIFEST, &b"{}"[..]), ("requests.journal", &long[..]), ("within/empty", &[])];
        // A worker that was killed while it sent its run.
        let cut = folder.path().join("store/a/3-of-4/run");
        fs::create_dir_all(&cut).unwrap();
        fs::write(cut.join("requests.journal"), b"half").unwrap();
        for (name, bytes) in files {
            fs::write(run.join(name), bytes).unwrap();
        }
        let objects =
            Objects::open(&format!("file://{}/store/a", folder.path().display())).unwrap();
        let other = Objects::open(&format!("file://{}/store/ab", folder.path().display())).unwrap();
        let directory = RunDirectory::at(run);
        objects.upload("2/4".parse().unwrap(), &directory).unwrap();
        other.upload("3/4".parse().unwrap(), &directory).unwrap();
        let into = folder.path().join("fetched");
        assert_eq!(objects.download(&into).unwrap(), [into.join("2-of-4")]);
        for (name, bytes) in files {
            assert!(fs::read(into.join("2-of-4/run").join(name)).unwrap() == bytes, "{name}");
        }
    }

    #[test]
    fn what_is_no_address_or_holds_a_key_is_refused() {
        for wrong in [
            "s3",
            "ftp://host/a",
            "https://host/a",
            "s3://key:word@bucket/a",
            "s3://key:wo/word@bucket/a",
            "gs://b/a?k=word",
        ] {
            let refusal = Objects::open(wrong).unwrap_err();
            assert!(!refusal.message().contains("word"), "{refusal:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let empty = Objects::open(&format!("file://{}", folder.path().display())).unwrap();
        let refusal = empty.download(&folder.path().join("fetched")).unwrap_err();
        assert!(refusal.message().ends_with("holds no run of a worker"), "{refusal:?}");
    }
}
