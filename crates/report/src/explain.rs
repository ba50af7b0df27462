//! The pages of `explain`: the meaning of a metric or a term, here and in other tools.

use inferometer_analysis::{
    Better, Foreign, METRICS, Metric, Shape, Statistic, Topic, WORDS, Word,
};
use serde_json::{Value, json};

use crate::document::{Block, Section, Text, plain, terminal};
use crate::fmt::count;
use crate::terminal::Style;

/// One topic. `asked` is what was typed, and safe for the page.
pub fn page(asked: &str, topic: &Topic, style: Style) -> String {
    let sections = match topic {
        Topic::Metric { metric, statistic } => metric_sections(metric, *statistic),
        Topic::Word(word) => vec![word_section(word)],
        Topic::Foreign(names) => {
            let title = format!("{asked}  ·  a name of other tools");
            let meanings = names.iter().map(|name| (name.tool, meaning(name)));
            let mut sections = vec![Section::new(title, vec![facts(meanings)])];
            let mut shown: Vec<&Metric> = Vec::new();
            for metric in names.iter().filter_map(|name| name.metric) {
                if !shown.contains(&metric) {
                    shown.push(metric);
                    sections.extend(metric_sections(metric, None));
                }
            }
            sections
        }
        Topic::Tool(names) => {
            let tool = names.first().map_or("", |name| name.tool);
            let title = format!("{tool}  ·  names and meanings that differ");
            let meanings = names.iter().map(|name| (name.written, meaning(name)));
            vec![Section::new(title, vec![facts(meanings)])]
        }
    };
    terminal::sections(&sections, style)
}

/// All topics, in groups.
pub fn list(style: Style) -> String {
    let metrics = |title: &str, shape: Shape| {
        let rows = METRICS.iter().filter(|metric| metric.shape() == shape);
        Section::new(
            title,
            vec![facts(rows.map(|metric| (metric.name, metric.definition.to_owned())))],
        )
    };
    let terms = WORDS.iter().filter(|word| Metric::named(word.name).is_none());
    let terms = terms.map(|word| (word.name, first_sentence(word.meaning).to_owned()));
    let others = "Names of other tools are known, too: mean_ttft_ms, \"Mean TPOT\", \
                  inter_token_latency, request_latency. A statistic may follow a latency: ttft.p99.";
    let sections = [
        metrics("latencies (ms)", Shape::Distribution),
        metrics("one number of a run", Shape::Scalar),
        Section::new("terms", vec![facts(terms)]),
        Section::new("", vec![Block::paragraph(others)]),
    ];
    terminal::sections(&sections, style)
}

fn facts<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> Block {
    let fact = |(key, text): (&str, String)| -> (String, Text) { (key.to_owned(), plain(text)) };
    Block::Facts(pairs.into_iter().map(fact).collect())
}

/// What a tool means by a name, and the metric here that is nearest to it.
fn meaning(name: &Foreign) -> String {
    let here = name.metric.map_or_else(String::new, |metric| format!("; here {}", metric.name));
    format!("{}{here}", name.meaning)
}

fn metric_sections(metric: &Metric, statistic: Option<Statistic>) -> Vec<Section> {
    let quantity = statistic.map_or_else(
        || metric.name.to_owned(),
        |statistic| format!("{}.{}", metric.name, statistic.name()),
    );
    let values = match metric.shape() {
        Shape::Distribution => "mean, p50, p90, p95, p99, p99.9 and max of all values",
        Shape::Scalar => "one number of the run",
    };
    let known = |text: Option<&str>| text.map(str::to_owned);
    let rows = [
        ("formula", known(Some(metric.formula))),
        ("unit", Some(format!("{}; {values}", metric.unit.name()))),
        ("better", known(Some(better(metric)))),
        (statistic.map_or("", Statistic::name), statistic.map(statistic_meaning)),
        ("null when", known(Some(metric.null_when))),
        ("interval", known(Some(metric.interval))),
        ("in JSON", Some(format!("metrics.{}", metric.key()))),
    ];
    let rows = rows.into_iter().filter_map(|(key, text)| Some((key, text?)));
    let blocks = vec![Block::paragraph(metric.definition), facts(rows)];
    let mut sections = vec![Section::new(format!("{}  ·  {quantity}", metric.title), blocks)];
    if !metric.elsewhere.is_empty() {
        let rows = metric.elsewhere.iter().map(|(tool, words)| (*tool, (*words).to_owned()));
        sections.push(Section::new("in other tools", vec![facts(rows)]));
    }
    sections
}

fn word_section(word: &Word) -> Section {
    let aliases = word.aliases.join(", ");
    let separator = if aliases.is_empty() { "" } else { "  ·  " };
    let mut blocks = vec![Block::paragraph(word.meaning)];
    if !word.see.is_empty() {
        blocks.push(facts([("see", word.see.join(", "))]));
    }
    Section::new(format!("{}{separator}{aliases}", word.name), blocks)
}

const fn better(metric: &Metric) -> &'static str {
    match metric.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
        Better::Neither => "neither",
    }
}

fn statistic_meaning(statistic: Statistic) -> String {
    match statistic {
        Statistic::Mean => "the sum of all values over their number".to_owned(),
        Statistic::Max => {
            "the largest value; longer runs have larger ones, so compare runs of one length"
                .to_owned()
        }
        Statistic::Percentile(percentile) => format!(
            "exact: all values are kept, sorted, and interpolated linearly; certified from {} \
             values on",
            count(percentile.certified_from())
        ),
    }
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

/// One document for what was asked.
pub fn document(asked: &str, topic: &Topic) -> Value {
    let (kind, explained) = match topic {
        Topic::Metric { metric, statistic } => ("metric", metric_document(metric, *statistic)),
        Topic::Word(word) => ("word", word_document(word)),
        Topic::Foreign(names) => ("other_tools", names_document(names)),
        Topic::Tool(names) => ("tool", names_document(names)),
    };
    json!({ "schema": SCHEMA, "asked": asked, kind: explained })
}

/// One document for several words.
pub fn documents(explained: &[Value]) -> Value {
    json!({ "schema": SCHEMA, "explained": explained })
}

fn names_document(names: &[&Foreign]) -> Value {
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

/// All of it.
pub fn list_document() -> Value {
    let metrics: Vec<Value> = METRICS.iter().map(|metric| metric_document(metric, None)).collect();
    let words: Vec<Value> = WORDS.iter().map(word_document).collect();
    json!({ "schema": SCHEMA, "metrics": metrics, "words": words })
}

const SCHEMA: &str = "inferometer.explanation/1";

fn metric_document(metric: &Metric, statistic: Option<Statistic>) -> Value {
    let elsewhere: Vec<Value> = metric
        .elsewhere
        .iter()
        .map(|(tool, meaning)| json!({ "tool": tool, "meaning": meaning }))
        .collect();
    json!({
        "name": metric.name,
        "key": metric.key(),
        "title": metric.title,
        "definition": metric.definition,
        "formula": metric.formula,
        "unit": metric.unit.name(),
        "better": better(metric),
        "statistic": statistic.map(|statistic| {
            json!({ "name": statistic.name(), "meaning": statistic_meaning(statistic) })
        }),
        "null_when": metric.null_when,
        "interval": metric.interval,
        "elsewhere": elsewhere,
    })
}

fn word_document(word: &Word) -> Value {
    json!({
        "name": word.name,
        "aliases": word.aliases,
        "meaning": word.meaning,
        "see": word.see,
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
        let words = WORDS.iter().map(|word| word.name);
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
