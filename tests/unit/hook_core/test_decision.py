"""The decision all runtimes share."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirement import requirement

from swarm_hook_core.check import Writes
from swarm_hook_core.collisions import denied_by_lock
from swarm_hook_core.config import RuntimeConfig, changes_in_patch, paths_under_keys
from swarm_hook_core.denial import Denial
from swarm_hook_core.hooks import ToolCall
from swarm_hook_core.lookup import Held, Session
from swarm_hook_core.paths import key_of
from swarm_hook_core.wording import duration

CLAUDE = RuntimeConfig("claude-code", "CC", "swarm-cc", {"Write", "Edit"}, paths_under_keys("file_path"))
CODEX = RuntimeConfig("codex", "CODEX", "swarm-codex", {"apply_patch"}, extract_changes=changes_in_patch)
ME = Session("me", "identity:work claude-code platform:cli", "/repo", "/repo", "/repo")
NOW = 1_800_000_000


def lock(file: str, by: str = "peer", label: str = "identity:work codex", note: str = "", age: int = 60) -> Held:
    return Held(file, by, label, note, NOW - age)


class Among:
    """The locks of peers, as ``Peers`` tells of them; refuses nonsense questions."""

    def __init__(self, *held: Held):
        self.held = held

    def any(self) -> bool:
        return bool(self.held)

    def on(self, keys: list[str], over: list[str]) -> list[Held]:
        asked = [*keys, *over]
        assert keys and len(set(asked)) == len(asked)
        return [one for one in self.held if key_of(one.file) in asked]

    def waiting_for(self, path: str) -> int:
        return 0


def decided(
    config: RuntimeConfig, tool: str, tool_input: Any, *held: Held, session: Session = ME, cwd: str = "/repo"
) -> Denial | None:
    writes = Writes(config, ToolCall(tool, tool_input, cwd=cwd))
    denial = denied_by_lock(writes, session, Among(*held), NOW)
    assert denial is None or isinstance(denial, Denial)
    return denial


def decide_write(path: str, *held: Held, session: Session = ME, cwd: str = "/repo") -> Denial | None:
    return decided(CLAUDE, "Write", {"file_path": path}, *held, session=session, cwd=cwd)


def test_a_lock_that_was_taken_through_another_mount_of_the_folder() -> None:
    session = Session("me", "identity:work codex", "/repo", "/repo")
    session.mounts = ["/mnt/repo"]
    for path, locked in (("/repo/a", "/mnt/repo/a"), ("sub/a", "/mnt/repo/sub"), ("/repo/a", "/repo/a")):
        assert decide_write(path, lock(locked), session=session), path
    for path, locked in (("/repository/a", "/mnt/repository/a"), ("/repo/a", "/mnt/repo/b"), ("/a", "/mnt/repo/a")):
        assert decide_write(path, lock(locked), session=session) is None, path


def reason_for(*, mine: str, theirs: str, note: str = "", age: int = 60) -> str:
    session = Session("me", mine, "/repo", "/repo", "/repo")
    denial = decide_write("/repo/f", lock("/repo/f", "peer-instance", theirs, note, age), session=session)
    assert denial
    return str(denial.reason)


def patch(*hunks: str) -> dict[str, str]:
    return {"command": "*** Begin Patch\n" + "".join(hunks) + "*** End Patch\n"}


@requirement("P-09", "P-14")
def test_one_s_own_lock_lets_pass() -> None:
    assert decide_write("/repo/f", lock("/repo/f", by="me")) is None
    assert decide_write("/repo/f", lock("/repo/f", by="me"), lock("/repo/f", by="peer")), "another scope's lock, say"


@pytest.mark.parametrize(
    ("config", "tool", "tool_input"),
    [
        *(
            (CLAUDE, "Write", odd)
            for odd in (None, [], "x", {}, {"file_path": ""}, {"file_path": 3}, {"path": "/repo/f"})
        ),
        *((CODEX, "apply_patch", odd) for odd in (None, [], "", "*** Begin", {}, {"command": 3}, {"command": "rm x"})),
    ],
)
def test_a_write_whose_paths_cannot_be_read_is_an_error(config: RuntimeConfig, tool: str, tool_input: Any) -> None:
    with pytest.raises(ValueError):
        decided(config, tool, tool_input)


@pytest.mark.parametrize("locked", ["a", "b", "c", "d"])
def test_every_file_of_a_patch_counts(locked: str) -> None:
    call = patch("*** Add File: a\n+x\n", "*** Update File: b\n*** Move to: c\n@@\n-x\n+y\n", "*** Delete File: d\n")
    denial = decided(CODEX, "apply_patch", call, lock(f"/repo/{locked}"))
    assert denial and denial.path == f"/repo/{locked}"
    assert decided(CODEX, "apply_patch", call, lock("/repo/e")) is None


@pytest.mark.parametrize("odd", [chr(0xDCFF), chr(0xD800), "a\0b", "x" * 5000])
def test_a_name_that_no_file_can_have_does_not_shield_the_next(odd: str) -> None:
    call = patch(f"*** Add File: {odd}\n+x\n", "*** Add File: b\n+x\n")
    denial = decided(CODEX, "apply_patch", call, lock("/repo/b"))
    assert denial and denial.path == "/repo/b"


def test_a_worktree_s_lock_is_found_where_its_files_really_are() -> None:
    me = Session("me", "", "/wt", "/wt", "/main")
    assert decide_write("/wt/f", lock("/main/f"), session=me, cwd="/wt")
    assert decide_write("f", lock("/main/f"), session=me, cwd="/wt")
    assert decide_write("/wt/..f", lock("/main/..f"), session=me, cwd="/wt")
    assert decide_write("/wt/f", lock("/wt/f"), session=me, cwd="/wt"), "its own place counts as well"
    assert decide_write("/elsewhere/f", lock("/main/f"), session=me, cwd="/wt") is None


def test_the_reason_tells_a_model_what_it_needs() -> None:
    text = reason_for(mine="identity:work a", theirs="identity:work codex role:x", note="renumbering\nit", age=720)
    assert text.startswith("swarm lock blocked Write for /repo/f: held by codex peer-ins (")
    assert 'note: "renumbering it"' in text
    assert "locked 12 min ago" in text
    assert "peer-instance" in text, "whom to message"
    for way in ("work on something else", "message the holder", "wait"):
        assert way in text
    assert "\n" not in text


def test_a_long_note_is_cut() -> None:
    text = reason_for(mine="", theirs="", note="n" * 5000)
    assert len(text) < 700 and "nnn…" in text


@pytest.mark.parametrize("label", ["", None])
def test_a_nameless_holder_is_named_by_its_instance(label: Any) -> None:
    text = reason_for(mine="", theirs=label)
    assert "held by session peer-ins (" in text and "message the holder (instance peer-instance)" in text


secrets = st.text("abcXYZ0189", min_size=12, max_size=20)


@given(secrets, secrets, secrets, secrets, st.integers(0, 10**7))
def test_identities_hide_who_and_why_never_whether(mine: str, theirs: str, word: str, note: str, age: int) -> None:
    if mine == theirs:
        return
    text = reason_for(mine=f"identity:{mine} x", theirs=f"codex identity:{theirs} role:{word}", note=note, age=age)
    assert text.startswith("swarm lock blocked Write for /repo/f: held by ")
    for secret in (theirs, word, note, "peer-instance", "codex"):
        assert secret not in text.replace("/repo/f", "")
    assert f"locked {duration(age)} ago" in text


@given(
    st.sampled_from([("", ""), ("", "identity:b "), ("identity:a ", ""), ("identity:a ", "identity:a ")]),
    secrets,
    secrets,
)
def test_where_identities_do_not_differ_all_is_said(circle: tuple[str, str], word: str, note: str) -> None:
    text = reason_for(mine=circle[0] + "x", theirs=f"{circle[1]}codex role:{word}", note=note)
    assert "held by codex peer-ins (" in text and f'note: "{note}"' in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s"), (0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7200, "2 h"),
        (172799, "47 h"), (172800, "2 days"), (10**7, "115 days"), (1.9, "1 s"),
    ],
)  # fmt: skip
def test_a_span_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text
