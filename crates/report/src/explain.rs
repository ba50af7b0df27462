//! The pages of `explain`: what a metric or a word means, and what other tools mean by it.

use std::fmt::Write;

use inferometer_analysis::{
    Better, Foreign, METRICS, Metric, Shape, Statistic, Topic, WORDS, Word,
};
use serde_json::{Value, json};

use crate::fmt::count;
use crate::lines::hanging;
use crate::terminal::{Ink, Style};

const LABEL_WIDTH: usize = 12;
const TOOL_WIDTH: usize = 20;
const NAME_WIDTH: usize = 26;

/// One topic. `asked` is what was typed, and safe for the page.
pub fn page(asked: &str, topic: &Topic, style: Style) -> String {
    match topic {
        Topic::Metric { metric, statistic } => of_metric(metric, *statistic, style),
        Topic::Word(word) => of_word(word, style),
        Topic::Foreign(names) => of_other_tools(asked, names, style),
        Topic::Tool(names) => of_tool_itself(names, style),
    }
}

/// Everything that can be asked for, in groups.
pub fn list(style: Style) -> String {
    let row =
        |name: &str, text: &str| hanging(&format!("  {name:<NAME_WIDTH$}"), NAME_WIDTH + 2, text);
    let metrics = |title: &str, shape: Shape| {
        let rows = METRICS.iter().filter(|metric| metric.shape() == shape);
        let rows: String = rows.map(|metric| row(metric.name, metric.help)).collect();
        format!("{}\n{rows}", style.paint(Ink::Bold, title))
    };
    let words: String = WORDS
        .iter()
        .filter(|word| Metric::named(word.name).is_none())
        .map(|word| row(word.name, first_sentence(word.meaning)))
        .collect();
    let others = hanging(
        "",
        0,
        "Other tools' names are known, too: mean_ttft_ms, \"Mean TPOT\", inter_token_latency, \
         request_latency. A statistic may follow a latency: ttft.p99.",
    );
    [
        metrics("latencies (ms)", Shape::Distribution),
        metrics("one number of a run", Shape::Scalar),
        format!("{}\n{words}", style.paint(Ink::Bold, "words")),
        others,
    ]
    .join("\n")
}

fn of_metric(metric: &Metric, statistic: Option<Statistic>, style: Style) -> String {
    let mut text = head(metric.title, &quantity(metric, statistic), style);
    text += &hanging("  ", 2, metric.help);
    text.push('\n');
    let mut line = |label: &str, words: &str| text += &labelled(label, words, style);
    if let Some(explained) = metric.explained() {
        line("formula", explained.formula);
    }
    line("unit", &unit(metric));
    line("better", better(metric));
    if let Some(statistic) = statistic {
        line(statistic.name(), &of_statistic(statistic));
    }
    if let Some(explained) = metric.explained() {
        line("null when", explained.null_when);
        line("interval", explained.doubt);
    }
    line("in JSON", &format!("metrics.{}", metric.key()));
    let elsewhere = metric.explained().map_or(&[][..], |explained| explained.elsewhere);
    if !elsewhere.is_empty() {
        let _ = write!(text, "\n{}\n", style.paint(Ink::Bold, "in other tools"));
        text.extend(elsewhere.iter().map(|(tool, words)| of_tool(tool, words, style)));
    }
    text
}

fn of_word(word: &Word, style: Style) -> String {
    let mut text = head(word.name, &word.aliases.join(", "), style);
    text += &hanging("  ", 2, word.meaning);
    if !word.see.is_empty() {
        text.push('\n');
        text += &labelled("see", &word.see.join(", "), style);
    }
    text
}

/// What the name means to each tool, then what is nearest to it here.
fn of_other_tools(asked: &str, names: &[&Foreign], style: Style) -> String {
    let mut text = head(asked, "a name of other tools", style);
    for name in names {
        let here = name.metric.map_or_else(String::new, |metric| format!("; here {metric}"));
        text += &of_tool(name.tool, &format!("{}{here}", name.meaning), style);
    }
    let mut shown: Vec<&str> = Vec::new();
    for metric in names.iter().filter_map(|name| name.metric) {
        if shown.contains(&metric) {
            continue;
        }
        shown.push(metric);
        if let Some(metric) = Metric::named(metric) {
            let _ = write!(text, "\n{}", of_metric(metric, None, style));
        }
    }
    text
}

/// What a tool calls otherwise, name by name.
fn of_tool_itself(names: &[&Foreign], style: Style) -> String {
    let tool = names.first().map_or("", |name| name.tool);
    let mut text = head(tool, "what it calls otherwise, or means otherwise", style);
    for name in names {
        let here = name.metric.map_or_else(String::new, |metric| format!("; here {metric}"));
        let written = style.paint(Ink::Dim, name.written);
        let _ = writeln!(text, "  {written}");
        text += &hanging("    ", 4, &format!("{}{here}", name.meaning));
    }
    text
}

fn head(title: &str, beside: &str, style: Style) -> String {
    let beside = if beside.is_empty() { String::new() } else { format!("  ·  {beside}") };
    format!("{}{}\n", style.paint(Ink::Bold, title), style.paint(Ink::Dim, &beside))
}

fn labelled(label: &str, text: &str, style: Style) -> String {
    let label = style.paint(Ink::Dim, &format!("{label:<LABEL_WIDTH$}"));
    hanging(&format!("  {label}"), LABEL_WIDTH + 2, text)
}

fn of_tool(tool: &str, text: &str, style: Style) -> String {
    let tool = style.paint(Ink::Dim, &format!("{tool:<TOOL_WIDTH$}"));
    hanging(&format!("  {tool}"), TOOL_WIDTH + 2, text)
}

fn quantity(metric: &Metric, statistic: Option<Statistic>) -> String {
    statistic.map_or_else(
        || metric.name.to_owned(),
        |statistic| format!("{}.{}", metric.name, statistic.name()),
    )
}

fn unit(metric: &Metric) -> String {
    match metric.shape() {
        Shape::Distribution => {
            format!("{}; mean, p50, p90, p95, p99, p99.9 and max of all values", metric.unit.name())
        }
        Shape::Scalar => format!("{}; one number of the run", metric.unit.name()),
    }
}

const fn better(metric: &Metric) -> &'static str {
    match metric.better {
        Better::Lower => "lower",
        Better::Higher => "higher",
        Better::Neither => "neither",
    }
}

fn of_statistic(statistic: Statistic) -> String {
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
            "metric": name.metric,
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
    let explained = metric.explained();
    let elsewhere = explained.map_or(&[][..], |explained| explained.elsewhere);
    let elsewhere: Vec<Value> = elsewhere
        .iter()
        .map(|(tool, meaning)| json!({ "tool": tool, "meaning": meaning }))
        .collect();
    json!({
        "name": metric.name,
        "key": metric.key(),
        "title": metric.title,
        "definition": metric.help,
        "formula": explained.map(|explained| explained.formula),
        "unit": metric.unit.name(),
        "better": better(metric),
        "statistic": statistic.map(|statistic| {
            json!({ "name": statistic.name(), "meaning": of_statistic(statistic) })
        }),
        "null_when": explained.map(|explained| explained.null_when),
        "interval": explained.map(|explained| explained.doubt),
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
        page(asked, &Topic::of(asked).unwrap(), Style::Plain)
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
        let asked = |word: &str| document(word, &Topic::of(word).unwrap());
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
