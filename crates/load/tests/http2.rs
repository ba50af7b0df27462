//! HTTP/2 on the wire: streams that share connections, and what each of its faults comes to.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use inferometer_load::target::{CertificateCheck, connector};
use inferometer_load::{SystemClock, Target, probe};
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{Connections, HttpVersion};
use inferometer_model::outcome::{Cause, Outcome, Stage};
use inferometer_model::record::Event;
use inferometer_model::spec::Limits;
use inferometer_model::{Clock, Content, RequestRecord};

use support::http2::{
    FINISH, Frames, Heard, Http2Server, INITIAL_WINDOW_SIZE, INTERNAL_ERROR,
    MAX_CONCURRENT_STREAMS, NO_ERROR, REFUSED_STREAM, TOKEN, data_head,
};
use support::{Closed, Scripted, Step, drive_all, drive_plan, target_with};

/// Longer than any answer of these servers takes, and not long to wait for.
const BRIEF: Duration = Duration::from_millis(600);

fn target(server: &Http2Server) -> Arc<Target> {
    let limits = Limits { first_token: BRIEF, idle: BRIEF, ..Limits::default() };
    let target = target_with(server.address, Api::Chat, true, limits);
    Arc::new(Target { http: HttpVersion::Http2, ..(*target).clone() })
}

fn secured(server: &Http2Server) -> Arc<Target> {
    let plain = target(server);
    Arc::new(Target {
        base: format!("https://{}", server.address).parse().unwrap(),
        tls: Some(connector(CertificateCheck::None, HttpVersion::Http2)),
        ..(*plain).clone()
    })
}

#[track_caller]
fn assert_ended(record: &RequestRecord, outcome: Outcome, cause: impl Into<Option<Cause>>) {
    let ending = &record.ending;
    assert_eq!((ending.outcome, ending.cause), (outcome, cause.into()), "{ending:?}");
}

#[track_caller]
fn assert_all_ok(records: &[RequestRecord]) {
    for record in records {
        assert_ended(record, Outcome::Ok, None);
    }
}

fn outputs(record: &RequestRecord) -> usize {
    record.events.iter().filter(|event| Event::is_output(event)).count()
}

fn ordinals(records: &[RequestRecord]) -> BTreeSet<u32> {
    records.iter().map(|record| record.connection.unwrap().ordinal).collect()
}

/// Answers everything at once.
fn answering(frames: &mut Frames, heard: Heard) {
    if let Heard::Asked(stream) = heard {
        frames.answer(stream, 3);
    }
}

#[test]
fn clean_streams_share_a_connection() {
    let server = Http2Server::serve(&[], answering);
    let driven = drive_plan(Closed { requests: 20, slots: 4 }, &target(&server), 1);
    assert_eq!(driven.records.len(), 20);
    assert_all_ok(&driven.records);
    assert_eq!(server.connections(), 1);
    assert_eq!(ordinals(&driven.records), BTreeSet::from([0]));
    let dialling = driven.ending.client.dialling.as_ref().unwrap();
    assert_eq!(
        (dialling.wanted, dialling.connect_ns.len()),
        (1, 1),
        "opened before the plan began"
    );
    assert!(driven.records.iter().all(|record| record.connection.unwrap().reused));
    for record in &driven.records {
        assert_eq!(outputs(record), 3);
        assert!(record.done.seen);
        let sent = record.sent.unwrap();
        assert!(record.intended <= record.admitted && record.admitted <= sent);
        assert!(record.reads.is_sorted_by_key(|read| read.user) && sent <= record.reads[0].user);
        assert!(record.events.is_sorted_by_key(|event| event.read));
        assert_eq!(record.ending.at, record.reads.last().unwrap().at());
    }
}

/// What the server wrote: of which stream, and the time of the monotonic clock before and after.
type Written = Arc<Mutex<Vec<(u32, u64, u64)>>>;

/// Answers four streams at a time, a token of each in turn. Every other frame has two tokens, and its first token is
/// written before the second.
fn answering_in_turns(written: &Written) -> impl Fn(&mut Frames, Heard) + Send + Sync + 'static {
    let (written, clock) = (Arc::clone(written), SystemClock::new());
    let write = move |frames: &mut Frames, stream, bytes: &[u8]| {
        std::thread::sleep(Duration::from_micros(500));
        let before_ns = clock.monotonic_ns_at(clock.now());
        frames.write(bytes);
        let after_ns = clock.monotonic_ns_at(clock.now());
        written.lock().unwrap().push((stream, before_ns, after_ns));
    };
    move |frames, heard| {
        let Heard::Asked(_) = heard else { return };
        if !frames.asked.len().is_multiple_of(4) {
            return;
        }
        let streams = frames.asked[frames.asked.len() - 4..].to_vec();
        for &stream in &streams {
            frames.head(stream);
        }
        for _ in 0..8 {
            for &stream in &streams {
                let alone = [data_head(TOKEN.len(), stream), TOKEN.into()].concat();
                write(frames, stream, &alone);
                let first = [data_head(2 * TOKEN.len(), stream), TOKEN.into()].concat();
                write(frames, stream, &first);
                write(frames, stream, TOKEN.as_bytes());
            }
        }
        for stream in streams {
            frames.data(stream, FINISH);
            frames.data(stream, "data: [DONE]\n\n");
            frames.end(stream);
        }
    }
}

/// How long after its writing a token may seem to have come, as with HTTP/1.1.
const LATE_NS_MAX: u64 = 1_000_000;
/// The kernel's clock is mapped to ours with an error that is far below this.
const EARLY_NS_MAX: u64 = 100_000;

/// A shared machine may take the core away from a client that does nothing wrong. One that is wrong
/// is wrong every time.
const ATTEMPTS: u32 = 8;

#[test]
#[cfg(target_os = "linux")]
fn tokens_of_shared_connections_came_when_they_were_written() {
    for is_secured in [false, true] {
        let mut late = Vec::new();
        let is_in_time = (0..ATTEMPTS).any(|_| {
            late = late_tokens(is_secured);
            late.is_empty()
        });
        assert!(is_in_time, "secured: {is_secured}, every time: {late:?}");
    }
}

/// Plays streams of one connection, of which no token may come early or without the kernel's time,
/// and returns the reads whose time is later than the write by more than the record admits.
#[cfg(target_os = "linux")]
fn late_tokens(is_secured: bool) -> Vec<(u32, inferometer_model::record::Read)> {
    let written = Written::default();
    let script = answering_in_turns(&written);
    let (server, target) = if is_secured {
        let server = Http2Server::serve_secured(&["h2"], script);
        let target = secured(&server);
        (server, target)
    } else {
        let server = Http2Server::serve(&[], script);
        let target = target(&server);
        (server, target)
    };
    let driven = drive_plan(Closed { requests: 12, slots: 4 }, &target, 1);
    assert_all_ok(&driven.records);
    assert_eq!(server.connections(), 1);
    let mut records = driven.records;
    // Streams are numbered in the order in which they leave.
    records.sort_by_key(|record| (record.sent, record.id));
    let ns = |moment| driven.clock.monotonic_ns_at(moment);
    let written = written.lock().unwrap();
    let mut late = Vec::new();
    for (stream, record) in (1..).step_by(2).zip(&records) {
        assert_eq!(outputs(record), 24);
        assert!(record.reads.iter().all(|read| read.kernel.is_some()), "{:?}", record.reads);
        let truth = written.iter().filter(|(written, ..)| *written == stream);
        for (event, (_, before_ns, after_ns)) in record.events.iter().zip(truth) {
            let read = record.reads[event.read as usize];
            let at_ns = ns(read.at());
            assert!(*before_ns <= at_ns + EARLY_NS_MAX, "stream {stream}: {event:?} {read:?}");
            // What came while the client was not looking is late by what it reports itself.
            let width_ns = at_ns.saturating_sub(ns(read.turn));
            if after_ns + LATE_NS_MAX + width_ns < at_ns {
                late.push((stream, read));
            }
        }
    }
    late
}

#[test]
fn streams_that_begin_at_once_share_few_connections() {
    // Nothing is answered before all have asked: they are in flight together.
    let asked = AtomicUsize::new(0);
    let waiting = Mutex::new(Vec::new());
    let server = Http2Server::serve(&[], move |frames, heard| {
        let Heard::Asked(stream) = heard else { return };
        waiting.lock().unwrap().push(stream);
        if asked.fetch_add(1, Ordering::SeqCst) + 1 == 64 {
            for stream in waiting.lock().unwrap().drain(..) {
                frames.answer(stream, 3);
            }
        }
    });
    let driven = drive_plan(Closed { requests: 64, slots: 64 }, &target(&server), 1);
    assert_all_ok(&driven.records);
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_hundred_streams_fill_a_connection() {
    let server = Http2Server::serve(&[], answering);
    let driven = drive_plan(Closed { requests: 250, slots: 250 }, &target(&server), 2);
    assert_all_ok(&driven.records);
    let expected = 2..=4;
    assert!(expected.contains(&server.connections()), "{} connections", server.connections());
    // One that was opened ahead may not be needed, where answers come quickly.
    let used = ordinals(&driven.records).len();
    assert!((2..=server.connections()).contains(&used), "{used} of {}", server.connections());
}

#[test]
fn connections_that_are_not_reused_carry_one_stream_each() {
    let server = Http2Server::serve(&[], answering);
    let shared = target(&server);
    let fresh = Arc::new(Target { connections: Connections::New, ..(*shared).clone() });
    let driven = drive_plan(Closed { requests: 8, slots: 3 }, &fresh, 1);
    assert_all_ok(&driven.records);
    assert_eq!(ordinals(&driven.records).len(), 8);
    assert!(driven.records.iter().all(|record| !record.connection.unwrap().reused));
}

/// Faults: 34.
#[test]
fn going_away_ends_the_streams_above_its_number_and_no_others() {
    for code in [NO_ERROR, INTERNAL_ERROR] {
        // Four are asked for; the last two were not looked at, the first two are answered after.
        let server = Http2Server::serve(&[], move |frames, heard| {
            let Heard::Asked(stream) = heard else { return };
            if frames.connection != 0 {
                frames.answer(stream, 3);
            } else if frames.asked.len() == 4 {
                let asked = frames.asked.clone();
                frames.go_away(asked[1], code);
                frames.answer(asked[0], 3);
                frames.answer(asked[1], 3);
            }
        });
        let driven = drive_plan(Closed { requests: 12, slots: 4 }, &target(&server), 1);
        let failed: Vec<&RequestRecord> =
            driven.records.iter().filter(|record| record.ending.outcome != Outcome::Ok).collect();
        assert_eq!(failed.len(), 2, "{failed:?}");
        for record in failed {
            assert_ended(record, Outcome::TransportError, Cause::GoAway);
        }
        let over_first = driven.records.iter().filter(|r| r.connection.unwrap().ordinal == 0);
        assert_eq!(over_first.count(), 4, "nothing more goes over it");
        assert_eq!(server.connections(), 2);
    }
}

#[test]
fn going_away_between_requests_costs_no_request() {
    // The first answer of each connection is followed by its end, as servers do when they restart.
    let server = Http2Server::serve(&[], |frames, heard| {
        let Heard::Asked(stream) = heard else { return };
        frames.answer(stream, 1);
        frames.go_away(stream, NO_ERROR);
    });
    let driven = drive_plan(Closed { requests: 5, slots: 1 }, &target(&server), 1);
    assert_all_ok(&driven.records);
    assert_eq!(server.connections(), 5);
}

#[test]
fn a_stream_given_up_by_going_away_is_not_whole() {
    let server = Http2Server::serve(&[], |frames, heard| {
        let Heard::Asked(stream) = heard else { return };
        frames.head(stream);
        frames.data(stream, TOKEN);
        frames.data(stream, FINISH);
        frames.go_away(0, NO_ERROR);
    });
    let records = drive_all(&target(&server), 1);
    assert_ended(&records[0], Outcome::TransportError, Cause::GoAway);
    assert_eq!(outputs(&records[0]), 1);
}

/// Faults: 35.
#[test]
fn a_reset_stream_fails_alone() {
    let server = Http2Server::serve(&[], |frames, heard| {
        let Heard::Asked(stream) = heard else { return };
        match frames.asked.len() {
            2 => frames.reset(stream, REFUSED_STREAM),
            4 => {
                frames.head(stream);
                frames.data(stream, TOKEN);
                frames.reset(stream, INTERNAL_ERROR);
            }
            6 => {
                frames.head(stream);
                frames.data(stream, TOKEN);
                frames.data(stream, FINISH);
                frames.reset(stream, NO_ERROR);
            }
            _ => frames.answer(stream, 3),
        }
    });
    let records = drive_all(&target(&server), 8);
    assert_eq!(server.connections(), 1);
    assert_ended(&records[1], Outcome::TransportError, Cause::Reset);
    assert_eq!(records[1].ending.stage, Stage::Headers);
    assert_ended(&records[3], Outcome::TransportError, Cause::Reset);
    assert_eq!(outputs(&records[3]), 1, "what came before is kept");
    assert_ended(&records[5], Outcome::Truncated, Cause::NoFinalChunk);
    for whole in [0, 2, 4, 6, 7] {
        assert_ended(&records[whole], Outcome::Ok, None);
    }
}

#[test]
fn silent_streams_meet_our_limits_and_the_others_do_not_notice() {
    let server = Http2Server::serve(&[], |frames, heard| {
        let Heard::Asked(stream) = heard else { return };
        match frames.asked.len() {
            1 => {}
            2 => {
                frames.head(stream);
                frames.data(stream, TOKEN);
            }
            _ => frames.answer(stream, 3),
        }
    });
    let driven = drive_plan(Closed { requests: 20, slots: 4 }, &target(&server), 1);
    assert_ended(&driven.records[0], Outcome::TimeoutFirstToken, None);
    assert_ended(&driven.records[1], Outcome::TimeoutIdle, None);
    assert_all_ok(&driven.records[2..]);
    assert_eq!(server.connections(), 1);
}

/// Faults: 36.
#[test]
fn a_window_that_never_opens_holds_one_request_only() {
    let gave_up = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&gave_up);
    let first = AtomicU32::new(0);
    let server =
        Http2Server::serve(&[(INITIAL_WINDOW_SIZE, 0)], move |frames, heard| match heard {
            Heard::Opened(stream) => {
                let held = first.compare_exchange(0, stream, Ordering::SeqCst, Ordering::SeqCst);
                if held.is_err() {
                    frames.open_window(stream, 1 << 16);
                }
            }
            Heard::Asked(stream) => frames.answer(stream, 3),
            Heard::GaveUp(_) => {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
    let driven = drive_plan(Closed { requests: 12, slots: 3 }, &target(&server), 1);
    assert_ended(&driven.records[0], Outcome::TimeoutFirstToken, None);
    assert_all_ok(&driven.records[1..]);
    assert_eq!(server.connections(), 1);
    assert!(gave_up.load(Ordering::SeqCst) <= 1);
}

/// Faults: 37.
#[test]
fn a_server_that_allows_few_streams_gets_no_more_on_a_connection() {
    for (allowed, connections) in [(1, 6), (2, 3), (4, 2)] {
        let most = Arc::new(AtomicUsize::new(0));
        let noted = Arc::clone(&most);
        let open = Mutex::new(HashMap::<usize, usize>::new());
        let settings = [(MAX_CONCURRENT_STREAMS, allowed)];
        let server = Http2Server::serve(&settings, move |frames, heard| {
            let mut open = open.lock().unwrap();
            let open = open.entry(frames.connection).or_default();
            match heard {
                Heard::Opened(_) => {
                    *open += 1;
                    noted.fetch_max(*open, Ordering::SeqCst);
                }
                Heard::Asked(stream) => {
                    // Counted down first: the client may open the next as soon as it has read this.
                    *open -= 1;
                    frames.answer(stream, 3);
                }
                Heard::GaveUp(_) => {}
            }
        });
        let driven = drive_plan(Closed { requests: 30, slots: 6 }, &target(&server), 1);
        assert_all_ok(&driven.records);
        assert!(most.load(Ordering::SeqCst) <= allowed as usize, "more streams than allowed");
        // The load is the one that was asked for: what does not fit goes over another connection,
        // and nothing waits inside of one.
        assert!(server.connections() <= connections, "{allowed} streams each");
    }
}

#[test]
fn a_connection_that_breaks_fails_what_was_on_it_and_the_next_is_new() {
    let server = Http2Server::serve(&[], |frames, heard| {
        let Heard::Asked(stream) = heard else { return };
        if frames.connection != 0 {
            frames.answer(stream, 3);
        } else if frames.asked.len() == 3 {
            frames.head(frames.asked[0]);
            frames.data(frames.asked[0], TOKEN);
            frames.leaves = true;
        }
    });
    let driven = drive_plan(Closed { requests: 9, slots: 3 }, &target(&server), 1);
    let broken: Vec<&RequestRecord> =
        driven.records.iter().filter(|record| record.ending.outcome != Outcome::Ok).collect();
    assert_eq!(broken.len(), 3);
    for record in broken {
        assert_ended(record, Outcome::TransportError, Cause::Reset);
    }
    assert_eq!(server.connections(), 2);
}

#[test]
fn http2_is_agreed_on_over_tls() {
    let server = Http2Server::serve_secured(&["h2", "http/1.1"], answering);
    let driven = drive_plan(Closed { requests: 10, slots: 2 }, &secured(&server), 1);
    assert_all_ok(&driven.records);
    assert_eq!(server.connections(), 1);
    let dialling = driven.ending.client.dialling.as_ref().unwrap();
    assert_eq!((dialling.connect_ns.len(), dialling.failed()), (1, 0));
    assert!(driven.records.iter().all(|record| record.connection.unwrap().dial.is_none()));
}

#[test]
fn all_places_are_opened_before_the_first_request() {
    let server = Http2Server::serve(&[(MAX_CONCURRENT_STREAMS, 4)], answering);
    let driven = drive_plan(Closed { requests: 48, slots: 24 }, &target(&server), 2);
    assert_all_ok(&driven.records);
    let dialling = driven.ending.client.dialling.as_ref().unwrap();
    assert_eq!((dialling.wanted, dialling.connect_ns.len(), dialling.failed()), (6, 6, 0));
    assert!(driven.records.iter().all(|record| record.connection.unwrap().reused));
    assert_eq!(server.connections(), 6);
}

#[test]
fn a_secured_server_without_http2_is_refused_in_words() {
    let silent: [&[&str]; 2] = [&["http/1.1"], &[]];
    for protocols in silent {
        let server = Http2Server::serve_secured(protocols, |_, _| {});
        let record = probe(&secured(&server), SystemClock::new(), &Content::text("hello"), 4)
            .unwrap()
            .record;
        assert_ended(&record, Outcome::TlsError, Cause::Handshake);
        let words = record.ending.message.unwrap();
        assert!(words.contains("does not offer HTTP/2"), "{words}");
    }
}

#[test]
fn a_plain_server_without_http2_is_no_success() {
    let refusal = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let server = Scripted::serve(vec![vec![Step::Write(refusal.as_bytes().to_vec())]]);
    let plain = target_with(server.address, Api::Chat, true, Limits::default());
    let target = Arc::new(Target { http: HttpVersion::Http2, ..(*plain).clone() });
    let record = probe(&target, SystemClock::new(), &Content::text("hello"), 4).unwrap().record;
    // Whichever is noticed first: that its words are no frames, or that it has hung up.
    let (outcome, cause) = (record.ending.outcome, record.ending.cause.unwrap());
    let noticed =
        [(Outcome::ProtocolError, Cause::BadFraming), (Outcome::TransportError, Cause::Reset)];
    assert!(noticed.contains(&(outcome, cause)), "{:?}", record.ending);
}
