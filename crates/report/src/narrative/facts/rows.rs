//! What rows are called, and where their tables are.

use inferometer_model::campaign::Level;

/// What a level of a set is called: the condition with its level, or either alone. Suites bring the
/// names of their rows with them.
pub fn row_name(condition: &str, level: Level, several_conditions: bool) -> String {
    let level = match level {
        Level::AsAsked => return condition.to_owned(),
        Level::Concurrency(requests) => format!("c={requests}"),
        Level::Rate(_) | Level::Unlimited => level.to_string(),
    };
    if several_conditions { format!("{condition} ({level})") } else { level }
}

/// The name of a row without its concurrency: the same for all levels of a scenario.
pub(in crate::narrative) fn family(name: &str, concurrency: Option<u32>) -> Option<&str> {
    let level = format!("c={}", concurrency?);
    if name == level {
        return Some("");
    }
    name.strip_suffix(')')?.strip_suffix(&level)?.strip_suffix(" (")
}

/// The id of the table with the key metrics of a scenario.
pub fn table_of_scenario(name: &str) -> String {
    format!("scenario-{}", slug(name))
}

/// Lower-case words joined by hyphens.
pub fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    words.join("-")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn levels_of_a_scenario_are_a_family() {
        assert_eq!(family("Concurrency Scaling (c=16)", Some(16)), Some("Concurrency Scaling"));
        assert_eq!(family("c=16", Some(16)), Some(""));
        assert_eq!(family("Long Context (16K)", Some(4)), None);
        assert_eq!(family("Concurrency Scaling (c=16)", Some(6)), None);
        assert_eq!(family("Mixed Traffic", None), None);
    }

    #[test]
    fn rows_are_named_by_what_tells_them_apart() {
        let level = Level::Concurrency(NonZeroU32::MIN);
        assert_eq!(row_name("stock", level, false), "c=1");
        assert_eq!(row_name("stock", level, true), "stock (c=1)");
        assert_eq!(row_name("stock", Level::AsAsked, false), "stock");
    }

    #[test]
    fn ids_are_words_joined_by_hyphens() {
        assert_eq!(table_of_scenario("Long Context (16K)"), "scenario-long-context-16k");
        assert_eq!(slug("Concurrency Scaling (c=4)"), "concurrency-scaling-c-4");
    }
}
