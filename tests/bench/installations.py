"""Installations to compare: each the environment that pip filled, and the hooks that its ``swarm-mcp install`` wrote."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from .plugin import WrongAnswer

CLIENTS = {"claude-code": "claude", "codex": "codex"}
HOOKS = {"claude-code": "integrations/claude-code/hooks.json", "codex": "codex/integrations/codex/hooks.json"}
# Claude Code starts hooks by /bin/sh, Codex by the user's shell.
SHELLS = {"claude-code": "/bin/sh", "codex": shutil.which("bash") or "/bin/sh"}
REFUSES = "#!/bin/sh\nexit 1\n"  # the clients are asked after the hooks are written
STOPPED = "import time; time.thread_time = lambda: 0.0"


class Installation:
    """One installation.

    name      its column
    script    pip's ``swarm-mcp``
    plugin    the folder that a client reads its hooks from
    python    the interpreter that the hooks start
    relay     the relay in C that the hooks start, or an empty string
    """

    def __init__(self, name: str, environment: Path, root: Path):
        self.name = name
        self.script = str(environment / "bin" / "swarm-mcp")
        home, clients = root / f"installed-{name}", root / "refusing"
        home.mkdir()
        clients.mkdir(exist_ok=True)
        for client in CLIENTS.values():
            (clients / client).write_text(REFUSES)
            (clients / client).chmod(0o755)
        words = [self.script, "install", *(word for client in CLIENTS for word in ("--client", client))]
        env = {"PATH": f"{clients}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}
        done = subprocess.run(words, env=env, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        records = list(home.rglob("install.json"))
        if len(records) != 1:
            raise WrongAnswer(f"{' '.join(words)} wrote no hooks: {done.stdout}{done.stderr}")
        self.plugin = records[0].parent
        self.python: str = json.loads(records[0].read_text())["python"]
        found = re.search(r"exec ('?)(/\S*/swarm_relay)\1 ", self.command("codex", "PreToolUse")[2])
        self.relay = ""
        if found:
            self.relay = found[2]
        self._counted = self._without_clocks(home / "counted")

    def command(self, runtime: str, event: str) -> list[str]:
        """Return the argv of the client for the hook of `event`: the first one, others are of rare tools."""
        tree = json.loads((self.plugin / HOOKS[runtime]).read_text())["hooks"]
        return [SHELLS[runtime], "-c", tree[event][0]["hooks"][0]["command"]]

    def variables(self, runtime: str) -> dict[str, str]:
        """Return the variables that the client sets for its hooks."""
        if runtime == "claude-code":
            return {"CLAUDE_PLUGIN_ROOT": str(self.plugin)}
        return {}

    def counted(self, command: list[str], variables: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        """Return a command of the plugin and its variables as those of the copy without clocks."""
        plain, copy = str(self.plugin), str(self._counted)
        return [word.replace(plain, copy) for word in command], {
            name: value.replace(plain, copy) for name, value in variables.items()
        }

    def before_python(self, command: list[str]) -> list[list[str]]:
        """Return commands that end where `command` starts another program in its own place.

        A program that is replaced reports no count. First the shell alone, then the relay, which finds no checker.
        """
        shell, flag, text = command
        if f"{self.python} -E" not in text:
            return []
        found = [[shell, flag, text.replace(f"{self.python} -E", "/nonexistent -E")]]
        if self.relay:
            text = text.replace("trap check EXIT; ", "").replace("shopt -s execfail", ":")  # it is not to go on
            of_shell = re.sub(rf"exec '?{re.escape(self.relay)}'? ", "exec /nonexistent ", text, count=1)
            found.insert(0, [shell, flag, of_shell])
        return found

    def _without_clocks(self, copy: Path) -> Path:
        """Copy the plugin for the counter: there a call takes fifty times as long, and no clock may cut it short."""
        shutil.copytree(self.plugin, copy)
        for name, pattern, instead in (
            ("integrations/hook.py", "^import sys$", f"import sys; {STOPPED}"),
            ("integrations/hook.sh", r"within=[\d.]+", "within=60"),
            ("bin/swarm-mcp", "import sys;", f"import sys; {STOPPED};"),
        ):
            path = copy / name
            text, count = re.subn(pattern, instead, path.read_text(), flags=re.MULTILINE)
            if not count:
                raise WrongAnswer(f"{path} has no clock to stop")
            path.write_text(text)
        return copy


def installations(named: list[str], own: Path, root: Path) -> list[Installation]:
    """Return those of `named`, ``NAME=FOLDER`` each, before and behind the one in `own`, as they are ordered there.

    A name alone stands for `own`. Without any name `own` is the only one.
    """
    found = [word.partition("=") for word in named] or [("now", "", "")]
    if all(folder for _, _, folder in found):
        found.append(("now", "", ""))
    return [Installation(name, Path(os.path.abspath(folder or own)), root) for name, _, folder in found]
