//! `[deploy]`: a server that is put up for the measurement, and taken down after it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use inferometer_model::deployment::Renewal;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::written::{Named, Written, named};

/// A server that is put up for the measurement and taken down after it, instead of a URL. Texts may
/// have `{port}`, `{name}` and `{env:NAME}` in them, which are filled when it starts; a brace itself
/// is `{{`.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Putting a server up")]
pub(crate) struct DeployTable {
    /// How it is put up [default: a process where there is a command, a container where there is an
    /// image, commands where there is an up]
    #[arg(skip)]
    pub(crate) kind: Option<Written<DeployKind>>,
    /// Command that starts the server, as words or as one text, which is split as a shell splits it;
    /// there is no shell. It must listen on 127.0.0.1 at {port}
    #[arg(id = "serve", long = "serve", value_name = "COMMAND", value_parser = CommandWords::from_str)]
    pub(crate) command: Option<CommandWords>,
    /// Folder to start it in, beside the file that names it [default: where we are]
    #[arg(skip)]
    pub(crate) folder: Option<PathBuf>,
    /// Of a container: the program that runs it [default: docker]
    #[arg(skip)]
    pub(crate) engine: Option<String>,
    /// Of a container: its image
    #[arg(skip)]
    pub(crate) image: Option<String>,
    /// Of a container: what stands before the image, such as devices and mounts
    #[arg(skip)]
    pub(crate) options: Option<Vec<String>>,
    /// Of a container: what the image is given to do
    #[arg(skip)]
    pub(crate) arguments: Option<Vec<String>>,
    /// Of a container: where the server listens inside of it [default: 8000]
    #[arg(skip)]
    #[schemars(range(min = 1, max = 65535))]
    pub(crate) port: Option<u16>,
    /// Of commands: puts the server up and returns, by `sh`
    #[arg(skip)]
    pub(crate) up: Option<String>,
    /// Of commands: prints the base URL of the server on its last line
    #[arg(skip)]
    pub(crate) url: Option<String>,
    /// Of commands: prints what the server said [default: nobody knows]
    #[arg(skip)]
    pub(crate) logs: Option<String>,
    /// Of commands: takes the server down, and returns when it is gone
    #[arg(skip)]
    pub(crate) down: Option<String>,
    /// Variable of ours that the server may see, such as `HF_TOKEN` or `VLLM_*`; the flag may be
    /// repeated [default: none beyond those that every program needs]
    #[arg(id = "serve_env", long = "serve-env", value_name = "NAME")]
    pub(crate) pass: Option<Vec<String>>,
    /// Variables of the server with their values; a secret is written `{env:NAME}`
    #[arg(skip)]
    pub(crate) environment: Option<BTreeMap<String, String>>,
    /// How long it may take until it has generated a token [default: 10m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) ready_timeout: Option<Written<Duration>>,
    /// How long it may take to end before it is killed [default: 20s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) stop_grace: Option<Written<Duration>>,
    /// When it must be a new one [default: each-repetition]
    #[arg(long, value_name = "WHEN", value_parser = named::<Renewal>())]
    pub(crate) renew: Option<Written<Renewal>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeployKind {
    Process,
    Container,
    Commands,
}

impl Named for DeployKind {
    const KIND: &'static str = "DeployKind";

    fn names() -> Vec<(&'static str, Self)> {
        vec![
            ("process", Self::Process),
            ("container", Self::Container),
            ("commands", Self::Commands),
        ]
    }
}

impl Named for Renewal {
    const KIND: &'static str = "Renewal";

    fn names() -> Vec<(&'static str, Self)> {
        vec![
            ("each-repetition", Self::EachRepetition),
            ("each-run", Self::EachRun),
            ("never", Self::Never),
        ]
    }
}

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CommandWords(pub(crate) Vec<String>);

impl FromStr for CommandWords {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        shlex::split(text).map(Self).ok_or_else(|| "a quote is not closed".to_owned())
    }
}

impl<'de> Deserialize<'de> for CommandWords {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> de::Visitor<'de> for Reader {
            type Value = CommandWords;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a command, as text or as a list of words")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<CommandWords, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_seq<A: de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<CommandWords, A::Error> {
                let mut words = Vec::new();
                while let Some(word) = list.next_element()? {
                    words.push(word);
                }
                Ok(CommandWords(words))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for CommandWords {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Command".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "array"],
            "items": { "type": "string" },
            "examples": [["vllm", "serve", "MODEL", "--port", "{port}"]],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_words_or_a_text_that_is_split_without_a_shell() {
        let read = |value| serde_json::from_value::<CommandWords>(value).map(|words| words.0);
        let split = ["vllm", "serve", "my model", "$HOME", "--port", "{port}"];
        assert_eq!(read(json!("vllm serve 'my model' $HOME --port {port}")).unwrap(), split);
        assert_eq!(read(json!(split)).unwrap(), split);
        assert!(read(json!("vllm 'serve")).is_err());
        assert!(read(json!(3)).is_err());
    }
}
