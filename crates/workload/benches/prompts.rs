//! What a prompt costs to make: of exactly so many tokens, and of so many words.
//!
//! `cargo bench -p inferometer-workload` measures; `cargo test` makes a few of each. An item is a
//! prompt of 1,024 tokens, so items per second are prompts per second. The tokenizer is one of
//! bytes that is trained here; `INFEROMETER_TOKENIZER` names another.

#![expect(clippy::unwrap_used, reason = "a bench may fail by panicking")]

use std::sync::{Arc, LazyLock};

use divan::counter::ItemsCount;
use inferometer_workload::text::{Frame, Segment, TextMaker};
use inferometer_workload::tokenizer::Tokenizer;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

const TOKENS: u32 = 1024;
const PROMPTS: u64 = 100_000;
/// Under `cargo test` the optimiser is nearly off.
const PROMPTS_IN_TESTS: u64 = 100;

static TOKENIZER: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| {
    Arc::new(match std::env::var("INFEROMETER_TOKENIZER") {
        Ok(name) => Tokenizer::open(&name).unwrap(),
        Err(_) => trained(true),
    })
});

fn main() {
    divan::main();
}

#[divan::bench(sample_count = 3)]
fn exact(bencher: divan::Bencher<'_, '_>) {
    let maker = TextMaker::exact(Arc::clone(&TOKENIZER), Frame::SpecialTokens).unwrap();
    measure(bencher, &maker, prompts());
}

/// A tokenizer that joins words: each prompt is encoded, and mended.
#[divan::bench(sample_count = 3)]
fn exact_mended(bencher: divan::Bencher<'_, '_>) {
    let maker = TextMaker::exact(Arc::new(trained(false)), Frame::SpecialTokens).unwrap();
    measure(bencher, &maker, prompts() / 100);
}

#[divan::bench(sample_count = 3)]
fn estimating(bencher: divan::Bencher<'_, '_>) {
    measure(bencher, &TextMaker::Estimating(None), prompts());
}

/// Once per run, before anything is planned.
#[divan::bench(sample_count = 3)]
fn probing_the_tokenizer() -> TextMaker {
    TextMaker::exact(Arc::clone(&TOKENIZER), Frame::SpecialTokens).unwrap()
}

fn prompts() -> u64 {
    if cfg!(debug_assertions) { PROMPTS_IN_TESTS } else { PROMPTS }
}

fn measure(bencher: divan::Bencher<'_, '_>, maker: &TextMaker, prompts: u64) {
    let prompts = prompts.max(1);
    bencher.counter(ItemsCount::new(prompts)).bench_local(|| {
        let letters: usize =
            (0..prompts).map(|seed| maker.framed(&[Segment { seed, tokens: TOKENS }]).len()).sum();
        assert!(TOKENS as usize * 2 < letters);
    });
}

/// Learns the common words, with or without what stands beside them.
fn trained(splits_words: bool) -> Tokenizer {
    let maker = TextMaker::Estimating(None);
    let lines: Vec<String> =
        (0..2000).map(|seed| maker.bare(&[Segment { seed, tokens: 16 }]) + ".").collect();
    let letters = ByteLevel::new(false, true, splits_words);
    let mut raw = tokenizers::Tokenizer::new(BPE::default());
    raw.with_pre_tokenizer(Some(letters)).with_decoder(Some(letters));
    let mut trainer: TrainerWrapper = BpeTrainer::builder()
        .vocab_size(2000)
        .show_progress(false)
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build()
        .into();
    raw.train(&mut trainer, lines.iter()).unwrap();
    Tokenizer::from_bytes("trained here", raw.to_string(false).unwrap().as_bytes()).unwrap()
}
