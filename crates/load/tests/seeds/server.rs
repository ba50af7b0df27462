//! What the server and the network do to one request, and what must come of it.

use std::fmt::Write;
use std::time::Duration;

use inferometer_load::answer::{AnswerReader, Failure, Framing};
use inferometer_model::endpoint::Api;
use inferometer_model::outcome::{Cause, Outcome};

use super::Draw;

/// One request's fate, in steps that follow each other after their delays.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) api: Api,
    pub(super) framing: Framing,
    pub(super) connecting: Connecting,
    pub(super) steps: Vec<(Duration, Step)>,
    /// What it comes to when no limit and no stop ends it before.
    pub(super) outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connecting {
    Takes(Duration),
    Refused,
    /// This machine has no descriptor left.
    NoDescriptor,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Bytes(Vec<u8>),
    End,
    Reset,
    /// Nothing more, ever.
    Silence,
}

impl Script {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        let (api, framing) = match draw.below(4) {
            0 => (Api::Completions, Framing::EventStream),
            1 => (Api::OllamaChat, Framing::JsonLines),
            2 => (Api::Chat, Framing::Whole),
            _ => (Api::Chat, Framing::EventStream),
        };
        let mut body = body(draw, api, framing);
        let is_hurt = draw.chance(40);
        if is_hurt {
            hurt(draw, &mut body);
        }
        let whole = read(api, framing, &body);
        assert!(is_hurt || whole.is_ok(), "{}: {whole:?}", String::from_utf8_lossy(&body));
        let mut outcome = whole.map_or_else(|failure| failure.outcome, |()| Outcome::Ok);
        let mut steps = cut(draw, &body);
        match draw.below(10) {
            0 => {
                steps.truncate(draw.size(steps.len() + 1));
                outcome = broken(api, framing, &steps, Outcome::TransportError);
                steps.push((pause(draw), Step::Reset));
            }
            1 => {
                steps.truncate(draw.size(steps.len() + 1));
                // No outcome of its own: a limit must end it.
                outcome = broken(api, framing, &steps, Outcome::TimeoutTotal);
                steps.push((pause(draw), Step::Silence));
            }
            _ => steps.push((pause(draw), Step::End)),
        }
        let connecting = match draw.below(20) {
            0 => Connecting::Refused,
            1 => Connecting::NoDescriptor,
            2 => Connecting::Takes(Duration::from_millis(draw.below(3_000))),
            _ => Connecting::Takes(Duration::from_micros(draw.below(2_000))),
        };
        match connecting {
            Connecting::Refused => outcome = Outcome::TransportError,
            Connecting::NoDescriptor => outcome = Outcome::NotSent,
            Connecting::Takes(_) => {}
        }
        Self { api, framing, connecting, steps, outcome }
    }
}

/// The outcome of a body that never ended: its reader may have found a fault before.
fn broken(api: Api, framing: Framing, steps: &[(Duration, Step)], otherwise: Outcome) -> Outcome {
    let mut reader = AnswerReader::new(api, framing);
    let bytes: Vec<u8> = steps
        .iter()
        .flat_map(|(_, step)| match step {
            Step::Bytes(bytes) => bytes.clone(),
            Step::End | Step::Reset | Step::Silence => Vec::new(),
        })
        .collect();
    reader.push(&bytes, 0).map_or_else(|failure| failure.outcome, |()| otherwise)
}

/// A body in one piece: what its parts must come to, wherever it is cut.
fn read(api: Api, framing: Framing, body: &[u8]) -> Result<(), Failure> {
    let mut reader = AnswerReader::new(api, framing);
    reader.push(body, 0).and_then(|()| reader.end(0))
}

fn pause(draw: &mut Draw) -> Duration {
    match draw.below(10) {
        0 => Duration::ZERO,
        1 => Duration::from_millis(draw.below(2_500)),
        _ => Duration::from_micros(draw.below(20_000)),
    }
}

fn body(draw: &mut Draw, api: Api, framing: Framing) -> Vec<u8> {
    let tokens = draw.below(12);
    let mut text = String::new();
    match framing {
        Framing::Whole => {
            return br#"{"choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}"#
                .to_vec();
        }
        Framing::JsonLines => {
            for token in 0..tokens {
                let _ = writeln!(text, r#"{{"message":{{"content":" ä{token}"}},"done":false}}"#);
            }
            text += "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\
                     \"eval_count\":3}\n";
        }
        Framing::EventStream => {
            let end = ["\n", "\r\n", "\r"][draw.size(3)];
            let piece =
                if api == Api::Chat { r#""delta":{"content":"ä "}"# } else { r#""text":"ä ""# };
            for _ in 0..tokens {
                if draw.chance(10) {
                    let _ = write!(text, ": ping{end}{end}");
                }
                let _ = write!(text, "data: {{\"choices\":[{{\"index\":0,{piece}}}]}}{end}{end}");
            }
            let last = if api == Api::Chat { r#""delta":{}"# } else { r#""text":"""# };
            let _ = write!(
                text,
                "data: {{\"choices\":[{{\"index\":0,{last},\"finish_reason\":\"length\"}}]}}{end}{end}"
            );
            if draw.chance(80) {
                let _ = write!(text, "data: [DONE]{end}{end}");
            }
        }
    }
    text.into_bytes()
}

/// Changes, cuts or adds something.
fn hurt(draw: &mut Draw, body: &mut Vec<u8>) {
    for _ in 0..=draw.below(3) {
        let place = draw.size(body.len().max(1));
        match draw.below(5) {
            0 => body.truncate(place),
            1 if !body.is_empty() => body[place] ^= 1 << draw.below(8),
            2 => {
                let before = &body[..place];
                let end =
                    before.windows(2).rposition(|pair| pair == b"\n\n").map_or(0, |at| at + 2);
                body.splice(end..end, b"data: {\"error\":\"no memory\"}\n\n".to_vec());
            }
            3 => {
                let noise: Vec<u8> =
                    (0..draw.below(40)).map(|_| draw.number().to_le_bytes()[0]).collect();
                body.splice(place..place, noise);
            }
            _ => body.extend_from_slice(b"\n\n{\"choices\":[]}\n"),
        }
    }
}

/// In segments of any size, at any pace.
fn cut(draw: &mut Draw, body: &[u8]) -> Vec<(Duration, Step)> {
    let size = [1, 7, 80, 4_096][draw.size(4)];
    let pace_us = [1, 100, 5_000][draw.size(3)];
    let mut steps = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (segment, after) = rest.split_at((1 + draw.size(size)).min(rest.len()));
        let gap =
            if draw.chance(1) { pause(draw) } else { Duration::from_micros(draw.below(pace_us)) };
        steps.push((gap, Step::Bytes(segment.to_vec())));
        rest = after;
    }
    steps
}

/// The failure that a connection's own end is.
pub(super) fn reset() -> Failure {
    Failure::new(Outcome::TransportError, Cause::Reset)
}
