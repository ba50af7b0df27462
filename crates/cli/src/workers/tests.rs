//! How the progress of workers is read.

use serde_json::json;

use super::*;

#[test]
fn progress_is_the_last_whole_event_of_each_worker() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    let tick = |ok: u64| json!({ "event": "progress", "progress": { "ok": ok, "failed": 1 } });
    let mut tails = Tails::default();
    fs::write(&paths[0], format!("srun: words\n{}\n{{\"event\":\"pro", tick(3))).unwrap();
    let events = tails.events(paths.clone().into_iter());
    let all = NonZeroU32::new(2).unwrap();
    assert_eq!(
        progress(&events, all),
        "1 of 2 workers send, 0 are done: 3 ok, 1 failed, 0 in flight"
    );
    fs::write(&paths[1], format!("{}\n{{\"event\":\"finished\"}}\n", tick(5))).unwrap();
    fs::write(&paths[0], format!("srun: words\n{}\n{}\n", tick(3), tick(4))).unwrap();
    let events = tails.events(paths.into_iter());
    assert_eq!(
        progress(&events, all),
        "1 of 2 workers send, 1 are done: 4 ok, 1 failed, 0 in flight"
    );
}
