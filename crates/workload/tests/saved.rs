//! A saved plan is the same plan, until somebody changes it.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use inferometer_model::plan::Fingerprints;
use inferometer_model::spec::{LoadDraft, SourceDraft, WorkloadDraft};
use inferometer_model::{Plan, RequestId, Spec, SpecDraft};
use inferometer_workload::saved::{SavedPlanError, read_header, save};
use inferometer_workload::{Ingredients, WorkloadError, make_plan};

fn conversations() -> SpecDraft {
    let source = SourceDraft {
        turns: Some("uniform:1..4".parse().unwrap()),
        prefix_tokens: Some(20),
        ..SourceDraft::default()
    };
    let load = LoadDraft { rate_per_s: Some(5.0), requests: Some(50), ..LoadDraft::default() };
    let workload = WorkloadDraft { source, ..WorkloadDraft::default() };
    SpecDraft { workload, load, ..SpecDraft::default() }
}

fn made(spec: &Spec) -> Result<(Arc<dyn Plan>, Fingerprints), WorkloadError> {
    Ok(make_plan(spec, &Ingredients::gather(spec)?))
}

fn saved_at(folder: &Path, draft: SpecDraft) -> (PathBuf, Arc<dyn Plan>, Fingerprints) {
    let spec = draft.resolve().unwrap();
    let ingredients = Ingredients::gather(&spec).unwrap();
    let (plan, fingerprints) = make_plan(&spec, &ingredients);
    let path = folder.join("plan.jsonl");
    save(&path, &spec, ingredients.materials(), &fingerprints, plan.as_ref()).unwrap();
    (path, plan, fingerprints)
}

/// The spec of a run that plays a saved plan.
fn replay(path: &Path) -> Spec {
    let header = read_header(path).unwrap();
    let source = SourceDraft { saved_plan: Some(path.to_owned()), ..SourceDraft::default() };
    let workload = WorkloadDraft { source, ..WorkloadDraft::default() };
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
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
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
    let notes = Ingredients::gather(&spec).unwrap().materials().notes.clone();
    assert!(notes.iter().any(|note| note.contains("changed by hand")), "{notes:?}");
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
    assert!(refused(&swapped).contains("stands where 0 belongs"), "{}", refused(&swapped));
    assert!(refused("hello\n").contains("line 1"), "{}", refused("hello\n"));
    assert!(refused("").contains("line 1"));
}

#[test]
fn a_plan_without_an_end_cannot_be_saved() {
    let load =
        LoadDraft { duration: Some(std::time::Duration::from_secs(5)), ..LoadDraft::default() };
    let spec = SpecDraft { load, ..SpecDraft::default() }.resolve().unwrap();
    let ingredients = Ingredients::gather(&spec).unwrap();
    let (plan, fingerprints) = make_plan(&spec, &ingredients);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.jsonl");
    let refused = save(&path, &spec, ingredients.materials(), &fingerprints, plan.as_ref());
    assert!(matches!(refused, Err(SavedPlanError::Endless)));
}
