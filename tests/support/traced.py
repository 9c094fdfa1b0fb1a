"""Sessions that write in one checkout with no lock taken, played through the check in this process."""

import os
from pathlib import Path
from typing import Any

from support.world import Agent, Verdict, checkout, git, hunks_of, patch
from swarm_hook_core.state import ended_mark, make_private
from swarm_hook_core.traces import journal_name, place_of
from swarm_hook_core.traces.versions.lines import Fold, Line
from swarm_hook_core.traces.versions.stored import contents_below

__all__ = ["Player", "checkout", "git", "lost_in", "note", "notes_an_end"]


class Player(Agent):
    """A session whose calls are answered by texts: empty for a silent pass, ``denied: ...``, or the notice."""

    def denied(self, tool: str, given: Any, agent: str = "") -> str:
        """Why a call is denied, empty where it may pass."""
        return self.ask(tool, given, agent).words

    def told(self, tool: str, given: Any, agent: str = "") -> str:
        """Return the text for the model of a call that must pass."""
        verdict = self.ask(tool, given, agent)
        assert not verdict.denied, verdict.words
        return verdict.notice

    def will_put(self, name: str, after: str | None, agent: str = "") -> str:
        """Ask for the call of the client's own tool that puts `after` in the place of a file's text; None: no file."""
        path = Path(self.folder, name)
        before = path.read_bytes().decode() if path.exists() else ""
        if self.runtime == "claude-code":
            if before and after and before != after:
                return self.told("Edit", {"file_path": str(path), "old_string": before, "new_string": after}, agent)
            return self.told("Write", {"file_path": str(path), "content": after or ""}, agent)
        if after is None:
            body = f"*** Delete File: {name}\n"
        elif not before:
            body = f"*** Add File: {name}\n" + "".join(f"+{line}\n" for line in after.split("\n")[:-1])
        else:
            body = f"*** Update File: {name}\n{hunks_of(str(path), before, after)}"
        return self.told("apply_patch", patch(body), agent)

    def runs(self, command: str) -> str:
        """Run a shell command."""
        return _text(self.bash(command))

    def edits(self, name: str, old: str, new: str) -> str:
        """Change some text of a file with the client's own tool."""
        return _text(self.edit(name, old, new))

    def writes(self, name: str, text: str) -> str:
        """Put other text in the place of a whole file with the client's own tool."""
        return _text(self.write(name, text))


def _text(verdict: Verdict) -> str:
    return f"denied: {verdict.words}" if verdict.denied else verdict.notice


def note(who: str, folder: str, kind: str, key: str, at: float, text: str = "", runtime: str = "codex") -> None:
    """Add an entry to the journal of session `who`."""
    path = Path(place_of(folder), journal_name(runtime, who))
    path.parent.mkdir(parents=True, exist_ok=True)
    first = "" if path.exists() else f"1 session - {runtime}\0{who}\n"
    with open(path, "a") as file:
        file.write(f"{first}{int(at * 1e9)} {kind} - Bash\0{key}{text and chr(0) + text}\n")


def notes_an_end() -> None:
    """Leave the mark of the hook after a call: some call has ended."""
    make_private(os.path.dirname(ended_mark()))
    Path(ended_mark()).write_bytes(b"")


def lost_in(folder: Path) -> dict[str, bytes]:
    """Return ``{name: content}`` of the contents that were kept before a call destroyed them."""
    found = {}
    for path, contents in contents_below(str(folder)).items():
        lost = [one for one in contents if one.is_lost]
        if lost:
            found[path.rpartition("/")[2]] = lost[0].content()
    return found


def lines_of(path: str) -> list[Line]:
    """Return the present lines of the file at `path`, with their authors."""
    return Fold(path).lines()
