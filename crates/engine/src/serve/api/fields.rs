//! The fields of a body, each read as one type; what is wrong with one names its place.
//!
//! `null` is as good as absent, and fields that nobody reads are accepted, as vLLM does.

use serde_json::{Map, Value};

use super::problem::Problem;

/// An object of the body.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// From the body to here, with a point behind it.
    path: String,
}

/// Reads a whole body.
pub(super) fn read(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Problem::WrongType {
            place: String::new(),
            kind: "model_attributes_type",
            expected: "a valid dictionary or object to extract fields from",
        }),
        Err(error) => Err(Problem::not_json(body, &error)),
    }
}

impl<'a> Fields<'a> {
    pub(super) fn of_body(map: &'a Map<String, Value>) -> Self {
        Self { map, path: String::new() }
    }

    /// The object at `place`.
    pub(super) fn at(value: &'a Value, place: &str) -> Result<Self, Problem> {
        let Value::Object(map) = value else {
            return Err(wrong(place, "dict_type", "a valid dictionary"));
        };
        Ok(Self { map, path: format!("{place}.") })
    }

    pub(super) fn place(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// Whether the field is there and says that it is to have no value.
    pub(super) fn says_null(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(Value::is_null)
    }

    pub(super) fn required(&self, name: &str) -> Result<&'a Value, Problem> {
        let missing = || Problem::Missing { place: self.place(name), fields: self.map.len() };
        self.value(name).ok_or_else(missing)
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        self.read(name, "bool_type", "a valid boolean", Value::as_bool)
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Problem> {
        self.read(name, "string_type", "a valid string", Value::as_str)
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, Problem> {
        self.read(name, "int_type", "a valid integer", integer)
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<f64>, Problem> {
        self.read(name, "float_type", "a valid number", Value::as_f64)
    }

    pub(super) fn list(&self, name: &str) -> Result<Option<&'a Vec<Value>>, Problem> {
        self.read(name, "list_type", "a valid list", Value::as_array)
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<Self>, Problem> {
        self.value(name).map(|value| Self::at(value, &self.place(name))).transpose()
    }

    /// A string, or a list of some.
    pub(super) fn texts(&self, name: &str) -> Result<Vec<String>, Problem> {
        let place = self.place(name);
        match self.value(name) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            Some(Value::Array(items)) => items.iter().map(|item| text_at(item, &place)).collect(),
            Some(_) => Err(wrong(&place, "string_type", "a valid string")),
        }
    }

    /// A list of token ids, of any number.
    pub(super) fn ids(&self, name: &str) -> Result<Vec<i64>, Problem> {
        let place = self.place(name);
        let items = self.list(name)?.map_or([].as_slice(), Vec::as_slice);
        items.iter().map(|item| integer_at(item, &place)).collect()
    }

    fn read<T>(
        &self,
        name: &str,
        kind: &'static str,
        expected: &'static str,
        as_type: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        as_type(value).map(Some).ok_or_else(|| wrong(&self.place(name), kind, expected))
    }
}

/// The string at `place`.
pub(super) fn text_at(value: &Value, place: &str) -> Result<String, Problem> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| wrong(place, "string_type", "a valid string"))
}

/// The integer at `place`.
pub(super) fn integer_at(value: &Value, place: &str) -> Result<i64, Problem> {
    integer(value).ok_or_else(|| wrong(place, "int_type", "a valid integer"))
}

/// A value of another type than those that are taken.
pub(super) fn wrong(place: &str, kind: &'static str, expected: &'static str) -> Problem {
    Problem::WrongType { place: place.to_owned(), kind, expected }
}

/// An integer, also one that is written as `8.0`. One beyond the range is as large as can be: it
/// is out of any bound all the same.
fn integer(value: &Value) -> Option<i64> {
    let number = value.as_number()?;
    if let Some(exact) = number.as_i64() {
        return Some(exact);
    }
    if number.is_u64() {
        return Some(i64::MAX);
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    let whole = float as i64;
    Some(whole)
}
