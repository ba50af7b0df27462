//! A server that writes HTTP/2 frames by hand: it can say what no library would, and shares no
//! mistake with the one that the client uses.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// What the client did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// A stream's head came; its body may follow.
    Opened(u32),
    /// A request came whole.
    Asked(u32),
    /// The client gave a stream up.
    GaveUp(u32),
}

/// What the server does when it hears something.
pub(crate) type Script = dyn Fn(&mut Frames, Heard) + Send + Sync;

/// One connection, as its script sees it.
pub(crate) struct Frames {
    socket: Box<dyn ReadWrite>,
    /// From zero, in the order in which they were accepted.
    pub(crate) connection: usize,
    /// Streams that were asked for here, in order.
    pub(crate) asked: Vec<u32>,
    /// Set by a script that closes the connection.
    pub(crate) leaves: bool,
}

pub(crate) trait ReadWrite: Read + Write + Send {}
impl<T: Read + Write + Send> ReadWrite for T {}

/// Parameters of a SETTINGS frame.
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
/// Error codes.
pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const REFUSED_STREAM: u32 = 7;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame_head(bytes: usize, kind: u8, flags: u8, stream: u32) -> Vec<u8> {
    let length = u32::try_from(bytes).unwrap().to_be_bytes();
    let mut head = vec![length[1], length[2], length[3], kind, flags];
    head.extend(stream.to_be_bytes());
    head
}

/// The beginning of a frame of data whose payload is so long.
pub(crate) fn data_head(bytes: usize, stream: u32) -> Vec<u8> {
    frame_head(bytes, DATA, 0, stream)
}

impl Frames {
    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = frame_head(payload.len(), kind, flags, stream);
        frame.extend(payload);
        self.write(&frame);
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        // A client that has left is no fault of the script's.
        let _ = self.socket.write_all(bytes).and_then(|()| self.socket.flush());
    }

    /// Status 200 and an event stream.
    pub(crate) fn head(&mut self, stream: u32) {
        let content_type = b"text/event-stream";
        // From the static table: `:status: 200`, then the name `content-type` with a new value.
        let mut block = vec![0x88, 0x0f, 0x10, u8::try_from(content_type.len()).unwrap()];
        block.extend(content_type);
        self.frame(HEADERS, END_HEADERS, stream, &block);
    }

    pub(crate) fn data(&mut self, stream: u32, text: &str) {
        self.frame(DATA, 0, stream, text.as_bytes());
    }

    pub(crate) fn end(&mut self, stream: u32) {
        self.frame(DATA, END_STREAM, stream, &[]);
    }

    /// A whole answer: so many tokens, one frame each.
    pub(crate) fn answer(&mut self, stream: u32, tokens: usize) {
        self.head(stream);
        for _ in 0..tokens {
            self.data(stream, TOKEN);
        }
        self.data(stream, FINISH);
        self.data(stream, "data: [DONE]\n\n");
        self.end(stream);
    }

    pub(crate) fn reset(&mut self, stream: u32, code: u32) {
        self.frame(RST_STREAM, 0, stream, &code.to_be_bytes());
    }

    /// Streams above `last` were not and will not be looked at.
    pub(crate) fn go_away(&mut self, last: u32, code: u32) {
        self.frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat());
    }

    pub(crate) fn open_window(&mut self, stream: u32, bytes: u32) {
        self.frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    }

    pub(crate) fn settings(&mut self, parameters: &[(u16, u32)]) {
        let parameter = |(name, value): &(u16, u32)| {
            [name.to_be_bytes().to_vec(), value.to_be_bytes().to_vec()].concat()
        };
        let payload: Vec<u8> = parameters.iter().flat_map(parameter).collect();
        self.frame(SETTINGS, 0, 0, &payload);
    }

    fn read_frame(&mut self) -> io::Result<(u8, u8, u32, Vec<u8>)> {
        let mut head = [0; 9];
        self.socket.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.socket.read_exact(&mut payload)?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Ok((head[3], head[4], stream, payload))
    }

    /// Takes the next frame, and says what the script should know.
    fn hear(&mut self) -> io::Result<Vec<Heard>> {
        let (kind, flags, stream, payload) = self.read_frame()?;
        let ended = flags & END_STREAM != 0;
        Ok(match kind {
            SETTINGS if flags & ACK == 0 => {
                self.frame(SETTINGS, ACK, 0, &[]);
                Vec::new()
            }
            PING if flags & ACK == 0 => {
                self.frame(PING, ACK, 0, &payload);
                Vec::new()
            }
            HEADERS if ended => vec![Heard::Opened(stream), Heard::Asked(stream)],
            HEADERS => vec![Heard::Opened(stream)],
            DATA => {
                if !payload.is_empty() {
                    self.open_window(0, u32::try_from(payload.len()).unwrap());
                }
                if ended { vec![Heard::Asked(stream)] } else { Vec::new() }
            }
            RST_STREAM => vec![Heard::GaveUp(stream)],
            _ => Vec::new(),
        })
    }

    fn play(&mut self, settings: &[(u16, u32)], script: &Script) -> io::Result<()> {
        self.settings(settings);
        let mut preface = [0; 24];
        self.socket.read_exact(&mut preface)?;
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        while !self.leaves {
            for heard in self.hear()? {
                if let Heard::Asked(stream) = heard {
                    self.asked.push(stream);
                }
                script(self, heard);
            }
        }
        Ok(())
    }
}

pub(crate) const TOKEN: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
pub(crate) const FINISH: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

/// Serves until the test's process ends.
pub(crate) struct Http2Server {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Http2Server {
    pub(crate) fn serve(
        settings: &[(u16, u32)],
        script: impl Fn(&mut Frames, Heard) + Send + Sync + 'static,
    ) -> Self {
        Self::serve_on(settings, script, |tcp| Box::new(tcp))
    }

    /// Over TLS, offering these protocols, with a certificate that nobody vouches for.
    pub(crate) fn serve_secured(
        protocols: &[&str],
        script: impl Fn(&mut Frames, Heard) + Send + Sync + 'static,
    ) -> Self {
        let config = Arc::new(tls_config(protocols));
        Self::serve_on(&[], script, move |tcp| {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            Box::new(StreamOwned::new(tls, tcp))
        })
    }

    fn serve_on(
        settings: &[(u16, u32)],
        script: impl Fn(&mut Frames, Heard) + Send + Sync + 'static,
        secure: impl Fn(TcpStream) -> Box<dyn ReadWrite> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let (counted, settings) = (Arc::clone(&accepted), settings.to_vec());
        let script: Arc<Script> = Arc::new(script);
        std::thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                let connection = counted.fetch_add(1, Ordering::SeqCst);
                tcp.set_nodelay(true).unwrap();
                let socket = secure(tcp);
                let (settings, script) = (settings.clone(), Arc::clone(&script));
                std::thread::spawn(move || {
                    let asked = Vec::new();
                    let mut frames = Frames { socket, connection, asked, leaves: false };
                    let _ = frames.play(&settings, script.as_ref());
                });
            }
        });
        Self { address, accepted }
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

fn tls_config(protocols: &[&str]) -> ServerConfig {
    let signed = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}
