//! The throughput of a node full of replicas, to compare one server on eight GPUs with two on four.
//!
//! It assumes that replicas do not slow each other down. Pages must state this.

use serde::{Deserialize, Serialize};

use super::{Change, ComparedLevel, LevelComparison};
use crate::metric;
use crate::set::Figure;
use crate::statistics::Interval;

/// GPUs of the node, and how many of them one server of each side is spread over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layouts {
    gpus: u32,
    /// By the order of the sides.
    tensor_parallel: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutFigures {
    #[serde(flatten)]
    pub at: ComparedLevel,
    pub side: String,
    /// Servers on the node.
    pub replicas: u32,
    /// GPUs of each.
    pub tensor_parallel: u32,
    /// Output tokens per second and GPU.
    pub per_gpu: Figure,
    /// Output tokens per second of the whole node.
    pub node: Figure,
    /// Against the node of the base; null of the base itself, and where nothing was compared.
    pub change: Option<Change>,
    /// The same without an interval, where none is known; it is never judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bare_ratio: Option<f64>,
}

impl Layouts {
    /// `degrees` are the names of sides and their tensor-parallel sizes on the command line, which take
    /// precedence over those of the results in `sides`. An error is a message for the user.
    pub fn new(
        gpus: u32,
        degrees: &[(String, u32)],
        sides: &[(&str, Option<u32>)],
    ) -> Result<Self, String> {
        let is_side = |name: &str| sides.iter().any(|side| side.0 == name);
        if let Some((name, _)) = degrees.iter().find(|(name, _)| !is_side(name)) {
            let sides: Vec<&str> = sides.iter().map(|side| side.0).collect();
            return Err(format!("--tp names `{name}`, and the sides are {}", sides.join(", ")));
        }
        let degree = |(side, stated): &(&str, Option<u32>)| {
            let typed = degrees.iter().find(|(name, _)| name == side);
            match typed.map(|(_, degree)| *degree).or(*stated) {
                None => Err(format!(
                    "side `{side}` has no tensor-parallel size; add it, such as --tp {side}=4"
                )),
                Some(degree) if degree == 0 || gpus == 0 || !gpus.is_multiple_of(degree) => {
                    Err(format!(
                        "{gpus} GPUs cannot be divided into servers of {degree} (side `{side}`); \
                         choose a size that divides them"
                    ))
                }
                Some(degree) => Ok(degree),
            }
        };
        Ok(Self { gpus, tensor_parallel: sides.iter().map(degree).collect::<Result<_, _>>()? })
    }

    /// The figures of every side at one level, the base first. Sides without a throughput are left out.
    pub(super) fn figures(&self, base: &str, level: &LevelComparison) -> Vec<LayoutFigures> {
        let mut figures = Vec::new();
        for (index, compared) in level.against.iter().enumerate() {
            let Some(found) = level.quantity(index, metric::OUTPUT_THROUGHPUT.name) else {
                continue;
            };
            let (base_degree, degree) = (self.tensor_parallel[0], self.tensor_parallel[index + 1]);
            if figures.is_empty()
                && let Some(value) = found.base.mean
            {
                let figure = Figure { value, interval: found.base.interval };
                figures.push(self.figure(level, base, base_degree, figure));
            }
            let Some(value) = found.other.mean else { continue };
            // Both are multiplied by a number that is known exactly, and so is their ratio.
            let factor = f64::from(base_degree) / f64::from(degree);
            let figure = Figure { value, interval: found.other.interval };
            figures.push(LayoutFigures {
                change: found.change.map(|change| Change {
                    value: change.value * factor,
                    interval: scaled(change.interval, factor),
                    ..change
                }),
                bare_ratio: found.bare_ratio.map(|ratio| ratio * factor),
                ..self.figure(level, &compared.side, degree, figure)
            });
        }
        figures
    }

    fn figure(&self, level: &LevelComparison, side: &str, gpus: u32, one: Figure) -> LayoutFigures {
        let replicas = self.gpus / gpus;
        let times = |factor: f64| Figure {
            value: one.value * factor,
            interval: one.interval.map(|interval| scaled(interval, factor)),
        };
        LayoutFigures {
            at: level.at.clone(),
            side: side.to_owned(),
            replicas,
            tensor_parallel: gpus,
            per_gpu: times(1.0 / f64::from(gpus)),
            node: times(f64::from(replicas)),
            change: None,
            bare_ratio: None,
        }
    }
}

fn scaled(interval: Interval, factor: f64) -> Interval {
    Interval { low: interval.low * factor, high: interval.high * factor }
}

#[cfg(test)]
mod tests {
    use inferometer_model::study::Level;

    use super::*;

    fn degrees(degrees: &[(&str, u32)]) -> Vec<(String, u32)> {
        degrees.iter().map(|(name, degree)| ((*name).to_owned(), *degree)).collect()
    }

    const fn unknown(name: &str) -> (&str, Option<u32>) {
        (name, None)
    }

    #[test]
    fn what_the_results_say_need_not_be_typed_and_may_be() {
        let sides = [("A", Some(4)), unknown("B")];
        let found = Layouts::new(8, &degrees(&[("B", 2)]), &sides).unwrap();
        assert_eq!(found.tensor_parallel, [4, 2]);
        let found = Layouts::new(8, &degrees(&[("A", 8), ("B", 2)]), &sides).unwrap();
        assert_eq!(found.tensor_parallel, [8, 2], "what is typed goes first");
        let problem = Layouts::new(8, &[], &sides).unwrap_err();
        assert!(problem.starts_with("side `B` has no tensor-parallel size"), "{problem}");
        let problem = Layouts::new(8, &[], &[("A", Some(3))]).unwrap_err();
        assert!(problem.starts_with("8 GPUs cannot be divided"), "{problem}");
    }

    #[test]
    fn a_node_of_eight_is_one_of_eight_two_of_four_or_four_of_two() {
        let typed = degrees(&[("A", 8), ("B", 4), ("C", 2)]);
        let layouts = Layouts::new(8, &typed, &["A", "B", "C"].map(unknown)).unwrap();
        let figure = |degree, value| {
            let one = Figure { value, interval: Interval::new(value - 100.0, value + 100.0) };
            let at = ComparedLevel { scenario: None, level: Level::AsAsked };
            let level = LevelComparison { at, against: Vec::new() };
            layouts.figure(&level, "A", degree, one)
        };
        for (degree, replicas, per_gpu, node) in
            [(8, 1, 250.0, 2_000.0), (4, 2, 500.0, 4_000.0), (2, 4, 1_000.0, 8_000.0)]
        {
            let found = figure(degree, 2_000.0);
            assert_eq!(found.replicas, replicas);
            assert_eq!(found.per_gpu.value.to_bits(), f64::to_bits(per_gpu));
            assert_eq!(found.node.value.to_bits(), f64::to_bits(node));
            let reach = found.node.interval.unwrap();
            assert!((reach.high - reach.low - 200.0 * f64::from(replicas)).abs() < 1e-9);
        }
    }

    #[test]
    fn what_cannot_be_laid_out_is_named() {
        let problem = |gpus, typed: &[(&str, u32)]| {
            Layouts::new(gpus, &degrees(typed), &["A", "B"].map(unknown)).unwrap_err()
        };
        assert!(problem(8, &[("A", 8)]).contains("side `B`"));
        assert!(problem(8, &[("A", 8), ("B", 4), ("X", 1)]).contains("`X`"));
        assert!(problem(8, &[("A", 8), ("B", 3)]).contains("servers of 3"));
        assert!(problem(8, &[("A", 8), ("B", 0)]).contains("servers of 0"));
    }
}
