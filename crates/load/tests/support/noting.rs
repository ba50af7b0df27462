//! A server that answers everything, and notes what it was asked over which connection.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::read_request;

#[derive(Clone, Debug)]
pub(crate) struct Noted {
    /// From zero, in the order in which they were accepted.
    pub(crate) connection: usize,
    /// The number in the client's `x-request-id`.
    pub(crate) request: u64,
    pub(crate) prompt: String,
    /// Roles and words of all its messages; the JSON of those that come in parts.
    pub(crate) messages: Vec<(String, String)>,
}

/// Serves until the test's process ends.
pub(crate) struct NotingServer {
    pub(crate) address: SocketAddr,
    notes: Arc<Mutex<Vec<Noted>>>,
}

/// How the server behaves.
#[derive(Clone, Copy)]
pub(crate) struct Manners {
    /// Answers on a connection, the last of which announces its end.
    pub(crate) answers: usize,
    /// How long an answer takes.
    pub(crate) service: Duration,
}

impl NotingServer {
    pub(crate) fn serve(manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let notes: Arc<Mutex<Vec<Noted>>> = Arc::default();
        let noting = Arc::clone(&notes);
        std::thread::spawn(move || {
            for (connection, tcp) in listener.incoming().map_while(Result::ok).enumerate() {
                let notes = Arc::clone(&noting);
                std::thread::spawn(move || answer_all(tcp, connection, manners, &notes));
            }
        });
        Self { address, notes }
    }

    /// In the order in which they came.
    pub(crate) fn notes(&self) -> Vec<Noted> {
        self.notes.lock().unwrap().clone()
    }
}

fn answer_all(mut tcp: TcpStream, connection: usize, manners: Manners, notes: &Mutex<Vec<Noted>>) {
    tcp.set_nodelay(true).unwrap();
    for answer in 1..=manners.answers {
        let Some(heard) = read_request(&mut tcp) else { return };
        let body: serde_json::Value = serde_json::from_slice(&heard.body).unwrap();
        let id = heard.header("x-request-id").unwrap();
        let request = id.rsplit('-').next().unwrap().parse().unwrap();
        let messages = messages(&body);
        let prompt = messages[0].1.clone();
        notes.lock().unwrap().push(Noted { connection, request, prompt, messages });
        std::thread::sleep(manners.service);
        let closes = if answer == manners.answers { "connection: close\r\n" } else { "" };
        let reply = if body["stream"] == true {
            stream(closes, request, &body["model"])
        } else {
            whole(closes)
        };
        if tcp.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

fn messages(body: &serde_json::Value) -> Vec<(String, String)> {
    let messages = body["messages"].as_array().unwrap().iter();
    let parted = messages.map(|message| {
        let content = &message["content"];
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        (message["role"].as_str().unwrap().to_owned(), text)
    });
    parted.collect()
}

/// The answer names its request, and the model that was asked for.
fn stream(closes: &str, request: u64, model: &serde_json::Value) -> String {
    let event = format!(
        "data: {{\"model\":{model},\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"answer {request}\"}},\
         \"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{closes}\
         transfer-encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n0\r\n\r\n",
        event.len()
    )
}

fn whole(closes: &str) -> String {
    let body = "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"hi\"},\
                \"finish_reason\":\"stop\"}]}";
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{closes}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}
