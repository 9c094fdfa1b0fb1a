"""Compares the answers of the checker with those of a hook alone: the same call in the same state, once each way.

Compared are exit status, output, processes started in the background, and every file of the home folder afterwards. The
states are made by real commands and hooks; each way begins with the same files in the same places.
"""

import base64
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from support.check_payloads import CLIENTS, ME, Case
from support.fixtures import BARE_PYTHON, FOLDERS, SWARM
from support.patience import HURRY, PROCESSES
from swarm_mcp.checker import MEMORY
from swarm_mcp.runtimes import bundle

SIDES = Path(__file__).with_name("check_sides.py")
LIMITS = json.dumps({module.__name__: names for module, names in (*HURRY.items(), *PROCESSES.items())})
AGAIN = 6  # times that a call with different answers is made again each way, for a difference that time makes
_TIMES = (
    (re.compile(rb"\.18[0-9a-f]{14}-[0-9a-f]{16}-[0-9a-f]+"), b".TIME-PID"),
    (re.compile(rb"(?<!\d)(1[6-9]\d{8}\.\d+|1[6-9]\d{17}|1[6-9]\d{8})(?!\d)"), b"TIME"),
    (re.compile(rb"\b\d+(\.\d+)? ?(s|seconds?|min|ms)\b"), b"SPAN"),
    (re.compile(rb"\b\d+:\d{4,}\b"), b"DEVICE:INODE"),
)


_UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Answer(NamedTuple):
    """All that a call has led to; `files`: the changed files of the home, by name."""

    status: int
    output: bytes
    started: list[list[str]]
    files: list[tuple[bytes, bytes]]


class Side:
    """A process that answers calls one way (``check_sides``)."""

    def __init__(self, home: Path, *words: str):
        home.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            [*BARE_PYTHON, "-E", "-s", str(SIDES), words[0], json.dumps(FOLDERS), LIMITS, *words[1:]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/",
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(home), **MEMORY},
        )  # fmt: skip
        self.pid = self._answer()["pid"]

    def ask(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a call."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(call).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        assert line, "this side has ended"
        return dict(json.loads(line))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def memory(self) -> int:
        """Return the bytes that the process does not share."""
        text = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text()
        return 1024 * sum(int(size) for size in re.findall(r"^Private_\w+: +(\d+)", text, re.MULTILINE))


class BothWays:
    """A ground in `folder`, its states, and both sides."""

    def __init__(self, folder: Path):
        self.root = folder.resolve()
        self.home, self.repo, self.other = self.root / "home", self.root / "repo", self.root / "other"
        self.plugin = self.root / "plugin"
        self.environment = {
            "HOME": str(self.home), "PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin", "LANG": "C.UTF-8",
            "TMPDIR": str(self.root / "tmp"), "PWD": str(self.repo), "SWARM_UVX": "off",
        }  # fmt: skip
        bundle.write(self.plugin, local=True)
        self._known = {ME.encode()}  # ids; others are made anew each time
        self._lay_out()
        own = self.root / "sides"
        self.checker, self.alone = Side(own, "checker"), Side(own, "alone", str(self.plugin))
        self._states = {name: self._made(name) for name in ("alone", "lock", "writer", "turn", "person", "all")}
        self._states["closed"] = self._states["lock"]
        self._in_place: dict[str, tuple[Any, ...]] = {}
        self._state = ""
        self.by_time = 0  # calls with different answers that were the same when they were made again

    def close(self) -> None:
        """End both sides."""
        self.checker.close()
        self.alone.close()

    # ------------------------------------------------------------------------------------------------ the ground

    def _lay_out(self) -> None:
        for folder in (self.home, self.repo / "src" / "held", self.other, self.root / "tmp"):
            folder.mkdir(parents=True)
        for name in (
            "free.py",
            "held.py",
            "written.py",
            "dirty.py",
            "src/app.py",
            "src/held/a.py",
            "Ünï.md",
            "notes.md",
        ):
            (self.repo / name).write_text("a\nb\nc\n")
        (self.other / "x.py").write_text("a\n")
        (self.repo / "link.py").symlink_to("held.py")
        (self.repo / "linked").symlink_to("src")
        for repo in (self.repo, self.other):
            self._git(repo, "init", "-q")
            self._git(repo, "add", "-A")
            self._git(repo, "commit", "-qm", "first")
        # Uncommitted from the beginning, in all states, so that the repository stays as it is: the peer's and a person's.
        (self.repo / "written.py").write_text("a\nb\nc\nthe peer's\n")

    def _git(self, repo: Path, *words: str) -> None:
        given = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
        subprocess.run(["git", "-C", repo, *given, *words], check=True, env=self.environment)

    def swarm(self, *words: str) -> str:
        """Run a command of swarm's in the repository; return its output."""
        run = subprocess.run([*SWARM, *words], cwd=self.repo, env=self.environment, stdout=subprocess.PIPE, check=True)
        return run.stdout.decode()

    def _made(self, name: str) -> Path:
        """Make a state by real hooks and commands; return the folder with a copy of the home."""
        _remove(self.home)
        self.home.mkdir()
        self._set("dirty.py", "a\nb\nc\n")
        (self.repo / "written.py").write_text("a\nb\nc\n")
        os.utime(self.repo / "written.py", (time.time() - 600,) * 2)
        begin = {"session_id": ME, "cwd": str(self.repo), "hook_event_name": "SessionStart", "source": "startup"}
        for client in CLIENTS:
            self._hook("session_start", begin, client=client)
        peer = json.loads(
            self.swarm(
                "register", str(self.repo), "--label", "role:peer session:abc", "--lease-seconds", "86400", "--json"
            )
        )
        if name in ("lock", "all"):
            self.swarm("lock", "held.py", "--as", peer["id"])
            self.swarm("lock", "src/held", "--as", peer["id"])
            self.swarm("lock", "Ünï.md", "--as", peer["id"])
        if name in ("writer", "turn", "all"):
            changes = {"SWARM_PROTECT": "turn"} if name == "turn" else {}
            begin["session_id"] = "peer-session"
            self._hook("session_start", begin)
            call = {"tool_name": "Edit", "tool_use_id": "p1", "hook_event_name": "PreToolUse"}
            given = {"file_path": str(self.repo / "written.py"), "old_string": "c\n", "new_string": "c\nthe peer's\n"}
            self._hook("pre_tool_use", {**begin, **call, "tool_input": given}, changes)
        (self.repo / "written.py").write_text("a\nb\nc\nthe peer's\n")
        if name in ("person", "all"):
            self._set("dirty.py", "a\nb\nc\na person's\n")
        self._known.add(peer["id"].encode())
        kept = self.root / "states" / name
        shutil.copytree(self.home, kept / "home", symlinks=True)
        shutil.copytree(self.repo, kept / "repo", symlinks=True)
        return kept

    def _set(self, name: str, text: str) -> None:
        (self.repo / name).write_text(text)
        os.utime(self.repo / name, (time.time() - 300,) * 2)  # long before any session's call

    def _hook(
        self, event: str, payload: dict[str, Any], changes: dict[str, str] | None = None, client: str = "claude-code"
    ) -> None:
        environment = [f"{name}={value}" for name, value in {**self.environment, **(changes or {})}.items()]
        call = {"client": client, "event": event, "folder": str(self.repo), "environment": environment}
        said = self.alone.ask({**call, "payload": base64.b64encode(json.dumps(payload).encode()).decode()})
        assert said["status"] == 0, said

    # --------------------------------------------------------------------------------------------------- a case

    def put(self, case: Case) -> None:
        """Put the case's state in place: the files that differ from it are replaced, and others removed."""
        kept = self._states[case.state]
        for folder, folders, _files in os.walk(self.home):  # one may be closed by the case before
            for path in (os.path.join(folder, name) for name in folders):
                if not os.path.islink(path) and not os.access(path, os.R_OK | os.W_OK | os.X_OK):
                    os.chmod(path, 0o700)
        if self._state != str(kept):
            for name in ("home", "repo"):
                _remove(self.root / name)
                shutil.copytree(kept / name, self.root / name, symlinks=True)
            self._state, self._in_place = str(kept), {}
            self._in_place = self._looked()
        changed = sorted({path for path, _ in self._looked().items() ^ self._in_place.items()})
        for path in reversed(changed):
            self._take_away(path, kept)
        for path in changed:
            self._put_back(path, kept)
        self._in_place = self._looked()
        if case.damage:
            self._damage(*case.damage)

    def _take_away(self, path: str, kept: Path) -> None:
        here, there = self.home / path, kept / "home" / path
        if here.is_dir() and not here.is_symlink():
            if not there.is_dir():
                _remove(here)
        elif os.path.lexists(here):
            here.unlink()

    def _put_back(self, path: str, kept: Path) -> None:
        here, there = self.home / path, kept / "home" / path
        if there.is_dir() and not here.is_dir():
            here.mkdir()
            shutil.copystat(there, here)
        elif there.is_dir():
            shutil.copystat(there, here)
        elif os.path.lexists(there) and not os.path.lexists(here):
            shutil.copy2(there, here, follow_symlinks=False)

    def _looked(self) -> dict[str, tuple[Any, ...]]:
        """Return the state of each file and folder of the home."""
        found: dict[str, tuple[Any, ...]] = {}
        for folder, folders, files in os.walk(self.home):
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                state = os.lstat(path)
                mark = (
                    (state.st_mode, state.st_ino)
                    if name in folders
                    else (state.st_mode, state.st_ino, state.st_size, state.st_mtime_ns)
                )
                found[os.path.relpath(path, self.home)] = mark
        return found

    def _damage(self, kind: str, number: int) -> None:
        files = sorted(path for path in self._in_place if not path.startswith(".swarm-mcp/swarm.db-"))
        path = self.home / files[number % len(files)]
        if kind in ("cut", "twice", "noise", "empty") and path.is_file():
            data = path.read_bytes()
            path.write_bytes(
                {
                    "cut": data[: len(data) // 2],
                    "twice": data * 2,
                    "noise": data[:9] + b"\0\xff\n" + data[40:],
                    "empty": b"",
                }[kind]
            )
            os.utime(path, (1.7e9, 1.7e9))
        elif kind == "closed":
            path.chmod(0)
        elif kind in ("folder", "pipe", "link", "gone"):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
            if kind == "folder":
                path.mkdir()
            elif kind == "pipe":
                os.mkfifo(path)
            elif kind == "link":
                path.symlink_to(self.repo / "held.py")

    def ask(self, side: Side, case: Case) -> Answer:
        """Return a side's answer to a case in its state."""
        self.put(case)
        before = self._looked()
        places = (
            (b"REPO", str(self.repo)),
            (b"OTHER", str(self.other)),
            (b"ROOT", str(self.root)),
            (b"HOMEDIR", str(self.home)),
        )
        payload = case.payload
        for name, place in places:
            payload = payload.replace(name, place.encode())
        told: dict[str, str | None] = {
            **self.environment,
            **({"SWARM_FAIL": "closed"} if case.state == "closed" else {}),
        }
        told.update(case.changes)
        whole = {name: value for name, value in told.items() if value is not None}
        for name, place in places:
            whole = {key: value.replace(name.decode(), place) for key, value in whole.items()}
        said = side.ask({
            "client": case.client, "event": case.event, "payload": base64.b64encode(payload).decode(), "parent": self.alone.pid,
            "folder": case.folder.replace("REPO", str(self.repo)).replace("OTHER", str(self.other)),
            "environment": [f"{name}={value}" for name, value in whole.items()],
        })  # fmt: skip
        after = self._looked()
        changed = {path for path, _ in before.items() ^ after.items()}
        files = sorted(filter(None, (self._file(path) for path in changed)))
        started = [[str(word) for word in words] for words in said["started"]]
        return Answer(said["status"], self._plain(base64.b64decode(said["output"])), self._started(started), files)

    def _started(self, started: list[list[str]]) -> list[list[str]]:
        """Return the commands without the part that starts the coordinator: a plugin's is longer."""
        return [["swarm-mcp", *words[words.index("-c") + 2 :]] if "-c" in words[:5] else words for words in started]

    def _plain(self, data: bytes) -> bytes:
        """Return `data` without times, pids and new ids."""
        for pattern, word in _TIMES:
            data = pattern.sub(word, data)
        data = _UUID.sub(lambda found: found[0] if found[0] in self._known else b"UUID", data)
        return data

    def _file(self, path: str) -> tuple[bytes, bytes] | None:
        whole = self.home / path
        name = self._plain(os.fsencode(path))
        if path.endswith(("swarm.db-wal", "swarm.db-shm")):
            return None  # they come and go with the last connection, such as that of `_rows`
        if not os.path.lexists(whole):
            return (name, b"(gone)")
        if whole.is_symlink():
            return (name, b"link " + os.fsencode(os.readlink(whole)))
        if whole.is_dir():
            return (name, b"folder")
        if not whole.is_file():
            return (name, b"(odd)")
        if not whole.stat().st_mode & 0o400:
            return (name, b"(no content)")  # a version of a file that was not there
        if "swarm.db" in path:
            rows = self._rows(whole) if path.endswith(".db") else b""
            return (name, rows) if rows not in (b"", self._rows(Path(self._state, "home", path))) else None
        return (name, self._plain(whole.read_bytes()))

    def _rows(self, path: Path) -> bytes:
        """Return the store's rows; the file's own bytes if it is no store."""
        try:
            connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=0", uri=True)
            try:
                return self._plain("\n".join(connection.iterdump()).encode("utf-8", "surrogatepass"))
            finally:
                connection.close()
        except sqlite3.Error:  # damaged on purpose
            return b"(no store)"

    def difference(self, case: Case) -> str:
        """Return the difference between both ways; an empty text without one, also after some further tries."""
        ours, hooks = self.ask(self.checker, case), self.ask(self.alone, case)
        if ours == hooks:
            return ""
        for _ in range(AGAIN):
            ours_again, hooks_again = self.ask(self.checker, case), self.ask(self.alone, case)
            if ours_again == hooks_again:
                self.by_time += 1
                return ""
        return f"{case!r:.600}\n  checker: {self._shown(ours, hooks)}\n  alone:   {self._shown(hooks, ours)}"

    @staticmethod
    def _shown(one: Answer, other: Answer) -> str:
        parts = [
            f"{name} {value!r:.700}" for name, value in zip(Answer._fields[:3], one) if value != getattr(other, name)
        ]
        parts += [
            f"{name.decode('utf-8', 'replace')}: {data!r:.400}"
            for name, data in one.files
            if (name, data) not in other.files
        ]
        return "; ".join(parts) or "(nothing more)"


def _remove(folder: Path) -> None:
    """Remove a folder that a process of an earlier call may still be writing into."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
