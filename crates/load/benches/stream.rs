//! What an answer costs: the decoder alone; decoder, dialect and record together for each form of
//! event; and an answer that comes whole.
//!
//! `cargo bench -p inferometer-load` measures; `cargo test` runs each case once, so that the
//! benchmarks never rot.

use divan::counter::{BytesCount, ItemsCount};
use inferometer_load::answer::{AnswerReader, Framing};
use inferometer_load::sse::{SseBounds, SseDecoder};
use inferometer_model::endpoint::Api;

mod answers;

use answers::{Delta, EVENTS, chat, completions, whole_answer};

/// The allocator of the binary that ships.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 8])]
fn decoder(bencher: divan::Bencher<'_, '_>, events_per_read: usize) {
    let reads = reads(&chat(Delta::Text, false), events_per_read);
    bencher.counter(ItemsCount::new(EVENTS)).counter(bytes(&reads)).bench_local(|| {
        let mut decoder = SseDecoder::new(SseBounds::default());
        let mut events = 0;
        for read in &reads {
            let pushed = decoder.push(divan::black_box(read), |_| events += 1);
            assert!(pushed.is_ok());
        }
        assert_eq!(events, EVENTS);
    });
}

#[divan::bench(args = [1, 8])]
fn decoder_and_dialect(bencher: divan::Bencher<'_, '_>, events_per_read: usize) {
    read_stream(bencher, Api::Chat, &chat(Delta::Text, false), events_per_read);
}

#[divan::bench(args = [1, 8])]
fn decoder_and_dialect_with_usage(bencher: divan::Bencher<'_, '_>, events_per_read: usize) {
    read_stream(bencher, Api::Chat, &chat(Delta::Text, true), events_per_read);
}

#[divan::bench(args = [1, 8])]
fn completions_dialect(bencher: divan::Bencher<'_, '_>, events_per_read: usize) {
    read_stream(bencher, Api::Completions, &completions(), events_per_read);
}

/// Other deltas than plain text, one event in each read.
#[divan::bench(args = [Delta::EscapedText, Delta::Reasoning, Delta::ToolCall])]
fn other_deltas(bencher: divan::Bencher<'_, '_>, delta: Delta) {
    read_stream(bencher, Api::Chat, &chat(delta, false), 1);
}

/// Answers of this many tokens, which come in reads of 16 KiB. An item is an answer.
#[divan::bench(args = [256, 2_048])]
fn whole(bencher: divan::Bencher<'_, '_>, tokens: usize) {
    let body = whole_answer(tokens);
    let reads: Vec<Vec<u8>> = body.as_bytes().chunks(16 << 10).map(<[u8]>::to_vec).collect();
    bencher.counter(ItemsCount::new(1_usize)).counter(bytes(&reads)).bench_local(|| {
        assert_eq!(read_answer(Api::Chat, Framing::Whole, &reads), 1);
    });
}

fn read_stream(
    bencher: divan::Bencher<'_, '_>,
    api: Api,
    events: &[String],
    events_per_read: usize,
) {
    let reads = reads(events, events_per_read);
    bencher.counter(ItemsCount::new(EVENTS)).counter(bytes(&reads)).bench_local(|| {
        assert_eq!(read_answer(api, Framing::EventStream, &reads), EVENTS);
    });
}

/// Everything up to the record's list of events; returns its length.
fn read_answer(api: Api, framing: Framing, reads: &[Vec<u8>]) -> usize {
    let mut reader = AnswerReader::new(api, framing);
    for (read, bytes) in (0..).zip(reads) {
        let pushed = reader.push(divan::black_box(bytes), read);
        assert!(pushed.is_ok());
    }
    assert!(reader.end(0).is_ok());
    reader.into_answer().events.len()
}

fn reads(events: &[String], events_per_read: usize) -> Vec<Vec<u8>> {
    events.chunks(events_per_read).map(|events| events.concat().into_bytes()).collect()
}

fn bytes(reads: &[Vec<u8>]) -> BytesCount {
    BytesCount::new(reads.iter().map(Vec::len).sum::<usize>())
}
