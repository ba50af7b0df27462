//! Placeholders in commands: `{port}` for a value, `{{` for a brace.

/// What stands for a name; `None` when the name is not known.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    #[error("`{{{name}}}` is not a placeholder here{}; write `{{{{` for a brace", nearest.as_ref().map(|near| format!("; did you mean `{{{near}}}`?")).unwrap_or_default())]
    Unknown { name: String, nearest: Option<String> },
    #[error("a `{{` in `{0}` is not closed; write `{{{{` for a brace")]
    Open(String),
    #[error(
        "the value of `{{{0}}}` has signs with a meaning for the shell, and stands where they cannot be quoted \
         (in backticks, in a command within double quotes, or in a command with `<<`); put it elsewhere"
    )]
    Unquotable(String),
}

/// Known when a server is started, and so left alone before.
pub const AT_START: [&str; 3] = ["port", "name", "env:NAME"];

/// A piece of a template.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Brace,
    Name(&'a str),
}

/// The text with its placeholders filled in. `known` is for the error that names the nearest.
pub fn fill(text: &str, known: &[&str], lookup: Lookup<'_>) -> Result<String, PlaceholderError> {
    filled(text, known, &|name| lookup(name), "{")
}

/// The same while it is planned: what is known only at the start stays, and values mean themselves
/// then.
pub fn fill_planned(
    text: &str,
    known: &[&str],
    lookup: Lookup<'_>,
) -> Result<String, PlaceholderError> {
    let value = |name: &str| {
        if is_known_at_start(name) {
            Some(format!("{{{name}}}"))
        } else {
            lookup(name).map(|value| escaped(&value))
        }
    };
    let known: Vec<&str> = known.iter().copied().chain(AT_START).collect();
    filled(text, &known, &value, "{{")
}

/// Each word by itself: a value is never split into several words.
pub fn fill_words(
    words: &[String],
    known: &[&str],
    lookup: Lookup<'_>,
) -> Result<Vec<String>, PlaceholderError> {
    words.iter().map(|word| fill(word, known, lookup)).collect()
}

pub fn is_known_at_start(name: &str) -> bool {
    matches!(name, "port" | "name") || name.starts_with("env:")
}

fn filled(
    text: &str,
    known: &[&str],
    value: Lookup<'_>,
    brace: &str,
) -> Result<String, PlaceholderError> {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text)? {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Brace => filled.push_str(brace),
            Piece::Name(name) => filled.push_str(&value(name).ok_or_else(|| unknown(name, known))?),
        }
    }
    Ok(filled)
}

/// The names in a text, in their order.
pub fn names(text: &str) -> Result<Vec<String>, PlaceholderError> {
    let name = |piece: Piece<'_>| match piece {
        Piece::Name(name) => Some(name.to_owned()),
        Piece::Text(_) | Piece::Brace => None,
    };
    Ok(pieces(text)?.into_iter().filter_map(name).collect())
}

/// A text that means itself when it is filled in later.
pub fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace("${{", "${")
}

/// Only `{` and a name and `}` is a placeholder: JSON in an argument is left as it is, and so are the
/// variables of a shell, `${NAME}`.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, PlaceholderError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        if before.ends_with('$') {
            pieces.push(Piece::Text(&rest[..=at]));
            rest = &from[1..];
            continue;
        }
        pieces.push(Piece::Text(before));
        if let Some(after) = from.strip_prefix("{{") {
            pieces.push(Piece::Brace);
            rest = after;
        } else {
            let name = from[1..].split(['{', '}']).next().unwrap_or_default();
            let is_closed = from[1 + name.len()..].starts_with('}');
            if is_name(name) && is_closed {
                pieces.push(Piece::Name(name));
                rest = &from[name.len() + 2..];
            } else if is_name(name) {
                return Err(PlaceholderError::Open(text.chars().take(80).collect()));
            } else {
                pieces.push(Piece::Brace);
                rest = &from[1..];
            }
        }
    }
    pieces.push(Piece::Text(rest));
    Ok(pieces)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|sign| sign.is_ascii_alphanumeric() || "_-:.".contains(sign))
}

pub(super) fn unknown(name: &str, known: &[&str]) -> PlaceholderError {
    let distance = |other: &&&str| strsim::damerau_levenshtein(name, other);
    let nearest = known.iter().min_by_key(distance).filter(|near| distance(near) <= 3);
    PlaceholderError::Unknown {
        name: name.to_owned(),
        nearest: nearest.map(|near| (*near).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_start(text: &str) -> Result<String, PlaceholderError> {
        fill(text, &AT_START, &|name| match name {
            "port" => Some("8123".to_owned()),
            "name" => Some("it".to_owned()),
            _ => None,
        })
    }

    #[test]
    fn placeholders_are_filled_and_other_braces_left() {
        assert_eq!(at_start("--port={port} {name}").unwrap(), "--port=8123 it");
        assert_eq!(at_start("{{port}").unwrap(), "{port}");
        let json = r#"{"a": {"b": [1, {}]}}"#;
        assert_eq!(at_start(json).unwrap(), json);
        assert_eq!(at_start("{{{{.Id}}").unwrap(), "{{.Id}}");
        assert_eq!(at_start("${HOME}/{port}").unwrap(), "${HOME}/8123");
        assert_eq!(names("{a} {{b} {env:C}").unwrap(), ["a", "env:C"]);
    }

    #[test]
    fn a_wrong_name_is_told_with_the_nearest() {
        let error = at_start("{prot}").unwrap_err().to_string();
        assert!(error.contains("`{prot}`") && error.contains("did you mean `{port}`?"), "{error}");
        let error = at_start("{something-else}").unwrap_err().to_string();
        assert!(!error.contains("did you mean"), "{error}");
        assert!(matches!(at_start("{port --x"), Ok(text) if text == "{port --x"));
        assert_eq!(at_start("{port"), Err(PlaceholderError::Open("{port".to_owned())));
    }

    #[test]
    fn a_planned_value_means_itself_at_the_start() {
        let planned = fill_planned("{model} {port} {{x} ${y}", &["model"], &|name| {
            (name == "model").then(|| "a{port}b${z}${{".to_owned())
        });
        let planned = planned.unwrap();
        assert_eq!(at_start(&planned).unwrap(), "a{port}b${z}${{ 8123 {x} ${y}");
        let unknown = fill_planned("{prot}", &["model"], &|_| None).unwrap_err().to_string();
        assert!(unknown.contains("{port}"), "{unknown}");
    }
}
