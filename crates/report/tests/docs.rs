//! Generated documentation is what the tables of the code say now. The texts around the tables are
//! templates in `docs/`.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;

use inferometer_analysis::{Better, CHECKS, METRICS, Metric, Percentile, REMEDIES, Shape, TERMS};
use inferometer_model::Outcome;
use inferometer_report::escape::markdown;

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
    is_written("metrics.md", &metrics_markdown());
}

#[test]
fn the_page_about_validity_is_what_the_table_says() {
    is_written("validity.md", &validity_markdown());
}

/// The Markdown of `docs/metrics.md`.
fn metrics_markdown() -> String {
    let percentile = |one: Percentile| format!("| {} | {} |\n", one.name(), one.certified_from());
    let outcome = |one: Outcome| format!("| `{}` | {} |\n", one.key(), one.help());
    let terms = TERMS.iter().filter(|term| Metric::named(term.name).is_none());
    let term = |name: &str, meaning: &str| format!("- **{name}**: {}\n", markdown(meaning));
    let metrics: String = METRICS.iter().map(|metric| metric_row(metric)).collect();
    let explained: Vec<String> = METRICS.iter().map(|metric| explained_metric(metric)).collect();
    include_str!("docs/metrics.md")
        .replace("{metrics}\n", &metrics)
        .replace(
            "{percentiles}\n",
            &Percentile::ALL.into_iter().map(percentile).collect::<String>(),
        )
        .replace("{outcomes}\n", &Outcome::all().map(outcome).collect::<String>())
        .replace("{explained}\n", &explained.join("\n"))
        .replace("{terms}\n", &terms.map(|it| term(it.name, it.meaning)).collect::<String>())
}

fn metric_row(metric: &Metric) -> String {
    let better = match metric.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
        Better::Neither => "–",
    };
    let shape = match metric.shape() {
        Shape::Distribution => "distribution",
        Shape::Scalar => "one value",
    };
    let (key, help, unit) = (metric.key(), metric.definition(), metric.unit.name());
    format!("| `{key}` | {help} ({shape}) | {unit} | {better} |\n")
}

/// What a metric means in more words, and what other tools mean by it.
fn explained_metric(metric: &Metric) -> String {
    let [title, formula, null_when, interval] =
        [metric.title, metric.formula(), metric.null_when(), metric.interval()].map(markdown);
    let name = metric.name;
    let elsewhere = metric.elsewhere().into_iter();
    let elsewhere = elsewhere.map(|(tool, meaning)| format!("- {tool}: {}\n", markdown(meaning)));
    format!(
        "### {title} (`{name}`)\n\n- formula: {formula}\n- null when: {null_when}\n- interval: \
         {interval}\n{}",
        elsewhere.collect::<String>()
    )
}

/// The Markdown of `docs/validity.md`.
fn validity_markdown() -> String {
    let rows = CHECKS.iter().map(|check| {
        let (key, (title, help), unit) = (check.kind.key(), check.kind.texts(), check.unit);
        let [degraded, invalid] =
            [check.limits.and_then(|it| it.degraded), check.limits.and_then(|it| it.invalid)]
                .map(|limit| limit.map_or_else(|| "–".to_owned(), |it| format!("{it} {unit}")));
        format!("| `{key}` | {title} | {help} | {degraded} | {invalid} |\n")
    });
    let remedies = REMEDIES.iter().map(|(key, text)| format!("| `{key}` | {text} |\n"));
    include_str!("docs/validity.md")
        .replace("{checks}\n", &rows.collect::<String>())
        .replace("{remedies}\n", &remedies.collect::<String>())
}
