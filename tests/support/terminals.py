"""A person's terminal: a shell of its own for a test to type into."""

import os
import pty
import shlex
import subprocess

from support.fixtures import BARE_PYTHON, SWARM, Done, Ground, wait_for

# The terminal becomes the shell's controlling one, as at a login.
LOGIN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp('sh', ['sh'])"


class Terminal:
    """A shell at a terminal of its own, for typed commands."""

    def __init__(self, ground: Ground, name: str):
        self.folder = ground.folder / name
        self.folder.mkdir()
        self._terminal, inner = pty.openpty()
        self.shell = subprocess.Popen(
            [*BARE_PYTHON, "-c", LOGIN], stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
            cwd=ground.repo,
        )  # fmt: skip
        os.close(inner)
        self._count = 0

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_exception) -> None:
        self.shell.kill()
        self.shell.wait()
        os.close(self._terminal)

    def types(self, line: str) -> Done:
        """Return the result of a typed line; its standard input stays the terminal."""
        self._count += 1
        out, err, code = (self.folder / f"{self._count}.{kind}" for kind in ("out", "err", "code"))
        line = f"{line} >{shlex.quote(str(out))} 2>{shlex.quote(str(err))}; echo $? >{shlex.quote(str(code))}\n"
        os.write(self._terminal, line.encode())
        wait_for(lambda: code.exists() and code.read_text().endswith("\n"), 60)
        os.set_blocking(self._terminal, False)
        os.read(self._terminal, 65536)  # its echo
        return Done(int(code.read_text()), out.read_text(), err.read_text())

    def swarm(self, *words: str) -> Done:
        """The command, typed here."""
        return self.types(shlex.join([*SWARM, *words]))

    @property
    def whoami(self) -> str:
        """Return the instance that commands act as here; empty for none."""
        done = self.swarm("whoami", "--json")
        return done.json["id"] if done.code == 0 else ""
