"""A new user's first ten minutes, played at a terminal of 80 columns in a home of its own; the screens of the docs.

usage: PYTHONPATH=tests:tests/documents python tests/documents/first_ten_minutes.py docs/first-ten-minutes.md \\
           docs/images/first-ten-minutes.svg     (`make picture`)

The second file is a recording of some of the scenes, drawn like the demo (`demo_picture.py`).

The real clients are those of ``SWARM_E2E_CLIENTS``, a ``node_modules``. Without them the scenes that install into
clients have less text, and the page keeps its present one for these.

Each block of the page under ``<!-- screen: NAME -->`` is the output of that scene's commands. A person types into one
shell; two agents take part as their clients' hooks make them: sessions that start, and a write that is asked about.
`tests/unit/cli/test_first_ten_minutes.py` plays it without clients and `tests/e2e/test_first_ten_minutes.py` with them;
both compare the page with it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from support.screen import Played, Screen
from support.sessions import start, write

COLUMNS, ROWS = 80, 24
HOME = "/home/you"  # the page's name for the private home, of the same length
CLAUDE = "5f0c2f6e-33a1-4c52-9d5e-1f6f0e3b7a10"
CODEX = "b7d1e0a4-7c2e-4d0b-8a53-6a2f4c9d1e77"
SECONDS = 300  # for one command, however busy the machine is
WITH_CLIENTS = ("install", "doctor", "uninstall")  # scenes that look different without clients
OFFLINE = {  # the clients' settings that keep them from asking others
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "ANTHROPIC_API_KEY": "dummy-key-for-loopback",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}
PICTURED = ("lock", "denied", "status", "why", "stop", "log")
DONE = "\x02"  # written by the shell behind each command, and shown by no terminal
BLOCK = re.compile(r"(<!-- screen: ([\w-]+) -->\n```[a-z]*\n)(.*?)(```)", re.DOTALL)


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

    def __enter__(self) -> Shell:
        self.screen("ready", ":")  # the shell's first words
        return self

    def __exit__(self, *exception: object) -> None:
        self._played.__exit__(*exception)

    def screen(self, name: str, command: str, code: int | None = 0) -> Scene:
        """Return the output of `command`, after its end with `code` (None: any)."""
        played = self._played
        played.screen, played.raw = Screen(COLUMNS), ""
        played.types(f"{command}\nprintf '{DONE}%s{DONE}' $?\n".replace(DONE, "\\002"))
        played.until(lambda _screen: played.raw.count(DONE) == 2, SECONDS)
        raw, ended, _ = played.raw.split(DONE)
        assert code in (None, int(ended)), f"{command} ended with {ended}:\n{raw}"
        screen = Screen(COLUMNS)
        screen.feed(raw)
        return Scene(name, command, screen.text.splitlines(), raw, screen.broken)


@contextmanager
def private_home(clients: str) -> Iterator[Path]:
    """Yield a home with a name as long as `HOME`, and a checkout; started programs have no other.

    `clients` is a ``node_modules`` with agent clients, empty for none.
    """
    while True:
        home = Path(f"/tmp/{secrets.token_hex(2)}")
        try:
            home.mkdir(mode=0o700)
            break
        except FileExistsError:
            continue
    before = dict(os.environ)
    try:
        for name in list(os.environ):
            if name.startswith(("SWARM_", "CLAUDE", "CODEX", "XDG_", "HERDR_", "TMUX")):
                del os.environ[name]
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            os.environ.pop(name, None)
        needed = [shutil.which(name) for name in ("git", *(["node"] if clients else []))]
        folders = [os.path.dirname(program) for program in needed if program]
        path = [os.path.dirname(sys.executable), *([f"{clients}/.bin"] if clients else []), *folders, os.defpath]
        os.environ.update(OFFLINE, HOME=str(home), PATH=os.pathsep.join(path), PYTHONDONTWRITEBYTECODE="1")
        shop = home / "shop"
        shop.mkdir()
        (shop / "schema.sql").write_text("create table orders (id integer);\n")
        git = ["git", "-c", "user.name=You", "-c", "user.email=you@example.com", "-C", str(shop)]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "begun"]):
            subprocess.run([*git, *words], check=True, capture_output=True)
        yield home
    finally:
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(home, ignore_errors=True)


def swarm(*words: str) -> str:
    """Return the output of a command that an agent runs in its own shell."""
    done = subprocess.run(["swarm-mcp", *words], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done
    return done.stdout


def play(clients: str = "") -> list[Scene]:
    """All scenes in their order, with the clients of this ``node_modules``."""
    before = os.getcwd()
    with private_home(clients) as home:
        shop = home / "shop"
        os.chdir(shop)
        try:
            with Shell(shop) as you:
                return [_renamed(scene, home) for scene in _scenes(you, shop, clients)]
        finally:
            os.chdir(before)


def _renamed(scene: Scene, home: Path) -> Scene:
    lines = [line.replace(str(home), HOME) for line in scene.lines]
    return scene._replace(lines=lines, raw=scene.raw.replace(str(home), HOME))


def _scenes(you: Shell, shop: Path, clients: str) -> Iterator[Scene]:
    yield you.screen("alone", "swarm-mcp")
    code = 0 if clients else None  # that nothing is there to install into is an error
    yield you.screen("install", "swarm-mcp install", code)
    yield _shortened(you.screen("doctor", "swarm-mcp doctor", code))
    yield you.screen("empty", "swarm-mcp status")
    yield you.screen("lock", 'swarm-mcp lock schema.sql --note "renumbering migrations"')
    start("claude-code", CLAUDE, shop)
    start("codex", CODEX, shop)
    assert write("claude-code", CLAUDE, shop, shop / "importer.py").reason == ""
    (shop / "importer.py").write_text("rows = []\n")
    yield _denied(shop)
    in_line = ["swarm-mcp", "lock", "schema.sql", "--wait", "600", "--note", "adding an index"]
    shell = {**os.environ, "CODEX_THREAD_ID": CODEX}
    with subprocess.Popen(in_line, env=shell, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
        try:
            while '"waiting"' not in swarm("locks", "--json"):
                assert waiting.poll() is None, waiting.communicate()
            yield you.screen("status", "swarm-mcp status")
            yield you.screen("why", "swarm-mcp why schema.sql")
            yield you.screen("stop", "swarm-mcp unlock --all")
            assert waiting.wait(SECONDS) == 0, waiting.communicate()
        finally:
            waiting.kill()
    yield you.screen("handed", "swarm-mcp locks")
    yield you.screen("log", "swarm-mcp log --since 3h")
    yield you.screen("denials", "swarm-mcp log schema.sql")
    for name, session in (("claude-code", CLAUDE), ("codex", CODEX)):  # clients played by this process
        swarm("deregister", "--runtime", name, "--session-id", session)
    yield you.screen("uninstall", "swarm-mcp uninstall")


def _shortened(scene: Scene) -> Scene:
    """Return `doctor`'s first line, the proof in each client, and the last line, without the part about this machine."""
    entries = re.split(r"\n(?=  \[|\n)", "\n".join(scene.lines))
    proofs = [entry for entry in entries if "enforcement:" in entry]
    return scene._replace(lines="\n".join([entries[0], "  ...", *proofs, *entries[-1:]]).split("\n"))


def _denied(shop: Path) -> Scene:
    """Return the text for a model that wanted to write your locked file."""
    reason = write("codex", CODEX, shop, "schema.sql").reason
    assert reason
    lines = textwrap.wrap(reason, COLUMNS, break_on_hyphens=False, break_long_words=False)
    return Scene("denied", "", lines, reason, [])


def shown(scene: Scene) -> str:
    """A scene as the page has it."""
    return "\n".join([*([f"$ {scene.typed}"] if scene.typed else []), *scene.lines]).rstrip()


def said(text: str) -> Counter[str]:
    """Return the words of a screen without the parts that vary: ages, spans, ids, numbers of versions, order."""
    text = re.sub(r"\bnow\b|\b\d+ (s|min) ago\b", "ago", " ".join(text.split()))
    text = re.sub(r", after waiting \d+ s|\(\d+s\)|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{8}\b", "", text)
    return Counter(re.sub(r"\d+(\.\d+)+\w*|\d+ (ms|s|min)\b", "", text).split())


def screens_of(page: str) -> dict[str, str]:
    """The screens that a page has, by the names of their scenes."""
    return {found[2]: found[3].rstrip("\n") for found in BLOCK.finditer(page)}


def drawn(scenes: list[Scene]) -> str:
    """Return the recording of the pictured scenes: the typed commands, and the lines in their colours."""
    from demo_picture import picture, rows_of

    rows: list = []
    for scene in scenes:
        if scene.name in PICTURED:
            rows += (
                [[("s2", "$ "), ("s1", scene.typed)]]
                if scene.typed
                else [[("s2", "Codex wants to write it. Its model reads:")]]
            )
            rows += rows_of(scene.raw, COLUMNS) if scene.typed else [[("", line)] for line in scene.lines]
            rows.append([])
    return picture(rows[:-1], "A recording of a terminal: a lock, a refused write, who waits, and what has happened")


def main(target: str, pictured: str) -> None:
    page, clients = Path(target).resolve(), os.environ.get("SWARM_E2E_CLIENTS", "")
    recording = Path(pictured).resolve()
    text = page.read_text(encoding="utf-8")
    scenes = play(clients)
    screens = {scene.name: shown(scene) for scene in scenes if clients or scene.name not in WITH_CLIENTS}
    recording.write_text(drawn(scenes), encoding="utf-8")

    def with_screen(found: re.Match[str]) -> str:
        return f"{found[1]}{screens[found[2]]}\n{found[4]}" if found[2] in screens else found[0]

    page.write_text(BLOCK.sub(with_screen, text), encoding="utf-8")
    print(f"{target}: {len(screens)} screens{'' if clients else '; those with clients are as they were'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
