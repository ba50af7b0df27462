//! Request bodies, made just ahead of their moment on a thread of their own: writing a long prompt
//! takes time that must not be taken from the tokens that are arriving.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use bytes::Bytes;
use inferometer_model::{Plan, PlannedRequest, RequestId};

use crate::dialect::{self, BodyRecipe};
use crate::target::Target;

/// Bodies in the order of the plan. The thread ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Bodies {
    ready: Receiver<(RequestId, Bytes)>,
}

/// What may lie ready: enough for any burst, and a bound on memory for long prompts.
const READY_BYTES_MAX: usize = 32 << 20;
const READY_MIN: usize = 4;
const READY_MAX: usize = 4_096;

impl Bodies {
    pub(crate) fn start(plan: Arc<dyn Plan>, target: Arc<Target>) -> std::io::Result<Self> {
        let first = plan.request(RequestId(0));
        let size = first.map_or(1, |request| body_of(plan.as_ref(), &target, &request).len());
        let (sender, ready) =
            sync_channel((READY_BYTES_MAX / size.max(1)).clamp(READY_MIN, READY_MAX));
        std::thread::Builder::new()
            .name("bodies".to_owned())
            .spawn(move || make_ahead(plan.as_ref(), &target, &sender))?;
        Ok(Self { ready })
    }

    /// The body of a request: the one that lies ready, or one made now. Requests that are asked
    /// for out of order, as follow-ups are, are made when they are asked for.
    pub(crate) fn take(&self, request: &PlannedRequest, plan: &dyn Plan, target: &Target) -> Bytes {
        loop {
            match self.ready.try_recv() {
                Ok((id, body)) if id == request.id => return body,
                // Refused, or made by hand before it lay ready.
                Ok((id, _)) if id < request.id => {}
                Ok(_) | Err(TryRecvError::Empty | TryRecvError::Disconnected) => {
                    return body_of(plan, target, request);
                }
            }
        }
    }
}

fn make_ahead(plan: &dyn Plan, target: &Target, sender: &SyncSender<(RequestId, Bytes)>) {
    for request in (0..).map_while(|id| plan.request(RequestId(id))) {
        if sender.send((request.id, body_of(plan, target, &request))).is_err() {
            return;
        }
    }
}

fn body_of(plan: &dyn Plan, target: &Target, request: &PlannedRequest) -> Bytes {
    body(target, &plan.prompt(request), request.output_tokens)
}

/// The body for a prompt, in the target's dialect.
pub(crate) fn body(target: &Target, prompt: &str, output_tokens: u32) -> Bytes {
    Bytes::from(dialect::body(&BodyRecipe {
        api: target.api,
        model: &target.model,
        prompt,
        output_tokens,
        streaming: target.streaming,
        usage: target.usage,
    }))
}
