//! Whether the engine keeps time: many streams at a constant step, all on the engine's one thread.
//!
//! `cargo bench -p inferometer-engine --bench live` runs 2,000 streams at 25 ms for ten seconds and
//! prints how late steps were; another number of streams may follow `--`. `cargo test` runs a small
//! size, which judges nothing but that every stream is complete. The reader is a second thread that
//! only counts bytes, so a machine with two free cores is enough.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program that prints its result")]

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use inferometer_engine::physics::Front;
use inferometer_engine::{EngineOptions, Limits, ServeOptions, Stop, serve};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde::Deserialize;

const STEP: Duration = Duration::from_millis(25);

#[derive(Clone, Copy)]
struct Size {
    streams: u32,
    tokens: u32,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let streams = arguments.iter().find_map(|argument| argument.parse().ok());
    let size = if is_bench {
        Size { streams: streams.unwrap_or(2_000), tokens: 400 }
    } else {
        Size { streams: 20, tokens: 8 }
    };
    let stop = Stop::new().unwrap();
    let handle = stop.handle();
    let (announce, announced) = mpsc::channel();
    let options = options(size);
    let engine = std::thread::spawn(move || {
        serve(options, stop, |address| announce.send(address).unwrap()).unwrap();
        thread_cpu()
    });
    let address = announced.recv().unwrap();
    let bytes = read_streams(address, size);
    let truth = truth(address);
    handle.stop();
    let cpu = engine.join().unwrap();
    report(size, bytes, cpu, &truth);
}

/// What the calling thread has used of its core: what a busy machine cannot distort.
#[expect(clippy::disallowed_methods, reason = "no clock that moments are compared by")]
fn thread_cpu() -> Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

/// Every stream fits at once: the steps are the only thing that takes time.
fn options(size: Size) -> EngineOptions {
    let mut serve = ServeOptions { step: Some(STEP), ..ServeOptions::default() };
    serve.profile.front =
        Front { per_request_ns: 0, per_prompt_token_ns: 0, per_output_token_ns: 0 };
    let scheduler = &mut serve.profile.scheduler;
    scheduler.max_num_seqs = size.streams.max(1);
    scheduler.max_num_batched_tokens = 16_384.max(size.streams);
    scheduler.blocks = size.streams * (size.tokens / scheduler.block_size + 4);
    let limits = Limits { writes_kept: 0, ..Limits::default() };
    EngineOptions { serve, limits, ..EngineOptions::default() }
}

/// Reads all streams to their ends; gives the bytes of all.
fn read_streams(address: SocketAddr, size: Size) -> u64 {
    let mut poll = Poll::new().unwrap();
    let mut streams: Vec<Option<TcpStream>> = (0..size.streams)
        .map(|number| {
            let mut stream = open(address, number, size.tokens);
            let token = Token(number as usize);
            poll.registry().register(&mut stream, token, Interest::READABLE).unwrap();
            Some(stream)
        })
        .collect();
    let mut events = Events::with_capacity(4096);
    let mut buffer = vec![0; 1 << 16];
    let (mut bytes, mut open) = (0, streams.len());
    while 0 < open {
        poll.poll(&mut events, Some(Duration::from_secs(30))).unwrap();
        assert!(!events.is_empty(), "no byte came for half a minute");
        for event in &events {
            let place = &mut streams[event.token().0];
            let Some(stream) = place else { continue };
            let (read, ended) = drain(stream, &mut buffer);
            bytes += read;
            if ended {
                *place = None;
                open -= 1;
            }
        }
    }
    bytes
}

fn open(address: SocketAddr, number: u32, tokens: u32) -> TcpStream {
    let body = format!(
        r#"{{"prompt":"stream {number} of many","max_tokens":{tokens},"ignore_eos":true,"stream":true}}"#
    );
    let length = body.len();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream
        .write_all(
            format!(
                "POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
                 content-length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
        .unwrap();
    stream.set_nonblocking(true).unwrap();
    TcpStream::from_std(stream)
}

fn drain(stream: &mut TcpStream, buffer: &mut [u8]) -> (u64, bool) {
    let mut bytes = 0;
    loop {
        match stream.read(buffer) {
            Ok(0) => return (bytes, true),
            Ok(read) => bytes += read as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return (bytes, false),
            Err(error) => panic!("a stream broke off: {error}"),
        }
    }
}

#[derive(Deserialize)]
struct Truth {
    requests: Vec<Request>,
    lateness: Lateness,
    steps: Steps,
}

#[derive(Deserialize)]
struct Request {
    tokens: u32,
    ended: String,
}

#[derive(Deserialize)]
struct Lateness {
    count: u64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

#[derive(Deserialize)]
struct Steps {
    count: u64,
    late_count: u64,
    very_late_count: u64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

fn truth(address: SocketAddr) -> Truth {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /truth HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    let body = reply.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    serde_json::from_slice(&reply[body..]).unwrap()
}

fn report(size: Size, bytes: u64, cpu: Duration, truth: &Truth) {
    let complete = truth
        .requests
        .iter()
        .filter(|request| request.ended == "complete" && request.tokens == size.tokens)
        .count();
    assert_eq!(complete, size.streams as usize, "streams were cut short");
    let us = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{:.0} µs", ns as f64 / 1e3));
    let (steps, writes) = (&truth.steps, &truth.lateness);
    println!(
        "{} streams of {} tokens, a step every {STEP:?}, {bytes} bytes",
        size.streams, size.tokens
    );
    println!(
        "steps   {}, late by more than 1 ms {}, by more than 5 ms {}; p50 {}, p99 {}, max {}",
        steps.count,
        steps.late_count,
        steps.very_late_count,
        us(steps.p50_ns),
        us(steps.p99_ns),
        us(steps.max_ns),
    );
    println!(
        "writes  {}, after the end of their step p50 {}, p99 {}, max {}",
        writes.count,
        us(writes.p50_ns),
        us(writes.p99_ns),
        us(writes.max_ns),
    );
    let work = STEP * size.tokens;
    println!(
        "engine  {:.2} s of CPU, {:.2} µs per token, {:.0}% of a core at this pace",
        cpu.as_secs_f64(),
        cpu.as_secs_f64() * 1e6 / f64::from(size.streams * size.tokens),
        100.0 * cpu.as_secs_f64() / work.as_secs_f64(),
    );
}
