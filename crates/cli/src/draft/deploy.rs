//! `[deploy]`: a server that is deployed for the measurement and stopped after it. Exactly one kind,
//! complete, and without secrets.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::{EnumValueParser, TypedValueParser};
use inferometer_model::deployment::{
    DeployKind, DeploymentHow, DeploymentSpec, EnvironmentSpec, Renewal,
};
use inferometer_model::spec::{Grammar, Time, Written};
use inferometer_target::deploy::{placeholder, says_port, secret};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::experiment::Origins;
use crate::experiment::schema::{embedded, flag};
use crate::failure::{Failure, Result};

/// A server that is deployed for the measurement and stopped after it, instead of a URL. Texts may
/// contain `{port}`, `{name}` and `{env:NAME}`, which are filled when it starts; a brace itself is
/// `{{`.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Deployment")]
pub(crate) struct DeployTable {
    /// Kind of deployment [default: a process if there is a command, a container if there is an
    /// image, commands if there is an up]
    #[arg(skip)]
    pub(crate) kind: Option<DeployKind>,
    /// Command that starts the server, as words or as one text, which is split as a shell splits it;
    /// there is no shell. It must listen on 127.0.0.1 at {port}
    #[arg(id = "serve", long = "serve", value_name = "COMMAND", value_parser = CommandWords::from_str)]
    pub(crate) command: Option<CommandWords>,
    /// Folder to start it in, relative to the file that names it [default: the current one]
    #[arg(skip)]
    pub(crate) folder: Option<PathBuf>,
    /// Container: the program that runs it [default: docker]
    #[arg(skip)]
    pub(crate) engine: Option<String>,
    /// Container: its image
    #[arg(skip)]
    pub(crate) image: Option<String>,
    /// Container: options before the image, such as devices and mounts
    #[arg(skip)]
    pub(crate) options: Option<Vec<String>>,
    /// Container: arguments after the image
    #[arg(skip)]
    pub(crate) arguments: Option<Vec<String>>,
    /// Container: port of the server inside it [default: 8000]
    #[arg(skip)]
    #[schemars(range(min = 1, max = 65535))]
    pub(crate) port: Option<u16>,
    /// Commands: starts the server by `sh` and returns
    #[arg(skip)]
    pub(crate) up: Option<String>,
    /// Commands: prints the base URL of the server on its last line
    #[arg(skip)]
    pub(crate) url: Option<String>,
    /// Commands: prints the log of the server [default: there is no log]
    #[arg(skip)]
    pub(crate) logs: Option<String>,
    /// Commands: stops the server, and returns when it is gone
    #[arg(skip)]
    pub(crate) down: Option<String>,
    /// Environment variable that the server inherits, such as `HF_TOKEN` or `VLLM_*`; the flag may be
    /// repeated [default: none beyond those that every program needs]
    #[arg(id = "serve_env", long = "serve-env", value_name = "NAME")]
    pub(crate) pass: Option<Vec<String>>,
    /// Variables of the server with their values; a secret is written `{env:NAME}`
    #[arg(skip)]
    pub(crate) environment: Option<BTreeMap<String, String>>,
    /// How long it may take until it has generated a token [default: 10m]
    pub(crate) ready_timeout: Option<Time>,
    /// How long it may take to end before it is killed [default: 20s]
    pub(crate) stop_grace: Option<Time>,
    /// When it must be a new one [default: each-repetition]
    #[arg(long, value_name = "WHEN", value_parser = EnumValueParser::new().map(Written::<Renewal>))]
    pub(crate) renew: Option<Written<Renewal>>,
}

/// A program and its arguments.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(try_from = "CommandForm")]
pub(crate) struct CommandWords(pub(crate) Vec<String>);

impl FromStr for CommandWords {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        shlex::split(text).map(Self).ok_or_else(|| "a quote is not closed".to_owned())
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "must be a command, as text or as a list of words")]
enum CommandForm {
    Text(String),
    Words(Vec<String>),
}

impl TryFrom<CommandForm> for CommandWords {
    type Error = String;

    fn try_from(form: CommandForm) -> Result<Self, String> {
        match form {
            CommandForm::Text(text) => text.parse(),
            CommandForm::Words(words) => Ok(Self(words)),
        }
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
        embedded("command")
    }
}

/// The keys of each kind of deployment: those that it needs, the first of which decides the kind, and
/// the others.
const KEYS: [(DeployKind, &[&str], &[&str]); 3] = [
    (DeployKind::Process, &["command"], &["folder"]),
    (DeployKind::Container, &["image"], &["engine", "options", "arguments", "port"]),
    (DeployKind::Commands, &["up", "url", "down"], &["logs"]),
];

/// What is wrong with a key, and where it was written.
fn refuse(origins: &Origins, key: &str, what: &str) -> Failure {
    let path = format!("deploy.{key}");
    let name = flag(&path).unwrap_or_else(|| format!("`{path}`"));
    origins.failure(&path, &format!("{name} {what}"))
}

/// `None` where nothing is deployed. Placeholders are kept: a matrix has some of its own.
pub(crate) fn draft(table: &DeployTable, origins: &Origins) -> Result<Option<DeploymentSpec>> {
    if *table == DeployTable::default() {
        return Ok(None);
    }
    let how = how(table, origins)?;
    let environment = environment(table, origins)?;
    let ready_timeout = table.ready_timeout.map_or(DeploymentSpec::READY_TIMEOUT, |time| time.0);
    if ready_timeout.is_zero() || Duration::from_hours(24) < ready_timeout {
        return Err(refuse(origins, "ready_timeout", "must be above 0 and at most 24h"));
    }
    let grace = table.stop_grace.map_or(DeploymentSpec::GRACE, |time| time.0);
    if Duration::from_hours(1) < grace {
        return Err(refuse(origins, "stop_grace", "must be at most 1h"));
    }
    let renewal = table.renew.map(|renewal| renewal.0).unwrap_or_default();
    // What listens on another port may be another server.
    let has_port = says_port(&how, &environment)
        .map_err(|error| refuse(origins, "command", &format!("cannot be filled: {error}")))?;
    if !has_port {
        let what = "does not contain {port}, so the server would not listen on the expected port";
        return Err(refuse(origins, "command", what).hint(
            "write it where the port belongs, such as --port {port}; it is replaced by a free port",
        ));
    }
    check_secrets(&how, &environment, origins)?;
    Ok(Some(DeploymentSpec { how, environment, ready_timeout, grace, renewal }))
}

fn how(table: &DeployTable, origins: &Origins) -> Result<DeploymentHow> {
    let Ok(Value::Object(mut values)) = serde_json::to_value(table) else {
        return Err(Failure::internal("the table [deploy] cannot be read"));
    };
    values.retain(|_, value| !value.is_null());
    let mut begun = KEYS.iter().filter(|(_, needed, _)| values.contains_key(needed[0]));
    let (kind, needed, others) = match (table.kind, begun.next(), begun.next()) {
        (Some(named), ..) => KEYS.iter().find(|(kind, ..)| *kind == named).unwrap_or(&KEYS[0]),
        (None, Some(only), None) => only,
        (None, None, _) => {
            return Err(Failure::usage("[deploy] has no command, image or up").hint(
                "--serve 'vllm serve MODEL --port {port}', or a [deploy] table with one of them",
            ));
        }
        (None, Some(_), Some((_, other, _))) => {
            let what = "deploys the server in a second manner; set one of them";
            return Err(refuse(origins, other[0], what));
        }
    };
    let own = kind.write();
    for (other, needed, others) in KEYS.iter().filter(|(other, ..)| other != kind) {
        if let Some(key) = needed.iter().chain(*others).find(|key| values.contains_key(**key)) {
            let other = other.write();
            let what = format!("is of kind {other}, and this server is of kind {own}");
            return Err(refuse(origins, key, &what));
        }
    }
    for key in *needed {
        let text = match values.get(*key) {
            Some(Value::Array(words)) => words.first().and_then(Value::as_str).or(Some("")),
            value => value.and_then(Value::as_str),
        };
        if text.is_none_or(|text| text.trim().is_empty()) {
            let missing = || format!("is missing: a server of kind {own} needs it");
            let what = text.map_or_else(missing, |_| "is empty".to_owned());
            return Err(refuse(origins, key, &what));
        }
    }
    values.retain(|key, _| [*needed, *others].concat().contains(&key.as_str()));
    if *kind == DeployKind::Container {
        let defaults = [
            ("engine", json!("docker")),
            ("options", json!([])),
            ("arguments", json!([])),
            ("port", json!(8000)),
        ];
        for (key, value) in defaults {
            values.entry(key).or_insert(value);
        }
    }
    values.insert("kind".to_owned(), own.into());
    serde_json::from_value(values.into())
        .map_err(|error| Failure::internal(format!("the table [deploy] cannot be read: {error}")))
}

fn environment(table: &DeployTable, origins: &Origins) -> Result<EnvironmentSpec> {
    let is_name = |name: &str| {
        let mut letters = name.chars();
        letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let pass = table.pass.clone().unwrap_or_default();
    if pass.iter().any(|name| !is_name(name.strip_suffix('*').unwrap_or(name))) {
        // It is not repeated: behind a `=` there may be a key.
        let what = "takes names of variables, such as HF_TOKEN or VLLM_*";
        return Err(refuse(origins, "pass", what)
            .hint("set a variable with its value in [deploy.environment]"));
    }
    let set = table.environment.clone().unwrap_or_default();
    if let Some(name) = set.keys().find(|name| !is_name(name)) {
        let key = format!("environment.{name}");
        return Err(refuse(origins, &key, "is not the name of a variable"));
    }
    Ok(EnvironmentSpec { pass, set })
}

/// Refuses placeholders that are not filled when the server starts.
pub(super) fn check_placeholders(deployment: &DeploymentSpec, origins: &Origins) -> Result<()> {
    let known = |name: &str| placeholder::is_known_at_start(name).then(String::new);
    let check = |key: &str, text: &str| {
        placeholder::fill(text, &placeholder::AT_START, &known)
            .map(|_| ())
            .map_err(|error| refuse(origins, key, &format!("cannot be filled: {error}")))
    };
    for (key, words) in texts(&deployment.how) {
        words.iter().try_for_each(|word| check(&key, word))?;
    }
    let mut set = deployment.environment.set.iter();
    set.try_for_each(|(name, value)| check(&format!("environment.{name}"), value))
}

fn check_secrets(
    how: &DeploymentHow,
    environment: &EnvironmentSpec,
    origins: &Origins,
) -> Result<()> {
    // A key that is only named, or a shell's variable, or nothing at all.
    let is_named_only =
        |value: &str| value.is_empty() || value.contains("{env:") || value.starts_with(['{', '$']);
    let what = "contains what looks like a key, which would be stored with the results";
    for (key, words) in texts(how) {
        if secret::values(&words).iter().any(|value| !is_named_only(value))
            || words.iter().any(|word| secret::looks_secret(word))
        {
            return Err(refuse(origins, &key, what)
                .hint("put the key into a variable and write {env:NAME} instead"));
        }
    }
    for (name, value) in &environment.set {
        if (secret::is_secret(name) && !is_named_only(value)) || secret::looks_secret(value) {
            return Err(refuse(origins, &format!("environment.{name}"), what).hint(format!(
                "pass your own variable on with --serve-env {name}, or write \
                 {name} = \"{{env:{name}}}\""
            )));
        }
    }
    Ok(())
}

/// The texts of a deployment by their keys; some are several words.
fn texts(how: &DeploymentHow) -> Vec<(String, Vec<String>)> {
    let Ok(Value::Object(values)) = serde_json::to_value(how) else { return Vec::new() };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let words = |value: &Value| match value.as_array() {
        Some(words) => words.iter().filter_map(text).collect(),
        None => text(value).into_iter().collect(),
    };
    values.iter().map(|(key, value)| (key.clone(), words(value))).collect()
}

#[cfg(test)]
mod tests {
    use inferometer_model::deployment::ProcessSpec;

    use super::*;

    fn drafted(table: Value) -> Result<DeploymentSpec, String> {
        let said: DeployTable = serde_json::from_value(table).unwrap();
        draft(&said, &Origins::default())
            .map(Option::unwrap)
            .map_err(|failure| format!("{failure:?}"))
    }

    #[track_caller]
    fn assert_refused(table: Value, why: &str) {
        let refused = drafted(table).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }

    #[test]
    fn nothing_said_puts_nothing_up() {
        assert_eq!(draft(&DeployTable::default(), &Origins::default()).unwrap(), None);
    }

    #[test]
    fn the_way_is_known_by_its_key() {
        let process = drafted(json!({ "command": "serve --port {port}", "folder": "x" })).unwrap();
        let command = ["serve", "--port", "{port}"].map(str::to_owned).to_vec();
        let folder = Some("x".to_owned());
        assert_eq!(process.how, DeploymentHow::Process(ProcessSpec { command, folder }));
        assert_eq!(process.ready_timeout, DeploymentSpec::READY_TIMEOUT);
        let container = drafted(json!({ "kind": "container", "image": "i" })).unwrap();
        let DeploymentHow::Container(container) = container.how else { panic!("no container") };
        assert_eq!((container.engine.as_str(), container.port), ("docker", 8000));
        let commands = drafted(json!({ "up": "u", "url": "l", "down": "d" })).unwrap();
        assert_eq!(commands.how.kind(), "commands");
    }

    #[test]
    fn half_a_way_or_two_are_refused() {
        assert_refused(json!({ "renew": "never" }), "has no command, image or up");
        assert_refused(json!({ "command": "s {port}", "image": "i" }), "in a second manner");
        assert_refused(json!({ "command": "s {port}", "options": ["a"] }), "is of kind container");
        assert_refused(json!({ "kind": "container" }), "`deploy.image` is missing");
        let half = json!({ "up": "u", "url": "l" });
        assert_refused(half, "`deploy.down` is missing: a server of kind commands needs it");
        assert_refused(json!({ "command": [] }), "--serve is empty");
        assert_refused(json!({ "command": "vllm serve m" }), "does not contain {port}");
        assert_refused(json!({ "command": "vllm serve m {{port}" }), "does not contain {port}");
        assert_refused(json!({ "command": "vllm serve m {port" }), "is not closed");
        assert!(drafted(json!({ "command": "s", "environment": { "PORT": "{port}" } })).is_ok());
        assert_refused(json!({ "command": "s {port}", "ready_timeout": "0s" }), "--ready-timeout");
        assert_refused(
            json!({ "command": "s {port}", "pass": ["A=b"] }),
            "--serve-env takes names",
        );
    }

    #[test]
    fn what_nobody_fills_is_refused_wherever_it_stands() {
        for (table, key) in [
            (json!({ "command": "s {port}", "folder": "{nmae}" }), "deploy.folder"),
            (json!({ "image": "{imgae}" }), "deploy.image"),
            (json!({ "image": "i", "engine": "{engine}" }), "deploy.engine"),
        ] {
            let spec = drafted(table).unwrap();
            let refused = check_placeholders(&spec, &Origins::default()).unwrap_err();
            assert!(format!("{refused:?}").contains(key), "{refused:?}");
        }
    }

    #[test]
    fn keys_are_refused_with_the_way_out_and_not_repeated() {
        for table in [
            json!({ "command": "s --port {port} --api-key sesame-12" }),
            json!({ "command": "env HF_TOKEN=sesame-12 s {port}" }),
            json!({ "command": "s {port} hf_sesame-12sesameSESAME" }),
            json!({ "command": "s {port}", "folder": "/x/hf_sesame-12sesame=hf_sesame-12sesame" }),
            json!({ "image": "i", "options": ["-e", "HF_TOKEN=sesame-12"] }),
            json!({ "image": "http://me:sesame-12@registry/i" }),
            json!({ "image": "i", "engine": "http://me:sesame-12@docker" }),
            json!({ "up": "HF_TOKEN=sesame-12 helm up", "url": "l", "down": "d" }),
        ] {
            let refused = drafted(table).unwrap_err();
            assert!(refused.contains("{env:NAME}") && !refused.contains("sesame"), "{refused}");
        }
        let set = json!({ "command": "s {port}", "environment": { "HF_TOKEN": "sesame-12" } });
        let refused = drafted(set).unwrap_err();
        assert!(refused.contains("--serve-env HF_TOKEN"), "{refused}");
        assert!(!refused.contains("sesame"), "{refused}");
        for named in [
            json!({ "command": "s --port {port} --api-key {env:KEY} --max-num-batched-tokens 9" }),
            json!({ "command": "s {port}", "environment": { "HF_TOKEN": "{env:MINE}" } }),
            json!({ "command": "vllm serve --api-key {env:K} my/model --port {port}" }),
            json!({ "command": "vllm serve --api-key={env:K} my/model --port {port}" }),
            json!({ "up": "helm up --set imagePullSecrets=regcred", "url": "l", "down": "d" }),
            json!({ "up": "helm up --set token=$T", "url": "l", "down": "d" }),
        ] {
            assert!(drafted(named.clone()).is_ok(), "{named}");
        }
    }

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
