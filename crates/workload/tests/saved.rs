//! A saved plan is the same plan, until somebody changes it.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use inferometer_model::plan::Fingerprints;
use inferometer_model::spec::{
    LoadTable, MixTable, PerSecond, SourceTable, Until, WarmUp, WorkloadTable,
};
use inferometer_model::{Plan, RequestId, Spec, SpecDraft};
use inferometer_workload::saved::{SavedPlan, SavedPlanError, read_header, write_plan};
use inferometer_workload::{Inputs, WorkloadError, make_plan};
use serde_json::{Value, json};

fn conversations() -> SpecDraft {
    let source = SourceTable {
        turns: Some("uniform:1..4".parse().unwrap()),
        prefix_tokens: Some(20),
        ..SourceTable::default()
    };
    let load = LoadTable { rate: Some(PerSecond(5.0)), requests: Some(50), ..LoadTable::default() };
    let workload = WorkloadTable { source, ..WorkloadTable::default() };
    SpecDraft { workload, load, ..SpecDraft::default() }
}

fn made(spec: &Spec) -> Result<(Arc<dyn Plan>, Fingerprints), WorkloadError> {
    Ok(make_plan(spec, &Inputs::gather(spec)?))
}

fn save(
    path: &Path,
    spec: &Spec,
    inputs: &Inputs,
    fingerprints: &Fingerprints,
    plan: &dyn Plan,
) -> Result<(), SavedPlanError> {
    let mut bytes = Vec::new();
    write_plan(&mut bytes, path, spec, inputs, fingerprints, plan)?;
    std::fs::write(path, bytes).unwrap();
    Ok(())
}

fn saved_at(folder: &Path, draft: SpecDraft) -> (PathBuf, Arc<dyn Plan>, Fingerprints) {
    let spec = draft.resolve().unwrap();
    let inputs = Inputs::gather(&spec).unwrap();
    let (plan, fingerprints) = make_plan(&spec, &inputs);
    let path = folder.join("plan.jsonl");
    save(&path, &spec, &inputs, &fingerprints, plan.as_ref()).unwrap();
    (path, plan, fingerprints)
}

/// The spec of a run that plays a saved plan.
fn replay(path: &Path) -> Spec {
    let header = read_header(path).unwrap();
    let source = SourceTable { plan: Some(path.to_owned()), ..SourceTable::default() };
    let workload = WorkloadTable { source, ..WorkloadTable::default() };
    let saved = Some(header.spec());
    SpecDraft { workload, saved, ..SpecDraft::default() }.resolve().unwrap()
}

#[test]
fn what_was_saved_is_played_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (path, plan, fingerprints) = saved_at(folder.path(), conversations());
    let (again, same) = made(&replay(&path)).unwrap();
    assert_eq!(same, fingerprints);
    assert_eq!(again.bounds(), plan.bounds());
    let requests = plan.bounds().requests.unwrap();
    assert!(50 <= requests, "whole conversations: {requests}");
    for id in (0..=requests).map(RequestId) {
        let (first, second) = (plan.request(id), again.request(id));
        assert_eq!(first, second, "request {id}");
        if let Some(request) = first {
            assert_eq!(plan.content(&request), again.content(&request), "request {id}");
        }
    }
}

#[test]
fn a_changed_plan_has_fingerprints_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _, fingerprints) = saved_at(folder.path(), conversations());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"output_tokens\":128", "\"output_tokens\":12", 1))
        .unwrap();
    let spec = replay(&path);
    let (_, changed) = made(&spec).unwrap();
    assert!(changed.plan != fingerprints.plan && changed.workload != fingerprints.workload);
    let notes = Inputs::gather(&spec).unwrap().materials().notes.clone();
    assert!(notes.iter().any(|note| note.contains("changed by hand")), "{notes:?}");
}

#[test]
fn a_changed_header_shows_too() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _, fingerprints) = saved_at(folder.path(), conversations());
    let text = std::fs::read_to_string(&path).unwrap();
    let edited = text.replacen("\"pin_output\":\"auto\"", "\"pin_output\":\"never\"", 1);
    assert_ne!(edited, text);
    std::fs::write(&path, edited).unwrap();
    let (_, changed) = made(&replay(&path)).unwrap();
    assert!(changed.plan != fingerprints.plan && changed.workload != fingerprints.workload);
}

#[test]
fn another_warm_up_is_another_workload_as_if_it_had_been_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _, fingerprints) = saved_at(folder.path(), conversations());
    let mut asked = conversations();
    asked.load.warm_up = Some(WarmUp::Requests(7));
    let expected = made(&asked.resolve().unwrap()).unwrap().1;
    let mut spec = replay(&path);
    spec.load.warm_up = 7;
    let warmed = made(&spec).unwrap().1;
    assert_ne!(warmed.workload, fingerprints.workload);
    assert_eq!(warmed, expected);
}

#[test]
fn a_broken_file_is_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let (path, ..) = saved_at(folder.path(), conversations());
    let text = std::fs::read_to_string(&path).unwrap();
    let spec = replay(&path);
    let refused = |text: &str| {
        std::fs::write(&path, text).unwrap();
        made(&spec).map(|_| ()).unwrap_err().to_string()
    };
    let lines: Vec<&str> = text.lines().collect();
    let cut = lines[..10].join("\n") + "\n";
    assert!(refused(&cut).contains("cut short after 9 requests"), "{}", refused(&cut));
    let half_a_line = &text[..text.len() / 2];
    assert!(refused(half_a_line).contains(", line "), "{}", refused(half_a_line));
    let misspelt = text.replacen("\"output_tokens\"", "\"output_token\"", 2);
    assert!(refused(&misspelt).contains("line 2"), "{}", refused(&misspelt));
    let swapped = [&lines[..1], &lines[2..3], &lines[1..2], &lines[3..]].concat().join("\n");
    assert!(refused(&swapped).contains("and request 0 is due"), "{}", refused(&swapped));
    assert!(refused("hello\n").contains("line 1"), "{}", refused("hello\n"));
    assert!(refused("").contains("line 1"));
}

/// What is said of a plan whose lines were edited as JSON.
#[track_caller]
fn said_of(draft: SpecDraft, edit: impl FnOnce(&mut Vec<Value>)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (path, ..) = saved_at(folder.path(), draft);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    edit(&mut lines);
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    match SavedPlan::open(&path) {
        Ok(_) => "nothing".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn closed() -> SpecDraft {
    let load = LoadTable { requests: Some(4), ..LoadTable::default() };
    SpecDraft { load, ..SpecDraft::default() }
}

#[track_caller]
fn assert_said(said: &str, place: &str, what: &str) {
    assert!(said.contains(place) && said.contains(what), "{said}");
}

#[test]
fn a_header_is_held_against_the_bounds_and_against_itself() {
    let slots = said_of(closed(), |lines| lines[0]["bounds"]["slots"] = json!(1_000));
    assert_said(&slots, "line 1", "`bounds.slots` is 1000, and `load.shape` makes it 8");
    let many = said_of(closed(), |lines| {
        lines[0]["bounds"]["slots"] = json!(u32::MAX);
        lines[0]["load"]["shape"]["closed"]["concurrency"] = json!(u32::MAX);
    });
    assert_said(&many, "line 1", "--concurrency 4294967295 is above the bound");
    let uncapped = said_of(conversations(), |lines| lines[0]["bounds"]["slots"] = json!(3));
    assert_said(&uncapped, "line 1", "makes it null");
    let more = said_of(closed(), |lines| lines[0]["bounds"]["requests"] = json!(5));
    assert_said(&more, "line 1", "`bounds.requests` is 5, and 4 requests follow");
    let endless = said_of(closed(), |lines| lines[0]["bounds"]["requests"] = Value::Null);
    assert_said(&endless, "line 1", "`bounds.requests` is null");
    let soon = said_of(closed(), |lines| lines[0]["bounds"]["release_before"] = json!(1));
    assert_said(&soon, "line 1", "`bounds.release_before` does not fit");
    let least = said_of(closed(), |lines| lines[0]["bounds"]["requests_min"] = json!(1));
    assert_said(&least, "line 1", "`bounds.requests_min` does not fit");
    let warm = said_of(closed(), |lines| lines[0]["load"]["warm_up"] = json!(u64::MAX));
    assert_said(&warm, "line 1", "--warm-up");
    let long = said_of(closed(), |lines| {
        lines[0]["load"]["shape"]["closed"]["think"] =
            json!({"fixed": {"secs": 1_u64 << 40, "nanos": 0}});
    });
    assert_said(&long, "line 1", "--think-time");
    let length = said_of(closed(), |lines| {
        lines[0]["workload"]["source"]["synthetic"]["input"] = json!("uniform:9..1");
    });
    assert_said(&length, "line 1", "lower end must come first");
}

/// The line of the first request for which this holds.
fn place_of(lines: &[Value], holds: impl Fn(&Value) -> bool) -> usize {
    lines.iter().skip(1).position(holds).unwrap() + 1
}

fn continues(line: &Value) -> bool {
    line["continues"] == true
}

#[test]
fn turns_stand_in_their_order() {
    let of_the_first = said_of(closed(), |lines| lines[1]["turn"] = json!(1));
    assert_said(&of_the_first, "line 2", "it is turn 1, and turn 0 is due");
    let skipped = said_of(conversations(), |lines| {
        let place = place_of(lines, continues);
        lines[place + 1]["turn"] = json!(2);
    });
    assert_said(&skipped, ", line ", "it is turn 2, and turn 1 is due");
    let unanswered = said_of(conversations(), |lines| {
        let place = place_of(lines, continues);
        lines[place]["continues"] = json!(false);
    });
    assert_said(&unanswered, ", line ", "the request before it does not continue");
    let left_alone = said_of(conversations(), |lines| {
        let place = place_of(lines, |line| !continues(line));
        lines[place]["continues"] = json!(true);
    });
    assert_said(&left_alone, ", line ", "it must follow that answer");
    let unfinished = said_of(closed(), |lines| lines[4]["continues"] = json!(true));
    assert_said(&unfinished, "line 5", "no request follows it");
}

#[test]
fn moments_do_not_decrease_over_conversations() {
    let said = said_of(conversations(), |lines| {
        let talk = place_of(lines, continues);
        let next = talk + place_of(&lines[talk..], |line| line["release"]["at_ns"].is_u64());
        lines[talk]["release"]["at_ns"] = json!(u64::MAX);
        assert!(talk + 1 < next, "a turn stands between them");
    });
    assert_said(&said, ", line ", "times must not decrease");
    let said = said_of(closed(), |lines| lines[1]["release"] = json!({"at_ns": 0}));
    assert_said(&said, "line 2", "the load is a closed loop");
    let said = said_of(conversations(), |lines| lines[1]["release"] = json!("slot_free"));
    assert_said(&said, "line 2", "the load is an open loop");
}

#[test]
fn lengths_and_parts_are_bounded() {
    for (name, length) in [("input_tokens", 0), ("output_tokens", 0), ("input_tokens", 16_000_001)]
    {
        let said = said_of(closed(), |lines| lines[3][name] = json!(length));
        assert_said(&said, "line 4", &format!("{name} is {length} and must be from 1"));
    }
    let said = said_of(closed(), |lines| lines[1]["part"] = json!(1));
    assert_said(&said, "line 2", "there is no part 1: the workload has 1");
    let mix = WorkloadTable { mix: vec![MixTable::default(); 2], ..WorkloadTable::default() };
    let mix = SpecDraft { workload: mix, ..closed() };
    let played = said_of(mix.clone(), |lines| lines[1]["part"] = json!(1));
    assert_eq!(played, "nothing");
    let said = said_of(mix, |lines| lines[1]["part"] = json!(2));
    assert_said(&said, "line 2", "the workload has 2");
}

#[test]
fn the_end_is_the_end_and_comes_after_something() {
    let after = said_of(closed(), |lines| lines.push(lines[4].clone()));
    assert_said(&after, "line 7", "it is behind the end of the plan");
    let twice = said_of(closed(), |lines| lines.push(lines[5].clone()));
    assert_said(&twice, "line 7", "it is behind the end of the plan");
    let empty = said_of(closed(), |lines| drop(lines.drain(1..5)));
    assert!(empty.contains("the plan has no requests"), "{empty}");
}

#[test]
fn a_plan_that_was_played_can_be_saved_again() {
    let folder = tempfile::tempdir().unwrap();
    let mix = WorkloadTable { mix: vec![MixTable::default(); 2], ..WorkloadTable::default() };
    let (path, plan, fingerprints) =
        saved_at(folder.path(), SpecDraft { workload: mix, ..SpecDraft::default() });
    let parts = (0..100).filter(|id| plan.request(RequestId(*id)).unwrap().part == 1).count();
    assert!(0 < parts, "some are of the second part");
    let spec = replay(&path);
    let inputs = Inputs::gather(&spec).unwrap();
    let (played, _) = make_plan(&spec, &inputs);
    let again = folder.path().join("again.jsonl");
    save(&again, &spec, &inputs, &fingerprints, played.as_ref()).unwrap();
    let spec = replay(&again);
    assert!(spec.workload.source.chooses_output());
    assert_eq!(made(&spec).unwrap().1, fingerprints);
}

#[test]
fn what_could_not_be_read_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.jsonl");
    // A message of pictures alone has no words to count.
    let data = tempfile::tempdir().unwrap();
    let dataset = data.path().join("pictures.jsonl");
    let line = r#"{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}"#;
    std::fs::write(&dataset, line).unwrap();
    let source = SourceTable { dataset: Some(dataset), ..SourceTable::default() };
    let workload = WorkloadTable { source, ..WorkloadTable::default() };
    let spec = SpecDraft { workload, ..closed() }.resolve().unwrap();
    let inputs = Inputs::gather(&spec).unwrap();
    let (plan, fingerprints) = make_plan(&spec, &inputs);
    let refused = save(&path, &spec, &inputs, &fingerprints, plan.as_ref());
    assert_said(&refused.unwrap_err().to_string(), "request 0", "input_tokens is 0");
}

#[test]
fn a_plan_without_an_end_cannot_be_saved() {
    let time = Some(std::time::Duration::from_secs(5).into());
    let by_time = LoadTable { duration: time, ..LoadTable::default() };
    let until = Some(Until::First);
    let until_first = LoadTable { requests: Some(9), until, ..by_time.clone() };
    for load in [by_time, until_first] {
        let spec = SpecDraft { load, ..SpecDraft::default() }.resolve().unwrap();
        let inputs = Inputs::gather(&spec).unwrap();
        let (plan, fingerprints) = make_plan(&spec, &inputs);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.jsonl");
        let refused = save(&path, &spec, &inputs, &fingerprints, plan.as_ref());
        let refused = refused.unwrap_err();
        assert!(matches!(refused, SavedPlanError::Endless), "{refused}");
        assert!(refused.to_string().contains("leave --duration out"), "{refused}");
    }
}
