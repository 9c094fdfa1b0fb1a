"""Sessions, agents and a person that write two files, against a model that knows the author of each line.

At every moment: the true author of each uncommitted line, and of each removed one, is among those that `lines_of` and
`changes_of` name; where sessions used only their write tools, it is the only one, whenever a person edits. A content that a session's write
tool replaces is in a commit or kept. Hooks are killed during the copy, and before the entry in the journal.
"""

import os
import time
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.apart import moments_apart, tick
from support.sessions import mistakes
from support.traced import Player, checkout, git, notes_an_end

from swarm_hook_core import traces
from swarm_hook_core.check import rules
from swarm_hook_core.traces import pruning, versions
from swarm_hook_core.traces.pruning import forget
from swarm_hook_core.traces.versions.lines import Fold
from swarm_hook_core.traces.versions.stored import versions_of

pytestmark = pytest.mark.slow

FILES = ("notes.md", "sub/deep.md")
NAMES = st.sampled_from(FILES)
NUMBERS = st.integers(0, 5)
PERSON = "person"
MOST = 3  # sessions at once


class Killed(BaseException):
    """The hook process was killed."""


class Versions(RuleBasedStateMachine):
    """Up to three sessions in one repository, and a person with an editor and git."""

    def __init__(self) -> None:
        super().__init__()
        self._apart = moments_apart()
        self.base = self._apart.__enter__()
        self.work = checkout(self.base / "work", *FILES)
        self.players: list[Player] = []
        self.count = 0
        begun = [(text, "") for text in ("alpha\n", "beta\n", "gamma\n")]
        self.lines = {name: list(begun) for name in FILES}  # (text, author), an empty author for a committed line
        self.head = {name: [text for text, _author in begun] for name in FILES}
        self.removed: dict[str, dict[str, str]] = {name: {} for name in FILES}  # committed text -> its remover
        self.is_exact = dict.fromkeys(FILES, True)
        self.asked_about = set(FILES)  # files that the last step may have given other authors

    def teardown(self) -> None:
        self._apart.__exit__(None, None, None)

    # ------------------------------------------------------------------------------------------ the model

    def _text(self, name: str) -> str:
        return "".join(text for text, _author in self.lines[name])

    def _new(self) -> str:
        self.count += 1
        return f"<{self.count}>\n"

    def _changed(self, name: str, place: int, author: str, replaces: bool) -> str:
        """Change the model's lines; return the new text of the file."""
        self.asked_about.add(name)
        lines = self.lines[name]
        at = place % (len(lines) or 1)
        if replaces and lines:
            text, _author = lines.pop(at)
            if text in self.head[name]:
                self.removed[name][text] = author
        lines.insert(at, (self._new(), author))
        return self._text(name)

    def _player(self, place: int) -> Player:
        if not self.players or (place >= len(self.players) and len(self.players) < MOST):
            self.players.append(Player(("codex", "claude-code")[place % 2], self.work))
        return self.players[place % len(self.players)]

    def _is_kept(self, name: str, text: str) -> bool:
        if text == "".join(self.head[name]):
            return True
        file = str(self.work / name)
        kept = versions_of(traces.place_of(os.path.dirname(file)), file)
        return any(one.is_whole and one.content() == text.encode() for one in kept)

    # ------------------------------------------------------------------------------------------ what happens

    @rule(number=NUMBERS, name=NAMES, place=NUMBERS, replaces=st.booleans(), agent=st.sampled_from(["", "", "helper"]))
    def edits(self, number: int, name: str, place: int, replaces: bool, agent: str) -> None:
        """A session changes one line with its client's tool."""
        player, before = self._player(number), self._text(name)
        after = self._changed(name, place, player.session_id, replaces)
        player.will_put(name, after, agent)
        assert self._is_kept(name, before)
        self._write(name, after)

    def _check_edit(self, player: Player, name: str, agent: str = "") -> None:
        """Ask for an edit that does not fit the file."""
        if player.runtime == "claude-code":
            tool, given = "Edit", {"file_path": str(self.work / name), "old_string": "a", "new_string": "b"}
        else:
            tool, given = (
                "apply_patch",
                {"command": f"*** Begin Patch\n*** Update File: {name}\n@@\n-a\n+b\n*** End Patch"},
            )
        player.told(tool, given, agent)

    def _write(self, name: str, text: str) -> None:
        tick(self.base)
        (self.work / name).write_text(text)
        tick(self.base)

    @rule(number=NUMBERS, name=NAMES, place=NUMBERS, at=st.sampled_from(["copy", "entry"]))
    def is_killed(self, number: int, name: str, place: int, at: str) -> None:
        """The hook is killed; the client makes the write all the same."""
        player = self._player(number)
        player.runs("ls")  # without a look at its earlier writes
        where = (versions, "_copied") if at == "copy" else (rules, "_leave")
        with mock.patch.object(*where, side_effect=Killed), pytest.raises(Killed):
            self._check_edit(player, name)
            raise Killed  # no copy was due
        self._write(name, self._changed(name, place, player.session_id, True))
        self.is_exact[name] = False

    @rule(number=NUMBERS, name=NAMES)
    def runs(self, number: int, name: str) -> None:
        """A shell command adds a line."""
        player = self._player(number)
        text = self._new()
        self.asked_about.add(name)
        self.lines[name].append((text, player.session_id))
        assert not player.runs(f"echo '{text.strip()}' >> {name}").startswith("denied")
        notes_an_end()
        self._check_edit(player, "third.md")  # a call that is never made: it notes the end
        self.is_exact = dict.fromkeys(FILES, False)

    @rule(name=NAMES, place=NUMBERS, replaces=st.booleans())
    def person_edits(self, name: str, place: int, replaces: bool) -> None:
        """At any time: also right after a session's write, before its next call."""
        lines = self.lines[name]
        if replaces and lines and lines[place % len(lines)][1] not in ("", PERSON):
            self.is_exact[name] = False  # nothing is left of that call: the person may have removed its line as well
        self._write(name, self._changed(name, place, PERSON, replaces))

    @rule()
    def person_commits(self) -> None:
        git(self.work, "commit", "-qam", "more", "--allow-empty")
        self.asked_about.update(FILES)
        for name in FILES:
            self.lines[name] = [(text, "") for text, _author in self.lines[name]]
            self.head[name] = [text for text, _author in self.lines[name]]
            self.removed[name] = {}

    @rule(number=NUMBERS)
    def ends(self, number: int) -> None:
        if self.players:
            player = self.players.pop(number % len(self.players))
            forget(player.runtime, player.session_id)
            self.asked_about.update(FILES)

    @rule()
    def is_pruned(self) -> None:
        pruning.prune_versions(time.time())
        self.asked_about.update(FILES)

    # ------------------------------------------------------------------------------------------ what holds

    @invariant()
    def each_line_has_its_author(self) -> None:
        for name in self.asked_about:
            fold = Fold(str(self.work / name))  # as in `lines_of` and `changes_of`
            found = fold.lines()
            assert [line.text.decode() for line in found] == [text for text, _author in self.lines[name]]
            for line, (text, author) in zip(found, self.lines[name], strict=True):
                assert line.is_committed is (text in self.head[name]), (text, line.authors)
                if not line.is_committed:
                    self._holds(name, author, line.authors)
            for change in fold.changes():
                for line in change.removed:
                    self._holds(name, self.removed[name][line.text.decode()], line.authors)
        self.asked_about.clear()

    def _holds(self, name: str, author: str, authors: tuple[object, ...]) -> None:
        named = {one.session_id or PERSON for one in authors}  # type: ignore[attr-defined]
        assert author in named, (author, authors)
        if self.is_exact[name]:
            assert named == {author}, (author, authors)

    @invariant()
    def no_hook_has_failed(self) -> None:
        assert mistakes() == []


TestVersions = Versions.TestCase
TestVersions.settings = settings(
    max_examples=int(os.environ.get("SWARM_EXAMPLES", "12")),
    stateful_step_count=14,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
