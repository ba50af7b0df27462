//! `inferometer bundle`: a run or set as one file that anyone can verify, and the reading of it.
//!
//! ```text
//! INFEROMETER-BUNDLE/1 SHA-256-OF-THE-INDEX
//! unsigned | ed25519 PUBLIC-KEY SIGNATURE-OF-THE-FIRST-LINE
//! {"schema": "inferometer.bundle/1", "name": …, "files": [{"path", "bytes", "sha256"}, …]}
//! the files, one behind the other
//! ```
//!
//! Every byte is covered: those of the files by the index, those of the index by the first line.

mod redaction;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use inferometer_report::escape::terminal;
use inferometer_store::{OutputFile, RunState, Stored, read_at_most};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::store;
use crate::arguments::BundleArguments;
use crate::failure::{Failure, Result};
use crate::output;
use crate::report_files::files_below;
use crate::results::hex;

const MAGIC: &str = "INFEROMETER-BUNDLE/1";
const SCHEMA: &str = "inferometer.bundle/1";
const UNSIGNED: &str = "unsigned";
const HEAD_BYTES_MAX: u64 = 4 << 10;
const INDEX_BYTES_MAX: u64 = 16 << 20;
const FILES_MAX: usize = 50_000;
const DEPTH_MAX: usize = 8;
const KEY_BYTES_MAX: u64 = 16 << 10;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    schema: String,
    /// What is in it: the id of a run, or of a set.
    name: String,
    is_redacted: bool,
    /// Version of the program that wrote it.
    tool_version: String,
    files: Vec<FileEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    path: String,
    bytes: u64,
    sha256: String,
}

pub(crate) fn run(arguments: &BundleArguments) -> Result<ExitCode> {
    let found = store(&arguments.store)?.find(&arguments.run).map_err(Failure::from_usage)?;
    let name = found.id().to_owned();
    let whole = match &found {
        Stored::Run(run) => matches!(run.state(), RunState::Sealed),
        Stored::Set(set) => set.has_summary(),
        Stored::Import(..) => {
            return Err(Failure::usage(format!(
                "{name} was imported, and its file is one already"
            )));
        }
    };
    if !whole {
        return Err(Failure::usage(format!("{name} is not finished")));
    }
    let redacted = arguments.redact.then(|| redaction::redact(&found)).transpose()?;
    let folder = redacted.as_ref().map_or_else(|| found.path(), |folder| &folder.0);
    let signer = arguments.key.as_deref().map(signer).transpose()?;
    let default = PathBuf::from(format!("{}.inferometer", name.replace('/', "-")));
    let to = arguments.to.clone().unwrap_or(default);
    let (hash, index) = write(&to, folder, &name, arguments.redact, signer.as_ref())?;
    output::result(&format!("{}\n", terminal(&to.display().to_string())))?;
    let summary = index.files.iter().find(|file| file.path == "summary.json");
    output::talk(&format!(
        "bundle {name}: sha256 {hash}\nsha256 of its summary.json, whose beginning is on its page: {}\n\
         check it with: inferometer verify {}",
        summary.map_or("there is none", |file| &file.sha256),
        to.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Writes a folder as a bundle, and returns its index and the hash of that.
fn write(
    to: &Path,
    folder: &Path,
    name: &str,
    is_redacted: bool,
    signer: Option<&Ed25519KeyPair>,
) -> Result<(String, Index)> {
    let paths = paths_inside(folder)?;
    let unreadable = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| Failure::usage(format!("{path} cannot be read: {error}"))
    };
    let mut files = Vec::new();
    for path in &paths {
        let place = folder.join(path);
        let file = File::open(&place).map_err(unreadable(&place))?;
        let (bytes, sha256) =
            copy_hashed(file, &mut std::io::sink()).map_err(unreadable(&place))?;
        files.push(FileEntry { path: path.clone(), bytes, sha256 });
    }
    let (schema, tool_version) = (SCHEMA.to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let index = Index { schema, name: name.to_owned(), is_redacted, tool_version, files };
    let json = serde_json::to_string(&index).map_err(Failure::from_error)?;
    let hash = hex(&Sha256::digest(json.as_bytes()));
    let first = format!("{MAGIC} {hash}");
    let signature = signer.map_or_else(
        || UNSIGNED.to_owned(),
        |key| {
            let signature = key.sign(first.as_bytes());
            format!("ed25519 {} {}", hex(key.public_key().as_ref()), hex(signature.as_ref()))
        },
    );
    let mut file = OutputFile::create(to).map_err(Failure::from_usage)?;
    let unwritten = |error: std::io::Error| {
        Failure::usage(format!("{} cannot be written: {error}", to.display()))
    };
    write!(file, "{first}\n{signature}\n{json}\n").map_err(unwritten)?;
    for path in &paths {
        let place = folder.join(path);
        let source = File::open(&place).map_err(unreadable(&place))?;
        copy_hashed(source, &mut file).map_err(unwritten)?;
    }
    file.commit().map_err(Failure::from_usage)?;
    Ok((hash, index))
}

/// The plain files of a folder, by their paths inside it, without locks.
fn paths_inside(folder: &Path) -> Result<Vec<String>> {
    let inside = |path: PathBuf| {
        let inside = path.strip_prefix(folder).ok()?.to_str()?.to_owned();
        let is_file = path.symlink_metadata().is_ok_and(|kind| kind.is_file());
        (is_file && is_plain(&inside) && !inside.ends_with("lock")).then_some(inside)
    };
    let files = files_below(folder).map_err(Failure::from_error)?;
    let paths: Vec<String> = files.into_iter().filter_map(inside).collect();
    if FILES_MAX < paths.len() {
        return Err(Failure::usage(format!("there are more than {FILES_MAX} files")));
    }
    Ok(paths)
}

/// A path of few plain names: it leads nowhere but down.
fn is_plain(path: &str) -> bool {
    let is_name = |part: Component<'_>| {
        let Component::Normal(name) = part else { return false };
        let is_known = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        name.to_str().is_some_and(|name| !name.starts_with('.') && name.chars().all(is_known))
    };
    let mut depth = 0;
    Path::new(path).components().all(|part| {
        depth += 1;
        is_name(part)
    }) && (1..=DEPTH_MAX).contains(&depth)
        && Path::new(path).components().collect::<PathBuf>().as_os_str() == path
}

/// Copies to the end, and returns the length and the hash.
fn copy_hashed(mut from: impl Read, to: &mut impl Write) -> std::io::Result<(u64, String)> {
    let (mut hash, mut length) = (Sha256::new(), 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok((length, hex(&hash.finalize())));
        }
        hash.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
        length += read as u64;
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let bytes = text
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    // One spelling only, so that every changed byte is found.
    (hex(&bytes) == text).then_some(bytes)
}

/// A key in PKCS #8, as PEM or DER: `openssl genpkey -algorithm ed25519`.
fn signer(path: &Path) -> Result<Ed25519KeyPair> {
    let bytes = read_at_most(path, KEY_BYTES_MAX).map_err(Failure::from_usage)?;
    let bytes = bytes.ok_or_else(|| Failure::usage(format!("there is no {}", path.display())))?;
    let pem = String::from_utf8_lossy(&bytes);
    let lines = pem.lines().filter(|line| !line.starts_with("-----")).collect::<String>();
    let der =
        if pem.starts_with("-----") { STANDARD.decode(lines).unwrap_or_default() } else { bytes };
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).map_err(|_| {
        Failure::usage(format!("{} is no Ed25519 key in PKCS #8", path.display()))
            .hint("make one with: openssl genpkey -algorithm ed25519 -out key.pem")
    })
}

/// A folder that goes with this value.
#[derive(Debug)]
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    fn new(name: &str) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = name.rsplit('/').next().filter(|id| is_plain(id)).unwrap_or("bundle");
        let own = format!("inferometer-bundle-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(own).join(id);
        std::fs::create_dir_all(&path).map_err(Failure::from_error)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of it harms nobody.
        let _ = std::fs::remove_dir_all(self.0.parent().unwrap_or(&self.0));
    }
}

/// What was found in a bundle whose every byte is as it was written.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) folder: Scratch,
    /// For the line that says what was verified.
    pub(super) origin: String,
}

/// Whether a file begins like a bundle.
pub(super) fn is_bundle(path: &Path) -> bool {
    let mut first = vec![0; MAGIC.len()];
    path.is_file()
        && File::open(path)
            .is_ok_and(|mut file| file.read_exact(&mut first).is_ok() && first == MAGIC.as_bytes())
}

/// Checks every byte of a bundle and unpacks it into a folder of its own.
pub(super) fn unpack(path: &Path) -> Result<Unpacked> {
    let failed = |why: String| Failure::invalid(format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let length = file.metadata().map_err(|error| failed(error.to_string()))?.len();
    read(BufReader::new(file), length).map_err(failed)
}

fn read(mut source: impl BufRead, length: u64) -> Result<Unpacked, String> {
    let mut line = |limit: u64| {
        let mut line = String::new();
        let read = source.by_ref().take(limit).read_line(&mut line);
        match (read, line.strip_suffix('\n')) {
            (Ok(_), Some(line)) => Ok(line.to_owned()),
            _ => Err("its head is damaged".to_owned()),
        }
    };
    let (first, signature, index_text) =
        (line(HEAD_BYTES_MAX)?, line(HEAD_BYTES_MAX)?, line(INDEX_BYTES_MAX)?);
    let hash = hex(&Sha256::digest(index_text.as_bytes()));
    if first != format!("{MAGIC} {hash}") {
        return Err("its index is not the one that was written".to_owned());
    }
    let signed = check_signature(&first, &signature)?;
    let index: Index = serde_json::from_str(&index_text)
        .map_err(|error| format!("its index cannot be read: {error}"))?;
    if index.schema != SCHEMA {
        return Err(format!(
            "it is of the form {}, which this version does not know",
            index.schema
        ));
    }
    let head =
        [&first, &signature, &index_text].iter().map(|line| line.len() as u64 + 1).sum::<u64>();
    let total = index.files.iter().try_fold(head, |sum, file| sum.checked_add(file.bytes));
    if total != Some(length) || FILES_MAX < index.files.len() {
        return Err("it has more or fewer bytes than its index says".to_owned());
    }
    let folder = Scratch::new(&index.name).map_err(|failure| failure.message().to_owned())?;
    for entry in &index.files {
        if !is_plain(&entry.path) {
            return Err(format!("a path leads out of it: {}", entry.path));
        }
        let place = folder.0.join(&entry.path);
        let made = place.parent().map_or(Ok(()), std::fs::create_dir_all);
        let target = made.and_then(|()| File::create_new(&place));
        let mut target =
            target.map_err(|error| format!("{} cannot be unpacked: {error}", entry.path))?;
        let copied = copy_hashed(source.by_ref().take(entry.bytes), &mut target);
        let (_, sha256) = copied.map_err(|error| format!("{}: {error}", entry.path))?;
        if sha256 != entry.sha256 {
            return Err(format!("{} is not the file that was bundled", entry.path));
        }
    }
    let redacted = if index.is_redacted { ", redacted" } else { "" };
    Ok(Unpacked { folder, origin: format!("bundle sha256 {hash}{redacted}, {signed}") })
}

/// Who signed the first line, in words.
fn check_signature(first: &str, line: &str) -> Result<String, String> {
    if line == UNSIGNED {
        return Ok("not signed".to_owned());
    }
    let mut words = line.split(' ');
    let (kind, key, signature) = (words.next(), words.next(), words.next());
    let parts = key.and_then(unhex).zip(signature.and_then(unhex));
    let is_form = kind == Some("ed25519") && words.next().is_none();
    let Some((public, signature)) = parts.filter(|_| is_form) else {
        return Err("its signature cannot be read".to_owned());
    };
    UnparsedPublicKey::new(&ED25519, &public)
        .verify(first.as_bytes(), &signature)
        .map_err(|_| "its signature is not of this content".to_owned())?;
    Ok(format!("signed by ed25519 key {}", hex(&public)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle(signer: Option<&Ed25519KeyPair>) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("points")).unwrap();
        std::fs::write(folder.path().join("manifest.json"), "{\"a\": 1}").unwrap();
        std::fs::write(folder.path().join("points/requests.journal"), [0, 255, 7]).unwrap();
        std::fs::write(folder.path().join(".x.draft"), "torn").unwrap();
        let to = folder.path().join("out.inferometer");
        write(&to, folder.path(), "20260102-030405-ab12", false, signer).unwrap();
        std::fs::read(&to).unwrap()
    }

    fn read_bytes(bytes: &[u8]) -> Result<Unpacked, String> {
        read(bytes, bytes.len() as u64)
    }

    fn key() -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
    }

    #[test]
    fn a_bundle_gives_its_files_back_and_names_its_signer() {
        let unpacked = read_bytes(&bundle(Some(&key()))).unwrap();
        let file = |name: &str| std::fs::read(unpacked.folder.0.join(name)).unwrap();
        assert_eq!(file("points/requests.journal"), [0, 255, 7]);
        assert!(!unpacked.folder.0.join(".x.draft").exists());
        assert!(unpacked.origin.contains(&hex(key().public_key().as_ref())), "{}", unpacked.origin);
        drop(unpacked);
        assert!(read_bytes(&bundle(None)).unwrap().origin.ends_with("not signed"));
    }

    /// Faults: 87.
    #[test]
    fn every_flipped_byte_is_found_and_so_is_a_missing_or_a_further_one() {
        for bytes in [bundle(None), bundle(Some(&key()))] {
            for at in 0..bytes.len() {
                for bit in [0, 5, 7] {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << bit;
                    assert!(read_bytes(&flipped).is_err(), "byte {at}, bit {bit}");
                }
            }
            assert!(read_bytes(&bytes[..bytes.len() - 1]).is_err());
            assert!(read_bytes(&[&bytes[..], b"x"].concat()).is_err());
        }
    }

    /// `cargo xtask fuzz --target bundle` gives it more of them. A changed bundle is refused; one whose index
    /// is changed and covered again is read or refused.
    #[test]
    fn mutated_bundles_are_refused_or_read_into_their_folder() {
        let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
        let executions = number("INFEROMETER_EXECUTIONS").unwrap_or(300);
        let seed = number("INFEROMETER_SEED").unwrap_or(1);
        let bundles = [bundle(None), bundle(Some(&key()))];
        let mut mutations = fuzz_targets::mutation::Mutations::new(&bundles, seed);
        let index = |path: &str| {
            let sha256 = hex(&Sha256::digest(b""));
            let files = vec![FileEntry { path: path.to_owned(), bytes: 0, sha256 }];
            let [schema, name, tool_version] = [SCHEMA, "a", "1"].map(str::to_owned);
            serde_json::to_vec(&Index { schema, name, is_redacted: true, tool_version, files })
        };
        let indexes = [index("manifest.json").unwrap(), index("points/0/x").unwrap()];
        let mut changed = fuzz_targets::mutation::Mutations::new(&indexes, seed);
        for _ in 0..executions {
            let input = mutations.next_input();
            assert!(read_bytes(input).is_err() || bundles.iter().any(|whole| whole == input));
            let index = changed.next_input();
            let head = format!("{MAGIC} {}\n{UNSIGNED}\n", hex(&Sha256::digest(index)));
            if let Ok(unpacked) = read_bytes(&[head.as_bytes(), index, b"\n"].concat()) {
                let beside = std::fs::read_dir(unpacked.folder.0.parent().unwrap()).unwrap();
                assert_eq!(beside.count(), 1, "{}", String::from_utf8_lossy(index));
            }
        }
    }

    /// Faults: 109.
    #[test]
    fn no_path_leaves_the_folder() {
        for path in
            ["../x", "/etc/passwd", "a/../../b", ".x", "a//b", "a/./b", "", "a\\..\\b", "a b"]
        {
            assert!(!is_plain(path), "{path}");
        }
        assert!(is_plain("points/0/requests.journal") && !is_plain(&"a/".repeat(20)));
        let index = format!(
            "{{\"schema\":\"{SCHEMA}\",\"name\":\"x\",\"is_redacted\":false,\"tool_version\":\"1\",\
             \"files\":[{{\"path\":\"../escaped\",\"bytes\":0,\"sha256\":\"{}\"}}]}}",
            hex(&Sha256::digest(b""))
        );
        let text =
            format!("{MAGIC} {}\n{UNSIGNED}\n{index}\n", hex(&Sha256::digest(index.as_bytes())));
        let error = read_bytes(text.as_bytes()).unwrap_err();
        assert!(error.contains("leads out"), "{error}");
    }
}
