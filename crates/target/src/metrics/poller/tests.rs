//! The poller against servers that answer well, slowly, wrongly, or without end.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use inferometer_model::Moment;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

const GOOD: &str = "vllm:num_requests_running 1\nvllm:kv_cache_usage_perc 0.5\n";

/// The machine's clock, from its making on.
#[derive(Clone, Copy)]
struct RealClock(Instant);

impl RealClock {
    #[expect(clippy::disallowed_methods, reason = "waiting is real here, so the clock is")]
    fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RealClock {
    fn now(&self) -> Moment {
        Moment::ZERO + self.0.elapsed()
    }
}

/// GET over a fresh connection, as plain as can be.
struct PlainFetch(SocketAddr);

impl Fetch for PlainFetch {
    async fn fetch(&self, request: FetchRequest<'_>) -> Result<FetchReply, FetchError> {
        let failed = |outcome| FetchError { outcome, message: String::new() };
        let cut = |_error| failed(Outcome::TransportError);
        let mut stream = tokio::net::TcpStream::connect(self.0).await.map_err(cut)?;
        let head = format!("GET {} HTTP/1.0\r\n\r\n", request.path);
        stream.write_all(head.as_bytes()).await.map_err(cut)?;
        let mut bytes = Vec::new();
        let limit = request.body_limit as u64 + 1_000;
        (&mut stream).take(limit).read_to_end(&mut bytes).await.map_err(cut)?;
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.ok_or_else(|| failed(Outcome::ProtocolError))? + 4;
        let body = bytes.split_off(end);
        if request.body_limit < body.len() {
            return Err(failed(Outcome::ProtocolError));
        }
        let status = String::from_utf8_lossy(&bytes[9..12]).parse().unwrap();
        Ok(FetchReply { status, content_type: None, body })
    }
}

/// A server on a port of its own; it ends with the process.
fn serve(answer: impl Fn(u64, &mut TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in (0..).zip(listener.incoming()) {
            let mut stream = stream.unwrap();
            let mut head = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while head.read_line(&mut line).is_ok_and(|count| 2 < count) {
                line.clear();
            }
            answer(number, &mut stream);
        }
    });
    address
}

/// The client may have left already; that is what some tests are about.
fn say(stream: &mut TcpStream, status: u16, body: &[u8]) {
    let _ = write!(stream, "HTTP/1.0 {status} X\r\n\r\n");
    let _ = stream.write_all(body);
}

fn polling(time_limit_ms: u64) -> Polling {
    Polling {
        path: "/metrics".to_owned(),
        every: Duration::from_millis(20),
        time_limit: Duration::from_millis(time_limit_ms),
    }
}

struct Started {
    poller: Poller<mpsc::Sender<TelemetryEntry>, Infallible>,
    entries: mpsc::Receiver<TelemetryEntry>,
}

fn start(polling: Polling, address: SocketAddr) -> Started {
    let (sender, entries) = mpsc::channel();
    let append = |sender: &mut mpsc::Sender<_>, entry: &TelemetryEntry| {
        let _ = sender.send(entry.clone());
        Ok(())
    };
    let (clock, fetch) = (RealClock::start(), move || PlainFetch(address));
    let poller = Poller::start(polling, clock, fetch, sender, append).unwrap();
    Started { poller, entries }
}

impl Started {
    fn stop(self) -> Vec<TelemetryEntry> {
        let Ok(sender) = self.poller.stop().unwrap();
        drop(sender);
        self.entries.into_iter().collect()
    }

    /// The first that fits; what comes before it is dropped.
    fn wait_for(&self, fits: impl Fn(&TelemetryEntry) -> bool) -> TelemetryEntry {
        let limit = Duration::from_mins(1);
        std::iter::repeat_with(|| self.entries.recv_timeout(limit).unwrap()).find(fits).unwrap()
    }
}

fn is_sample(entry: &TelemetryEntry) -> bool {
    matches!(entry, TelemetryEntry::Sample(_))
}

fn reason(entry: &TelemetryEntry) -> Option<MissReason> {
    if let TelemetryEntry::Missed(missed) = entry { Some(missed.reason) } else { None }
}

/// Answers by path, and has nothing anywhere else.
struct ByPath(&'static [(&'static str, &'static str)]);

impl Fetch for ByPath {
    async fn fetch(&self, request: FetchRequest<'_>) -> Result<FetchReply, FetchError> {
        let known = self.0.iter().find(|(path, _)| *path == request.path);
        let (status, body) = known.map_or((404, "{}"), |(_, body)| (200, *body));
        Ok(FetchReply { status, content_type: None, body: body.as_bytes().to_vec() })
    }
}

#[test]
fn metrics_are_found_at_the_other_usual_place() {
    const STATISTICS: &str = r#"[{"iter": 4, "numActiveRequests": 2}]"#;
    let found = |path: &str, answers| {
        let polling = Polling { path: path.to_owned(), ..polling(60_000) };
        let append = |entries: &mut Vec<TelemetryEntry>, entry: &TelemetryEntry| {
            entries.push(entry.clone());
            Ok::<(), Infallible>(())
        };
        let fetch = move || ByPath(answers);
        let poller = Poller::start(polling, RealClock::start(), fetch, Vec::new(), append).unwrap();
        let Ok(entries) = poller.stop().unwrap();
        entries
    };
    let other: &[_] = &[("/metrics", STATISTICS), ("/prometheus/metrics", GOOD)];
    assert!(found("/metrics", other).iter().all(is_sample));
    assert!(found("/metrics", &other[1..]).iter().all(is_sample));
    let refused = |entries: &[TelemetryEntry], reason| {
        assert_eq!(entries, [TelemetryEntry::Absent(Absence::Refused(reason))]);
    };
    // What is named is not looked for elsewhere, and the first answer is the one to tell of.
    refused(&found("/m", other), MissReason::Status(404));
    refused(&found("/metrics", &other[..1]), MissReason::NotPrometheus);
}

#[test]
fn a_run_lies_between_two_samples() {
    let asked = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&asked);
    let address = serve(move |_, stream| {
        counting.fetch_add(1, Ordering::SeqCst);
        say(stream, 200, GOOD.as_bytes());
    });
    // So seldom that only the first and the last can be seen.
    let seldom = Polling { every: Duration::from_hours(1), ..polling(5_000) };
    let started = start(seldom, address);
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the first scrape comes before the run");
    let entries = started.stop();
    let [TelemetryEntry::Sample(first), TelemetryEntry::Sample(last)] = &entries[..] else {
        panic!("{entries:?}");
    };
    assert!(first.at < last.at && first.gauges.kv_usage == Some(0.5));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[test]
fn scrapes_go_on_until_the_stop() {
    let address = serve(|_, stream| say(stream, 200, GOOD.as_bytes()));
    let started = start(polling(5_000), address);
    for _ in 0..5 {
        started.wait_for(is_sample);
    }
    assert!(started.stop().iter().any(is_sample), "one more after the stop");
}

/// Faults: 100.
#[test]
fn what_is_not_there_is_not_asked_for_again() {
    for (status, body, reason, places) in [
        (404, &b"{\"detail\":\"Not Found\"}"[..], MissReason::Status(404), 2),
        (200, b"<html>\n<body>\n", MissReason::NotPrometheus, 2),
        (200, b"go_goroutines 12\n", MissReason::NoKnownName, 1),
    ] {
        let asked = Arc::new(AtomicU64::new(0));
        let counting = Arc::clone(&asked);
        let address = serve(move |_, stream| {
            counting.fetch_add(1, Ordering::SeqCst);
            say(stream, status, body);
        });
        let entries = start(polling(5_000), address).stop();
        assert_eq!(entries, [TelemetryEntry::Absent(Absence::Refused(reason))]);
        assert_eq!(asked.load(Ordering::SeqCst), places);
    }
}

/// Faults: 100.
#[test]
fn an_answer_without_end_is_cut_at_its_bound() {
    let address = serve(|_, stream| {
        let _ = write!(stream, "HTTP/1.0 200 X\r\n\r\n");
        let line = "vllm:num_requests_running 1\n".repeat(1_000);
        while stream.write_all(line.as_bytes()).is_ok() {}
    });
    let entries = start(polling(30_000), address).stop();
    let refused = TelemetryEntry::Absent(Absence::Refused(MissReason::Protocol));
    assert_eq!(entries, [refused]);
}

/// Faults: 100, 103.
#[test]
fn silence_is_missed_backed_off_from_and_forgiven() {
    let (keep, kept) = mpsc::channel();
    let address = serve(move |number, stream| {
        // The first connection stays open without a word; later ones are answered.
        if number == 0 {
            let _ = keep.send(stream.try_clone().unwrap());
        } else {
            say(stream, 200, GOOD.as_bytes());
        }
    });
    let started = start(polling(100), address);
    let first = started.entries.recv().unwrap();
    assert_eq!(reason(&first), Some(MissReason::Timeout));
    // After 100 ms of waiting the server has 100 ms of rest, which are some ticks of 20.
    let next = started.entries.recv_timeout(Duration::from_mins(1)).unwrap();
    assert_eq!(reason(&next), Some(MissReason::BackedOff));
    started.wait_for(is_sample);
    drop((started.stop(), kept));
}

#[test]
fn a_server_that_breaks_in_the_middle_is_asked_again() {
    let address = serve(|number, stream| match number {
        1 => say(stream, 503, b"busy"),
        2 => say(stream, 200, b"vllm:kv_ca"),
        3 => drop(stream.shutdown(std::net::Shutdown::Both)),
        _ => say(stream, 200, GOOD.as_bytes()),
    });
    let started = start(polling(5_000), address);
    for expected in [MissReason::Status(503), MissReason::NotPrometheus, MissReason::Protocol] {
        let missed =
            started.wait_for(|entry| reason(entry).is_some_and(|r| r != MissReason::BackedOff));
        assert_eq!(reason(&missed), Some(expected));
    }
    started.wait_for(is_sample);
    started.stop();
}

#[test]
fn what_cannot_be_written_down_is_not_asked_for() {
    let address = serve(|_, stream| say(stream, 200, GOOD.as_bytes()));
    let append = |(): &mut (), _: &TelemetryEntry| Err("full");
    let (clock, fetch) = (RealClock::start(), move || PlainFetch(address));
    let poller = Poller::start(polling(5_000), clock, fetch, (), append).unwrap();
    assert_eq!(poller.stop().unwrap(), Err("full"));
}

/// Faults: 103.
#[test]
fn ticks_are_absolute_and_slow_answers_earn_a_rest() {
    let second = Duration::from_secs(1);
    let grid = Grid { begin: Moment::from_nanos(7), every: second };
    let at = |ms: u64| Moment::from_nanos(7 + ms * 1_000_000);
    let ms = Duration::from_millis;
    assert_eq!(grid.next(0, at(0), ms(3)), 1);
    assert_eq!(grid.next(4, at(4_100), ms(100)), 5);
    assert_eq!(grid.next(4, at(4_600), ms(600)), 6, "5.2 s is past the fifth");
    assert_eq!(grid.next(4, at(6_000), ms(2_000)), 8);
    assert_eq!(grid.next(4, at(90_000), ms(10)), 91, "a pause is not made up for");
    assert_eq!(grid.moment(91), at(91_000));
}

/// Faults: 103.
#[test]
fn no_tick_of_a_long_sleep_is_left_out_of_the_count() {
    let grid = Grid { begin: Moment::ZERO, every: Duration::from_secs(1) };
    assert_eq!(skipped(grid, 4, 5).count(), 0);
    assert_eq!(skipped(grid, 4, 1_005).filter_map(|entry| reason(&entry)).count(), 1_000);
    let entries: Vec<_> = skipped(grid, 4, 9_005).collect();
    let from = Moment::ZERO + Duration::from_secs(1_005);
    let many = TelemetryEntry::Skipped(SkippedScrapes { from, number: 8_000 });
    assert_eq!((entries.len(), entries.last()), (1_001, Some(&many)));
}
