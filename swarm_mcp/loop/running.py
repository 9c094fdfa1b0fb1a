"""Starting executables: text in, text and exit code out."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from typing import NamedTuple

from swarm_mcp.loop.undertaker import Undertaker

LONGEST = 4 * 1024 * 1024  # bytes of output that are read; what talks more is not answering


class Ran(NamedTuple):
    """How a command ended. `code` as shells count: 128 and the signal that ended it."""

    code: int
    out: str
    err: str
    timed_out: bool = False
    seconds: float = 0.0


def run(
    argv: list[str],
    stdin: str = "",
    *,
    env: Mapping[str, str],
    cwd: str,
    seconds: float = 0.0,
    undertaker: Undertaker | None = None,
    together: bool = False,
) -> Ran:
    """Run `argv` on the text `stdin`. What cannot be started ends with 126 and says why on `err`.

    `seconds` 0: no limit. With an `undertaker` the command has a process group of its own, which is ended when time
    is up. `together`: standard error goes to `out`. Output goes through files: a command that leaves something
    running behind, which keeps its output open, is over all the same.
    """
    begun = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as given:
        given.write(stdin.encode("utf-8", "replace"))
        given.seek(0)
        try:
            child = subprocess.Popen(
                argv, stdin=given, stdout=out, stderr=subprocess.STDOUT if together else err, env=dict(env), cwd=cwd,
                start_new_session=undertaker is not None,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            why = f"{argv[0]}: {getattr(error, 'strerror', None) or error}"
            return Ran(126, why if together else "", why)
        timed_out = False
        try:
            if undertaker:
                undertaker.watch(child.pid)
            child.wait(seconds or None)
        except subprocess.TimeoutExpired:
            timed_out = True
            _end(child, undertaker)
        except BaseException:
            _end(child, undertaker)
            raise
        if undertaker:
            undertaker.forget(child.pid)
        code = child.returncode if child.returncode >= 0 else 128 - child.returncode
        return Ran(code, _text(out), _text(err), timed_out, time.monotonic() - begun)


def _end(child: subprocess.Popen, undertaker: Undertaker | None) -> None:
    if undertaker:
        undertaker.end(child.pid, child)
    else:
        child.kill()
        child.wait()


def _text(file) -> str:
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    if size <= LONGEST:
        return file.read().decode("utf-8", "replace")
    head = file.read(LONGEST // 2)
    file.seek(size - LONGEST // 2)
    left = f"\n[{size - LONGEST} bytes left out]\n".encode()
    return (head + left + file.read()).decode("utf-8", "replace")
