//! Request bodies, made just ahead of their moment on a thread of their own: writing a long prompt
//! takes time that must not be taken from the tokens that are arriving.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use inferometer_model::answer::Demand;
use inferometer_model::endpoint::Api;
use inferometer_model::plan::Bounds;
use inferometer_model::{Content, Message, Plan, PlannedRequest, Prompt, RequestId};

use crate::dialect::{self, BodyRecipe};
use crate::exchange::Flight;
use crate::target::Target;

/// What leaves with a request, and what is remembered of it until its answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outgoing {
    pub(crate) body: Bytes,
    /// The model that the body asks for, where it is not the target's.
    pub(crate) model: Option<Arc<str>>,
    /// The new messages of the body, as they are sent, where the conversation continues.
    pub(crate) sent_messages: Vec<Message>,
    pub(crate) demand: Option<Arc<Demand>>,
}

/// Bodies in the order of the plan, for all drivers. The thread ends when this is dropped.
pub(crate) struct Bodies {
    plan: Arc<dyn Plan>,
    target: Arc<Target>,
    shelf: Mutex<Shelf>,
    turns: Turns,
}

/// Bodies travel in batches: one at a time would wake two threads for each request.
struct Batch {
    first: RequestId,
    requests: Vec<Ready>,
}

/// A request whose recipe was drawn, and mostly its body made.
struct Ready {
    request: PlannedRequest,
    /// `None` for what must wait until its session has come so far, and for what was taken.
    body: Option<Outgoing>,
}

/// A batch ends with the first of these.
const BATCH_COUNT: usize = 64;
const BATCH_BYTES: usize = 64 << 10;
/// What may lie ready: enough for any burst, and a bound on memory for long prompts.
const READY_BYTES_MAX: usize = 32 << 20;
const READY_BATCHES_MAX: usize = 64;
/// What lies ready at the beginning, as far as the first slots need it, and how long each of it is
/// waited for.
const FIRST_MAX: usize = 16;
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Drivers ask nearly in order. What lies further behind was refused, or made by hand.
const BEHIND_MAX: u64 = 64;

impl Bodies {
    pub(crate) fn start(plan: Arc<dyn Plan>, target: Arc<Target>) -> std::io::Result<Self> {
        let first = plan.request(RequestId(0));
        let size = first.map_or(1, |request| first_turn(plan.as_ref(), &target, &request).size());
        let batches = (READY_BYTES_MAX / size.max(BATCH_BYTES)).clamp(2, READY_BATCHES_MAX);
        let (sender, ready) = sync_channel(batches);
        let (making_plan, making_target) = (Arc::clone(&plan), Arc::clone(&target));
        std::thread::Builder::new()
            .name("bodies".to_owned())
            .spawn(move || make_ahead(making_plan.as_ref(), &making_target, &sender))?;
        let turns = Turns::start(Arc::clone(&plan), target.api)?;
        let mut shelf = Shelf { ready, first: 0, requests: VecDeque::new() };
        let slots = plan.bounds().slots.map_or(FIRST_MAX, |slots| slots.get() as usize);
        shelf.wait_for(slots.min(FIRST_MAX));
        Ok(Self { plan, target, shelf: Mutex::new(shelf), turns })
    }

    /// What leaves with a request: made of what lies ready, or of what is made now. `history` is
    /// the messages that its prompt begins with.
    pub(crate) fn take(&self, request: &PlannedRequest, history: &[&Message]) -> Outgoing {
        if request.continues {
            self.turns.foresee(RequestId(request.id.0 + 1));
        }
        if request.session.context.is_some() {
            let ready = self.turns.take(request.id);
            let turn = ready
                .unwrap_or_else(|| Box::new(turn_of(self.plan.as_ref(), self.target.api, request)));
            return outgoing(&self.target, *turn, history, request);
        }
        let ready = self.shelf().take(request.id);
        ready.unwrap_or_else(|| first_turn(self.plan.as_ref(), &self.target, request))
    }

    /// This request will not be sent.
    pub(crate) fn forget(&self, id: RequestId) {
        self.turns.forget(id);
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The plan whose bodies these are. What was drawn for a body is not drawn again.
impl Plan for Bodies {
    fn bounds(&self) -> Bounds {
        self.plan.bounds()
    }

    fn ramp_up(&self) -> Duration {
        self.plan.ramp_up()
    }

    fn slot_start(&self, slot: u32) -> Duration {
        self.plan.slot_start(slot)
    }

    fn request(&self, id: RequestId) -> Option<PlannedRequest> {
        let ready = self.shelf().request(id);
        ready.or_else(|| self.plan.request(id))
    }

    fn joins(&self, request: &PlannedRequest) -> Vec<RequestId> {
        self.plan.joins(request)
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        self.plan.content(request)
    }
}

impl Outgoing {
    /// About as many bytes as it takes: what is remembered is in the body as well.
    fn size(&self) -> usize {
        if self.sent_messages.is_empty() { self.body.len() } else { 2 * self.body.len() }
    }
}

/// The requests that lie ready, by id.
struct Shelf {
    ready: Receiver<Batch>,
    first: u64,
    requests: VecDeque<Ready>,
}

impl Shelf {
    /// The place of a request, after what was made meanwhile is taken in.
    fn place(&mut self, id: RequestId) -> Option<usize> {
        while self.first + self.requests.len() as u64 <= id.0 {
            self.put(self.ready.try_recv().ok()?);
        }
        usize::try_from(id.0.checked_sub(self.first)?).ok()
    }

    fn request(&mut self, id: RequestId) -> Option<PlannedRequest> {
        let place = self.place(id)?;
        self.requests.get(place).map(|ready| ready.request)
    }

    fn take(&mut self, id: RequestId) -> Option<Outgoing> {
        let place = self.place(id)?;
        let body = self.requests.get_mut(place)?.body.take();
        while let Some(front) = self.requests.front()
            && (front.body.is_none() && self.first <= id.0 || self.first + BEHIND_MAX < id.0)
        {
            self.requests.pop_front();
            self.first += 1;
        }
        body
    }

    /// What leaves first lies ready before the run begins: a driver that had to make it would begin
    /// late.
    fn wait_for(&mut self, count: usize) {
        while self.requests.len() < count {
            match self.ready.recv_timeout(FIRST_WAIT) {
                Ok(batch) => self.put(batch),
                // The plan has no more, or is too slow to wait for.
                Err(_) => return,
            }
        }
    }

    fn put(&mut self, batch: Batch) {
        debug_assert_eq!(self.first + self.requests.len() as u64, batch.first.0, "in plan order");
        self.requests.extend(batch.requests);
    }
}

fn make_ahead(plan: &dyn Plan, target: &Target, sender: &SyncSender<Batch>) {
    let mut first = RequestId(0);
    loop {
        let mut requests = Vec::with_capacity(BATCH_COUNT);
        let mut bytes = 0;
        while requests.len() < BATCH_COUNT && bytes < BATCH_BYTES {
            let id = RequestId(first.0 + requests.len() as u64);
            let Some(request) = plan.request(id) else { break };
            let has_context = request.session.context.is_some();
            let body = (!has_context).then(|| first_turn(plan, target, &request));
            bytes += body.as_ref().map_or(0, Outgoing::size);
            requests.push(Ready { request, body });
        }
        let count = requests.len() as u64;
        if count == 0 || sender.send(Batch { first, requests }).is_err() {
            return;
        }
        first.0 += count;
    }
}

fn first_turn(plan: &dyn Plan, target: &Target, request: &PlannedRequest) -> Outgoing {
    let content =
        if request.continues { turn_of(plan, target.api, request) } else { plan.content(request) };
    outgoing(target, content, &[], request)
}

/// The content of a turn of a conversation, its messages in the form in which they are sent now and
/// with every later turn.
pub(crate) fn turn_of(plan: &dyn Plan, api: Api, request: &PlannedRequest) -> Content {
    let content = plan.content(request);
    let prompt = Prompt::Messages(dialect::messages(api, &content));
    Content { prompt, images: Vec::new(), ..content }
}

fn outgoing(
    target: &Target,
    content: Content,
    history: &[&Message],
    request: &PlannedRequest,
) -> Outgoing {
    let body = body(target, &content, history, request.output_tokens);
    let model = content.model.filter(|model| *model != target.model).map(Arc::from);
    let sent_messages = match content.prompt {
        Prompt::Messages(messages) if request.continues => messages,
        Prompt::Messages(_) | Prompt::Text(_) => Vec::new(),
    };
    Outgoing { body, model, sent_messages, demand: content.demand }
}

/// The body for a content, in the target's dialect.
pub(crate) fn body(
    target: &Target,
    content: &Content,
    history: &[&Message],
    output_tokens: u32,
) -> Bytes {
    Bytes::from(dialect::body(&BodyRecipe {
        api: target.api,
        model: content.model.as_deref().unwrap_or(&target.model),
        content,
        history,
        output_tokens,
        streaming: target.streams(),
        usage: target.usage,
        fields: &target.fields,
        pinned: target.pinned,
    }))
}

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
        std::thread::Builder::new().name("turns".to_owned()).spawn(move || {
            for id in to_make {
                if !making.lock().contains_key(&id) {
                    continue;
                }
                // In a graph, another request may go on from the one that left.
                let previous = |turn: u16| turn.checked_sub(1);
                let request = plan.request(id).filter(|request| {
                    request.session.context.is_some()
                        && request.session.context == previous(request.turn)
                });
                let Some(request) = request else {
                    making.lock().remove(&id);
                    continue;
                };
                let turn = Box::new(turn_of(plan.as_ref(), api, &request));
                if let Some(made) = making.lock().get_mut(&id) {
                    *made = Some(turn);
                }
            }
        })?;
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

/// What is remembered of a request that has ended: its `sent_messages`, exactly as they were sent, and
/// the answer; `None` for one that failed.
pub(crate) fn remembered(
    flight: &Flight,
    sent_messages: Option<Vec<Message>>,
) -> Option<Vec<Message>> {
    let mut messages = sent_messages.filter(|_| flight.request().continues)?;
    messages.push(Message::new("assistant", flight.reply.take()));
    Some(messages)
}

#[cfg(test)]
mod bodies_tests {
    use inferometer_model::Release;

    use super::*;

    fn shelf(batches: &[(u64, &[&'static str])]) -> Shelf {
        let (sender, ready) = sync_channel(8);
        for (first, bodies) in batches {
            let made = |body: &&'static str| {
                let body = Bytes::from_static(body.as_bytes());
                Some(Outgoing { body, ..Outgoing::default() })
            };
            let ready = (*first..).zip(*bodies).map(|(id, body)| Ready {
                request: PlannedRequest::alone(RequestId(id), Release::WhenSlotFree),
                body: made(body),
            });
            let batch = Batch { first: RequestId(*first), requests: ready.collect() };
            sender.send(batch).unwrap();
        }
        Shelf { ready, first: 0, requests: VecDeque::new() }
    }

    #[test]
    fn drivers_may_ask_out_of_order_and_leave_some_out() {
        let mut shelf = shelf(&[(0, &["a", "b", "c"]), (3, &["d", "e"])]);
        let mut take = |id| shelf.take(RequestId(id)).map(|outgoing| outgoing.body);
        assert_eq!(take(1).as_deref(), Some("b".as_bytes()));
        assert_eq!(take(0).as_deref(), Some("a".as_bytes()));
        assert_eq!(take(4).as_deref(), Some("e".as_bytes()));
        assert_eq!(take(0), None, "taken before");
        assert_eq!(take(5), None, "not made yet: the caller makes it");
        assert_eq!(take(3).as_deref(), Some("d".as_bytes()));
        assert_eq!(shelf.first, 2, "what was left out stays until it must make room");
        assert_eq!(shelf.request(RequestId(4)).map(|it| it.id), Some(RequestId(4)));
        assert_eq!(shelf.request(RequestId(1)), None, "gone: the caller asks the plan");
    }
}

#[cfg(test)]
mod turns_tests {
    use inferometer_model::plan::Bounds;
    use inferometer_model::record::SessionPlace;
    use inferometer_model::{Message, PlannedRequest, Prompt, Release};

    use super::*;

    /// Tells on which thread each content was made.
    struct Telling(Mutex<Sender<(RequestId, Option<String>)>>);

    impl Plan for Telling {
        fn bounds(&self) -> Bounds {
            Bounds { requests: None, release_before: None, requests_min: 0, slots: None }
        }

        fn request(&self, id: RequestId) -> Option<PlannedRequest> {
            let turn = u16::try_from(id.0).ok()?;
            let session = SessionPlace { context: Some(turn - 1), ..SessionPlace::default() };
            let alone = PlannedRequest::alone(id, Release::WhenSlotFree);
            Some(PlannedRequest { turn, session, ..alone })
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
