//! Whether answers have the form that was asked for, and whether they are right: a speed-up that breaks
//! answers is none.

use std::collections::BTreeMap;

use inferometer_model::RequestRecord;
use inferometer_model::answer::Validity;
use serde::{Deserialize, Serialize};

use crate::statistics::Interval;
use crate::statistics::series::{Cluster, share_interval};

/// How the answers that ended `ok` were judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerFigures {
    /// Answers of which a form was demanded, and those that have it.
    pub judged: u64,
    pub valid: u64,
    pub valid_interval: Option<Interval>,
    /// Why the others have not.
    pub invalid: BTreeMap<Validity, u64>,
    /// Answers that were compared with the data's, those that are right, and how many entries of the data
    /// asked for them.
    pub compared: u64,
    pub correct: u64,
    pub questions: u64,
    pub correct_interval: Option<Interval>,
}

impl AnswerFigures {
    /// The share of valid answers; `None` where none was judged.
    pub fn valid_share(&self) -> Option<f64> {
        (0 < self.judged).then(|| self.valid as f64 / self.judged as f64)
    }

    /// The share of right answers; `None` where none was compared.
    pub fn accuracy(&self) -> Option<f64> {
        (0 < self.compared).then(|| self.correct as f64 / self.compared as f64)
    }
}

/// The figures while the records are read, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct AnswerTally {
    figures: AnswerFigures,
    valid: Vec<bool>,
    correct: Vec<bool>,
    /// How often each entry of the data was asked, and how often the answer was right.
    questions: BTreeMap<u32, Cluster>,
}

impl AnswerTally {
    pub(crate) fn add_ok(&mut self, record: &RequestRecord) {
        let Some(grade) = record.grade else { return };
        if let Some(validity) = grade.validity {
            self.valid.push(validity == Validity::Valid);
            if validity != Validity::Valid {
                *self.figures.invalid.entry(validity).or_default() += 1;
            }
        }
        if let Some(is_correct) = grade.is_correct {
            self.correct.push(is_correct);
            let question = grade.question.unwrap_or(u32::MAX);
            let cluster =
                self.questions.entry(question).or_insert(Cluster { count: 0.0, sum: 0.0 });
            cluster.count += 1.0;
            cluster.sum += f64::from(u8::from(is_correct));
        }
    }

    /// `None` where nothing was demanded.
    pub(crate) fn finish(self) -> Option<AnswerFigures> {
        let count = |all: &[bool]| all.iter().filter(|it| **it).count() as u64;
        let in_time = |all: &[bool]| {
            let single = |it: &bool| Cluster::single(f64::from(u8::from(*it)));
            share_interval(all.iter().map(single))?.interval
        };
        // A question that is asked again is no new question: a model that can answer it can do so twice.
        let by_question = share_interval(self.questions.values()).and_then(|it| it.interval);
        let correct_interval = match (in_time(&self.correct), by_question) {
            (Some(one), Some(other)) => {
                Interval::new(one.low.min(other.low), one.high.max(other.high))
            }
            // One question alone says nothing about others.
            (in_time, None) => in_time,
            (None, by_question) => by_question,
        };
        let figures = AnswerFigures {
            judged: self.valid.len() as u64,
            valid: count(&self.valid),
            valid_interval: in_time(&self.valid),
            compared: self.correct.len() as u64,
            correct: count(&self.correct),
            questions: self.questions.len() as u64,
            correct_interval,
            ..self.figures
        };
        (0 < figures.judged + figures.compared).then_some(figures)
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::answer::Grade;

    use super::*;
    use crate::fixture::{Given, run};
    use crate::metric::{ACCURACY, VALID_ANSWERS};
    use crate::summary::summarize;

    fn graded(grades: impl IntoIterator<Item = Grade>) -> Vec<RequestRecord> {
        let grades = (0..).zip(grades);
        grades.map(|(id, it)| RequestRecord { grade: Some(it), ..Given::ok(id).record() }).collect()
    }

    fn answered(question: u32, is_correct: bool) -> Grade {
        Grade { validity: None, is_correct: Some(is_correct), question: Some(question) }
    }

    #[test]
    fn shares_have_intervals_and_what_was_not_demanded_is_absent() {
        let form = |validity| Grade { validity: Some(validity), ..Grade::default() };
        let grades = [Validity::Valid, Validity::Valid, Validity::NotJson, Validity::Valid];
        let summary = summarize(&run(graded(grades.map(form))));
        let found = summary.metrics.scalar(&VALID_ANSWERS).unwrap();
        assert_eq!(found.value, Some(0.75));
        let interval = found.interval.unwrap();
        assert!(interval.low < 0.5 && 0.9 < interval.high, "{interval:?}");
        assert_eq!(summary.metrics.scalar(&ACCURACY).unwrap().value, None);
        let answers = summary.answers.unwrap();
        assert_eq!(answers.invalid, BTreeMap::from([(Validity::NotJson, 1)]));
        assert_eq!(summarize(&run(vec![Given::ok(0).record()])).answers, None);
    }

    #[test]
    fn a_question_that_is_asked_again_narrows_nothing() {
        let accuracy = |grades: Vec<Grade>| {
            let summary = summarize(&run(graded(grades)));
            summary.metrics.scalar(&ACCURACY).unwrap().clone()
        };
        // Of twenty questions, each asked ten times in turn, nine in ten are answered right.
        let again = accuracy((0..200).map(|id| answered(id % 20, id % 20 % 10 != 3)).collect());
        let other = accuracy((0..200).map(|id| answered(id, id % 10 != 3)).collect());
        assert_eq!((again.value, other.value), (Some(0.9), Some(0.9)));
        let width = |it: &crate::metric::Scalar| it.interval.map(|it| it.high - it.low).unwrap();
        assert!(2.0 * width(&other) < width(&again), "{again:?} {other:?}");
    }

    #[test]
    fn an_answer_that_failed_was_not_judged() {
        let mut records = graded([answered(0, true), answered(1, false)]);
        records[1].ending.outcome = inferometer_model::Outcome::Truncated;
        let answers = summarize(&run(records)).answers.unwrap();
        assert_eq!((answers.compared, answers.correct), (1, 1));
    }
}
