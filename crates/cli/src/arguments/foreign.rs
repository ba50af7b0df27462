//! Commands of other tools, translated: the table `foreign.toml`, and what a table cannot say.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;
use inferometer_model::endpoint::Api;
use inferometer_model::spec::{Grammar, number};
use serde::Deserialize;
use serde_json::Value;

use super::Arguments;
use crate::bench;
use crate::failure::Failure;
use crate::output::shell_word;

#[derive(Deserialize)]
struct Table {
    tools: Vec<Tool>,
}

/// Another tool that measures servers.
#[derive(Deserialize)]
pub(crate) struct Tool {
    name: String,
    programs: Vec<String>,
    #[serde(default)]
    commands: Vec<String>,
    /// Its commands that measure no server, with what to do instead; an empty one stands for all others.
    #[serde(default)]
    others: BTreeMap<String, String>,
    /// Our command that has the same flags.
    same: Option<String>,
    /// Its flags that take all words up to the next flag.
    #[serde(default)]
    lists: Vec<String>,
    #[serde(default)]
    defaults: Vec<DefaultFlag>,
    #[serde(default)]
    flags: BTreeMap<String, String>,
}

/// What the other tool does where none of these flags of ours is set.
#[derive(Deserialize)]
struct DefaultFlag {
    without: Vec<String>,
    add: String,
}

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let table: Table =
        toml::from_str(include_str!("foreign.toml")).expect("a test reads the embedded table");
    table.tools
});

/// Words that may stand before the program.
const LAUNCHERS: [&str; 5] = ["python", "python3", "-m", "uv", "uvx"];

/// The failure of a command line that begins with another tool's program: what it would be here.
pub(crate) fn translate(typed: &[String]) -> Option<Failure> {
    let launched = typed.iter().take_while(|word| LAUNCHERS.contains(&word.as_str())).count();
    let (program, words) = typed.get(launched..)?.split_first()?;
    let program = Path::new(program).file_name()?.to_str()?;
    let tool = TOOLS.iter().find(|tool| tool.programs.iter().any(|it| it == program))?;
    let begins = |command: &str| {
        let own: Vec<&str> = command.split_whitespace().collect();
        words.len() >= own.len() && words.iter().zip(&own).all(|(word, own)| word == own)
    };
    let message = format!("`{program}` is a program of its own, not a command of inferometer");
    if let Some((_, instead)) = tool.others.iter().rev().find(|(command, _)| begins(command)) {
        return Some(Failure::usage(message).hint(instead.clone()));
    }
    let Some(command) = tool.commands.iter().find(|command| begins(command)) else {
        return Some(Failure::usage(message).hint(format!(
            "paste a whole measurement, such as `inferometer {program} {} …`, to see it translated",
            tool.commands.first().map_or("", String::as_str)
        )));
    };
    let words = &words[command.split_whitespace().count()..];
    let translation = match &tool.same {
        Some(same) => {
            let ours = if command.contains("sweep") { "bench sweep serve" } else { same };
            let groups = words.chunk_by(|_, word| !is_flag(word)).map(|it| Word::Same(it.to_vec()));
            let words = groups.collect();
            Translation { command: ours.to_owned(), words, ..Translation::default() }
        }
        None => tool.translation(words),
    };
    let translation = translation.accepted();
    let notes = translation.notes.iter().map(|note| format!("  {note}")).collect();
    Some(Failure::usage(message).shown(notes).hint(format!("write: {translation}")))
}

/// What a flag of other tools is called by a command that `has` these flags.
pub(crate) fn flag_hint(flag: &str, has: impl Fn(&str) -> bool) -> Option<String> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for tool in TOOLS.iter() {
        let Some(template) = tool.template(flag) else { continue };
        let meaning = match (template.strip_prefix('!'), template.split(' ').next()) {
            (Some(instead), _) => {
                let is_here = |word: &str| has(word.trim_end_matches([',', ';', ':']));
                let mut named = instead.split(' ').filter(|word| word.starts_with("--")).peekable();
                let is_named = named.peek().is_none() || named.any(is_here);
                (has("--requests") && is_named).then(|| instead.trim().to_owned())
            }
            (None, Some("")) => has("--requests").then(|| "not needed here".to_owned()),
            (None, Some("{url}")) => has("--url").then(|| "the URL, behind the command".to_owned()),
            (None, own) => own.filter(|own| has(own)).map(|_| with_value_names(template)),
        };
        let Some(meaning) = meaning else { continue };
        match found.iter_mut().find(|(known, _)| *known == meaning) {
            Some((_, tools)) => tools.push(&tool.name),
            None => found.push((meaning, vec![&tool.name])),
        }
    }
    let hint = |(meaning, tools): &(String, Vec<&str>)| {
        format!("`{flag}` ({}): {meaning}", tools.join(", "))
    };
    (!found.is_empty()).then(|| found.iter().map(hint).collect::<Vec<_>>().join("\n      "))
}

/// All flags with their translations, as a page of the documentation has them.
#[cfg(test)]
pub(crate) fn document() -> String {
    use std::fmt::Write as _;

    let mut page = String::new();
    for tool in TOOLS.iter().filter(|tool| !tool.flags.is_empty()) {
        let _ = writeln!(page, "\n## {}\n\n| there | here |\n|---|---|", tool.name);
        for (names, template) in &tool.flags {
            let names = names.split_whitespace().map(|name| format!("`{name}`"));
            let here = match template.strip_prefix('!') {
                Some(instead) => format!("– {}", instead.trim().replace('|', "\\|")),
                None if template.is_empty() => "not needed".to_owned(),
                None if template == "{url}" => "the URL behind the command".to_owned(),
                None => format!("`{}`", with_value_names(template)),
            };
            let _ = writeln!(page, "| {} | {here} |", names.collect::<Vec<_>>().join(", "));
        }
    }
    page
}

fn with_value_names(template: &str) -> String {
    template.replace("{time}", "TIME").replace("{ms}", "TIME").replace("{}", "VALUE")
}

/// A part of a translated command: a flag of ours with its value, or words that are the same in both.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    Flag(String, Option<String>),
    Same(Vec<String>),
}

impl Word {
    fn typed(&self) -> Vec<&str> {
        match self {
            Self::Flag(flag, value) => [flag].into_iter().chain(value).map(|it| &**it).collect(),
            Self::Same(words) => words.iter().map(String::as_str).collect(),
        }
    }
}

/// The command of ours, and what it leaves out.
#[derive(Debug, Default)]
struct Translation {
    command: String,
    url: Option<String>,
    words: Vec<Word>,
    notes: Vec<String>,
}

impl std::fmt::Display for Translation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "inferometer {}", self.command)?;
        let words = self.url.as_deref().into_iter();
        let mut words = words.chain(self.words.iter().flat_map(Word::typed));
        words.try_for_each(|word| {
            write!(f, " {}", shell_word(word).unwrap_or_else(|| word.to_owned()))
        })
    }
}

impl Translation {
    /// Several values of one flag are noted once.
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn has(&self, name: &str) -> bool {
        self.words.iter().any(|word| matches!(word, Word::Flag(flag, _) if flag == name))
    }

    /// Leaves out what our own parser refuses, and says so: what is printed can be typed.
    fn accepted(mut self) -> Self {
        for word in std::mem::take(&mut self.words) {
            self.words.push(word);
            let typed = ["inferometer"].into_iter().chain(self.command.split(' '));
            let typed = typed.chain(self.words.iter().flat_map(Word::typed)).map(OsString::from);
            let Err(error) = Arguments::try_parse_from(bench::with_dashes(typed)) else { continue };
            if error.kind() != ErrorKind::MissingRequiredArgument
                && let Some(word) = self.words.pop()
            {
                let why = error.to_string();
                let why = why.lines().next().unwrap_or_default().trim_start_matches("error: ");
                self.notes.push(format!("{} is left out: {why}", word.typed().join(" ")));
            }
        }
        self
    }

    /// Adds what a template makes of a value; `None` where it needs one and there is none.
    fn add(&mut self, template: &str, value: Option<&str>) -> Option<()> {
        let Some((flag, form)) = template.split_once(' ') else {
            match template {
                "" => {}
                "{url}" if self.url.is_some() => {
                    self.notes.push(
                        "one server is measured; several are: sweep --target NAME=URL".to_owned(),
                    );
                }
                "{url}" => self.url = Some(with_scheme(value?)),
                switch => self.words.push(Word::Flag(switch.to_owned(), None)),
            }
            return Some(());
        };
        let value = match form {
            "{time}" if value.is_some_and(is_bare_number) => format!("{}s", value?),
            "{ms}" => format!("{}ms", value?),
            "{}" if flag == "--metrics-url" => with_scheme(value?),
            "{}" | "{time}" => value?.to_owned(),
            fixed => fixed.to_owned(),
        };
        self.words.push(Word::Flag(flag.to_owned(), Some(value)));
        Some(())
    }

    fn rename(&mut self, from: &str, to: &str) {
        for word in &mut self.words {
            if let Word::Flag(flag, _) = word
                && flag == from
            {
                to.clone_into(flag);
            }
        }
    }

    fn value(&mut self, name: &str) -> Option<&mut String> {
        self.words.iter_mut().find_map(|word| match word {
            Word::Flag(flag, value) if flag == name => value.as_mut(),
            Word::Flag(..) | Word::Same(_) => None,
        })
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let value = self.value(name)?.clone();
        self.words.retain(|word| !matches!(word, Word::Flag(flag, _) if flag == name));
        Some(value)
    }

    /// A list of loads is a sweep, and users beside a rate are the most of it in flight.
    fn set_levels(&mut self) {
        for (one, many) in [("--concurrency", "--concurrencies"), ("--rate", "--rates")] {
            if self.value(one).is_some_and(|value| value.contains(',')) {
                "sweep".clone_into(&mut self.command);
                self.rename(one, many);
            }
        }
        if !self.has("--rate") && !self.has("--rates") {
            return;
        }
        self.rename("--concurrency", "--max-concurrency");
        if let Some(caps) = self.take("--concurrencies") {
            let note = "with a rate, each number of users is a run of its own: --max-concurrency";
            self.notes.push(format!("{caps} is left out: {note}"));
            if self.has("--rate") {
                "run".clone_into(&mut self.command);
            }
        }
        if let Some(time) = self.take("--ramp-up") {
            let note = "a rate that grows is --ramp FROM..TO:TIME";
            self.notes.push(format!("a growth over {time} is left out: {note}"));
        }
    }
}

fn is_bare_number(value: &str) -> bool {
    number(value).is_some() && value.ends_with(|c: char| c.is_ascii_digit())
}

fn with_scheme(url: &str) -> String {
    if url.contains("://") { url.to_owned() } else { format!("http://{url}") }
}

fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && number(word).is_none()
}

impl Tool {
    fn template(&self, flag: &str) -> Option<&str> {
        let is_named = |names: &&String| names.split_whitespace().any(|name| name == flag);
        self.flags.iter().find(|(names, _)| is_named(names)).map(|(_, template)| template.as_str())
    }

    /// The flags with their values, and the other words behind an empty flag.
    fn read(&self, words: &[String]) -> Vec<(String, Option<String>)> {
        let (mut read, mut words) = (Vec::new(), words.iter().peekable());
        while let Some(word) = words.next() {
            if !is_flag(word) {
                read.push((String::new(), Some(word.clone())));
                continue;
            }
            // `--flag=value`, and `-c50` of what is known by one letter.
            let attached = match word.split_once('=') {
                Some((flag, value)) => Some((flag, value)),
                None if !word.starts_with("--") && word.is_char_boundary(2) => {
                    let (flag, value) = word.split_at(2);
                    let is_short = !value.is_empty() && self.template(word).is_none();
                    self.template(flag).filter(|_| is_short).map(|_| (flag, value))
                }
                None => None,
            };
            if let Some((flag, value)) = attached {
                read.push((flag.to_owned(), Some(value.to_owned())));
                continue;
            }
            let template = self.template(word).unwrap_or_default();
            // A flag that is not translated may have a value; a URL is none.
            let may_have =
                template.contains('{') || template.is_empty() || template.starts_with('!');
            let is_value = |next: &&String| {
                let is_url = next.contains("://") && !next.starts_with("kind=");
                !is_flag(next) && (template.contains('{') || !is_url)
            };
            let value = words.next_if(|next| may_have && is_value(next)).cloned();
            read.push((word.clone(), value));
            while self.lists.contains(word)
                && let Some(value) = words.next_if(|next| !is_flag(next))
            {
                read.push((word.clone(), Some(value.clone())));
            }
        }
        read
    }

    fn translation(&self, words: &[String]) -> Translation {
        let mut ours = Translation { command: "run".to_owned(), ..Translation::default() };
        let mut read = self.read(words);
        if self.name == "GuideLLM" {
            read = expand_kinds(read);
            guidellm_load(&mut read, &mut ours);
        }
        if self.name == "k6" {
            k6_stages(&mut read, &mut ours);
        }
        for (flag, value) in &read {
            let value = value.as_deref();
            if flag.is_empty() {
                match value {
                    Some(url) if url.contains("://") => ours.url = Some(url.to_owned()),
                    Some(word) => ours.note(format!("`{word}` is not read here")),
                    None => {}
                }
                continue;
            }
            let note = match self.template(flag) {
                None => format!("{flag} has no known equivalent"),
                Some(template) => match template.strip_prefix('!') {
                    Some(instead) => format!("{flag} is left out: {}", instead.trim()),
                    None if ours.add(template, value).is_some() => continue,
                    None => format!("{flag} has no value"),
                },
            };
            ours.note(note);
        }
        let is_trace = |(flag, value): &(String, Option<String>)| {
            let kind = value.as_deref().filter(|_| flag == "--custom-dataset-type");
            flag == "--fixed-schedule" || kind.is_some_and(|kind| kind.ends_with("trace"))
        };
        if read.iter().any(is_trace) {
            ours.rename("--dataset", "--trace");
        }
        self.complete(&mut ours);
        ours
    }

    /// Adds what the tool does by default, and removes what cannot be combined here.
    fn complete(&self, ours: &mut Translation) {
        for DefaultFlag { without, add } in &self.defaults {
            if !without.iter().any(|flag| ours.has(flag)) {
                let (flag, value) =
                    add.split_once(' ').map_or((&**add, None), |(f, v)| (f, Some(v)));
                ours.words.push(Word::Flag(flag.to_owned(), value.map(str::to_owned)));
            }
        }
        // Streams are the default here.
        ours.words.retain(|word| *word != Word::Flag("--stream".to_owned(), None));
        // It has nothing to skip without TLS, and is refused here.
        if ours.url.as_ref().is_some_and(|url| url.starts_with("http://")) {
            ours.words.retain(|word| *word != Word::Flag("--insecure".to_owned(), None));
        }
        // The prefix comes before the input there, and is a part of it here.
        let prefix = ours.value("--prefix-tokens").and_then(|it| it.parse::<u32>().ok());
        if let (Some(prefix), Some(input)) = (prefix, ours.value("--input-tokens"))
            && let Ok(own) = input.parse::<u32>()
        {
            *input = own.saturating_add(prefix).to_string();
        }
        // A list of lengths is a sweep there, and a mix of lengths here.
        for flag in ["--input-tokens", "--output-tokens"] {
            if ours.value(flag).is_some_and(|value| value.contains(',') && !value.contains(':'))
                && let Some(lengths) = ours.take(flag)
            {
                ours.notes.push(format!("{flag} {lengths} is left out: each is a run of its own"));
            }
        }
        ours.set_levels();
        if let Some(api) = ours.take("--api") {
            match Api::read(&api) {
                Ok(_) => ours.words.insert(0, Word::Flag("--api".to_owned(), Some(api))),
                Err(why) => ours.notes.push(format!("--api: {why}")),
            }
        }
        ours.url.get_or_insert_with(|| "URL".to_owned());
    }
}

/// Newer versions of `GuideLLM` write `--profile kind=concurrent,streams=4`.
fn expand_kinds(read: Vec<(String, Option<String>)>) -> Vec<(String, Option<String>)> {
    let mut all = Vec::new();
    for (flag, value) in read {
        let Some(pairs) = value.as_deref().filter(|value| value.starts_with("kind=")) else {
            all.push((flag, value));
            continue;
        };
        let pairs: Vec<(&str, &str)> =
            pairs.split(',').filter_map(|it| it.split_once('=')).collect();
        let kind = pairs.first().map_or("", |(_, kind)| kind);
        for (key, value) in pairs {
            let name = match (flag.as_str(), key, kind) {
                ("--profile", "kind", _) => "--profile",
                ("--profile", "rate" | "streams", _) => "--rate",
                ("--backend", "target", _) => "--target",
                ("--backend", "model", _) => "--model",
                ("--constraint", "count", "max_requests" | "max_number") => "--max-requests",
                ("--constraint", "seconds" | "duration", _) => "--max-seconds",
                ("--tokenizer", "model", _) => "--processor",
                ("--data", "path", _) => "--data",
                ("--data" | "--backend" | "--constraint" | "--tokenizer", "kind", _) => continue,
                _ => {
                    all.push((format!("{flag} {key}"), Some(value.to_owned())));
                    continue;
                }
            };
            all.push((name.to_owned(), Some(value.to_owned())));
        }
    }
    all
}

/// The kind of load, its rates, and the lengths of synthetic data.
fn guidellm_load(read: &mut Vec<(String, Option<String>)>, ours: &mut Translation) {
    let mut take = |names: &[&str]| {
        let mut taken = Vec::new();
        read.retain_mut(|(flag, value)| {
            let is_it = names.contains(&flag.as_str());
            taken.extend(value.take_if(|_| is_it));
            !is_it
        });
        taken
    };
    let profile = take(&["--profile", "--rate-type"]).pop().unwrap_or_else(|| "sweep".to_owned());
    let mut rates = take(&["--rate"]).join(",");
    // `--override profile.streams 1,2,4`
    if let [key, values, ..] = &take(&["--override"])[..]
        && key.starts_with("profile.")
    {
        rates.clone_from(values);
    }
    for data in take(&["--data"]) {
        for (key, value) in data_pairs(&data).unwrap_or_else(|| vec![("path".to_owned(), data)]) {
            let flag = match key.as_str() {
                "prompt_tokens" => "--input-tokens",
                "output_tokens" => "--output-tokens",
                "path" => "--dataset",
                _ => {
                    ours.notes.push(format!("--data {key} has no known equivalent"));
                    continue;
                }
            };
            ours.words.push(Word::Flag(flag.to_owned(), Some(value)));
        }
    }
    let level = if profile == "concurrent" { "--concurrency" } else { "--rate" };
    let mut add = |flag: &str, value: &str| {
        ours.words.push(Word::Flag(flag.to_owned(), Some(value.to_owned())));
    };
    match profile.as_str() {
        "synchronous" => add("--concurrency", "1"),
        "throughput" => add("--rate", "inf"),
        "concurrent" | "constant" | "poisson" | "async" if !rates.is_empty() => {
            if profile == "constant" {
                add("--arrivals", "constant");
            }
            add(level, &rates);
        }
        "sweep" => "sweep".clone_into(&mut ours.command),
        other => ours.notes.push(format!("--profile {other} has no known equivalent")),
    }
}

/// Virtual users that grow to a level and stay there, or several levels.
fn k6_stages(read: &mut Vec<(String, Option<String>)>, ours: &mut Translation) {
    let mut given = Vec::new();
    let mut users = None;
    read.retain(|(flag, value)| {
        let is_stage = matches!(flag.as_str(), "--stage" | "-s");
        if matches!(flag.as_str(), "--vus" | "-u") {
            users.clone_from(value);
        }
        let stages = value.iter().flat_map(|it| it.split(',')).filter(|_| is_stage);
        given.extend(stages.filter_map(|stage| {
            let (time, target) = stage.split_once(':')?;
            Some((Duration::read(time).ok()?, target.to_owned()))
        }));
        !is_stage
    });
    let Some(first_with_users) = given.iter().position(|(_, users)| users != "0") else {
        if !given.is_empty() {
            ours.note("stages without users have no equivalent".to_owned());
        }
        return;
    };
    let first: Duration = given[..=first_with_users].iter().map(|(time, _)| *time).sum();
    read.retain(|(flag, _)| !matches!(flag.as_str(), "--vus" | "-u" | "--duration" | "-d"));
    let total: Duration = given.iter().map(|(time, _)| *time).sum();
    let longest = given.iter().map(|(time, _)| *time).max().unwrap_or_default();
    let kept = given.iter().rposition(|(_, users)| users != "0").map_or(0, |last| last + 1);
    let down: Duration = given.drain(kept..).map(|(time, _)| time).sum();
    if !down.is_zero() {
        ours.note("the users that leave in the end are left out".to_owned());
    }
    let mut add = |flag: &str, value: String| {
        ours.words.push(Word::Flag(flag.to_owned(), Some(value)));
    };
    let mut levels: Vec<String> = given.into_iter().map(|(_, users)| users).collect();
    levels.retain(|users| users != "0");
    levels.dedup();
    let steady = total.saturating_sub(down);
    let (levels, duration) = match &levels[..] {
        [level] => (level.clone(), steady),
        _ => (levels.join(","), longest),
    };
    add("--concurrency", levels.clone());
    if levels.contains(',') {
        ours.note("stages are levels of a sweep here, without the way between them".to_owned());
    } else if first < steady && users.as_ref() != Some(&levels) {
        add("--ramp-up", first.write());
    } else if users.as_ref() != Some(&levels) {
        ours.note("users that grow to the end have no equivalent: all begin at once".to_owned());
    }
    ours.words.push(Word::Flag("--duration".to_owned(), Some(duration.write())));
}

/// Synthetic data as JSON or as `key=value,…`; `None` of a file.
fn data_pairs(data: &str) -> Option<Vec<(String, String)>> {
    if let Ok(Value::Object(pairs)) = serde_json::from_str(data) {
        return Some(pairs.into_iter().map(|(key, value)| (key, value.to_string())).collect());
    }
    let pair = |pair: &str| pair.split_once('=').map(|(key, value)| (key.into(), value.into()));
    data.split(',').map(pair).collect()
}

#[cfg(test)]
mod tests;
