//! The questions, one after the other. What goes wrong is a part of the narration.

use std::time::Duration;

use inferometer_load::SystemClock;
use inferometer_model::fetch::PostRequest;
use inferometer_model::{Clock, Post};
use inferometer_report::narrative::Facts;
use inferometer_report::narrative::narrator::{Answer, Narration, prompt, questions};
use serde_json::{Value, json};

use super::{GIVE_A_KEY, Narrator, warn};
use crate::preflight::fetching;
use crate::signals::Interruption;

/// A thinking model may need thousands of tokens before its first sentence.
const TOKENS_MAX: u32 = 8192;
const ANSWER_BYTES_MAX: usize = 1 << 20;
const ANSWER_PATIENCE: Duration = Duration::from_mins(3);
/// For all questions together; what is not said by then is left to the rules.
const WHOLE_PATIENCE: Duration = Duration::from_mins(15);
/// Between two looks for a signal.
const LOOK: Duration = Duration::from_millis(50);

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Silence {
    /// For the page, which others read: no paths and no messages of systems.
    pub(super) short: String,
    /// For whoever asked.
    detail: String,
}

impl Silence {
    fn new(short: impl Into<String>, detail: impl std::fmt::Display) -> Self {
        let short = short.into();
        let detail = format!("{short}: {detail}");
        Self { short, detail }
    }

    fn plain(short: impl Into<String>) -> Self {
        let short = short.into();
        Self { detail: short.clone(), short }
    }
}

/// Lets the model write about the facts, until it is done, out of time, or a signal comes.
pub(super) fn narrate(
    narrator: &Narrator,
    facts: &Facts,
    interruption: &Interruption,
) -> Narration {
    let clock = SystemClock::new();
    let started = clock.now();
    let left = || {
        let spent = clock.now().since(started).unwrap_or(WHOLE_PATIENCE);
        WHOLE_PATIENCE.saturating_sub(spent)
    };
    let mut answers = Vec::new();
    let mut failure = None;
    for question in questions(facts) {
        let patience = ANSWER_PATIENCE.min(left());
        let said = if patience.is_zero() {
            let minutes = WHOLE_PATIENCE.as_secs() / 60;
            Err(Silence::plain(format!("it had not written everything after {minutes} minutes")))
        } else {
            ask(narrator, &prompt(facts, &question), patience, interruption)
        };
        match said {
            Ok(said) => answers.push(Answer { question, said }),
            Err(Silence { short, detail }) => {
                warn(&format!("the narrator, {}: {detail}", narrator.name()));
                failure = Some(short);
                break;
            }
        }
    }
    Narration::of(&narrator.target.model, answers, failure, facts)
}

/// One question and its whole answer.
pub(super) fn ask(
    narrator: &Narrator,
    question: &str,
    patience: Duration,
    interruption: &Interruption,
) -> Result<String, Silence> {
    let body = json!({
        "model": narrator.target.model,
        "messages": [{ "role": "user", "content": question }],
        "max_tokens": TOKENS_MAX,
        "temperature": 0,
        "stream": false,
    })
    .to_string();
    let request = PostRequest {
        path: "/v1/chat/completions",
        json: &body,
        body_limit: ANSWER_BYTES_MAX,
        patience,
    };
    let reply = fetching(&narrator.target, async |fetch| {
        tokio::select! {
            reply = fetch.post(request) => Some(reply),
            () = signal(interruption) => None,
        }
    });
    let reply = reply
        .map_err(|failure| Silence::new("no request could be made", failure.message()))?
        .ok_or_else(|| Silence::plain("it was stopped by a signal"))?
        .map_err(|error| Silence::new("it did not answer", error))?;
    match reply.status {
        200 => said(&reply.body),
        401 | 403 if !narrator.has_key => {
            Err(Silence::new("it refuses to answer without a key", GIVE_A_KEY))
        }
        status => Err(Silence::plain(format!("it answered with status {status}"))),
    }
}

fn said(body: &[u8]) -> Result<String, Silence> {
    let answer: Value = serde_json::from_slice(body)
        .map_err(|error| Silence::new("its answer is not JSON", error))?;
    let said = answer["choices"][0]["message"]["content"].as_str();
    said.map(str::to_owned)
        .ok_or_else(|| Silence::plain("its answer has no `choices[0].message.content`"))
}

/// Returns when a signal has come.
#[expect(clippy::disallowed_methods, reason = "a look at a flag now and then is no pacing")]
async fn signal(interruption: &Interruption) {
    while interruption.exit().is_none() {
        tokio::time::sleep(LOOK).await;
    }
}
