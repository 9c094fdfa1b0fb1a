"""`swarm-mcp undo`: a session's work goes, that of others stays, and an undo can be undone."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from support.altered import Listening
from support.fixtures import Done
from support.world import TEXT, Agent, World

from swarm_hook_core import repository
from swarm_hook_core.traces import journal, journal_name, place_of
from swarm_hook_core.traces.versions.lines import Fold
from swarm_mcp.changes import undoing as undoings
from swarm_mcp.changes.planning import plan_session
from swarm_mcp.changes.undoing import NotUndone, Undoing
from swarm_mcp.changes.writing import Record

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("checks_have_time", "no_faults")]


class Scene(World):
    """Two sessions in one checkout, and a person."""

    def __init__(self, folder: Path):
        super().__init__(folder, "notes.md", "other.md", "sub/deep.md")
        self.me, self.peer = self.session("claude-code"), self.session("codex")

    def undo(self, *words: str, of: Agent | None = None) -> Done:
        """The command, typed by a person: a variable stands for the terminal."""
        given = ["--session", of.session_id] if of else []
        with mock.patch.dict(os.environ, SWARM_MCP_ALLOW_SPAWN="1"):
            return self.ground.swarm("undo", *words, *given, "--json")

    def types(self, command: str, by: Agent, folder: str = "") -> Done:
        """Run a `swarm-mcp` command in the shell of this session."""
        shell = {"CODEX_THREAD_ID": by.session_id}
        program, *words = shlex.split(command)
        assert program == "swarm-mcp"
        with mock.patch.dict(os.environ, shell):
            return self.ground.swarm(*words, cwd=self.repo / folder)

    def undoes(self, *words: str, of: Agent | None = None) -> dict:
        done = self.undo(*words, of=of)
        assert done.code == 0, done.err or done.out
        return done.json


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_removal_that_an_undo_has_given_back_is_its_session_s(scene: Scene) -> None:
    scene.me.edit("notes.md", "beta\n", "")
    done = scene.undoes(of=scene.me)
    scene.undoes("--undo", done["id"])
    (change,) = Fold(str(scene.repo / "notes.md")).changes()
    assert {author.session_id for line in change.removed for author in line.authors} == {scene.me.session_id}
    assert scene.swarm("commit", "-m", "mine", as_=scene.me).code == 0
    assert scene.git("show", "HEAD:notes.md") == "alpha\ngamma\n"


def test_a_moved_line_is_told_right_after_its_undo_and_the_undo_of_that(scene: Scene) -> None:
    scene.me.edit("notes.md", TEXT, "beta\ngamma\nalpha\n")
    done = scene.undoes(of=scene.me)
    scene.undoes("--undo", done["id"])
    patch = scene.folder / "patch"
    patch.write_text(scene.ground.swarm("diff").out)
    scene.git("apply", "-R", "--check", str(patch))


def test_the_lines_of_others_stay(scene: Scene) -> None:
    scene.me.edit("notes.md", "alpha", "MINE")
    scene.peer.edit("notes.md", "gamma", "THEIRS")
    scene.me.edit("other.md", "beta", "MINE")
    done = scene.undoes(of=scene.me)
    assert scene.read("notes.md") == "alpha\nbeta\nTHEIRS\n" and scene.read("other.md") == TEXT
    assert done["left"] == [] and len(done["files"]) == 2
    assert scene.undoes(of=scene.me)["files"] == [], "nothing is left to undo"
    back = scene.undoes("--undo", done["id"])
    assert scene.read("notes.md") == "MINE\nbeta\nTHEIRS\n" and scene.read("other.md") == "alpha\nMINE\ngamma\n"
    scene.undoes("--undo", back["id"])
    assert scene.read("notes.md") == "alpha\nbeta\nTHEIRS\n" and scene.read("other.md") == TEXT
    assert scene.git("status", "--short").split() == ["M", "notes.md"]


def test_a_session_alone(scene: Scene) -> None:
    scene.me.edit("notes.md", "alpha", "MINE")
    scene.me.write("new.md", "mine\n")
    scene.undoes()
    assert scene.git("status", "--short") == ""


def test_others_changes_in_the_way_are_named_and_nothing_is_done(scene: Scene) -> None:
    scene.me.edit("notes.md", "beta\n", "one\ntwo\nthree\n")
    scene.peer.edit("notes.md", "two", "THEIRS")
    scene.me.edit("other.md", "beta", "MINE")
    before = scene.read("notes.md"), scene.read("other.md")
    done = scene.undo(of=scene.me)
    assert done.code == 1 and "notes.md line 3" in done.json["error"] and "codex" in done.json["error"], done.out
    assert (scene.read("notes.md"), scene.read("other.md")) == before
    assert scene.undoes("other.md", of=scene.me)["left"] == [] and scene.read("other.md") == TEXT
    scene.me.edit("other.md", "beta", "MINE")
    assert scene.undoes("--partial", of=scene.me)["left"] and scene.read("other.md") == TEXT
    assert scene.read("notes.md") == before[0]


def test_a_person_s_lines_stay(scene: Scene) -> None:
    scene.peer.edit("other.md")
    scene.me.edit("notes.md", "alpha", "MINE")
    scene.me.bash("true")
    scene.write("notes.md", scene.read("notes.md") + "a person's\n")
    scene.peer.edit("notes.md", "gamma", "THEIRS")
    scene.undoes(of=scene.me)
    assert scene.read("notes.md") == "alpha\nbeta\nTHEIRS\na person's\n"


def test_committed_work_stays(scene: Scene) -> None:
    scene.me.edit("notes.md", "alpha", "MINE")
    scene.commit()
    scene.me.edit("notes.md", "gamma", "LATER")
    scene.undoes(of=scene.me)
    assert scene.read("notes.md") == "MINE\nbeta\ngamma\n"


def test_files_that_were_made_or_removed(scene: Scene) -> None:
    os.chmod(scene.repo / "other.md", 0o755)
    scene.commit()
    scene.peer.edit("sub/deep.md")
    scene.me.write("made.md", "mine\n")
    verdict = scene.me.bash("rm other.md; mv notes.md moved.md")
    assert not verdict.denied, verdict.words
    done = scene.undoes(of=scene.me)
    assert not (scene.repo / "made.md").exists() and not (scene.repo / "moved.md").exists()
    assert scene.read("notes.md") == scene.read("other.md") == TEXT
    assert os.stat(scene.repo / "other.md").st_mode & 0o777 == 0o755
    scene.undoes("--undo", done["id"])
    assert scene.read("made.md") == "mine\n" and scene.read("moved.md") == TEXT
    assert not (scene.repo / "other.md").exists() and not (scene.repo / "notes.md").exists()


def test_another_s_lines_in_a_file_that_the_session_made(scene: Scene) -> None:
    scene.me.write("made.md", "mine\n")
    scene.peer.bash("echo theirs >> made.md")
    done = scene.undo(of=scene.me)
    assert done.code == 1 and "made.md line 2" in done.json["error"], done.out
    scene.undoes("--partial", of=scene.me)
    assert scene.read("made.md") == "theirs\n"


ODD = {  # before, the session's, the result of both
    "CRLF": (b"a\r\nb\r\n", b"a\r\nX\r\nb\r\n"),
    "no newline at the end": (b"a\nb", b"a\nb\nX"),
    "binary": (b"\0a\nb", b"\0X"),
    "empty": (b"", b"X\n"),
    "emptied": (b"a\n", b""),
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.sampled
def test_odd_contents_come_back_byte_for_byte(case: str, scene: Scene) -> None:
    before, after = ODD[case]
    file = scene.repo / "odd"
    file.write_bytes(before)
    (scene.repo / "source").write_bytes(after)
    scene.commit()
    scene.peer.edit("other.md")
    scene.me.bash("cp source odd")
    assert file.read_bytes() == after
    done = scene.undoes(of=scene.me)
    assert file.read_bytes() == before
    scene.undoes("--undo", done["id"])
    assert file.read_bytes() == after


def test_a_link_that_was_made_goes(scene: Scene) -> None:
    scene.peer.edit("other.md")
    scene.me.bash("ln -s notes.md link")
    assert os.path.islink(scene.repo / "link")
    done = scene.undoes(of=scene.me)
    assert not os.path.lexists(scene.repo / "link") and scene.read("notes.md") == TEXT
    scene.undoes("--undo", done["id"])
    assert os.readlink(scene.repo / "link") == "notes.md"


def test_only_the_last_turn(scene: Scene) -> None:
    scene.me.edit("notes.md", "alpha", "FIRST")
    scene.me.turn_ends()
    scene.me.edit("notes.md", "gamma", "SECOND")
    scene.me.turn_ends()
    scene.undoes("--turn", of=scene.me)
    assert scene.read("notes.md") == "FIRST\nbeta\ngamma\n"
    scene.undoes(of=scene.me)
    assert scene.read("notes.md") == TEXT


def test_a_locked_file_is_refused(scene: Scene) -> None:
    scene.me.edit("notes.md", "alpha", "MINE")
    scene.lock(scene.peer, "notes.md", "renumbering")
    done = scene.undo(of=scene.me)
    assert done.code == 1 and "locked" in done.json["error"] and "renumbering" in done.json["error"], done.out
    assert scene.read("notes.md") == "MINE\nbeta\ngamma\n"


def test_a_person_names_the_session_where_several_have_work(scene: Scene) -> None:
    assert scene.undoes()["files"] == []
    scene.me.edit("notes.md", "alpha", "MINE")
    scene.peer.edit("notes.md", "gamma", "THEIRS")
    assert "2 sessions" in scene.undo().err


def test_a_session_has_the_same_names_for_every_command(scene: Scene) -> None:
    scene.me.edit("notes.md", "alpha", "MINE")
    whole = scene.me.session_id
    names = [whole, whole[:9], scene.me.id, scene.me.id[:8], f"claude-code {whole[:8]}", f"instance {scene.me.id}"]
    for _is_live in (True, False):
        for name in names:
            for verb in ("diff", "undo"):
                words = [verb, "--session", name, *(["--dry-run"] if verb == "undo" else [])]
                done = scene.ground.swarm(*words)
                assert "MINE" in done.out, (words, done.err)
        scene.ground.swarm("deregister", "--as", scene.me.id, "--force")
        names = [name for name in names if scene.me.id[:8] not in name]
    for name in ("nobody", "de-co", ""):
        errors = {scene.ground.swarm(verb, "--session", name).err.partition(": ")[2] for verb in ("diff", "undo")}
        assert len(errors) == 1, errors


def test_a_dry_run_prints_the_patch(scene: Scene) -> None:
    scene.me.edit("notes.md", "alpha", "MINE")
    patch = scene.undoes("--dry-run", of=scene.me)["patch"]
    assert "-MINE\n+alpha\n" in patch and scene.read("notes.md") == "MINE\nbeta\ngamma\n"


def test_the_session_is_told_of_a_person_s_undo(scene: Scene) -> None:
    scene.me.edit("notes.md", "alpha", "MINE")
    scene.undoes(of=scene.me)
    (row,) = scene.sql("SELECT content FROM messages WHERE recipient = ?", scene.me.id)
    assert "notes.md" in row["content"] and "took back" in row["content"]


NAMED = "Your own changes alone, in shared files too: `"
SWEEPS = {  # command -> the file that it names for the session's own changes
    "git checkout -- notes.md": "notes.md",
    "git checkout .": "notes.md other.md",
    "git restore .": "notes.md other.md",
    "git reset --hard": "notes.md other.md",
    "cd sub && git checkout -- ../notes.md": "{repo}/notes.md",
    "git stash": "notes.md other.md",
    "git restore -s HEAD~0 .": "",
    "git checkout main -- .": "",
    "git clean -fd": "",
}


@pytest.mark.parametrize("command", SWEEPS)
@pytest.mark.sampled
def test_a_denied_sweep_names_the_undo_that_does_it(command: str, scene: Scene) -> None:
    me, peer = scene.peer, scene.me
    me.edit("notes.md", "alpha", "MINE")
    peer.edit("notes.md", "gamma", "THEIRS")
    me.edit("other.md", "beta", "MINE")
    scene.write("sub/deep.md", "alpha\nbeta\na person's\n")
    peer.write("new.md")
    verdict = me.bash(command)
    assert verdict.denied, verdict
    files = SWEEPS[command].format(repo=scene.repo)
    if not files:
        assert "undo" not in verdict.words
        return
    assert f"`swarm-mcp undo {files}`, or the tool undo" in verdict.words, verdict.words
    done = scene.types(f"swarm-mcp undo {files}", me)
    assert done.code == 0 and scene.read("notes.md") == "alpha\nbeta\nTHEIRS\n", done
    assert scene.read("sub/deep.md") == "alpha\nbeta\na person's\n" and scene.read("new.md") == "written\n"
    if "other.md" in files:
        assert scene.read("other.md") == TEXT


def test_a_denied_sweep_over_a_person_s_lines_names_the_undo(scene: Scene) -> None:
    me = scene.peer
    scene.write("notes.md", "alpha\nbeta\na person's\n")
    me.edit("notes.md", "alpha", "MINE")
    verdict = me.bash("git checkout -- notes.md")
    assert verdict.denied and f"{NAMED}swarm-mcp undo notes.md`" in verdict.words, verdict.words
    assert scene.types("swarm-mcp undo notes.md", me).code == 0
    assert scene.read("notes.md") == "alpha\nbeta\na person's\n"


def test_files_are_named_from_the_folder_of_the_shell(scene: Scene) -> None:
    scene.peer.edit("sub/deep.md", "alpha", "MINE")
    assert scene.types("swarm-mcp undo deep.md", scene.peer, "sub").code == 0
    assert scene.read("sub/deep.md") == TEXT


def test_a_denied_sweep_over_lines_of_unclear_owners_names_the_partial_undo(scene: Scene) -> None:
    me, peer = scene.peer, scene.me
    me.edit("notes.md", "alpha", "MINE")
    change = {"file_path": str(scene.repo / "notes.md"), "old_string": "gamma", "new_string": "BOTH"}
    peer.ask("Edit", change)
    me.edit("notes.md", "gamma", "BOTH")  # the same, while the other's is still to come
    peer.bash("true")
    peer.edit("notes.md", "beta", "THEIRS")
    verdict = me.bash("git checkout -- notes.md")
    assert verdict.denied and "`swarm-mcp undo --partial notes.md`, or the tool undo" in verdict.words, verdict.words
    done = scene.types("swarm-mcp undo --partial notes.md", me)
    assert done.code == 0 and "left: notes.md line 3" in done.out, done
    assert scene.read("notes.md") == "alpha\nTHEIRS\nBOTH\n"


def test_git_is_asked_a_fixed_number_of_questions(scene: Scene, listening: Listening) -> None:
    asked = listening(repository, "ask")
    counts, made = [], 0
    for names in (["a.md"], ["b.md", " odd \n.md", "c\\d.md", "ü.md"]):
        for name in names:
            scene.me.write(name, "x\n")
        asked.clear()
        made += len(names)
        assert len(plan_session(("claude-code", scene.me.session_id), str(scene.repo), [], 0).files) == made
        counts.append(len(asked))
    assert counts == [2, 3]  # a name with a line's end is asked about alone


@pytest.mark.parametrize("own", [("alpha", "MINE"), ("beta", "MINE")])
def test_an_undo_is_no_look_at_others_lines(scene: Scene, own: tuple[str, str]) -> None:
    me, peer = scene.peer, scene.me
    me.edit("notes.md", *own)
    peer.edit("notes.md", "gamma", "THEIRS")
    assert scene.types("swarm-mcp undo notes.md", me).code == 0
    assert scene.read("notes.md") == "alpha\nbeta\nTHEIRS\n"
    verdict = me.bash("cat > notes.md <<'EOF'\nalpha\nbeta\ngamma\nNEW\nEOF")
    assert verdict.denied, verdict
    assert scene.read("notes.md") == "alpha\nbeta\nTHEIRS\n"


@pytest.mark.parametrize("how", ["git", "swarm", "person"])
def test_a_committed_removal_stays(how: str, scene: Scene) -> None:
    scene.me.edit("notes.md", "beta\n", "")
    if how == "git":
        scene.me.bash("git commit -qam removed")
    elif how == "swarm":
        assert scene.swarm("commit", "-m", "mine", as_=scene.me).code == 0
    else:
        scene.commit()
    assert scene.git("show", "HEAD:notes.md") == "alpha\ngamma\n"
    scene.undoes(of=scene.me)
    assert scene.read("notes.md") == "alpha\ngamma\n"
    scene.me.edit("notes.md", "gamma", "LATER")
    scene.undoes(of=scene.me)
    assert scene.read("notes.md") == "alpha\ngamma\n"
    scene.peer.edit("notes.md", "alpha\n", "")
    scene.me.edit("notes.md", "gamma", "LATER")
    scene.commit()
    scene.me.edit("notes.md", "LATER", "AGAIN")
    scene.undoes(of=scene.me)
    scene.undoes(of=scene.peer)
    assert scene.read("notes.md") == "LATER\n"


def test_a_write_that_is_let_pass_behind_the_plan_is_met(scene: Scene) -> None:
    scene.me.edit("notes.md", "beta", "MINE")
    text, whose = scene.read("notes.md"), (scene.me.runtime, scene.me.session_id)
    with scene.store() as store:
        undoing = Undoing(store, store.instances.live(scene.me.id), str(scene.repo))
        plan = undoing.plan(whose, [], 0, False)
        assert not scene.peer.ask(*scene.peer.writing("notes.md", text + "theirs\n")).denied
        with pytest.raises(NotUndone, match="is about to write it"):
            undoing.do(plan, whose)
    assert scene.read("notes.md") == text
    noted = journal.read(os.path.join(place_of(str(scene.repo)), journal_name(*whose)))
    assert b" wrote - swarm:undo" not in noted, "nobody waits for it"


def test_an_undo_is_one_step_though_another_looks_at_the_file_meanwhile(scene: Scene) -> None:
    scene.peer.edit("notes.md", "delta", "THEIRS")
    scene.me.edit("notes.md", "beta", "MINE")
    text, whose, write = scene.read("notes.md"), (scene.me.runtime, scene.me.session_id), undoings.write

    def looks_on(record: Record, _reached: Callable[[str], object] = str) -> None:
        write(
            record, lambda step: scene.peer.ask("Bash", {"command": "echo > sub/deep.md"}) if step == "write" else None
        )

    with scene.store() as store:
        undoing = Undoing(store, store.instances.live(scene.me.id), str(scene.repo))
        with mock.patch.object(undoings, "write", looks_on):
            record = undoing.do(undoing.plan(whose, [], 0, False), whose)
        assert "MINE" not in scene.read("notes.md")
        undoing.do(undoing.plan_back(record, [], False), whose, record.id)
    assert scene.read("notes.md") == text
