//! A server that says exactly what it is told to, byte for byte, and a target that points at it.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

pub(crate) mod http2;
pub(crate) mod noting;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_load::target::Credentials;
use inferometer_load::{Control, Drive, Drivers, LoadError, SystemClock, Target, drive};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Connections, HttpVersion, PinnedOutput, UsageAsk};
use inferometer_model::plan::Bounds;
use inferometer_model::spec::Limits;
use inferometer_model::{
    Content, JournalEntry, Moment, Plan, PlannedRequest, Release, RequestId, RequestRecord,
    RunEnding,
};

/// What the server does on one connection, after it has read one request.
#[derive(Clone)]
pub(crate) enum Step {
    Write(Vec<u8>),
    /// Reads the next request on the same connection.
    NextRequest,
    /// Does nothing for so many milliseconds.
    Pause(u64),
    /// Says nothing more until the client leaves.
    Stall,
    /// Closes with RST instead of FIN.
    Reset,
}

/// Serves each connection with the next script; the last script serves all further ones.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    listener: TcpListener,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    pub(crate) fn serve(scripts: Vec<Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = listener.try_clone().unwrap();
        let thread = std::thread::spawn(move || {
            let mut number = 0;
            while let Ok((stream, _)) = accepting.accept() {
                let script = scripts[number.min(scripts.len() - 1)].clone();
                number += 1;
                let play = std::thread::spawn(move || play(stream, &script));
                drop(play);
            }
        });
        Self { address, listener, thread: Some(thread) }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        // A non-blocking listener makes the accepting thread's next `accept` fail.
        let _ = self.listener.set_nonblocking(true);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn play(mut stream: TcpStream, script: &[Step]) {
    stream.set_nodelay(true).unwrap();
    if read_request(&mut stream).is_none() {
        return;
    }
    for step in script {
        match step {
            Step::Write(bytes) => {
                if stream.write_all(bytes).is_err() {
                    return;
                }
            }
            Step::NextRequest => {
                if read_request(&mut stream).is_none() {
                    return;
                }
            }
            Step::Pause(millis) => std::thread::sleep(Duration::from_millis(*millis)),
            Step::Stall => {
                let _ = stream.read(&mut [0; 1]);
                return;
            }
            Step::Reset => {
                // Unread bytes at close make the kernel send RST; so does zero linger.
                nix::sys::socket::setsockopt(
                    &stream,
                    nix::sys::socket::sockopt::Linger,
                    &nix::libc::linger { l_onoff: 1, l_linger: 0 },
                )
                .unwrap();
                return;
            }
        }
    }
    let _ = stream.shutdown(Shutdown::Write);
    // Wait for the client, so that closing does not reset what it has not read yet.
    let _ = stream.read(&mut [0; 1]);
}

/// The head of a request, in lower case, and its body.
pub(crate) struct Heard {
    head: String,
    body: Vec<u8>,
}

impl Heard {
    fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix(':').map(str::trim)
    }
}

/// Reads one request with a Content-Length body; `None` when the client left.
pub(crate) fn read_request(stream: &mut TcpStream) -> Option<Heard> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let mut request = Heard { head, body: Vec::new() };
    let length = request.header("content-length").map_or(0, |value| value.parse().unwrap());
    request.body = vec![0; length];
    stream.read_exact(&mut request.body).ok()?;
    Some(request)
}

pub(crate) fn target(address: SocketAddr, api: Api, streaming: bool) -> Arc<Target> {
    target_with(address, api, streaming, Limits::default())
}

pub(crate) fn target_with(
    address: SocketAddr,
    api: Api,
    streaming: bool,
    limits: Limits,
) -> Arc<Target> {
    Arc::new(Target {
        base: format!("http://{address}").parse().unwrap(),
        address,
        api,
        model: "tiny".to_owned(),
        streaming,
        usage: UsageAsk::Final,
        fields: serde_json::Map::new(),
        pinned: PinnedOutput::default(),
        connections: Connections::Reuse,
        http: HttpVersion::Http1,
        limits,
        credentials: Credentials::default(),
        request_id_prefix: "test".to_owned(),
        cancel: None,
        replicas: Vec::new(),
        kernel_stamps: true,
        tls: None,
    })
}

/// So many requests, one after the other, through the whole driver; their records by id.
pub(crate) fn drive_all(target: &Arc<Target>, requests: u64) -> Vec<RequestRecord> {
    drive_plan(Closed { requests, slots: 1 }, target, 1).records
}

/// What a plan came to.
pub(crate) struct Driven {
    /// By id.
    pub(crate) records: Vec<RequestRecord>,
    pub(crate) not_sent: u64,
    pub(crate) ending: RunEnding,
    pub(crate) clock: SystemClock,
}

pub(crate) fn drive_plan(
    plan: impl Plan + 'static,
    target: &Arc<Target>,
    drivers: usize,
) -> Driven {
    drive_within(plan, target, drivers, Drive::STALL_GRACE).unwrap()
}

pub(crate) fn drive_within(
    plan: impl Plan + 'static,
    target: &Arc<Target>,
    drivers: usize,
    stall_grace: Duration,
) -> Result<Driven, LoadError> {
    let (journal, entries) = std::sync::mpsc::sync_channel(10_000);
    let clock = SystemClock::new();
    let run = Drive {
        start_at: None,
        plan: Arc::new(plan),
        target: Arc::clone(target),
        clock,
        control: Control::default(),
        progress: Arc::default(),
        ceiling: 1_000,
        drivers: Drivers { count: NonZeroUsize::new(drivers).unwrap(), cores: Vec::new() },
        stall_grace,
        journal,
    };
    let ending = drive(run)?;
    let entries: Vec<JournalEntry> = entries.into_iter().flatten().collect();
    assert_eq!(entries.last(), Some(&JournalEntry::RunEnded(ending.clone())));
    let mut driven = Driven { records: Vec::new(), not_sent: 0, ending, clock };
    for entry in entries {
        match entry {
            JournalEntry::Ended(record) => driven.records.push(*record),
            JournalEntry::NotSent(part) => driven.not_sent += part.count,
            JournalEntry::Started(_) | JournalEntry::RunEnded(_) => {}
        }
    }
    driven.records.sort_by_key(|record| record.id);
    Ok(driven)
}

/// A closed loop of so many slots. Every prompt names its request.
#[derive(Clone, Copy)]
pub(crate) struct Closed {
    pub(crate) requests: u64,
    pub(crate) slots: u32,
}

impl Plan for Closed {
    fn bounds(&self) -> Bounds {
        Bounds {
            requests: Some(self.requests),
            release_before: None,
            requests_min: 0,
            slots: NonZeroU32::new(self.slots),
        }
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        (id.0 < self.requests).then_some(planned(id, Release::WhenSlotFree))
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        Content::text(format!("prompt {}", request.id))
    }
}

/// An open loop: a request each so many microseconds.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    pub(crate) requests: u64,
    pub(crate) gap_us: u64,
}

impl Plan for Open {
    fn bounds(&self) -> Bounds {
        let requests = Some(self.requests);
        Bounds { requests, release_before: None, requests_min: 0, slots: None }
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let moment = Moment::from_nanos(id.0 * self.gap_us * 1_000);
        (id.0 < self.requests).then_some(planned(id, Release::At(moment)))
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        Content::text(format!("prompt {}", request.id))
    }
}

fn planned(id: RequestId, release: Release) -> PlannedRequest {
    let think = Duration::ZERO;
    PlannedRequest { think, ..PlannedRequest::alone(id, release) }
}
