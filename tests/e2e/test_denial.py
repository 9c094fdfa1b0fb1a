"""A peer's lock denies the write in the real client; everything else passes."""

import json
from pathlib import Path

import pytest
from support.requirement import requirement

from .checks import assert_denied, assert_text, assert_untouched
from .client import Client
from .clients import ClaudeCode, Codex
from .ground import wait_for

# Tests that do not depend on the way of installing run in one of them; a few in both, as a sample.
pytestmark = pytest.mark.ways("install")

CHANGE = ("notes.md", "line one", "line two")
HEREDOC = """\
apply_patch <<'EOF'
*** Begin Patch
*** Update File: notes.md
@@
-line one
+line two
*** End Patch
EOF
"""
RENAME = "*** Update File: notes.md\n*** Move to: moved.md\n@@\n-line one\n+line one, moved"
NOTEBOOK = {
    "cells": [
        {"cell_type": "code", "id": "cell-1", "execution_count": None, "metadata": {}, "outputs": [], "source": "1"}
    ],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.mark.promise(
    "a write to a locked file is denied before it happens", only=("install", "claude-code-git", "codex-clone")
)
@pytest.mark.each_way
@pytest.mark.from_git
@pytest.mark.from_clone
@requirement("P-09", "P-12", "P-23")
def test_a_locked_file_stays_as_it_is(client: Client) -> None:
    """S3, S26: the model reads holder, note and advice."""
    client.ground.coordinator.peer_lock("notes.md", note="renaming the parser, back at 15:00")
    client.run("work", client.replace(*CHANGE))
    assert_denied(client, "work", "notes.md", note="renaming the parser, back at 15:00")


@pytest.mark.from_git
def test_a_locked_name_cannot_be_created(client: Client) -> None:
    """A lock covers a file that does not exist yet."""
    client.ground.coordinator.peer_lock("plan.md")
    client.run("work", client.create("plan.md", "mine\n"))
    assert not (client.ground.checkout / "plan.md").exists()
    assert "swarm lock blocked" in client.last_result("work")


@pytest.mark.from_git
def test_another_identity_hides_who_but_not_whether(client: Client) -> None:
    coordinator = client.ground.coordinator
    holder = coordinator.register_peer("identity:employer secret-name")
    coordinator.lock(holder, "notes.md", "secret-note")
    client.run("work", client.replace(*CHANGE))
    assert_untouched(client, "notes.md")
    assert "swarm lock blocked" in client.last_result("work")
    seen = json.dumps([exchange.body for exchange in client.exchanges("work")])
    assert [word for word in ("secret-name", "secret-note", "employer") if word in seen] == []


@pytest.mark.promise("a storm of denials is told once", only=("codex",))
def test_a_storm_of_denials_gets_short_words_and_is_told_once(client: Client) -> None:
    """Eleven tries: the holder hears of it at the third, the lead at the tenth; the model reads fewer words."""
    ground, coordinator = client.ground, client.ground.coordinator
    holder = coordinator.peer_lock("notes.md", note="renaming the parser")
    lead = coordinator.register_peer("identity:personal mode:gateway lead")
    tries = [client.read("notes.md")] if isinstance(client, ClaudeCode) else []
    with client.held("work", *tries, *([client.replace(*CHANGE)] * 11), at=len(tries) + 11) as live:
        (own,) = [one for one in coordinator.sessions() if one["id"] not in (holder, lead)]
        texts = client.results("work")[len(tries) :]
        assert wait_for(lambda: _mail(client, lead), 60), "the person is not told"
        told = [_mail(client, who) for who in (holder, lead)]
        (storm,) = coordinator.json("status")["storms"]
        shown = coordinator.text("status")
        live.go_on()
    assert len(texts) == 11 and all("swarm lock blocked" in text for text in texts)
    assert "renaming the parser" in texts[0] and "times within" not in texts[0] + texts[1]
    assert (
        "denied 3 times" in texts[2] and "work on something else" in texts[2].lower() and len(texts[2]) < len(texts[0])
    )
    assert "denied 10 times" in texts[9] and "end the turn" in texts[9]
    assert [len(mails) for mails in told] == [1, 1], told
    assert own["id"] in told[0][0] and own["id"] in told[1][0] and "For the person" in told[1][0]
    assert (storm["instance_id"], storm["holder_id"]) == (own["id"], holder) and storm["times"] >= 10
    assert f"refused {storm['times']} times  notes.md" in shown
    assert (ground.checkout / "notes.md").read_text() == "line one\n"


def _mail(client: Client, who: str) -> list[str]:
    rows = client.ground.coordinator.query("SELECT content FROM messages WHERE recipient = ? ORDER BY id", who)
    return [str(content) for (content,) in rows]


def test_other_files_are_free(client: Client) -> None:
    """S23."""
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.create("free.md", "free\n"))
    assert_text(client, "free.md", "free\n")


@pytest.mark.thorough
def test_two_sessions_write_different_files(client: Client) -> None:
    """S4."""
    with client.held("one", client.create("one.md", "one\n")) as one:
        with client.held("two", client.create("two.md", "two\n")) as two:
            sessions = client.ground.coordinator.sessions()
            one.gate.open()
            two.go_on()
        one.go_on()
    assert len(sessions) == 2, f"registered while both were live: {sessions}"
    assert_text(client, "one.md", "one\n")
    assert_text(client, "two.md", "two\n")
    assert client.ground.coordinator.locks() == []


def test_own_lock_does_not_block(client: Client) -> None:
    """S16."""
    coordinator = client.ground.coordinator
    with client.held("work", client.create("new.md", "new\n"), client.replace(*CHANGE), at=1) as live:
        (own,) = coordinator.sessions()
        coordinator.lock(own["id"], "notes.md", "mine")
        live.go_on()
    assert_text(client, "notes.md", "line two\n")


@pytest.mark.promise("sub-agents are sessions like others")
@pytest.mark.from_git
def test_sub_agents_are_denied(client: Client) -> None:
    """S15."""
    if isinstance(client, Codex):
        client.model = client.code_model
    client.ground.coordinator.peer_lock("notes.md")
    client.models.script("errand", client.replace(*CHANGE))
    client.run("work", *client.sub_agent("errand"))
    assert_denied(client, "errand", "notes.md")


def test_sub_agents_write_under_the_lock_of_their_session(client: Client) -> None:
    if isinstance(client, Codex):
        client.model = client.code_model
    coordinator = client.ground.coordinator
    client.models.script("errand", client.replace(*CHANGE))
    with client.held("work", *client.sub_agent("errand")) as live:
        (own,) = coordinator.sessions()
        coordinator.lock(own["id"], "notes.md", "mine")
        live.go_on()
    assert_text(client, "notes.md", "line two\n")


@pytest.mark.thorough
@requirement("P-17")
def test_a_symlinked_folder_is_no_way_round(client: Client) -> None:
    """S19."""
    (client.ground.checkout / "alias").symlink_to("sub")
    client.ground.coordinator.peer_lock("sub/deep.md")
    client.run("work", client.replace("alias/deep.md", "deep", "deeper"))
    assert_denied(client, "work", "sub/deep.md")


@pytest.mark.thorough
def test_a_session_started_in_a_sub_folder(client: Client) -> None:
    """S18: the scope is still the repository's. Codex's models send relative paths."""
    checkout = client.ground.checkout
    client.ground.coordinator.peer_lock("notes.md")
    path, extra = ("../notes.md", ()) if client.name == "codex" else ("notes.md", ("--add-dir", str(checkout)))
    client.run("work", client.replace(path, *CHANGE[1:]), cwd=checkout / "sub", extra=extra)
    assert_denied(client, "work", "notes.md")


@pytest.mark.promise("the effect counts, not the tool")
@pytest.mark.from_git
@requirement("P-16")
def test_a_heredoc_patch_in_the_shell(client: Client) -> None:
    """S11, as far as it is a patch: in Claude Code there may be an `apply_patch` on PATH as well."""
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.shell(HEREDOC))
    assert_denied(client, "work", "notes.md")


@pytest.mark.only("codex")
@pytest.mark.parametrize("locked", ["notes.md", "moved.md"])
def test_both_ends_of_a_move(client: Codex, locked: str) -> None:
    """S9 the source, S10 the destination."""
    client.ground.coordinator.peer_lock(locked)
    client.run("work", client.patch(RENAME))
    assert not (client.ground.checkout / "moved.md").exists()
    assert_untouched(client, "notes.md")
    told = client.last_result("work")
    assert "swarm lock blocked" in told and locked in told, told


@pytest.mark.only("codex")
def test_a_move_over_a_locked_file(client: Codex) -> None:
    """S10 with a destination that exists."""
    client.ground.coordinator.peer_lock("other.md")
    client.run("work", client.patch(RENAME.replace("moved.md", "other.md")))
    assert_denied(client, "work", "other.md")
    assert_untouched(client, "notes.md")


@pytest.mark.only("codex")
def test_a_deletion(client: Codex) -> None:
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.patch("*** Delete File: notes.md"))
    assert_denied(client, "work", "notes.md")


@pytest.mark.promise("one lock in the way denies the whole call")
@pytest.mark.from_git
@pytest.mark.only("codex")
def test_a_patch_with_one_locked_file_is_denied_whole(client: Codex) -> None:
    """S24."""
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.patch("*** Add File: free.md\n+free\n*** Update File: notes.md\n@@\n-line one\n+no"))
    assert_denied(client, "work", "notes.md")
    assert not (client.ground.checkout / "free.md").exists()


@pytest.mark.only("codex")
def test_a_heredoc_patch_from_another_folder(client: Codex) -> None:
    """S20: the call has a working directory of its own."""
    client.ground.coordinator.peer_lock("notes.md")
    command = HEREDOC.replace("notes.md", "../notes.md")
    client.run("work", client.shell(command, workdir=client.ground.checkout / "sub"))
    assert_denied(client, "work", "notes.md")


@pytest.mark.promise("the effect counts, not the tool")
@pytest.mark.from_git
@pytest.mark.only("codex")
def test_code_mode(client: Codex) -> None:
    """S17: the patch is a call inside the model's JavaScript."""
    client.model = client.code_model
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.replace(*CHANGE))
    assert_denied(client, "work", "notes.md")


@pytest.mark.only("claude-code")
def test_a_relative_path_after_a_change_of_folder(client: ClaudeCode) -> None:
    """S20."""
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.shell("cd sub"), client.read("../notes.md"), client.replace("../notes.md", *CHANGE[1:]))
    assert_denied(client, "work", "notes.md")


@pytest.mark.promise("a write to a locked file is denied before it happens")
@pytest.mark.only("claude-code")
def test_whole_file_writes(client: ClaudeCode) -> None:
    client.ground.coordinator.peer_lock("notes.md")
    client.run("work", client.read("notes.md"), client.create("notes.md", "mine\n"))
    assert_denied(client, "work", "notes.md")


@pytest.mark.from_git
@pytest.mark.only("claude-code")
def test_notebooks(client: ClaudeCode) -> None:
    """S25."""
    notebook: Path = client.ground.checkout / "study.ipynb"
    notebook.write_text(json.dumps(NOTEBOOK))
    client.ground.coordinator.peer_lock("study.ipynb")
    client.run("work", *client.change_cell("study.ipynb", "cell-1", "2"))
    assert_denied(client, "work", "study.ipynb", before=json.dumps(NOTEBOOK).encode())
