"""A model of sessions and a person in one repository: a call is an interval, and each line has its possible owners.

A write may come at each moment between the check of its call and the end that the client tells. A person saves at each
moment. The sessions' checks, ``commit``, ``undo`` and ``restore`` are the real ones. Time is told: the next event is later,
by the clock and by the times of files, and the product's own spans are 0 or endless.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.apart import EXACT, NEAR, home_apart, tick, without
from support.fixtures import Done, Ground
from support.sessions import mistakes
from support.swapped import Swap
from support.traced import Player, checkout, git
from support.transcripts import Log
from support.world import patch
from swarm_hook_core.hooks import SessionEvent, ToolCall
from swarm_hook_core.registration import note_client
from swarm_hook_core.state import ended_mark, make_private
from swarm_hook_core.traces import endings, transcript
from swarm_hook_core.traces.pruning import forget
from swarm_hook_core.traces.versions import notes
from swarm_hook_core.traces.versions.lines import Fold, NoLines
from swarm_hook_core.traces.versions.stored import contents_below
from swarm_mcp.changes.patch import result_of
from swarm_mcp.changes.uncommitted import uncommitted

FILES = ("notes.md", "sub/deep.md")
NAMES = st.sampled_from(FILES)
PLACES = st.integers(0, 5)
PERSON = -1
RUNTIMES = ("claude-code", "codex", "opencode")
FIRST_PID = 5_000_000  # of the sessions' clients: no process has such a number
WORD = re.compile(r"w(\d+)")
WAYS = ("adds", "adds", "removes", "appends", "builds", "looks")
SWEEPS = (
    "git checkout NAME", "git checkout .", "git restore NAME", "git stash", "git reset -q --hard", "rm NAME",
    "echo FRESH > NAME", "git clean -fdq",
)  # fmt: skip


class Call(NamedTuple):
    """A call of a session that was let pass. `name`: the file that it names, empty for an unread command."""

    tool: str
    given: dict[str, Any]
    way: str
    name: str
    number: int  # of the line that it adds or removes
    anchor: int  # of the line that it adds behind
    logged: str  # its id in the client's log


class Owners(RuleBasedStateMachine):
    """The model.

    owners    number of an uncommitted line -> all that may count as its author
    removers  (file, number) of a removed committed line -> all that may have removed it
    origin    number of a line -> how it came
    """

    counts: Counter[str] | None = None  # of doubtful and wrong owners; None: a wrong one is an error

    def __init__(self) -> None:
        super().__init__()
        self._apart = contextlib.ExitStack()
        self.base = self._apart.enter_context(home_apart())
        self._apart.enter_context(without(*EXACT, *NEAR, (transcript, "PATIENCE_NS")))
        self.work = checkout(self.base / "repo", *FILES)
        self.ground = Ground(self.base)
        self.players: dict[int, Player] = {}
        self.sessions: dict[str, int] = {}
        self.logs: dict[int, Log] = {}
        self.calls: dict[int, Call] = {}
        self.made: set[int] = set()  # players whose open call has written
        self.count, self.moment = 0, 0.0
        self.owners: dict[int, frozenset[int]] = {}
        self.removers: dict[tuple[str, int], frozenset[int]] = {}
        self.origin: dict[int | tuple[str, int], str] = {}
        for name in FILES:
            (self.work / name).write_text("".join(self._new() for _ in range(4)))
        git(self.work, "config", "user.name", "t")
        git(self.work, "config", "user.email", "t@t")
        git(self.work, "commit", "-qam", "lines")
        tick(self.base)

    def teardown(self) -> None:
        self._count()
        self._apart.close()

    @initialize(is_endless=st.booleans())
    def spans(self, is_endless: bool) -> None:
        """Set the seconds within which a write without input and end counts as its call's: 0, or endless."""
        self._apart.enter_context(mock.patch.object(notes, "OWN_NS", 1 << 60 if is_endless else 0))

    # ------------------------------------------------------------------------------------------ contents

    def _new(self) -> str:
        self.count += 1
        return f"w{self.count}( 1 )\n"

    def _lines(self, name: str) -> list[str]:
        path = self.work / name
        if not path.exists():
            return []
        return path.read_text().splitlines(keepends=True)

    def _put(self, name: str, lines: list[str]) -> None:
        path = self.work / name
        path.parent.mkdir(exist_ok=True)
        tick(self.base)
        path.write_text("".join(lines))
        tick(self.base)

    def _all(self) -> dict[str, list[int]]:
        return {name: numbers("".join(self._lines(name))) for name in FILES}

    def _bytes(self) -> dict[str, bytes]:
        return {name: "".join(self._lines(name)).encode() for name in FILES}

    def _head(self, name: str) -> list[int]:
        done = subprocess.run(["git", "show", f"HEAD:{name}"], cwd=self.work, capture_output=True, check=False)
        return numbers(done.stdout.decode())

    def _recorded(self) -> set[int]:
        """Return the lines in commits, in stash entries, and in the contents that ``restore`` has."""
        revisions = git(self.work, "rev-list", "--all").split()
        found = set(numbers(git(self.work, "grep", "-h", "-e", "w", *revisions)))
        for contents in contents_below(str(self.work)).values():
            for one in contents:
                if one.is_whole:
                    found |= set(numbers(one.content().decode()))
        return found

    # ------------------------------------------------------------------------------------------ possible owners

    def _open_over(self, name: str, but: int = PERSON, only_unread: bool = False) -> set[int]:
        """Return the players with a call that has not ended and may write the file."""
        return {
            who
            for who, call in self.calls.items()
            if who != but and (call.way == "builds" or (call.name == name and not only_unread))
        }

    def _hides(self, name: str, who: int) -> None:
        """Forget the owners of unread commands' changes: the file shows only the time of its last change."""
        lines: list[tuple[int | tuple[str, int], dict]] = [
            (one, self.owners) for one in numbers("".join(self._lines(name)))
        ]
        lines += [(key, self.removers) for key in self.removers if key[0] == name]
        for key, owners in lines:
            if self.origin.get(key) == "builds" and owners.get(key, {who}) != {who}:
                owners[key] |= {PERSON, *self.sessions.values()}

    def _adds(self, name: str, who: int, number: int, place: int, way: str) -> None:
        self._hides(name, who)
        lines = self._lines(name)
        lines.insert(place % (len(lines) + 1), f"w{number}( 1 )\n")
        self.owners[number] = self._possible(name, who, way)
        self.origin[number] = way
        self._put(name, lines)

    def _removes(self, name: str, who: int, number: int, way: str) -> None:
        self._hides(name, who)
        self._put(name, [line for line in self._lines(name) if numbers(line) != [number]])
        if number in self.owners:
            del self.owners[number]
        else:
            self.removers[name, number] = self._possible(name, who, way)
            self.origin[name, number] = way

    def _possible(self, name: str, who: int, way: str) -> frozenset[int]:
        if way in ("adds", "removes"):
            return frozenset({who})  # its input tells
        return frozenset({who, *self._open_over(name, who, only_unread=way == "appends")})

    def _removable(self, name: str, who: int) -> list[int]:
        """Return the lines that are committed, or certainly the own."""
        return [one for one in numbers("".join(self._lines(name))) if self.owners.get(one, {who}) == {who}]

    # ------------------------------------------------------------------------------------------ sessions

    def _player(self, place: int) -> int:
        if not self.players or (place >= len(self.players) and len(self.players) < 3):
            who = len(self.sessions)
            player = Player(RUNTIMES[place % 3], self.work)
            self.players[who], self.sessions[player.session_id] = player, who
            if player.runtime != "opencode":
                self.logs[who] = Log(self.base / "logs", player.runtime, player.session_id, self._in_a_moment)
                player.transcript = str(self.logs[who].path)
            event = SessionEvent(player.session_id, str(self.work), "UserPromptSubmit", transcript=player.transcript)
            note_client(player.core.config, event, FIRST_PID + who)
        return sorted(self.players)[place % len(self.players)]

    def _asks(self, who: int, tool: str, given: dict[str, Any]) -> str:
        """Ask the check; return why the call is denied, empty where it may pass."""
        player = self.players[who]
        with mock.patch("os.getppid", lambda: FIRST_PID + who):
            return player.denied(tool, given)

    def _begins_call(self, who: int, tool: str, given: dict[str, Any], way: str, name: str, *lines: int) -> str:
        logged = ""
        if who in self.logs:
            logged = self.logs[who].begins()
        tick(self.base)
        said = self._asks(who, tool, given)
        self.calls[who] = Call(tool, given, way, name, *(lines or (0, 0)), logged)
        self.made.discard(who)
        if said:
            self._ends_call(who, is_told=False, is_denied=True)
        tick(self.base)
        return said

    def _ends_call(self, who: int, is_told: bool = True, is_denied: bool = False) -> None:
        """Let the client tell the end: by its hook or plugin after a call that was let pass, and in its log."""
        call, player = self.calls.pop(who), self.players[who]
        self.made.discard(who)
        tick(self.base)
        is_plugin = player.runtime == "opencode" and not is_denied
        with mock.patch("os.getppid", lambda: FIRST_PID + who):
            if is_plugin or (is_told and call.tool == "Bash"):
                make_private(os.path.dirname(ended_mark()))
                Path(ended_mark()).write_bytes(f"{player.session_id}\0".encode() * is_plugin)
                endings.call_is_over(
                    player.core, ToolCall(call.tool, call.given, player.session_id, cwd=str(self.work))
                )
        if who in self.logs:
            self.logs[who].ends(call.logged)
        self._await_moment()

    def _in_a_moment(self) -> float:
        """Return the time for a line of a log: it has whole milliseconds, and no write before it is later than that."""
        self.moment = time.time() + 0.001
        return self.moment

    def _await_moment(self) -> None:
        """Wait until the times of files are later than the last line of a log."""
        tick(self.base)
        with tempfile.TemporaryFile(dir=self.base) as probe:
            while os.fstat(probe.fileno()).st_mtime_ns <= self.moment * 10**9:
                os.utime(probe.fileno())

    @rule(place=PLACES, way=st.sampled_from(WAYS), name=NAMES, at=PLACES)
    def begins(self, place: int, way: str, name: str, at: int) -> None:
        """A call is let pass. Edits, and commands that only add, are never denied."""
        who = self._player(place)
        if who in self.calls:
            return
        text, removable = self._lines(name), self._removable(name, who)
        if way == "looks":
            assert self._begins_call(who, "Bash", {"command": "true"}, way, "-") == ""
        elif way == "builds":
            assert self._begins_call(who, "Bash", {"command": "./build"}, way, "") == ""
        elif way == "appends":
            given = {"command": f"echo '{self._new().strip()}' >> {name}"}
            assert self._begins_call(who, "Bash", given, way, name, self.count, 0) == ""
        elif way == "adds" and text:
            anchor = text[at % len(text)]
            tool, given = edit(self.players[who], name, anchor, anchor + self._new())
            assert self._begins_call(who, tool, given, way, name, self.count, numbers(anchor)[0]) == ""
        elif way == "removes" and removable:
            number = removable[at % len(removable)]
            line = next(line for line in text if numbers(line) == [number])
            tool, given = edit(self.players[who], name, line, "")
            assert self._begins_call(who, tool, given, way, name, number, number) == ""

    @precondition(lambda self: self.calls)
    @rule(place=PLACES, name=NAMES, at=PLACES)
    def writes(self, place: int, name: str, at: int) -> None:
        """An open call writes the file that it names, or another one."""
        who = self._with_call(place)
        call = self.calls[who]
        if call.way == "looks" or (who in self.made and call.way != "builds"):
            return
        self.made.add(who)
        present = numbers("".join(self._lines(call.name or name)))
        if call.way == "adds" and call.anchor in present:
            self._adds(call.name, who, call.number, present.index(call.anchor) + 1, call.way)
        elif call.way == "removes" and call.number in present and call.number in self._removable(call.name, who):
            self._removes(call.name, who, call.number, call.way)
        elif call.way == "appends":
            self._adds(call.name, who, call.number, len(present), call.way)
        elif call.way == "builds":
            removable = self._removable(name, who)
            if at % 3 == 2 and removable:
                self._removes(name, who, removable[at % len(removable)], call.way)
            else:
                self._new()
                self._adds(name, who, self.count, at, call.way)

    @rule(place=PLACES, way=st.sampled_from(WAYS), name=NAMES, at=PLACES, is_formatted=st.booleans())
    def makes_a_call(self, place: int, way: str, name: str, at: int, is_formatted: bool) -> None:
        """A call from its beginning to its end."""
        who = self._player(place)
        if who not in self.calls:
            self.begins(place, way, name, at)
        if who in self.calls:
            nth = sorted(self.calls).index(who)
            self.writes(nth, name, at)
            if is_formatted and who in self.made:
                self.is_formatted(sorted(self.made).index(who))
            self._ends_call(who)

    @precondition(lambda self: self.made)
    @rule(place=PLACES)
    def is_formatted(self, place: int) -> None:
        """The client runs a formatter after a write, as a part of the call."""
        call = self.calls[sorted(self.made)[place % len(self.made)]]
        if call.way in ("adds", "removes"):
            self._put(call.name, [line.replace("( 1 )", "(1)") for line in self._lines(call.name)])

    @precondition(lambda self: self.calls)
    @rule(place=PLACES, is_told=st.booleans())
    def ends(self, place: int, is_told: bool) -> None:
        """A call ends. Without a hook after it (``Esc``) the client's log alone tells."""
        self._ends_call(self._with_call(place), is_told)

    def _with_call(self, place: int) -> int:
        return sorted(self.calls)[place % len(self.calls)]

    @precondition(lambda self: self.players)
    @rule(place=PLACES)
    def turn_ends(self, place: int) -> None:
        who = self._player(place)
        if who not in self.calls:
            with mock.patch("os.getppid", lambda: FIRST_PID + who):  # else this process is a client's: no person's
                self.players[who].turn_ends()
            tick(self.base)

    @precondition(lambda self: self.players)
    @rule(place=PLACES)
    def is_killed(self, place: int) -> None:
        """A session ends, perhaps in the middle of a call."""
        who = self._player(place)
        player = self.players.pop(who)
        self.calls.pop(who, None)
        self.made.discard(who)
        forget(player.runtime, player.session_id)
        tick(self.base)

    @precondition(lambda self: self.owners or self.removers)
    @rule(place=PLACES, name=NAMES, words=st.sampled_from(SWEEPS))
    def sweeps(self, place: int, name: str, words: str) -> None:
        """A command would throw changes away: others' lines are still there, and their removals, or are kept."""
        who = self._player(place)
        if who in self.calls:
            return
        fresh = ""
        if "FRESH" in words:
            fresh = self._new().strip()
        command = words.replace("NAME", name).replace("FRESH", f"'{fresh}'")
        if self._begins_call(who, "Bash", {"command": command}, "sweeps", name * (words[:3] != "git")):
            return
        before, heads = self._all(), {one: self._head(one) for one in FILES}
        is_there = {one: bool(self._lines(one)) for one in FILES}
        subprocess.run(["bash", "-c", command], cwd=self.work, capture_output=True, check=False)
        after, recorded = self._all(), self._recorded()
        for one in FILES:
            for number in set(before[one]) - set(after[one]):
                owners = self.owners.pop(number, frozenset({who}))
                assert not self._must_stay(owners, who, command), f"{command}: w{number} of {set(owners)} is gone"
                assert number in recorded or owners == {who}, f"{command}: w{number} is nowhere"
                if number in heads[one]:
                    self.removers[one, number] = frozenset({who})
                    self.origin[one, number] = "sweeps"
            for number in set(after[one]) - set(before[one]):
                if fresh and number == self.count:
                    self.owners[number] = self._possible(one, who, "appends")
                    self.origin[number] = "appends"
                    continue
                removers = self.removers.pop((one, number))
                is_kept = is_there[one]  # else there is no content to lose
                is_lost = is_kept and self._must_stay(removers, who, command)
                assert not is_lost, f"{command}: the removal of w{number} is gone"
        self._ends_call(who)

    def _must_stay(self, owners: frozenset[int], who: int, command: str) -> bool:
        """Return True for a line that is certainly a person's, or that of another session at work.

        A session that has edited the file since has seen the other's lines: it may remove the whole file.
        """
        return who not in owners and (owners == {PERSON} or (command[:3] == "git" and owners <= set(self.players)))

    # ------------------------------------------------------------------------------------------ a person

    @rule(name=NAMES, at=PLACES, adds=st.booleans())
    def person_saves(self, name: str, at: int, adds: bool) -> None:
        """A person saves, also in the middle of calls: then the line may count as such a call's."""
        removable = self._removable(name, PERSON)
        if adds or not removable:
            self._new()
            self._adds(name, PERSON, self.count, at, "saves")
        else:
            self._removes(name, PERSON, removable[at % len(removable)], "saves")

    @precondition(lambda self: self.players)
    @rule(name=NAMES)
    def person_restores(self, name: str) -> None:
        """The present content is kept first."""
        before = self._all()
        if self._swarm("restore", str(self.work / name), "--person", "--json").code:
            assert self._all() == before
            return
        head, after, recorded = self._head(name), set(self._all()[name]), self._recorded()
        for number in set(before[name]) - after:
            assert number in recorded, f"w{number} is nowhere"
            self.owners.pop(number, None)
            if number in head:
                self.removers[name, number] = frozenset({PERSON, *self.sessions.values()})
                self.origin[name, number] = "restores"
        for number in after - set(before[name]):
            self.removers.pop((name, number), None)
            if number not in head:
                self.owners[number] = frozenset({PERSON, *self.sessions.values()})
                self.origin[number] = "restores"
        tick(self.base)

    @precondition(lambda self: self.count % 5 == 4)
    @rule()
    def person_commits_all(self) -> None:
        git(self.work, "add", "-A")
        git(self.work, "commit", "-qm", "all", "--allow-empty")
        self.owners.clear()
        self.removers.clear()
        tick(self.base)

    # ------------------------------------------------------------------------------------------ commands

    def _swarm(self, *words: str) -> Done:
        done = self.ground.swarm(*words)
        tick(self.base)
        return done

    @precondition(lambda self: self.owners or self.removers)
    @rule(place=st.integers(-1, 5))
    def commits(self, place: int) -> None:
        """A commit has no line, and no removal, that another player alone can have made."""
        who, acting = PERSON, ["--person"]
        if place >= 0:
            who = self._player(place)
            acting = ["--as", self.players[who].id]
        before, heads = self._bytes(), {name: set(self._head(name)) for name in FILES}
        done = self._swarm("commit", "-m", "mine", *acting, "--json")
        assert self._bytes() == before
        for name in FILES:
            head = set(self._head(name))
            assert not done.code or head == heads[name], done
            for number in head - heads[name]:
                owners = self.owners.pop(number)
                assert who in owners, f"{who} has committed w{number} of {set(owners)}"
            for number in heads[name] - head:
                owners = self.removers.pop((name, number))
                assert who in owners, f"{who} has committed the removal of w{number} by {set(owners)}"

    @precondition(lambda self: self.owners or self.removers)
    @rule(place=st.integers(-1, 5), is_back=st.booleans(), is_linked=st.sampled_from((False, False, True)))
    def undoes(self, place: int, is_back: bool, is_linked: bool = False) -> None:
        """An undo takes back no line, and no removal, that another player alone can have made; its undo is where one was.

        `is_linked`: a link to a folder outside is in the place of a folder meanwhile.
        """
        who, whose = PERSON, ["--person", "--all"]
        if place >= 0:
            who = self._player(place)
            whose = ["--session", self.players[who].id]
        before, present = self._all(), self._bytes()
        with contextlib.ExitStack() as stack:
            if is_linked:
                stack.enter_context(self._linked())
            done = self._swarm("undo", *whose, "--json")
        if done.code or not done.json.get("id"):
            assert self._bytes() == present, done
            return
        after, undone = self._all(), self._bytes()
        for name in FILES:
            lost, back = set(before[name]) - set(after[name]), set(after[name]) - set(before[name])
            stay = [one for one in before[name] if one not in lost]
            assert stay == [one for one in after[name] if one not in back], (before[name], after[name])
            for number in lost:
                owners = self.owners.get(number, frozenset())
                assert who in owners, f"the undo of {who} has taken w{number} of {set(owners)}"
            for number in back:
                owners = self.removers.get((name, number), frozenset())
                assert who in owners, f"the undo of {who} has brought back w{number}, removed by {set(owners)}"
        again = self._swarm("undo", "--undo", done.json["id"], "--json")
        assert again.code == 0 and self._bytes() == present, again
        if is_back:
            return
        done = self._swarm("undo", "--undo", again.json["id"], "--json")
        assert done.code == 0 and self._bytes() == undone, done
        for name in FILES:
            for number in set(before[name]) - set(after[name]):
                self.owners.pop(number)
            for number in set(after[name]) - set(before[name]):
                self.removers.pop((name, number))

    @contextlib.contextmanager
    def _linked(self) -> Iterator[None]:
        """Put a link in the place of a folder for a while. Nothing behind it may change."""
        inside, outside = self.work / "sub", self.base / "outside"
        inside.mkdir(exist_ok=True)
        shutil.copytree(inside, outside)
        swap = Swap(inside, outside)
        swap.make()
        try:
            yield
        finally:
            swap.take_back()
            tick(self.base)
        assert swap.seen() == swap.before, "the undo has followed a link"
        shutil.rmtree(outside)

    # ------------------------------------------------------------------------------------------ what holds

    @invariant()
    def all_owners_together_are_the_diff(self) -> None:
        for one in uncommitted(str(self.work)):
            path = Path(one.file.path)
            if one.reason:
                continue
            assert result_of(one, one.pieces) == (path.read_bytes() if path.exists() else b"")
            assert result_of(one, []) == (one.file.head or b"")
            assert all(piece.authors for piece in one.pieces)

    @invariant()
    def each_line_names_its_author(self) -> None:
        for key, owners, named in self._named():
            assert self._is_right(owners, named) or self.counts is not None, (key, set(owners), named)

    def _is_right(self, owners: frozenset[int], named: set[int]) -> bool:
        if len(owners) == 1:
            return owners <= named
        return not owners.isdisjoint(named)

    def _named(self) -> list[tuple[int | tuple[str, int], frozenset[int], set[int]]]:
        """Return ``[(line, its possible owners, those that are named)]`` of added and removed lines."""
        found: list[tuple[int | tuple[str, int], frozenset[int], set[int]]] = []
        for name in FILES:
            try:
                changes = Fold(str(self.work / name)).changes()
            except NoLines:
                continue  # an odd content
            present = numbers("".join(self._lines(name)))
            for change in changes:
                for line in (*change.added, *change.removed):
                    (number,) = numbers(line.text.decode())
                    named = {self.sessions.get(author.session_id, PERSON) for author in line.authors}
                    if number in self.owners and line in change.added:
                        found.append((number, self.owners[number], named))
                    elif (name, number) in self.removers and number not in present:
                        found.append(((name, number), self.removers[name, number], named))
        return found

    def _count(self) -> None:
        """Count the lines of the end by kind."""
        if self.counts is None:
            return
        for key, owners, named in self._named():
            word = "certain"
            if not self._is_right(owners, named):
                word = "wrong"
            elif len(named) > 1:
                word = f"doubtful: {'removed' if isinstance(key, tuple) else 'added'}, {self.origin[key]}"
                if len(owners) > 1:
                    word += ", calls at once"
            self.counts[word] += 1

    @invariant()
    def no_hook_has_failed(self) -> None:
        assert mistakes() == []


def edit(player: Player, name: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    """Return the client's own tool, and its input, that replaces the line `old`."""
    path = str(player.folder / name)
    if player.runtime == "claude-code":
        return "Edit", {"file_path": path, "old_string": old, "new_string": new}
    if player.runtime == "opencode":
        return "edit", {"filePath": path, "oldString": old, "newString": new}
    kept = new.startswith(old)
    hunk = f" {old}+{new[len(old) :]}" if kept else f"-{old}"
    return "apply_patch", patch(f"*** Update File: {name}\n@@\n{hunk}")


def numbers(text: str) -> list[int]:
    """Return the numbers of the lines in a text."""
    return [int(found) for found in WORD.findall(text)]
