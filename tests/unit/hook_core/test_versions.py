"""Versions of files: the copy before a write, and the meaning of a half or missing copy."""

import os
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from support.altered import Limits
from support.files import text_at
from support.traced import Player, notes_an_end
from support.world import file_times_catch_up

from swarm_hook_core import traces
from swarm_hook_core.git_repository import Repository
from swarm_hook_core.state import state_dir
from swarm_hook_core.traces import pruning, versions
from swarm_hook_core.traces.pruning import forget
from swarm_hook_core.traces.versions.stored import Version, version_at

pytestmark = pytest.mark.usefixtures("no_faults")

LARGE = b"x" * (versions.LIMIT_BYTES + 1)


def copies(player: Player, file: Path) -> list[Path]:
    """The kept copies of a session's versions of `file`, the first one first."""
    first = Path(traces.version_path(traces.place_of(str(file.parent)), f"codex.{player.session_id}", str(file)))
    return sorted(first.parent.glob(first.name.replace("[", "[[]") + "*"))


def first_version(file: Path, session_id: str = "me") -> Version | None:
    """The version of `file` before the session's own first write of it, if it is known."""
    place = traces.place_of(str(file.parent))
    return version_at(traces.version_path(place, f"codex.{session_id}", str(file)))


def first_of(player: Player, file: Path) -> bytes | None:
    found = first_version(file, player.session_id)
    return found and found.content()


def test_a_session_alone_keeps_the_content_before_its_first_write(work: Path, me: Player, file: Path) -> None:
    before = file.read_bytes()
    assert first_of(me, file) is None
    for text in ("one\n", "two\n", "three\n"):
        assert me.writes("notes.md", text) == ""
        notes_an_end()
    assert first_of(me, file) == before
    assert len(copies(me, file)) == 1
    assert first_of(Player("codex", work), file) is None, "another session has not written it"


@pytest.mark.parametrize("between", ["", "an edit", "ls", "echo x > sub/new.md"])
@pytest.mark.parametrize("is_told", [True, False], ids=["with a hook after it", "without one"])
def test_what_a_person_saves_right_after_a_write_is_kept(is_told: bool, between: str, me: Player, file: Path) -> None:
    me.edits("notes.md", "beta", "MINE")
    if is_told:
        notes_an_end()
    file_times_catch_up()
    saved = file.read_bytes() + b"a person's\n"
    file.write_bytes(saved)
    if between:
        assert (me.edits("other.md", "beta", "MINE") if between == "an edit" else me.runs(between)) == ""
        notes_an_end()
    assert me.edits("notes.md", "MINE", "AGAIN") == ""
    assert saved in [copy.read_bytes() for copy in copies(me, file)]


def test_beside_others_each_write_keeps_one(work: Path, me: Player, peer: Player) -> None:
    peer.writes("other.md", "theirs\n")
    for text in ("one\n", "two\n", "three\n"):
        me.writes("notes.md", text)
    found = copies(me, work / "notes.md")
    assert [copy.read_bytes() for copy in found if traces.LATER in copy.name] == [b"one\n", b"two\n"]
    assert [copy.read_bytes() for copy in found if traces.LOOK in copy.name] == [b"one\n", b"two\n"], "as it left them"


def test_what_a_person_writes_between_two_calls_of_a_session_alone_is_kept(me: Player, file: Path) -> None:
    me.writes("notes.md", "one\n")
    assert len(copies(me, file)) == 1
    file.write_text("a person's\n")
    me.writes("notes.md", "two\n")
    assert [copy.read_bytes() for copy in copies(me, file)][1:] == [b"a person's\n"]


ODD: dict[str, tuple[Callable[[Path], object], bytes | None]] = {
    "missing": (lambda file: None, b""),
    "empty": (lambda file: file.write_bytes(b""), b""),
    "binary": (lambda file: file.write_bytes(b"\0\xff\r\n"), b"\0\xff\r\n"),
    "at the limit": (lambda file: file.write_bytes(LARGE[1:]), LARGE[1:]),
    "over the limit": (lambda file: file.write_bytes(LARGE), None),
    "a folder": (lambda file: file.mkdir(), None),
    "a pipe": (lambda file: os.mkfifo(file), None),
    "a link": (lambda file: file.symlink_to("elsewhere"), None),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("by", ["kernel", "hand"])
def test_what_is_kept_of_odd_files(odd: str, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if by == "hand":
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    make, content = ODD[odd]
    make(tmp_path / "file")
    place = traces.place_of(str(tmp_path))
    assert versions.keep(str(tmp_path / "file"), traces.version_path(place, "codex.me", str(tmp_path / "file")), 7)
    found = first_version(tmp_path / "file")
    assert (found and found.content()) == content
    assert found is None or (found.exists is (odd != "missing") and found.at_ns == 7)


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o444])
def test_the_permissions_are_known_but_for_the_owner_s_writing(mode: int, tmp_path: Path) -> None:
    file = text_at(tmp_path / "file", "x")
    file.chmod(mode)
    versions.keep(str(file), traces.version_path(traces.place_of(str(tmp_path)), "codex.me", str(file)), 7)
    found = first_version(file)
    assert found and found.mode == mode & ~0o200


def test_a_half_copy_is_no_version_and_stays_none(tmp_path: Path) -> None:
    """Of a process that was killed: its write may have been made, so that a later copy is of another content."""
    file = text_at(tmp_path / "file", "x")
    target = Path(traces.version_path(traces.place_of(str(tmp_path)), "codex.me", str(file)))
    target.parent.mkdir(parents=True)
    target.touch(0o600)
    assert not versions.keep(str(file), str(target), 7)
    assert first_version(file) is None


def test_names_of_versions_fit_and_differ(tmp_path: Path) -> None:
    names = ["a", "a%2Fb", "a/b", "%w1", "a" * 200, "a" * 201, "é" * 90, "e\u0301", "é", "\udcff", "x/" * 120]
    paths = [traces.version_path("/place", "me", f"/{name}") for name in names]
    assert len(set(paths)) == len(names)
    assert all(len(os.fsencode(os.path.basename(path))) < 200 for path in paths)


def test_pruning_folds_equal_contents_and_drops_what_git_ignores(work: Path, me: Player, peer: Player) -> None:
    (work / ".gitignore").write_text("*.log\n")
    peer.writes("other.md", "theirs\n")
    for text in ("one\n", "two\n"):
        me.writes("notes.md", text)
        me.writes("debug.log", text)
    assert me.runs("true") == ""
    assert pruning.prune_versions(time.time()) > 0
    assert [oct(copy.stat().st_mode & 0o777) for copy in copies(me, work / "debug.log")] == ["0o0"], (
        "there was none before"
    )
    found = [copy for copy in copies(me, work / "notes.md") if copy.read_bytes() == b"one\n"]
    assert len({copy.stat().st_ino for copy in found}) == 1 < len(found)
    assert pruning.prune_versions(time.time()) == 0


def test_pruning_keeps_a_file_that_is_removed_while_git_answers(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me, file = Player("codex", work), work / "notes.md"
    me.writes("notes.md", "one\n")

    def tracked(self: Repository, paths: Collection[str]) -> list[str]:
        file.unlink()
        return []

    monkeypatch.setattr(Repository, "tracked", tracked)
    monkeypatch.setattr(Repository, "untracked", lambda self, paths: [])
    pruning.prune_versions(time.time())
    assert first_of(me, file) is not None


def test_a_first_version_over_the_bounds_leaves_a_marker(limits: Limits, me: Player, file: Path) -> None:
    me.writes("notes.md", "one\n")
    limits(pruning, TOTAL_FILES=0)
    assert pruning.prune_versions(time.time()) == 1
    me.writes("notes.md", "two\n")
    assert first_of(me, file) is None, "its own write does not pass for what was there before"


def test_versions_outlive_their_session_for_a_week(me: Player, file: Path) -> None:
    me.writes("notes.md", "one\n")
    forget("codex", me.session_id)
    assert not list(Path(traces.traces_dir()).glob("*/*"))
    assert first_of(me, file) is not None
    pruning.prune_versions(time.time() + pruning.AGE_SECONDS - 60)
    assert first_of(me, file) is not None
    pruning.prune_versions(time.time() + pruning.AGE_SECONDS + 60)
    assert first_of(me, file) is None and not list(Path(state_dir(), "kept").iterdir())


def test_a_half_copy_is_removed_after_an_hour(work: Path, me: Player) -> None:
    me.writes("notes.md", "one\n")
    (copy,) = copies(me, work / "notes.md")
    half = Path(f"{copy}{traces.LATER}7")
    half.touch(0o600)
    pruning.prune_versions(time.time())
    assert half.exists(), "its process may still copy"
    pruning.prune_versions(time.time() + 2 * pruning.HALF_SECONDS)
    assert not half.exists()
