"""Deeds of explored processes with files: each function is the life of one process in one schedule."""

import errno
import os
import time

from explore import dealings, rarer, team, tools, trying, warm
from explore.git import Repository
from explore.ground import TEXT
from explore.process import CLIENT_SECONDS, Process
from swarm_hook_core.traces import journal, journal_name, place_of
from swarm_mcp.changes import undoing as undo
from swarm_mcp.changes.undoing import NotUndone, Undoing
from swarm_mcp.changes.writing import write
from swarm_mcp.errors import SwarmError
from swarm_mcp.locking import restore
from swarm_mcp.locking.restore import Restoring
from swarm_mcp.store import Store


def edits(me: Process) -> None:
    """Edit a file."""
    me.write("notes.md", "Edit", f"{me.number}.0\n")


def edits_and_ends(me: Process) -> None:
    """Edit a file, end the turn, and edit it in the next one."""
    me.write("notes.md", "Edit", f"{me.number}.0\n")
    me.end_turn()
    me.write("notes.md", "Edit", f"{me.number}.1\n")


def edits_after_a_cut(me: Process) -> None:
    """Edit a file twice, first by a hook alone: a checker was cut off once it had noted the intent of the call."""
    me.write("notes.md", "Edit", f"{me.number}.0\n", leaves=1)
    me.write("notes.md", "Edit", f"{me.number}.1\n")


def edits_behind_a_tear(me: Process) -> None:
    """Edit another file, then the file. A full disk has torn the last note of the session in between."""
    me.write("other.md", "Edit", f"{me.number}.0\n")
    noted = os.path.join(place_of(me.ground.work), journal_name("claude-code", me.session_id))
    if os.path.exists(noted) and os.path.getsize(noted):  # a first note that is torn is taken back
        with open(noted, "ab") as notes:
            notes.write(b"\n19000")
    me.write("notes.md", "Edit", f"{me.number}.0\n")


def edits_unanswered(me: Process) -> None:
    """Edit a file by a hook alone: a checker had noted the whole call, and its answer came too late."""
    me.write("notes.md", "Edit", f"{me.number}.0\n", leaves=9)


def overwrites(me: Process) -> None:
    """Replace a file without having read it."""
    me.write("notes.md", "Write", f"{me.number}.w\n")


def overwrites_later(me: Process) -> None:
    """Replace a file without having read it, after a while."""
    me.think(9)
    overwrites(me)


def overwrites_in_doubt(me: Process) -> None:
    """Replace a file unread, while the disk does not give others' notes: a person has such a doubt denied."""
    read, os.environ["SWARM_FAIL"] = journal._read, "closed"

    def fails(file: str, limit: int) -> bytes:
        if me.session_id not in file and os.path.exists(file):
            raise OSError(errno.EIO, os.strerror(errno.EIO), file)
        return read(file, limit)

    journal._read = fails
    try:
        overwrites_later(me)
    finally:
        journal._read = read
        del os.environ["SWARM_FAIL"]


def rewrites(me: Process) -> None:
    """Read a file, and replace it twice by that text with own lines at its end: others' new lines are merged in."""
    if not me.run_command("cat notes.md"):
        return
    with open(me.path("notes.md"), encoding="utf-8") as file:
        text = file.read()
    me.end_call("Bash", {"command": "cat notes.md"})
    for count in range(2):
        text += f"{me.number}.{count}\n"
        me.write("notes.md", "Write", text)


def appends_by_shell(me: Process) -> None:
    """Append to a file by a shell command that can be read."""
    me.by_shell(f"echo {me.number}.0 >> notes.md")


def edits_formatted(me: Process) -> None:
    """Edit a file, and have the client's formatter lay it out, twice."""
    for count in range(2):
        me.write("notes.md", "Edit", f"{me.number}.{count}\n", is_formatted=True)


def saves(me: Process) -> None:
    """Save a file, as a person does, with pauses: no hook sees it."""
    for count in range(3):
        me.think(9)
        me.say("saves", f"{me.number}.{count}", me.world.library.explore_now())
        me.append(f"{me.number}.{count}\n")
        me.say("saved", f"{me.number}.{count}")


def builds(me: Process) -> None:
    """Run a command that cannot be read, and that changes a file."""
    me.build(f"{me.number}.0")


def edits_and_sweeps(me: Process) -> None:
    """Edit a file, and throw all its changes away."""
    me.write("notes.md", "Edit", f"{me.number}.0\n")
    if me.run_command("git checkout -- notes.md"):
        scratch = me.path("notes.md.new")
        with open(scratch, "w", encoding="utf-8") as file:
            file.write(TEXT)
        os.replace(scratch, me.path("notes.md"))
        me.say("swept")
        me.end_call("Bash", {"command": "git checkout -- notes.md"})


def edits_and_undoes(me: Process) -> None:
    """Edit a file, take that back, and take the undo back."""
    me.write("notes.md", "Edit", f"{me.number}.0\n")
    whose = ("claude-code", me.session_id)
    with Store(me.ground.store) as store:
        undoing = Undoing(store, store.instances.live(me.id), me.ground.work)
        undo.write = lambda record, look: write(record, lambda step: (look(step), _undo_step(me, step)))
        time.sleep(os.urandom(1)[0] % 12 / 1000)
        me.say("undoes")
        try:
            record = undoing.run(lambda: me.say("plans") or undoing.plan(whose, [], 0, False), whose, "", False)[1]
            if record:
                me.say("undid")
                undoing.run(lambda: me.say("plans") or undoing.plan_back(record, [], False), whose, record.id, False)
        except NotUndone:  # lines of others are in the way
            me.say("not undone")
        finally:
            undo.write = write
        me.say("redone")


def _undo_step(me: Process, step: str) -> None:
    """Be slow now and then before a file is written, as with a large one; tell of the moment before the last look."""
    if step == "write":
        time.sleep(os.urandom(1)[0] % 3 * CLIENT_SECONDS / 2)
    elif step == "replace":
        me.say("replaces")


def edits_two_and_undoes(me: Process) -> None:
    """Edit two files, and take that back in both."""
    whose = ("claude-code", me.session_id)
    for name in ("notes.md", "other.md"):
        me.write(name, "Edit", f"{me.number}.0\n")
    with Store(me.ground.store) as store:
        undoing = Undoing(store, store.instances.live(me.id), me.ground.work)
        me.say("undoes")
        try:
            if undoing.run(lambda: undoing.plan(whose, [], 0, False), whose, "", False)[1]:
                me.say("undid")
        except NotUndone:
            me.say("not undone")
        me.say("redone")


def edits_and_restores(me: Process) -> None:
    """Edit a file, and bring back an earlier content of it."""
    me.write("notes.md", "Edit", f"{me.number}.0\n")
    time.sleep(6 * CLIENT_SECONDS)  # a person may save meanwhile
    with Store(me.ground.store) as store:
        restoring = Restoring(store, store.instances.live(me.id), me.path("notes.md"))
        me.say("restores")
        restoring.restore(restoring.choose(""), False, False)
        me.say("restored", os.path.basename(restoring.kept_now))


def restores_on_full_disk(me: Process) -> None:
    """Edit a file, and bring back an earlier content of it on a full disk."""

    def half(handle: int, data: bytes) -> None:
        os.write(handle, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    whole, restore.write_all = restore.write_all, half
    try:
        edits_and_restores(me)
    except SwarmError:
        me.say("not restored")
    finally:
        restore.write_all = whole


def looks_and_overwrites(me: Process) -> None:
    """Look at a file, and replace it."""
    if me.run_command("cat notes.md"):
        me.end_call("Bash", {"command": "cat notes.md"})
        me.write("notes.md", "Write", f"{me.number}.w\n")


def commits_by_hand(me: Process) -> None:
    """Commit changes of another file by git's own parts, as a person's tools may: that takes no lock of git's index."""
    there = Repository(me.ground.work)
    for count in range(5):
        me.think(30)
        head = there.head()
        tree = {**there.tree(head), "other.md": there.add(f"{TEXT}{me.number}.{count}\n".encode())}
        made = there.commit(tree, head, f"{me.number}")
        if there.move(head, made):
            me.say("committed", made)


def runs_idly(me: Process) -> None:
    """Run a command that cannot be read, and that changes nothing."""
    time.sleep(2 * CLIENT_SECONDS)  # others have locked files by then
    if me.run_command("./build"):
        time.sleep(8 * CLIENT_SECONDS)
        answer = me.end_call("Bash", {"command": "./build"})
        if "notes.md" in answer.get("additionalContext", ""):
            me.say("blamed")


OF_OWNERS = (
    edits_formatted, saves, builds, edits_and_sweeps, edits_and_undoes, edits_two_and_undoes, edits_and_restores,
    restores_on_full_disk,
)  # fmt: skip
OF_FILES = (
    edits, edits_and_ends, edits_after_a_cut, edits_behind_a_tear, edits_unanswered, overwrites, overwrites_later,
    overwrites_in_doubt, rewrites, appends_by_shell, looks_and_overwrites, runs_idly, commits_by_hand, warm.edits_by_checker,
)  # fmt: skip
NEED_GIT = frozenset(
    role.__name__
    for role in (
        *OF_OWNERS, commits_by_hand, dealings.commits, rarer.lapses_and_commits, tools.edits_and_commits, trying.tries,
    )
)  # fmt: skip # and its answers
ROLES = {
    role.__name__: role
    for role in (*OF_FILES, *OF_OWNERS, *dealings.ALL, *rarer.ALL, *tools.ALL, team.follows_team, trying.tries)
}
