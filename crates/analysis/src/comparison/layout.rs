//! What a node full of replicas would give: the arithmetic that people do by hand to set one server
//! on eight GPUs against two on four.
//!
//! It takes for granted that replicas do not get into each other's way. Pages must say so.

use serde::{Deserialize, Serialize};

use super::{Change, ComparedLevel, LevelComparison};
use crate::set::Figure;
use crate::statistics::Interval;

pub const LAYOUT_QUANTITY: &str = "output_throughput";

/// GPUs of the node, and how many of them one server of each side is spread over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layouts {
    gpus: u32,
    /// By the order of the sides.
    tensor_parallel: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutProblem {
    #[error("side `{side}` has no tensor-parallel size; add it, such as --tp {side}=4")]
    NoDegree { side: String },
    #[error("--tp names `{name}`, and the sides are {sides}")]
    UnknownSide { name: String, sides: String },
    #[error(
        "{gpus} GPUs cannot be shared out to servers of {degree} (side `{side}`); take a size that \
         divides them"
    )]
    NotWhole { side: String, gpus: u32, degree: u32 },
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

/// A side, and how many GPUs one of its servers has where its results say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutSide<'a> {
    pub name: &'a str,
    pub tensor_parallel: Option<u32>,
}

impl Layouts {
    /// `degrees` are as typed: the name of a side, and its tensor-parallel size. What is typed goes
    /// before what the results say.
    pub fn new(
        gpus: u32,
        degrees: &[(String, u32)],
        sides: &[LayoutSide<'_>],
    ) -> Result<Self, LayoutProblem> {
        let is_side = |name: &str| sides.iter().any(|side| side.name == name);
        if let Some((name, _)) = degrees.iter().find(|(name, _)| !is_side(name)) {
            let sides: Vec<&str> = sides.iter().map(|side| side.name).collect();
            return Err(LayoutProblem::UnknownSide { name: name.clone(), sides: sides.join(", ") });
        }
        let degree = |side: &LayoutSide<'_>| {
            let typed = degrees.iter().find(|(name, _)| name == side.name);
            let known = typed.map(|(_, degree)| *degree).or(side.tensor_parallel);
            let side = side.name.to_owned();
            match known {
                None => Err(LayoutProblem::NoDegree { side }),
                Some(degree) if degree == 0 || gpus == 0 || !gpus.is_multiple_of(degree) => {
                    Err(LayoutProblem::NotWhole { side, gpus, degree })
                }
                Some(degree) => Ok(degree),
            }
        };
        Ok(Self { gpus, tensor_parallel: sides.iter().map(degree).collect::<Result<_, _>>()? })
    }

    /// Of every side at one level, the base first. Sides without a throughput are left out.
    pub(super) fn figures(&self, base: &str, level: &LevelComparison) -> Vec<LayoutFigures> {
        let Some(base_degree) = self.tensor_parallel.first() else { return Vec::new() };
        let against = level.against.iter().enumerate().zip(&self.tensor_parallel[1..]);
        let mut figures = Vec::new();
        for ((place, compared), degree) in against {
            let Some(found) = level.quantity(place, LAYOUT_QUANTITY) else { continue };
            if figures.is_empty()
                && let Some(value) = found.base.mean
            {
                let figure = Figure { value, interval: found.base.interval };
                figures.push(self.figure(level, base, *base_degree, figure));
            }
            let Some(value) = found.other.mean else { continue };
            // Both are multiplied by a number that is known exactly, and so is their ratio.
            let factor = f64::from(*base_degree) / f64::from(*degree);
            let figure = Figure { value, interval: found.other.interval };
            figures.push(LayoutFigures {
                change: found.change.map(|change| Change {
                    value: change.value * factor,
                    interval: scaled(change.interval, factor),
                    ..change
                }),
                bare_ratio: found.bare_ratio.map(|ratio| ratio * factor),
                ..self.figure(level, &compared.side, *degree, figure)
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

    const fn unknown(name: &str) -> LayoutSide<'_> {
        LayoutSide { name, tensor_parallel: None }
    }

    #[test]
    fn what_the_results_say_need_not_be_typed_and_may_be() {
        let sides = [LayoutSide { name: "A", tensor_parallel: Some(4) }, unknown("B")];
        let found = Layouts::new(8, &degrees(&[("B", 2)]), &sides).unwrap();
        assert_eq!(found.tensor_parallel, [4, 2]);
        let found = Layouts::new(8, &degrees(&[("A", 8), ("B", 2)]), &sides).unwrap();
        assert_eq!(found.tensor_parallel, [8, 2], "what is typed goes first");
        let problem = Layouts::new(8, &[], &sides).unwrap_err();
        assert_eq!(problem, LayoutProblem::NoDegree { side: "B".to_owned() });
        let three = [LayoutSide { name: "A", tensor_parallel: Some(3) }];
        assert!(matches!(Layouts::new(8, &[], &three), Err(LayoutProblem::NotWhole { .. })));
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
            Layouts::new(gpus, &degrees(typed), &["A", "B"].map(unknown)).unwrap_err().to_string()
        };
        assert!(problem(8, &[("A", 8)]).contains("side `B`"));
        assert!(problem(8, &[("A", 8), ("B", 4), ("X", 1)]).contains("`X`"));
        assert!(problem(8, &[("A", 8), ("B", 3)]).contains("servers of 3"));
        assert!(problem(8, &[("A", 8), ("B", 0)]).contains("servers of 0"));
    }
}
