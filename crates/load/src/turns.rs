//! What later turns of conversations say, made on a thread of its own while the turn before is
//! answered: then only the history is missing when they leave. No more lies here than conversations
//! are under way.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use inferometer_model::endpoint::Api;
use inferometer_model::{Content, Plan, RequestId};

use crate::bodies::turn_of;

/// The thread ends when this is dropped.
pub(crate) struct Turns {
    wanted: Sender<RequestId>,
    foreseen: Arc<Foreseen>,
}

/// Turns that will be asked for; `None` until they are made. What is not in it any more when it is
/// made was taken by someone who could not wait, or will never be sent.
#[derive(Default)]
struct Foreseen(Mutex<HashMap<RequestId, Option<Box<Content>>>>);

impl Turns {
    pub(crate) fn start(plan: Arc<dyn Plan>, api: Api) -> io::Result<Self> {
        let (wanted, to_make) = channel();
        let foreseen: Arc<Foreseen> = Arc::default();
        let making = Arc::clone(&foreseen);
        std::thread::Builder::new()
            .name("turns".to_owned())
            .spawn(move || make(plan.as_ref(), api, &to_make, &making))?;
        Ok(Self { wanted, foreseen })
    }

    /// The turn before this one leaves now.
    pub(crate) fn foresee(&self, id: RequestId) {
        self.foreseen.lock().insert(id, None);
        // The thread outlives this; without it the turn would be made when it leaves.
        let _ = self.wanted.send(id);
    }

    /// The turn, if it is made; it leaves now in any case.
    pub(crate) fn take(&self, id: RequestId) -> Option<Box<Content>> {
        self.foreseen.lock().remove(&id).flatten()
    }

    /// The turn will not be sent.
    pub(crate) fn forget(&self, id: RequestId) {
        self.foreseen.lock().remove(&id);
    }
}

impl Foreseen {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Option<Box<Content>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make(plan: &dyn Plan, api: Api, to_make: &Receiver<RequestId>, foreseen: &Foreseen) {
    for id in to_make {
        if !foreseen.lock().contains_key(&id) {
            continue;
        }
        let Some(request) = plan.request(id) else { continue };
        let turn = Box::new(turn_of(plan, api, &request));
        if let Some(place) = foreseen.lock().get_mut(&id) {
            *place = Some(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use inferometer_model::plan::Bounds;
    use inferometer_model::{Message, PlannedRequest, Prompt, Release};

    use super::*;

    /// Tells on which thread each content was made.
    struct Telling(Mutex<Sender<(RequestId, Option<String>)>>);

    impl Plan for Telling {
        fn bounds(&self) -> Bounds {
            Bounds { requests: None, release_before: None, requests_min: 0, slots: None }
        }

        fn request(&self, id: RequestId) -> Option<PlannedRequest> {
            Some(PlannedRequest::alone(id, Release::WhenSlotFree))
        }

        fn content(&self, request: &PlannedRequest) -> Content {
            let thread = std::thread::current().name().map(str::to_owned);
            self.0.lock().unwrap().send((request.id, thread)).unwrap();
            Content::text(format!("prompt {}", request.id))
        }
    }

    #[test]
    fn turns_are_made_once_and_elsewhere_and_what_is_forgotten_is_not_kept() {
        let (tell, told) = channel();
        let turns = Turns::start(Arc::new(Telling(Mutex::new(tell))), Api::Chat).unwrap();
        for id in [1, 4, 7] {
            turns.foresee(RequestId(id));
        }
        turns.forget(RequestId(1));
        while turns.foreseen.lock().values().any(Option::is_none) {
            std::thread::yield_now();
        }
        let turn = turns.take(RequestId(4)).unwrap();
        assert_eq!(turn.prompt, Prompt::Messages(vec![Message::new("user", "prompt 4")]));
        turns.forget(RequestId(7));
        assert!(turns.foreseen.lock().is_empty());
        // What was forgotten may have been made before; the others are made once, and not here.
        let made: Vec<_> = told.try_iter().filter(|(id, _)| id.0 != 1).collect();
        let elsewhere = |id| (RequestId(id), Some("turns".to_owned()));
        assert_eq!(made, [elsewhere(4), elsewhere(7)]);
    }
}
