//! Suites without the binary: what a file comes to, and what its hash is made of.

use std::path::Path;

use clap::CommandFactory;
use inferometer_model::Spec;
use inferometer_model::spec::{Extent, LoadShape};
use inferometer_model::study::{Condition, Level, Prompts, Scenario, Suite};
use inferometer_study::play::known_specs;

use super::{Files, SUITES, SuiteFile, belongs_to_scenarios, resolve};
use crate::arguments::{Arguments, Command, SuiteArguments};
use crate::experiment::{Layer, schema};
use crate::study::StudyPlan;

const STANDARD: &str = include_str!("builtin/standard.toml");
const QUICK: &str = include_str!("builtin/quick.toml");
const METHODOLOGY: &str = include_str!("builtin/methodology.toml");

fn resolved(text: &str) -> StudyPlan {
    let file = SuiteFile::parse(Path::new("test.toml"), text).unwrap();
    let (arguments, layer) = (SuiteArguments::default(), Layer::default());
    resolve(&file, &arguments, &layer, &mut Files::default()).unwrap()
}

fn hashed(text: &str) -> String {
    suite(&resolved(text)).hash.clone()
}

fn suite(plan: &StudyPlan) -> &Suite {
    plan.study.suite().unwrap()
}

/// Requests in flight at each level of a scenario.
fn concurrencies(condition: &Condition, scenario: &Scenario) -> Vec<u32> {
    let users = scenario.levels.iter().map(|level| match (level, &condition.spec.load.shape) {
        (Level::Concurrency(users), _)
        | (Level::AsAsked, LoadShape::Closed { concurrency: users, .. }) => users.get(),
        other => panic!("an open loop: {other:?}"),
    });
    users.collect()
}

/// A suite that is published under these names must not come to mean something else unnoticed.
/// Whoever changes a built-in suite on purpose writes its new hash here, and into the change log.
#[test]
fn built_in_suites_are_what_they_were() {
    let known = [
        ("standard", "75620afab3be1159833039d71725b5c16efbd343b7c464352e134120a89daddb"),
        ("quick", "b4e8fce916b77df87cd43cb6c76c497d4fedee4f0d2b3bf193bbf363118ec14b"),
        ("chat", "7045ba5fb255072e77ebe2b2d4f803ddd4cd52b8443815bdf38320e8e03bf699"),
        ("rag", "a2e7374562eef86a0e3ad8dce92132f01e20e26eb769f815f5ad575298e21826"),
        ("code", "2399727583e36a9cb95a209a7f8a7f0b9b228c504a4c2992c77082bf2dfe9b36"),
        ("agent", "5fb67a7c86afa0e02efdc0b75070399bfd55ab930c7f106b9813b9701498b9a9"),
        ("long-context", "53f1f1c26f5e35a186100d4f18ed57c1912788107bbf1c3177055b3a7e4ceeb2"),
        ("methodology", "27ed30b1ef9086d809ff51f190a3ffa7366e8cf72b4cf5f95f9e1892a1ab2310"),
    ];
    let found: Vec<(String, String)> =
        SUITES.files.iter().map(|(name, text)| ((*name).to_owned(), hashed(text))).collect();
    assert_eq!(found, known.map(|(name, hash)| (name.to_owned(), hash.to_owned())));
}

#[test]
fn without_a_word_the_quick_suite_is_played() {
    let Command::Suite(arguments) = Command::default() else { panic!("no suite") };
    assert_eq!(arguments.suite.as_deref(), Some("quick"));
    assert!(arguments.experiment.places.is_empty(), "on the embedded engine");
    assert!(!arguments.virtual_time && !arguments.results.dry_run);
}

/// The help shows what may be said beside a suite, and only that.
#[test]
fn no_help_shows_what_is_refused() {
    let whole = Arguments::command();
    let command = whole.find_subcommand("suite").unwrap();
    let shown: Vec<&str> = command
        .get_arguments()
        .filter(|it| !it.is_hide_set())
        .filter_map(|it| it.get_long())
        .collect();
    let experiment = schema::document();
    let mut seen = 0;
    for table in ["workload", "load"] {
        for key in experiment["properties"][table]["properties"].as_object().unwrap().keys() {
            let Some(flag) = schema::flag(&format!("{table}.{key}")) else { continue };
            let is_refused = belongs_to_scenarios(&[table.to_owned(), key.clone()]);
            assert_ne!(shown.contains(&&flag[2..]), is_refused, "{flag}");
            seen += 1;
        }
    }
    assert!(30 < seen, "only {seen} flags were found");
}

#[test]
fn the_methodology_is_the_protocol_and_its_fine_sweep() {
    let plan = resolved(METHODOLOGY);
    let conditions = &plan.study.conditions;
    let [coarse, fine] = &suite(&plan).scenarios[..] else { panic!("two scenarios") };
    let levels = concurrencies(&conditions[0], coarse);
    assert_eq!(levels, [10, 50, 100, 200, 500, 750, 1000]);
    let levels = concurrencies(&conditions[1], fine);
    assert_eq!(levels, [500, 550, 600, 650, 700, 750, 800, 850, 900, 950, 1000]);
    assert!(conditions.iter().all(|condition| condition.spec.load.warm_up == 10));
    assert_eq!(plan.study.repetition.runs.get(), 5);
    assert_eq!(plan.study.repetition.cool_down.as_secs(), 60);
}

#[test]
fn the_standard_suite_asks_what_it_says() {
    let plan = resolved(STANDARD);
    let suite = suite(&plan);
    assert_eq!(suite.prompts, Prompts::Fresh);
    let scaling = suite.scenarios.last().unwrap();
    let levels: Vec<f64> = scaling.levels.iter().filter_map(|level| level.place()).collect();
    assert_eq!(levels, [2.0, 4.0, 8.0, 16.0, 32.0]);
    let alone = &suite.scenarios[..5];
    assert!(alone.iter().all(|scenario| scenario.levels == [Level::AsAsked]));
}

/// With fewer, the start and the end of a level are a large part of it.
#[test]
fn every_level_of_standard_and_quick_has_ten_requests_for_each_user() {
    for text in [STANDARD, QUICK] {
        let plan = resolved(text);
        for spec in known_specs(&plan.study) {
            let LoadShape::Closed { concurrency, .. } = spec.load.shape else { panic!("{spec:?}") };
            let Extent::Requests(requests) = spec.load.extent else { panic!("{spec:?}") };
            assert!(10 * u64::from(concurrency.get()) <= requests.get(), "{:?}", spec.load);
        }
        let requests = |spec: &Spec| {
            if let Extent::Requests(requests) = spec.load.extent { requests.get() } else { 0 }
        };
        let specs = known_specs(&plan.study);
        assert_eq!(specs.len(), 10);
        assert_eq!(specs.last().map(requests), Some(320), "32 users, ten each");
    }
}

#[test]
fn how_a_suite_is_written_does_not_change_its_hash() {
    let hash = hashed(STANDARD);
    let without_comments: String = STANDARD
        .lines()
        .filter(|line| !line.starts_with('#'))
        .fold(String::new(), |text, line| text + "\n" + &line.replace(" = ", "    =  "));
    assert_eq!(hashed(&without_comments), hash, "comments and spaces");
    let turned = STANDARD
        .replace(
            "input_tokens = 2048\noutput_tokens = 512",
            "output_tokens = 512\ninput_tokens = 2048",
        )
        .replace("concurrency = 1\nrequests = 30", "requests = 30\nconcurrency = 1");
    assert_ne!(turned, STANDARD);
    assert_eq!(hashed(&turned), hash, "the order of keys");
    let reworded = STANDARD
        .replace("input_tokens = 512", "input_tokens = \"512\"")
        .replace("[2, 4, 8, 16, 32]", "\"2..32*2\"");
    assert_ne!(reworded, STANDARD);
    assert_eq!(hashed(&reworded), hash, "other words for the same number");
    let moved = STANDARD.replace(
        "[[scenario]]\nname = \"Single",
        "[defaults.limits]\nidle = \"1m\"\n[[scenario]]\nname = \"Single",
    );
    assert_ne!(moved, STANDARD);
    assert_eq!(hashed(&moved), hash, "a default that is said");
    let renamed = STANDARD
        .replace("name = \"standard\"", "name = \"mine\"")
        .replace("title = \"Standard", "title = \"My own")
        .replace("purpose = \"How", "purpose = \"See how")
        .replace("category = \"Latency\"", "category = \"Speed\"");
    assert_eq!(hashed(&renamed), hash, "words for people");
}

#[test]
fn every_number_is_in_the_hash() {
    let mut numbers = 0;
    for text in [STANDARD, METHODOLOGY, include_str!("builtin/chat.toml")] {
        let hash = hashed(text);
        for (place, line) in text.lines().enumerate() {
            let words = line.starts_with('#')
                || ["name", "title", "description", "purpose", "category"]
                    .iter()
                    .any(|key| line.starts_with(key));
            let Some(digit) = line.find(|c: char| ('1'..='8').contains(&c)).filter(|_| !words)
            else {
                continue;
            };
            let mut changed = line.to_owned();
            let next = char::from(line.as_bytes()[digit] + 1).to_string();
            changed.replace_range(digit..=digit, &next);
            let lines = text.lines().enumerate();
            let lines = lines.map(|(at, old)| if at == place { changed.as_str() } else { old });
            let changed = lines.collect::<Vec<_>>().join("\n");
            assert_ne!(hashed(&changed), hash, "line {}: {line}", place + 1);
            numbers += 1;
        }
    }
    assert!(40 < numbers, "only {numbers} numbers were found");
}

#[test]
fn names_and_order_and_prompts_are_in_the_hash() {
    let hash = hashed(STANDARD);
    for (old, new) in [
        ("Decode Stress Test", "Decode Test"),
        ("prompts = \"fresh\"", "prompts = \"same\""),
        ("prompts = \"fresh\"", "order = \"interleaved\""),
        ("prompts = \"fresh\"", "[repeat]\nruns = 2"),
        (
            "[[scenario]]\nname = \"Single",
            "[defaults.slo]\nttft = \"1s\"\n[[scenario]]\nname = \"Single",
        ),
    ] {
        let changed = STANDARD.replace(old, new);
        assert_ne!(changed, STANDARD, "{old}");
        assert_ne!(hashed(&changed), hash, "{new}");
    }
    let (first, rest) = STANDARD.split_once("[[scenario]]").unwrap();
    let mut scenarios: Vec<&str> = rest.split("[[scenario]]").collect();
    scenarios.swap(0, 1);
    let turned = format!("{first}[[scenario]]{}", scenarios.join("\n[[scenario]]"));
    assert_ne!(hashed(&turned), hash, "the order of scenarios");
}

#[test]
fn a_scenario_stands_over_the_defaults() {
    let text = "[defaults.workload]\nturns = 4\ninput_tokens = 10\n[defaults.load]\nconcurrency = 3\n\
                requests = 7\n[[scenario]]\nname = \"a\"\ncategory = \"c\"\npurpose = \"p\"\n\
                [scenario.load]\nrate = 5\n[[scenario]]\nname = \"b\"\ncategory = \"c\"\n\
                purpose = \"p\"\n[scenario.workload]\nprompt = \"hi\"\n";
    let plan = resolved(text);
    let [open, fixed] = &plan.study.conditions[..] else { panic!("two scenarios") };
    assert!(open.spec.is_open_loop(), "a rate takes the place of a number in flight");
    assert_eq!(open.spec.workload.source.kind().name(), "conversations");
    assert_eq!(fixed.spec.workload.source.kind().name(), "prompt");
    assert!(!fixed.spec.is_open_loop());
}
