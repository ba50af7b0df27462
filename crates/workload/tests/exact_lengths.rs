//! Texts have exactly the tokens that were asked for: counted again, by tokenizers of every family,
//! without any of the code that made them.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::HashSet;
use std::sync::Arc;

use inferometer_model::Message;
use inferometer_workload::plan::Stream;
use inferometer_workload::text::{Frame, Segment, TextMaker};
use inferometer_workload::tokenizer::Tokenizer;
use serde_json::json;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::unigram::{Unigram, UnigramTrainer};
use tokenizers::models::wordpiece::{WordPiece, WordPieceTrainer};
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, decoders};

type Raw = tokenizers::Tokenizer;

const PROMPTS: u64 = 10_000;

const TEMPLATE: &str = "{{ bos_token }}{% for message in messages %}\
    {{ '<|' + message['role'] + '|>\\n' + message['content'] | trim + '\\n\\n' }}\
    {% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";

/// Sentences of common words.
fn corpus() -> Vec<String> {
    let maker = TextMaker::Estimating(None);
    (0..1500)
        .map(|seed| {
            let sentence = |seed| {
                let words = maker.bare(&[Segment { seed, tokens: 8 }]);
                let (first, rest) = words.split_at(1);
                format!("{}{rest}.", first.to_uppercase())
            };
            format!("{} {}", sentence(seed), sentence(seed + 10_000))
        })
        .collect()
}

fn special(names: &[&str]) -> Vec<AddedToken> {
    names.iter().map(|name| AddedToken::from(*name, true)).collect()
}

fn byte_level(splits_words: bool) -> Raw {
    let mut raw = Raw::new(BPE::default());
    let letters = ByteLevel::new(false, true, splits_words);
    raw.with_pre_tokenizer(Some(letters)).with_decoder(Some(letters));
    let mut trainer: TrainerWrapper = BpeTrainer::builder()
        .vocab_size(2500)
        .show_progress(false)
        .special_tokens(special(&["<s>", "<|user|>", "<|assistant|>"]))
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build()
        .into();
    raw.train(&mut trainer, corpus().iter()).unwrap();
    raw
}

fn unigram(prepend: PrependScheme, split: bool) -> Raw {
    let mut raw = Raw::new(Unigram::default());
    let spaces = Metaspace::new('\u{2581}', prepend, split);
    raw.with_pre_tokenizer(Some(spaces.clone()))
        .with_decoder(Some(decoders::DecoderWrapper::Metaspace(spaces)));
    let mut trainer: TrainerWrapper = UnigramTrainer::builder()
        .vocab_size(1200)
        .show_progress(false)
        .special_tokens(special(&["<unk>", "</s>"]))
        .unk_token(Some("<unk>".to_owned()))
        .build()
        .unwrap()
        .into();
    raw.train(&mut trainer, corpus().iter()).unwrap();
    raw
}

fn word_piece() -> Raw {
    let mut raw = Raw::new(WordPiece::default());
    raw.with_normalizer(Some(BertNormalizer::default())).unwrap();
    raw.with_pre_tokenizer(Some(BertPreTokenizer));
    raw.with_decoder(Some(decoders::wordpiece::WordPiece::default()));
    let mut trainer: TrainerWrapper = WordPieceTrainer::builder()
        .vocab_size(2000)
        .show_progress(false)
        .special_tokens(special(&["[UNK]", "[CLS]", "[SEP]"]))
        .build()
        .into();
    raw.train(&mut trainer, corpus().iter()).unwrap();
    raw
}

fn surrounded(mut raw: Raw, form: &str, names: &[&str]) -> Raw {
    let ids = names.iter().map(|name| ((*name).to_owned(), raw.token_to_id(name).unwrap()));
    let processor = TemplateProcessing::builder()
        .try_single(form)
        .unwrap()
        .special_tokens(ids.collect::<Vec<_>>())
        .build()
        .unwrap();
    raw.with_post_processor(Some(processor));
    raw
}

fn opened(raw: &Raw) -> Tokenizer {
    Tokenizer::from_bytes("made here", raw.to_string(false).unwrap().as_bytes()).unwrap()
}

/// One to three segments; most are short, so that ends and borders are what is tested.
fn segments(prompt: u64) -> Vec<Segment> {
    let mut stream = Stream::new(prompt, "lengths", 0);
    let most = if prompt.is_multiple_of(100) { 600 } else { 40 };
    let length = |bits: u64| u32::try_from(1 + bits % most).unwrap();
    (0..=prompt % 3)
        .map(|_| Segment { seed: stream.bits(), tokens: length(stream.bits()) })
        .collect()
}

fn asked(segments: &[Segment]) -> u32 {
    segments.iter().map(|segment| segment.tokens).sum()
}

/// Counts again what was made, in its place, and says how much of it were sentences.
fn assert_exact(maker: &TextMaker, prompts: u64, count: impl Fn(&str) -> usize, raw: &Raw) -> u64 {
    let mut sentences = 0;
    let bare_count = |text: &str| raw.encode(text, false).unwrap().len();
    // Where no word begins a text with a single token, one word is more than one.
    let bare_shortest = bare_count(&maker.bare(&[Segment { seed: 0, tokens: 1 }]));
    for prompt in 0..prompts {
        let segments = segments(prompt);
        let framed = maker.framed(&segments);
        let expected = asked(&segments).max(maker.shortest());
        assert_eq!(count(&framed), expected as usize, "prompt {prompt}: {framed}");
        sentences += u64::from(framed.contains(". "));
        if prompt.is_multiple_of(4) {
            let bare = maker.bare(&segments);
            let expected = bare_shortest.max(asked(&segments) as usize);
            assert_eq!(bare_count(&bare), expected, "prompt {prompt}: {bare}");
        }
    }
    assert!(bare_shortest <= 2);
    sentences
}

fn assert_shared_and_unique(maker: &TextMaker) {
    let shared = Segment { seed: 7, tokens: 50 };
    let whole = maker.framed(&[shared]);
    let mut texts = HashSet::new();
    let mut beginnings = HashSet::new();
    for seed in 0..2000 {
        let own = Segment { seed: 1000 + seed, tokens: 20 };
        let text = maker.framed(&[shared, own]);
        let common = whole.trim_end_matches('.');
        let common = common.rsplit_once(' ').map_or(common, |(most, _)| most);
        assert!(text.starts_with(common), "{text} does not begin with {common}");
        assert!(texts.insert(text));
        let alone = maker.framed(&[own]);
        assert!(beginnings.insert(alone.split(' ').take(8).collect::<Vec<_>>().join(" ")));
        assert_eq!(alone, maker.framed(&[own]), "a text follows from its seed");
    }
}

fn prove(raw: &Raw, frame: Frame, prompts: u64) -> u64 {
    let maker = TextMaker::exact(Arc::new(opened(raw)), frame).unwrap();
    assert_shared_and_unique(&maker);
    let special = frame == Frame::SpecialTokens;
    assert_exact(&maker, prompts, |text| raw.encode(text, special).unwrap().len(), raw)
}

#[test]
fn byte_level_bpe() {
    let sentences = prove(&byte_level(true), Frame::None, PROMPTS);
    assert!(PROMPTS / 2 < sentences, "natural text has sentences: {sentences}");
}

#[test]
fn byte_level_bpe_with_a_token_that_begins_it() {
    let raw = surrounded(byte_level(true), "<s> $A", &["<s>"]);
    let maker = TextMaker::exact(Arc::new(opened(&raw)), Frame::SpecialTokens).unwrap();
    assert_eq!(maker.shortest(), 2);
    prove(&raw, Frame::SpecialTokens, PROMPTS);
}

#[test]
fn byte_level_bpe_that_joins_words() {
    let raw = byte_level(false);
    let joins = |piece: &String| piece.trim_start_matches('Ġ').contains('Ġ');
    assert!(raw.get_vocab(false).keys().any(joins), "otherwise nothing is mended");
    prove(&raw, Frame::None, PROMPTS);
}

#[test]
fn unigram_with_spaces_as_letters() {
    let raw = surrounded(unigram(PrependScheme::Always, true), "$A </s>", &["</s>"]);
    prove(&raw, Frame::SpecialTokens, PROMPTS);
}

#[test]
fn unigram_that_does_not_cut_words_apart() {
    prove(&unigram(PrependScheme::First, false), Frame::None, PROMPTS);
    prove(&unigram(PrependScheme::Never, false), Frame::None, PROMPTS / 10);
}

#[test]
fn word_pieces_between_special_tokens() {
    let raw = surrounded(word_piece(), "[CLS] $A [SEP]", &["[CLS]", "[SEP]"]);
    prove(&raw, Frame::SpecialTokens, PROMPTS);
    prove(&raw, Frame::None, PROMPTS / 10);
}

#[test]
fn a_chat_template_is_part_of_the_length() {
    let raw = byte_level(true);
    let config = json!({ "bos_token": { "content": "<s>" } });
    let tokenizer = Arc::new(opened(&raw).with_template(TEMPLATE, &config));
    let maker = TextMaker::exact(Arc::clone(&tokenizer), Frame::Template).unwrap();
    let rendered = tokenizer.render_chat(&[Message::new("user", "one")], true).unwrap().unwrap();
    assert_eq!(rendered, "<s><|user|>\none\n\n<|assistant|>\n");
    let count = |text: &str| {
        let seen = format!("<s><|user|>\n{text}\n\n<|assistant|>\n");
        raw.encode(seen, false).unwrap().len()
    };
    assert_exact(&maker, PROMPTS, count, &raw);
    assert_shared_and_unique(&maker);
}

#[test]
fn a_prompt_that_is_too_short_for_its_frame_is_one_word() {
    let raw = surrounded(word_piece(), "[CLS] $A [SEP]", &["[CLS]", "[SEP]"]);
    let maker = TextMaker::exact(Arc::new(opened(&raw)), Frame::SpecialTokens).unwrap();
    assert_eq!(maker.shortest(), 3);
    for tokens in 1..=3 {
        let text = maker.framed(&[Segment { seed: 3, tokens }]);
        assert_eq!(raw.encode(text, true).unwrap().len(), 3);
    }
}

#[test]
fn a_chat_template_is_part_of_the_first_turn_with_its_system_message() {
    let config = json!({ "bos_token": { "content": "<s>" } });
    for raw in [byte_level(true), byte_level(false)] {
        let tokenizer = Arc::new(opened(&raw).with_template(TEMPLATE, &config));
        let maker = TextMaker::exact(tokenizer, Frame::Template).unwrap();
        let mut missed = 0;
        for seed in 0..500 {
            let [system, own] = [Segment { seed, tokens: 30 }, Segment { seed: !seed, tokens: 50 }];
            let [system, user] = maker.opening(system, own);
            let seen = format!("<s><|system|>\n{system}\n\n<|user|>\n{user}\n\n<|assistant|>\n");
            missed += u32::from(raw.encode(seen, false).unwrap().len() != 80);
        }
        assert_eq!(missed, 0);
    }
}
