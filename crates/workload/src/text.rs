//! Text of a requested length, in tokens.
//!
//! With the model's tokenizer a text has exactly as many tokens as were asked for. Without it the
//! number of words is an *estimate* of the number of tokens, and every result reports it: the words
//! are short and common, so that most tokenizers give one token for each.

mod exact;

#[cfg(test)]
mod tests;

pub use exact::{Frame, TextError};
pub use inferometer_model::Segment;

use std::sync::Arc;

use inferometer_model::TokenCounter as _;
use inferometer_model::observations::{Correction, InputLength};

use crate::plan::Stream;
use crate::tokenizer::Tokenizer;
use exact::Exact;

/// Makes texts of so many tokens.
#[derive(Clone, Debug)]
pub struct TextMaker {
    manner: Manner,
}

#[derive(Clone, Debug)]
enum Manner {
    Estimating(Option<Correction>),
    Exact(Arc<Exact>),
}

impl TextMaker {
    /// By words, as if each were a token, or as a probe has shown the server to count them.
    pub fn estimating(correction: Option<Correction>) -> Self {
        Self { manner: Manner::Estimating(correction) }
    }

    /// By the model's tokenizer, with what surrounds a prompt as a part of its length.
    pub fn exact(tokenizer: Arc<Tokenizer>, frame: Frame) -> Result<Self, TextError> {
        Ok(Self { manner: Manner::Exact(Arc::new(Exact::new(tokenizer, frame)?)) })
    }

    pub fn input_length(&self) -> InputLength {
        match &self.manner {
            Manner::Estimating(None) => InputLength::Estimated,
            Manner::Estimating(Some(correction)) => InputLength::Corrected(*correction),
            Manner::Exact(_) => InputLength::Exact,
        }
    }

    /// The fewest tokens that a whole prompt can have; one that is asked to be shorter has these.
    pub fn shortest(&self) -> u32 {
        match &self.manner {
            Manner::Estimating(None) => 1,
            Manner::Estimating(Some(correction)) => {
                let tokens = correction.overhead_tokens + correction.tokens_per_word;
                u32::try_from(whole(tokens)).unwrap_or(u32::MAX).max(1)
            }
            Manner::Exact(exact) => exact.shortest(),
        }
    }

    /// The fewest tokens that a conversation's first turn can have behind a system message of so
    /// many.
    pub fn shortest_after(&self, system: u32) -> u32 {
        let beside = match &self.manner {
            Manner::Estimating(_) => 1,
            Manner::Exact(exact) => exact.shortest_after_system(),
        };
        system.saturating_add(beside)
    }

    /// Whether what surrounds a system message and a user's is known, where it is counted.
    pub fn knows_openings(&self) -> bool {
        match &self.manner {
            Manner::Estimating(_) => true,
            Manner::Exact(exact) => exact.knows_openings(),
        }
    }

    /// The system message and the user's first words; what surrounds the two is taken from the
    /// user's, where it is counted.
    pub fn opening(&self, system: Segment, own: Segment) -> [String; 2] {
        match &self.manner {
            Manner::Estimating(_) => [self.bare(&[system]), self.bare(&[own])],
            Manner::Exact(exact) => exact.opening(system, own),
        }
    }

    /// A whole prompt: what the server adds around it is part of its length, where that is
    /// counted. Equal beginnings of the segments are equal beginnings of the text.
    pub fn framed(&self, segments: &[Segment]) -> String {
        match &self.manner {
            Manner::Estimating(None) => by_words(segments, |tokens| tokens),
            Manner::Estimating(Some(correction)) => by_words(segments, |tokens| {
                words_for(tokens, correction.overhead_tokens, correction)
            }),
            Manner::Exact(exact) => exact.framed(segments),
        }
    }

    /// Text inside a prompt.
    pub fn bare(&self, segments: &[Segment]) -> String {
        match &self.manner {
            Manner::Estimating(None) => by_words(segments, |tokens| tokens),
            Manner::Estimating(Some(correction)) => {
                by_words(segments, |tokens| words_for(tokens, 0.0, correction))
            }
            Manner::Exact(exact) => exact.bare(segments),
        }
    }
}

fn words_for(tokens: u64, overhead: f64, correction: &Correction) -> u64 {
    whole((tokens as f64 - overhead) / correction.tokens_per_word)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, and a cast keeps what is out of bounds at the nearest bound"
)]
fn whole(number: f64) -> u64 {
    libm::round(number) as u64
}

/// Segments of as many words as their tokens, summed from the beginning, stand for: so the whole is
/// as near as it can be, and what others share does not depend on what follows.
fn by_words(segments: &[Segment], words_for: impl Fn(u64) -> u64) -> String {
    let mut text = String::new();
    let (mut tokens, mut words) = (0_u64, 0_u64);
    for segment in segments {
        tokens += u64::from(segment.tokens);
        let reached = words_for(tokens).max(words);
        write_words(&mut text, segment.seed, reached - words);
        words = reached;
    }
    if let (true, Some(last)) = (text.is_empty() && 0 < tokens, segments.last()) {
        write_words(&mut text, last.seed, 1);
    }
    text
}

fn write_words(text: &mut String, seed: u64, words: u64) {
    let mut stream = Stream::new(seed, "prompt-text", 0);
    let mut left = usize::try_from(words).unwrap_or(usize::MAX);
    while 0 < left {
        for byte in stream.bits().to_le_bytes().into_iter().take(left) {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(WORDS[usize::from(byte)]);
        }
        left = left.saturating_sub(8);
    }
}

/// An endless talk that follows from a seed; each step is one token.
#[derive(Debug)]
struct Speech<'a> {
    units: &'a Units,
    stream: Stream,
    bits: u64,
    draws_left: u32,
    /// Words until the full stop.
    words_left: u32,
    begins: bool,
}

const DRAWS_PER_NUMBER: u32 = 4;
const DRAW_BITS: u32 = u64::BITS / DRAWS_PER_NUMBER;
/// How many words a sentence can have behind its first.
const SENTENCE_WORDS: [u32; 10] = [6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Rare enough that tokenizers join them to little.
const CRUMBS: [&str; 16] =
    ["q", "z", "x", "j", "k", "v", "?", "!", ";", ":", ",", "-", " q", " z", " x", " ?"];

impl<'a> Speech<'a> {
    fn new(units: &'a Units, seed: u64) -> Self {
        let stream = Stream::new(seed, "prompt-words", 0);
        Self { units, stream, bits: 0, draws_left: 0, words_left: 0, begins: true }
    }

    /// The first words of a text have no space before them, and are chosen by what they cost there.
    fn say_first(&mut self, text: &mut String, firsts: &[String]) {
        self.begin_sentence();
        let place = self.below(firsts.len());
        text.push_str(&firsts[place]);
        self.begins = false;
    }

    fn say(&mut self, text: &mut String) {
        let units = self.units;
        if self.words_left == 0 && !self.begins {
            text.push('.');
            self.begins = true;
            return;
        }
        if self.begins {
            self.begin_sentence();
        } else {
            self.words_left = self.words_left.saturating_sub(1);
        }
        let words = match (self.begins, self.words_left) {
            (true, _) => &units.openers,
            (false, 0) => &units.enders,
            (false, _) => &units.words,
        };
        text.push_str(units.gap);
        let place = self.below(words.len());
        text.push_str(&words[place]);
        self.begins = false;
    }

    /// Whether the next token is a full stop.
    fn stops(&self) -> bool {
        self.words_left == 0 && !self.begins
    }

    /// Goes on with a word where a full stop would be.
    fn say_word(&mut self, text: &mut String) {
        text.push_str(self.units.gap);
        let place = self.below(self.units.words.len());
        text.push_str(&self.units.words[place]);
    }

    /// A letter or a mark behind the last word: the least that a text can be longer by.
    fn say_crumb(&mut self, text: &mut String) {
        let place = self.below(CRUMBS.len());
        text.push_str(CRUMBS[place]);
    }

    fn begin_sentence(&mut self) {
        self.words_left = if self.units.enders.is_empty() {
            u32::MAX
        } else {
            let lengths = SENTENCE_WORDS.len();
            SENTENCE_WORDS[self.below(lengths)]
        };
    }

    /// A quarter of a number is enough to choose a word with.
    fn below(&mut self, count: usize) -> usize {
        if self.draws_left == 0 {
            self.bits = self.stream.bits();
            self.draws_left = DRAWS_PER_NUMBER;
        }
        let draw = self.bits & ((1 << DRAW_BITS) - 1);
        self.bits >>= DRAW_BITS;
        self.draws_left -= 1;
        ((draw * count as u64) >> DRAW_BITS) as usize
    }
}

/// Words of one token each, as they stand in the middle of a text.
#[derive(Debug)]
struct Units {
    /// What separates two words: a space, which belongs to the word behind it, or nothing.
    gap: &'static str,
    words: Vec<String>,
    /// Words that can begin a sentence; the same as `words` where sentences do not end.
    openers: Vec<String>,
    /// Words that can end one: their full stop is a token, and changes nothing before it.
    enders: Vec<String>,
    /// Whether every word costs the same tokens, whatever its neighbours.
    additive: bool,
}

/// Fewer distinct words than these, and others are looked for.
const WORDS_ENOUGH: usize = 256;
/// With four bits a word, sixteen words have the sixty-four that make a beginning unique.
const WORDS_MIN: usize = 16;
const PIECES_MAX: usize = 4096;
/// Long enough that a tokenizer joins nothing to it.
const ANCHOR: &str = "one two";

impl Units {
    /// `None` when the tokenizer has no usable pieces at all.
    fn probe(tokenizer: &Tokenizer) -> Option<Self> {
        let known = |word: &str| costs_one(tokenizer, " ", word);
        let listed = WORDS.into_iter().chain(MORE_WORDS).map(str::to_owned);
        let mut words: Vec<String> = listed.filter(|word| known(word)).collect();
        if words.len() < WORDS_ENOUGH {
            let pieces = pieces(tokenizer, |c| c.is_ascii_alphanumeric());
            let fresh: Vec<String> =
                pieces.into_iter().filter(|piece| !words.contains(piece) && known(piece)).collect();
            words.extend(fresh);
        }
        if words.len() < WORDS_MIN {
            return Self::glued(tokenizer);
        }
        let splits =
            Self { gap: " ", openers: words.clone(), enders: Vec::new(), words, additive: true };
        let plain = Self { additive: splits.are_additive(tokenizer), ..splits };
        Some(plain.with_sentences(tokenizer))
    }

    /// Pieces one behind the other, for tokenizers that spend a token on each space.
    fn glued(tokenizer: &Tokenizer) -> Option<Self> {
        let mut words = pieces(tokenizer, |c| c.is_ascii_graphic());
        words.retain(|piece| costs_one(tokenizer, "", piece));
        (1 < words.len()).then(|| Self {
            gap: "",
            openers: words.clone(),
            enders: Vec::new(),
            words,
            additive: false,
        })
    }

    /// Sentences, where the tokenizer is known to count their capitals and full stops apart.
    fn with_sentences(self, tokenizer: &Tokenizer) -> Self {
        if !self.additive {
            return self;
        }
        let openers = self.words.iter().filter_map(|word| capitalised(word));
        let openers: Vec<String> = openers.filter(|word| costs_one(tokenizer, " ", word)).collect();
        let anchor = tokenizer.count(ANCHOR);
        let ends = |word: &&String| tokenizer.count(&format!("{ANCHOR} {word}.")) == anchor + 2;
        let enders: Vec<String> = self.words.iter().filter(ends).cloned().collect();
        if openers.len() < WORDS_MIN || enders.len() < WORDS_MIN {
            return self;
        }
        let plain_openers = self.openers.clone();
        let sentences = Self { openers, enders, ..self };
        if sentences.are_additive(tokenizer) {
            sentences
        } else {
            Self { openers: plain_openers, enders: Vec::new(), ..sentences }
        }
    }

    /// Either each word is cut out and encoded by itself, or no piece of the vocabulary could reach
    /// from one word into the next.
    fn are_additive(&self, tokenizer: &Tokenizer) -> bool {
        self.are_cut_apart(tokenizer) || self.are_never_joined(tokenizer)
    }

    fn are_cut_apart(&self, tokenizer: &Tokenizer) -> bool {
        let mut text = String::from(ANCHOR);
        let mut costs = vec![tokenizer.count(ANCHOR)];
        let mut say = |word: &str, end: &str, cost| {
            text.extend([" ", word, end]);
            costs.push(cost);
        };
        for word in self.words.iter().chain(&self.openers) {
            say(word, "", 1);
        }
        for (ender, opener) in self.enders.iter().zip(self.openers.iter().cycle()) {
            say(ender, ".", 2);
            say(opener, "", 1);
        }
        let pieces = tokenizer.piece_of_tokens(&text);
        let mut last = None;
        let mut rest = pieces.as_slice();
        let apart = costs.into_iter().all(|cost| {
            let Some((word, others)) = rest.split_at_checked(cost) else { return false };
            rest = others;
            let is_new = word.iter().all(|piece| piece.is_some() && *piece != last);
            last = word.last().copied().flatten();
            is_new
        });
        apart && rest.is_empty()
    }

    fn are_never_joined(&self, tokenizer: &Tokenizer) -> bool {
        let is_space = |c: char| matches!(c, ' ' | '\u{2581}' | '\u{120}');
        let joins = |(one, next): (char, char)| {
            let joins_words = one.is_alphanumeric() && is_space(next);
            let joins_stop =
                (one.is_alphanumeric() && next == '.') || (one == '.' && is_space(next));
            joins_words || (!self.enders.is_empty() && joins_stop)
        };
        let pairs = |piece: &str| piece.chars().zip(piece.chars().skip(1)).any(joins);
        !tokenizer.vocabulary().iter().any(|piece| pairs(piece))
    }
}

/// Behind other words it is one token more, and that token is this word.
fn costs_one(tokenizer: &Tokenizer, gap: &str, word: &str) -> bool {
    let alone = tokenizer.count(ANCHOR);
    let with = tokenizer.encode(&format!("{ANCHOR}{gap}{word}"));
    with.len() == alone + 1
        && with.last().is_some_and(|id| {
            tokenizer.decode(&[*id]).trim().trim_start_matches("##").eq_ignore_ascii_case(word)
        })
}

/// The vocabulary's own pieces, without the mark of a space before them.
fn pieces(tokenizer: &Tokenizer, is_usable: impl Fn(char) -> bool) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in tokenizer.vocabulary() {
        let word = piece.trim_start_matches(['\u{2581}', '\u{120}']).trim_start_matches("##");
        if !word.is_empty() && word.len() <= 24 && word.chars().all(&is_usable) {
            pieces.push(word.to_owned());
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    pieces.retain(|piece| seen.insert(piece.clone()));
    pieces.truncate(PIECES_MAX);
    pieces
}

fn capitalised(word: &str) -> Option<String> {
    let mut letters = word.chars();
    let first = letters.next().filter(char::is_ascii_lowercase)?;
    Some(first.to_ascii_uppercase().to_string() + letters.as_str())
}

#[rustfmt::skip]
pub(crate) const WORDS: [&str; 256] = [
    "the", "of", "and", "to", "in", "is", "you", "that", "it", "he", "was", "for", "on", "are", "as", "with",
    "his", "they", "at", "be", "this", "have", "from", "or", "one", "had", "by", "word", "but", "not", "what", "all",
    "were", "we", "when", "your", "can", "said", "there", "use", "an", "each", "which", "she", "do", "how", "their", "if",
    "will", "up", "other", "about", "out", "many", "then", "them", "these", "so", "some", "her", "would", "make", "like", "him",
    "into", "time", "has", "look", "two", "more", "write", "go", "see", "number", "no", "way", "could", "people", "my", "than",
    "first", "water", "been", "call", "who", "oil", "its", "now", "find", "long", "down", "day", "did", "get", "come", "made",
    "may", "part", "over", "new", "sound", "take", "only", "little", "work", "know", "place", "year", "live", "me", "back", "give",
    "most", "very", "after", "thing", "our", "just", "name", "good", "sentence", "man", "think", "say", "great", "where", "help", "through",
    "much", "before", "line", "right", "too", "mean", "old", "any", "same", "tell", "boy", "follow", "came", "want", "show", "also",
    "around", "form", "three", "small", "set", "put", "end", "does", "another", "well", "large", "must", "big", "even", "such", "because",
    "turn", "here", "why", "ask", "went", "men", "read", "need", "land", "different", "home", "us", "move", "try", "kind", "hand",
    "picture", "again", "change", "off", "play", "air", "away", "house", "point", "page", "letter", "mother", "answer", "found", "study", "still",
    "learn", "should", "world", "high", "every", "near", "add", "food", "between", "own", "below", "country", "plant", "last", "school", "father",
    "keep", "tree", "never", "start", "city", "earth", "eye", "light", "thought", "head", "under", "story", "saw", "left", "few", "while",
    "along", "might", "close", "seem", "next", "hard", "open", "example", "begin", "life", "always", "those", "both", "paper", "together", "got",
    "group", "often", "run", "important", "until", "side", "feet", "car", "mile", "night", "walk", "white", "sea", "began", "grow", "river",
];

/// As common, and longer: for those who can check what they cost.
#[rustfmt::skip]
static MORE_WORDS: [&str; 1185] = [
    "able", "above", "accept", "across", "act", "action", "active", "actual", "address", "admit", "adult", "advice", "affect", "afraid",
    "afternoon", "age", "agree", "ahead", "aim", "alive", "allow", "almost", "alone", "already", "although", "among", "amount", "ancient",
    "anger", "angle", "angry", "animal", "announce", "annual", "anyone", "anything", "apart", "appear", "apple", "apply", "approach", "area",
    "argue", "arm", "army", "arrange", "arrive", "art", "article", "artist", "aside", "asleep", "attack", "attempt", "attend", "author",
    "average", "avoid", "award", "aware", "baby", "bad", "bag", "balance", "ball", "band", "bank", "bar", "base", "basic",
    "basket", "bath", "battle", "beach", "bear", "beat", "beautiful", "become", "bed", "beer", "behave", "behind", "believe", "bell",
    "belong", "belt", "bench", "bend", "benefit", "beside", "best", "better", "beyond", "bird", "birth", "bit", "bite", "black",
    "blame", "blind", "block", "blood", "blow", "blue", "board", "boat", "body", "bone", "book", "border", "born", "borrow",
    "boss", "bottle", "bottom", "bowl", "box", "brain", "branch", "brave", "bread", "break", "breakfast", "breath", "bridge", "brief",
    "bright", "bring", "broad", "brother", "brown", "brush", "build", "burn", "bus", "business", "busy", "butter", "button", "buy",
    "cake", "camera", "camp", "capital", "captain", "card", "care", "careful", "carry", "case", "cash", "cat", "catch", "cause",
    "cell", "center", "century", "certain", "chain", "chair", "chance", "chapter", "character", "charge", "cheap", "check", "cheese", "chest",
    "chicken", "chief", "child", "choice", "choose", "church", "circle", "citizen", "claim", "class", "clean", "clear", "climate", "climb",
    "clock", "cloth", "cloud", "club", "coach", "coal", "coast", "coat", "code", "coffee", "cold", "collect", "college", "color",
    "column", "combine", "comfort", "command", "common", "company", "compare", "complete", "computer", "concern", "condition", "connect", "consider", "contain",
    "content", "continue", "control", "cook", "cool", "copy", "corn", "corner", "correct", "cost", "cotton", "council", "count", "couple",
    "courage", "course", "court", "cousin", "cover", "cow", "create", "credit", "crime", "crop", "cross", "crowd", "cry", "culture",
    "cup", "current", "curve", "custom", "customer", "cut", "cycle", "daily", "damage", "dance", "danger", "dark", "data", "date",
    "daughter", "dead", "deal", "dear", "death", "debate", "decade", "decide", "deep", "deer", "defend", "degree", "deliver", "demand",
    "depend", "depth", "describe", "desert", "design", "desk", "detail", "develop", "device", "die", "difference", "difficult", "dig", "dinner",
    "direct", "dirt", "discover", "discuss", "disease", "dish", "distance", "divide", "doctor", "document", "dog", "dollar", "door", "double",
    "doubt", "dozen", "draw", "dream", "dress", "drink", "drive", "drop", "drug", "dry", "due", "dust", "duty", "ear",
    "early", "earn", "ease", "east", "easy", "eat", "edge", "education", "effect", "effort", "egg", "eight", "either", "electric",
    "element", "else", "emotion", "empty", "enemy", "energy", "engine", "enjoy", "enough", "enter", "entire", "equal", "error", "escape",
    "especially", "establish", "evening", "event", "ever", "everyone", "everything", "evidence", "exact", "examine", "except", "exchange", "excite", "exercise",
    "exist", "expect", "expense", "experience", "expert", "explain", "express", "extra", "face", "fact", "factor", "factory", "fail", "fair",
    "faith", "fall", "false", "familiar", "family", "famous", "fan", "far", "farm", "farmer", "fashion", "fast", "fat", "favor",
    "fear", "feature", "feed", "feel", "fellow", "female", "fence", "field", "fifteen", "fight", "figure", "fill", "film", "final",
    "fine", "finger", "finish", "fire", "firm", "fish", "fit", "five", "fix", "flag", "flat", "flight", "floor", "flow",
    "flower", "fly", "focus", "fold", "folk", "foot", "force", "foreign", "forest", "forget", "forgive", "fork", "formal", "former",
    "forward", "four", "frame", "free", "freedom", "fresh", "friend", "front", "fruit", "fuel", "full", "fun", "fund", "future",
    "gain", "game", "garden", "gas", "gate", "gather", "general", "gentle", "gift", "girl", "glad", "glass", "global", "goal",
    "goat", "gold", "golf", "gone", "government", "grade", "grain", "grand", "grant", "grass", "gray", "green", "ground", "growth",
    "guard", "guess", "guest", "guide", "gun", "guy", "habit", "hair", "half", "hall", "happen", "happy", "harm", "hat",
    "hate", "health", "hear", "heart", "heat", "heavy", "height", "hello", "herself", "hide", "hill", "himself", "hire", "history",
    "hit", "hold", "hole", "holiday", "honest", "honey", "honor", "hope", "horse", "hospital", "host", "hot", "hotel", "hour",
    "however", "huge", "human", "hundred", "hungry", "hunt", "hurry", "hurt", "husband", "ice", "idea", "ill", "image", "imagine",
    "impact", "improve", "inch", "include", "increase", "indeed", "industry", "inform", "inside", "instead", "interest", "invite", "iron", "island",
    "issue", "item", "itself", "job", "join", "joint", "joke", "journey", "joy", "judge", "juice", "jump", "justice", "key",
    "kick", "kid", "kill", "king", "kitchen", "knee", "knife", "knock", "labor", "lack", "lady", "lake", "lamp", "language",
    "laugh", "law", "lawyer", "lay", "lead", "leader", "leaf", "lean", "least", "leather", "leave", "leg", "legal", "lend",
    "length", "less", "lesson", "level", "library", "lie", "lift", "limit", "link", "lion", "lip", "list", "listen", "local",
    "lock", "logic", "lonely", "lose", "loss", "lost", "lot", "loud", "love", "low", "luck", "lunch", "machine", "magic",
    "mail", "main", "major", "male", "manage", "manner", "map", "march", "mark", "market", "marry", "mass", "master", "match",
    "material", "matter", "maybe", "meal", "measure", "meat", "media", "medical", "meet", "meeting", "member", "memory", "mental", "mention",
    "menu", "message", "metal", "method", "middle", "milk", "million", "mind", "mine", "minor", "minute", "mirror", "miss", "mistake",
    "mix", "model", "modern", "moment", "money", "month", "mood", "moon", "moral", "morning", "mountain", "mouse", "mouth", "movie",
    "museum", "music", "myself", "narrow", "nation", "native", "nature", "neck", "neighbor", "neither", "nerve", "network", "news", "nice",
    "nine", "nobody", "noise", "none", "noon", "normal", "north", "nose", "note", "nothing", "notice", "novel", "nurse", "object",
    "observe", "ocean", "offer", "office", "officer", "once", "onion", "onto", "opinion", "order", "ordinary", "origin", "others", "outside",
    "oven", "owner", "pack", "paint", "pair", "pale", "pan", "parent", "park", "particular", "partner", "party", "pass", "past",
    "path", "patient", "pattern", "pause", "pay", "peace", "pen", "pencil", "per", "perfect", "perform", "perhaps", "period", "permit",
    "person", "phone", "photo", "phrase", "physical", "piano", "pick", "piece", "pig", "pilot", "pink", "pipe", "pitch", "plain",
    "plan", "plane", "plastic", "plate", "please", "pleasure", "plenty", "pocket", "poem", "poet", "police", "policy", "polite", "pool",
    "poor", "popular", "position", "possible", "post", "pot", "potato", "pound", "pour", "power", "practice", "prepare", "present", "press",
    "pretty", "prevent", "price", "pride", "prince", "print", "prison", "private", "prize", "problem", "process", "produce", "product", "profit",
    "program", "project", "promise", "proof", "proper", "protect", "proud", "prove", "provide", "public", "pull", "pure", "purple", "purpose",
    "push", "quality", "quarter", "queen", "question", "quick", "quiet", "quite", "race", "radio", "rail", "rain", "raise", "range",
    "rapid", "rare", "rate", "rather", "raw", "reach", "react", "ready", "real", "reason", "receive", "recent", "record", "red",
    "reduce", "refuse", "region", "regular", "relate", "relax", "remain", "remember", "remind", "remove", "repair", "repeat", "reply", "report",
    "request", "require", "rescue", "rest", "result", "return", "rice", "rich", "ride", "ring", "rise", "risk", "road", "rock",
    "role", "roll", "roof", "room", "root", "rope", "rough", "round", "route", "row", "royal", "rule", "rush", "sad",
    "safe", "safety", "sail", "salad", "salt", "sand", "save", "scale", "scene", "science", "score", "screen", "search", "season",
    "seat", "second", "secret", "section", "seed", "sell", "send", "sense", "separate", "serious", "serve", "service", "seven", "several",
    "shade", "shake", "shall", "shape", "share", "sharp", "sheep", "sheet", "shelf", "shell", "shine", "ship", "shirt", "shock",
    "shoe", "shoot", "shop", "shore", "short", "shot", "shoulder", "shout", "shut", "sick", "sight", "sign", "signal", "silence",
    "silver", "similar", "simple", "since", "sing", "single", "sir", "sister", "sit", "six", "size", "skill", "skin", "sky",
    "sleep", "slice", "slight", "slip", "slow", "smart", "smell", "smile", "smoke", "smooth", "snake", "snow", "social", "soft",
    "soil", "soldier", "solid", "solve", "son", "song", "soon", "sorry", "sort", "soul", "soup", "source", "south", "space",
    "speak", "special", "speech", "speed", "spell", "spend", "spirit", "spite", "sport", "spot", "spread", "spring", "square", "stable",
    "staff", "stage", "stair", "stand", "standard", "star", "state", "station", "stay", "steady", "steal", "steam", "steel", "step",
    "stick", "stock", "stomach", "stone", "stop", "store", "storm", "strange", "stream", "street", "strength", "strike", "string", "strong",
    "student", "style", "subject", "succeed", "sudden", "sugar", "suggest", "suit", "summer", "sun", "supply", "support", "suppose", "sure",
    "surface", "surprise", "sweet", "swim", "system", "table", "tail", "talk", "tall", "task", "taste", "tax", "tea", "teach",
    "teacher", "team", "tear", "telephone", "television", "ten", "tennis", "term", "test", "text", "thank", "theater", "theory", "thick",
    "thin", "third", "thirty", "thousand", "thread", "threat", "throat", "throw", "ticket", "tie", "tight", "till", "tiny", "tip",
    "tired", "title", "today", "toe", "tomorrow", "tone", "tongue", "tonight", "tool", "tooth", "top", "topic", "total", "touch",
    "toward", "tower", "town", "toy", "track", "trade", "train", "travel", "treat", "trial", "trip", "trouble", "truck", "true",
    "trust", "truth", "tube", "tune", "twelve", "twenty", "twice", "type", "uncle", "understand", "uniform", "union", "unit", "unless",
    "upon", "upper", "urban", "useful", "usual", "valley", "value", "various", "version", "victory", "video", "view", "village", "visit",
    "visitor", "voice", "vote", "wage", "wait", "wake", "wall", "war", "warm", "warn", "wash", "waste", "watch", "wave",
    "weak", "wealth", "weapon", "wear", "weather", "wedding", "week", "weekend", "weight", "welcome", "west", "wet", "wheel", "whether",
    "whole", "whose", "wide", "wife", "wild", "win", "wind", "window", "wine", "wing", "winner", "winter", "wire", "wise",
    "wish", "within", "without", "woman", "wonder", "wood", "wooden", "worker", "worry", "worth", "wound", "wrap", "writer", "wrong",
    "yard", "yellow", "yes", "yesterday", "yet", "young", "yourself", "youth", "zero",
];

#[cfg(test)]
mod words_tests {
    use super::*;

    #[test]
    fn every_word_is_listed_once() {
        let distinct: std::collections::HashSet<&str> =
            WORDS.into_iter().chain(MORE_WORDS).collect();
        assert_eq!(distinct.len(), WORDS.len() + MORE_WORDS.len());
    }
}
