//! What becomes of answers besides their times: whether they have the form that was asked for, whether they
//! are right, and a copy of some of them in the run's folder. The plan says what is demanded, and the thread
//! that writes the journal judges it, so that nothing of this is on the measuring path.

mod calls;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::Duration;

use inferometer_model::answer::{AnswerText, Demand, Form, Grade, Validity};
use inferometer_model::outcome::Outcome;
use inferometer_model::plan::Bounds;
use inferometer_model::record::FinishReason;
use inferometer_model::spec::{AnswersTable, Expect};
use inferometer_model::{
    Content, JournalEntry, Plan, PlannedRequest, Redactor, RequestId, RequestRecord, Segment, Spec,
};
use inferometer_store::RunDirectory;
use regex::Regex;
use serde_json::{Map, Value, json};

use self::calls::{Call, read_calls};
use crate::failure::{Failure, Result};
use crate::session::Session;

/// A plan whose contents say what is demanded of their answers.
pub(crate) struct DemandingPlan {
    inner: Arc<dyn Plan>,
    fields: Map<String, Value>,
    /// What these fields ask for.
    form: Option<Arc<Form>>,
    expects: bool,
    kept_share: f64,
}

impl DemandingPlan {
    /// The plan as it is, where answers are made of no text.
    pub(crate) fn around(inner: Arc<dyn Plan>, spec: &Spec) -> Arc<dyn Plan> {
        if !spec.api.generates() {
            return inner;
        }
        let fields = spec.workload.body.fields.clone();
        let form = Form::from_fields(&fields).map(Arc::new);
        let (expects, kept_share) = (spec.answers.expect.is_some(), spec.answers.kept_share());
        Arc::new(Self { inner, fields, form, expects, kept_share })
    }

    fn is_kept(&self, id: RequestId) -> bool {
        // The finalizer of SplitMix64: the same answers of the same plan are kept every time.
        let mut bits = id.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ bits >> 31) as f64) < self.kept_share * u64::MAX as f64
    }
}

impl Plan for DemandingPlan {
    fn bounds(&self) -> Bounds {
        self.inner.bounds()
    }

    fn ramp_up(&self) -> Duration {
        self.inner.ramp_up()
    }

    fn slot_start(&self, slot: u32) -> Duration {
        self.inner.slot_start(slot)
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        self.inner.request(id)
    }

    fn joins(&self, request: &PlannedRequest) -> Vec<RequestId> {
        self.inner.joins(request)
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        let mut content = self.inner.content(request);
        let form = if content.fields.is_empty() {
            self.form.clone()
        } else {
            let mut fields = self.fields.clone();
            fields.extend(content.fields.clone());
            Form::from_fields(&fields).map(Arc::new)
        };
        let expected = content.expected.take().filter(|_| self.expects);
        // Each part of a mix numbers its entries from zero.
        let question = request.item ^ (u32::from(request.part) << 24);
        let expected = expected.map(|text| (text, question));
        let is_kept = self.is_kept(request.id);
        if form.is_some() || expected.is_some() || is_kept {
            content.demand = Some(Arc::new(Demand { expected, form, is_kept }));
        }
        content
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        self.inner.segments(request)
    }
}

/// Refuses what cannot be judged: a pattern that is none, and a workload without answers to compare with.
pub(crate) fn check(spec: &Spec, plan: &dyn Plan) -> Result<()> {
    let Some(expect) = spec.answers.expect.as_ref().map(|expect| &expect.0) else { return Ok(()) };
    let of_pattern = |what: String, pattern: &str| {
        Regex::new(pattern)
            .map(|_| ())
            .map_err(|error| Failure::usage(format!("{what} is no regular expression: {error}")))
    };
    if let Expect::Found(pattern) = expect {
        of_pattern("the pattern of --expect".to_owned(), pattern)?;
    }
    let mut found = 0;
    for id in (0..LOOKED_AT).map(RequestId) {
        let Some(request) = plan.request(id) else { break };
        let Some(expected) = plan.content(&request).expected else { continue };
        found += 1;
        if *expect == Expect::Pattern {
            of_pattern(format!("the answer of entry {}", request.item), &expected)?;
        }
    }
    if found == 0 {
        return Err(Failure::usage("--expect has nothing to compare answers with")
            .hint("give a --dataset whose entries have an `answer` (JSON lines or CSV)"));
    }
    Ok(())
}

/// Requests in which an expected answer is looked for.
const LOOKED_AT: u64 = 64;

/// Judges answers and stores some of them. It belongs to the thread that writes the journal.
pub(crate) struct Answers {
    comparison: Option<Comparison>,
    file: Option<AnswerFile>,
    redactor: Redactor,
    session: Session,
}

/// The answers that are stored, within a bound.
struct AnswerFile {
    lines: BufWriter<std::fs::File>,
    bytes_left: u64,
}

/// One answer is stored up to here.
const ANSWER_BYTES_MAX: usize = 1 << 20;

impl Answers {
    pub(crate) fn new(
        table: &AnswersTable,
        directory: &RunDirectory,
        redactor: Redactor,
        session: &Session,
    ) -> Result<Self> {
        let comparison = table.expect.as_ref().map(|expect| Comparison::new(&expect.0));
        let file = (0.0 < table.kept_share()).then(|| directory.create_answers()).transpose()?;
        let bytes_left = table.kept_bytes_max();
        let file = file.map(|file| AnswerFile { lines: BufWriter::new(file), bytes_left });
        Ok(Self { comparison: comparison.transpose()?, file, redactor, session: session.clone() })
    }

    /// Judges the answer of a request that has ended; its text goes no further than here.
    pub(crate) fn take_in(&mut self, entry: &mut JournalEntry) {
        let JournalEntry::Ended(record) = entry else { return };
        let Some(answer) = record.answer.take() else { return };
        let calls = read_calls(&answer.call_documents);
        if record.ending.outcome == Outcome::Ok {
            record.grade = self.grade(record, &answer, &calls);
        }
        if answer.demand.is_kept {
            self.keep(record, &answer, &calls);
        }
    }

    fn grade(
        &mut self,
        record: &RequestRecord,
        answer: &AnswerText,
        calls: &[Call],
    ) -> Option<Grade> {
        let text = String::from_utf8_lossy(&answer.content);
        let is_cut = record
            .finishes
            .iter()
            .any(|finish| finish.choice == 0 && finish.reason == FinishReason::Length);
        let validity =
            answer.demand.form.as_ref().and_then(|form| validity(form, &text, calls, is_cut));
        let expected = answer.demand.expected.as_ref();
        let is_correct = expected.zip(self.comparison.as_mut()).and_then(
            |((expected, question), comparison)| comparison.is_correct(&text, expected, *question),
        );
        let question = is_correct.and(expected).map(|(_, question)| *question);
        let grade = Grade { validity, is_correct, question };
        (grade != Grade::default()).then_some(grade)
    }

    fn keep(&mut self, record: &RequestRecord, answer: &AnswerText, calls: &[Call]) {
        let Some(file) = &mut self.file else { return };
        let text = |bytes: &[u8]| {
            // Redacted before it is cut: half a key is still half a key.
            let mut text = self.redactor.redact(&String::from_utf8_lossy(bytes));
            text.truncate(text.floor_char_boundary(ANSWER_BYTES_MAX));
            text
        };
        let mut line = json!({
            "id": record.id.0,
            "outcome": record.ending.outcome,
            "content": text(&answer.content),
        });
        if !answer.reasoning.is_empty() {
            line["reasoning"] = text(&answer.reasoning).into();
        }
        if !calls.is_empty() {
            let call = |call: &Call| {
                json!({
                    "name": text(call.name.as_bytes()),
                    "arguments": text(call.arguments.as_bytes()),
                })
            };
            line["calls"] = calls.iter().map(call).collect();
        }
        if let Some((expected, _)) = &answer.demand.expected {
            line["expected"] = text(expected.as_bytes()).into();
        }
        let grade = record.grade.unwrap_or_default();
        if let Some(validity) = grade.validity {
            line["validity"] = validity.name().into();
        }
        if let Some(is_correct) = grade.is_correct {
            line["correct"] = is_correct.into();
        }
        let line = format!("{line}\n");
        if file.bytes_left < line.len() as u64 {
            self.file = None;
            self.session.warn("no more answers are stored: they would pass --keep-answers-mib");
            return;
        }
        file.bytes_left -= line.len() as u64;
        if let Err(error) = file.lines.write_all(line.as_bytes()) {
            self.file = None;
            self.session.warn(format!("answers are not all stored: {error}"));
        }
    }
}

/// Whether an answer has the form that was asked for; `None` where a tool need not be called.
fn validity(form: &Form, text: &str, calls: &[Call], is_cut: bool) -> Option<Validity> {
    let found = if !form.tools.is_empty() && !calls.is_empty() {
        let of_call = |call: &Call| {
            let Some(schema) = form.tools.get(&call.name) else { return Validity::UnknownTool };
            // A tool without parameters may be called with nothing.
            let text = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
            let arguments = serde_json::from_str::<Value>(text);
            let is_valid = arguments.is_ok_and(|value| schema::matches(schema, &value));
            if is_valid { Validity::Valid } else { Validity::BadArguments }
        };
        calls.iter().map(of_call).find(|it| *it != Validity::Valid).unwrap_or(Validity::Valid)
    } else if form.is_call_required {
        Validity::NoCall
    } else {
        let schema = form.document.as_ref()?;
        match serde_json::from_str::<Value>(text) {
            Err(_) => Validity::NotJson,
            Ok(value) if schema::matches(schema, &value) => Validity::Valid,
            Ok(_) => Validity::OffSchema,
        }
    };
    let is_short = matches!(found, Validity::NotJson | Validity::NoCall | Validity::BadArguments);
    Some(if is_cut && is_short { Validity::Cut } else { found })
}

/// How answers are compared with what is expected.
enum Comparison {
    Exact,
    Numeric { number: Regex, tolerance: f64 },
    Patterns(HashMap<u32, Option<Regex>>),
    Found(Regex),
}

impl Comparison {
    fn new(expect: &Expect) -> Result<Self> {
        let pattern = |text: &str| Regex::new(text).map_err(Failure::from_usage);
        Ok(match expect {
            Expect::Exact => Self::Exact,
            Expect::Numeric { tolerance } => {
                Self::Numeric { number: pattern(NUMBER)?, tolerance: *tolerance }
            }
            Expect::Pattern => Self::Patterns(HashMap::new()),
            Expect::Found(text) => Self::Found(pattern(text)?),
        })
    }

    /// `None` where what is expected is itself no number or pattern.
    fn is_correct(&mut self, text: &str, expected: &str, question: u32) -> Option<bool> {
        match self {
            Self::Exact => Some(text.trim() == expected.trim()),
            Self::Numeric { number, tolerance } => {
                let wanted = last_number(number, expected)?;
                let found = last_number(number, text);
                Some(found.is_some_and(|found| (found - wanted).abs() <= *tolerance))
            }
            Self::Patterns(known) => {
                if PATTERNS_MAX <= known.len() {
                    known.clear();
                }
                let pattern = known.entry(question).or_insert_with(|| Regex::new(expected).ok());
                pattern.as_ref().map(|pattern| pattern.is_match(text))
            }
            Self::Found(pattern) => {
                let found = pattern.captures_iter(text).last();
                let found = found.and_then(|found| found.get(1).or_else(|| found.get(0)));
                Some(found.is_some_and(|found| found.as_str().trim() == expected.trim()))
            }
        }
    }
}

/// Compiled patterns that are kept.
const PATTERNS_MAX: usize = 1_024;

const NUMBER: &str = r"-?[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?";

/// The last number of a text, as `1,234.5` or `-3e8`.
fn last_number(number: &Regex, text: &str) -> Option<f64> {
    let found = number.find_iter(text).last()?;
    let before = text[..found.start()].chars().next_back();
    let digits = found.as_str().replace(',', "");
    // In `10-3` and `gpt-4` it is no sign.
    let is_sign = !before.is_some_and(char::is_alphanumeric);
    let digits = if is_sign { &*digits } else { digits.trim_start_matches('-') };
    digits.parse().ok()
}
