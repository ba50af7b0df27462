//! The head of the page: what it is for programs, and what it is allowed to do.

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::markup::Markup;
use crate::document::Document;

const STYLE: &str = include_str!("page.css");
pub(super) const SCRIPT: &str = include_str!("page.js");

pub(super) fn write(page: &mut Markup, document: &Document, style: &str) {
    page.void("meta", &[("charset", "utf-8")]);
    let policy = policy(style, SCRIPT);
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
    page.style(style);
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
pub(super) fn style() -> String {
    let mut css = String::new();
    let dark = variables(DARK);
    let _ = write!(
        css,
        ":root{{{}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n\
         @media screen{{:root[data-theme=dark]{{{dark}}}}}\n{STYLE}",
        variables(LIGHT)
    );
    css
}

fn variables(values: &[(&str, &str)]) -> String {
    let lines: Vec<String> = values.iter().map(|(name, value)| format!("{name}:{value}")).collect();
    lines.join(";")
}

const LIGHT: &[(&str, &str)] = &[
    ("--ink", "#1b2430"),
    ("--ink-soft", "#55606e"),
    ("--grid", "#e3e7ec"),
    ("--frame", "#c2c9d2"),
    ("--surface", "#ffffff"),
    ("--good", "#00734f"),
    ("--bad", "#b3261e"),
    ("--doubt", "#8a5300"),
    ("--series-1", "#0072b2"),
    ("--series-2", "#d55e00"),
];

const DARK: &[(&str, &str)] = &[
    ("--ink", "#e7ebf0"),
    ("--ink-soft", "#a3aebb"),
    ("--grid", "#2b333d"),
    ("--frame", "#46505c"),
    ("--surface", "#161b22"),
    ("--good", "#4cc49a"),
    ("--bad", "#ff8a7f"),
    ("--doubt", "#f0b45a"),
    ("--series-1", "#56b4e9"),
    ("--series-2", "#ff9a4d"),
];
