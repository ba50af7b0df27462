//! What is looked for: `max rate where ttft.p99<500ms, tpot.p99<50ms`.

use inferometer_analysis::{LatencyOrigin, Quantity, check_slos};
use inferometer_model::campaign::Dimension;
use inferometer_model::spec::Slo;
use schemars::{Schema, json_schema};

use crate::arguments::Grammar;
use crate::failure::Failure;

/// The highest level at which every goal is met.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Find {
    pub(crate) dimension: Dimension,
    pub(crate) goals: Vec<Slo>,
}

impl Find {
    /// Whether every goal is a number of the whole run, and one that can be judged.
    pub(super) fn check(&self, promises: &[Slo], streaming: bool) -> Result<(), Failure> {
        let refused = |problem: String| Failure::usage(format!("--find: {problem}"));
        for goal in &self.goals {
            let name = match &goal.statistic {
                Some(statistic) => format!("{}.{statistic}", goal.metric),
                None => goal.metric.clone(),
            };
            Quantity::named(&name, LatencyOrigin::Sent)
                .map_err(|problem| refused(problem.to_string()))?;
        }
        // Goodput is counted by the promises about each request, which stand beside the goals.
        let all = [promises, &self.goals].concat();
        check_slos(&all, streaming).map_err(|problem| refused(problem.to_string()))
    }
}

impl Grammar for Find {
    const NAME: &'static str = "Find";

    fn read(text: &str) -> Result<Self, String> {
        let wanted = || {
            format!(
                "`{text}` is no question; write it as `max rate where ttft.p99<500ms` or `max \
                 concurrency where ttft.p99<1s, tpot.p99<50ms`"
            )
        };
        let (what, goals) = text.split_once(" where ").ok_or_else(wanted)?;
        let dimension = match what.split_whitespace().collect::<Vec<_>>()[..] {
            ["max", "rate"] => Dimension::Rate,
            ["max", "concurrency"] => Dimension::Concurrency,
            _ => return Err(wanted()),
        };
        let goals = goals
            .split(',')
            .map(|goal| goal.trim().parse::<Slo>().map_err(|error| error.to_string()))
            .collect::<Result<_, _>>()?;
        Ok(Self { dimension, goals })
    }

    fn write(&self) -> String {
        let what = match self.dimension {
            Dimension::Rate => "rate",
            Dimension::Concurrency => "concurrency",
        };
        let goals: Vec<String> = self.goals.iter().map(Slo::to_string).collect();
        format!("max {what} where {}", goals.join(", "))
    }

    fn schema() -> Schema {
        json_schema!({
            "type": "string",
            "examples": [
                "max rate where ttft.p99<500ms, tpot.p99<50ms",
                "max concurrency where e2e.p95<2000ms",
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_a_dimension_and_goals() {
        let find = Find::read("max  rate where ttft.p99<500ms,tpot.p99 < 50ms").unwrap();
        assert_eq!(find.dimension, Dimension::Rate);
        assert_eq!(find.write(), "max rate where ttft.p99<500ms, tpot.p99<50ms");
        assert!(find.check(&[], true).is_ok());
        let wrong = [
            "",
            "max rate",
            "max rate where",
            "max rate where ",
            "min rate where ttft.p99<1s",
            "max load where ttft.p99<1s",
            "max rate where soon",
            "max rate where ttft.p99<1s,",
        ];
        for text in wrong {
            assert!(Find::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn goals_are_numbers_of_the_run() {
        let problem = |text: &str| {
            let find = Find::read(&format!("max rate where {text}")).unwrap();
            format!("{:?}", find.check(&[], true).unwrap_err())
        };
        assert!(problem("ttf.p99<1s").contains("ttft"), "the nearest is named");
        assert!(problem("ttft<1s").contains("ttft.p99"), "of each request");
        assert!(problem("ttft.p42<1s").contains("p99"));
        assert!(problem("goodput>5").contains("goodput"), "nothing to count it by");
    }
}
