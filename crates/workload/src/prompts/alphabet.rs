//! Ids that prompts are drawn from: a tokenizer's, or numbers alone for those who send nothing.

use std::sync::Arc;

use crate::error::WorkloadError;
use crate::tokenizer::Tokenizer;

/// A vocabulary, with its words or without.
#[derive(Clone, Debug)]
pub(crate) enum Alphabet {
    Words(Arc<Tokenizer>),
    /// So many ids, of which the first few are special.
    Ids {
        size: u32,
        special: u32,
    },
}

const PREFIX: &str = "vocabulary:";
/// Beyond every tokenizer there is; each ordinary id is held in memory.
const SIZE_MAX: u32 = 1 << 22;

impl Alphabet {
    /// What `vocabulary:131072`, or `vocabulary:131072,1000` with special ids, means; `None` for
    /// the name of a tokenizer.
    pub(crate) fn without_words(name: &str) -> Result<Option<Self>, WorkloadError> {
        let Some(numbers) = name.strip_prefix(PREFIX) else { return Ok(None) };
        let (size, special) = numbers.split_once(',').unwrap_or((numbers, "0"));
        let read = |text: &str| text.trim().parse::<u32>().ok();
        match (read(size), read(special)) {
            (Some(size), _) if SIZE_MAX < size => {
                Err(WorkloadError::LargeVocabulary { name: name.to_owned(), bound: SIZE_MAX })
            }
            (Some(size), Some(special)) if special < size => Ok(Some(Self::Ids { size, special })),
            _ => Err(WorkloadError::BadVocabulary(name.to_owned())),
        }
    }

    pub(crate) fn size(&self) -> u32 {
        match self {
            Self::Words(tokenizer) => tokenizer.vocabulary_size(),
            Self::Ids { size, .. } => *size,
        }
    }

    /// The ids of ordinary tokens, in their order.
    pub(crate) fn ordinary(&self) -> Result<Vec<u32>, WorkloadError> {
        match self {
            Self::Ids { size, special } => Ok((*special..*size).collect()),
            Self::Words(tokenizer) => {
                let special = tokenizer.special_ids();
                let ids = (0..self.size()).filter(|id| !special.contains(id));
                let ids: Vec<u32> = ids.collect();
                if ids.is_empty() {
                    return Err(WorkloadError::NoVocabulary(tokenizer.facts().name));
                }
                Ok(ids)
            }
        }
    }

    /// Tokens that a server puts around a prompt by itself.
    pub(crate) fn around(&self) -> u32 {
        match self {
            Self::Words(tokenizer) => u32::try_from(tokenizer.special_tokens()).unwrap_or(u32::MAX),
            Self::Ids { .. } => 0,
        }
    }

    /// The text of ids, and the ids of that text; without words the ids stay as they are.
    pub(crate) fn spell(&self, ids: Vec<u32>) -> (String, Vec<u32>) {
        match self {
            Self::Words(tokenizer) => {
                let text = tokenizer.decode(&ids);
                let ids = tokenizer.encode(&text);
                (text, ids)
            }
            Self::Ids { .. } => (String::new(), ids),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vocabulary_is_a_number_and_perhaps_another() {
        let read = |name: &str| Alphabet::without_words(name);
        assert!(read("mistralai/Mistral-7B").unwrap().is_none());
        let plain = read("vocabulary:32000").unwrap().unwrap();
        assert_eq!((plain.size(), plain.ordinary().unwrap().len()), (32_000, 32_000));
        let special = read("vocabulary:131072,1000").unwrap().unwrap();
        assert_eq!(special.ordinary().unwrap().first(), Some(&1_000));
        for wrong in ["vocabulary:", "vocabulary:many", "vocabulary:0", "vocabulary:5,5"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("vocabulary:4194304").is_ok());
        for large in ["vocabulary:4194305", "vocabulary:4294967295,7"] {
            let refused = read(large).unwrap_err().to_string();
            assert!(refused.contains(large) && refused.contains("4194304"), "{refused}");
        }
    }
}
