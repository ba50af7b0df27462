//! Keys that stand in commands: they are used, and neither shown nor written.

use serde_json::Value;

const HIDDEN: &str = "***";
/// Shorter ones would be found in every text.
const FOUND_BYTES_MIN: usize = 4;
/// The word before `token` where it is a token of the model's, not a key.
const OF_THE_MODEL: [&str; 9] =
    ["audio", "bos", "eos", "image", "mask", "pad", "stop", "unk", "video"];

/// What names a secret that a cluster keeps, and does not tell it.
const OF_A_CLUSTER: [&str; 4] = ["pullsecrets", "existingsecret", "secretname", "secretref"];

/// The command with its secrets hidden.
pub fn hidden(words: &[String]) -> Vec<String> {
    hide(words, &mut Vec::new())
}

/// What is hidden of them.
pub fn values(words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    hide(words, &mut found);
    found
}

/// A text without those values.
pub fn without(values: &[String], text: &str) -> String {
    let long = values.iter().filter(|value| FOUND_BYTES_MIN <= value.len());
    long.fold(text.to_owned(), |text, value| text.replace(value, HIDDEN))
}

/// Whether what has this name is to be kept from others. `tokenizer` and `max_num_batched_tokens`
/// are not.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let joined = name.replace(['-', '_', '.'], "");
    let is_of_a_cluster = OF_A_CLUSTER.iter().any(|word| joined.contains(word));
    let is_password = ["password", "passphrase"].iter().any(|word| name.contains(word));
    if is_password || name.contains("secret") && !is_of_a_cluster {
        return true;
    }
    let is_word = |part: &&str| !part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = name.split(['-', '_', '.']).filter(is_word).collect();
    match parts.as_slice() {
        ["header" | "headers"]
        | [.., "key" | "keys" | "apikey" | "authorization" | "credentials"] => true,
        [.., before, "token"] => !OF_THE_MODEL.contains(before),
        other => other == ["token"],
    }
}

/// Whether a value is written as keys are, whatever its name: by the beginnings that their makers
/// give them, or by a password in a URL.
pub fn looks_secret(value: &str) -> bool {
    is_key(value) || keys_within(value).next().is_some()
}

fn is_key(word: &str) -> bool {
    const BEGINNINGS: [&str; 9] =
        ["sk-", "hf_", "nvapi-", "ghp_", "github_pat_", "glpat-", "xoxb-", "AKIA", "Bearer "];
    const KEY_BYTES_MIN: usize = 16;
    KEY_BYTES_MIN <= word.len() && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
}

/// Keys that are known by their beginnings; and of URLs with a password the part before the host.
fn keys_within(value: &str) -> impl Iterator<Item = &str> {
    let user = |word: &'_ str| {
        let (_, after) = word.split_once("://")?;
        let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
        let (user, _) = authority.rsplit_once('@').filter(|(user, _)| user.contains(':'))?;
        let start = word.len() - after.len() - "//".len();
        Some(start..start + "//".len() + user.len() + "@".len())
    };
    value.split([' ', '=', ',', '"', '\'']).filter_map(move |word| match user(word) {
        Some(range) => word.get(range),
        None => is_key(word).then_some(word),
    })
}

/// The secrets among words that a user typed: what has a secret name, and what looks like a key. A
/// word behind a value is not one: it may be the name of a model.
pub fn typed<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let is_secret = |name: &str| is_secret(name.trim_start_matches('-'));
    let mut found = Vec::new();
    let mut before = "";
    for word in words {
        if before.starts_with('-') && is_secret(before) {
            found.push(word.to_owned());
        }
        let named = word.split_once(['=', ':']).filter(|(name, _)| is_secret(name));
        found.extend(named.map(|(_, value)| value.trim().to_owned()));
        found.extend(keys_within(word).map(str::to_owned));
        before = word;
    }
    found
}

/// The same in a command of a shell.
pub fn typed_in_command(command: &str) -> Vec<String> {
    match shlex::split(command) {
        Some(words) => typed(words.iter().map(String::as_str)),
        None => typed(command.split_whitespace()),
    }
}

/// The same in a JSON value.
pub fn typed_in(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => typed([text.as_str()]),
        Value::Array(items) => items.iter().flat_map(typed_in).collect(),
        Value::Object(entries) => {
            let of_entry = |(key, value): (&String, &Value)| match value.as_str() {
                Some(text) if is_secret(key) => vec![text.to_owned()],
                Some(_) | None => typed_in(value),
            };
            entries.iter().flat_map(of_entry).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// The flag before a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    Other,
    Key,
    /// Its values have names, which may be seen.
    Header,
}

fn hide(words: &[String], found: &mut Vec<String>) -> Vec<String> {
    let mut behind = Behind::Other;
    let mut shown = Vec::with_capacity(words.len());
    for word in words {
        let is_flag = 1 < word.len() && word.starts_with('-');
        if !is_flag {
            shown.push(hide_value(word, behind, found));
            // Behind a key that is named, the next word is the next argument.
            if behind == Behind::Key && word.starts_with("{env:") && word.ends_with('}') {
                behind = Behind::Other;
            }
            continue;
        }
        let (flag, value) =
            word.split_once('=').map_or((word.as_str(), None), |(flag, value)| (flag, Some(value)));
        behind = match flag.trim_start_matches('-') {
            "header" => Behind::Header,
            name if is_secret(name) => Behind::Key,
            _ => Behind::Other,
        };
        let Some(value) = value else {
            shown.push(flag.to_owned());
            continue;
        };
        shown.push(format!("{flag}={}", hide_value(value, behind, found)));
        // It has its value, and takes no second.
        behind = Behind::Other;
    }
    shown
}

fn hide_value(value: &str, behind: Behind, found: &mut Vec<String>) -> String {
    let named = value.split_once('=').filter(|(name, _)| !name.contains(char::is_whitespace));
    match (behind, named) {
        (Behind::Key, _) | (Behind::Header, None) => take(value, found),
        (Behind::Header, Some((name, value))) => format!("{name}={}", take(value, found)),
        (Behind::Other, Some((name, value))) if is_secret(name) => {
            format!("{name}={}", take(value, found))
        }
        (Behind::Other, _) => hide_within(value, found),
    }
}

/// A value may be an object with keys in it, or a command of its own, as behind `sh -c`.
fn hide_within(value: &str, found: &mut Vec<String>) -> String {
    let before = found.len();
    if value.starts_with('{')
        && let Ok(mut object) = serde_json::from_str(value)
    {
        hide_in_object(&mut object, found);
        return if found.len() == before { value.to_owned() } else { object.to_string() };
    }
    if value.contains(char::is_whitespace)
        && let Some(words) = shlex::split(value)
    {
        let shown = hide(&words, found).join(" ");
        return if found.len() == before { value.to_owned() } else { format!("'{shown}'") };
    }
    value.to_owned()
}

fn hide_in_object(value: &mut Value, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                if is_secret(key) {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    *value = take(&text, found).into();
                } else {
                    hide_in_object(value, found);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide_in_object(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn take(value: &str, found: &mut Vec<String>) -> String {
    found.push(value.to_owned());
    // `Bearer KEY`: the key alone may be what another program repeats.
    found.extend(value.rsplit_once(' ').map(|(_, key)| key.to_owned()));
    HIDDEN.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(typed: &str) -> String {
        hidden(&shlex::split(typed).unwrap()).join(" ")
    }

    #[test]
    fn keys_are_hidden_wherever_a_command_has_them() {
        for (typed, expected) in [
            (
                "vllm serve m --api-key sk-1 sk-2 --port 1",
                "vllm serve m --api-key *** *** --port 1",
            ),
            ("--api_key=sk-1 --hf-token sk-2", "--api_key=*** --hf-token ***"),
            (
                "--header Authorization=Bearer\\ sk-1 X-A=sk-2 --model m",
                "--header Authorization=*** X-A=*** --model m",
            ),
            ("env VLLM_API_KEY=sk-1 vllm serve m", "env VLLM_API_KEY=*** vllm serve m"),
            ("sh -c 'HF_TOKEN=sk-1 run m'", "sh -c HF_TOKEN=***"),
            ("sh -c 'exec run --api-key sk-1'", "sh -c 'exec run --api-key ***'"),
            (
                r#"--extra-body '{"a":{"api_key":"sk-1"}}'"#,
                r#"--extra-body {"a":{"api_key":"***"}}"#,
            ),
        ] {
            assert_eq!(shown(typed), expected);
        }
        let command = shlex::split("--header A=Bearer\\ sk-12345").unwrap();
        let values = values(&command);
        assert_eq!(without(&values, "key sk-12345 refused"), "key *** refused");
    }

    #[test]
    fn what_follows_a_key_that_has_its_value_is_shown() {
        for (typed, expected) in [
            ("vllm serve --api-key {env:K} my/model", "vllm serve --api-key *** my/model"),
            ("vllm serve --api-key=sk-1 my/model", "vllm serve --api-key=*** my/model"),
            ("--set imagePullSecrets[0].name=regcred", "--set imagePullSecrets[0].name=regcred"),
            ("--set auth.existingSecret=mine", "--set auth.existingSecret=mine"),
            ("--set auth.secret=mine", "--set auth.secret=***"),
            ("--set existingSecret.password=mine", "--set existingSecret.password=***"),
            ("--set secretName.token=mine", "--set secretName.token=***"),
        ] {
            assert_eq!(shown(typed), expected);
        }
    }

    #[test]
    fn keys_are_known_by_how_they_are_written() {
        for value in [
            "sk-0123456789abcdef",
            "hf_abcdefghijklmnop",
            "Bearer 0123456789",
            "x=hf_abcdefghijklmnop",
            "http://user:pass@proxy:3128/",
        ] {
            assert!(looks_secret(value), "{value}");
        }
        for value in ["sk-1", "hf_hub", "http://host:80/@x:y", "0,1", "/opt/sk-learn/lib/of/models"]
        {
            assert!(!looks_secret(value), "{value}");
        }
    }

    #[test]
    fn what_is_typed_is_found_without_its_neighbours() {
        for (text, expected) in [
            ("HF_TOKEN=abc123 docker restart vllm", &["abc123"][..]),
            ("serve --api-key abc123 my/model --port 1", &["abc123"]),
            ("curl -H 'Authorization: Basic abc123' host", &["Basic abc123"]),
            ("dcgm=http://u:PW@gpu1:9400/metrics", &["//u:PW@"]),
            ("--api-key-file key.txt --max-tokens 5 http://host:80/", &[]),
        ] {
            assert_eq!(typed_in_command(text), expected, "{text}");
        }
        let body =
            serde_json::json!({ "a": [{ "password": "p1" }], "stop": "sk-0123456789abcdef" });
        assert_eq!(typed_in(&body), ["p1", "sk-0123456789abcdef"]);
    }

    #[test]
    fn what_only_sounds_like_a_key_is_shown() {
        for typed in [
            "--max-num-batched-tokens 8192 --tokenizer t --tokenizer-mode auto",
            "--long-prefill-token-threshold 4 --speculative-token-map f --eos-token x",
            "--ssl-keyfile f --served-model-name key=value2 -tp 2",
        ] {
            let expected = typed.replace("key=value2", "key=***");
            assert_eq!(shown(typed), expected);
        }
        for name in ["max_num_batched_tokens", "tokenizer", "monkey", "keyfile", "num_prompts"] {
            assert!(!is_secret(name), "{name}");
        }
        for name in ["api_key", "API-KEY", "hf_token", "token", "client_secret_id", "header"] {
            assert!(is_secret(name), "{name}");
        }
    }
}
