//! Servers side by side: `--target NAME=WHERE`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use inferometer_model::BaseUrl;
use inferometer_model::endpoint::BaseUrlError;

use crate::arguments::ExperimentArguments;
use crate::draft::{Drafted, draft_sweep};
use crate::experiment::is_file;
use crate::failure::Failure;

/// Names stand in tables.
const NAME_CHARACTERS_MAX: usize = 40;

/// One of the servers, and where it is.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    name: String,
    place: Whereabouts,
}

#[derive(Clone, Debug, PartialEq)]
enum Whereabouts {
    Url(BaseUrl),
    /// The engine of the experiment, or another profile.
    Embedded(Option<String>),
    File(PathBuf),
}

/// The drafts of all servers, with their names, where several are named.
pub(super) fn drafts(
    arguments: &ExperimentArguments,
    typed: &[String],
) -> Result<Vec<(String, Drafted)>, Failure> {
    if let Some(url) = arguments.place.as_ref().filter(|place| place.contains("://")) {
        return Err(Failure::usage(format!("{url} and --target both say what is measured"))
            .hint(format!("give it a name beside the others: --target NAME={url}")));
    }
    let named = typed.iter().map(|text| read(text)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = named.iter().find(|one| !seen.insert(&one.name)) {
        return Err(Failure::usage(format!("--target {}: the name is given twice", twice.name)));
    }
    named
        .into_iter()
        .map(|one| draft(arguments, &one.place).map(|drafted| (one.name, drafted)))
        .collect()
}

fn draft(arguments: &ExperimentArguments, place: &Whereabouts) -> Result<Drafted, Failure> {
    if let Whereabouts::File(path) = place {
        return draft_sweep(arguments, Some(path));
    }
    let mut drafted = draft_sweep(arguments, None)?;
    match place {
        Whereabouts::Url(base) => {
            drafted.spec.url = Some(base.clone());
            drafted.spec.deployment = None;
        }
        Whereabouts::Embedded(profile) => {
            (drafted.spec.url, drafted.spec.deployment) = (None, None);
            if profile.is_some() {
                drafted.spec.engine.profile.clone_from(profile);
            }
        }
        Whereabouts::File(_) => {}
    }
    Ok(drafted)
}

fn read(text: &str) -> Result<Named, Failure> {
    let wanted = |why: &str| {
        Failure::usage(format!("--target {text}: {why}")).hint(
            "write NAME=URL, NAME=embedded:PROFILE, or NAME=FILE.toml with a [target], [engine] \
             or [deploy] table",
        )
    };
    let (name, place) = text.split_once('=').ok_or_else(|| wanted("there is no `=`"))?;
    let (name, place) = (name.trim(), place.trim());
    if name.is_empty() || NAME_CHARACTERS_MAX < name.chars().count() {
        return Err(wanted("a name has from 1 to 40 characters"));
    }
    let place = match place.strip_prefix("embedded") {
        Some("") => Whereabouts::Embedded(None),
        Some(rest) if rest.starts_with(':') => Whereabouts::Embedded(Some(rest[1..].to_owned())),
        _ if is_file(place) => Whereabouts::File(PathBuf::from(place)),
        _ => {
            let url = place.parse().map_err(|error: BaseUrlError| wanted(&error.to_string()))?;
            Whereabouts::Url(url)
        }
    };
    Ok(Named { name: name.to_owned(), place })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_url_a_profile_or_a_file() {
        let place = |text: &str| read(text).unwrap().place;
        assert_eq!(place("a=http://h:1"), Whereabouts::Url("http://h:1".parse().unwrap()));
        assert_eq!(place("a=embedded"), Whereabouts::Embedded(None));
        assert_eq!(place("a=embedded:h100"), Whereabouts::Embedded(Some("h100".to_owned())));
        assert_eq!(place("a = v2.toml"), Whereabouts::File("v2.toml".into()));
        for wrong in ["a", "=http://h:1", "a=", "a=not a url"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
