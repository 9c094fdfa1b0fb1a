"""Whole writes that go ahead merged with another session's, or a person's, change of the same file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.traced import Player, git, lines_of

from swarm_hook_core import environment

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_faults")]
LETTERS = "alpha\nbeta\ngamma\n"
LINES = "".join(f"line {number}\n" for number in range(1, 10))


@pytest.fixture(autouse=True)
def tested_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "client_version", lambda config: (*config.merge_versions, "")[0])


class Merging(Player):
    """A session of a client that takes another input for a call; its whole writes leave the text that it took."""

    def writes(self, name: str, text: str) -> str:
        tool, given = self.writing(str(self.folder / name) if self.runtime == "claude-code" else name, text)
        verdict = self.check(tool, given, takes_input=True)
        if verdict is not None and verdict.denial is not None:
            return f"denied: {verdict.denial.reason}"
        taken = verdict.input if verdict is not None and verdict.input is not None else given
        self._made(verdict_of(verdict), str(self.folder / name), lambda: text_in(taken))
        return getattr(verdict, "notice", "")


def verdict_of(verdict: Any) -> Any:
    from support.world import Verdict

    return Verdict(False, "", getattr(verdict, "notice", ""))


def text_in(given: Any) -> str:
    """Return the file's text out of the input of a whole write."""
    if "content" in given:
        return str(given["content"])
    return "".join(f"{line[1:]}\n" for line in given["command"].split("\n") if line[:1] == "+")


@pytest.fixture
def lines(work: Path) -> Path:
    (work / "notes.md").write_text(LINES)
    git(work, "commit", "-qam", "lines")
    return work / "notes.md"


CLIENTS = pytest.mark.parametrize("client", ["claude-code", "codex"])


@CLIENTS
def test_a_stale_text_is_merged_each_time_until_the_session_looks(client: str, lines: Path, work: Path) -> None:
    me, peer = Merging(client, work), Player("codex", work)
    me.runs("cat notes.md")
    peer.edits("notes.md", "line 2\nline 3", "PEER\nPEER TOO")
    mine = LINES.replace("line 8", "mine")
    said = me.writes("notes.md", mine)
    assert lines.read_text() == mine.replace("line 2\nline 3", "PEER\nPEER TOO")
    assert f"was merged with codex {peer.id[:8]}'s change of lines 2 to 3" in said and "| +PEER TOO\n" in said
    again = mine.replace("line 5", "mine too")
    assert "was merged with codex" in me.writes("notes.md", again), "it had not seen the change"
    both = again.replace("line 2\nline 3", "PEER\nPEER TOO")
    assert lines.read_text() == both
    assert me.writes("notes.md", mine.replace("line 3", "against it")).startswith("denied: ")
    me.runs("cat notes.md")
    assert me.writes("notes.md", again) == "" and lines.read_text() == again, "dropped knowingly"


@CLIENTS
def test_each_line_keeps_its_author(client: str, lines: Path, work: Path) -> None:
    me, peer = Merging(client, work), Player("codex", work)
    me.runs("cat notes.md")
    peer.edits("notes.md", "line 2", "PEER")
    me.writes("notes.md", LINES.replace("line 8", "mine"))
    me.runs("true")
    authors = {line.text: {one.session_id for one in line.authors} for line in lines_of(str(lines)) if line.authors}
    assert authors == {b"PEER\n": {peer.session_id}, b"mine\n": {me.session_id}}


@CLIENTS
def test_a_conflict_is_denied(client: str, lines: Path, work: Path) -> None:
    me, peer = Merging(client, work), Player("codex", work)
    me.runs("cat notes.md")
    peer.edits("notes.md", "line 2", "PEER")
    said = me.writes("notes.md", LINES.replace("line 2", "mine"))
    assert said.startswith("denied: ") and "| +PEER\n" in said and "PEER" in lines.read_text()


@CLIENTS
def test_a_persons_change_is_merged_too(client: str, lines: Path, work: Path) -> None:
    me = Merging(client, work)
    me.runs("cat notes.md")
    lines.write_text(LINES.replace("line 2", "by hand"))
    mine = LINES.replace("line 8", "mine")
    assert "was merged with a person's change of line 2," in me.writes("notes.md", mine)
    assert lines.read_text() == mine.replace("line 2", "by hand")


def _off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWARM_MERGE", "off")


def _another_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "client_version", lambda config: "9.9.9")


@pytest.mark.parametrize("prevent", [_off, _another_release])
def test_where_it_is_off_or_untested_the_denial_shows_the_merged_text(
    prevent: Callable[[pytest.MonkeyPatch], None], lines: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prevent(monkeypatch)
    me, peer = Merging("claude-code", work), Player("codex", work)
    me.runs("cat notes.md")
    peer.edits("notes.md", "line 2", "PEER")
    said = me.writes("notes.md", LINES.replace("line 8", "mine"))
    assert said.startswith("denied: ") and "| +PEER\n" in said and "PEER" in lines.read_text()
    diff = said.partition("merge without conflict: make yours by an edit")[2]
    assert "(6 lines of diff, quoted):\n| @@ -6,4 +6,4 @@\n|  line 6\n|  line 7\n| -line 8\n| +mine\n|  line 9" in diff
    assert "line 8" not in me.writes("notes.md", LINES.replace("line 2", "mine")).replace("|  line 8", ""), "a conflict"
    me.edits("notes.md", "line 8", "mine")
    assert lines.read_text() == LINES.replace("line 2", "PEER").replace("line 8", "mine")


def test_the_merged_text_beside_a_persons_is_shown_up_to_a_limit(lines: Path, work: Path, monkeypatch) -> None:
    _off(monkeypatch)
    me = Merging("claude-code", work)
    me.runs("cat notes.md")
    lines.write_text(LINES.replace("line 2", "by hand"))
    added = "".join(f"mine {number}\n" for number in range(60))
    said = me.writes("notes.md", LINES.replace("line 8\n", added))
    assert "a person's work" in said and "by an edit, which passes" in said
    diff = said.partition("(the first 40 lines of diff, quoted):\n")[2]
    assert diff.count("\n| ") == 39 and "| +mine 30\n" in diff


def test_of_a_patch_every_stale_file_is_merged_or_none(lines: Path, work: Path) -> None:
    me, peer = Merging("codex", work), Player("codex", work)
    me.runs("cat notes.md other.md")
    peer.edits("notes.md", "line 2", "PEER")
    peer.edits("other.md", "gamma", "PEER")

    def patch(notes: str, other: str) -> Any:
        parts = [("notes.md", notes), ("other.md", other)]
        body = "".join(
            f"*** Add File: {name}\n" + "".join(f"+{line}\n" for line in text.split("\n")[:-1]) for name, text in parts
        )
        given = {"command": f"*** Begin Patch\n{body}*** End Patch\n"}
        return me.check("apply_patch", given, takes_input=True)

    mine = LINES.replace("line 8", "mine")
    assert patch(mine, LETTERS.replace("gamma", "mine")).denial is not None
    taken = patch(mine, LETTERS.replace("alpha", "mine")).input["command"]
    assert taken.count("+PEER\n") == 2 and taken.count("+mine\n") == 2 and taken.endswith("*** End Patch\n")


def test_nothing_else_takes_another_input(lines: Path, work: Path) -> None:
    me, peer = Merging("claude-code", work), Player("codex", work)
    me.runs("cat notes.md")
    peer.edits("notes.md", "line 2", "PEER")
    stale = LINES.replace("line 8", "mine")
    assert me.check("Write", {"file_path": str(lines), "content": stale}).denial is not None, "asked by no hook"
    for command in ("cat > notes.md <<EOF", "tee -a other.md > notes.md <<'EOF' #"):
        given = {"command": f"{command}\n{stale}EOF"}
        assert me.check("Bash", given, takes_input=True).denial is not None, command
    edit = {"file_path": str(lines), "old_string": "line 8", "new_string": "mine"}
    verdict = me.check("Edit", edit, takes_input=True)
    assert verdict.denial is None and verdict.input is None
    kept = stale.replace("line 2", "PEER")
    assert me.writes("notes.md", kept) == "" and lines.read_text() == kept


@pytest.mark.parametrize(
    "command", ["cat > notes.md <<'EOF' && echo made", 'tee notes.md <<"EOF"', "cat > d <<'EOF' && cp d notes.md"]
)
def test_a_here_document_is_merged(command: str, lines: Path, work: Path) -> None:
    me, peer = Merging("claude-code", work), Player("codex", work)
    me.runs("cat notes.md")
    peer.edits("notes.md", "line 2", "PEER")
    stale = LINES.replace("line 8", "mine")
    given = {"command": f"{command}\n{stale}EOF\n", "timeout": 5}
    merged = {"command": f"{command}\n{stale.replace('line 2', 'PEER')}EOF\n", "timeout": 5}
    verdict = me.check("Bash", given, takes_input=True)
    assert verdict.denial is None and verdict.input == merged and "'s change of line 2" in verdict.notice
