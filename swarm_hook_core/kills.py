"""Processes of other sessions: a command that would end one is denied once, and their owner is named.

A process belongs to the nearest client above it: the client of a session, a command with a lock (`hold`), a person's
shell. Programs are matched as `pkill`, `killall`, `kill` and their kin do. Ports are looked up in ``/proc`` (Linux).
The session's journal has an entry about a denial, of kind ``kills``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any

from swarm_hook_core import process
from swarm_hook_core.denial import Denial, Loss, Notice
from swarm_hook_core.fence import told_earlier
from swarm_hook_core.hooks import Verdict
from swarm_hook_core.lookup import Held
from swarm_hook_core.opaque_calls import effects_of
from swarm_hook_core.shell.call import split
from swarm_hook_core.shell.model import is_known
from swarm_hook_core.traces import NOTICE
from swarm_hook_core.traces.head.news import AGAIN, working
from swarm_hook_core.untrusted_text import command, quoted
from swarm_hook_core.watching.records import digest_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm_hook_core.check import Check

KIND = "kills"  # of the journal's entry: `key` is the call's folder, `text` a digest of the commands, and the call's id
WHY = "process"  # of the Loss
NAMED = 3  # processes that are named
LONGEST = 60  # characters of a process's command line
_ENDS = ("kill", "pkill", "skill", "killall", "kill-port")
PROGRAMS = (*_ENDS, "pgrep", "pidof", "lsof", "fuser")
_KEEPS = ("0", "CONT", "CHLD", "URG", "WINCH")  # signals that end nothing
_SIGNAL = re.compile(r"-(?:-signal=)?(\d+|[A-Z][A-Z0-9]{2,})")
_PORT = re.compile(r"(?:^|:)(\d+)(?:/tcp|/udp)?$")


class Processes:
    """The processes of this machine by pid, each with its parent and its process group."""

    def __init__(self) -> None:
        self.above: dict[int, tuple[int, int]] = {}
        if os.path.isdir("/proc/self"):
            for name in filter(str.isdecimal, os.listdir("/proc")):
                stat = _text(f"/proc/{name}/stat")
                fields = stat[stat.rfind(")") + 2 :].split()
                if len(fields) > 2 and fields[0] != "Z":
                    self.above[int(name)] = int(fields[1]), int(fields[2])
            return
        told = process.run(["ps", "-axo", "pid=,ppid=,pgid="], 1.0).stdout
        for line in told.splitlines():
            pid, parent, group = map(int, line.split())
            self.above[pid] = parent, group

    def nearest(self, pid: int, clients: Iterable[int]) -> int:
        """Return the nearest of `clients` at or above `pid`, or 0."""
        for _ in range(len(self.above)):
            if pid in clients:
                return pid
            if pid not in self.above:
                break
            pid = self.above[pid][0]
        return 0

    def meant(self, told: list[list[str]]) -> set[int]:
        """Return the processes that the commands `told`, in their order, are to end."""
        found: set[int] = set()
        listed: set[int] = set()  # by `pgrep` and its kin, for a `kill` with computed words
        for name, *words in told:
            if name == "kill":
                found |= self._killed(words, listed)
                continue
            rest = _without_signal(words)
            if rest is None:
                continue
            is_ended = name in _ENDS or (name == "fuser" and _kills(words))
            if name in ("kill-port", "fuser", "lsof"):
                some = self._at_ports(rest)
            else:
                some = self._called(rest, is_exact=name in ("killall", "pidof"))
            (found if is_ended else listed).update(some)
        return found

    def _killed(self, words: list[str], listed: set[int]) -> set[int]:
        """Return the processes that ``kill <words>`` ends; `listed` for a word that only a run can tell."""
        found: set[int] = set()
        first = (words or [""])[0]
        before = 2 if first in ("-s", "-n", "--signal") else int(first[:1] == "-" and first != "--")
        if (
            first[:2] in ("-l", "-L")
            or first.startswith(("--list", "--table"))
            or _without_signal(words[:before]) is None
        ):
            return found
        for word in words[before:]:
            if not is_known(word):
                found |= listed
            elif word == "-1":
                found |= set(self.above)
            elif word[:1] == "-" and word[1:].isdecimal():
                found |= {pid for pid, (_parent, group) in self.above.items() if group == int(word[1:])}
            elif word.isdecimal():
                found.add(int(word))
        return found & set(self.above)

    def _called(self, words: list[str], is_exact: bool) -> set[int]:
        """Return the processes with a name, or a command line, as pkill, or with `is_exact` killall, takes `words`."""
        options = split(words, "gGPtuUFdo" if not is_exact else "ouZ", ("--parent", "--user", "--euid"))
        if options.has("-F", "-t", "--pidfile"):
            return set()
        is_exact = (is_exact and not options.has("-r", "-m", "--regexp")) or options.has("-x", "--exact")
        patterns = options.operands if is_exact or options.operands else [""]
        found = set()
        for pid in self.above:
            line, name = process.command_line(pid).strip(), process.program_name(pid)
            texts = [line] if options.has("-f", "--full") else [name, os.path.basename(line.partition(" ")[0])]
            if any(_fits(pattern, text, is_exact) for pattern in patterns for text in texts):
                found.add(pid)
        parents = ",".join(options.values("-P", "--parent")).split(",")
        if parents != [""]:
            found = {pid for pid in found if str(self.above[pid][0]) in parents}
        return found

    def _at_ports(self, words: list[str]) -> set[int]:
        """Return the processes with a socket at a port that `words` name."""
        ports = {int(found[1]) for word in words if (found := _PORT.search(word))}
        sockets = set()
        for kind in ("tcp", "tcp6", "udp", "udp6") if ports else ():
            for line in _text(f"/proc/net/{kind}").split("\n")[1:]:
                fields = line.split()
                if len(fields) > 9 and int(fields[1].rpartition(":")[2], 16) in ports:
                    sockets.add(f"socket:[{fields[9]}]")
        return {pid for pid in self.above if sockets and not sockets.isdisjoint(_open_files(pid))}


def _without_signal(words: list[str]) -> list[str] | None:
    """Return `words` without the signal that they name; None if that signal ends nothing."""
    rest, left = [], iter(words)
    for word in left:
        found = _SIGNAL.fullmatch(word)
        if found is None and word not in ("-s", "--signal"):
            rest.append(word)
        elif (found[1] if found is not None else next(left, "")).removeprefix("SIG") in _KEEPS:
            return None
    return rest


def _fits(pattern: str, text: str, is_exact: bool) -> bool:
    if is_exact:
        return pattern == text
    try:
        return re.search(pattern, text) is not None
    except re.error:  # for pkill it may be right
        return pattern in text


def _kills(words: list[str]) -> bool:
    """Return True if ``fuser <words>`` ends the processes that it finds."""
    return "--kill" in words or any(word[:1] == "-" and word[:2] != "--" and "k" in word for word in words)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:  # the process has ended
        return ""


def _open_files(pid: int) -> set[str]:
    found = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            found.add(os.readlink(f"/proc/{pid}/fd/{name}"))
    except OSError:
        return found  # it is another user's, or has ended
    return found


def judge(check: Check) -> Verdict | None:
    """Return the Verdict on a call that would end a process of another session, or None."""
    trail = check.trail
    if trail is None:
        return None
    effects = check.writes.effects if check.writes.is_read else effects_of(check.call)
    deeds = [deed for deed in effects.deeds if deed[0][0] in PROGRAMS] if effects is not None else []
    if not any(words[0] in _ENDS or words[0] == "fuser" for words, _folder, _by in deeds):
        return None
    own, clients = _clients(check)
    if not clients:
        return None
    # A session that the caller has started itself is its own.
    clients = {pid: row for pid, row in clients.items() if own not in process.ancestors(below=pid)}
    all_there, places = Processes(), {*clients, own}
    meant = all_there.meant([words for words, _folder, _by in deeds])
    by_pid = {pid: all_there.nearest(pid, places) for pid in sorted(meant)}
    theirs = {pid: clients[client] for pid, client in by_pid.items() if client in clients}
    if not theirs:
        return None
    mine = [pid for pid, client in by_pid.items() if client == own != pid]
    by = next(by for words, _folder, by in deeds if words[0] in _ENDS or words[0] == "fuser")
    owners = list({row["id"]: row for row in theirs.values()}.values())
    said = [*(part for _words, _folder, part in deeds), *sorted(row["id"] for row in owners)]
    digest = digest_of("\n".join(said).encode("utf-8", "replace"), 12)
    folder = check.call.folder
    if told_earlier(check.call, trail, trail.place_of(folder), folder, KIND, f"{digest} "):
        return None
    denies = trail.level != NOTICE
    held = [
        Held(row["root"] or "", row["id"], row["label"], check.reader.purpose_of(row["id"]), row["registered_at"])
        for row in owners
    ]
    words = _words(check, by, list(theirs), mine, working(held, check.session.label), denies)
    loss = Loss(WHY, held[0], "end", by)
    trail.note_at(check.call.folder, KIND, f"{digest} {check.call.id}")
    trail.leave()
    if denies:
        return Verdict(Denial(check.call.folder, None, words, loss=loss))
    verdict = Verdict(None, words)
    verdict.noted = [Notice(check.call.folder, loss, words)]
    return verdict


def _clients(check: Check) -> tuple[int, dict[int, Any]]:
    """Return the pid of the session's own client, and the clients of other live sessions here."""
    own = check.reader.holder(check.config.runtime_name, check.call.session_id)
    here = process.host_id()
    found: dict[int, Any] = {}
    for row in check.reader.other_sessions(check.config.runtime_name, check.call.session_id, 0.0):
        if row["host"] == here and row["client_pid"] and not process.departed(row, check.now, here):
            others = process.living(here, process.clients_in(row["other_clients"]), here)
            found.update((pid, row) for pid in (row["client_pid"], *(pid for pid, _start in others)))
    pid = int((own is not None and own[2]["client_pid"]) or process.caller_parent())
    found.pop(pid, None)  # another conversation of the same client
    return pid, found


def _words(check: Check, by: str, theirs: list[int], mine: list[int], owners: str, denies: bool) -> str:
    named = ", ".join(f"{pid} {quoted(process.command_line(pid).strip(), LONGEST)}" for pid in theirs[:NAMED])
    if len(theirs) > NAMED:
        named += f" and {len(theirs) - NAMED} more"
    would = "would end" if denies else "ends"
    plural = "processes" if len(theirs) > 1 else "a process"
    fact = f"swarm: {check.call.client_tool} ({command(by)}) {would} {plural} of {owners}: {named}."
    if not denies:
        return fact
    if mine:
        way = f"Your own alone: `kill {' '.join(map(str, mine[:20]))}`."
    else:
        way = "None of them is yours: end by their pids what you have started yourself."
    return f"{fact} {way} If it is meant, {AGAIN}."
