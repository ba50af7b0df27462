//! What the words of a server look like. Looked for in the order of this table: what is said of a
//! wrong flag or a missing model is often followed by the trouble that it made.

use inferometer_model::deployment::LikelyCause;

const PHRASES: &[(LikelyCause, &[&str])] = &[
    (
        LikelyCause::NoContainerDaemon,
        &[
            "cannot connect to the docker daemon",
            "is the docker daemon running",
            "failed to connect to the docker api",
            "cannot connect to podman",
            "unable to connect to podman socket",
        ],
    ),
    (
        LikelyCause::NoSuchImage,
        &[
            "pull access denied",
            "repository does not exist or may require",
            "manifest unknown",
            "requested access to the resource is denied",
            "failed to resolve reference",
            "no such image",
            "error: initializing source docker://",
            "short-name resolution enforced",
            "did not resolve to an alias",
        ],
    ),
    (
        LikelyCause::PortInUse,
        &[
            "address already in use",
            "port is already allocated",
            "couldn't bind to server socket",
            "couldn't bind http server socket",
            "rootlessport listen tcp",
            "errno 98",
        ],
    ),
    (
        LikelyCause::GatedModel,
        &[
            "you are trying to access a gated repo",
            "gatedrepoerror",
            "access to model",
            "must be authenticated to access it",
            "cannot access gated repo",
            "401 client error",
            "403 client error",
        ],
    ),
    (
        LikelyCause::NoSuchModel,
        &[
            "repositorynotfounderror",
            "is not a local folder and is not a valid model identifier",
            "repo id must be in the form",
            "does not appear to have a file named",
            "no such file or directory: '/models",
            "failed to load model",
            "error loading model",
            "failed to open gguf file",
            "gguf_init_from_file",
            "revisionnotfounderror",
            "entrynotfounderror",
            "we couldn't connect to 'https://huggingface.co'",
            "invalid repository id or local directory",
            "localentrynotfounderror",
        ],
    ),
    (
        LikelyCause::CannotSpread,
        &[
            "must be divisible by tensor parallel size",
            "must be divisible by `num_shards`",
            "assert numerator % denominator == 0",
            "pipeline parallelism is not supported",
        ],
    ),
    (
        LikelyCause::BadFlag,
        &[
            "unrecognized arguments",
            "error: unrecognized argument",
            "error: invalid argument",
            "unexpected argument",
            "invalid choice:",
            "the following arguments are required",
            "unknown flag:",
            "unknown shorthand flag",
            "unknown argument:",
            "no such option:",
            "found argument '",
            "expected one argument",
        ],
    ),
    (
        LikelyCause::DiskFull,
        &[
            "no space left on device",
            "errno 28",
            "not enough free disk space",
            "disk quota exceeded",
        ],
    ),
    (
        LikelyCause::OutOfMemory,
        &[
            "cuda out of memory",
            "hip out of memory",
            "outofmemoryerror",
            "torch.cuda.outofmemory",
            "cuda error: out of memory",
            "cudamalloc failed",
            "hipmalloc failed",
            "hiperroroutofmemory",
            "cudaerrormemoryallocation",
            "no available memory for the cache blocks",
            "larger than the maximum number of tokens that can be stored in kv cache",
            "larger than the available kv cache memory",
            "less than desired gpu memory utilization",
            "not enough memory. please try to increase --mem-fraction-static",
            "not enough memory to handle",
            "unable to allocate",
            "failed to allocate buffer",
            "ggml_gallocr_reserve_n: failed to allocate",
            "cannot allocate memory",
            "defaultcpuallocator: can't allocate",
            "std::bad_alloc",
            "oom-kill",
            "out of memory",
        ],
    ),
    // Others complain of sizes in these words, and go on.
    (LikelyCause::CannotSpread, &["is not divisible by"]),
    (
        LikelyCause::NoGpu,
        &[
            "no cuda gpus are available",
            "no cuda-capable device is detected",
            "found no nvidia driver",
            "torch not compiled with cuda enabled",
            "no hip gpus are available",
            "no rocm-capable device",
            "failed to infer device type",
            "could not select device driver",
            "nvidia-container-cli: initialization error",
            "libcuda.so.1: cannot open shared object file",
            "unresolvable cdi devices",
            "cuda driver version is insufficient",
            "invalid device ordinal",
        ],
    ),
    (
        LikelyCause::MissingLibrary,
        &[
            "cannot open shared object file",
            "modulenotfounderror",
            "no module named",
            "importerror",
            "packagenotfounderror",
            "undefined symbol:",
            "`glibc_",
            "version `glibcxx_",
        ],
    ),
    (
        LikelyCause::Permission,
        &["permission denied", "permissionerror", "operation not permitted", "errno 13"],
    ),
];

/// The last lines of a text.
pub(super) fn end_of(said: &str, lines: usize) -> &str {
    let begins = said.trim_end().rmatch_indices('\n').nth(lines.saturating_sub(1));
    begins.map_or(said, |(at, _)| &said[at + 1..])
}

/// What the first of them that is found says.
pub(super) fn likely(said: &str) -> Option<LikelyCause> {
    let said = said.to_lowercase();
    let is_said = |phrases: &[&str]| phrases.iter().any(|phrase| said.contains(phrase));
    PHRASES.iter().find(|(_, phrases)| is_said(phrases)).map(|(cause, _)| *cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say_is_understood() {
        use LikelyCause as C;
        for (said, expected) in [
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
            assert_eq!(likely(said), Some(expected), "{said}");
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
