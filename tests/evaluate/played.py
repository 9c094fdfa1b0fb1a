"""Sessions of Claude Code that are played through its hooks' own commands, with the payloads that the client sends.

The hooks are those that the home's settings hold after a rival was wired, or those of swarm's bundle. A call is made for
real if no hook refuses it. As in the client, a Write over a text that the session has not seen is refused by itself.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from e2e.ground import base_folder, kill_processes_of
from support.sessions import captured

from .mail import Mail
from .ways import MAIL, Way, wire, with_programs

GIT = ("-c", "user.name=e2e", "-c", "user.email=e2e@localhost")
PATIENCE = 300  # seconds for a hook or a command, on any machine


class Place:
    """A home with one way wired, and a checkout that `begin` makes anew."""

    def __init__(self, way: Way, programs: Path | None) -> None:
        self.way = way
        self.root = Path(tempfile.mkdtemp(prefix=f"played-{os.getpid()}-", dir=base_folder()))
        self.home, self.checkout = self.root / "home", self.root / "checkout"
        (self.root / "tmp").mkdir()
        self.home.mkdir()
        self.env = {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "HOME": str(self.home),
            "TMPDIR": str(self.root / "tmp"),
            "LANG": "C.UTF-8",
            "SWARM_UVX": "off",
            "GIT_CONFIG_GLOBAL": str(self.root / "gitconfig"),
            "CLAUDECODE": "1",
        }
        (self.root / "gitconfig").write_text("[user]\nname = e2e\nemail = e2e@localhost\n")
        if programs:
            self.env = with_programs(self.env, programs)
        self.checkout.mkdir()
        if way.level:
            self.env["SWARM_PROTECT"] = way.level
            bundle = self.home / "bundle"
            self.run("swarm-mcp", "bundle", "--local", str(bundle))
            self.env["CLAUDE_PLUGIN_ROOT"] = str(bundle)
            settings = bundle / "integrations" / "claude-code" / "hooks.json"
        else:
            wire(way, self.home, self.checkout, self.env)
            settings = self.home / ".claude" / "settings.json"
        self._hooks: dict[str, Any] = json.loads(settings.read_text())["hooks"] if settings.exists() else {}
        self.trees: list[Path] = []
        self.conflicts = 0
        self.mail = Mail(self.home, self.checkout, self.env) if way.name == MAIL else None

    def close(self) -> None:
        """End the processes of a rival, and remove all."""
        if self.mail:
            self.mail.close()
        kill_processes_of(self.home)
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, *argv: str, cwd: Path | None = None) -> str:
        """Run a program that must succeed, and return its output."""
        done = subprocess.run(
            argv, cwd=cwd or self.checkout, env=self.env, capture_output=True, text=True, timeout=PATIENCE
        )
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout

    def begin(self, files: dict[str, str]) -> None:
        """Make the checkout anew: one commit of these files."""
        for tree in (self.checkout, *self.trees):
            shutil.rmtree(tree)
        self.trees.clear()
        if self.way.ignored:
            files = {**files, ".gitignore": f"{self.way.ignored}\n"}
        for name, text in files.items():
            file = self.checkout / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.run("git", "init", "-q", "-b", "main")
        self.run("git", "add", "-A")
        self.run("git", "commit", "-q", "-m", "Start")
        if self.mail:
            guard = ("python", "-m", "mcp_agent_mail.cli", "guard", "install")
            self.run(*guard, self.mail.project, str(self.checkout), cwd=self.home)

    def folder(self, name: str) -> Path:
        """Return the folder of the session `name`."""
        if not self.way.apart:
            return self.checkout
        tree = self.root / name
        self.run("git", "worktree", "add", "-q", "-b", name, str(tree))
        self.trees.append(tree)
        return tree

    def join(self) -> None:
        """Merge the sessions' work trees. Both sides of a conflict stay in the file, and are counted."""
        for tree in self.trees:
            self.run("git", "add", "-A", cwd=tree)
            self.run("git", "commit", "-q", "--allow-empty", "-m", tree.name, cwd=tree)
        for tree in self.trees:
            merge = ["git", "merge", "-q", "--no-edit", tree.name]
            if subprocess.run(merge, cwd=self.checkout, env=self.env, capture_output=True).returncode:
                for name in self.run("git", "diff", "--name-only", "--diff-filter=U").splitlines():
                    self.conflicts += max((self.checkout / name).read_text().count("<<<<<<< "), 1)
                self.run("git", "add", "-A")
                self.run("git", "commit", "-q", "-m", "conflicts")

    def hooks(self, event: str, tool: str) -> list[str]:
        """Return the commands for an event, as the client chooses them."""
        groups = [
            group
            for group in self._hooks.get(event, ())
            if group.get("matcher", "*") in ("*", "") or re.fullmatch(group["matcher"], tool)
        ]
        return [hook["command"] for group in groups for hook in group["hooks"]]

    def written(self) -> tuple[int, int]:
        """Return the numbers of files that the way has put into the checkout, and outside of it."""
        inside = self.run("git", "ls-files", "--others").splitlines()
        git = [file for file in (self.checkout / ".git" / "hooks").glob("*") if file.suffix != ".sample"]
        outside = [file for file in self.home.rglob("*") if file.is_file() and "transcripts" not in file.parts]
        return len(inside) + len(git), len(outside)


class Answer(NamedTuple):
    """The hooks' answer to a call: the reason of a refusal, and the input as they have changed it, if they have."""

    refusal: str
    changed: dict[str, Any] | None


class Session:
    """One session. `said` has the refusal or the error of the last call; `known` the files' texts as it saw them last."""

    def __init__(self, place: Place, name: str) -> None:
        self.place, self.name, self.folder = place, name, place.folder(name)
        self.id = str(uuid.uuid4())
        self.transcript = place.home / "transcripts" / f"{self.id}.jsonl"
        self.transcript.parent.mkdir(exist_ok=True)
        self.env = {**place.env, "CLAUDE_CODE_SESSION_ID": self.id}
        self.known: dict[str, str] = {}
        self.said = ""
        self.refused = self.failed = 0
        self.seconds: list[float] = []  # of processor time that hooks took, for each call; of a server's, by the clock
        self._asked: list[str] = []  # the files that the session has asked for
        if place.mail:
            self.env["AGENT_NAME"] = place.mail.register()
        self._fire("SessionStart", "startup", source="startup")
        self._fire("UserPromptSubmit", "", prompt="Please go on.")

    def end(self) -> None:
        """End the turn and the session."""
        self._fire("Stop", "", stop_hook_active=False)
        self._fire("SessionEnd", "other", reason="other")

    def next_turn(self) -> None:
        """End the turn, and begin another."""
        self._fire("Stop", "", stop_hook_active=False)
        self._fire("UserPromptSubmit", "", prompt="Please go on.")

    def read(self, name: str) -> None:
        """Read a whole file with the client's tool; it may be missing."""

        def reads(given: dict[str, Any]) -> str:
            self._see(name)
            return ""

        self._call("Read", {"file_path": str(self.folder / name)}, reads)

    def edit(self, name: str, old: str, new: str) -> bool:
        """Put `new` in the place of the only `old`. False: refused, or there is no such text."""

        def edits(given: dict[str, Any]) -> str:
            text = (self.folder / name).read_text()
            if text.count(given["old_string"]) != 1:
                return "String to replace not found in file."
            self._put(name, text.replace(given["old_string"], given["new_string"]))
            return ""

        path = str(self.folder / name)
        given = {"file_path": path, "old_string": old, "new_string": new, "replace_all": False}
        return self._call("Edit", given, edits)

    def write(self, name: str, text: str) -> bool:
        """Put a whole text into a file. False: refused."""

        def writes(given: dict[str, Any]) -> str:
            file = self.folder / name
            if file.exists() and file.read_text() != self.known.get(name):
                return "File has been modified since read. Read it again before attempting to write it."
            self._put(name, given["content"])
            return ""

        return self._call("Write", {"file_path": str(self.folder / name), "content": text}, writes)

    def shell(self, command: str) -> bool:
        """Run a command. False: refused, or it failed."""

        def runs(given: dict[str, Any]) -> str:
            done = subprocess.run(
                ["bash", "-c", given["command"]],
                cwd=self.folder,
                env=self.env,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            if done.returncode == 0:
                return ""
            return done.stderr or done.stdout or "failed"

        return self._call("Bash", {"command": command, "description": "as planned"}, runs)

    def may_write(self, name: str) -> bool:
        """Ask for a file, once, where the way has sessions ask. False: another session has it."""
        if not self.place.way.ask or name in self._asked:
            return True
        self._asked.append(name)
        if self.place.mail:
            begun = time.monotonic()
            granted = not self._by_mail(self.place.way.ask, paths=[name], exclusive=True, ttl_seconds=3600)["conflicts"]
            if not granted:
                self._by_mail(self.place.way.release, paths=[name])
            self.seconds.append(time.monotonic() - begun)
        else:
            granted = self.shell(self.place.way.ask.format(file=name))
        if not granted:
            self._asked.remove(name)
        return granted

    def give_back(self) -> None:
        """Give back the files that the session has asked for."""
        for name in self._asked:
            if self.place.mail:
                self._by_mail(self.place.way.release, paths=[name])
            else:
                self.shell(self.place.way.release.format(file=name))
        self._asked.clear()

    def _by_mail(self, tool: str, **arguments: Any) -> dict[str, Any]:
        assert self.place.mail
        return self.place.mail.call_extended(
            tool, project_key=self.place.mail.project, agent_name=self.env["AGENT_NAME"], **arguments
        )

    def _put(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self._see(name)

    def _see(self, name: str) -> None:
        """Note a file's text as known to the session, in the transcript too."""
        file = self.folder / name
        if not file.exists():
            return
        self.known[name] = file.read_text()
        seen = {"filePath": str(file), "content": self.known[name], "startLine": 1}
        with open(self.transcript, "a") as log:
            log.write(json.dumps({"type": "user", "toolUseResult": {"file": seen}}) + "\n")

    def _call(self, tool: str, given: dict[str, Any], do: Callable[[dict[str, Any]], str]) -> bool:
        self.seconds.append(0.0)
        call = {"tool_name": tool, "tool_input": given, "tool_use_id": f"toolu_{uuid.uuid4().hex[:20]}"}
        answer = self._fire("PreToolUse", tool, **call)
        self.said = answer.refusal
        if self.said:
            self.refused += 1
            return False
        call["tool_input"] = {**given, **(answer.changed or {})}
        self.said = do(call["tool_input"])
        after = ("PostToolUse", "PostToolUseFailure")[bool(self.said)]
        self._fire(after, tool, **call, tool_response={"filePath": given.get("file_path", ""), "error": self.said})
        self.failed += bool(self.said)
        return not self.said

    def _fire(self, event: str, matched: str, **fields: Any) -> Answer:
        """Run the hooks of an event, as the client does; the first refusal counts."""
        payload = {
            **captured("claude-code", "PreToolUse.Read", self.folder),
            "session_id": self.id,
            "transcript_path": str(self.transcript),
            "hook_event_name": event,
        }
        payload = {key: value for key, value in payload.items() if not key.startswith("tool_")}
        refusal, changed = "", None
        for command in self.place.hooks(event, matched):
            if self.place.way.named:
                command = command.replace(self.place.way.named, f"{self.place.way.named}-{self.name}")
            begun = _processor()
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                input=json.dumps({**payload, **fields}),
                cwd=self.folder,
                env=self.env,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            if self.seconds:
                self.seconds[-1] += _processor() - begun
            if event != "PreToolUse":
                continue
            told = _decision(done.stdout)
            if done.returncode == 2:
                refusal = refusal or done.stderr
            elif told.get("permissionDecision") in ("deny", "ask"):  # no person is there to be asked
                refusal = refusal or told.get("permissionDecisionReason") or "denied"
            changed = told.get("updatedInput") or changed
        return Answer(refusal, changed)


def _processor() -> float:
    """Return the seconds of processor time that ended children have had."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _decision(out: str) -> dict[str, Any]:
    """Return a hook's structured answer; other text on its output is for the user."""
    if not out.lstrip().startswith("{"):
        return {}
    return dict(json.loads(out).get("hookSpecificOutput") or {})
