//! Which results of a file are one line of a chart, and what the line is called.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;

use inferometer_analysis::tool_result::{Mark, ToolResult};
use inferometer_interchange::read_file;
use inferometer_model::import::ImportReading;

fn example(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/published");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn read(bytes: &[u8], reading: &ImportReading) -> Vec<ToolResult> {
    let import = read_file("page.md", bytes, reading).unwrap();
    assert_eq!(import.broken().count(), 0);
    import.results().cloned().collect()
}

fn names(text: &str) -> Vec<String> {
    let results = read(text.as_bytes(), &ImportReading::default());
    results.into_iter().map(|result| result.configuration).collect()
}

/// As it was published: front matter, Liquid, a damaged letter, and two sweeps between tags.
fn rate_page() -> Vec<u8> {
    let sweep = |name: &str| {
        let lines = example(name);
        lines.lines().filter(|line| line.starts_with('{')).collect::<Vec<_>>().join("\n")
    };
    let mut page = b"---\nlayout: default\ntitle: \"Engines\"\n---\n\n[//]: # (# Other)\n\n\
        ### April\n\nModel: m |\nGPU: g\n\n{% include_relative summary_mean_ttft_ms.html %}\n\
        {% include_relative summary_mean_tpot_ms.html %}\n\n<details>\n<summary> \
        \xc3\xa2\xe2\x80\x93\xc2\xb6 \x96 Raw</summary>\n\n"
        .to_vec();
    page.extend_from_slice(sweep("mi300x-mistral-small-24b-v0.jsonl").as_bytes());
    page.extend_from_slice(b"\n\n");
    page.extend_from_slice(sweep("mi300x-mistral-small-24b-v1.jsonl").as_bytes());
    page.extend_from_slice(b"\n\n\n</details>\n");
    page
}

#[test]
fn both_sweeps_of_a_page_are_lines_and_their_last_points_are_cut() {
    let results = read(&rate_page(), &ImportReading::default());
    assert_eq!(results.len(), 14);
    for (place, result) in results.iter().enumerate() {
        let number = 1 + place / 7;
        assert_eq!(result.configuration, format!("configuration {number}"));
        let cut = Mark::Cut { completed: 1015, planned: 2000 };
        assert_eq!(result.marks.contains(&cut), place % 7 == 6);
    }
    let named = ImportReading {
        names: vec!["v0".to_owned(), "v1".to_owned()],
        repeats: false,
        nameless: None,
    };
    let results = read(&rate_page(), &named);
    assert_eq!(
        (results[6].configuration.as_str(), results[7].configuration.as_str()),
        ("v0", "v1")
    );
    let joined = ImportReading { names: vec!["all".to_owned()], repeats: true, nameless: None };
    assert!(read(&rate_page(), &joined).iter().all(|result| result.configuration == "all"));
    let few = ImportReading { names: vec!["v0".to_owned()], repeats: false, nameless: None };
    assert_eq!(read(&rate_page(), &few)[13].configuration, "configuration 2");
}

fn row(rate: u32, more: &str) -> String {
    format!("{{\"mean_itl_ms\": 1, \"completed\": 1, \"request_rate\": {rate}{more}}}\n")
}

#[test]
fn a_load_that_comes_at_once_again_is_a_repeat_unless_a_blank_line_parts_them() {
    let one = row(1, "");
    let two = row(2, "");
    assert_eq!(names(&[&*one, &one, &two, &two].concat()), [""; 4]);
    let (first, second) = ("configuration 1", "configuration 2");
    assert_eq!(names(&[&*one, &two, &one].concat()), [first, first, second]);
    assert_eq!(names(&[&*one, "\n", &one].concat()), [first, second]);
    assert_eq!(names(&[&*one, &two, "\n", &one].concat()), [first, first, second]);
    assert_eq!(names(&[&*one, "\n", &two].concat()), ["", ""], "a sweep with gaps is one");
}

#[test]
fn what_a_source_says_tells_configurations_apart() {
    let label = |rate, label: &str| row(rate, &format!(", \"label\": \"{label}\""));
    let rows = [label(1, "a"), label(1, "b"), label(2, "a"), label(2, "b")].concat();
    assert_eq!(names(&rows), ["a", "b", "a", "b"]);
    assert_eq!(names(&label(1, "a")), ["a"]);
    let seqs = |rate, seqs: &str| row(rate, &format!(", \"seqs\": \"{seqs}\", \"gpu\": \"g\""));
    let rows = [seqs(1, "64"), seqs(2, "64"), seqs(1, "128"), seqs(2, "128")].concat();
    assert_eq!(names(&rows), ["seqs=64", "seqs=64", "seqs=128", "seqs=128"]);
    let again = [seqs(1, "64"), seqs(2, "64"), seqs(1, "64"), seqs(1, "9")].concat();
    assert_eq!(names(&again), ["seqs=64 (1)", "seqs=64 (1)", "seqs=64 (2)", "seqs=9"]);
}

#[test]
fn headings_name_configurations_and_not_every_single_result() {
    let page = format!("## v0\n\n{0}{1}\n## v1\n\n{0}{1}", row(1, ""), row(2, ""));
    assert_eq!(names(&page), ["v0", "v0", "v1", "v1"]);
    let each = format!("## slow\n{}## faster\n{}## fast\n{}", row(1, ""), row(2, ""), row(3, ""));
    assert_eq!(names(&each), ["", "", ""]);
}

#[test]
fn commands_above_blocks_tell_their_servers_apart() {
    let blocks = |name: &str| {
        let text = example(name);
        let settings = text.find("Maximum request concurrency").unwrap();
        text[settings..].to_owned()
    };
    let few = blocks("mi300x4-llama-70b.txt");
    let many = blocks("mi300x4-llama-70b-4096-seqs.txt");
    let page = |first: &str, second: &str| {
        let client = "$ python benchmark_serving.py --backend openai-chat --max-concurrency 256";
        format!(
            "# Cards\n\n```\n# Server\n{first}\n\n# Client\n{client}\n\n{few}\n```\n\n\
             ```\n# Server\n{second}\n\n# Client\n{client}\n\n{many}\n```\n"
        )
    };
    let wrapped = "X=0 vllm serve -tp 4 org/m --gpu_memory_utiliz\nation=0.98 --steps 20";
    let text = page(wrapped, &format!("{wrapped} --max-num-seqs 4096"));
    let (first, second) = ("configuration 1", "--max-num-seqs 4096");
    assert_eq!(names(&text), [first, first, first, second, second, second]);
    let results = read(text.as_bytes(), &ImportReading::default());
    for result in &results {
        assert_eq!(result.tensor_parallel, Some(4));
        assert_eq!(result.backend.as_deref(), Some("openai-chat"));
    }
    let caps: Vec<_> = results.iter().filter_map(|result| result.max_concurrency).collect();
    assert_eq!(caps, [128, 256, 512, 128, 256, 512]);
    let text = page("vllm serve -tp 4 org/m", "vllm serve --tensor-parallel-size=2 org/m");
    assert_eq!(names(&text), ["TP 4", "TP 4", "TP 4", "TP 2", "TP 2", "TP 2"]);
}

#[test]
fn results_at_one_load_are_no_repeats_unless_they_are_said_to_be() {
    let text = [row(8, ""), row(8, "")].concat();
    assert_eq!(names(&text), ["configuration 1", "configuration 2"]);
    let unsaid = "{\"mean_itl_ms\": 1}\n".repeat(2);
    assert_eq!(names(&unsaid), ["configuration 1", "configuration 2"]);
    let joined = ImportReading { repeats: true, ..ImportReading::default() };
    assert!(read(text.as_bytes(), &joined).iter().all(|result| result.configuration.is_empty()));
    let both = ["before".to_owned(), "after".to_owned()];
    let reading = ImportReading { names: both.to_vec(), ..ImportReading::default() };
    let found = read(text.as_bytes(), &reading).into_iter().map(|result| result.configuration);
    assert_eq!(found.collect::<Vec<_>>(), both);
    let labelled = row(8, ", \"label\": \"a\"").repeat(2);
    assert_eq!(names(&labelled), ["a", "a"], "the source gives them one name");
}

#[test]
fn what_has_no_name_is_named_after_its_file() {
    let reading =
        ImportReading { nameless: Some("stock.json".to_owned()), ..ImportReading::default() };
    let named = |text: &str| -> Vec<String> {
        read(text.as_bytes(), &reading).into_iter().map(|result| result.configuration).collect()
    };
    assert_eq!(named(&row(1, "")), ["stock.json"]);
    let (first, second) = ("stock.json, configuration 1", "stock.json, configuration 2");
    assert_eq!(named(&row(1, "").repeat(2)), [first, second]);
    assert_eq!(named(&row(1, ", \"label\": \"a\"")), ["a"]);
}

/// As `vllm bench sweep serve` writes the runs of one pair of parameters.
fn swept(cap: u32, parameters: &str) -> String {
    let run = |number: u32| {
        format!(
            "{{\"max_concurrency\": {cap}, \"mean_ttft_ms\": 30.5, \"odd\": 5, \
             \"run_number\": {number}, {parameters}}}"
        )
    };
    format!("[\n{},\n{},\n{}\n]", run(0), run(1), run(2))
}

#[test]
fn the_parameters_of_a_sweep_name_its_servers_and_its_runs_are_repeats() {
    let low = "\"ttft\": \"30ms\", \"_benchmark_name\": \"low\", \"max-concurrency\": 1";
    assert_eq!(names(&swept(1, low)), ["ttft=30ms"; 3]);
    let results = read(swept(1, low).as_bytes(), &ImportReading::default());
    assert_eq!(results[0].max_concurrency, Some(1));
    assert_eq!(results[0].unmapped, ["line 2: odd"], "a number before the parameters is none");
    let high = "\"ttft\": \"30ms\", \"_benchmark_name\": \"high\"";
    let other = "\"ttft\": \"10ms\", \"_benchmark_name\": \"low\"";
    let all = [swept(1, low), swept(4, high), swept(1, other)].join("\n");
    let mut expected = vec!["ttft=30ms"; 6];
    expected.extend(["ttft=10ms"; 3]);
    assert_eq!(names(&all), expected);
    let seqs = "\"max-num-seqs\": 64, \"eager\": true, \"_benchmark_name\": \"low\"";
    assert_eq!(names(&swept(1, seqs)), ["eager=true, max_num_seqs=64"; 3]);
    assert_eq!(names(&swept(1, "\"num-prompts\": 20")), [""; 3]);
}
