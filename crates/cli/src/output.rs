//! The only place that writes to the terminal: results to standard output, talk to standard error.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{PoisonError, RwLock};

use inferometer_model::Redactor;
use inferometer_report::escape;
use inferometer_store::RunStore;

use crate::arguments::hints;
use crate::failure::{Failure, Result};
use crate::terminal;

/// As the path of a file to write, this stands for standard output.
pub(crate) const STDOUT: &str = "-";

/// What is struck out of everything that is printed.
static SECRETS: RwLock<Option<Redactor>> = RwLock::new(None);

/// From now on, secrets of this redactor are not printed.
pub(crate) fn hide(secrets: &Redactor) {
    let mut known = SECRETS.write().unwrap_or_else(PoisonError::into_inner);
    *known = Some(known.take().unwrap_or_default().merge(secrets));
}

/// The store, which does not keep them either.
pub(crate) fn hiding(store: RunStore) -> RunStore {
    let known = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.as_ref() { store.hiding(known) } else { store }
}

/// The text as it may be printed.
fn hidden(redact: fn(&Redactor, &str) -> String, text: &str) -> String {
    let known = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
    known.as_ref().map_or_else(|| text.to_owned(), |known| redact(known, text))
}

/// The command that was typed, as a shell reads it, without the secrets that are known by now.
pub(crate) fn command_line() -> String {
    let words = std::env::args().skip(1);
    let quoted = words.map(|word| shell_word(&word).unwrap_or_else(|| String::from("'…'")));
    let line =
        std::iter::once("inferometer".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ");
    hidden(Redactor::redact, &line)
}

/// A word of a command, in quotes where a POSIX shell would not pass it on unchanged. `None` for a
/// word with a zero byte, which no shell can pass on.
pub(crate) fn shell_word(word: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ",._-/:=@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Some(word.to_owned());
    }
    shlex::try_quote(word).ok().map(std::borrow::Cow::into_owned)
}

/// A result. A reader that left early (`| head`) is not our failure: the run is saved.
pub(crate) fn result(text: &str) -> Result<ExitCode> {
    terminal::flush();
    let mut stdout = std::io::stdout().lock();
    let text = hidden(Redactor::redact_document, text);
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::internal(format!("the result could not be written: {error}")))
        }
        Ok(()) | Err(_) => Ok(ExitCode::SUCCESS),
    }
}

/// A result that is a JSON document.
pub(crate) fn json(document: &serde_json::Value) -> Result<ExitCode> {
    result(&format!("{document:#}\n"))
}

/// A result that is the path of what was written.
pub(crate) fn path(path: &Path) -> Result<ExitCode> {
    result(&format!("{}\n", path.display()))
}

/// Everything that is not a result, behind what events reported before.
pub(crate) fn talk(line: &str) {
    terminal::flush();
    write_line(line);
}

/// The same, but nothing if it is to be quiet.
pub(crate) fn talk_unless(quiet: bool) -> impl Fn(&str) + Copy {
    move |line: &str| {
        if !quiet {
            talk(line);
        }
    }
}

/// A line for standard error.
pub(crate) fn write_line(line: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = writeln!(stderr, "{}", hidden(Redactor::redact, line));
}

/// Shows the help, or what is wrong with the arguments, and exits as clap does; but a message that
/// repeats a secret is printed without it.
pub(crate) fn refuse_arguments(error: &clap::Error, typed: &[String]) -> ExitCode {
    if let Some(failure) = hints::explain(error, typed) {
        return report(&failure);
    }
    let text = error.render().to_string();
    if hidden(Redactor::redact, &text) == text {
        error.exit();
    }
    talk(text.trim_end());
    crate::failure::Exit::Usage.into()
}

/// Prints a failure to standard error and returns the code to exit with.
pub(crate) fn report(failure: &Failure) -> ExitCode {
    // An interruption needs no explanation.
    if failure.is_interruption() {
        return failure.exit.into();
    }
    // The message may quote a server: its control characters must not reach the terminal.
    talk(&format!("error: {}", escape::terminal(failure.message())));
    for line in &failure.shown {
        talk(&escape::terminal(line));
    }
    if let Some(hint) = &failure.hint {
        talk(&format!("hint: {}", escape::terminal(hint)));
    }
    failure.exit.into()
}

/// Whether to colour what is written there: on a terminal, unless colours are disabled.
pub(crate) fn is_coloured(stream: &impl IsTerminal) -> bool {
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    stream.is_terminal() && !no_colour && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_change_is_quoted() {
        for plain in ["2,4,8", "ttft.p99=5%", "http://h:8000/v1", "a_b-c+d@e", "--rates", "-1"] {
            assert_eq!(shell_word(plain).as_deref(), Some(plain));
        }
        for word in [
            "",
            "a b",
            "ttft<500ms",
            "$HOME",
            "~",
            "a*",
            "it's",
            "a;b",
            "1..2\n",
            "{a,b}",
            "ü",
            "#",
            "!",
        ] {
            let quoted = shell_word(word).unwrap_or_default();
            assert!(quoted.starts_with(['\'', '"']), "{word}: {quoted}");
            assert_eq!(shlex::split(&quoted), Some(vec![word.to_owned()]), "{quoted}");
        }
        assert_eq!(shell_word("a\0b"), None);
    }
}
