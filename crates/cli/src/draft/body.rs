//! What a request carries beside its prompt, as a draft.

use std::path::Path;

use inferometer_model::spec::BodyDraft;
use serde_json::{Map, Value, json};

use super::plain;
use crate::arguments::BodyTable;
use crate::failure::Failure;

pub(super) fn draft(said: BodyTable) -> Result<BodyDraft, Failure> {
    Ok(BodyDraft {
        fields: fields(&said)?,
        pin_output: plain(said.pin_output),
        images: said.images,
        image_size: plain(said.image_size).map(|size| (size.0, size.1)),
        adapters: said.lora.unwrap_or_default(),
        adapter_choice: plain(said.lora_choice),
    })
}

fn fields(said: &BodyTable) -> Result<Map<String, Value>, Failure> {
    let mut fields = said.extra.clone().unwrap_or_default();
    let tools = said.tools.as_deref().map(tools_in).transpose()?;
    let named = [
        ("temperature", said.temperature.map(Value::from)),
        ("top_p", said.top_p.map(Value::from)),
        ("top_k", said.top_k.map(Value::from)),
        ("min_p", said.min_p.map(Value::from)),
        ("frequency_penalty", said.frequency_penalty.map(Value::from)),
        ("presence_penalty", said.presence_penalty.map(Value::from)),
        ("repetition_penalty", said.repetition_penalty.map(Value::from)),
        ("stop", said.stop.as_ref().map(|stop| json!(stop))),
        ("tools", tools),
    ];
    for (field, value) in named {
        let Some(value) = value else { continue };
        if fields.insert(field.to_owned(), value).is_some() {
            return Err(Failure::usage(format!(
                "the body field `{field}` is set by its own name and in the extra fields; set it \
                 once"
            )));
        }
    }
    Ok(fields)
}

fn tools_in(path: &Path) -> Result<Value, Failure> {
    let unusable = |why: String| Failure::usage(format!("tools {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    let tools: Value =
        serde_json::from_str(&text).map_err(|error| unusable(format!("not JSON ({error})")))?;
    if tools.as_array().is_some_and(|tools| !tools.is_empty() && tools.iter().all(Value::is_object))
    {
        Ok(tools)
    } else {
        Err(unusable("must be a list of tool definitions, each a JSON object".to_owned()))
    }
}
