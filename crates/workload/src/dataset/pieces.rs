//! A folder of texts, cut into prompts of the asked lengths.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use inferometer_model::Prompt;
use inferometer_model::observations::FileFacts;
use inferometer_model::spec::{DatasetKind, INPUT_TOKENS, Lengths};
use serde_json::Map;
use sha2::{Digest, Sha256};

use super::collect::whole;
use super::{Dataset, DatasetError, FileBounds, Item, kind_name};
use crate::counter::Counter;
use crate::data_file::{DataFile, DataFileError, hex, name_of};
use crate::lengths::Draw;
use crate::plan::Stream;

const DEPTH_MAX: usize = 16;
const FILES_MAX: u64 = 100_000;
/// The pieces are part of the data, and not of a run: they do not depend on its seed.
const PIECES_SEED: u64 = 0;
/// Text that is looked at for each token that is asked for: no language needs more.
const BYTES_PER_TOKEN_MAX: usize = 64;

pub(super) fn read(
    folder: &Path,
    input: Option<&Lengths>,
    counter: &dyn Counter,
    bounds: FileBounds,
) -> Result<Dataset, DatasetError> {
    let mut files = Vec::new();
    find(folder, folder, DEPTH_MAX, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(DatasetError::NoTexts(folder.to_path_buf()));
    }
    let lengths = Draw::new(input.unwrap_or(&Lengths::Fixed(INPUT_TOKENS)));
    let count = |text: &str| counter.prompt(&Prompt::Text(text.to_owned())).unwrap_or(0);
    let mut cutter = Cutter::new(folder, lengths, &count, bounds.items);
    let mut hash = Sha256::new();
    let mut bytes_left = bounds.bytes;
    for name in &files {
        let mut file = DataFile::open(&folder.join(name), bytes_left)?;
        let before = cutter.text.len();
        file.read_to_string(&mut cutter.text).map_err(|error| file.failed(error))?;
        bytes_left = bytes_left.saturating_sub((cutter.text.len() - before) as u64);
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update(file.finish()?);
        // The end of a file is the end of a paragraph.
        cutter.text.push_str("\n\n");
        cutter.cut(Ending::MoreComes)?;
    }
    cutter.cut(Ending::Last)?;
    let (items, dropped) = cutter.finish()?;
    let facts = FileFacts {
        name: name_of(folder),
        kind: kind_name(DatasetKind::Directory).to_owned(),
        sha256: hex(&hash.finalize()),
        items: items.len() as u64,
        dropped,
    };
    Ok(Dataset { items, facts, notes: Vec::new() })
}

/// The names of texts below a folder, with `/` on every system. Links to folders are not followed.
fn find(
    root: &Path,
    folder: &Path,
    depth_left: usize,
    files: &mut Vec<String>,
) -> Result<(), DatasetError> {
    let unreadable = |source| DataFileError::Unreadable { path: folder.to_path_buf(), source };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        if entry.file_type().map_err(unreadable)?.is_dir() {
            if 0 < depth_left {
                find(root, &path, depth_left - 1, files)?;
            }
            continue;
        }
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        if extension == "txt" || extension == "md" {
            files.push(relative(root, &path));
        }
        if FILES_MAX < files.len() as u64 {
            let path = root.to_path_buf();
            return Err(DataFileError::TooMany { path, bound: FILES_MAX, what: "texts" }.into());
        }
    }
    Ok(())
}

fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let names = below.components().map(|name| name.as_os_str().to_string_lossy());
    names.collect::<Vec<_>>().join("/")
}

/// The tokens of a text as a whole prompt.
type Count<'c> = &'c dyn Fn(&str) -> usize;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    MoreComes,
    Last,
}

struct Cutter<'c> {
    folder: PathBuf,
    lengths: Draw,
    count: Count<'c>,
    /// What surrounds a piece and a word of it: nothing is shorter.
    least: usize,
    items_max: u64,
    /// What has been read and not been cut.
    text: String,
    items: Vec<Item>,
    /// A last piece that may be too short, because the text ended.
    remainder: Option<Item>,
}

impl<'c> Cutter<'c> {
    fn new(folder: &Path, lengths: Draw, count: Count<'c>, items_max: u64) -> Self {
        let (folder, text) = (folder.to_path_buf(), String::new());
        let least = count("a");
        Self { folder, lengths, count, least, items_max, text, items: Vec::new(), remainder: None }
    }

    fn cut(&mut self, ending: Ending) -> Result<(), DataFileError> {
        let mut at = 0;
        loop {
            at += self.text[at..].len() - self.text[at..].trim_start().len();
            let rest = &self.text[at..];
            let number = self.items.len() as u64;
            let tokens = self.lengths.draw(&mut Stream::new(PIECES_SEED, "pieces", number));
            let tokens = (tokens as usize).max(self.least);
            let reach = tokens.saturating_mul(BYTES_PER_TOKEN_MAX);
            if rest.is_empty() || (ending == Ending::MoreComes && rest.len() < reach) {
                break;
            }
            let (piece, counted) = longest(rest, tokens, self.count);
            let is_short = piece.len() == rest.trim_end().len() && counted < tokens;
            let item = Item {
                prompt: Prompt::Text(piece.to_owned()),
                input_tokens: whole(counted),
                output_tokens: None,
                fields: Map::new(),
            };
            at += piece.len();
            if is_short && ending == Ending::Last {
                self.remainder = Some(item);
                continue;
            }
            if self.items_max <= number {
                let (path, bound) = (self.folder.clone(), self.items_max);
                return Err(DataFileError::TooMany { path, bound, what: "pieces" });
            }
            self.items.push(item);
        }
        self.text.drain(..at);
        Ok(())
    }

    /// The last piece counts only when there is no other: it is as short as the text made it.
    fn finish(mut self) -> Result<(Vec<Item>, BTreeMap<String, u64>), DataFileError> {
        let mut dropped = BTreeMap::new();
        match self.remainder {
            Some(item) if self.items.is_empty() => self.items.push(item),
            Some(_) => {
                dropped.insert("last piece, shorter than asked".to_owned(), 1);
            }
            None if self.items.is_empty() => {
                return Err(DataFileError::Empty { path: self.folder });
            }
            None => {}
        }
        Ok((self.items, dropped))
    }
}

/// The longest beginning of a text, in whole words, that has at most so many tokens, and how many
/// it has. A word that is too long by itself is cut between its characters.
fn longest<'t>(text: &'t str, tokens: usize, count: Count<'_>) -> (&'t str, usize) {
    let reach = text.floor_char_boundary(tokens.saturating_mul(BYTES_PER_TOKEN_MAX));
    let near = &text[..reach];
    let words = ends_of_words(near, tokens.saturating_add(1));
    if let Some(found) = last_within(near, &words, tokens, count) {
        return found;
    }
    let word = words.first().map_or(near, |end| &near[..*end]);
    let characters: Vec<usize> =
        word.char_indices().map(|(at, character)| at + character.len_utf8()).collect();
    last_within(near, &characters, tokens, count).unwrap_or_else(|| {
        // A single character of several tokens: there is nothing shorter.
        let piece = &near[..characters.first().copied().unwrap_or(near.len())];
        (piece, count(piece))
    })
}

fn ends_of_words(text: &str, words_max: usize) -> Vec<usize> {
    let words = text.split_whitespace().take(words_max);
    let start = text.as_ptr() as usize;
    words.map(|word| word.as_ptr() as usize - start + word.len()).collect()
}

/// The last of the ends up to which there are at most so many tokens. Counts grow about evenly
/// along a text, so a straight line finds it in a few steps; halves do when it is crooked.
fn last_within<'t>(
    text: &'t str,
    ends: &[usize],
    tokens: usize,
    count: Count<'_>,
) -> Option<(&'t str, usize)> {
    let count = |place: usize| count(&text[..ends[place]]);
    let mut over = (ends.len().checked_sub(1)?, 0);
    over.1 = count(over.0);
    if over.1 <= tokens {
        return Some((&text[..ends[over.0]], over.1));
    }
    // Nothing at all is within, one place before the first.
    let mut within: Option<(usize, usize)> = None;
    for step in 0.. {
        let (from, before) = within.map_or((0, 0), |(place, before)| (place + 1, before));
        if from == over.0 {
            break;
        }
        let width = over.0 - from;
        let share = width * (tokens - before) / (over.1 - before);
        let middle = from + if step < 6 { share.min(width - 1) } else { width / 2 };
        let found = count(middle);
        if found <= tokens {
            within = Some((middle, found));
        } else {
            over = (middle, found);
        }
    }
    within.map(|(place, found)| (&text[..ends[place]], found))
}
