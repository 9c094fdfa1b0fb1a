"""The judge of a schedule: `history` has the answers; here are its files, its times, and the store's wholeness."""

import math
import os
import re
import sqlite3

from explore.git import Repository
from explore.ground import Ground, files
from explore.history import BEGINS, END, ENDS, Commit, Ended, Left, commits, judged, values_in
from explore.rarer_truths import rarer_truths
from explore.tried_truths import tried
from explore.world import FAIL, JUMP, KILL, PAUSE
from swarm_hook_core.lookup import plain
from swarm_hook_core.traces.versions.lines import Fold
from swarm_mcp.changes.writing import recover, unreadable
from swarm_mcp.store import cleanup

HOOK_MS = 4500  # two seconds for a write that is pending, one for a busy store, one for the steps themselves
FULL_MS = 20000  # with a fault: the hook records it
TICK_NS = 8_000_000  # two steps of the times of files
LEFT = (
    "SELECT instance_id, file, ttl FROM context WHERE type = 'lock'",
    "SELECT recipient, content, read, id FROM messages",
    "SELECT id, status, assignee FROM tasks",
    "SELECT value FROM kv WHERE key = 'list'",
)
# Each change is one transaction with its event.
PAIRS = [
    f"SELECT (SELECT count(*) FROM {table}), (SELECT count(*) FROM events WHERE type = '{event}')"
    for table, event in (("messages", "message.sent"), ("tasks", "task.created"))
]


def violations(ended: Ended, ground: Ground) -> list[str]:
    """Return the properties that do not hold, in a few words each."""
    if not os.path.exists(os.path.join(ground.work, "notes.md")):
        return ["the file has gone"]
    undos = whole_undos(ended, ground)
    found, left = state_of_store(ended, ground)
    found += undos
    with open(os.path.join(ground.work, "notes.md"), encoding="utf-8", errors="replace") as file:
        found += rarer_truths(ended, left, file.read())
    found += [*crashes(ended), *judged(ended, left), *hook_times(ended)]
    found += merged_texts(ended)
    found += tried(ended, ground, lines_saved_alone(ended))
    if any(words[0] == "commits" for _process, words in ended.words):
        found += commits(ended, branch(ground))
    for judge in (lost_updates, persons_lines, nowhere, noted_once, left_behind):
        found += judge(ended, ground)
    return found


def branch(ground: Ground) -> list[Commit]:
    """Return the commits that are there, the oldest first."""
    there, found = Repository(ground.work), []
    for name in reversed(there.history()):
        text = there.object(there.tree(name)["notes.md"]) or b""
        found.append(Commit(name, there.facts(name)["message"], text.decode().split()))
    return found


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


def hook_times(ended: Ended) -> list[str]:
    """No hook lasts longer than it may."""
    longest = FULL_MS if ended.did(FAIL) else HOOK_MS
    found = []
    for process, words in ended.words:
        if words[0] == "hook" and int(words[2]) > longest:
            found.append(f"a hook of {process} took {words[2]} ms")
    return found


def lost_updates(ended: Ended, ground: Ground) -> list[str]:
    """At `turn` no line is lost. At `keep` a line may be lost if a writer is told of the other change, then or later."""
    if ended.did(JUMP):
        return []
    after = over(ended, ground)
    with open(os.path.join(ground.work, "notes.md"), encoding="utf-8", errors="replace") as file:
        text = file.read()
    told = last_told(ended) if ended.level != "turn" else -1
    have_taken_back = {
        process for process, words in ended.words if words[0] in ("swept", "undoes") or words[:2] == ["wrote", "Write"]
    }
    seen = max([at for at, (_process, words) in enumerate(ended.words) if words[0] == "runs"], default=0)
    is_seen = "looks_and_overwrites" in ended.roles
    found = []
    for at, (process, words) in enumerate(ended.words):
        if words[:3] == ["wrote", "Edit", "notes.md"]:
            line = f"\n{words[3]}"
            asked = [n for n in range(at) if ended.words[n][0] == process and ended.words[n][1][0] == "asks"][-1]
            if process in have_taken_back or (is_seen and at < seen) or asked < max(after, told):
                continue
            if line not in text and not ended.killed:  # one that is killed may leave half a file
                found.append(f"the line of {process} was lost, and no writer was told")
    return found


def last_told(ended: Ended) -> int:
    """Return the place of the end of the last call whose writer was told of another change, and of the last restore."""
    found = -1
    for at, (process, words) in enumerate(ended.words):
        if words[0] in ("told", "restores"):
            rest = ended.words[at:]
            ends = (n for n, one in enumerate(rest, at) if one in ((process, ["dies"]), (process, ["restored"])) or (
                one[0] == process and one[1][:2] == ["hook", "PostToolUse"]))  # fmt: skip
            found = max(found, next(ends, END))
    return found


def over(ended: Ended, ground: Ground) -> int:
    """Return the place of the first word after all calls that a fault has met: hooks fail open, but for these alone.

    A hook that fails open writes that down: without such a line each one has checked.
    """
    faults = [at for at, (_process, words) in enumerate(ended.words) if words == ["errs"]]
    has_failed = os.path.exists(os.path.join(ground.state, "faults.jsonl")) or any(
        words[0] in ("failed", "crashed") for _process, words in ended.words
    )
    if not faults or (len(faults) == 1 and not has_failed):
        return 0
    busy = set[int]()
    for at, (process, words) in enumerate(ended.words):
        if words[0] in BEGINS:
            busy.add(process)
        elif words[0] in ENDS or words[:2] == ["hook", "PostToolUse"]:
            busy.discard(process)
        if at >= faults[-1] and not busy:
            return at
    return END


def merged_texts(ended: Ended) -> list[str]:
    """A text that was merged has its writer's line, and each line that was there when the writer asked, once."""
    found, there, asked = [], dict[str, int](), dict[int, int]()
    for at, (process, words) in enumerate(ended.words):
        if words[0] == "asks":
            asked[process] = at
        elif words[0] in ("saved", "wrote"):
            there.update(dict.fromkeys(words[1 if words[0] == "saved" else 3 :], at))
        elif words[0] == "merged":
            text = words[3:]
            missing = [line for line, since in there.items() if since < asked[process] and line not in text]
            twice = [line for line in text if text.count(line) > 1]
            found += [f"the text of {process} was merged without {line}" for line in missing]
            found += [f"the text of {process} was merged with {line} twice" for line in twice]
    return found


def persons_lines(ended: Ended, ground: Ground) -> list[str]:
    """A line that a person saved while no call, undo or restore was open stays, and counts as the person's.

    Not so behind a command: only its session's next hook sees the command's own changes.
    """
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
            found += [f"the person's line {name} was lost"] * (not is_restored and not cut_short(ended))
        elif name in behind_commands(ended) or is_restored:
            continue
        elif not any(author.is_person for author in lines[name].authors):
            found.append(f"the person's line {name} counts as another's")
    return found


def cut_short(ended: Ended) -> bool:
    """Return True if a client was killed in the middle of a write of its own: half a file is no deed of swarm's."""
    own = [words for process, words in ended.words if process in ended.killed]
    return any(words[0] in ("writes", "wrote") and then == ["dies"] for words, then in zip(own, own[1:]))


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


def behind_commands(ended: Ended) -> set[str]:
    """Return the lines that a person saved between a session's command and its next hook."""
    found, behind = set[str](), set[int]()
    for process, words in ended.words:
        if words[0] == "runs":
            behind.add(process)
        elif words[:2] == ["hook", "PreToolUse"]:
            behind.discard(process)
        elif words[0] == "saves" and behind:
            found.add(words[1])
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
        made = let.get(process, 0) * (1 + (ended.roles[process] in ("patches", "moves_over")))  # of two files
        if noted > made:
            found.append(f"{process} has noted {noted} writes, and made {made}")
    return found


def state_of_store(ended: Ended, ground: Ground) -> tuple[list[str], Left | None]:
    """Return the damages of the store, and its rows; None if a power cut may have taken its last commits."""
    if not ground.has_changed_store():
        return [], None if ended.has_lost_power and ended.killed else Left([], [], [], [])
    found: list[str] = []
    is_all = not ground.has_log()  # then no log and no shared memory has to be made for it
    connection = sqlite3.connect(f"file:{ground.store}?immutable={int(is_all)}", uri=True)
    try:
        if ended.did(KILL, FAIL):
            whole = connection.execute("PRAGMA integrity_check").fetchone()[0]
            found += [f"the store is damaged: {whole}"] * (whole != "ok")
        pairs = [connection.execute(sql).fetchone() for sql in PAIRS]
        locks, messages, tasks, kept = (connection.execute(sql).fetchall() for sql in LEFT)
    except sqlite3.DatabaseError as error:
        return [f"the store is damaged: {error}"], None
    finally:
        connection.close()
    if not any(words[0] in ("leaves", "binds") for _process, words in ended.words):  # its mail goes with a session
        found += [f"{rows} rows have {events} events" for rows, events in pairs if rows != events]
    if ended.has_lost_power and ended.killed:
        return found, None
    named = [(holder, re.sub(f"^{re.escape(ground.work)}2?/", "", f"{plain(file)}/").rstrip("/"), lease)
             for holder, file, lease in locks]  # fmt: skip
    return found, Left(named, messages, tasks, [one for row in kept for one in values_in(row[0])])


def whole_undos(ended: Ended, ground: Ground) -> list[str]:
    """An undo of two files that was cut short is made or taken back as a whole, at the latest by the next command.

    Where a fault has met the edit, its hook may have noted nothing (SPEC 5.8): such an edit counts as a person's.
    """
    if "edits_two_and_undoes" not in ended.roles or not ended.did(KILL, FAIL):
        return []
    if any("left alone" in told for told in recover()):  # a person has saved a file since
        return []
    found = [f"the undo {folder} can be neither made nor taken back" for folder in unreadable()]
    for process, role in enumerate(ended.roles):
        own = [words[0] for other, words in ended.words if other == process]
        if role == "edits_two_and_undoes" and "undoes" in own and "errs" not in own[: own.index("undoes")]:
            texts = [content(os.path.join(ground.work, name)) for name in ("notes.md", "other.md")]
            if len({f"\n{process}.0\n".encode() in text for text in texts}) > 1:
                found.append(f"the undo of {process} was made in one of two files")
    return found


def left_behind(ended: Ended, ground: Ground) -> list[str]:
    """No temporary file is left; after kills and faults not beyond the coordinator's next cleaning."""
    if ended.did(KILL) or ended.did(FAIL):
        cleanup.remove(math.inf)
    return [f"{name} is left behind" for name in ground.left(".tmp")]
