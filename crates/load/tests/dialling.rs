//! Connections that are opened before the plan begins: how many, for whom, and what happens where a
//! server does not take them, or does not keep them.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::connecting::{fill_queue, is_being_dialled, listener, server_config};
use crate::faults::{DONE, FINISH, TOKEN, assert_ended, whole_stream};
use crate::support::noting::{Manners, NotingServer};
use crate::support::{
    Closed, Driven, Open, drive_plan, drive_within, read_request, target, target_with,
};

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use inferometer_load::target::{CertificateCheck, connector};
use inferometer_load::{Control, Drive, Drivers, SystemClock, Target, connections_needed, drive};
use inferometer_model::endpoint::Api;
use inferometer_model::journal::{Dialling, RunStop};
use inferometer_model::observations::{Connections, HttpVersion};
use inferometer_model::outcome::{Cause, Outcome};
use inferometer_model::plan::Bounds;
use inferometer_model::spec::Limits;
use inferometer_model::{Clock, Content, Moment, Plan, PlannedRequest, RequestId};
use nix::sys::socket::{Backlog, listen};
use rustls::{ServerConnection, StreamOwned};

const PROMPT: Manners = Manners { answers: usize::MAX, service: Duration::ZERO };

fn with(target: &Arc<Target>, connections: Connections) -> Arc<Target> {
    Arc::new(Target { connections, ..(**target).clone() })
}

fn dialling(driven: &Driven) -> &Dialling {
    driven.ending.client.dialling.as_ref().unwrap()
}

fn assert_all_ok(driven: &Driven) {
    for record in &driven.records {
        assert_ended(record, Outcome::Ok, None);
    }
}

/// Requests that found their connection open.
fn found_open(driven: &Driven) -> usize {
    driven.records.iter().filter(|record| record.connection.unwrap().reused).count()
}

/// A closed loop whose first requests are spread.
struct RampUp(Closed, Duration);

impl Plan for RampUp {
    fn bounds(&self) -> Bounds {
        self.0.bounds()
    }

    fn ramp_up(&self) -> Duration {
        self.1
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        self.0.request(id)
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        self.0.content(request)
    }
}

#[test]
fn a_closed_loop_finds_all_its_connections_open() {
    for (drivers, connections) in
        [(1, Connections::Reuse), (3, Connections::Reuse), (3, Connections::PerUser)]
    {
        let server = NotingServer::serve(PROMPT);
        let target = with(&target(server.address, Api::Chat, true), connections);
        let driven = drive_plan(Closed { requests: 400, slots: 100 }, &target, drivers);
        assert_all_ok(&driven);
        let Dialling { wanted, connect_ns, failures, .. } = dialling(&driven);
        assert_eq!((*wanted, connect_ns.len()), (100, 100));
        assert!(failures.is_empty() && connect_ns.iter().all(|ns| 0 < *ns));
        // No request opened another, and the server saw just these.
        assert_eq!(found_open(&driven), 400);
        assert!(driven.records.iter().all(|record| record.connection.unwrap().dial.is_none()));
        let ordinals: BTreeSet<u32> =
            driven.records.iter().map(|record| record.connection.unwrap().ordinal).collect();
        let seen: BTreeSet<usize> = server.notes().iter().map(|noted| noted.connection).collect();
        assert!(ordinals.iter().all(|ordinal| *ordinal < 100) && seen.iter().all(|it| *it < 100));
        if connections == Connections::PerUser {
            assert_eq!((ordinals.len(), seen.len()), (100, 100));
        }
    }
}

#[test]
fn as_many_are_opened_as_are_needed_at_once() {
    let server = NotingServer::serve(PROMPT);
    let reuse = target(server.address, Api::Chat, true);
    let needed = |plan: &dyn Plan, connections, ceiling| {
        connections_needed(plan, &with(&reuse, connections), ceiling)
    };
    let closed = Closed { requests: 50, slots: 8 };
    assert_eq!(needed(&closed, Connections::Reuse, 1_000), 8);
    assert_eq!(needed(&closed, Connections::PerUser, 1_000), 8);
    assert_eq!(needed(&closed, Connections::Reuse, 5), 5, "what this machine can hold");
    assert_eq!(needed(&closed, Connections::New, 1_000), 0, "each request opens its own");
    assert_eq!(needed(&Closed { requests: 3, slots: 8 }, Connections::Reuse, 1_000), 3);
    let at_once = Open { requests: 3_000, gap_us: 0 };
    assert_eq!(needed(&at_once, Connections::Reuse, 10_000), 3_000);
    assert_eq!(needed(&at_once, Connections::PerUser, 10_000), 0, "nobody comes back");
    assert_eq!(needed(&Open { requests: 500, gap_us: 10_000 }, Connections::Reuse, 10_000), 100);
    assert_eq!(needed(&Open { requests: 90_000, gap_us: 20 }, Connections::Reuse, 10_000), 1_025);
}

#[test]
fn connections_that_are_not_kept_are_not_opened_ahead() {
    let server = NotingServer::serve(PROMPT);
    let target = with(&target(server.address, Api::Chat, true), Connections::New);
    let driven = drive_plan(Closed { requests: 12, slots: 4 }, &target, 1);
    assert_all_ok(&driven);
    assert_eq!(driven.ending.client.dialling, None);
    assert_eq!(found_open(&driven), 0);
    assert!(driven.records.iter().all(|record| record.connection.unwrap().dial.is_some()));
}

#[test]
fn an_open_loop_finds_open_what_is_due_soon() {
    let server = NotingServer::serve(PROMPT);
    let plan = Open { requests: 60, gap_us: 2_000 };
    let driven = drive_plan(plan, &target(server.address, Api::Chat, true), 2);
    assert_all_ok(&driven);
    assert_eq!(dialling(&driven).connect_ns.len(), 60);
    assert_eq!(found_open(&driven), 60);
}

#[test]
fn a_server_that_closes_after_each_answer_is_dialled_again() {
    let server = NotingServer::serve(Manners { answers: 1, ..PROMPT });
    let driven =
        drive_plan(Closed { requests: 20, slots: 4 }, &target(server.address, Api::Chat, true), 1);
    assert_all_ok(&driven);
    assert_eq!(found_open(&driven), 4, "the first of each slot");
    let last = server.notes().iter().map(|noted| noted.connection).max();
    assert_eq!(last, Some(19), "a connection for each answer");
}

/// Closes what has brought no request within this time.
fn serve_impatiently(patience: Duration) -> SocketAddr {
    let (listener, address) = listener();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                tcp.set_read_timeout(Some(patience)).unwrap();
                while tcp.peek(&mut [0]).is_ok_and(|bytes| 0 < bytes) {
                    if read_request(&mut tcp).is_none() {
                        return;
                    }
                    tcp.write_all(whole_stream(&[TOKEN, FINISH, DONE]).as_bytes()).unwrap();
                }
            });
        }
    });
    address
}

#[test]
fn what_a_server_closed_for_its_idleness_is_no_failure_of_a_request() {
    let address = serve_impatiently(Duration::from_millis(150));
    // Requests leave 300 ms apart, long after the server has closed what was opened for them.
    let plan = Open { requests: 4, gap_us: 300_000 };
    let driven = drive_plan(plan, &target(address, Api::Chat, true), 1);
    assert_all_ok(&driven);
    assert_eq!(dialling(&driven).connect_ns.len(), 4);
    assert_eq!(found_open(&driven), 1);
}

#[test]
fn the_first_requests_of_a_closed_loop_can_be_spread() {
    let server = NotingServer::serve(Manners { service: Duration::from_millis(500), ..PROMPT });
    for drivers in [1, 2] {
        let plan = RampUp(Closed { requests: 8, slots: 4 }, Duration::from_millis(200));
        let driven = drive_plan(plan, &target(server.address, Api::Chat, true), drivers);
        assert_all_ok(&driven);
        let began = driven.ending.began.unwrap();
        let mut intended: Vec<Moment> = driven.records.iter().map(|it| it.intended).collect();
        intended.sort_unstable();
        let spread = [0, 50, 100, 150].map(|millis| began + Duration::from_millis(millis));
        assert_eq!(intended[..4], spread);
        assert!(driven.records.iter().all(|it| it.intended <= it.sent.unwrap()));
    }
}

#[test]
fn a_short_queue_of_connections_delays_no_request() {
    let (listener, address) = listener();
    listen(&listener, Backlog::new(8).unwrap()).unwrap();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                while read_request(&mut tcp).is_some() {
                    tcp.write_all(whole_stream(&[TOKEN, FINISH, DONE]).as_bytes()).unwrap();
                }
            });
        }
    });
    let target = target(address, Api::Chat, true);
    let driven = drive_plan(Closed { requests: 96, slots: 96 }, &target, 1);
    assert_all_ok(&driven);
    assert_eq!(dialling(&driven).connect_ns.len(), 96);
    assert_eq!(found_open(&driven), 96);
    // The kernel sends a packet that was dropped again after a second.
    let slowest = driven.records.iter().map(|it| it.ending.at.since(it.sent.unwrap()).unwrap());
    assert!(slowest.max().unwrap() < Duration::from_millis(900));
}

/// Answers over TLS. The first connections are closed before they are secured.
fn serve_secured(closed: usize) -> Arc<Target> {
    let (listener, address) = listener();
    let config = server_config();
    std::thread::spawn(move || {
        for (number, mut tcp) in listener.incoming().map_while(Result::ok).enumerate() {
            if number < closed {
                // The client has spoken, so that closing resets nothing.
                let _ = tcp.read(&mut [0; 4096]);
                continue;
            }
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            std::thread::spawn(move || answer_secured(StreamOwned::new(session, tcp)));
        }
    });
    secured_target(address)
}

fn secured_target(address: SocketAddr) -> Arc<Target> {
    let plain = target(address, Api::Chat, true);
    Arc::new(Target {
        base: format!("https://{address}").parse().unwrap(),
        tls: Some(connector(CertificateCheck::None, HttpVersion::Http1)),
        ..(*plain).clone()
    })
}

fn answer_secured(mut stream: StreamOwned<ServerConnection, TcpStream>) {
    let (mut request, mut byte) = (Vec::new(), [0]);
    while stream.read_exact(&mut byte).is_ok() {
        request.push(byte[0]);
        // The body is one line of JSON, and nothing else ends like that.
        if request.ends_with(b"}") && request.windows(4).any(|part| part == b"\r\n\r\n") {
            let body = request.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
            if serde_json::from_slice::<serde_json::Value>(&request[body..]).is_ok() {
                request.clear();
                stream.write_all(whole_stream(&[TOKEN, FINISH, DONE]).as_bytes()).unwrap();
            }
        }
    }
}

/// Secures what was opened once nothing more has come for a while, and notes how much of that there was at once.
fn serve_secured_in_batches() -> (Arc<Target>, Arc<AtomicUsize>) {
    let (listener, address) = listener();
    let (accepted, waiting) = mpsc::channel();
    std::thread::spawn(move || {
        listener.incoming().map_while(Result::ok).try_for_each(|tcp| accepted.send(tcp))
    });
    let most = Arc::new(AtomicUsize::new(0));
    let (noted, config) = (Arc::clone(&most), server_config());
    std::thread::spawn(move || {
        while let Ok(first) = waiting.recv() {
            let mut batch = vec![first];
            while let Ok(tcp) = waiting.recv_timeout(Duration::from_millis(60)) {
                batch.push(tcp);
            }
            noted.fetch_max(batch.len(), Ordering::SeqCst);
            for tcp in batch {
                let session = ServerConnection::new(Arc::clone(&config)).unwrap();
                std::thread::spawn(move || answer_secured(StreamOwned::new(session, tcp)));
            }
        }
    });
    (secured_target(address), most)
}

#[test]
fn all_drivers_together_open_no_more_at_once_than_one() {
    for drivers in [1, 4] {
        let (target, most) = serve_secured_in_batches();
        let driven = drive_plan(Closed { requests: 160, slots: 160 }, &target, drivers);
        assert_all_ok(&driven);
        assert_eq!(dialling(&driven).connect_ns.len(), 160);
        let most = most.load(Ordering::SeqCst);
        assert!((2..=64).contains(&most), "{drivers} drivers had {most} connections being opened");
    }
}

#[test]
fn connections_are_secured_before_the_first_request() {
    let driven = drive_plan(Closed { requests: 24, slots: 8 }, &serve_secured(0), 2);
    assert_all_ok(&driven);
    assert_eq!(dialling(&driven).connect_ns.len(), 8);
    assert_eq!(found_open(&driven), 24);
}

#[test]
fn what_could_not_be_opened_is_counted_and_the_request_tries_itself() {
    let driven = drive_plan(Closed { requests: 24, slots: 8 }, &serve_secured(3), 1);
    assert_all_ok(&driven);
    let dialling = dialling(&driven);
    assert_eq!((dialling.wanted, dialling.connect_ns.len(), dialling.failed()), (8, 5, 3));
    assert!(dialling.failures.iter().all(|failure| failure.outcome == Outcome::TlsError));
    assert!(found_open(&driven) < 24);
}

#[test]
fn a_server_that_refuses_all_is_recorded_as_it_is_without_this() {
    let (listener, address) = listener();
    drop(listener);
    let target = target(address, Api::Chat, true);
    let driven = drive_plan(Closed { requests: 300, slots: 100 }, &target, 1);
    assert_eq!(driven.ending.stop, RunStop::Unreachable);
    for record in &driven.records {
        assert_ended(record, Outcome::TransportError, Cause::Refused);
    }
    let dialling = dialling(&driven);
    assert_eq!((dialling.wanted, dialling.connect_ns.len()), (100, 0));
    assert_eq!(dialling.failed(), 16, "so many in a row are hopeless");
    assert_eq!(dialling.failures[0].cause, Some(Cause::Refused));
}

/// A connection that is broken right after it was opened did not break for its age.
#[test]
fn a_server_that_resets_the_first_request_is_not_called_idle() {
    let (listener, address) = listener();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            // What is left unread makes the kernel reset the connection.
            let _ = tcp.read(&mut [0; 1]);
        }
    });
    let driven = drive_within(
        Closed { requests: 1, slots: 1 },
        &target(address, Api::Chat, true),
        1,
        Drive::STALL_GRACE,
    )
    .unwrap();
    assert_ended(&driven.records[0], Outcome::TransportError, Cause::Reset);
}

#[test]
#[cfg(target_os = "linux")]
fn a_stop_is_heard_while_a_server_does_not_answer() {
    let (listener, address): (TcpListener, SocketAddr) = listener();
    let waiting = fill_queue(&listener);
    let control = Control::default();
    let stopping = control.clone();
    let stopper = std::thread::spawn(move || {
        while !is_being_dialled(address) {
            std::thread::yield_now();
        }
        stopping.stop_harder();
    });
    let (journal, entries) = std::sync::mpsc::sync_channel(100);
    let clock = SystemClock::new();
    let limits = Limits { connect: Duration::from_mins(1), ..Limits::default() };
    let ending = drive(Drive {
        start_at: None,
        plan: Arc::new(Closed { requests: 10, slots: 10 }),
        target: target_with(address, Api::Chat, true, limits),
        clock,
        control,
        progress: Arc::default(),
        ceiling: 100,
        drivers: Drivers::ONE,
        stall_grace: Drive::STALL_GRACE,
        journal,
    })
    .unwrap();
    stopper.join().unwrap();
    assert_eq!(ending.stop, RunStop::Drained);
    let took = clock.now().since(Moment::ZERO).unwrap();
    assert!(took < limits.connect / 2, "{took:?}");
    drop((entries, waiting, listener));
}
