"""A model of two sessions, an agent of one, and a person in two files: it knows the author of each line.

Each line is added, or removed by its own author alone, so that the model needs no merge.
"""

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.apart import moments_apart, tick
from support.sessions import mistakes
from support.traced import Player, checkout, git

FILES = ("notes.md", "sub/deep.md")
NAMES = st.sampled_from(FILES)
NUMBERS = st.integers(0, 5)
PERSON = -1


class Authors(RuleBasedStateMachine):
    """The model: for each file ``[(line, author)]``, an author None for a committed line, and who removed lines."""

    def __init__(self) -> None:
        super().__init__()
        self._apart = moments_apart()
        self.base = self._apart.__enter__()
        self.work = checkout(self.base / "work", *FILES)
        self.players = [Player(runtime, self.work) for runtime in ("codex", "claude-code")]
        for player in self.players:
            self._check(player, "other.md")  # each session works beside another one from the beginning
        self.count = 0
        # [line, author (None: committed), the one who has removed it (None: it is there)]
        self.lines: dict[str, list[list]] = {
            name: [[text, None, None] for text in ("alpha\n", "beta\n", "gamma\n")] for name in FILES
        }

    def teardown(self) -> None:
        self._apart.__exit__(None, None, None)

    # ------------------------------------------------------------------------------------------ the model

    def _text(self, name: str, without: int | None = None) -> str:
        found = []
        for text, author, remover in self.lines[name]:
            if author is not None and author == without:
                continue
            if remover is None or remover == without:
                found.append(text)
        return "".join(found)

    def _texts(self, without: int | None = None) -> dict[str, str]:
        return {name: self._text(name, without) for name in FILES}

    def _on_disk(self) -> dict[str, str]:
        return {name: (self.work / name).read_text() for name in FILES}

    def _add(self, name: str, place: int, author: int) -> None:
        self.count += 1
        self.lines[name].insert(place % (len(self.lines[name]) + 1), [f"<{self.count}>\n", author, None])

    def _remove(self, name: str, place: int, author: int) -> None:
        own = [one for one in self.lines[name] if one[2] is None and one[1] in (None, author)]
        if own:
            own[place % len(own)][2] = author

    # ------------------------------------------------------------------------------------------ steps

    def _check(self, player: Player, name: str, agent: str = "") -> None:
        if player.runtime == "claude-code":
            tool, given = "Edit", {"file_path": str(self.work / name), "old_string": "a", "new_string": "b"}
        else:
            body = f"*** Begin Patch\n*** Update File: {name}\n@@\n-a\n+b\n*** End Patch"
            tool, given = "apply_patch", {"command": body}
        player.told(tool, given, agent)

    def _write(self, name: str) -> None:
        tick(self.base)
        (self.work / name).write_text(self._text(name))
        tick(self.base)

    @rule(
        number=st.integers(0, 1), name=NAMES, place=NUMBERS, adds=st.booleans(), agent=st.sampled_from(["", "helper"])
    )
    def session_edits(self, number: int, name: str, place: int, adds: bool, agent: str) -> None:
        self._edit(number, name, place, adds, agent)

    def _edit(self, number: int, name: str, place: int, adds: bool, agent: str = "") -> None:
        (self._add if adds else self._remove)(name, place, number)
        if not self._text(name):  # a whole text: one of an older look is denied
            self.players[number].check("Bash", {"command": f"cat {name}"}, agent)
        self.players[number].will_put(name, self._text(name), agent)
        self._write(name)

    @rule(edits=st.lists(st.tuples(NUMBERS, NAMES, NUMBERS, st.booleans()), min_size=2, max_size=4))
    def sessions_edit_in_turn(self, edits: list[tuple[int, str, int, bool]]) -> None:
        for number, name, place, adds in edits:
            self._edit(number % 2, name, place, adds)

    @rule(name=NAMES, place=NUMBERS, adds=st.booleans())
    def person_edits(self, name: str, place: int, adds: bool) -> None:
        for player in self.players:
            player.runs("true")
            player.check("Bash", {"command": "true"}, "helper")
        (self._add if adds else self._remove)(name, place, PERSON)
        self._write(name)
        self._looks()

    @precondition(lambda self: self.count % 4 == 3)
    @rule()
    def person_commits(self) -> None:
        git(self.work, "commit", "-qam", "more", "--allow-empty")
        for name in FILES:
            self.lines[name] = [[text, None, None] for text, _author, remover in self.lines[name] if remover is None]
        tick(self.base)

    def _looks(self) -> None:
        """Let each session make another call, the end of its earlier ones."""
        for player in self.players:
            player.runs("true")
            player.check("Bash", {"command": "true"}, "helper")

    # ------------------------------------------------------------------------------------------ invariants

    @invariant()
    def files_are_as_the_model_says(self) -> None:
        assert self._on_disk() == self._texts()

    @invariant()
    def no_hook_has_failed(self) -> None:
        assert mistakes() == []


def settings_of(examples: int, steps: int) -> settings:
    """Return hypothesis' settings for a machine, with as many examples as SWARM_EXAMPLES says instead, if it is set."""
    return settings(
        derandomize=True,
        max_examples=int(os.environ.get("SWARM_EXAMPLES", examples)),
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
