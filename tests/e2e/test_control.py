"""Without the plugin the very writes that the other tests see denied do happen.

Otherwise a denial could be a client that refuses for reasons of its own.
"""

import json

import pytest

from .checks import assert_text
from .client import Client
from .clients import ClaudeCode, Codex
from .test_denial import HEREDOC, NOTEBOOK, RENAME

pytestmark = pytest.mark.ways("none")


@pytest.mark.promise("control: without the plugin the same write lands")
def test_writes_land_without_the_plugin(client: Client) -> None:
    client.run("work", client.create("new.md", "new\n"), client.replace("notes.md", "line one", "line two"))
    assert_text(client, "new.md", "new\n")
    assert_text(client, "notes.md", "line two\n")


@pytest.mark.thorough
def test_sub_agents_write_without_the_plugin(client: Client) -> None:
    if isinstance(client, Codex):
        client.model = client.code_model
    client.models.script("errand", client.replace("notes.md", "line one", "line two"))
    client.run("work", *client.sub_agent("errand"))
    assert_text(client, "notes.md", "line two\n")


@pytest.mark.only("codex")
def test_codex_patches_without_the_plugin(client: Codex) -> None:
    client.run("shell", client.shell(HEREDOC))
    assert_text(client, "notes.md", "line two\n")
    client.run("rename", client.patch(RENAME.replace("line one", "line two")))
    assert_text(client, "moved.md", "line two, moved\n")


@pytest.mark.thorough
@pytest.mark.only("codex")
def test_code_mode_writes_without_the_plugin(client: Codex) -> None:
    client.model = client.code_model
    client.run("work", client.replace("notes.md", "line one", "line two"))
    assert_text(client, "notes.md", "line two\n")


@pytest.mark.thorough
@pytest.mark.only("claude-code")
def test_notebooks_change_without_the_plugin(client: ClaudeCode) -> None:
    (client.ground.checkout / "study.ipynb").write_text(json.dumps(NOTEBOOK))
    client.run("work", *client.change_cell("study.ipynb", "cell-1", "2"))
    assert "2" in json.loads((client.ground.checkout / "study.ipynb").read_text())["cells"][0]["source"]
