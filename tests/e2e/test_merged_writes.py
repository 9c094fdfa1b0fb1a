"""A stale whole write goes ahead merged, and the client's rules about the file decide as before."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from .client import Call, Client
from .clients import CLIENTS, ClaudeCode, Codex
from .conversation import Conversation

pytestmark = pytest.mark.ways("install")
PROMISE = pytest.mark.promise("a stale whole write keeps others' lines, and weakens no permission rule")

BEFORE = "".join(f"line {number}\n" for number in range(1, 10))
THEIRS, MINE = BEFORE.replace("line 2", "by another"), BEFORE.replace("line 8", "by me")
BOTH = THEIRS.replace("line 8", "by me")
FILE = "work.md"


def read(client: Client, file: str) -> Call:
    """Return the client's call to read a file."""
    if isinstance(client, ClaudeCode):
        return client.read(file)
    return client.shell(f"cat {file}")


def change(path: Path, text: str) -> None:
    """Write a file, with its time as before: Claude Code itself refuses to write a file that is newer than its look."""
    found = path.stat()
    path.write_text(text)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def commit(client: Client, folder: Path) -> None:
    """Commit all files in `folder`, also if none has changed."""
    client.ground.git(folder, "add", "-A")
    client.ground.git(folder, "commit", "-q", "--allow-empty", "-m", "as it was")


def write_stale(
    client: Client, script: str, files: Iterable[str], text: str = MINE, theirs: str = THEIRS, extra: tuple[str, ...] = (),
    after: Iterable[Call] = (), env: dict[str, str] | None = None,
) -> dict[str, str]:  # fmt: skip
    """Have a session read `files`, change them by hand, let it write `text` into each; return its model's results."""
    ground, files = client.ground, list(files)
    for file in files:
        (ground.checkout / file).parent.mkdir(parents=True, exist_ok=True)
        (ground.checkout / file).write_text(BEFORE)
    commit(client, ground.checkout)
    steps = [*(read(client, file) for file in files), *(client.create(file, text) for file in files), *after]
    with client.held(script, *steps, at=len(files), extra=extra, env=env) as session:
        for file in files:
            change(ground.checkout / file, theirs)
        session.go_on()
    return dict(zip(files, client.results(script)[len(files) :], strict=False))


def play_a_merge(client: Client) -> None:
    """A person's lines stay in the file, the session's are in it, and its model is told."""
    told = write_stale(client, "merge", [FILE], after=[read(client, FILE)])
    assert (client.ground.checkout / FILE).read_text() == BOTH, told
    assert "was merged with a person's change of line 2" in client.said("merge")
    told = write_stale(client, "conflict", ["other.md"], THEIRS.replace("by another", "by me"))
    assert (client.ground.checkout / "other.md").read_text() == THEIRS
    assert "a person's work" in told["other.md"]


@PROMISE
def test_a_stale_text_is_merged(client: Client) -> None:
    play_a_merge(client)


@pytest.mark.only("claude-code")
def test_claude_code_refuses_its_write_of_a_newer_file_and_a_here_document_is_merged(client: Client) -> None:
    """With the file's own time, Claude Code runs no hook before that Write."""
    path = client.ground.checkout / FILE
    path.write_text(BEFORE)
    commit(client, path.parent)
    document = client.shell(f"cat >{FILE} <<'END'\n{MINE}END")
    with client.held("newer", read(client, FILE), client.create(FILE, MINE), document, at=1) as session:
        path.write_text(THEIRS)
        session.go_on()
    assert "File has been modified since read" in client.results("newer")[1]
    assert path.read_text() == BOTH, client.results("newer")


@pytest.mark.only("codex")
def test_a_stale_text_is_merged_in_code_mode(client: Client) -> None:
    assert isinstance(client, Codex)
    client.model = client.code_model
    play_a_merge(client)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_text_is_merged_with_another_sessions_change(both: dict[str, Client], name: str) -> None:
    (other,) = set(CLIENTS) - {name}
    client, peer = both[name], both[other]
    path = client.ground.checkout / FILE
    path.write_text(BEFORE)
    client.ground.commit(client.ground.checkout)
    client.models.script("work", client.create(FILE, MINE), read(client, FILE))
    before = client.hold("work", 0)
    with Conversation(client) as session, Conversation(peer) as another:
        session.run("look", read(client, FILE))
        session.say("Please <<play work>> now.")
        assert before.wait_reached()
        found = path.stat()
        another.run(
            "change",
            *([read(peer, FILE)] if other == "claude-code" else []),
            peer.replace(FILE, "line 2", "by another"),
        )
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        before.open()
        session.wait()
    assert path.read_text() == BOTH, client.results("work")
    said = client.said("work")
    assert f"was merged with {other}" in said and "'s change of line 2" in said


def test_with_merging_off_the_denial_has_the_diff(client: Client) -> None:
    assert client.ground.coordinator.json("protect", "merge", "off")["merge"]["value"] == "off"
    told = write_stale(client, "off", [FILE], after=[client.replace(FILE, "line 8", "by me")])
    assert "merge without conflict: make yours by an edit" in told[FILE] and "| -line 8\n| +by me\n" in told[FILE]
    assert (client.ground.checkout / FILE).read_text() == BOTH, client.results("off")


KINDS = ("allow", "ask", "deny")


def ruled_files(kind: str) -> dict[str, str]:
    """Return the files of four rules of one kind, by the text of Claude Code's rule."""
    return {
        f"Edit({kind}-1.md)": f"{kind}-1.md",
        f"Edit({kind}/**)": f"{kind}/two.md",
        f"Edit(**/{kind}-3.*)": f"sub/{kind}-3.md",
        f"Edit(//{{checkout}}/{kind}-4.md)": f"{kind}-4.md",
    }


def permitted(client: Client, files: Iterable[str]) -> set[str]:
    """Return the files that the session was let write."""
    return {file for file in files if "by me" in (client.ground.checkout / file).read_text()}


@pytest.mark.only("claude-code")
@PROMISE
def test_twelve_rules_of_claude_code(client: Client) -> None:
    assert isinstance(client, ClaudeCode)
    client._permissions = ("--permission-mode", "default")
    root = str(client.ground.checkout).lstrip("/")
    rules = {kind: [rule.replace("{checkout}", root) for rule in ruled_files(kind)] for kind in KINDS}
    files = [file for kind in KINDS for file in ruled_files(kind).values()] + ["none.md"]
    extra = ("--settings", json.dumps({"permissions": rules}))
    told = write_stale(client, "merged", files, extra=extra)
    expected = set(ruled_files("allow").values())
    assert permitted(client, files) == expected, told
    for file in expected:
        assert (client.ground.checkout / file).read_text() == BOTH
    # the same without a replaced input: the text has the other lines itself
    told = write_stale(client, "unmerged", files, BOTH, extra=extra)
    assert permitted(client, files) == expected, told


SANDBOXES = {
    "danger-full-access": {"top", "below", "outside", "git"},
    "workspace-write": {"top", "below"},
    "read-only": set[str](),
}


@pytest.mark.only("codex")
@pytest.mark.parametrize(
    "sandbox", [pytest.param(name, marks=[PROMISE] if name == "workspace-write" else []) for name in SANDBOXES]
)
def test_the_sandboxes_of_codex(client: Client, sandbox: str) -> None:
    """Codex has no rules for files: its sandbox decides, and asks or refuses."""
    ground = client.ground
    outside = ground.home / "repository"
    files = {"top": "top.md", "below": "sub/below.md", "outside": str(outside / "out.md"), "git": ".codex/config.md"}
    outside.mkdir(exist_ok=True)
    ground.git(outside, "init", "-q")
    merged = write_rounds(client, "merged", files, sandbox, MINE)
    assert merged == SANDBOXES[sandbox], client.results("merged")
    assert write_rounds(client, "unmerged", files, sandbox, BOTH) == merged


def write_rounds(client: Client, script: str, files: dict[str, str], sandbox: str, text: str) -> set[str]:
    """Return the names of the files that a session in this sandbox was let write, with the others' lines in them."""
    ground = client.ground
    Path(files["outside"]).write_text(BEFORE)
    commit(client, Path(files["outside"]).parent)
    write_stale(client, script, files.values(), text, extra=("-s", sandbox))
    found = {name: (ground.checkout / file).read_text() for name, file in files.items()}
    assert set(found.values()) <= {THEIRS, BOTH}
    return {name for name, text in found.items() if text == BOTH}
