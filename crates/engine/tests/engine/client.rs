//! An engine in a thread, and a small blocking HTTP client for it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_engine::truth::{Ended, Truth};
use inferometer_engine::{EngineError, EngineOptions, Mode, Pacing, Stop, StopHandle, serve};
use serde_json::Value;

/// An engine that ends with the test.
pub(crate) struct Engine {
    pub(crate) address: SocketAddr,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<(), EngineError>>>,
}

impl Engine {
    pub(crate) fn start(options: EngineOptions) -> Self {
        let stop = Stop::new().unwrap();
        let handle = stop.handle();
        let (announce, announced) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            serve(options, stop, |address| announce.send(address).unwrap())
        });
        let address = announced.recv().unwrap();
        Self { address, stop: handle, thread: Some(thread) }
    }

    /// A paced engine whose tokens are all due at once.
    pub(crate) fn instant() -> Self {
        Self::start(EngineOptions { pacing: at_once(), ..EngineOptions::new(Mode::Paced) })
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    pub(crate) fn truth(&self) -> Truth {
        let response = self.client().get("/truth");
        assert_eq!(response.status, 200);
        serde_json::from_slice(&response.body).unwrap()
    }

    /// Asks for the truth until it is as expected; a connection's end is seen soon, not at once.
    pub(crate) fn truth_when(&self, mut expected: impl FnMut(&Truth) -> bool) -> Truth {
        let mut client = self.client();
        for _ in 0..100_000 {
            let truth: Truth = serde_json::from_slice(&client.get("/truth").body).unwrap();
            if expected(&truth) {
                return truth;
            }
        }
        panic!("the truth never became as expected");
    }

    /// The truth once no request is running any more.
    pub(crate) fn truth_at_rest(&self) -> Truth {
        self.truth_when(|truth| truth.requests.iter().all(|r| r.ended != Ended::Running))
    }

    pub(crate) fn finish(mut self) -> Result<(), EngineError> {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

pub(crate) fn at_once() -> Pacing {
    Pacing { ttft: Duration::ZERO, gap: Duration::ZERO, tokens: 5, ..Pacing::default() }
}

/// One keep-alive connection.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    /// Read from the socket; the first `used` bytes were used.
    ahead: Vec<u8>,
    used: usize,
}

/// A response, taken apart.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The chunks of a chunked body, the last and empty one left out.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// All bytes, head and framing included.
    pub(crate) wire_bytes: usize,
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }

    /// The JSON of a stream's events, and whether `[DONE]` came after them.
    pub(crate) fn events(&self) -> (Vec<Value>, bool) {
        let mut data = crate::sse::decode(&self.body);
        let done = data.pop_if(|last| last == "[DONE]").is_some();
        (data.iter().map(|data| serde_json::from_str(data).unwrap()).collect(), done)
    }
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        // A test that would hang fails instead.
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream, ahead: Vec::new(), used: 0 }
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.request("GET", path, "")
    }

    pub(crate) fn chat(&mut self, fields: &str) -> Response {
        let body = chat_body(fields);
        self.request("POST", "/v1/chat/completions", &body)
    }

    pub(crate) fn complete(&mut self, fields: &str) -> Response {
        let body = format!(r#"{{"prompt":"one two three",{fields}}}"#);
        self.request("POST", "/v1/completions", &body)
    }

    pub(crate) fn request(&mut self, method: &str, path: &str, body: &str) -> Response {
        self.send(request_text(method, path, body).as_bytes());
        self.response()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    pub(crate) fn response(&mut self) -> Response {
        let head = self.take_through(b"\r\n\r\n");
        let head_text = String::from_utf8(head.clone()).unwrap();
        let status = head_text[9..12].parse().unwrap();
        let mut response =
            Response { status, head: head_text, body: vec![], chunks: vec![], wire_bytes: 0 };
        let lower = response.head.to_ascii_lowercase();
        let framing = if let Some((_, rest)) = lower.split_once("content-length: ") {
            let length = rest.split("\r\n").next().unwrap().parse().unwrap();
            response.body = self.take(length);
            length
        } else if lower.contains("transfer-encoding: chunked") {
            self.chunked(&mut response)
        } else {
            0
        };
        response.wire_bytes = head.len() + framing;
        response
    }

    /// Reads to the end of the stream; fails if the connection is kept.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = self.ahead.split_off(self.used);
        self.stream.read_to_end(&mut rest).unwrap();
        rest
    }

    pub(crate) fn leave(self) {
        self.stream.shutdown(Shutdown::Both).unwrap();
    }

    pub(crate) fn take_through(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            let unused = &self.ahead[self.used..];
            if let Some(at) = unused.windows(end.len()).position(|window| window == end) {
                return self.take(at + end.len());
            }
            self.fill();
        }
    }

    fn chunked(&mut self, response: &mut Response) -> usize {
        let mut wire_bytes = 0;
        loop {
            let line = self.take_through(b"\r\n");
            let size = str::from_utf8(&line[..line.len() - 2]).unwrap();
            let length = usize::from_str_radix(size, 16).unwrap();
            let chunk = self.take(length);
            assert_eq!(self.take(2), b"\r\n");
            wire_bytes += line.len() + length + 2;
            if length == 0 {
                return wire_bytes;
            }
            response.body.extend_from_slice(&chunk);
            response.chunks.push(chunk);
        }
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        while self.ahead.len() < self.used + length {
            self.fill();
        }
        let start = self.used;
        self.used += length;
        self.ahead[start..self.used].to_vec()
    }

    fn fill(&mut self) {
        self.ahead.drain(..self.used);
        self.used = 0;
        let mut buffer = vec![0; 1 << 16];
        let length = self.stream.read(&mut buffer).unwrap();
        assert_ne!(length, 0, "the engine closed the connection early");
        self.ahead.extend_from_slice(&buffer[..length]);
    }
}

pub(crate) fn chat_body(fields: &str) -> String {
    format!(r#"{{"messages":[{{"role":"user","content":"one two three"}}],{fields}}}"#)
}

pub(crate) fn request_text(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {length}\r\n\r\n{body}")
}
