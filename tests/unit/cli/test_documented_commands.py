"""The command blocks of the pages for users, typed one after the other by a person: each command is carried out."""

import re
import shlex

import pytest
from support.sessions import ROOT
from support.world import TEXT, World

from swarm_mcp.cli.verbs import NOUNS, words_of

pytestmark = pytest.mark.slow

PAGES = ("docs/daily-use.md", "docs/uncommitted-work.md")
# These need a screen, a browser or clients, or go on for ever: other tests run them.
ELSEWHERE = {"top", "page", "watch", "lsp"}
FILES = ("src/schema.sql", "src/importer.py", "migrations/1.sql", "docs/a.md", "go.mod", "theirs.md", "mine.md")


def typed_in(page: str) -> list[tuple[str, list[str]]]:
    """Return each command of ours in the page's blocks: its verb, and its words."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("swarm-mcp ")]
    found = []
    for words in (shlex.split(line, comments=True)[1:] for line in lines):
        noun = words[0] in NOUNS
        found.append((words_of(words[0])[words[1]] if noun else words[0], words))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_each_command_of_a_page_is_carried_out(page: str, world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SWARM_MCP_ALLOW_SPAWN", "1")  # a person, also where tests have no terminal
    for name, value in (("user.name", "You"), ("user.email", "you@example.com")):
        world.git("config", name, value)
    for name in FILES:
        world.write(name, TEXT)
    world.commit()
    world.write("Makefile", "tidy:\n\ttouch tidied\n")
    peer = world.session("codex")
    world.session("claude-code", "role:reviewer claude-code")
    for name in FILES[:2]:
        peer.edit(name)
    world.lock(peer, "theirs.md")
    assert world.swarm("lock", "mine.md").code == 0
    instead = {"[FILE...]": "Makefile", "NAME": f"codex {peer.id[:8]}", "request-lock FILE": "theirs.md"}
    said, faults = "", {}
    for verb, words in typed_in(page):
        if verb in ELSEWHERE:
            continue
        given = [instead.get(f"{verb} {word}", instead.get(word, word)) for word in words]
        given = ["mine.md" if word == "FILE" else word for word in given]
        if "--undo" in given:
            given[-1] = re.findall(r"--undo (\w+)", said)[-1]
        done = world.ground.swarm(*given)
        said += done.out
        if done.code:
            faults[shlex.join(words)] = done
    assert faults == {}
    assert said
