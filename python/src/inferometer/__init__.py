"""Measures LLM inference servers with the program `inferometer`, which this package contains.

>>> import inferometer
>>> summary = inferometer.run(requests=20, concurrency=4)  # without a URL: the embedded engine
>>> summary["verdict"]
'valid'

Everything is done by the program; this module starts it and reads the JSON document that it prints.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from importlib import metadata
from typing import Any, Union

__all__ = ["Flag", "InferometerError", "load", "program", "run"]
__version__ = metadata.version("inferometer")

Value = Union[int, float, str, "os.PathLike[str]"]
Flag = Union[None, bool, Value, Sequence[Value]]
"""The value of a flag: `True` sets it, `None` and `False` leave it out, a sequence repeats it."""


class InferometerError(RuntimeError):
    """The program ended with an exit code that is not 0.

    `exit_code` is 2 for wrong arguments, 3 for a server that is not usable, 4 for an invalid run, 99
    for an SLO or requirement that was not met, 130 or 143 for an interruption, and 1 for an error of
    the program itself. `result` is the document
    that was printed all the same, as for an invalid run, or `None`.
    """

    def __init__(self, exit_code: int, message: str, result: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.message = message
        self.result = result

    def __str__(self) -> str:
        return f"{self.message} (exit code {self.exit_code})"


def program() -> str:
    """Return the path of the program: that of this package, or else the one on the `PATH`."""
    name = "inferometer" + (sysconfig.get_config_var("EXE") or "")
    user = sysconfig.get_preferred_scheme("user") if hasattr(sysconfig, "get_preferred_scheme") else None
    for scheme in (None, user):
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError("the program `inferometer` is not installed: pip install inferometer")
    return found


def run(target: str | os.PathLike[str] | None = None, **flags: Flag) -> dict[str, Any]:
    """Measure a server once and return the summary of the run, as `inferometer run --json` prints it.

    `target` is the URL of a server or an experiment file; without it the embedded engine is measured.
    Keyword arguments are flags: `run(url, concurrency=8, requests=100, slo=["ttft<500ms"])` is
    `inferometer run URL --concurrency=8 --requests=100 --slo=ttft<500ms`. The run is stored in the
    folder `output`, by default `./runs`.

    Raises `InferometerError` for everything but exit code 0; an invalid run is its `result`.
    """
    words = ["run"] if target is None else ["run", os.fspath(target)]
    return _document([*words, "--json", "--quiet", *_flags(flags)])


def load(name: str | os.PathLike[str], *, output: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Return the summary of a stored run, set or import.

    `name` is its folder, its id, the beginning of one, or `latest`; `output` is the folder of stored
    runs, by default `./runs`. Raises `InferometerError` where it is not there or cannot be read.
    """
    return _document(["report", os.fspath(name), "--format=json", *_flags({"output": output})])


def _flags(flags: dict[str, Flag]) -> list[str]:
    words = []
    for key, value in flags.items():
        name = "--" + key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(name)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            words += [f"{name}={_text(one)}" for one in value]
        elif value is not None and value is not False:
            words.append(f"{name}={_text(value)}")
    return words


def _text(value: Value) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _document(words: list[str]) -> dict[str, Any]:
    with subprocess.Popen(
        [program(), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as child:
        while True:
            try:
                printed, complaint = child.communicate()
                break
            except KeyboardInterrupt:
                # The program received the signal too: it drains, saves and ends by itself.
                continue
    result: dict[str, Any] | None = json.loads(printed) if printed.strip() else None
    if child.returncode != 0 or result is None:
        raise InferometerError(child.returncode, _message(complaint, child.returncode, result), result)
    return result


def _message(complaint: str, exit_code: int, result: dict[str, Any] | None) -> str:
    said = complaint.strip()
    if said.startswith("error: "):
        return said[len("error: ") :]
    if result is not None and exit_code == 4:
        return f"the run is {result.get('verdict')}: see `checks` and `warnings` of the result"
    if result is not None and exit_code == 99:
        return "an SLO or a requirement was not met: see `slos` and `requirements` of the result"
    if result is not None and 128 < exit_code:
        return "interrupted: the result is that of the requests until then"
    return said or "the program failed without a message"
