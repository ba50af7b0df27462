//! What makes two contents, or two workloads, the same.

use inferometer_model::{Message, SpecDraft};
use serde_json::Map;

use super::*;

fn print_of(content: &Content) -> String {
    let mut hash = Sha256::new();
    add_content(&mut hash, content);
    half(hash)
}

#[test]
fn pieces_that_are_cut_elsewhere_are_others() {
    let with_images = |text: &str, images: &[&str]| Content {
        images: images.iter().map(|image| (*image).to_owned()).collect(),
        ..Content::text(text)
    };
    let contents = [
        with_images("ab", &[]),
        with_images("a", &["b"]),
        with_images("", &["ab"]),
        with_images("", &["a", "b"]),
        Content { model: Some(String::new()), ..Content::text("ab") },
        Content { model: Some("b".to_owned()), ..Content::text("a") },
        Content { fields: Map::from_iter([("a".to_owned(), 1.into())]), ..Content::text("ab") },
        Content::new(Prompt::Messages(vec![Message::new("user", "ab")])),
        Content::text(r#"[{"role":"user","content":"ab"}]"#),
        Content::text(r#"[{"content":"ab","role":"user"}]"#),
    ];
    let prints: std::collections::BTreeSet<_> = contents.iter().map(print_of).collect();
    assert_eq!(prints.len(), contents.len());
}

#[test]
fn a_file_is_what_it_holds_and_how_it_is_read() {
    use inferometer_model::observations::FileFacts;
    use inferometer_model::spec::{DatasetKind, DatasetSpec};
    let spec = SpecDraft::default().resolve().unwrap();
    let print = |typed, path: &str, told: &str| {
        let dataset = DatasetSpec { path: path.into(), kind: typed, ..DatasetSpec::default() };
        let workload = Workload { source: Source::Dataset(dataset), ..spec.workload.clone() };
        let file = FileFacts {
            name: path.to_owned(),
            kind: told.to_owned(),
            sha256: "00".to_owned(),
            items: 1,
            dropped: std::collections::BTreeMap::new(),
        };
        let materials = Materials { files: vec![file], ..Materials::default() };
        of_workload(spec.api, &workload, &spec.load, &materials)
    };
    let told = print(None, "a.csv", "csv");
    assert_eq!(told, print(Some(DatasetKind::Csv), "b.txt", "csv"), "typed or told is the same");
    assert_ne!(told, print(None, "a.txt", "text"), "other prompts come out of it");
}

#[test]
fn a_part_of_a_mix_may_be_called_anything() {
    use inferometer_model::spec::MixPart;
    let spec = SpecDraft::default().resolve().unwrap();
    let print = |name: &str, weight| {
        let part = MixPart { name: name.to_owned(), weight, source: spec.workload.source.clone() };
        let workload = Workload { source: Source::Mix(vec![part]), ..spec.workload.clone() };
        of_workload(spec.api, &workload, &spec.load, &Materials::default())
    };
    assert_eq!(print("short", 1.0), print("brief", 1.0));
    assert_ne!(print("short", 1.0), print("short", 2.0));
}
