//! Commands that were typed as one text: their words, and where their server listens.

use inferometer_model::BaseUrl;

use crate::bench::origin;
use crate::failure::Failure;

/// Hosts of a server that listens on all addresses, this machine's own among them.
const EVERYWHERE: [&str; 3] = ["0.0.0.0", "::", "[::]"];

/// The words of a command, as a shell would split them. Nothing is expanded. It is not repeated
/// where it cannot be split: a key may be in it.
pub(super) fn words(flag: &str, typed: &str) -> Result<Vec<String>, Failure> {
    let words = shlex::split(typed)
        .ok_or_else(|| Failure::usage(format!("{flag}: a quote is not closed")))?;
    if words.is_empty() {
        return Err(Failure::usage(format!("{flag} is empty: it names no command")));
    }
    Ok(words)
}

/// What stands behind `bench serve`: those flags are ours to obey, whoever was to run them.
pub(super) fn bench_flags(words: &[String]) -> Result<Vec<String>, Failure> {
    let place = words.windows(2).position(|pair| pair[0] == "bench" && pair[1] == "serve");
    let Some(place) = place else {
        return Err(Failure::usage("--bench-cmd has no `bench serve`, so its flags are not known")
            .hint(
                "write it as for vLLM: --bench-cmd 'vllm bench serve --model … --num-prompts 100'",
            ));
    };
    Ok(words[place + 2..].to_vec())
}

/// Where a server with this command listens: `--host` and `--port`, as `vllm serve` has them.
pub(super) fn address(serve: &[String]) -> Result<BaseUrl, Failure> {
    let host = value(serve, &["--host"]).filter(|host| !EVERYWHERE.contains(host));
    let port = value(serve, &["--port", "-p"]).unwrap_or("8000");
    let url = origin(host.unwrap_or("127.0.0.1"), port);
    url.parse().map_err(|error| {
        Failure::usage(format!("--serve-cmd listens on `{url}`, which is no address: {error}"))
    })
}

fn value<'a>(words: &'a [String], flags: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().rev().find_map(|(at, word)| {
        if flags.contains(&word.as_str()) {
            return words.get(at + 1).map(String::as_str);
        }
        let (flag, value) = word.split_once('=')?;
        flags.contains(&flag).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(typed: &str) -> Vec<String> {
        words("--serve-cmd", typed).unwrap()
    }

    #[test]
    fn flags_of_the_benchmark_are_found_behind_any_program() {
        for typed in [
            "vllm bench serve --model 'a b'",
            "python -m vllm.entrypoints.cli.main bench serve --model 'a b'",
        ] {
            assert_eq!(bench_flags(&split(typed)).unwrap(), ["--model", "a b"]);
        }
        assert!(bench_flags(&split("bench_serving --model x")).is_err());
        assert!(words("--serve-cmd", "vllm 'x").is_err() && words("--serve-cmd", " ").is_err());
    }

    #[test]
    fn the_last_address_counts() {
        let at = |typed: &str| address(&split(typed)).unwrap().to_string();
        assert_eq!(at("vllm serve m"), "http://127.0.0.1:8000");
        assert_eq!(at("vllm serve m --host 0.0.0.0 --port 1 --port=8123"), "http://127.0.0.1:8123");
        assert_eq!(at("x --host localhost -p 9"), "http://localhost:9");
        assert_eq!(at("x --host ::1"), "http://[::1]:8000");
        assert_eq!(at("x --host :: --port 1"), "http://127.0.0.1:1");
        assert!(address(&split("vllm serve m --port x")).is_err());
    }
}
