"""A hook's records of a session outside the store, for every name of the session."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.requirement import requirement

from swarm_hook_core import scratch
from swarm_hook_core.config import RuntimeConfig, changes_in_patch
from swarm_hook_core.scratch import clear, folder_of, load, save, tried_lately

CONFIG = RuntimeConfig("codex", "CODEX", "swarm-codex", {"apply_patch"}, extract_changes=changes_in_patch)
PLAIN = "01a20081-270c-7251-afea-bde51fc291c9"
HOSTILE = [
    "../..", "..", ".", "", "/etc", "/", "a/b", "a\0b", "\0", "x" * 10_240, "\ud800", "\udcff" * 40, "é", "~", "con",
    "-rf", "*", "meta.json", "a\nb", "\\..\\..", "_" + PLAIN, PLAIN + "/..", " ",
]  # fmt: skip


def box() -> Path:
    return Path(os.environ["SWARM_STATE_DIR"]) / "swarm-codex"


def everything(top: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("session_id", [PLAIN, *HOSTILE])
def test_a_session_s_folder_is_one_below_ours(session_id: str, home: Path) -> None:
    bystander = home / "bystander"
    bystander.write_text("here")
    assert os.path.dirname(os.path.normpath(folder_of(CONFIG, session_id))) == str(box())
    save(CONFIG, session_id, instance_id="i")
    assert load(CONFIG, session_id) == {"session_id": session_id, "instance_id": "i"}
    (folder,) = box().iterdir()
    assert folder.is_dir() and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert set(everything(home)) == {str(bystander), str(folder / "meta.json")}
    clear(CONFIG, session_id)
    assert everything(home) == {str(bystander): b"here"} and not folder.exists()


@settings(max_examples=60)
@given(
    st.text(st.characters(exclude_categories=[]), max_size=80),
    st.text(st.characters(exclude_categories=[]), max_size=80),
)
def test_any_two_sessions_are_kept_apart(one: str, other: str) -> None:
    shutil.rmtree(box(), ignore_errors=True)
    save(CONFIG, one, instance_id="1")
    assert os.path.dirname(folder_of(CONFIG, one)) == str(box())
    if one != other:
        assert load(CONFIG, other) == {}
        clear(CONFIG, other)
        assert load(CONFIG, one)["instance_id"] == "1"


@requirement("P-14")
def test_a_record_of_another_session_is_not_believed() -> None:
    save(CONFIG, PLAIN, instance_id="i")
    record = Path(folder_of(CONFIG, PLAIN)) / "meta.json"
    record.write_text(json.dumps({"session_id": "another", "instance_id": "peer"}))
    assert load(CONFIG, PLAIN) == {}


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"{", b"\xff\xfe", b'{"instance_id": "peer"}', b"[" * 100_000]
)
def test_a_broken_record_is_none(content: bytes) -> None:
    save(CONFIG, PLAIN, instance_id="i")
    (Path(folder_of(CONFIG, PLAIN)) / "meta.json").write_bytes(content)
    assert load(CONFIG, PLAIN) == {}


def test_a_record_that_is_a_folder_is_none() -> None:
    (Path(folder_of(CONFIG, PLAIN)) / "meta.json" / "x").mkdir(parents=True)
    assert load(CONFIG, PLAIN) == {}
    clear(CONFIG, PLAIN)
    assert (Path(folder_of(CONFIG, PLAIN)) / "meta.json" / "x").is_dir()


def test_clearing_removes_only_what_we_made(tmp_path: Path) -> None:
    save(CONFIG, PLAIN, instance_id="i")
    folder = Path(folder_of(CONFIG, PLAIN))
    (folder / "notes.txt").write_text("a person's")
    clear(CONFIG, PLAIN)
    assert os.listdir(folder) == ["notes.txt"]
    shutil.rmtree(folder)
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "f").write_text("kept")
    folder.symlink_to(tmp_path / "precious")
    clear(CONFIG, PLAIN)
    assert (tmp_path / "precious" / "f").read_text() == "kept"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    box().mkdir(parents=True)
    Path(folder_of(CONFIG, PLAIN)).symlink_to(tmp_path / "precious")
    with pytest.raises(OSError):
        save(CONFIG, PLAIN, instance_id="i")
    assert os.listdir(tmp_path / "precious") == []


def test_a_failed_attempt_is_remembered_for_a_while() -> None:
    assert not tried_lately(CONFIG, PLAIN, 10, 1000)
    save(CONFIG, PLAIN, failed_at=995)
    assert tried_lately(CONFIG, PLAIN, 10, 1000)
    assert not tried_lately(CONFIG, PLAIN, 10, 1005)
    assert not tried_lately(CONFIG, PLAIN, 10, 990), "a clock set back must not switch the check off"
    assert not tried_lately(CONFIG, "another", 10, 1000)
    scratch.save(CONFIG, PLAIN, failed_at="now")
    assert not tried_lately(CONFIG, PLAIN, 10, 1000)
