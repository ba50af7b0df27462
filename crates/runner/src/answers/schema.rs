//! Whether a document keeps a JSON Schema: the keywords that servers with guided decoding take. Others,
//! such as `format`, are not checked.

use regex::Regex;
use serde_json::{Map, Value};

/// A schema that refers to itself ends here.
const DEPTH_MAX: u32 = 64;

pub(super) fn matches(schema: &Value, value: &Value) -> bool {
    Check { root: schema, depth_left: DEPTH_MAX }.matches(schema, value)
}

#[derive(Clone, Copy)]
struct Check<'a> {
    root: &'a Value,
    depth_left: u32,
}

impl Check<'_> {
    fn matches(self, schema: &Value, value: &Value) -> bool {
        let Value::Object(keys) = schema else { return schema != &Value::Bool(false) };
        let Some(depth_left) = self.depth_left.checked_sub(1) else { return false };
        let check = Self { depth_left, ..self };
        let all = |name: &str, kept: &dyn Fn(&[Value]) -> bool| {
            keys.get(name).and_then(Value::as_array).is_none_or(|list| kept(list))
        };
        let keeps = |schema: &Value| check.matches(schema, value);
        check.keeps_reference(keys, value)
            && keys.get("type").is_none_or(|kind| is_of_type(kind, value))
            && keys.get("const").is_none_or(|wanted| is_equal(wanted, value))
            && all("enum", &|list| list.iter().any(|it| is_equal(it, value)))
            && all("allOf", &|list| list.iter().all(keeps))
            && all("anyOf", &|list| list.iter().any(keeps))
            && all("oneOf", &|list| list.iter().filter(|it| keeps(it)).count() == 1)
            && keys.get("not").is_none_or(|schema| !keeps(schema))
            && match value {
                Value::Object(fields) => check.object(keys, fields),
                Value::Array(items) => check.list(keys, items),
                Value::String(text) => keeps_text(keys, text),
                Value::Number(number) => keeps_number(keys, number.as_f64().unwrap_or(f64::NAN)),
                Value::Null | Value::Bool(_) => true,
            }
    }

    /// References into the same document; one that leads nowhere is kept by nothing.
    fn keeps_reference(self, keys: &Map<String, Value>, value: &Value) -> bool {
        let Some(reference) = keys.get("$ref").and_then(Value::as_str) else { return true };
        let schema = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
        schema.is_some_and(|schema| self.matches(schema, value))
    }

    fn object(self, keys: &Map<String, Value>, fields: &Map<String, Value>) -> bool {
        let properties = keys.get("properties").and_then(Value::as_object);
        let patterns = keys.get("patternProperties").and_then(Value::as_object);
        let required = keys.get("required").and_then(Value::as_array).into_iter().flatten();
        let has_required = required.filter_map(Value::as_str).all(|name| fields.contains_key(name));
        let of_field = |(name, value): (&String, &Value)| {
            let by_name = properties.and_then(|known| known.get(name));
            let is_match = |pattern: &str| Regex::new(pattern).is_ok_and(|it| it.is_match(name));
            let by_pattern = patterns.into_iter().flatten().filter(|(key, _)| is_match(key));
            let mut schemas: Vec<&Value> =
                by_name.into_iter().chain(by_pattern.map(|(_, schema)| schema)).collect();
            if schemas.is_empty() {
                schemas.extend(keys.get("additionalProperties"));
            }
            schemas.into_iter().all(|schema| self.matches(schema, value))
        };
        has_required
            && within(keys, ("minProperties", "maxProperties"), fields.len())
            && fields.iter().all(of_field)
    }

    fn list(self, keys: &Map<String, Value>, items: &[Value]) -> bool {
        let prefix = keys.get("prefixItems").and_then(Value::as_array);
        let first = prefix.map_or(&[][..], Vec::as_slice);
        let rest = items.get(first.len()..).unwrap_or_default();
        let is_unique = keys.get("uniqueItems") != Some(&Value::Bool(true))
            || (1..items.len()).all(|at| !items[..at].iter().any(|it| is_equal(it, &items[at])));
        within(keys, ("minItems", "maxItems"), items.len())
            && is_unique
            && first.iter().zip(items).all(|(schema, item)| self.matches(schema, item))
            && keys.get("items").is_none_or(|all| rest.iter().all(|item| self.matches(all, item)))
    }
}

fn is_of_type(kind: &Value, value: &Value) -> bool {
    let is = |name: &Value| match (name.as_str(), value) {
        (Some("integer"), Value::Number(number)) => {
            number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        (Some("null"), Value::Null)
        | (Some("boolean"), Value::Bool(_))
        | (Some("number"), Value::Number(_))
        | (Some("string"), Value::String(_))
        | (Some("array"), Value::Array(_))
        | (Some("object"), Value::Object(_)) => true,
        _ => false,
    };
    kind.as_array().map_or_else(|| is(kind), |kinds| kinds.iter().any(is))
}

/// As JSON Schema has it, 1 and 1.0 are equal.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

fn within(keys: &Map<String, Value>, (min, max): (&str, &str), count: usize) -> bool {
    let bound = |name: &str| keys.get(name).and_then(Value::as_f64);
    bound(min).is_none_or(|min| min <= count as f64)
        && bound(max).is_none_or(|max| count as f64 <= max)
}

fn keeps_text(keys: &Map<String, Value>, text: &str) -> bool {
    // A pattern that cannot be read here is not held against the answer.
    let pattern =
        keys.get("pattern").and_then(Value::as_str).and_then(|pattern| Regex::new(pattern).ok());
    within(keys, ("minLength", "maxLength"), text.chars().count())
        && pattern.is_none_or(|pattern| pattern.is_match(text))
}

fn keeps_number(keys: &Map<String, Value>, number: f64) -> bool {
    let bound = |name: &str| keys.get(name).and_then(Value::as_f64);
    let is_multiple =
        |step: f64| ((number / step).round() * step - number).abs() <= 1e-9 * step.abs();
    bound("minimum").is_none_or(|min| min <= number)
        && bound("maximum").is_none_or(|max| number <= max)
        && bound("exclusiveMinimum").is_none_or(|min| min < number)
        && bound("exclusiveMaximum").is_none_or(|max| number < max)
        && bound("multipleOf").is_none_or(is_multiple)
}
