//! Generated documentation is what the code would generate now.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;

fn is_written(name: &str, generated: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("INFEROMETER_REWRITE_DOCS").is_some() {
        std::fs::write(&page, generated).unwrap();
    }
    let written = std::fs::read_to_string(&page).unwrap_or_default();
    assert_eq!(written, generated, "run `cargo xtask docs`");
}

#[test]
fn the_metrics_page_is_what_the_table_says() {
    is_written("metrics.md", &inferometer_report::reference::metrics_markdown());
}

#[test]
fn the_page_about_validity_is_what_the_table_says() {
    is_written("validity.md", &inferometer_report::reference::validity_markdown());
}
