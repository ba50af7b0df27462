//! What a text states above its results: the cap, the rate, the progress bar, headings, and the
//! commands of the server and of the client.

use inferometer_analysis::tool_result::ToolResult;

use super::block::{is_setting, labelled, place};
use super::field::{Field, Written};
use crate::import::mapping::shown;

/// Limit for a server's command, which may be wrapped over lines.
const COMMAND_BYTES_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Above {
    /// Stated since the last block, for the next one.
    settings: Vec<(u32, String, Field, Written)>,
    /// The total of the last progress bar.
    planned: Option<u64>,
    /// From the last command that names one: several blocks may follow it.
    model: Option<String>,
    tokenizer: Option<String>,
    backend: Option<String>,
    tensor_parallel: Option<u32>,
    heading: String,
    server: String,
    speaker: Option<Speaker>,
    /// Inside of a block of code, where `#` begins a comment and not a heading.
    is_fenced: bool,
}

/// Whose command the lines are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Speaker {
    is_server: bool,
    is_comment: bool,
}

impl Above {
    pub(crate) fn read(&mut self, line: u32, text: &str) {
        if let Some((label, field, value)) =
            labelled(text).filter(|(_, field, _)| is_setting(field))
        {
            self.settings.retain(|(_, _, stated, _)| *stated != field);
            self.settings.extend(value.map(|value| (line, label.to_owned(), field, value)));
        }
        self.planned = progress_total(text).or(self.planned);
        self.listen(text);
    }

    /// To a block below all this. What was stated for one run does not apply to the next.
    pub(crate) fn tell(&mut self, result: &mut ToolResult) {
        result.model.clone_from(&self.model);
        result.tokenizer.clone_from(&self.tokenizer);
        result.backend.clone_from(&self.backend);
        result.requests_planned = self.planned.take();
        self.place(result);
        for (line, label, field, value) in self.settings.drain(..) {
            place(result, line, &label, field, &value);
        }
    }

    /// The heading and command above a result: two lines, for its configuration to be
    /// found from.
    pub(crate) fn place(&self, result: &mut ToolResult) {
        result.tensor_parallel = result.tensor_parallel.or(self.tensor_parallel);
        if !self.heading.is_empty() || !self.server.is_empty() {
            result.configuration = format!("{}\n{}", self.heading, self.server);
        }
    }

    fn listen(&mut self, text: &str) {
        if text.starts_with("```") {
            self.is_fenced = !self.is_fenced;
            self.speaker = None;
            return;
        }
        let words = text.trim_start_matches('#').trim();
        let is_comment = text.starts_with('#');
        if let Some(is_server) = begins_command(words, is_comment) {
            self.begin(is_server);
            self.speaker = Some(Speaker { is_server, is_comment });
        } else if text.is_empty()
            || self.speaker.is_none_or(|stated| stated.is_comment != is_comment)
        {
            self.speaker = None;
            if is_comment && !self.is_fenced && is_heading(text) {
                self.heading = shown(words);
            }
        }
        match self.speaker {
            Some(Speaker { is_server: true, .. }) => self.hear_server(words),
            Some(_) => self.hear_client(words),
            None => self.model = model_named(words).or_else(|| self.model.take()),
        }
    }

    fn begin(&mut self, is_server: bool) {
        if is_server {
            self.server.clear();
            self.tensor_parallel = None;
        } else {
            self.tokenizer = None;
            self.backend = None;
        }
    }

    fn hear_server(&mut self, words: &str) {
        let room = COMMAND_BYTES_MAX.saturating_sub(self.server.len());
        self.server.extend(words.chars().filter(|c| !c.is_control()).take(room / 4));
        self.server.push(' ');
        let gpus = value_of(words, &["-tp", "--tp", "--tp-size", "--tensor-parallel-size"]);
        let gpus = gpus.and_then(|gpus| gpus.parse().ok()).filter(|gpus| 0 < *gpus);
        self.tensor_parallel = gpus.or(self.tensor_parallel);
        self.model = model_named(words).or_else(|| self.model.take());
    }

    fn hear_client(&mut self, words: &str) {
        self.model = model_named(words).or_else(|| self.model.take());
        let stated = |flag: &str, argument: &str| {
            value_of(words, &[flag]).or_else(|| argument_of(words, argument)).map(shown)
        };
        self.tokenizer = stated("--tokenizer", "tokenizer").or_else(|| self.tokenizer.take());
        self.backend = stated("--backend", "backend").or_else(|| self.backend.take());
    }
}

/// Whether a command of the server (`true`) or of the client begins here.
fn begins_command(words: &str, is_comment: bool) -> Option<bool> {
    let named = |name: &str| {
        let begins = words.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name));
        is_comment && begins && !words[name.len()..].starts_with(char::is_alphanumeric)
    };
    let runs = |names: &[&str]| names.iter().any(|name| words.contains(name));
    let is_client = runs(&["bench serve", "benchmark_serving", "bench_serving"]);
    if is_client || words.starts_with("Namespace(") || named("client") {
        Some(false)
    } else if runs(&["vllm serve", "openai.api_server", "launch_server"]) || named("server") {
        Some(true)
    } else {
        None
    }
}

/// `# words`: neither `#!` nor `#word`.
fn is_heading(text: &str) -> bool {
    text.trim_start_matches('#').starts_with(' ')
}

/// The value of a flag in a command line; flags may be written with underscores.
fn value_of<'a>(words: &'a str, flags: &[&str]) -> Option<&'a str> {
    let mut tokens = words.split_whitespace();
    while let Some(token) = tokens.next() {
        let (flag, value) = token.split_once('=').map_or((token, None), |(f, v)| (f, Some(v)));
        if flag.starts_with('-') && flags.contains(&flag.replace('_', "-").as_str()) {
            let value = value.or_else(|| tokens.next())?.trim_matches(['\'', '"']);
            return (!value.is_empty()).then_some(value);
        }
    }
    None
}

/// The value of an argument that the tool prints: `name='value'`.
fn argument_of<'a>(words: &'a str, name: &str) -> Option<&'a str> {
    ["(", " "].into_iter().find_map(|before| {
        let (_, rest) = words.split_once(&format!("{before}{name}='"))?;
        rest.split_once('\'').map(|(value, _)| value)
    })
}

fn model_named(words: &str) -> Option<String> {
    argument_of(words, "model").or_else(|| value_of(words, &["--model"])).map(shown)
}

/// The right side of `| 1015/2000 [`, of the last state of a progress bar.
fn progress_total(text: &str) -> Option<u64> {
    let (bar, _) = text.rsplit_once(" [")?;
    let (done, total) = bar.rsplit_once('|')?.1.trim().split_once('/')?;
    done.parse::<u64>().ok().and(total.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_bar_tells_how_many_were_planned() {
        assert_eq!(progress_total("100%|███| 1024/1024 [01:35<00:00, 10.68it/s]"), Some(1024));
        assert_eq!(progress_total(" 50%|█  | 9/2000 [a]\r 51%|█ | 1015/2000 [b]"), Some(2000));
        assert_eq!(progress_total("a | b/c [d]"), None);
        assert_eq!(progress_total("1/2"), None);
    }

    #[test]
    fn a_command_names_its_model() {
        let command = "python benchmark_serving.py --model org/name --tokenizer other";
        assert_eq!(model_named(command).as_deref(), Some("org/name"));
        assert_eq!(model_named("bench --model='org/name' -x").as_deref(), Some("org/name"));
        let arguments = "Namespace(backend='vllm', model='org/name', served_model_name='x')";
        assert_eq!(model_named(arguments).as_deref(), Some("org/name"));
        assert_eq!(model_named("--model-impl vllm"), None);
        assert_eq!(model_named("--model "), None);
    }

    fn read_lines(lines: &[&str]) -> ToolResult {
        let mut above = Above::default();
        for (number, text) in (1..).zip(lines) {
            above.read(number, text);
        }
        let mut result = ToolResult::default();
        above.tell(&mut result);
        result
    }

    #[test]
    fn a_server_says_over_how_many_gpus_it_is_spread() {
        for flag in ["-tp 4", "-tp=4", "--tensor-parallel-size 4", "--tensor_parallel_size=4"] {
            let command = format!("$ VLLM_X=0 vllm serve org/name {flag} --gpu_memory_utiliz");
            let result =
                read_lines(&["# Server", &command, "ation=0.98 --max-num-seqs 64", "", "x -tp 8"]);
            assert_eq!(result.tensor_parallel, Some(4), "{flag}");
            assert!(result.configuration.ends_with("ation=0.98 --max-num-seqs 64 "));
        }
        let again = read_lines(&["vllm serve a -tp 4", "", "vllm serve b"]);
        assert_eq!(again.tensor_parallel, None, "another server, which does not say");
        assert_eq!(read_lines(&["vllm serve a -tp 0"]).tensor_parallel, None);
    }

    #[test]
    fn a_client_says_its_api_and_tokenizer() {
        let command = "python benchmark_serving.py --backend openai-chat --model m \\";
        let result = read_lines(&["# Title", "", command, "--tokenizer 't' --port 1"]);
        assert_eq!(result.backend.as_deref(), Some("openai-chat"));
        assert_eq!(result.tokenizer.as_deref(), Some("t"));
        assert_eq!(result.configuration, "Title\n", "no server was named");
        let printed = read_lines(&["Namespace(backend='vllm', tokenizer=None, model='m')"]);
        assert_eq!((printed.backend.as_deref(), printed.tokenizer), (Some("vllm"), None));
    }

    #[test]
    fn a_comment_in_code_is_no_heading() {
        let result = read_lines(&["## Engine v1", "```", "# nothing to see", "#!/bin/sh"]);
        assert_eq!(result.configuration, "Engine v1\n");
    }
}
