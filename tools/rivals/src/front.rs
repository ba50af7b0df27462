//! `nginx`, for what the embedded engine cannot show: more answers than one core gives, TLS and HTTP/2.
//!
//! It gives the same answer to every request, out of its configuration, or stands before the engine.

use std::fmt::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::bench::Bench;
use super::tool::Load;

/// How a request reaches its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
    Http2,
}

impl Transport {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Tls, Self::Http2];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Plain => "HTTP/1.1",
            Self::Tls => "HTTP/1.1, TLS",
            Self::Http2 => "HTTP/2, TLS",
        }
    }

    /// What our own client must be told.
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &[],
            Self::Tls => &["--insecure"],
            Self::Http2 => &["--insecure", "--http2"],
        }
    }
}

/// A running server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Front {
    child: Child,
    /// Plain answers, secured answers, plain streams, and the engine behind TLS.
    ports: [u16; 4],
}

/// How often a new server is looked for.
const TRIES: u32 = 250;
/// Tokens of every answer.
pub(crate) const ONE_SHOT_TOKENS: u32 = 16;
pub(crate) const STREAM_TOKENS: u32 = 64;

impl Front {
    /// Starts it on these cores, with a process for each. `engine` is the address of what stands behind it.
    pub(crate) fn start(
        bench: &Bench,
        cores: &str,
        workers: usize,
        engine: &str,
    ) -> Result<Self, String> {
        let folder = bench.folder.join("nginx");
        let failed = |what: &str, why: &dyn std::fmt::Display| format!("{what}: {why}");
        std::fs::create_dir_all(&folder).map_err(|why| failed("nginx", &why))?;
        certificate(&folder)?;
        let ports = free_ports().map_err(|why| failed("no free port", &why))?;
        let path = folder.join("nginx.conf");
        std::fs::write(&path, configuration(&folder, workers, engine, ports))
            .map_err(|why| failed("nginx.conf", &why))?;
        let log =
            std::fs::File::create(folder.join("log.txt")).map_err(|why| failed("log", &why))?;
        let child = Command::new("taskset")
            .args(["--cpu-list", cores, "nginx", "-c"])
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|why| failed("`nginx` did not start", &why))?;
        let front = Self { child, ports };
        for _ in 0..TRIES {
            if TcpStream::connect(("127.0.0.1", ports[0])).is_ok() {
                return Ok(front);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("nginx does not answer; the system has a package `nginx`".to_owned())
    }

    /// Where the same whole answer is given to everybody.
    pub(crate) fn one_shot(&self, transport: Transport) -> String {
        match transport {
            Transport::Plain => format!("http://127.0.0.1:{}", self.ports[0]),
            Transport::Tls | Transport::Http2 => format!("https://127.0.0.1:{}", self.ports[1]),
        }
    }

    /// Where the same streamed answer is given to everybody, in one piece.
    pub(crate) fn streams(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[2])
    }

    /// Where the engine behind it answers, over TLS.
    pub(crate) fn engine(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports[3])
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // Killed outright, it would leave its workers behind.
        let _ = Command::new("sh").args(["-c", &format!("kill {}", self.child.id())]).status();
        let _ = self.child.wait();
    }
}

/// The same load over another transport.
pub(crate) fn over(load: Load, transport: Transport, url: String) -> Load {
    Load { url, flags: transport.flags().iter().map(ToString::to_string).collect(), ..load }
}

fn free_ports() -> std::io::Result<[u16; 4]> {
    let bind = || TcpListener::bind("127.0.0.1:0");
    let listeners = [bind()?, bind()?, bind()?, bind()?];
    let mut ports = [0; 4];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// A certificate of our own, unless one lies there.
fn certificate(folder: &Path) -> Result<(), String> {
    if folder.join("certificate.pem").is_file() {
        return Ok(());
    }
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 \
                 -subj /CN=localhost -keyout key.pem -out certificate.pem";
    let made = Command::new("openssl")
        .args(words.split_whitespace())
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    let is_made = made.is_ok_and(|status| status.success());
    is_made.then_some(()).ok_or_else(|| "`openssl` made no certificate".to_owned())
}

fn configuration(folder: &Path, workers: usize, engine: &str, ports: [u16; 4]) -> String {
    let folder = folder.display();
    let mut text = format!(
        "daemon off;\nworker_processes {workers};\npid {folder}/pid;\nerror_log stderr crit;\n\
         events {{ worker_connections 16384; }}\nhttp {{\naccess_log off;\n\
         keepalive_requests 1000000000;\nkeepalive_timeout 600s;\nclient_body_buffer_size 64k;\n\
         http2_max_concurrent_streams 256;\n\
         ssl_certificate {folder}/certificate.pem;\nssl_certificate_key {folder}/key.pem;\n"
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(text, "{kind}_temp_path {folder}/{kind};");
    }
    let usage = format!(
        r#""usage":{{"prompt_tokens":16,"completion_tokens":{ONE_SHOT_TOKENS},"total_tokens":32}}"#
    );
    let whole = format!(
        r#"{{"id":"c","object":"text_completion","created":1,"model":"echo","choices":[{{"index":0,"text":"{}","finish_reason":"length","logprobs":null}}],{usage}}}"#,
        " word".repeat(ONE_SHOT_TOKENS as usize)
    );
    let event = |rest: &str| format!("data: {{\"choices\":[{{\"index\":0,{rest}}}]}}\n\n");
    let stream = event("\"text\":\" w\"").repeat(STREAM_TOKENS as usize - 1)
        + &event("\"text\":\" w\",\"finish_reason\":\"length\"")
        + "data: [DONE]\n\n";
    let [plain, secured, streams, front] = ports;
    let models = r#"location = /v1/models { return 200 '{"object":"list","data":[{"id":"echo","object":"model"}]}'; }"#;
    let _ = write!(
        text,
        "server {{ listen 127.0.0.1:{plain} reuseport; listen 127.0.0.1:{secured} ssl http2 reuseport;\n\
         default_type application/json; {models}\nlocation / {{ return 200 '{whole}'; }} }}\n\
         server {{ listen 127.0.0.1:{streams} reuseport; default_type application/json; {models}\n\
         location / {{ default_type text/event-stream; return 200 '{stream}'; }} }}\n"
    );
    if !engine.is_empty() {
        let address = engine.trim_start_matches("http://");
        let _ = write!(
            text,
            "upstream engine {{ server {address}; keepalive 4096; }}\n\
             server {{ listen 127.0.0.1:{front} ssl http2 reuseport; location / {{\n\
             proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection '';\n\
             proxy_buffering off; }} }}\n"
        );
    }
    text + "}\n"
}
