"""Sessions that write the same files without locks, against a model that shares no code with the traces.

For each file the model knows the session of each change; for each session, the last change that it has seen by a
command showing the whole file. At `keep` a write of a whole file must be denied exactly if it would destroy a change
that its session has not seen, that is neither committed nor undone, and whose session lives; each edit must pass. The
same holds for removing a folder. A git command that discards a change must be denied while that is the last change.
"""

import contextlib
from unittest import mock

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from support.apart import EXACT, home_apart, without
from support.sessions import mistakes
from support.traced import Player, checkout, git
from swarm_hook_core.traces import others
from swarm_mcp.store import Store

FILES = ("notes.md", "sub/deep.md")
PLACES = st.integers(0, 3)
NAMES = st.sampled_from(FILES)


class Traces(RuleBasedStateMachine):
    """Up to four sessions in one repository, and a person with git."""

    level = "keep"
    make_player: type[Player] = Player

    def __init__(self) -> None:
        super().__init__()
        self._apart = contextlib.ExitStack()
        self.base = self._apart.enter_context(home_apart(SWARM_AUTO=self.level))
        self._apart.enter_context(without(*EXACT))
        self._apart.enter_context(mock.patch.object(others, "OWN_NS", 0))  # no formatter follows
        self.work = checkout(self.base / "work", *FILES)
        self.players: list[Player] = []
        self.alive: list[bool] = []
        self.time = 0
        self.text = dict.fromkeys(FILES, "alpha\nbeta\ngamma\n")
        self.committed = dict(self.text)
        self.wrote: dict[tuple[int, str], int] = {}  # (session, file) -> when it last wrote it
        self.seen: dict[tuple[int, str], int] = {}  # when it last wrote or saw it

    def teardown(self) -> None:
        self._apart.close()

    # ------------------------------------------------------------------------------------------ the model

    def _now(self) -> int:
        self.time += 1
        return self.time

    def _is_in_danger(self, me: int, name: str) -> bool:
        if self.text[name] == self.committed[name]:
            return False
        return any(
            other != me and self.alive[other] and at > self.seen.get((me, name), 0)
            for (other, file), at in self.wrote.items()
            if file == name
        )

    def _has_written(self, me: int, name: str, text: str) -> None:
        assert (self.work / name).read_text() == text
        self.text[name] = text
        self.wrote[me, name] = self.seen[me, name] = self._now()

    # ------------------------------------------------------------------------------------------ what happens

    @initialize(runtimes=st.lists(st.sampled_from(["codex", "claude-code"]), min_size=2, max_size=4))
    def begins(self, runtimes: list[str]) -> None:
        for runtime in runtimes:
            self.players.append(self.make_player(runtime, self.work))
            self.alive.append(True)

    def _player(self, place: int) -> tuple[int, Player]:
        me = place % len(self.players)
        return me, self.players[me]

    @rule(place=PLACES, name=NAMES)
    def overwrites(self, place: int, name: str) -> None:
        me, player = self._player(place)
        if not self.alive[me]:
            return
        text = f"by {me} at {self.time}\n"
        expected = self._is_in_danger(me, name)
        said = player.runs(f"echo 'by {me} at {self.time}' > {name}")
        self._is_denied_where_it_must(me, name, said, expected, text)

    @rule(place=PLACES, name=NAMES)
    def adds_over(self, place: int, name: str) -> None:
        """The client's own tool puts a whole file in the place of one."""
        me, player = self._player(place)
        if not self.alive[me]:
            return
        text = f"added by {me} at {self.time}\n"
        expected = self._is_in_danger(me, name)
        self._is_denied_where_it_must(me, name, player.writes(name, text), expected, text)

    def _is_denied_where_it_must(self, me: int, name: str, said: str, expected: bool, text: str) -> None:
        if self.level == "keep" and expected:
            assert said.startswith("denied: "), said
            assert (self.work / name).read_text() == self.text[name]
            return  # and is denied the next time, too, unless it looks
        assert not said.startswith("denied: "), said
        assert bool(said) is expected
        self._has_written(me, name, text)

    @rule(place=PLACES, name=NAMES)
    def edits(self, place: int, name: str) -> None:
        me, player = self._player(place)
        if not self.alive[me]:
            return
        told = self._is_in_danger(me, name)
        first = self.text[name].split("\n")[0]
        said = player.edits(name, first, f"{me} edits at {self.time}")
        assert not said.startswith("denied: ") and bool(said) is told
        self._has_written(me, name, self.text[name].replace(first, f"{me} edits at {self.time}", 1))

    @rule(place=PLACES)
    def removes_a_folder(self, place: int) -> None:
        me, player = self._player(place)
        if not self.alive[me]:
            return
        expected = self._is_in_danger(me, "sub/deep.md")
        said = player.runs("rm -r sub")
        if expected:
            assert said.startswith("denied: ") is (self.level == "keep"), said
        if said.startswith("denied: "):
            assert expected and (self.work / "sub").exists()
            return
        assert bool(said) is expected and not (self.work / "sub").exists()
        if expected:
            self.wrote[me, "sub/deep.md"] = self.seen[me, "sub/deep.md"] = self._now()
        self.is_undone("sub/deep.md")

    @rule(place=PLACES, name=NAMES)
    def sweeps(self, place: int, name: str) -> None:
        me, player = self._player(place)
        if not self.alive[me]:
            return
        is_changed = self.text[name] != self.committed[name]
        writers = {at: who for (who, file), at in self.wrote.items() if file == name}
        said = player.runs(f"git checkout -- {name}")
        if is_changed and writers and (last := writers[max(writers)]) != me and self.alive[last]:
            assert said and said.startswith("denied: ") is (self.level == "keep"), said
        if not is_changed or not any(self.alive[who] for who in writers.values() if who != me):
            assert said == ""
        if not said.startswith("denied: "):
            self.text[name] = self.committed[name]

    @rule(place=PLACES, name=NAMES)
    def reads(self, place: int, name: str) -> None:
        me, player = self._player(place)
        if self.alive[me]:
            player.runs(f"cat {name}")
            if any(other != me for other in range(len(self.players))):
                self.seen[me, name] = self._now()

    @rule(name=NAMES)
    def is_committed(self, name: str) -> None:
        if self.text[name] != self.committed[name]:
            git(self.work, "commit", "-qm", "a person's", "--", name)
            self.committed[name] = self.text[name]

    @rule(name=NAMES)
    def is_undone(self, name: str) -> None:
        git(self.work, "checkout", "--", name)
        self.text[name] = self.committed[name]

    @rule(place=PLACES)
    def dies(self, place: int) -> None:
        me, player = self._player(place)
        if self.alive.count(True) < 2:
            return
        self.alive[me] = False
        with Store() as store, store.database.writing():
            store.database.change(
                "UPDATE swarm_sessions SET client_pid = 4194305, client_start = '0' WHERE session_id = ?",
                (player.session_id,),
            )
        # What it leaves counts as a person's work (``persons``, with tests of its own): the person commits it.
        for name in {file for who, file in self.wrote if who == me}:
            self.is_committed(name)

    @rule(place=PLACES)
    def works_elsewhere(self, place: int) -> None:
        me, player = self._player(place)
        if self.alive[me]:
            assert player.runs("echo x > elsewhere-" + str(me)) == ""

    @invariant()
    def nothing_went_wrong(self) -> None:
        assert mistakes() == []
        for name in FILES:
            assert (self.work / name).read_text() == self.text[name]
