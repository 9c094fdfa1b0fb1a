"""A formatter that the client runs after each edit, as its user's settings say: the file stays the session's."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from .appserver import trust_hooks
from .client import Client
from .test_own_commit import asked

pytestmark = pytest.mark.ways("install")

SPACED = "f( 1 )\ng( 2 )\nh( 3 )\n"
BEFORE = {"spaces": SPACED, "line ends": SPACED.replace("\n", "\r\n"), "a byte order mark": f"\ufeff{SPACED}"}
FORMATTED = "f(1)\ng(22)\nh(3)\n"
FORMATTER = """\
import sys
sys.stdin.read()
with open("w.ts", "rb") as file:
    text = file.read()
with open("w.ts", "wb") as file:
    file.write(text.removeprefix(b"\\xef\\xbb\\xbf").replace(b"( ", b"(").replace(b" )", b")").replace(b"\\r\\n", b"\\n"))
"""
EDITS = {"claude-code": "Edit|Write", "codex": "apply_patch|Edit|Write"}


@contextmanager
def formatter(client: Client) -> Iterator[None]:
    """Have the client run a formatter after each edit, by a hook in its user's settings."""
    home = client.ground.home
    program = home / "formatter.py"
    program.write_text(FORMATTER)
    hook = {"type": "command", "command": f"{sys.executable} {program}"}
    group = {"matcher": EDITS[client.name], "hooks": [hook]}
    settings = home / (".claude/settings.json" if client.name == "claude-code" else ".codex/hooks.json")
    before = settings.read_text() if settings.exists() else ""
    given = json.loads(before or "{}")
    given.setdefault("hooks", {}).setdefault("PostToolUse", []).append(group)
    settings.write_text(json.dumps(given))
    try:
        if client.name == "codex":
            trust_hooks(client.ground)
        yield
    finally:
        if before:
            settings.write_text(before)
        else:
            settings.unlink()


@pytest.mark.parametrize("what", BEFORE)
def test_a_session_keeps_a_file_that_its_client_s_formatter_lays_out(what: str, client: Client) -> None:
    ground, file = client.ground, client.ground.checkout / "w.ts"
    file.write_bytes(BEFORE[what].encode())
    ground.commit(ground.checkout)
    for name, value in (("user.name", "t"), ("user.email", "t@t")):
        ground.git(ground.checkout, "config", name, value)
    edit, more = client.change("w.ts", "g( 2 )", "g( 22 )"), client.change("w.ts", "h(3)", "h( 33 )")
    blame, commit = client.shell("swarm-mcp blame w.ts"), client.shell("swarm-mcp commit -m formatted w.ts")
    with formatter(client):
        client.run("formatted", *edit, blame, commit, *more, client.shell("cat w.ts; git checkout -- w.ts"))
    told = client.results("formatted")
    assert "g(22)" in told[len(edit)] and "a person" not in told[len(edit)], told
    assert asked(client, "log", "-1", "--format=%s") == "formatted\n", told
    assert asked(client, "show", "HEAD:w.ts") == FORMATTED, told
    assert "h(33)" in told[-1], told
    assert file.read_text() == FORMATTED and asked(client, "status", "--porcelain", "w.ts") == "", told
