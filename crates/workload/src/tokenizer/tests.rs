//! Finding tokenizers, and rendering chats.

use std::fs;

use serde_json::json;
use tempfile::TempDir;

use super::*;

/// Three words, and one for all others.
pub(crate) fn small() -> String {
    json!({
        "version": "1.0",
        "truncation": {
            "direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0,
        },
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": { "type": "WhitespaceSplit" },
        "post_processor": null,
        "decoder": null,
        "model": {
            "type": "WordLevel", "unk_token": "?",
            "vocab": { "?": 0, "one": 1, "two": 2, "three": 3 },
        },
    })
    .to_string()
}

pub(crate) fn hub(cache: &TempDir, endpoint: &str) -> Hub {
    let cache = cache.path().to_str().unwrap().to_owned();
    let endpoint = endpoint.to_owned();
    Hub::from_variables(move |name| match name {
        "HF_HUB_CACHE" => Some(cache.clone()),
        "HF_ENDPOINT" => Some(endpoint.clone()),
        _ => None,
    })
}

#[test]
fn a_file_a_directory_and_a_cached_name_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tokenizer.json");
    fs::write(&file, small()).unwrap();
    let by_file = Tokenizer::open(file.to_str().unwrap()).unwrap();
    let by_folder = Tokenizer::open(folder.path().to_str().unwrap()).unwrap();
    assert_eq!(by_file.facts().sha256, by_folder.facts().sha256);
    assert_eq!(by_file.facts().sha256.len(), 64);
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    assert_eq!([by_file.facts().name, by_folder.facts().name], [name; 2], "no folders above it");
    let other = folder.path().join("other.json");
    fs::copy(&file, &other).unwrap();
    assert_eq!(Tokenizer::open(other.to_str().unwrap()).unwrap().facts().name, "other.json");

    let model = folder.path().join("models--owner--model");
    fs::create_dir_all(model.join("refs")).unwrap();
    fs::create_dir_all(model.join("snapshots/abc")).unwrap();
    fs::write(model.join("refs/main"), "abc\n").unwrap();
    fs::write(model.join("snapshots/abc/tokenizer.json"), small()).unwrap();
    let offline = Hub { offline: true, ..hub(&folder, "http://127.0.0.1:1") };
    let cached = Tokenizer::open_with("owner/model", &offline).unwrap();
    assert_eq!(cached.facts().sha256, by_file.facts().sha256);
    assert_eq!(cached.facts().name, "owner/model");
}

#[test]
fn texts_are_counted_whole_whatever_the_file_says_about_cutting_them() {
    let tokenizer = Tokenizer::from_bytes("small", small().as_bytes()).unwrap();
    assert_eq!(tokenizer.count("one two three four"), 4);
    assert_eq!(tokenizer.encode("one two four"), [1, 2, 0]);
    assert_eq!(tokenizer.decode(&[3, 1]), "three one");
    assert_eq!(tokenizer.special_tokens(), 0);
}

#[test]
fn what_is_missing_is_named_with_where_it_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let offline = Hub { offline: true, ..hub(&folder, "http://127.0.0.1:1") };
    let error = |name: &str| Tokenizer::open_with(name, &offline).unwrap_err().to_string();
    let cache = folder.path().to_str().unwrap();
    let absent = error("owner/model");
    for part in ["owner/model", cache, "HF_HUB_OFFLINE", "--tokenizer"] {
        assert!(absent.contains(part), "{absent}");
    }
    assert!(error("./nowhere/tokenizer.json").contains("neither a file nor a directory"));
    assert!(error("../owner").contains("neither a file nor a directory"));
    assert!(error(cache).contains("no tokenizer.json, tokenizer.model or tekken.json in"));
    fs::write(folder.path().join("tokenizer.json"), "{}").unwrap();
    assert!(error(cache).contains("is not a tokenizer"));
}

#[test]
fn the_environment_is_read_as_by_the_hubs_own_client() {
    let of = |set: &[(&str, &str)]| {
        let set: Vec<_> =
            set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Hub::from_variables(move |name| {
            set.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        })
    };
    let cache = |set: &[(&str, &str)]| of(set).cache.to_str().unwrap().to_owned();
    let home = ("HOME", "/h");
    assert_eq!(cache(&[home]), "/h/.cache/huggingface/hub");
    assert_eq!(cache(&[home, ("XDG_CACHE_HOME", "/x")]), "/x/huggingface/hub");
    assert_eq!(cache(&[home, ("HF_HOME", "/f")]), "/f/hub");
    assert_eq!(cache(&[("HF_HOME", "/f"), ("HF_HUB_CACHE", "/c")]), "/c");
    assert!(of(&[("HF_HUB_OFFLINE", "1")]).offline);
    assert!(!of(&[("HF_HUB_OFFLINE", "0")]).offline);
    assert_eq!(of(&[("HF_ENDPOINT", "http://mirror/")]).endpoint, "http://mirror");
    assert!(!format!("{:?}", of(&[("HF_TOKEN", "secret-token")])).contains("secret-token"));
}

#[test]
fn chats_are_rendered_as_the_models_were_trained() {
    let config = json!({ "bos_token": { "content": "<s>" }, "eos_token": "</s>" });
    let template = "{{ bos_token }}
{%- set ns = namespace(first=true) %}
{% for message in messages %}
    {% if message.role not in ['system', 'user'] %}
{{ raise_exception('no ' + message.role) }}
    {% endif %}
    {%- if loop.first %}{{ '[' }}{% endif %}
{{ message['content'].strip().upper() | tojson }}{{ eos_token }}
    {%- if loop.last %}{{ ']' }}{% endif %}
{% endfor %}
{%- if add_generation_prompt %}>{% endif %}";
    let tokenizer = Tokenizer::from_bytes("small", small().as_bytes()).unwrap();
    let none = tokenizer.render_chat(&[Message::new("user", "x")], true).unwrap();
    assert_eq!(none, None);
    let tokenizer = tokenizer.with_template(template, &config);
    let render = |role: &str, more| tokenizer.render_chat(&[Message::new(role, " one ")], more);
    assert_eq!(render("user", true).unwrap().unwrap(), "<s>[\"ONE\"</s>]>");
    assert_eq!(render("user", false).unwrap().unwrap(), "<s>[\"ONE\"</s>]");
    assert!(render("tool", true).unwrap_err().to_string().contains("no tool"));
}

#[test]
fn a_template_that_cannot_be_used_says_why() {
    let make = |template: &str| {
        let tokenizer = Tokenizer::from_bytes("small", small().as_bytes()).unwrap();
        let tokenizer = tokenizer.with_template(template, &json!({}));
        tokenizer.render_chat(&[Message::new("user", "x")], true).unwrap_err().to_string()
    };
    assert!(make("{{ strftime_now('%d %b %Y') }}").contains("today's date"));
    assert!(make("{{ strftime_then('%Y') }}").contains("strftime_then"));
    assert!(make("{% for %}").contains("cannot be used"));
}

#[test]
fn what_templates_of_our_day_make_use_of_is_there() {
    let template =
        "{%- if strftime_now is defined %}{{ strftime_now('%Y') }}{% else %}2024{% endif %}
{%- if tools is not none or documents %}{{ raise_exception('tools') }}{% endif %}
{%- set ns = namespace(last=-1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if message.role == 'user' and ns.last < 0 %}{% set ns.last = index %}{% endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if loop.index0 > ns.last %}{% break %}{% endif %}
    {%- set content = message.content if message.content is string else '' %}
    {{- ' ' + message.role + ':' + content.split('</think>')[-1].lstrip('\n').rstrip() }}
    {%- if message.get('name') %}{{ message.name }}{% endif %}
    {%- if content.startswith('a') and loop.previtem is defined %}!{% endif %}
{%- endfor %}";
    let tokenizer = Tokenizer::from_bytes("small", small().as_bytes()).unwrap();
    let tokenizer = tokenizer.with_template(template, &json!({}));
    let messages = [("user", "one "), ("assistant", "x</think>\ny"), ("user", "a"), ("tool", "z")];
    let messages = messages.map(|(role, text)| Message::new(role, text));
    let rendered = tokenizer.render_chat(&messages, true).unwrap().unwrap();
    assert_eq!(rendered, "2024 user:one assistant:y user:a!");
}

#[test]
fn templates_are_found_in_each_of_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
    let rendered = || {
        let tokenizer = Tokenizer::open(folder.path().to_str().unwrap()).unwrap();
        tokenizer.render_chat(&[], false).unwrap()
    };
    write("tokenizer.json", &small());
    assert_eq!(rendered(), None);
    write("tokenizer_config.json", &json!({ "chat_template": "a" }).to_string());
    assert_eq!(rendered().as_deref(), Some("a"));
    let named =
        json!([{ "name": "tool", "template": "x" }, { "name": "default", "template": "b" }]);
    write("tokenizer_config.json", &json!({ "chat_template": named }).to_string());
    assert_eq!(rendered().as_deref(), Some("b"));
    write("chat_template.json", &json!({ "chat_template": "c" }).to_string());
    assert_eq!(rendered().as_deref(), Some("c"));
    write("chat_template.jinja", "d");
    assert_eq!(rendered().as_deref(), Some("d"));
}

#[test]
fn the_hash_is_of_all_that_is_used() {
    let hash = |config: &serde_json::Value, template: bool, special_names: bool| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tokenizer.json"), small()).unwrap();
        fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
        let tokenizer = Tokenizer::open(folder.path().to_str().unwrap()).unwrap();
        tokenizer.facts_with(TokenizerParts { template, special_names }).sha256
    };
    let one = json!({ "bos_token": "one", "chat_template": "{{ bos_token }} a" });
    let other = json!({ "bos_token": "one", "chat_template": "{{ bos_token }} b" });
    let named = json!({ "bos_token": "two", "chat_template": "{{ bos_token }} a" });
    assert_eq!(hash(&one, false, false), hash(&other, false, false));
    assert_eq!(hash(&one, false, true), hash(&other, false, true));
    assert_ne!(hash(&one, true, false), hash(&other, true, false));
    assert_ne!(hash(&one, true, false), hash(&one, false, false));
    assert_eq!(hash(&one, false, false), hash(&named, false, false));
    assert_ne!(hash(&one, false, true), hash(&named, false, true));
    assert_ne!(hash(&one, true, false), hash(&named, true, false), "the template writes it");
}

#[test]
fn a_template_without_an_end_or_a_measure_is_refused() {
    let refused = |template: &str| {
        let tokenizer = Tokenizer::from_bytes("small", small().as_bytes()).unwrap();
        let tokenizer = tokenizer.with_template(template, &json!({}));
        tokenizer.render_chat(&[Message::new("user", "one")], true).unwrap_err().to_string()
    };
    let endless =
        refused("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}");
    assert!(endless.contains("fuel"), "{endless}");
    let long =
        refused("{% set a = 'x' * 65536 %}{% for b in range(9999) %}{{ a }}{{ a }}{% endfor %}");
    assert!(long.contains("longer than"), "{long}");
}
