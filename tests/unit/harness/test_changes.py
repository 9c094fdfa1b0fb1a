"""The changes reported for a run: its edits, its commands' files, its commits; not the writes of others meanwhile."""

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.files import files_at
from support.harness_fixtures import Scripted, run_of, seen_of

from swarm_hook_core import traces
from swarm_mcp.agents.harness.conclusion import MOST_FILES, ChangeWatch
from swarm_mcp.agents.harness.events import tool_end, tool_start
from swarm_mcp.agents.harness.outcome import Changes

OURS, THEIRS = "our-session", "their-session"


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@x", *words],
                          check=True, capture_output=True, text=True)  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "lib").mkdir(parents=True)
    git(folder, "init", "-q")
    files_at(folder, dict.fromkeys(("a", "b", "lib/c"), "one\n"))
    (folder / ".gitignore").write_text("built\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    return folder


def calls(watch: ChangeWatch, name: str, failed: bool = False, **args: object) -> None:
    watch.note(tool_start("1", name, args))
    watch.note(tool_end("1", name, "", failed))


def journal(folder: Path, session: str, file: str) -> None:
    """A session's hooks note that it writes `file`."""
    call = SimpleNamespace(session_id=session, agent="", tool="Write")
    place = traces.place_of(str(folder))
    Path(place).mkdir(parents=True, exist_ok=True)
    line = traces.line("wrote", str((folder / file).resolve()), call)
    with open(Path(place) / traces.journal_name("codex", session), "ab") as entries:
        if not entries.tell():
            entries.write(traces.first_line("codex", session, str(folder)))
        entries.write(line)


def test_files_and_commits(checkout: Path) -> None:
    (checkout / "b").write_text("mine before\n")
    watch = ChangeWatch(str(checkout / "lib"))
    (checkout / "a").write_text("two\n")
    (checkout / "lib/new").write_text("new\n")
    (checkout / "built").write_text("ignored\n")
    git(checkout, "add", "lib/new", "a")
    git(checkout, "commit", "-qm", "second")
    git(checkout, "rm", "-q", "lib/c")
    found = watch.changes(OURS)
    assert found.files == ("../a", "c", "new")  # b was so before
    assert [line.partition(" ")[2] for line in found.commits] == ["second"]
    assert git(checkout, "rev-parse", "--short", "HEAD") == found.commits[0].partition(" ")[0]
    (checkout / "b").write_text("mine again\n")
    assert "../b" in watch.changes(OURS).files


def test_what_others_wrote_meanwhile_is_not_said_to_be_its_own(checkout: Path) -> None:
    journal(checkout, THEIRS, "lib/c")  # before it began
    watch = ChangeWatch(str(checkout))
    files_at(checkout, dict.fromkeys(("a", "b", "lib/c", "theirs"), "two\n"))
    journal(checkout, THEIRS, "a")
    journal(checkout, THEIRS, "b")
    journal(checkout, THEIRS, "theirs")
    journal(checkout, OURS, "b")
    calls(watch, "Edit", file_path=str(checkout / "b"), old_string="one", new_string="two")
    assert watch.changes(OURS).files == ("b", "lib/c")


def test_commits_are_its_own_only_where_it_ran_git(checkout: Path) -> None:
    for command, own in (("make check", False), ("bash -lc 'cd x && git commit -am y'", True)):
        watch = ChangeWatch(str(checkout))
        calls(watch, "Bash", command=command)
        (checkout / "a").write_text(command)
        git(checkout, "commit", "-qam", "somebody's")
        assert bool(watch.changes(OURS).commits) is own, command
    watch = ChangeWatch(str(checkout))  # a command that tells no calls
    git(checkout, "commit", "-q", "--allow-empty", "-m", "quiet")
    assert watch.changes(None).commits


def test_edits_count_wherever_they_are_unless_they_failed(tmp_path: Path) -> None:
    watch = ChangeWatch(str(tmp_path))  # in no checkout
    calls(watch, "Edit", file_path="x", old_string="1", new_string="2")
    calls(watch, "Write", failed=True, file_path="y", content="2")
    calls(watch, "Read", file_path="z")
    calls(watch, "apply_patch", changes=[{"path": str(tmp_path / "p"), "kind": "add"}])
    calls(watch, "Write", file_path="/elsewhere/q", content="2")
    assert watch.changes(OURS) == Changes(("/elsewhere/q", "p", "x"))


def test_of_very_many_files_there_are_the_first(checkout: Path) -> None:
    watch = ChangeWatch(str(checkout))
    for number in range(MOST_FILES + 7):
        (checkout / f"n{number:04}").touch()
    found = watch.changes(OURS)
    assert (len(found.files), found.more_files, found.files[0]) == (MOST_FILES, 7, "n0000")


def test_a_run_says_what_it_changed(checkout: Path) -> None:
    script = "tell('init', 's'); open('made', 'w').write('x'); tell('result', 'done')"
    result, seen = seen_of(run_of(Scripted(script), checkout))
    assert result.changes == Changes(("made",))
    assert (
        seen[-1].data["changes"] == {"files": ["made"], "commits": [], "more_files": 0} == result.to_dict()["changes"]
    )
