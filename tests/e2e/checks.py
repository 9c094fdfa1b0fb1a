"""Assertions of the scenarios about a write: refused with everything a model needs, or done."""

from __future__ import annotations

import re
from pathlib import Path

from .client import Client
from .coordinator import PEER_NAME
from .ground import FILES

NOTE = "careful surgery"
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
