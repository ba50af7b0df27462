//! Files of other tools: keeping them, finding them by name, what is refused.

use std::fs;

use inferometer_model::import::{ForeignFile, ImportReading};
use inferometer_store::{ImportDirectory, RunState, RunStore, StoreError, Stored};
use tempfile::TempDir;

use crate::samples::{STARTED_NS, new_run, store};

const SECOND_NS: u64 = 1_000_000_000;
/// Not UTF-8, and with line ends of all kinds: nothing of it may change.
const FOREIGN: &[u8] = b"{\"completed\": 3}\r\n\xff\x00\n";

fn file() -> ForeignFile {
    ForeignFile {
        name: "../../results of a friend.json".to_owned(),
        sha256: "ab12".to_owned(),
        bytes: FOREIGN.len() as u64,
    }
}

fn reading() -> ImportReading {
    ImportReading { names: vec!["stock".to_owned()], repeats: true, nameless: None }
}

fn import_at(store: &RunStore, realtime_ns: u64) -> ImportDirectory {
    store.create_import(file(), reading(), realtime_ns, FOREIGN).unwrap()
}

fn import() -> (TempDir, RunStore, ImportDirectory) {
    let (place, store) = store();
    let import = import_at(&store, STARTED_NS);
    (place, store, import)
}

#[test]
fn a_foreign_file_is_kept_byte_for_byte_beside_what_was_asked_of_it() {
    let (_place, store, import) = import();
    assert_eq!(import.foreign().unwrap(), FOREIGN);
    let manifest = import.manifest().unwrap();
    assert_eq!((manifest.file, manifest.reading), (file(), reading()));
    assert_eq!((manifest.format, manifest.imported.as_str()), (1, "2026-01-02T03:04:05.5Z"));
    assert_eq!(manifest.import, import.id());
    assert!(import.id().starts_with("20260102-030405-"), "{}", import.id());
    assert_eq!(import.path(), store.path().join(import.id()), "its name chooses no path");
    assert_eq!(import.foreign_path(), import.path().join("foreign"));
}

#[test]
fn the_same_file_may_be_taken_in_twice() {
    let (_place, store, import) = import();
    let again = import_at(&store, STARTED_NS);
    assert_ne!(again.id(), import.id(), "imports of one instant");
    assert_eq!(store.list().unwrap().imports.len(), 2);
}

#[test]
fn what_the_file_was_mapped_to_is_written_whole_or_not_at_all() {
    let (_place, _store, import) = import();
    assert_eq!(import.read_summary().unwrap(), None);
    import.write_summary(b"{}\n").unwrap();
    import.write_summary(b"{\"records\":[]}\n").unwrap();
    assert_eq!(import.read_summary().unwrap().as_deref(), Some(&b"{\"records\":[]}\n"[..]));
    let mut names: Vec<_> =
        fs::read_dir(import.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["foreign", "import.json", "summary.json"], "no draft is left");
}

#[test]
fn imports_are_listed_among_themselves_and_the_newest_is_the_latest() {
    let (_place, store, import) = import();
    drop(store.create(new_run(Some(5))).unwrap());
    let newer = import_at(&store, STARTED_NS + SECOND_NS);
    let ids: Vec<String> = store
        .list()
        .unwrap()
        .imports
        .iter()
        .map(|listing| listing.directory.id().to_owned())
        .collect();
    assert_eq!(ids, [newer.id(), import.id()]);
    assert_eq!(store.list().unwrap().runs.len(), 1);
    assert_eq!(store.list().unwrap().sets, []);
    assert_eq!(store.find("latest").unwrap(), Stored::Import(newer, None));
}

#[test]
fn a_name_means_an_import_or_one_of_its_results() {
    let (_place, store, import) = import();
    let path = import.path().to_str().unwrap().to_owned();
    for name in [import.id(), "20260102-030405", "latest", &path] {
        assert_eq!(store.find(name).unwrap().id(), import.id(), "{name}");
        let one = store.find(&format!("{name}/3")).unwrap();
        let Stored::Import(found, number) = one else { panic!("{name}/3 is {one:?}") };
        assert_eq!((found.id(), number), (import.id(), Some(3)));
    }
    for wrong in [format!("{}/03", import.id()), format!("{}/x", import.id())] {
        let error = store.find(&wrong).unwrap_err();
        assert!(matches!(error, StoreError::NotFound { .. }), "{wrong}: {error}");
    }
}

#[test]
fn an_import_is_no_run() {
    let (_place, store, import) = import();
    for name in [import.id().to_owned(), format!("{}/0", import.id())] {
        let found = store.find(&name).unwrap();
        assert!(matches!(&found, Stored::Import(found, _) if found == &import), "{found:?}");
    }
}

#[test]
fn an_import_of_a_newer_or_damaged_manifest_is_refused_and_listed() {
    let (_place, store, import) = import();
    let path = import.path().join("import.json");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, b"{\"format\": 2, \"something\": \"else\"}").unwrap();
    let newer = import.manifest().unwrap_err();
    assert!(matches!(newer, StoreError::NewerFormat { found: 2, known: 1, .. }), "{newer}");
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(import.manifest(), Err(StoreError::Damaged { .. })));
    let listed = store.list().unwrap().imports;
    let RunState::Unreadable(why) = &listed[0].state else { panic!("{listed:?}") };
    assert!(why.contains("import.json is damaged"), "{why}");
    assert_eq!(store.find("latest").unwrap().id(), import.id(), "broken, and the newest");
    fs::remove_file(&path).unwrap();
    assert!(matches!(import.manifest(), Err(StoreError::Missing { .. })));
}

#[test]
fn an_import_that_was_cut_off_is_listed_with_what_to_do() {
    let (_place, store, _whole) = import();
    let cut = import_at(&store, STARTED_NS + SECOND_NS);
    fs::remove_file(cut.path().join("import.json")).unwrap();
    let listed = store.list().unwrap().imports;
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[1].directory, cut);
    let RunState::Unreadable(why) = &listed[1].state else { panic!("{listed:?}") };
    assert!(why.contains("import the file again"), "{why}");
    assert_eq!(store.find(cut.id()).unwrap(), Stored::Import(cut, None));
}

#[test]
fn an_import_whose_file_is_gone_says_so() {
    let (_place, _store, import) = import();
    fs::remove_file(import.foreign_path()).unwrap();
    let error = import.foreign().unwrap_err();
    assert!(matches!(&error, StoreError::Missing { path, .. } if path.ends_with("foreign")));
    assert!(error.to_string().contains("import the file again"), "{error}");
}
