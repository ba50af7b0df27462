//! What one streamed event costs: the decoder alone, and decoder, dialect and record together.
//!
//! `cargo bench -p inferometer-load` measures; `cargo test` runs each case once, so that the
//! benchmarks never rot.

use divan::counter::{BytesCount, ItemsCount};
use inferometer_load::answer::{AnswerReader, Framing};
use inferometer_load::sse::{SseBounds, SseDecoder};
use inferometer_model::endpoint::Api;

/// The allocator of the binary that ships.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

const EVENTS: usize = 256;

/// A stream as vLLM sends it, `events_per_read` events in each read.
fn reads(events_per_read: usize, with_usage: bool) -> Vec<Vec<u8>> {
    let events: Vec<String> = (0..EVENTS)
        .map(|token| {
            let usage = if with_usage {
                format!(
                    r#","usage":{{"prompt_tokens":512,"total_tokens":{},"completion_tokens":{}}}"#,
                    513 + token,
                    1 + token
                )
            } else {
                String::new()
            };
            let finish = if token + 1 == EVENTS { "\"length\"" } else { "null" };
            format!(
                "data: {{\"id\":\"chatcmpl-81ff9a45a19f148d\",\"object\":\"chat.completion.chunk\",\
                 \"created\":1794709886,\"model\":\"tiny\",\"choices\":[{{\"index\":0,\"delta\":\
                 {{\"content\":\" word\"}},\"logprobs\":null,\"finish_reason\":{finish},\
                 \"token_ids\":null}}]{usage}}}\n\n"
            )
        })
        .collect();
    events.chunks(events_per_read).map(|events| events.concat().into_bytes()).collect()
}

fn bytes(reads: &[Vec<u8>]) -> usize {
    reads.iter().map(Vec::len).sum()
}

#[divan::bench(args = [1, 8])]
fn decoder(bencher: divan::Bencher<'_, '_>, events_per_read: usize) {
    let reads = reads(events_per_read, false);
    bencher.counter(ItemsCount::new(EVENTS)).counter(BytesCount::new(bytes(&reads))).bench_local(
        || {
            let mut decoder = SseDecoder::new(SseBounds::default());
            let mut events = 0;
            for read in &reads {
                let pushed = decoder.push(divan::black_box(read), |_| events += 1);
                assert!(pushed.is_ok());
            }
            assert_eq!(events, EVENTS);
        },
    );
}

#[divan::bench(args = [1, 8])]
fn decoder_and_dialect(bencher: divan::Bencher<'_, '_>, events_per_read: usize) {
    read_answer(bencher, &reads(events_per_read, false));
}

#[divan::bench(args = [1, 8])]
fn decoder_and_dialect_with_usage(bencher: divan::Bencher<'_, '_>, events_per_read: usize) {
    read_answer(bencher, &reads(events_per_read, true));
}

fn read_answer(bencher: divan::Bencher<'_, '_>, reads: &[Vec<u8>]) {
    bencher.counter(ItemsCount::new(EVENTS)).counter(BytesCount::new(bytes(reads))).bench_local(
        || {
            let mut reader = AnswerReader::new(Api::Chat, Framing::EventStream);
            for (read, bytes) in (0..).zip(reads) {
                let pushed = reader.push(divan::black_box(bytes), read);
                assert!(pushed.is_ok());
            }
            assert!(reader.end(0).is_ok());
            assert_eq!(reader.into_answer().events.len(), EVENTS);
        },
    );
}
