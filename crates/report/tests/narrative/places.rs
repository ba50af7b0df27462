//! Where the numbers of sentences stand on the pages.

use std::fmt::Write;

use inferometer_report::document::{Block, Document, Section, Span};
use inferometer_report::narrative::Narrative;

use crate::narrative::reading::{all, words};

/// A part of a page that a link can lead to, with all the words that stand in it.
struct Place {
    id: String,
    words: String,
}

/// Every link of a narrative leads to a place of the page where its number stands.
pub(crate) fn check(narrative: &Narrative, page: &Document) {
    let mut places = Vec::new();
    for section in &page.sections {
        walk(section, &mut places);
    }
    for sentence in all(narrative) {
        for span in &sentence.text {
            let Span::Link { text, to } = span else { continue };
            let place = places.iter().find(|place| place.id == *to);
            let place = place.unwrap_or_else(|| panic!("no {to}: {}", words(&sentence.text)));
            let number = text.split(' ').next().unwrap();
            let mut printed = place.words.split_whitespace();
            assert!(
                printed.any(|word| word == number),
                "{number} is not in {to}: {}\n{}",
                words(&sentence.text),
                place.words
            );
        }
    }
}

fn walk(section: &Section, places: &mut Vec<Place>) {
    let mut own = Place { id: section.id.clone(), words: String::new() };
    for block in &section.blocks {
        read(block, &mut own.words, places);
    }
    places.push(own);
    for inner in &section.sections {
        walk(inner, places);
    }
}

fn read(block: &Block, own: &mut String, places: &mut Vec<Place>) {
    match block {
        Block::Paragraph(text) => {
            own.push_str(&words(text));
            own.push('\n');
        }
        Block::List(texts) => {
            for text in texts {
                own.push_str(&words(text));
                own.push('\n');
            }
        }
        Block::Facts(facts) => {
            for (key, text) in facts {
                writeln!(own, "{key} {}", words(text)).unwrap();
            }
        }
        Block::Table(table) => {
            let rows = table.rows.iter().map(|row| {
                let cells = row.iter().map(|cell| {
                    format!("{} {}", cell.text, cell.detail.as_deref().unwrap_or_default())
                });
                cells.collect::<Vec<_>>().join(" | ")
            });
            let words = rows.collect::<Vec<_>>().join("\n");
            own.push_str(&words);
            places.push(Place { id: table.id.clone(), words });
        }
        Block::Verdict(badge) => {
            for text in [&badge.text].into_iter().chain(&badge.points) {
                writeln!(own, "{}", words(text)).unwrap();
            }
        }
        Block::Details { blocks, .. } => {
            for inner in blocks {
                read(inner, own, places);
            }
        }
        Block::Figure(_) | Block::Code { .. } | Block::Notice { .. } => {}
    }
}
