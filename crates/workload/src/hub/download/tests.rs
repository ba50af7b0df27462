//! Downloads from a server of our own on the loopback.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use inferometer_model::Secret;
use inferometer_model::TokenCounter as _;
use tempfile::TempDir;

use super::*;
use crate::tokenizer::tests::{hub, small};
use crate::tokenizer::{Tokenizer, TokenizerError};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

pub(crate) struct Asked {
    pub(crate) path: String,
    authorization: Option<String>,
}

/// Answers each request by its path, and tells what it was asked.
pub(crate) fn serve(
    answer: impl Fn(&str) -> Vec<u8> + Send + 'static,
) -> (String, Receiver<Asked>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = channel();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
            let Some(Ok(first)) = lines.next() else { continue };
            let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
            let head: Vec<String> =
                lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let authorization = head.iter().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("authorization").then(|| value.to_owned())
            });
            let _ = connection.write_all(&answer(&path));
            if tell.send(Asked { path, authorization }).is_err() {
                return;
            }
        }
    });
    (endpoint, told)
}

pub(crate) fn reply(status: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}

pub(crate) fn not_found() -> Vec<u8> {
    reply("404 Not Found", "", "")
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_in(&path));
        } else {
            found.push(path.strip_prefix(folder).unwrap().to_owned());
        }
    }
    found
}

fn refusal(answer: Vec<u8>) -> (String, TempDir) {
    let (endpoint, _asked) = serve(move |_| answer.clone());
    let cache = tempfile::tempdir().unwrap();
    let error = Tokenizer::open_with("owner/model", &hub(&cache, &endpoint)).unwrap_err();
    assert!(matches!(error, TokenizerError::Hub(HubError::NotDownloaded { .. })));
    let error = error.to_string();
    for part in [endpoint.as_str(), cache.path().to_str().unwrap(), "--tokenizer"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(files_in(cache.path()), Vec::<PathBuf>::new(), "nothing is left behind");
    (error, cache)
}

#[test]
fn a_tokenizer_is_downloaded_once_with_what_lies_beside_it() {
    let commit = format!("x-repo-commit: {COMMIT}\r\n");
    let (endpoint, asked) = serve(move |path| match path {
        "/owner/model/resolve/main/tokenizer.json" => reply("200 OK", &commit, &small()),
        "/owner/model/resolve/main/chat_template.jinja" => reply("200 OK", "", "hello"),
        _ => not_found(),
    });
    let cache = tempfile::tempdir().unwrap();
    let hub = hub(&cache, &endpoint);
    let tokenizer = Tokenizer::open_with("owner/model", &hub).unwrap();
    assert_eq!(tokenizer.count("one two"), 2);
    assert_eq!(tokenizer.render_chat(&[], false).unwrap().as_deref(), Some("hello"));
    assert_eq!(asked.try_iter().count(), 5);
    let snapshot = cache.path().join("models--owner--model/snapshots").join(COMMIT);
    assert_eq!(fs::read_to_string(snapshot.join("tokenizer.json")).unwrap(), small());

    Tokenizer::open_with("owner/model", &Hub { offline: true, ..hub }).unwrap();
    assert_eq!(asked.try_iter().count(), 0, "the second time it is in the cache");
}

#[test]
fn the_token_goes_to_the_endpoint_and_not_where_it_sends_us() {
    let (elsewhere, asked_elsewhere) = serve(|_| reply("200 OK", "", &small()));
    let (endpoint, asked) = serve(move |path| {
        if path.ends_with("tokenizer.json") {
            reply("302 Found", &format!("location: {elsewhere}/file\r\n"), "")
        } else {
            not_found()
        }
    });
    let cache = tempfile::tempdir().unwrap();
    let hub = Hub { token: Some(Secret::new("t0ken")), ..hub(&cache, &endpoint) };
    Tokenizer::open_with("owner/model", &hub).unwrap();
    let first = asked.recv().unwrap();
    assert_eq!(first.path, "/owner/model/resolve/main/tokenizer.json");
    assert_eq!(first.authorization.as_deref(), Some("Bearer t0ken"));
    let second = asked_elsewhere.recv().unwrap();
    assert_eq!((second.path.as_str(), second.authorization), ("/file", None));
}

#[test]
fn a_model_that_is_not_there_is_said_to_be_missing() {
    assert!(refusal(not_found()).0.contains("404"));
}

#[test]
fn a_model_that_is_not_public_is_said_to_need_a_token() {
    let (error, _) = refusal(reply("401 Unauthorized", "", "secret page"));
    assert!(error.contains("401") && error.contains("HF_TOKEN"), "{error}");
}

#[test]
fn a_body_that_breaks_off_is_no_tokenizer() {
    let mut half = reply("200 OK", "", &small());
    half.truncate(half.len() - 20);
    assert!(refusal(half).0.contains("broke off"));
}

#[test]
fn a_server_that_is_not_there_is_said_to_be_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let cache = tempfile::tempdir().unwrap();
    let error = Tokenizer::open_with("model", &hub(&cache, &endpoint)).unwrap_err().to_string();
    assert!(error.contains("failed:") && error.contains(&endpoint), "{error}");
}
