//! Examples of every command, and the short help: `-h` shows the flags that most people need in a line
//! each, `--help` shows all of them.

use clap::Command;

/// A command with more flags than this has a short help.
const FLAGS_MAX: usize = 20;

/// Flags that `-h` shows, by the ids of their fields, with help of one line.
const HEADLINES: &[(&str, &str)] = &[
    ("places", "URL of the server, an experiment file, or both"),
    ("suite", "Name of a suite, or a file [default: standard]"),
    ("matrix", "Name of a matrix, or a file [default: r3]"),
    ("model", "Model to ask for [default: the server's first]"),
    ("input_tokens", "Prompt length, such as 2k [default: 512]"),
    ("output_tokens", "Answer length [default: 128]"),
    ("dataset", "Prompts from a file or directory"),
    ("concurrency", "Requests in flight [default: 8]"),
    ("rate", "Requests per second"),
    ("requests", "Stop after so many requests"),
    ("duration", "Stop after this time, such as 30s or 5m"),
    ("slos", "SLO to judge by, such as ttft.p99<500ms"),
    ("runs", "Measure this many times"),
    ("rates", "Rates, such as 1,2,4,inf or 2..20:2"),
    ("concurrencies", "Requests in flight, such as 1..64*2"),
    ("find", "Search, such as 'max rate where ttft.p99<500ms'"),
    ("targets", "Server beside others: NAME=URL"),
    ("resume", "Resume a set that was stopped"),
    ("list", "List what is built in"),
    ("only", "Only these cells, such as preset=H100X1"),
    ("folder", "Folder of stored runs [default: ./runs]"),
    ("json", "Print one JSON document"),
    ("full", "Print the whole page"),
    ("dry_run", "Show the plan and send nothing"),
    ("quiet", "Results and errors only"),
    ("profile", "Profile of the embedded engine"),
    ("hardware", "GPU to play"),
    ("engine_model", "Model to play"),
    ("mode", "serve plays a vLLM server; paced keeps a pace; echo is fastest"),
    ("port", "Port to listen on [default: 8000]"),
    ("results", "Measured results: runs, imports or files"),
    ("free", "Coefficients to fit"),
    ("save", "File to write"),
    ("base_url", "Base URL of the server"),
    ("dataset_name", "Where prompts come from [default: random]"),
    ("random_input_len", "Tokens of a random prompt [default: 1024]"),
    ("random_output_len", "Tokens of its answer [default: 128]"),
    ("num_prompts", "Number of requests [default: 1000]"),
    ("request_rate", "Requests per second [default: inf]"),
    ("max_concurrency", "Most requests in flight"),
    ("save_result", "Write the result as a JSON file"),
];

/// Those that `-h` of an experiment has no room for.
const LATER: [&str; 7] =
    ["hardware", "engine_model", "max_concurrency", "quiet", "json", "full", "runs"];
/// Those that a sweep refuses, or has no room for.
const ONE_LOAD: [&str; 4] = ["rate", "concurrency", "dataset", "profile"];

/// Three examples of each command.
const EXAMPLES: &[(&str, [&str; 3])] = &[
    (
        "run",
        [
            "run http://localhost:8000 -c 16 -n 500 --isl 1k --osl 256",
            "run http://localhost:8000 --rate 4 --duration 2m --slo 'ttft.p99<500ms'",
            "run experiment.toml http://localhost:8000 --repeat 5",
        ],
    ),
    (
        "suite",
        [
            "suite quick",
            "suite chat http://localhost:8000 --dry-run",
            "suite --show standard > mine.toml",
        ],
    ),
    (
        "sweep",
        [
            "sweep http://localhost:8000 --concurrencies 1..64*2",
            "sweep http://localhost:8000 --rates 1,2,4,8,inf --duration 60s",
            "sweep http://localhost:8000 --find 'max rate where ttft.p99<500ms'",
        ],
    ),
    (
        "matrix",
        ["matrix --list", "matrix r3 --dry-run", "matrix r3 --only preset=H100X1 --virtual"],
    ),
    (
        "simulate",
        [
            "simulate --profile h100-llama-3.1-8b -c 32 -n 1k",
            "simulate --hardware h200 --engine-model llama-3.1-70b --tp 4 --rate 2 -n 200",
            "simulate first.toml second.toml",
        ],
    ),
    (
        "fit",
        [
            "fit latest --hardware h100 --engine-model llama-3.1-8b",
            "fit results.jsonl --profile h100-llama-3.1-8b --save mine.toml",
            "fit latest --profile mine.toml --free none",
        ],
    ),
    (
        "compare",
        [
            "compare before=20261118-0910 after=latest",
            "compare RUN RUN --primary ttft.p99",
            "compare RUN RUN --format md",
        ],
    ),
    (
        "plan",
        [
            "plan --isl 2k --osl 200 -n 50",
            "plan --dataset chats.json --save plan.jsonl",
            "plan experiment.toml --json",
        ],
    ),
    (
        "check",
        [
            "check http://localhost:8000",
            "check http://localhost:8000 --api completions --model MODEL",
            "check http://localhost:8000 --json",
        ],
    ),
    ("calibrate", ["calibrate", "calibrate --quick", "calibrate --client-cores 2 --json"]),
    (
        "require",
        [
            "require latest 'ttft.p99<500ms'",
            "require latest 'error_rate<1%' --junit result.xml",
            "require RUN RUN RUN 'output_throughput>1000'",
        ],
    ),
    (
        "report",
        [
            "report latest --open",
            "report RUN --format md --to report.md",
            "report a=RUN b=RUN --together --to page",
        ],
    ),
    (
        "import",
        [
            "import vllm-result.json",
            "import benchmarks.json --name h100",
            "import run1.json run2.json --repeats",
        ],
    ),
    (
        "export",
        [
            "export latest --format csv",
            "export latest --format vllm --to result.json",
            "export latest --format parquet --to tables",
        ],
    ),
    ("merge", ["merge /shared/load", "merge first second third", "merge /shared/load --json"]),
    (
        "bench",
        [
            "bench serve --base-url http://localhost:8000 --num-prompts 200",
            "bench serve --help",
            "bench sweep serve --help",
        ],
    ),
    ("explain", ["explain ttft", "explain throughput", "explain vllm"]),
    (
        "engine",
        [
            "engine --list",
            "engine --profile h100-llama-3.1-8b --port 8000",
            "engine --mode paced --ttft 50ms --gap 10ms",
        ],
    ),
    ("runs", ["runs --sizes", "runs llama --since 7d --verdict valid", "runs prune --before 30d"]),
    (
        "prune",
        [
            "runs prune --before 30d",
            "runs prune --kind matrix --keep 2",
            "runs prune --verdict invalid --yes",
        ],
    ),
    ("config", ["config show", "config show experiment.toml --rate 4", "config show --json"]),
    ("recover", ["recover latest", "recover RUN", "recover RUN --json"]),
    ("schema", ["schema > experiment.schema.json", "schema --suite", "schema --matrix"]),
    (
        "system",
        [
            "system",
            "system --json",
            "run http://gpu1:8000 --server-info 'ssh gpu1 inferometer system --json'",
        ],
    ),
    (
        "profile",
        [
            "profile http://localhost:8000 --save mine.toml",
            "profile http://localhost:8000 --save mine.toml --probe-time 60s",
            "profile --virtual --profile h100-llama-3.1-8b --save mine.toml",
        ],
    ),
    (
        "tune",
        [
            "tune --profile mine.toml --vary max_num_seqs=16,64 --slo 'ttft.p99<500ms'",
            "tune --profile mine.toml --vary max_num_seqs=16,64 --prove 1 --repeat 3",
            "tune --profile mine.toml --vary block_size=16,32 --concurrencies 16,64",
        ],
    ),
    (
        "capacity",
        [
            "capacity --profile mine.toml --serve-rate 50 --price 4/h",
            "capacity --profile mine.toml --users 1M --requests-per-day 20",
            "capacity --target h100=embedded:h100-llama-3.1-8b --serve-rate 50",
        ],
    ),
    (
        "audit",
        ["audit results.md", "audit published.toml --format json", "audit *.json --format html"],
    ),
    (
        "judge",
        [
            "judge --preset guidellm",
            "judge --preset aiperf -- /opt/aiperf/bin/aiperf",
            "judge -- my-client --url {url} --model {model} --output {output}",
        ],
    ),
    ("bundle", ["bundle latest", "bundle RUN --to run.bundle", "bundle latest --redact"]),
    ("anatomy", ["anatomy latest", "anatomy SET/3 --format md", "anatomy RUN --format json"]),
    ("verify", ["verify latest", "verify RUN --full", "verify SET/3 --format vllm"]),
    ("ui", ["ui --open", "ui results --port 8080", "ui --allow-run"]),
    (
        "completions",
        [
            "completions bash > ~/.local/share/bash-completion/completions/inferometer",
            "completions zsh > ~/.zfunc/_inferometer",
            "completions fish > ~/.config/fish/completions/inferometer.fish",
        ],
    ),
    ("man", ["man > inferometer.1", "man run", "man ~/.local/share/man/man1"]),
];

/// Puts examples below the help, and shortens `-h`.
pub(super) fn shortened(command: Command) -> Command {
    let examples = EXAMPLES.iter().find(|(name, _)| *name == command.get_name());
    let command = match examples {
        Some((_, lines)) => {
            let lines = lines.map(|line| format!("\n  inferometer {line}")).concat();
            command.after_help(format!("Examples:{lines}"))
        }
        None => command,
    };
    if command.get_arguments().filter(|argument| !argument.is_hide_set()).count() <= FLAGS_MAX {
        return command;
    }
    let is_experiment = command.get_arguments().any(|argument| argument.get_id() == "places");
    let is_sweep = command.get_arguments().any(|argument| argument.get_id() == "rates");
    command.mut_args(|argument| {
        let id = argument.get_id().as_str();
        let is_left_out =
            is_experiment && LATER.contains(&id) || is_sweep && ONE_LOAD.contains(&id);
        let headline = HEADLINES.iter().find(|(known, _)| id == *known && !is_left_out);
        match headline {
            Some((_, text)) => {
                let long = argument.get_help().cloned().unwrap_or_default();
                argument.help(*text).long_help(long).hide_short_help(false)
            }
            None => argument.hide_short_help(true),
        }
    })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn every_command_has_examples_that_parse() {
        let names: Vec<String> =
            Arguments::command().get_subcommands().map(|it| it.get_name().to_owned()).collect();
        for name in names.iter().filter(|name| *name != "help") {
            assert!(EXAMPLES.iter().any(|(of, _)| of == name), "{name} has no examples");
        }
        for (_, lines) in EXAMPLES {
            for line in lines {
                let typed = line.split(" > ").next().unwrap();
                let words = shlex::split(&format!("inferometer {typed}")).unwrap();
                let parsed = Arguments::try_parse_from(words);
                let is_help = |error: &clap::Error| error.exit_code() == 0;
                assert!(parsed.as_ref().err().is_none_or(is_help), "{line}: {parsed:?}");
                assert!(line.len() <= 78, "{line} is too wide");
            }
        }
    }

    #[test]
    fn the_short_help_fits_a_screen() {
        for name in
            ["run", "sweep", "suite", "simulate", "matrix", "check", "plan", "fit", "engine"]
        {
            let mut whole = Arguments::command().term_width(80);
            whole.build();
            let command = whole.find_subcommand_mut(name).unwrap();
            let short = command.render_help().to_string();
            let (lines, long) = (short.lines().count(), command.render_long_help().to_string());
            assert!(lines <= 42, "-h of {name} has {lines} lines:\n{short}");
            assert!(lines * 3 < long.lines().count() || name == "matrix", "{name}");
            if let (Some(load), Some(engine)) =
                (long.find("--concurrency"), long.find("--gpu-memory-utilization"))
            {
                assert!(load < engine, "{name} shows the simulator before the load");
            }
        }
    }
}
