"""Assertions of the scenarios about a write: refused with everything a model needs, or done."""

import re
from pathlib import Path

from .client import Call, Client
from .coordinator import PEER_NAME
from .ground import FILES

NOTE = "careful surgery"
# The written name is encoded, and so appears nowhere in it.
OPAQUE = "import base64, pathlib\npathlib.Path(base64.b64decode(b'bm90ZXMubWQ=').decode()).write_text('spoilt\\n')\n"
WHAT_TO_DO = re.compile(r"release|message|other work|elsewhere", re.IGNORECASE)


def assert_untouched(client: Client, file: str, before: bytes | None = None) -> None:
    """`file` has the bytes that the checkout started with (or `before`)."""
    expected = FILES[file].encode() if before is None else before
    found = (client.ground.checkout / file).read_bytes()
    assert found == expected, f"{file} was changed to {found!r}; the model was told {_told(client)}"


def assert_denied(
    client: Client, script: str, file: str, *, before: bytes | None = None, holder: str = PEER_NAME, note: str = NOTE
) -> None:
    """Assert that the last call of `script` was refused, `file` is unchanged, and the model knows the reason and the
    next step.
    """
    assert_untouched(client, file, before)
    told = client.last_result(script)
    assert "swarm lock blocked" in told, f"no denial of ours reached the model: {told!r}"
    # From the third denial of a file within minutes on the words are shorter.
    why = () if re.search(r"denied \d+ times", told) else (note,)
    for needed in (Path(file).name, holder, *why):
        assert needed in told, f"the denial does not name {needed!r}: {told!r}"
    assert WHAT_TO_DO.search(told.partition("swarm lock blocked")[2]), f"the denial does not say what to do: {told!r}"


def assert_text(client: Client, file: str, text: str) -> None:
    """`file` holds `text`: the write landed."""
    path = client.ground.checkout / file
    found = path.read_text() if path.exists() else None
    assert found == text, f"{file} holds {found!r}; the model was told {_told(client)}"


def _told(client: Client) -> dict[str, list[str]]:
    return {script: [result[:300] for result in client.results(script)] for script in client.models.scripts}


def play_a_compaction(client: Client, first: list[Call], second: list[Call]) -> None:
    """A session is compacted between two lists of calls. The last call writes notes.md, locked meanwhile, and is denied.

    It is the same instance before and after.
    """
    coordinator = client.ground.coordinator
    with client.interactive() as terminal:
        client.turn(terminal, "first", *first, *client.enough_to_compact())
        before = coordinator.sessions()
        coordinator.peer_lock("notes.md")
        terminal.enter("/compact")
        terminal.wait_for(client.compacted, 60)
        client.turn(terminal, "second", *second)
        after = coordinator.sessions()
    assert_denied(client, "second", "notes.md")
    assert len(before) == 1 and [s["id"] for s in before] == [s["id"] for s in after], (before, after)
