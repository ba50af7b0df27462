//! What is demanded of an answer besides coming, what it said, and how it was judged. Texts are judged by
//! the thread that writes the journal, never by those that measure.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::VariantArray;

use crate::variant_name;

/// Why the text of an answer is kept until it was judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// What it must be or hold, by the data that asked for it, and the entry of the data.
    pub expected: Option<(String, u32)>,
    pub form: Option<Arc<Form>>,
    /// It is stored with the run.
    pub is_kept: bool,
}

/// The form that a request asks its answer to have: a JSON document, a call of a tool, or either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The schema of the document; `true` where any will do.
    pub document: Option<Value>,
    /// The tools by name, with the schemas of their arguments.
    pub tools: BTreeMap<String, Value>,
    /// An answer without a call of a tool is wrong.
    pub is_call_required: bool,
}

impl Form {
    /// The form that the fields of a body ask for, whatever the API.
    pub fn from_fields(fields: &Map<String, Value>) -> Option<Self> {
        let at = |path: &str| {
            let (first, rest) = path.split_once('/').unwrap_or((path, ""));
            let value = fields.get(first)?;
            if rest.is_empty() { Some(value) } else { value.pointer(&format!("/{rest}")) }
        };
        let schemas = [
            "response_format/json_schema/schema",
            "text/format/schema",
            "output_config/format/schema",
            "guided_json",
            "structured_outputs/json",
            "format",
        ];
        let schema = schemas.iter().find_map(|path| at(path)).map(|schema| {
            // vLLM takes a schema as text, too.
            let text = schema.as_str().and_then(|text| serde_json::from_str(text).ok());
            text.unwrap_or_else(|| schema.clone())
        });
        let kinds = ["response_format/type", "text/format/type", "format"];
        let is_json = |kind: &Value| matches!(kind.as_str(), Some("json_object" | "json"));
        let is_any = kinds.iter().filter_map(|path| at(path)).any(is_json);
        let document = schema.filter(Value::is_object).or(is_any.then_some(Value::Bool(true)));
        let choice = at("tool_choice");
        let kind = choice.and_then(|choice| choice.as_str().or_else(|| choice["type"].as_str()));
        let offered = at("tools").filter(|_| kind != Some("none")).and_then(Value::as_array);
        let tools: BTreeMap<_, _> = offered.into_iter().flatten().filter_map(tool).collect();
        let is_call_required =
            !tools.is_empty() && matches!(kind, Some("required" | "any" | "tool" | "function"));
        (document.is_some() || !tools.is_empty()).then_some(Self {
            document,
            tools,
            is_call_required,
        })
    }
}

/// The name of a tool and the schema of its arguments, as OpenAI's and Anthropic's APIs have them.
fn tool(definition: &Value) -> Option<(String, Value)> {
    let function = definition.get("function").unwrap_or(definition);
    let schema = function.get("parameters").or_else(|| function.get("input_schema"));
    Some((function["name"].as_str()?.to_owned(), schema.cloned().unwrap_or(Value::Bool(true))))
}

/// The answer of the first choice, on its way to where it is judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerText {
    pub demand: Arc<Demand>,
    pub content: Vec<u8>,
    pub reasoning: Vec<u8>,
    /// The documents with calls of tools, one to a line, as the server sent them.
    pub call_documents: Vec<u8>,
}

impl AnswerText {
    pub fn bytes(&self) -> usize {
        self.content.len() + self.reasoning.len() + self.call_documents.len()
    }
}

/// How an answer was judged. A part is absent where nothing was demanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grade {
    pub validity: Option<Validity>,
    pub is_correct: Option<bool>,
    /// The entry of the data set that asked, where it has an answer.
    pub question: Option<u32>,
}

texts! {
    /// Whether an answer has the form that was asked for. The stored numbers are positions, so a new one
    /// goes to the end.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, VariantArray)]
    #[serde(rename_all = "snake_case")]
    pub enum Validity, text {
        Valid: "valid";
        /// It ended at its length before the document or the call did.
        Cut: "cut at its length";
        NotJson: "not JSON";
        OffSchema: "JSON that breaks the schema";
        NoCall: "no call of a tool";
        UnknownTool: "a call of a tool that was not offered";
        BadArguments: "arguments that break the tool's schema";
    }
}

impl Validity {
    pub fn name(self) -> &'static str {
        variant_name(&self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(fields: &Value) -> Option<Form> {
        Form::from_fields(fields.as_object().unwrap())
    }

    fn document(schema: Value) -> Form {
        Form { document: Some(schema), tools: BTreeMap::new(), is_call_required: false }
    }

    #[test]
    fn a_schema_is_found_where_each_api_has_it() {
        let schema = json!({"type": "object"});
        for fields in [
            json!({"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}),
            json!({"text": {"format": {"type": "json_schema", "schema": schema}}}),
            json!({"guided_json": schema}),
            json!({"guided_json": schema.to_string()}),
            json!({"structured_outputs": {"json": schema}}),
            json!({"format": schema}),
        ] {
            assert_eq!(form(&fields), Some(document(schema.clone())), "{fields}");
        }
        for fields in
            [json!({"format": "json"}), json!({"response_format": {"type": "json_object"}})]
        {
            assert_eq!(form(&fields), Some(document(Value::Bool(true))));
        }
        assert_eq!(form(&json!({"response_format": {"type": "text"}, "top_k": 3})), None);
    }

    #[test]
    fn tools_are_demanded_as_the_choice_says() {
        let schema = json!({"type": "object"});
        let openai = json!([{"type": "function", "function": {"name": "f", "parameters": schema}}]);
        let anthropic = json!([{"name": "f", "input_schema": schema}]);
        let tools = || BTreeMap::from([("f".into(), schema.clone())]);
        let wanted =
            |is_call_required| Some(Form { document: None, tools: tools(), is_call_required });
        assert_eq!(form(&json!({"tools": openai})), wanted(false));
        assert_eq!(form(&json!({"tools": openai, "tool_choice": "required"})), wanted(true));
        let any = json!({"type": "any"});
        assert_eq!(form(&json!({"tools": anthropic, "tool_choice": any})), wanted(true));
        assert_eq!(form(&json!({"tools": openai, "tool_choice": "none"})), None);
        assert_eq!(form(&json!({"tools": []})), None);
        let both = json!({"tools": openai, "response_format": {"type": "json_object"}});
        let document = Some(Value::Bool(true));
        assert_eq!(form(&both), Some(Form { document, tools: tools(), is_call_required: false }));
    }
}
