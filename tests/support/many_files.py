"""A checkout with many files changed by four sessions, each by the client's own tool through the check."""

from pathlib import Path

from support.world import TEXT, Agent, World, file_times_catch_up

SESSIONS = 4


def names_of(count: int) -> list[str]:
    """Return the names of so many files, 50 a folder."""
    return [f"src/part{number // 50}/file{number}.py" for number in range(count)]


class ManyFiles:
    """The checkout `world` with `count` changed files, and its `sessions`.

    `shared`: each file of that number has lines of two sessions.
    """

    def __init__(self, folder: Path, count: int, shared: int = 10):
        self.names = names_of(count)
        self.world = World(folder, *self.names)
        self.sessions = [self.world.session(("codex", "claude-code")[at % 2]) for at in range(SESSIONS)]
        file_times_catch_up()
        for number, name in enumerate(self.names):
            self._edit(self.sessions[number % SESSIONS], name, "alpha", f"MINE {number}")
            if number % shared == 0:
                self._edit(self.sessions[(number + 1) % SESSIONS], name, "gamma", f"THEIRS {number}")
        file_times_catch_up()

    def _edit(self, agent: Agent, name: str, old: str, new: str) -> None:
        """As `Agent.edit`, without the pause between two calls of a model."""
        path = self.world.repo / name
        before = path.read_text()
        after = before.replace(old, new, 1)
        if agent.runtime == "claude-code":
            given: object = {"file_path": str(path), "old_string": old, "new_string": new}
            verdict = agent.ask("Edit", given)
        else:
            lines = "".join(f" {line}\n" if line != old else f"-{old}\n+{new}\n" for line in before.splitlines())
            text = f"*** Begin Patch\n*** Update File: {name}\n@@\n{lines}*** End Patch\n"
            verdict = agent.ask("apply_patch", {"command": text})
        assert not verdict.denied and old in TEXT, verdict.words
        path.write_text(after)
