"""A command while the kernel holds locked files: they are read-only for as long as they are locked, however it ends."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fixtures import wait_for
from support.kernel_ground import USERS, KernelGround, grounds, mounts_of
from support.sessions import join

from swarm_hook_core.process import start_time
from swarm_mcp.store import Store
from swarm_mcp.store.lock_request import request

pytestmark = pytest.mark.thorough


@pytest.fixture(params=USERS)
def ground(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelGround]:
    yield from grounds(request.param, monkeypatch)


@pytest.fixture
def held(ground: KernelGround) -> Path:
    """A file that a peer holds."""
    return ground.locked("held.txt")


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


def test_a_file_that_has_gone_is_no_hindrance(ground: KernelGround, held: Path) -> None:
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


def test_a_thousand_files_are_held(ground: KernelGround, store: Store) -> None:
    files = [ground.repo / f"many/file-{number}" for number in range(1000)]
    (ground.repo / "many").mkdir()
    for file in files:
        file.write_text("theirs\n")
    for begin in range(0, len(files), 200):
        names = [str(file) for file in files[begin : begin + 200]]
        store.locks.acquire_all(ground.peer, request(ground.peer, names))
    place = ground.plan(*files, strict=True)
    text = "for file in many/*; do echo x > $file && echo $file; done 2> /dev/null; echo x > many/new"
    done = ground.bash(place, text)
    assert (done.returncode, done.stdout) == (0, "")
    assert {file.read_text() for file in files} == {"theirs\n"} and (ground.repo / "many" / "new").exists()
    wait_for(lambda: not ground.processes())


def test_where_it_cannot_the_command_goes_ahead_unless_it_is_strict(ground: KernelGround, held: Path) -> None:
    """Many files are open already, so the calls to the kernel fail."""
    few = 'ulimit -n 5; exec "$@"'
    for strict, code, said, text in ((False, 4, 1, "mine\n"), (True, 126, 2, "theirs\n")):
        held.write_text("theirs\n")
        words = ground.words(ground.plan(held, strict=strict), "bash", "-c", "echo mine > held.txt; exit 4")
        done = ground.run(ground.folder / "no-plan", "bash", "-c", few, "bash", *words)
        lines = done.stderr.splitlines()
        assert (done.returncode, len(lines), held.read_text()) == (code, said, text), done.stderr
        assert lines[0].startswith("swarm: the kernel does not protect the locked files of others from this command: ")
        assert not strict or "SWARM_STRICT" in lines[1]


MOMENTS = 200 if os.environ.get("SWARM_THOROUGH") else 15


def nothing_is_left(ground: KernelGround) -> None:
    wait_for(lambda: not ground.processes())
    assert mounts_of(ground.folder) == []


def test_the_command_is_killed_at_any_moment(ground: KernelGround) -> None:
    place, chance = ground.plan(ground.locked("held.txt"), strict=True), random.Random(1)
    begun = time.monotonic()
    ground.bash(place, "true")
    longest = (time.monotonic() - begun) * 1.5
    for _again in range(MOMENTS):
        child = ground.start(place, "bash", "-c", "exec sleep 600")
        time.sleep(chance.uniform(0, longest))
        child.kill()
        child.wait()
        nothing_is_left(ground)


def test_who_keeps_the_mounts_is_killed_at_any_moment(ground: KernelGround, held: Path) -> None:
    """The command goes on, or is not started if its plan is strict."""
    place, chance = ground.plan(held, strict=True), random.Random(2)
    for _again in range(MOMENTS):
        child = ground.start(place, "bash", "-c", "echo x > held.txt; echo started; read -r _; exit 5")
        others = wait_for(
            lambda child=child: child.poll() is not None or [p for p in ground.processes() if p != child.pid]
        )
        time.sleep(chance.uniform(0, 0.1))
        for other in others if isinstance(others, list) else ():
            kill(other)
        out, err = child.communicate("go\n", timeout=120)
        assert (child.returncode, out) in ((5, "started\n"), (126, "")), err
        assert held.read_text() == "theirs\n"
        nothing_is_left(ground)


def kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:  # it has ended
        pass


# Says that it is refused, and ends once it is not.
TRIES = """
echo x > "$1" && exit 3
echo refused
until echo x > "$1"; do sleep 0.05; done
"""


def trying(ground: KernelGround, held: Path, *others: Path) -> subprocess.Popen[str]:
    """A command that has been kept from writing `held`, and goes on trying."""
    child = ground.start(ground.plan(held, *others, strict=True), "bash", "-c", TRIES, "bash", str(held))
    assert child.stdout and child.stdout.readline() == "refused\n"
    return child


def ends_well(child: subprocess.Popen[str], held: Path) -> None:
    assert child.wait(120) == 0 and held.read_text() == "x\n"


def refused_for(child: subprocess.Popen[str], held: Path, seconds: float) -> None:
    """Check that the command cannot write for so many seconds, with looks at the locks meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert child.poll() is None and held.read_text() != "x\n"
        time.sleep(0.05)


def test_an_unlock_lifts_it(ground: KernelGround, store: Store) -> None:
    held, other = ground.locked("held.txt"), ground.locked("other.txt")
    child = trying(ground, held, other)
    store.locks.release(ground.peer, str(held))
    ends_well(child, held)
    assert other.read_text() == "theirs\n"


def test_of_a_locked_folder_one_file_may_stay_locked(ground: KernelGround, store: Store) -> None:
    folder, held = ground.locked("sub/file.txt").parent, ground.repo / "sub" / "file.txt"
    free = ground.file("sub/free.txt")
    store.locks.acquire(ground.peer, str(folder), "all of it")
    child = trying(ground, free, folder, held)
    store.locks.release(ground.peer, str(folder))
    ends_well(child, free)
    child = trying(ground, held)
    store.locks.release(ground.peer, str(held))
    ends_well(child, held)


def test_a_lapsed_lease_lifts_it(ground: KernelGround, store: Store) -> None:
    held = ground.file("held.txt")
    store.locks.acquire_all(ground.peer, request(ground.peer, [str(held)], ttl=86400.0))
    child = trying(ground, held)
    refused_for(child, held, 2.5)
    store.locks.acquire_all(ground.peer, request(ground.peer, [str(held)], ttl=1.0))
    ends_well(child, held)


def test_the_death_of_the_holder_lifts_it(ground: KernelGround) -> None:
    held = ground.file("held.txt")
    client = subprocess.Popen(["sleep", "600"])
    try:
        with Store() as store:
            peer = join(store, ground.repo, client=(client.pid, start_time(client.pid)))
            store.locks.acquire(peer, str(held), "busy")
        child = trying(ground, held)
        refused_for(child, held, 2.5)
    finally:
        client.kill()
        client.wait()
    ends_well(child, held)


def hand_over(held: Path, giver: Any, taker: Any) -> None:
    """Move a lock from one session to another, without a moment between."""
    with Store() as store:
        store.database.connection.execute(
            "UPDATE context SET instance_id = ? WHERE instance_id = ? AND type = 'lock' AND file = ?",
            (taker["id"], giver["id"], str(held)),
        )


def test_handed_over_to_this_session_it_is_free_and_to_another_it_is_not(ground: KernelGround, store: Store) -> None:
    held = ground.locked("held.txt")
    third = join(store, ground.repo, "third")
    child = trying(ground, held)
    hand_over(held, ground.peer, third)
    refused_for(child, held, 2.5)
    hand_over(held, third, ground.me)
    ends_well(child, held)


def test_a_file_that_its_holder_saves_anew_is_held_again_with_what_is_in_it_now(ground: KernelGround) -> None:
    held = ground.locked("held.txt")
    text = 'until [ "$(cat held.txt)" = "$1" ]; do sleep 0.02; done; echo seen; until ! echo x > held.txt; do :; done; echo refused'
    for number in range(3):
        new = f"saved {number}"
        child = ground.start(ground.plan(held), "bash", "-c", "echo ready; " + text, "bash", new)
        assert child.stdout and child.stdout.readline() == "ready\n"
        scratch = ground.file("scratch", new + "\n")
        os.replace(scratch, held)
        assert child.stdout.readline() == "seen\n"
        assert child.stdout.readline() == "refused\n"
        assert child.wait(120) == 0
        held.write_text("theirs\n")


def test_a_file_that_was_away_for_a_while_is_held_again(ground: KernelGround, held: Path) -> None:
    child = trying(ground, held)
    # In a folder where nothing can be made the command cannot take the free name.
    held.unlink()
    wait_for(lambda: child.poll() is not None or held.exists())
    assert child.wait(120) == 0
    text = "until [ -e held.txt ]; do sleep 0.02; done; until ! echo x > held.txt; do sleep 0.05; done; echo refused; cat held.txt"
    held.write_text("theirs\n")
    child = ground.start(
        ground.plan(held), "bash", "-c", "echo ready; while [ -e held.txt ]; do sleep 0.02; done; echo gone;" + text
    )
    assert child.stdout and child.stdout.readline() == "ready\n"
    held.unlink()
    assert child.stdout.readline() == "gone\n"
    ground.file("held.txt", "new\n")
    assert child.stdout.readline() == "refused\n"
    assert child.wait(120) == 0


def test_what_a_command_leaves_running_is_held_until_the_lock_ends(ground: KernelGround, store: Store) -> None:
    held = ground.locked("held.txt")
    text = f"(setsid bash -c '{TRIES}' bash \"$1\" > out.txt 2> /dev/null &) ; true"
    done = ground.run(ground.plan(held), "bash", "-c", text, "bash", str(held))
    assert (done.returncode, done.stderr) == (0, "")
    wait_for(lambda: (ground.repo / "out.txt").read_text() == "refused\n")
    assert ground.processes(), "somebody keeps the mounts"
    store.locks.release(ground.peer, str(held))
    wait_for(lambda: held.read_text() == "x\n")
    wait_for(lambda: not ground.processes())


def test_who_reads_its_output_is_kept_no_longer_than_it_runs(ground: KernelGround, held: Path) -> None:
    """Something goes on that has closed its own output."""
    text = "exec 9> mark; (exec > /dev/null 2>&1 < /dev/null; sleep 600 & echo $! > pid); echo said"
    child = ground.start(ground.plan(held), "bash", "-c", text)
    assert child.communicate(timeout=120) == ("said\n", "") and child.returncode == 0
    sleeper = int((ground.repo / "pid").read_text())
    (keeper,) = wait_for(lambda: [pid for pid in ground.processes() if pid != sleeper])
    wait_for(lambda: not [name for name in handles_of(keeper) if "pipe:" in name or str(ground.folder) in name])
    os.kill(sleeper, 9)
    wait_for(lambda: not ground.processes())


def handles_of(process: int) -> list[str]:
    """Return the open files of a process."""
    found = []
    for handle in Path(f"/proc/{process}/fd").iterdir():
        try:
            found.append(os.readlink(handle))
        except OSError:  # the process has ended
            continue
    return found


def test_it_ends_with_the_last_process_and_leaves_nothing(ground: KernelGround, held: Path) -> None:
    for _again in range(5):
        ground.bash(ground.plan(held), "true")
        wait_for(lambda: not ground.processes())
    assert mounts_of(ground.folder) == []
    assert ground.bash(ground.folder / "no-plan", "echo x > held.txt").returncode == 0


def test_the_store_that_the_plan_names_is_the_one_that_counts(ground: KernelGround, store: Store, held: Path) -> None:
    """The client may keep its own variables from its commands."""
    place = ground.plan(held, strict=True)
    env = {name: value for name, value in ground.environment.items() if not name.startswith("SWARM_")}
    child = ground.start(place, "bash", "-c", TRIES, "bash", str(held), env=env)
    assert child.stdout and child.stdout.readline() == "refused\n"
    refused_for(child, held, 2.5)
    store.locks.release(ground.peer, str(held))
    ends_well(child, held)


def test_a_store_that_cannot_be_read_changes_nothing(ground: KernelGround, held: Path) -> None:
    child = trying(ground, held)
    away = ground.database.with_name("away")
    ground.database.rename(away)
    ground.database.write_bytes(b"no database" * 1000)
    refused_for(child, held, 2.5)
    assert child.poll() is None
