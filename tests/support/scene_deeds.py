"""The deeds that ``support.hostile_calls`` draws, done in a ``Shared`` scene."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.scenes import ME, PEER, not_a_pipe
from support.shared_scenes import Shared, remove

THIRD = "33333333-3333-4333-8333-333333333333"


def happens(scene: Shared, kind: str, about: Any) -> None:
    """Let one deed happen; an impossible one does nothing."""
    with contextlib.suppress(FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError):
        DEEDS[kind](scene, about)


def _bash(scene: Shared, who: str, command: str) -> None:
    scene.asks(scene.payload("Bash", {"command": command}, who), who == PEER)


def _change(scene: Shared, name: str) -> None:
    (scene.work / name).parent.mkdir(parents=True, exist_ok=True)
    not_a_pipe(scene.work / name).write_text(f"by a person {time.time_ns()}")


def _lock(scene: Shared, about: tuple[str, bool]) -> None:
    place, is_own = about
    with contextlib.suppress(Exception):  # the other one has it, or it is no place for a lock
        scene.locks((scene.peer, scene.me)[is_own], scene.work / place, as_pattern="*" in place)


def _row(scene: Shared, about: tuple[str, str, dict[str, Any]]) -> None:
    place, whose, columns = about
    more = dict(columns)
    path = os.path.normpath(scene.work / place)
    keys = {"KEY": path, None: None, "nocase": "nocase:" + path.lower(), "glob": "glob:" + path, "other": "/elsewhere"}
    more["path_key"] = keys[more["path_key"]]
    owner = {"peer": scene.peer["id"], "own": scene.me["id"], "gone": "gone", "unknown": "unknown"}[whose]
    kind = more.pop("type")
    scene.insert(
        "context",
        id=f"row-{place}",
        instance_id=owner,
        file=path,
        type=kind,
        content="busy",
        scope=str(scene.work),
        **more,
    )


def _store(scene: Shared, about: tuple[str, str]) -> None:
    what, whose = about
    me, peer, scope = scene.me["id"], scene.peer["id"], str(scene.work)
    recipient = {"own": me, "read": me, "peer": peer}.get(whose)
    if what == "notice":
        scene.insert("messages", id=99, scope=scope, sender="system", recipient=recipient, content="x")
        scene.insert("swarm_notices", message_id=99, instance_id=recipient, file="x")
    elif what == "message":
        scene.insert("messages", scope=scope, sender=peer, recipient=recipient, content="x", read=int(whose == "read"))
    elif what == "peer has gone":
        scene.execute("UPDATE swarm_sessions SET client_pid = 4194305, client_start = '0' WHERE instance_id = ?", peer)
    elif what == "unregistered":
        scene.execute("DELETE FROM swarm_sessions WHERE instance_id = ?", me)
    elif what == "peer's session row has gone":
        scene.execute("DELETE FROM swarm_sessions WHERE instance_id = ?", peer)
    elif what == "a root":
        root = {"same": scope, "linked": f"{scene.work}/linked", "odd": "ünï\nx"}[whose]
        scene.execute("UPDATE instances SET root = ? WHERE id = ?", root, peer)
    elif what == "file root":
        scene.execute("UPDATE instances SET file_root = ? WHERE id = ?", f"{scope}/sub", me)
    elif what == "a directory":
        scene.execute("UPDATE instances SET directory = ? WHERE id = ?", "/nowhere\n", me)
    else:
        folder = str(scene.other) if whose else scope
        scene.insert(
            "instances",
            id="third",
            scope=folder,
            directory=folder,
            root=folder,
            file_root=folder,
            pid=1,
            label="identity:t third",
        )
        scene.insert("swarm_sessions", runtime="codex", session_id=THIRD, instance_id="third", client_pid=1, state="active",
                     last_seen=int(time.time()), lease_seconds=86400)  # fmt: skip


def _mark(scene: Shared, name: str) -> None:
    place = scene.state / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if "." in name:
        place.write_text("x\n")
    else:
        place.mkdir(exist_ok=True)


def _journal_of(scene: Shared, whose: str) -> Path:
    own, peer = scene.journal(), scene.journal(PEER)
    third = scene.place / f"codex.{THIRD}"
    return {
        "own": own, "peer": peer, "third": third, "part": own.with_name(own.name + ".1"), "own part": own.with_name(own.name + ".1"),
        "peer part": peer.with_name(peer.name + ".1"), "agents": own.with_name(own.name + ".agents"),
    }[whose]  # fmt: skip


def _filled(scene: Shared, text: bytes, at_ns: int = 0) -> bytes:
    state = (scene.work / "notes.md").lstat()
    now = f"{state.st_ctime_ns} {state.st_ino} {state.st_size}".encode()
    text = text.replace(b"WORK", bytes(scene.work)).replace(b"OTHER", bytes(scene.other)).replace(b"STATE", now)
    return b"%d" % at_ns + text[1:] if text.startswith(b"T") else text


def _entry(scene: Shared, about: tuple[str, bytes, int]) -> None:
    whose, line, age = about
    path = _journal_of(scene, whose)
    at_ns = time.time_ns() - age * 10**9
    first = b""
    if not path.exists() and "part" not in whose:
        session, runtime = {"own": (ME, scene.runtime)}.get(whose, (THIRD, "codex"))
        first = b"\n%d session - %s\0%s\0%s\n" % (at_ns - 10**9, runtime.encode(), session.encode(), bytes(scene.work))
    with not_a_pipe(path).open("ab") as file:
        file.write(first + b"\n" + _filled(scene, line, at_ns))


def _settled(scene: Shared, about: tuple[str, str]) -> None:
    head, key = about
    data = not_a_pipe(scene.journal(PEER)).read_bytes().lstrip(b"\n")
    folder = scene.state / "settled" / scene.place.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / data.partition(b" ")[0].decode()).write_bytes(
        head.encode() + b"\n" + _filled(scene, f"\0{key}\n".encode()) * bool(key)
    )


def _journal(scene: Shared, about: tuple[str, str]) -> None:
    whose, how = about
    path = _journal_of(scene, whose)
    data = path.read_bytes() if path.is_file() else b""
    if path.exists():
        path.unlink()
    if how == "gone":
        return
    if how == "link":
        path.with_name("aside").write_bytes(data)
        path.symlink_to(path.with_name("aside"))
    elif how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "no first line":
        path.write_bytes(b"\n".join(line for line in data.split(b"\n") if b" session " not in line))
    elif how == "large":
        path.write_bytes(data + b"\n" + b"%d over - Bash\0%s\n" % (time.time_ns() - 10**11, bytes(scene.work)) * 6000)
    elif how == "cut":
        path.write_bytes(data[:-9])
    else:
        folder = {"other folder": scene.other, "linked folder": scene.work / "linked" / ".."}[how]
        path.write_bytes(data.replace(b"\0" + bytes(scene.work) + b"\n", b"\0" + bytes(folder) + b"\n", 1))


def _file(scene: Shared, about: tuple[str, str]) -> None:
    name, how = about
    path = scene.work / name
    if how in ("empty", "unreadable", "run", "hard link") and not path.exists():
        path.write_text("x\n")
    elif how in ("link", "folder", "gone", "pipe", "large", "dangling") and os.path.lexists(path):
        remove(path)
    if how == "link":
        path.symlink_to(scene.work / "other.md")
    elif how == "dangling":
        path.symlink_to(scene.work / "nowhere.md")
    elif how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "large":
        path.write_bytes(b"x" * ((1 << 20) + 1))
    elif how == "empty":
        not_a_pipe(path).write_bytes(b"")
    elif how == "unreadable":
        path.chmod(0)
    elif how == "run":
        path.chmod(0o755)
    elif how == "hard link":
        os.link(path, scene.work / "hard.md")


def _end(scene: Shared, whose: str) -> None:
    folder = scene.state / "ended"
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / str(os.getpid() if whose != "other" else 1)
    mark.touch()
    if whose == "old":
        at_ns = time.time_ns() - 5 * 10**9
        os.utime(mark, ns=(at_ns, at_ns))


def _settings(scene: Shared, text: str) -> None:
    path = scene.home / ".config" / "swarm-mcp" / "config.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _variable(_scene: Shared, variables: dict[str, str]) -> None:
    os.environ.update(variables)


DEEDS: dict[str, Callable[[Shared, Any], None]] = {
    "own": lambda scene, name: scene.writes(ME, name),
    "peer": lambda scene, name: scene.writes(PEER, name),
    "own bash": lambda scene, command: _bash(scene, ME, command),
    "peer bash": lambda scene, command: _bash(scene, PEER, command),
    "change": _change,
    "lock": _lock,
    "row": _row,
    "store": _store,
    "mark": _mark,
    "entry": _entry,
    "settled": _settled,
    "journal": _journal,
    "file": _file,
    "end": _end,
    "time": lambda scene, seconds: scene.pass_time(seconds),
    "variable": _variable,
    "settings": _settings,
}
