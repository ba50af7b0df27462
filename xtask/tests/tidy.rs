//! What review would repeat, as tests: the arrows between crates, sizes, headers, leftovers.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Who may use whom; nothing else. The arrows are those of `ARCHITECTURE.md`.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("workload", &["model"]),
    ("load", &["model"]),
    ("target", &["model"]),
    ("engine", &["model"]),
    ("store", &["model"]),
    ("analysis", &["model"]),
    ("report", &["analysis", "model"]),
    ("runner", &["analysis", "engine", "load", "model", "store", "target", "workload"]),
    (
        "study",
        &["analysis", "engine", "load", "model", "report", "runner", "store", "target", "workload"],
    ),
    ("interchange", &["analysis", "model"]),
    ("web", &["analysis", "model", "report", "runner", "store"]),
    (
        "cli",
        &[
            "analysis",
            "engine",
            "interchange",
            "load",
            "model",
            "report",
            "runner",
            "store",
            "study",
            "target",
            "web",
            "workload",
        ],
    ),
];

const VAGUE_NAMES: [&str; 6] = ["utils", "util", "common", "helpers", "types", "misc"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Every file of the project with one of these extensions, by its path from the root.
fn files(extensions: &[&str]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                // The name of a build folder is also that of a crate.
                let is_crate = path == root().join("crates/target");
                if is_crate || !["target", "runs", ".git"].contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| extensions.iter().any(|wanted| e == *wanted))
            {
                let place = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.insert(place, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn crates_use_only_what_the_arrows_allow() {
    for (name, allowed) in ARROWS {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).unwrap();
        let dependencies = text.split("[dev-dependencies]").next().unwrap();
        for line in dependencies.lines() {
            let Some(used) = line.strip_prefix("inferometer-") else { continue };
            let used = used.split(['.', ' ', '=']).next().unwrap();
            assert!(allowed.contains(&used), "{name} may not use {used}");
        }
    }
    let known = ARROWS.len();
    let present = std::fs::read_dir(root().join("crates")).unwrap().count();
    assert_eq!(present, known, "a crate without arrows");
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    for (place, text) in files(&["rs"]) {
        assert!(text.starts_with("//! "), "{place} has no header");
    }
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    for place in files(&["rs"]).keys() {
        let stem = Path::new(place).file_stem().unwrap().to_string_lossy().into_owned();
        assert!(!VAGUE_NAMES.contains(&stem.as_str()), "{place}");
    }
}

#[test]
fn every_source_file_is_part_of_a_crate() {
    let sources = files(&["rs"]);
    for place in sources.keys().filter(|place| place.contains("/src/")) {
        let path = Path::new(place);
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if ["lib", "main"].contains(&stem.as_str()) {
            continue;
        }
        let (folder, module) = if stem == "mod" {
            let folder = path.parent().unwrap();
            let module = folder.file_name().unwrap().to_string_lossy().into_owned();
            (folder.parent().unwrap(), module)
        } else {
            (path.parent().unwrap(), stem)
        };
        let beside = folder.with_extension("rs").to_string_lossy().into_owned();
        let inside = ["lib.rs", "main.rs", "mod.rs"].map(|name| folder.join(name));
        let parents = inside.iter().map(|path| path.to_string_lossy().into_owned());
        let declared = parents
            .chain([beside])
            .filter_map(|parent| sources.get(&parent))
            .any(|text| text.lines().any(|line| line.trim().ends_with(&format!("mod {module};"))));
        assert!(declared, "{place} belongs to nothing");
    }
}

#[test]
fn nothing_is_left_over() {
    // Put together here, so that this file does not find itself.
    let leftovers =
        [concat!("FIX", "ME"), concat!("XX", "X"), concat!("todo", "!("), concat!("#[ign", "ore")];
    let forbidden = [concat!("#[al", "low("), concat!("#![al", "low(")];
    for (place, text) in files(&["rs"]) {
        for needle in leftovers.iter().chain(&forbidden) {
            assert!(!text.contains(needle), "{place} has {needle}");
        }
    }
}

#[test]
fn no_path_of_a_machine_is_written_down() {
    let paths = [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];
    for (place, text) in files(&["rs", "md", "toml", "py", "json"]) {
        for path in paths {
            assert!(!text.contains(path), "{place} has {path}");
        }
    }
}

/// Lines of production code with their numbers: neither comments nor tests.
fn production_lines<'a>(path: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    const TESTS: [&str; 6] =
        ["tests", "benches", "examples", "tests.rs", "fixture.rs", "properties.rs"];
    if !path.starts_with("crates/") || path.split('/').any(|part| TESTS.contains(&part)) {
        return Vec::new();
    }
    let mut lines = text.lines().enumerate();
    let mut found = Vec::new();
    while let Some((index, line)) = lines.next() {
        if line == "#[cfg(test)]" {
            // In formatted code a module ends with the first brace or semicolon at its indentation.
            let is_end = |line: &str| !line.starts_with(' ') && line.ends_with(['}', ';']);
            lines.by_ref().find(|(_, line)| is_end(line));
        } else if !line.trim_start().starts_with("//") {
            found.push((index + 1, line));
        }
    }
    found
}

/// Code names a metric by its static. Its name as text is for the metrics themselves, for other
/// tools' files, and for the places listed here.
#[test]
fn metrics_are_named_by_their_statics() {
    const ALLOWED: [&str; 8] = [
        "crates/analysis/src/metric/",
        // The SLOs of interactive use are written as users write theirs.
        "crates/analysis/src/set/findings.rs",
        "crates/interchange/",
        // The grammar of claims is made of words.
        "crates/report/src/narrative/claims/",
        // Keys of vLLM's result files.
        "crates/cli/src/bench_sweep.rs",
        // These do not know the metrics: examples, the names of a server's own metrics, and flags.
        "crates/model/",
        "crates/target/src/metrics/",
        "crates/engine/",
    ];
    let sources = files(&["rs"]);
    let of_metrics =
        ["latency", "rate"].map(|file| &sources[&format!("crates/analysis/src/metric/{file}.rs")]);
    let after_name = of_metrics.iter().flat_map(|text| text.split("_named(").skip(1));
    let names =
        after_name.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
    // Two letters are also other words: `pp` is pipeline parallelism.
    let names: Vec<&str> = names.filter(|name| 2 < name.len()).collect();
    assert!(20 < names.len(), "{names:?}");
    let mut found = Vec::new();
    for (path, text) in &sources {
        if ALLOWED.iter().any(|allowed| path.starts_with(allowed)) {
            continue;
        }
        for (number, line) in production_lines(path, text) {
            let is_named =
                |literal: &str| names.contains(&literal.split('.').next().unwrap_or_default());
            if line.split('"').skip(1).step_by(2).any(is_named) {
                found.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "use the static of the metric:\n{}", found.join("\n"));
}

/// Digits are chosen in one place, so that a value looks the same wherever it is shown.
#[test]
fn numbers_are_formatted_by_the_formatter() {
    const ALLOWED: [&str; 5] = [
        "crates/model/src/fmt.rs",
        // What the embedded engine writes is its own.
        "crates/engine/",
        // vLLM's block and files have vLLM's digits.
        "crates/interchange/src/vllm/",
        // A value that is rounded, not shown.
        "crates/study/src/search.rs",
        // The length of a text.
        "crates/model/src/spec/target.rs",
    ];
    let has_precision = |line: &str| {
        line.match_indices(":.").chain(line.match_indices(":+.")).any(|(at, mark)| {
            let (before, after) = (&line[..at], &line[at + mark.len()..]);
            let is_inside = before.rfind('{').is_some_and(|open| !before[open..].contains('}'));
            is_inside
                && after.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '*')
        })
    };
    assert!(
        has_precision("format!(\"{x:.2}\")")
            && has_precision("\"{:+.1}\"")
            && !has_precision("a{b:?}.c")
    );
    let mut found = Vec::new();
    for (path, text) in files(&["rs"]) {
        if ALLOWED.iter().any(|allowed| path.starts_with(allowed)) {
            continue;
        }
        let lines = production_lines(&path, &text).into_iter();
        let wrong = lines.filter(|(_, line)| has_precision(line));
        found.extend(wrong.map(|(number, line)| format!("{path}:{number}: {}", line.trim())));
    }
    assert!(found.is_empty(), "use the functions of fmt:\n{}", found.join("\n"));
}

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors of a page, as GitHub and mdBook name them after its headings.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for line in prose(text).filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let earlier = anchors.iter().filter(|anchor| **anchor == name).count();
        anchors.push(if earlier == 0 { name } else { format!("{name}-{earlier}") });
    }
    anchors
}

#[test]
fn links_between_documents_lead_somewhere() {
    let pages = files(&["md"]);
    for (place, text) in &pages {
        let folder = root().join(place).parent().unwrap().to_path_buf();
        let prose: Vec<&str> = prose(text).collect();
        let prose = prose.join("\n");
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            if target.contains("://") {
                continue;
            }
            let path = if target.is_empty() { root().join(place) } else { folder.join(target) };
            assert!(path.exists(), "{place} links to {link}");
            if !anchor.is_empty() {
                let text = std::fs::read_to_string(&path).unwrap();
                let has_anchor = anchors(&text).iter().any(|name| name == anchor);
                assert!(has_anchor, "{place} links to {link}, which has no such heading");
            }
        }
    }
}

/// `cargo xtask book` renders what the summary lists; a page that is not listed would be missing.
#[test]
fn every_page_of_the_documentation_is_in_the_summary_of_the_book_once() {
    let pages = files(&["md"]);
    let summary = &pages["docs/SUMMARY.md"];
    let listed = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let mut listed: Vec<String> = listed.map(|page| format!("docs/{page}")).collect();
    listed.sort();
    let is_page = |place: &&String| place.starts_with("docs/") && *place != "docs/SUMMARY.md";
    let expected: Vec<String> = pages.keys().filter(is_page).cloned().collect();
    assert_eq!(listed, expected);
}

const FAULTS: u32 = 115;

/// The tests of each fault, as links: a test names its faults in the last line of its doc comment.
fn tests_by_fault() -> BTreeMap<u32, Vec<String>> {
    let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (place, text) in files(&["rs"]) {
        let mut lines = text.lines().map(str::trim);
        while let Some(line) = lines.next() {
            let Some(numbers) = line.strip_prefix("/// Faults: ") else { continue };
            assert_eq!(lines.next(), Some("#[test]"), "{place}: {line} is not above a test");
            let name = lines.find_map(|line| line.strip_prefix("fn ")?.split('(').next()).unwrap();
            for number in numbers.trim_end_matches('.').split(", ") {
                let number = number.parse().unwrap_or_else(|_| panic!("{place}: {line}"));
                let tests = found.entry(number).or_default();
                tests.push(format!("[{name}](../{place})"));
            }
        }
    }
    found
}

/// `docs/reliability.md` with the last cell of each fault's row filled in.
#[test]
fn the_page_about_reliability_lists_the_tests_of_every_fault() {
    let path = root().join("docs/reliability.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let mut tests = tests_by_fault();
    let mut expected = 1..=FAULTS;
    let (mut generated, mut missing) = (String::new(), Vec::new());
    for line in written.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let row = match cells.as_slice() {
            ["", number, fault, result, _, ""] if number.parse::<u32>().is_ok() => {
                let number: u32 = number.parse().unwrap();
                assert_eq!(Some(number), expected.next(), "every fault has its row, in order");
                let tests = tests.remove(&number).unwrap_or_default().join(", ");
                if tests.is_empty() {
                    missing.push(number);
                }
                format!("| {number} | {fault} | {result} | {tests} |")
            }
            _ => line.to_owned(),
        };
        generated += &row;
        generated.push('\n');
    }
    assert_eq!(expected.next(), None, "a fault without a row");
    assert_eq!(missing, Vec::<u32>::new(), "faults that no test names");
    assert!(tests.is_empty(), "tests of unknown faults: {tests:?}");
    if std::env::var_os("INFEROMETER_REWRITE_DOCS").is_some() {
        std::fs::write(&path, &generated).unwrap();
        return;
    }
    assert!(written == generated, "run `cargo xtask docs`");
}
