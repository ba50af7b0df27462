//! `[control]`: what ends a run early, and what is called around it. Nothing here changes what is sent.

use clap::Args;
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};

use super::error::{Result, at_most};
use super::slo::Slo;
use super::text::Grammar;

/// What ends a run early, and what is called before and after it.
#[derive(Args, Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[command(next_help_heading = "Control")]
pub struct ControlTable {
    /// Stop the run early and keep what was measured: `error_rate>5%`, `attainment<90%`, `ttft.p99>2s`,
    /// slo (any SLO of the run is missed) or saturation (requests pile up); the flag may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub abort_on: Option<Vec<AbortOn>>,
    /// Call this before the run, after its warm-up: a path to POST to the server, such as
    /// `/reset_prefix_cache`, a URL to POST to, or a command; the flag may be repeated
    #[arg(long, value_name = "HOOK")]
    pub before_run: Option<Vec<Hook>>,
    /// Call this after the run, such as `/stop_profile`; the flag may be repeated
    #[arg(long, value_name = "HOOK")]
    pub after_run: Option<Vec<Hook>>,
}

/// What ends a run early, and what is called before and after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Control {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub abort_on: Vec<AbortOn>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before_run: Vec<Hook>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after_run: Vec<Hook>,
}

const COUNT_MAX: u64 = 32;

impl ControlTable {
    pub(super) fn resolve(self) -> Result<Control> {
        let Self { abort_on, before_run, after_run } = self;
        let count = |list: &Option<Vec<Hook>>| list.as_ref().map_or(0, Vec::len) as u64;
        at_most("--abort-on", abort_on.as_ref().map_or(0, Vec::len) as u64, COUNT_MAX)?;
        at_most("--before-run", count(&before_run), COUNT_MAX)?;
        at_most("--after-run", count(&after_run), COUNT_MAX)?;
        Ok(Control {
            abort_on: abort_on.unwrap_or_default(),
            before_run: before_run.unwrap_or_default(),
            after_run: after_run.unwrap_or_default(),
        })
    }
}

impl Control {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the server forgets the prompts of earlier runs.
    pub fn empties_cache(&self) -> bool {
        let paths = ["/reset_prefix_cache", "/flush_cache"].map(HookCall::Path);
        self.before_run.iter().any(|hook| paths.contains(&hook.call()))
    }
}

/// A condition that ends a run early.
#[derive(Clone, Debug, PartialEq)]
pub enum AbortOn {
    /// An SLO of the run is missed.
    Slo,
    /// Requests come faster than the server answers them.
    Saturation,
    /// A number of the run is on the wrong side: `ttft.p99>2s` means what the SLO `ttft.p99<2s` forbids.
    Limit(Slo),
}

impl Grammar for AbortOn {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "slo" => Ok(Self::Slo),
            "saturation" => Ok(Self::Saturation),
            text => text.parse().map(Self::Limit).map_err(|_| {
                format!(
                    "`{text}` is not a condition; write slo, saturation, or when to stop, such \
                     as error_rate>5%, attainment<90% or ttft.p99>2s"
                )
            }),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Slo => "slo".to_owned(),
            Self::Saturation => "saturation".to_owned(),
            Self::Limit(limit) => limit.to_string(),
        }
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "examples": ["error_rate>5%", "attainment<90%", "ttft.p99>2s", "slo", "saturation"],
        })
    }
}

/// Something to call before or after a run. Written as a path, a URL or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook(String);

/// How a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookCall<'a> {
    /// A POST to the measured server, with its key: a path behind the base URL.
    Path(&'a str),
    /// A POST to this place of another server, without a key.
    Url(&'a str),
    /// A command for the shell.
    Command(&'a str),
}

impl Hook {
    pub fn call(&self) -> HookCall<'_> {
        let text = self.0.as_str();
        let is_path = text.starts_with('/') && !text.contains(char::is_whitespace);
        match text {
            path if is_path => HookCall::Path(path),
            url if url.starts_with("http://") || url.starts_with("https://") => HookCall::Url(url),
            command => HookCall::Command(command),
        }
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

impl Grammar for Hook {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => {
                Err("is empty; write a path such as /start_profile, a URL or a command".to_owned())
            }
            text => Ok(Self(text.to_owned())),
        }
    }

    fn write(&self) -> String {
        self.0.clone()
    }

    fn schema() -> Schema {
        json_schema!({ "type": "string", "examples": ["/reset_prefix_cache", "sh flush.sh"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read_and_written_alike() {
        for text in ["slo", "saturation", "error_rate>5%", "ttft.p99>2s"] {
            assert_eq!(AbortOn::read(text).unwrap().write(), text);
        }
        for wrong in ["", "errors", "ttft"] {
            let said = AbortOn::read(wrong).unwrap_err();
            assert!(said.contains("error_rate>5%"), "{said}");
        }
    }

    #[test]
    fn a_hook_is_a_path_a_url_or_a_command() {
        let call = |text| match Hook::read(text).unwrap().call() {
            HookCall::Path(_) => "path",
            HookCall::Url(_) => "url",
            HookCall::Command(_) => "command",
        };
        assert_eq!(call("/reset_prefix_cache?x=1"), "path");
        assert_eq!(call("http://other:9/start"), "url");
        assert_eq!(call("curl -X POST http://other:9/start"), "command");
        assert_eq!(call("/usr/bin/flush --all"), "command", "it has words");
        assert!(Hook::read(" ").is_err());
    }
}
