"""``swarm-mcp try``: a command sees the last commit with chosen lines, and the checkout sees nothing of it.

Each test runs in an overlay, in a copy at the checkout's path, and in a copy of its own, as far as this kernel has them.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.commits import hook
from support.files import files_at, folder_at, text_at
from support.fixtures import wait_for
from support.serving import Server
from support.world import Agent, World, git

from swarm_hook_core.repository import tree_over
from swarm_mcp.changes.tries import folder, picture, running, trial
from swarm_mcp.changes.tries.running import BOUND, COPY, OVERLAY
from swarm_mcp.doctor.own_checks import Asked

pytestmark = [pytest.mark.slow, pytest.mark.sampled]

WAYS = (OVERLAY, BOUND, COPY)


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, "notes.md", "other.md", "sub/deep.md")
    made.write(".gitignore", "build/\n.env\n")
    made.commit()
    return made


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The one way of trying; where the kernel has no namespaces, a copy in each case."""
    real = running.ways
    chosen = []

    def only(tree: Any) -> list[str]:
        found = [one for one in real(tree) if one.startswith(request.param)] or [COPY]
        chosen.append(found[0])
        return found

    monkeypatch.setattr(running, "ways", only)
    return str(request.param)


def tried(world: World, *argv: str, code: str = "", as_: Agent | None = None, exits: int = 0) -> dict[str, Any]:
    """Run a shell script in a try, and return the answer. The work tree and its repository stay as they are."""
    acting = ["--as", as_.id] if as_ is not None else []
    before = everything(world.repo)
    done = world.ground.swarm("try", "--json", *argv, *acting, "--", "sh", "-c", code or "true")
    assert done.code == exits, (done.out, done.err)
    assert everything(world.repo) == before
    found: dict[str, Any] = json.loads(done.out)
    return found


def everything(top: Path) -> dict[str, tuple[Any, ...]]:
    """Return the content, mode and time of each file of a work tree, its repository's included."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in top.rglob("*"):
        facts = path.lstat()
        if stat.S_ISREG(facts.st_mode):
            is_object = ".git/" in str(path) and "/objects/" in str(
                path
            )  # git gives one that it would write again a new time
            found[str(path)] = (path.read_bytes(), facts.st_mode, 0 if is_object else facts.st_mtime_ns)
        else:
            found[str(path)] = (os.readlink(path) if path.is_symlink() else "",)
    return found


def test_the_content_is_that_of_the_choice(world: World, way: str) -> None:
    me, peer = world.session("codex"), world.session("codex")
    me.edit("notes.md", "alpha", "MINE")
    peer.edit("notes.md", "gamma", "THEIRS")
    (world.repo / "new").mkdir()
    peer.write("new/theirs.md", "theirs\n")
    (world.repo / "sub/deep.md").unlink()  # by a person
    world.write("other.md", "PERSON\n")
    script = "cat notes.md; ls -d new sub/deep.md; head -n 1 other.md; git status --short"
    answer = tried(world, as_=me, code=script)
    assert answer["output"].splitlines() == [
        "MINE", "beta", "gamma", "ls: cannot access 'new': No such file or directory", "sub/deep.md", "alpha",
        " M notes.md",
    ]  # fmt: skip
    assert [(one["who"], one["files"]) for one in answer["with"]] == [("you", ["notes.md"])]
    assert sorted(name for one in answer["without"] for name in one["files"]) == [
        "new/theirs.md", "notes.md", "other.md", "sub/deep.md",
    ]  # fmt: skip
    assert tried(world, "--head", code="git status --short", as_=me)["output"] == ""
    answer = tried(world, "--without", "person", code="cat notes.md new/theirs.md; head -n 1 other.md", as_=me)
    assert answer["output"].split() == ["MINE", "beta", "THEIRS", "theirs", "alpha"]
    answer = tried(world, "--session", peer.id, "--person", code="cat notes.md; git status --short", as_=me)
    assert answer["output"].split("\n", 3)[3] == " M notes.md\n M other.md\n D sub/deep.md\n?? new/\n"


def test_what_a_command_writes_stays_in_the_try(world: World, way: str) -> None:
    world.write("notes.md", "mine\n")
    text_at(world.repo / "build/old", "of the checkout\n")
    (world.repo / ".env").write_text("secret\n")
    touch = "echo more >> build/old; echo new > build/made; echo x >> .env; echo y >> other.md; rm -r sub; : > .git/index.lock"
    answer = tried(
        world,
        code=f"{touch}; cat .env; rm .git/index.lock; git -c user.name=t -c user.email=t@t commit -qam inner; git log --format=%s; exit 3",
        exits=3,
    )
    assert answer["output"].split() == ["secret", "x", "inner", "a", "person's", "start"]
    assert answer["written"] == ["other.md", "sub/deep.md"]
    answer = tried(world, code="cat build/old build/made .env other.md sub/deep.md")
    assert answer["output"].split("\n")[:4] == ["of the checkout", "more", "new", "secret"], "ignored files are kept"
    assert answer["output"].count("alpha\nbeta\ngamma\n") == 2 and "x\n" not in answer["output"]
    kept = folder.place_of(str(world.repo / ".git"))
    assert not list(Path(kept).rglob(".env"))


def test_a_build_may_remove_its_folders_and_make_them_anew(world: World, way: str) -> None:
    files_at(world.repo / "build", dict.fromkeys(("gone/deep/old", "anew/old"), "old\n"))
    tried(world, code="cd build && rm -r gone anew && mkdir anew && echo new > anew/new")
    assert tried(world, code="cd build && find . -type f")["output"] == "./anew/new\n"
    tried(world, code="rm -r build && mkdir build && echo all > build/new")
    assert tried(world, code="cd build && find . -type f")["output"] == "./new\n"


def test_the_tool_runs_this_installation(world: World) -> None:
    # The checkout may have a package of the same name.
    world.write("swarm_mcp/__main__.py", "print('another program')\n")
    with Server(world.ground) as server:
        server.ask("tools/call", {"name": "register", "arguments": {"directory": str(world.repo)}})
        found = server.ask("tools/call", {"name": "try", "arguments": {"command": "cat notes.md"}})
    assert found["structuredContent"]["output"].split() == ["alpha", "beta", "gamma"]


def test_a_file_with_another_content_than_at_the_last_try_gets_another_second(world: World, way: str) -> None:
    world.write("notes.md", "alpha\nBETA\ngamma\n")
    times = "stat -c %Y notes.md other.md; cat notes.md | tr '\\n' ' '"
    here = int(os.stat(world.repo / "notes.md").st_mtime)
    head, untouched, _text = tried(world, "--head", code=times)["output"].split("\n")
    assert int(head) > here and int(untouched) == int(os.stat(world.repo / "other.md").st_mtime)
    assert tried(world, "--head", code=times)["output"].split("\n")[0] == head
    mine, _other, text = tried(world, code=times)["output"].split("\n")
    assert int(mine) > int(head) and text == "alpha BETA gamma "
    assert tried(world, code=times)["output"].split("\n")[0] == mine
    assert int(tried(world, "--head", code=times)["output"].split("\n")[0]) > int(mine)


def test_links_modes_filters_and_line_ends(world: World, way: str) -> None:
    world.git("config", "filter.upper.smudge", "tr a-z A-Z")
    world.git("config", "filter.upper.clean", "tr A-Z a-z")
    world.write(".gitattributes", "*.up filter=upper\n*.crlf eol=crlf\n")
    world.write("word.up", "WORD\n")
    (world.repo / "ends.crlf").write_bytes(b"one\r\ntwo\r\n")
    world.write("run", "#!/bin/sh\necho ran\n").chmod(0o755)
    (world.repo / "link").symlink_to("notes.md")
    (world.repo / "data").write_bytes(b"\0one")
    world.commit()
    me = world.session("codex")
    (world.repo / "ends.crlf").write_bytes(b"one\r\nPERSON\r\n")
    assert not me.bash("sed -i s/one/ME/ ends.crlf").denied
    assert (world.repo / "ends.crlf").read_bytes() == b"ME\r\nPERSON\r\n"
    world.write("word.up", "OTHER\n")
    (world.repo / "run").chmod(0o644)
    (world.repo / "link").unlink()
    (world.repo / "link").symlink_to("other.md")
    (world.repo / "data").write_bytes(b"\0two")
    script = "cat word.up; ./run; readlink link; tr -d '\\0' < data; od -c ends.crlf | head -n 1"
    head = tried(world, "--head", code=script, as_=me)["output"]
    assert head == "WORD\nran\nnotes.md\none0000000   o   n   e  \\r  \\n   t   w   o  \\r  \\n\n"
    assert "M   E  \\r  \\n   t   w   o  \\r" in tried(world, code=script, as_=me)["output"]
    answer = tried(world, "--person", code="cat word.up; test -x run || echo plain; readlink link; tr -d '\\0' < data")
    assert answer["output"] == "OTHER\nplain\nother.md\ntwo"


def test_a_linked_work_tree_and_a_submodule(world: World, way: str) -> None:
    world.git("submodule", "--quiet", "add", str(world.repo), "module")
    world.commit()
    answer = tried(world, code="cat module/notes.md; git -C module log --format=%s | tail -n 1")
    assert answer["output"].split() == ["alpha", "beta", "gamma", "start"]
    linked = world.folder / "linked"
    world.git("worktree", "add", "-q", str(linked), "-b", "side")
    (linked / "notes.md").write_text("person\n")
    before = everything(world.repo), everything(linked)
    words = ["--", "sh", "-c", "cat notes.md; git log --format=%s side | head -n 1"]
    done = world.ground.swarm("try", "--head", "--json", *words, cwd=linked)
    assert json.loads(done.out)["output"].split() == ["alpha", "beta", "gamma", "a", "person's"]
    words[-1] = "git -c user.name=t -c user.email=t@t commit -qam inner; git log --format=%s side | head -n 1"
    done = world.ground.swarm("try", "--json", *words, cwd=linked)
    assert json.loads(done.out)["output"].split() == ["inner"]
    after = everything(world.repo), everything(linked)
    for old, new in zip(before, after):
        assert {path for path in {*old, *new} if old.get(path) != new.get(path)} == set()


def test_a_file_that_changes_meanwhile_is_named(world: World, way: str) -> None:
    world.write("notes.md", "person\n")
    path = world.repo / "sub/deep.md"
    done = world.ground.swarm("try", "--head", "--json", "--", "nsenter", "--mount=/dev/null")
    assert done.code in (1, 126, 127)
    script = "echo y > $1/other.md; echo x > $1/notes.md"
    outside = subprocess.Popen(
        [
            "sh",
            "-c",
            f"while ! test -e {world.folder}/go; do sleep 0.01; done; {script}; : > {world.folder}/done",
            "sh",
            str(world.repo),
        ]
    )
    wait = f": > {world.folder}/go; while ! test -e {world.folder}/done; do sleep 0.01; done; cat notes.md"
    done = world.ground.swarm("try", "--head", "--json", "--", "sh", "-c", wait)
    assert outside.wait() == 0 and path.exists()
    answer = json.loads(done.out)
    assert answer["changed"] == ["other.md"], "notes.md is the try's own"
    assert answer["output"] == "alpha\nbeta\ngamma\n"


@pytest.mark.parametrize("times, changed", [(1, []), (picture.MOMENTS, ["notes.md"])])
def test_a_file_that_changes_while_its_authors_are_looked_for_is_no_ones_by_mistake(
    world: World, monkeypatch: pytest.MonkeyPatch, times: int, changed: list[str]
) -> None:
    lines = ["line 0\n"]
    world.write("notes.md", "".join(lines))
    look = picture.uncommitted

    def slowly(*given: Any) -> Any:
        found = look(*given)
        if len(lines) <= times:
            lines.append(f"line {len(lines)}\n")
            world.write("notes.md", "".join(lines))
        return found

    monkeypatch.setattr(picture, "uncommitted", slowly)
    made = picture.Picture(str(world.repo))
    seen = b"".join(line for one in made.changed for piece in one.pieces for line in piece.added).decode()
    assert (made.changed_since(()), seen == "".join(lines)) == (changed, not changed)


def test_all_processes_end_with_the_command_and_with_its_caller(world: World, way: str) -> None:
    mark = world.folder / "pids"
    daemon = f"setsid sh -c 'while :; do echo alive > {mark}; sleep 0.02; done' > /dev/null 2>&1 &"
    tried(world, code=f"{daemon} while ! test -e {mark}; do sleep 0.01; done")
    mark.unlink()
    wait_for(lambda: not mark.exists())
    assert len(running_below(world.folder)) == 0
    mounts = Path("/proc/self/mountinfo").read_text() if sys.platform == "linux" else ""
    assert str(world.repo) not in mounts
    words = [sys.executable, "-c", "from swarm_mcp.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"]
    killed = subprocess.Popen(
        [*words, "try", "--head", "--", "sh", "-c", f"echo junk > junk; {daemon} while :; do sleep 0.05; done"],
        cwd=world.repo, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_for(mark.exists)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    wait_for(lambda: not running_below(world.folder))
    assert tried(world, code="ls junk || echo none")["output"].endswith("none\n")


def running_below(folder: Path) -> list[str]:
    """Return the command lines of the processes that name a folder."""
    done = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if f"echo alive > {folder}" in line and "ps -ww" not in line]


def test_kept_files_are_shown_and_brought_back_as_the_callers(world: World, way: str) -> None:
    me, peer = world.session("codex"), world.session("codex")
    me.edit("notes.md", "alpha", "mine")
    peer.edit("notes.md", "gamma", "THEIRS")
    tried(world, "--keep", code="sed -i s/mine/MINE/ notes.md; echo made > made.md; rm other.md", as_=me)
    patch = world.ground.swarm("try", "--diff", "notes.md", "--as", me.id).out
    assert patch.splitlines()[-4:] == ["-mine", "+MINE", " beta", " gamma"]
    done = world.swarm("try", "--apply", "notes.md", "made.md", as_=me)
    assert done.code == 0 and sorted(done.json["files"]) == ["made.md", "notes.md"]
    assert world.read("notes.md") == "MINE\nbeta\nTHEIRS\n" and (world.repo / "other.md").exists()
    owners = {one["file"].rpartition("/")[2]: one for one in world.swarm("diff", "--mine", as_=me).json["files"]}
    assert set(owners) == {"made.md", "notes.md"}
    assert [hunk["added"] for hunk in owners["notes.md"]["hunks"]] == [["MINE\n"]]
    undone = world.ground.swarm("undo", "--undo", done.json["id"])
    assert undone.code == 0, undone.err
    assert world.read("notes.md") == "mine\nbeta\nTHEIRS\n" and not (world.repo / "made.md").exists()
    me.edit("notes.md", "mine", "another")
    assert "other lines here" in world.swarm("try", "--apply", "notes.md", as_=me).json["error"]


def test_a_copy_elsewhere_means_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ways", lambda _tree: [COPY])
    build = folder_at(world.repo / "build")
    (build / "paths").write_text(f"root={world.repo}\n")
    script = f"cat build/paths; pwd; echo $WHERE; echo {world.repo}/notes.md; ls {world.repo}"
    monkeypatch.setenv("WHERE", f"{world.repo}/bin:/usr/bin")
    answer = tried(world, code=script)
    assert answer["output"].count(str(world.repo) + "/") == answer["output"].count(str(world.repo)) == 0
    (build / "binary").write_bytes(b"\0" + os.fsencode(world.repo))
    tree = tree_over(str(world.repo))
    assert tree is not None
    with folder.taken(tree) as one:
        one.clear()
    assert tried(world, code="ls build || echo none")["output"].endswith("none\n"), "a build folder of its own"
    tried(world, code="mkdir build; echo built > build/made")
    assert tried(world, code="cat build/made")["output"] == "built\n"
    (world.repo / "build/pyvenv.cfg").write_text("home = /usr/bin\n")
    with folder.taken(tree) as one:
        one.clear()
    assert "no honest try here: build/binary" in tried(world, exits=1)["error"]


def test_lines_that_another_rewrote_and_doubtful_ones_are_named(world: World) -> None:
    me, peer = world.session("codex"), world.session("codex")
    me.edit("notes.md", "beta", "mine one\nmine two")
    peer.edit("notes.md", "mine one\nmine two", "theirs")
    me.edit("notes.md", "alpha", "ALPHA")
    answer = tried(world, code="cat notes.md", as_=me)
    assert answer["output"] == "ALPHA\nbeta\ngamma\n" or answer["notes"]
    assert any("2 lines of you in notes.md were rewritten by codex" in note for note in answer["notes"]), answer


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--head", "--mine", "--", "true"), "--head and --mine exclude each other"),
        (("--without", "person", "--person", "--", "true"), "--without and --person exclude each other"),
        (("--session", "nobody", "--", "true"), "nobody"),
        (("--head",), "missing the command"),
        (("--apply",), "missing a file or a folder"),
        (("--diff",), "no try of yours is kept here"),
        (("--whose", "--jobs", "0", "--", "true"), "--jobs wants a number"),
    ],
)
def test_wrong_words(world: World, argv: tuple[str, ...], words: str) -> None:
    done = world.ground.swarm("try", *argv)
    assert done.code in (1, 2) and words in done.err and done.err.count("\n") == 1


def test_the_command_of_a_try_is_read(world: World) -> None:
    me, peer = world.session("codex"), world.session("codex")
    world.lock(peer, "other.md")
    assert me.ask("Bash", {"command": "swarm-mcp try -- rm other.md"}).denied


def test_doctor_names_the_way_and_the_kept_folders(world: World, way: str) -> None:
    tried(world, "--keep", code="echo more >> notes.md; mkdir -p build; echo made > build/made")
    finding = trial.findings(Asked(str(world.repo), ()))
    assert finding.status == "ok" and finding.details["way"].startswith((way, COPY))
    assert {one["top"] for one in finding.details["kept"]} == {str(world.repo)}
    assert "made > build/made` wrote are kept (`swarm-mcp try --diff`)" in finding.message
    tried(world, code="head -c 3000000 /dev/zero > build/large")
    assert "; ignored files of tries take 2 MiB (for seven days)" in world.swarm("status").json["tries"]
    assert "ignored files of tries take 2 MiB" in world.ground.swarm("status").out
    for torn in Path(folder.kept()[0].path).parent.glob("*/[bt][yr]*"):  # bytes, try.json
        torn.write_text("{")
    assert {one.top for one in folder.kept()} == {str(world.repo)}
    folder.prune(time.time() + 8 * 86400)
    assert folder.kept() == []


def test_outside_of_a_repository_and_before_the_first_commit(world: World) -> None:
    done = world.ground.swarm("try", "--", "true", cwd=world.folder)
    assert done.code == 1 and "is in no git repository" in done.err
    empty = folder_at(world.folder / "empty")
    git(empty, "init", "-q")
    assert "no commit yet" in world.ground.swarm("try", "--", "true", cwd=empty).err


def test_a_missing_program_and_the_folder_of_the_caller(world: World, way: str) -> None:
    assert world.ground.swarm("try", "--json", "--", "no-such-program").code == 127
    done = world.ground.swarm("try", "--json", "--", "pwd", cwd=world.repo / "sub")
    assert json.loads(done.out)["output"].rstrip().endswith("/sub")
    assert world.ground.swarm("try", "--json", "--", "sh", "-c", "kill -TERM $$").code == 128 + signal.SIGTERM


def test_doctor_copies_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for way in (BOUND, COPY):
        monkeypatch.setattr(running, "ways", lambda _tree, way=way: [way])
        assert trial.findings(Asked(str(world.repo), ())).details == {"kept": [], "way": way}
    assert folder.kept() == []


# ------------------------------------------------------------------------------------------- commit --try


@pytest.fixture
def author(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "t")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "t@t")


FILES = "cat notes.md other.md | tr '\\n' ' '; ls; test ! -e new.md"


def test_a_command_is_tried_on_the_very_files_of_a_commit(world: World, author: None, way: str) -> None:
    me, peer = world.session("codex"), world.session("codex")
    hook(world.repo, "pre-commit", "sed -i s/MINE/HOOKED/ notes.md; git add notes.md")
    me.edit("notes.md", "alpha", "MINE")
    peer.edit("notes.md", "gamma", "THEIRS")
    peer.edit("other.md", "alpha", "THEIRS")
    peer.write("new.md")
    for command, code in (("exit 7", 7), (f"{FILES} && grep -q THEIRS *.md", 1), (f"{FILES}; exit 3", 3)):
        done = world.swarm("commit", "-m", "mine", "--try", command, as_=me)
        assert (done.code, done.json.get("exit")) == (1, code), (done.out, done.err)
        assert "nothing was committed: on the commit's files the command ended" in done.json["error"]
    assert "HOOKED beta gamma alpha beta gamma" in done.json["output"]
    assert world.git("log", "--format=%s").split("\n")[:2] == ["a person's", "start"]
    done = world.ground.swarm("commit", "-m", "mine", "--try", f"{FILES} && git status --short", "--as", me.id)
    assert done.code == 0 and "committed" in done.out, (done.out, done.err)
    assert world.git("show", "HEAD:notes.md") == "HOOKED\nbeta\ngamma\n"
    assert world.git("status", "--short") == " M notes.md\n M other.md\n?? new.md\n"


def test_a_commit_is_tried_anew_where_the_branch_has_moved(world: World, author: None, tmp_path: Path) -> None:
    me = world.session("codex")
    me.edit("notes.md", "alpha", "MINE")
    log = tmp_path / "log"
    person = f"git -C {world.repo} commit -q --allow-empty -m person"
    outside = subprocess.Popen(["sh", "-c", f"until test -s {log}; do sleep 0.01; done; {person}; touch {log}.done"])
    command = f"echo run >> {log}; until test -e {log}.done; do sleep 0.01; done"
    try:
        done = world.swarm("commit", "-m", "mine", "--try", command, as_=me)
    finally:
        outside.kill()
    assert done.code == 0, (done.out, done.err)
    assert log.read_text() == "run\nrun\n"
    assert world.git("log", "--format=%s").split()[:2] == ["mine", "person"]
