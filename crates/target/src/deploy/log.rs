//! What a server prints, kept bounded: its beginning and its end. It is read however much it is, so
//! that its writer never waits, and keys are struck out before anything reaches the file.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use inferometer_model::Redactor;
use inferometer_model::deployment::LikelyCause;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Deserialize;

use super::process::{Stopwatch, until};

const HEAD_BYTES: usize = 256 << 10;
const RING_BYTES: usize = 256 << 10;
/// The last line of the beginning is kept whole if it is no longer.
const LINE_BYTES: usize = 16 << 10;
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Processes that outlive a server hold its pipe open; they are not listened to for longer.
const LAST_WORDS: Duration = Duration::from_millis(500);
const LOOK_EVERY_MS: u16 = 100;
const SHOWN_LINE_CHARS: usize = 400;

#[derive(Debug)]
pub(super) struct Log {
    buffer: Arc<Mutex<LogBuffer>>,
    reader: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct LogBuffer {
    head: Vec<u8>,
    is_head_full: bool,
    /// At most twice `RING_BYTES`; its end counts.
    ring: Vec<u8>,
    left_out: u64,
    redactor: Redactor,
    file: File,
    head_written: usize,
    head_length: u64,
    last_write: Stopwatch,
    is_dirty: bool,
    is_closing: bool,
    trouble: Option<String>,
}

impl Log {
    /// The writer is for the standard output and error of processes; reading ends when it is closed
    /// any more.
    pub(super) fn create(path: &Path, redactor: Redactor) -> io::Result<(Self, PipeWriter)> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let buffer = Arc::new(Mutex::new(LogBuffer {
            head: Vec::new(),
            is_head_full: false,
            ring: Vec::new(),
            left_out: 0,
            redactor,
            file: File::create(path)?,
            head_written: 0,
            head_length: 0,
            last_write: Stopwatch::start(),
            is_dirty: false,
            is_closing: false,
            trouble: None,
        }));
        let (reader, writer) = io::pipe()?;
        let shared = buffer.clone();
        let reader = std::thread::Builder::new()
            .name("server-log".to_owned())
            .spawn(move || listen(reader, &shared))?;
        Ok((Self { buffer, reader: Some(reader) }, writer))
    }

    /// The last lines, fit to be shown.
    pub(super) fn last_lines(&self, count: usize) -> Vec<String> {
        let text = self.text();
        let shown: Vec<String> = text.lines().map(shown).filter(|line| !line.is_empty()).collect();
        shown[shown.len().saturating_sub(count)..].to_vec()
    }

    /// All that is kept.
    pub(super) fn text(&self) -> String {
        let buffer = locked(&self.buffer);
        let head = buffer.redacted(&buffer.head);
        head + &buffer.redacted(buffer.end_kept())
    }

    /// Waits until all output of an ended process is read.
    pub(super) fn settle(&self) {
        if let Some(reader) = &self.reader {
            until(LAST_WORDS, || reader.is_finished());
        }
    }

    /// Writes the end and stops listening. What could not be written, if anything.
    pub(super) fn close(&mut self) -> Option<String> {
        self.settle();
        locked(&self.buffer).is_closing = true;
        if let Some(reader) = self.reader.take() {
            // It looks at `is_closing` often, so this is soon.
            let _ = reader.join();
        }
        locked(&self.buffer).trouble.take()
    }
}

fn listen(mut pipe: PipeReader, shared: &Mutex<LogBuffer>) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let is_readable = {
            let mut waiting = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
            poll(&mut waiting, PollTimeout::from(LOOK_EVERY_MS)).is_ok_and(|ready| 0 < ready)
        };
        let count = match is_readable.then(|| pipe.read(&mut bytes)) {
            None => None,
            Some(Ok(count)) => Some(count),
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => None,
            Some(Err(_)) => Some(0),
        };
        let mut buffer = locked(shared);
        buffer.push(&bytes[..count.unwrap_or(0)]);
        let is_over = count == Some(0) || buffer.is_closing;
        buffer.write(is_over);
        if is_over {
            return;
        }
    }
}

impl LogBuffer {
    fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.is_dirty = true;
        let rest = self.keep_head(bytes);
        self.ring.extend_from_slice(rest);
        if 2 * RING_BYTES < self.ring.len() {
            let excess = self.ring.len() - RING_BYTES;
            self.ring.drain(..excess);
            self.left_out += excess as u64;
        }
    }

    /// What does not belong to the beginning any more.
    fn keep_head<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        if self.is_head_full {
            return bytes;
        }
        let plain = HEAD_BYTES.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(plain);
        self.head.extend_from_slice(head);
        if self.head.len() < HEAD_BYTES {
            return rest;
        }
        let room = (HEAD_BYTES + LINE_BYTES).saturating_sub(self.head.len());
        let line = rest.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        self.is_head_full = line.is_some() || room <= rest.len();
        let (line, rest) = rest.split_at(line.unwrap_or(rest.len()).min(room));
        self.head.extend_from_slice(line);
        rest
    }

    /// The end, from the beginning of a line on: half a key could not be struck out.
    fn end_kept(&self) -> &[u8] {
        let end = &self.ring[self.ring.len().saturating_sub(RING_BYTES)..];
        if end.len() == self.ring.len() && self.left_out == 0 {
            return end;
        }
        let line = end.iter().position(|byte| *byte == b'\n').map_or(1 << 10, |at| at + 1);
        &end[line.min(end.len())..]
    }

    fn redacted(&self, bytes: &[u8]) -> String {
        self.redactor.redact(&String::from_utf8_lossy(bytes))
    }

    fn write(&mut self, is_over: bool) {
        if !self.is_dirty {
            return;
        }
        let written = self.write_head(is_over).and_then(|()| {
            if is_over || WRITE_EVERY <= self.last_write.passed() {
                self.last_write = Stopwatch::start();
                self.is_dirty = false;
                return self.write_end();
            }
            Ok(())
        });
        if let Err(error) = written {
            self.trouble.get_or_insert(format!("its log could not be written: {error}"));
        }
    }

    /// Whole lines, as soon as they are there.
    fn write_head(&mut self, is_over: bool) -> io::Result<()> {
        let new = &self.head[self.head_written..];
        let lines = match new.iter().rposition(|byte| *byte == b'\n') {
            _ if is_over || self.is_head_full => new.len(),
            Some(end) => end + 1,
            None => 0,
        };
        if lines == 0 {
            return Ok(());
        }
        let text = self.redacted(&new[..lines]);
        self.head_written += lines;
        self.file.write_all(text.as_bytes())?;
        self.head_length += text.len() as u64;
        Ok(())
    }

    /// Over the end that was written before.
    fn write_end(&mut self) -> io::Result<()> {
        if self.ring.is_empty() {
            return Ok(());
        }
        let end = self.end_kept();
        let left_out = self.left_out + (self.ring.len() - end.len()) as u64;
        let mut text = self.redacted(end);
        if 0 < left_out {
            text.insert_str(0, &format!("\n[{left_out} bytes are left out here]\n"));
        }
        self.file.seek(SeekFrom::Start(self.head_length))?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(self.head_length + text.len() as u64)
    }
}

/// Without colours and the overwritten states of progress bars.
fn shown(line: &str) -> String {
    let last = line.rsplit('\r').find(|state| !state.trim().is_empty()).unwrap_or_default();
    let mut signs = last.chars();
    let mut plain = String::new();
    while let Some(sign) = signs.next() {
        if sign == '\u{1b}' {
            // `ESC [ … letter`
            let _ = signs.by_ref().skip(1).find(char::is_ascii_alphabetic);
        } else if !sign.is_control() || sign == '\t' {
            plain.push(sign);
        }
        if SHOWN_LINE_CHARS <= plain.len() {
            plain.push('…');
            break;
        }
    }
    plain.trim_end().to_owned()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Phrases of logs by which a cause is known; the first cause that is found counts.
static CAUSES: LazyLock<Causes> = LazyLock::new(|| {
    toml::from_str(include_str!("phrases.toml")).expect("a test reads the embedded table")
});

#[derive(Deserialize)]
struct Causes {
    cause: Vec<Cause>,
}

#[derive(Deserialize)]
struct Cause {
    cause: LikelyCause,
    phrases: Vec<String>,
}

/// The last lines of a text.
pub(super) fn end_of(text: &str, lines: usize) -> &str {
    let begins = text.trim_end().rmatch_indices('\n').nth(lines.saturating_sub(1));
    begins.map_or(text, |(at, _)| &text[at + 1..])
}

/// The cause of the first phrase that is found.
pub(super) fn likely(text: &str) -> Option<LikelyCause> {
    let text = text.to_lowercase();
    let is_printed = |it: &&Cause| it.phrases.iter().any(|phrase| text.contains(phrase));
    CAUSES.cause.iter().find(is_printed).map(|it| it.cause)
}

#[cfg(test)]
mod log_tests {
    use inferometer_model::Secret;

    use super::*;

    fn log_of(redactor: Redactor, speak: impl FnOnce(&mut PipeWriter)) -> (Log, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/server.log");
        let (mut log, mut writer) = Log::create(&path, redactor).unwrap();
        speak(&mut writer);
        drop(writer);
        assert_eq!(log.close(), None);
        (log, std::fs::read_to_string(path).unwrap())
    }

    /// Faults: 99.
    #[test]
    fn a_flood_is_kept_as_its_beginning_and_its_end() {
        let (log, written) = log_of(Redactor::default(), |writer| {
            for number in 0..200_000 {
                writeln!(writer, "line {number}").unwrap();
            }
        });
        assert!(written.starts_with("line 0\nline 1\n"), "{}", &written[..40]);
        assert!(written.ends_with("line 199999\n"));
        assert!(written.contains("bytes are left out here]"));
        assert!(written.len() < HEAD_BYTES + RING_BYTES + LINE_BYTES + 100, "{}", written.len());
        assert_eq!(log.last_lines(2), ["line 199998", "line 199999"]);
        let whole =
            |line: &str| line.is_empty() || line.starts_with("line ") || line.starts_with('[');
        assert!(written.lines().all(whole));
    }

    /// Faults: 111.
    #[test]
    fn keys_are_struck_out_of_the_file_wherever_they_stand() {
        let key = "sk-0123456789abcdef";
        let (log, written) = log_of(Redactor::new([&Secret::new(key)]), |writer| {
            for _ in 0..100_000 {
                writeln!(writer, "it is {key} and").unwrap();
            }
            write!(writer, "{key}").unwrap();
        });
        assert!(!written.contains("0123456789"));
        assert_eq!(log.last_lines(1), ["[redacted]"]);
    }

    #[test]
    fn what_was_said_early_is_on_disk_before_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        let (mut log, mut writer) = Log::create(&path, Redactor::default()).unwrap();
        writer.write_all(b"starting\n").unwrap();
        let has_it = || std::fs::read_to_string(&path).unwrap() == "starting\n";
        assert!(until(Duration::from_secs(20), has_it));
        // The pipe stays open for ever: closing does not wait for it.
        assert_eq!(log.close(), None);
        drop(writer);
    }

    #[test]
    fn lines_are_shown_without_what_only_a_terminal_understands() {
        assert_eq!(shown("\u{1b}[31mERROR\u{1b}[0m bad\u{7}"), "ERROR bad");
        assert_eq!(shown("10 %\r50 %\r100 %\r"), "100 %");
        assert_eq!(shown(&"x".repeat(5_000)).chars().count(), SHOWN_LINE_CHARS + 1);
    }
}

#[cfg(test)]
mod cause_tests {
    use super::*;

    #[test]
    fn what_servers_say_is_understood() {
        use LikelyCause as C;
        for (text, expected) in [
            (
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
                C::OutOfMemory,
            ),
            (
                "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
                C::OutOfMemory,
            ),
            (
                "[Errno 98] error while attempting to bind on address ('127.0.0.1', 8000)",
                C::PortInUse,
            ),
            ("OSError: You are trying to access a gated repo.", C::GatedModel),
            (
                "Total number of attention heads (28) must be divisible by tensor parallel size (8).",
                C::CannotSpread,
            ),
            ("ValueError: `num_heads` must be divisible by `num_shards`", C::CannotSpread),
            ("    assert numerator % denominator == 0", C::CannotSpread),
            ("Pipeline parallelism is not supported for this model.", C::CannotSpread),
            ("AssertionError: 25 is not divisible by 4", C::CannotSpread),
            ("WARN 100 is not divisible by 16\nCUDA out of memory.", C::OutOfMemory),
            ("api_server.py: error: unrecognized arguments: --max-model", C::BadFlag),
            ("gguf_init_from_file: failed to open GGUF file 'x.gguf'", C::NoSuchModel),
            ("RuntimeError: Found no NVIDIA driver on your system.", C::NoGpu),
            ("ImportError: libcuda.so.1: cannot open shared object file", C::NoGpu),
            ("ModuleNotFoundError: No module named 'vllm'", C::MissingLibrary),
            ("OSError: [Errno 28] No space left on device", C::DiskFull),
            ("docker: Error response from daemon: pull access denied for x", C::NoSuchImage),
            (
                "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
                C::NoContainerDaemon,
            ),
            ("open /dev/kfd: Permission denied", C::Permission),
        ] {
            assert_eq!(likely(text), Some(expected), "{text}");
        }
        assert_eq!(likely("INFO: Application startup complete."), None);
        assert_eq!(likely(""), None);
    }

    #[test]
    fn an_image_that_is_pulled_is_not_an_image_that_is_missing() {
        let pulled =
            "Unable to find image 'example/server:1' locally\n1: Pulling from example/server\n";
        assert_eq!(likely(pulled), None);
        let then = format!("{pulled}torch.OutOfMemoryError: CUDA out of memory.");
        assert_eq!(likely(&then), Some(LikelyCause::OutOfMemory));
    }

    #[test]
    fn the_end_is_so_many_lines() {
        assert_eq!(end_of("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(end_of("a\nb", 2), "a\nb");
        assert_eq!(end_of("", 2), "");
    }
}
