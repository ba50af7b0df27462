//! Runs whose numbers are not the server's, each against a small server that misbehaves in one way, or
//! in virtual time. None of them may be called valid. The numbers are those of the table in
//! `docs/validity.md`.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support;
use support::{Engine, inferometer, output, text};

/// How a server answers: 16 tokens, the first after 20 ms and then one every 2 ms, unless it misbehaves.
#[derive(Clone, Copy)]
struct Behaviour {
    gap: Duration,
    /// How many times as long an answer takes, by the time since the first one and its number.
    slowness: fn(Duration, u64) -> f64,
    /// Whether `/metrics` has the TTFT without what holds tokens back.
    has_metrics: bool,
    /// Tokens that are sent, of the 16 that are asked for.
    tokens: u64,
    /// Tokens that usage reports.
    reported: u64,
    tokens_per_event: u64,
    /// Events are held back and written together after so long.
    gather: Duration,
    /// From the last token to the usage chunk.
    usage_late: Duration,
    /// Every second answer has no token at all.
    empty_half: bool,
    /// Connections are served by so many threads, and closed after each answer.
    accepts: Option<usize>,
    finish: &'static str,
}

const HONEST: Behaviour = Behaviour {
    gap: Duration::from_millis(2),
    slowness: |_, _| 1.0,
    has_metrics: false,
    tokens: 16,
    reported: 16,
    tokens_per_event: 1,
    gather: Duration::ZERO,
    usage_late: Duration::ZERO,
    empty_half: false,
    accepts: None,
    finish: "length",
};

const TTFT: Duration = Duration::from_millis(20);

/// What a server knows of its answers, without those to probes.
#[derive(Default)]
struct Answers {
    begun: OnceLock<Instant>,
    count: AtomicU64,
    first_tokens: AtomicU64,
    ttft_us: AtomicU64,
}

/// Serves until the test's process ends.
fn serve(behaviour: Behaviour) -> SocketAddr {
    let listener = listen(if behaviour.accepts.is_some() { 1 } else { 128 });
    let address = listener.local_addr().unwrap();
    let answers = Arc::new(Answers::default());
    let accept = move |listener: &TcpListener| {
        let (stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    };
    if let Some(workers) = behaviour.accepts {
        for _ in 0..workers {
            let (listener, answers) = (listener.try_clone().unwrap(), Arc::clone(&answers));
            std::thread::spawn(move || {
                loop {
                    let _ = connection(accept(&listener), behaviour, &answers);
                }
            });
        }
        return address;
    }
    std::thread::spawn(move || {
        loop {
            let (stream, answers) = (accept(&listener), Arc::clone(&answers));
            std::thread::spawn(move || connection(stream, behaviour, &answers));
        }
    });
    address
}

/// A listener whose kernel holds so many connections that nobody has accepted yet.
fn listen(backlog: i32) -> TcpListener {
    use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, SockaddrIn};
    let (family, kind) = (AddressFamily::Inet, SockType::Stream);
    let socket = socket::socket(family, kind, SockFlag::SOCK_CLOEXEC, None).unwrap();
    socket::bind(socket.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0)).unwrap();
    socket::listen(&socket, Backlog::new(backlog).unwrap()).unwrap();
    TcpListener::from(socket)
}

fn connection(
    mut stream: TcpStream,
    behaviour: Behaviour,
    answers: &Answers,
) -> std::io::Result<()> {
    loop {
        let (head, body) = request(&mut stream)?;
        if head.starts_with("POST") {
            let asked: Value = serde_json::from_str(&body).unwrap_or_default();
            let is_probe = asked["max_tokens"].as_u64() != Some(16);
            if is_probe {
                let tokens = asked["max_tokens"].as_u64().unwrap_or(16);
                let behaviour = Behaviour { tokens, reported: tokens, ..HONEST };
                answer(&mut stream, behaviour, &Answers::default())?;
            } else {
                answer(&mut stream, behaviour, answers)?;
            }
        } else {
            let models = r#"{"object":"list","data":[{"id":"tiny","object":"model"}]}"#;
            let (status, body) = match head.split(' ').nth(1) {
                Some("/v1/models") => ("200 OK", models.to_owned()),
                Some("/metrics") if behaviour.has_metrics => ("200 OK", metrics(answers)),
                _ => ("404 Not Found", "{}".to_owned()),
            };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
            )?;
        }
        if behaviour.accepts.is_some() {
            return Ok(());
        }
    }
}

/// The TTFT as vLLM reports it.
fn metrics(answers: &Answers) -> String {
    let sum_s = answers.ttft_us.load(Ordering::Relaxed) as f64 / 1e6;
    let count = answers.first_tokens.load(Ordering::Relaxed);
    format!(
        "vllm:num_requests_running 8\nvllm:kv_cache_usage_perc 0.1\n\
         vllm:time_to_first_token_seconds_sum {sum_s}\n\
         vllm:time_to_first_token_seconds_count {count}\n"
    )
}

#[expect(clippy::disallowed_methods, reason = "a server has a clock of its own")]
fn answer(stream: &mut TcpStream, behaviour: Behaviour, answers: &Answers) -> std::io::Result<()> {
    let started = Instant::now();
    let number = answers.count.fetch_add(1, Ordering::Relaxed);
    let slowness = (behaviour.slowness)(answers.begun.get_or_init(Instant::now).elapsed(), number);
    let close = if behaviour.accepts.is_some() { "connection: close\r\n" } else { "" };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n{close}\r\n"
    )?;
    let is_empty = behaviour.empty_half && number.is_multiple_of(2);
    let tokens = if is_empty { 0 } else { behaviour.tokens };
    if !is_empty {
        std::thread::sleep(TTFT.mul_f64(slowness));
        let ttft_us = u64::try_from(started.elapsed().as_micros()).unwrap();
        answers.ttft_us.fetch_add(ttft_us, Ordering::Relaxed);
        answers.first_tokens.fetch_add(1, Ordering::Relaxed);
    }
    let gap = behaviour.gap.mul_f64(slowness);
    let mut held = String::new();
    let mut held_for = Duration::ZERO;
    for token in 1..=tokens {
        if 1 < token {
            std::thread::sleep(gap);
            held_for += gap;
        }
        if token % behaviour.tokens_per_event == 0 || token == tokens {
            let text = "word ".repeat(usize::try_from(behaviour.tokens_per_event).unwrap());
            let delta =
                format!(r#"{{"choices":[{{"index":0,"text":"{text}","finish_reason":null}}]}}"#);
            held.extend(["data: ", &delta, "\n\n"]);
        }
        if behaviour.gather <= held_for || token == tokens {
            chunk(stream, &std::mem::take(&mut held))?;
            held_for = Duration::ZERO;
        }
    }
    let finish = behaviour.finish;
    chunk(
        stream,
        &format!(
            "data: {{\"choices\":[{{\"index\":0,\"text\":\"\",\"finish_reason\":\"{finish}\"}}]}}\n\n"
        ),
    )?;
    std::thread::sleep(behaviour.usage_late);
    let reported = if is_empty { 0 } else { behaviour.reported };
    let usage =
        format!(r#"{{"prompt_tokens":64,"completion_tokens":{reported},"total_tokens":80}}"#);
    chunk(stream, &format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n"))?;
    stream.write_all(b"0\r\n\r\n")
}

fn chunk(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

/// The head and the body of the next request.
fn request(stream: &mut TcpStream) -> std::io::Result<(String, String)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok((head, String::from_utf8_lossy(&body).into_owned()))
}

/// The summary of a run with these arguments.
fn summary(arguments: &[&str], folder: &Path) -> Value {
    let ran = output(arguments, folder);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// A run of 160 requests of 16 tokens, eight at a time.
fn measure(behaviour: Behaviour) -> Value {
    measure_with(behaviour, ["--concurrency", "8", "--requests", "160"])
}

fn measure_with(behaviour: Behaviour, load: [&str; 4]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}", serve(behaviour));
    let run = ["run", &url, "--api", "completions", "--json", "--input-tokens", "64"];
    summary(&[&run[..], &load, &["--output-tokens", "16"]].concat(), folder.path())
}

fn simulate(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    summary(&[&["simulate", "--json", "--seed", "1"], arguments].concat(), folder.path())
}

fn severity(summary: &Value, key: &str) -> Option<String> {
    let warnings = summary["warnings"].as_array().unwrap();
    let found = warnings.iter().find(|warning| warning["key"] == key)?;
    Some(found["severity"].as_str().unwrap().to_owned())
}

/// Asserts that this warning makes the run this bad.
fn assert_found(summary: &Value, key: &str, expected: &str) {
    let found = severity(summary, key);
    assert_eq!(found.as_deref(), Some(expected), "{key}: {:#}", summary["warnings"]);
    assert!(["degraded", "invalid"].contains(&summary["verdict"].as_str().unwrap()));
}

#[test]
fn the_server_itself_is_honest() {
    let found = measure(HONEST);
    assert_eq!(found["outcomes"]["ok"], 160);
    let about_server = ["above-max-tokens", "tokens-per-event", "grouped-events", "late-end"];
    let about_server = about_server.into_iter().chain(["outliers"]);
    for key in about_server.chain(["no-output", "output-length", "not-streaming"]) {
        assert_eq!(severity(&found, key), None, "{key}: {:#}", found["warnings"]);
    }
    let with_metrics = measure(Behaviour { has_metrics: true, ..HONEST });
    assert!(with_metrics["server"]["ttft_ms_mean"].is_f64(), "{:#}", with_metrics["server"]);
    assert_eq!(severity(&with_metrics, "server-ttft"), None, "{:#}", with_metrics["warnings"]);
}

/// T1: the client is the limit.
#[test]
fn a_saturated_client_is_not_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--mode", "echo"]);
    let load = ["--concurrency", "100", "--duration", "2s", "--no-stream", "--client-cores", "1"];
    let run = ["run", &engine.url(), "--json", "--output-tokens", "1"];
    let found = summary(&[&run[..], &load].concat(), folder.path());
    let is_found = ["slots-empty", "driver-busy"].iter().any(|key| severity(&found, key).is_some());
    assert!(is_found, "{:#}", found["warnings"]);
    assert!(["degraded", "invalid"].contains(&found["verdict"].as_str().unwrap()));
}

/// T2: the client is stopped for 90 ms, twice a second.
#[test]
fn a_client_that_stands_still_is_not_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "2ms", "--gap", "2ms"]);
    let load = ["--concurrency", "16", "--duration", "3s", "--output-tokens", "3"];
    let child = inferometer()
        .args(["run", &engine.url(), "--json"])
        .args(load)
        .current_dir(folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    // Until the process ends; the last signals then go nowhere, for it is not yet waited for.
    for _ in 0..6 {
        std::thread::sleep(Duration::from_millis(410));
        kill(pid, Signal::SIGSTOP).unwrap();
        std::thread::sleep(Duration::from_millis(90));
        kill(pid, Signal::SIGCONT).unwrap();
    }
    let ran = child.wait_with_output().unwrap();
    let found: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert!(severity(&found, "slots-empty").is_some(), "{:#}", found["warnings"]);
    assert!(["degraded", "invalid"].contains(&found["verdict"].as_str().unwrap()));
}

/// T3: the second night sends the prompts of the first to a server that is silent about its cache.
#[test]
fn prompts_that_were_sent_before_decide_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}", serve(HONEST));
    let run = ["run", &url, "--api", "completions", "--json", "--seed", "7", "--requests", "100"];
    let run = [&run[..], &["--output-tokens", "16", "--input-tokens", "64"]].concat();
    assert_eq!(severity(&summary(&run, folder.path()), "seen-before"), None);
    let gated = [&run[..], &["--require", "ttft.mean<10s", "error_rate<50%"]].concat();
    let ran = output(&gated, folder.path());
    assert_eq!(ran.status.code(), Some(99), "{}", text(&ran.stderr));
    let found: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_found(&found, "seen-before", "degraded");
    let compared = output(&["compare", "latest", "latest", "--force"], folder.path());
    assert!(
        support::words(&compared.stdout).contains("in its cache"),
        "{}",
        text(&compared.stdout)
    );
}

/// T4: a closed loop that fills its slots only once or twice.
#[test]
fn a_closed_loop_needs_ten_rounds() {
    let short = simulate(&["--concurrency", "64", "--requests", "100"]);
    assert_found(&short, "few-rounds", "degraded");
    let default = simulate(&["--concurrency", "64"]);
    assert_eq!(default["scheduled"], 640);
    assert_eq!(severity(&default, "few-rounds"), None);
}

/// T5: conversations that have hardly begun when the run ends.
#[test]
fn conversations_need_time_to_settle() {
    let load = ["--turns", "5", "--turn-think-time", "5s", "--rate", "3", "--requests", "100"];
    assert_found(&simulate(&load), "few-rounds", "degraded");
}

/// T6 and R2: usage beyond what was asked for.
#[test]
fn usage_beyond_max_tokens_is_not_believed() {
    let twice = measure(Behaviour { reported: 32, ..HONEST });
    assert_found(&twice, "above-max-tokens", "invalid");
    let one_more = measure(Behaviour { reported: 17, ..HONEST });
    assert_found(&one_more, "above-max-tokens", "degraded");
    let absurd = measure(Behaviour { reported: 1 << 63, ..HONEST });
    assert_found(&absurd, "above-max-tokens", "invalid");
    assert_eq!(absurd["tokens"]["output_total"], 160 * 16, "counted as events");
}

/// T6: usage claims 16 tokens, and 12 arrive, one after the other.
#[test]
fn usage_within_max_tokens_that_the_stream_does_not_explain_is_found() {
    let behaviour =
        Behaviour { tokens: 12, reported: 16, gap: Duration::from_millis(80), ..HONEST };
    let found = measure_with(behaviour, ["--concurrency", "8", "--requests", "40"]);
    assert_eq!(found["tokens"]["output_total"], 40 * 16, "as usage says");
    assert_found(&found, "tokens-per-event", "degraded");
}

/// T7: an open loop a little above the server's capacity, whose latency only grows.
#[test]
fn an_open_loop_beyond_capacity_does_not_settle() {
    let closed = simulate(&["--concurrency", "256", "--output-tokens", "64", "--requests", "2560"]);
    let capacity = closed["metrics"]["request_throughput"]["value"].as_f64().unwrap();
    let rate = format!("{:.2}", capacity * 1.15);
    let requests = format!("{:.0}", capacity * 1.15 * 30.0);
    let load = ["--rate", &rate, "--requests", &requests, "--output-tokens", "64"];
    let found = simulate(&load);
    let is_found = ["piling-up", "never-settled"].iter().any(|key| severity(&found, key).is_some());
    assert!(is_found, "{:#}", found["warnings"]);
    assert!(["degraded", "invalid"].contains(&found["verdict"].as_str().unwrap()));
}

/// T8: half of the answers are well-formed and empty.
#[test]
fn empty_answers_are_not_answers() {
    assert_found(&measure(Behaviour { empty_half: true, ..HONEST }), "no-output", "invalid");
}

/// T9: a proxy gathers what the server sends.
#[test]
fn a_gathering_proxy_is_found() {
    let gathering =
        Behaviour { gap: Duration::from_millis(5), gather: Duration::from_millis(40), ..HONEST };
    let found = measure(gathering);
    assert_found(&found, "grouped-events", "degraded");
    assert_eq!(severity(&found, "server-ttft"), None, "the server does not report its own");
    let found = measure(Behaviour { has_metrics: true, ..gathering });
    assert_found(&found, "grouped-events", "degraded");
    assert_found(&found, "server-ttft", "degraded");
}

/// T10: four programs compute on the client's core.
#[test]
fn a_client_that_shares_its_core_is_not_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--ttft", "1ms", "--gap", "1ms"]);
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let core = (0..CpuSet::count()).find(|core| allowed.is_set(*core).unwrap()).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let programs = [(); 4].map(|()| {
        let is_over = Arc::clone(&is_over);
        std::thread::spawn(move || {
            let mut only = CpuSet::new();
            only.set(core).unwrap();
            // Of this thread alone.
            sched_setaffinity(Pid::from_raw(0), &only).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })
    });
    let core = core.to_string();
    let load = ["--concurrency", "32", "--duration", "2s", "--output-tokens", "2"];
    let client = ["--client-cores", "1", "--pin-cores", &core];
    let found =
        summary(&[&["run", &engine.url(), "--json"], &load[..], &client].concat(), folder.path());
    is_over.store(true, Ordering::Relaxed);
    for program in programs {
        program.join().unwrap();
    }
    let about_client = [
        "sent-late-relative",
        "slots-empty",
        "driver-busy",
        "client-lag",
        "arrival-width",
        "arrival-width-relative",
        "loop-lag",
        "loop-paused",
    ];
    let severities: Vec<_> = about_client.iter().filter_map(|key| severity(&found, key)).collect();
    assert!(severities.iter().any(|it| it != "note"), "{:#}", found["warnings"]);
    assert!(["degraded", "invalid"].contains(&found["verdict"].as_str().unwrap()));
}

/// T11: eight tokens in every event, and nothing says so.
#[test]
fn unmarked_tokens_have_no_speed() {
    let found = measure(Behaviour { tokens_per_event: 8, ..HONEST });
    assert_found(&found, "tokens-per-event", "degraded");
    assert_eq!(found["metrics"]["tpot_ms"]["mean"], Value::Null);
    assert_eq!(found["metrics"]["tg"]["value"], Value::Null);
}

/// T12: five times as slow at first, faster and faster over a second.
#[test]
fn the_warm_up_of_a_server_is_no_part_of_its_headline() {
    let slowness = |since: Duration, _| (5.0 - 4.0 * since.as_secs_f64()).max(1.0);
    let behaviour = Behaviour { slowness, ..HONEST };
    let found = measure_with(behaviour, ["--concurrency", "8", "--requests", "480"]);
    let from_ms = found["steady"]["window"]["from_ms"].as_f64();
    let is_cut = from_ms.is_some_and(|from_ms| 500.0 <= from_ms);
    let is_found = severity(&found, "never-settled").as_deref() == Some("degraded");
    assert!(is_cut || is_found, "{from_ms:?}, {:#}", found["warnings"]);
}

/// T12: slower and slower, by three tenths of the first answer with every second.
#[test]
fn a_server_that_slows_down_does_not_settle() {
    let slowness = |since: Duration, _| 1.0 + since.as_secs_f64() * 0.3;
    let load = ["--concurrency", "8", "--duration", "5s"];
    let found = measure_with(Behaviour { slowness, ..HONEST }, load);
    assert_found(&found, "never-settled", "degraded");
}

/// T12: one answer of a hundred takes three seconds instead of a twentieth of one.
#[test]
fn stalls_that_take_much_of_the_time_are_found() {
    let slowness = |_, number: u64| if number % 100 == 50 { 60.0 } else { 1.0 };
    let load = ["--concurrency", "8", "--requests", "400"];
    let found = measure_with(Behaviour { slowness, ..HONEST }, load);
    assert_found(&found, "outliers", "degraded");
}

/// T13: a capped rate that the server cannot keep up with.
#[test]
fn a_capped_rate_beyond_capacity_is_found() {
    let load = ["--rate", "80", "--max-concurrency", "8", "--requests", "800"];
    let found = simulate(&[&load[..], &["--output-tokens", "64"]].concat());
    assert_found(&found, "never-settled", "degraded");
}

/// T14: a server that accepts few connections at a time.
#[test]
fn requests_that_wait_for_a_connection_are_not_in_flight() {
    // Also where each slot has four requests only.
    for load in
        [["--concurrency", "8", "--requests", "160"], ["--concurrency", "16", "--requests", "64"]]
    {
        let found = measure_with(Behaviour { accepts: Some(2), ..HONEST }, load);
        assert!(severity(&found, "slots-empty").is_some(), "{load:?}: {:#}", found["warnings"]);
        assert!(["degraded", "invalid"].contains(&found["verdict"].as_str().unwrap()));
    }
}

/// T15: answers that end early, arrive at the end, or stay open; and a run of a few milliseconds.
#[test]
fn short_late_and_unstreamed_answers_are_found() {
    let short = measure(Behaviour { tokens: 8, reported: 8, finish: "stop", ..HONEST });
    assert_found(&short, "output-length", "degraded");
    let at_the_end = measure(Behaviour { gather: Duration::from_secs(1), ..HONEST });
    assert_found(&at_the_end, "not-streaming", "degraded");
    let late = measure(Behaviour { usage_late: Duration::from_millis(50), ..HONEST });
    assert_found(&late, "late-end", "degraded");
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&["--mode", "echo"]);
    let run = ["run", &engine.url(), "--json", "--requests", "100", "--output-tokens", "1"];
    assert_found(&summary(&run, folder.path()), "short-run", "degraded");
}

/// R3: the server gives answers up and says so in the finish reason.
#[test]
fn answers_that_the_server_gave_up_are_failures() {
    let found = measure(Behaviour { finish: "abort", ..HONEST });
    assert_eq!(found["outcomes"]["stream_error"], 160);
    assert_eq!(found["failures"][0]["cause"], "given_up");
    assert_eq!(found["verdict"], "invalid");
}
