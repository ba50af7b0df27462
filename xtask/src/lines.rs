//! `cargo xtask lines`: production code per crate, without tests, comments and blank lines.

use std::fmt::Write;
use std::path::Path;

/// Files that hold unit tests only; their parent declares them under `#[cfg(test)]`.
const TEST_FILES: [&str; 3] = ["tests.rs", "fixture.rs", "properties.rs"];

/// The table of every crate's `src`, the largest first, with a total.
pub(crate) fn lines(root: &Path) -> Result<String, String> {
    let mut rows = Vec::new();
    for folder in ["crates", "tools"] {
        let entries = std::fs::read_dir(root.join(folder)).map_err(|error| error.to_string())?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = if folder == "tools" { format!("tools/{name}") } else { name };
            rows.push((name, count(&path.join("src"))?));
        }
    }
    rows.push(("xtask".to_owned(), count(&root.join("xtask/src"))?));
    rows.sort_by_key(|(_, (lines, _))| std::cmp::Reverse(*lines));
    let mut table = format!("{:<16}{:>8}{:>8}\n", "crate", "lines", "files");
    // The rivals are a benchmark of other tools, not part of the product.
    let product = || rows.iter().filter(|(name, _)| !name.starts_with("tools/"));
    for (name, (lines, files)) in &rows {
        let _ = writeln!(table, "{name:<16}{lines:>8}{files:>8}");
    }
    let lines: usize = product().map(|(_, (lines, _))| lines).sum();
    let files: usize = product().map(|(_, (_, files))| files).sum();
    let _ = writeln!(table, "{:<16}{lines:>8}{files:>8}", "without tools");
    Ok(table)
}

/// Lines of code and files below a folder.
fn count(folder: &Path) -> Result<(usize, usize), String> {
    let (mut lines, mut files) = (0, 0);
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            let (more_lines, more_files) = count(&path)?;
            (lines, files) = (lines + more_lines, files + more_files);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !TEST_FILES.contains(&name.as_str())
        {
            let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            (lines, files) = (lines + code_lines(&text), files + 1);
        }
    }
    Ok((lines, files))
}

/// Lines that are neither blank nor comments nor part of an item under `#[cfg(test)]`.
pub(crate) fn code_lines(text: &str) -> usize {
    let mut lines = text.lines();
    let mut counted = 0;
    while let Some(line) = lines.next() {
        let code = line.trim();
        if code == "#[cfg(test)]" || code.starts_with("#[cfg(all(test,") {
            // In formatted code a block ends with a brace at its own indentation.
            let indent = &line[..line.len() - line.trim_start().len()];
            let begin = lines.by_ref().find(|line| line.ends_with(['{', ';']));
            if begin.is_some_and(|begin| begin.ends_with('{')) {
                let is_end = |line: &str| matches!(line.strip_prefix(indent), Some("}" | "};"));
                lines.by_ref().find(|line| is_end(line));
            }
        } else if !code.is_empty() && !code.starts_with("//") {
            counted += 1;
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_comments_and_blank_lines_do_not_count() {
        let text = "//! Header.\n\nuse a;\n\n#[cfg(test)]\nmod fixture;\n\nfn f() {\n    // Why.\n    \
                    g('{', \"}\");\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n";
        assert_eq!(code_lines(text), 4);
        let text =
            "#[cfg(all(test, unix))]\nmod tests {\n    const A: &str = \"\nx;\n\";\n}\nuse a;\n";
        assert_eq!(code_lines(text), 1);
    }
}
