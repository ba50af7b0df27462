//! Placeholders in commands for the shell: a value means itself there, whatever signs it has.

use super::placeholder::{
    AT_START, Lookup, Piece, PlaceholderError, escaped, is_known_at_start, pieces, unknown,
};

/// What comes in the place of a placeholder.
enum Insert {
    Value(String),
    /// A variable that the shell finds in its environment, so that nobody reads its value in a list
    /// of processes.
    Variable(String),
    /// It stays, to be filled in later.
    Later,
}

/// Where a place lies in a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Plain,
    Single,
    Double,
    Comment,
}

/// Reads a command as far as quotes go.
struct Reader {
    place: Place,
    is_escaped: bool,
    /// From here on it is not clear what a quote means: only values without special signs are let in.
    is_unclear: bool,
    before: char,
}

/// `{env:NAME}` becomes the variable itself, which must be in the environment of the shell.
pub fn fill_shell(
    text: &str,
    known: &[&str],
    lookup: Lookup<'_>,
) -> Result<String, PlaceholderError> {
    let insert = |name: &str| match name.strip_prefix("env:") {
        Some(variable) if is_variable(variable) => Some(Insert::Variable(variable.to_owned())),
        Some(_) => None,
        None => lookup(name).map(Insert::Value),
    };
    filled(text, known, &insert, false)
}

/// The same while it is planned: what is known only at the start stays.
pub fn fill_shell_planned(
    text: &str,
    known: &[&str],
    lookup: Lookup<'_>,
) -> Result<String, PlaceholderError> {
    let insert = |name: &str| {
        if is_known_at_start(name) { Some(Insert::Later) } else { lookup(name).map(Insert::Value) }
    };
    let known: Vec<&str> = known.iter().copied().chain(AT_START).collect();
    filled(text, &known, &insert, true)
}

/// One word for the shell, in quotes where it needs them.
pub fn shell_quoted(value: &str) -> String {
    if is_plain(value) { value.to_owned() } else { format!("'{}'", value.replace('\'', r"'\''")) }
}

fn filled(
    text: &str,
    known: &[&str],
    insert: &dyn Fn(&str) -> Option<Insert>,
    is_planned: bool,
) -> Result<String, PlaceholderError> {
    let mut reader =
        Reader { place: Place::Plain, is_escaped: false, is_unclear: false, before: '\n' };
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text)? {
        match piece {
            Piece::Text(text) => {
                text.chars().for_each(|sign| reader.read(sign));
                filled.push_str(text);
            }
            Piece::Brace => {
                reader.read('{');
                filled.push_str(if is_planned { "{{" } else { "{" });
            }
            Piece::Name(name) => {
                let inserted = match insert(name).ok_or_else(|| unknown(name, known))? {
                    Insert::Later => format!("{{{name}}}"),
                    Insert::Variable(variable) => reader.variable(&variable),
                    Insert::Value(value) => {
                        let quoted = reader
                            .quoted(&value)
                            .ok_or_else(|| PlaceholderError::Unquotable(name.to_owned()))?;
                        if is_planned { escaped(&quoted) } else { quoted }
                    }
                };
                filled.push_str(&inserted);
                (reader.before, reader.is_escaped) = ('x', false);
            }
        }
    }
    Ok(filled)
}

impl Reader {
    fn read(&mut self, sign: char) {
        let before = std::mem::replace(&mut self.before, sign);
        if std::mem::take(&mut self.is_escaped) {
            // What is escaped begins nothing.
            self.before = 'x';
            return;
        }
        match (self.place, sign) {
            (Place::Comment, '\n') | (Place::Single, '\'') | (Place::Double, '"') => {
                self.place = Place::Plain;
            }
            (Place::Plain | Place::Double, '\\') => self.is_escaped = true,
            (Place::Plain | Place::Double, '`') => self.is_unclear = true,
            (Place::Plain | Place::Double, '{') | (Place::Double, '(') if before == '$' => {
                self.is_unclear = true;
            }
            (Place::Plain, '<') if before == '<' => self.is_unclear = true,
            (Place::Plain, '"') => self.place = Place::Double,
            (Place::Plain, '\'') => {
                self.is_unclear |= before == '$';
                self.place = Place::Single;
            }
            (Place::Plain, '#') if before.is_whitespace() || ";&|()".contains(before) => {
                self.place = Place::Comment;
            }
            (Place::Plain | Place::Single | Place::Double | Place::Comment, _) => {}
        }
    }

    fn quoted(&self, value: &str) -> Option<String> {
        if is_plain(value) && !self.is_escaped {
            return Some(value.to_owned());
        }
        if self.is_unclear || self.is_escaped {
            return None;
        }
        match self.place {
            Place::Plain => Some(shell_quoted(value)),
            Place::Single => Some(value.replace('\'', r"'\''")),
            Place::Double => Some(value.chars().fold(String::new(), |mut text, sign| {
                if "\\\"$`".contains(sign) {
                    text.push('\\');
                }
                text.push(sign);
                text
            })),
            Place::Comment => None,
        }
    }

    fn variable(&self, name: &str) -> String {
        match self.place {
            Place::Plain if !self.is_unclear => format!("\"${{{name}}}\""),
            Place::Single if !self.is_unclear => format!("'\"${{{name}}}\"'"),
            Place::Plain | Place::Single | Place::Double | Place::Comment => {
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

#[cfg(test)]
mod tests {
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
