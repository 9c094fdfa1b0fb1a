"""What nobody can tell beforehand is kept from locked files by the kernel, in both clients."""

from __future__ import annotations

import pytest

from .checks import assert_text, assert_untouched
from .client import Client
from .coordinator import PEER_NAME

ON = {"SWARM_KERNEL": "1"}
# A program that takes its file names from data: what it writes stands nowhere in the command.
FIX = """\
import json, pathlib
for name in json.loads(pathlib.Path("names.json").read_text()):
    try:
        pathlib.Path(name).write_text("spoilt\\n")
    except OSError as error:
        print(error)
"""


@pytest.mark.ways("install")
def test_a_script_that_takes_its_names_from_data(client: Client) -> None:
    checkout, coordinator = client.ground.checkout, client.ground.coordinator
    (checkout / "fix.py").write_text(FIX)
    (checkout / "names.json").write_text('["notes.md", "other.md"]')
    coordinator.peer_lock("notes.md")
    client.run("work", client.shell("python3 fix.py"), env=ON)
    assert "Read-only file system: 'notes.md'" in client.last_result("work")
    assert_untouched(client, "notes.md")
    assert_text(client, "other.md", "spoilt\n")
    said = client.said("work")
    assert "the kernel kept this command" in said and PEER_NAME in said
