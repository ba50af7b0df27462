//! Faults on the way to a server: names, addresses, queues of connections, and answers that come
//! before the request was read.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::faults::{
    DONE, FINISH, STREAM_HEAD, TOKEN, assert_ended, chunk, outputs, short_limits, whole_stream,
    write,
};
use crate::support::{Closed, Scripted, drive_all, drive_plan, target_with};

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_load::resources::resolve;
use inferometer_load::target::{CertificateCheck, connector};
use inferometer_load::{SystemClock, Target, probe};
use inferometer_model::endpoint::Api;
use inferometer_model::journal::RunStop;
use inferometer_model::observations::{Connections, HttpVersion};
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::spec::Limits;
use inferometer_model::{BaseUrl, Content, RequestRecord};
use nix::sys::socket::{Backlog, listen};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub(crate) fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Fills the queue of connections that nobody accepts. The kernel drops the packets of whoever
/// connects next, as a network does that leads nowhere.
pub(crate) fn fill_queue(listener: &TcpListener) -> Vec<TcpStream> {
    listen(listener, Backlog::new(0).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(500)).ok();
    let waiting: Vec<TcpStream> = std::iter::from_fn(connect).take(16).collect();
    assert!(waiting.len() < 16, "the queue is never full");
    waiting
}

/// The head of a request and nothing of its body.
fn read_head(stream: &mut impl Read) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
}

fn probed(target: &Arc<Target>, prompt: &str) -> RequestRecord {
    probe(target, SystemClock::new(), &Content::text(prompt), 8).unwrap().record
}

/// One request is answered, then nobody can connect any more; the other stream goes on.
fn serve_two_then_vanish(listener: TcpListener) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut streams = [listener.accept().unwrap().0, listener.accept().unwrap().0];
        streams.iter_mut().for_each(read_head);
        let waiting = fill_queue(&listener);
        let [first, second] = &mut streams;
        first.write_all(whole_stream(&[TOKEN, FINISH, DONE]).as_bytes()).unwrap();
        second.write_all(STREAM_HEAD.as_bytes()).unwrap();
        // Longer than the next request may try to connect.
        for _ in 0..40 {
            second.write_all(chunk(TOKEN).as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        second.write_all((chunk(FINISH) + "0\r\n\r\n").as_bytes()).unwrap();
        let _ = second.read(&mut [0; 1]);
        drop(waiting);
    })
}

/// Faults: 2.
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_vanishes_costs_the_connect_limit_and_no_open_stream() {
    let (listener, address) = listener();
    let server = serve_two_then_vanish(listener);
    let limits = Limits { connect: Duration::from_millis(300), ..Limits::default() };
    let target = target_with(address, Api::Chat, true, limits);
    let fresh = Arc::new(Target { connections: Connections::New, ..(*target).clone() });
    let driven = drive_plan(Closed { requests: 3, slots: 2 }, &fresh, 1);
    server.join().unwrap();
    let lost = &driven.records[2];
    assert_ended(lost, Outcome::TimeoutConnect, None);
    let took = lost.ending.at.since(lost.admitted).unwrap();
    assert!(limits.connect <= took && took < limits.connect * 10, "{took:?}");
    assert_ended(&driven.records[0], Outcome::Ok, None);
    assert_ended(&driven.records[1], Outcome::Ok, None);
    let streamed = driven.records.iter().map(outputs).max();
    assert_eq!(streamed, Some(40), "it went on meanwhile");
}

/// Whether a connection to this address is being tried, and nobody has answered.
#[cfg(target_os = "linux")]
pub(crate) fn is_being_dialled(address: SocketAddr) -> bool {
    const SYN_SENT: &str = "02";
    let port = format!(":{:04X}", address.port());
    let table = std::fs::read_to_string("/proc/self/net/tcp").unwrap();
    table.lines().any(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        cells.get(2).is_some_and(|remote| remote.ends_with(&port)) && cells[3] == SYN_SENT
    })
}

/// Faults: 13.
#[test]
#[cfg(target_os = "linux")]
fn waiting_to_be_accepted_is_connect_time() {
    let (listener, address) = listener();
    let waiting = fill_queue(&listener);
    let server = std::thread::spawn(move || {
        while !is_being_dialled(address) {
            std::thread::yield_now();
        }
        for _ in &waiting {
            listener.accept().unwrap();
        }
        let (mut stream, _) = listener.accept().unwrap();
        read_head(&mut stream);
        stream.write_all(whole_stream(&[TOKEN, FINISH, DONE]).as_bytes()).unwrap();
        let _ = stream.read(&mut [0; 1]);
    });
    let record = probed(&target_with(address, Api::Chat, true, Limits::default()), "hello");
    server.join().unwrap();
    assert_ended(&record, Outcome::Ok, None);
    let dial = record.connection.unwrap().dial.unwrap();
    let connecting = dial.connected.since(dial.started).unwrap();
    // The kernel tries again a second after its packet was dropped.
    assert!(Duration::from_millis(500) < connecting, "{connecting:?}");
    let sent = record.sent.unwrap();
    assert!(dial.connected <= sent, "the wait is not part of the time since sending");
    assert!(record.ending.at.since(sent).unwrap() < connecting);
}

/// Faults: 14.
#[test]
fn the_address_that_answers_is_the_one_that_is_used() {
    for own in ["127.0.0.1:0", "[::1]:0"] {
        // A machine may lack IPv6, or a second name for itself.
        let Ok(listener) = TcpListener::bind(own) else { continue };
        let address = listener.local_addr().unwrap();
        let base: BaseUrl = format!("http://localhost:{}", address.port()).parse().unwrap();
        match resolve(&base, Duration::from_secs(5)) {
            Ok(found) => assert_eq!(found, address),
            Err(error) => assert_eq!(own, "[::1]:0", "{error}"),
        }
    }
}

/// Faults: 15.
#[test]
fn a_name_is_not_resolved_again_during_a_run() {
    let answer = whole_stream(&[TOKEN, FINISH, DONE]);
    let server = Scripted::serve(vec![vec![write(&answer)]]);
    let target = target_with(server.address, Api::Chat, true, short_limits());
    let base: BaseUrl = "http://gone.invalid:80".parse().unwrap();
    let renamed = Target { base, connections: Connections::New, ..(*target).clone() };
    for record in drive_all(&Arc::new(renamed), 3) {
        assert_ended(&record, Outcome::Ok, None);
    }
}

/// A certificate that nobody vouches for.
pub(crate) fn server_config() -> Arc<ServerConfig> {
    let signed = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .unwrap();
    Arc::new(config)
}

/// Faults: 23.
#[test]
fn a_secured_stream_that_is_closed_without_notice_is_truncated() {
    let config = server_config();
    let (listener, address) = listener();
    let server = std::thread::spawn(move || {
        let (tcp, _) = listener.accept().unwrap();
        let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), tcp);
        read_head(&mut stream);
        // Its end is the end of the connection: anyone on the way could have set it.
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        stream.write_all(format!("{head}{TOKEN}{FINISH}{DONE}").as_bytes()).unwrap();
        stream.sock.shutdown(std::net::Shutdown::Write).unwrap();
        let _ = stream.sock.read(&mut [0; 1]);
    });
    let plain = target_with(address, Api::Chat, true, short_limits());
    let secured = Target {
        base: format!("https://{address}").parse().unwrap(),
        tls: Some(connector(CertificateCheck::None, HttpVersion::Http1)),
        ..(*plain).clone()
    };
    let record = probed(&Arc::new(secured), "hello");
    server.join().unwrap();
    assert_ended(&record, Outcome::Truncated, Cause::NoFinalChunk);
    assert_eq!(outputs(&record), 1);
}

/// Faults: 27.
#[test]
fn a_burst_of_refusals_is_counted_and_the_run_goes_on() {
    let busy = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
                content-length: 0\r\n\r\n";
    let mut scripts = vec![vec![write(busy)]; 5];
    scripts.push(vec![write(&whole_stream(&[TOKEN, FINISH, DONE]))]);
    let server = Scripted::serve(scripts);
    let target = target_with(server.address, Api::Chat, true, short_limits());
    let fresh = Arc::new(Target { connections: Connections::New, ..(*target).clone() });
    let driven = drive_plan(Closed { requests: 10, slots: 1 }, &fresh, 1);
    let outcomes: Vec<Outcome> =
        driven.records.iter().map(|record| record.ending.outcome).collect();
    assert_eq!(outcomes, [[Outcome::Rejected; 5], [Outcome::Ok; 5]].concat());
    assert_eq!(driven.ending.stop, RunStop::PlanDone);
}

/// Faults: 28.
#[test]
fn a_redirect_leads_nowhere() {
    let (elsewhere, other) = listener();
    elsewhere.set_nonblocking(true).unwrap();
    let moved = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{other}/v1/chat/completions\r\n\
         content-length: 0\r\n\r\n"
    );
    let server = Scripted::serve(vec![vec![write(&moved)]]);
    let record = probed(&target_with(server.address, Api::Chat, true, short_limits()), "hello");
    assert_ended(&record, Outcome::HttpError, Cause::Redirect);
    let came = elsewhere.accept().map_err(|error| error.kind());
    assert_eq!(came.unwrap_err(), std::io::ErrorKind::WouldBlock, "nothing was sent there");
}

/// A prompt larger than all buffers on the way, refused by who has read only its head.
/// Faults: 38.
#[test]
fn an_answer_that_comes_before_the_request_was_read_is_kept() {
    let body = "the prompt is too long";
    let refusal = format!(
        "HTTP/1.1 413 Payload Too Large\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    for is_patient in [true, false] {
        let (listener, address) = listener();
        let (ended, wait) = std::sync::mpsc::channel::<()>();
        let refusal = refusal.clone();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            read_head(&mut stream);
            stream.write_all(refusal.as_bytes()).unwrap();
            // It does not read the rest: it leaves, or waits until the request has ended.
            if is_patient {
                let _ = wait.recv();
            }
        });
        let target = target_with(address, Api::Chat, true, Limits::default());
        let record = probed(&target, &"word ".repeat(4 << 20));
        drop(ended);
        server.join().unwrap();
        assert_ended(&record, Outcome::HttpError, None);
        let message = record.ending.message.unwrap();
        assert!(message.starts_with("413") && message.contains(body), "{message}");
    }
}
