//! Whether the server takes what the workload's bodies carry beside their words: pictures, and the
//! names of adapters. A run in which every request is refused is worth nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use inferometer_load::target::Target;
use inferometer_load::{SystemClock, probe};
use inferometer_model::{Content, Outcome, Plan, RequestId};

use super::explain::probe_failure;
use super::{PROBE_PROMPT, PROBE_TOKENS, probe_tokens};
use crate::failure::Failure;
use crate::secrets::Secrets;

/// Requests that are looked at, and adapters that are asked for at most.
const REQUESTS_MAX: u64 = 64;
const ADAPTERS_MAX: usize = 8;

/// Asks once for each adapter of the plan's beginning, with the pictures of its request.
pub fn check(target: &Target, secrets: &Secrets, plan: &dyn Plan) -> Result<(), Failure> {
    let mut asked: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
    for request in (0..REQUESTS_MAX).map_while(|id| plan.request(RequestId(id))) {
        let content = plan.content(&request);
        if asked.len() < ADAPTERS_MAX || asked.contains_key(&content.model) {
            asked.entry(content.model).or_insert(content.images);
        }
    }
    for (model, images) in asked {
        if model.is_none() && images.is_empty() {
            continue;
        }
        let target =
            Target { model: model.clone().unwrap_or(target.model.clone()), ..target.clone() };
        let content = Content { images, model, ..Content::text(PROBE_PROMPT) };
        let tokens = probe_tokens(target.api, PROBE_TOKENS);
        let asking = Arc::new(target.clone());
        let record = probe(&asking, SystemClock::new(), &content, tokens)
            .map_err(|error| Failure::internal(error.to_string()))?
            .record;
        if record.ending.outcome != Outcome::Ok {
            return Err(probe_failure(&target, secrets, &record));
        }
    }
    Ok(())
}
