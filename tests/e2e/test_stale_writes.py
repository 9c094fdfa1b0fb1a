"""A session reads a file, a peer changes it, the session writes, and there is no lock: the outcome at each level.

Both are sessions of real clients: of the same client, and one of each. The session reads one file for each way of
writing, is held while the peer changes all of them in one turn that goes on, and then writes them, each in its way.
After a refusal, it reads again and tries once more: at `turn` after the end of the peer's turn.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from swarm_mcp.play.models import Step

from .client import Call, Client
from .clients import CLIENTS, ClaudeCode, Codex
from .conversation import Conversation

pytestmark = pytest.mark.ways("install")

BEFORE = "alpha\nbeta\ngamma\n"  # the peer makes PEER of beta, the session MINE of alpha
GIT = "git -c user.name=e2e -c user.email=e2e@localhost"
PEER = "the-night-shift"
KEPT = pytest.mark.promise("uncommitted work is not lost at keep, whatever writes", only=("keep-codex",))


class Way(NamedTuple):
    """One way to write: `call` makes it for a file whose second line the session believes to be `middle`."""

    call: Callable[[Client, str, str], Call]
    kind: str  # edit, context (an edit with a lost context), whole (by the client's own tool), replace, sweep


def _here_document(client: Client, file: str, middle: str) -> Call:
    return client.shell(f"cat > {file} <<'EOF'\nMINE\n{middle}\ngamma\nEOF\n")


def _draft(verb: str) -> Callable[[Client, str, str], Call]:
    def call(client: Client, file: str, middle: str) -> Call:
        draft = client.ground.tmp / file
        return client.shell(f"printf 'MINE\\n{middle}\\ngamma\\n' > {draft} && {verb} {draft} {file}")

    return call


def _edit(client: Client, file: str, middle: str) -> Call:
    return client.replace(file, "alpha", "MINE")


def _edit_with_context(client: Client, file: str, middle: str) -> Call:
    if isinstance(client, Codex):
        return client.patch(f"*** Update File: {file}\n@@\n-alpha\n+MINE\n {middle}")
    return client.replace(file, f"alpha\n{middle}", f"MINE\n{middle}")


def _whole(client: Client, file: str, middle: str) -> Call:
    return client.create(file, f"MINE\n{middle}\ngamma\n")


def _sweep(verb: str) -> Callable[[Client, str, str], Call]:
    return lambda client, file, middle: client.shell(f"{GIT} {verb}".replace("FILE", file))


WAYS = {
    "edit.md": Way(_edit, "edit"),
    "context.md": Way(_edit_with_context, "context"),
    "whole.md": Way(_whole, "whole"),
    "document.md": Way(_here_document, "replace"),
    "copied.md": Way(_draft("cp"), "replace"),
    "moved.md": Way(_draft("mv"), "replace"),
    "checkout.md": Way(_sweep("checkout -- FILE"), "sweep"),
    "restore.md": Way(_sweep("restore FILE"), "sweep"),
    "stash.md": Way(_sweep("stash"), "sweep"),  # last, since it takes all leftovers of the others
}

# The outcome of the first try. both: the file has both changes; lost: the peer's change is gone; refused: by the client
# itself; denied: by the hook. Claude Code refuses to write a whole file that was changed since it was read.
FIRST = {
    "off": {"edit": "both", "context": "refused", "whole": "lost", "replace": "lost", "sweep": "lost"},
    "keep": {"edit": "both", "context": "refused", "whole": "denied", "replace": "denied", "sweep": "denied"},
    "turn": {"edit": "denied", "context": "denied", "whole": "denied", "replace": "denied", "sweep": "denied"},
}
FIRST["notice"] = FIRST["off"]
GUARDED = {"context": "refused", "whole": "refused"}  # by Claude Code, before any hook


def first_tries(level: str, client: Client) -> dict[str, str]:
    """Return the expected outcome of each way's first try."""
    by_kind = {**FIRST[level], **(GUARDED if isinstance(client, ClaudeCode) else {})}
    return {file: by_kind[way.kind] for file, way in WAYS.items()}


def outcome(client: Client, file: str, told: str) -> str:
    """Return the outcome of a try to write `file`, with `told` as its result for the model."""
    text = (client.ground.checkout / file).read_text()
    if "PEER" not in text:
        return "lost"
    if "MINE" in text:
        return "both"
    return "denied" if "PreToolUse" in told else "refused"


def read(client: Client, file: str) -> Call:
    """Return this client's call to read a file."""
    if isinstance(client, ClaudeCode):
        return client.read(file)
    return client.shell(f"cat {file}")


def change_all(client: Client, files: list[str]) -> list[Step]:
    """Return the answers of a peer's model that turn beta into PEER in all of `files`."""
    if isinstance(client, Codex):
        return [Step((client.patch("\n".join(f"*** Update File: {file}\n@@\n-beta\n+PEER" for file in files)),))]
    return [
        Step(tuple(read(client, file) for file in files)),
        Step(tuple(client.replace(file, "beta", "PEER") for file in files)),
    ]


def other_client(client: Client, name: str) -> Client:
    """Return a client of this name on the same ground, beside `client` and its model."""
    return CLIENTS[name](client.ground)


@pytest.fixture(params=["one of each", pytest.param("of the same client", marks=pytest.mark.thorough)])
def pair(request: pytest.FixtureRequest, both: dict[str, Client], name: str) -> tuple[Client, Client]:
    """The session's client, and its peer's."""
    (other,) = set(CLIENTS) - {name}
    return both[name], other_client(both[name], name if request.param == "of the same client" else other)


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("level", ["off", "notice", pytest.param("keep", marks=KEPT), "turn"])
def test_writes_from_a_stale_read(pair: tuple[Client, Client], level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """X1 to X7, each at this level, and once more after the denial."""
    client, peer = pair
    ground = client.ground
    monkeypatch.setitem(ground.env, "SWARM_AUTO", level)
    files = list(WAYS)
    for file in files:
        (ground.checkout / file).write_text(BEFORE)
    ground.commit(ground.checkout)

    ground.models.script("tries", *(WAYS[file].call(client, file, "beta") for file in files))
    before_the_first, before_the_stash = client.hold("tries", 0), client.hold("tries", len(files) - 1)
    label = {f"SWARM_{peer.prefix}_LABEL": PEER}
    with Conversation(client) as session, Conversation(peer, env=label) as other:
        session.run("reads", *(read(client, file) for file in files))
        session.say("Please <<play tries>> now.")
        assert before_the_first.wait_reached()
        edits = change_all(peer, files)
        ground.models.script("changes", *edits, Step(text="The peer is done."))
        its_last_word = peer.hold("changes", len(edits))
        other.say("Please <<play changes>> now.")
        assert its_last_word.wait_reached()
        before_the_first.open()
        assert before_the_stash.wait_reached()
        told = dict(zip(files, client.results("tries")[len(files) :], strict=False))
        came_of = {file: outcome(client, file, told[file]) for file in files[:-1]}
        before_the_stash.open()
        session.wait()
        told[files[-1]] = client.last_result("tries")
        came_of[files[-1]] = outcome(client, files[-1], told[files[-1]])
        assert came_of == first_tries(level, client), told

        its_last_word.open()
        other.wait()
        if level in ("keep", "turn"):
            again = [file for file in files if came_of[file] in ("denied", "refused")]
            assert tried_again(session, client, again) == {
                file: "denied" if WAYS[file].kind == "sweep" else "both" for file in again
            }


def tried_again(session: Conversation, client: Client, files: list[str]) -> dict[str, str]:
    """Return the outcome of reading each of `files` again and trying once more, after the peer's turn.

    Claude Code's own tool for reading has no hook; its later writes show that the session has read.
    """
    calls = [call for file in files for call in (read(client, file), WAYS[file].call(client, file, "PEER"))]
    session.run(f"again-{len(files)}", *calls)
    told = client.results(f"again-{len(files)}")[-len(calls) :][1::2]
    return {file: outcome(client, file, result) for file, result in zip(files, told, strict=True)}


@pytest.mark.parametrize("level", ["notice", "keep"])
def test_the_stash_is_shared_with_other_work_trees(
    both: dict[str, Client], level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taking a stash entry of a session in another work tree takes away its work."""
    codex, claude = both["codex"], both["claude-code"]
    ground = codex.ground
    monkeypatch.setitem(ground.env, "SWARM_AUTO", level)
    tree = ground.root / "tree"
    ground.git(ground.checkout, "worktree", "add", "-q", str(tree), "-b", "side")
    try:
        with Conversation(codex) as one, Conversation(claude, cwd=tree) as two:
            one.run("put", codex.replace("notes.md", "line one", "line two"), codex.shell(f"{GIT} stash"))
            assert (ground.checkout / "notes.md").read_text() == "line one\n", codex.results("put")
            two.run("take", claude.shell(f"{GIT} stash pop"))
            told = claude.last_result("take")
            assert ("PreToolUse" in told) == (level == "keep"), told
            assert (tree / "notes.md").read_text() == ("line one\n" if level == "keep" else "line two\n")
            if level == "keep":
                one.run("pop", codex.shell(f"{GIT} stash pop"))
                assert (ground.checkout / "notes.md").read_text() == "line two\n", codex.results("pop")
    finally:
        ground.git(ground.checkout, "worktree", "remove", "--force", str(tree))
