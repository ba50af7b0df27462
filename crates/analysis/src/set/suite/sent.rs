//! Which rows of a suite had sent what a later one sends.

use std::collections::BTreeSet;

use inferometer_model::campaign::CampaignSpec;
use inferometer_model::spec::Source;

use super::{PointResult, SuiteRow, of_points};

/// For each row the rows that had sent prompts which begin alike, or the same data, before it, in the
/// order in which they did.
pub(super) fn before_each(
    campaign: &CampaignSpec,
    rows: &[SuiteRow],
    results: &[&PointResult],
) -> Vec<Vec<u32>> {
    rows.iter().map(|row| before(campaign, row, rows, results)).collect()
}

fn before(
    campaign: &CampaignSpec,
    row: &SuiteRow,
    rows: &[SuiteRow],
    results: &[&PointResult],
) -> Vec<u32> {
    let source = |condition: u32| {
        let condition = campaign.conditions.get(usize::try_from(condition).ok()?)?;
        Some(&condition.spec.workload.source)
    };
    let Some(own) = source(row.condition) else { return Vec::new() };
    let mut seen = BTreeSet::new();
    let mut found: Vec<u32> = Vec::new();
    for earlier in results {
        let Some(theirs) = source(earlier.point.condition) else { continue };
        let is_sent_before = of_points(&row.points, results)
            .filter(|later| earlier.point.number < later.point.number)
            .any(|later| sends_again(theirs, own, earlier.point.seed == later.point.seed));
        let place = rows.iter().position(|other| {
            (other.condition, other.level) == (earlier.point.condition, earlier.point.level)
        });
        let place = place.and_then(|place| u32::try_from(place).ok());
        if let Some(place) = place.filter(|place| is_sent_before && seen.insert(*place)) {
            found.push(place);
        }
    }
    found
}

/// Words follow from the seed: with the same one, prompts of any length begin alike. What a file has,
/// and what was typed, is the same with any.
fn sends_again(earlier: &Source, later: &Source, same_seed: bool) -> bool {
    match (earlier, later) {
        (Source::Dataset(one), Source::Dataset(other)) => one.path == other.path,
        (Source::Fixed(one), Source::Fixed(other)) => one.prompt == other.prompt,
        (Source::Trace(one), Source::Trace(other)) => one.path == other.path,
        (Source::Saved { path: one, .. }, Source::Saved { path: other, .. }) => one == other,
        (Source::Mix(parts), _) => {
            parts.iter().any(|part| sends_again(&part.source, later, same_seed))
        }
        (_, Source::Mix(parts)) => {
            parts.iter().any(|part| sends_again(earlier, &part.source, same_seed))
        }
        (one, other) => same_seed && one.writes_words() && one.kind() == other.kind(),
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::spec::{DatasetSpec, FixedPrompt, Lengths, VllmRandom};

    use super::*;

    fn dataset(path: &str) -> Source {
        let path = path.into();
        Source::Dataset(DatasetSpec {
            path,
            kind: None,
            input: None,
            output: None,
            keep_order: false,
        })
    }

    fn fixed(prompt: &str) -> Source {
        Source::Fixed(FixedPrompt { prompt: prompt.to_owned(), output: Lengths::from(8) })
    }

    #[test]
    fn data_is_the_same_with_any_seed_and_words_with_the_same_one() {
        let random = |tokens: u32| {
            let (input, output) = (Lengths::from(tokens), Lengths::from(8));
            Source::VllmRandom(VllmRandom { input, output, prefix_tokens: 0 })
        };
        assert!(sends_again(&dataset("a.jsonl"), &dataset("a.jsonl"), false));
        assert!(!sends_again(&dataset("a.jsonl"), &dataset("b.jsonl"), true));
        assert!(sends_again(&fixed("why?"), &fixed("why?"), false));
        assert!(!sends_again(&fixed("why?"), &fixed("how?"), true));
        assert!(!sends_again(&fixed("why?"), &dataset("a.jsonl"), true));
        assert!(sends_again(&random(64), &random(128), true));
        assert!(!sends_again(&random(64), &random(64), false));
    }
}
