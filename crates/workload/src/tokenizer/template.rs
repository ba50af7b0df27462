//! Chat templates: how a model's messages become the one text that it sees.

use std::io::{self, Write};
use std::path::Path;

use inferometer_model::Message;
use minijinja::{Environment, Error, ErrorKind, context};
use serde::Deserialize as _;
use serde_json::Value;

use super::{TokenizerError, read_json, read_optional, token_text};

/// A template and the names of tokens that it may write.
#[derive(Debug)]
pub(super) struct ChatTemplate {
    source: String,
    environment: Environment<'static>,
    /// `bos_token` and others, each with its text.
    tokens: Value,
    /// Why the template cannot be used, when it cannot even be read.
    broken: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    #[error(
        "the model's chat template cannot be used ({0}); count the prompt alone, without the \
         template"
    )]
    Broken(String),
    #[error(
        "the model's chat template writes today's date, so prompts of equal length tomorrow would \
         differ; count the prompt alone, without the template"
    )]
    Dated,
}

/// What a template writes, as far as a prompt can be long.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if OUTPUT_BYTES_MAX - self.0.len() < bytes.len() {
            return Err(io::Error::other(format!(
                "it writes longer than {OUTPUT_BYTES_MAX} bytes"
            )));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const NAME: &str = "chat";
/// Steps of a template: far more than long chats take, and over within a second or so.
const FUEL: u64 = 20_000_000;
const OUTPUT_BYTES_MAX: usize = 256 << 20;
/// Left out on purpose, so that a text is the same tomorrow: templates that ask whether it is there
/// have a date of their own.
const TODAY: &str = "strftime_now";

impl ChatTemplate {
    /// From the files beside a tokenizer, in the order in which the models' own library looks.
    pub(super) fn read(directory: &Path, config: &Value) -> Result<Option<Self>, TokenizerError> {
        if let Some(source) = read_optional(&directory.join("chat_template.jinja"))? {
            return Ok(Some(Self::new(source, config)));
        }
        let file = read_json(&directory.join("chat_template.json"))?;
        let inside = file.as_ref().and_then(source_in).or_else(|| source_in(config));
        Ok(inside.map(|source| Self::new(source, config)))
    }

    pub(super) fn new(source: String, config: &Value) -> Self {
        let mut environment = Environment::new();
        // As the models' own library sets Jinja up.
        let whitespace = environment.syntax().to_builder();
        let built = { whitespace }.trim_blocks(true).lstrip_blocks(true).build();
        let unsettled = built.map(|syntax| environment.set_syntax(syntax)).err();
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.set_fuel(Some(FUEL));
        let unread = environment.add_template_owned(NAME, source.clone()).err();
        let broken = unsettled.or(unread).map(|error| error.to_string());
        let is_token = |name: &str| name.ends_with("_token");
        let tokens = config.as_object().into_iter().flatten();
        let tokens = tokens
            .filter(|(name, _)| is_token(name))
            .filter_map(|(name, token)| Some((name.clone(), token_text(token)?.into())))
            .collect();
        Self { source, environment, tokens: Value::Object(tokens), broken }
    }

    /// All that what it writes depends on.
    pub(super) fn parts(&self) -> [(&'static str, String); 2] {
        [("template", self.source.clone()), ("tokens", self.tokens.to_string())]
    }

    pub(super) fn render(
        &self,
        messages: &[Message],
        add_generation_prompt: bool,
    ) -> Result<String, TemplateError> {
        if let Some(reason) = &self.broken {
            return Err(TemplateError::Broken(reason.clone()));
        }
        let tokens = as_seen(&self.tokens)?;
        let messages: Vec<Value> =
            messages.iter().map(|message| Value::Object(message.0.clone())).collect();
        let messages = as_seen(&Value::Array(messages))?;
        self.environment
            .get_template(NAME)
            .and_then(|template| {
                // What is not given must be nothing rather than unknown, as templates ask for it.
                let (tools, documents) = ((), ());
                let given = context! { messages, add_generation_prompt, tools, documents };
                let mut bounded = Bounded(Vec::new());
                template.render_captured_to(context! { ..given, ..tokens }, &mut bounded)?;
                let text = String::from_utf8(bounded.0);
                text.map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
            })
            .map_err(|error| {
                let detail = error.detail().unwrap_or_default();
                if error.kind() == ErrorKind::UnknownFunction && detail.contains(TODAY) {
                    TemplateError::Dated
                } else {
                    let why = std::error::Error::source(&error).map(|why| format!(": {why}"));
                    TemplateError::Broken(format!("{error}{}", why.unwrap_or_default()))
                }
            })
    }
}

/// JSON in the template's own words.
fn as_seen(json: &Value) -> Result<minijinja::Value, TemplateError> {
    minijinja::Value::deserialize(json).map_err(|error| TemplateError::Broken(error.to_string()))
}

/// A template by itself, or the one named `default` of several.
fn source_in(config: &Value) -> Option<String> {
    match config.get("chat_template")? {
        Value::String(source) => Some(source.clone()),
        Value::Array(named) => named
            .iter()
            .find(|one| one.get("name").and_then(Value::as_str) == Some("default"))
            .and_then(|one| one.get("template")?.as_str())
            .map(str::to_owned),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}
