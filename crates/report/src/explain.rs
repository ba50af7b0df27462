//! The pages of `explain`: the meaning of a metric or a term, here and in other tools.

use inferometer_analysis::{ForeignName, METRICS, Metric, Shape, Statistic, TERMS, Topic};
use serde_json::{Value, json};

use crate::document::{Block, Section, distinct, terminal};
use crate::fmt::count;
use crate::terminal::Style;
use crate::texts::fill;

const SCHEMA: &str = "inferometer.explanation/1";

/// One topic. `asked` is what was typed, and safe for the page.
pub fn page(asked: &str, topic: &Topic, style: Style) -> String {
    let sections = match topic {
        Topic::Metric { metric, statistic } => metric_sections(metric, *statistic),
        Topic::Term(term) => {
            let mut blocks = vec![Block::paragraph(term.meaning)];
            if !term.see.is_empty() {
                blocks.push(Block::facts([("see", term.see.join(", "))]));
            }
            let separator = if term.aliases.is_empty() { "" } else { "  ·  " };
            let title = format!("{}{separator}{}", term.name, term.aliases.join(", "));
            vec![Section::new(title, blocks)]
        }
        Topic::Foreign(names) => {
            let title = format!("{asked}  ·  a name of other tools");
            let meanings = names.iter().map(|name| (name.tool, foreign_meaning(name)));
            let mut sections = vec![Section::new(title, vec![Block::facts(meanings)])];
            for metric in distinct(names.iter().filter_map(|name| name.metric)) {
                sections.extend(metric_sections(metric, None));
            }
            sections
        }
        Topic::Several { metrics, terms } => {
            let metrics =
                metrics.iter().map(|metric| (metric.name, metric.definition().to_owned()));
            let terms = terms.iter().map(|term| (term.name, first_sentence(term.meaning)));
            let title = format!("{asked}  ·  several metrics and terms");
            let more = "inferometer explain NAME has the formula of each.";
            let rows = Block::facts(metrics.chain(terms));
            vec![Section::new(title, vec![rows, Block::paragraph(more)])]
        }
        Topic::Tool(names) => {
            let tool = names.first().map_or("", |name| name.tool);
            let title = format!("{tool}  ·  names and meanings that differ");
            let meanings = names.iter().map(|name| (name.written, foreign_meaning(name)));
            vec![Section::new(title, vec![Block::facts(meanings)])]
        }
    };
    terminal::sections(&sections, style)
}

/// All topics, in groups.
pub fn list(style: Style) -> String {
    let metrics = |title: &str, shape: Shape| {
        let rows = METRICS.iter().filter(|metric| metric.shape() == shape);
        let rows = rows.map(|metric| (metric.name, metric.definition().to_owned()));
        Section::new(title, vec![Block::facts(rows)])
    };
    let terms = TERMS.iter().filter(|term| Metric::named(term.name).is_none());
    let terms = terms.map(|term| (term.name, first_sentence(term.meaning)));
    let others = "Names of other tools are known, too: mean_ttft_ms, \"Mean TPOT\", \
                  inter_token_latency, request_latency. A statistic may follow a latency: ttft.p99.";
    let sections = [
        metrics("latencies (ms)", Shape::Distribution),
        metrics("one number of a run", Shape::Scalar),
        Section::new("terms", vec![Block::facts(terms)]),
        Section::new("", vec![Block::paragraph(others)]),
    ];
    terminal::sections(&sections, style)
}

fn first_sentence(text: &str) -> String {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.').to_owned()
}

/// What a tool means by a name, and the metric here that is nearest to it.
fn foreign_meaning(name: &ForeignName) -> String {
    let here = name.metric.map_or_else(String::new, |metric| format!("; here {}", metric.name));
    format!("{}{here}", name.meaning)
}

fn metric_sections(metric: &Metric, statistic: Option<Statistic>) -> Vec<Section> {
    let suffix = statistic.map_or_else(String::new, |statistic| format!(".{}", statistic.name()));
    let values = match metric.shape() {
        Shape::Distribution => "mean, p50, p90, p95, p99, p99.9 and max of all values",
        Shape::Scalar => "one number of the run",
    };
    let mut rows = vec![
        ("formula", metric.formula().to_owned()),
        ("unit", format!("{}; {values}", metric.unit.name())),
        ("better", metric.better.to_string()),
    ];
    rows.extend(statistic.map(|statistic| (statistic.name(), statistic_meaning(statistic))));
    rows.extend([
        ("null when", metric.null_when().to_owned()),
        ("interval", metric.interval().to_owned()),
        ("in JSON", format!("metrics.{}", metric.key())),
    ]);
    let title = format!("{}  ·  {}{suffix}", metric.title, metric.name);
    let blocks = vec![Block::paragraph(metric.definition()), Block::facts(rows)];
    let mut sections = vec![Section::new(title, blocks)];
    let elsewhere = metric.elsewhere();
    if !elsewhere.is_empty() {
        let rows = elsewhere.into_iter().map(|(tool, meaning)| (tool, meaning.to_owned()));
        sections.push(Section::new("in other tools", vec![Block::facts(rows)]));
    }
    sections
}

fn statistic_meaning(statistic: Statistic) -> String {
    match statistic {
        Statistic::Mean => "the sum of all values over their number".to_owned(),
        Statistic::Max => {
            "the largest value; longer runs have larger ones, so compare runs of one length"
                .to_owned()
        }
        Statistic::Percentile(percentile) => {
            fill("certified-percentile", &[&count(percentile.certified_from())])
        }
    }
}

/// One document for what was asked.
pub fn document(asked: &str, topic: &Topic) -> Value {
    let (kind, explained) = match topic {
        Topic::Metric { metric, statistic } => ("metric", metric_document(metric, *statistic)),
        Topic::Term(term) => ("word", json!(term)),
        Topic::Foreign(names) => ("other_tools", names_document(names)),
        Topic::Tool(names) => ("tool", names_document(names)),
        Topic::Several { metrics, terms } => {
            let metrics: Vec<Value> = metrics.iter().map(|it| metric_document(it, None)).collect();
            ("several", json!({ "metrics": metrics, "words": terms }))
        }
    };
    json!({ "schema": SCHEMA, "asked": asked, kind: explained })
}

/// One document for several words.
pub fn documents(explained: &[Value]) -> Value {
    json!({ "schema": SCHEMA, "explained": explained })
}

/// One document for all topics.
pub fn list_document() -> Value {
    let metrics: Vec<Value> = METRICS.iter().map(|metric| metric_document(metric, None)).collect();
    json!({ "schema": SCHEMA, "metrics": metrics, "words": *TERMS })
}

fn names_document(names: &[&ForeignName]) -> Value {
    let names = names.iter().map(|name| {
        json!({
            "tool": name.tool,
            "written": name.written,
            "meaning": name.meaning,
            "metric": name.metric.map(|metric| metric.name),
        })
    });
    names.collect()
}

fn metric_document(metric: &Metric, statistic: Option<Statistic>) -> Value {
    let elsewhere = metric.elsewhere().into_iter();
    let elsewhere = elsewhere.map(|(tool, meaning)| json!({ "tool": tool, "meaning": meaning }));
    json!({
        "name": metric.name,
        "key": metric.key(),
        "title": metric.title,
        "definition": metric.definition(),
        "formula": metric.formula(),
        "unit": metric.unit.name(),
        "better": metric.better.to_string(),
        "statistic": statistic.map(|statistic| {
            json!({ "name": statistic.name(), "meaning": statistic_meaning(statistic) })
        }),
        "null_when": metric.null_when(),
        "interval": metric.interval(),
        "elsewhere": elsewhere.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::PAGE_WIDTH;

    fn plain(asked: &str) -> String {
        page(asked, &Topic::look_up(asked).unwrap(), Style::Plain)
    }

    #[test]
    fn pages() {
        insta::assert_snapshot!("metric", plain("itl"));
        insta::assert_snapshot!("quantity", plain("ttft.p99"));
        insta::assert_snapshot!("word", plain("certified"));
        insta::assert_snapshot!("foreign", plain("inter_token_latency"));
        insta::assert_snapshot!("list", list(Style::Plain));
    }

    #[test]
    fn no_line_is_wider_than_a_page() {
        let metrics = METRICS.iter().map(|metric| metric.name);
        let words = TERMS.iter().map(|word| word.name);
        let others =
            ["mean_itl_ms", "time_per_output_token", "normalized_time_per_output_token", "vllm"];
        let mut pages: Vec<String> = metrics.chain(words).chain(others).map(plain).collect();
        pages.push(list(Style::Plain));
        for line in pages.iter().flat_map(|page| page.lines()) {
            assert!(line.chars().count() <= PAGE_WIDTH, "{line}");
        }
    }

    #[test]
    fn documents_have_what_the_pages_have() {
        let asked = |word: &str| document(word, &Topic::look_up(word).unwrap());
        let ttft = asked("ttft.p99");
        assert_eq!(ttft["metric"]["key"], "ttft_ms");
        assert_eq!(ttft["metric"]["statistic"]["name"], "p99");
        assert!(ttft["metric"]["elsewhere"][0]["meaning"].is_string());
        assert_eq!(asked("knee")["word"]["name"], "knee");
        assert_eq!(asked("mean_itl_ms")["other_tools"][0]["metric"], "icl");
        let all = list_document();
        assert_eq!(all["metrics"].as_array().unwrap().len(), METRICS.len());
    }
}
