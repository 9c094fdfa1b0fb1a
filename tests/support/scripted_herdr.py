"""A script in the place of the command ``herdr``: its panes, its failures, and its calls."""

import json
import shlex
from pathlib import Path

from support.fixtures import BARE_PYTHON
from support.listings import lines_of

# Answers as the real command does (0.7 to 0.9): JSON, an error as JSON or a line on standard error, text from `read`.
SCRIPT = """
import json, os, sys, time
folder = {folder!r}
state = json.load(open(os.path.join(folder, "state.json")))
words = sys.argv[1:]
with open(os.path.join(folder, "calls.jsonl"), "a") as log:
    print(json.dumps([words, os.environ.get("HERDR_SOCKET_PATH", "")]), file=log)
verb = " ".join(words[:2])
if verb in state["failing"]:
    print(state["failing"][verb], file=sys.stderr)
    sys.exit(1)
if state["saying"].get(verb) == "hang":
    if os.fork() == 0:  # a child that keeps our pipes, as wrappers leave them
        time.sleep(60)
        os._exit(0)
    time.sleep(60)
elif verb in state["saying"]:
    sys.stdout.write(state["saying"][verb])
elif verb == "pane split":
    print(json.dumps({{"id": "x", "result": {{"pane": {{"pane_id": "w1:p7"}}, "type": "pane_info"}}}}))
elif words[1:2] == ["create"]:
    print(json.dumps({{"id": "x", "result": {{"root_pane": {{"pane_id": "w2:p1"}}, "tab": {{}}}}}}))
elif verb not in ("pane run", "pane close"):
    pane = state["panes"].get(state["moved"].get(words[2], words[2]))
    if pane is None:
        error = {{"code": "pane_not_found", "message": f"pane {{words[2]}} not found"}}
        print(json.dumps({{"error": error, "id": f"cli:pane:{{words[1]}}"}}), file=sys.stderr)
        sys.exit(1)
    if verb == "pane get":
        print(json.dumps({{"id": "cli:pane:get", "result": {{"pane": pane, "type": "pane_info"}}}}))
    elif verb == "pane read":
        assert words[3:] == ["--source", words[4], "--lines", words[6], "--format", "text"]
        sys.stdout.write(f"{{words[4]}} {{words[6]}} of {{pane['pane_id']}}\\n$ \\n")
"""


class Herdr:
    """The scripted command; `program` is its path."""

    def __init__(self, folder: Path):
        folder.mkdir()
        self.folder = folder
        self.state: dict = {"panes": {}, "moved": {}, "saying": {}, "failing": {}}
        self.program = folder / "herdr"
        (folder / "herdr.py").write_text(SCRIPT.format(folder=str(folder)))
        self.program.write_text(f"#!/bin/sh\nexec {shlex.join(BARE_PYTHON)} '{folder}/herdr.py' \"$@\"\n")
        self.program.chmod(0o755)
        self._save()

    def pane(self, handle: str, agent: str = "claude", status: str = "idle", **more) -> None:
        """Let there be a pane."""
        place = {"workspace_id": handle.partition(":")[0], "tab_id": "w1:t1"}
        self.state["panes"][handle] = {"pane_id": handle, "agent": agent, "agent_status": status, **place, **more}
        self._save()

    def move(self, old: str, new: str) -> None:
        """Move a pane. It still answers to its old name."""
        self.pane(new, agent=self.state["panes"].pop(old)["agent"])
        self.state["moved"][old] = new
        self._save()

    def says(self, verb: str, how: str) -> None:
        """Let ``pane <verb>`` hang (``hang``), or print `how` and succeed."""
        self.state["saying"][f"pane {verb}"] = how
        self._save()

    def fails(self, **verbs: str) -> None:
        """Let these fail, and no others: ``pane_split="why"``."""
        self.state["failing"] = {verb.replace("_", " "): why for verb, why in verbs.items()}
        self._save()

    def calls(self) -> list[list[str]]:
        """The words of every call so far."""
        return [words for words, _ in self._log()]

    def pane_calls(self) -> list[list[str]]:
        """The words of every call about a pane, without ``pane``."""
        return [words[1:] for words in self.calls() if words[0] == "pane"]

    def sockets(self) -> set[str]:
        """Every ``HERDR_SOCKET_PATH`` it was called with."""
        return {socket for _, socket in self._log()}

    def _log(self) -> list:
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in lines_of(path)]

    def _save(self) -> None:
        (self.folder / "state.json").write_text(json.dumps(self.state))
