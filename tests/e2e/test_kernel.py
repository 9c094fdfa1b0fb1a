"""The kernel protects locked files from unpredictable writes, in both clients."""

import json

import pytest

from .checks import assert_text, assert_untouched
from .client import Client
from .coordinator import PEER_NAME
from .kernel_work import ON, WORDS, fill, nothing_left, script, static


@pytest.mark.promise("the kernel keeps held files read-only")
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
