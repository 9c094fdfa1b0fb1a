"""A peer changes files that a session has not read since, and the session overwrites them whole, with models of each
family.

Claude Code's own refusal depends on the release, on the family of the model, and on the read part of the file; the fate
of the peer's change must not.
"""

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from swarm_mcp.play.models import Step

from .client import Call, Client
from .clients import ClaudeCode, Codex
from .ground import wait_for
from .more import OtherClient
from .played_peer import PlayedPeer
from .test_more_clients import Stock

pytestmark = pytest.mark.ways("install")

BEFORE = "alpha\nbeta\ngamma\n"
MINE = "MINE\nbeta\ngamma\n"
PEERS_AND_MINE = "MINE\nPEER, too\ngamma\n"  # the peer's line is changed: only a look at it decides
# The first two refuse to overwrite unread files; the others do not, and write.
FAMILIES = ("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5-5")
REFUSE = FAMILIES[:2]
CODEX_MODELS = (Codex.plain_model, "gpt-5.6-terra", "gpt-6-luna", Codex.code_model)
SEEN = pytest.mark.promise(
    "a whole-file write over a change that the model has not seen is denied, whatever the model",
    only=(FAMILIES[-1], CODEX_MODELS[-1]),
)
Calls = Callable[[Client, str], list[Call]]


class Case(NamedTuple):
    """A file: the steps before the peer changes it, and the steps after."""

    before: Calls
    after: Calls
    outcome: str  # both: the peer's change and the session's are there; kept: the peer's alone; model: by its family


def _read(client: Client, file: str, **page: int) -> Call:
    name = "Read" if isinstance(client, ClaudeCode) else "read_file"
    return {"name": name, "input": {"file_path": client.absolute(file), **page}}


def _first_line(client: Client) -> int:
    """The number of a file's first line, as the client's tool counts."""
    return 1 if isinstance(client, ClaudeCode) else 0


def nothing(client: Client, file: str) -> list[Call]:
    return []


def reads(client: Client, file: str) -> list[Call]:
    return client.look(file)


def reads_a_line(client: Client, file: str) -> list[Call]:
    return [_read(client, file, offset=_first_line(client), limit=1)]


def reads_in_pages(client: Client, file: str) -> list[Call]:
    first = _first_line(client)
    return [_read(client, file, offset=first, limit=2), _read(client, file, offset=first + 2, limit=2)]


def writes(client: Client, file: str) -> list[Call]:
    return [client.create(file, MINE)]


def writes_after(look: Calls) -> Calls:
    return lambda client, file: [*look(client, file), client.create(file, PEERS_AND_MINE)]


def writes_in_its_shell(client: Client, file: str) -> list[Call]:
    return [*reads(client, file), client.shell(f"printf 'MINE\\nPEER, too\\ngamma\\n' > {file}")]


def edits(client: Client, file: str) -> list[Call]:
    return [client.replace(file, "alpha", "MINE")]


CASES: dict[str, Case] = {
    "never.md": Case(nothing, writes, "kept"),
    "older.md": Case(reads, writes, "kept"),  # the peer's change has an older time: the client's own look passes
    "whole.md": Case(reads, writes, "kept"),
    "after.md": Case(nothing, writes_after(reads), "both"),
    "shell.md": Case(nothing, writes_in_its_shell, "both"),
    "edit.md": Case(nothing, edits, "model"),
}
IN_PARTS: dict[str, Case] = {
    "part.md": Case(reads_a_line, writes, "kept"),
    "line-after.md": Case(nothing, writes_after(reads_a_line), "kept"),
    "pages.md": Case(nothing, writes_after(reads_in_pages), "both"),
}


def outcome(client: Client, file: str) -> str:
    text = (client.ground.checkout / file).read_text()
    return "lost" if "PEER" not in text else "both" if "MINE" in text else "kept"


def played(client: Client, cases: dict[str, Case], extra: tuple[str, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the outcome of each file, and the result of the model's last call for it."""
    ground = client.ground
    for file in cases:
        (ground.checkout / file).write_text(BEFORE)
    ground.commit(ground.checkout)
    first = [call for file, case in cases.items() for call in case.before(client, file)]
    then = [(file, call) for file, case in cases.items() for call in case.after(client, file)]
    peer = PlayedPeer(ground)
    with client.held("work", *first, *(call for _file, call in then), at=len(first), extra=extra) as live:
        for file in cases:
            peer.edits(file, "beta", "PEER")
        if "older.md" in cases:
            long_ago = (ground.checkout / ".git" / "HEAD").stat().st_mtime_ns - 10**12
            os.utime(ground.checkout / "older.md", ns=(long_ago, long_ago))
        live.go_on()
    told = client.results("work")[len(first) :]
    assert len(told) == len(then), told
    return {file: outcome(client, file) for file in cases}, dict(zip((file for file, _call in then), told, strict=True))


@SEEN
@pytest.mark.only("claude-code")
@pytest.mark.parametrize("model", FAMILIES)
def test_claude_code(client: Client, model: str) -> None:
    """Y1, Y2 and X3 with each family; then a session reads, is resumed, and writes."""
    cases = {**CASES, **IN_PARTS}
    extra = ("--model", model)
    came_of, told = played(client, cases, extra)
    expected = {file: case.outcome for file, case in cases.items()}
    expected["edit.md"] = "kept" if model in REFUSE else "both"
    assert came_of == expected, told
    assert ("PreToolUse" in told["never.md"]) == (model not in REFUSE), told["never.md"]
    assert "PreToolUse" in told["older.md"] and "PreToolUse" in told["line-after.md"], told

    kept = [file for file in cases if came_of[file] == "kept"]
    looks = [call for file in kept for call in reads(client, file)]
    session = client.run("looks", *looks, extra=extra).session
    client.run("again", *(client.create(file, PEERS_AND_MINE) for file in kept), resume=session, extra=extra)
    assert {file: outcome(client, file) for file in kept} == dict.fromkeys(kept, "both"), client.results("again")
    # Overwritten content is kept in any case.
    client.ground.coordinator.text("restore", "never.md")
    assert (client.ground.checkout / "never.md").read_text() == BEFORE.replace("beta", "PEER")


@pytest.mark.only("claude-code")
@pytest.mark.parametrize("model", [FAMILIES[-1]])
def test_a_sub_agent_is_held_to_what_it_has_read_itself(client: Client, model: str) -> None:
    ground, files = client.ground, ("read.md", "by-parent.md")
    for file in files:
        (ground.checkout / file).write_text(BEFORE)
    ground.commit(ground.checkout)
    client.models.script(
        "errand", client.read("read.md"), client.create("read.md", PEERS_AND_MINE), client.create("by-parent.md", MINE)
    )
    peer, errand = PlayedPeer(ground), client.sub_agent("errand")
    with client.held(
        "work", client.shell("true"), client.read("by-parent.md"), *errand, at=1, extra=("--model", model)
    ) as live:
        for file in files:
            peer.edits(file, "beta", "PEER")
        live.go_on()
    assert wait_for(lambda: len(client.results("errand")) == 3, 30), client.results("errand")
    assert [outcome(client, file) for file in files] == ["both", "kept"], client.results("errand")


@SEEN
@pytest.mark.only("claude-code")
@pytest.mark.parametrize("model", FAMILIES[::2])
def test_a_read_beside_the_write_counts(client: Client, model: str) -> None:
    """Both in one answer of the model."""
    ground = client.ground
    both = Step((client.read("notes.md"), client.create("notes.md", PEERS_AND_MINE)))
    with client.held("work", client.shell("true"), both, at=1, extra=("--model", model)) as live:
        PlayedPeer(ground).edits("notes.md", "line one", "PEER")
        live.go_on()
    assert outcome(client, "notes.md") == "both", client.results("work")


@SEEN
@pytest.mark.only("codex")
@pytest.mark.parametrize("model", CODEX_MODELS)
def test_codex(client: Client, model: str) -> None:
    assert isinstance(client, Codex)
    client.model = model
    came_of, told = played(client, CASES, ())
    expected = {file: case.outcome for file, case in CASES.items()}
    assert came_of == {**expected, "edit.md": "both"}, told


@pytest.fixture(scope="module")
def more_stock() -> Iterator[Stock]:
    stock = Stock()
    yield stock
    stock.close()


@pytest.fixture
def qwen(more_stock: Stock) -> Iterator[OtherClient]:
    client = more_stock.client("qwen")
    yield client
    client.ground.end_processes()


@pytest.mark.xdist_group("more-qwen")
def test_qwen(qwen: OtherClient) -> None:
    """It refuses to overwrite unread files, but not a file of which it has read a line; its hook is asked before that."""
    names = ("never.md", "whole.md", "line-after.md", "after.md")
    cases = {file: case for file, case in {**CASES, **IN_PARTS}.items() if file in names}
    came_of, told = played(qwen, cases, ())
    assert came_of == {file: case.outcome for file, case in cases.items()}, told
    assert all("would overwrite" in told[file] for file in cases if came_of[file] == "kept"), told
