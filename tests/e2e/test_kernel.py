"""The kernel protects locked files from unpredictable writes, beside hooks, permission rules and strict mode."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from swarm_mcp.play.models import Step

from .checks import assert_denied, assert_text, assert_untouched
from .client import Client
from .clients import ClaudeCode
from .coordinator import PEER_NAME
from .ground import wait_for
from .kernel_work import FIX, ON, WORDS, fill, kernel_state, nothing_left, script, static


@pytest.mark.promise("the kernel keeps held files read-only", only=("claude-code",))
@pytest.mark.ways("install")
def test_whatever_writes_it(client: Client) -> None:
    """Programs of all kinds, one after another in one session: each does its permitted part, and is told of the rest."""
    ground, checkout = client.ground, client.ground.checkout
    fill(ground, "notes.md", "folder/new.md", "folder/in/a.md", "other.md")
    (checkout / "Makefile").write_text("all:\n\t@python3 fix.py\n")
    (checkout / "package.json").write_text(json.dumps({"name": "x", "scripts": {"fix": "python3 fix.py"}}))
    for file in ("tree/one/a.md", "tree/held.md", "tree/two/b.md", "parent/held.md", "folder/in/a.md"):
        (checkout / file).parent.mkdir(parents=True, exist_ok=True)
        (checkout / file).write_text("as it was\n")
    peer = ground.coordinator.peer_lock("notes.md")
    for file in ("tree/held.md", "parent/held.md", "folder"):
        ground.coordinator.lock(peer, str(file), "careful surgery")
    calls = {
        "a script": "python3 fix.py",
        "make": "make -s",
        "npm": "npm run --silent fix",
        "rm -rf": script(ground, "clear.py", ["rm", "-rf", "tree"]),
        "a renamed parent": script(ground, "move.py", ["mv", "parent", "moved"]),
    }
    if built := static(checkout):
        calls["a static program"] = built
    with nothing_left(ground):
        client.run("work", *map(client.shell, calls.values()), env=ON)
    told = dict(zip(calls, client.results("work"), strict=True))
    for name in ("a script", "make", "npm"):
        for file in ("notes.md", "folder/new.md", "folder/in/a.md"):
            assert f"Read-only file system: '{file}'" in told[name], (name, told)
    assert "busy" in told["rm -rf"] and "tree/held.md" in told["rm -rf"], told
    assert sorted(p.name for p in (checkout / "tree").iterdir()) == ["held.md"], "the rest of the folder is gone"
    assert_text(client, "folder/in/a.md", "as it was\n")
    assert_text(client, "tree/held.md", "as it was\n")
    # This the kernel lets through, and the documents say so: the file itself is as it was, at another place.
    assert_text(client, "moved/held.md", "as it was\n")
    assert_untouched(client, "notes.md")
    assert_text(client, "other.md", "spoilt\n")
    said = client.said("work")
    assert WORDS in said and PEER_NAME in said
    if not built:
        pytest.skip("no C compiler here that makes static programs; all others were tried")
    assert "static: Read-only file system" in told["a static program"]


# Writes a permitted and a locked file, and does not end before the other has begun.
BOTH = """\
import json, os, pathlib, time
names, other = json.loads(pathlib.Path("names.json").read_text())
said = []
for name in names:
    try:
        pathlib.Path(name).write_text("spoilt\\n")
    except OSError as error:
        said.append(os.strerror(error.errno) + " " + os.path.basename(name))
pathlib.Path("begun").touch()
while not os.path.exists(other):
    time.sleep(0.02)
pathlib.Path("said").write_text(json.dumps(said))
"""


@pytest.mark.ways("install")
def test_two_calls_in_one_answer(client: Client) -> None:
    """Each works in a repository of its own with a file locked by another session."""
    ground, checkout = client.ground, client.ground.checkout
    peer = ground.coordinator.peer_lock("notes.md")
    folders = {name: ground.root / name for name in ("one", "two")}
    for name, other in (("one", "two"), ("two", "one")):
        make(folders[name], [str(checkout / file) for file in ("notes.md", f"{name}.md")], folders[other] / "begun")
        ground.git(folders[name], "init", "-q")
        ground.coordinator.lock(peer, str(folders[name] / f"locked-{name}"), "careful surgery")
    calls = [client.shell(f"cd {folder} && python3 both.py") for folder in folders.values()]
    if isinstance(client, ClaudeCode):  # Claude Code runs foreground commands one after the other
        calls[0]["input"]["run_in_background"] = True
    try:
        with client.held("work", Step(calls=tuple(calls)), env=ON) as live:
            (session,) = ground.coordinator.sessions()
            ground.coordinator.lock(session["id"], "one.md", "my own")
            live.go_on()
        for name, folder in folders.items():
            assert wait_for((folder / "said").exists, 60), client.results("work")
            said = json.loads((folder / "said").read_text())
            assert said == ["Read-only file system notes.md", f"Read-only file system locked-{name}"], client.results(
                "work"
            )
            assert (folder / f"locked-{name}").read_text() == "as it was\n"
            assert_text(client, f"{name}.md", "spoilt\n")
    finally:
        for folder in folders.values():
            shutil.rmtree(folder)
    assert_untouched(client, "notes.md")


def make(folder: Path, names: list[str], other: Path) -> None:
    folder.mkdir()
    (folder / "both.py").write_text(BOTH)
    (folder / f"locked-{folder.name}").write_text("as it was\n")
    (folder / "names.json").write_text(json.dumps([[*names, f"locked-{folder.name}"], str(other)]))


@pytest.mark.ways("install")
def test_git_in_a_script_and_what_can_be_told(client: Client) -> None:
    ground, checkout = client.ground, client.ground.checkout
    fill(ground, "notes.md", "other.md")
    ground.coordinator.peer_lock("notes.md")
    for file in ("notes.md", "sub/deep.md"):
        (checkout / file).write_text("half done\n")
    before = b"half done\n"
    calls = {
        "told": "echo spoilt > notes.md",
        "script": "python3 fix.py",
        "status": script(ground, "status.py", ["git", "status", "--short"]),
        "checkout": script(ground, "checkout.py", ["git", "checkout", "."]),
        "reset": script(ground, "reset.py", ["git", "reset", "--hard"]),
        "elsewhere": script(ground, "elsewhere.py", ["git", "checkout", "--", "other.md"]),
    }
    client.run("work", *map(client.shell, calls.values()), env=ON)
    told = dict(zip(calls, client.results("work"), strict=True))
    assert "swarm lock blocked" in told["told"]
    assert " M notes.md" in told["status"] and "swarm" not in told["status"]
    for name in ("checkout", "reset"):
        assert "swarm: swarm lock blocked git" in told[name] and PEER_NAME in told[name], told
    # Git has not begun: the unlocked files are unchanged, too.
    assert_text(client, "sub/deep.md", "half done\n")
    assert "swarm lock blocked" not in told["elsewhere"]
    assert_text(client, "other.md", "other\n")
    assert (checkout / "notes.md").read_bytes() == before
    last = str(client.exchanges("work")[-1].body)
    assert last.count(WORDS) == 1, "the words come once, with the call that they are about"


KINDS = ("allow", "ask", "deny")
CODEX_WORDS = {"allow": "allow", "ask": "prompt", "deny": "forbidden"}


def commands(kind: str) -> dict[str, str]:
    """Return the commands of four rules of one kind, by the text of Claude Code's rule."""
    return {
        f"python3 {kind}.py": f"python3 {kind}.py",
        f"python3 {kind}_more.py:*": f"python3 {kind}_more.py --all",
        f"make -s {kind}": f"make -s {kind}",
        f"npm run --silent {kind}:*": f"npm run --silent {kind}",
    }


def calls() -> list[str]:
    """Return the commands of the twelve rules, one without a rule, and forbidden ones in company."""
    ruled = [command for kind in KINDS for command in commands(kind).values()]
    return [*ruled, "python3 none.py", "echo one; python3 deny.py", "cd sub && cd .. && python3 deny_more.py --all"]


def fill_rules(client: Client) -> None:
    """Write programs that report their progress, and if they could write outside the checkout."""
    ground, checkout = client.ground, client.ground.checkout
    fill(ground, "notes.md", str(ground.home / "outside"))
    for name in (*KINDS, *(f"{kind}_more" for kind in KINDS), "none"):
        (checkout / f"{name}.py").write_text(FIX + "print('it ran')\n")
    (checkout / "Makefile").write_text("".join(f"{kind}:\n\t@python3 {kind}.py\n" for kind in KINDS))
    scripts = {kind: f"python3 {kind}.py" for kind in KINDS}
    (checkout / "package.json").write_text(json.dumps({"name": "x", "scripts": scripts}))


@contextmanager
def rules_of(client: Client) -> Iterator[tuple[str, ...]]:
    """Put the twelve rules in force. Yields the client's options for that."""
    if isinstance(client, ClaudeCode):
        client._permissions = ("--permission-mode", "default", "--allowed-tools", client._server)
        rules = {kind: [f"Bash({rule})" for rule in commands(kind)] for kind in KINDS}
        yield ("--settings", json.dumps({"permissions": rules}))
        return
    file = client.ground.home / ".codex" / "rules" / "default.rules"
    file.parent.mkdir(exist_ok=True)
    patterns = [(command.split(), CODEX_WORDS[kind]) for kind in KINDS for command in commands(kind).values()]
    file.write_text(
        "".join(f'prefix_rule(pattern={json.dumps(words)}, decision="{word}")\n' for words, word in patterns)
    )
    try:
        yield ()
    finally:
        file.unlink()


def outcomes(client: Client, script: str, env: dict[str, str], *extra: str) -> dict[str, str]:
    """Return the outcome of each command: `refused`, `ran`, and `ran beyond` for a write outside the checkout."""
    client.run(script, *map(client.shell, calls()), env=env, extra=extra)
    found = {}
    for command, text in zip(calls(), client.results(script), strict=True):
        is_beyond = "it ran" in text and str(client.ground.home / "outside") not in text
        found[command] = "ran beyond" if is_beyond else "ran" if "it ran" in text else "refused"
    return found


@pytest.mark.promise("the kernel's way in weakens no permission rule", only=("codex",))
@pytest.mark.ways("install")
def test_twelve_rules(client: Client) -> None:
    fill_rules(client)
    client.ground.coordinator.peer_lock("notes.md")
    is_claude = isinstance(client, ClaudeCode)
    # Codex lets allowed commands out of its sandbox.
    sandbox = () if is_claude else ("-s", "workspace-write")
    expected = dict.fromkeys(calls(), "refused")
    expected.update(dict.fromkeys(commands("allow").values(), "ran beyond"))
    if not is_claude:
        expected["python3 none.py"] = "ran"
    with rules_of(client) as extra:
        assert outcomes(client, "with", ON, *extra, *sandbox) == expected
        if is_claude:
            assert_untouched(client, "notes.md")
        else:
            assert outcomes(client, "unbound", ON, *extra) == {**expected, "python3 none.py": "ran beyond"}
            assert "Read-only file system: 'notes.md'" in client.results("unbound")[len(KINDS) * 4]
        assert outcomes(client, "without", {}, *extra, *sandbox) == expected
    assert_text(client, "notes.md", "spoilt\n")


@pytest.mark.ways("install")
def test_strict_meets_the_kernel(client: Client) -> None:
    ground = client.ground
    fill(ground, "notes.md", "other.md")
    peer = ground.coordinator.peer_lock("notes.md")
    call = client.shell("python3 fix.py")
    probe = kernel_state(ground) / "probe"
    with client.held("work", call, call, call, at=1, env={**ON, "SWARM_STRICT": "1"}) as live:
        (told,) = client.results("work")
        assert "Read-only file system: 'notes.md'" in told
        assert_untouched(client, "notes.md")
        assert_text(client, "other.md", "spoilt\n")
        # A lock on files that do not exist yet cannot be held.
        ground.coordinator.text("lock", "later/*.md", "--note", "careful surgery", "--as", peer)
        (ground.checkout / "other.md").write_text("other\n")
        gate = client.hold("work", 2)
        live.gate.open()
        assert gate.wait_reached()
        assert_denied(client, "work", "notes.md")
        assert_untouched(client, "other.md")
        ground.coordinator.text("unlock", "later/*.md", "--as", peer)
        known = probe.read_text()
        try:
            probe.write_text(f"{known.rstrip()} it was forbidden by a test")
            gate.open()
            live.go_on()
        finally:
            probe.write_text(known)
    assert_denied(client, "work", "notes.md")
    assert_untouched(client, "other.md")
