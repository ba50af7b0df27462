//! Connections and routes.

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use bytes::Bytes;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use inferometer_report::document::html;
use inferometer_store::Stored;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::time::interval;

use crate::guard::{Guard, Refusal, hex};
use crate::job::Jobs;
use crate::library::Library;
use crate::live::{self, Live};
use crate::overlay::{self, PICKS_MAX, Picked};
use crate::pages::{COMMANDS, Frame};
use crate::query::Query;
use crate::requests::{self, Requests};
use crate::{Reader, Settings};

/// Connections at once; more wait until one ends.
const CONNECTIONS_MAX: usize = 128;
/// Bytes of a request's head, and of its body.
const HEAD_BYTES_MAX: usize = 16 << 10;
const BODY_BYTES_MAX: usize = 16 << 10;
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Files of a stored folder that can be downloaded.
const FILES: [&str; 8] = [
    "manifest.json",
    "set.json",
    "import.json",
    "summary.json",
    "requests.journal",
    "telemetry.journal",
    "foreign",
    "report.md",
];
/// The page's numbers, which are written on request.
const CSV: &str = "report.csv";
const ASSETS: [(&str, &str, &str); 3] = [
    ("ui.css", "text/css; charset=utf-8", include_str!("assets/ui.css")),
    ("ui.js", "text/javascript; charset=utf-8", include_str!("assets/ui.js")),
    ("chart.js", "text/javascript; charset=utf-8", include_str!("assets/chart.js")),
];

/// A server that has its address, and answers nothing yet.
#[derive(Debug)]
pub struct Server {
    listener: std::net::TcpListener,
    address: SocketAddr,
}

/// Ends a server from another thread.
#[derive(Clone, Debug, Default)]
pub struct Stopper(Arc<Notify>);

impl Stopper {
    pub fn stop(&self) {
        self.0.notify_one();
    }
}

impl Server {
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until it is stopped. Browsers that are still connected are cut off then.
    pub fn serve(
        self,
        settings: Settings,
        reader: Box<dyn Reader>,
        stopper: &Stopper,
    ) -> io::Result<()> {
        // One thread that answers, and few that read: a run on this machine should not notice.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(4)
            .enable_all()
            .build()?;
        let site = Arc::new(Site {
            guard: Guard { address: self.address.ip(), token: settings.token },
            library: Library::new(settings.folder, reader),
            live: Live::new(),
            requests: Requests::default(),
            jobs: settings.runs_with.map(Jobs::new),
        });
        let served = runtime.block_on(async {
            let listener = TcpListener::from_std(self.listener)?;
            let first = Arc::clone(&site);
            tokio::task::spawn_blocking(move || first.library.refresh());
            tokio::select! {
                () = accept(listener, router(Arc::clone(&site))) => {}
                () = stopper.0.notified() => {}
            }
            Ok(())
        });
        if let Some(jobs) = &site.jobs {
            jobs.stop();
        }
        runtime.shutdown_background();
        served
    }
}

async fn accept(listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES_MAX);
    let mut pause = interval(Duration::from_millis(100));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors: those that are open end some time.
            pause.tick().await;
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        let connection = server.serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move {
            let _place = place;
            // A browser that goes away is no error.
            let _ = connection.await;
        });
    }
}

struct Site {
    guard: Guard,
    library: Library,
    live: Live,
    requests: Requests,
    jobs: Option<Jobs>,
}

type Shared = State<Arc<Site>>;

fn router(site: Arc<Site>) -> Router {
    let mut router = Router::new()
        .route("/", get(list))
        .route("/api/list", get(list_json))
        .route("/view", get(view))
        .route("/overlay", get(overlay_page))
        .route("/api/overlay", get(overlay_json))
        .route("/together", get(together))
        .route("/requests", get(requests_page))
        .route("/api/requests", get(requests_json))
        .route("/request", get(request_page))
        .route("/api/request", get(request_json))
        .route("/files", get(files))
        .route("/api/live", get(live_events))
        .route("/assets/{name}", get(asset))
        .route("/login", get(login_page).post(login));
    if site.jobs.is_some() {
        router = router
            .route("/start", get(start_page).post(start))
            .route("/job", get(job_page))
            .route("/api/job", get(job_events))
            .route("/job/stop", post(job_stop));
    }
    router
        .fallback(async |Extension(frame): Extension<Frame>| missing(&frame))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn_with_state(Arc::clone(&site), guarded))
        .with_state(site)
}

/// Refuses what must not be answered, and forbids browsers everything that no page of ours needs.
async fn guarded(State(site): Shared, mut request: Request, next: Next) -> Response {
    let Some(nonce) = nonce() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let policy = format!(
        "default-src 'none'; style-src 'self'; script-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data: blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    let frame = Frame { nonce, can_run: site.jobs.is_some() };
    let path = request.uri().path().to_owned();
    let mut response = match site.guard.refusal(request.method(), &path, request.headers()) {
        Some(Refusal { status: StatusCode::UNAUTHORIZED, .. }) => {
            page(StatusCode::UNAUTHORIZED, frame.login(false))
        }
        Some(Refusal { status, reason }) => (status, format!("{reason}\n")).into_response(),
        None => {
            request.extensions_mut().insert(frame);
            next.run(request).await
        }
    };
    let headers = response.headers_mut();
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Drawn anew for each answer.
fn nonce() -> Option<String> {
    let mut drawn = [0; 16];
    File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut drawn)).ok()?;
    Some(hex(&drawn))
}

fn page(status: StatusCode, html: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

fn document(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn missing(frame: &Frame) -> Response {
    page(
        StatusCode::NOT_FOUND,
        frame.message("Not found", "There is nothing of this name in the folder."),
    )
}

/// What an answer is made from.
struct PageRequest {
    site: Arc<Site>,
    frame: Frame,
    query: Query,
}

impl PageRequest {
    /// What `id` names.
    fn found(&self) -> Option<(Stored, crate::Entry)> {
        self.site.library.refresh();
        self.site.library.find(self.query.get("id"))
    }

    /// A page, or why there is none.
    fn shown(&self, found: Result<String, String>) -> Response {
        match found {
            Ok(html) => page(StatusCode::OK, html),
            Err(problem) => {
                page(StatusCode::OK, self.frame.message(self.query.get("id"), &problem))
            }
        }
    }

    /// All that is picked, and what could not be read of it.
    fn picked(&self) -> (Picked, Vec<Stored>, Vec<String>) {
        self.site.library.refresh();
        let (mut picked, mut stored, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        let mut names: Vec<&str> = Vec::new();
        for name in self.query.all("pick") {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if PICKS_MAX < names.len() {
            problems.push(format!("Only the first {PICKS_MAX} of {} are shown.", names.len()));
        }
        for name in names.into_iter().take(PICKS_MAX) {
            let Some((found, mut entry)) = self.site.library.find(name) else {
                problems.push(format!("There is nothing of the name {name} in the folder."));
                continue;
            };
            match self.site.library.reader.results(&found) {
                Ok(results) => {
                    name.clone_into(&mut entry.id);
                    picked.push((entry, results));
                    stored.push(found);
                }
                Err(problem) => problems.push(format!("{name}: {problem}")),
            }
        }
        (picked, stored, problems)
    }
}

/// Reads and renders on a thread of its own, so that other answers do not wait.
async fn answered(
    State(site): Shared,
    Extension(frame): Extension<Frame>,
    RawQuery(query): RawQuery,
    answer: impl FnOnce(PageRequest) -> Response + Send + 'static,
) -> Response {
    let query = Query::parse(&query.unwrap_or_default());
    let asked = PageRequest { site, frame, query };
    let answer = tokio::task::spawn_blocking(move || answer(asked)).await;
    answer.unwrap_or_else(|_panic| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// Makes a handler of a function of what was asked.
macro_rules! handlers {
    ($($name:ident => $answer:expr;)*) => {
        $(async fn $name(site: Shared, frame: Extension<Frame>, query: RawQuery) -> Response {
            answered(site, frame, query, $answer).await
        })*
    };
}

handlers! {
    list => |asked| {
        let library = &asked.site.library;
        library.refresh();
        let choices = [
            ("kind", library.choices(|entry| &entry.kind)),
            ("verdict", library.choices(|entry| &entry.verdict)),
        ];
        let listing = library.list(&asked.query);
        page(StatusCode::OK, asked.frame.list(&listing, &asked.query, &choices))
    };
    list_json => |asked| {
        asked.site.library.refresh();
        let listing = asked.site.library.list(&asked.query);
        let entries: Vec<_> = listing.rows.iter().map(|row| &row.entry).collect();
        document(&json!({
            "stored": listing.stored,
            "found": listing.found,
            "page": listing.page,
            "pages": listing.pages,
            "is_partial": listing.is_partial,
            "entries": entries,
        }))
    };
    view => |asked| {
        let Some((found, entry)) = asked.found() else { return missing(&asked.frame) };
        if entry.is_running() {
            return page(StatusCode::OK, asked.frame.live(&entry, &found));
        }
        let names: Vec<&str> = present_files(&found).into_iter().chain([CSV]).collect();
        let served = asked.frame.report(&found, &names);
        let report = asked.site.library.reader.page(&found);
        asked.shown(report.map(|report| html::render_served(&report, &served)))
    };
    overlay_page => |asked| {
        let (picked, _, problems) = asked.picked();
        page(StatusCode::OK, asked.frame.overlay(&picked, &asked.query, &problems))
    };
    overlay_json => |asked| {
        let (picked, _, problems) = asked.picked();
        document(&json!({ "views": overlay::views(&picked), "problems": problems }))
    };
    together => |asked| {
        let (_, stored, problems) = asked.picked();
        if stored.is_empty() {
            return asked.shown(Err(problems.join("\n")));
        }
        let report = asked.site.library.reader.together(&stored);
        let served = asked.frame.together(&asked.query);
        asked.shown(report.map(|report| html::render_served(&report, &served)))
    };
    requests_page => |asked| with_requests(&asked, |found, run| {
        page(StatusCode::OK, asked.frame.requests(found, run, &asked.query))
    });
    requests_json => |asked| with_requests(&asked, |_, run| {
        let (rows, found) = run.page(&asked.query);
        document(&json!({ "found": found, "page": asked.query.page(), "requests": rows }))
    });
    request_page => |asked| with_requests(&asked, |found, run| {
        let detail = asked.query.get("request").parse().ok().and_then(|number| run.request(number));
        match detail {
            Some(detail) => page(StatusCode::OK, asked.frame.request(found, &detail, run)),
            None => missing(&asked.frame),
        }
    });
    request_json => |asked| with_requests(&asked, |_, run| {
        let detail = asked.query.get("request").parse().ok().and_then(|number| run.request(number));
        detail.map_or_else(|| missing(&asked.frame), |detail| document(&requests::json(&detail)))
    });
    files => |asked| {
        let Some((found, _)) = asked.found() else { return missing(&asked.frame) };
        let wanted = asked.query.get("name");
        if wanted == CSV {
            return match asked.site.library.reader.csv(&found) {
                Ok(text) => download(Body::from(text), found.id(), CSV, None),
                Err(problem) => asked.shown(Err(problem)),
            };
        }
        // The name is one of ours; what was asked for only chooses it.
        let name = present_files(&found).into_iter().find(|name| *name == wanted);
        let opened = name.and_then(|name| Some((name, File::open(found.path().join(name)).ok()?)));
        match opened {
            Some((name, file)) => {
                let length = file.metadata().ok().map(|found| found.len());
                download(file_body(file, length.unwrap_or_default()), found.id(), name, length)
            }
            None => missing(&asked.frame),
        }
    };
}

fn with_requests(
    asked: &PageRequest,
    answer: impl FnOnce(&Stored, &requests::OpenRun) -> Response,
) -> Response {
    let Some((found, _)) = asked.found() else { return missing(&asked.frame) };
    let Stored::Run(directory) = &found else { return missing(&asked.frame) };
    match asked.site.requests.open(directory) {
        Ok(run) => answer(&found, &run),
        Err(problem) => asked.shown(Err(problem)),
    }
}

/// Regular files alone: a symbolic link could lead anywhere.
fn present_files(found: &Stored) -> Vec<&'static str> {
    let path = |name: &str| -> PathBuf { found.path().join(name) };
    let is_file = |name: &&str| path(name).symlink_metadata().is_ok_and(|found| found.is_file());
    FILES.into_iter().filter(is_file).collect()
}

fn download(body: Body, id: &str, name: &str, length: Option<u64>) -> Response {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let id: String = id.chars().map(|it| if is_plain(it) { it } else { '-' }).collect();
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if let Ok(words) = HeaderValue::from_str(&format!("attachment; filename=\"{id}-{name}\"")) {
        headers.insert(header::CONTENT_DISPOSITION, words);
    }
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// The file in pieces, up to the length that it has now: a journal may grow. A slow reader holds no
/// thread.
fn file_body(file: File, length: u64) -> Body {
    let (sender, received) = mpsc::channel(1);
    let mut rest = file.take(length);
    tokio::spawn(async move {
        loop {
            let step = tokio::task::spawn_blocking(move || {
                let mut piece = vec![0; 256 << 10];
                let read = rest.read(&mut piece).unwrap_or(0);
                piece.truncate(read);
                (rest, piece)
            });
            let Ok((file, piece)) = step.await else { return };
            rest = file;
            if piece.is_empty() || sender.send(Bytes::from(piece)).await.is_err() {
                return;
            }
        }
    });
    live::body(received)
}

async fn live_events(
    State(site): Shared,
    Extension(frame): Extension<Frame>,
    RawQuery(query): RawQuery,
) -> Response {
    let id = Query::parse(&query.unwrap_or_default()).get("id").to_owned();
    let looked_up = Arc::clone(&site);
    let found = tokio::task::spawn_blocking(move || {
        looked_up.library.refresh();
        looked_up.library.find(&id)
    });
    match found.await {
        Ok(Some((found, _))) => events(&site, |live| live.follow(found)),
        Ok(None) | Err(_) => missing(&frame),
    }
}

fn events(site: &Site, newest: impl FnOnce(&Live) -> live::Newest) -> Response {
    let Some(permit) = site.live.admit() else {
        let busy = "too many pages follow runs; close some of them\n";
        return (StatusCode::SERVICE_UNAVAILABLE, busy).into_response();
    };
    let body = live::stream(newest(&site.live), permit);
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

async fn asset(Path(name): Path<String>, Extension(frame): Extension<Frame>) -> Response {
    let typed =
        |kind: &'static str, text: String| ([(header::CONTENT_TYPE, kind)], text).into_response();
    match name.as_str() {
        "page.css" => typed("text/css; charset=utf-8", html::style()),
        "page.js" => typed("text/javascript; charset=utf-8", html::SCRIPT.to_owned()),
        _ => match ASSETS.iter().find(|(known, ..)| *known == name) {
            Some((_, kind, text)) => typed(kind, (*text).to_owned()),
            None => missing(&frame),
        },
    }
}

async fn login_page(Extension(frame): Extension<Frame>) -> Response {
    page(StatusCode::OK, frame.login(false))
}

async fn login(State(site): Shared, Extension(frame): Extension<Frame>, body: String) -> Response {
    let typed = Query::parse(&body);
    match &site.guard.token {
        Some(token) if token.is_secret(typed.get("token")) => {
            ([(header::SET_COOKIE, token.set_cookie())], Redirect::to("/")).into_response()
        }
        Some(_) => page(StatusCode::UNAUTHORIZED, frame.login(true)),
        None => Redirect::to("/").into_response(),
    }
}

async fn start_page(State(site): Shared, Extension(frame): Extension<Frame>) -> Response {
    let is_running = site.jobs.as_ref().is_some_and(Jobs::is_running);
    page(StatusCode::OK, frame.start(is_running, ""))
}

async fn start(State(site): Shared, Extension(frame): Extension<Frame>, body: String) -> Response {
    let Some(jobs) = &site.jobs else { return missing(&frame) };
    let started = arguments(&Query::parse(&body))
        .and_then(|arguments| jobs.start(arguments, site.library.folder()));
    match started {
        Ok(()) => Redirect::to("/job").into_response(),
        Err(problem) => {
            page(StatusCode::UNPROCESSABLE_ENTITY, frame.start(jobs.is_running(), &problem))
        }
    }
}

/// The arguments that a form asks for: a command that is listed, and what was typed as separate words.
fn arguments(form: &Query) -> Result<Vec<String>, String> {
    let command = form.get("command");
    if !COMMANDS.iter().any(|(known, _)| *known == command) {
        return Err(format!("there is no command `{command}` here"));
    }
    let suite = form.get("suite").trim();
    let mut arguments = vec![command.to_owned()];
    if command == "suite" {
        arguments.push(if suite.is_empty() { "quick" } else { suite }.to_owned());
    } else if !suite.is_empty() {
        return Err("only a suite has the name of a suite".to_owned());
    }
    let target = form.get("target").trim();
    if !target.is_empty() {
        arguments.push(target.to_owned());
    }
    let more = shlex::split(form.get("more"));
    arguments.extend(more.ok_or("a quote is not closed in the arguments")?);
    Ok(arguments)
}

async fn job_page(State(site): Shared, Extension(frame): Extension<Frame>) -> Response {
    let arguments = site.jobs.as_ref().map(Jobs::arguments).unwrap_or_default();
    page(StatusCode::OK, frame.job(&arguments))
}

async fn job_events(State(site): Shared, Extension(frame): Extension<Frame>) -> Response {
    match &site.jobs {
        Some(jobs) => events(&site, |_| jobs.newest()),
        None => missing(&frame),
    }
}

async fn job_stop(State(site): Shared) -> Redirect {
    if let Some(jobs) = &site.jobs {
        jobs.stop();
    }
    Redirect::to("/job")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_becomes_a_list_of_arguments_and_never_a_command_line() {
        let form = Query::parse("command=run&target=http%3A%2F%2Fa%3B+rm&more=--model+%27a+b%27");
        assert_eq!(arguments(&form).unwrap(), ["run", "http://a; rm", "--model", "a b"]);
        let suite = Query::parse("command=suite&suite=&target=");
        assert_eq!(arguments(&suite).unwrap(), ["suite", "quick"]);
        for refused in ["command=sh", "command=run&more=%27", "command=run&suite=quick", ""] {
            assert!(arguments(&Query::parse(refused)).is_err(), "{refused}");
        }
    }
}
