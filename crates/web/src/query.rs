//! The query of an address, and addresses with a query.

use url::form_urlencoded::{Serializer, parse};

/// Keys and values, in their order; a key may appear several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        Self(parse(text.as_bytes()).into_owned().collect())
    }

    /// The first value of a key; empty where there is none.
    pub(crate) fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(found, _)| found == key);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == key).map(|(_, value)| value.as_str())
    }

    /// The column to sort by. A form names the one before too.
    pub(crate) fn sort(&self) -> &str {
        self.all("sort").last().unwrap_or_default()
    }

    /// A number from 1 on; 1 where it is not one.
    pub(crate) fn page(&self) -> usize {
        self.get("page").parse().ok().filter(|page| 1 <= *page).unwrap_or(1)
    }

    /// `path?key=value`, without keys whose value is empty.
    pub(crate) fn address(&self, path: &str) -> String {
        let pairs = self.0.iter().filter(|(_, value)| !value.is_empty());
        address(path, pairs.map(|(key, value)| (key.as_str(), value.as_str())))
    }
}

pub(crate) fn address<'a>(
    path: &str,
    pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let query = Serializer::new(String::new()).extend_pairs(pairs).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_and_written_again() {
        let query = Query::parse("q=a%26b&pick=1&pick=2%2F3&page=0");
        assert_eq!((query.get("q"), query.get("none"), query.page()), ("a&b", "", 1));
        assert_eq!(query.all("pick").collect::<Vec<_>>(), ["1", "2/3"]);
        assert_eq!(Query::parse("q=&pick=2/3").address("/"), "/?pick=2%2F3");
    }
}
