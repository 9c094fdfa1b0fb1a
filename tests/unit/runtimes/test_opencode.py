"""The plugin of OpenCode and its fork Kilo: its payloads, the grammar of its patches, and its only trace, a link."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from swarm_hook_core import EDIT, REMOVE, REPLACE
from swarm_hook_core.patch import PatchUnreadable
from swarm_hook_core.patch_headers import changes_by_headers
from swarm_mcp.runtimes import bundle, hook_config, runtime
from swarm_mcp.runtimes.opencode import OpenCode
from swarm_mcp.runtimes.steps import Steps

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


@pytest.fixture(params=["opencode", "kilo"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    ("lines", "changes"),
    [
        ("*** Add File: a", [("a", REPLACE)]),
        ("*** Add File:a\r", [("a", REPLACE)]),
        ("*** Update File: \u00a0a b\ufeff ", [("a b", EDIT)]),
        ("*** Delete File: a\n*** Add File: a", [("a", REPLACE)]),
        ("*** Update File: a\n*** Move to: b\n@@\n-x\n+y", [("a", REMOVE), ("b", REPLACE)]),
        ("*** Update File: a\n*** Move to:a", [("a", REMOVE)]),
        ("*** Update File: a\n*** Move to: a\n@@\n+x\n*** Add File: a", [("a", REPLACE)]),
        ("what is this?\n*** Update File: a\n@@\n+*** Delete File: b\n-*** Delete File: c", [("a", EDIT)]),
        # Copilot CLI takes these; the others name no file with them, as far as they take such a patch at all.
        (" \t*** Update File: a\n\u00a0*** Move to: b", [("a", REMOVE), ("b", REPLACE)]),
        ("\x85*** Delete File: a", [("a", REMOVE)]),
        ("*** Add File: a\x1c", [("a\x1c", REPLACE)]),
    ],
)
def test_every_header_of_a_patch_names_a_file(lines: str, changes: list[tuple[str, str]]):
    assert changes_by_headers(f"*** Begin Patch\n{lines}\n*** End Patch") == changes


@pytest.mark.parametrize(
    "text", ["", "*** Begin Patch\n*** End Patch", "*** Add File: \n", "Add File: a", "*** Move to: \0"]
)
def test_a_patch_that_names_no_file_cannot_be_read(text: str):
    with pytest.raises(PatchUnreadable):
        changes_by_headers(text)


@pytest.mark.parametrize("given", [None, [], {}, {"filePath": 1}, {"filePath": " "}, {"patchText": "x"}, "notes.md"])
def test_a_call_that_names_no_file_is_said_to_be_unreadable(name: str, given: Any):
    with pytest.raises(ValueError, match="p"):
        hook_config(name).extract_paths(given)


class Place:
    """The client's folder of settings, and a bundle beside it."""

    def __init__(self, folder: Path, name: str):
        self.marketplace = folder / "marketplace"
        bundle.write(self.marketplace)
        client = runtime(name)
        assert isinstance(client, OpenCode)
        self.client, self.link = client, client.link()
        self.settings = self.link.parent.parent / f"{name}.jsonc"
        self.settings.parent.mkdir(parents=True)
        self.settings.write_text('{ // mine\n  "mcp": {},\n}\n')

    def files(self) -> dict[str, bytes]:
        folder = self.settings.parent
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def place(tmp_path: Path, name: str) -> Place:
    return Place(tmp_path, name)


def install(place: Place) -> list[str]:
    steps = Steps()
    assert place.client.install(place.marketplace, steps).root == place.marketplace
    return steps.done


def test_it_is_one_link_which_npm_makes_slow_once(place: Place):
    client = place.client
    install(place)
    assert place.link.read_bytes() == (place.marketplace / client.needed).read_bytes()
    plugin, start = client.look(place.marketplace, Steps()).findings
    assert plugin.status == "ok" and "npm" in start.message
    (place.settings.parent / "node_modules").mkdir()
    assert client.look(place.marketplace, Steps()).findings == [plugin]


def test_a_link_to_a_bundle_that_has_gone_is_told_and_led_elsewhere(place: Place, tmp_path: Path):
    client, old = place.client, tmp_path / "old"
    shutil.copytree(place.marketplace, old)
    place.link.parent.mkdir()
    place.link.symlink_to(old / place.client.needed)
    shutil.rmtree(old)
    found, _start = client.look(place.marketplace, Steps()).findings
    assert found.status == "fail" and str(old) in found.message
    assert install(place) and place.link.resolve() == (place.marketplace / place.client.needed).resolve()
