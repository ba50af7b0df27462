//! Data sets that are made here, whole and broken. Words are tokens, so every truth can be counted
//! by eye.

use std::fs;
use std::path::Path;

use inferometer_model::Message;
use inferometer_model::spec::Lengths;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::counter::PromptCounter;

/// Counts words.
fn by_words() -> PromptCounter {
    PromptCounter::default()
}

fn spec(path: &Path) -> DatasetSpec {
    let path = path.to_path_buf();
    DatasetSpec { path, ..DatasetSpec::default() }
}

struct Made {
    _folder: TempDir,
    spec: DatasetSpec,
}

fn made(name: &str, content: impl AsRef<[u8]>) -> Made {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    Made { spec: spec(&path), _folder: folder }
}

impl Made {
    fn read(&self) -> Dataset {
        read(&self.spec, &by_words()).unwrap()
    }

    fn refused(&self) -> String {
        read(&self.spec, &by_words()).unwrap_err().to_string()
    }

    fn with_kind(mut self, kind: DatasetKind) -> Self {
        self.spec.kind = Some(kind);
        self
    }
}

fn dropped(dataset: &Dataset) -> Vec<(&str, u64)> {
    dataset.facts.dropped.iter().map(|(reason, count)| (reason.as_str(), *count)).collect()
}

fn text(item: &Item) -> &str {
    let Prompt::Text(text) = &item.prompt else { panic!("{item:?} is not a text") };
    text
}

fn words(count: usize) -> String {
    vec!["word"; count].join(" ")
}

fn conversation(turns: &[usize]) -> Value {
    let turns = turns.iter().map(|count| json!({ "from": "human", "value": words(*count) }));
    json!({ "id": "x", "conversations": turns.collect::<Vec<_>>() })
}

fn share_gpt() -> Value {
    json!([
        conversation(&[10, 20, 5]),
        conversation(&[10]),
        conversation(&[3, 20]),
        conversation(&[10, 3]),
        conversation(&[1_025, 20]),
        conversation(&[1_024, 1_024]),
        conversation(&[1_024, 1_025]),
        conversation(&[4, 4]),
    ])
}

#[test]
fn lengths_that_a_file_would_ignore_are_refused() {
    for (name, content) in [("d.csv", "prompt\nHi there\n"), ("d.jsonl", "{\"prompt\":\"Hi\"}\n")] {
        let mut made = made(name, content);
        assert_eq!(made.read().items.len(), 1);
        made.spec.input = Some(Lengths::Fixed(100));
        let said = made.refused();
        assert!(said.contains("--input-tokens has no effect") && said.contains(name), "{said}");
    }
}

#[test]
fn share_gpt_keeps_first_turns_within_the_usual_limits() {
    let dataset = made("data.json", share_gpt().to_string()).read();
    let lengths: Vec<_> =
        dataset.items.iter().map(|item| (item.input_tokens, item.output_tokens)).collect();
    assert_eq!(lengths, [(10, Some(20)), (1_024, Some(1_024)), (4, Some(4))]);
    assert_eq!(text(&dataset.items[0]), words(10));
    assert_eq!(
        dropped(&dataset),
        [
            ("answer below 4 tokens", 1),
            ("fewer than two turns", 1),
            ("prompt above 1024 tokens", 1),
            ("prompt and answer above 2048 tokens", 1),
            ("prompt below 4 tokens", 1),
        ]
    );
    assert_eq!(dataset.facts.kind, "sharegpt");
    assert_eq!((dataset.facts.items, dataset.facts.name.as_str()), (3, "data.json"));
}

#[test]
fn a_chosen_output_replaces_the_answer_and_its_limits() {
    let mut made = made("data.json", share_gpt().to_string());
    made.spec.output = Some(Lengths::Fixed(1_500));
    let dataset = made.read();
    // Both with 10 words fit, whatever their answers; with 1,024 none does.
    let lengths: Vec<_> =
        dataset.items.iter().map(|item| (item.input_tokens, item.output_tokens)).collect();
    assert_eq!(lengths, [(10, None), (10, None), (4, None)]);
    assert_eq!(dataset.facts.dropped["prompt and answer above 2048 tokens"], 2);
}

#[test]
fn a_pretty_array_and_a_batch_of_thousands_are_read_alike() {
    let pretty = serde_json::to_string_pretty(&share_gpt()).unwrap();
    assert_eq!(made("data", pretty).read().items.len(), 3);
    let many: Vec<_> = (0..10_000).map(|number| conversation(&[4 + number % 900, 7])).collect();
    let dataset = made("data.json", Value::Array(many).to_string()).read();
    let in_order = dataset.items.iter().enumerate();
    assert!(in_order.clone().all(|(number, item)| item.input_tokens as usize == 4 + number % 900));
    assert_eq!(in_order.count(), 10_000);
}

#[test]
fn a_broken_array_is_refused_by_its_item() {
    let whole = share_gpt().to_string();
    let cut = made("data.json", &whole[..whole.len() / 2]).refused();
    assert!(cut.contains("data.json, item ") && cut.contains("is it complete?"), "{cut}");
    let unclosed = made("data.json", &whole[..whole.len() - 1]).refused();
    assert!(unclosed.contains("item 9") && unclosed.contains("is it complete?"), "{unclosed}");
    let strange = json!([conversation(&[9, 9]), { "prompt": "x" }]).to_string();
    let strange = made("data.json", strange).refused();
    assert!(strange.contains("item 2") && strange.contains("conversations"), "{strange}");
    let behind = made("data.json", format!("{whole} ]")).refused();
    assert!(behind.contains("trailing characters"), "{behind}");
    let nothing = made("data.json", json!([conversation(&[1, 9])]).to_string()).refused();
    assert!(nothing.contains("left out: 1 × prompt below 4 tokens"), "{nothing}");
    assert!(made("data.json", "[]").refused().ends_with("is empty"));
}

#[test]
fn json_lines_keep_messages_lengths_and_bodies() {
    let lines = [
        json!({ "prompt": "one two three", "output_tokens": 7 }),
        json!({ "messages": [{ "role": "system", "content": "be good" },
                             { "role": "user", "content": "hello", "name": "eve" }],
                "max_tokens": 9, "body": { "temperature": 0.5 }, "id": 3 }),
        json!({ "prompt": "five six seven eight", "extra_body": { "top_k": 1 }, "id": 4, "tag": null }),
        json!({ "prompt": "", "output_len": 1 }),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n\n");
    let dataset = made("data.jsonl", format!("\u{feff}{lines}\r\n")).read();
    let [plain, chat, tokens] = dataset.items.as_slice() else { panic!("{dataset:?}") };
    assert_eq!((plain.input_tokens, plain.output_tokens), (3, Some(7)));
    assert_eq!((chat.input_tokens, chat.output_tokens), (3, Some(9)));
    let mut user = Message::new("user", "hello");
    user.0.insert("name".to_owned(), "eve".into());
    assert_eq!(chat.prompt, Prompt::Messages(vec![Message::new("system", "be good"), user]));
    assert_eq!(Value::Object(chat.fields.clone()), json!({ "temperature": 0.5 }));
    assert_eq!((tokens.input_tokens, tokens.output_tokens), (4, None));
    assert_eq!(tokens.prompt, Prompt::Text("five six seven eight".to_owned()));
    assert_eq!(dropped(&dataset), [("empty prompt", 1)]);
    let note = "ignored because it has no meaning here: key `id` (2 times), key `tag` (once)";
    assert_eq!(dataset.notes, [note]);
}

#[test]
fn unknown_keys_without_end_are_told_apart_only_so_far() {
    let lines =
        (0..100).map(|number| json!({ "prompt": "x", format!("k{number}"): 1 }).to_string());
    let dataset = made("data.jsonl", lines.collect::<Vec<_>>().join("\n")).read();
    assert_eq!(dataset.notes[0].matches("(once)").count(), 32);
    assert!(dataset.notes[0].contains("other keys (68 times)"), "{:?}", dataset.notes);
}

#[test]
fn a_broken_line_is_refused_by_its_number() {
    let with_third = |line: &str| {
        made("data.jsonl", format!("{{\"prompt\":\"a\"}}\n\n{line}\n{{\"prompt\":\"b\"}}\n"))
            .refused()
    };
    for (line, reason) in [
        ("{\"prompt\":\"a", "not a JSON object: EOF while parsing a string at column 12"),
        ("[1]", "not a JSON object"),
        ("{}", "neither `prompt` nor `messages`; it has nothing"),
        ("{\"question\":[]}", "it has `question` (--dataset-column prompt="),
        ("{\"prompt\":\"a\",\"messages\":[]}", "both `prompt` and `messages`"),
        ("{\"prompt\":3}", "`prompt` must be a text"),
        ("{\"prompt\":[\"a\"]}", "`prompt` must be a text"),
        ("{\"messages\":\"hello\"}", "`messages` must be a list"),
        ("{\"messages\":[{\"content\":\"a\"}]}", "message 1 has no `role`"),
        ("{\"prompt\":\"a\",\"max_tokens\":0}", "`max_tokens` is 0, not a whole number from 1"),
        ("{\"prompt\":\"a\",\"output_len\":\"x\"}", "`output_len` is x, not a whole number"),
        (
            "{\"prompt\":\"a\",\"output_len\":1,\"max_tokens\":1}",
            "both `max_tokens` and `output_len`",
        ),
        ("{\"prompt\":\"a\",\"body\":[]}", "`body` must be an object"),
        ("{\"prompt\":\"a\",\"body\":{\"max_tokens\":9}}", "`output_tokens` beside `body` sets"),
        ("{\"prompt\":\"a\",\"extra_body\":{\"stream\":false}}", "`stream` in `extra_body` is set"),
    ] {
        let refused = with_third(line);
        assert!(refused.contains("data.jsonl, line 3: ") && refused.contains(reason), "{refused}");
    }
}

#[test]
fn tables_have_quoted_fields() {
    let table = "id,prompt,output_tokens\n1,\"two, \"\"quoted\"\"\nwords\",5\n2,plain,\n3,,4\n";
    let dataset = made("data.csv", table).read();
    assert_eq!(
        dataset.items.iter().map(text).collect::<Vec<_>>(),
        ["two, \"quoted\"\nwords", "plain"]
    );
    let outputs: Vec<_> = dataset.items.iter().map(|item| item.output_tokens).collect();
    assert_eq!(outputs, [Some(5), None]);
    assert_eq!(dropped(&dataset), [("empty prompt", 1)]);
    assert!(dataset.notes[0].contains("column `id` (3 times)"), "{:?}", dataset.notes);
}

#[test]
fn a_broken_table_is_refused_by_its_line() {
    let refused = |table: &str| made("data.csv", table).refused();
    let no_column = refused("text,output_tokens\na,1\n");
    assert!(no_column.contains("no column `prompt`"), "{no_column}");
    assert!(no_column.contains("`text`, `output_tokens`"), "{no_column}");
    let short = refused("prompt,output_tokens\na,1\nb\n");
    assert!(short.contains("line 3: 1 fields where the header has 2"), "{short}");
    let word = refused("prompt,output_tokens\n\"a\nb\",1\nc,many\n");
    assert!(word.contains("line 4: `output_tokens` is many"), "{word}");
    let open = refused("prompt\na\n\"b\nc\n");
    assert!(open.contains("line 3: a quoted field has no end"), "{open}");
    let open = refused("prompt,output_tokens\na,1\n\"b,2\nc,3\n");
    assert!(open.contains("a quoted field has no end"), "{open}");
    assert!(refused("").ends_with("is empty"));
    assert!(refused("prompt\n").ends_with("is empty"));
}

#[test]
fn texts_have_a_prompt_to_a_line() {
    let dataset = made("data.txt", "first one\n\n  \r\n second\r\n").read();
    assert_eq!(dataset.items.iter().map(text).collect::<Vec<_>>(), ["first one", " second"]);
    assert_eq!(dropped(&dataset), [("blank line", 2)]);
    let blank = made("data.txt", "\n\n").refused();
    assert!(blank.contains("left out: 2 × blank line"), "{blank}");
}

#[test]
fn bytes_that_are_no_text_are_named_in_every_kind() {
    for (name, before) in [
        ("data.json", "[{\"conversations\":[{\"value\":\"é"),
        ("data.jsonl", "{\"prompt\":\"a\"}\n{\"prompt\":\"é"),
        ("data.csv", "prompt\n\"é"),
        ("data.txt", "line\né"),
    ] {
        let bytes = [before.as_bytes(), b"\xff rest\n"].concat();
        let refused = made(name, bytes).refused();
        let place = format!("byte {} (from 0)", before.len());
        assert!(refused.contains(&place), "{name}: {refused}");
    }
}

#[test]
fn the_kind_is_told_by_name_and_beginning_or_asked_for() {
    let unknown = made("data.bin", "hello").refused();
    assert!(unknown.contains("cannot detect") && unknown.contains("sharegpt"), "{unknown}");
    assert_eq!(made("data.bin", "hello").with_kind(DatasetKind::Text).read().items.len(), 1);
    assert_eq!(made("data", "  {\"prompt\":\"a\"}").read().facts.kind, "jsonl");
    assert!(made("data", "").refused().ends_with("is empty"));
    let wrong = made("data.json", "[{}]").with_kind(DatasetKind::Jsonl).refused();
    assert!(wrong.contains("line 1: not a JSON object"), "{wrong}");
    let wrong = made("data.txt", "hello").with_kind(DatasetKind::ShareGpt).refused();
    assert!(wrong.contains("item 1"), "{wrong}");
    let file = made("data.txt", "hello").with_kind(DatasetKind::Directory).refused();
    assert!(file.contains("is not a folder"), "{file}");
    let missing = read(&spec(Path::new("no such file")), &by_words()).unwrap_err().to_string();
    assert!(missing.contains("cannot read no such file"), "{missing}");
}

#[test]
fn what_does_not_fit_into_memory_is_refused() {
    let made = made("data.txt", "a\nb\nc\n");
    let hub = Hub::from_variables(|_| None);
    let refused =
        |bounds| read_within(&made.spec, &hub, &by_words(), bounds).unwrap_err().to_string();
    let items = refused(FileBounds { bytes: 100, items: 2 });
    assert!(items.contains("more than 2 prompts; use a part"), "{items}");
    let bytes = refused(FileBounds { bytes: 5, items: 100 });
    assert!(bytes.contains("larger than 5 bytes"), "{bytes}");
}

#[test]
fn the_hash_is_that_of_the_file() {
    use sha2::{Digest, Sha256};
    let dataset = made("data.txt", "a\n").read();
    assert_eq!(dataset.facts.sha256, crate::data_file::hex(&Sha256::digest("a\n")));
}

fn folder(files: &[(&str, &str)]) -> Made {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    Made { spec: spec(folder.path()), _folder: folder }
}

fn pieces_of(made: &Made, tokens: u32, counter: &dyn Counter) -> Dataset {
    let spec = DatasetSpec { input: Some(Lengths::Fixed(tokens)), ..made.spec.clone() };
    read(&spec, counter).unwrap()
}

#[test]
fn a_folder_is_cut_into_pieces_in_the_order_of_its_names() {
    let made = folder(&[
        ("b.txt", "six  seven\neight nine ten eleven"),
        ("a/z.md", "one two three"),
        ("a.txt", "four five"),
        ("skipped.rs", "fn main() {}"),
    ]);
    let dataset = pieces_of(&made, 4, &by_words());
    // `a.txt` comes before `a/z.md`: a dot before a slash.
    let texts: Vec<_> = dataset.items.iter().map(text).collect();
    assert_eq!(texts, ["four five\n\none two", "three\n\nsix  seven\neight"]);
    assert!(dataset.items.iter().all(|item| item.input_tokens == 4));
    assert_eq!(dropped(&dataset), [("last piece, shorter than asked", 1)]);
    assert_eq!(dataset.facts.kind, "directory");
    let other = folder(&[("b.txt", "six"), ("a.txt", "four five")]);
    assert_ne!(pieces_of(&other, 4, &by_words()).facts.sha256, dataset.facts.sha256);
    // All that there is, when it is too short for a piece.
    assert_eq!(text(&pieces_of(&other, 9, &by_words()).items[0]), "four five\n\nsix");
    assert_eq!(read(&other.spec, &by_words()).unwrap().items.len(), 1);
}

/// Every character is a token, spaces too: words are then far longer than a token.
#[derive(Debug)]
struct Characters;

impl Counter for Characters {
    fn words(&self, text: &str) -> usize {
        text.chars().count()
    }
}

#[test]
fn pieces_are_the_longest_that_fit_and_words_are_cut_only_when_they_must() {
    let made = folder(&[("a.txt", "aa bbb c dddddddddddd 語語語語語語語語語語語語 e ff gggg")]);
    let dataset = pieces_of(&made, 8, &Characters);
    let texts: Vec<_> = dataset.items.iter().map(text).collect();
    assert_eq!(texts, ["aa bbb c", "dddddddd", "dddd", "語語語語語語語語", "語語語語 e"]);
    let counted: Vec<_> = dataset.items.iter().map(|item| item.input_tokens).collect();
    assert_eq!(counted, [8, 8, 4, 8, 6]);
}

#[test]
fn a_folder_without_texts_is_refused() {
    let none = folder(&[("a.rs", "x")]).refused();
    assert!(none.contains("no .txt or .md file"), "{none}");
    let blank = folder(&[("a.txt", " \n ")]).refused();
    assert!(blank.ends_with("is empty"), "{blank}");
    let as_file = folder(&[("a.txt", "x")]).with_kind(DatasetKind::Jsonl).refused();
    assert!(as_file.contains("no Parquet, JSON"), "{as_file}");
}

proptest::proptest! {
    /// Nothing is lost between pieces but white space, and none is longer than asked.
    #[test]
    fn pieces_are_the_text_in_order(
        words in proptest::collection::vec("[a-zé語]{1,9}", 1..200),
        tokens in 1_u32..30,
    ) {
        let content = words.join(" ");
        let made = folder(&[("a.txt", &content)]);
        for counter in [&by_words() as &dyn Counter, &Characters] {
            let dataset = pieces_of(&made, tokens, counter);
            let joined: String = dataset.items.iter().map(text).collect();
            let all: String = words.concat();
            let kept: String = joined.split_whitespace().collect();
            proptest::prop_assert!(all.starts_with(&kept));
            for item in &dataset.items {
                proptest::prop_assert_eq!(counter.words(text(item)), item.input_tokens as usize);
                proptest::prop_assert!(item.input_tokens <= tokens);
            }
        }
    }
}

const QUESTIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/questions.parquet");

/// Columns of a file that pyarrow wrote.
fn questions(columns: &[(DatasetRole, &str)]) -> Result<Dataset, DatasetError> {
    let mut spec = spec(Path::new(QUESTIONS));
    spec.part.columns = columns.iter().map(|(role, name)| (*role, (*name).to_owned())).collect();
    read(&spec, &by_words())
}

#[test]
fn parquet_is_read_by_the_columns_that_are_named() {
    let columns = [(DatasetRole::Prompt, "question"), (DatasetRole::OutputTokens, "tokens")];
    let dataset = questions(&columns).unwrap();
    assert_eq!(text(&dataset.items[4]), "what is 4 and 4");
    let outputs: Vec<_> = dataset.items.iter().map(|item| item.output_tokens).collect();
    assert_eq!(outputs, [Some(7), None, Some(9), Some(10), Some(11)]);
    assert_eq!((dataset.facts.kind.as_str(), dataset.facts.items), ("parquet", 5));
    let content = fs::read(QUESTIONS).unwrap();
    assert_eq!(dataset.facts.sha256, hex(&Sha256::digest(content)));

    let columns = [(DatasetRole::Prompt, "turns.0"), (DatasetRole::Answer, "answer")];
    let dataset = questions(&columns).unwrap();
    assert_eq!((text(&dataset.items[2]), dataset.items[2].output_tokens), ("first 2", Some(3)));

    let dataset = questions(&[]).unwrap();
    assert_eq!(text(&dataset.items[0]), "a b c d e", "`conversations` is known by its name");
    assert_eq!(dataset.items[0].output_tokens, Some(4));
    assert_eq!(dropped(&dataset), [("fewer than two turns", 1)]);
    assert!(dataset.notes[0].contains("column `image` (5 times)"), "{:?}", dataset.notes);
}

#[test]
fn parquet_of_other_compressions_is_read_alike() {
    let plain = questions(&[(DatasetRole::Prompt, "question")]).unwrap();
    for codec in ["zstd", "lz4"] {
        let path = QUESTIONS.replace(".parquet", &format!("-{codec}.parquet"));
        let mut spec = spec(Path::new(&path));
        spec.part.columns = [(DatasetRole::Prompt, "question".to_owned())].into();
        assert_eq!(read(&spec, &by_words()).unwrap().items, plain.items, "{codec}");
    }
}

#[test]
fn broken_parquet_is_refused_with_its_columns() {
    let said = questions(&[(DatasetRole::Prompt, "turns.9")]).unwrap_err().to_string();
    assert!(said.contains("row 1") && said.contains("turns.9"), "{said}");
    let whole = fs::read(QUESTIONS).unwrap();
    let half = made("half.parquet", &whole[..whole.len() / 2]).refused();
    assert!(half.contains("half.parquet") && half.contains("row 1"), "{half}");
}

#[test]
fn a_list_of_objects_is_read_as_its_lines_would_be() {
    let list = json!([{ "prompt": "a b", "output_tokens": 3 }, { "messages": [
        { "role": "user", "content": "c" },
    ], "system": "be brief" }]);
    let dataset = made("d.json", list.to_string()).read();
    assert_eq!((text(&dataset.items[0]), dataset.items[0].output_tokens), ("a b", Some(3)));
    let messages = vec![Message::new("system", "be brief"), Message::new("user", "c")];
    assert_eq!(dataset.items[1].prompt, Prompt::Messages(messages));
    let mut csv = made("d.csv", "Question,len\nwhy so?,4\nand why?,\n");
    csv.spec.part.columns = [
        (DatasetRole::Prompt, "question".to_owned()),
        (DatasetRole::OutputTokens, "len".to_owned()),
    ]
    .into();
    let dataset = csv.read();
    assert_eq!((text(&dataset.items[0]), dataset.items[0].output_tokens), ("why so?", Some(4)));
    assert_eq!(dataset.items[1].output_tokens, None);
}

#[test]
fn a_folder_of_data_is_read_by_its_split() {
    let folder = tempfile::tempdir().unwrap();
    let line = |text: &str| json!({ "prompt": text }).to_string();
    fs::write(folder.path().join("train.jsonl"), line("a b")).unwrap();
    fs::write(folder.path().join("test.jsonl"), line("c d")).unwrap();
    let mut spec = spec(folder.path());
    assert_eq!(text(&read(&spec, &by_words()).unwrap().items[0]), "a b");
    spec.part.split = Some("test".to_owned());
    assert_eq!(text(&read(&spec, &by_words()).unwrap().items[0]), "c d");
}

#[test]
fn rows_are_chosen_by_their_columns() {
    let mut spec = spec(Path::new(QUESTIONS));
    spec.part.columns = [(DatasetRole::Prompt, "question".to_owned())].into();
    spec.part.only = [("tokens".to_owned(), "9".to_owned())].into();
    let dataset = read(&spec, &by_words()).unwrap();
    assert_eq!((text(&dataset.items[0]), dataset.items.len()), ("what is 2 and 2", 1));
    assert_eq!(dropped(&dataset), [("tokens is not 9", 4)]);
}

#[test]
fn mutated_parquet_is_read_or_refused() {
    let whole = fs::read(QUESTIONS).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(&folder.path().join("mutated.parquet"));
    spec.part.columns = [(DatasetRole::Prompt, "question".to_owned())].into();
    let mut stream = Stream::new(1, "mutations", 0);
    for _ in 0..400 {
        let mut bytes = whole.clone();
        for _ in 0..=(stream.bits() % 4) {
            let place = usize::try_from(stream.bits() % bytes.len() as u64).unwrap();
            bytes[place] = stream.bits().to_le_bytes()[0];
        }
        fs::write(&spec.path, bytes).unwrap();
        // Whatever comes of it, it is an answer.
        let _ = read(&spec, &by_words());
    }
}
