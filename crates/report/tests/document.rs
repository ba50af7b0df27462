//! Documents as pages: whole, small, and harmless whatever the names in them are.

#![expect(clippy::wildcard_enum_match_arm, reason = "events of Markdown that are only words")]

use crate::samples;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use inferometer_report::document::{Block, Document, Lead, Section, html, markdown};
use pulldown_cmark::{Event, Options, Parser, Tag};
use samples::hostile::EVIL;
use sha2::{Digest, Sha256};

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let from = text.find(start).unwrap_or_else(|| panic!("no {start}")) + start.len();
    let length = text[from..].find(end).unwrap_or_else(|| panic!("no {end}"));
    &text[from..from + length]
}

/// The names of all elements that a page has.
fn elements(page: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric();
    let names = page.split('<').skip(1).map(|part| part.trim_start_matches(['/', '!']));
    names.map(|part| part.split(|c| !is_name(c)).next().unwrap_or("")).collect()
}

/// Faults: 56, 57.
#[test]
fn a_hostile_page_has_the_elements_of_a_tame_one() {
    let (style, script) = ("<style>", "<script>\"use strict\"");
    let body = |page: &str| {
        // Our own style and script are not the names' doing.
        let page = page.replace(between(page, style, "</style>"), "");
        page.replace(between(&page, script, "</script>"), "")
    };
    let tame = body(&html::render(&samples::rich()));
    let hostile = body(&html::render(&samples::hostile()));
    let strange: Vec<_> = elements(&hostile).difference(&elements(&tame)).copied().collect();
    assert_eq!(strange, Vec::<&str>::new());
    assert_eq!(hostile.matches("<script").count(), 2);
    assert!(!hostile.contains("<img"));
    assert!(!hostile.contains(['\u{202e}', '\u{1b}', '\0', '\u{ad}']));
}

/// Faults: 108.
#[test]
fn the_policy_names_the_style_and_the_script_of_the_page() {
    let page = html::render(&samples::hostile());
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    let hash = |text: &str| format!("&#39;sha256-{}&#39;", STANDARD.encode(Sha256::digest(text)));
    let style = hash(between(&page, "<style>", "</style>"));
    let script = hash(between(&page, "</footer><script>", "</script>"));
    assert_eq!(
        policy,
        format!(
            "default-src &#39;none&#39;; style-src {style}; script-src {script}; img-src data:; \
             base-uri &#39;none&#39;; form-action &#39;none&#39;"
        )
    );
    assert!(!page.contains(" style="), "the policy would refuse it");
}

#[test]
fn programs_read_the_header_of_both_pages() {
    let document = samples::hostile();
    let page = html::render(&document);
    let json = between(&page, "id=\"inferometer-report\">", "</script>");
    let header: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(header["Model"], EVIL);
    let page = markdown::render(&document).text;
    let lines: Vec<&str> = page.lines().take(document.header.len() + 2).collect();
    assert_eq!((lines[0], lines[lines.len() - 1]), ("<!--", "-->"));
    assert!(lines[2].starts_with("Model: "), "{}", lines[2]);
    assert!(!lines[2].contains("-->"));
}

#[test]
fn a_long_suite_stays_below_two_megabytes() {
    let document = samples::suite_sized();
    let page = html::render(&document);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("<figure").count(), 48);
    assert!(page.contains("data-tip"));
}

#[test]
fn a_page_that_would_be_too_large_gives_up_tooltips_and_no_table() {
    let mut document = samples::suite_sized();
    let more = samples::suite_sized().sections;
    document.sections.extend(more.into_iter().filter(|section| section.id.starts_with("more-")));
    let page = html::render(&document);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("<figure").count(), 88);
    let tables = |document: &Document| html::render(document).matches("<table").count();
    assert_eq!(tables(&document), tables(&samples::suite_sized()) + 40);
    assert!(page.contains("data-tip"), "small charts keep theirs");
}

#[test]
fn a_page_that_is_still_too_large_leaves_tables_of_charts_out_and_says_so() {
    let mut document = samples::suite_sized();
    let more: Vec<Section> = samples::suite_sized()
        .sections
        .into_iter()
        .filter(|section| section.id.starts_with("more-"))
        .collect();
    for _ in 0..3 {
        document.sections.extend(more.clone());
    }
    let page = html::render(&document);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert_eq!(page.matches("<figure").count(), 168);
    assert!(page.contains("The table of these numbers is left out"));
    assert!(page.contains("<svg"), "small charts stay");
}

/// What a reader of Markdown makes of a page.
fn events(text: &str) -> Vec<Event<'_>> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_GFM;
    Parser::new_ext(text, options).collect()
}

/// Faults: 57.
#[test]
fn hostile_names_are_words_of_markdown() {
    let page = markdown::render(&samples::hostile());
    let mut headings = 0;
    for event in events(&page.text) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => assert_ours(&html),
            Event::Start(Tag::Link { dest_url, .. }) => assert!(dest_url.starts_with('#')),
            Event::Start(Tag::Image { dest_url, .. }) => panic!("a picture of {dest_url}"),
            Event::Start(Tag::Heading { .. }) => headings += 1,
            _ => {}
        }
    }
    assert_eq!(headings, 3, "a name became a heading");
    assert!(!page.text.contains(['\u{202e}', '\u{1b}', '\0', '\u{ad}']));
    for (path, _) in &page.files {
        let name = path.strip_prefix("charts/").unwrap();
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c)), "{name}");
    }
}

/// HTML in Markdown is what the writer itself puts there.
fn assert_ours(html: &str) {
    let ours = [
        "!--", "a", "details", "summary", "picture", "source", "img", "sup", "/a", "/details",
        "/summary", "/picture", "/sup",
    ];
    for tag in html.split('<').skip(1) {
        let name = tag.split([' ', '>', '\n']).next().unwrap_or("");
        assert!(ours.contains(&name), "<{name} in {html}");
    }
    assert!(!html.contains("<img") || html.contains("src=\"charts/"), "{html}");
}

#[test]
fn tables_keep_their_cells_whatever_is_in_them() {
    let page = markdown::render(&samples::hostile()).text;
    let mut cells = Vec::new();
    for event in events(&page) {
        match event {
            Event::Start(Tag::TableRow | Tag::TableHead) => cells.push(0),
            Event::Start(Tag::TableCell) => *cells.last_mut().unwrap() += 1,
            _ => {}
        }
    }
    // The headline has three columns, the table two, and then comes that of the chart.
    assert_eq!(cells[..5], [3, 3, 2, 2, 2]);
}

#[test]
fn a_report_in_markdown() {
    let mut document = samples::rich();
    document.sections.retain(|section| section.id != "scenarios" && section.id != "scaling");
    insta::assert_snapshot!(markdown::render(&document).text);
}

#[test]
fn charts_of_markdown_are_files_in_both_colours() {
    let page = markdown::render(&samples::rich());
    assert_eq!(page.files.len(), 16);
    for (path, svg) in &page.files {
        assert!(page.text.contains(path.as_str()), "{path} is not shown");
        assert!(svg.starts_with("<svg") && !svg.contains("var(--"), "{path}");
    }
    let mermaid = between(&page.text, "```mermaid\n", "\n```");
    assert!(mermaid.starts_with("xychart-beta"));
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    assert_eq!(html::render(&samples::rich()), html::render(&samples::rich()));
    assert_eq!(markdown::render(&samples::rich()), markdown::render(&samples::rich()));
}

#[test]
fn an_empty_document_is_a_page() {
    let section = Section {
        id: "empty".to_owned(),
        title: "Empty".to_owned(),
        blocks: vec![Block::List(Vec::new())],
        sections: Vec::new(),
    };
    let document = Document {
        header: Vec::new(),
        title: "Nothing".to_owned(),
        lead: Lead::default(),
        sections: vec![section],
        footer: Vec::new(),
        ..Document::default()
    };
    assert!(html::render(&document).contains("<h1>Nothing</h1>"));
    assert!(markdown::render(&document).text.starts_with("# Nothing\n"));
}
