"""A command while the kernel holds locked files: those are read-only, and everything else is as outside."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fixtures import wait_for
from support.kernel_ground import USERS, KernelGround, grounds, mounts_of

from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.slow


@pytest.fixture(params=USERS)
def ground(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelGround]:
    yield from grounds(request.param, monkeypatch)


def refusal(ground: KernelGround, place: Path, text: str) -> str:
    """Return the output of a command that must fail."""
    done = ground.bash(place, text)
    assert done.returncode != 0
    return done.stderr


def test_a_held_file_can_be_neither_written_nor_moved_nor_removed_and_the_rest_can(ground: KernelGround) -> None:
    held, free = ground.locked("held.txt"), ground.file("free.txt")
    place = ground.plan(held)
    for text in ("echo mine > held.txt", "echo mine >> held.txt", "truncate -s 0 held.txt", "chmod 700 held.txt"):
        assert "Read-only file system" in refusal(ground, place, text), text
    for text in ("rm -f held.txt", "mv held.txt away.txt", "mv free.txt held.txt", "sed -i s/t/m/ held.txt"):
        assert "busy" in refusal(ground, place, text), text
    done = ground.bash(place, "echo mine > free.txt && echo new > new.txt && rm -f probe && cat held.txt && mkdir sub")
    assert (done.returncode, done.stdout, done.stderr) == (0, "theirs\n", "")
    assert (held.read_text(), free.read_text(), (ground.repo / "new.txt").read_text()) == (
        "theirs\n",
        "mine\n",
        "new\n",
    )
    assert mounts_of(ground.folder) == [], "outside nothing has changed"
    assert os.stat(ground.repo / "new.txt").st_uid == ground.user


def test_a_held_folder_is_held_with_all_that_is_in_it(ground: KernelGround) -> None:
    ground.file("sub/deep/file.txt"), ground.file("other.txt")
    place = ground.plan(ground.repo / "sub", ground.repo / "sub" / "deep" / "file.txt")
    for text in ("echo x > sub/new", "echo x > sub/deep/file.txt", "rmdir sub/deep", "rm -rf sub/deep"):
        assert "Read-only file system" in refusal(ground, place, text) or "busy" in refusal(ground, place, text), text
    for text in ("mv sub away", "mv other.txt sub/"):
        refusal(ground, place, text)
    assert ground.bash(place, "echo x > other.txt").returncode == 0
    assert (ground.repo / "sub" / "deep" / "file.txt").read_text() == "theirs\n"


def test_a_held_folder_is_held_where_the_command_stands_in_it(ground: KernelGround) -> None:
    ground.file("sub/file.txt")
    place = ground.plan(ground.repo / "sub")
    done = ground.bash(place, "pwd; echo x > file.txt; echo x > new; cd ..; echo x > free", cwd=ground.repo / "sub")
    assert done.stdout == f"{ground.repo}/sub\n" and done.stderr.count("Read-only file system") == 2
    assert (ground.repo / "free").exists() and not (ground.repo / "sub" / "new").exists()


@pytest.mark.parametrize(
    "name", ["a b.txt", 'it\'s "so".txt', "line\nbreak.txt", "back\\slash.txt", "tab\t.txt", "\udcff.txt"]
)
def test_odd_names_are_held_and_let_go(ground: KernelGround, name: str) -> None:
    held = ground.file(name)
    place = ground.plan(held)
    done = ground.run(place, "bash", "-c", 'echo x > "$1"', "bash", name)
    assert done.returncode == 1 and held.read_text() == "theirs\n"
    # The lock has ended: the file is released at the next look at the locks, without a change of the store.
    done = ground.run(place, "bash", "-c", 'until echo x > "$1"; do sleep 0.05; done 2> /dev/null', "bash", name)
    assert done.returncode == 0 and held.read_text() == "x\n"


STATE = "grep -E '^(Sig(Blk|Ign|Cgt)|Shd)' /proc/self/status; ulimit -a; umask; id; nice; pwd; set -o"


def test_the_command_is_as_it_is_outside(ground: KernelGround) -> None:
    """Signals, limits, the mask of files, groups, folder: nothing of it is another."""
    place = ground.plan(ground.locked("held.txt"))
    inside = ground.bash(place, STATE)
    outside = ground.bash(ground.folder / "no-plan", STATE)
    plain = subprocess.run(
        ["bash", "-c", STATE], cwd=ground.repo, capture_output=True, text=True, check=True,
        **({"user": ground.user, "group": ground.user, "extra_groups": []} if ground.user != os.geteuid() else {}),
    )  # fmt: skip
    assert (inside.stdout, inside.stderr) == (plain.stdout, "") == (outside.stdout, outside.stderr)


def test_its_process_input_output_and_end_are_its_own(ground: KernelGround) -> None:
    place = ground.plan(ground.locked("held.txt"))
    child = ground.start(place, "bash", "-c", "echo $$; cat; echo beside >&2; jobs; wait; exit 7")
    out, err = child.communicate("one\ntwo", timeout=60)
    assert (out, err, child.returncode) == (f"{child.pid}\none\ntwo", "beside\n", 7)
    child = ground.start(place, "bash", "-c", "echo ready; exec sleep 600")
    assert child.stdout and child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(60) == -signal.SIGTERM
    done = ground.bash(place, "yes | head -n 1")
    assert (done.stdout, done.stderr) == ("y\n", ""), "a closed pipe ends who writes into it"


def test_a_program_that_is_not_there(ground: KernelGround) -> None:
    done = ground.run(ground.plan(ground.locked("held.txt")), "no-such-program")
    assert done.returncode == 127 and done.stderr == "no-such-program: No such file or directory\n"


def test_a_namespace_in_another_holds_what_both_hold(ground: KernelGround) -> None:
    first, second = ground.locked("first.txt"), ground.locked("second.txt")
    outer, inner = ground.plan(first), ground.plan(second)
    done = ground.run(
        outer, *ground.words(inner, "bash", "-c", "echo x > first.txt; echo x > second.txt; echo x > free")
    )
    assert done.stderr.count("Read-only file system") == 2 and (ground.repo / "free").exists()


def test_where_the_folder_of_the_command_has_gone(ground: KernelGround) -> None:
    place = ground.plan(ground.locked("held.txt"), strict=True)
    gone = ground.repo / "gone"
    gone.mkdir()
    ground.own()
    words = " ".join(f"'{word}'" for word in ground.words(place, "bash", "-c", f"echo x > {ground.repo}/held.txt"))
    done = ground.run(ground.folder / "no-plan", "bash", "-c", f"rmdir ../gone && {words}", cwd=gone)
    assert "held.txt: Read-only file system" in done.stderr and "swarm:" not in done.stderr


def test_a_file_that_has_gone_is_no_hindrance(ground: KernelGround) -> None:
    held = ground.locked("held.txt")
    place = ground.plan(held, ground.repo / "gone.txt", strict=True)
    assert "Read-only" in refusal(ground, place, "echo x > held.txt")
    assert ground.bash(ground.plan(ground.repo / "gone.txt", strict=True), "exit 3").returncode == 3, "nothing to hold"


def test_those_who_ignore_the_ends_of_their_children_are_held_as_well(ground: KernelGround) -> None:
    place = ground.plan(ground.locked("held.txt"), strict=True)
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = [ground.python, "-c", ignoring, *ground.words(place, "bash", "-c", "echo x > held.txt")]
    done = ground.run(ground.folder / "no-plan", *words)
    assert "held.txt: Read-only" in done.stderr and "swarm:" not in done.stderr


def test_somebody_in_another_root_stays_there(ground: KernelGround) -> None:
    if os.geteuid() or ground.user:
        pytest.skip("only root changes its root")
    held = ground.locked("held.txt")
    place = ground.plan(held, strict=True)
    (ground.folder / "root").mkdir()
    (ground.folder / "mark").write_text("outside")
    (ground.folder / "own").write_text("inside")
    words = " ".join(
        f"'{word}'" for word in ground.words(place, "bash", "-c", f"cat {ground.folder}/mark; echo x > held.txt")
    )
    # Python changes the root: the program `chroot` is in a folder that is not on all users' PATH.
    change = "import os, sys; os.chroot('root'); os.chdir(sys.argv[1]); os.execvp(sys.argv[2], sys.argv[2:])"
    text = (
        f"set -e; cd {ground.folder}; mount --rbind / root; mount --bind own root{ground.folder}/mark;"
        f' {ground.python} -c "{change}" {ground.repo} {words}'
    )
    done = subprocess.run(["unshare", "-m", "bash", "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout == "inside" and "held.txt: Read-only" in done.stderr, done.stderr


def test_a_thousand_files_are_held(ground: KernelGround) -> None:
    files = [ground.repo / f"many/file-{number}" for number in range(1000)]
    (ground.repo / "many").mkdir()
    for file in files:
        file.write_text("theirs\n")
    with Store() as store:
        for begin in range(0, len(files), 200):
            names = [str(file) for file in files[begin : begin + 200]]
            store.locks.acquire_all(ground.peer, request(ground.peer, names))
    place = ground.plan(*files, strict=True)
    text = "for file in many/*; do echo x > $file && echo $file; done 2> /dev/null; echo x > many/new"
    done = ground.bash(place, text)
    assert (done.returncode, done.stdout) == (0, "")
    assert {file.read_text() for file in files} == {"theirs\n"} and (ground.repo / "many" / "new").exists()
    wait_for(lambda: not ground.processes())


def test_where_it_cannot_the_command_goes_ahead_unless_it_is_strict(ground: KernelGround) -> None:
    """Many files are open already, so the calls to the kernel fail."""
    held = ground.locked("held.txt")
    few = 'ulimit -n 5; exec "$@"'
    for strict, code, said, text in ((False, 4, 1, "mine\n"), (True, 126, 2, "theirs\n")):
        held.write_text("theirs\n")
        words = ground.words(ground.plan(held, strict=strict), "bash", "-c", "echo mine > held.txt; exit 4")
        done = ground.run(ground.folder / "no-plan", "bash", "-c", few, "bash", *words)
        lines = done.stderr.splitlines()
        assert (done.returncode, len(lines), held.read_text()) == (code, said, text), done.stderr
        assert lines[0].startswith("swarm: the kernel does not protect the locked files of others from this command: ")
        assert not strict or "SWARM_STRICT" in lines[1]
