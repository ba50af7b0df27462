//! `inferometer ui`, asked as browsers and as attackers would.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use crate::support;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use inferometer_analysis::{Summary, metric};
use inferometer_model::Outcome;
use inferometer_store::{RunDirectory, RunState};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use support::{Engine, inferometer, latest_run, output, text};

/// A server over the runs of a folder; ends with the test.
struct Ui {
    child: Child,
    address: SocketAddr,
}

impl Ui {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = inferometer()
            .args(["ui", "-o", "runs", "--port", "0"])
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/');
        Self { address: address.parse().unwrap(), child }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        stream
    }

    /// An answer to a request of these lines, after which the connection is closed.
    fn ask(&self, first: &str, headers: &[&str], body: &str) -> Reply {
        let mut stream = self.connect();
        let length = body.len();
        write!(stream, "{first} HTTP/1.1\r\nconnection: close\r\n").unwrap();
        for header in headers {
            write!(stream, "{header}\r\n").unwrap();
        }
        write!(stream, "content-length: {length}\r\n\r\n{body}").unwrap();
        let mut whole = Vec::new();
        // A refusal does not wait for the body, and the connection may be reset behind it.
        if let Err(error) = stream.read_to_end(&mut whole) {
            assert!(!whole.is_empty(), "{first}: {error}");
        }
        Reply::parse(&whole)
    }

    fn get(&self, path: &str) -> Reply {
        self.ask(&format!("GET {path}"), &[&format!("host: {}", self.address)], "")
    }

    fn json(&self, path: &str) -> Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// A form that one of its own pages sends.
    fn post(&self, path: &str, body: &str) -> Reply {
        let (host, origin) =
            (format!("host: {}", self.address), format!("origin: http://{}", self.address));
        self.ask(&format!("POST {path}"), &[&host, &origin], body)
    }

    /// A tab that follows events.
    fn follow(&self, path: &str) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.address).unwrap();
        BufReader::new(stream)
    }

    /// The entries of the list once all of the folder is read.
    fn list(&self, query: &str) -> Value {
        for _ in 0..600 {
            let list = self.json(&format!("/api/list?{query}"));
            if list["is_partial"] == false {
                return list;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the folder is never read");
    }
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
}

impl Reply {
    fn parse(whole: &[u8]) -> Self {
        let whole = String::from_utf8_lossy(whole).into_owned();
        let (head, body) = whole.split_once("\r\n\r\n").unwrap_or((&whole, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }
}

/// The next event of a stream; `None` at its end.
fn next_event(stream: &mut impl BufRead) -> Option<Value> {
    let mut line = String::new();
    while stream.read_line(&mut line).ok()? != 0 {
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).ok();
        }
        line.clear();
    }
    None
}

fn stored(words: &str, folder: &Path) -> RunDirectory {
    let ran = output(&words.split_whitespace().collect::<Vec<_>>(), folder);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{}", text(&ran.stderr));
    latest_run(folder)
}

fn simulated(folder: &Path, more: &str) -> RunDirectory {
    stored(&format!("simulate --requests 20 --quiet {more}"), folder)
}

/// A run that goes on until it is stopped, once it has stored some requests.
fn start_run(engine: &Engine, folder: &Path) -> (Child, RunDirectory) {
    let mut child = inferometer()
        .args(["run", &engine.url(), "-q", "--requests", "100000", "--concurrency", "4"])
        .args(["--output-tokens", "8"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    for _ in 0..3_000 {
        let found = fs::read_dir(folder.join("runs")).into_iter().flatten().flatten().next();
        let run = found.map(|found| RunDirectory::at(found.path()));
        if let Some(run) = run.filter(|run| run.state() == RunState::Running) {
            return (child, run);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    panic!("the run does not begin: {:?}", child.wait());
}

fn interrupt(child: &Child) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
}

/// Whoever makes a name point to this machine gets nothing.
/// Faults: 105.
#[test]
fn a_foreign_host_is_refused_before_anything_else() {
    let folder = tempfile::tempdir().unwrap();
    simulated(folder.path(), "");
    let ui = Ui::start(folder.path(), &["--allow-run"]);
    for first in
        ["GET /", "GET /api/list", "POST /start", "OPTIONS /", "PUT /x", "GET /assets/ui.js"]
    {
        for host in ["evil.example", "evil.example:7431", "127.0.0.1.evil.example", "0.0.0.0"] {
            let reply = ui.ask(first, &[&format!("host: {host}")], "");
            assert_eq!(reply.status, 403, "{first} for {host}");
            assert!(!reply.body.contains("stored"), "{}", reply.body);
        }
        assert!([400, 403].contains(&ui.ask(first, &[], "").status), "{first} without a host");
    }
    let port = ui.address.port();
    for own in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        assert_eq!(ui.ask("GET /", &[&format!("host: {own}")], "").status, 200, "{own}");
    }
}

/// Pages of other sites cannot make a browser read or change anything here.
/// Faults: 106.
#[test]
fn requests_of_other_sites_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = simulated(folder.path(), "");
    let ui = Ui::start(folder.path(), &["--allow-run"]);
    let host = format!("host: {}", ui.address);
    let own = format!("origin: http://{}", ui.address);
    let live = format!("GET /api/live?id={}", run.id());
    let foreign: [(&str, &[&str]); 7] = [
        ("POST /start", &["origin: http://evil.example"]),
        ("POST /start", &["origin: null"]),
        ("POST /start", &[]),
        ("POST /start", &[&own, "sec-fetch-site: cross-site"]),
        (&live, &["origin: http://evil.example"]),
        (&live, &["sec-fetch-site: cross-site", "sec-fetch-mode: cors"]),
        ("GET /", &["upgrade: websocket", "connection: upgrade", "sec-websocket-version: 13"]),
    ];
    for (first, headers) in foreign {
        let headers: Vec<&str> =
            [host.as_str()].into_iter().chain(headers.iter().copied()).collect();
        let reply = ui.ask(first, &headers, "command=simulate&more=--requests+5");
        assert_eq!(reply.status, 403, "{first} with {headers:?}");
    }
    assert_eq!(ui.list("")["stored"], 1, "nothing was started");
    let link =
        ui.ask("GET /", &[&host, "sec-fetch-site: cross-site", "sec-fetch-mode: navigate"], "");
    assert_eq!(link.status, 200, "a link from elsewhere can be followed");
}

/// No name leads out of the folder, however it is written.
/// Faults: 107.
#[test]
fn no_path_leaves_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, linked) = (simulated(folder.path(), ""), simulated(folder.path(), "--seed 2"));
    fs::write(folder.path().join("secret"), "SECRET-OF-THE-TEST").unwrap();
    fs::create_dir(folder.path().join("outside")).unwrap();
    fs::write(folder.path().join("outside/manifest.json"), "SECRET-OF-THE-TEST").unwrap();
    symlink("../outside", folder.path().join("runs/outward")).unwrap();
    fs::remove_file(linked.path().join("telemetry.journal")).ok();
    symlink("../../secret", linked.path().join("telemetry.journal")).unwrap();
    let ui = Ui::start(folder.path(), &[]);
    let (kept, linked) = (kept.id(), linked.id());
    let files = |id: &str, name: &str| format!("/files?id={id}&name={name}");
    let paths = [
        "/runs/..%2f..%2fetc/passwd".to_owned(),
        "/view?id=..%2f..%2fetc/passwd".to_owned(),
        "/view?id=..%252f..%252fsecret".to_owned(),
        "/view?id=../outside".to_owned(),
        "/view?id=outward".to_owned(),
        format!("/view?id={kept}/../../outside"),
        "/assets/..%2f..%2fsecret".to_owned(),
        "/../secret".to_owned(),
        files(kept, "../../secret"),
        files(kept, "..%2F..%2Fsecret"),
        files(kept, "%2e%2e/%2e%2e/secret"),
        files(linked, "telemetry.journal"),
        files(linked, "summary.json"),
        format!("/view?id={linked}"),
        format!("/request?id={linked}&request=0"),
        files("outward", "manifest.json"),
    ];
    for path in paths {
        let reply = ui.get(&path);
        assert_eq!(reply.status, 404, "{path}");
        assert!(
            !reply.body.contains("SECRET-OF-THE-TEST") && !reply.body.contains("root:"),
            "{path}"
        );
    }
    let listed = ui.list("");
    assert_eq!((&listed["stored"], &listed["entries"][0]["id"]), (&1.into(), &kept.into()));
    let manifest = ui.get(&files(kept, "manifest.json"));
    assert_eq!(manifest.status, 200);
    assert!(manifest.body.contains(kept) && manifest.head.contains("attachment"), "{manifest:?}");
}

/// An open tab delays neither the end of a run nor that of this program.
/// Faults: 113.
#[test]
fn an_open_tab_keeps_no_process_alive() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&[]);
    let (mut child, run) = start_run(&engine, folder.path());
    let mut ui = Ui::start(folder.path(), &[]);
    ui.list("");
    let path = format!("/api/live?id={}", run.id());
    let (mut tab, mut second) = (ui.follow(&path), ui.follow(&path));
    assert!(next_event(&mut tab).is_some() && next_event(&mut second).is_some());
    interrupt(&child);
    child.wait().unwrap();
    assert_eq!(run.state(), RunState::Sealed);
    let last = std::iter::from_fn(|| next_event(&mut tab)).last().unwrap();
    assert_eq!(last["event"], "ended", "the tab learns that it is over");
    kill(Pid::from_raw(i32::try_from(ui.child.id()).unwrap()), Signal::SIGTERM).unwrap();
    let status = ui.child.wait().unwrap();
    assert_eq!(status.code(), Some(143), "it ends although a tab is connected");
    drop(second);
}

/// Many tabs get the newest figures only, at most two a second, and no more than 32 of them.
/// Faults: 114.
#[test]
fn many_tabs_are_bounded_and_the_run_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&[]);
    let (mut child, run) = start_run(&engine, folder.path());
    let ui = Ui::start(folder.path(), &[]);
    let path = format!("/api/live?id={}", run.id());
    // These never read: their events must not pile up.
    let mut tabs: Vec<_> = (0..40).map(|_| ui.follow(&path)).collect();
    let heads: Vec<String> = tabs
        .iter_mut()
        .map(|tab| {
            let mut line = String::new();
            tab.read_line(&mut line).unwrap();
            line
        })
        .collect();
    let followed = heads.iter().filter(|head| head.contains(" 200 ")).count();
    assert_eq!(followed, 32, "{heads:?}");
    assert_eq!(heads.iter().filter(|head| head.contains(" 503 ")).count(), 8);
    let events: Vec<Value> = (0..5).filter_map(|_| next_event(&mut tabs[0])).collect();
    let elapsed = |event: &Value| event["progress"]["elapsed_s"].as_f64().unwrap();
    let took_s = elapsed(&events[4]) - elapsed(&events[0]);
    assert!(1.8 <= took_s, "four steps in {took_s} s are more than two a second");
    interrupt(&child);
    child.wait().unwrap();
    let records = run.read().unwrap().observations.records.into_held();
    let is_whole = |outcome| [Outcome::Ok, Outcome::Cancelled].contains(&outcome);
    assert!(records.iter().all(|record| is_whole(record.ending.outcome)));
    assert!(records.iter().any(|record| record.ending.outcome == Outcome::Ok));
}

#[test]
fn the_list_is_filtered_searched_sorted_and_paged() {
    let folder = tempfile::tempdir().unwrap();
    let first = simulated(folder.path(), "--concurrency 1");
    let second = simulated(folder.path(), "--concurrency 4");
    let sweep = "sweep --concurrencies 1,2 --virtual --requests 10 --quiet";
    let swept = output(&sweep.split(' ').collect::<Vec<_>>(), folder.path());
    assert!(matches!(swept.status.code(), Some(0 | 4)), "{}", text(&swept.stderr));
    let ui = Ui::start(folder.path(), &[]);
    let ids = |query: &str| -> Vec<String> {
        let list = ui.list(query);
        let entries = list["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("").len(), 3);
    assert_eq!(ids("kind=sweep").len(), 1);
    let sweep = &ui.list("kind=sweep")["entries"][0];
    assert_eq!(sweep["ok"], 20, "the requests of both levels: {sweep}");
    let peak = sweep["output_per_s"].as_f64().unwrap();
    let of_run = |id: &str| ui.list(&format!("q={id}"))["entries"][0]["output_per_s"].as_f64();
    assert!(of_run(first.id()).unwrap() < peak, "the highest of its levels: {sweep}");
    assert_eq!(ids(&format!("q={}", first.id())), [first.id()]);
    assert_eq!(ids("q=nothing+has+these+words"), [""; 0]);
    let sorted = ids("kind=run&sort=first_token");
    let reversed: Vec<String> = ids("kind=run&sort=-first_token").into_iter().rev().collect();
    assert_eq!(sorted, reversed);
    assert_eq!(sorted.iter().collect::<BTreeSet<_>>().len(), 2);
    let page = ui.get("/?kind=run&q=simulated").body;
    assert!(page.contains(second.id()) && page.contains("2 of 3 stored"), "{page}");
    assert!(ui.get("/?page=99").body.contains(first.id()), "the last page is shown");
}

#[test]
fn an_overlay_has_the_numbers_of_the_summaries() {
    let folder = tempfile::tempdir().unwrap();
    let runs =
        [simulated(folder.path(), "--concurrency 1"), simulated(folder.path(), "--concurrency 4")];
    let ui = Ui::start(folder.path(), &[]);
    ui.list("");
    let query = format!("pick={}&pick={}", runs[0].id(), runs[1].id());
    let found = ui.json(&format!("/api/overlay?{query}"));
    let view = found["views"].as_array().unwrap().iter().find(|it| it["key"] == "results").unwrap();
    let axes: Vec<&str> =
        view["axes"].as_array().unwrap().iter().map(|axis| axis["key"].as_str().unwrap()).collect();
    assert_eq!(view["series"].as_array().unwrap().len(), 2);
    for (run, series) in runs.iter().zip(view["series"].as_array().unwrap()) {
        let summary = Summary::from_json_bytes(&run.read_summary().unwrap().unwrap()).unwrap();
        for quantity in
            [metric::OUTPUT_THROUGHPUT.quantity(), metric::TTFT.p99(), metric::E2E.mean()]
        {
            let place = axes.iter().position(|axis| *axis == quantity.to_string()).unwrap();
            let expected = quantity.value_in(&summary).unwrap().value;
            assert_eq!(series["points"][0]["values"][place].as_f64(), Some(expected), "{quantity}");
        }
    }
    let keys: Vec<&Value> =
        found["views"].as_array().unwrap().iter().map(|it| &it["key"]).collect();
    assert_eq!(keys, ["distributions", "course", "results"]);
    let page = ui.get(&format!("/overlay?{query}")).body;
    assert!(page.contains("Metrics side by side") && page.contains(runs[1].id()), "{page}");
    let report = ui.get(&format!("/together?{query}")).body;
    assert!(
        report.contains("Mean latency") && report.contains("2 configurations"),
        "a report of both"
    );
    let many = "&pick=x0&pick=x1&pick=x2&pick=x3&pick=x4&pick=x5&pick=x6&pick=x7&pick=x8";
    assert!(ui.get(&format!("/overlay?{query}{many}")).body.contains("Only the first 8 of 11"));
}

#[test]
fn a_request_is_shown_as_it_was_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let run = simulated(folder.path(), "--output-tokens 12");
    let records = run.read().unwrap().observations.records.into_held();
    let ui = Ui::start(folder.path(), &[]);
    ui.list("");
    let table = ui.json(&format!("/api/requests?id={}&sort=-e2e", run.id()));
    assert_eq!(table["found"], records.len());
    let latencies: Vec<f64> = table["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["latencies_ms"][2].as_f64().unwrap())
        .collect();
    assert!(latencies.is_sorted_by(|one, other| other <= one), "{latencies:?}");
    let record = &records[7];
    let path = format!("id={}&request={}", run.id(), record.id.0);
    let shown = ui.json(&format!("/api/request?{path}"));
    assert_eq!(shown["record"], serde_json::to_value(record).unwrap());
    let arrivals = shown["views"][0]["series"][0]["points"].as_array().unwrap();
    assert_eq!(arrivals.last().unwrap()["values"][1], 12.0, "all tokens have arrived");
    let page = ui.get(&format!("/request?{path}")).body;
    for title in
        ["Arrivals of output", "Reads of the socket", "Events of the stream", "First output"]
    {
        assert!(page.contains(title), "{title}");
    }
    assert_eq!(ui.get(&format!("/request?id={}&request=99", run.id())).status, 404);
    let id = record.id.0;
    let kept = format!("{{\"content\":\"<b>one</b>\\ntwo\",\"id\":{id},\"outcome\":\"ok\"}}\n");
    std::fs::write(run.path().join("answers.jsonl"), kept).unwrap();
    let page = ui.get(&format!("/request?{path}")).body;
    assert!(page.contains("&lt;b&gt;one&lt;/b&gt;\ntwo") && !page.contains("<b>one"), "{page}");
}

#[test]
fn a_run_that_goes_on_is_followed_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::start(&[]);
    let (mut child, run) = start_run(&engine, folder.path());
    let ui = Ui::start(folder.path(), &[]);
    assert_eq!(ui.list("")["entries"][0]["state"], "running");
    assert!(ui.get(&format!("/view?id={}", run.id())).body.contains("is running"));
    let mut tab = ui.follow(&format!("/api/live?id={}", run.id()));
    let ok = |event: &Value| event["progress"]["ok"].as_u64();
    let first = std::iter::from_fn(|| next_event(&mut tab)).find_map(|event| ok(&event)).unwrap();
    let later = std::iter::from_fn(|| next_event(&mut tab))
        .find_map(|event| ok(&event).filter(|ok| first < *ok));
    assert!(later.is_some(), "the figures move");
    interrupt(&child);
    child.wait().unwrap();
    let last = std::iter::from_fn(|| next_event(&mut tab)).last().unwrap();
    assert_eq!(last["event"], "ended");
    assert!(
        ui.get(&format!("/view?id={}", run.id())).body.contains("Validity"),
        "now it is a report"
    );
}

#[test]
fn runs_are_started_only_where_that_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("runs")).unwrap();
    let form = "command=simulate&more=--requests+20";
    let reading = Ui::start(folder.path(), &[]);
    for path in ["/start", "/job/stop"] {
        assert!([404, 405].contains(&reading.post(path, form).status), "{path}");
    }
    assert_eq!(reading.get("/start").status, 404);
    assert_eq!(reading.list("")["stored"], 0);

    let ui = Ui::start(folder.path(), &["--allow-run"]);
    assert!(ui.get("/").body.contains("Start a run"));
    assert_eq!(ui.post("/start", "command=sh&more=-c+id").status, 422);
    assert_eq!(ui.post("/start", form).status, 303);
    let mut tab = ui.follow("/api/job");
    let last = std::iter::from_fn(|| next_event(&mut tab)).find(|event| event["running"] == false);
    let last = last.unwrap();
    let run = latest_run(folder.path());
    assert_eq!(last["stored"], run.id(), "{last}");
    assert_eq!(ui.list("")["entries"][0]["id"], run.id());
}

#[test]
fn a_hostile_name_is_only_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let name = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}\u{202e}";
    let engine = Engine::start(&["--model", name]);
    let run =
        stored(&format!("run {} -q --requests 4 --output-tokens 4", engine.url()), folder.path());
    let ui = Ui::start(folder.path(), &[]);
    ui.list("");
    let id = run.id();
    let pages = [
        "/".to_owned(),
        format!("/?q={}", "%3Cscript%3Ealert(1)%22%3E"),
        format!("/view?id={id}"),
        format!("/overlay?pick={id}&pick=%3Cscript%3Ealert(1)"),
        format!("/together?pick={id}"),
        format!("/requests?id={id}&outcome=%22%3E%3Cscript%3Ealert(1)"),
        format!("/request?id={id}&request=0"),
    ];
    for path in pages {
        let reply = ui.get(&path);
        assert_eq!(reply.status, 200, "{path}");
        let body = &reply.body;
        assert!(
            !body.contains("<script>") && !body.contains("<img") && !body.contains('\u{202e}'),
            "{path}"
        );
        assert!(!body.contains(" onerror=\"") && !body.contains("javascript:"), "{path}");
        let policy =
            reply.head.lines().find(|line| line.starts_with("content-security-policy")).unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
        assert!(body.contains(&format!("nonce=\"{nonce}\"")), "{path}");
        assert!(reply.head.contains("x-content-type-options: nosniff"), "{path}");
    }
    assert_ne!(ui.get("/").head, ui.get("/").head, "a nonce is used once");
}

#[test]
fn other_machines_need_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let open = output(&["ui", "--host", "0.0.0.0", "--port", "0"], folder.path());
    assert_eq!(open.status.code(), Some(2), "{}", text(&open.stderr));
    assert!(text(&open.stderr).contains("--token"));
    fs::write(folder.path().join("short"), "abc\n").unwrap();
    let short = output(&["ui", "--token", "short", "--port", "0"], folder.path());
    assert_eq!(short.status.code(), Some(2), "{}", text(&short.stderr));

    fs::write(folder.path().join("token"), "0123456789abcdef\n").unwrap();
    let ui = Ui::start(folder.path(), &["--host", "0.0.0.0", "--token", "token"]);
    let host = format!("host: 127.0.0.1:{}", ui.address.port());
    let refused = ui.ask("GET /api/list", &[&host], "");
    assert_eq!(refused.status, 401);
    let bearer = "authorization: Bearer 0123456789abcdef";
    assert_eq!(ui.ask("GET /api/list", &[&host, bearer], "").status, 200);
    let origin = format!("origin: http://127.0.0.1:{}", ui.address.port());
    let wrong = ui.ask("POST /login", &[&host, &origin], "token=0123456789abcdeX");
    assert_eq!(wrong.status, 401);
    let right = ui.ask("POST /login", &[&host, &origin], "token=0123456789abcdef");
    assert_eq!(right.status, 303);
    let cookie = right.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    assert!(!cookie.contains("0123456789abcdef"), "the cookie reveals the token");
    let cookie = format!("cookie: {}", cookie.split(';').next().unwrap());
    assert_eq!(ui.ask("GET /", &[&host, &cookie], "").status, 200);
}
