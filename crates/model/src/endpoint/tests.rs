//! Paths, names and URLs, and what each API can carry.

use super::*;

fn parsed(text: &str) -> String {
    text.parse::<BaseUrl>().map_or_else(|error| error.to_string(), |base| base.to_string())
}

#[test]
fn prefix_and_v1_are_both_optional() {
    for (typed, base) in [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000"),
        ("localhost:8000", "http://localhost:8000"),
        ("https://gateway.example/team/llm/v1", "https://gateway.example/team/llm"),
        ("https://gateway.example:443/team", "https://gateway.example/team"),
        ("http://h:1/v1/chat/completions", "http://h:1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
    ] {
        assert_eq!(parsed(typed), base, "typed {typed}");
    }
}

#[test]
fn an_endpoint_is_joined_to_the_prefix() {
    let base: BaseUrl = "http://h:1/team/v1".parse().unwrap();
    assert_eq!(base.path(&Api::Chat.path(true, "m")), "/team/v1/chat/completions");
}

#[test]
fn names_are_the_stored_ones() {
    for api in Api::all() {
        assert_eq!(api.facts().api, api, "the table is in the order of the variants");
        assert_eq!(serde_json::to_value(api).unwrap(), api.name());
    }
}

#[test]
fn every_endpoint_is_found_again_in_its_own_path_and_taken_off_when_pasted() {
    for api in Api::all() {
        for streaming in [true, false] {
            let path = api.path(streaming, "org/a model");
            let expected = match &*path {
                // Two servers have this path.
                "/generate" => Api::SglangGenerate,
                _ => api,
            };
            assert_eq!(Api::from_path(&path), Some(expected), "{path}");
            assert_eq!(Api::from_path(&format!("/team{path}/")), Some(expected), "{path}");
            assert_eq!(parsed(&format!("http://h:1/team{path}")), "http://h:1/team", "{path}");
        }
    }
    assert_eq!(parsed("http://h:1/v1/models"), "http://h:1");
}

#[test]
fn what_is_no_endpoint_names_no_api() {
    for path in ["", "/", "/v1", "/v1/models", "/v2/rerank", "/chat/completions", "/regenerate"] {
        assert_eq!(Api::from_path(path), None, "{path}");
    }
    assert_eq!(Api::from_path("/v2/models/m/versions/3/generate"), Some(Api::TritonGenerate));
    assert_eq!(parsed("http://h/v2/models/m/versions/3/generate_stream"), "http://h");
}

#[test]
fn a_model_stays_one_segment_of_its_path() {
    let path = |model| Api::TritonGenerate.path(true, model);
    assert_eq!(path("llama-3.1_8b"), "/v2/models/llama-3.1_8b/generate_stream");
    assert_eq!(path("org/ä b?x#%"), "/v2/models/org%2F%C3%A4%20b%3Fx%23%25/generate_stream");
    assert_eq!(Api::TritonGenerate.path(false, "m"), "/v2/models/m/generate");
}

/// Faults: 111.
#[test]
fn credentials_are_refused_without_being_repeated() {
    let message = parsed("http://user:sk-secret@h:1");
    assert!(message.contains("--api-key-file"), "{message}");
    for typed in [
        "http://user:sk-secret@h:1",
        "http://user:sk-secret@h:notaport",
        "ftp://user:sk-secret@h",
        "user:sk-secret@h:x",
        "http://h/v1?api_key=sk-secret",
        "http://h/#sk-secret",
    ] {
        assert!(!parsed(typed).contains("sk-secret"), "{}", parsed(typed));
    }
}

#[test]
fn what_cannot_be_measured_is_named() {
    assert!(parsed("ftp://h").contains("`ftp`"));
    assert!(parsed("http://h/?key=1").contains("query"));
    assert!(parsed("http://").contains("not a URL"));
    assert!(parsed("http:/h:1").contains("not a URL"));
    assert!(parsed("18103").contains("http://localhost:18103"));
}

#[test]
fn what_an_api_sets_itself_is_where_its_body_has_it() {
    for api in Api::all() {
        assert!(!api.facts().own_fields.is_empty(), "{api}");
    }
    assert!(Api::OllamaChat.facts().own_fields.contains(&"num_predict"));
    assert_eq!(Api::OllamaChat.facts().container, Some("options"));
    assert!(Api::Responses.facts().own_fields.contains(&"max_output_tokens"));
    assert_eq!(Api::all().map(|api| api.facts().output_tokens_min).max(), Some(16));
}
