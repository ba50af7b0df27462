//! TLS is verified: a certificate that nobody vouches for is refused, one that is trusted works.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, Stream};

use support::{Engine, http, inferometer, observations, output, text};

struct Secured {
    address: SocketAddr,
    certificate_pem: String,
}

/// A server for `names`, with a certificate that it signed itself.
fn serve(names: &[&str]) -> Secured {
    serve_until(names, 4096)
}

/// The same with a certificate that expires at the beginning of a year.
fn serve_until(names: &[&str], year: i32) -> Secured {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut signed = rcgen::CertificateParams::new(names).unwrap();
    signed.not_after = rcgen::date_time_ymd(year, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = signed.self_signed(&key).unwrap();
    let certificate_pem = certificate.pem();
    let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let config = Arc::clone(&config);
            std::thread::spawn(move || answer(stream, config));
        }
    });
    Secured { address, certificate_pem }
}

fn answer(mut tcp: TcpStream, config: Arc<ServerConfig>) {
    let mut connection = ServerConnection::new(config).unwrap();
    let mut stream = Stream::new(&mut connection, &mut tcp);
    let Some(head) = read_request(&mut stream) else { return };
    let reply = if head.contains("/v1/models") {
        http("200 OK", "application/json", r#"{"object":"list","data":[{"id":"tiny"}]}"#)
    } else {
        let event =
            r#"data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        http("200 OK", "text/event-stream", &format!("{event}\n\ndata: [DONE]\n\n"))
    };
    let _ = stream.write_all(reply.as_bytes());
    connection.send_close_notify();
    let _ = connection.write_tls(&mut tcp);
    let _ = tcp.shutdown(std::net::Shutdown::Write);
    let _ = tcp.read(&mut [0; 1]);
}

/// The head of a request whose Content-Length body has been read too.
fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |value| value.trim().parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some(head)
}

#[test]
fn a_trusted_certificate_is_measured_with_stamps_and_tls_times() {
    let server = serve(&["localhost", "127.0.0.1"]);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("trusted.pem");
    std::fs::write(&store, &server.certificate_pem).unwrap();
    let ran = inferometer()
        .args(["run", &format!("https://{}", server.address), "-q", "--requests", "4"])
        .env("SSL_CERT_FILE", &store)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let observations = observations(folder.path());
    assert_eq!(observations.records.len(), 4);
    for record in &observations.records {
        let dial = record.connection.unwrap().dial.unwrap();
        assert!(dial.connected < dial.secured.unwrap());
        assert!(dial.secured.unwrap() <= record.sent.unwrap(), "the handshake is not the request");
        if cfg!(target_os = "linux") {
            assert!(record.reads.iter().all(|read| read.kernel.is_some()));
        }
    }
}

/// Faults: 21.
#[test]
fn certificates_that_nobody_vouches_for_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&["127.0.0.1"]);
    let url = format!("https://{}", server.address);
    let ran = output(&["run", &url, "-q", "--model", "tiny"], folder.path());
    assert_eq!(ran.status.code(), Some(3));
    let words = text(&ran.stderr);
    assert!(words.contains("tls_error") && words.contains("certificate"), "{words}");

    let server = serve(&["another.example"]);
    let store = folder.path().join("trusted.pem");
    std::fs::write(&store, &server.certificate_pem).unwrap();
    let ran = inferometer()
        .args(["run", &format!("https://{}", server.address), "-q", "--model", "tiny"])
        .env("SSL_CERT_FILE", &store)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(3), "trusted, but for another host");
    assert!(text(&ran.stderr).contains("another.example"), "{}", text(&ran.stderr));

    let server = serve_until(&["127.0.0.1"], 2020);
    std::fs::write(&store, &server.certificate_pem).unwrap();
    let ran = inferometer()
        .args(["run", &format!("https://{}", server.address), "-q", "--model", "tiny"])
        .env("SSL_CERT_FILE", &store)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(3), "trusted, but long ago");
    let words = text(&ran.stderr);
    assert!(words.contains("tls_error") && words.contains("expired"), "{words}");
}

/// Anybody may answer then, and nothing hides it.
/// Faults: 22.
#[test]
fn a_certificate_that_is_not_checked_is_measured_and_said_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(&["another.example"]);
    let url = format!("https://{}", server.address);
    let arguments = ["run", &url, "-q", "--model", "tiny", "--requests", "3"];
    let ran = output(&arguments, folder.path());
    assert_eq!(ran.status.code(), Some(3), "{}", text(&ran.stderr));
    assert!(text(&ran.stderr).contains("--insecure"), "the remedy: {}", text(&ran.stderr));

    let ran = output(&[&arguments[..], &["--insecure"]].concat(), folder.path());
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    let page = text(&ran.stdout);
    assert!(page.contains("NOT checked (--insecure)"), "{page}");
    assert_eq!(observations(folder.path()).records.len(), 3);

    let ran = output(&[&arguments[..], &["--insecure", "--json"]].concat(), folder.path());
    let document: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(document["run"]["insecure"], true);
    assert_eq!(document["outcomes"]["ok"], 3);
    let warnings = document["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["key"] == "insecure"), "{warnings:?}");
}

#[test]
fn a_plain_port_is_not_blamed_on_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&[]);
    let url = format!("https://{}", engine.address);
    let ran = output(&["run", &url, "-q", "--model", "paced"], folder.path());
    assert_eq!(ran.status.code(), Some(3));
    let words = text(&ran.stderr);
    assert!(words.contains("TLS") && words.contains("http://"), "{words}");
}
