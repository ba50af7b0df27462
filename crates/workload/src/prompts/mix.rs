//! Requests of several kinds, each by its weight.

use std::sync::Arc;

use inferometer_model::{Content, PlannedRequest};

use super::{Place, Prompts, Recipe};
use crate::stream::Stream;

#[derive(Debug)]
pub(crate) struct Mix {
    pub(crate) seed: u64,
    /// At least one, with weights above zero.
    pub(crate) parts: Vec<(f64, Arc<dyn Prompts>)>,
}

impl Mix {
    fn choose(&self, id: u64) -> usize {
        let whole: f64 = self.parts.iter().map(|(weight, _)| weight).sum();
        let mut left = whole * Stream::new(self.seed, "mix", id).unit();
        let chosen = self.parts.iter().position(|(weight, _)| {
            left -= weight;
            left <= 0.0
        });
        // Sums of floats may leave a crumb.
        chosen.unwrap_or(self.parts.len() - 1)
    }
}

impl Prompts for Mix {
    fn recipe(&self, place: Place) -> Recipe {
        let part = self.choose(place.id);
        let recipe = self.parts[part].1.recipe(place);
        Recipe { part: u16::try_from(part).unwrap_or(u16::MAX), ..recipe }
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        self.parts[usize::from(request.part)].1.content(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lengths::Draw;
    use crate::prompts::{Fixed, planned};
    use inferometer_model::Prompt;

    fn part(prompt: &str) -> Arc<dyn Prompts> {
        let (prompt, output) = (prompt.to_owned(), Draw::Fixed(1));
        Arc::new(Fixed { seed: 1, prompt, input_tokens: 1, output })
    }

    #[test]
    fn parts_come_by_their_weights_and_say_their_own() {
        let mix = Mix { seed: 5, parts: vec![(3.0, part("a")), (1.0, part("b"))] };
        let mut counts = [0_u32; 2];
        for id in 0..10_000 {
            let request = planned(&mix, id);
            let expected = ["a", "b"][usize::from(request.part)];
            assert_eq!(mix.content(&request).prompt, Prompt::Text(expected.to_owned()));
            counts[usize::from(request.part)] += 1;
        }
        // Four standard deviations of a binomial count: sqrt(10,000 * 3/4 * 1/4) is 43.
        assert!(counts[0].abs_diff(7_500) < 174, "{counts:?}");
    }
}
