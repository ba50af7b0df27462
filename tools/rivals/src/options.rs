//! The command line of `cargo rivals`.

use std::path::PathBuf;

use super::tool::Tool;

pub(crate) const HELP: &str = "\
cargo rivals [FLAGS]            compare this tool with others on the same engine, as tables (slow)
    --only A,B                  of ours, before, wrk, vllm-rs, vllm, aiperf, guidellm
    --measure A,B               of one-shot, streams, fidelity, memory, drivers, transports, open-loop
    --client-core N             core of every client (the last one)
    --server-core N             core of the engine (the first one)
    --environments DIR          where the Python environments are (target/rivals)
    --install DIR               make them there instead of measuring; heeds --only
    --binary PATH               our program (built in release mode)
    --before PATH               an earlier build of it, which becomes a row of its own
    --time-limit SECONDS        for each run of each tool (180)
    --rounds N                  how often the quick tools take turns (3)
    --seconds N                 how long each of their runs takes (5)
    --quick                     small sizes: shows that everything works, measures nothing
";

/// Everything that can be said on the command line, with defaults filled in where none depends on
/// the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) tools: Vec<Tool>,
    pub(crate) measurements: Vec<Measurement>,
    pub(crate) client_core: Option<usize>,
    pub(crate) server_core: usize,
    pub(crate) environments: Option<PathBuf>,
    pub(crate) install: Option<PathBuf>,
    pub(crate) binary: Option<PathBuf>,
    pub(crate) before: Option<PathBuf>,
    pub(crate) time_limit_s: u32,
    pub(crate) rounds: Option<usize>,
    pub(crate) seconds: Option<u32>,
    pub(crate) quick: bool,
}

/// One table of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measurement {
    OneShot,
    Streams,
    Fidelity,
    Memory,
    Drivers,
    Transports,
    OpenLoop,
}

impl Measurement {
    pub(crate) const ALL: [Self; 7] = [
        Self::OneShot,
        Self::Streams,
        Self::Fidelity,
        Self::Memory,
        Self::Drivers,
        Self::Transports,
        Self::OpenLoop,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OneShot => "one-shot",
            Self::Streams => "streams",
            Self::Fidelity => "fidelity",
            Self::Memory => "memory",
            Self::Drivers => "drivers",
            Self::Transports => "transports",
            Self::OpenLoop => "open-loop",
        }
    }
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            tools: Tool::ALL.to_vec(),
            measurements: Measurement::ALL.to_vec(),
            client_core: None,
            server_core: 0,
            environments: None,
            install: None,
            binary: None,
            before: None,
            time_limit_s: 180,
            rounds: None,
            seconds: None,
            quick: false,
        };
        let mut rest = words.iter();
        while let Some(&flag) = rest.next() {
            if flag == "--quick" {
                options.quick = true;
                continue;
            }
            let value = *rest.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag {
                "--only" => options.tools = chosen(value, &Tool::ALL, Tool::name)?,
                "--measure" => {
                    options.measurements = chosen(value, &Measurement::ALL, Measurement::name)?;
                }
                "--client-core" => options.client_core = Some(number(flag, value)?),
                "--server-core" => options.server_core = number(flag, value)?,
                "--environments" => options.environments = Some(value.into()),
                "--install" => options.install = Some(value.into()),
                "--binary" => options.binary = Some(value.into()),
                "--before" => options.before = Some(value.into()),
                "--rounds" => options.rounds = Some(number(flag, value)?),
                "--seconds" => options.seconds = Some(number(flag, value)?),
                "--time-limit" => options.time_limit_s = number(flag, value)?,
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        options.tools.retain(|tool| *tool != Tool::Before || options.before.is_some());
        Ok(options)
    }
}

/// The entries whose names stand in `list`, in the order of `all`.
fn chosen<T: Copy + PartialEq>(
    list: &str,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<Vec<T>, String> {
    let wanted: Vec<&str> = list.split(',').collect();
    let known: Vec<&str> = all.iter().map(|&entry| name(entry)).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| !known.contains(wanted)) {
        return Err(format!("unknown name `{unknown}`; known are {}", known.join(", ")));
    }
    Ok(all.iter().copied().filter(|&entry| wanted.contains(&name(entry))).collect())
}

fn number<T: std::str::FromStr>(flag: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{flag} needs a number, not `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_everything_measured() {
        let options = Options::parse(&["--before", "old"]).unwrap();
        assert_eq!(options.tools, Tool::ALL);
        let options = Options::parse(&[]).unwrap();
        assert_eq!(options.tools.len(), Tool::ALL.len() - 1, "without an earlier build");
        assert_eq!(options.measurements, Measurement::ALL);
        assert!(!options.quick);
    }

    #[test]
    fn names_are_put_in_the_order_of_the_tables() {
        let options = Options::parse(&["--only", "wrk,ours", "--client-core", "3"]).unwrap();
        assert_eq!(options.tools, [Tool::Ours, Tool::Wrk]);
        assert_eq!(options.client_core, Some(3));
    }

    #[test]
    fn mistakes_are_named() {
        for (words, message) in [
            (
                &["--only", "wrk2"][..],
                "unknown name `wrk2`; known are ours, before, wrk, vllm-rs, vllm, aiperf, guidellm",
            ),
            (&["--only"], "--only needs a value"),
            (&["--client-core", "x"], "--client-core needs a number, not `x`"),
            (&["--fast", "1"], "unknown flag --fast"),
        ] {
            assert_eq!(Options::parse(words).unwrap_err(), message);
        }
    }
}
