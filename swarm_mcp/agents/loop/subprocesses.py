"""Running executables: text in, text and exit code out."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from typing import IO, NamedTuple

from swarm_mcp.processes import Reaper

LONGEST = 4 * 1024 * 1024  # bytes of output that are read; more is no answer
SHORT = 4096  # bytes that every pipe takes at once
# A command begins once the reaper knows it: if this process were killed before, nothing would end the command.
_ON_WORD = 'read -r go || exit 125; exec "$@"'


class Finished(NamedTuple):
    """The end of a command. `code` is that of a shell: 128 plus the signal for a killed command."""

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
    reaper: Reaper | None = None,
    together: bool = False,
) -> Finished:
    """Run `argv` with the text `stdin` as its input. A command that cannot be started ends with 126 and a reason in
    `err`.

    `seconds` 0: no limit. With a `reaper` the command has a process group of its own, and is ended at the time limit.
    `together`: standard error goes to `out`. Output goes through files, so that a background process with an open
    output does not keep the command from ending.
    """
    begun = time.monotonic()
    data = stdin.encode("utf-8", "replace")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(
                ["/bin/sh", "-c", _ON_WORD, argv[0], *argv] if reaper else argv, stdin=subprocess.PIPE, stdout=out,
                stderr=subprocess.STDOUT if together else err, env=dict(env), cwd=cwd,
                start_new_session=reaper is not None,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            why = f"{argv[0]}: {getattr(error, 'strerror', None) or error}"
            return Finished(126, why if together else "", why)
        timed_out = False
        try:
            if reaper:
                reaper.watch(child.pid)
            _give(child, (b"go\n" if reaper else b"") + data)
            child.wait(seconds or None)
        except subprocess.TimeoutExpired:
            timed_out = True
            _end(child, reaper)
        except BaseException:
            _end(child, reaper)
            raise
        if reaper:
            reaper.forget(child.pid)
        code = child.returncode
        if code < 0:
            code = 128 - code
        return Finished(code, _text(out), _text(err), timed_out, time.monotonic() - begun)


def _give(child: subprocess.Popen[bytes], data: bytes) -> None:
    """Write all of `data` to standard input. Long data is written by a thread: the child need not read it."""

    def write() -> None:
        try:
            assert child.stdin
            with child.stdin as pipe:
                pipe.write(data)
        except OSError:
            return  # it has closed its input, or ended

    if len(data) <= SHORT:
        write()
    else:
        threading.Thread(target=write, daemon=True).start()


def _end(child: subprocess.Popen[bytes], reaper: Reaper | None) -> None:
    if reaper:
        reaper.end(child.pid, child)
    else:
        child.kill()
        child.wait()


def _text(file: IO[bytes]) -> str:
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    if size <= LONGEST:
        return file.read().decode("utf-8", "replace")
    head = file.read(LONGEST // 2)
    file.seek(size - LONGEST // 2)
    left = f"\n[{size - LONGEST} bytes left out]\n".encode()
    return (head + left + file.read()).decode("utf-8", "replace")
