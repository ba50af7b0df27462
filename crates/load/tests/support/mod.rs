//! A server that says exactly what it is told to, byte for byte, and a target that points at it.

#![expect(dead_code, clippy::unwrap_used, reason = "each test file uses its part, and may panic")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_load::target::Credentials;
use inferometer_load::{Control, Drive, Drivers, SystemClock, Target, drive};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Connections, HttpVersion, UsageAsk};
use inferometer_model::plan::Bounds;
use inferometer_model::spec::Limits;
use inferometer_model::{JournalEntry, Plan, PlannedRequest, Release, RequestId, RequestRecord};

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
    if !read_request(&mut stream) {
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
                if !read_request(&mut stream) {
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

/// Reads one request with a Content-Length body; `false` when the client left.
fn read_request(stream: &mut TcpStream) -> bool {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => bytes.push(byte[0]),
            _ => return false,
        }
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |value| value.trim().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).is_ok()
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
        connections: Connections::Reuse,
        http: HttpVersion::Http1,
        limits,
        credentials: Credentials::default(),
        request_id_prefix: "test".to_owned(),
        kernel_stamps: true,
        tls: None,
    })
}

/// So many requests, one after the other, through the whole driver; their records by id.
pub(crate) fn drive_all(target: &Arc<Target>, requests: u64) -> Vec<RequestRecord> {
    let (journal, entries) = std::sync::mpsc::sync_channel(1_000);
    let run = Drive {
        plan: Arc::new(OneAfterAnother(requests)),
        target: Arc::clone(target),
        clock: SystemClock::new(),
        control: Control::default(),
        progress: Arc::default(),
        ceiling: 100,
        drivers: Drivers::ONE,
        journal,
    };
    drive(run).unwrap();
    let records = entries.into_iter().flatten().filter_map(|entry| match entry {
        JournalEntry::Ended(record) => Some(*record),
        JournalEntry::Started(_) | JournalEntry::NotSent(_) | JournalEntry::RunEnded(_) => None,
    });
    records.collect()
}

struct OneAfterAnother(u64);

impl Plan for OneAfterAnother {
    fn bounds(&self) -> Bounds {
        Bounds {
            requests: Some(self.0),
            release_before: None,
            requests_min: 0,
            slots: NonZeroU32::new(1),
        }
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        (id.0 < self.0).then_some(PlannedRequest {
            id,
            release: Release::WhenSlotFree,
            prompt_seed: 0,
            input_tokens: 1,
            output_tokens: 1,
            think: Duration::ZERO,
        })
    }

    fn prompt(&self, _: &PlannedRequest) -> String {
        "hello".to_owned()
    }
}
