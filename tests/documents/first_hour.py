"""A new user's first hour, played in a home of its own: a person at a terminal of 80 columns, and two agents.

The person types into one shell. The agents take part as their clients' hooks make them: sessions that start, and calls
that the plugins' own hook processes check. A call that may go ahead is made for real.
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from support.screen import Played, Screen
from support.sessions import captured
from support.world import file_times_catch_up, hunks_of, patch, some_time_passes

COLUMNS, ROWS = 80, 24
HOME = "/home/you"  # the page's name for the private home, of the same length
CLAUDE = "5f0c2f6e-33a1-4c52-9d5e-1f6f0e3b7a10"
CODEX = "b7d1e0a4-7c2e-4d0b-8a53-6a2f4c9d1e77"
SECONDS = 300  # for one command, however busy the machine is
OFFLINE = {  # the clients' settings that keep them from asking others
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "ANTHROPIC_API_KEY": "dummy-key-for-loopback",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}
# An agent client: it starts the plugin's hooks. Each agent has one of its own, for a hook takes its parent for the client.
CLIENT = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from support.sessions import run
for line in sys.stdin:
    print(json.dumps(run(*json.loads(line)).out), flush=True)
"""
DONE = "\x02"  # written by the shell behind each command, and shown by no terminal
FILES = {
    "schema.sql": "create table orders (\n  id integer,\n  customer integer\n);\n",
    "importer.py": "def rows(file):\n    return [line.split(',') for line in file]\n",
}
YOURS = "\ncreate index orders_customer\n  on orders (customer);\n"  # your lines, at the end of schema.sql
NOTES = "ask Ada about old customers\nrenumber the migrations\n"  # your todo.md


class Scene(NamedTuple):
    """One screen: the typed command, the lines after it, and the terminal's input for them."""

    name: str
    typed: str
    lines: list[str]
    raw: str
    broken: list[str]


class Shell:
    """The person's shell, at a terminal of 80 columns. Each command begins on a screen of its own."""

    def __init__(self, folder: Path):
        self._played = Played(["sh"], COLUMNS, ROWS, cwd=folder, env={"PS1": "", "PS2": "", "ENV": ""})

    def __enter__(self) -> "Shell":
        self.screen("ready", ":")  # the shell's first words
        return self

    def __exit__(self, *exception: object) -> None:
        self._played.__exit__(*exception)

    def screen(self, name: str, command: str, code: int | None = 0) -> Scene:
        """Return the output of `command`, after its end with `code` (None: any code)."""
        played = self._played
        played.screen, played.raw = Screen(COLUMNS), ""
        played.types(f"{command}\nprintf '{DONE}%s{DONE}' $?\n".replace(DONE, "\\002"))
        played.until(lambda _screen: played.raw.count(DONE) == 2, SECONDS)
        raw, ended, _ = played.raw.split(DONE)
        assert code in (None, int(ended)), f"{command} ended with {ended}:\n{raw}"
        screen = Screen(COLUMNS)
        screen.feed(raw)
        return Scene(name, command, screen.text.splitlines(), raw, screen.broken)


class Agent:
    """A session of `runtime` in `shop`, with a process that stands for its client."""

    def __init__(self, runtime: str, session: str, shop: Path):
        self.runtime, self.session, self.shop = runtime, session, shop
        self._client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, json.dumps([os.path.abspath(folder) for folder in sys.path])], cwd=shop, text=True, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> "Agent":
        self._hook("session_start", "SessionStart.startup", {})
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.kill()
        self._client.communicate()

    def _hook(self, hook: str, payload: str, given: dict[str, Any]) -> str:
        """Return the output of a hook that this client starts, on the captured payload of that name."""
        facts = {"session_id": self.session, "cwd": str(self.shop), **given}
        assert self._client.stdin and self._client.stdout
        call = {**captured(self.runtime, payload, self.shop), **facts}
        print(json.dumps([self.runtime, hook, call]), file=self._client.stdin, flush=True)
        return str(json.loads(self._client.stdout.readline()))

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a file with the client's own tool. The call has to pass."""
        file = self.shop / name
        given = patch(f"*** Update File: {name}\n{hunks_of(str(file), old, new)}")
        assert self.refused("apply_patch", given, lambda: file.write_text(file.read_text().replace(old, new, 1))) == ""

    def write(self, name: str, text: str) -> None:
        """Replace a whole file with the client's own tool. The call has to pass."""
        file = self.shop / name
        given = {"file_path": str(file), "content": text}
        assert self.refused("Write", given, lambda: file.write_text(text)) == ""

    def shell(self, command: str) -> str:
        """Run a shell command; return the denial's text, empty for a command that may go ahead."""
        ran = ["sh", "-c", command]
        return self.refused("Bash", {"command": command}, lambda: subprocess.run(ran, capture_output=True))

    def refused(self, tool: str, given: dict[str, Any], make: Callable[[], object]) -> str:
        """Ask the hook about a call, make the call if it may go ahead, and report its end; return a denial's text."""
        call = {"tool_name": tool, "tool_input": given, "tool_use_id": secrets.token_hex(4)}
        answer = self._hook("pre_tool_use", "PreToolUse.Bash", call)
        said = json.loads(answer)["hookSpecificOutput"] if answer else {}
        if said.get("permissionDecision") == "deny":
            return str(said["permissionDecisionReason"])
        file_times_catch_up()
        make()
        some_time_passes()
        self._hook("post_tool_use", "PreToolUse.Bash", {**call, "hook_event_name": "PostToolUse", "tool_response": {}})
        return ""


@contextmanager
def private_home(clients: str) -> Iterator[Path]:
    """Yield a home with a name as long as `HOME`, and a checkout; started programs have no other.

    `clients` is a ``node_modules`` with agent clients, or empty.
    """
    while True:
        home = Path(f"/tmp/{secrets.token_hex(2)}")
        try:
            home.mkdir(mode=0o700)
            break
        except FileExistsError:  # another run has the name
            continue
    before = dict(os.environ)
    try:
        for name in list(os.environ):
            if name.startswith(("SWARM_", "CLAUDE", "CODEX", "XDG_", "HERDR_", "TMUX", "GIT_")):
                del os.environ[name]
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            os.environ.pop(name, None)
        needed = [shutil.which(name) for name in ("git", *(["node"] if clients else []))]
        folders = [os.path.dirname(program) for program in needed if program]
        path = [os.path.dirname(sys.executable), *([f"{clients}/.bin"] if clients else []), *folders, os.defpath]
        os.environ.update(OFFLINE, HOME=str(home), PATH=os.pathsep.join(path), PYTHONDONTWRITEBYTECODE="1")
        _checkout(home / "shop")
        yield home
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(home, ignore_errors=True)


def _checkout(shop: Path) -> None:
    """Make your repository, with one commit of last week."""
    shop.mkdir()
    for name, text in FILES.items():
        (shop / name).write_text(text)
    dated = {**os.environ, "GIT_AUTHOR_DATE": "2026-11-20T12:00:00Z", "GIT_COMMITTER_DATE": "2026-11-20T12:00:00Z"}
    mine = [("config", "user.name", "You"), ("config", "user.email", "you@example.com")]
    for words in (("init", "-q", "-b", "main"), *mine, ("add", "."), ("commit", "-qm", "Orders")):
        subprocess.run(["git", "-C", str(shop), *words], check=True, capture_output=True, env=dated)


def swarm(*words: str) -> str:
    """Return the output of a command that an agent runs in its own shell."""
    done = subprocess.run(["swarm-mcp", *words], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done
    return done.stdout


def play(clients: str = "", look: Callable[[Path], None] | None = None) -> list[Scene]:
    """All scenes in their order, with the clients of this ``node_modules``.

    `look` is called with the checkout near the end, while both agents are still at work.
    """
    before = os.getcwd()
    with private_home(clients) as home:
        shop = home / "shop"
        os.chdir(shop)
        try:
            with Shell(shop) as you:
                return [_renamed(scene, home) for scene in _scenes(you, shop, clients, look)]
        finally:
            os.chdir(before)


def _renamed(scene: Scene, home: Path) -> Scene:
    lines = [line.replace(str(home), HOME) for line in scene.lines]
    return scene._replace(lines=lines, raw=scene.raw.replace(str(home), HOME))


def _scenes(you: Shell, shop: Path, clients: str, look: Callable[[Path], None] | None) -> Iterator[Scene]:
    code = 0 if clients else None  # that nothing is there to install into is an error
    yield you.screen("install", "swarm-mcp install", code)
    yield _shortened(you.screen("doctor", "swarm-mcp doctor", code))
    with Agent("claude-code", CLAUDE, shop) as claude, Agent("codex", CODEX, shop) as codex:
        yield from _yours(you, shop, claude)
        yield from _side_by_side(you, shop, codex)
        yield from _brought_back(you, shop, claude)
        yield from _locked(you, shop, codex)
        yield you.screen("log", "swarm-mcp log --since 3h")
        if look:
            look(shop)
        yield you.screen("off", "swarm-mcp protect off --for 1h")
        yield you.screen("on", "swarm-mcp protect --unset")
    yield you.screen("uninstall", "swarm-mcp uninstall")


def _yours(you: Shell, shop: Path, claude: Agent) -> Iterator[Scene]:
    """Play an agent that would throw away lines of yours."""
    schema = shop / "schema.sql"
    schema.write_text(schema.read_text() + YOURS)  # in your editor
    (shop / "todo.md").write_text(NOTES)
    some_time_passes()
    yield _told("refused", claude.shell("git checkout ."))
    assert schema.read_text().endswith(YOURS)
    _noted("git checkout")
    yield you.screen("status", "swarm-mcp status")


def _side_by_side(you: Shell, shop: Path, codex: Agent) -> Iterator[Scene]:
    """Play an agent that edits the same file as you, and take each one's lines apart."""
    codex.edit("schema.sql", "id integer", "id bigint")
    codex.edit("importer.py", "','", "';'")
    yield you.screen("diff", "swarm-mcp diff --stat")
    yield you.screen("blame", "swarm-mcp blame schema.sql")
    yield you.screen("commit", 'swarm-mcp commit -m "Index the customers" schema.sql')
    yield you.screen("undo", "swarm-mcp undo --session codex")
    assert (shop / "importer.py").read_text() == FILES["importer.py"]
    assert (shop / "schema.sql").read_text() == FILES["schema.sql"] + YOURS


def _brought_back(you: Shell, shop: Path, claude: Agent) -> Iterator[Scene]:
    """Play an agent that replaces a file of yours after it has read it."""
    assert claude.shell("cat todo.md") == ""
    claude.write("todo.md", "1. import the customers\n")
    yield you.screen("kept", "swarm-mcp restore --list todo.md")
    yield you.screen("restore", "swarm-mcp restore todo.md --force")
    assert (shop / "todo.md").read_text() == NOTES


def _locked(you: Shell, shop: Path, codex: Agent) -> Iterator[Scene]:
    """Play a lock of yours, a write that meets it, and an agent that waits for it."""
    yield you.screen("lock", 'swarm-mcp lock schema.sql --note "renumbering migrations"')
    given = patch(f"*** Update File: schema.sql\n{hunks_of(str(shop / 'schema.sql'), 'integer', 'bigint')}")
    yield _told("locked", codex.refused("apply_patch", given, lambda: None))
    _noted("apply_patch")
    in_line = ["swarm-mcp", "lock", "schema.sql", "--wait", "600", "--note", "adding an index"]
    shell = {**os.environ, "CODEX_THREAD_ID": CODEX}
    with subprocess.Popen(in_line, env=shell, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
        try:
            while '"waiting"' not in swarm("locks", "--json"):
                assert waiting.poll() is None, waiting.communicate()
            yield you.screen("why", "swarm-mcp why schema.sql")
            yield you.screen("unlock", "swarm-mcp unlock --all")
            assert waiting.wait(SECONDS) == 0, waiting.communicate()
            codex.edit("schema.sql", "id integer", "id bigint")
        finally:
            waiting.kill()


def _noted(words: str) -> None:
    """Wait until a refusal with these words is in the log: another process notes it."""
    while words not in swarm("log"):
        time.sleep(0.1)


def _shortened(scene: Scene) -> Scene:
    """Return `doctor`'s first line, the proof in each client, and the last line, without the part about this machine."""
    entries = re.split(r"\n(?=  \[|\n)", "\n".join(scene.lines))
    proofs = [entry for entry in entries if "enforcement:" in entry]
    return scene._replace(lines="\n".join([entries[0], "  ...", *proofs, *entries[-1:]]).split("\n"))


def _told(name: str, reason: str) -> Scene:
    """Return a denial's text, as the page has it."""
    assert reason, name
    return Scene(name, "", textwrap.wrap(reason, COLUMNS, break_on_hyphens=False, break_long_words=False), reason, [])
