//! The list of models, which has one.

use std::rc::Rc;

use serde::Serialize;

use crate::http;
use crate::options::EngineOptions;

/// The list of the one model.
pub(crate) fn models_reply(options: &EngineOptions, created_s: u64) -> Rc<Vec<u8>> {
    #[derive(Serialize)]
    struct List<'a> {
        object: &'a str,
        data: [Model<'a>; 1],
    }
    #[derive(Serialize)]
    struct Model<'a> {
        id: &'a str,
        object: &'a str,
        created: u64,
        owned_by: &'a str,
        root: &'a str,
        parent: Option<&'a str>,
        max_model_len: u32,
    }
    let id = options.model_id();
    let model = Model {
        id,
        object: "model",
        created: created_s,
        owned_by: "inferometer",
        root: id,
        parent: None,
        max_model_len: options.limits.tokens,
    };
    http::json(&List { object: "list", data: [model] })
}
