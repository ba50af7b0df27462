//! The corpus mode: answers that are written down byte for byte, with the moment of each write and what a
//! client must find in them.
//!
//! The cases are the files of `conformance/cases`, which are part of the program. A request to
//! `/case/NAME/v1/chat/completions` gets the answer of that case; one without such a beginning gets the
//! next of the chosen cases.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::clock::{Clock, Moment};
use crate::framing::{LAST_CHUNK, Write};
use crate::http::{ErrorBody, Request, Status};
use crate::options::EngineOptions;
use crate::server::{AfterAnswer, Context, Housekeeping, Next, Reply, Service, Written};
use crate::truth::{Api, Ended, Entry, RequestTruth};

/// One answer and what a client must find in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    #[serde(skip)]
    pub name: &'static str,
    pub about: String,
    /// Status line and headers; those of a chunked event stream unless set.
    head: Option<String>,
    /// Whether the pieces are sent as they are, and not each as a chunk.
    #[serde(default)]
    raw: bool,
    end: End,
    #[serde(default)]
    send: Vec<Piece>,
    pub expect: Expectation,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece {
    /// Behind the piece before it, or behind the request.
    after_ms: u64,
    data: Option<String>,
    /// Instead of `data`, for bytes that are no text.
    hex: Option<String>,
}

/// What happens behind the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum End {
    /// The body ends, and the connection takes further requests.
    Keep,
    Close,
    Reset,
    /// Nothing, until the client leaves.
    Stall,
}

/// What a client must report of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// `ok`, or the key of another outcome.
    pub outcome: String,
    /// Events with data, `[DONE]` among them.
    pub events: Option<u32>,
    pub output_tokens: Option<u32>,
    pub text: Option<String>,
    pub finish_reason: Option<String>,
}

impl Expectation {
    pub fn is_ok(&self) -> bool {
        self.outcome == "ok"
    }
}

macro_rules! cases {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../conformance/cases/", $name, ".toml")))),*]
    };
}

/// In the order in which they are played unless some are chosen.
const FILES: [(&str, &str); CASES] = cases![
    "bad-chunk-size",
    "byte-order-mark",
    "closed-before-answer",
    "comment-first",
    "comments",
    "cr",
    "crlf",
    "cut-chunk",
    "data-after-done",
    "empty-deltas",
    "error-as-text",
    "error-first",
    "error-later",
    "html",
    "length",
    "multi-line",
    "no-done",
    "no-finish",
    "no-role",
    "no-space",
    "no-token",
    "not-json",
    "one-token",
    "one-write",
    "other-fields",
    "plain",
    "reasoning",
    "reset",
    "role-first",
    "several-tokens-per-event",
    "split-in-character",
    "split-in-event",
    "stall",
    "status-400",
    "status-429",
    "status-500",
    "status-503",
    "usage-null",
    "usage-on-every-event",
    "usage-on-last-choice",
];
const CASES: usize = 40;

/// All cases.
///
/// # Panics
///
/// Never: the files are read by tests.
pub fn corpus() -> &'static [Case] {
    static READ: OnceLock<Vec<Case>> = OnceLock::new();
    READ.get_or_init(|| {
        let read = |(name, text): (&'static str, &str)| Case {
            name,
            ..toml::from_str(text).expect("tests read the cases")
        };
        FILES.into_iter().map(read).collect()
    })
}

impl Case {
    fn head(&self) -> &str {
        self.head.as_deref().unwrap_or(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        )
    }
}

impl Piece {
    fn bytes(&self) -> Vec<u8> {
        let data = self.data.as_deref().unwrap_or_default().as_bytes().to_vec();
        let digits = self.hex.as_deref().unwrap_or_default().as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        data.into_iter().chain(digits.chunks(2).filter_map(byte)).collect()
    }
}

/// Plays the cases and keeps the truth.
#[derive(Debug)]
pub(crate) struct Corpus {
    house: Housekeeping,
    chosen: Vec<&'static Case>,
    next_ordinal: u64,
}

/// An answer that is being written.
#[derive(Debug)]
pub(crate) struct CaseAnswer {
    case: &'static Case,
    entry: Entry,
    write: Write,
    /// Pieces that were begun; the last write is the end of the body.
    pieces: usize,
    due: Moment,
}

impl Corpus {
    pub(crate) fn new(options: EngineOptions) -> Self {
        let find = |name: &String| corpus().iter().find(|case| case.name == name);
        let chosen = match options.cases.as_slice() {
            [] => corpus().iter().collect(),
            names => names.iter().filter_map(find).collect(),
        };
        Self { chosen, house: Housekeeping::new(options), next_ordinal: 0 }
    }

    fn begin(
        &mut self,
        case: &'static Case,
        api: Api,
        request: &Request<'_>,
        context: Context<'_>,
    ) -> CaseAnswer {
        let tokens = case.expect.output_tokens.unwrap_or(0);
        let entry = self.house.ledger.open(RequestTruth {
            streamed: true,
            tokens,
            case: Some(case.name.to_owned()),
            ..RequestTruth::new(self.next_ordinal, api, request, context.received)
        });
        self.next_ordinal += 1;
        let (write, due) = (Write::default(), context.received.at());
        CaseAnswer { case, entry, write, pieces: 0, due }
    }
}

/// The case that a path names, and the path behind its name.
fn named(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/case/")?;
    rest.split_at_checked(rest.find('/')?)
}

impl CaseAnswer {
    /// Prepares the next write; `false` where there is none.
    fn prepare(&mut self) -> bool {
        self.write.clear();
        let case = self.case;
        let piece = case.send.get(self.pieces);
        if self.pieces == 0 && (piece.is_some() || case.end == End::Keep) {
            self.write.raw(case.head().as_bytes());
        }
        match piece {
            Some(piece) => {
                self.due = self.due.plus_ns(piece.after_ms.saturating_mul(1_000_000));
                let bytes = piece.bytes();
                if case.raw {
                    self.write.raw(&bytes);
                } else {
                    self.write.payload(&bytes);
                    self.write.close_chunk();
                }
            }
            None if self.pieces == case.send.len() && case.end == End::Keep && !case.raw => {
                self.write.raw(LAST_CHUNK);
            }
            None => return false,
        }
        self.write.due = Some(self.due);
        self.pieces += 1;
        true
    }
}

impl Service for Corpus {
    type Answer = CaseAnswer;

    const KEEPS_TRUTH: bool = true;

    fn answer(&mut self, request: &Request<'_>, context: Context<'_>) -> Reply<CaseAnswer> {
        let (name, path) =
            named(request.path).map_or((None, request.path), |(name, path)| (Some(name), path));
        let request = Request { path, ..*request };
        let api = match self.house.route(&request, context.clock) {
            Ok(api) => api,
            Err(reply) => return Reply::Plain(reply),
        };
        let turn = usize::try_from(self.next_ordinal).unwrap_or(0);
        let case = match name {
            Some(name) => corpus().iter().find(|case| case.name == name),
            None => self.chosen.get(turn % self.chosen.len().max(1)).copied(),
        };
        let Some(case) = case else {
            let message = format!("there is no case `{}`", name.unwrap_or_default());
            return Reply::Plain(ErrorBody::new(Status::NOT_FOUND, message).reply());
        };
        Reply::Generated(self.begin(case, api, &request, context))
    }

    fn next<'a>(&mut self, answer: &'a mut CaseAnswer) -> Next<'a> {
        if answer.write.is_sent() && !answer.prepare() {
            return if answer.case.end == End::Stall { Next::Wait } else { Next::End };
        }
        Next::Write(answer.write.rest(false))
    }

    fn wrote(&mut self, answer: &mut CaseAnswer, written: &Written) {
        let passed = answer.write.pass(written.bytes);
        self.house.ledger.written(answer.entry, answer.write.due, written, passed);
    }

    fn completed(&mut self, answer: CaseAnswer) -> AfterAnswer {
        self.house.ledger.close(answer.entry, Ended::Complete);
        match answer.case.end {
            End::Keep | End::Stall => AfterAnswer::Keep,
            End::Close => AfterAnswer::Close,
            End::Reset => AfterAnswer::Reset,
        }
    }

    fn abandoned(&mut self, answer: CaseAnswer, _clock: &Clock) {
        self.house.ledger.close(answer.entry, Ended::Aborted);
    }

    fn refused_connection(&mut self) {
        self.house.ledger.refused_connection();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_a_case_and_says_what_it_expects() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/cases");
        let files = std::fs::read_dir(folder).unwrap();
        let files: BTreeSet<String> = files
            .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        let known: BTreeSet<String> = corpus().iter().map(|case| case.name.to_owned()).collect();
        assert_eq!(files, known);
        for case in corpus() {
            assert!(!case.about.is_empty(), "{}", case.name);
            let is_whole =
                case.expect.output_tokens.is_some() && case.expect.finish_reason.is_some();
            assert_eq!(case.expect.is_ok(), is_whole, "{}", case.name);
            assert!(case.send.iter().all(|piece| piece.data.is_some() != piece.hex.is_some()));
        }
    }

    #[test]
    fn the_events_of_a_case_are_those_that_its_bytes_hold() {
        for case in corpus().iter().filter(|case| case.expect.is_ok()) {
            let Some(events) = case.expect.events else { continue };
            let bytes: Vec<u8> = case.send.iter().flat_map(Piece::bytes).collect();
            let text = String::from_utf8(bytes).unwrap().replace("\r\n", "\n").replace('\r', "\n");
            let blocks = text.split("\n\n").filter(|block| {
                block.lines().any(|line| line.trim_start_matches('\u{feff}').starts_with("data:"))
            });
            assert_eq!(blocks.count(), events as usize, "{}", case.name);
        }
    }

    #[test]
    fn a_path_names_its_case() {
        assert_eq!(named("/case/crlf/v1/models"), Some(("crlf", "/v1/models")));
        assert_eq!(named("/case/crlf"), None);
        assert_eq!(named("/v1/models"), None);
    }
}
