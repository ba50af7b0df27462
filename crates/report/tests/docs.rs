//! Generated documentation is what the code would generate now.

use std::path::Path;

#[test]
fn the_metrics_page_is_what_the_table_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let generated = inferometer_report::reference::metrics_markdown();
    if std::env::var_os("INFEROMETER_REWRITE_DOCS").is_some() {
        std::fs::write(&page, &generated).unwrap();
    }
    let written = std::fs::read_to_string(&page).unwrap_or_default();
    assert_eq!(written, generated, "run `cargo xtask docs`");
}
