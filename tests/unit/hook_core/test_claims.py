"""Claims: the first session to write a file in a turn gets it, even at the same moment."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from support.altered import Failing
from support.sessions import ROOT

from swarm_hook_core.state import has_claims
from swarm_hook_core.traces import claims
from swarm_mcp.store import leftovers

KEY = "/r/a.py"
MINE, PEER = ("claude-code", "me"), ("codex", "peer")


def claim(session: tuple[str, str] = MINE, key: str = KEY, agent: str = "", at: int = 0, is_void=None) -> claims.Claim:
    return claims.make(key, key, *session, agent, "Edit", at or time.time_ns(), is_void)


def seen_by(session: tuple[str, str], *keys: str, agent: str = "") -> list[str]:
    return [one.key for one in claims.others(*session, agent, keys or (KEY,), time.time_ns())]


def folder() -> Path:
    return Path(os.environ["SWARM_STATE_DIR"]) / "claims"


def age(key: str, seconds: float) -> None:
    (path,) = [one.path for one in claims.standing() if one.key == key]
    at = time.time_ns() - int(seconds * 10**9)
    text = Path(path).read_text()
    Path(path).write_text(text.replace(text.split('"at": ')[1].split("}")[0].split(",")[0], str(at)))
    os.utime(path, ns=(at, at))


def test_the_first_to_write_has_the_file() -> None:
    assert not has_claims() and seen_by(PEER) == []
    first = claim()
    assert first.is_new and first.is_of(*MINE)
    second = claim(PEER)
    assert not second.is_new and second.is_of(*MINE) and second.file == KEY
    assert seen_by(PEER) == [KEY] and seen_by(MINE) == []
    assert oct(folder().stat().st_mode)[-3:] == "700" and oct(os.stat(first.path).st_mode)[-3:] == "600"


def test_a_further_write_renews_and_is_not_new() -> None:
    first = claim(at=time.time_ns() - 5 * 10**9)
    again = claim()
    assert not again.is_new and again.at == first.at and again.written > first.written
    assert [one.written for one in claims.standing()] == [again.written]


def test_what_a_session_has_claimed_its_agents_may_write_but_not_the_other_way_round() -> None:
    claim()
    assert claim(agent="a").agent == "" and seen_by(MINE, agent="a") == []
    claim(key="/r/b", agent="a")
    assert not claim(key="/r/b").is_of(*MINE) and seen_by(MINE, "/r/b", agent="b") == ["/r/b"]


def test_what_was_claimed_for_a_call_that_is_denied_is_taken_back_alone() -> None:
    claims.take_back(claim())
    assert seen_by(PEER) == [] and list(folder().iterdir()) == []
    before = claim()
    for another in (claim(), claim(PEER), before):
        claims.take_back(another)
        assert seen_by(PEER) == [KEY], "an earlier write had claimed it, or a call beside this one has since"


def test_claims_below_a_folder_are_found() -> None:
    for key in ("/r/sub/a", "/r/sub/deep/b", "/r/subway", "nocase:/r/sub/c"):
        claim(key=key)
    found = claims.below(claims.all_of_others(*PEER, "", time.time_ns()), ["/r/sub", "nocase:/r/sub/"])
    assert sorted(one.key for one in found) == ["/r/sub/a", "/r/sub/deep/b", "nocase:/r/sub/c"]
    assert claims.below(claims.all_of_others(*MINE, "", time.time_ns()), ["/"]) == []


def test_a_claim_ends_with_its_turn() -> None:
    claim(), claim(key="/r/b", agent="a"), claim(PEER, "/r/c")
    assert [one.key for one in claims.end(*MINE, "")] == [KEY]
    assert seen_by(("codex", "third"), KEY, "/r/b", "/r/c") and seen_by(PEER) == []
    assert [one.key for one in claims.end(*MINE)] == ["/r/b"]
    assert [one.key for one in claims.standing()] == ["/r/c"]


def test_what_the_next_turn_has_written_does_not_end_with_the_one_before() -> None:
    over = time.time_ns()
    claim(at=over + 1)
    assert claims.end(*MINE, "", over) == [] and seen_by(PEER) == [KEY]
    assert claims.end(*MINE, "", over + 1)


def test_a_claim_is_void_ten_minutes_after_the_last_write() -> None:
    claim()
    age(KEY, 601)
    assert seen_by(PEER) == [] and claim(PEER).is_new
    assert seen_by(MINE) == [KEY]


def test_a_claim_of_the_far_future_is_void_since_a_clock_was_set_back() -> None:
    claim(at=time.time_ns() + 86400 * 10**9)
    assert seen_by(PEER) == [] and claim(PEER).is_new


@pytest.mark.parametrize("seconds", [595, 700])
def test_its_holder_s_own_is_renewed_though_it_is_void_or_nearly(seconds: float) -> None:
    claim()
    age(KEY, seconds)
    assert claim().is_of(*MINE) and seen_by(PEER) == [KEY]


def test_a_claim_of_a_session_that_has_gone_is_replaced() -> None:
    claim()
    assert not claim(PEER, is_void=lambda _claim: False).is_new
    assert claim(PEER, is_void=lambda one: one.session_id == "me").is_new
    assert seen_by(MINE) == [KEY]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"key": 1}', "\udcff".encode("utf-8", "surrogateescape")])
def test_what_is_no_claim_holds_nothing(text: str | bytes) -> None:
    path = Path(claim().path)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert seen_by(PEER) == [] and claim(PEER).is_new


def test_odd_entries_of_the_folder_keep_nobody_from_the_others() -> None:
    claim()
    (folder() / "folder").mkdir()
    (folder() / "link").symlink_to("/etc/passwd")
    assert [one.key for one in claims.standing()] == [KEY] and seen_by(PEER) == [KEY]


def test_a_file_whose_name_is_not_utf_8_can_be_claimed() -> None:
    key = os.fsdecode(b"/r/\xff")
    claim(key=key)
    assert seen_by(PEER, key) == [key]


def test_a_full_disk_leaves_nothing_behind(failing: Failing) -> None:
    failing(claims, "write_all", OSError(errno.ENOSPC, "full"))
    with pytest.raises(OSError, match="full"):
        claim()
    assert list(folder().iterdir()) == []


def test_what_was_killed_while_it_wrote_leaves_no_claim_and_is_swept(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys, time\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from swarm_hook_core.traces import claims\n"
        "os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "claims.make('/r/a.py', '/r/a.py', 'codex', 'peer', '', 'Edit', time.time_ns())\n"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == -signal.SIGKILL
    (left,) = folder().iterdir()
    assert claims.standing() == [] and claim().is_new
    leftovers.remove(time.time())
    assert left.exists(), "it might still be being written"
    leftovers.remove(time.time() + 2 * leftovers.KEPT_SECONDS)
    assert not left.exists()


RACE = """
import sys, time
sys.path.insert(0, {root!r})
from swarm_hook_core.traces import claims
from swarm_mcp.store import leftovers
name, start = sys.argv[1], float(sys.argv[2])
for number in range(200):
    while time.time() < start + number * 0.002:
        pass
    key = f"/r/{{number}}"
    stands = claims.make(key, key, "codex", name, "", "Edit", time.time_ns())
    print(key, stands.session_id, int(stands.is_new))
"""


def race() -> list[list[str]]:
    start = str(time.time() + 0.3)
    words = [sys.executable, "-c", RACE.format(root=str(ROOT))]
    both = [subprocess.Popen([*words, name, start], stdout=subprocess.PIPE, text=True) for name in ("one", "other")]
    return [one.communicate()[0].split("\n")[:-1] for one in both]


def test_of_two_that_write_first_at_one_moment_one_has_the_file() -> None:
    for one, other in zip(*race(), strict=True):
        (key, holder, is_new), (same, told, too) = one.split(), other.split()
        assert (key, holder) == (same, told) and is_new + too in ("01", "10"), (one, other)


def test_of_two_that_replace_a_void_claim_at_one_moment_one_has_the_file() -> None:
    old = time.time_ns() - 700 * 10**9
    for number in range(200):
        path = claim(("codex", "gone"), f"/r/{number}", at=old).path
        os.utime(path, ns=(old, old))
    for one, other in zip(*race(), strict=True):
        assert one.split()[:2] == other.split()[:2] and one != other, (one, other)


def test_whoever_looks_while_claims_come_and_go_meets_whole_ones_or_none() -> None:
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            claim()
            claims.end(*MINE)

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(1000):
            assert seen_by(PEER) in ([], [KEY])
            assert [one.session_id for one in claims.standing()] in ([], ["me"])
    finally:
        ended.set()
        thread.join()


def test_who_holds_up_changes_of_claims_is_waited_for_no_longer_than_a_moment() -> None:
    import fcntl

    claim()
    held = os.open(os.environ["SWARM_STATE_DIR"], os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(OSError):
            claims.end(*MINE)
        assert claim().is_of(*MINE), "what changes nothing needs no lock"
    finally:
        os.close(held)
    assert claims.end(*MINE)
