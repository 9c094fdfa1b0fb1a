"""A session that works for real through its hooks: each call is checked, then it happens, then the hook after it runs."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from support.sessions import captured, mistakes, new_session, run, start
from support.world import hunks_of, patch


class Said(NamedTuple):
    """A hook's text about a call, and True for a denial."""

    call: str
    text: str
    denied: bool


class Worker:
    """An obedient session that keeps its hooks' texts.

    Its calls are `edit OLD NEW FILE` and `new FILE`, with its client's tools, or shell commands.
    """

    def __init__(self, runtime: str, repo: Path, level: str) -> None:
        self.runtime, self.repo, self.env = runtime, repo, {"SWARM_AUTO": level}
        self.session = new_session()
        self.said: list[Said] = []
        self.at_turns: list[str] = []
        start(runtime, self.session, repo, **self.env)

    def turn(self, *calls: str) -> None:
        """One turn with these calls."""
        for _ in self.turns_calls(*calls):
            pass

    def turns_calls(self, *calls: str) -> Iterator[str]:
        """The same, one call at a time: yields each when it has been made."""
        self.at_turns.append(self._hook("turn", "UserPromptSubmit", prompt="go on"))
        for call in calls:
            self._call(call)
            yield call
        self._hook("turn", "Stop")

    def _call(self, call: str) -> None:
        verb, *words = call.split(" ")
        if verb == "edit":
            self._edit(*words)
        elif verb == "new":
            self._new(words[0])
        else:
            self._shell(call)

    def _edit(self, old: str, new: str, name: str) -> None:
        file = self.repo / name
        if self.runtime == "codex":
            given = ("apply_patch", patch(f"*** Update File: {name}\n{hunks_of(str(file), old, new)}"))
        else:
            given = ("Edit", {"file_path": str(file), "old_string": old, "new_string": new})
        if self._passes(f"edit {name}", *given):
            text = file.read_text()
            assert old in text, f"the work does not fit the files: no {old!r} in {text!r}"
            file.write_text(text.replace(old, new))

    def _new(self, name: str) -> None:
        text = "a line\nanother line\n"
        if self.runtime == "codex":
            given = ("apply_patch", {"command": _patch(f"*** Add File: {name}\n+a line\n+another line")})
        else:
            given = ("Write", {"file_path": str(self.repo / name), "content": text})
        if self._passes(f"new {name}", *given):
            (self.repo / name).write_text(text)

    def _shell(self, command: str) -> None:
        given: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "call"}
        if self._passes(command, given["tool_name"], given["tool_input"]):
            done = subprocess.run(["/bin/sh", "-c", command], cwd=self.repo, capture_output=True, text=True)
            assert done.returncode == 0 or command == "make test", f"{command}: {done.stderr}"
            self._hear(command, self._hook("post_tool_use", "PostToolUse", tool_response={}, **given))

    def _passes(self, call: str, tool: str, tool_input: dict[str, Any]) -> bool:
        out = self._hook("pre_tool_use", "PreToolUse", tool_name=tool, tool_input=tool_input, tool_use_id="call")
        return not self._hear(call, out)

    def _hear(self, call: str, out: str) -> bool:
        """Keep the text; return True for a denial."""
        if not out:
            return False
        told = json.loads(out)["hookSpecificOutput"]
        denied = told.get("permissionDecision") == "deny"
        self.said.append(Said(call, told.get("permissionDecisionReason") or told["additionalContext"], denied))
        return denied

    def checked(self, command: str) -> bool:
        """Return True if a shell command may run: its check alone, not the command."""
        return self._passes(command, "Bash", {"command": command})

    def end(self) -> None:
        """Leave, as a person does at the end."""
        self._hook("session_end", "SessionEnd", reason="exit")

    def _hook(self, name: str, event: str, **fields: Any) -> str:
        payload = {**captured(self.runtime, "UserPromptSubmit", self.repo), "session_id": self.session}
        ran = run(self.runtime, name, {**payload, "hook_event_name": event, **fields}, self.env, self.repo)
        assert ran.code == 0 and not mistakes(), (ran.err, mistakes())
        return ran.out


def _patch(body: str) -> str:
    return f"*** Begin Patch\n{body}\n*** End Patch\n"


def repository(root: Path, *folders: str) -> Path:
    """A repository with a program and notes in each of `folders`, committed."""
    for folder in folders:
        (root / folder).mkdir(parents=True)
        (root / folder / "app.py").write_text("def one():\n    return 1\n")
        (root / folder / "notes.md").write_text("notes\n")
    for words in (["init", "-q"], ["config", "user.name", "unit"], ["config", "user.email", "unit@localhost"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-qm", "Start"], cwd=root, check=True)
    return root
