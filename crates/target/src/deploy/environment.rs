//! What a server finds in its environment, and what of it may be shown.

use std::collections::BTreeMap;
use std::ffi::OsString;

use inferometer_model::Secret;
use inferometer_model::deployment::EnvironmentSpec;

use super::placeholder::{AtStart, FillError};
use super::secret;

/// Needed by every program, and not shown: they reveal more of the user than of the server.
const UNSHOWN: &str = "PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TZ TMPDIR XDG_CACHE_HOME \
                       XDG_RUNTIME_DIR DOCKER_HOST CONTAINER_HOST";

/// Needed by every program that computes on a GPU.
const SHOWN: &str = "LD_LIBRARY_PATH VIRTUAL_ENV CONDA_PREFIX CUDA_* NVIDIA_* ROCR_* HIP_* HSA_* \
                     ROCM_* HF_HOME HF_HUB_CACHE HF_HUB_OFFLINE TRANSFORMERS_OFFLINE";

const HIDDEN: &str = "***";

#[derive(Debug)]
pub(super) struct Environment {
    /// Variables of this process that every program needs.
    pub(super) always: BTreeMap<String, OsString>,
    /// Variables of this process that are named.
    pub(super) passed: BTreeMap<String, OsString>,
    /// With the value, and the value as it may be shown.
    pub(super) set: BTreeMap<String, (String, String)>,
}

impl Environment {
    pub(super) fn resolve(spec: &EnvironmentSpec, start: &AtStart) -> Result<Self, FillError> {
        let named = |patterns: &[&str]| -> BTreeMap<String, OsString> {
            let wanted = |name: &str| patterns.iter().any(|pattern| is_meant(pattern, name));
            let ours = start.ours.iter().filter(|(name, _)| wanted(name));
            ours.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        let pass: Vec<&str> = spec.pass.iter().map(String::as_str).collect();
        let set = spec.set.iter().map(|(name, value)| -> Result<_, FillError> {
            let filled = start.fill(value)?;
            let shown = if is_key(name, &filled) { HIDDEN.to_owned() } else { start.redact(value) };
            Ok((name.clone(), (filled, shown)))
        });
        Ok(Self {
            always: named(&UNSHOWN.split(' ').chain(SHOWN.split(' ')).collect::<Vec<_>>()),
            passed: named(&pass),
            set: set.collect::<Result<_, _>>()?,
        })
    }

    /// All of it, as a process of this machine gets it.
    pub(super) fn variables(&self) -> BTreeMap<String, OsString> {
        let set = self.set.iter().map(|(name, (value, _))| (name.clone(), value.into()));
        let mut all = self.always.clone();
        all.extend(self.passed.clone());
        all.extend(set);
        all
    }

    /// By name, without what is secret.
    pub(super) fn redacted(&self) -> Vec<(String, String)> {
        let is_shown = |name: &&String| !UNSHOWN.split(' ').any(|pattern| is_meant(pattern, name));
        let mut shown: BTreeMap<String, String> = BTreeMap::new();
        for name in self.always.keys().filter(is_shown) {
            shown.insert(name.clone(), shown_value(name, &self.always[name]));
        }
        shown.extend(self.named());
        shown.into_iter().collect()
    }

    /// Only what the user named, without what is secret.
    pub(super) fn named(&self) -> Vec<(String, String)> {
        let passed =
            self.passed.iter().map(|(name, value)| (name.clone(), shown_value(name, value)));
        let mut named: BTreeMap<String, String> = passed.collect();
        named.extend(self.set.iter().map(|(name, (_, shown))| (name.clone(), shown.clone())));
        named.into_iter().collect()
    }

    /// What must not be found in a log.
    pub(super) fn keys(&self) -> Vec<Secret> {
        let set = self.set.iter().map(|(name, (value, _))| (name, value.clone()));
        let passed = self.passed.iter().chain(&self.always);
        passed
            .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
            .chain(set)
            .filter(|(name, value)| is_key(name, value))
            .map(|(_, value)| Secret::new(value))
            .collect()
    }
}

fn shown_value(name: &str, value: &OsString) -> String {
    let value = value.to_string_lossy();
    if is_key(name, &value) { HIDDEN.to_owned() } else { value.into_owned() }
}

fn is_key(name: &str, value: &str) -> bool {
    secret::is_secret(name) || secret::looks_secret(value)
}

/// A pattern never means what sounds like a key: that one must be named by its whole name.
fn is_meant(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning) && !secret::is_secret(name),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pass: &[&str], set: &[(&str, &str)]) -> Environment {
        let ours = [
            ("PATH", "/bin"),
            ("HOME", "/somewhere"),
            ("LC_ALL", "C"),
            ("CUDA_VISIBLE_DEVICES", "0"),
            ("OPENAI_API_KEY", "sk-of-the-client"),
            ("HF_TOKEN", "hf_abcdefghijklmnop"),
            ("EDITOR", "ed"),
            ("VLLM_USE_V1", "1"),
            ("VLLM_API_KEY", "sk-of-the-server"),
        ];
        let ours = ours.map(|(name, value)| (name.to_owned(), value.into()));
        let start = AtStart { port: 7, name: "it".to_owned(), ours: ours.into() };
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let spec = EnvironmentSpec {
            pass: pass.iter().map(|name| (*name).to_owned()).collect(),
            set: set.iter().map(pair).collect(),
        };
        Environment::resolve(&spec, &start).unwrap()
    }

    #[test]
    fn only_what_is_needed_or_named_is_passed_on() {
        let plain = environment(&[], &[]).variables();
        let names: Vec<&str> = plain.keys().map(String::as_str).collect();
        assert_eq!(names, ["CUDA_VISIBLE_DEVICES", "HOME", "LC_ALL", "PATH"]);
        let all = environment(&["*"], &[]).variables();
        assert!(all.contains_key("EDITOR") && all.contains_key("VLLM_USE_V1"));
        assert!(!all.contains_key("OPENAI_API_KEY") && !all.contains_key("VLLM_API_KEY"));
    }

    #[test]
    fn values_of_keys_are_given_and_not_told() {
        let set = [
            ("API_TOKEN", "{env:VLLM_API_KEY}"),
            ("NAME", "{name}-{port}"),
            ("X", "{env:HF_TOKEN}"),
        ];
        let environment = environment(&["HF_TOKEN", "VLLM_*"], &set);
        let given = environment.variables();
        assert_eq!(given["HF_TOKEN"], "hf_abcdefghijklmnop");
        assert_eq!(
            (&given["API_TOKEN"], &given["NAME"]),
            (&"sk-of-the-server".into(), &"it-7".into())
        );
        let shown = environment.redacted();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            shown,
            [
                pair("API_TOKEN", "***"),
                pair("CUDA_VISIBLE_DEVICES", "0"),
                pair("HF_TOKEN", "***"),
                pair("NAME", "it-7"),
                pair("VLLM_USE_V1", "1"),
                pair("X", "***"),
            ]
        );
        assert_eq!(environment.keys().len(), 3);
    }
}
