//! One request of a source over and over: how `vllm bench serve` warms a server up.

use std::sync::Arc;

use inferometer_model::{Content, PlannedRequest, RequestId, Segment};
use serde_json::{Map, Value};

use super::{Place, Prompts, Recipe};

/// The first request of a source, whatever the place.
#[derive(Debug)]
pub(crate) struct Repeated(pub(crate) Arc<dyn Prompts>);

const FIRST: RequestId = RequestId(0);

impl Prompts for Repeated {
    fn recipe(&self, place: Place) -> Recipe {
        self.0.recipe(Place { id: FIRST.0, ..place })
    }

    fn content(&self, request: &PlannedRequest) -> Content {
        self.0.content(&PlannedRequest { id: FIRST, ..*request })
    }

    fn segments(&self, request: &PlannedRequest) -> Vec<Segment> {
        self.0.segments(&PlannedRequest { id: FIRST, ..*request })
    }

    fn fields(&self, request: &PlannedRequest) -> Map<String, Value> {
        self.0.fields(&PlannedRequest { id: FIRST, ..*request })
    }
}
