//! What users install, built and tried: static programs, wheels, the container image, their parts list
//! and their checksums.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use xtask::cargo_command;

use crate::exports::said;
use crate::sbom;

/// The largest program that is packaged, in bytes.
const SIZE_MAX: u64 = 25_000_000;
/// The longest time that `--help` may take.
const HELP_MAX: Duration = Duration::from_millis(20);
/// Wheels for Linux run with this C library and later ones.
const GLIBC: &str = "manylinux2014";
const TOOLS: [&str; 3] = ["maturin>=1.9,<2", "cargo-zigbuild", "ziglang"];

/// An environment of Python with maturin and zig.
pub(crate) struct Tools(PathBuf);

impl Tools {
    /// Where it is not there yet, it is made and filled from `PyPI`.
    pub(crate) fn install(folder: &Path) -> Result<Self, String> {
        let tools = Self(folder.join("tools"));
        if !tools.0.join("bin/cargo-zigbuild").exists() {
            eprintln!("installing {} from PyPI", TOOLS.join(", "));
            make_folder(folder)?;
            said(Command::new("python3").args(["-m", "venv"]).arg(&tools.0))?;
            said(Command::new(tools.0.join("bin/pip")).args(["install", "--quiet"]).args(TOOLS))?;
        }
        Ok(tools)
    }

    /// One of its programs, which finds the others.
    pub(crate) fn command(&self, name: &str) -> Result<Command, String> {
        let folder = self.0.join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [folder.clone()].into_iter().chain(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).map_err(|error| error.to_string())?;
        let mut command = Command::new(folder.join(name));
        command.env("PATH", path);
        Ok(command)
    }
}

struct Packages {
    tools: Tools,
    profile: String,
    folder: PathBuf,
    root: PathBuf,
    target_folder: PathBuf,
    version: String,
    /// A server to measure; `None` measures the embedded engine.
    server: Option<String>,
    /// What could not be made here, and why.
    skipped: Vec<String>,
    /// Programs that are too large: everything else is tried before that fails.
    too_large: Vec<String>,
}

/// Builds and tries everything; the lines that it returns say what was made and what was skipped.
pub(crate) fn packages(words: &[&str], target_folder: &Path) -> Result<String, String> {
    let (profile, words) = match words {
        ["--profile", profile, words @ ..] => (*profile, words),
        words => ("dist", words),
    };
    let (server, targets) = match words {
        ["--server", url, targets @ ..] => (Some((*url).to_owned()), targets),
        targets => (None, targets),
    };
    let host = host()?;
    let own = [host.clone(), host.replace("-gnu", "-musl")];
    let mut targets: Vec<&str> = targets.to_vec();
    if targets.is_empty() {
        targets = own.iter().map(String::as_str).collect();
        targets.dedup();
    }
    let folder = target_folder.join("packages");
    // What an earlier try left would get a checksum again.
    let _ = fs::remove_dir_all(folder.join("out"));
    make_folder(&folder.join("out"))?;
    let root = std::env::current_dir().map_err(|error| error.to_string())?;
    let metadata = sbom::metadata(&host)?;
    let mut packages = Packages {
        tools: Tools::install(&folder)?,
        profile: profile.to_owned(),
        version: sbom::version(&metadata).ok_or("cargo knows no version of ours")?.to_owned(),
        folder,
        root,
        target_folder: target_folder.to_path_buf(),
        server,
        skipped: Vec::new(),
        too_large: Vec::new(),
    };
    let parts = format!("inferometer-{}-{host}.cdx.json", packages.version);
    packages.write(&parts, &format!("{:#}\n", sbom::document(&metadata)))?;
    packages.try_cargo_install()?;
    for target in targets {
        let runs_here = own.iter().any(|own| own == target);
        if !is_installed(target)? {
            let why = format!("{target}: not installed; `rustup target add {target}` installs it");
            packages.skipped.push(why);
            continue;
        }
        if !target.ends_with("-gnu") {
            let program = packages.archive(target, runs_here)?;
            if runs_here && target.contains("linux") {
                packages.image(&program)?;
            }
        }
        if !target.ends_with("-musl") {
            packages.wheel(target, runs_here)?;
        }
    }
    let made = packages.checksums()?;
    if packages.too_large.is_empty() { Ok(made) } else { Err(packages.too_large.join("; ")) }
}

impl Packages {
    fn out(&self) -> PathBuf {
        self.folder.join("out")
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.out().join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// `cargo install --path crates/cli`, without waiting for optimisation.
    fn try_cargo_install(&self) -> Result<(), String> {
        let root = self.folder.join("installed");
        let mut command = cargo_command(["install", "--path", "crates/cli", "--locked", "--debug"]);
        show(command.args(["--force", "--root"]).arg(&root))?;
        let version = said(Command::new(root.join("bin/inferometer")).arg("--version"))?;
        expect(version.contains("build:  debug"), &version)
    }

    /// A program for one target with completions and manual pages, as an archive.
    fn archive(&mut self, target: &str, runs_here: bool) -> Result<PathBuf, String> {
        // Zig is the linker and the C compiler for every kind of Linux.
        let mut command = if target.contains("linux") {
            self.tools.command("cargo-zigbuild")?
        } else {
            cargo_command([])
        };
        command.arg(if target.contains("linux") { "zigbuild" } else { "build" });
        command.args(["--locked", "--package", "inferometer-cli", "--target", target]);
        show(command.args(["--profile", &self.profile]))?;
        // Cargo keeps what the profile `dev` builds in `debug`.
        let profile = if self.profile == "dev" { "debug" } else { &self.profile };
        let program = self.target_folder.join(target).join(profile).join("inferometer");
        self.check_size(&program)?;
        let name = format!("inferometer-{}-{target}", self.version);
        let folder = self.folder.join(&name);
        let _ = fs::remove_dir_all(&folder);
        make_folder(&folder.join("completions"))?;
        for file in [&program, &self.root.join("LICENSE"), &self.root.join("README.md")] {
            let name = file.file_name().unwrap_or_default();
            fs::copy(file, folder.join(name)).map_err(|error| error.to_string())?;
        }
        if runs_here {
            try_program(&program, self.is_dist())?;
            self.write_pages(&program)?;
        }
        let pages = self.folder.join("pages");
        if pages.exists() {
            said(Command::new("cp").arg("-R").arg(pages.join(".")).arg(&folder))?;
        }
        let archive = self.out().join(format!("{name}.tar.gz"));
        let mut tar = Command::new("tar");
        said(tar.arg("-czf").arg(archive).arg("-C").arg(&self.folder).arg(name))?;
        Ok(program)
    }

    /// Completions and manual pages are the same for every target.
    fn write_pages(&self, program: &Path) -> Result<(), String> {
        let folder = self.folder.join("pages");
        let _ = fs::remove_dir_all(&folder);
        make_folder(&folder.join("completions"))?;
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            let script = said(Command::new(program).args(["completions", shell]))?;
            expect(
                script.contains("concurrency"),
                &format!("{shell} does not know --concurrency"),
            )?;
            let path = folder.join("completions").join(format!("inferometer.{shell}"));
            fs::write(path, script).map_err(|error| error.to_string())?;
        }
        said(Command::new(program).arg("man").arg(folder.join("man/man1")))?;
        let page = folder.join("man/man1/inferometer-run.1");
        expect(page.exists(), "there is no manual page of `inferometer run`")
    }

    /// The image with this program, where a tool that builds images works.
    fn image(&mut self, program: &Path) -> Result<(), String> {
        let script = self.root.join("tools/checks/packages/image.sh");
        let archive = self.out().join(format!("inferometer-{}-image.tar", self.version));
        let mut command = Command::new(script);
        let printed = said(command.arg(program).arg(&archive).arg(&self.version))?;
        eprint!("{printed}");
        let skipped = printed.lines().filter_map(|line| line.strip_prefix("image: skipped, "));
        self.skipped.extend(skipped.map(|why| format!("the image, {why}")));
        Ok(())
    }

    /// The wheel of one target; tried in a new environment where it runs.
    fn wheel(&mut self, target: &str, runs_here: bool) -> Result<(), String> {
        let before = self.wheels()?;
        let mut command = self.tools.command("maturin")?;
        command.args(["build", "--profile", &self.profile, "--target", target, "--out"]);
        command.arg(self.out()).current_dir(self.root.join("python"));
        if target.contains("linux") {
            command.args(["--zig", "--compatibility", GLIBC]);
        }
        command.env("CARGO_TARGET_DIR", &self.target_folder);
        show(&mut command)?;
        let made = self.wheels()?.into_iter().find(|wheel| !before.contains(wheel));
        let wheel = made.ok_or("maturin made no wheel")?;
        if !runs_here {
            return Ok(());
        }
        let environment = self.folder.join("fresh");
        let _ = fs::remove_dir_all(&environment);
        said(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let mut pip = Command::new(environment.join("bin/pip"));
        said(pip.args(["install", "--quiet", "--no-index"]).arg(&wheel))?;
        let program = environment.join("bin/inferometer");
        self.check_size(&program)?;
        try_program(&program, self.is_dist())?;
        let tests = self.root.join("python/tests/test_package.py");
        show(Command::new(environment.join("bin/python")).arg(tests).current_dir(&environment))?;
        let mut newcomer = Command::new(self.root.join("tools/checks/packages/newcomer.sh"));
        show(newcomer.arg(&wheel).args(&self.server))
    }

    fn wheels(&self) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(self.out()).map_err(|error| error.to_string())?.flatten();
        let is_wheel = |path: &PathBuf| path.extension().is_some_and(|end| end == "whl");
        Ok(entries.map(|entry| entry.path()).filter(is_wheel).collect())
    }

    fn is_dist(&self) -> bool {
        self.profile == "dist"
    }

    fn check_size(&mut self, program: &Path) -> Result<(), String> {
        let size = fs::metadata(program).map_err(|error| error.to_string())?.len();
        eprintln!("{}: {size} bytes", program.display());
        if self.is_dist() && SIZE_MAX < size {
            let program = program.display();
            self.too_large.push(format!("{program} has {size} bytes, and {SIZE_MAX} are allowed"));
        }
        Ok(())
    }

    /// Writes `SHA256SUMS` and returns it with what was skipped.
    fn checksums(&self) -> Result<String, String> {
        let entries = fs::read_dir(self.out()).map_err(|error| error.to_string())?.flatten();
        let mut lines = Vec::new();
        for entry in entries {
            let content = fs::read(entry.path()).map_err(|error| error.to_string())?;
            let mut line = String::new();
            for byte in Sha256::digest(&content) {
                let _ = write!(line, "{byte:02x}");
            }
            lines.push(format!("{line}  {}\n", entry.file_name().to_string_lossy()));
        }
        lines.sort_by(|a, b| a[64..].cmp(&b[64..]));
        let text = lines.concat();
        self.write("SHA256SUMS", &text)?;
        let skipped: Vec<String> =
            self.skipped.iter().map(|why| format!("skipped: {why}\n")).collect();
        Ok(format!("{text}in {}\n{}", self.out().display(), skipped.concat()))
    }
}

/// What every package must do: name its commit, and answer at once.
#[expect(clippy::disallowed_methods, reason = "a chore, not a run")]
fn try_program(program: &Path, is_dist: bool) -> Result<(), String> {
    let version = said(Command::new(program).arg("--version"))?;
    eprint!("{version}");
    expect(version.contains("\ncommit: ") && version.contains("\nbuild:  "), &version)?;
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..21 {
        let begun = Instant::now();
        said(Command::new(program).arg("--help"))?;
        times.push(begun.elapsed());
    }
    times.sort();
    let median = times[times.len() / 2];
    eprintln!("--help takes {median:?}");
    expect(!is_dist || median < HELP_MAX, &format!("--help takes {median:?}"))
}

fn expect(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

fn make_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder)
        .map_err(|error| format!("{} cannot be made: {error}", folder.display()))
}

/// Runs a command that prints for itself.
pub(crate) fn show(command: &mut Command) -> Result<(), String> {
    let words: Vec<&OsStr> =
        [command.get_program()].into_iter().chain(command.get_args()).collect();
    eprintln!("· {}", words.join(OsStr::new(" ")).display());
    let status = command.status();
    let status = status.map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    expect(status.success(), &format!("{} ended with {status}", command.get_program().display()))
}

/// Whether the standard library of a target is here.
fn is_installed(target: &str) -> Result<bool, String> {
    let sysroot = said(Command::new("rustc").args(["--print", "sysroot"]))?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").exists())
}

/// The triple of this machine.
pub(crate) fn host() -> Result<String, String> {
    let version = said(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(ToOwned::to_owned).ok_or_else(|| "rustc names no host".to_owned())
}
