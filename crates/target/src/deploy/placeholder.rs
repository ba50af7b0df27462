//! Placeholders in commands: `{port}` for a value, `{{` for a brace.

use std::collections::BTreeMap;
use std::ffi::OsString;

use inferometer_model::Secret;

/// The value of a name; `None` when the name is not known.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    #[error("`{{{name}}}` is not a placeholder here{}; write `{{{{` for a brace", nearest.as_ref().map(|near| format!("; did you mean `{{{near}}}`?")).unwrap_or_default())]
    Unknown { name: String, nearest: Option<String> },
    #[error("a `{{` in `{0}` is not closed; write `{{{{` for a brace")]
    Open(String),
    #[error(
        "the value of `{{{0}}}` has characters that are special to the shell, and cannot be quoted here \
         (in backticks, in a command within double quotes, or in a command with `<<`); move it elsewhere"
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
    fill_pieces(text, known, lookup, None, false)
}

/// Fills placeholders while it is planned: what is known only at the start stays, and values mean themselves
/// then.
pub fn fill_planned(
    text: &str,
    known: &[&str],
    lookup: Lookup<'_>,
) -> Result<String, PlaceholderError> {
    let known: Vec<&str> = known.iter().copied().chain(AT_START).collect();
    fill_pieces(text, &known, lookup, None, true)
}

pub fn is_known_at_start(name: &str) -> bool {
    matches!(name, "port" | "name") || name.starts_with("env:")
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

/// The quotes around a position in a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Plain,
    Single,
    Double,
    Comment,
}

/// Reads a command as far as quotes go.
struct Reader {
    quoting: Quoting,
    is_escaped: bool,
    /// From here on it is not clear what a quote means: only values without special signs are let in.
    is_unclear: bool,
    before: char,
}

/// Fills a command for the shell: `{env:NAME}` becomes the variable itself, which must be in the
/// environment of the shell, so that its value is not visible in a list of processes.
pub fn fill_shell(
    text: &str,
    known: &[&str],
    lookup: Lookup<'_>,
) -> Result<String, PlaceholderError> {
    fill_pieces(text, known, lookup, Some(Reader::NEW), false)
}

/// Fills a command for the shell while it is planned: what is known only at the start stays.
pub fn fill_shell_planned(
    text: &str,
    known: &[&str],
    lookup: Lookup<'_>,
) -> Result<String, PlaceholderError> {
    let known: Vec<&str> = known.iter().copied().chain(AT_START).collect();
    fill_pieces(text, &known, lookup, Some(Reader::NEW), true)
}

/// One word for the shell, in quotes where it needs them.
pub fn shell_quoted(value: &str) -> String {
    if is_plain(value) { value.to_owned() } else { format!("'{}'", value.replace('\'', r"'\''")) }
}

/// Fills a text, quoted as the `reader` of a shell's command requires it. While a text is planned,
/// what is known only at the start stays, and values are escaped to mean themselves then.
fn fill_pieces(
    text: &str,
    known: &[&str],
    lookup: Lookup<'_>,
    mut reader: Option<Reader>,
    is_planned: bool,
) -> Result<String, PlaceholderError> {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text)? {
        let name = match piece {
            Piece::Name(name) => name,
            Piece::Text(_) | Piece::Brace => {
                let (read, written) = match piece {
                    Piece::Text(text) => (text, text),
                    Piece::Brace | Piece::Name(_) => ("{", if is_planned { "{{" } else { "{" }),
                };
                if let Some(reader) = &mut reader {
                    read.chars().for_each(|sign| reader.read(sign));
                }
                filled.push_str(written);
                continue;
            }
        };
        let variable = name.strip_prefix("env:").filter(|_| !is_planned);
        match (variable, &reader) {
            _ if is_planned && is_known_at_start(name) => filled.extend(["{", name, "}"]),
            (Some(variable), Some(reader)) if is_variable(variable) => {
                filled.push_str(&reader.variable(variable));
            }
            (Some(_), Some(_)) => return Err(unknown(name, known)),
            (_, reader) => {
                let value = lookup(name).ok_or_else(|| unknown(name, known))?;
                let quoted = reader.as_ref().map_or(Some(value.clone()), |it| it.quoted(&value));
                let quoted = quoted.ok_or_else(|| PlaceholderError::Unquotable(name.to_owned()))?;
                filled.push_str(&if is_planned { escaped(&quoted) } else { quoted });
            }
        }
        if let Some(reader) = &mut reader {
            (reader.before, reader.is_escaped) = ('x', false);
        }
    }
    Ok(filled)
}

impl Reader {
    const NEW: Self =
        Self { quoting: Quoting::Plain, is_escaped: false, is_unclear: false, before: '\n' };

    fn read(&mut self, sign: char) {
        let before = std::mem::replace(&mut self.before, sign);
        if std::mem::take(&mut self.is_escaped) {
            // What is escaped begins nothing.
            self.before = 'x';
            return;
        }
        match (self.quoting, sign) {
            (Quoting::Comment, '\n') | (Quoting::Single, '\'') | (Quoting::Double, '"') => {
                self.quoting = Quoting::Plain;
            }
            (Quoting::Plain | Quoting::Double, '\\') => self.is_escaped = true,
            (Quoting::Plain | Quoting::Double, '`') => self.is_unclear = true,
            (Quoting::Plain | Quoting::Double, '{') | (Quoting::Double, '(') if before == '$' => {
                self.is_unclear = true;
            }
            (Quoting::Plain, '<') if before == '<' => self.is_unclear = true,
            (Quoting::Plain, '"') => self.quoting = Quoting::Double,
            (Quoting::Plain, '\'') => {
                self.is_unclear |= before == '$';
                self.quoting = Quoting::Single;
            }
            (Quoting::Plain, '#') if before.is_whitespace() || ";&|()".contains(before) => {
                self.quoting = Quoting::Comment;
            }
            (Quoting::Plain | Quoting::Single | Quoting::Double | Quoting::Comment, _) => {}
        }
    }

    fn quoted(&self, value: &str) -> Option<String> {
        if is_plain(value) && !self.is_escaped {
            return Some(value.to_owned());
        }
        if self.is_unclear || self.is_escaped {
            return None;
        }
        match self.quoting {
            Quoting::Plain => Some(shell_quoted(value)),
            Quoting::Single => Some(value.replace('\'', r"'\''")),
            Quoting::Double => Some(value.chars().fold(String::new(), |mut text, sign| {
                if "\\\"$`".contains(sign) {
                    text.push('\\');
                }
                text.push(sign);
                text
            })),
            Quoting::Comment => None,
        }
    }

    fn variable(&self, name: &str) -> String {
        match self.quoting {
            Quoting::Plain if !self.is_unclear => format!("\"${{{name}}}\""),
            Quoting::Single if !self.is_unclear => format!("'\"${{{name}}}\"'"),
            Quoting::Plain | Quoting::Single | Quoting::Double | Quoting::Comment => {
                format!("${{{name}}}")
            }
        }
    }
}

fn is_plain(value: &str) -> bool {
    !value.is_empty()
        && value.chars().all(|sign| sign.is_ascii_alphanumeric() || "_./:=@%+,-".contains(sign))
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
}

#[derive(Debug)]
pub(super) struct AtStart {
    pub(super) port: u16,
    pub(super) name: String,
    pub(super) ours: BTreeMap<String, OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FillError {
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
    #[error("`{{env:{0}}}` names a variable that is not set here; set {0} before you start")]
    NotSet(String),
}

impl AtStart {
    pub(super) fn fill(&self, text: &str) -> Result<String, FillError> {
        self.check(text)?;
        Ok(fill(text, &AT_START, &|name| self.value(name))?)
    }

    /// For the shell, which finds the variables in its environment.
    pub(super) fn fill_shell(&self, text: &str) -> Result<String, FillError> {
        self.check(text)?;
        Ok(fill_shell(text, &AT_START, &|name| self.value(name))?)
    }

    /// As it may be shown: without the values of variables.
    pub(super) fn redact(&self, text: &str) -> String {
        let shown = |name: &str| match name.strip_prefix("env:") {
            Some(_) => Some(format!("{{{name}}}")),
            None => self.value(name),
        };
        fill(text, &AT_START, &shown).unwrap_or_else(|_| text.to_owned())
    }

    /// The values of variables that a text names.
    pub(super) fn keys(&self, text: &str) -> Vec<Secret> {
        let names = names(text).unwrap_or_default();
        let variables = names.iter().filter(|name| name.starts_with("env:"));
        variables.filter_map(|name| self.value(name)).map(Secret::new).collect()
    }

    fn check(&self, text: &str) -> Result<(), FillError> {
        for name in names(text)? {
            if let Some(variable) = name.strip_prefix("env:")
                && !self.ours.contains_key(variable)
            {
                return Err(FillError::NotSet(variable.to_owned()));
            }
        }
        Ok(())
    }

    fn value(&self, name: &str) -> Option<String> {
        match name {
            "port" => Some(self.port.to_string()),
            "name" => Some(self.name.clone()),
            _ => {
                let variable = name.strip_prefix("env:")?;
                self.ours.get(variable).map(|value| value.to_string_lossy().into_owned())
            }
        }
    }
}

#[cfg(test)]
mod placeholder_tests {
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

#[cfg(test)]
mod shell_tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn with(template: &str, value: &str) -> Result<String, PlaceholderError> {
        fill_shell(template, &["x"], &|name| (name == "x").then(|| value.to_owned()))
    }

    fn spoken(command: &str) -> String {
        let output =
            Command::new("sh").args(["-c", command]).env("KEY", "a  'b\" $(echo c)").output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }

    /// However it is quoted, the shell prints the value and runs nothing of it.
    const PLACES: [&str; 5] = [
        "printf %s {x}",
        "printf %s \"{x}\"",
        "printf %s '{x}'",
        "printf %s \"\"'it'\\''s'{x} | cut -c 5-",
        "# don't\nprintf %s $(printf %s '{x}' | cat; : \\\")",
    ];

    #[test]
    fn hostile_values_mean_themselves() {
        for value in
            ["a b", "$(echo no)", "`echo no`", "';echo no;'", "\";echo no;\"", "*", "a\\", "-n"]
        {
            for place in &PLACES[..3] {
                assert_eq!(spoken(&with(place, value).unwrap()), value, "{place}");
            }
            assert_eq!(spoken(&with(PLACES[3], value).unwrap()).trim_end(), value);
        }
        assert_eq!(
            spoken(&with("printf %s \"$(printf %s {x})\"", "plain/1.5").unwrap()),
            "plain/1.5"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_value_comes_back_from_the_shell(value in "[ -~]{1,20}") {
            for place in &PLACES[..3] {
                let place = place.replace("%s", "%s.");
                prop_assert_eq!(spoken(&with(&place, &value).unwrap()), format!("{value}."));
            }
        }
    }

    #[test]
    fn what_cannot_be_quoted_is_refused() {
        for template in [
            "echo `cat {x}`",
            "echo \"$(cat {x})\"",
            "cat <<END\n{x}\nEND",
            "echo # {x}",
            "echo \"${A:-{x}}\"",
            "echo $'{x}'",
            "echo \\{x}",
        ] {
            let refused = with(template, "a; b");
            assert_eq!(refused, Err(PlaceholderError::Unquotable("x".to_owned())), "{template}");
        }
        assert!(matches!(with("{y}", ""), Err(PlaceholderError::Unknown { .. })));
    }

    #[test]
    fn keys_stay_in_the_environment() {
        for template in ["printf %s {env:KEY}", "printf %s \"{env:KEY}\"", "printf %s '{env:KEY}'"]
        {
            let command = with(template, "").unwrap();
            assert!(command.contains("${KEY}"), "{command}");
            assert_eq!(spoken(&command), "a  'b\" $(echo c)");
        }
        assert!(with("{env:a-b}", "").is_err());
    }

    #[test]
    fn a_planned_value_is_still_itself_when_the_rest_is_filled_in() {
        let planned = fill_shell_planned("printf %s/%s {x} {port}", &["x"], &|name| {
            (name == "x").then(|| "a {port} 'b".to_owned())
        });
        let command = fill_shell(&planned.unwrap(), &AT_START, &|name| {
            (name == "port").then(|| "8123".to_owned())
        });
        assert_eq!(spoken(&command.unwrap()), "a {port} 'b/8123");
    }
}
