"""The judge: the properties of each schedule, by the words of its processes and the files that it has left."""

import math
import os
import sqlite3
from typing import NamedTuple

from explore.ground import Ground, files
from explore.world import FAIL, JUMP, KILL, PAUSE, Decision
from swarm_hook_core.traces.versions.lines import Fold
from swarm_mcp.store import cleanup

HOOK_MS = 4500  # two seconds for a write that is pending, one for a busy store, one for the steps themselves
FULL_MS = 20000  # with a fault: the hook records it
TICK_NS = 8_000_000  # two steps of the times of files
# Words of a process that may write the file from then on, and of one that has ended that.
BEGINS, ENDS = ("asks", "undoes", "restores"), ("denied", "missing", "redone", "restored", "failed", "crashed")
ACKNOWLEDGED = (("context", "id"), ("messages", "content"), ("tasks", "id"))
# Each change is one transaction with its event.
PAIRS = [
    f"SELECT (SELECT count(*) FROM {table}), (SELECT count(*) FROM events WHERE type = '{event}')"
    for table, event in (("messages", "message.sent"), ("tasks", "task.created"))
]


class Ended(NamedTuple):
    """One schedule that has ended.

    words      (process, its words) in the order of the schedule
    killed     processes that were killed
    has_lost_power  True if a kill was a power cut: it may take the last commits
    """

    roles: tuple[str, ...]
    level: str
    words: list[tuple[int, list[str]]]
    decisions: list[Decision]
    killed: set[int]
    has_lost_power: bool = False

    def did(self, action: int) -> bool:
        """Return True if an action of this kind was decided."""
        return any(decision.action == action for decision in self.decisions)


def violations(ended: Ended, ground: Ground) -> list[str]:
    """Return the properties that do not hold, in a few words each."""
    by_words = [judge(ended) for judge in (crashes, exclusion, turns, claims_of_tasks, hook_times)]
    by_files = [
        judge(ended, ground) for judge in (lost_updates, persons_lines, nowhere, noted_once, acknowledged, left_behind)
    ]
    return [one for found in (*by_words, *by_files) for one in found]


def crashes(ended: Ended) -> list[str]:
    """No process ends by an error that is no refusal; without an injected fault no process fails at all."""
    found = [f"{process} crashed: {words[1:]}" for process, words in ended.words if words[0] == "crashed"]
    if not ended.did(FAIL):
        found += [
            f"{process} failed: {words[1:]}"
            for process, words in ended.words
            if words[0] == "failed" and not is_busy(ended, words)
        ]
    return found


def is_busy(ended: Ended, words: list[str]) -> bool:
    """Return True for a wait in vain for a process that was stopped."""
    return ended.did(PAUSE) and "somebody else" in " ".join(words)


def exclusion(ended: Ended) -> list[str]:
    """A lock has one holder at a time."""
    found, holder = [], None
    for process, words in ended.words:
        if words[0] == "locked":
            if holder not in (None, process):
                found.append(f"{process} was given the lock that {holder} holds")
            holder = process
        elif words[0] == "unlocks" and holder == process:
            holder = None
        elif (
            words[0] == "writes"
            and words[2] == "notes.md"
            and holder not in (None, process)
            and not ended.did(FAIL)
            and process not in ended.killed
        ):
            begun = [place for place, said in enumerate(ended.words) if said == (process, ["asks", *words[1:]])]
            taken = [place for place, said in enumerate(ended.words) if said[0] == holder and said[1][0] == "locked"]
            if begun[-1] > taken[-1]:
                found.append(f"{process} writes what {holder} has locked")
    return found


def turns(ended: Ended) -> list[str]:
    """At `turn`, a file that one session writes is its own until its turn ends."""
    if ended.level != "turn" or ended.did(FAIL) or ended.did(JUMP) or ended.killed:
        return []
    found, owner = [], None
    for process, words in ended.words:
        if words[0] == "turn" and owner == process:
            owner = None
        elif words[0] == "let":
            if owner not in (None, process):
                found.append(f"{process} writes what {owner} has for its turn")
            owner = process
        elif words[0] == "locked" and owner not in (None, process):
            found.append(f"{process} was given a lock on what {owner} has for its turn")
    return found


def claims_of_tasks(ended: Ended) -> list[str]:
    """A task has one claimant."""
    claimed = [words[1] for _process, words in ended.words if words[0] == "claimed"]
    return [f"the task {task} was given away twice" for task in set(claimed) if claimed.count(task) > 1]


def hook_times(ended: Ended) -> list[str]:
    """No hook lasts longer than it may."""
    longest = FULL_MS if ended.did(FAIL) else HOOK_MS
    found = []
    for process, words in ended.words:
        if words[0] == "hook" and int(words[2]) > longest:
            found.append(f"a hook of {process} took {words[2]} ms")
    return found


def lost_updates(ended: Ended, ground: Ground) -> list[str]:
    """At `turn` no line is lost. At `keep` a line may be lost if a writer had been told of the other change."""
    if ended.did(FAIL) or ended.did(JUMP):
        return []  # hooks fail open
    with open(os.path.join(ground.work, "notes.md"), encoding="utf-8", errors="replace") as file:
        text = file.read()
    told = any(words[0] in ("told", "restores") for _process, words in ended.words)
    if told and ended.level != "turn":
        return []
    have_taken_back = {process for process, words in ended.words if words[0] in ("swept", "undoes")}
    counts: dict[int, int] = {}
    found = []
    for process, words in ended.words:
        if words[0] == "wrote" and words[1] == "Edit":
            line = f"\n{process}.{counts.get(process, 0)}"
            counts[process] = counts.get(process, 0) + 1
            if process in have_taken_back:
                continue
            if line not in text and not ended.killed:  # one that is killed may leave half a file
                found.append(f"the line of {process} was lost, and no writer was told")
    return found


def persons_lines(ended: Ended, ground: Ground) -> list[str]:
    """A line that a person saved while no call, undo or restore was open stays, and counts as the person's."""
    if ended.did(FAIL) or ended.did(JUMP):
        return []  # hooks fail open
    alone = lines_saved_alone(ended)
    if not alone:
        return []
    found = []
    lines = {line.text.decode().strip(): line for line in Fold(os.path.join(ground.work, "notes.md")).lines()}
    is_restored = any(words[0] == "restores" for _process, words in ended.words)
    for name in alone:
        if name not in lines:
            found += [f"the person's line {name} was lost"] * (not is_restored)
        elif not is_restored and not any(author.is_person for author in lines[name].authors):
            found.append(f"the person's line {name} counts as another's")
    return found


def lines_saved_alone(ended: Ended) -> list[str]:
    """Return the lines that a person saved while no other process was in the middle of anything.

    Nor in the moment after an end: the times of files do not tell the two apart.
    """
    found, busy, is_alone, over_ns = [], set[int](), False, 0
    for process, words in ended.words:
        if words[0] in BEGINS:
            busy.add(process)
            is_alone = False
        elif words[0] in ENDS or words[:2] == ["hook", "PostToolUse"]:
            busy.discard(process)
            if words[0] == "hook":
                over_ns = int(words[3])
        elif words[0] == "saves":
            is_alone = not busy and int(words[2]) > over_ns + TICK_NS
        elif words[0] == "saved" and is_alone:
            found.append(words[1])
    return found


def nowhere(ended: Ended, ground: Ground) -> list[str]:
    """Such a line is in the file, or in a content that is kept."""
    if ended.did(FAIL) or ended.did(JUMP):
        return []
    alone = lines_saved_alone(ended)
    if not alone:
        return []
    kept = b"".join(content(path) for path in [os.path.join(ground.work, "notes.md"), *files(ground.state)])
    return [f"the line {name} is nowhere" for name in alone if f"\n{name}\n".encode() not in kept]


def content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def noted_once(ended: Ended, ground: Ground) -> list[str]:
    """A call that was let pass has one entry of its write, also if a checker had begun with it before its hook."""
    if ended.did(FAIL) or ended.did(JUMP) or ended.killed:
        return []
    let: dict[int, int] = {}
    for process, words in ended.words:
        if words[0] == "let":
            let[process] = let.get(process, 0) + 1
    found = []
    for process in {process for process, words in ended.words if words[0] == "asks"}:
        noted = ground.writes_noted(process)
        if noted > let.get(process, 0):
            found.append(f"{process} has noted {noted} writes, and made {let.get(process, 0)}")
    return found


def acknowledged(ended: Ended, ground: Ground) -> list[str]:
    """The store is whole, and has all that was acknowledged."""
    found: list[str] = []
    locks, messages, tasks = (set[str](),) * 3  # of a store that is as it was
    if ground.has_changed_store():
        is_all = not ground.has_log()  # then no log and no shared memory has to be made for it
        connection = sqlite3.connect(f"file:{ground.store}?immutable={int(is_all)}", uri=True)
        try:
            if ended.did(KILL) or ended.did(FAIL):
                whole = connection.execute("PRAGMA integrity_check").fetchone()[0]
                found += [f"the store is damaged: {whole}"] * (whole != "ok")
            ids = (connection.execute(f"SELECT {name} FROM {table}") for table, name in ACKNOWLEDGED)
            locks, messages, tasks = ({row[0] for row in rows} for rows in ids)
            pairs = [connection.execute(sql).fetchone() for sql in PAIRS]
        except sqlite3.DatabaseError as error:
            return [f"the store is damaged: {error}"]
        finally:
            connection.close()
        found += [f"{rows} rows have {events} events" for rows, events in pairs if rows != events]
    if ended.has_lost_power and ended.killed:
        return found
    standing: dict[int, str] = {}
    for process, words in ended.words:
        if words[0] == "locked":
            standing[process] = words[1]
        elif words[0] == "unlocks":
            standing.pop(process, None)
        elif words[0] == "sent" and words[1] not in messages:
            found.append(f"the message {words[1]} is lost")
        elif words[0] == "requested" and words[1] not in tasks:
            found.append(f"the task {words[1]} is lost")
    found += [f"the lock of {process} is lost" for process, lock in standing.items() if lock not in locks]
    return found


def left_behind(ended: Ended, ground: Ground) -> list[str]:
    """No temporary file is left; after kills and faults not beyond the coordinator's next cleaning."""
    if ended.did(KILL) or ended.did(FAIL):
        cleanup.remove(math.inf)
    return [f"{name} is left behind" for name in ground.left(".tmp")]
