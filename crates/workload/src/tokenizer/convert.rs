//! Tokenizers in other formats, as the `tokenizer.json` that means the same: `SentencePiece` models,
//! ranks of tiktoken, and tekken.

use std::collections::HashMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The format of a tokenizer's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    SentencePiece,
    Tiktoken,
    Tekken,
}

impl Format {
    pub(super) fn detect(bytes: &[u8]) -> Self {
        let head = &bytes[..bytes.len().min(1 << 20)];
        match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') if memchr::memmem::find(head, b"\"token_bytes\"").is_some() => Self::Tekken,
            // The first piece of a model: a field that has a length.
            Some(_) if head.first() == Some(&0x0a) => Self::SentencePiece,
            Some(b'{') | None => Self::Json,
            Some(_)
                if head.split(|byte| *byte == b'\n').next().is_some_and(|it| rank(it).is_ok()) =>
            {
                Self::Tiktoken
            }
            Some(_) => Self::Json,
        }
    }

    /// The `tokenizer.json` of a file; `config` is that of the model beside it.
    pub(super) fn convert(self, bytes: &[u8], config: &Value) -> Result<Vec<u8>, String> {
        match self {
            Self::Json => Ok(bytes.to_vec()),
            Self::SentencePiece => SentencePiece::read(bytes)?.convert(config),
            Self::Tiktoken => {
                let ranks = read_ranks(bytes)?;
                byte_level(&ranks, pattern_of(ranks.len())?, &[])
            }
            Self::Tekken => convert_tekken(bytes),
        }
    }
}

/// A tokenizer as its library reads it.
#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    added_tokens: Vec<Value>,
    normalizer: Value,
    pre_tokenizer: Value,
    post_processor: Value,
    decoder: Value,
    model: Model<'a>,
}

#[derive(Serialize)]
struct Bpe<'a> {
    r#type: &'static str,
    unk_token: Option<&'a str>,
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
    vocab: HashMap<&'a str, usize>,
    merges: Vec<(&'a str, &'a str)>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Model<'a> {
    Bpe(Bpe<'a>),
    Unigram(Value),
}

fn added(id: usize, content: &str) -> Value {
    json!({
        "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": false,
    })
}

/// Puts these special tokens before and after a whole prompt.
fn surrounding(before: Option<(usize, &str)>, after: Option<(usize, &str)>) -> Value {
    if before.is_none() && after.is_none() {
        return Value::Null;
    }
    let part = |(_, token)| json!({ "SpecialToken": { "id": token, "type_id": 0 } });
    let text = json!({ "Sequence": { "id": "A", "type_id": 0 } });
    let single: Vec<Value> =
        before.map(part).into_iter().chain([text]).chain(after.map(part)).collect();
    let tokens = before.into_iter().chain(after);
    let tokens = tokens.map(|(id, token)| {
        (token.to_owned(), json!({ "id": token, "ids": [id], "tokens": [token] }))
    });
    let tokens: serde_json::Map<String, Value> = tokens.collect();
    let pair =
        [("A", 0), ("B", 1)].map(|(id, kind)| json!({ "Sequence": { "id": id, "type_id": kind } }));
    json!({ "type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens })
}

/// All ways to make a token of two others, the tokens that are made first being first.
fn merges<'p>(pieces: &[&'p str], ids: &HashMap<&'p str, usize>) -> Vec<(&'p str, &'p str)> {
    let mut merges = Vec::new();
    for piece in pieces {
        let mut ways: Vec<_> = piece
            .char_indices()
            .skip(1)
            .map(|(place, _)| piece.split_at(place))
            .filter_map(|(left, right)| Some(((ids.get(left)?, ids.get(right)?), (left, right))))
            .collect();
        ways.sort_unstable();
        merges.extend(ways.into_iter().map(|(_, way)| way));
    }
    merges
}

/// A byte-level vocabulary whose tokens are merged by their rank. The special tokens, if any, have the
/// first ids; the first text begins with the second of them.
fn byte_level(ranks: &[Vec<u8>], pattern: &str, special: &[String]) -> Result<Vec<u8>, String> {
    let letters = byte_letters();
    let spell = |token: &Vec<u8>| token.iter().map(|byte| letters[usize::from(*byte)]).collect();
    let pieces: Vec<String> = ranks.iter().map(spell).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let mut vocab: HashMap<&str, usize> =
        pieces.iter().enumerate().map(|(rank, piece)| (*piece, special.len() + rank)).collect();
    if vocab.len() != pieces.len() {
        return Err("two of its tokens are the same".to_owned());
    }
    let merges = merges(&pieces, &vocab);
    vocab.extend(special.iter().enumerate().map(|(id, token)| (token.as_str(), id)));
    let begin = special.iter().position(|token| token == "<s>").map(|id| (id, "<s>"));
    let byte_level = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false,
    });
    let split = json!({
        "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false,
    });
    let model = Bpe {
        r#type: "BPE",
        unk_token: None,
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: true,
        vocab,
        merges,
    };
    let document = Document {
        version: "1.0",
        added_tokens: Vec::new(),
        normalizer: Value::Null,
        pre_tokenizer: json!({ "type": "Sequence", "pretokenizers": [split, byte_level.clone()] }),
        post_processor: surrounding(begin, None),
        decoder: byte_level,
        model: Model::Bpe(model),
    };
    serde_json::to_vec(&document).map_err(|error| error.to_string())
}

/// The letter that stands for each byte in a byte-level vocabulary: its own where it can be seen, and
/// one above all bytes otherwise.
fn byte_letters() -> [char; 256] {
    let mut next = 256;
    std::array::from_fn(|byte| {
        let is_seen = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
        let code = if is_seen { byte } else { next };
        next += usize::from(!is_seen);
        u32::try_from(code).ok().and_then(char::from_u32).unwrap_or('\u{fffd}')
    })
}

/// A line of a file of ranks: a token in Base64, and its rank.
fn rank(line: &[u8]) -> Result<(Vec<u8>, usize), String> {
    let line = std::str::from_utf8(line).map_err(|error| error.to_string())?;
    let (token, rank) =
        line.trim_end().split_once(' ').ok_or("a line is not a token and its rank")?;
    let token = BASE64_STANDARD.decode(token).map_err(|error| format!("`{token}`: {error}"))?;
    let rank = rank.parse().map_err(|_| format!("`{rank}` is not a rank"))?;
    Ok((token, rank))
}

fn read_ranks(bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    in_order(lines.map(rank).collect::<Result<_, _>>()?)
}

/// The tokens by their ranks, of which none is missing.
fn in_order(mut ranks: Vec<(Vec<u8>, usize)>) -> Result<Vec<Vec<u8>>, String> {
    ranks.sort_by_key(|(_, rank)| *rank);
    match ranks.iter().enumerate().find(|(place, (_, rank))| place != rank) {
        Some((place, _)) => Err(format!("it has no token of rank {place}, or several")),
        None => Ok(ranks.into_iter().map(|(token, _)| token).collect()),
    }
}

/// How a text is split before tokens are merged, as GPT-2 did it.
const GPT_2: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// As GPT-4 does it, and Llama 3 and GLM 4 with it.
const CL100K: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// The same with every digit by itself.
const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
/// As GPT-4o does it.
const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A file of ranks does not say how texts are split; the number of ranks says whose it is.
fn pattern_of(ranks: usize) -> Result<&'static str, String> {
    match ranks {
        50_256 | 50_280 => Ok(GPT_2),
        100_256 | 128_000 | 151_329 => Ok(CL100K),
        151_643 => Ok(QWEN),
        199_998 | 200_000 => Ok(O200K),
        count => Err(format!(
            "it has {count} ranks, and of no known tokenizer: how it splits a text is not in the file; \
             use the tokenizer.json of the model, or convert it to one"
        )),
    }
}

#[derive(Deserialize)]
struct Tekken {
    config: TekkenConfig,
    vocab: Vec<TekkenToken>,
    #[serde(default)]
    special_tokens: Option<Vec<TekkenSpecial>>,
}

#[derive(Deserialize)]
struct TekkenConfig {
    pattern: String,
    default_vocab_size: usize,
    default_num_special_tokens: usize,
}

#[derive(Deserialize)]
struct TekkenToken {
    rank: usize,
    token_bytes: String,
}

#[derive(Deserialize)]
struct TekkenSpecial {
    rank: usize,
    token_str: String,
}

/// The most special tokens; published files have a thousand.
const SPECIAL_MAX: usize = 100_000;
/// The special tokens of files that do not name them, up to those that matter here.
const SPECIAL_USUAL: [&str; 3] = ["<unk>", "<s>", "</s>"];

fn convert_tekken(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let tekken: Tekken = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let count = tekken.config.default_num_special_tokens;
    if SPECIAL_MAX < count {
        return Err(format!("it has {count} special tokens; at most {SPECIAL_MAX} are read"));
    }
    let mut special: Vec<String> = (0..count).map(|id| format!("<SPECIAL_{id}>")).collect();
    let usual = SPECIAL_USUAL.iter().map(|token| (*token).to_owned()).enumerate();
    let usual: Vec<(usize, String)> = match tekken.special_tokens {
        Some(named) => named.into_iter().map(|token| (token.rank, token.token_str)).collect(),
        None => usual.collect(),
    };
    for (id, token) in usual {
        special.get_mut(id).into_iter().for_each(|place| place.clone_from(&token));
    }
    // The file has more tokens than the model knows.
    let known = tekken.config.default_vocab_size.saturating_sub(count);
    let tokens = tekken.vocab.into_iter().filter(|token| token.rank < known).map(|token| {
        let decoded = BASE64_STANDARD.decode(&token.token_bytes);
        decoded.map(|bytes| (bytes, token.rank)).map_err(|error| error.to_string())
    });
    byte_level(&in_order(tokens.collect::<Result<_, _>>()?)?, &tekken.config.pattern, &special)
}

/// What is used of a `SentencePiece` model, a message of protocol buffers.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the format has them")]
struct SentencePiece {
    pieces: Vec<Piece>,
    is_bpe: bool,
    byte_fallback: bool,
    unknown: usize,
    begin: Option<usize>,
    end: Option<usize>,
    /// Which characters become which, in a form of its own.
    character_map: Vec<u8>,
    adds_prefix: bool,
    strips_spaces: bool,
}

#[derive(Debug)]
struct Piece {
    text: String,
    score: f32,
    kind: u64,
}

impl Piece {
    const NORMAL: u64 = 1;
    const USER_DEFINED: u64 = 4;
    const BYTE: u64 = 6;
}

/// What a space is in a piece.
const SPACE: char = '\u{2581}';

impl SentencePiece {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut model = Self {
            begin: Some(1),
            end: Some(2),
            adds_prefix: true,
            strips_spaces: true,
            ..Self::default()
        };
        let mut kind = 1;
        let mut fields = Fields(bytes);
        while let Some((number, field)) = fields.next()? {
            match (number, field) {
                (1, Field::Bytes(piece)) => model.pieces.push(read_piece(piece)?),
                (2, Field::Bytes(trainer)) => kind = model.read_trainer(trainer)?,
                (3, Field::Bytes(normalizer)) => model.read_normalizer(normalizer)?,
                _ => {}
            }
        }
        model.is_bpe = match kind {
            1 => false,
            2 => true,
            _ => return Err("it is neither a unigram nor a BPE model".to_owned()),
        };
        if model.pieces.is_empty() || model.pieces.len() <= model.unknown {
            return Err("it has no pieces, or none for unknown text".to_owned());
        }
        Ok(model)
    }

    /// The kind of the model.
    fn read_trainer(&mut self, bytes: &[u8]) -> Result<u64, String> {
        let mut kind = 1;
        let mut fields = Fields(bytes);
        // A negative number is none.
        let id = |number: u64| i32::try_from(number).ok().and_then(|id| usize::try_from(id).ok());
        while let Some((number, field)) = fields.next()? {
            match (number, field) {
                (3, Field::Number(number)) => kind = number,
                (35, Field::Number(flag)) => self.byte_fallback = flag != 0,
                (40, Field::Number(number)) => self.unknown = id(number).unwrap_or_default(),
                (41, Field::Number(number)) => self.begin = id(number),
                (42, Field::Number(number)) => self.end = id(number),
                _ => {}
            }
        }
        Ok(kind)
    }

    fn read_normalizer(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut fields = Fields(bytes);
        while let Some((number, field)) = fields.next()? {
            match (number, field) {
                (2, Field::Bytes(map)) => self.character_map = map.to_vec(),
                (3, Field::Number(flag)) => self.adds_prefix = flag != 0,
                (4, Field::Number(flag)) => self.strips_spaces = flag != 0,
                (5, Field::Number(0)) => {
                    return Err("it keeps spaces as they are, which is not known here".to_owned());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn convert(&self, config: &Value) -> Result<Vec<u8>, String> {
        let named = |id: Option<usize>| Some((id?, self.pieces.get(id?)?.text.as_str()));
        // Whether they surround a prompt is set beside the model.
        let adds = |key: &str| config.get(key).and_then(Value::as_bool) == Some(true);
        let begin = named(self.begin).filter(|_| adds("add_bos_token"));
        let end = named(self.end).filter(|_| adds("add_eos_token"));
        // These are one token wherever they stand; in a text, the words of control pieces are words.
        let is_added =
            |piece: &Piece| piece.kind == Piece::USER_DEFINED && !piece.text.contains(SPACE);
        let pieces = self.pieces.iter().enumerate().filter(|(_, piece)| is_added(piece));
        let added = pieces.map(|(id, piece)| added(id, &piece.text));
        let replace = |from: &str, to: &str| json!({ "type": "Replace", "pattern": { "String": from }, "content": to });
        let space = SPACE.to_string();
        let first = json!({ "type": "Strip", "content": " ", "start": 1, "stop": 0 });
        let decoders = [
            Some(replace(&space, " ")),
            Some(json!({ "type": "ByteFallback" })),
            Some(json!({ "type": "Fuse" })),
            self.adds_prefix.then_some(first),
        ];
        let decoders: Vec<Value> = decoders.into_iter().flatten().collect();
        let document = Document {
            version: "1.0",
            added_tokens: added.collect(),
            normalizer: self.normalizer(),
            pre_tokenizer: Value::Null,
            post_processor: surrounding(begin, end),
            decoder: json!({ "type": "Sequence", "decoders": decoders }),
            model: if self.is_bpe {
                Model::Bpe(self.bpe())
            } else {
                Model::Unigram(self.unigram())
            },
        };
        serde_json::to_vec(&document).map_err(|error| error.to_string())
    }

    fn normalizer(&self) -> Value {
        let pattern = |pattern: &str, content: &str| json!({ "type": "Replace", "pattern": { "Regex": pattern }, "content": content });
        let mut steps = Vec::new();
        if !self.character_map.is_empty() {
            let map = BASE64_STANDARD.encode(&self.character_map);
            steps.push(json!({ "type": "Precompiled", "precompiled_charsmap": map }));
        }
        if self.strips_spaces {
            steps.extend([pattern("^ +| +$", ""), pattern(" {2,}", " ")]);
        }
        if self.adds_prefix {
            steps.push(json!({ "type": "Prepend", "prepend": SPACE.to_string() }));
        }
        steps.push(pattern(" ", &SPACE.to_string()));
        json!({ "type": "Sequence", "normalizers": steps })
    }

    fn unigram(&self) -> Value {
        // Control pieces are in no text, whatever it says.
        let text = |piece: &Piece| match piece.kind {
            Piece::NORMAL | Piece::USER_DEFINED | Piece::BYTE => piece.text.clone(),
            _ => format!("\0{}", piece.text),
        };
        let vocab: Vec<Value> =
            self.pieces.iter().map(|piece| json!([text(piece), piece.score])).collect();
        json!({
            "type": "Unigram", "unk_id": self.unknown, "vocab": vocab,
            "byte_fallback": self.byte_fallback,
        })
    }

    fn bpe(&self) -> Bpe<'_> {
        let vocab: HashMap<&str, usize> =
            self.pieces.iter().enumerate().map(|(id, piece)| (piece.text.as_str(), id)).collect();
        let is_merged = |piece: &&Piece| matches!(piece.kind, Piece::NORMAL | Piece::USER_DEFINED);
        let mut pieces: Vec<&Piece> = self.pieces.iter().filter(is_merged).collect();
        let known = pieces.iter().map(|piece| (piece.text.as_str(), vocab[piece.text.as_str()]));
        let known: HashMap<&str, usize> = known.collect();
        pieces.sort_by(|one, other| other.score.total_cmp(&one.score));
        let pieces: Vec<&str> = pieces.into_iter().map(|piece| piece.text.as_str()).collect();
        Bpe {
            r#type: "BPE",
            unk_token: Some(&self.pieces[self.unknown].text),
            fuse_unk: true,
            byte_fallback: self.byte_fallback,
            ignore_merges: false,
            merges: merges(&pieces, &known),
            vocab,
        }
    }
}

fn read_piece(bytes: &[u8]) -> Result<Piece, String> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: Piece::NORMAL };
    let mut fields = Fields(bytes);
    while let Some((number, field)) = fields.next()? {
        match (number, field) {
            (1, Field::Bytes(text)) => {
                let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
                text.clone_into(&mut piece.text);
            }
            (2, Field::Four(bytes)) => piece.score = f32::from_le_bytes(bytes),
            (3, Field::Number(kind)) => piece.kind = kind,
            _ => {}
        }
    }
    Ok(piece)
}

/// The fields of a message of protocol buffers.
struct Fields<'b>(&'b [u8]);

enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
    Four([u8; 4]),
    Eight,
}

const CUT: &str = "it is not a whole SentencePiece model";

impl<'b> Fields<'b> {
    /// The next field with its number.
    fn next(&mut self) -> Result<Option<(u64, Field<'b>)>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.number()?;
        let field = match tag & 7 {
            0 => Field::Number(self.number()?),
            1 => self.take(8).map(|_| Field::Eight)?,
            2 => {
                let length = usize::try_from(self.number()?).map_err(|_| CUT)?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Four(self.take(4)?.try_into().map_err(|_| CUT)?),
            _ => return Err(CUT.to_owned()),
        };
        Ok(Some((tag >> 3, field)))
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], String> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(CUT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(CUT.to_owned())
    }
}

#[cfg(test)]
mod tests;
