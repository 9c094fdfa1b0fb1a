"""Calls at once, each with a plan of its own; what the session itself holds is in none of them."""

from __future__ import annotations

import json

import pytest

from .checks import assert_text, assert_untouched
from .client import Client
from .kernel_work import ON
from .models import Step

# Each writes the file of its own and the locked one, and neither ends before both have begun.
BOTH = """\
import json, os, pathlib, sys, time
own, other, locked = json.loads(pathlib.Path(sys.argv[0] + ".json").read_text())
for name in (own, locked):
    try:
        pathlib.Path(name).write_text(f"spoilt by {own}\\n")
    except OSError as error:
        print(error)
pathlib.Path(own + ".begun").touch()
for _ in range(400):
    if os.path.exists(other + ".begun"):
        print("both")
        break
    time.sleep(0.02)
"""


@pytest.mark.ways("install")
def test_two_calls_in_one_answer(client: Client) -> None:
    ground, checkout = client.ground, client.ground.checkout
    for name, names in (
        ("one.py", ["other.md", "sub/deep.md", "notes.md"]),
        ("two.py", ["sub/deep.md", "other.md", "notes.md"]),
    ):
        (checkout / name).write_text(BOTH)
        (checkout / f"{name}.json").write_text(json.dumps(names))
    ground.coordinator.peer_lock("notes.md")
    calls = Step(calls=tuple(client.shell(f"python3 {name}") for name in ("one.py", "two.py")))
    with client.held("work", calls, env=ON) as live:
        (session,) = ground.coordinator.sessions()
        ground.coordinator.lock(session["id"], "other.md", "my own")
        live.go_on()
    told = client.results("work")
    assert all("Read-only file system: 'notes.md'" in text for text in told), told
    assert_untouched(client, "notes.md")
    assert_text(client, "other.md", "spoilt by other.md\n")
    assert_text(client, "sub/deep.md", "spoilt by sub/deep.md\n")
