//! The pages, as a person sees them, from a stored summary.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use inferometer_analysis::{Difference, SteadyKind, Summary};
use inferometer_model::Outcome;
use inferometer_model::endpoint::Api;
use inferometer_model::observations::{InputLength, Simulated};
use inferometer_model::outcome::Cause;
use inferometer_model::spec::{Counting, Images};
use inferometer_report::terminal::Style;
use inferometer_report::{Files, json, terminal};

/// A run with failures, doubts, and a server that tries to steer the terminal.
fn summary() -> Summary {
    Summary::from_json_bytes(include_bytes!("summary.json")).unwrap()
}

fn files() -> Files {
    let place = |name: &str| format!("runs/20260102-030405-abcd{name}");
    Files {
        run: place(""),
        manifest: place("/manifest.json"),
        journal: place("/requests.journal"),
        summary: place("/summary.json"),
        report: None,
    }
}

#[test]
fn the_terminal_page() {
    insta::assert_snapshot!(terminal::render(&summary(), &files(), Style::Plain));
}

#[test]
fn the_summary_of_a_run() {
    let files = Files { report: Some("runs/20260102-030405-abcd/report.html".into()), ..files() };
    insta::assert_snapshot!(terminal::render_summary(&summary(), &files, &[], Style::Plain));
}

#[test]
fn a_page_is_at_most_eighty_columns_wide() {
    let mut long = summary();
    long.workload.notes = vec!["a note that goes on ".repeat(12), "x".repeat(400)];
    long.warnings[0].text = "a doubt that goes on ".repeat(9);
    long.warnings[1].remedy = "a remedy that goes on ".repeat(9);
    long.failures[0].example = Some("words that go on ".repeat(30));
    long.slos[2].reason = Some("a reason that goes on ".repeat(9));
    long.slos[2].promise = format!("ttft.p99<{}ms", "9".repeat(90));
    for line in terminal::render(&long, &files(), Style::Plain).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn who_promised_nothing_reads_nothing_of_promises() {
    let mut bare = summary();
    (bare.request_slos, bare.slos) = (None, Vec::new());
    (bare.turns, bare.parts) = (Vec::new(), Vec::new());
    let page = terminal::render(&bare, &files(), Style::Plain);
    for word in ["SLOs", "Goodput", "Attainment", "Fluidity", "Turns (ms)", "Parts (ms)"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("Workload audit\n"));
}

#[test]
fn turns_that_the_time_cut_off_are_no_failures() {
    let mut cut = summary();
    cut.failures.retain(|group| group.cause == Some(Cause::TimeOver));
    let page = terminal::render(&cut, &files(), Style::Plain);
    assert!(page.contains("57 of 60 requests ok") && page.contains("they are no failures"));
    assert!(!page.contains("\nFailures\n"));
}

#[test]
fn a_broken_conversation_is_told_in_words() {
    let mut broken = summary();
    broken.failures[1].outcome = Outcome::NotSent;
    broken.failures[1].cause = Some(Cause::ConversationBroken);
    let page = terminal::render(&broken, &files(), Style::Plain);
    let joined = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("an earlier turn of its conversation failed"), "{page}");
}

#[test]
fn a_constant_difference_is_explained_only_where_its_cause_is_known() {
    let explained = |change: fn(&mut Summary)| {
        let mut constant = summary();
        constant.workload.input_length = InputLength::Exact;
        constant.workload.audit.follow_ups = 0;
        let input = &mut constant.workload.audit.input;
        (input.actual_tokens, input.exact) = (Some(2_560 + 40 * 30), Some(0));
        input.difference = Some(Difference { min: 30, mean: 30.0, max: 30 });
        change(&mut constant);
        let page = terminal::render(&constant, &files(), Style::Plain);
        let from = page.find("  input   requested ").unwrap();
        let to = page[from..].find("\n  output").unwrap();
        let words: Vec<&str> = page[from..from + to].split_whitespace().collect();
        words.join(" ").trim_start_matches("input requested ").to_owned()
    };
    assert_eq!(explained(|_| ()), "64, server counted 94 (+30 on each: its chat template)");
    for (found, expected) in [
        (explained(|s| s.workload.counting = Counting::WithTemplate), "(+30 on each)"),
        (explained(|s| s.run.api = Api::Completions), "(+30 on each)"),
        (
            explained(|s| s.workload.images = Some(Images { count: 1, width: 8, height: 8 })),
            "(+30 on each: its chat template and the pictures)",
        ),
        (
            explained(|s| s.workload.input_length = InputLength::Estimated),
            "(+30 on each); estimated as one token per word",
        ),
    ] {
        assert!(found.ends_with(expected), "{found}");
    }
}

#[test]
fn a_run_without_an_answer_has_nothing_to_audit() {
    let mut failed = summary();
    failed.outcomes.insert(Outcome::Ok, 0);
    assert!(!terminal::render(&failed, &files(), Style::Plain).contains("Workload audit\n"));
}

#[test]
fn a_server_cannot_steer_the_terminal() {
    let plain = terminal::render(&summary(), &files(), Style::Plain);
    assert!(!plain.contains('\u{1b}'));
    // With colour there are escapes, but only ours: the server's are shown as text.
    let coloured = terminal::render(&summary(), &files(), Style::Coloured);
    assert!(!coloured.contains("\u{1b}[31m|") && !coloured.contains("\u{1b}[2J"));
    assert!(coloured.contains("\\u{1b}[2J"));
}

#[test]
fn colour_changes_nothing_but_colour() {
    let coloured = terminal::render(&summary(), &files(), Style::Coloured);
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    bare.push_str(rest);
    let trimmed: String = bare.lines().map(|line| line.trim_end().to_owned() + "\n").collect();
    assert_eq!(trimmed, terminal::render(&summary(), &files(), Style::Plain));
}

/// Faults: 100.
#[test]
fn a_silent_server_has_one_line_that_says_why() {
    let mut silent = summary();
    let reason = "the server's metrics cannot be read: HTTP 404".to_owned();
    (silent.server, silent.server_missing) = (None, Some(reason));
    let page = terminal::render(&silent, &files(), Style::Plain);
    let expected = "Server\n  – the server's metrics cannot be read: HTTP 404\n";
    assert!(page.contains(expected), "{page}");
    silent.server_missing = None;
    let older = terminal::render(&silent, &files(), Style::Plain);
    assert!(!older.contains("\nServer\n"));
}

#[test]
fn what_a_server_does_not_say_has_no_line() {
    let mut terse = summary();
    let server = terse.server.as_mut().unwrap();
    (server.running, server.preemptions, server.prefix_hit_share) = (None, None, None);
    (server.prompt_tokens, server.generation_tokens, server.restarts) = (None, None, 2);
    let page = terminal::render(&terse, &files(), Style::Plain);
    let section: Vec<&str> = page.lines().skip_while(|line| *line != "Server").collect();
    let labels: Vec<&str> =
        section.iter().skip(1).take(5).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(labels, ["Quantity", "Waiting", "KV", "restarts", "scrapes"]);
}

#[test]
fn few_scrapes_tell_nothing_of_a_run() {
    let mut short = summary();
    let server = short.server.as_mut().unwrap();
    server.scrapes.inside = 2;
    (server.running.as_mut().unwrap().n, server.kv_usage.as_mut().unwrap().n) = (1, 2);
    let page = terminal::render(&short, &files(), Style::Plain);
    let row = |name: &str| page.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("  Running requests").ends_with("–        –"), "{page}");
    assert!(row("  KV use").ends_with("–        –"), "{page}");
    assert!(row("  Waiting requests").ends_with("0        0"), "{page}");
    assert!(page.contains("  – too few scrapes to tell\n"), "{page}");
    assert!(page.contains("6 of vLLM v1, 2 inside the run, 2 missed"), "{page}");
    short.server.as_mut().unwrap().scrapes.inside = 0;
    let page = terminal::render(&short, &files(), Style::Plain);
    assert!(page.contains("6 of vLLM v1, none inside the run"), "{page}");
}

#[test]
fn a_simulated_engine_is_sampled_and_not_scraped() {
    let mut simulated = summary();
    let engine = Simulated {
        profile: "p".to_owned(),
        engine: "e".to_owned(),
        model_error: None,
        prediction: None,
    };
    simulated.run.simulated = Some(engine);
    let server = simulated.server.as_mut().unwrap();
    (server.scrapes.took_ms_mean, server.scrapes.took_ms_max) = (None, None);
    server.running.as_mut().unwrap().n = 1;
    let page = terminal::render(&simulated, &files(), Style::Plain);
    assert!(page.contains("  – too few samples to tell\n"), "{page}");
    assert!(page.contains("6 of the simulated engine (by the names of vLLM v1), 4"), "{page}");
    assert!(!page.contains("scrape"), "{page}");
}

#[test]
fn the_serving_block() {
    insta::assert_snapshot!(inferometer_interchange::vllm::block::from_summary(
        &summary(),
        inferometer_report::escape::terminal
    ));
}

#[test]
fn the_document_is_the_summary_and_its_files() {
    let document: serde_json::Value =
        serde_json::from_str(&json::render(&summary(), &files(), &[])).unwrap();
    let stored: serde_json::Value = serde_json::from_slice(&summary().to_json_bytes()).unwrap();
    for (key, value) in stored.as_object().unwrap().iter().filter(|(key, _)| *key != "checksum") {
        assert_eq!(&document[key], value, "{key}");
    }
    assert_eq!(document["files"]["run"], "runs/20260102-030405-abcd");
}

#[test]
fn what_generates_no_tokens_has_no_length_of_answers() {
    let mut embedding = summary();
    embedding.run.api = Api::Embeddings;
    embedding.workload.output_tokens = None;
    let page = terminal::render(&embedding, &files(), Style::Plain);
    let head: String = page.lines().take(5).collect();
    assert!(head.contains(" in, seed") && !head.contains("answers as long"), "{head}");
}

#[test]
fn a_run_that_never_settled_says_why_and_has_no_figures_beside() {
    let mut unsettled = summary();
    unsettled.steady.state = SteadyKind::NeverSettled;
    unsettled.steady.reason = Some("requests in flight grow by 12.00 per second".to_owned());
    (unsettled.steady.window, unsettled.steady.figures) = (None, None);
    let page = terminal::render(&unsettled, &files(), Style::Plain);
    assert!(page.contains("  never settled: requests in flight grow"), "{page}");
    unsettled.steady.state = SteadyKind::TooShort;
    let page = terminal::render(&unsettled, &files(), Style::Plain);
    assert!(page.contains("  too short to tell: "), "{page}");
}

#[test]
fn checks_are_counted_and_the_failed_ones_told_once() {
    let page = terminal::render(&summary(), &files(), Style::Plain);
    assert!(page.contains("8 checks: 5 passed, 1 noted, 1 degraded, 1 not checked\n"), "{page}");
    assert_eq!(page.matches("3 of 60 attempted requests failed").count(), 1);
}
