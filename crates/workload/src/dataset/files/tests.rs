//! Names of files as they are on the hub, and a hub of our own on the loopback.

use super::*;

fn part(config: Option<&str>, split: Option<&str>) -> DatasetPart {
    let owned = |name: Option<&str>| name.map(str::to_owned);
    DatasetPart { config: owned(config), split: owned(split), ..DatasetPart::default() }
}

fn chosen(files: &[&str], config: Option<&str>, split: Option<&str>) -> Result<String, String> {
    let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
    select(&files, &part(config, split), None).map(|files| files.join(" "))
}

#[test]
fn a_split_is_found_however_its_files_are_called() {
    let shards = [
        "README.md",
        "data/test-00000-of-00001.parquet",
        "data/train-00000-of-00002.parquet",
        "data/train-00001-of-00002.parquet",
        "data/train_sft-00000-of-00001.parquet",
        "dataset_infos.json",
    ];
    let both = "data/train-00000-of-00002.parquet data/train-00001-of-00002.parquet";
    assert_eq!(chosen(&shards, None, None).unwrap(), both);
    assert_eq!(chosen(&shards, Some("default"), Some("train")).unwrap(), both);
    let sft = chosen(&shards, None, Some("train_sft")).unwrap();
    assert_eq!(sft, "data/train_sft-00000-of-00001.parquet");
    assert_eq!(chosen(&["mt_train.jsonl", "x.py"], None, None).unwrap(), "mt_train.jsonl");
    assert_eq!(chosen(&["question.jsonl"], None, None).unwrap(), "question.jsonl");
    let said = chosen(&shards, None, Some("dev")).unwrap_err();
    assert!(said.contains("--dataset-split dev") && said.contains("data/test"), "{said}");
}

#[test]
fn several_datasets_are_not_mixed() {
    let files = ["main/train-00000-of-00001.parquet", "socratic/train-00000-of-00001.parquet"];
    let said = chosen(&files, None, None).unwrap_err();
    assert!(said.contains("main/train, socratic/train"), "{said}");
    assert_eq!(chosen(&files, Some("socratic"), None).unwrap(), files[1]);
    let said = chosen(&files, Some("other"), None).unwrap_err();
    assert!(said.contains("--dataset-config other"), "{said}");
    assert!(chosen(&["a.py", "weights.bin"], None, None).unwrap_err().contains("no Parquet"));
}

#[test]
fn a_name_on_the_hub_is_not_a_path() {
    let of = |text: &str| {
        let found = HubDataset::from_path(Path::new(text));
        found.map(|it| format!("{} {}", it.name, it.file.unwrap_or_default()))
    };
    assert_eq!(of("openai/gsm8k").as_deref(), Some("openai/gsm8k "));
    assert_eq!(of("hf:o/n/data/x.json").as_deref(), Some("o/n data/x.json"));
    for path in ["chats.json", "data/chats.json", "/tmp/x", "./o/n", "a/b/c", "hf:one", "../x"] {
        assert_eq!(of(path), None, "{path}");
    }
}

#[cfg(feature = "hub")]
mod hub {
    use std::sync::mpsc::Receiver;

    use inferometer_model::Prompt;
    use tempfile::TempDir;

    use super::*;
    use crate::counter::PromptCounter;
    use crate::dataset::{BOUNDS, Dataset, DatasetError, read_within};
    use crate::hub::download::tests::{Asked, not_found, reply, serve};

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
    const LINES: &str = "{\"question\":\"one two\"}\n{\"question\":\"three four five\"}\n";

    /// A hub with a dataset of two shards and another split.
    fn hub() -> (Hub, TempDir, Receiver<Asked>) {
        let names = ["train-00000-of-00002", "train-00001-of-00002", "test", "../../up"];
        let siblings: Vec<_> = names
            .iter()
            .map(|name| serde_json::json!({ "rfilename": format!("{name}.jsonl") }))
            .collect();
        let listing = serde_json::json!({ "sha": COMMIT, "siblings": siblings }).to_string();
        let (endpoint, asked) = serve(move |path| match path {
            "/api/datasets/o/n/revision/main" => reply("200 OK", "", &listing),
            _ if path.starts_with("/datasets/o/n/resolve/")
                && path.strip_suffix(".jsonl").is_some() =>
            {
                reply("200 OK", "", LINES)
            }
            _ => not_found(),
        });
        let cache = tempfile::tempdir().unwrap();
        let hub = crate::tokenizer::tests::hub(&cache, &endpoint);
        (hub, cache, asked)
    }

    fn read(name: &str, split: Option<&str>, hub: &Hub) -> Result<Dataset, DatasetError> {
        let mut part = part(None, split);
        part.columns =
            [(inferometer_model::spec::DatasetRole::Prompt, "question".to_owned())].into();
        let spec = DatasetSpec { path: name.into(), part, ..DatasetSpec::default() };
        read_within(&spec, hub, &PromptCounter::default(), BOUNDS)
    }

    #[test]
    fn a_dataset_is_downloaded_once_and_found_again_without_a_network() {
        let (hub, cache, asked) = hub();
        let dataset = read("o/n", None, &hub).unwrap();
        assert_eq!(dataset.items.len(), 4);
        assert_eq!(dataset.items[1].prompt, Prompt::Text("three four five".to_owned()));
        assert_eq!(dataset.facts.name, "o/n@0123456789ab/train (2 files)");
        assert_eq!(dataset.facts.sha256.len(), 64);
        let paths: Vec<String> = asked.try_iter().map(|asked| asked.path).collect();
        assert_eq!(paths.len(), 3, "{paths:?}");
        assert!(paths[1].contains(COMMIT), "what is fetched is of the commit that was listed");
        let folder = cache.path().join("datasets--o--n/snapshots").join(COMMIT);
        assert_eq!(fs::read_to_string(folder.join("train-00001-of-00002.jsonl")).unwrap(), LINES);

        let offline = Hub { offline: true, ..hub.clone() };
        let again = read("hf:o/n", None, &offline).unwrap();
        assert_eq!((again.facts, asked.try_iter().count()), (dataset.facts, 0));
        let said = read("o/n", Some("test"), &offline).unwrap_err().to_string();
        assert!(said.contains("HF_HUB_OFFLINE") && said.contains("train"), "{said}");
        fs::remove_file(folder.join("train-00001-of-00002.jsonl")).unwrap();
        let said = read("o/n", None, &offline).unwrap_err().to_string();
        assert!(said.contains("HF_HUB_OFFLINE"), "a shard is missing: {said}");

        assert_eq!(read("hf:o/n/test.jsonl", None, &hub).unwrap().items.len(), 2);
        assert_eq!(read("o/n", Some("test"), &offline).unwrap().items.len(), 2);
    }

    #[test]
    fn datasets_that_other_clients_know_are_known_here() {
        let cache = tempfile::tempdir().unwrap();
        let hub = crate::tokenizer::tests::hub(&cache, "http://127.0.0.1:1");
        let hub = Hub { offline: true, ..hub };
        let folder = cache.path().join("datasets--philschmid--mt-bench");
        fs::create_dir_all(folder.join("refs")).unwrap();
        fs::create_dir_all(folder.join("snapshots/abc")).unwrap();
        fs::write(folder.join("refs/main"), "abc").unwrap();
        let line = r#"{"turns":["one two three","four"],"category":"writing"}"#;
        fs::write(folder.join("snapshots/abc/question.jsonl"), line).unwrap();
        let spec = DatasetSpec { path: "philschmid/mt-bench".into(), ..DatasetSpec::default() };
        let dataset = read_within(&spec, &hub, &PromptCounter::default(), BOUNDS).unwrap();
        let [item] = dataset.items.as_slice() else { panic!("{dataset:?}") };
        assert_eq!((item.input_tokens, item.output_tokens), (3, Some(256)));
    }

    #[test]
    fn what_is_not_on_the_hub_is_named_with_what_to_do() {
        let (hub, cache, _asked) = hub();
        let said = read("o/missing", None, &hub).unwrap_err().to_string();
        for part in ["`o/missing`", "404", hub.endpoint.as_str(), "--dataset", "hf download"] {
            assert!(said.contains(part), "{said}");
        }
        let said = read("hf:o/n/none.json", None, &hub).unwrap_err().to_string();
        assert!(said.contains("no file `none.json`") && !said.contains("up.jsonl"), "{said}");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0, "nothing is left behind");
    }
}
