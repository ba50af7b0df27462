//! The head of the page: what it is for programs, and what it is allowed to do.

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::markup::Markup;
use crate::chart::{Theme, palette};
use crate::document::Document;

const STYLE: &str = include_str!("page.css");
pub(super) const SCRIPT: &str = include_str!("page.js");

pub(super) fn write(page: &mut Markup, document: &Document) {
    let style = style();
    page.void("meta", &[("charset", "utf-8")]);
    let policy = policy(&style, SCRIPT);
    page.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &*policy)]);
    page.void("meta", &[("name", "referrer"), ("content", "no-referrer")]);
    page.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    page.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    let generator = concat!("Inferometer ", env!("CARGO_PKG_VERSION"));
    page.void("meta", &[("name", "generator"), ("content", generator)]);
    // Nobody is asked for an icon.
    page.void("link", &[("rel", "icon"), ("href", "data:,")]);
    page.element("title", &[], |page| page.text(&document.title));
    page.json("inferometer-report", &json(&document.header));
    page.style(&style);
}

/// Nothing may be loaded, and of scripts and styles only our own two may act.
fn policy(style: &str, script: &str) -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; img-src data:; base-uri 'none'; \
         form-action 'none'",
        hash(style),
        hash(script)
    )
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// The header in its order.
fn json(header: &[(String, String)]) -> String {
    let pairs: Vec<String> =
        header.iter().map(|(key, value)| format!("{}:{}", quoted(key), quoted(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The colours of both themes, then the page's own rules. Paper is always light.
fn style() -> String {
    let mut css = String::new();
    let dark = variables(Theme::Dark);
    let _ = write!(
        css,
        ":root{{{}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         @media screen{{:root[data-theme=dark]{{{dark}}}}}\n{STYLE}",
        variables(Theme::Light)
    );
    css
}

fn variables(theme: Theme) -> String {
    let own = PAGE.iter().map(|(name, light, dark)| match theme {
        Theme::Light | Theme::Page | Theme::Site => (*name, *light),
        Theme::Dark => (*name, *dark),
    });
    let lines: Vec<String> = palette::variables(theme)
        .into_iter()
        .chain(own)
        .map(|(name, value)| format!("{name}:{value}"))
        .collect();
    lines.join(";")
}

/// What a page has beside what its charts have: its name, then its value on light and dark ground.
const PAGE: [(&str, &str, &str); 8] = [
    ("--ground", "#f5f6f8", "#0d1117"),
    ("--tint", "#eef1f5", "#1f2630"),
    ("--edge", "#b9c1cb", "#4a5462"),
    ("--link", "#005f9e", "#6bb8f0"),
    ("--good-tint", "#e3f4ee", "#12291f"),
    ("--note-tint", "#e5f0f9", "#142536"),
    ("--doubt-tint", "#fbf0dc", "#2c2311"),
    ("--bad-tint", "#fbe9e7", "#331a18"),
];
