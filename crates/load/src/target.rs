//! The server as the driver sees it: one address, one endpoint, the same headers every time.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Connections, HttpVersion, PinnedOutput, UsageAsk};
use inferometer_model::spec::{Cancel, Limits};
use inferometer_model::{BaseUrl, PlannedRequest, Redactor, RequestId, Secret};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use serde_json::{Map, Value};
use tokio_rustls::TlsConnector;

use crate::dialect::Dialect;
use crate::http1::head;

#[derive(Clone)]
pub struct Target {
    pub base: BaseUrl,
    /// Every connection goes here; the name is not resolved again during a run.
    pub address: SocketAddr,
    pub api: Api,
    pub model: String,
    pub streaming: bool,
    pub usage: UsageAsk,
    /// Fields of every body: sampling, tools and the like.
    pub fields: Map<String, Value>,
    pub pinned: PinnedOutput,
    pub connections: Connections,
    pub http: HttpVersion,
    pub limits: Limits,
    /// Which requests are ended before their answers are whole.
    pub cancel: Option<Cancel>,
    pub credentials: Credentials,
    /// Begins each request's `x-request-id`, so that server logs can be matched with records.
    pub request_id_prefix: String,
    /// Whether to ask the kernel when bytes came. Without its stamps a read's own moment counts; a
    /// calibration measures what that costs.
    pub kernel_stamps: bool,
    /// Present when the base URL is https.
    pub tls: Option<TlsConnector>,
    /// Other servers, over which requests are balanced with this one.
    pub replicas: Vec<Replica>,
}

/// Where another server is, which is asked as the first one is.
#[derive(Clone)]
pub struct Replica {
    pub base: BaseUrl,
    pub address: SocketAddr,
    pub tls: Option<TlsConnector>,
}

inferometer_model::debug_fields!(Replica, base, address);

inferometer_model::debug_fields!(Target, base, address, api, model);

/// Headers that may hold secrets, and the means to strike those out of what comes back.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    headers: HeaderMap,
    /// Headers whose values are made anew for each request, as they were typed.
    varied: Vec<(HeaderName, Secret)>,
    /// The API key bare, for APIs that have a header of their own for it.
    key: Option<HeaderValue>,
    redactor: Redactor,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The name is not repeated: someone may have typed a key in its place.
    #[error("the text before the colon is not a legal header name")]
    Name,
    #[error("the value of header `{0}` holds characters that a header cannot carry")]
    Value(String),
    #[error("header `{0}` belongs to the framing of the request and cannot be set")]
    Framing(String),
}

/// Setting these by hand would break the request or the honesty of its timing.
const FRAMING_HEADERS: [HeaderName; 6] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::ACCEPT_ENCODING,
    header::EXPECT,
];

impl Credentials {
    /// The API key becomes a bearer token, unless a header sets `authorization` outright.
    pub fn new(
        api_key: Option<&Secret>,
        extra_headers: &[(String, Secret)],
    ) -> Result<Self, HeaderError> {
        let bearer = api_key.map(|key| {
            ("authorization".to_owned(), Secret::new(format!("Bearer {}", key.expose())))
        });
        let (mut headers, mut varied) = (HeaderMap::new(), Vec::new());
        for (name, value) in bearer.iter().chain(extra_headers) {
            let header = HeaderName::try_from(name.as_str()).map_err(|_| HeaderError::Name)?;
            if FRAMING_HEADERS.contains(&header) {
                return Err(HeaderError::Framing(name.clone()));
            }
            let checked = sensitive(name, value)?;
            if PLACEHOLDERS.iter().any(|placeholder| value.expose().contains(placeholder)) {
                varied.push((header, value.clone()));
            } else {
                headers.insert(header, checked);
            }
        }
        let key = api_key.map(|key| sensitive(API_KEY.as_str(), key)).transpose()?;
        // What is sent has other text in the places of the placeholders.
        let parts: Vec<Secret> =
            varied.iter().flat_map(|(_, value)| literal_parts(value.expose())).collect();
        let secrets = api_key.into_iter().chain(extra_headers.iter().map(|(_, value)| value));
        let secrets = secrets.chain(&parts);
        Ok(Self { headers, varied, key, redactor: Redactor::new(secrets) })
    }

    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Strikes out these, too.
    pub fn hide<'a>(&mut self, secrets: impl IntoIterator<Item = &'a Secret>) {
        self.redactor = std::mem::take(&mut self.redactor).with(secrets);
    }
}

fn sensitive(name: &str, value: &Secret) -> Result<HeaderValue, HeaderError> {
    let mut value =
        HeaderValue::try_from(value.expose()).map_err(|_| HeaderError::Value(name.to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// What stands for the name of a request, and for that of the first request of its session, in the value
/// of a header.
const PLACEHOLDERS: [&str; 2] = ["{request}", "{session}"];
/// Shorter parts of a header, and those without a digit, are words of many texts.
const PART_MIN: usize = 12;

/// What stands between the placeholders of a header, if it may be a key.
fn literal_parts(value: &str) -> Vec<Secret> {
    let parts = value.split(PLACEHOLDERS[0]).flat_map(|part| part.split(PLACEHOLDERS[1]));
    let parts = parts.map(|part| part.trim_matches(|c: char| !c.is_alphanumeric()));
    let is_secret =
        |part: &&str| PART_MIN <= part.len() && part.contains(|c: char| c.is_ascii_digit());
    parts.filter(is_secret).map(|part| Secret::new(part.to_owned())).collect()
}

/// All of a measured request but its body and its name, made once.
#[derive(Clone, Debug)]
pub(crate) struct RequestTemplate {
    uri: http::Uri,
    headers: HeaderMap,
    varied: Vec<(HeaderName, Secret)>,
    request_id_prefix: String,
    /// For HTTP/1.1: all of the head before the number in its name.
    head: Vec<u8>,
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

impl RequestTemplate {
    /// The headers that differ from request to request, but for its name.
    fn varied(&self, asked: &PlannedRequest) -> impl Iterator<Item = (&HeaderName, String)> {
        let name = |id: RequestId| format!("{}-{id}", self.request_id_prefix);
        let names = [name(asked.id), name(asked.conversation())];
        self.varied.iter().map(move |(header, typed)| {
            let parts = PLACEHOLDERS.iter().zip(&names);
            let typed = typed.expose().to_owned();
            (header, parts.fold(typed, |text, (from, to)| text.replace(from, to)))
        })
    }

    pub(crate) fn request(&self, asked: &PlannedRequest) -> http::Request<()> {
        let id = asked.id;
        let mut request = http::Request::new(());
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = self.uri.clone();
        let mut headers = self.headers.clone();
        let name = format!("{}-{id}", self.request_id_prefix);
        if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(name)) {
            headers.insert(REQUEST_ID, value);
        }
        for (header, value) in self.varied(asked) {
            headers.extend(HeaderValue::try_from(value).ok().map(|value| (header.clone(), value)));
        }
        *request.headers_mut() = headers;
        request
    }

    /// The head for a body of so many bytes, as HTTP/1.1 writes it.
    pub(crate) fn written(
        &self,
        room: Vec<u8>,
        asked: &PlannedRequest,
        body_bytes: usize,
    ) -> Vec<u8> {
        let mut head = room;
        head.extend_from_slice(&self.head);
        // To write into memory cannot fail.
        let _ = write!(head, "{}\r\n", asked.id);
        if !self.varied.is_empty() {
            for (header, value) in self.varied(asked) {
                let _ = write!(head, "{header}: {value}\r\n");
            }
        }
        let _ = write!(head, "content-length: {body_bytes}\r\n\r\n");
        head
    }
}

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

impl Target {
    /// This server and its replicas, each as a target of its own.
    pub fn each(&self) -> impl Iterator<Item = Self> {
        let alone = Self { replicas: Vec::new(), ..self.clone() };
        let others = self.replicas.iter().map({
            let alone = alone.clone();
            move |Replica { base, address, tls }| {
                let (base, address, tls) = (base.clone(), *address, tls.clone());
                Self { base, address, tls, ..alone.clone() }
            }
        });
        std::iter::once(alone).chain(others)
    }

    /// Whether answers are asked for piece by piece.
    pub(crate) fn streams(&self) -> bool {
        self.streaming && self.api.generates()
    }

    /// What every request to the measured endpoint has in common.
    pub(crate) fn template(&self) -> RequestTemplate {
        let path = self.base.path(&self.api.path(self.streams(), &self.model));
        let request = self.plain_request(http::Method::POST, &path);
        let (mut parts, ()) = request.into_parts();
        if self.api.facts().streams_lines {
            let lines = HeaderValue::from_static("application/x-ndjson, application/json");
            parts.headers.insert(header::ACCEPT, lines);
        }
        // Room for the name of each request, so that the copies need not grow.
        parts.headers.insert(REQUEST_ID, HeaderValue::from_static(""));
        // Without one that a header can carry, requests are named by their numbers alone.
        let is_legal = |prefix: &String| HeaderValue::try_from(prefix).is_ok();
        let request_id_prefix = Some(self.request_id_prefix.clone()).filter(is_legal);
        let request_id_prefix = request_id_prefix.unwrap_or_default();
        let mut head = head(&parts, Some(&REQUEST_ID));
        head.extend_from_slice(format!("{REQUEST_ID}: {request_id_prefix}-").as_bytes());
        let varied = self.credentials.varied.clone();
        RequestTemplate { uri: parts.uri, headers: parts.headers, varied, request_id_prefix, head }
    }

    pub(crate) fn plain_request(&self, method: http::Method, path: &str) -> http::Request<()> {
        let has_body = method == http::Method::POST;
        // HTTP/2 names the host in the address instead of in a header.
        let address = match self.http {
            HttpVersion::Http1 => path.to_owned(),
            HttpVersion::Http2 => {
                let scheme = if self.base.tls { "https" } else { "http" };
                format!("{scheme}://{}{path}", self.base.authority())
            }
        };
        let mut request = http::Request::new(());
        *request.method_mut() = method;
        // The prefix came out of a parsed URL, so it is a legal path.
        *request.uri_mut() = address.parse().unwrap_or_default();
        let headers = request.headers_mut();
        headers.reserve(8 + self.credentials.headers.len());
        if self.http == HttpVersion::Http1
            && let Ok(host) = HeaderValue::try_from(self.base.authority())
        {
            headers.insert(header::HOST, host);
        }
        if has_body {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("text/event-stream, application/json"),
        );
        // A compressed stream would hold tokens back and hide their timing.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let agent = concat!("inferometer/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        for (name, value) in &self.credentials.headers {
            headers.insert(name, value.clone());
        }
        // Anthropic's own servers refuse a request without these, their list of models included;
        // other servers of this API read the bearer token. Headers set by the user stay.
        if Dialect::for_api(self.api).anthropic_headers {
            let version = HeaderValue::from_static("2023-06-01");
            headers.entry("anthropic-version").or_insert(version);
            if let Some(key) = &self.credentials.key {
                headers.entry(API_KEY).or_insert_with(|| key.clone());
            }
        }
        request
    }
}

/// Whether the server must prove who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateCheck {
    System,
    /// Any server may answer. Only with the user's flag, and every page reports it.
    None,
}

pub fn connector(check: CertificateCheck, http: HttpVersion) -> TlsConnector {
    let mut config = match check {
        CertificateCheck::System => {
            let mut roots = rustls::RootCertStore::empty();
            // A store with one unreadable certificate still serves with the others.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
        }
        CertificateCheck::None => {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let verifier = Arc::new(AnyCertificate(provider));
            let config = ClientConfig::builder().dangerous();
            config.with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
    };
    config.alpn_protocols = match http {
        HttpVersion::Http1 => vec![b"http/1.1".to_vec()],
        HttpVersion::Http2 => vec![b"h2".to_vec()],
    };
    TlsConnector::from(Arc::new(config))
}

/// Asks for no proof of identity. Signatures are still checked: the handshake itself must be sound.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_becomes_a_bearer_token_and_debug_does_not_show_it() {
        let credentials = Credentials::new(Some(&Secret::new("sk-0123456789")), &[]).unwrap();
        assert_eq!(credentials.headers["authorization"], "Bearer sk-0123456789");
        assert!(!format!("{credentials:?}").contains("sk-0123456789"));
        assert_eq!(credentials.redactor().redact("bad key sk-0123456789"), "bad key [redacted]");
    }

    fn template(api: Api, headers: &[(String, Secret)]) -> RequestTemplate {
        template_with(api, Credentials::new(None, headers).unwrap())
    }

    fn template_with(api: Api, credentials: Credentials) -> RequestTemplate {
        let target = Target {
            base: "http://h:1/team".parse().unwrap(),
            address: ([127, 0, 0, 1], 1).into(),
            api,
            model: "org/m".to_owned(),
            streaming: true,
            usage: UsageAsk::Final,
            fields: Map::new(),
            pinned: PinnedOutput::default(),
            connections: Connections::Reuse,
            http: HttpVersion::Http1,
            limits: Limits::default(),
            cancel: None,
            credentials,
            request_id_prefix: String::new(),
            kernel_stamps: false,
            tls: None,
            replicas: Vec::new(),
        };
        target.template()
    }

    #[test]
    fn every_api_has_a_legal_address() {
        for api in Api::all() {
            let path = template(api, &[]).uri.path().to_owned();
            assert_eq!(path, format!("/team{}", api.path(api.generates(), "org/m")));
        }
        let triton = template(Api::TritonGenerate, &[]).uri;
        assert_eq!(triton.path(), "/team/v2/models/org%2Fm/generate_stream");
    }

    #[test]
    fn headers_that_an_api_wants_are_sent_unless_set_by_hand() {
        let name = "anthropic-version".to_owned();
        let sent = |api, headers: &[(String, Secret)]| {
            let template = template(api, headers);
            let value = template.headers.get("anthropic-version").cloned();
            value.map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(sent(Api::Messages, &[]).as_deref(), Some("2023-06-01"));
        let own = [(name, Secret::new("2030-01-01"))];
        assert_eq!(sent(Api::Messages, &own).as_deref(), Some("2030-01-01"));
        assert_eq!(sent(Api::Chat, &[]), None);
        let accept = |api| template(api, &[]).headers[header::ACCEPT].clone();
        assert_eq!(accept(Api::OllamaChat), "application/x-ndjson, application/json");
        assert_eq!(accept(Api::Chat), "text/event-stream, application/json");
    }

    #[test]
    fn a_key_goes_into_both_headers_of_the_messages_api() {
        let key = Secret::new("sk-0123456789");
        let sent = |api, headers: &[(String, Secret)]| {
            let credentials = Credentials::new(Some(&key), headers).unwrap();
            template_with(api, credentials).headers
        };
        let headers = sent(Api::Messages, &[]);
        assert_eq!(headers["authorization"], "Bearer sk-0123456789");
        assert_eq!(headers[API_KEY], "sk-0123456789");
        assert!(headers[API_KEY].is_sensitive());
        assert!(!format!("{headers:?}").contains("sk-0123456789"));
        let own = [("X-Api-Key".to_owned(), Secret::new("sk-another-key"))];
        assert_eq!(sent(Api::Messages, &own)[API_KEY], "sk-another-key");
        assert!(!sent(Api::Chat, &[]).contains_key(API_KEY));
    }

    #[test]
    fn headers_may_name_the_request_and_its_session() {
        let typed = ("X-Session".to_owned(), Secret::new("s-{session}/{request}"));
        let mut template = template(Api::Chat, &[typed]);
        template.request_id_prefix = "run".to_owned();
        let alone = PlannedRequest::alone(RequestId(7), inferometer_model::Release::WhenSlotFree);
        let asked = PlannedRequest { turn: 2, ..alone };
        let expected = "s-run-5/run-7";
        assert_eq!(template.request(&asked).headers()["x-session"], expected);
        let written = String::from_utf8(template.written(Vec::new(), &asked, 3)).unwrap();
        assert!(written.contains(&format!("\r\nx-session: {expected}\r\n")), "{written}");
        assert!(written.ends_with("\r\ncontent-length: 3\r\n\r\n"), "{written}");
    }

    #[test]
    fn a_key_beside_a_placeholder_is_struck_out_where_a_server_repeats_it() {
        let typed = ("X-Auth".to_owned(), Secret::new("sk-live-0123456-{session}"));
        let credentials = Credentials::new(None, &[typed]).unwrap();
        let said = credentials.redactor().redact("no key sk-live-0123456-run-5, session");
        assert!(!said.contains("sk-live-0123456") && said.contains("session"), "{said}");
    }

    #[test]
    fn headers_that_frame_the_request_are_refused() {
        let set = |name: &str, value: &str| {
            Credentials::new(None, &[(name.to_owned(), Secret::new(value))]).map(|_| ())
        };
        assert_eq!(set("Content-Length", "1"), Err(HeaderError::Framing("Content-Length".into())));
        assert_eq!(set("a b", "1"), Err(HeaderError::Name));
        assert_eq!(set("x-a", "1\r\nx-b: 2"), Err(HeaderError::Value("x-a".into())));
        assert_eq!(set("x-a", "1"), Ok(()));
    }
}
