"""`swarm-mcp restore`: an earlier content comes back whole, only when asked for, and never for good."""

import os
import shutil
import time
from pathlib import Path

import pytest
from support.altered import Failing, Limits
from support.command_line import option
from support.files import folder_at, text_at
from support.fixtures import Ground
from support.traced import Player, checkout

from swarm_hook_core.paths import key_of
from swarm_hook_core.state import state_dir
from swarm_hook_core.traces import PATH, pruning
from swarm_hook_core.traces.versions.stored import Kept

pytestmark = pytest.mark.slow


def kept_copy(file: Path) -> str:
    """Keep the content of `file` as a hook does for a locked file; return the copy's path."""
    return Kept().keep(str(file))[1].path


def copies() -> list[Path]:
    found = sorted(Path(state_dir(), "kept").glob("*/locked.files/*"))
    return [one for one in found if not one.name.endswith(PATH)]


class Scene:
    """A file with a lock of `holder`, changed by commands of `writer`."""

    def __init__(self, ground: Ground, holder: str = "identity:p holder", writer: str = "identity:p writer"):
        self.ground = ground
        self.file = ground.repo / "f"
        self.file.write_text("first\n")
        self.holder, self.writer = ground.session("h", holder), ground.session("w", writer)
        ground.lock(self.holder, str(self.file))

    def changed(self, text: str | None, kind: str = "changed", file: Path | None = None, keep: bool = True) -> int:
        """Give the file `text` (None: remove it) during the writer's ``make``; return the alteration's id."""
        file = file or self.file
        before = kept_copy(file) if keep else ""
        if text is None:
            file.unlink()
        else:
            file.write_text(text)
        return self.told(before, kind, file)[0]

    def told(self, before: str, kind: str = "changed", file: Path | None = None, at: float = 0) -> list[int]:
        change = {"file": str(file or self.file), "holder_id": self.holder["id"], "kind": kind, "kept": before}
        with self.ground.store() as store:
            return store.breaches.report(self.writer, "Bash", "make", [{**change, "at": at or time.time()}])

    def restore(self, *words: str, session: str = ""):
        """The command, as this session's or a person's."""
        return self.ground.swarm("restore", str(self.file), *words, *option("--as", session))

    def mail(self, row: dict) -> list[str]:
        found = self.ground.sql("SELECT content FROM messages WHERE recipient = ? ORDER BY id", row["id"])
        return [one["content"] for one in found]


@pytest.fixture
def scene(ground: Ground) -> Scene:
    return Scene(ground)


def test_what_was_there_before_comes_back_and_can_be_undone(scene: Scene):
    scene.file.chmod(0o750)
    scene.changed("second\n")
    scene.file.chmod(0o600)
    done = scene.restore()
    assert done.code == 0 and str(scene.file) in done.out and done.err == ""
    assert scene.file.read_text() == "first\n" and scene.file.stat().st_mode & 0o777 == 0o750
    assert scene.restore().code == 0
    assert scene.file.read_text() == "second\n" and scene.file.stat().st_mode & 0o777 == 0o600
    assert scene.restore().code == 0 and scene.file.read_text() == "first\n"
    assert sorted(os.listdir(scene.ground.repo)) == [".git", "f"]


def test_nothing_kept_is_one_line(scene: Scene):
    done = scene.restore()
    assert (done.code, done.out, len(done.err.splitlines())) == (1, "", 1) and "no earlier content" in done.err
    assert scene.restore("--list").out == "(nothing is kept)\n" and scene.restore("--list", "--json").json == []
    scene.changed("first\n")
    assert "is as it was" in scene.restore().err


def test_the_list_of_all_files_has_what_was_kept_without_a_lock(ground: Ground, tmp_path: Path):
    """A file was locked, and another session's command has run."""
    ground.session("1", "identity:p one")
    inside, outside = ground.repo / "sub" / "f", tmp_path / "elsewhere"
    for file in (inside, outside):
        text_at(file, f"{file.name} was here\n")
    kept_copy(inside)
    kept_copy(outside)
    inside.unlink()
    (listed,) = ground.swarm("restore", "--list", "--json").json
    assert listed["file"] == str(inside) and listed["size"] == len("f was here\n")
    assert "sub/f" in ground.swarm("restore", "--list").out
    (of_file,) = ground.swarm("restore", str(inside), "--list", "--json").json
    assert of_file["id"] == listed["id"]
    assert ground.swarm("restore", str(inside), "--id", listed["id"]).code == 0
    assert inside.read_text() == "f was here\n"
    pruning.prune_versions(time.time() + pruning.AGE_SECONDS + 7200)
    assert copies() == [] == os.listdir(Path(state_dir(), "kept"))


def test_the_list_has_what_sessions_kept_before_their_writes(ground: Ground, checks_have_time: None):
    """One store: contents before writes, and those that a call has destroyed, by file; equal ones once."""
    os.rmdir(ground.repo / ".git")
    work = checkout(ground.repo, "notes.md", "sub/deep.md")
    me, peer = Player("codex", work), Player("codex", work)
    peer.edits("sub/deep.md", "beta", "PEER")
    for text in ("one\n", "two\n", "one\n", "three\n"):
        me.writes("notes.md", text)
    me.runs("cat sub/deep.md")
    assert not me.runs("rm sub/deep.md").startswith("denied") and not (work / "sub/deep.md").exists()
    every = ground.swarm("restore", "--list", "--json", cwd=work).json
    by_file = {name: [one for one in every if one["file"] == str(work / name)] for name in ("notes.md", "sub/deep.md")}
    for name, sizes in (("notes.md", [4, 4, 6, 17]), ("sub/deep.md", [17, 17])):
        of_file = ground.swarm("restore", str(work / name), "--list", "--json", cwd=work).json
        assert sorted(one["size"] for one in of_file) == sizes, name
        assert {one["id"] for one in of_file} == {one["id"] for one in by_file[name]}
    assert ground.swarm("restore", str(work / "sub/deep.md"), cwd=work).code == 0
    assert (work / "sub/deep.md").read_text() == "alpha\nPEER\ngamma\n"


def test_the_list_has_files_whose_path_is_too_long_for_a_name(ground: Ground, checks_have_time: None):
    """Locked ones, and those that a session has written."""
    os.rmdir(ground.repo / ".git")
    deep = "/".join(["a-folder-of-forty-characters-in-its-name"] * 5)
    work = checkout(ground.repo, f"{deep}/locked", f"{deep}/written")
    kept_copy(work / deep / "locked")
    Player("codex", work).writes(f"{deep}/written", "mine\n")
    listed = ground.swarm("restore", "--list", "--json", cwd=work).json
    assert {one["file"] for one in listed} == {str(work / deep / "locked"), str(work / deep / "written")}
    pruning.prune_versions(time.time() + pruning.AGE_SECONDS + 7200)
    assert not list(Path(state_dir(), "kept").glob("*/locked.files")), "the note of the path has gone, too"


def test_the_list_says_when_how_large_and_who(scene: Scene):
    first = scene.changed("second\n")
    second = scene.changed("third, longer\n")
    listed = scene.restore("--list", "--json").json
    assert [(one["id"], one["size"]) for one in listed] == [(str(second), 7), (str(first), 6)]
    assert all(
        one["by"].startswith("writer ") and one["by"].endswith(": make") and abs(one["at"] - time.time()) < 60
        for one in listed
    )
    assert "  writer " in scene.restore("--list").out
    assert scene.restore("--id", str(first)).code == 0 and scene.file.read_text() == "first\n"
    assert "is called '99'" in scene.restore("--id", "99").err


def test_the_content_before_the_last_change_is_meant_not_the_newest_kept(scene: Scene):
    scene.changed("bad\n")
    kept_copy(scene.file)  # another session's command begins
    scene.file.write_text("bad, and a little mended\n")
    assert scene.restore().code == 0 and scene.file.read_text() == "first\n"


def test_a_dry_run_and_another_place_leave_the_file_alone(scene: Scene, tmp_path: Path):
    scene.changed("second\n")
    before = copies()
    assert scene.restore("--dry-run").out.startswith("would do: ")
    other = tmp_path / "other"
    assert scene.restore("--to", str(other), "--dry-run").code == 0 and not other.exists()
    assert scene.restore("--to", str(other)).code == 0 and other.read_text() == "first\n"
    assert scene.file.read_text() == "second\n" and copies() == before
    assert len(scene.mail(scene.holder)) == 1, "only the change itself was told"
    assert "is there already" in scene.restore("--to", str(other)).err


def test_a_file_that_was_removed_with_its_folder_comes_back(scene: Scene):
    file = text_at(scene.ground.repo / "a" / "b" / "f", "first\n")
    scene.ground.lock(scene.holder, str(file))
    scene.changed(None, "removed", file)
    shutil.rmtree(scene.ground.repo / "a")
    done = scene.ground.swarm("restore", str(file))
    assert done.code == 0 and file.read_text() == "first\n", done


def test_a_file_that_was_not_there_is_removed_only_by_force(scene: Scene):
    scene.changed("new\n", "created", keep=False)
    done = scene.restore()
    assert done.code == 1 and "--force" in done.err and scene.file.read_text() == "new\n"
    assert scene.restore("--force").code == 0 and not scene.file.exists()
    assert scene.restore().code == 0 and scene.file.read_text() == "new\n", "and that can be undone"


def test_what_cannot_be_kept_is_replaced_only_by_force(scene: Scene, limits: Limits):
    limits("swarm_mcp.locking.restore", LARGEST_KEPT=10)
    scene.changed("longer than ten bytes\n")
    done = scene.restore()
    assert done.code == 1 and "could not be kept" in done.err and scene.file.read_text().startswith("longer")
    assert scene.restore("--force").code == 0 and scene.file.read_text() == "first\n"


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_file_by_now_is_left_alone(scene: Scene, kind: str, tmp_path: Path):
    scene.changed("second\n")
    scene.file.unlink()
    if kind == "folder":
        scene.file.mkdir()
    elif kind == "link":
        (tmp_path / "victim").write_text("precious")
        scene.file.symlink_to(tmp_path / "victim")
    else:
        os.mkfifo(scene.file)
    for words in ((), ("--force",)):
        done = scene.restore(*words)
        assert done.code == 1, done
    if kind == "link":
        assert (tmp_path / "victim").read_text() == "precious"


def test_a_content_that_was_tampered_with_is_refused(scene: Scene):
    scene.changed("second\n")
    (copy,) = copies()
    copy.chmod(0o600)
    copy.write_text("secon\n")
    copy.chmod(0o400)
    done = scene.restore()
    assert done.code == 1 and "has been changed" in done.err and scene.file.read_text() == "second\n"


def test_a_folder_that_cannot_be_written_is_one_line(ground: Ground, scene: Scene, failing: Failing):
    scene.changed("second\n")

    failing(os, "replace", OSError(28, "No space left on device"))
    done = scene.restore()
    assert done.code == 1 and "No space left" in done.err and scene.file.read_text() == "second\n"
    assert sorted(os.listdir(ground.repo)) == [".git", "f"]


def test_the_holder_hears_of_a_change_and_of_its_restoring(scene: Scene):
    number = scene.changed("second\n")
    assert scene.restore(session=scene.writer["id"]).code == 0
    change, restored = scene.mail(scene.holder)
    assert "ran `make` (Bash)" in change and f"restore {scene.file} --id {number}" in change
    writer = scene.writer["id"]
    assert f"writer {writer[:8]} (instance {writer}) has restored" in restored and "undoes" in restored
    (event,) = scene.ground.sql("SELECT * FROM events WHERE type = 'context.restored'")
    assert (event["actor"], event["subject"]) == (scene.writer["id"], str(scene.file))
    assert scene.restore(session=scene.holder["id"]).code == 0
    assert len(scene.mail(scene.holder)) == 2, "one's own restoring is no news"
    assert scene.mail(scene.writer) == []


def test_identities_are_kept_apart(ground: Ground):
    scene = Scene(ground, "identity:q secret-holder", "identity:p writer")
    scene.changed("second\n")
    assert scene.restore(session=scene.writer["id"]).code == 0
    assert all("writer" not in text and "make" not in text for text in scene.mail(scene.holder))
    listed = scene.restore("--list", "--json", session=scene.holder["id"]).json
    assert {one["by"] for one in listed} == {"a session of another identity"}


def test_many_files_are_one_message(scene: Scene):
    files = [f"{scene.ground.scope}/many/{number}" for number in range(30)]
    scene.ground.lock(scene.holder, f"{scene.ground.scope}/many")
    change = {"holder_id": scene.holder["id"], "kind": "changed", "kept": "", "at": time.time()}
    with scene.ground.store() as store:
        added = store.breaches.report(scene.writer, "Bash", "make", [{"file": file, **change} for file in files])
    assert len(added) == 30
    (text,) = scene.mail(scene.holder)
    assert "30 files" in text and "and 22 more" in text


def test_a_writer_nobody_knows_is_told_of_all_the_same(scene: Scene):
    words = ("--runtime", "codex", "--session-id", "gone", "--tool", "Bash", "--command=-x y", "--kind", "removed")
    words += ("--holder", scene.holder["id"], "--kept", "", "--at", str(time.time()), "--json")
    done = scene.ground.swarm("altered", str(scene.file), *words)
    assert done.code == 0 and len(done.json["ids"]) == 1
    (text,) = scene.mail(scene.holder)
    assert "a session unknown here ran `-x y`" in text
    for wrong in (("--kind", "eaten"), ("--at", "soon"), ("--holder", "twice")):
        assert scene.ground.swarm("altered", str(scene.file), *words, *wrong).code == 2


def test_rows_go_when_what_they_point_at_does(scene: Scene):
    scene.changed("second\n")
    scene.ground.sql("UPDATE swarm_alterations SET altered_at = altered_at - ?", pruning.AGE_SECONDS + 10)
    with scene.ground.store() as store:
        store.cleanup.clean()
    assert scene.ground.sql("SELECT * FROM swarm_alterations") == []


def linked(scene: Scene, place: str) -> Path:
    """`d/f` is held and kept; a link then takes its place, or its folder's, to where other content is. That file."""
    folder, file = scene.ground.repo / "d", scene.ground.repo / "d" / "f"
    folder.mkdir()
    file.write_text("first\n")
    scene.ground.lock(scene.holder, str(file))
    key, before = key_of(str(file)), kept_copy(file)
    other = folder_at(scene.ground.repo / "other")
    (other / "f").write_text("of the other\n")
    file.unlink()
    if place == "file":
        file.symlink_to(other / "f")
    else:
        folder.rmdir()
        folder.symlink_to(other)
    words = ["--runtime", "codex", "--session-id", "w", "--tool", "Bash", "--command", "ln", "--kind", "replaced"]
    words += ["--holder", scene.holder["id"], "--kept", before, "--at", str(time.time()), "--key", key]
    assert scene.ground.swarm("altered", *words, "--", str(file)).code == 0
    scene.file = file
    return other / "f"


@pytest.mark.parametrize("place", ["file", "folder"])
def test_kept_content_is_found_when_a_link_has_taken_its_place(scene: Scene, place: str, tmp_path: Path):
    other = linked(scene, place)
    (row,) = scene.ground.sql("SELECT * FROM swarm_alterations")
    assert row["path_key"] == str(scene.file), "as it was known before the call"
    (listed,) = scene.restore("--list", "--json").json
    assert listed["id"] == str(row["id"]) and Path(listed["kept"]).read_text() == "first\n"
    done = scene.restore()
    assert done.code == 1 and "--to" in done.err and other.read_text() == "of the other\n", "another file, left alone"
    assert scene.restore("--to", str(tmp_path / "back")).code == 0 and (tmp_path / "back").read_text() == "first\n"
    (scene.file if place == "file" else scene.file.parent).unlink()
    scene.file.parent.mkdir(exist_ok=True)
    assert scene.restore().code == 0 and scene.file.read_text() == "first\n"


def test_a_call_that_puts_a_link_in_a_file_s_place_is_told_by_the_key_of_before(scene: Scene):
    os.link(scene.file, scene.ground.repo / "g")
    before = kept_copy(scene.file)
    scene.file.unlink()
    scene.file.symlink_to("g")
    scene.told(before, "replaced")  # hooks of an earlier release do not say it
    assert [one["kept"] for one in scene.restore("--list", "--json").json] == [before], "found by the file's name"


def test_permissions_that_run_a_program_as_its_owner_are_not_dropped_in_silence(scene: Scene):
    scene.file.chmod(0o4755)
    scene.changed("second\n")
    scene.file.chmod(0o755)
    assert "set-id" not in scene.restore().out
    assert scene.file.read_text() == "first\n" and scene.file.stat().st_mode & 0o7777 == 0o4755, "it is ours"
    scene.changed(None, "removed")
    done = scene.restore()
    assert "without its set-id permission (chmod 4755 gives it back)" in done.out
    assert scene.file.stat().st_mode & 0o7777 == 0o755, "nobody knows whose it was"


def test_what_is_kept_of_all_files_is_listed_without_one(scene: Scene):
    assert scene.ground.swarm("restore", "--list").out == "(nothing is kept)\n"
    other = text_at(scene.ground.repo / "g", "g\n")
    scene.ground.lock(scene.holder, str(other))
    first, second = scene.changed("second\n"), scene.changed("changed\n", file=other)
    listed = scene.ground.swarm("restore", "--list", "--json").json
    assert [(one["file"], one["id"]) for one in listed] == [(str(other), str(second)), (str(scene.file), str(first))]
    assert "  g  " in scene.ground.swarm("restore", "--list").out
    assert str(other) in scene.ground.swarm("restore", "--list", "--absolute").out
    assert scene.ground.swarm("restore").code == 2
