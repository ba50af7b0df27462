//! Which files a dataset is: a file, the data files of a folder, or those of a dataset on the hub.

use std::fs;
use std::path::{Path, PathBuf};

use inferometer_model::spec::{DatasetKind, DatasetPart, DatasetSpec};

use super::DatasetError;
use super::known::{self, Known};
use crate::data_file::{DataFileError, name_of};
use crate::hub::{Hub, Repository, Snapshot, is_hub_name};

/// Files in the order in which they are read, what results call them, and how they are read.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) files: Vec<PathBuf>,
    pub(super) name: String,
    pub(super) part: DatasetPart,
    pub(super) known: Option<&'static Known>,
}

/// `None` is a folder of texts.
pub(super) fn locate(
    spec: &DatasetSpec,
    hub: &Hub,
    bytes_max: u64,
) -> Result<Option<Located>, DatasetError> {
    let (path, part) = (spec.path.as_path(), spec.part.clone());
    if path.is_dir() {
        let has_texts = || below(path, &["txt"]).map(|texts| !texts.is_empty());
        let is_plain = part == DatasetPart::default();
        if spec.kind == Some(DatasetKind::Directory)
            || spec.kind.is_none() && is_plain && (has_texts()? || below(path, &DATA)?.is_empty())
        {
            return Ok(None);
        }
        let files = select(&below(path, &DATA)?, &part, spec.kind)
            .map_err(|reason| DatasetError::Files(format!("{}: {reason}", path.display())))?;
        let files = files.iter().map(|file| path.join(file)).collect();
        return Ok(Some(Located { files, name: name_of(path), part, known: None }));
    }
    let Some(on_hub) = HubDataset::from_path(path) else {
        let files = vec![path.to_path_buf()];
        return Ok(Some(Located { files, name: name_of(path), part, known: None }));
    };
    on_hub.locate(spec, hub, bytes_max).map(Some)
}

/// Chooses the files of a repository that are read, or says why none can be.
type Choose<'c> = dyn Fn(&[String]) -> Result<Vec<String>, String> + 'c;

/// A dataset on the hub, or one file of it.
#[derive(Debug, PartialEq, Eq)]
struct HubDataset {
    name: String,
    file: Option<String>,
}

impl HubDataset {
    /// `hf:ORG/NAME`, `hf:ORG/NAME/FILE`, or, where it is no path and looks like no file, `ORG/NAME`.
    fn from_path(path: &Path) -> Option<Self> {
        let text = path.to_str()?;
        let (text, is_marked) = match text.strip_prefix("hf:") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let mut parts = text.splitn(3, '/');
        let name = format!("{}/{}", parts.next()?, parts.next()?);
        let file = parts.next().map(str::to_owned);
        let is_like_a_file = path.extension().is_some_and(|found| {
            DATA.iter().chain(&["md", "parquet"]).any(|known| found.eq_ignore_ascii_case(known))
        });
        let is_plain = file.is_none() && !is_like_a_file && !path.exists();
        (is_hub_name(&name) && (is_marked || is_plain)).then_some(Self { name, file })
    }

    fn locate(
        self,
        spec: &DatasetSpec,
        hub: &Hub,
        bytes_max: u64,
    ) -> Result<Located, DatasetError> {
        let mut part = spec.part.clone();
        let known = known::look_up(&self.name, &mut part);
        let of = Repository::Dataset(self.name.clone());
        let choose = |files: &[String]| match &self.file {
            Some(file) if files.contains(file) => Ok(vec![file.clone()]),
            Some(file) => Err(format!("it has no file `{file}`; it has {}", listed(files))),
            None => select(files, &part, spec.kind),
        };
        let cached = hub.cached(&of);
        let found = cached.as_ref().map(|it| choose(&below(&it.folder, &DATA).unwrap_or_default()));
        // What an earlier run left of another split is not what this one asks for.
        let is_named = self.file.is_some() || part.split.is_some();
        let is_sure = |files: &[String]| is_named || files.iter().all(|it| it.contains(SPLIT));
        let (snapshot, files) = match (cached, found) {
            (Some(snapshot), Some(Ok(files))) if is_complete(&files) => {
                let fresh = if is_sure(&files) || hub.check_online(&of).is_err() {
                    None
                } else {
                    Self::fetch(&of, hub, &choose, None, bytes_max).ok()
                };
                fresh.unwrap_or((snapshot, files))
            }
            (_, found) => Self::fetch(&of, hub, &choose, found, bytes_max)?,
        };
        // The commit says which data these were; the hash is that of the files.
        let commit = snapshot.commit.get(..12).unwrap_or(&snapshot.commit);
        let mut name = format!("{}@{commit}", self.name);
        if let [only] = files.as_slice() {
            name = format!("{name}/{only}");
        } else if let Some(first) = files.first() {
            name = format!("{name}/{} ({} files)", group_of(first), files.len());
        }
        let files = files.iter().map(|file| snapshot.folder.join(file)).collect();
        Ok(Located { files, name, part, known })
    }

    #[cfg_attr(not(feature = "hub"), expect(unused_variables, reason = "nothing is fetched"))]
    fn fetch(
        of: &Repository,
        hub: &Hub,
        choose: &Choose<'_>,
        cached: Option<Result<Vec<String>, String>>,
        bytes_max: u64,
    ) -> Result<(Snapshot, Vec<String>), DatasetError> {
        let of_name = |reason: String| DatasetError::Files(format!("{of}: {reason}"));
        let online = hub.check_online(of);
        match (online, cached) {
            (Ok(()), _) => {}
            (Err(_), Some(Err(reason))) => {
                return Err(of_name(format!("{reason}. HF_HUB_OFFLINE forbids to look for more")));
            }
            (Err(offline), _) => return Err(offline.into()),
        }
        #[cfg(feature = "hub")]
        {
            let listing = hub.list(of)?;
            let files = choose(&listing.files()).map_err(of_name)?;
            let snapshot = hub.download_all(of, &listing, &files, bytes_max)?;
            Ok((snapshot, files))
        }
        #[cfg(not(feature = "hub"))]
        Err(of_name("this program was built without downloads from the hub".to_owned()))
    }
}

/// Extensions of files of data, the best first.
const DATA: [&str; 5] = ["parquet", "jsonl", "json", "csv", "txt"];
/// What describes data beside it.
const DESCRIPTIONS: [&str; 5] =
    ["dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "config.json"];
const SPLIT: &str = "train";

/// The files of a configuration and a split, by how files are called on the hub: `train.jsonl`,
/// `data/train-00000-of-00002.parquet` or `CONFIG/train-00000-of-00001.parquet`.
fn select(
    files: &[String],
    part: &DatasetPart,
    kind: Option<DatasetKind>,
) -> Result<Vec<String>, String> {
    let file_name = |file: &str| file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
    let is_data = |file: &&String| {
        !file.split('/').any(|part| part.starts_with('.'))
            && !DESCRIPTIONS.contains(&file_name(file).as_str())
    };
    let data: Vec<&String> = files.iter().filter(is_data).collect();
    let of_extension = |wanted: &str| -> Vec<&String> {
        let has = |file: &&String| file_name(file).ends_with(&format!(".{wanted}"));
        data.iter().copied().filter(has).collect()
    };
    let wanted = |extension: &&&str| match kind {
        None => true,
        Some(DatasetKind::Parquet) => **extension == "parquet",
        Some(DatasetKind::Csv) => **extension == "csv",
        Some(DatasetKind::Text) => **extension == "txt",
        Some(DatasetKind::Directory) => false,
        Some(DatasetKind::Json | DatasetKind::Jsonl | DatasetKind::ShareGpt) => {
            matches!(**extension, "json" | "jsonl")
        }
    };
    let mut found = DATA
        .iter()
        .filter(wanted)
        .map(|it| of_extension(it))
        .find(|files| !files.is_empty())
        .ok_or_else(|| format!("no Parquet, JSON, CSV or text file; it has {}", listed(files)))?;
    let has_word = |file: &str, word: &str, separators: &[char]| {
        file.split(separators).any(|part| part.eq_ignore_ascii_case(word))
    };
    let narrow = |found: &mut Vec<&String>, word: &str| {
        // First names as they are separated on the hub, then parts of a name.
        for separators in [&['/', '-', '.'][..], &['/', '-', '.', '_'][..]] {
            let some = found.iter().copied().filter(|file| has_word(file, word, separators));
            let some: Vec<&String> = some.collect();
            if !some.is_empty() {
                *found = some;
                return true;
            }
        }
        false
    };
    let absent = |flag: &str, name: &str, found: &[&String]| {
        let groups = groups(found).join(", ");
        Err(format!("no file of {flag} {name}; it has {groups}"))
    };
    if let Some(config) = part.config.as_deref()
        && !narrow(&mut found, config)
        && config != "default"
    {
        return absent("--dataset-config", config, &found);
    }
    match part.split.as_deref() {
        Some(split) if !narrow(&mut found, split) => {
            return absent("--dataset-split", split, &found);
        }
        Some(_) => {}
        None => drop(narrow(&mut found, SPLIT)),
    }
    let groups = groups(&found);
    if 1 < groups.len() {
        return Err(format!(
            "several datasets, of which one is needed: {}; choose with --dataset-config and \
             --dataset-split, or name a file as hf:ORG/NAME/FILE",
            groups.join(", ")
        ));
    }
    let mut found: Vec<String> = found.into_iter().cloned().collect();
    found.sort();
    Ok(found)
}

/// What files in several shards have in common; a file of its own is its name.
fn group_of(file: &str) -> &str {
    let Some((whole, count)) = file.rsplit_once("-of-") else { return file };
    let is_count = count.split('.').next().is_some_and(|it| it.parse::<u64>().is_ok());
    let shard = whole.rsplit_once('-').filter(|(_, number)| number.parse::<u64>().is_ok());
    shard.filter(|_| is_count).map_or(file, |(group, _)| group)
}

fn groups(files: &[&String]) -> Vec<String> {
    let mut groups: Vec<String> = files.iter().map(|file| group_of(file).to_owned()).collect();
    groups.sort();
    groups.dedup();
    groups
}

/// Whether all shards are there, by the number in their names.
fn is_complete(files: &[String]) -> bool {
    let count = files.first().and_then(|file| file.rsplit_once("-of-"));
    let count = count.and_then(|(_, end)| end.split('.').next()?.parse::<usize>().ok());
    count.is_none_or(|count| count == files.len())
}

fn listed(files: &[String]) -> String {
    let shown = files.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
    match files.len() {
        0 => "no file".to_owned(),
        count if count <= 12 => shown,
        count => format!("{shown} and {} more", count - 12),
    }
}

const DEPTH_MAX: usize = 16;
const FILES_MAX: u64 = 100_000;

/// The names of files below a folder that have one of these extensions, sorted, with `/` on every
/// system. Links to folders are not followed.
pub(super) fn below(folder: &Path, extensions: &[&str]) -> Result<Vec<String>, DatasetError> {
    let mut files = Vec::new();
    find(folder, folder, DEPTH_MAX, extensions, &mut files)?;
    files.sort();
    Ok(files)
}

fn find(
    root: &Path,
    folder: &Path,
    depth_left: usize,
    extensions: &[&str],
    files: &mut Vec<String>,
) -> Result<(), DatasetError> {
    let unreadable = |source| DataFileError::Unreadable { path: folder.to_path_buf(), source };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        if entry.file_type().map_err(unreadable)?.is_dir() {
            if 0 < depth_left {
                find(root, &path, depth_left - 1, extensions, files)?;
            }
            continue;
        }
        let extension = path.extension().unwrap_or_default();
        if extensions.iter().any(|known| extension.eq_ignore_ascii_case(known)) {
            let below = path.strip_prefix(root).unwrap_or(&path).components();
            let names = below.map(|name| name.as_os_str().to_string_lossy());
            files.push(names.collect::<Vec<_>>().join("/"));
        }
        if FILES_MAX < files.len() as u64 {
            let path = root.to_path_buf();
            return Err(DataFileError::TooMany { path, bound: FILES_MAX, what: "files" }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
