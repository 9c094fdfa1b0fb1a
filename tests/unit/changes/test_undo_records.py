"""The records of undos that another release of swarm has written: understood, or passed over; never an error."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.world import World

from swarm_hook_core.process import start_time
from swarm_hook_core.state import make_private
from swarm_hook_core.traces import state_of
from swarm_mcp.changes import undoing, writing
from swarm_mcp.changes.planning import plan_undo_of
from swarm_mcp.changes.writing import NOT_KEPT, FileUndo, Record, recover, write
from swarm_mcp.doctor.own_checks import Asked

FILE = {
    "path": "/repo/a", "before": True, "after": False, "mode_before": 0o644, "mode_after": 0, "is_whole": False,
    "state": "1 2 3", "at_ns": 7, "taken": [5, 6],
}  # fmt: skip
FACTS: dict[str, Any] = {
    "id": "0123abcd", "whose": ["codex", "theirs"], "by": ["", ""], "undoes": "", "at": 1.5, "pid": 0, "started": "",
}  # fmt: skip
KNOWN = {
    "as of now": {**FACTS, "files": [FILE]},
    "with links apart": {**FACTS, "files": [{**FILE, "is_link": True, "target": ""}]},
    "with further facts": {**FACTS, "reason": "a rewind", "files": [{**FILE, "blocks": {"a": 1}}]},
    "without files kept whole": {**FACTS, "files": [{key: FILE[key] for key in FILE if key != "is_whole"}]},
}
UNKNOWN: dict[str, Any] = {
    "a list": [FACTS],
    "a number": 7,
    "no files": FACTS,
    "no session": {**{key: FACTS[key] for key in FACTS if key != "whose"}, "files": [FILE]},
    "files by path": {**FACTS, "files": {"/repo/a": FILE}},
    "a session in one word": {**FACTS, "whose": "theirs", "files": [FILE]},
    "a time in words": {**FACTS, "at": "yesterday", "files": [FILE]},
    "a path in parts": {**FACTS, "files": [{**FILE, "path": ["repo", "a"]}]},
    "permissions in words": {**FACTS, "files": [{**FILE, "mode_before": "rw-r--r--"}]},
    "steps by name": {**FACTS, "files": [{**FILE, "taken": [{"at": 5}]}]},
}


def store(value: object, name: str = "0123abcd.json") -> Path:
    path = Path(writing.undos_dir(), name)
    make_private(str(path.parent))
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("form", KNOWN)
def test_a_form_that_is_understood(form: str) -> None:
    store(KNOWN[form])
    (record,) = writing.finished()
    assert (record.id, record.whose, record.at) == ("0123abcd", ("codex", "theirs"), 1.5)
    (one,) = record.files
    assert (one.path, one.before, one.after, one.mode_before, one.at_ns) == ("/repo/a", b"", None, 0o644, 7)
    assert one.taken == [5, 6] and not one.is_whole


@pytest.mark.parametrize("form", UNKNOWN)
def test_a_form_that_is_not_understood_is_passed_over(form: str) -> None:
    store(UNKNOWN[form])
    store({**KNOWN["as of now"], "id": "newer"}, "newer.json")
    store(UNKNOWN[form], "4567cdef/plan.json")
    assert [one.id for one in writing.finished()] == ["newer"]
    assert writing.unfinished() == [] and recover() == []


PLANS = {
    **{form: json.dumps(value) for form, value in UNKNOWN.items()},
    "cut": json.dumps(KNOWN["as of now"])[:-9],
    "empty": "",
    "without its contents": json.dumps({**KNOWN["as of now"], "started": "ended long ago"}),
}


@pytest.mark.parametrize("form", PLANS)
def test_the_doctor_names_a_plan_that_cannot_be_read(form: str) -> None:
    folder = store(None, "4567cdef/plan.json").parent
    (folder / "plan.json").write_text(PLANS[form])
    (finding,) = undoing.findings(Asked("", []))
    assert (finding.name, finding.status) == ("undo", "warn")
    assert "undo 4567cdef was interrupted, and its plan cannot be read" in finding.message
    assert str(folder) in finding.message and str(folder) in finding.mend
    (folder / "plan.json").unlink()
    assert undoing.findings(Asked("", [])) == [], "without a plan nothing was done"


def test_the_doctor_says_nothing_of_an_undo_that_is_being_made() -> None:
    at_work = {"pid": os.getppid(), "started": start_time(os.getppid())}
    store({**KNOWN["as of now"], **at_work}, "4567cdef/plan.json")
    assert undoing.findings(Asked("", [])) == []


def test_an_undo_goes_on_beside_records_of_another_release(world: World) -> None:
    me = world.session("codex")
    me.edit("notes.md", "beta", "MINE")
    for number, form in enumerate(UNKNOWN):
        store(UNKNOWN[form], f"{number}.json")
    done = world.ground.swarm("undo", "--session", me.session_id, "--json")
    assert done.code == 0 and "MINE" not in world.read("notes.md"), done


def test_a_plan_without_its_contents_hinders_no_other(tmp_path: Path) -> None:
    for name in ("first", "second"):
        record = Record(name, ("codex", "theirs"), ("", ""))
        one = FileUndo(str(tmp_path / name))
        one.after, one.mode_after = b"new\n", 0o644
        record.files.append(one)
        record.begin()
        record.started = "ended long ago"
        record.save()
    for path in Path(writing.undos_dir(), "first").glob("*.after"):
        path.unlink()
    assert [line.split()[1] for line in recover()] == ["second"]
    assert writing.any_unfinished()
    old = os.path.getmtime(Path(writing.undos_dir(), "first")) - writing.AGE_SECONDS - 1
    os.utime(Path(writing.undos_dir(), "first"), (old, old))
    writing.prune(os.path.getmtime(writing.undos_dir()))
    assert not writing.any_unfinished()


@pytest.mark.usefixtures("no_faults")
def test_an_undo_without_its_kept_contents_is_a_problem_with_words(tmp_path: Path) -> None:
    record = Record("0123abcd", ("codex", "theirs"), ("", ""))
    one = FileUndo(str(tmp_path / "link"))
    one.is_whole, one.after, one.mode_after = True, b"target", writing.LINK
    os.symlink("before", one.path)
    one.before, one.mode_before, one.state = b"before", writing.LINK, state_of(one.path)
    record.files.append(one)
    write(record)
    for path in Path(writing.undos_dir()).glob("0123abcd.0.*"):
        path.unlink()
    (again,) = writing.finished()
    plan = plan_undo_of(again, [])
    assert plan.files == [] and [problem.reason for problem in plan.problems] == [NOT_KEPT]
