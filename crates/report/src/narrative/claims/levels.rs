//! Which scenario `c=4` is a level of.

use super::known::{Known, Place};
use super::reading::Term;
use super::vocabulary::Meaning;

/// Gives each level of the sentence its place, or says that it has none, or not one.
pub(super) fn look_up(terms: &mut [Term], scope: Place, known: &Known<'_>) {
    let mut named: Vec<usize> = Vec::new();
    for term in terms.iter() {
        if let Term::Family(family) = term
            && !named.contains(family)
        {
            named.push(*family);
        }
    }
    for at in 0..terms.len() {
        let Term::NoSuchLevel(value) = terms[at] else { continue };
        let before = beside(terms[..at].iter().rev());
        let behind = beside(terms[at + 1..].iter());
        let levels = Levels { value, known };
        terms[at] = match (before.or(behind), named.as_slice()) {
            (Some(_), _) if before.is_some() && behind.is_some() && before != behind => {
                levels.unclear()
            }
            (Some(Beside::Scenario(place)), _) => levels.among(&[place]),
            (Some(Beside::Family(family)), _) | (None, &[family]) => {
                levels.among(&known.levels_beside(family))
            }
            (None, []) => levels.at_hand(scope),
            (None, _) => levels.unclear(),
        };
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Scenario(usize),
    Family(usize),
}

/// The scenario or the family that nothing but grammar parts from the level.
fn beside<'t>(terms: impl Iterator<Item = &'t Term>) -> Option<Beside> {
    let mut terms =
        terms.skip_while(|term| matches!(term, Term::Word(Meaning::Filler | Meaning::Open)));
    match terms.next() {
        Some(Term::Place(Place::Scenario(place))) => Some(Beside::Scenario(*place)),
        Some(Term::Family(family)) => Some(Beside::Family(*family)),
        _ => None,
    }
}

struct Levels<'l, 'a> {
    value: f64,
    known: &'l Known<'a>,
}

impl Levels<'_, '_> {
    /// The scenario at hand or a level of it. On a page: that level of the one scenario that has
    /// several, else the only scenario that has it.
    fn at_hand(&self, scope: Place) -> Term {
        let own = match scope {
            Place::Scenario(place) if self.is_at(place) => return Term::Level(scope),
            Place::Scenario(place) => {
                let levels = self.known.levels_beside(place);
                return if 1 < levels.len() { self.among(&levels) } else { self.elsewhere() };
            }
            Place::Page => self.known.only_family().unwrap_or_default(),
        };
        let mut everywhere = (0..self.known.scenarios.len()).filter(|place| self.is_at(*place));
        let only = everywhere.next().filter(|_| everywhere.next().is_none());
        match own.into_iter().find(|place| self.is_at(*place)).or(only) {
            Some(place) => Term::Level(Place::Scenario(place)),
            // The page of a single run has no scenarios.
            None if self.known.page_concurrency() == Some(self.value) => Term::Level(Place::Page),
            None => self.elsewhere(),
        }
    }

    fn is_at(&self, place: usize) -> bool {
        self.known.scenarios[place].concurrency.map(f64::from) == Some(self.value)
    }

    fn among(&self, places: &[usize]) -> Term {
        let found = places.iter().find(|place| self.is_at(**place));
        found.map_or(Term::NoSuchLevel(self.value), |place| Term::Level(Place::Scenario(*place)))
    }

    fn elsewhere(&self) -> Term {
        if (0..self.known.scenarios.len()).any(|place| self.is_at(place)) {
            self.unclear()
        } else {
            Term::NoSuchLevel(self.value)
        }
    }

    fn unclear(&self) -> Term {
        Term::Unknown(format!("c={} of which scenario", self.value))
    }
}
