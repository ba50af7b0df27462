//! The documentation as a book: the pages of `docs/`, rendered by mdBook together with the files of the
//! repository that they link to.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The release of mdBook that renders the pages.
const MDBOOK: &str = "mdbook@0.5.4";
/// The folder of the book for files of the repository outside of `docs/`.
const REPOSITORY: &str = "repository";

/// Builds the book in `target` and returns where it begins.
pub(crate) fn book(target: &Path, cargo: impl FnOnce(&[&str]) -> bool) -> Result<String, String> {
    let tool = target.join("mdbook");
    let program = tool.join("bin/mdbook");
    if !program.is_file() {
        let (root, build) = (tool.display().to_string(), tool.join("build").display().to_string());
        // Without optimization it compiles in half of the time, and renders in a second or two.
        let install = ["install", "--debug", "--locked", "--root", &root, "--target-dir", &build];
        let features = ["--no-default-features", "--features", "search", MDBOOK];
        if !cargo(&[&install[..], &features[..]].concat()) {
            return Err("mdBook was not installed".to_owned());
        }
    }
    let sources = target.join("book-sources");
    gather(&sources)?;
    let pages = target.join("book");
    let built = Command::new(&program)
        .args(["build", "--dest-dir"])
        .arg(&pages)
        .env("MDBOOK_BOOK__SRC", &sources)
        .status()
        .map_err(|error| format!("{} does not start: {error}", program.display()))?;
    if !built.success() {
        return Err(format!("mdBook ended with {built}"));
    }
    let broken = broken_links(&pages)?;
    if broken.is_empty() {
        Ok(format!("the book begins at {}", pages.join("index.html").display()))
    } else {
        Err(format!("links that lead nowhere:\n{}", broken.join("\n")))
    }
}

/// Copies `docs/`, and every file of the repository that a page links to, with links adjusted. Pages
/// from outside of `docs/` are listed at the end of the summary.
fn gather(sources: &Path) -> Result<(), String> {
    let unwritten = |error: std::io::Error| format!("{}: {error}", sources.display());
    // What an earlier build left would be part of this one.
    let _ = fs::remove_dir_all(sources);
    let mut wanted: BTreeSet<PathBuf> = files_below(Path::new("docs"))?.into_iter().collect();
    let mut done = BTreeSet::new();
    while let Some(path) = wanted.pop_first() {
        if !done.insert(path.clone()) {
            continue;
        }
        let copy = sources.join(place(&path));
        fs::create_dir_all(copy.parent().unwrap_or(sources)).map_err(unwritten)?;
        if is_page(&path) {
            let text = fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            let (text, linked) = adjusted(&path, &text);
            wanted.extend(linked);
            fs::write(copy, text).map_err(unwritten)?;
        } else {
            fs::copy(&path, copy).map_err(unwritten)?;
        }
    }
    let summary = sources.join("SUMMARY.md");
    let mut text = fs::read_to_string(&summary).map_err(unwritten)?;
    text += "\n# Pages of the repository\n\n";
    for path in done.iter().filter(|path| is_page(path) && !path.starts_with("docs")) {
        let (title, place) = (path.display(), place(path));
        let _ = writeln!(text, "- [{title}]({})", place.display());
    }
    fs::write(summary, text).map_err(unwritten)
}

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// Where a file of the repository is in the book. The first page of a folder is its index there.
fn place(path: &Path) -> PathBuf {
    let inside = path.strip_prefix("docs").map(Path::to_path_buf);
    let place = inside.unwrap_or_else(|_| Path::new(REPOSITORY).join(path));
    if place.ends_with("README.md") { place.with_file_name("index.md") } else { place }
}

/// A page with its links as they are in the book, and the files that it links to.
fn adjusted(page: &Path, text: &str) -> (String, Vec<PathBuf>) {
    let mut linked = Vec::new();
    let mut adjusted = String::new();
    let mut parts = text.split("](");
    adjusted += parts.next().unwrap_or_default();
    for part in parts {
        adjusted += "](";
        let end = part.find(')').unwrap_or(part.len());
        let (link, rest) = part.split_at(end);
        let (target, anchor) = link.find('#').map_or((link, ""), |at| link.split_at(at));
        let path = normal(&page.parent().unwrap_or(page).join(target));
        if !target.is_empty() && !target.contains("://") && path.is_file() {
            adjusted += &relative(&place(page), &place(&path));
            adjusted += anchor;
            linked.push(path);
        } else {
            adjusted += link;
        }
        adjusted += rest;
    }
    (adjusted, linked)
}

/// The path without `..` in it.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

/// The link from one place in the book to another.
fn relative(from: &Path, to: &Path) -> String {
    let depth = from.components().count() - 1;
    format!("{}{}", "../".repeat(depth), to.display())
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unread = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

/// Links of the built pages to files or anchors that do not exist.
fn broken_links(pages: &Path) -> Result<Vec<String>, String> {
    let mut broken = Vec::new();
    let files = files_below(pages)?;
    let html = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "html");
    // Its links are those of the other pages, at another place.
    let own = |path: &&PathBuf| !path.ends_with("print.html") && !path.ends_with("404.html");
    for page in files.iter().filter(html).filter(own) {
        let text = fs::read_to_string(page).map_err(|error| error.to_string())?;
        for link in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
            if target.contains(':') {
                continue;
            }
            let path = page.parent().unwrap_or(pages).join(target);
            let path = if target.is_empty() { page.clone() } else { normal(&path) };
            let has_anchor = |text: String| text.contains(&format!("id=\"{anchor}\""));
            let is_there = path.is_file()
                && (anchor.is_empty() || fs::read_to_string(&path).is_ok_and(has_anchor));
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    Ok(broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_folder_lead_to_the_copy() {
        let page = Path::new("docs/example-h200/README.md");
        let at_root = |text: &str| {
            let (adjusted, _) = adjusted(page, text);
            adjusted
        };
        assert_eq!(at_root("[a](http://b/c) [d](#e)"), "[a](http://b/c) [d](#e)");
        assert_eq!(relative(&place(page), Path::new("run.md")), "../run.md");
        assert_eq!(normal(Path::new("docs/x/../../examples/a")), Path::new("examples/a"));
        assert_eq!(place(Path::new("examples/a")), Path::new("repository/examples/a"));
        assert_eq!(place(page), Path::new("example-h200/index.md"));
    }
}
